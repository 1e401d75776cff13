"""Patterns of files, and the combinations that they are filled with."""

import re

import pytest

from saliency_assay.pipeline.paths import Paths, expand, flatten, one_of


def test_patterns_lie_in_the_results() -> None:
    paths = Paths("somewhere/else")
    assert {path.split("/")[0] for name, path in vars(paths).items() if name != "arm"} == {"somewhere"}


def test_the_last_wildcard_varies_fastest_and_unknown_ones_are_left_out() -> None:
    paths = expand("{model}/seed{seed}", seed=[0, 1], model=("a", "b"), data=["x", "y"])
    assert paths == ["a/seed0", "b/seed0", "a/seed1", "b/seed1"]


@pytest.mark.parametrize(
    ("value", "expected"), [("abc", ["abc"]), (7, ["7"]), ([], []), (range(2), ["0", "1"])]
)
def test_a_value_is_text_a_number_or_a_collection(value: object, expected: list[str]) -> None:
    assert expand("{name}", name=value) == expected


def test_one_of_names_is_matched_whole_and_literally() -> None:
    pattern = re.compile(one_of(["a.b", "c", "c"]))
    assert pattern.pattern == r"a\.b|c"
    assert pattern.fullmatch("a.b")
    assert not pattern.fullmatch("axb")
    assert not re.fullmatch(one_of([]), "")


def test_lists_of_paths_become_one() -> None:
    assert flatten(["a", ["b", "c"], []]) == ["a", "b", "c"]
