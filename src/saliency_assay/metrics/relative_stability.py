"""Relative stability of maps to input, representation and output (Agarwal et al., 2022)."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from saliency_assay.methods.passes import reported
from saliency_assay.methods.sampling import sample_seeds, standard_normal
from saliency_assay.metrics.perturbation import Predict
from saliency_assay.metrics.randomization import as_module, staged
from saliency_assay.metrics.scored import Scored, check_explained, nan_unless
from saliency_assay.models.classifier import Classifier, is_predicted
from saliency_assay.models.inference import uncompiled
from saliency_assay.registry.limits import Limits, PositiveInt

LEAST = 1e-6  # smallest divisor, and the divisor for values that are 0


def relative_stability(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    explain: Callable[..., Tensor],
    noise: Annotated[float, Limits(minimum=1e-06)] = 0.05,
    samples: PositiveInt = 50,
) -> Scored:
    """Compute the largest relative change of a map per change of the image, the representation and the logits.

    ``ris`` is max over x′ of ‖(e_x − e_x′) / e_x‖₂ / ‖(x − x′) / x‖₂; ``rrs`` divides by the same change of the input
    of the model's last layer, and ``ros`` by ‖h(x) − h(x′)‖₂ of the logits; lower is better. Maps
    ``[N, C or 1, H, W]`` are raw. ``samples`` neighbors x′ have Gaussian noise of standard deviation ``noise``, in
    units of pixels in [0, 1]; those with another predicted class are left out. A value of 0 that a change is
    relative to becomes 1e-6, and so does a smaller divisor. NaN where a map, or that of a neighbor of the same
    class, is not finite, or all neighbors have another class. Agarwal et al. (2022).

    Raises:
        ValueError: ``predict`` is not a module whose last layer with weights is called as a
            module, or ``explain`` returns maps of another shape.
    """
    last_layer, multi_label = _last_layer(predict, images), getattr(predict, "multi_label", False)
    seeds = sample_seeds(len(images), samples, generator)
    logits, representation = _responses(predict, last_layer, images)
    largest = {name: maps.new_full((len(maps),), -1, dtype=torch.float64) for name in ("ris", "rrs", "ros")}
    for sample in reported(samples, 1, "neighbors explained"):
        neighbors = images + noise * standard_normal(seeds[sample::samples], images)
        new_logits, new_representation = _responses(predict, last_layer, neighbors)
        change = relative_change(maps, check_explained(explain(neighbors, targets), maps).detach())
        divisors = {
            "ris": relative_change(images, neighbors),
            "rrs": relative_change(representation, new_representation),
            "ros": (logits.double() - new_logits.double()).norm(dim=1),
        }
        if multi_label:
            same_class = is_predicted(predict, logits, targets) == is_predicted(predict, new_logits, targets)
        else:
            same_class = logits.argmax(1) == new_logits.argmax(1)
        for name, divisor in divisors.items():
            ratio = change / divisor.clamp(min=LEAST)
            # The maximum propagates NaN.
            largest[name] = torch.where(same_class, largest[name].maximum(ratio), largest[name])
    return Scored(
        {
            (name, ""): nan_unless((values >= 0) & values.isfinite(), values)
            for name, values in largest.items()
        }
    )


def relative_change(before: Tensor, after: Tensor) -> Tensor:
    """Return ‖(before − after) / before‖₂ of each of ``[N, …]``, float64 ``[N]``."""
    before, after = before.flatten(1).double(), after.flatten(1).double()
    change: Tensor = ((before - after) / torch.where(before == 0, LEAST, before)).norm(dim=1)
    return change


def _last_layer(predict: Predict, images: Tensor) -> nn.Module:
    """Return the weight layer that a pass of ``images`` calls last.

    Raises:
        ValueError: ``predict`` is not a module, or has no layer with weights.
    """
    model = as_module(predict)
    network = model.network if isinstance(model, Classifier) else model
    modules: dict[str, nn.Module] = dict(network.named_modules())
    return modules[staged(model, images, 1)[0].layer]


def _responses(model: Callable[[Tensor], Tensor], layer: nn.Module, images: Tensor) -> tuple[Tensor, Tensor]:
    """Return logits ``[N, K]`` and the input of ``layer``, ``[N, …]``."""
    inputs: list[Tensor] = []

    def keep(_: nn.Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        inputs.extend([*arguments, *keywords.values()][:1])

    # TorchScript takes no hooks.
    hook = (
        None
        if isinstance(layer, torch.jit.ScriptModule)
        else layer.register_forward_pre_hook(keep, with_kwargs=True)
    )
    with hook or nullcontext(), torch.no_grad(), uncompiled():
        logits = model(images)
    if not inputs or len(inputs[-1]) != len(images):
        raise ValueError(
            f"relative_stability: found no input of {type(layer).__name__}, the last layer with weights, for each "
            "image; expected a network that calls its layers as modules"
        )
    return logits, inputs[-1]
