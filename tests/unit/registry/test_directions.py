"""Directions of scores: higher, lower, or closest to a value."""

from math import nan

import numpy as np
import pytest

from saliency_assay.registry.directions import Direction


@pytest.mark.parametrize(
    ("text", "target", "arrow", "phrase"),
    [
        ("higher", None, "↑", "higher is better"),
        ("lower", None, "↓", "lower is better"),
        ("target 0", 0, "→ 0", "closer to 0 is better"),
        ("target -0.25", -0.25, "→ -0.25", "closer to -0.25 is better"),
    ],
)
def test_a_direction_has_a_target_an_arrow_and_a_phrase(
    text: str, target: float | None, arrow: str, phrase: str
) -> None:
    direction = Direction(text)
    assert (direction.target, direction.arrow, direction.phrase) == (target, arrow, phrase)


@pytest.mark.parametrize(
    "direction",
    ["up", "", "Higher", "target", "target ", "target x", "target nan", "target inf", "1", None, nan],
)
def test_other_directions_are_refused_in_one_line(direction: str) -> None:
    with pytest.raises(ValueError, match=r"^direction: found .*, valid: higher, lower, target") as error:
        Direction(direction)
    assert repr(direction) in str(error.value)


@pytest.mark.parametrize(
    ("direction", "expected"),
    [("higher", [-1, 0, 0.5, nan]), ("lower", [1, 0, -0.5, nan]), ("target 0.5", [-1.5, -0.5, 0, nan])],
)
def test_of_oriented_scores_higher_ones_are_better(direction: str, expected: list[float]) -> None:
    np.testing.assert_array_equal(Direction(direction).oriented(np.array([-1, 0, 0.5, nan])), expected)


def test_an_ideal_value_has_a_text() -> None:
    assert (Direction.closer_to(0.0), Direction.closer_to(-0.25)) == ("target 0", "target -0.25")
    assert Direction.closer_to(1 / 3).target == 1 / 3
