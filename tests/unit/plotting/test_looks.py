"""Names of columns, numbers with their zeros, and the colors of ranks on light and dark pages."""

import re

import numpy as np
import pytest
from matplotlib.figure import Figure

from saliency_assay.plotting.palette import _luminance, cell_colors, correlation_colors, css
from saliency_assay.plotting.style import WIDTH, name_columns, named_width
from saliency_assay.plotting.text import significant

PAGE = "#16181b"  # dark background in page.css


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(0.1, 2, "0.10"), (0.5, 3, "0.500"), (12, 2, "12"), (-3, 3, "-3.00"), (0.0, 3, "0.00"), (123, 3, "123")],
)
def test_zeros_at_the_end_of_a_number_stay(value: float, digits: int, text: str) -> None:
    assert significant(value, digits) == text


def test_names_that_fit_are_horizontal() -> None:
    axes = Figure().subplots()
    name_columns(axes, ["Gradient × Input", "Random"], 1.0)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["Gradient ×\nInput", "Random"]
    assert {label.get_rotation() for label in axes.get_xticklabels()} == {0}
    name_columns(axes, ["Guided Backpropagation", "Random"], 1.0)
    assert {label.get_rotation() for label in axes.get_xticklabels()} == {30}


def test_a_figure_is_as_wide_as_its_names_if_a_page_is() -> None:
    names = ["Guided Backpropagation", "Random"]
    wide = named_width(names, margin=1.5, least=0.9)
    assert 0.9 * 2 + 1.5 < wide <= WIDTH
    assert named_width(names * 10, margin=1.5, least=0.9) == pytest.approx(20 * 0.9 + 1.5)


def luminance(color: str) -> float:
    """Return the relative luminance of a CSS color."""
    return _luminance(np.array([int(part, 16) for part in re.findall("[0-9a-f]{2}", color)]) / 255)


@pytest.mark.parametrize("dark", [False, True])
def test_text_is_legible_on_every_cell(dark: bool) -> None:
    cells = [cell_colors(low, high, 8, dark=dark) for low in range(1, 9) for high in range(low, 9)]
    cells += [correlation_colors(value, dark=dark) for value in np.linspace(-1, 1, 21)]
    for cell in cells:
        background, text = map(luminance, cell)
        assert (max(background, text) + 0.05) / (min(background, text) + 0.05) >= 4.5


def test_the_first_rank_differs_most_from_the_page() -> None:
    light = [luminance(cell_colors(rank, rank, 8)[0]) for rank in range(1, 9)]
    dark = [luminance(cell_colors(rank, rank, 8, dark=True)[0]) for rank in range(1, 9)]
    assert light == sorted(light)
    assert dark == sorted(dark, reverse=True)
    assert dark[-1] > luminance(PAGE)


def test_a_style_has_both_pairs_of_colors() -> None:
    style = css(("#ffffff", "#000000"), ("#111111", "#eeeeee"))
    assert style == "background-color:#ffffff;color:#000000;--dark:#111111;--dark-text:#eeeeee"
