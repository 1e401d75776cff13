"""Check of models before their training: builders, layers, weights, and the methods that explain them.

``python -m saliency_assay.methods.model_check``, with settings on standard input, runs before the jobs of a workflow.

The network is built on PyTorch's device ``meta``, whose tensors have shapes but no values, so that even a large network
is checked within a second. Methods that need a CAM layer depend on values; they, and whatever fails on ``meta``, are
tried with random weights on a GPU or the CPU. Only a failure there counts, because not every operation supports
``meta``.
"""

import json
import logging
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from saliency_assay.methods.engine import frozen
from saliency_assay.methods.feature_maps import cam_layers
from saliency_assay.models.checks import LOGITS
from saliency_assay.models.classes import model_classes, of_data
from saliency_assay.models.classifier import Blueprint, Classifier, build, without_logits
from saliency_assay.models.inference import evaluating, exact_float32, to_pixels
from saliency_assay.models.layout import place
from saliency_assay.models.outputs import final_activation
from saliency_assay.models.weights import load_initial, normalization_of
from saliency_assay.registry.records import resolve, unknown
from saliency_assay.runtime.job import in_one_line, print_anything

log = logging.getLogger(__name__)

Use = Callable[[Classifier, Tensor], object]
"""A use of a classifier with images ``[N, C, H, W]``, which raises an exception if it is not possible."""
META = torch.device("meta")
IMAGES = 2  # a network that mixes images works with a single one; BatchNorm needs two in training
SUGGESTED_LAYERS, SUGGESTED_METHODS = 3, 8
SIZE_OPTIONS = {"torchvision": "image_size", "timm": "img_size"}
"""For each library, the argument with which the builders of its vision transformers set the size of the images."""


@dataclass(frozen=True)
class ModelCheck:
    """All that is checked of one model."""

    name: str
    """Start of its error lines, such as "models.digits"."""
    blueprint: Blueprint
    classes: int
    class_problem: str
    """Why the model has no class for a class of its data; empty if it has one for each."""
    shape: Sequence[int]
    """C, H, W of its images."""
    trains: bool
    """True if it is trained, False if its weights are used as they are."""
    has_training_images: bool
    """False if all of its images are test images."""
    weights: str
    """File of initial weights; empty if there is none yet."""
    normalization: Sequence[Sequence[float]] | None
    methods: Mapping[str, Mapping[str, Any]]
    """For each method that explains it the ``function``, ``parameters`` and ``needs`` of the method by which it is
    checked."""
    uses: Mapping[str, str]
    """For each other use, by the key of the configuration that requests it, a reference to a ``Use``."""


def check_of(entry: Mapping[str, Any]) -> ModelCheck:
    """Return the check of a model from its settings (``pipeline.model_checks``).

    Raises:
        Exception: the source of its images is not valid; the job that builds the data set reports it.
    """
    fields, data = dict(entry), entry["data"]
    channels, label, own = (fields.pop(key) for key in ("channels", "label", "classes"))
    for key in ("data", "files"):
        fields.pop(key, None)
    shape, classes, names = data["shape"], data["classes"], ()
    if source := data["class_names"]:
        names = resolve(source["function"])(**source["parameters"])
    elif not shape:  # a kind of data whose images are known only once they are read
        parameters = {key: value for key, value in data["parameters"].items() if key != "seed"}
        by_label, blocks = resolve(data["function"])(**parameters, generator=np.random.default_rng(0))
        names, shape = by_label[label], next(iter(blocks))["image"].shape[1:]
    problem, classes = "", len(names) or classes
    if own:
        classes = len(model_classes(own).names)
        try:
            of_data(names, own)
        except ValueError as error:
            problem = str(error)
    fields["blueprint"] = Blueprint(**fields["blueprint"])
    image_shape = [channels or shape[0], *shape[1:]]
    return ModelCheck(**fields, classes=classes, class_problem=problem, shape=image_shape)


def problems(
    check: ModelCheck, alternatives: Mapping[str, Mapping[str, Any]], device: torch.device
) -> list[str]:
    """Return a line for each problem of a model: the place in the configuration, the value found, and what is valid.

    ``alternatives`` are all registered methods, as in ``ModelCheck.methods``; those without a ``function`` need nothing
    but predictions. What fails on ``meta`` is repeated on ``device``. If the network cannot be built or does not take
    its images, no more is checked.
    """
    return list(_problems(check, alternatives, _Model(check, device)))


def main() -> int:
    """Check the models in the settings on standard input; print the problems of all of them, and return 1 if any."""
    settings, lines = json.load(sys.stdin), []
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO, stream=sys.stderr)
    logging.captureWarnings(capture=True)
    torch.set_num_threads(1)
    # A network may support GPUs alone.
    use_gpu = settings["device"] != "cpu" and torch.cuda.is_available()
    device = torch.device("cuda" if use_gpu else "cpu")
    # Equal models, such as those of a series, are checked once: lines without the models' names.
    texts: dict[str, list[str]] = {}
    with redirect_stdout(sys.stderr):  # of builders
        for entry in settings["models"]:
            try:
                check = check_of(entry)
            except Exception:  # a user's function may raise any; the job that builds the data reports it
                log.warning("%s: not checked, since its images are unknown", entry["name"], exc_info=True)
                continue
            log.info("%s: images %s, %d classes", check.name, list(check.shape), check.classes)
            key = repr(replace(check, name=""))
            if key not in texts:
                model_lines = problems(check, settings["alternatives"], device)
                texts[key] = [line.removeprefix(check.name) for line in model_lines]
            lines += [check.name + text for text in texts[key]]
    print_anything()
    for line in lines:
        print(line)
    return 1 if lines else 0


def _problems(
    check: ModelCheck, alternatives: Mapping[str, Mapping[str, Any]], model: "_Model"
) -> Iterator[str]:
    channels = check.shape[0]
    if check.class_problem:
        yield f"{check.name}.{check.class_problem}"
    if check.normalization and len(check.normalization[0]) != channels:
        count = len(check.normalization[0])
        yield f"{check.name}.normalization: found {count} values of mean, expected {channels}, one per channel"
    if _lacks_normalization(check):
        yield (
            f"{check.name}.normalization: missing; expected mean and std for {channels} channels, because the weights "
            "do not state them and the data has no training images"
        )
    if error := model.problem(lambda classifier, images: None):
        yield f"{check.name}: cannot be built: {in_one_line(error)}"
        return
    lacking = list(_unknown_layers(check, model))
    yield from (line for _, line in lacking)
    if check.weights and (error := model.problem(partial(_load, check))):
        yield f"{check.name}.weights: {in_one_line(error)}"
    step = model.problem(lambda classifier, images: classifier(images))
    step = step or (model.problem(_train) if check.trains else None)
    if step:
        yield f"{check.name}: with images {list(check.shape)}: {in_one_line(step)}{_size_hint(check)}"
        return
    if not check.trains and (error := model.problem(_check_output)):
        yield f"{check.name}.output: {in_one_line(error)}"
    lacks_cam_layer = "cam_layer" in [key for key, _ in lacking]
    for method, entry in check.methods.items():
        if lacks_cam_layer and "cam_layer" in entry["needs"]:
            continue
        if error := model.problem(_explaining(entry), needs_values="cam_layer" in entry["needs"]):
            text = in_one_line(error).removeprefix(f"{entry['function'].partition(':')[2]}: ")
            layers = model.map_layers() if "cam_layer" in entry["needs"] else []
            hint = f"; layers with feature maps: {', '.join(layers)}" if layers else ""
            supported = ", ".join(model.supported(alternatives))
            yield f"{check.name}: {method}: {text}{hint}; methods for this model: {supported}"
    for key, function in check.uses.items():
        if error := model.problem(resolve(function)):
            yield f"{check.name}: {key}: {in_one_line(error)}"


class _Model:
    """A model on ``meta`` and another device, built when it is used there for the first time."""

    def __init__(self, check: ModelCheck, device: torch.device) -> None:
        self._check = check
        self._device = device
        self._built: dict[torch.device, Classifier | Exception] = {}

    def problem(self, use: Use, *, needs_values: bool = False) -> Exception | None:
        """Return the exception of a use of the model on its device; None if it succeeds there or on ``meta``.

        A use that ``needs_values`` of activations is not tried on ``meta``.
        """
        error = (needs_values or self._error(use, META)) and self._error(use, self._device)
        if error:
            log.info("%s", self._check.name, exc_info=error)
        return error

    def supported(self, alternatives: Mapping[str, Mapping[str, Any]]) -> list[str]:
        """Return the first methods that work on the model, as far as ``meta`` shows it if it can be built there.

        Methods that need a CAM layer are tried on the model's device.
        """
        fast = self._device if isinstance(self._built[META], Exception) else META
        works: dict[str, bool] = {}
        for entry in alternatives.values():
            function = entry["function"]
            if function and function not in works:
                device = self._device if "cam_layer" in entry["needs"] else fast
                works[function] = self._error(_explaining(entry), device) is None
        names = [name for name, entry in alternatives.items() if works.get(entry["function"], True)]
        return names if len(names) <= SUGGESTED_METHODS else [*names[:SUGGESTED_METHODS], "…"]

    def map_layers(self) -> list[str]:
        """Return the last layers, in the order of a forward pass, whose output is feature maps or tokens."""
        names: list[str] = []
        self.problem(lambda classifier, images: names.extend(cam_layers(classifier, images)))
        return names[-SUGGESTED_LAYERS:]

    def has(self, layer: str) -> bool:
        """Return True if the network, which has been built, has a layer."""
        results: list[bool] = []
        self.problem(lambda classifier, images: results.append(_has(classifier, layer)))
        return all(results)

    def modules(self) -> list[str]:
        """Return the paths of all layers of the network, which has been built."""
        names: list[str] = []
        self.problem(lambda classifier, images: names.extend(dict(classifier.network.named_modules())))
        return [name for name in names if name]

    def _error(self, use: Use, device: torch.device) -> Exception | None:
        """Return the exception of a use of the model on a device, including that of the builder."""
        if device not in self._built:
            try:
                self._built[device] = self._build(device)
            except SystemExit:
                self._built[device] = ValueError("calls exit; expected a function that returns a network")
            except Exception as error:  # a builder may raise any exception
                self._built[device] = error
        classifier = self._built[device]
        if isinstance(classifier, Exception):
            return classifier
        try:
            with _default(device), evaluating(classifier), exact_float32(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                use(classifier, self._images(device))
        except Exception as error:  # a network or a method of a user may raise any
            return error
        return None

    def _build(self, device: torch.device) -> Classifier:
        check, channels = self._check, self._check.shape[0]
        mean, std = check.normalization or ([0.5] * channels, [0.5] * channels)
        if len(mean) != channels:  # which is reported
            mean, std = [0.5] * channels, [0.5] * channels
        with _default(device):
            generator = torch.Generator().manual_seed(0)
            # Layers are set afterwards, so that all unknown ones are reported, and not only the first.
            blueprint = Blueprint(
                check.blueprint.architecture,
                check.blueprint.function,
                check.blueprint.parameters,
                output=check.blueprint.output,
                multi_label=check.blueprint.multi_label,
            )
            classifier = build(blueprint, classes=check.classes, mean=mean, std=std, generator=generator)
        classifier.cam_layer = (
            check.blueprint.cam_layer if _has(classifier, check.blueprint.cam_layer) else ""
        )
        classifier.concept_layers = tuple(
            name for name in check.blueprint.concept_layers if _has(classifier, name)
        )
        classifier.token_grid = tuple(check.blueprint.token_grid)
        if device != META:
            _fill_zeros(classifier)
            place(classifier, device, check.shape[1:], training=check.trains)
        return classifier

    def _images(self, device: torch.device) -> Tensor:
        shape = (IMAGES, *self._check.shape)
        if device == META:
            return torch.empty(shape, device=device)
        generator = torch.Generator().manual_seed(0)
        return to_pixels(torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8).to(device))


def _fill_zeros(classifier: Classifier) -> None:
    """Fill parameters of zeros, such as the head of torchvision's ViT, behind which no activation has a gradient."""
    with torch.no_grad():
        for parameter in classifier.parameters():
            if parameter.is_floating_point() and not parameter.any():
                parameter.normal_(std=0.02)


def _size_hint(check: ModelCheck) -> str:
    """Return the argument that sets the size of the images, if it is not set for a network of a library."""
    library, _, name = check.blueprint.architecture.partition("/")
    option = SIZE_OPTIONS.get(library)
    if option is None or option in check.blueprint.parameters or not re.match("vit|deit|beit", name):
        return ""
    height, width = check.shape[1:]
    size = height if height == width else f"[{height}, {width}]"
    return f"; a vision transformer needs {option}: {size}"


def _has(classifier: Classifier, layer: str) -> bool:
    """Return True if the network has a layer."""
    try:
        classifier.layer(layer)
    except ValueError:
        return False
    return True


def _default(device: torch.device) -> AbstractContextManager[object]:
    """Return a context in which new tensors are on ``meta``; as in jobs, they are otherwise on the CPU by default."""
    return device if device == META else nullcontext()


def _unknown_layers(check: ModelCheck, model: _Model) -> Iterator[tuple[str, str]]:
    """Yield for each unknown layer the key of the configuration and an error line."""
    modules = model.modules()
    cam_layer, concept_layers = check.blueprint.cam_layer, check.blueprint.concept_layers
    for key, layer in (("cam_layer", cam_layer), *(("concept_layers", layer) for layer in concept_layers)):
        if layer and not model.has(layer):
            # The names of all layers of a network would be too many.
            hint = unknown("layer", layer, modules).partition("valid: ")[0]
            valid = model.map_layers() if key == "cam_layer" else []
            valid = valid or [name for name in modules if "." not in name]
            yield key, f"{check.name}.{key}: {hint}valid: {', '.join(valid)}, …"


def _lacks_normalization(check: ModelCheck) -> bool:
    """Return True if a normalization could only come from training images, of which there are none."""
    if check.normalization or check.has_training_images or not check.weights:
        return False
    try:
        return normalization_of(Path(check.weights), check.shape[0]) is None
    except (OSError, ValueError):  # reported when the weights are loaded
        return False


def _load(check: ModelCheck, classifier: Classifier, images: Tensor) -> None:
    """Load the initial weights, as the training does."""
    load_initial(
        classifier, Path(check.weights), check.blueprint.architecture, head_may_start_anew=check.trains
    )


def _check_output(classifier: Classifier, images: Tensor) -> None:
    """Check that a network whose ``output`` is that of logits does not return probabilities."""
    network = without_logits(classifier.network)
    output = LOGITS if network is classifier.network else getattr(classifier.network, "output", LOGITS)
    if output not in (LOGITS, "logit"):
        return
    if activation := final_activation(network, classifier.network_input(images)):
        needs_key = output == LOGITS and activation == "sigmoid" and not classifier.multi_label
        raise ValueError(
            f"found {output}, but the network returns the result of torch.{activation}; expected {activation}"
            f"{' and the key multi_label: true' if needs_key else ''}"
        )


def _train(classifier: Classifier, images: Tensor) -> None:
    """Compute the gradients of a training step."""
    trainable = [parameter for parameter in classifier.parameters() if parameter.requires_grad]
    if not trainable:
        raise ValueError("found no trainable parameter; expected one, or epochs: 0")
    classifier.train()  # the caller restores the mode
    torch.autograd.grad(classifier(images).sum(), trainable, allow_unused=True)


def _explaining(entry: Mapping[str, Any]) -> Use:
    """Return the use of a model by a method."""

    def explain(classifier: Classifier, images: Tensor) -> None:
        targets = torch.zeros(len(images), dtype=torch.int64, device=images.device)
        method, generator = resolve(entry["function"]), torch.Generator("cpu")
        with frozen(classifier):
            method(classifier, images, targets, generator=generator, **entry["parameters"])

    return explain


if __name__ == "__main__":
    sys.exit(main())
