"""Classifier: the common interface of all models, which maps images to logits and finds layers by name."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from saliency_assay.models import checks
from saliency_assay.models.checks import LOGITS, OUTPUTS
from saliency_assay.registry.records import Json, resolve, unknown
from saliency_assay.runtime.provenance import fingerprint

WRAPPERS = {"module", "_orig_mod"}
"""Names of the network in wrappers of data parallelism, averaged weights and ``torch.compile``."""
WRAPPER_CLASSES = {"DataParallel", "DistributedDataParallel", "AveragedModel", "OptimizedModule"}


@dataclass(frozen=True)
class Blueprint:
    """Description of a network: architecture, builder (``package.module:name``), its parameters, and layers.

    The fields are plain JSON, such as the settings of a job. Jobs that use no layers have none in their settings, so
    that a change of a layer name does not rerun them.
    """

    architecture: str
    function: str
    parameters: Mapping[str, Json]
    cam_layer: str = ""
    concept_layers: Sequence[str] = ()
    token_grid: Sequence[int] = ()
    output: str = LOGITS
    """Kind of the network's output, one of ``OUTPUTS``; see ``outputs.ToLogits``."""
    multi_label: bool = False
    """True if an image may have several classes, each with a probability of its own."""


class Classifier(nn.Module):
    """A network with input normalization, from images ``[N, C, H, W]`` in [0, 1] to logits ``[N, K]``.

    ``mean`` and ``std`` (one value per channel, for pixels in [0, 1]) are buffers ``[1, C, 1, 1]``; ``classes`` is K.
    ``cam_layer`` and ``concept_layers`` are paths of layers inside ``network`` (see ``layer``). ``token_grid`` is the
    number of rows and columns of tokens if the CAM layer returns tokens; by default, it follows from the image's size.
    With ``multi_label``, the probability of a class is the sigmoid of its logit, otherwise the softmax of all logits.

    Raises:
        ValueError: the network does not have a layer, ``mean`` and ``std`` have different lengths, or they are not
            those of pixels in [0, 1].
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        network: nn.Module,
        *,
        classes: int,
        mean: Sequence[float],
        std: Sequence[float],
        cam_layer: str,
        concept_layers: Sequence[str],
        token_grid: Sequence[int] = (),
        multi_label: bool = False,
    ) -> None:
        super().__init__()
        if problem := checks.normalization(mean, std):
            raise ValueError(f"normalization: {problem}")
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float32).reshape(1, -1, 1, 1))
        self.register_buffer("std", torch.tensor(std, dtype=torch.float32).reshape(1, -1, 1, 1))
        self.network = network
        self.memory_format = torch.channels_last
        """Memory format of the network's input; ``layout.adapt`` sets it to contiguous if the network requires that."""
        self.classes = classes
        self.cam_layer = cam_layer
        self.concept_layers = tuple(concept_layers)
        self.token_grid = tuple(token_grid)
        self.multi_label = multi_label
        for name in (cam_layer, *self.concept_layers):
            self.layer(name)  # raises if the network has no such layer

    @property
    def channels(self) -> int:
        """Number of image channels, C."""
        return self.mean.shape[1]

    @property
    def device(self) -> torch.device:
        """Device of the buffers and weights."""
        return self.mean.device

    def forward(self, pixels: Tensor) -> Tensor:
        """Return logits ``[N, K]`` of images ``[N, C, H, W]`` in [0, 1].

        Raises:
            ValueError: the images have another shape, channel count or dtype than the classifier expects, or the
                network returns logits of another shape.
        """
        if pixels.ndim != 4 or pixels.shape[1] != self.channels:
            raise ValueError(f"images {list(pixels.shape)}: expected [N, {self.channels}, H, W]")
        if pixels.dtype != self.mean.dtype:
            raise ValueError(f"images of {pixels.dtype}: expected {self.mean.dtype} in [0, 1]")
        logits = main_output(self.network(self.network_input(pixels)))
        if not isinstance(logits, Tensor):
            raise ValueError(
                f"network: returned {type(logits).__name__}, expected logits [N, {self.classes}]"
            )
        if logits.shape != (len(pixels), self.classes):
            hint = (
                "; set output: logit or sigmoid"
                if logits.numel() == len(pixels) and self.classes == 2
                else ""
            )
            raise ValueError(
                f"logits {list(logits.shape)} of {len(pixels)} images: expected [N, {self.classes}], as many as classes"
                f"{hint}"
            )
        # A network may compute in another precision, as with autocast in its own forward.
        return logits.to(pixels.dtype)

    def network_input(self, pixels: Tensor) -> Tensor:
        """Return images ``[N, C, H, W]`` in [0, 1] normalized for the network, in its memory format."""
        normalized = (pixels - self.mean) / self.std
        if self.memory_format == torch.channels_last:
            return normalized
        # Not ``contiguous()``, which keeps the channels-last strides of images with one channel.
        return normalized.clone(memory_format=torch.contiguous_format)

    def layer(self, name: str) -> nn.Module:
        """Return the layer at path ``name`` of the network, as ``get_submodule`` does.

        A negative number counts the children of a layer from the end: ``blocks.-1`` is the last block. The names of
        wrappers, such as ``torch.nn.DataParallel`` and ``torch.compile``, may be left out.

        Raises:
            ValueError: there is no such layer; the message lists the children of the deepest layer that exists.
        """
        layer, at = self.network, ""
        for part in name.split(".") if name else ():
            children = dict(layer.named_children())
            if part not in children and children.keys() <= WRAPPERS and children:
                (layer,) = children.values()
                children = dict(layer.named_children())
            if part.startswith("-") and part[1:].isdigit() and 0 < int(part[1:]) <= len(children):
                layer = list(children.values())[int(part)]
            elif part in children:
                layer = children[part]
            else:
                valid = [f"{at}{child}" for child in children]
                raise ValueError(unknown("layer", name, valid))
            at += f"{part}."
        return layer


def kind_of(network: nn.Module) -> str:
    """Return the name of a network's class, for messages; a network in ``outputs.ToLogits`` has its own."""
    return type(without_logits(network)).__name__


def without_logits(network: nn.Module) -> nn.Module:
    """Return the network in ``outputs.ToLogits``; return any other network unchanged."""
    return network.get_submodule("module") if hasattr(network, "is_binary") else network


def unwrapped(network: nn.Module) -> nn.Module:
    """Return the network in wrappers of data parallelism, averaged weights and ``torch.compile``."""
    # By name, because the import of compiled modules takes seconds.
    while type(network).__name__ in WRAPPER_CLASSES:
        (network,) = network.children()
    return network


def main_output(output: object) -> object:
    """Return the logits in the output of a network with auxiliary outputs; return any other output unchanged.

    The logits are the attribute ``logits``, as in outputs of torchvision and Hugging Face, or the first entry of a
    tuple.
    """
    logits = getattr(output, "logits", output)
    return logits[0] if isinstance(logits, tuple | list) and logits else logits


def probabilities(model: object, logits: Tensor) -> Tensor:
    """Return the probability of each class ``[N, K]``: softmax, or the sigmoid of each logit of a multi-label model.

    ``model`` returned the logits; any model but a ``Classifier`` marked as ``multi_label`` has exclusive classes.
    """
    return logits.sigmoid() if getattr(model, "multi_label", False) else logits.softmax(1)


def is_predicted(model: object, logits: Tensor, targets: Tensor) -> Tensor:
    """Return True where the target ``[N]`` has the largest logit of ``[N, K]`` or, with several labels, one above 0."""
    if getattr(model, "multi_label", False):
        return logits.gather(1, targets[:, None])[:, 0] > 0
    return logits.argmax(1) == targets


def to_logits(network: nn.Module, output: str, *, multi_label: bool = False) -> nn.Module:
    """Return a network that returns logits: unchanged if ``output`` is ``logits``, else in ``outputs.ToLogits``.

    Raises:
        ValueError: unknown ``output``, or one that a multi-label network cannot have.
    """
    if output not in OUTPUTS:
        raise ValueError(f"output: {unknown('output', output, OUTPUTS)}")
    if multi_label and output not in (LOGITS, "sigmoid"):
        raise ValueError(f"output: found {output!r}, expected 'logits' or 'sigmoid' of a multi-label network")
    if output == LOGITS:
        return network
    # Imported here, because only such networks depend on the module.
    from saliency_assay.models.outputs import ToLogits

    return ToLogits(network, output, multi_label=multi_label)


def build(
    blueprint: Blueprint,
    *,
    classes: int,
    mean: Sequence[float],
    std: Sequence[float],
    generator: torch.Generator,
) -> Classifier:
    """Build a classifier for ``classes`` classes and ``len(mean)`` channels, with weights sampled from ``generator``.

    Raises:
        ValueError: the builder does not exist or returns no module, or the network does not have a layer.
    """
    builder = resolve(blueprint.function)
    # A custom network may sample its weights from the global generator, as PyTorch's layers do by default.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(generator.initial_seed())
        outputs = checks.outputs_of(blueprint.output, classes, multi_label=blueprint.multi_label)
        arguments = {"classes": outputs, "channels": len(mean), "generator": generator}
        try:
            network = builder(**arguments, **blueprint.parameters)
        except TypeError as error:
            if not any(f"argument {name!r}" in str(error) for name in arguments):
                raise
            raise ValueError(
                f"{blueprint.function!r}: {error}; expected a function of (*, {', '.join(arguments)}, …) that returns "
                "the network"
            ) from None
    if not isinstance(network, nn.Module):
        raise ValueError(
            f"{blueprint.function!r} returned {type(network).__name__}; expected a torch.nn.Module"
        )
    lazy = [name for name, each in network.named_parameters() if isinstance(each, UninitializedParameter)]
    if lazy:
        raise ValueError(
            f"{blueprint.function!r} returned a network with lazy layers ({lazy[0]}); call it once in the "
            "builder, with an image of the right size"
        )
    return Classifier(
        to_logits(network, blueprint.output, multi_label=blueprint.multi_label),
        classes=classes,
        mean=mean,
        std=std,
        cam_layer=blueprint.cam_layer,
        concept_layers=blueprint.concept_layers,
        token_grid=blueprint.token_grid,
        multi_label=blueprint.multi_label,
    )


def digest(state: Mapping[str, Any]) -> str:
    """Return the SHA-256 (hex) of a state dict: names, dtypes, shapes and values, but not order or memory layout.

    Raises:
        TypeError: an entry that is not a tensor has no plain JSON form.
    """
    total = hashlib.sha256()
    for name in sorted(state):
        if not isinstance(state[name], Tensor):
            try:
                total.update(f"{name} {fingerprint(state[name])}\n".encode())
            except TypeError as error:
                raise TypeError(f"{name}: {error}") from None
            continue
        tensor = state[name].detach().cpu().contiguous().resolve_conj().resolve_neg()
        total.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        total.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return total.hexdigest()
