"""Models whose test accuracy is not above chance, so that nothing follows from their maps."""

from collections.abc import Mapping, Sequence
from typing import Any

from scipy.stats import binomtest

from saliency_assay.report.pages.words import CONFIDENCE

Evaluation = Mapping[str, Any]
"""Result of ``training.evaluation.accuracies`` for one set and split."""


def accuracy_interval(evaluation: Evaluation) -> tuple[float, float]:
    """Return the exact confidence interval (Clopper & Pearson, 1934) of an accuracy in [0, 1]."""
    images = evaluation["images"]
    interval = binomtest(round(images * evaluation["accuracy"]), images).proportion_ci(CONFIDENCE)
    return float(interval.low), float(interval.high)


def is_above_chance(evaluation: Evaluation) -> bool:
    """Return True if the interval of the accuracy is above the share of the most frequent class.

    A classifier that predicts this class for every image has this accuracy.
    """
    return bool(accuracy_interval(evaluation)[0] > evaluation["largest_class"])


def chance_caution(label: str, evaluations: Sequence[Evaluation]) -> str:
    """Return the sentence on a model that is not better than chance; empty if it is.

    Args:
        label: label of the model.
        evaluations: accuracy on the test images of the set that the model was trained on, for each training seed. The
            sentence states that of the first seed that is not better than chance.
    """
    failed = [evaluation for evaluation in evaluations if not is_above_chance(evaluation)]
    if not failed:
        return ""
    low, high = (100 * end for end in accuracy_interval(failed[0]))
    accuracy, chance = (100 * failed[0][name] for name in ("accuracy", "largest_class"))
    seeds = f" for {len(failed)} of {len(evaluations)} training seeds" if len(evaluations) > 1 else ""
    return (
        f"{label} is not better than chance{seeds} (accuracy {accuracy:.1f} % [{low:.1f}, {high:.1f}] on"
        f" {failed[0]['images']:,} test images, most frequent class {chance:.1f} %): its maps explain nothing, so this"
        " study cannot be interpreted."
    )
