"""Classes of a model that keeps its own."""

from pathlib import Path
from typing import Any

import pytest

from saliency_assay.models.classes import class_indices, of_data, read_class_map, read_classes


@pytest.mark.parametrize(
    ("name", "index"),
    [
        *(("n01440764", 0), ("tench", 0), ("Tinca_tinca", 0), ("0", 0), ("999", 999)),
        *(("African elephant", 386), ("toilet tissue", 999), ("n02012849", 134), ("crane n02012849", 134)),
    ],
)
def test_classes_of_imagenet_have_wnids_names_and_indices(name: str, index: int) -> None:
    assert read_classes("imagenet").index(name) == index


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("crane", r"a name of 'crane n02012849' \(134\) and 'crane n03126707' \(517\)"),
        ("dog", "found 'dog', expected one of the model's 1000 classes"),
        ("1000", "found '1000', expected one"),
    ],
)
def test_a_name_of_no_class_or_of_several_is_an_error(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_classes("imagenet").index(name)


def test_names_of_imagenet_are_unique() -> None:
    names = read_classes("imagenet").names
    assert len(set(names)) == len(names) == 1000


def test_classes_are_a_number_names_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "names.txt"
    file.write_text("cat, Felis catus\ndog\tCanis\n\n", encoding="utf-8")
    assert read_classes(str(file)).names == ["cat", "dog"]
    assert class_indices(["Felis-Catus", "DOG"], read_classes(str(file))) == [0, 1]
    assert class_indices(["dog", "cat"], read_classes(["dog", "cat"])) == [0, 1]
    assert class_indices(["7", "0"], read_classes(10)) == [7, 0]
    # A name that looks like an index is no index of named classes.
    with pytest.raises(ValueError, match="found '1', expected one of the model's 2 classes"):
        class_indices(["1"], read_classes(["dog", "cat"]))


@pytest.mark.parametrize("classes", [1, ["a"], ["a", "a"], ["a", ""]])
def test_fewer_than_two_different_classes_are_an_error(classes: Any) -> None:
    with pytest.raises(ValueError, match="expected two or more classes"):
        read_classes(classes)


def test_exact_names_come_first_and_a_leading_wnid_is_a_name(tmp_path: Path) -> None:
    assert class_indices(["a", "A", "T cell"], read_classes(["A", "a", "T-cell", "T cell"])) == [1, 0, 3]
    file = tmp_path / "synset_words.txt"
    file.write_text("n01440764 tench, Tinca tinca\nn01443537 goldfish\n", encoding="utf-8")
    assert class_indices(["n01443537", "tench"], read_classes(str(file))) == [1, 0]


def test_a_map_names_the_class_of_each_class_of_the_data(tmp_path: Path) -> None:
    settings = {"of": ["small", "large"], "map": {"ant": "small", "bee": 0, "elk": "1"}}
    assert of_data(["ant", "bee", "elk"], settings) == ([0, 0, 1], ["small", "large"])
    file = tmp_path / "map.csv"
    file.write_text("class,model_class\nant,small\nelk,large\n", encoding="utf-8")
    assert read_class_map(file) == {"ant": "small", "elk": "large"}
    settings["map"] = str(file)
    with pytest.raises(ValueError, match="class_map: found no entry of the class 'bee'"):
        of_data(["ant", "bee", "elk"], settings)
    assert of_data(["a", "b"], None) == ([0, 1], ["a", "b"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,index\nant,0\n", "found columns 'name, index', expected class, model_class"),
        ("class,model_class\nant,\n", "line 2: found 'ant'"),
        ("class,model_class\nant,small\nant,large\n", "line 3: found 'ant'"),
        ("class,model_class\nant,small,x\n", "line 2"),
        ("class,model_class\nant\n", "line 2"),
    ],
)
def test_an_invalid_map_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "map.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_class_map(tmp_path / "map.csv")
