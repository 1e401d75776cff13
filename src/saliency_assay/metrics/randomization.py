"""Sanity check: similarity of a map after the model's weights are randomized (Adebayo et al., 2018)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from saliency_assay.methods.differentiate import graph_nodes
from saliency_assay.metrics.perturbation import Predict
from saliency_assay.metrics.reductions import reduce
from saliency_assay.metrics.scored import Scored, check_explained, is_rankable, nan_unless, spearman
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.inference import uncompiled
from saliency_assay.models.state import copy_of, other_values, tensors_of
from saliency_assay.registry.limits import PositiveInt
from saliency_assay.runtime.environment import optional
from saliency_assay.runtime.transfer import to_device

_PARAMETRIZATIONS = "parametrizations"  # PyTorch's name of the module of a layer's parametrizations
MEASURES = ("spearman", "spearman_absolute", "ssim")
WINDOW = 7  # side of SSIM's window, scikit-image's default; smaller images use the largest odd side that fits


@dataclass(frozen=True)
class Stage:
    """Layers whose weights are randomized together."""

    layer: str  # path of the layer nearest to the output
    tensors: tuple[str, ...]  # names of all their parameters and buffers in the model's state dict


def randomization(
    predict: Predict,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    explain: Callable[..., Tensor],
    randomized_model: nn.Module,
    stages: PositiveInt = 8,
) -> Scored:
    """Compute the similarity of maps ``[N, C or 1, H, W]`` to maps of the model with layers of ``randomized_model``.

    The ``sum`` of maps is compared. Variants are ``cascading 1 fc``, ``independent 2 layer3.0.conv2`` …: the number of
    the stage, from the output down, and its layer. Cascading stage j replaces stages 1 to j, independent stage j only
    stage j. Curves such as ``cascading_ssim``, ``[N, stages + 1]``, begin with the unchanged model. The explained class
    stays ``targets``. NaN where a map is NaN or constant. Adebayo et al. (2018); Yeh et al. (2019), Table 2, is
    ``cascading 1``.

    Raises:
        ValueError: ``predict`` is not a module, ``randomized_model`` has another architecture, or the method returns
            another shape.
    """
    model = as_module(predict)
    trained, new = states(model, randomized_model)
    saliency, model_copy, all_stages = reduce(maps, "sum"), copy_of(model), staged(model, images, stages)

    def similarity_with(replaced: Sequence[Stage]) -> Tensor:
        names = [name for stage in replaced for name in stage.tensors]
        # All weights are loaded, so that none of an earlier stage remain.
        model_copy.load_state_dict({**trained, **{name: new[name] for name in names}})
        new_maps = check_explained(explain(images, targets, model=model_copy), maps, summed=True)
        return likeness(saliency, reduce(new_maps.detach(), "sum"))

    first = similarity_with(all_stages[:1])  # the same for both orders
    later_stages = range(2, len(all_stages) + 1)
    similarities = {
        "cascading": [first, *(similarity_with(all_stages[:number]) for number in later_stages)],
        "independent": [
            first,
            *(similarity_with(all_stages[number - 1 : number]) for number in later_stages),
        ],
    }
    return _scored(similarities, all_stages, likeness(saliency, saliency))


def as_module(predict: Predict) -> nn.Module:
    """Return ``predict`` if it is a module.

    Raises:
        ValueError: it is not.
    """
    if not isinstance(predict, nn.Module):
        kind = type(predict).__name__
        raise ValueError(f"predict: found {kind}, expected a torch.nn.Module, whose weights can be replaced")
    return predict


def states(model: nn.Module, randomized_model: nn.Module) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the state dicts of a model and of one with new weights.

    Raises:
        ValueError: ``randomized_model`` has another architecture.
    """
    trained, new = tensors_of(model), tensors_of(randomized_model)
    for name in sorted({*trained, *new}):
        shapes = [list(state[name].shape) if name in state else "none" for state in (trained, new)]
        if shapes[0] != shapes[1]:
            raise ValueError(
                f"randomized_model: found {shapes[1]} for {name}, expected {shapes[0]} as in predict"
            )
    return trained, new


def staged(model: nn.Module, images: Tensor, stages: int) -> list[Stage]:
    """Return the weight layers of ``model`` in at most ``stages`` groups of adjacent layers, from the output down.

    The first group is the last layer alone. The sizes of the others differ by at most one, the larger groups first. The
    order of layers is that of ``called_modules`` for the first of ``images [N, C, H, W]``. The pixel normalization of a
    ``Classifier`` is not replaced.

    Raises:
        ValueError: the model has no weight layer.
    """
    network, prefix = (model.network, "network.") if isinstance(model, Classifier) else (model, "")
    layers = weight_layers(called_modules(model, network, images[:1]))[::-1]
    if not layers:
        raise ValueError("predict: found no parameter of two axes or more, expected a layer with weights")
    groups = [layers[:1]]
    if stages > 1 and len(layers) > 1:
        numbers = np.array_split(np.arange(1, len(layers)), min(stages, len(layers)) - 1)
        groups += [layers[indices[0] : indices[-1] + 1] for indices in numbers]
    # A tensor may have several names: its layer is shared, or it is tied to a weight of another layer.
    names: dict[int, list[str]] = {}
    for name, tensor in network.state_dict(keep_vars=True).items():
        names.setdefault(id(tensor), []).append(prefix + name)
    return [
        Stage(
            group[0][0],
            tuple(name for _, tensors in group for each in tensors for name in names.get(id(each), ())),
        )
        for group in groups
    ]


def called_modules(model: nn.Module, network: nn.Module, images: Tensor) -> list[tuple[str, nn.Module]]:
    """Return the modules of ``network`` with their paths, in the order in which a pass of ``model`` uses them last.

    A module is used when an operation reads a parameter of its own, as the autograd graph shows, also in TorchScript
    and if the module itself is not called. Of modules without such parameters, and of layers that autograd does not
    follow, the call counts, or that of the module that contains them. Equal ones are in the order of ``named_modules``.
    Modules whose parameters do not change the logits are left out, such as an auxiliary head, and so are modules of
    parametrizations, whose tensors count as those of the parametrized module.
    """
    modules = [(path, module) for path, module in network.named_modules() if _PARAMETRIZATIONS not in path]
    used: dict[str, int] = {}

    def now() -> int:
        with torch.enable_grad():
            node = (torch.zeros((), requires_grad=True) * 1).grad_fn
        assert node is not None
        return node._sequence_nr()

    handles = [
        module.register_forward_pre_hook(lambda *_, path=path: used.update({path: now()}))
        for path, module in modules
        if not isinstance(module, torch.jit.ScriptModule)  # takes no hooks
    ]
    # Autograd follows no weights that were made in inference mode.
    followed = not any(each.is_inference() for each in network.parameters())
    parameters = [each for each in network.parameters() if followed and each.is_floating_point()]
    trainable = [parameter.requires_grad for parameter in parameters]
    try:
        with torch.set_grad_enabled(followed), uncompiled():
            for parameter in parameters:
                parameter.requires_grad_()
            logits = model(images.detach())
    finally:
        for handle in handles:
            handle.remove()
        for parameter, was_trainable in zip(parameters, trainable, strict=True):
            parameter.requires_grad_(was_trainable)
    read: dict[int, int] = {}
    for node in graph_nodes(logits):
        for source, _ in node.next_functions:
            if (leaf := getattr(source, "variable", None)) is not None:
                read[id(leaf)] = max(read.get(id(leaf), 0), node._sequence_nr())
    unread = []
    for path, module in modules:
        own, _ = _own_tensors(module)
        if of_module := [read[id(each)] for each in own if id(each) in read]:
            used[path] = max(of_module)
        elif own and not _matters(own, model, images, logits.detach()):
            unread.append(path)

    def rank(path: str) -> int:
        while path and path not in used:
            path = path.rpartition(".")[0]
        return used.get(path, -1)

    return sorted((named for named in modules if named[0] not in unread), key=lambda named: rank(named[0]))


def _own_tensors(module: nn.Module) -> tuple[list[nn.Parameter], list[Tensor]]:
    """Return the parameters and the buffers of a module without its children, but with its parametrizations."""
    parts = [(module, False)]
    if isinstance(parametrizations := getattr(module, "parametrizations", None), nn.ModuleDict):
        parts.append((parametrizations, True))
    parameters = [each for part, recurse in parts for each in part.parameters(recurse=recurse)]
    return parameters, [each for part, recurse in parts for each in part.buffers(recurse=recurse)]


def _matters(parameters: Sequence[nn.Parameter], model: nn.Module, images: Tensor, logits: Tensor) -> bool:
    """Return True if other values of the parameters change the logits, or if it cannot be tried."""
    if any(each.is_inference() for each in parameters):
        return True
    before = [each.detach().clone() for each in parameters]
    with torch.no_grad(), uncompiled():
        try:
            for each in parameters:
                each.copy_(other_values(each))
            changed = model(images.detach())
        finally:
            for each, values in zip(parameters, before, strict=True):
                each.copy_(values)
    return not torch.equal(changed, logits)


def weight_layers(modules: Sequence[tuple[str, nn.Module]]) -> list[tuple[str, list[Tensor]]]:
    """Return the path and the tensors of each layer that owns a parameter of two or more axes, input first.

    ``modules`` are all modules with their paths, in the order of their calls. Another module that owns
    parameters or buffers (BatchNorm) belongs to the weight layer before it. Before the first weight layer, it belongs
    to the first one if it has parameters, and to none if it has only buffers. A weight that several layers share
    belongs to the last of them.
    """
    layers: list[tuple[str, list[Tensor]]] = []
    pending: list[Tensor] = []
    last = {id(each): path for path, module in modules for each in _own_tensors(module)[0]}
    for path, module in modules:
        parameters, buffers = _own_tensors(module)
        tensors = [*(each for each in parameters if last[id(each)] == path), *buffers]
        if any(parameter.ndim >= 2 and last[id(parameter)] == path for parameter in parameters):
            layers.append((path, [*pending, *tensors]))
            pending = []
        elif layers:
            layers[-1][1].extend(tensors)
        elif parameters:
            pending.extend(tensors)
    return layers


def likeness(first: Tensor, second: Tensor) -> Tensor:
    """Compute ``MEASURES`` of two maps ``[N, H, W]`` each, float64 ``[N, 3]``, NaN where either is NaN or constant."""
    magnitudes = first.abs(), second.abs()
    defined = is_rankable(first) & is_rankable(second)
    # A map of values ±a ranks pixels, but its magnitudes do not.
    magnitudes_defined = is_rankable(magnitudes[0]) & is_rankable(magnitudes[1])
    measures = [
        nan_unless(defined, spearman(first, second)),
        nan_unless(magnitudes_defined, spearman(*magnitudes)),
        ssim(first.double(), second.double(), defined),
    ]
    return torch.stack(measures, dim=1)


def ssim(first: Tensor, second: Tensor, defined: Tensor) -> Tensor:
    """Compute SSIM of maps ``[N, H, W]``, each divided by its largest absolute value, float64 ``[N]``.

    The mean over windows of 7 × 7 pixels, uniformly weighted; NaN where not ``defined``, and for images with a side
    below 3 pixels.
    """
    with optional("skimage", "methods"):
        from skimage.metrics import structural_similarity

    window = min(WINDOW, (min(first.shape[1:]) - 1) // 2 * 2 + 1)
    # Values are then in [−1, 1], which is ``data_range`` 2: SSIM's stabilizing constants are relative to it.
    pairs = [(maps / maps.abs().amax((1, 2), keepdim=True)).cpu().numpy() for maps in (first, second)]
    similarities = [
        float(structural_similarity(one, other, win_size=window, data_range=2))  # type: ignore[no-untyped-call]
        if usable and window >= 3
        else np.nan
        for one, other, usable in zip(*pairs, defined.tolist(), strict=True)
    ]
    return to_device(torch.tensor(similarities, dtype=torch.float64), first.device)


def _scored(by_order: Mapping[str, Sequence[Tensor]], stages: Sequence[Stage], unchanged: Tensor) -> Scored:
    """Return the scores of all stages, and curves that begin with the unchanged model."""
    scores, curves = {}, {}
    for order, similarities in by_order.items():
        curve = torch.stack([unchanged, *similarities], dim=1)
        for index, measure in enumerate(MEASURES):
            curves[f"{order}_{measure}"] = curve[:, :, index]
            for number, stage in enumerate(stages, start=1):
                variant = f"{order} {number} {stage.layer}"
                scores[f"randomization_{measure}", variant] = curve[:, number, index]
    return Scored(scores, curves)
