"""Models that are not shown to be better than chance, so that nothing can be concluded from their maps."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import beta

CONFIDENCE = 0.95

Evaluation = Mapping[str, Any]
"""Result of ``training.evaluation.accuracies`` for one set and split."""


def chance_level(evaluation: Evaluation) -> float:
    """Return the balanced accuracy of predictions that do not depend on the image: 1 / number of classes with images.

    A constant prediction has exactly this value.
    """
    return 1 / len(evaluation["counts"])


def balanced_accuracy_interval(evaluation: Evaluation) -> tuple[float, float]:
    """Return a confidence interval in [0, 1] of the balanced accuracy, the mean over classes of their accuracies.

    It combines the exact intervals (Clopper & Pearson, 1934) of the classes by melding (Fay, Proschan & Brittain, 2015,
    *Biometrics* 71): an end is a quantile of the mean of the beta distributions whose quantiles are the ends for the
    single classes. This mean is approximated by the beta distribution of the same mean and variance. The interval
    is wide for classes with few images, and that of a single class is exact.
    """
    counts = evaluation["counts"].values()
    images = np.array([count["images"] for count in counts])
    correct = np.array([count["correct"] for count in counts])
    return _lower_limit(correct, images), 1 - _lower_limit(images - correct, images)


def _lower_limit(correct: npt.NDArray[np.int64], images: npt.NDArray[np.int64]) -> float:
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


def is_above_chance(evaluation: Evaluation) -> bool:
    """Return True if the interval of the balanced accuracy is above chance."""
    return balanced_accuracy_interval(evaluation)[0] > chance_level(evaluation)


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
    seeds = f" for {len(failed)} of {len(evaluations)} training seeds" if len(evaluations) > 1 else ""
    return (
        f"{label} is not shown to be better than chance{seeds} (balanced accuracy"
        f" {100 * failed[0]['balanced_accuracy']:.1f} %, {100 * CONFIDENCE:.0f} % CI {low:.1f} to {high:.1f} %, on"
        f" {failed[0]['images']:,} test images; chance {100 * chance_level(failed[0]):.1f} %): nothing can be concluded"
        " from its maps, so this study cannot be interpreted."
    )
