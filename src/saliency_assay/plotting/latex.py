"""Tables in LaTeX that need booktabs and nothing else: text as text, numbers with their intervals, floats."""

import re
from collections.abc import Sequence
from textwrap import wrap

import numpy as np

from saliency_assay.plotting.text import readable

NONE = "--"
DIGITS = 3  # significant digits of a number
LEAST, MOST = -3, 4  # powers of ten that are written out as decimals
# What LaTeX would take for a command or shows as another sign; braces where \\ before it would take it for an option.
SPECIAL = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        '"': r"\char34{}",
        "[": "{[}",
        "*": "{*}",
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    }
)


def escaped(text: str) -> str:
    """Any text as LaTeX that shows it, in one line; letters beyond ASCII stay as they are (UTF-8)."""
    return re.sub("-(?=-)", "-{}", " ".join(text.split()).translate(SPECIAL))


def named(name: str) -> str:
    """Return a name from the configuration as a label in LaTeX."""
    return escaped(readable(name))


def label(*names: str) -> str:
    r"""Return the label of a table for ``\ref``: letters, digits and ``-``, each other letter as ``-``."""
    return "tab:" + "-".join(re.sub("[^A-Za-z0-9]", "-", name) for name in names)


def number(value: float) -> str:
    """Return a number with three significant digits and no zeros behind them; ``--`` for NaN."""
    if not np.isfinite(value):
        return NONE if np.isnan(value) else signed(rf"{'-' if value < 0 else ''}$\infty$")
    digits, _, power = f"{value:.{DIGITS}g}".partition("e")
    return signed(digits) + (_power(int(power)) if power else "")


def with_interval(mean: float, low: float, high: float) -> tuple[str, str]:
    """Return a mean with three significant digits, and its interval with as many decimals.

    The digits are those of the mean, or of half the interval where that is more than the mean. What is very small or
    large has a power of ten, the same in both. The interval is empty where its ends are NaN or the mean is none.
    """
    if not np.isfinite(mean):
        return number(mean), ""
    known = bool(np.isfinite(low) and np.isfinite(high))
    size = max(abs(mean), (high - low) / 2 if known else 0)
    exponent = int(np.floor(np.log10(size))) if size else 0
    shown = 0 if LEAST <= exponent <= MOST else exponent
    decimals = max(0, DIGITS - 1 - exponent + shown) if size else 0
    power = _power(shown) if shown else ""
    middle, *ends = (signed(f"{value * 10.0**-shown:.{decimals}f}") for value in (mean, low, high))
    return middle + power, f"[{', '.join(ends)}]{power}" if known else ""


def signed(digits: str) -> str:
    """Digits with a minus instead of a hyphen, and none before zero."""
    if digits.startswith("-") and digits.strip("-0.") == "":
        return digits[1:]
    return digits.replace("-", "$-$")


def _power(exponent: int) -> str:
    return rf"$\cdot10^{{{exponent}}}$"


def stacked(lines: Sequence[str]) -> str:
    """Lines of LaTeX one above the other, as the head of a column."""
    if len(lines) == 1:
        return lines[0]
    return "".join([r"\begin{tabular}[b]{@{}c@{}}", r"\\".join(lines), r"\end{tabular}"])


def wrapped(name: str, letters: int) -> list[str]:
    """Return a name from the configuration in lines of LaTeX of at most so many letters, but words whole."""
    return [escaped(line) for line in wrap(readable(name), letters, break_long_words=False)] or [""]


def floating(caption: str, reference: str, header: Sequence[str], groups: Sequence[Sequence[str]]) -> str:
    r"""Return a ``table``: the first column to the left, the others centred; groups of rows set apart by a rule.

    Args:
        caption: LaTeX, as all else here is.
        reference: for ``\ref``.
        header: a cell for each column.
        groups: of rows as ``row`` makes them; empty ones are left out.
    """
    lines = [
        r"\begin{table}[htbp]",
        r"\centering\footnotesize",
        r"\setlength{\tabcolsep}{4pt}\setlength{\belowcaptionskip}{6pt}",
        rf"\caption{{{caption}}}",
        rf"\label{{{reference}}}",
        rf"\begin{{tabular}}{{@{{}}l{'c' * (len(header) - 1)}@{{}}}}",
        r"\toprule",
        row(header),
        r"\midrule",
        "\n\\midrule\n".join("\n".join(rows) for rows in groups if rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines)


def row(cells: Sequence[str], *, below: str = "") -> str:
    """Return a row of a table, and how much space stands below it."""
    return " & ".join(cells) + r" \\" + (f"[{below}]" if below else "")


def paired(names: Sequence[str], cells: Sequence[tuple[str, str]]) -> list[str]:
    """Return a method's one or two rows: the upper texts of its cells beside the first line of its name, then the
    lower."""
    lower = [rf"{{\scriptsize {text}}}" if text else "" for _, text in cells]
    upper = [names[0], *(text for text, _ in cells)]
    if not any(lower) and len(names) == 1:
        return [row(upper)]
    return [row(upper), row([" ".join(names[1:]), *lower], below="2pt")]
