"""XRAI against images with a known answer, and its region against a plain derivation with sets of pixels."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy import ndimage, sparse
from skimage import segmentation, transform
from support import (
    CLASSES,
    conv_classifier,
    cyclic_targets,
    exact,
    generator,
    random_images,
)
from torch import Tensor, nn

from saliency_assay.methods.path import mean_gradient, quadrature
from saliency_assay.methods.xrai import _dilated, grow_region, segment_memberships, xrai

IMAGES, TARGETS = random_images(4), cyclic_targets(4)
FAST: dict[str, Any] = {"steps": 4, "resolution": 48}


def halves() -> Tensor:
    """Two images of 16 pixels, left half in one color and right half in another."""
    colors = torch.tensor([[[0.9, 0.2, 0.1], [0.2, 0.4, 0.8]], [[0.1, 0.7, 0.3], [0.8, 0.7, 0.9]]]).double()
    return colors.mT.repeat_interleave(8, 2)[:, :, None].expand(-1, -1, 16, -1)


def averaged_gradients(model: nn.Module, images: Tensor, targets: Tensor, steps: int) -> Tensor:
    """Integrated gradients, averaged over black and white."""
    maps = []
    for start in (torch.zeros_like(images), torch.ones_like(images)):
        slopes = mean_gradient(model, images, targets, start, *quadrature("middle", steps))
        maps.append((images - start) * slopes)
    return (maps[0] + maps[1]) / 2


def plain_region(attribution: np.ndarray, masks: np.ndarray, least: int) -> np.ndarray:
    """The region as a set of pixels; the mean of every segment is computed again for every choice."""
    values, region = np.full(len(attribution), np.nan), set()
    segments = [set(np.flatnonzero(mask).tolist()) for mask in masks]
    while True:
        gains = [
            (np.mean([attribution[pixel] for pixel in segment - region]), -number)
            for number, segment in enumerate(segments)
            if len(segment - region) >= least
        ]
        if not gains:
            break
        gain, number = max(gains)
        for pixel in segments[-number] - region:
            values[pixel] = gain
        region |= segments[-number]
    rest = set(range(len(attribution))) - region
    for pixel in rest:
        values[pixel] = np.mean([attribution[other] for other in rest])
    return values


# ----------------------------------------------------------------------------------------------- region


@pytest.mark.parametrize("least", [1, 4, 200])
@pytest.mark.parametrize("share", [0.05, 0.4])
def test_the_region_equals_the_plain_derivation(share: float, least: int) -> None:
    random = np.random.default_rng(3)
    masks = random.random((25, 90)) < share
    masks[7], masks[20] = masks[3], False  # one segment twice, and one without pixels
    for _ in range(5):
        attribution = random.normal(size=90)
        memberships = sparse.csr_array(masks.T)
        exact(grow_region(attribution, memberships, least), plain_region(attribution, masks, least), 1e-12)


# --------------------------------------------------------------------------------------------- segments


@pytest.mark.parametrize(("size", "radius"), [(224, 5), (112, 2)])
def test_segments_are_those_of_felzenszwalb(size: int, radius: int) -> None:
    """At 224 pixels, or resized to them; masks are dilated by 5 of these pixels."""
    patches = torch.nn.functional.interpolate(IMAGES[:1, :, :4, :4], size=(size, size))[0]
    noise = torch.rand(3, size, size, generator=generator(1), dtype=torch.float64)
    image = (0.9 * patches + 0.1 * noise).permute(1, 2, 0).numpy()
    scaled = 2 * (image - image.min()) / (image.max() - image.min()) - 1
    resized = transform.resize(scaled, (224, 224), order=3, mode="edge", anti_aliasing=True)
    steps = np.arange(-radius, radius + 1)
    disk = steps[:, None] ** 2 + steps**2 <= radius**2
    expected = []
    for scale in (50, 100, 150, 250, 500, 1200):
        labels = segmentation.felzenszwalb(resized, scale=scale, sigma=0.8, min_size=150)
        nearest = labels[224 // size - 1 :: 224 // size, 224 // size - 1 :: 224 // size]
        expected += [ndimage.binary_dilation(nearest == i, disk) for i in range(labels.max() + 1)]
    masks = segment_memberships(image, 224).toarray().T.reshape(-1, size, size)
    assert np.array_equal(masks, expected)
    assert len(masks) > 60


@pytest.mark.parametrize("radius", [0, 1, 4, 12])
def test_eight_masks_are_dilated_at_a_time(radius: int) -> None:
    """Up to the edge, also of an image that is smaller than the disk."""
    masks = np.random.default_rng(4).random((7, 30, 16)) < 0.02
    steps = np.arange(-radius, radius + 1)
    disk = steps[:, None] ** 2 + steps**2 <= radius**2
    expected = [ndimage.binary_dilation(masks[..., i], disk) for i in range(16)]
    dilated = np.unpackbits(_dilated(np.packbits(masks, axis=2), radius), axis=2)
    assert np.array_equal(np.moveaxis(dilated, 2, 0), expected)


# ------------------------------------------------------------------------------------------------- maps


def test_maps_of_two_halves_are_known() -> None:
    """Of a linear model, f = Σ w x, attributions are (x − ½) w: the same in all pixels of a half."""
    images, targets = halves(), cyclic_targets(2)
    weights = torch.randn(CLASSES, 3, 1, 1, generator=generator(1), dtype=torch.float64)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16**2, CLASSES)).double()
    model[1].weight.data = weights.expand(-1, -1, 16, 16).flatten(1).contiguous()
    maps = xrai(model, images, targets, generator=generator(), steps=2)
    expected = ((images - 0.5) * weights[targets]).sum(1, keepdim=True)
    exact(maps, expected, 1e-10)
    assert (maps[..., 0] != maps[..., -1]).all()


def test_maps_are_regions_of_averaged_integrated_gradients() -> None:
    model = conv_classifier()
    attributions = averaged_gradients(model, IMAGES, TARGETS, 4)
    least = round(50 * (12 / 48) ** 2)
    for channels, values in (("sum", attributions.sum(1)), ("max", attributions.amax(1))):
        maps = xrai(model, IMAGES, TARGETS, generator=generator(), channels=channels, **FAST)
        for i in range(4):
            masks = segment_memberships(IMAGES[i].permute(1, 2, 0).numpy(), 48).toarray().T
            exact(maps[i].flatten(), plain_region(values[i].flatten().numpy(), masks, least), 1e-10)
        assert (maps.flatten(1).std(1) > 0).all()


def test_an_image_of_one_color_has_one_value() -> None:
    model, images = conv_classifier(), torch.full((1, 3, 12, 12), 0.3, dtype=torch.float64)
    maps = xrai(model, images, TARGETS[:1], generator=generator(), **FAST)
    mean = averaged_gradients(model, images, TARGETS[:1], 4).sum() / 144
    exact(maps, mean.expand(1, 1, 12, 12), 1e-10)


def test_a_gray_image_has_the_segments_of_the_same_image_in_rgb() -> None:
    class Gray(nn.Module):
        """A model of gray images in place of one that sees only red."""

        def __init__(self, model: nn.Module) -> None:
            super().__init__()
            self.model = model

        def forward(self, images: Tensor) -> Tensor:
            return self.model(torch.cat([images[:, :1], images[:, :1] * 0, images[:, :1] * 0], 1))

    model, gray = Gray(conv_classifier()), IMAGES[:, :1]
    maps = [
        xrai(model, x, TARGETS, generator=generator(), **FAST) for x in (gray, gray.expand(-1, 3, -1, -1))
    ]
    exact(maps[0], maps[1], 1e-10)


# ------------------------------------------------------------------------------------------------ errors


def test_images_of_four_channels_are_refused() -> None:
    model, images = conv_classifier(channels=4), random_images(2, 4)
    with pytest.raises(ValueError, match=r"^xrai: found images of 4 channels, expected 1 or 3"):
        xrai(model, images, TARGETS[:2], generator=generator())
