"""Checks of a model's settings, when a workflow is planned and when a model is built; they do not import torch."""

from collections.abc import Sequence

LOGITS = "logits"
OUTPUTS = (LOGITS, "logit", "sigmoid", "softmax")
"""Kinds of output: logits of all classes, the logit or probability of the second of two, or probabilities."""
SMALLEST = 1e-30  # standard deviation; a smaller one would be 0 in float32, or overflow


def normalization(mean: Sequence[float], std: Sequence[float]) -> str:
    """Return why mean and standard deviation are not those of pixels in [0, 1], or an empty string."""
    if len(mean) != len(std):
        return (
            f"found {len(mean)} values of mean and {len(std)} of std, expected one of each for each channel"
        )
    if not all(0 <= value <= 1 for value in mean) or not all(SMALLEST <= value <= 1 for value in std):
        return (
            f"found mean {list(mean)} and std {list(std)}, expected mean in [0, 1] and std in (0, 1], since images are "
            "in [0, 1]; divide both by 255 if they are for pixel levels"
        )
    return ""


def outputs_of(output: str, classes: int, *, multi_label: bool = False) -> int:
    """Return the number of outputs of a network for ``classes`` classes: one of a binary network.

    Raises:
        ValueError: a binary network has other than two classes.
    """
    if multi_label or output not in ("logit", "sigmoid"):
        return classes
    if classes != 2:
        raise ValueError(
            f"output: found {output!r} with {classes} classes, expected two classes; several independent classes need "
            "multi_label: true"
        )
    return 1
