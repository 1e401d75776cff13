"""Sanity check: what is left of a map when the model's weights are replaced by new ones (Adebayo et al., 2018)."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from skimage.metrics import structural_similarity
from torch import Tensor, nn

from saliency_assay.methods.differentiate import describe
from saliency_assay.metrics.perturbation import Predict
from saliency_assay.metrics.reductions import reduce
from saliency_assay.metrics.scored import Scored, correlation, is_rankable, nan_unless
from saliency_assay.models.classifier import Classifier

MEASURES = ("spearman", "spearman_absolute", "ssim")
WINDOW = 7  # side of SSIM's window, scikit-image's default; smaller images have the largest odd one that fits


@dataclass(frozen=True)
class Stage:
    """Layers that get new weights together."""

    layer: str  # the one nearest to the output, by its path in the network
    tensors: tuple[str, ...]  # names of all their parameters and buffers in the model's state dict


def randomisation(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    explain: Callable[..., Tensor],
    randomized_model: nn.Module,
    stages: int = 8,
) -> Scored:
    """Likeness of maps ``[N, C or 1, H, W]`` to those of the model with layers from ``randomized_model``, of their
    ``sum``.

    Variants are ``cascading 1 fc``, ``independent 2 layer3.0.conv2`` …: the number of the stage, from the output down,
    and its layer. Cascading stage j replaces stages 1 to j, independent stage j that one alone. Curves such as
    ``cascading_ssim``, ``[N, stages + 1]``, begin with the model as it is. The class explained stays ``targets``. NaN
    where a map is NaN or constant. Adebayo et al. (2018); Yeh et al. (2019), Table 2, is ``cascading 1``.

    Raises:
        ValueError: ``predict`` is no module, ``randomized_model`` of another architecture, a method that returns
        another shape.
    """
    if not isinstance(predict, nn.Module):
        kind = type(predict).__name__
        raise ValueError(f"predict: found {kind}, expected a torch.nn.Module, whose weights can be replaced")
    if stages < 1:
        raise ValueError(f"stages: found {stages}, expected at least 1")
    trained, new = predict.state_dict(), randomized_model.state_dict()
    _check_alike(trained, new)
    saliency, copied, parts = reduce(maps, "sum"), deepcopy(predict), staged(predict, stages)

    def likeness_with(replaced: Sequence[Stage]) -> Tensor:
        names = [name for part in replaced for name in part.tensors]
        copied.load_state_dict({**trained, **{name: new[name] for name in names}})
        drawn = explain(images, targets, model=copied)
        if len(drawn) != len(maps) or drawn.shape[2:] != maps.shape[2:]:
            raise ValueError(f"explain: returned {describe(drawn)}, expected maps like {describe(maps)}")
        return likeness(saliency, reduce(drawn.detach(), "sum"))

    first = likeness_with(parts[:1])
    last = range(2, len(parts) + 1)
    found = {
        "cascading": [first, *(likeness_with(parts[:number]) for number in last)],
        "independent": [first, *(likeness_with(parts[number - 1 : number]) for number in last)],
    }
    return _scored(found, parts, likeness(saliency, saliency))


def staged(model: nn.Module, stages: int) -> list[Stage]:
    """Return the weight layers of ``model`` in at most ``stages`` groups of neighbours, from the output down.

    The first group is the last layer alone. The others have as many layers each as can be, or one more, those with
    more first. The order of layers is that of ``named_modules``; of a ``Classifier`` the normalisation of pixels stays.

    Raises:
        ValueError: there is no weight layer.
    """
    network, prefix = (model.network, "network.") if isinstance(model, Classifier) else (model, "")
    layers = weight_layers(network)[::-1]
    if not layers:
        raise ValueError("predict: found no parameter of two axes or more, expected a layer with weights")
    groups = [layers[:1]]
    if stages > 1 and len(layers) > 1:
        numbers = np.array_split(np.arange(1, len(layers)), min(stages, len(layers)) - 1)
        groups += [layers[part[0] : part[-1] + 1] for part in numbers]
    saved = set(network.state_dict())
    return [
        Stage(group[0][0], tuple(prefix + name for _, own in group for name in own if name in saved))
        for group in groups
    ]


def weight_layers(network: nn.Module) -> list[tuple[str, list[str]]]:
    """Return the layers that own a parameter of two axes or more, input first: their paths, and the names of their
    tensors.

    Another module with parameters or buffers of its own (BatchNorm) belongs to the weight layer before it; ahead of
    the first, to the first if it has parameters, and to none if it has buffers only.
    """
    layers: list[tuple[str, list[str]]] = []
    ahead: list[str] = []
    for path, module in network.named_modules():
        parameters = dict(module.named_parameters(recurse=False))
        buffers = [name for name, _ in module.named_buffers(recurse=False)]
        names = [f"{path}.{name}" if path else name for name in (*parameters, *buffers)]
        if any(parameter.ndim >= 2 for parameter in parameters.values()):
            layers.append((path, [*ahead, *names]))
            ahead = []
        elif layers:
            layers[-1][1].extend(names)
        elif parameters:
            ahead.extend(names)
    return layers


def likeness(first: Tensor, second: Tensor) -> Tensor:
    """``MEASURES`` of two maps ``[N, H, W]`` each, float64 ``[N, 3]``, NaN where either is NaN or constant."""
    sizes = first.abs(), second.abs()
    both, both_sizes = is_rankable(first) & is_rankable(second), is_rankable(sizes[0]) & is_rankable(sizes[1])
    found = [
        nan_unless(both, spearman(first, second)),
        nan_unless(both_sizes, spearman(*sizes)),
        ssim(first.double(), second.double(), both),
    ]
    return torch.stack(found, dim=1)


def spearman(first: Tensor, second: Tensor) -> Tensor:
    """Spearman's ρ of two maps ``[N, H, W]`` each, equal values with the mean of their ranks, float64 ``[N]``."""
    return correlation(mean_ranks(first.flatten(1)), mean_ranks(second.flatten(1)))


def mean_ranks(values: Tensor) -> Tensor:
    """Ranks from 1 along each row of ``[N, P]``, the mean rank for equal values, float64."""
    ordered = values.sort(dim=1).values
    below = torch.searchsorted(ordered, values.contiguous())
    not_above = torch.searchsorted(ordered, values.contiguous(), right=True)
    return (below + not_above + 1).double() / 2


def ssim(first: Tensor, second: Tensor, defined: Tensor) -> Tensor:
    """Structural similarity of maps ``[N, H, W]``, each scaled by its largest size to [−1, 1], float64 ``[N]``.

    The mean over windows of 7 pixels, uniformly weighted; NaN where not ``defined`` and for images below 3 pixels.
    """
    window = min(WINDOW, (min(first.shape[1:]) - 1) // 2 * 2 + 1)
    pairs = [(part / part.abs().amax((1, 2), keepdim=True)).cpu().numpy() for part in (first, second)]
    found = [
        float(structural_similarity(one, other, win_size=window, data_range=2))  # type: ignore[no-untyped-call]
        if usable and window >= 3
        else np.nan
        for one, other, usable in zip(*pairs, defined.tolist(), strict=True)
    ]
    return torch.tensor(found, dtype=torch.float64, device=first.device)


def _scored(found: Mapping[str, Sequence[Tensor]], parts: Sequence[Stage], unchanged: Tensor) -> Scored:
    """Scores of all stages, and curves that begin with the model as it is."""
    scores, curves = {}, {}
    for order, likenesses in found.items():
        curve = torch.stack([unchanged, *likenesses], dim=1)
        for index, measure in enumerate(MEASURES):
            curves[f"{order}_{measure}"] = curve[:, :, index]
            for number, part in enumerate(parts, start=1):
                variant = f"{order} {number} {part.layer}"
                scores[f"randomisation_{measure}", variant] = curve[:, number, index]
    return Scored(scores, curves)


def _check_alike(trained: Mapping[str, Tensor], new: Mapping[str, Tensor]) -> None:
    for name in sorted({*trained, *new}):
        shapes = [list(state[name].shape) if name in state else "none" for state in (trained, new)]
        if shapes[0] != shapes[1]:
            raise ValueError(
                f"randomized_model: found {shapes[1]} for {name}, expected {shapes[0]} as in predict"
            )
