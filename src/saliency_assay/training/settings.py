"""Training settings of the configuration; free of torch, so that the Snakefile can check them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from saliency_assay.registry.records import Parameter, with_defaults

PARAMETERS: Mapping[str, Parameter] = {
    "epochs": Parameter(10, minimum=0),
    "batch_size": Parameter(128, minimum=1),
    "learning_rate": Parameter(0.1, minimum=0),
    "momentum": Parameter(0.9, minimum=0, maximum=1),
    "weight_decay": Parameter(5e-4, minimum=0),
    "warmup": Parameter(0.1, minimum=0, maximum=1),
    "decay": Parameter("linear", choices=("linear", "cosine")),
    "label_smoothing": Parameter(0.0, minimum=0, maximum=1),
    "augment_flip": Parameter(False),
    "augment_shift": Parameter(0, minimum=0),
    "precision": Parameter("auto", choices=("auto", "float32", "bf16")),
    "evaluate": Parameter("epoch", choices=("epoch", "end")),
    "validation_share": Parameter(0.0, minimum=0, maximum=0.5),
    "patience": Parameter(0, minimum=0),
}


@dataclass(frozen=True)
class Training:
    """Hyperparameters: SGD with Nesterov momentum, the last incomplete batch of an epoch left out.

    ``epochs`` 0 leaves the initial weights as they are.
    ``learning_rate`` is reached after a linear rise over the share ``warmup`` of all steps and then falls to 0,
    linearly or as half a cosine. ``weight_decay`` spares biases and BatchNorm. ``augment_flip`` mirrors every
    second image left to right; ``augment_shift`` moves each by up to that many pixels either way, the border
    mirrored. ``precision`` auto is bf16 autocast on a GPU that computes with it and float32 elsewhere. ``evaluate``
    says after which epochs validation and test accuracy are taken for the curve: each, or the last. Test accuracy
    never decides anything.

    ``validation_share`` of the training images are left out of it (``data.splits.with_validation``). With a
    ``patience`` above 0 validation accuracy is taken after each epoch whatever ``evaluate`` says; a training ends
    after so many epochs without a higher one, and the weights of the first epoch that had the highest are kept. The
    learning rate falls as if all ``epochs`` were to come.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    momentum: float
    weight_decay: float
    warmup: float
    decay: str
    label_smoothing: float
    augment_flip: bool
    augment_shift: int
    precision: str
    evaluate: str
    validation_share: float
    patience: int


def training_from(given: Mapping[str, Any]) -> Training:
    """Return the settings ``given``, defaults for the rest.

    Raises:
        ValueError: a setting that does not exist, a value out of range, or patience without validation images.
    """
    settings = Training(**with_defaults(PARAMETERS, given))
    if settings.patience and not settings.validation_share:
        raise ValueError(
            f"patience: found {settings.patience} with validation_share 0, expected 0 or a share above 0"
        )
    return settings
