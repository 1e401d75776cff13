"""Generate the table at the top of each metric's section in docs/metrics.md: ``python -m tools.metric_records``.

Most rows come from the metric's record. Measured reliability, and differences between a paper and its authors' code,
are texts in this file.
"""

import re
from collections.abc import Iterator
from math import isinf
from pathlib import Path

from saliency_assay.metrics import METRICS, Metric
from saliency_assay.registry.directions import phrase
from tools.pages import DOCS

PAGE = DOCS / "metrics.md"
BEGIN, END = "<!-- record, written by tools/metric_records.py -->", "<!-- end of record -->"
CIFAR = "[CIFAR-10, 1,000 images](papers/metric_reliability.md#tables-1-and-2)"
BAM = "[photographs](reliability.md#on-photographs-bam)"
NOT_MEASURED = "of each run in its report, page Metrics; no larger study has measured it yet"
RELIABILITY = {
    "aopc": "α with edge detection, L = 20 … 100: MoRF 0.36 … 0.58 with the mean, 0.26 … 0.40 with random pixels; LeRF "
    f"0.22 … 0.23, 0.14 … 0.18; {CIFAR}",
    "faithfulness": f"α with edge detection 0.42 (mean), 0.26 (random); {CIFAR}",
    "mcs": f"α without baselines 0.38; two halves of the images order the methods alike (ρ = 0.93); {BAM}",
    "idr": f"α without baselines 0.06; two halves ρ = 0.95; {BAM}",
    "iir": f"α without baselines 0.05, of the relative change 0.19; two halves ρ = 0.83 and 0.94; {BAM}",
}
BELOW = "below"
RELEASED = {
    "necessity_sufficiency": f"`corrected` (default) and `printed` differ in Eq. 4; the released code differs: {BELOW}",
    "road": f"accuracy of a set in both; noise, ties and LeRF in the released code: {BELOW}",
    "infidelity_square": "side lengths, stride, zero fill and the optimal scalar are the released code's",
    "infidelity_noisy_baseline": "`protocol`: z unbounded as printed, or clipped to [0, 1] as released",
    "infidelity_subset": "not in the paper's tables",
    "infidelity_shap": f"which pixels turn black, printed, makes no difference: {BELOW}",
    "infidelity_halves": f"which explanations, and whether rescaled, is in neither: {BELOW}",
    "sensitivity_max": f"relative and with new noise at each draw as released: {BELOW}",
    "randomization": f"BatchNorm keeps its trained statistics in the released code: {BELOW}",
    "mcs": "resizing of masks and the class that is explained: [Concept attribution](#concept-attribution)",
    "idr": "strictly less in both; the baseline is not in the released code: [Baselines](#baselines)",
    "iir": f"`protocol`: how δ begins; η₃ and the step: {BELOW}",
    "tcav": f"2 experiments and cross-entropy in the released code, here 20 and the logit: {BELOW}",
}
NONE = "no released code was compared"


def bound(value: float) -> str:
    """Return a bound of an interval as text."""
    return ("−" if value < 0 else "") + ("∞" if isinf(value) else f"{abs(value):g}")


def interval(low: float, high: float) -> str:
    """Return a range as text, open at infinite ends."""
    return f"{'(' if isinf(low) else '['}{bound(low)}, {bound(high)}{')' if isinf(high) else ']'}"


def rows_of(metric: Metric) -> list[tuple[str, str]]:
    """Return the rows of a metric's table as pairs of name and text."""
    scores = [
        f"`{score.name}`: {phrase(score.direction)}, {interval(*score.range)}" for score in metric.scores
    ]
    parameters = [f"`{name}` {yaml_text(parameter.default)}" for name, parameter in metric.parameters.items()]
    unreduced = "none: no map" if metric.name == "tcav" else "none: raw maps"
    return [
        ("formula", (metric.formula or "none given").replace("|", "\\|")),
        ("direction and range", "; ".join(scores)),
        ("reduction", f"`{metric.reduction}`" if metric.reduction else unreduced),
        ("parameters", ", ".join(parameters) or "none"),
        ("reliability found", RELIABILITY.get(metric.name, NOT_MEASURED)),
        ("printed against released", RELEASED.get(metric.name, NONE)),
        ("source", metric.reference),
    ]


def yaml_text(default: object) -> str:
    """Return a default value as YAML."""
    if isinstance(default, bool):
        return str(default).lower()
    return f"{default:g}" if isinstance(default, float) else str(default)


def table_of(metric: Metric) -> str:
    """Return a metric's table between its begin and end markers."""
    rows = "\n".join(f"| {name} | {text} |" for name, text in rows_of(metric))
    return f"{BEGIN}\n\n| | |\n|---|---|\n{rows}\n\n{END}"


def generated() -> Iterator[tuple[Path, str]]:
    """Yield the path and the new text of the page, with each metric's table below its heading, if it has one."""
    page = re.sub(rf"{re.escape(BEGIN)}.*?{re.escape(END)}\n\n", "", PAGE.read_text(), flags=re.DOTALL)
    for metric in METRICS:
        heading = f"\n## {metric.name}\n\n"
        page = page.replace(heading, f"{heading}{table_of(metric)}\n\n")
    yield PAGE, page


if __name__ == "__main__":
    for path, text in generated():
        path.write_text(text)
