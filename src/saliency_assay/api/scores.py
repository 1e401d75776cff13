"""Scores of saliency maps in memory by a registered or custom metric."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from torch import nn

from saliency_assay.api.choices import (
    Choice,
    Explaining,
    bind,
    check_mean,
    check_outputs,
    resolve_choice,
    takes_of,
)
from saliency_assay.api.inputs import Arrays, images_of, integer_of, maps_of, mask_of, mean_of, targets_of
from saliency_assay.api.networks import Model, check_differentiable, classifier_of, normalizes, wrap_like
from saliency_assay.methods.engine import check_targets
from saliency_assay.metrics import METRICS, Metric
from saliency_assay.metrics.engine import Explainer, MetricInputs, model_responses, table_of
from saliency_assay.metrics.engine import score as score_batches
from saliency_assay.metrics.scored import Scored
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.layout import in_layout_of
from saliency_assay.models.state import changed, copy_of, tensors_of
from saliency_assay.registry.labels import Labels, label_of, score_labels
from saliency_assay.registry.records import resolve
from saliency_assay.registry.signatures import OFFERED, declared

if TYPE_CHECKING:
    import pandas as pd

Array = npt.NDArray[np.float64]
SINGLE = tuple(record for record in METRICS if record.scores_single_maps)
"""Metrics that score single maps."""


class Scores(dict[str, Array]):
    """Scores of all maps: float64 ``[N]`` by name of the score and its variant, such as ``aopc_morf L=20``.

    A score is NaN, never 0, if the metric is undefined, such as for a map that is constant or not finite.
    ``pandas.DataFrame(scores)`` has one row for each image. ``assess`` and ``plot.curves`` take the scores of several
    methods.
    """

    def __init__(self, choice: Choice[Metric], blocks: list[Scored]) -> None:
        record, keys = choice.record, list(blocks[0].scores)
        super().__init__(
            {
                " ".join(key).strip(): np.concatenate(
                    [block.scores[key].double().numpy() for block in blocks]
                )
                for key in keys
            }
        )
        records = {score.name: score for score in record.scores} if record else {}
        score_records = {" ".join(key).strip(): records[key[0]] for key in keys if key[0] in records}
        self.metric = choice.name
        """Name of the metric."""
        self.parameters = choice.parameters
        """Parameters of the metric; of a custom metric only those that were passed."""
        labels = _labels_of(choice)
        self.labels = {
            " ".join(key).strip(): labels.score(key[0], f"{choice.name} {key[1]}".strip()) for key in keys
        }
        """Label of each score for figures and tables, such as ``AOPC (MoRF, L = 20)``."""
        self.reduction = record.reduction if record else ""
        """Reduction of maps (``metrics.reductions``); empty if the metric takes raw maps or has its own reduction."""
        self.directions = {key: score.direction for key, score in score_records.items()}
        """For each score ``higher`` or ``lower``, which is better, or ``target X``; only of registered metrics."""
        self.ranges = {key: score.range for key, score in score_records.items()}
        """For each score its lowest and highest possible value with default parameters; only of registered metrics."""
        self.curves = {
            name: np.concatenate([block.curves[name].numpy() for block in blocks])
            for name in blocks[0].curves
        }
        """Curves from which scores were computed, ``[N, …]`` by name, if the metric has any."""
        self._blocks = blocks

    def table(self) -> "pd.DataFrame":
        """Return rows of ``image``, ``metric`` (the score), ``variant`` and ``score``, as in the workflow's tables."""
        images = np.arange(len(next(iter(self.values()))))
        return table_of(self._blocks, images, self.metric)


def score(
    metric: str | Callable[..., Any],
    model: Model,
    images: Arrays,
    targets: Any,
    maps: Arrays,
    *,
    seed: int = 0,
    batch_size: int = 64,
    mask: Arrays | None = None,
    mean: Any = None,
    method: Explaining | None = None,
    method_seed: int | None = None,
    randomized_model: nn.Module | None = None,
    finetuned_model: nn.Module | None = None,
    **parameters: Any,
) -> Scores:
    """Compute the scores of all maps under one metric.

    Args:
        metric: a registered name (``docs/metrics.md``) or an alias, ``package.module:name``, or a function ``(predict,
            images, targets, maps, *, generator, **parameters) -> scores [N]``, which may lack ``generator``.
        model: a network that takes images in [0, 1] (``wrap`` turns a network for normalized images into one); or any
            function ``[B, C, H, W] -> [B, K]`` if the metric needs no gradients and no weights.
        images: ``[N, C, H, W]``, uint8 or floating point in [0, 1].
        targets: the explained class of each image, ``[N]``, or of all images.
        maps: ``[N, C or 1, H, W]`` or ``[N, H, W]``, signed as the method returns them; scored as float32.
        seed: seed of the metric's noise, which is the same for any ``batch_size``.
        batch_size: number of images that are scored together.
        mask: for metrics that use the object's pixels, bool ``[N, H, W]``.
        mean: the mean of the data set, ``[C]``, for ``fill: mean``; by default the classifier's.
        method: for metrics that recompute maps, the method of ``maps``: a name, a function, or a mapping with its
            ``method`` and parameters.
        method_seed: the seed of ``maps``; by default ``seed``.
        randomized_model: for metrics that compare the model with a randomized one, the network with random weights.
        finetuned_model: for metrics that evaluate a fine-tuned model, the network after the fine-tuning.
        parameters: parameters of the metric; the others have their registered defaults.

    Raises:
        ValueError: the metric or a parameter is unknown, a value is not valid, arrays have another shape, type or
            range, or an optional input is missing although the metric needs it, or passed although it does not.

    >>> import numpy as np
    >>> import saliency_assay
    >>> weights = np.array([0.0, 1.0, 2.0, 3.0], dtype=np.float32)
    >>> def predict(images):
    ...     logit = images.flatten(1).numpy() @ weights
    ...     return np.stack([logit, -logit], axis=1)
    >>> images = np.full((2, 1, 2, 2), 0.5)
    >>> maps = np.stack([weights, weights[::-1]]).reshape(2, 2, 2)
    >>> scores = saliency_assay.score("deletion", predict, images, [0, 0], maps, steps="exact", output="logit")
    >>> scores["deletion"].tolist()  # the first map ranks pixels by weight, the second in reverse
    [0.875, 2.125]
    >>> scores.directions, scores.reduction
    ({'deletion': 'lower'}, 'sum')
    """
    pixels = images_of(images)
    classes, scored_maps = targets_of(targets, len(pixels)), maps_of(maps, pixels)
    classifier = classifier_of(model, pixels)
    bound = bind_metric(
        metric,
        classifier,
        normalized=normalizes(model),
        mean=mean,
        mask=mask,
        method=method,
        randomized_model=randomized_model,
        finetuned_model=finetuned_model,
        **parameters,
    )
    if method_seed is not None and "explain" not in bound.takes:
        raise ValueError(f"method_seed: {bound.choice.name} computes no maps")
    check_targets(classes, len(pixels), classifier.classes)
    image_inputs: dict[str, Any] = {} if mask is None else {"mask": mask_of(mask, pixels)}
    explainer = None
    if method is not None:
        bound_method = bind(method, classifier, has_mean=normalizes(model))
        explained_seed = integer_of(seed if method_seed is None else method_seed, "method_seed")
        explainer = Explainer(bound_method.function, bound_method.arguments, explained_seed)
    batching: dict[str, Any] = {
        "seed": integer_of(seed, "seed"),
        "batch_size": integer_of(batch_size, "batch_size"),
    }
    if bound.has_responses:
        image_inputs["responses"] = bound.responses(classifier, pixels, classes, image_inputs, **batching)
    blocks = bound.score(classifier, pixels, classes, scored_maps, image_inputs, explainer, **batching)
    return Scores(bound.choice, list(blocks))


@dataclass(frozen=True)
class BoundMetric:
    """A metric with its parameters and the inputs that all images share."""

    choice: Choice[Metric]
    takes: tuple[str, ...]
    """Inputs in addition to its parameters that it takes."""
    shared_inputs: Mapping[str, Any]

    @property
    def has_responses(self) -> bool:
        """True if it needs model responses, which are the same for the maps of all methods."""
        return self.choice.record is not None and "responses" in self.takes

    @property
    def names(self) -> list[str]:
        """Names of its scores."""
        record = self.choice.record
        return [score_record.name for score_record in record.scores] if record else [self.choice.name]

    def responses(
        self,
        classifier: Classifier,
        pixels: Any,
        classes: npt.NDArray[np.int64],
        image_inputs: Mapping[str, Any],
        **batching: Any,
    ) -> dict[str, npt.NDArray[Any]]:
        """Return its model responses, for the image input ``responses``; see ``engine.model_responses``."""
        assert self.choice.record
        inputs = MetricInputs(image_inputs, self.shared_inputs)
        function = resolve(self.choice.record.responses)
        blocks = list(
            model_responses(
                function, self.choice.parameters, classifier, pixels, classes, inputs=inputs, **batching
            )
        )
        return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}

    def score(
        self,
        classifier: Classifier,
        pixels: Any,
        classes: npt.NDArray[np.int64],
        maps: Any,
        image_inputs: Mapping[str, Any],
        explainer: Explainer | None,
        **batching: Any,
    ) -> Iterator[Scored]:
        """Yield the scores of maps in batches; see ``engine.score``."""
        inputs = MetricInputs(image_inputs, self.shared_inputs, explainer)
        return score_batches(
            self.choice.function,
            self.choice.parameters,
            classifier,
            pixels,
            classes,
            maps,
            names=self.names,
            inputs=inputs,
            **batching,
        )


def bind_metric(
    metric: str | Callable[..., Any],
    classifier: Classifier,
    *,
    normalized: bool,
    mean: Any = None,
    mask: object = None,
    method: object = None,
    randomized_model: nn.Module | None = None,
    finetuned_model: nn.Module | None = None,
    **parameters: Any,
) -> BoundMetric:
    """Return a metric with its parameters and shared inputs, checked against its signature and the classifier.

    Args:
        metric: a registered name, ``package.module:name``, or a function.
        classifier: the explained model.
        normalized: True if the classifier has the mean of its training images.
        mean: the mean of the data set, ``[C]``.
        mask: not None if images have masks.
        method: not None if the method of the maps is known.
        randomized_model: the network with random weights.
        finetuned_model: the network after fine-tuning.
        parameters: parameters of the metric.

    Raises:
        ValueError: see ``score``.
    """
    optional_inputs = {
        "mean": mean,
        "mask": mask,
        "explain": method,
        "randomized_model": randomized_model,
        "finetuned_model": finetuned_model,
    }
    choice = resolve_choice(
        "metric",
        metric,
        SINGLE,
        parameters,
        positional=("predict", "images", "targets", "maps"),
        offered=OFFERED,
    )
    takes = takes_of(choice, OFFERED)
    if choice.record and "responses" not in takes:
        choice = _without_baseline(choice, choice.record, parameters)
    defaults = {} if choice.record else _defaults(choice.function)
    required = {
        key: value for key, value in optional_inputs.items() if value is not None or key not in defaults
    }
    _check_optional_inputs(choice.name, takes, required)
    check_outputs(choice, classifier)
    channels = len(classifier.mean.flatten())
    shared_inputs: dict[str, Any] = {}
    if "mean" in takes and mean is None:
        is_unknown = choice.record is None and not normalized
        if is_unknown and "mean" in defaults:
            shared_inputs["mean"] = defaults["mean"]
        elif is_unknown:
            raise ValueError(f"{choice.name}: mean: missing, expected the data set's mean [{channels}]")
        check_mean(choice, normalized, "mean= or saliency_assay.wrap")
    if mean is not None:
        shared_inputs["mean"] = mean_of(mean, channels).to(classifier.device)
    if randomized_model is not None:
        check_differentiable(choice.name, classifier)
    for key in ("randomized_model", "finetuned_model"):
        if optional_inputs[key] is not None:
            shared_inputs[key] = _other_classifier(key, optional_inputs[key], classifier)
    return BoundMetric(choice, takes, shared_inputs)


def _labels_of(choice: Choice[Metric]) -> Labels:
    """Return the labels of a metric's scores, as for an entry of the configuration without a label."""
    record, name = choice.record, choice.name
    label = label_of(name, None, record)
    scores = {score.name: score.label for score in record.scores} if record else {name: label}
    sub_variants = dict(record.sub_variants) if record else {}
    return Labels(
        scores=scores,
        entry_scores={name: score_labels(scores, label, label)},
        sub_variants={name: sub_variants},
    )


NEEDED = {
    "mask": ("mask", "the object's pixels, bool [N, H, W]"),
    "explain": ("method", "the method that computed the maps"),
    "randomized_model": ("randomized_model", "saliency_assay.randomize(model)"),
    "finetuned_model": ("finetuned_model", "saliency_assay.finetune(model, …)"),
}
"""For inputs that metrics require, the argument of ``score`` and its description."""


def _defaults(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the default values of the function's arguments that have one."""
    declared_arguments = signature(function).parameters.values()
    return {one.name: one.default for one in declared_arguments if one.default is not one.empty}


def _without_baseline(choice: Choice[Metric], record: Metric, passed: Mapping[str, Any]) -> Choice[Metric]:
    """Return the metric without the parameters of its baseline, which is the same for all maps and not computed here.

    Raises:
        ValueError: one of them is among the ``passed`` parameters.
    """
    own = declared(record.function)
    if ignored := sorted(passed.keys() - own):
        raise ValueError(
            f"{choice.name}: {ignored[0]}: only for the workflow; here, score the maps of random"
        )
    return replace(
        choice, parameters={key: choice.parameters[key] for key in choice.parameters if key in own}
    )


def _check_optional_inputs(name: str, takes: tuple[str, ...], inputs: Mapping[str, Any]) -> None:
    """Check that the metric has all the inputs that it takes, and no input that it would ignore.

    Raises:
        ValueError: an input is missing, or not taken by the metric.
    """
    for key, value in inputs.items():
        argument, description = NEEDED.get(key, (key, ""))
        if value is not None and key not in takes:
            valid = ", ".join(record.name for record in SINGLE if key in record.takes)
            raise ValueError(f"{argument}: {name} takes none; valid: {valid}")
        if value is None and key in takes and description:
            raise ValueError(f"{name}: {argument}: missing, expected {description}")


def _other_classifier(name: str, model: object, classifier: Classifier) -> Classifier:
    """Return a copy of the network ``name`` with the normalization, CAM layer, output and device of ``classifier``.

    See ``layout.like``.

    Raises:
        ValueError: it is no network, not that of ``classifier``, or has the same weights.
    """
    if not isinstance(model, nn.Module):
        raise ValueError(f"{name}: found {type(model).__name__}, expected a torch.nn.Module")
    copy = copy_of(model)
    try:
        like = copy if isinstance(copy, Classifier) else wrap_like(copy, classifier)
    except ValueError as error:  # such as a CAM layer that it does not have
        raise ValueError(f"{name}: expected the network of the model with other weights: {error}") from None
    found, expected = (
        {key: each.shape for key, each in one.named_parameters()} for one in (like, classifier)
    )
    if found != expected and expected:
        raise ValueError(
            f"{name}: found a network with other layers, expected the network of the model with other weights: "
            f"{NEEDED[name][1]}"
        )
    other = in_layout_of(like, classifier)
    if list(classifier.parameters()) and not changed(tensors_of(classifier), tensors_of(other)):
        raise ValueError(f"{name}: found the weights of the model, expected others: {NEEDED[name][1]}")
    return other
