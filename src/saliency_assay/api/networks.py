"""Conversion of a network or a prediction function to the classifier that methods and metrics take."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from saliency_assay.api.inputs import integer_of, numbers_of
from saliency_assay.methods.differentiate import describe_tensor
from saliency_assay.methods.engine import pixels_of
from saliency_assay.models import ARCHITECTURES
from saliency_assay.models.checks import OUTPUTS, outputs_of
from saliency_assay.models.classifier import (
    Blueprint,
    Classifier,
    build,
    main_output,
    to_logits,
    without_logits,
)
from saliency_assay.models.families import BUILDERS, family_of
from saliency_assay.models.inference import evaluating, exact_float32
from saliency_assay.models.layout import adapt, restored_buffers
from saliency_assay.models.outputs import ToLogits, ToScalar, final_activation
from saliency_assay.models.state import tensors_of
from saliency_assay.models.weights import DEFAULT_OUTPUTS, description_in, load_classifier
from saliency_assay.registry.labels import counted
from saliency_assay.registry.records import short_repr, with_defaults

Model: TypeAlias = nn.Module | Callable[[Tensor], Any]
"""A ``Classifier``, a network that takes images in [0, 1], or a function that predicts from them."""


def wrap(
    network: nn.Module,
    *,
    classes: int | None = None,
    mean: Sequence[float],
    std: Sequence[float],
    cam_layer: str = "",
    token_grid: Sequence[int] = (),
    output: str | Callable[[Any], Tensor] = "logits",
    multi_label: bool = False,
) -> Classifier:
    """Return a network for normalized images as a classifier of images ``[N, C, H, W]`` in [0, 1].

    The classifier shares the weights of the network and stays on their device. For a network that normalizes its input
    itself, pass ``mean`` 0 and ``std`` 1 for each channel.

    Args:
        network: module from ``[N, C, H, W]`` to logits ``[N, classes]`` or to ``output``, with float32 weights.
        classes: number of classes; 2 for a network with one output. Left out if ``output`` is a function.
        mean: mean of each channel, in [0, 1]; also the color of ``baseline: mean`` and ``fill: mean``.
        std: standard deviation of each channel, in (0, 1].
        cam_layer: path in ``network`` of the layer for CAM and Grad-CAM; other methods do not need it. A negative
            number counts from the end, as in ``blocks.-1.norm1``.
        token_grid: rows and columns of tokens, if ``cam_layer`` returns tokens that are not the largest grid of the
            images' aspect ratio.
        output: ``logits``, or what the network returns instead: ``logit`` or ``sigmoid`` for the logit z or the
            probability of class 1, ``[N, 1]`` or ``[N]``; ``softmax`` for probabilities of all classes. The logits are
            then (−z/2, z/2), or the input of the final activation. Or a function from the network's output to the
            number that is explained for each image, ``[N]``, such as a predicted value or a difference of logits; it is
            the logit of class 0, and there are no probabilities.
        multi_label: True if an image may have several classes, each with its own ``logits`` or ``sigmoid``: its
            probability is then the sigmoid of its logit.

    Raises:
        ValueError: ``output`` does not exist or does not fit ``classes``, ``classes`` is missing, the network does not
            have the layer, ``mean`` and ``std`` are not sequences of equal length or not those of pixels in [0, 1], the
            weights have another type, or ``network`` is not a module.

    >>> from torch import nn
    >>> import saliency_assay
    >>> network = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 6 * 6, 10))
    >>> model = saliency_assay.wrap(network, classes=10, mean=[0.5] * 3, std=[0.25] * 3, cam_layer="1")
    >>> model(torch.rand(2, 3, 8, 8)).shape
    torch.Size([2, 10])
    >>> margin = lambda logits: logits[:, 3] - logits[:, 5]
    >>> model = saliency_assay.wrap(network, output=margin, mean=[0.5] * 3, std=[0.25] * 3)
    >>> saliency_assay.attribute("gradient", model, torch.rand(2, 3, 8, 8), targets=0).shape
    torch.Size([2, 3, 8, 8])
    """
    if not isinstance(network, nn.Module):
        raise ValueError(f"network: found {type(network).__name__}, expected a torch.nn.Module")
    mean, std = numbers_of(mean, "mean"), numbers_of(std, "std")
    network, classes = _with_output(network, output, classes, multi_label=bool(multi_label))
    if not isinstance(cam_layer, str):
        raise ValueError(f"cam_layer: found {cam_layer!r}, expected the path of a layer, such as 'layer4'")
    tensors = [
        tensor for tensor in chain(network.parameters(), network.buffers()) if tensor.is_floating_point()
    ]
    for tensor in tensors:
        if tensor.dtype != torch.float32:
            raise ValueError(
                f"network: found weights of {tensor.dtype}, expected torch.float32: network.float()"
            )
    with torch.device("cpu"):  # whatever PyTorch's default device is
        wrapped = Classifier(
            network,
            classes=classes,
            mean=mean,
            std=std,
            cam_layer="",
            concept_layers=(),
            token_grid=token_grid,
            multi_label=bool(multi_label),
        )
    wrapped.cam_layer = _cam_layer(cam_layer, wrapped)
    device = tensors[0].device if tensors else torch.device("cpu")
    wrapped.mean, wrapped.std = wrapped.mean.to(device), wrapped.std.to(device)
    return wrapped


def _cam_layer(path: str, classifier: Classifier) -> str:
    """Return the path of a layer, if the classifier has this layer.

    Raises:
        ValueError: it does not; the message names the layer that is the likely choice.
    """
    try:
        classifier.layer(path)
    except ValueError as error:
        # Not with the module, since only this message needs it.
        from saliency_assay.models.cam_layers import likely_cam_layer

        likely = likely_cam_layer(classifier.network)
        such = f"; for CAM and Grad-CAM: {likely!r}" if likely else ""
        raise ValueError(f"cam_layer: {error}{such}") from None
    return path


def _with_output(
    network: nn.Module, output: str | Callable[[Any], Tensor], classes: int | None, *, multi_label: bool
) -> tuple[nn.Module, int]:
    """Return a network that returns what is explained, ``[N, K]``, and K; see ``wrap``.

    Raises:
        ValueError: ``output`` does not exist, or does not fit ``classes`` or ``multi_label``.
    """
    if isinstance(output, nn.Module):
        expected = "a function; a module belongs into the network, as nn.Sequential(network, module)"
        raise ValueError(f"output: found {type(output).__name__}, expected {expected}")
    if callable(output):
        if classes not in (None, 1) or multi_label:
            extra = "multi_label" if multi_label else f"classes={classes}"
            raise ValueError(
                f"output: found a function and {extra}, expected either: a function gives one number"
            )
        return ToScalar(network, output), 1
    if classes is None:
        raise ValueError("classes: missing, expected the number of classes, or a function as output")
    classes = integer_of(classes, "classes")
    if classes < 1:
        raise ValueError(f"classes: found {classes}, expected at least 1")
    if not isinstance(output, str):
        raise ValueError(f"output: found {output!r}, valid: {', '.join(OUTPUTS)}, or a function")
    outputs_of(output, classes, multi_label=multi_label)
    return to_logits(network, output, multi_label=multi_label), classes


def wrap_like(network: nn.Module, classifier: Classifier) -> Classifier:
    """Return the network with the normalization, CAM layer and output of ``classifier``."""
    mean, std = (values.flatten().tolist() for values in (classifier.mean, classifier.std))
    output: str | Callable[[Any], Tensor] = "logits"
    if isinstance(classifier.network, ToScalar):
        output = classifier.network.function
    elif isinstance(classifier.network, ToLogits):
        output = classifier.network.output
    return wrap(
        network,
        classes=classifier.classes,
        mean=mean,
        std=std,
        cam_layer=classifier.cam_layer,
        token_grid=classifier.token_grid,
        output=output,
        multi_label=classifier.multi_label,
    )


def load_model(
    weights: str | Path, *, builder: str = "", cam_layer: str = "", device: str = "cpu"
) -> Classifier:
    """Load a classifier that the workflow has trained, with the memory format that its jobs use.

    The architecture, its parameters and the normalization are read from the file. Code that the file names is not
    imported: only registered architectures are rebuilt without ``builder``.

    Args:
        weights: ``results/models/{model}/seed{seed}/weights.pt``.
        builder: for a custom network, the ``function`` of its entry in the configuration, ``package.module:name``.
        cam_layer: path of the layer for CAM and Grad-CAM; by default that of a registered architecture.
        device: ``cpu`` or ``cuda``.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file does not contain the weights of a model of the workflow, its architecture is neither
            registered nor ``builder``, the network does not have the layer, or there is no such device.
    """
    path = Path(weights)
    classifier = load_classifier(path, _blueprint_in(path, builder, cam_layer))
    # As in the jobs: with another memory format, convolutions sum in another order and round differently. (torch's type
    # stubs have this argument only for tensors.)
    classifier.to(device_of(device), memory_format=torch.channels_last)  # type: ignore[call-overload]
    return classifier


def _blueprint_in(path: Path, builder: str, cam_layer: str) -> Blueprint:
    """Return the blueprint of the network whose weights are in ``path``; see ``load_model``."""
    description = description_in(path)
    architecture, parameters = description["architecture"], description["parameters"]
    outputs = {key: description[key] for key in DEFAULT_OUTPUTS if key in description}
    if builder:
        return Blueprint(builder, builder, parameters, cam_layer, **outputs)
    library, _, name = architecture.partition("/")
    if library in BUILDERS and parameters.get("name") == name:
        family = family_of(library, name)
        layer = cam_layer or (family.cam_layer if family else "")
        blueprint = Blueprint(architecture, BUILDERS[library], parameters, layer, **outputs)
        _check_size(path, blueprint, description)
        return blueprint
    record = next((record for record in ARCHITECTURES if record.name == architecture), None)
    if record is None:
        valid = ", ".join(record.name for record in ARCHITECTURES)
        raise ValueError(
            f"{path}: architecture: found {short_repr(architecture)}; valid: {valid}, torchvision/NAME, timm/NAME; "
            "for a custom network, pass builder=, the function of its entry in the configuration"
        )
    layer = cam_layer or record.cam_layer
    blueprint = Blueprint(record.name, record.function, parameters, layer, **outputs)
    try:
        with_defaults(record.parameters, parameters)
    except ValueError as error:
        raise ValueError(f"{path}: {architecture}: {error}") from error
    _check_size(path, blueprint, description)
    return blueprint


def _check_size(path: Path, blueprint: Blueprint, description: Mapping[str, Any]) -> None:
    """Check that the network has no more weights than the file, which may be damaged, before they are allocated.

    Raises:
        ValueError: it has, or it cannot be built.
    """
    try:
        with torch.device("meta"):
            network = build(
                blueprint,
                **{key: description[key] for key in ("classes", "mean", "std")},
                generator=torch.Generator(),
            )
    except NotImplementedError:  # the builder computes with values, which ``meta`` does not have
        return
    except (ValueError, RuntimeError) as error:
        raise ValueError(f"{path}: {blueprint.architecture}: {error}") from error
    values = sum(tensor.numel() for tensor in tensors_of(network).values())
    if 4 * values > path.stat().st_size:
        raise ValueError(
            f"{path}: found {path.stat().st_size} bytes, expected at least {4 * values} of {blueprint.architecture} "
            f"with the parameters {blueprint.parameters}"
        )


TRIAL_BATCH = 16
"""Number of images for which outputs are compared with probabilities, after those of the first image."""
ROUNDING_OF_SUM = 1e-4
"""Largest difference from 1 of a sum of probabilities."""
_TRIED: WeakKeyDictionary[Classifier, tuple[nn.Module, torch.device, tuple[int, ...]]] = WeakKeyDictionary()
"""For each classifier the network, device and image size of its last trial pass, which later calls do not repeat."""


class Prediction(nn.Module):
    """A network without weights that wraps a prediction function; it has no gradients."""

    def __init__(self, predict: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.predict = predict

    def forward(self, images: Tensor) -> Tensor:
        """Return the function's output for images ``[N, C, H, W]``, as a float32 tensor on their device."""
        with torch.no_grad():
            return torch.as_tensor(
                self.predict(images.contiguous()), dtype=torch.float32, device=images.device
            )


def classifier_of(model: Model, images: Tensor) -> Classifier:
    """Return the model as a classifier: a ``Classifier`` unchanged, any other model without normalization.

    The number of classes is determined by a prediction for the first of ``images``.

    Raises:
        ValueError: the model is neither a network nor a function, does not take the images, or returns no logits.
    """
    if isinstance(model, nn.Module):
        # Not with the module, because its conversions take a third of the time to import the Python API.
        from saliency_assay.methods.canonical import forget_if_written

        forget_if_written(model.network if isinstance(model, Classifier) else model)
        if any(tensor.is_meta for tensor in chain(model.parameters(), model.buffers())):
            raise ValueError(
                "model: found weights on meta, without values, expected a network on cpu or cuda"
            )
    if isinstance(model, Classifier):
        if model.mean.dtype != torch.float32:
            raise ValueError(
                f"model: found the mean in {model.mean.dtype}, expected torch.float32: model.float()"
            )
        if images.shape[1] != model.channels:
            hint = "; for gray images, repeat the channel" if images.shape[1] == 1 else ""
            expected = f"{counted(model.channels, 'channel')}, as in the model's mean{hint}"
            raise ValueError(f"images: found {list(images.shape)}, expected {expected}")
        tried = (model.network, model.device, tuple(images.shape[2:]))
        if not isinstance(model.network, Prediction) and _TRIED.get(model) != tried:
            adapt(model, images.shape[2:])
            _check_classes(model, _trial(model, images))
            _TRIED[model] = tried
        return model
    if not callable(model) or isinstance(model, type):
        found = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
        hint = (
            "; load weights into a network by network.load_state_dict" if isinstance(model, Mapping) else ""
        )
        raise ValueError(f"model: found {found}, expected a torch.nn.Module or a function{hint}")
    network = model if isinstance(model, nn.Module) else Prediction(model)
    channels = images.shape[1]
    classifier = wrap(network, classes=1, mean=[0.0] * channels, std=[1.0] * channels)
    if not isinstance(network, Prediction):
        adapt(classifier, images.shape[2:])
    logits = _trial(classifier, images)
    if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != 1:
        description = describe_tensor(logits) if isinstance(logits, Tensor) else type(logits).__name__
        hint = "; for one number per image, saliency_assay.wrap(network, output=function, …)"
        hint = hint if isinstance(logits, Tensor) and logits.numel() == 1 else ""
        raise ValueError(f"model: returned {description} for one image, expected logits [1, K]{hint}")
    classifier.classes = logits.shape[1]
    warn_of_probabilities(classifier, images, logits, stacklevel=4)
    return classifier


def _check_classes(classifier: Classifier, logits: object) -> None:
    """Check that the network's output for one image has a logit for each class.

    Raises:
        ValueError: it has other ones.
    """
    if isinstance(logits, Tensor) and logits.shape != (1, classifier.classes):
        several = logits.ndim == 2 and logits.shape[1] > 1
        hint = f"; saliency_assay.wrap(network, classes={logits.shape[1]}, …)" if several else ""
        raise ValueError(
            f"model: returned {describe_tensor(logits)} for one image, expected logits [1, {classifier.classes}], as "
            f"many as its classes{hint}"
        )


def warn_of_probabilities(
    classifier: Classifier, images: Tensor, output: object = None, *, stacklevel: int = 3
) -> None:
    """Warn if a network that is expected to return logits returns probabilities for a batch of images.

    These sum to 1, or are the result of ``torch.sigmoid``; other values in [0, 1] may be logits.

    Functions may return them, and networks that are declared to return them are left out.

    Args:
        classifier: contains the network.
        images: ``[N, C, H, W]``; a batch of them decides if the first output may be probabilities.
        output: output of the classifier for the first image, if it is known.
        stacklevel: number of calls from here to that of the user.
    """
    network = classifier.network
    if isinstance(network, Prediction | ToScalar) or (
        isinstance(network, ToLogits) and network.output != "logit"
    ):
        return
    first = _trial(classifier, images) if output is None else output
    if isinstance(network, ToLogits) and isinstance(first, Tensor):
        first = first[:, 1:] - first[:, :1]  # the single logit
    if not isinstance(first, Tensor) or first.ndim != 2 or not ((first >= 0) & (first <= 1)).all():
        return
    pixels = classifier.network_input(pixels_of(images[:1], classifier.device))
    with evaluating(network), restored_buffers(network), exact_float32(), torch.no_grad():
        activation = final_activation(without_logits(network), pixels)
    if activation == "sigmoid":
        options = "classes=2, " if first.shape[1] == 1 else "multi_label=True, "
        warnings.warn(
            f"model: found a network that returns the result of torch.sigmoid, expected logits; "
            f"saliency_assay.wrap(network, {options}output='sigmoid', …)",
            stacklevel=stacklevel,
        )
        return
    if classifier.multi_label:
        return
    if _are_probabilities(first) and _are_probabilities(_trial(classifier, images, TRIAL_BATCH)):
        warnings.warn(
            "model: found outputs in [0, 1] that sum to 1, which look like probabilities, expected logits; "
            "saliency_assay.wrap(network, output='softmax', …)",
            stacklevel=stacklevel,
        )


def _are_probabilities(output: object) -> bool:
    """Return True for ``[N, K]`` of at least two values in [0, 1] that sum to 1."""
    if not isinstance(output, Tensor) or output.ndim != 2 or output.shape[1] < 2:
        return False
    sums = output.double().sum(1)
    return bool(((output >= 0) & (output <= 1)).all() and ((sums - 1).abs() <= ROUNDING_OF_SUM).all())


def _trial(classifier: Classifier, images: Tensor, count: int = 1) -> object:
    """Return the network's output for the first ``count`` of ``images``.

    Raises:
        ValueError: the network raises an error.
    """
    network, first = classifier.network, pixels_of(images[:count], classifier.device)
    try:
        with evaluating(network), restored_buffers(network), exact_float32(), torch.no_grad():
            return main_output(network(classifier.network_input(first)))
    except Exception as error:  # a network may raise anything
        message = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(
            f"model: does not take images {list(first.shape)}: {message}{_hint(classifier)}"
        ) from error


def _hint(classifier: Classifier) -> str:
    """Return what to do if weights are not float32 or not all on the device of the images, else an empty string."""
    tensors = list(chain(classifier.network.parameters(), classifier.network.buffers()))
    types = {tensor.dtype for tensor in tensors if tensor.is_floating_point()} - {torch.float32}
    if types:
        return f"; found weights of {' and '.join(sorted(map(str, types)))}: network.float()"
    devices = sorted({str(tensor.device) for tensor in tensors} - {str(classifier.device)})
    if devices:
        found = f"found weights on {' and '.join(devices)} and images on {classifier.device}"
        return f"; {found}: model.to({devices[-1]!r})"
    return ""


def device_of(device: Any) -> torch.device:
    """Return the device with this name.

    Raises:
        ValueError: PyTorch has no such device, or it holds no values.
    """
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError):
        found = None
    if found is None or found.type == "meta":
        raise ValueError(f"device: found {short_repr(device)}, valid: 'cpu', 'cuda', 'cuda:1', 'mps'")
    return found


def normalizes(model: Model) -> bool:
    """Return True if the model has the mean of its training images, as a ``Classifier`` does."""
    return isinstance(model, Classifier)


def check_differentiable(name: str, classifier: Classifier) -> None:
    """Check that the classifier has gradients.

    Raises:
        ValueError: the classifier wraps a prediction function, or PyTorch is in inference mode.
    """
    if torch.is_inference_mode_enabled():
        raise ValueError(f"{name}: needs gradients, which torch.inference_mode() excludes; call it outside")
    if isinstance(classifier.network, Prediction):
        raise ValueError(
            f"{name}: found a function as the model, which has no gradients, expected a torch.nn.Module, or a method "
            "that needs none, such as occlusion or rise"
        )
