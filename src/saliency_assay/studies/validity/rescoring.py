"""Scores of one metric for degraded maps, changed models and changed images."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from saliency_assay.methods.cost import counted_rows
from saliency_assay.methods.engine import attribute, pixels_of
from saliency_assay.metrics import engine
from saliency_assay.models.classifier import Classifier, is_predicted
from saliency_assay.models.inference import evaluating, exact_float32
from saliency_assay.runtime.provenance import seed_of
from saliency_assay.studies.validity.degrade import Degraded, degrade
from saliency_assay.studies.validity.perturb import perturbed_images, perturbed_model

if TYPE_CHECKING:
    import pandas as pd

ORIGINAL, MODEL, INPUT = "original", "model", "input"
"""Values of the column ``test``, in addition to the names of degradations."""


@dataclass(frozen=True)
class Rescoring:
    """A metric and the method whose maps it scores, with all their arguments except the model and the images."""

    function: Callable[..., Any]
    parameters: Mapping[str, Any]
    names: Sequence[str]
    """Registered names of its scores."""
    responses: Callable[..., Mapping[str, Tensor]] | None
    """Function of its model responses, if it takes any."""
    response_parameters: Mapping[str, Any]
    seed: int
    explainer: engine.Explainer
    takes_method: bool
    """True if the metric itself computes maps."""
    inputs: engine.MetricInputs
    batch_size: int
    entry: str
    """Name of the metric in the configuration."""

    def maps(self, classifier: Classifier, images: Any, targets: np.ndarray) -> np.ndarray:
        """Return the method's maps, float32 ``[N, C or 1, H, W]``."""
        blocks = attribute(
            self.explainer.method,
            self.explainer.parameters,
            classifier,
            images,
            targets,
            seed=self.explainer.seed,
            batch_size=self.batch_size,
        )
        return np.concatenate([block["map"] for block in blocks])

    def scores(
        self, classifier: Classifier, images: Any, targets: np.ndarray, maps: np.ndarray, **columns: Any
    ) -> "pd.DataFrame":
        """Return ``image`` (its position), ``metric``, ``variant``, ``score``, ``passes`` per image and ``columns``."""
        finetuned = self.inputs.whole.get("finetuned_model")
        with ExitStack() as stack:
            evaluated = [model for model in (classifier, finetuned) if model is not None]
            rows = [stack.enter_context(counted_rows(model)) for model in evaluated]
            scored = engine.score(
                self.function,
                self.parameters,
                classifier,
                images,
                targets,
                maps,
                names=self.names,
                seed=self.seed,
                batch_size=self.batch_size,
                inputs=replace(self.inputs, explainer=self.explainer if self.takes_method else None),
            )
            table = engine.table_of(list(scored), np.arange(len(images)), self.entry)
        return table.assign(passes=sum(map(sum, rows)) / len(images), **columns)

    def with_responses(self, classifier: Classifier, images: Any, targets: np.ndarray) -> "Rescoring":
        """Return the metric with its model responses, if it has any, for this model and these images."""
        if not self.responses:
            return self
        blocks = list(
            engine.model_responses(
                self.responses,
                self.response_parameters,
                classifier,
                images,
                targets,
                seed=self.seed,
                batch_size=self.batch_size,
            )
        )
        responses = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
        sliced = {**self.inputs.sliced, "responses": responses}
        return replace(self, inputs=replace(self.inputs, sliced=sliced))

    def of_degraded(self, degradation: str, level: float, seed: int) -> "Rescoring":
        """Return the metric with the method whose maps are degraded."""
        method = Degraded(self.explainer.method, degradation, level, seed)
        return replace(self, explainer=replace(self.explainer, method=method))


def rescored(
    rescoring: Rescoring,
    classifier: Classifier,
    images: np.ndarray,
    targets: np.ndarray,
    *,
    degradations: Sequence[str],
    levels: int,
    iterations: int,
    perturbations: int,
    model_noise: Sequence[float],
    input_noise: Sequence[float],
    seed: int,
) -> Iterator["pd.DataFrame"]:
    """Yield the scores of the original maps, and then of every degradation, changed model and changed image.

    Columns in addition to ``Rescoring.scores``: ``test``: ``original``, a degradation, ``model`` or ``input``;
    ``level``: of the degradation in (0, 1], or the size of the change; ``sample``: number of the change, of
    ``iterations`` × ``perturbations``; ``kept``: True if the model's prediction is the same as without the change.

    A changed model is explained and scored in place of the original one. A changed image is scored with the map of the
    original image, as in the authors' code: a map of the changed image would explain another question. All methods and
    metrics have the same changes, which depend only on ``seed``.

    Args:
        rescoring: the metric and the method.
        classifier: the original model.
        images: uint8, or float32 in [0, 1], ``[N, C, H, W]``.
        targets: explained classes, int64 ``[N]``.
        degradations: names of degradations (``degrade``).
        levels: degraded maps of each kind.
        iterations: repetitions of the tests of changed models and images.
        perturbations: changes of each repetition.
        model_noise: small and large noise, see ``perturbed_model``.
        input_noise: small and large noise, see ``perturbed_images``.
        seed: seed of all degradations and changes.
    """
    maps = rescoring.maps(classifier, images, targets)
    none = {"level": 0.0, "sample": 0, "kept": True}
    of_original = rescoring.with_responses(classifier, images, targets)
    yield of_original.scores(classifier, images, targets, maps, test=ORIGINAL, **none)
    order_seed = seed_of(seed, "degrade")
    for degradation in degradations:
        for number in range(1, levels + 1):
            level = number / levels
            degraded = degrade(torch.from_numpy(maps), degradation, level, seed=order_seed).numpy()
            yield of_original.of_degraded(degradation, level, order_seed).scores(
                classifier, images, targets, degraded, test=degradation, level=level, sample=0, kept=True
            )
    pixels = pixels_of(images, torch.device("cpu"))
    predicted = _predicted(classifier, images, targets, rescoring.batch_size)
    for sample in range(iterations * perturbations):
        for noise in model_noise:
            generator = torch.Generator().manual_seed(seed_of(seed, MODEL, str(noise), str(sample)))
            changed = perturbed_model(classifier, noise, generator)
            kept = _predicted(changed, images, targets, rescoring.batch_size) == predicted
            changed_maps = rescoring.maps(changed, images, targets)
            table = rescoring.with_responses(changed, images, targets).scores(
                changed, images, targets, changed_maps, test=MODEL, level=noise, sample=sample
            )
            yield table.assign(kept=kept[table["image"]])
        for noise in input_noise:
            generator = torch.Generator().manual_seed(seed_of(seed, INPUT, str(noise), str(sample)))
            changed_images = perturbed_images(pixels, noise, generator).numpy()
            kept = _predicted(classifier, changed_images, targets, rescoring.batch_size) == predicted
            table = rescoring.with_responses(classifier, changed_images, targets).scores(
                classifier, changed_images, targets, maps, test=INPUT, level=noise, sample=sample
            )
            yield table.assign(kept=kept[table["image"]])


def _predicted(
    classifier: Classifier, images: np.ndarray, targets: np.ndarray, batch_size: int
) -> np.ndarray:
    """Return the predicted class of each image or, with several labels, whether its target is predicted, ``[N]``."""
    predicted = []
    for start in range(0, len(images), batch_size):
        pixels = pixels_of(images[start : start + batch_size], classifier.device)
        with torch.no_grad(), evaluating(classifier), exact_float32():
            logits = classifier(pixels)
        if classifier.multi_label:
            own = torch.from_numpy(targets[start : start + batch_size]).to(logits.device)
            predicted.append(is_predicted(classifier, logits, own).cpu().numpy())
        else:
            predicted.append(logits.argmax(1).cpu().numpy())
    return np.concatenate(predicted)
