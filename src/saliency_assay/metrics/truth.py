"""Agreement of maps with the exact importance of the pixels of designed networks."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from saliency_assay.metrics.localization import auc_inside
from saliency_assay.metrics.perturbation import Predict
from saliency_assay.metrics.reductions import reduce
from saliency_assay.metrics.scored import Scored, correlation, nan_unless
from saliency_assay.models.designed import truth_of


def truth_agreement(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    responses: Mapping[str, Tensor],
) -> Scored:
    """Return the agreement of the ``sum`` R of maps with the exact importance φ, the response ``truth [N, H, W]``.

    - ``truth_correlation``: Pearson's correlation of R and φ, in [−1, 1]; 0 for a constant map.
    - ``truth_mass``: Σ |R| over the relevant pixels, φ ≠ 0, divided by Σ |R|, in [0, 1]; NaN for a map of zeros.
    - ``truth_auc``: area under the ROC curve of |R| for the relevant pixels, in [0, 1]: the probability that a relevant
      pixel has the larger value than an irrelevant one, ties half. It is 0.5 for a constant map.
    - ``truth_sign``: share of the relevant pixels at which R has the sign of φ, in [0, 1].

    NaN where R is not finite, or no pixel or every pixel is relevant.
    """
    attribution, truth = reduce(maps, "sum").flatten(1).double(), responses["truth"].flatten(1).double()
    relevant, strength = truth != 0, attribution.abs()
    is_defined = attribution.isfinite().all(1) & (relevant.any(1) & ~relevant.all(1))
    scores = {
        "truth_correlation": correlation(attribution, truth).nan_to_num(0),
        "truth_mass": (strength * relevant).sum(1) / strength.sum(1),
        "truth_auc": auc_inside(strength, relevant),
        "truth_sign": (relevant & (attribution.sign() == truth.sign())).sum(1).double() / relevant.sum(1),
    }
    return Scored({(name, ""): nan_unless(is_defined, score) for name, score in scores.items()})


def exact_importance(
    predict: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator
) -> dict[str, Tensor]:
    """Return ``truth [N, H, W]``, the exact importance of the pixels for the targets' logits.

    Raises:
        ValueError: the model is not a designed network, or as ``truth_of``.
    """
    return {"truth": truth_of(predict, images, targets)[:, 0]}
