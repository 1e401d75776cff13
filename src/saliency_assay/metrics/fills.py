"""Fills of perturbed pixels in metrics; the fills of retraining are in ``studies.retrain.parameters``."""

import torch
from torch import Tensor

from saliency_assay.methods.baselines import GRAY_LEVELS
from saliency_assay.methods.sampling import uniform
from saliency_assay.runtime.transfer import to_device

FILLS = ("black", "gray", "mean", "image_mean", "random", "blur")
BLUR = 0.1  # standard deviation of blur, as a share of the image's shorter side


def fill(name: str, images: Tensor, *, mean: Tensor | None = None, seeds: list[int] | None = None) -> Tensor:
    """Return the fill ``name`` of images ``[N, C, H, W]`` in [0, 1], of their type and device, broadcasting to them.

    ``black`` is 0, ``gray`` 0.5, ``mean`` the data set's mean ``[C]``, ``image_mean`` the mean over the pixels of each
    image, ``random`` uniform in [0, 1) for each pixel and channel, from one of ``seeds`` for each image, and ``blur``
    the image blurred by a Gaussian of standard deviation ``BLUR`` times its shorter side, mirrored at the border.

    Raises:
        ValueError: unknown name, or missing or wrong ``mean`` or ``seeds`` for a fill that needs them.
    """
    count, channels, height, width = images.shape
    if name in GRAY_LEVELS:
        return images.new_full((1, channels, 1, 1), GRAY_LEVELS[name])
    if name == "mean":
        if mean is None or mean.shape != (channels,):
            actual = "none" if mean is None else f"{list(mean.shape)}"
            raise ValueError(
                f"mean: found {actual}, expected the data set's mean [{channels}] for fill 'mean'"
            )
        return mean.to(images)[None, :, None, None]
    if name == "image_mean":
        # In float64, so that the mean of equal pixels is exactly their value.
        return images.mean((2, 3), keepdim=True, dtype=torch.float64).to(images.dtype)
    if name == "random":
        if seeds is None or len(seeds) != count:
            actual = "none" if seeds is None else str(len(seeds))
            raise ValueError(
                f"seeds: found {actual}, expected one for each of {count} images for fill 'random'"
            )
        return (uniform(seeds, images) + 1) / 2  # from [−1, 1) to [0, 1)
    if name == "blur":
        from scipy.ndimage import gaussian_filter  # takes 0.3 s, which the other fills do not need

        sigma = BLUR * min(height, width)
        blurred = gaussian_filter(images.detach().cpu().numpy(), (0, 0, sigma, sigma), mode="mirror")
        return to_device(torch.from_numpy(blurred), images.device)
    raise ValueError(f"fill: found {name!r}, valid: {', '.join(FILLS)}")
