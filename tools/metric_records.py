"""Generate the items on formula, scores and parameters in each metric's section: ``python -m tools.metric_records``.

The sections are on the pages in docs/metrics. The costs in this file are for the overview (``tools.record_tables``).
"""

import re
from collections.abc import Iterator
from math import isinf
from pathlib import Path

from saliency_assay.metrics import METRICS, Metric
from tools.pages import DOCS

FOLDER = DOCS / "metrics"
ITEM = re.compile(r"^- \*\*(?:Formula|Scores|Reduction|Parameters)\*\*: .*\n", re.MULTILINE)
"""Generated item in the list of a section."""
TWO_IMAGES = "two images' maps"
EQUATIONS = ("necessity_sufficiency", "infidelity_", "road")
"""Beginnings of the names of metrics whose equations are in the text of the page."""
COST = {
    "aopc": "2 · `steps` + 1",
    "faithfulness": "`pixels` + 1 \\*",
    "necessity_sufficiency": "at most about 6 · `steps`",
    "deletion": "`steps` + 1",
    "insertion": "`steps` + 1",
    "road": "2 · `points` + 1",
    "f_fidelity": "2 · `points` · `samples` + 1, fine-tuning",
    "single_deletion": "`grid`² + 1 \\*",
    "sensitivity_n": "`points` · `subsets` + 1 \\*",
    "faithfulness_correlation": "`subsets` + 1 \\*",
    "region_perturbation": "2 · `regions` + 1",
    "irof": "superpixels + 1",
    "monotonicity": "`steps` + 1",
    "saco": "`groups` + 1",
    "non_sensitivity": "`pixels` + 1 \\*",
    "infidelity_square": "squares + 1 \\*",
    "infidelity_noisy_baseline": "`samples` / batch size + 1 \\*",
    "infidelity_subset": "`samples` + 1 \\*",
    "infidelity_shap": "`samples` + 1 \\*",
    "infidelity_halves": "3 \\*",
    "sensitivity_max": "`samples` maps",
    "local_lipschitz": "`samples` maps",
    "relative_stability": "`samples` maps, `samples` + 1",
    "input_invariance": "1 map",
    "randomization": "2 · `stages` − 1 maps",
    "random_logit": "1 map",
    "emprt": "1 map",
    "smprt": "`samples` · (`stages` + 1) maps",
    "mcs": "maps of two models",
    "idr": TWO_IMAGES,
    "iir": f"{TWO_IMAGES}, `steps` for δ \\*",
    "tcav": "all images once per model",
}
"""Images that go through the model, or maps; by default the number in the record."""


def cost(metric: Metric) -> str:
    """Return the cost of a score as text; \\* marks model responses that are computed once for all methods."""
    return COST.get(metric.name, f"{metric.passes:g}" if isinstance(metric.passes, (int, float)) else "")


def bound(value: float) -> str:
    """Return a bound of an interval as text."""
    return ("−" if value < 0 else "") + ("∞" if isinf(value) else f"{abs(value):g}")


def interval(low: float, high: float) -> str:
    """Return a range as text, open at infinite ends."""
    return f"{'(' if isinf(low) else '['}{bound(low)}, {bound(high)}{')' if isinf(high) else ']'}"


def scores_text(metric: Metric, *, ranges: bool = True) -> str:
    """Return the names of scores with direction and range; a single score of the metric's name needs no name."""
    groups: dict[str, list[str]] = {}
    for score in metric.scores:
        interval_text = f" {interval(*score.range)}" if ranges else ""
        groups.setdefault(score.direction.arrow + interval_text, []).append(f"`{score.name}`")
    if [score.name for score in metric.scores] == [metric.name]:
        return next(iter(groups))
    return "; ".join(f"{', '.join(names)} {text}" for text, names in groups.items())


def items_of(metric: Metric) -> list[tuple[str, str]]:
    """Return the generated items of a metric as pairs of name and text; those without a text are left out."""
    parameters = [f"`{name}` {yaml_text(parameter.default)}" for name, parameter in metric.parameters.items()]
    items = [
        ("Formula", "" if metric.name.startswith(EQUATIONS) else metric.formula),
        ("Scores", scores_text(metric)),
        ("Reduction", f"`{metric.reduction}`" if metric.reduction not in ("sum", "") else ""),
        ("Parameters", ", ".join(parameters)),
    ]
    return [(name, text) for name, text in items if text]


def yaml_text(default: object) -> str:
    """Return a default value as YAML."""
    if isinstance(default, bool):
        return str(default).lower()
    return f"{default:g}" if isinstance(default, float) else str(default)


def with_items(section: str, metric: Metric) -> str:
    """Return a metric's section with its items up to date, in the place of the first one or below the heading."""
    first = ITEM.search(section)
    start = first.start() if first else section.find("\n") + 2
    items = "".join(f"- **{name}**: {text}\n" for name, text in items_of(metric))
    return section[:start] + items + ("" if first else "\n") + ITEM.sub("", section[start:])


def generated() -> Iterator[tuple[Path, str]]:
    """Yield the path and the new text of each page, in which each metric with a section has its items."""
    metrics = {f"## {metric.name}": metric for metric in METRICS}
    for path in sorted(FOLDER.glob("*.md")):
        sections = re.split(r"^(?=## )", path.read_text(), flags=re.MULTILINE)
        for number, section in enumerate(sections):
            if metric := metrics.get(section.partition("\n")[0]):
                sections[number] = with_items(section, metric)
        yield path, "".join(sections)


if __name__ == "__main__":
    for path, text in generated():
        path.write_text(text)
