"""Monotonicity: share of insertions that do not decrease the output (Arya et al., 2019)."""

import torch
from torch import Tensor

from saliency_assay.methods.sampling import sample_seeds
from saliency_assay.metrics.deletion import block_curve
from saliency_assay.metrics.fills import fill as fill_of
from saliency_assay.metrics.perturbation import Predict, differs, perturbation_batch, ranks_of
from saliency_assay.metrics.reductions import reduce
from saliency_assay.metrics.scored import Scored, is_rankable, nan_unless
from saliency_assay.registry.limits import Fill, ScoredOutput, Steps


def monotonicity(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    mean: Tensor | None = None,
    steps: Steps = 100,
    fill: Fill = "black",
    output: ScoredOutput = "probability",
) -> Scored:
    """Compute the share of steps in which the output does not decrease; 1 is monotonic, higher is better.

    The pixels of images ``[N, C, H, W]`` are inserted into the fill image in ``steps`` equal blocks, or one by one
    (``exact``), those with the least ``sum`` of maps ``[N, C or 1, H, W]`` first. The curve is the output after each
    block, ``[N, steps + 1]``. NaN where a map is NaN or constant. Arya et al. (2019) ask whether no step decreases the
    output.

    Raises:
        ValueError: a fill without its ``mean``.
    """
    fill_pixels = fill_of(fill, images, mean=mean, seeds=sample_seeds(len(images), 1, generator))
    batch = perturbation_batch(predict, images, targets, fill_pixels, output=output)
    saliency = reduce(maps, "sum")
    # In reverse, the removal of the most relevant pixels is the insertion of the least relevant ones.
    curve, hidden = (values.flip(1) for values in block_curve(batch, saliency, steps, kept=False))
    ranks = ranks_of(saliency)
    # Pixels equal to their fill change nothing, but rounding differs between the rows of a batch.
    changed = torch.zeros_like(ranks).scatter_(1, ranks, differs(batch).long()).cumsum(1)
    visible_changes = torch.nn.functional.pad(changed, (1, 0)).gather(1, hidden).diff(dim=1)
    share = ((curve.diff(dim=1) >= 0) | (visible_changes == 0)).double().mean(1)
    return Scored({("monotonicity", ""): nan_unless(is_rankable(saliency), share)}, {"curve": curve})
