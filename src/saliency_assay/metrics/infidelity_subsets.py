"""Infidelity under the removal of random pixels: subsets of one size, or of the Shapley kernel (Yeh et al., 2019)."""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from saliency_assay.metrics.fills import fill
from saliency_assay.metrics.infidelity import contributions, score
from saliency_assay.metrics.perturbation import Predict, subject
from saliency_assay.metrics.probed import drop_of
from saliency_assay.metrics.scored import Scored
from saliency_assay.metrics.subsets import draw_subsets, drops, shared, sums


def removed_subsets(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    samples: int = 1000,
    share: float = 0.1,
) -> dict[str, Tensor]:
    """``drop``: f(x) − f(x with a subset black), in logits, float64 ``[N, samples]``; see ``infidelity_subset``.

    Raises:
        ValueError: a parameter out of range, or what the engine raises.
    """
    examined = subject(predict, images, targets, fill("black", images), output="logit")
    return {"drop": drops(examined, _subsets(images, samples, share, generator))}


def infidelity_subset(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    probed: Mapping[str, Tensor],
    samples: int = 1000,
    share: float = 0.1,
    explanation: str = "global",
    rescale: bool = False,
) -> Scored:
    """INFD where I is the image at random pixels: ``samples`` subsets of a ``share`` of them, the same for all images.

    Yeh et al. (2019), equation 1 and section 2.1, "subset of difference to baseline"; ``explanation`` as in
    ``contributions``. Squared logits, lower is better.

    Raises:
        ValueError: a parameter out of range; maps or ``probed`` that do not fit the images and samples.
    """
    values = contributions(maps, images, explanation)
    predicted = sums(values, _subsets(images, samples, share, generator))
    return score(maps, predicted, drop_of(probed, maps, samples), rescale)


def removed_coalitions(
    predict: Predict, images: Tensor, targets: Tensor, *, generator: torch.Generator, samples: int = 1000
) -> dict[str, Tensor]:
    """``drop``: f(x) − f(x with a coalition black), in logits, float64 ``[N, samples]``; see ``infidelity_shap``.

    Raises:
        ValueError: fewer than one sample or two pixels, or what the engine raises.
    """
    examined = subject(predict, images, targets, fill("black", images), output="logit")
    return {"drop": drops(examined, _coalitions(images, samples, generator))}


def infidelity_shap(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    probed: Mapping[str, Tensor],
    samples: int = 1000,
    explanation: str = "global",
    rescale: bool = False,
) -> Scored:
    """INFD where I is the image at ``samples`` coalitions of pixels drawn by the Shapley kernel, shared by all images.

    P(Z = z) ∝ (d − 1) / (C(d, |z|) |z| (d − |z|)) over the d pixels, I = x ⊙ Z: the coalition's pixels turn black. Yeh
    et al. (2019), proposition 2.5; ``explanation`` as in ``contributions``. Squared logits, lower is better.

    Raises:
        ValueError: fewer than one sample or two pixels; maps or ``probed`` that do not fit the images and samples.
    """
    values = contributions(maps, images, explanation)
    predicted = sums(values, _coalitions(images, samples, generator))
    return score(maps, predicted, drop_of(probed, maps, samples), rescale)


def subset_size(share: float, pixels: int) -> int:
    """A ``share`` of the pixels, rounded, and at least one."""
    return max(1, round(share * pixels))


def coalition_sizes(samples: int, pixels: int, generator: torch.Generator) -> Tensor:
    """|Z| of each sample, int64 ``[samples]``: there are C(d, s) coalitions of s, so P(|Z| = s) ∝ 1 / (s (d − s))."""
    size = torch.arange(1, pixels, dtype=torch.float64)
    return torch.multinomial(1 / (size * (pixels - size)), samples, replacement=True, generator=generator) + 1


def _subsets(images: Tensor, samples: int, share: float, generator: torch.Generator) -> Iterator[Tensor]:
    pixels = images[0, 0].numel()
    if samples < 1 or not 0 <= share <= 1:
        raise ValueError(
            f"samples, share: found {samples}, {share}, expected at least 1 and a share in [0, 1]"
        )
    sizes = torch.full((samples,), subset_size(share, pixels))
    return draw_subsets(sizes, pixels, shared(generator), images.device)


def _coalitions(images: Tensor, samples: int, generator: torch.Generator) -> Iterator[Tensor]:
    pixels, child = images[0, 0].numel(), shared(generator)
    if samples < 1 or pixels < 2:
        raise ValueError(f"samples, pixels: found {samples}, {pixels}, expected at least 1 and 2")
    return draw_subsets(coalition_sizes(samples, pixels, child), pixels, child, images.device)
