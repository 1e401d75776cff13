"""XRAI: attribution of image regions, by growing the region whose segments have the highest mean attribution."""

from math import isqrt
from typing import Annotated

import numpy as np
import torch
from scipy import sparse
from scipy.ndimage import gaussian_filter
from torch import Tensor, nn

from saliency_assay.methods.differentiate import check_inputs
from saliency_assay.methods.path import mean_gradient, quadrature
from saliency_assay.registry.limits import Limits, PositiveInt
from saliency_assay.runtime.environment import optional
from saliency_assay.runtime.transfer import to_device

SCALES = (50, 100, 150, 250, 500, 1200)  # of Felzenszwalb's segmentation; larger scales have larger segments
SIGMA = 0.8  # standard deviation of the blur before it
SMALLEST = 150  # pixels of a segment
DILATION = 5  # pixels by which segments are enlarged, so that they include edges
LEAST = 50  # pixels that a segment must add to the region


def xrai(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    steps: PositiveInt = 25,
    channels: Annotated[str, Limits(choices=("sum", "max"))] = "sum",
    resolution: PositiveInt = 224,
) -> Tensor:
    """Compute the mean attribution of the pixels that join the region with each pixel, ``[N, 1, H, W]``, signed.

    Attributions are integrated gradients, averaged over a black and a white baseline, with ``steps`` points in the
    middle of equal intervals and one pass each for both. Their sum over the channels makes a map sum to f_t(x) minus
    the mean of f_t over the baselines, up to the quadrature error; ``channels`` max is that of the released code. See
    ``segment_memberships`` for the segments and ``resolution``, and ``grow_region`` for the region. Kapishnikov et al.
    (2019).

    Raises:
        ValueError: images that are neither RGB nor gray.
    """
    check_inputs(images, targets)
    height, width = images.shape[2:]
    if images.shape[1] not in (1, 3):
        raise ValueError(f"xrai: found images of {images.shape[1]} channels, expected 1 or 3")
    values = _attributions(model, images.detach(), targets, steps).double()
    attributions = (values.sum(1) if channels == "sum" else values.amax(1)).flatten(1).cpu().numpy()
    pixels = images.detach().double().expand(-1, 3, -1, -1).permute(0, 2, 3, 1).cpu().numpy()
    least = max(1, round(LEAST * (max(height, width) / resolution) ** 2))
    maps = [
        grow_region(attribution, segment_memberships(image, resolution), least)
        for attribution, image in zip(attributions, pixels, strict=True)
    ]
    return to_device(torch.from_numpy(np.stack(maps)), images.device, images.dtype).reshape(
        -1, 1, height, width
    )


def _attributions(model: nn.Module, images: Tensor, targets: Tensor, steps: int) -> Tensor:
    """Compute integrated gradients, averaged over a black and a white baseline, ``[N, C, H, W]``."""
    rule = quadrature("middle", steps)
    total = torch.zeros_like(images)
    for color in (0.0, 1.0):
        start = images.new_tensor(color).expand_as(images)
        total += (images - start) * mean_gradient(model, images, targets, start, *rule)
    return total / 2


def segment_memberships(image: np.ndarray, resolution: int) -> sparse.csr_array:
    """Return the overlapping segments that contain each pixel of an image ``[H, W, 3]``, bool ``[H * W, segments]``.

    They are Felzenszwalb's segmentations at six scales of the image in [−1, 1], resized to ``resolution`` pixels on its
    longer side, to which the constants of this module refer: 224 in the released code.
    """
    with optional("skimage", "methods"):
        from skimage.segmentation import felzenszwalb
        from skimage.transform import resize

    height, width = image.shape[:2]
    factor = resolution / max(height, width)
    frame = (max(1, round(factor * height)), max(1, round(factor * width)))
    lowest, span = image.min(), np.ptp(image)
    contrast = 2 * (image - lowest) / (span if span > 0 else 1) - 1
    # Beyond the edge the nearest pixel, since zeros would be a border with segments of its own.
    resized = resize(  # type: ignore[no-untyped-call]
        contrast, frame, order=3, mode="edge", anti_aliasing=True, preserve_range=True
    )
    blurred = gaussian_filter(resized, (SIGMA, SIGMA, 0))  # once for all scales
    rows = (2 * np.arange(height) + 1) * frame[0] // (2 * height)
    columns = (2 * np.arange(width) + 1) * frame[1] // (2 * width)
    numbers, segments = [], 0
    for scale in SCALES:
        labels = felzenszwalb(blurred, scale=scale, sigma=0, min_size=SMALLEST)
        numbers.append(segments + labels[np.ix_(rows, columns)])
        segments += labels.max() + 1
    # One bit for each segment, so that eight segments are dilated at a time.
    bits = np.zeros((height, width, -(-segments // 8)), dtype=np.uint8)
    for number in numbers:
        bits[(*np.indices((height, width), sparse=True), number // 8)] |= (128 >> number % 8).astype(np.uint8)
    dilated = _dilated(bits, round(DILATION / factor))
    members = np.unpackbits(dilated.reshape(height * width, -1), axis=1).view(bool)
    entries = np.flatnonzero(members)
    pixels = entries // members.shape[1]
    starts = np.append(0, np.bincount(pixels, minlength=height * width).cumsum())
    contained = entries - pixels * members.shape[1]
    return sparse.csr_array(
        (np.ones(len(entries), dtype=bool), contained, starts), shape=(height * width, segments)
    )


def _dilated(bits: np.ndarray, radius: int) -> np.ndarray:
    """Enlarge the masks in the bits of ``[H, W, bytes]`` by a disk of ``radius`` pixels."""
    height, reach = len(bits), 0
    dilated, run = np.zeros_like(bits), bits.copy()
    for down in range(radius, -1, -1):
        while reach < isqrt(radius**2 - down**2):  # a row of the disk, wider than the one before
            reach += 1
            run[:, reach:] |= bits[:, :-reach]
            run[:, :-reach] |= bits[:, reach:]
        rows = max(0, height - down)
        dilated[down:] |= run[:rows]
        dilated[:rows] |= run[down:]
    return dilated


def grow_region(attribution: np.ndarray, memberships: sparse.csr_array, least: int) -> np.ndarray:
    """Return the mean attribution of the pixels that are added to the region together with each pixel, ``[P]``.

    Args:
        attribution: float64 ``[P]``.
        memberships: segments that contain each pixel, bool ``[P, segments]``. The segment whose pixels outside the
            region have the highest mean attribution is added next, and the first of them if there are several.
        least: pixels that a segment must add; pixels that are not in the region at the end form one more segment.
    """
    values, outside = np.empty_like(attribution), np.ones(len(attribution), dtype=bool)
    members, segments = memberships.tocsc(), memberships.shape[1]
    starts, sizes = memberships.indptr, np.diff(memberships.indptr)
    # Of the pixels of each segment that are outside the region. Updated with each segment, instead of computed again,
    # so that every pixel is counted twice in all.
    counts = np.diff(members.indptr).astype(np.int64)
    sums = np.bincount(memberships.indices, attribution.repeat(sizes), segments)
    while (counts >= least).any():
        means = np.divide(sums, counts, out=np.full(segments, -np.inf), where=counts >= least)
        best = means.argmax()
        pixels = members.indices[members.indptr[best] : members.indptr[best + 1]]
        added = pixels[outside[pixels]]
        values[added] = attribution[added].mean()
        outside[added] = False
        size = sizes[added]
        entries = np.arange(size.sum()) + (starts[added] - size.cumsum() + size).repeat(size)
        containing = memberships.indices[entries]
        counts -= np.bincount(containing, minlength=segments)
        sums -= np.bincount(containing, attribution[added].repeat(size), segments)
    if outside.any():
        values[outside] = attribution[outside].mean()
    return values
