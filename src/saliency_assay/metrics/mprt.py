"""Two variants of the model parameter randomization test: efficient and smooth MPRT (Hedström et al., 2024)."""

from collections.abc import Callable
from typing import Annotated

import numpy as np
import torch
from scipy.stats import entropy
from torch import Tensor, nn

from saliency_assay.methods.passes import reported
from saliency_assay.methods.sampling import sample_seeds, standard_normal
from saliency_assay.metrics.perturbation import Predict
from saliency_assay.metrics.randomization import as_module, staged, states
from saliency_assay.metrics.reductions import reduce
from saliency_assay.metrics.scored import Scored, check_explained, is_rankable, nan_unless, spearman
from saliency_assay.models.state import copy_of
from saliency_assay.registry.limits import Limits, NonNegativeFloat, PositiveInt
from saliency_assay.runtime.transfer import to_device


def emprt(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    explain: Callable[..., Tensor],
    randomized_model: nn.Module,
    bins: Annotated[int, Limits(minimum=2)] = 100,
) -> Scored:
    """Compute (C(ê) − C(e)) / C(e), the relative rise in complexity of a map after randomization; higher is better.

    e is the ``sum`` of maps ``[N, C or 1, H, W]``, ê that of the same method's maps for ``randomized_model``, and C the
    entropy in nats of a histogram of the map's values, with ``bins`` equal bins from its least to its greatest value.
    NaN where a map is NaN or constant. Hedström et al. (2024).

    Raises:
        ValueError: ``randomized_model`` has another architecture.
    """
    states(as_module(predict), randomized_model)  # checks the architecture
    saliency = reduce(maps, "sum")
    random_maps = check_explained(explain(images, targets, model=randomized_model), maps, summed=True)
    random_saliency = reduce(random_maps.detach(), "sum")
    defined = is_rankable(saliency) & is_rankable(random_saliency)
    trained, random = (_complexity(each, bins, defined) for each in (saliency, random_saliency))
    return Scored({("emprt", ""): (random - trained) / trained})


def smprt(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    explain: Callable[..., Tensor],
    randomized_model: nn.Module,
    samples: PositiveInt = 10,
    noise: NonNegativeFloat = 0.1,
    stages: PositiveInt = 4,
) -> Scored:
    """Compute Spearman's ρ of denoised maps before and after the model is randomized from the input up; 0 is best.

    A denoised map is the mean over ``samples`` noisy images, with Gaussian noise whose standard deviation is ``noise``
    times the image's range of values; its ``sum`` is compared. Variant ``bottom-up j layer`` has the weights of
    ``randomized_model`` in the j groups of layers nearest to the input, and ``layer`` is the last of these. The score
    without a variant is the mean over the groups. NaN where the map, or the denoised map, is NaN or constant. Hedström
    et al. (2024).

    Raises:
        ValueError: ``randomized_model`` has another architecture.
    """
    model = as_module(predict)
    weights, new = states(model, randomized_model)
    # From the input up, a group's last layer is the one that is nearest to the output.
    groups, changed_model = staged(model, images, stages)[::-1], copy_of(model)
    seeds = sample_seeds(len(images), samples, generator)
    deviation = noise * (images.amax((1, 2, 3), keepdim=True) - images.amin((1, 2, 3), keepdim=True))
    similarities: dict[tuple[str, str], Tensor] = {}

    def denoised(explained: nn.Module) -> Tensor:
        total = images.new_zeros(len(images), *images.shape[2:], dtype=torch.float64)
        for sample in reported(samples, 1, "noisy copies explained"):
            noisy = images + deviation * standard_normal(seeds[sample::samples], images)
            noisy_maps = check_explained(explain(noisy, targets, model=explained), maps, summed=True)
            total += reduce(noisy_maps.detach(), "sum")
        return total / samples

    original = denoised(model)
    defined = is_rankable(reduce(maps, "sum")) & is_rankable(original)
    for number, group in enumerate(groups, start=1):
        weights |= {name: new[name] for name in group.tensors}
        changed_model.load_state_dict(weights)
        changed = denoised(changed_model)
        rho = nan_unless(defined & is_rankable(changed), spearman(original, changed))
        similarities["smprt", f"bottom-up {number} {group.layer}"] = rho
    mean = torch.stack(list(similarities.values())).mean(0)
    return Scored({("smprt", ""): mean, **similarities})


def _complexity(saliency: Tensor, bins: int, defined: Tensor) -> Tensor:
    """Return the entropy of a histogram of each map ``[N, H, W]``, float64 ``[N]``; NaN where not ``defined``."""
    values = saliency.flatten(1).double().cpu().numpy()
    entropies = [
        float(entropy(np.histogram((row - row.min()) / np.ptp(row), bins, (0, 1))[0])) if usable else np.nan
        for row, usable in zip(values, defined.tolist(), strict=True)
    ]
    return to_device(torch.tensor(entropies, dtype=torch.float64), saliency.device)
