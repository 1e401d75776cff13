"""Infidelity under the difference to a noisy black baseline (Yeh et al., 2019, section 2.4)."""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from saliency_assay.methods.optimal import all_logits
from saliency_assay.methods.optimal_noisy import BLOCK, PROTOCOLS, Baselines
from saliency_assay.methods.passes import reported
from saliency_assay.metrics.fills import fill
from saliency_assay.metrics.infidelity import check_maps, score
from saliency_assay.metrics.perturbation import Predict, original, subject
from saliency_assay.metrics.probed import drop_of
from saliency_assay.metrics.scored import Scored


def noisy_baselines(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    samples: int = 10_000,
    noise: float = 0.2,
    protocol: str = "printed",
) -> dict[str, Tensor]:
    """``drop``: f(x) − f(z), in logits, float64 ``[N, samples]``; see ``infidelity_noisy_baseline``.

    A pass for each baseline z serves all images of the batch.

    Raises:
        ValueError: a parameter out of range, logits of another shape, or one that is not finite.
    """
    examined = subject(predict, images, targets, fill("black", images), output="logit")
    before = original(examined)[:, None]
    portions = _baselines(images, samples, noise, protocol, generator, examined.rows)
    shown = (
        z.contiguous(memory_format=torch.channels_last) for z in portions
    )  # as the engine hands images out
    after = torch.cat([all_logits(predict, z)[:, targets] for z in shown]).T
    broken = int((~after.isfinite()).sum())
    if broken:
        raise ValueError(
            f"predict: the logit of {broken} of {after.numel()} noisy baselines is NaN or infinite, "
            f"expected finite values"
        )
    return {"drop": before - after}


def infidelity_noisy_baseline(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    probed: Mapping[str, Tensor],
    samples: int = 10_000,
    noise: float = 0.2,
    protocol: str = "printed",
    rescale: bool = False,
) -> Scored:
    """INFD where I = x − z: ``samples`` draws z ~ N(0, ``noise``²) of pixels in [0, 1], the same for all images.

    Under ``protocol`` ``released`` z is clipped to [0, 1], which is the released I = clip(x + noise, x − 1, x). Maps
    are local explanations; one of a single channel has that value in all. Yeh et al. (2019), equation 1 and section
    2.4. Squared logits, lower is better.

    Raises:
        ValueError: a parameter out of range; maps or ``probed`` that do not fit the images and samples.
    """
    check_maps(maps, images)
    portions = _baselines(images, samples, noise, protocol, generator, BLOCK)
    local = maps.double().expand(images.shape).flatten(1)
    whole = (images.flatten(1) * local).sum(1, keepdim=True)
    predicted = torch.cat([whole - local @ z.flatten(1).double().T for z in portions], dim=1)
    return score(maps, predicted, drop_of(probed, maps, samples), rescale)


def _baselines(
    images: Tensor, samples: int, noise: float, protocol: str, generator: torch.Generator, rows: int
) -> Iterator[Tensor]:
    """The baselines, at most ``rows`` at a time, ``[rows, C, H, W]``.

    They are drawn on the CPU, so that the metric and its probe see the same wherever each of them runs.
    """
    if samples < 1 or noise < 0:
        raise ValueError(f"samples, noise: found {samples}, {noise}, expected at least 1 and 0")
    if protocol not in PROTOCOLS:
        raise ValueError(f"protocol: found {protocol!r}, valid: {', '.join(PROTOCOLS)}")
    seed, shape, clipped = generator.initial_seed(), tuple(images.shape[1:]), protocol == "released"
    draws = Baselines(seed, shape, images.dtype, torch.device("cpu"), float(noise), clipped).portions(rows)
    return (
        next(draws)[: samples - first].to(images.device)
        for first in reported(samples, rows, "noisy baselines")
    )
