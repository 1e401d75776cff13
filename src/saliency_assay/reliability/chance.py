"""Models that are not shown to be better than chance, so that nothing can be concluded from their maps."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import ndtri
from scipy.stats import beta

from saliency_assay.plotting.text import groups_text
from saliency_assay.reliability.variance import GROUPS, mean_of

CONFIDENCE = 0.95
TAIL = (1 - CONFIDENCE) / 2

Evaluation = Mapping[str, Any]
"""Result of ``training.evaluation.accuracies`` for one set and split; for images in groups with independent counts."""


def chance_level(evaluation: Evaluation) -> float:
    """Return the balanced accuracy of predictions that do not depend on the image: 1 / number of classes with images.

    A constant prediction has exactly this value. For a model with its own classes, of which only some may have images,
    it is 1 / number of its classes, and for a multi-label model 1/2: the accuracy of a random prediction.
    """
    chance: float = evaluation.get("chance", 1 / len(evaluation["counts"]))
    return chance


def balanced_accuracy_interval(evaluation: Evaluation) -> tuple[float, float]:
    """Return a confidence interval in [0, 1] of the balanced accuracy, the mean over classes of their accuracies.

    It combines the exact intervals (Clopper & Pearson, 1934) of the classes by melding (Fay, Proschan & Brittain, 2015,
    *Biometrics* 71): an end is a quantile of the mean of the beta distributions whose quantiles are the ends for the
    single classes. This mean is approximated by the beta distribution of the same mean and variance. The interval
    is wide for classes with few images, and that of a single class is exact. Images in groups count as the number of
    independent images of ``with_independent_counts``.
    """
    counts = evaluation["counts"].values()
    images = np.array([count["images"] for count in counts])
    correct = np.array([count["correct"] for count in counts])
    if GROUPS in evaluation:
        independent = np.array([count["independent"] for count in counts])
        images, correct = independent, independent * correct / images
    return _lower_limit(correct, images), 1 - _lower_limit(images - correct, images)


def with_independent_counts(evaluation: Evaluation, predictions: pd.DataFrame) -> dict[str, Any]:
    """Return an evaluation with its number of groups, and the number of independent images of each class.

    The latter is the smaller one of two numbers, as in Korn & Graubard (1998): that for which independent images would
    give the accuracy of the class the variance that it has with these groups, and that for which they would give it to
    the balanced accuracy, to which images of several classes in one group contribute together.

    Args:
        evaluation: see ``training.evaluation.accuracies``.
        predictions: rows of ``training.evaluation.predict`` for this set and split, with the column ``group``.

    Returns:
        The evaluation with ``groups``, and in each of its ``counts`` ``independent``.
    """
    group = pd.factorize(predictions["group"])[0]
    correct = (predictions["label"] == predictions["predicted"]).to_numpy(dtype=np.float64)
    labels, of_class, sizes = np.unique(predictions["label"], return_inverse=True, return_counts=True)
    accuracy = np.bincount(of_class, correct) / sizes
    # The derivatives of the balanced accuracy with respect to the weights of images.
    influence = mean_of((correct - accuracy[of_class]) / sizes[of_class], {GROUPS: group})
    effect = len(group) / influence.units
    if effect > 1 and influence.variance > 0:
        plain = mean_of((correct - accuracy[of_class]) / sizes[of_class])
        quantile = influence.quantile(TAIL) / float(ndtri(TAIL))
        effect = max(influence.variance / plain.variance * quantile**2, 1.0)
    counts = {}
    for (name, count), place in zip(evaluation["counts"].items(), range(len(labels)), strict=True):
        of_label = of_class == place
        mean = mean_of(correct[of_label], {GROUPS: group[of_label]})
        independent = min(mean.independent_count(TAIL), sizes[place] / effect)
        counts[name] = {**count, "independent": float(independent)}
    return {**evaluation, GROUPS: len(np.unique(group)), "counts": counts}


def _lower_limit(correct: npt.NDArray[Any], images: npt.NDArray[Any]) -> float:
    """Return the lower end of the interval from the numbers of correct and of all images of each class, ``[C]``."""
    # A class without correct images adds 0. For others, mean and variance of Beta(correct, images - correct + 1), whose
    # quantile is the lower end for a single class.
    scored = correct > 0
    if not scored.any():
        return 0.0
    means = (correct / (images + 1))[scored]
    mean, variance = means.mean(), (means * (1 - means) / (images[scored] + 2)).mean() / len(means)
    size = mean * (1 - mean) / variance - 1
    return float(scored.mean() * beta.ppf((1 - CONFIDENCE) / 2, mean * size, (1 - mean) * size))


def count_text(evaluation: Evaluation) -> str:
    """Return text with the number of groups, to follow the number of images; empty if images have no groups."""
    return groups_text([evaluation[GROUPS]] if GROUPS in evaluation else [])


def is_above_chance(evaluation: Evaluation) -> bool:
    """Return True if the interval of the balanced accuracy is above chance, and above that of a constant prediction."""
    classes = len(evaluation["counts"])
    constant = 1 / classes if classes > 1 else 0.0  # of a single class, any prediction is constant
    return balanced_accuracy_interval(evaluation)[0] > max(chance_level(evaluation), constant)


def chance_caution(label: str, evaluations: Sequence[Evaluation]) -> str:
    """Return the sentence on a model that is not shown to be better than chance; empty if it is.

    Args:
        label: label of the model.
        evaluations: accuracy on the test images of the set that the model was trained on, for each training seed. The
            sentence states that of the first seed that is not shown to be better than chance.
    """
    failed = [evaluation for evaluation in evaluations if not is_above_chance(evaluation)]
    if not failed:
        return ""
    low, high = (100 * end for end in balanced_accuracy_interval(failed[0]))
    is_below = high < 100 * chance_level(failed[0])
    hint = " It is below chance: check the order of the classes." if is_below else ""
    seeds = f" for {len(failed)} of {len(evaluations)} training seeds" if len(evaluations) > 1 else ""
    return (
        f"{label} is not shown to be better than chance{seeds} (balanced accuracy"
        f" {100 * failed[0]['balanced_accuracy']:.1f} %, {100 * CONFIDENCE:.0f} % CI {low:.1f} to {high:.1f} %, on"
        f" {failed[0]['images']:,} test images{count_text(failed[0])}; chance {100 * chance_level(failed[0]):.1f} %):"
        f" nothing can be concluded from its maps, so this study cannot be interpreted.{hint}"
    )
