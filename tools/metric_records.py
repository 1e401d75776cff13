"""Generate the table at the top of each metric's section in docs/metrics.md: ``python -m tools.metric_records``.

Most rows come from the metric's record. Measured reliability, and differences between a paper and its authors' code,
are texts in this file.
"""

import re
from collections.abc import Iterator
from math import isinf
from pathlib import Path

import yaml

from saliency_assay.metrics import METRICS, Metric
from saliency_assay.runtime.project import ROOT
from tools.pages import DOCS

PAGE = DOCS / "metrics.md"
BEGIN, END = "<!-- record, written by tools/metric_records.py -->", "<!-- end of record -->"
CIFAR = "[CIFAR-10, 10,000 images](papers/metric_reliability.md#tables-1-and-2)"
BAM = "[COCO images](reliability.md#on-real-images-bam)"
REPORTED = "reported by each run on the page *Metrics* of its report"
VALIDITY = f"{REPORTED}; measured on [CIFAR-10, 60 images](validity.md#results-on-cifar-10)"
HALVES = "Spearman's ρ of the rankings by two random halves of the images"
RELIABILITY = {
    "aopc": "Krippendorff's α of five methods, including edge detection, for L = 20 to 100: MoRF 0.40 to 0.57 with the "
    f"mean as fill and 0.27 to 0.38 with random pixels; LeRF 0.19 to 0.22 and 0.11 to 0.16; {CIFAR}",
    "faithfulness": "Krippendorff's α of five methods, including edge detection: 0.42 with the mean as fill, 0.26 with "
    f"random pixels; {CIFAR}",
    "mcs": f"Krippendorff's α without baseline methods 0.39; {HALVES} 0.98; {BAM}",
    "idr": f"Krippendorff's α without baseline methods 0.05; {HALVES} 0.95; {BAM}",
    "iir": "Krippendorff's α without baseline methods 0.05 (`iir`) and 0.17 (`iir_difference`); "
    f"{HALVES} 0.88 and 0.86; {BAM}",
}
BELOW = "see below"
RELEASED = {
    "deletion": "the released code (eclique/RISE) removes as many pixels at a time as the image is wide, and sets them "
    "to 0 in normalized images, which is `fill: mean`",
    "insertion": "the released code (eclique/RISE) inserts as many pixels at a time as the image is wide; its blur has "
    "a standard deviation of 5 pixels at 224 × 224, in an 11 × 11 window, that of `fill: blur` 22.4",
    "necessity_sufficiency": "`corrected` (default) and `printed` differ in Eq. 4; the released code differs from "
    f"both, {BELOW}",
    "road": f"noise, ties and LeRF differ in the released code, {BELOW}",
    "f_fidelity": f"sizes, samples and fill, {BELOW}",
    "single_deletion": f"equal scores of equal maps; the fine-tuning differs, {BELOW}",
    "infidelity_square": "side lengths, stride, black fill and `rescale` are those of the released code",
    "infidelity_noisy_baseline": "`protocol`: z unbounded (`printed`) or clipped to [0, 1] (`released`)",
    "infidelity_subset": "not in the paper's tables",
    "infidelity_shap": f"as printed; removing the other pixels instead is equivalent, {BELOW}",
    "infidelity_halves": f"the paper specifies neither the kind of explanation nor rescaling, {BELOW}",
    "average_drop": "pytorch-grad-cam 1.5.7 multiplies normalized images, which is `fill: mean`, and does not divide "
    f"the drop by y, {BELOW}",
    "mask_overlap": f"the papers compare boxes around the largest region, {BELOW}",
    "saco": "the released code (adreamwu/SaCo) has the comparison of groups alone, which gives the same scores, up to "
    "2e-16",
    "sensitivity_max": f"`relative` is that of the released code; the noise of random methods differs, {BELOW}",
    "randomization": f"BatchNorm keeps its trained statistics in the released code, {BELOW}",
    "mcs": "resizing of masks and explained class, see [Concept attribution](#concept-attribution)",
    "idr": "ties count as 0 in both; the released code has no random-region baseline, see [Baselines](#baselines)",
    "iir": "`protocol` selects δ₀; for η₃ and the step size, see [δ](#δ)",
    "tcav": f"the released code uses 2 experiments and the cross-entropy, here 20 and the logit, {BELOW}",
}
NONE = "not compared with released code"
QUANTUS = "compared with Quantus 0.6.0, see [Comparison with Quantus](#comparison-with-quantus)"
COMPARED_WITH_QUANTUS = (
    *("faithfulness_correlation", "region_perturbation", "irof", "monotonicity", "completeness"),
    *("relative_stability", "sparseness", "complexity", "random_logit", "emprt", "input_invariance"),
    *("effective_complexity", "mask_ranking", "non_sensitivity"),
)
RELEASED |= dict.fromkeys(COMPARED_WITH_QUANTUS, QUANTUS) | {"smprt": f"differs from Quantus, {BELOW}"}


def measured_reliability(name: str) -> str:
    """Return where the reliability of a metric is documented."""
    configuration = yaml.safe_load((ROOT / "config/validity_cifar10.yaml").read_text(encoding="utf-8"))
    examined = {(entry or {}).get("metric", key) for key, entry in configuration["metrics"].items()}
    return RELIABILITY.get(name, VALIDITY if name in examined else REPORTED)


def bound(value: float) -> str:
    """Return a bound of an interval as text."""
    return ("−" if value < 0 else "") + ("∞" if isinf(value) else f"{abs(value):g}")


def interval(low: float, high: float) -> str:
    """Return a range as text, open at infinite ends."""
    return f"{'(' if isinf(low) else '['}{bound(low)}, {bound(high)}{')' if isinf(high) else ']'}"


def rows_of(metric: Metric) -> list[tuple[str, str]]:
    """Return the rows of a metric's table as pairs of name and text."""
    scores = [
        f"`{score.name}`: {score.direction.phrase}, {interval(*score.range)}" for score in metric.scores
    ]
    parameters = [f"`{name}` {yaml_text(parameter.default)}" for name, parameter in metric.parameters.items()]
    unreduced = "none: no map" if metric.name == "tcav" else "none: raw maps"
    return [
        ("formula", (metric.formula or "none").replace("|", "\\|")),
        ("direction and range", "; ".join(scores)),
        ("reduction", f"`{metric.reduction}`" if metric.reduction else unreduced),
        ("parameters", ", ".join(parameters) or "none"),
        ("measured reliability", measured_reliability(metric.name)),
        ("paper and released code", RELEASED.get(metric.name, NONE)),
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
