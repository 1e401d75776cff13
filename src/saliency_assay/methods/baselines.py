"""Colors that stand for a pixel without information, such as the start of integrated gradients.

Methods that use no model are in ``controls``.
"""

from torch import Tensor, nn

from saliency_assay.models.classifier import Classifier

BASELINES = ("black", "mean")


def baseline(model: nn.Module, images: Tensor, name: str) -> Tensor:
    """Return the colour ``name`` as ``[1, C, 1, 1]``, of ``images``' type and device.

    ``black`` is 0 in every channel, ``mean`` the channel mean of the images that the classifier was trained on.

    Raises:
        ValueError: another name, or ``mean`` of a model that is no ``Classifier``.
    """
    if name not in BASELINES:
        raise ValueError(f"baseline: found {name!r}, valid: {', '.join(BASELINES)}")
    if name == "black":
        return images.new_zeros(1, images.shape[1], 1, 1)
    if not isinstance(model, Classifier):
        found = type(model).__name__
        raise ValueError(
            f"baseline: found 'mean' with a {found}, expected a Classifier, which knows its mean, or 'black'"
        )
    return model.mean.to(images)
