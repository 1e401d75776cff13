"""Input independence: do maps change if a change of the image does not affect the output? (Yang & Kim, 2019, 4.4)."""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from saliency_assay.registry.limits import NonNegativeFloat
from saliency_assay.studies.bam.mcs_and_idr import attributions, random_masks

INPUTS = ("without", "with_delta")  # x and x + δ under one model
REGIONS = ("object", "outside")  # the region of δ, and equally many random pixels outside it
METRICS = ("iir", "iir_difference")
"""IIR (higher is better), and the mean relative change (lower is better)."""


def relative_change(with_delta: Tensor, without: Tensor, correct: Tensor) -> Tensor:
    """Compute |g_c(x + δ) − g_c(x)| / g_c(x), ``[N]`` in [0, ∞); the mean over images is the measure of appendix C.

    Both inputs are g_c ``[N]`` in [0, 1] of one model over the region of δ. ``correct`` is bool ``[N]``, True for
    images x that the model classifies correctly. The result is NaN outside ``correct``, where one of the inputs is NaN,
    and where g_c(x) is 0: the change is then infinite or 0/0, and a single infinite value would make the mean infinite.
    ``input_independence`` does count infinite changes.
    """
    change = (with_delta - without).abs() / without
    return torch.where(correct & (without > 0), change, torch.nan)


def input_independence(with_delta: Tensor, without: Tensor, correct: Tensor, threshold: float) -> Tensor:
    """Return 1 where the relative change is strictly below ``threshold``, else 0, ``[N]``; the mean is IIR (4.4).

    The other arguments are those of ``relative_change``. Where g_c(x) is 0 and g_c(x + δ) is not, the change is
    infinite and the result 0. It is NaN outside ``correct``, where both are 0, and where one of them is NaN.
    """
    change = (with_delta - without).abs() / without  # infinite for a positive number over 0, NaN for 0/0
    return torch.where(correct & ~change.isnan(), (change < threshold).to(change.dtype), torch.nan)


def score_independence(
    maps: Mapping[str, Iterable[np.ndarray]],
    masks: Iterable[np.ndarray],
    correct: np.ndarray,
    *,
    threshold: NonNegativeFloat = 0.1,
    generator: torch.Generator,
    reduction: str = "visual",
) -> dict[str, np.ndarray]:
    """Score each image in both regions, with only one block of maps per input in memory at a time.

    Args:
        maps: blocks of raw maps ``[n, C or 1, H, W]`` for each of ``INPUTS``, of the same images in the same order.
        masks: blocks of equal length, the region of δ, bool ``[n, H, W]``.
        correct: bool ``[N]``, True where x is classified correctly.
        threshold: t, the relative change below which a map counts as unchanged.
        generator: random generator for the pixels outside the region.
        reduction: e, from raw maps to one value per pixel.

    Returns:
        Arrays ``[N]`` of the maps' type for each of ``REGIONS``: ``iir_{region}`` and ``iir_difference_{region}``,
        NaN outside X_corr, and ``concept_{input}_{region}``, g_c of every image, including those that are not
        classified correctly.

    Raises:
        ValueError: an input is missing, or blocks or arrays do not fit each other.
    """
    if set(maps) != set(INPUTS):
        raise ValueError(f"maps: found {', '.join(sorted(maps))}, expected {', '.join(sorted(INPUTS))}")

    def regions(mask: Tensor) -> dict[str, Tensor]:
        return {"object": mask, "outside": random_masks(mask, generator, outside=True)}

    scores = attributions(maps, masks, INPUTS, regions, reduction)
    count = len(scores["concept_without_object"])
    if correct.dtype != bool or correct.shape != (count,):
        dtype_and_shape = f"{correct.dtype} {list(correct.shape)}"
        raise ValueError(f"correct: found {dtype_and_shape}, expected bool [{count}]")
    is_correct = torch.tensor(correct)
    for region in REGIONS:
        attribution_pair = scores[f"concept_with_delta_{region}"], scores[f"concept_without_{region}"]
        scores[f"iir_{region}"] = input_independence(*attribution_pair, is_correct, threshold)
        scores[f"iir_difference_{region}"] = relative_change(*attribution_pair, is_correct)
    return {key: values.numpy() for key, values in scores.items()}


def score_rows(scores: Mapping[str, np.ndarray], correct: np.ndarray, source: np.ndarray) -> pd.DataFrame:
    """Return the scores of ``score_independence`` as rows of the score table: ``metric, variant, image, score``.

    ``image`` is taken from ``source``, indices ``[N]`` into the set of the originals. Images outside ``correct`` have
    no rows for ``iir`` and ``iir_difference``, so that NaN always means a map that could not be scored. Every image has
    rows for ``concept_attribution``, in the variants ``{region}`` for x and ``{region}_delta`` for x + δ.
    """
    all_images = np.ones(len(source), dtype=bool)
    tables = []
    for region in REGIONS:
        labels = {f"{metric}_{region}": (metric, region, correct) for metric in METRICS}
        labels |= {
            f"concept_without_{region}": ("concept_attribution", region, all_images),
            f"concept_with_delta_{region}": ("concept_attribution", f"{region}_delta", all_images),
        }
        for key, (metric, variant, selected) in labels.items():
            columns = {
                "image": source[selected],
                "score": np.asarray(scores[key][selected], dtype=np.float64),
            }
            tables.append(pd.DataFrame(columns).assign(metric=metric, variant=variant))
    return pd.concat(tables, ignore_index=True)
