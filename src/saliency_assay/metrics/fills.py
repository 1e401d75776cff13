"""Fills of perturbed pixels in metrics; those of retraining are in ``studies.retrain.parameters``."""

import torch
from scipy.ndimage import gaussian_filter
from torch import Tensor

from saliency_assay.methods.sampling import uniform

FILLS = ("black", "mean", "image_mean", "random", "blur")
BLUR = 0.1  # standard deviation of blur, as a share of the image's shorter side


def fill(name: str, images: Tensor, *, mean: Tensor | None = None, seeds: list[int] | None = None) -> Tensor:
    """Return the fill ``name`` of images ``[N, C, H, W]`` in [0, 1]: pixels that broadcast to them, of their type and
    device.

    ``black`` is 0, ``mean`` the data set's mean ``[C]``, ``image_mean`` the mean of each image's own pixels, ``random``
    uniform in [0, 1) for each pixel and channel, from one of ``seeds`` for each image, and ``blur`` the image under a
    Gaussian of ``BLUR`` of its shorter side, mirrored at the border.

    Raises:
        ValueError: another name; a fill that needs ``mean`` or ``seeds`` without them, or with too few.
    """
    count, channels, height, width = images.shape
    if name == "black":
        return images.new_zeros(1, channels, 1, 1)
    if name == "mean":
        if mean is None or mean.shape != (channels,):
            found = "none" if mean is None else f"{list(mean.shape)}"
            raise ValueError(
                f"mean: found {found}, expected the data set's mean [{channels}] for fill 'mean'"
            )
        return mean.to(images)[None, :, None, None]
    if name == "image_mean":
        return images.mean((2, 3), keepdim=True)
    if name == "random":
        if seeds is None or len(seeds) != count:
            found = "none" if seeds is None else str(len(seeds))
            raise ValueError(
                f"seeds: found {found}, expected one for each of {count} images for fill 'random'"
            )
        return (uniform(seeds, images) + 1) / 2
    if name == "blur":
        sigma = BLUR * min(height, width)
        blurred = gaussian_filter(images.detach().cpu().numpy(), (0, 0, sigma, sigma), mode="mirror")
        return torch.from_numpy(blurred).to(images.device)
    raise ValueError(f"fill: found {name!r}, valid: {', '.join(FILLS)}")
