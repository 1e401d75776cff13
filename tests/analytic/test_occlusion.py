"""Occlusion sensitivity against plain loops over windows, captum, and models whose maps are known."""

import captum.attr
import pytest
import torch
from support import (
    SmoothNet,
    conv_classifier,
    cyclic_targets,
    exact,
    generator,
    random_images,
    with_random_state,
)
from torch import Tensor, nn

from saliency_assay.methods.occlusion import occlusion

IMAGES, TARGETS = random_images(5), cyclic_targets(5)


def starts(side: int, window: int, stride: int) -> list[int]:
    """0, stride, 2 stride, … up to the first window that reaches the border."""
    places = [0]
    while places[-1] + window < side:
        places.append(places[-1] + stride)
    return places


def plain_occlusion(
    model: nn.Module,
    image: Tensor,
    target: int,
    window: tuple[int, int],
    stride: tuple[int, int],
    fill: Tensor,
) -> Tensor:
    """Each window filled, one image at a time; every pixel the mean over the windows that cover it."""
    height, width = image.shape[1:]
    with torch.no_grad():
        whole = model(image[None])[0, target]
        total, covered = torch.zeros(2, height, width, dtype=image.dtype)
        for top in starts(height, window[0], stride[0]):
            for left in starts(width, window[1], stride[1]):
                bottom, right = min(top + window[0], height), min(left + window[1], width)
                hidden = image.clone()
                for row in range(top, bottom):
                    for column in range(left, right):
                        hidden[:, row, column] = fill
                drop = whole - model(hidden[None])[0, target]
                total[top:bottom, left:right] += drop
                covered[top:bottom, left:right] += 1
    assert covered.min() >= 1
    return total / covered


@pytest.mark.parametrize(
    ("size", "window", "stride", "pixels", "steps"),
    [
        ((12, 12), 0.25, 0.125, (3, 3), (2, 2)),  # 1.5 rounds to 2: the last window is clipped
        ((12, 10), 0.4, 0.4, (5, 4), (5, 4)),  # three windows each way without overlap, the last clipped
        ((9, 11), 0.5, 0.3, (4, 6), (3, 3)),
        ((12, 7), 0.0, 0.0, (1, 1), (1, 1)),
        ((8, 12), 1.0, 0.25, (8, 12), (2, 3)),
    ],
    ids=str,
)
@pytest.mark.parametrize("fill", ["black", "gray", "mean"])
def test_occlusion_equals_plain_loops(
    size: tuple[int, int],
    window: float,
    stride: float,
    pixels: tuple[int, int],
    steps: tuple[int, int],
    fill: str,
) -> None:
    model, images = conv_classifier(), IMAGES[:3, :, : size[0], : size[1]].contiguous()
    maps = occlusion(
        model, images, TARGETS[:3], generator=generator(), window=window, stride=stride, fill=fill
    )
    levels = {"black": 0.0, "gray": 0.5}
    color = model.mean.flatten() if fill == "mean" else torch.full((3,), levels[fill], dtype=torch.float64)
    for image, target, raw in zip(images, TARGETS.tolist()[:3], maps, strict=True):
        exact(raw[0], plain_occlusion(model, image, target, pixels, steps, color))
    assert maps.abs().max() > 1e-3


@pytest.mark.parametrize(("window", "stride"), [(0.25, 0.125), (0.5, 0.5)])
def test_occlusion_equals_captum(window: float, stride: float) -> None:
    model, images = conv_classifier(), IMAGES[:, :, :, :11].contiguous()
    expected = captum.attr.Occlusion(model).attribute(
        images,
        sliding_window_shapes=(3, round(12 * window), round(11 * window)),
        strides=(3, round(12 * stride), round(11 * stride)),
        baselines=model.mean.expand(1, 3, 12, 11),
        target=TARGETS,
    )
    maps = occlusion(model, images, TARGETS, generator=generator(), window=window, stride=stride, fill="mean")
    # captum gives float32 whatever the model's type.
    exact(maps.expand_as(images), expected, 1e-6, floor=1e-9)


@pytest.mark.parametrize("size", [1, 2, 7, 13])
def test_every_pixel_is_covered_whatever_the_size(size: int) -> None:
    images = random_images(2, size=size)
    model = with_random_state(SmoothNet(images[0].numel()), seed=1)
    for window, stride in ((0.25, 0.125), (0.5, 0.5), (1 / 3, 0.3), (0.9, 0.6)):
        maps = occlusion(model, images, TARGETS[:2], generator=generator(), window=window, stride=stride)
        assert (maps != 0).all()
        assert maps.isfinite().all()
