"""LaTeX tables for pdfLaTeX that need only booktabs: escaped text, numbers with their intervals, floats."""

import re
from collections.abc import Sequence
from textwrap import wrap

import numpy as np

NONE = "--"
DIGITS = 3  # significant digits of a number
LEAST, MOST = -3, 4  # smallest and largest power of ten that is written as a decimal
# Characters that LaTeX reads as commands or prints as others; in braces those that \\ would read as an option.
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


_SYMBOLS = r"""
α \alpha β \beta γ \gamma δ \delta ε \varepsilon ζ \zeta η \eta θ \theta ι \iota κ \kappa λ \lambda μ \mu ν \nu ξ \xi
π \pi ρ \rho σ \sigma τ \tau υ \upsilon φ \varphi χ \chi ψ \psi ω \omega Γ \Gamma Δ \Delta Θ \Theta Λ \Lambda Ξ \Xi
Π \Pi Σ \Sigma Φ \Phi Ψ \Psi Ω \Omega × \times · \cdot ± \pm − - ⊙ \odot √ \surd ∞ \infty ∂ \partial ∇ \nabla ∫ \int
∑ \sum ≤ \leq ≥ \geq ≠ \neq ≈ \approx ∈ \in ∩ \cap ∪ \cup ‖ \Vert ′ ' ° ^\circ µ \mu
← \leftarrow → \rightarrow ↑ \uparrow ↓ \downarrow ⁻ ^- ₋ _- ᵀ ^T
"""
_TOKENS = _SYMBOLS.split()
COMMANDS = str.maketrans(
    {
        **{symbol: f"${command}$" for symbol, command in zip(_TOKENS[::2], _TOKENS[1::2], strict=True)},
        **{digit: f"$^{number}$" for number, digit in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
        **{digit: f"$_{number}$" for number, digit in enumerate("₀₁₂₃₄₅₆₇₈₉")},
        **{"–": "--", "—": "---", "…": r"\ldots{}"},
    }
)
"""LaTeX of characters that pdfLaTeX does not read by itself, as it does accented letters."""


def escaped(text: str) -> str:
    """Escape a text for pdfLaTeX, in one line; letters of other alphabets than Latin and Greek stay as they are."""
    return re.sub("-(?=-)", "-{}", " ".join(text.split()).translate(SPECIAL)).translate(COMMANDS)


def label(*names: str) -> str:
    r"""Return the label of a table for ``\ref``: letters and digits, every other character replaced by ``-``."""
    return "tab:" + "-".join(re.sub("[^A-Za-z0-9]", "-", name) for name in names)


def number(value: float) -> str:
    """Return a number with three significant digits and no trailing zeros; ``--`` for NaN."""
    if not np.isfinite(value):
        return NONE if np.isnan(value) else signed(rf"{'-' if value < 0 else ''}$\infty$")
    digits, _, power = f"{value:.{DIGITS}g}".partition("e")
    return signed(digits) + (_power(int(power)) if power else "")


def with_interval(mean: float, low: float, high: float) -> tuple[str, str]:
    """Return a mean with three significant digits, and its interval with as many decimals.

    The number of decimals follows from the mean, or from half the interval if that is larger. Very small and large
    values have a power of ten, the same in both. The interval is empty if its ends are NaN or the mean is not finite.
    """
    if not np.isfinite(mean):
        return number(mean), ""
    has_interval = bool(np.isfinite(low) and np.isfinite(high))
    size = max(abs(mean), (high - low) / 2 if has_interval else 0)
    exponent = int(np.floor(np.log10(size))) if size else 0
    power_of_ten = 0 if LEAST <= exponent <= MOST else exponent
    decimals = max(0, DIGITS - 1 - exponent + power_of_ten) if size else 0
    power = _power(power_of_ten) if power_of_ten else ""
    middle, *ends = (signed(f"{value * 10.0**-power_of_ten:.{decimals}f}") for value in (mean, low, high))
    return middle + power, f"[{', '.join(ends)}]{power}" if has_interval else ""


def signed(digits: str) -> str:
    """Return digits with a minus sign in place of a hyphen, and no sign before zero."""
    if digits.startswith("-") and digits.strip("-0.") == "":
        return digits[1:]
    return digits.replace("-", "$-$")


def _power(exponent: int) -> str:
    return rf"$\cdot10^{{{exponent}}}$"


def stacked(lines: Sequence[str]) -> str:
    """Stack lines of LaTeX, as the header of a column."""
    if len(lines) == 1:
        return lines[0]
    return "".join([r"\begin{tabular}[b]{@{}c@{}}", r"\\".join(lines), r"\end{tabular}"])


def wrapped(text: str, letters: int) -> list[str]:
    """Wrap a text into LaTeX lines of at most ``letters`` characters, without breaking words."""
    return [escaped(line) for line in wrap(text, letters, break_long_words=False)] or [""]


def floating(caption: str, reference: str, header: Sequence[str], groups: Sequence[Sequence[str]]) -> str:
    r"""Return a ``table``: first column left-aligned, the others centered, groups of rows separated by a rule.

    Args:
        caption: LaTeX, like all other arguments.
        reference: label for ``\ref``.
        header: one cell per column.
        groups: groups of rows as ``row`` returns them; empty groups are left out.
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
    """Return a row of a table, with the space ``below`` it."""
    return " & ".join(cells) + r" \\" + (f"[{below}]" if below else "")


def paired(names: Sequence[str], cells: Sequence[tuple[str, str]]) -> list[str]:
    """Return the one or two rows of a method: its name and the upper cell texts, then the lower cell texts."""
    lower = [rf"{{\scriptsize {text}}}" if text else "" for _, text in cells]
    upper = [names[0], *(text for text, _ in cells)]
    if not any(lower) and len(names) == 1:
        return [row(upper)]
    return [row(upper), row([" ".join(names[1:]), *lower], below="2pt")]
