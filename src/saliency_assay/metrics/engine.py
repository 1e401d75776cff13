"""The one caller of metrics that judge single maps: batches, device, evaluation mode, precision, checks, progress."""

import inspect
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from saliency_assay.methods.differentiate import describe
from saliency_assay.methods.engine import check_targets, frozen, name_of, pixels_of
from saliency_assay.methods.inputs import arguments_of, map_seed
from saliency_assay.methods.passes import reported
from saliency_assay.methods.sampling import BlockGenerator
from saliency_assay.metrics.scored import Scored
from saliency_assay.models.classifier import Blueprint, Classifier, build
from saliency_assay.models.inference import evaluating, exact_float32
from saliency_assay.registry.records import resolve
from saliency_assay.runtime.provenance import seed_of
from saliency_assay.runtime.shards import batches

K = TypeVar("K")
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Explainer:
    """The method under test, as metrics that draw maps of their own are given it."""

    method: Callable[..., Tensor]
    parameters: Mapping[str, Any]
    seed: int  # the seed of the maps that are scored: the same image then gets the same noise


@dataclass(frozen=True)
class MetricInputs:
    """Inputs that a metric may take beside images, targets, maps and parameters."""

    sliced: Mapping[str, Any] = field(default_factory=dict)
    """Inputs with an entry for each image, by keyword: arrays, or mappings of arrays."""
    whole: Mapping[str, Any] = field(default_factory=dict)
    """Inputs that are the same for all images, by keyword; ``mean`` is the classifier's, unless it is given here."""
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
    """Blocks of what a metric asks the model that no map decides, in the images' order.

    ``images`` is anything with a length whose slices are uint8 ``[n, C, H, W]``, or float32 in [0, 1]; ``targets`` is
    int64 ``[N]``. For ``seed`` and ``offset`` see ``score``.

    Raises:
        ValueError: images, targets or an offset that do not fit, or what ``function`` raises.
    """
    generator = BlockGenerator(seed)
    for batch in _batches(classifier, images, targets, batch_size, offset, name_of(function)):
        keywords = _metric_arguments(function, parameters, inputs or MetricInputs(), batch.part, classifier)
        generator.at(batch.block)
        with evaluating(classifier), frozen(classifier), exact_float32():
            found = function(classifier, batch.pixels, batch.targets, generator=generator, **keywords)
        yield {name: values.cpu().numpy() for name, values in found.items()}


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
    """Scores of all images in blocks, in the images' order, on the CPU; memory is bounded by a batch.

    ``maps`` is anything with a length whose slices are ``[n, C or 1, H, W]``; the rest is as for ``model_responses``. A
    metric that returns a tensor alone has one score, the first of ``names``; others give scores of these names. One
    generator, seeded by ``seed`` for every block of the set anew (``shards``), serves all batches in order, so scores
    do not depend on ``batch_size`` beyond rounding; and not at all on how the set is split into parts, of which this
    one has ``offset`` images before it.

    Raises:
        ValueError: images, targets, maps or offset that do not fit each other; a metric that returns anything but a
            score for each image, or what the metric raises.
    """
    generator, undefined = BlockGenerator(seed), Counter[str]()
    explain = _Explain(classifier, inputs.explainer) if inputs.explainer else None
    inputs = replace(inputs, whole={**inputs.whole, "explain": explain}) if explain else inputs
    for batch in _batches(classifier, images, targets, batch_size, offset, name_of(function)):
        drawn = torch.tensor(np.asarray(maps[batch.part]), device=classifier.device)
        _check_maps(drawn, batch.pixels, len(maps), len(images))
        keywords = _metric_arguments(function, parameters, inputs, batch.part, classifier)
        generator.at(batch.block)
        if explain:
            explain.begin(batch.block)
        with evaluating(classifier), frozen(classifier), exact_float32():
            found = function(classifier, batch.pixels, batch.targets, drawn, generator=generator, **keywords)
        result = found if isinstance(found, Scored) else Scored({(names[0], ""): found})
        _check_scores(name_of(function), result, names, len(batch.pixels))
        result = Scored(_on_cpu(result.scores), _on_cpu(result.curves))
        for key, scores in result.scores.items():
            undefined[" ".join(key).strip()] += int(scores.isnan().sum())
        yield result
    for label, count in (+undefined).items():
        log.warning("%s is not defined for %d of %d images", label, count, len(images))


def explainer_of(
    method: Mapping[str, Any], data: Any, device: torch.device, seed: int, model: str, name: str
) -> Explainer:
    """Return the method whose maps of ``model`` on the set ``name`` are scored, as ``methods.engine.attribute`` was
    given it.

    ``method`` has its ``function``, ``parameters`` and ``noise_group``, and ``base`` and ``background`` where it has
    them; ``data`` is the open store of the set.
    """
    drawn = map_seed(seed, model, name, method["noise_group"])
    return Explainer(resolve(method["function"]), arguments_of(method, data, device), drawn)


def metric_seed(seed: int, model: str, data: str, noise_group: str) -> int:
    """Return the seed of a metric, and of its model responses, for all methods' maps of one model on one set."""
    return seed_of(seed, "metric", model, data, noise_group)


def fresh_seed(seed: int, model: str) -> int:
    """Return the seed of the weights that a metric compares a trained model with."""
    return seed_of(seed, "fresh", model)


def newly_built(classifier: Classifier, blueprint: Blueprint, seed: int) -> Classifier:
    """Return a classifier like ``classifier`` on its device, with weights newly drawn from ``seed``, in evaluation
    mode."""
    mean, std = (values.flatten().tolist() for values in (classifier.mean, classifier.std))
    generator = torch.Generator().manual_seed(seed)
    made = build(blueprint, classes=classifier.classes, mean=mean, std=std, generator=generator)
    return made.to(classifier.device).eval().requires_grad_(False)


def curves_of(found: Iterable[Scored], gathered: list[Scored]) -> Iterator[dict[str, np.ndarray]]:
    """Return the curves of each block, for a store, and ``defined``, bool ``[n]``: whether an image has all scores.

    Blocks go to ``gathered`` without their curves, which may be too many to keep.
    """
    for block in found:
        gathered.append(Scored(block.scores))
        defined = torch.stack([scores.isfinite() for scores in block.scores.values()]).all(0)
        yield {**{name: values.numpy() for name, values in block.curves.items()}, "defined": defined.numpy()}


def table_of(gathered: Sequence[Scored], images: np.ndarray, entry: str) -> pd.DataFrame:
    """Return the scores of all blocks as rows of ``image``, ``metric``, ``variant`` and ``score``.

    ``metric`` is the score's registered name; ``variant`` is ``entry``, the metric's name in the configuration,
    followed by what the metric calls the variant, if it has several.
    """
    parts = []
    for score_name, variant in gathered[0].scores:
        values = torch.cat([block.scores[score_name, variant] for block in gathered]).double()
        label = f"{entry} {variant}".strip()
        rows = {"image": images, "metric": score_name, "variant": label, "score": values.numpy()}
        parts.append(pd.DataFrame(rows))
    return pd.concat(parts, ignore_index=True)


class _Explain:
    """The method under test, with its noise seeded alike at every call of a batch."""

    def __init__(self, classifier: Classifier, explainer: Explainer) -> None:
        self.classifier, self.explainer = classifier, explainer
        self.generator = BlockGenerator(explainer.seed)
        self.state = self.generator.get_state()

    def begin(self, block: int) -> None:
        """Go on to the next batch, of ``block``; each call leaves the generator where the batch's own maps did."""
        self.state = self.generator.at(block).get_state()

    def __call__(self, images: Tensor, targets: Tensor, model: nn.Module | None = None) -> Tensor:
        self.generator.set_state(self.state)
        explained = self.classifier if model is None else model
        maps = self.explainer.method(
            explained, images, targets, generator=self.generator, **self.explainer.parameters
        )
        return maps.detach()


class _Batch(NamedTuple):
    """Images that are scored together: their block, where they lie, and their pixels and targets on the device."""

    block: int
    part: slice
    pixels: Tensor
    targets: Tensor


def _batches(
    classifier: Classifier, images: Any, targets: np.ndarray, batch_size: int, offset: int, what: str
) -> Iterator[_Batch]:
    parts = list(batches(len(images), batch_size, offset=offset, even=True))
    check_targets(targets, len(images), classifier.classes)
    for number in reported(len(parts), 1, f"batches of images: {what}"):
        block, part = parts[number]
        pixels = pixels_of(images[part], classifier.device)
        yield _Batch(block, part, pixels, torch.tensor(targets[part], device=classifier.device))


def _metric_arguments(
    function: Callable[..., Any],
    parameters: Mapping[str, Any],
    inputs: MetricInputs,
    part: slice,
    classifier: Classifier,
) -> dict[str, Any]:
    """Return the parameters that ``function`` declares, and what it takes beside them."""
    declared = inspect.signature(function).parameters
    any_name = any(parameter.kind is parameter.VAR_KEYWORD for parameter in declared.values())

    def cut(values: Any) -> Any:
        if isinstance(values, Mapping):
            return {key: cut(value) for key, value in values.items()}
        return torch.tensor(np.asarray(values[part]), device=classifier.device)

    found = {key: value for key, value in parameters.items() if any_name or key in declared}
    whole = {"mean": classifier.mean.flatten(), **inputs.whole}
    found |= {key: value for key, value in whole.items() if key in declared}
    return found | {key: cut(values) for key, values in inputs.sliced.items() if key in declared}


def _on_cpu(tensors: Mapping[K, Tensor]) -> dict[K, Tensor]:
    return {key: values.detach().cpu() for key, values in tensors.items()}


def _check_maps(maps: Tensor, pixels: Tensor, count: int, images: int) -> None:
    fits = maps.ndim == 4 and maps.shape[1] in (1, pixels.shape[1]) and maps.shape[2:] == pixels.shape[2:]
    if not fits or count != images:
        expected = f"{images} of [{pixels.shape[1]} or 1, {pixels.shape[2]}, {pixels.shape[3]}]"
        raise ValueError(f"maps: found {count} of {list(maps.shape[1:])}, expected {expected}")


def _check_scores(metric: str, found: Scored, names: Sequence[str], images: int) -> None:
    expected = f"expected a floating-point score for each of {images} images"
    if not found.scores:
        raise ValueError(f"{metric}: returned no scores, {expected}")
    for key, values in found.scores.items():
        if key[0] not in names:
            raise ValueError(f"{metric}: returned a score {key[0]!r}, expected {', '.join(names)}")
        is_tensor = isinstance(values, Tensor)
        if not is_tensor or values.shape != (images,) or not values.is_floating_point():
            returned = describe(values) if is_tensor else type(values).__name__
            raise ValueError(f"{metric}: returned {returned} as {' '.join(key).strip()}, {expected}")
        if bool(values.isinf().any()):
            count = f"{int(values.isinf().sum())} of {images} scores"
            raise ValueError(
                f"{metric}: returned infinity in {count} as {' '.join(key).strip()}, expected NaN for none"
            )
