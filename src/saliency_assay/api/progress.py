"""Progress of a benchmark: a bar in a terminal or notebook, lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from tqdm import tqdm

from saliency_assay.methods.cost import watched_rows

COST_WITH_GRADIENTS = 3.0
"""Forward passes that take as long as a forward and backward pass."""
SECONDS_BETWEEN_LINES = 60.0
"""Least seconds between two lines that name a method again, for later blocks of images."""
WIDTH, NARROW = 80, 70
"""Columns of a terminal that does not state them, and columns below which there is no bar beside the text."""
BAR, PERCENT = "{percentage:3.0f}% |{bar:10}| ", "{percentage:3.0f}%, "
FIXED, FIXED_NARROW = 37, 20
"""Most columns of all except the name of what runs, with a bar and without one."""


class Progress:
    """Counter of forward passes of images through the model, which shows them with the name of what runs.

    A terminal or notebook shows a bar. Elsewhere, such as in the log of a job, the ``header`` is written, and a line
    when a method starts.
    The time left follows from the mean time of a pass, once a metric is complete; what is skipped has no effect on it.
    """

    def __init__(self, classifier: Any, total: float | None, *, enabled: bool, header: str = "") -> None:
        self.classifier, self.total = classifier, total
        self.start, self.done = time.monotonic(), 0.0
        self.method, self.announced = "", dict[str, float]()
        self.has_estimate = False
        bar = _bar_class() if enabled else None
        self.writes_lines = enabled and bar is None
        if self.writes_lines and header:
            print(f"benchmark: {header}", file=sys.stderr, flush=True)
        # With smoothing=0, the time left follows from the mean since the start, without ``initial``; see ``skip``.
        options: dict[str, Any] = {"total": total, "smoothing": 0, "mininterval": 0.5, "leave": False}
        self.bar: Any = bar(bar_format="{elapsed}", dynamic_ncols=True, **options) if bar else None

    @property
    def columns(self) -> int:
        """Number of columns of the terminal."""
        return self.bar.format_dict["ncols"] or WIDTH

    @contextmanager
    def cell(self, method: str, metric: str, weight: float) -> Iterator[None]:
        """Count the passes of a method (``metric`` is empty) or of a metric, which are ``weight`` at its end."""
        self._show(method, metric or "maps")
        done = 0.0

        def count(rows: int) -> None:
            nonlocal done
            cost = COST_WITH_GRADIENTS if torch.is_grad_enabled() else 1
            step = min(cost * rows, weight - done)
            done += step
            self._add(step)

        try:
            with watched_rows(self.classifier, count):
                yield
        finally:
            self._add(weight - done)
        self.has_estimate |= bool(metric)

    def skip(self, weight: float) -> None:
        """Count what need not be computed."""
        if self.bar is not None:
            self.bar.initial += weight
        self._add(weight)

    def close(self) -> None:
        """Remove the bar, or write the last line."""
        if self.bar is not None:
            self.bar.close()
        elif self.writes_lines:
            self._write_line("")
        self.writes_lines = False

    def _add(self, passes: float) -> None:
        self.done += passes
        if self.bar is not None:
            self.bar.update(passes)

    def _show(self, method: str, metric: str) -> None:
        if self.bar is not None:
            columns, text = self.columns, f"{method}: {metric}"
            is_narrow = columns < NARROW
            shown = _shortened(text, columns - (FIXED_NARROW if is_narrow else FIXED))
            self.bar.bar_format = self._layout(is_narrow=is_narrow)
            self.bar.set_description_str(shown, refresh=False)
        elif self.writes_lines and method != self.method:
            now = time.monotonic()
            if now - self.announced.get(method, -SECONDS_BETWEEN_LINES) >= SECONDS_BETWEEN_LINES:
                self.announced[method] = now
                self._write_line(f", {method}")
        self.method = method

    def _layout(self, *, is_narrow: bool) -> str:
        if not self.total:
            return "{elapsed} elapsed  {desc}"
        left = "{remaining}" if self.has_estimate else "?"
        return f"{PERCENT}{left} left  {{desc}}" if is_narrow else f"{BAR}[{{elapsed}}<{left}]  {{desc}}"

    def _write_line(self, text: str) -> None:
        share = f"{100 * self.done / self.total:.0f} % " if self.total else ""
        elapsed = tqdm.format_interval(time.monotonic() - self.start)
        print(f"benchmark: {share}after {elapsed}{text}", file=sys.stderr, flush=True)


def _shortened(text: str, columns: int) -> str:
    return text if len(text) <= columns else f"{text[: max(columns - 1, 0)]}…"


def _bar_class() -> Callable[..., Any] | None:
    """Return the class of bars that stderr can show; None if it shows none.

    A notebook without ipywidgets shows the bar of a terminal; tqdm.auto would warn.
    """
    if "ipykernel.zmqshell" in sys.modules:
        from tqdm import notebook

        return notebook.tqdm if notebook.IProgress is not None else tqdm  # type: ignore[attr-defined]  # of a try
    return tqdm if sys.stderr.isatty() else None
