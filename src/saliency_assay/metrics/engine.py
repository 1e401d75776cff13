"""Runner of all metrics that score single maps: batches, device, evaluation mode, precision, checks, progress."""

import inspect
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from saliency_assay.methods.differentiate import describe_tensor
from saliency_assay.methods.engine import check_targets, frozen, name_of, pixels_of
from saliency_assay.methods.inputs import arguments_of, map_seed
from saliency_assay.methods.passes import reported
from saliency_assay.methods.sampling import BlockGenerator
from saliency_assay.metrics.scored import Scored
from saliency_assay.models.classifier import Blueprint, Classifier, build
from saliency_assay.models.independence import check_independence
from saliency_assay.models.inference import evaluating, exact_float32
from saliency_assay.models.layout import in_layout_of
from saliency_assay.registry.records import resolve
from saliency_assay.runtime.provenance import seed_of
from saliency_assay.runtime.shards import batches
from saliency_assay.runtime.transfer import to_device

if TYPE_CHECKING:
    import pandas as pd

K = TypeVar("K")
log = logging.getLogger(__name__)

UNDEFINED = "such as those with a constant map or without an object (docs/metrics.md)"
"""Images for which a score is not defined, in messages."""


@dataclass(frozen=True)
class Explainer:
    """The evaluated method, for metrics that compute further maps with it."""

    method: Callable[..., Tensor]
    parameters: Mapping[str, Any]
    seed: int  # seed of the scored maps, so that the same image gets the same noise


@dataclass(frozen=True)
class MetricInputs:
    """Inputs that a metric may take in addition to images, targets, maps and parameters."""

    sliced: Mapping[str, Any] = field(default_factory=dict)
    """Inputs with one entry per image, by keyword: arrays, or mappings of arrays."""
    whole: Mapping[str, Any] = field(default_factory=dict)
    """Inputs shared by all images, by keyword; ``mean`` defaults to the classifier's."""
    explainer: Explainer | None = None


def model_responses(
    function: Callable[..., Mapping[str, Tensor]],
    parameters: Mapping[str, Any],
    classifier: Classifier,
    images: Any,
    targets: np.ndarray,
    *,
    seed: int,
    batch_size: int,
    inputs: MetricInputs | None = None,
    offset: int = 0,
) -> Iterator[dict[str, np.ndarray]]:
    """Compute the model responses of a metric, which do not depend on maps, in blocks in the images' order.

    ``images`` is any object with a length whose slices are uint8 ``[n, C, H, W]``, or float32 in [0, 1]; ``targets`` is
    int64 ``[N]``. For ``seed`` and ``offset`` see ``score``.

    Raises:
        ValueError: images, targets or offset do not fit, or ``function`` raises it.
    """
    generator = BlockGenerator(seed, "metric")
    for batch in _batches(classifier, images, targets, batch_size, offset, name_of(function)):
        keywords = _metric_arguments(function, parameters, inputs or MetricInputs(), batch.rows, classifier)
        generator.at(batch.block)
        with evaluating(classifier), frozen(classifier), exact_float32(), torch.enable_grad():
            responses = function(classifier, batch.pixels, batch.targets, generator=generator, **keywords)
        yield {name: values.cpu().numpy() for name, values in responses.items()}


def score(
    function: Callable[..., Scored | Tensor],
    parameters: Mapping[str, Any],
    classifier: Classifier,
    images: Any,
    targets: np.ndarray,
    maps: Any,
    *,
    names: Sequence[str],
    seed: int,
    batch_size: int,
    inputs: MetricInputs,
    offset: int = 0,
) -> Iterator[Scored]:
    """Compute the scores of all images in blocks, in the images' order, on the CPU; memory is bounded by a batch.

    ``maps`` is any object with a length whose slices are ``[n, C or 1, H, W]``; the other arguments are those of
    ``model_responses``. A metric that returns a single tensor has one score, the first of ``names``; other metrics
    return scores with these names. One generator, reseeded from ``seed`` for every block of the set (``shards``),
    serves all batches in order. Scores therefore depend on ``batch_size`` only by rounding, and not at all on how the
    set is split into shards; ``offset`` is the number of images before this shard.

    Raises:
        ValueError: images, targets, maps or offset do not fit each other; the metric raises it, or does not return one
            score for each image.
    """
    generator, undefined = BlockGenerator(seed, "metric"), Counter[str]()
    explain = _Explain(classifier, inputs.explainer) if inputs.explainer else None
    inputs = replace(inputs, whole={**inputs.whole, "explain": explain}) if explain else inputs
    for batch in _batches(classifier, images, targets, batch_size, offset, name_of(function)):
        batch_maps = to_device(torch.tensor(np.asarray(maps[batch.rows]), device="cpu"), classifier.device)
        _check_maps(batch_maps, batch.pixels, len(maps), len(images))
        keywords = _metric_arguments(function, parameters, inputs, batch.rows, classifier)
        generator.at(batch.block)
        if explain:
            explain.begin(batch.block)
        with evaluating(classifier), frozen(classifier), exact_float32(), torch.enable_grad():
            scores = function(
                classifier, batch.pixels, batch.targets, batch_maps, generator=generator, **keywords
            )
        result = scores if isinstance(scores, Scored) else Scored({(names[0], ""): scores})
        _check_scores(name_of(function), result, names, len(batch.pixels))
        result = Scored(_on_cpu(result.scores), _on_cpu(result.curves))
        for key, values in result.scores.items():
            undefined[" ".join(key).strip()] += int(values.isnan().sum())
        yield result
    for label, count in (+undefined).items():  # the plus drops counts of 0
        log.warning("%s is not defined for %d of %d images, %s", label, count, len(images), UNDEFINED)


def explainer_of(
    method: Mapping[str, Any], data: Any, device: torch.device, seed: int, model: str, name: str
) -> Explainer:
    """Return the method whose maps of ``model`` on data set ``name`` are scored, with the seed of these maps.

    ``method`` has ``function``, ``parameters`` and ``noise_group``, and optionally ``base`` and ``background``;
    ``data`` is the open store of the data set.
    """
    noise_seed = map_seed(seed, model, name, method["noise_group"])
    return Explainer(resolve(method["function"]), arguments_of(method, data, device), noise_seed)


def metric_seed(seed: int, model: str, data: str, noise_group: str) -> int:
    """Return the seed of a metric and its model responses, shared by all methods' maps of one model on one data set."""
    return seed_of(seed, "metric", model, data, noise_group)


def randomized_model_seed(seed: int, model: str) -> int:
    """Return the seed of the random weights of the model that a metric compares with the trained one."""
    # The name in the seed is that of version 0.1, so that weights stay the same.
    return seed_of(seed, "fresh", model)


def build_randomized_model(classifier: Classifier, blueprint: Blueprint, seed: int) -> Classifier:
    """Return a classifier like ``classifier`` with weights sampled from ``seed``, see ``layout.like``."""
    mean, std = (values.flatten().tolist() for values in (classifier.mean, classifier.std))
    generator = torch.Generator().manual_seed(seed)
    randomized_model = build(blueprint, classes=classifier.classes, mean=mean, std=std, generator=generator)
    return in_layout_of(randomized_model, classifier)


def curves_of(blocks: Iterable[Scored], gathered: list[Scored]) -> Iterator[dict[str, np.ndarray]]:
    """Yield the curves of each block, for a store, and ``defined``, bool ``[n]``: True if an image has all scores.

    Blocks are appended to ``gathered`` without their curves, which may not fit into memory.
    """
    for block in blocks:
        gathered.append(Scored(block.scores))
        defined = torch.stack([scores.isfinite() for scores in block.scores.values()]).all(0)
        yield {**{name: values.numpy() for name, values in block.curves.items()}, "defined": defined.numpy()}


def table_of(gathered: Sequence[Scored], images: np.ndarray, entry: str) -> "pd.DataFrame":
    """Return the scores of all blocks as rows of ``image``, ``metric``, ``variant`` and ``score``.

    ``metric`` is the score's registered name; ``variant`` is ``entry``, the metric's name in the configuration,
    followed by the metric's own name of the variant, if it has several.
    """
    import pandas as pd  # takes 0.3 s, which scores in a notebook do not need

    tables = []
    for score_name, variant in gathered[0].scores:
        values = torch.cat([block.scores[score_name, variant] for block in gathered]).double()
        label = f"{entry} {variant}".strip()
        rows = {"image": images, "metric": score_name, "variant": label, "score": values.numpy()}
        tables.append(pd.DataFrame(rows))
    return pd.concat(tables, ignore_index=True)


class _Explain:
    """The evaluated method, with the same noise at every call within a batch."""

    def __init__(self, classifier: Classifier, explainer: Explainer) -> None:
        self.classifier, self.explainer = classifier, explainer
        self.generator = BlockGenerator(explainer.seed, "method")
        self.state = self.generator.get_state()

    def begin(self, block: int) -> None:
        """Start the next batch, of ``block``: every call begins with the generator state of the batch's scored maps."""
        self.state = self.generator.at(block).get_state()

    def __call__(self, images: Tensor, targets: Tensor, model: nn.Module | None = None) -> Tensor:
        # The same noise in all calls, so that maps differ by the image or the model and not by their random samples.
        self.generator.set_state(self.state)
        explained = self.classifier if model is None else model
        with frozen(explained):
            maps = self.explainer.method(
                explained, images, targets, generator=self.generator, **self.explainer.parameters
            )
        return maps.detach()


class _Batch(NamedTuple):
    """Images that are scored together: their block, their slice, and their pixels and targets on the device."""

    block: int
    rows: slice
    pixels: Tensor
    targets: Tensor


def _batches(
    classifier: Classifier, images: Any, targets: np.ndarray, batch_size: int, offset: int, name: str
) -> Iterator[_Batch]:
    batch_slices = list(batches(len(images), batch_size, offset=offset, even=True))
    check_targets(targets, len(images), classifier.classes)
    for number in reported(len(batch_slices), 1, f"batches of images: {name}"):
        block, rows = batch_slices[number]
        pixels = pixels_of(images[rows], classifier.device)
        if number == 0:
            check_independence(classifier, pixels)
        yield _Batch(
            block, rows, pixels, to_device(torch.tensor(targets[rows], device="cpu"), classifier.device)
        )


def _metric_arguments(
    function: Callable[..., Any],
    parameters: Mapping[str, Any],
    inputs: MetricInputs,
    rows: slice,
    classifier: Classifier,
) -> dict[str, Any]:
    """Return the keyword arguments of ``function``: the parameters and the inputs that it declares."""
    declared = inspect.signature(function).parameters
    any_name = any(parameter.kind is parameter.VAR_KEYWORD for parameter in declared.values())

    def slice_of(values: Any) -> Any:
        if isinstance(values, Mapping):
            return {key: slice_of(value) for key, value in values.items()}
        return to_device(torch.tensor(np.asarray(values[rows]), device="cpu"), classifier.device)

    arguments = {key: value for key, value in parameters.items() if any_name or key in declared}
    shared_inputs = {"mean": classifier.mean.flatten(), **inputs.whole}
    arguments |= {key: value for key, value in shared_inputs.items() if key in declared}
    return arguments | {key: slice_of(values) for key, values in inputs.sliced.items() if key in declared}


def _on_cpu(tensors: Mapping[K, Tensor]) -> dict[K, Tensor]:
    return {key: values.detach().cpu() for key, values in tensors.items()}


def _check_maps(maps: Tensor, pixels: Tensor, count: int, images: int) -> None:
    fits = maps.ndim == 4 and maps.shape[1] in (1, pixels.shape[1]) and maps.shape[2:] == pixels.shape[2:]
    if not fits or count != images:
        expected = f"{images} of [{pixels.shape[1]} or 1, {pixels.shape[2]}, {pixels.shape[3]}]"
        raise ValueError(f"maps: found {count} of {list(maps.shape[1:])}, expected {expected}")


def _check_scores(metric: str, result: Scored, names: Sequence[str], images: int) -> None:
    expected = f"expected a floating-point score for each of {images} images"
    if not result.scores:
        raise ValueError(f"{metric}: returned no scores, {expected}")
    for key, values in result.scores.items():
        if key[0] not in names:
            raise ValueError(f"{metric}: returned a score {key[0]!r}, expected {', '.join(names)}")
        is_tensor = isinstance(values, Tensor)
        if not is_tensor or values.shape != (images,) or not values.is_floating_point():
            returned = describe_tensor(values) if is_tensor else type(values).__name__
            raise ValueError(f"{metric}: returned {returned} as {' '.join(key).strip()}, {expected}")
        if bool(values.isinf().any()):
            count = f"{int(values.isinf().sum())} of {images} scores"
            raise ValueError(
                f"{metric}: returned infinity in {count} as {' '.join(key).strip()}, expected NaN if undefined"
            )
