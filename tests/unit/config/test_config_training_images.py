"""Errors before the first job for data sets of test images alone, and for the classes to explain."""

from pathlib import Path
from typing import Any

import pytest
from configurations import agrees

from saliency_assay.catalog import CATALOG
from saliency_assay.config.configuration import Configuration, read
from saliency_assay.config.errors import ConfigError


def configured(root: Path, **sections: Any) -> Configuration:
    """A study of a trained model on two test images; ``data``, ``model`` and ``study`` change the entries."""
    for name in ("cat", "dog"):
        (root / "images" / name).mkdir(parents=True, exist_ok=True)
    (root / "weights.pth").touch()
    raw = {
        "data": {
            "photos": {
                "kind": "folder",
                "path": str(root / "images"),
                "split": "test",
                **sections.pop("data", {}),
            },
            **sections.pop("more_data", {}),
        },
        "models": {
            "net": {
                "architecture": "resnet8",
                "data": "photos",
                "trained_on": "class",
                "weights": str(root / "weights.pth"),
                "training": {"epochs": 0},
                **sections.pop("model", {}),
            }
        },
        "methods": {"gradient": {}},
        "studies": {
            "s": {"kind": "fidelity", "model": "net", "metrics": ["deletion"], **sections.pop("study", {})}
        },
        **sections,
    }
    return read(raw, catalog=CATALOG, source="some.yaml")


def test_a_study_without_training_images(tmp_path: Path) -> None:
    config = configured(tmp_path)
    assert not config.data["photos"].has_training_images
    assert config.data["photos"].parameters["split"] == "test"


def test_a_folder_of_images_without_classes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "flat").mkdir()
    (tmp_path / "flat/0.png").touch()
    with pytest.raises(ConfigError) as error:
        configured(tmp_path, data={"path": str(tmp_path / "flat")})
    assert agrees(str(error.value), "some.yaml: data.photos.path: … flat: found no folder of a class … list")


RETRAIN = {"r": {"kind": "retrain", "model": "net"}}


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        (
            {"model": {"training": {"epochs": 3}}},
            "models.net.training.epochs: found 3 … 0 and trained weights",
        ),
        (
            {
                "model": {
                    "training": {"epochs": 3, "validation_share": 0.1},
                    "search": {"learning_rate": [0.1]},
                }
            },
            "models.net.search: found a search … none",
        ),
        ({"methods": {"expected_gradients": {}}}, "studies.s.methods: expected_gradients needs a background"),
        ({"methods": {"deep_shap": {}}}, "studies.s.methods: deep_shap needs a background"),
        ({"study": {"metrics": ["f_fidelity"]}}, "studies.s.metrics: f_fidelity fine-tunes the model"),
        ({"studies": RETRAIN}, "studies.r.model: found net, whose training.epochs is 0"),
        (
            {
                "more_data": {
                    "words": {"kind": "caption", "source": "photos", "classes": ["cat", "dog"]},
                }
            },
            "data.words.source: found 'photos', which has no training images; valid: none",
        ),
        ({"data": {"test_share": 0.2}}, "data.photos.test_share: found 0.2 … none"),
        ({"data": {"test_images_per_class": 2}}, "data.photos.test_images_per_class: found 2 … none"),
        ({"data": {"test_folder": "val"}}, "data.photos.test_folder: found 'val' … none"),
    ],
)
def test_what_needs_training_images_is_refused(tmp_path: Path, sections: Any, expected: str) -> None:
    with pytest.raises(ConfigError) as error:
        configured(tmp_path, **sections)
    assert agrees(str(error.value), f"some.yaml: {expected}")


def test_a_list_that_contradicts_the_key(tmp_path: Path) -> None:
    file = tmp_path / "list.csv"
    file.write_text("image,label,split\na.png,x,test\nb.png,x,train\n")
    with pytest.raises(ConfigError) as error:
        configured(tmp_path, data={"path": str(file)})
    assert "data.photos.split: found 'test', but" in str(error.value)
    file.write_text("image,label,split\na.png,x,test\nb.png,x,test\n")
    del_split = {"path": str(file), "split": "auto"}
    assert not configured(tmp_path, data=del_split).data["photos"].has_training_images


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (
            {"explained_classes": ["cats"]},
            "data.photos.explained_classes: unknown class 'cats'; did you mean",
        ),
        ({"explained_classes": []}, "data.photos.explained_classes: found []"),
        ({"explained_classes": ["cat", "cat"]}, "data.photos.explained_classes: found ['cat', 'cat']"),
    ],
)
def test_explained_classes_are_those_of_the_folder(tmp_path: Path, data: Any, expected: str) -> None:
    with pytest.raises(ConfigError) as error:
        configured(tmp_path, data=data)
    assert agrees(str(error.value), f"some.yaml: {expected}")
    entry = configured(tmp_path, data={"explained_classes": ["dog"]}).data["photos"]
    assert "explained_classes" not in entry.parameters  # a change does not rebuild the data set


def test_explained_classes_need_the_label_class(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"scenes\.explained_classes: found with images of the labels object"
    ):
        configured(tmp_path, more_data={"scenes": {"kind": "synthetic", "explained_classes": ["dog"]}})
    words = {"kind": "caption", "source": "digits", "classes": ["1", "2"], "explained_classes": ["3"]}
    with pytest.raises(ConfigError, match=r"words\.explained_classes: unknown class '3'; valid: 1, 2"):
        configured(tmp_path, more_data={"digits": {"kind": "digits"}, "words": words})


def test_what_needs_8_bits_is_refused_for_windows(tmp_path: Path) -> None:
    deep = {"split": "auto", "gray": True, "window": [0, 4095]}
    study = {"r": {"kind": "retrain", "model": "net"}}
    with pytest.raises(
        ConfigError, match=r"studies\.r\.model: found a model of the set photos, which has a window"
    ):
        configured(tmp_path, data=deep, model={"training": {"epochs": 2}}, studies=study)
    words = {"kind": "caption", "source": "photos", "classes": ["cat", "dog"]}
    with pytest.raises(ConfigError, match=r"words\.source: found 'photos', which has a window"):
        configured(tmp_path, data=deep, more_data={"words": words})
