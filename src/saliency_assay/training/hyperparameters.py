"""Training settings of the configuration; does not import torch, so that the Snakefile can check them quickly."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from saliency_assay.registry.records import Parameter, with_defaults

PARAMETERS: Mapping[str, Parameter] = {
    "optimizer": Parameter("sgd", choices=("sgd", "adamw")),
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
    "augment_removal": Parameter(0.0, minimum=0, maximum=1),
    "augment_deletion": Parameter(0, minimum=0),
    "augment_fill": Parameter("mean", choices=("mean", "black")),
    "precision": Parameter("auto", choices=("auto", "float32", "bf16")),
    "evaluate": Parameter("epoch", choices=("epoch", "end")),
    "validation_share": Parameter(0.0, minimum=0, maximum=0.5),
    "patience": Parameter(0, minimum=0),
}


@dataclass(frozen=True)
class Training:
    """Hyperparameters of a training; the last batch of an epoch is dropped if it is incomplete.

    ``optimizer`` is SGD with Nesterov ``momentum``, or AdamW, whose β₁ is ``momentum`` and β₂ 0.999. With ``epochs`` 0,
    the initial weights are kept. ``learning_rate`` is the peak after a linear warm-up over the share ``warmup`` of all
    steps; a linear or cosine decay to 0 follows. ``weight_decay`` does not apply to biases, norms and other vectors.
    ``augment_flip`` mirrors each image left to right with probability 1/2; ``augment_shift`` is the largest shift
    in pixels in each direction, with reflection at the border; ``augment_removal`` is the share of pixels that are
    removed from each image at random, other ones in each step. ``augment_deletion`` is the number of rows and
    columns of a grid of which a random cell is removed from each image with probability 1/2. Removed pixels show
    ``augment_fill``: the mean of the normalization, or black. ``precision`` auto is bf16 autocast on a GPU with
    native support, and float32 elsewhere. ``evaluate`` selects when validation and test accuracy are computed for
    the curve: after each epoch, or after the last one. Test accuracy never affects the training.

    ``validation_share`` is the share of the training images that are held out (``data.splits.with_validation``). With
    ``patience`` above 0, validation accuracy is computed after each epoch regardless of ``evaluate``. The training
    stops after ``patience`` epochs without an improvement, and the weights of the first epoch with the highest
    validation accuracy are kept. The learning rate decays as if all ``epochs`` were run.
    """

    optimizer: str
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
    augment_removal: float
    augment_deletion: int
    augment_fill: str
    precision: str
    evaluate: str
    validation_share: float
    patience: int


def training_from(values: Mapping[str, Any]) -> Training:
    """Return the checked settings ``values``, with defaults for the rest.

    Raises:
        ValueError: a setting does not exist, a value is invalid, ``patience`` is set without validation images,
            ``momentum`` is 1 with AdamW, or ``augment_deletion`` is 1, which would remove whole images.
    """
    settings = Training(**with_defaults(PARAMETERS, values))
    if settings.augment_deletion == 1:
        raise ValueError("augment_deletion: found 1, expected 0 or at least 2 rows and columns")
    if settings.patience and not settings.validation_share:
        raise ValueError(
            f"patience: found {settings.patience} with validation_share 0, expected 0 or a share above 0"
        )
    if settings.optimizer == "adamw" and settings.momentum >= 1:
        raise ValueError(f"momentum: found {settings.momentum:g} with adamw, expected less than 1")
    return settings


def finetuning(training: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings to train a model further: those of its ``training``, changed by ``changes``.

    Without changes, the learning rate is a tenth, and a model whose weights are used as they are (``epochs`` 0) is
    trained for one epoch.
    """
    defaults = {"epochs": max(1, training["epochs"]), "learning_rate": training["learning_rate"] / 10}
    return {**training, **defaults, **changes}
