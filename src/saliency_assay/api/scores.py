"""Scores of one's own maps by a registered metric or by one's own."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from torch import nn

from saliency_assay.api.choices import Explaining, bind, check_mean, choose, takes_of
from saliency_assay.api.inputs import Arrays, images_of, maps_of, mask_of, mean_of, targets_of
from saliency_assay.api.networks import Model, check_differentiable, classifier_of, normalises, wrap
from saliency_assay.methods.engine import check_targets
from saliency_assay.metrics import METRICS, Metric
from saliency_assay.metrics.engine import Explainer, MetricInputs, model_responses, table_of
from saliency_assay.metrics.engine import score as score_batches
from saliency_assay.metrics.scored import Scored
from saliency_assay.models.classifier import Classifier
from saliency_assay.registry.records import resolve
from saliency_assay.registry.signatures import OFFERED

Array = npt.NDArray[np.float64]
SINGLE = tuple(record for record in METRICS if record.judges_single_maps)
"""Metrics that judge maps one by one."""


class Scores(dict[str, Array]):
    """Return the scores of each map: float64 ``[N]`` by the score's name and its variant, ``aopc_morf L=20``.

    NaN where the metric is not defined, such as for a map that is constant or not finite: never 0 in its place.
    ``pandas.DataFrame(scores)`` has a row for each image.
    """

    def __init__(self, metric: str, record: Metric | None, blocks: list[Scored]) -> None:
        keys = list(blocks[0].scores)
        super().__init__(
            {
                " ".join(key).strip(): np.concatenate(
                    [block.scores[key].double().numpy() for block in blocks]
                )
                for key in keys
            }
        )
        known = {score.name: score for score in record.scores} if record else {}
        of_key = {" ".join(key).strip(): known[key[0]] for key in keys if key[0] in known}
        self.metric = metric
        """The metric's name."""
        self.reduction = record.reduction if record else ""
        """By which it reads maps (``metrics.reductions``); empty where it judges raw maps, or decides itself."""
        self.directions = {key: score.direction for key, score in of_key.items()}
        """``higher`` or ``lower``, which is better, or ``target X``, the ideal value; of registered metrics."""
        self.ranges = {key: score.range for key, score in of_key.items()}
        """Least and greatest possible score, with default parameters; of registered metrics."""
        self.curves = {
            name: np.concatenate([block.curves[name].numpy() for block in blocks])
            for name in blocks[0].curves
        }
        """Curves behind the scores, ``[N, …]`` by name, where the metric has any."""
        self._blocks = blocks

    def table(self) -> pd.DataFrame:
        """Rows of ``image``, ``metric`` (the score), ``variant`` and ``score``, as in the workflow's score tables."""
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
    **parameters: Any,
) -> Scores:
    """Return the scores of all maps under one metric.

    Args:
        metric: a registered name (``docs/metrics.md``), ``package.module:name``, or a function ``(predict, images,
            targets, maps, *, generator, **parameters) -> scores [N]``.
        model: a network that takes images in [0, 1], as ``wrap`` makes one of a network that takes normalised
            ones; or any function ``[B, C, H, W] -> [B, K]`` where the metric needs no gradients and no weights.
        images: ``[N, C, H, W]``, uint8 or floating point in [0, 1].
        targets: the class of each that the maps explain, ``[N]``.
        maps: ``[N, C or 1, H, W]`` or ``[N, H, W]``, signed as the method gives them; scored as float32.
        seed: of the metric's own noise. The same for any ``batch_size``.
        batch_size: images that are scored together.
        mask: for metrics of the object's pixels, bool ``[N, H, W]``.
        mean: the data set's, ``[C]``, for ``fill: mean``; by default the classifier's.
        method: for metrics that draw maps anew, what drew ``maps``: a name, a function, or a mapping with its
            ``method`` and parameters.
        method_seed: by which ``maps`` were drawn; by default ``seed``.
        randomized_model: for metrics that compare the model with one of new weights, the same network with such.
        parameters: of the metric; the others have their registered defaults.

    Raises:
        ValueError: an unknown metric or parameter, a value that is not valid, arrays of other shapes, types or ranges,
            something that the metric lacks or does not take.

    >>> import numpy as np
    >>> import saliency_assay
    >>> weights = np.array([0.0, 1.0, 2.0, 3.0], dtype=np.float32)
    >>> def predict(images):
    ...     logit = images.flatten(1).numpy() @ weights
    ...     return np.stack([logit, -logit], axis=1)
    >>> images = np.full((2, 1, 2, 2), 0.5)
    >>> maps = np.stack([weights, weights[::-1]]).reshape(2, 2, 2)
    >>> found = saliency_assay.score("deletion", predict, images, [0, 0], maps, steps="exact", output="logit")
    >>> found["deletion"].tolist()  # the first map names the pixels that matter, the second those that do not
    [0.875, 2.125]
    >>> found.directions, found.reduction
    ({'deletion': 'lower'}, 'sum')
    """
    pixels = images_of(images)
    classes, drawn = targets_of(targets, len(pixels)), maps_of(maps, pixels)
    beside = {"mean": mean, "mask": mask, "explain": method, "randomized_model": randomized_model}
    chosen = choose(
        "metric",
        metric,
        SINGLE,
        parameters,
        positional=("predict", "images", "targets", "maps"),
        offered=OFFERED,
    )
    takes = takes_of(chosen, OFFERED)
    _check_beside(chosen.name, takes, beside, method_seed)
    classifier = classifier_of(model, pixels)
    check_targets(classes, len(pixels), classifier.classes)
    if "mean" in takes and mean is None:
        if chosen.record is None and not normalises(model):
            raise ValueError(
                f"{chosen.name}: mean: missing, expected the data set's mean [{pixels.shape[1]}]"
            )
        check_mean(chosen, normalises(model), "mean= or saliency_assay.wrap")
    whole: dict[str, Any] = {}
    if mean is not None:
        whole["mean"] = mean_of(mean, pixels.shape[1]).to(classifier.device)
    if randomized_model is not None:
        check_differentiable(chosen.name, classifier)
        whole["randomized_model"] = _randomized(randomized_model, classifier)
    sliced: dict[str, Any] = {} if mask is None else {"mask": mask_of(mask, pixels)}
    explainer = None
    if method is not None:
        bound = bind(method, classifier, knows_mean=normalises(model))
        explainer = Explainer(bound.function, bound.arguments, seed if method_seed is None else method_seed)
    inputs = MetricInputs(sliced, whole, explainer)
    asked: dict[str, Any] = {"seed": seed, "batch_size": batch_size}
    scored = chosen.parameters, classifier, pixels, classes
    if chosen.record and "responses" in takes:
        responses = list(model_responses(resolve(chosen.record.responses), *scored, inputs=inputs, **asked))
        sliced["responses"] = {
            name: np.concatenate([block[name] for block in responses]) for name in responses[0]
        }
    names = [of.name for of in chosen.record.scores] if chosen.record else [chosen.name]
    blocks = list(score_batches(chosen.function, *scored, drawn, names=names, inputs=inputs, **asked))
    return Scores(chosen.name, chosen.record, blocks)


NEEDED = {
    "mask": ("mask", "the object's pixels, bool [N, H, W]"),
    "explain": ("method", "the method that drew the maps"),
    "randomized_model": ("randomized_model", "the same network with new weights"),
}


def _check_beside(
    name: str, takes: tuple[str, ...], beside: Mapping[str, Any], method_seed: int | None
) -> None:
    """Check that the metric has all that it takes, and is given nothing that it would ignore."""
    for key, value in beside.items():
        argument, what = NEEDED.get(key, (key, ""))
        if value is not None and key not in takes:
            takers = ", ".join(record.name for record in SINGLE if key in record.takes)
            raise ValueError(f"{argument}: {name} takes none; valid: {takers}")
        if value is None and key in takes and what:
            raise ValueError(f"{name}: {argument}: missing, expected {what}")
    if method_seed is not None and "explain" not in takes:
        raise ValueError(f"method_seed: {name} draws no maps")


def _randomized(randomized_model: nn.Module, like: Classifier) -> Classifier:
    if not isinstance(randomized_model, nn.Module):
        raise ValueError(
            f"randomized_model: found {type(randomized_model).__name__}, expected a torch.nn.Module"
        )
    copied = deepcopy(randomized_model)
    if not isinstance(copied, Classifier):
        mean, std = (values.flatten().tolist() for values in (like.mean, like.std))
        copied = wrap(copied, classes=like.classes, mean=mean, std=std, cam_layer=like.cam_layer)
    return copied.to(like.device).eval().requires_grad_(False)
