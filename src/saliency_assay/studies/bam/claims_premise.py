"""What may be claimed of a BAM study's models: that objects matter to f_o, scenes to f_s, and how far k decides.

Each returns whether it holds and what was measured, in words; it raises ``UntestedError`` where its input is not
there. Scores are means over training seeds.
"""

import numpy as np
from scipy.stats import spearmanr

from saliency_assay.studies.bam.tables import DECIMALS, LEAST_METHODS, BamTables, Scores, UntestedError

KEPT, LOST = 0.9, 0.1  # of the accuracy above chance
ERRORS = 2  # standard errors
FALLS = -0.5  # Spearman's ρ of what generally decreases


def falls_to_chance(tables: BamTables, role: str, member: str) -> tuple[bool, str]:
    """Of what the model has above chance on X_os at most ``LOST`` is left, or no more than two standard errors."""
    chance, before, after, images, text = _accuracies(tables, role, member)
    error = _error(chance, images)
    bar = chance + max(LOST * (before - chance), ERRORS * error)
    return round(after - bar, DECIMALS) <= 0, f"{text}; the bar is {bar:.1f} %"


def keeps(tables: BamTables, role: str, member: str) -> tuple[bool, str]:
    """Of what the model has above chance on X_os at least ``KEPT`` is left."""
    chance, before, after, _, text = _accuracies(tables, role, member)
    bar = chance + KEPT * (before - chance)
    return round(after - bar, DECIMALS) >= 0, f"{text}; the bar is {bar:.1f} %"


def more_accurate_without(tables: BamTables) -> tuple[bool, str]:
    """f_s is right about more images of X_0s than of X_os, strictly."""
    _, before, after, _, text = _accuracies(tables, "scene", "0s")
    return round(after - before, DECIMALS) > 0, f"{text}: {after - before:+.1f} points"


def confidence_rises(tables: BamTables) -> tuple[bool, str]:
    """For more than half, by two standard errors, of the images that f_s has right."""
    name = f"{tables.data}_os → {tables.data}_0s"
    percent, images, printed = _premise(tables, tables.scene_model, name)
    error = _error(50, images)
    text = f"{percent:.1f} % of {images:.0f} images ({printed}); the bar is {50 + ERRORS * error:.1f} %"
    return round(percent - 50 - ERRORS * error, DECIMALS) > 0, text


def drop_falls(tables: BamTables) -> tuple[bool, str]:
    """Spearman's ρ between k and the drop of accuracy without the object is at most ``FALLS``."""
    if tables.commonality is None:
        raise UntestedError("no commonality series in the study")
    columns = ["drop", "printed_with", "printed_without"]
    means = tables.commonality.groupby("k")[columns].mean().dropna(subset="drop")
    if len(means) < LEAST_METHODS:
        raise UntestedError(f"{len(means)} values of k with a drop, expected at least {LEAST_METHODS}")
    found = zip(means.index, means["drop"], strict=True)
    text = f"drop in points: {', '.join(f'{drop:.1f} at {k:g}' for k, drop in found)}"
    if np.ptp(means["drop"].round(DECIMALS)) == 0:
        return False, f"{text}; no change"
    rho = _order(means["drop"].round(DECIMALS))
    printed = (means["printed_with"] - means["printed_without"]).dropna()
    of_paper = f" (paper: {_order(printed):.2f})" if len(printed) >= LEAST_METHODS else ""
    return rho <= FALLS, f"{text}; ρ = {rho:.2f}{of_paper}"


def _order(by_k: Scores) -> float:
    return round(float(spearmanr(by_k.index, by_k).statistic), DECIMALS)


def _accuracies(tables: BamTables, role: str, member: str) -> tuple[float, float, float, float, str]:
    """Chance, accuracy on X_os and on the set in percent, images of the set, and all that in words."""
    model = tables.object_model if role == "object" else tables.scene_model
    chance = 100 / tables.classes[role]
    before, of_before, _ = _premise(tables, model, f"{tables.data}_os")
    after, images, printed = _premise(tables, model, f"{tables.data}_{member}")
    if before <= chance + ERRORS * _error(chance, of_before):
        raise UntestedError(f"{model} has learned nothing: {before:.1f} % on X_os, chance {chance:.1f} %")
    text = f"{before:.1f} % on X_os, {after:.1f} % on X_{member} ({printed}), chance {chance:.1f} %"
    return chance, before, after, images, text


def _premise(tables: BamTables, model: str, name: str) -> tuple[float, float, str]:
    """Percent, the fewest images of a seed, and what the paper prints."""
    found = tables.premise[(tables.premise["model"] == model) & (tables.premise["set"] == name)]
    percent = float(found["percent"].mean())
    if np.isnan(percent):
        raise UntestedError(f"{model} has no image of {name} to be judged on")
    return percent, float(found["images"].min()), f"paper: {found['printed'].iloc[0]:.1f} %"


def _error(percent: float, images: float) -> float:
    """Standard error of a share of images, in percentage points."""
    return float(np.sqrt(percent * (100 - percent) / images))
