"""The progress of a benchmark: a bar of the terminal's width, lines in files, and the time left."""

import io
import sys
import warnings
from typing import Any

import pytest
import torch
from torch import nn

import saliency_assay
from saliency_assay.api.progress import COST_WITH_GRADIENTS, Progress

METHOD, METRIC = "Integrated Gradients", "Sensitivity-n with superpixels"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal_as_stderr(monkeypatch: pytest.MonkeyPatch, columns: int = 80) -> Terminal:
    """Replace stderr during a test; pytest replaces it after fixtures have run."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(Progress, "columns", columns)
    return terminal


@pytest.mark.parametrize("columns", [30, 50, 80, 120])
def test_a_line_fits_the_terminal_and_keeps_the_numbers(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = terminal_as_stderr(monkeypatch, columns)
    progress = Progress(nn.Identity(), 100.0, enabled=True)
    for metric in ("", METRIC, METRIC):
        with progress.cell(METHOD, metric, 20):
            progress.bar.refresh()
    lines = [line.rstrip() for line in terminal.getvalue().split("\r") if METHOD[:5] in line]
    assert all(len(line) <= columns for line in lines)
    assert "?" in lines[0]
    assert "?" not in lines[-1]
    assert METRIC in lines[-1] or lines[-1].endswith("…")
    progress.close()


def test_what_is_skipped_does_not_shorten_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal_as_stderr(monkeypatch)
    progress = Progress(nn.Identity(), 100.0, enabled=True)
    progress.skip(80)
    with progress.cell(METHOD, METRIC, 10):
        pass
    assert (progress.bar.n, progress.bar.initial) == (90, 80)
    progress.close()


def test_passes_with_gradients_count_more(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal_as_stderr(monkeypatch)
    classifier = nn.Identity()
    progress = Progress(classifier, 100.0, enabled=True)
    with progress.cell(METHOD, "", 50):
        classifier(torch.ones(4, 2))
        with torch.no_grad():
            classifier(torch.ones(4, 2))
        assert progress.done == 4 + 4 * COST_WITH_GRADIENTS
    assert progress.done == 50
    progress.close()


def test_a_file_has_a_line_for_each_method_and_a_last_one(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(nn.Identity(), 40.0, enabled=True)
    for _ in range(2):  # blocks
        for method in ("Gradient", "Random"):
            for metric in ("", "Deletion"):
                with progress.cell(method, metric, 5):
                    pass
    progress.close()
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(", ")[2] for line in lines] == ["Gradient", "Random", ""]
    assert "25 %" in lines[1]
    assert "100 %" in lines[2]


def test_a_disabled_one_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(nn.Identity(), 10.0, enabled=False)
    with progress.cell(METHOD, METRIC, 10):
        pass
    progress.close()
    assert capsys.readouterr().err == ""


def test_the_warning_of_an_interruption_is_not_in_the_line_of_the_bar(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A warning is printed to stderr, too; the bar is removed before it."""
    terminal = terminal_as_stderr(monkeypatch)
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, 3))

    def interrupt(model: Any, images: Any, targets: Any, *, generator: Any) -> Any:
        raise KeyboardInterrupt

    def show(message: Any, *_: Any, **__: Any) -> None:
        terminal.write(f"{message}\n")

    monkeypatch.setattr(warnings, "showwarning", show)
    methods = {"gradient": "gradient", "custom": interrupt}
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        saliency_assay.benchmark(network, torch.rand(6, 1, 4, 4), methods, ["complexity"])
    line = terminal.getvalue().split("\r")[-1]
    assert line.startswith("interrupted: ")


def test_a_file_begins_with_the_number_of_passes(capsys: pytest.CaptureFixture[str]) -> None:
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, 3))
    saliency_assay.benchmark(network, torch.rand(2, 1, 4, 4), ["gradient"], ["deletion", "sensitivity_max"])
    first = capsys.readouterr().err.splitlines()[0]
    assert "passes per image" in first
    assert "Gradient under" in first
