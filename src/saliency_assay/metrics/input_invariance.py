"""Input invariance: change of a map under a shift of the images that the model undoes (Kindermans et al., 2019)."""

from collections.abc import Callable
from copy import copy

import torch
from torch import Tensor

from saliency_assay.metrics.perturbation import Predict
from saliency_assay.metrics.scored import Scored, check_explained
from saliency_assay.metrics.sensitivity_max import norms
from saliency_assay.models.classifier import Classifier


def input_invariance(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    explain: Callable[..., Tensor],
    shift: float = -1.0,
) -> Scored:
    """Compute ‖Φ(f₂, x + m) − Φ(f, x)‖₂ / ‖Φ(f, x)‖₂ with f₂(x + m) = f(x), m = ``shift``; at least 0, lower is better.

    ``maps`` are Φ(f, x), ``explain(images, targets, model)`` returns Φ(f₂, x + m): raw maps ``[N, C or 1, H, W]``. The
    shift is in units of pixels in [0, 1], and f₂ is the classifier with a normalization mean that is larger by it. NaN
    where a map is not finite, or Φ(f, x) is 0 everywhere. Kindermans et al. (2019).

    Raises:
        ValueError: ``predict`` is not a ``Classifier``, or ``explain`` returns maps of another shape.
    """
    shifted = explain(images + shift, targets, model=shifted_classifier(predict, shift))
    score = norms(check_explained(shifted, maps).double() - maps.double()) / norms(maps.double())
    return Scored({("input_invariance", ""): torch.where(score.isfinite(), score, torch.nan)})


def shifted_classifier(predict: Predict, shift: float) -> Classifier:
    """Return a classifier that returns the logits of ``predict`` for images that are larger by ``shift``.

    It shares the network. The normalization is the first affine map of every classifier, and has no padding, whose
    zeros a shifted bias of a convolution would not account for.

    Raises:
        ValueError: ``predict`` is not a ``Classifier``.
    """
    if not isinstance(predict, Classifier):
        raise ValueError(
            f"predict: found {type(predict).__name__}, expected a Classifier, whose normalization undoes the shift"
        )
    shifted = copy(predict)
    shifted._buffers = predict._buffers.copy()  # otherwise shared with ``predict``
    shifted.mean = predict.mean + shift
    return shifted
