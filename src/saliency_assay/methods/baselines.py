"""Colors that represent a pixel without information, such as the start of integrated gradients.

Baseline methods, which do not use the model, are in ``model_free``.
"""

from torch import Tensor, nn

from saliency_assay.models.classifier import Classifier

GRAY_LEVELS = {"black": 0.0, "gray": 0.5}
BASELINES = (*GRAY_LEVELS, "mean")


def baseline(model: nn.Module, images: Tensor, name: str) -> Tensor:
    """Return the color ``name`` as ``[1, C, 1, 1]``, of the type and on the device of ``images``.

    ``black`` is 0 and ``gray`` 0.5 in every channel, ``mean`` the channel mean of the images that the classifier was
    trained on.

    Raises:
        ValueError: unknown name, or ``mean`` for a model that is not a ``Classifier``.
    """
    if name not in BASELINES:
        raise ValueError(f"baseline: found {name!r}, valid: {', '.join(BASELINES)}")
    if name in GRAY_LEVELS:
        return images.new_full((1, images.shape[1], 1, 1), GRAY_LEVELS[name])
    if not isinstance(model, Classifier):
        kind = type(model).__name__
        raise ValueError(
            f"baseline: found 'mean' with a {kind}, expected a Classifier, which stores a mean, or one of: "
            f"{', '.join(GRAY_LEVELS)}"
        )
    return model.mean.to(images)
