"""Occlusion sensitivity against plain loops over windows, captum, and models whose maps are known."""

import captum.attr
import pytest
import torch
from support import (
    CLASSES,
    SmoothNet,
    classifier,
    conv_classifier,
    cyclic_targets,
    exact,
    generator,
    random_images,
    seen_batches,
    with_random_state,
)
from torch import Tensor, nn

from saliency_assay.methods.occlusion import occlusion

IMAGES, TARGETS = random_images(5), cyclic_targets(5)


class OnePixel(nn.Module):
    """Logit k is k + 1 times one channel of one pixel."""

    def __init__(self, channel: int, row: int, column: int) -> None:
        super().__init__()
        self.place = (channel, row, column)

    def forward(self, images: Tensor) -> Tensor:
        channel, row, column = self.place
        return images[:, channel, row, column, None] * torch.arange(1, CLASSES + 1)


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
@pytest.mark.parametrize("fill", ["black", "mean"])
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
    color = model.mean.flatten() if fill == "mean" else torch.zeros(3, dtype=torch.float64)
    for image, target, found in zip(images, TARGETS.tolist()[:3], maps, strict=True):
        exact(found[0], plain_occlusion(model, image, target, pixels, steps, color))
    assert maps.abs().max() > 1e-3


@pytest.mark.parametrize(("window", "stride"), [(0.25, 0.125), (0.4, 0.3), (0.5, 0.5)])
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


def test_windows_of_one_pixel_find_the_pixel_that_is_read() -> None:
    maps = occlusion(OnePixel(1, 4, 9), IMAGES, TARGETS, generator=generator(), window=0, stride=0)
    expected = torch.zeros(5, 1, 12, 12, dtype=torch.float64)
    expected[:, 0, 4, 9] = (TARGETS + 1) * IMAGES[:, 1, 4, 9]
    exact(maps, expected)


def test_larger_windows_spread_it_by_the_share_that_hides_it() -> None:
    """3 × 3 windows at stride 1: a pixel d away shares 3 − d of its 3 windows with the one that is read."""
    maps = occlusion(OnePixel(1, 5, 6), IMAGES, TARGETS, generator=generator(), window=0.25, stride=0.08)
    share = torch.tensor([max(0, 3 - abs(i)) / 3 for i in range(-6, 7)], dtype=torch.float64)
    expected = share[1:, None] * share[:-1]
    exact(maps, ((TARGETS + 1) * IMAGES[:, 1, 5, 6])[:, None, None, None] * expected)


def test_a_window_as_large_as_the_image_is_the_difference_to_the_baseline() -> None:
    model = conv_classifier()
    maps = occlusion(model, IMAGES, TARGETS, generator=generator(), window=1.0, stride=1.0, fill="mean")
    with torch.no_grad():
        change = (model(IMAGES) - model(model.mean.expand_as(IMAGES)))[range(5), TARGETS]
    exact(maps, change[:, None, None, None].expand(5, 1, 12, 12))


def test_fill_is_the_mean_of_each_channel() -> None:
    model = classifier(OnePixel(2, 0, 0), "")
    model.mean.copy_(torch.tensor([0.1, 0.2, 0.3]).reshape(1, 3, 1, 1))
    for fill, color in (("black", 0.0), ("mean", 0.3)):
        maps = occlusion(model, IMAGES, TARGETS, generator=generator(), window=0.25, stride=0.25, fill=fill)
        drop = (TARGETS + 1) * (IMAGES[:, 2, 0, 0] - color) / 0.25
        exact(maps[:, 0, 0, 0], drop, 1e-6)
        assert maps[:, :, 3:].abs().max() == 0


def test_each_pass_is_the_batch_and_the_image_itself_is_seen_once() -> None:
    model = conv_classifier()
    with seen_batches(model) as seen:
        occlusion(model, IMAGES, TARGETS, generator=generator())
    assert [len(batch) for batch in seen] == [5] * (1 + 6 * 6)  # windows of 3 pixels at stride 2
    rows = torch.stack(seen, 1).reshape(5, 37, *IMAGES.shape[1:])
    assert torch.equal(rows[:, 0], IMAGES)
    changed = (rows != IMAGES[:, None]).any(2).flatten(2).sum(2)
    assert torch.equal(changed[:, 1:6], torch.full((5, 5), 9))  # the sixth window of a row is clipped
    assert torch.equal(changed[:, 6], torch.full((5,), 6))


@pytest.mark.parametrize("size", range(1, 14))
def test_every_pixel_is_covered_whatever_the_size(size: int) -> None:
    images = random_images(2, size=size)
    model = with_random_state(SmoothNet(images[0].numel()), seed=1)
    for window, stride in ((0.25, 0.125), (0.5, 0.5), (1 / 3, 0.3), (0.9, 0.6)):
        maps = occlusion(model, images, TARGETS[:2], generator=generator(), window=window, stride=stride)
        assert (maps != 0).all()
        assert maps.isfinite().all()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"fill": "gray"}, "fill: found 'gray', valid: black, mean"),
        (
            {"window": 1.2},
            "window, stride: found 1.2, 0.125, expected shares of the image, 0 <= stride <= window <= 1",
        ),
        (
            {"stride": 0.3},
            "window, stride: found 0.25, 0.3, expected shares of the image, 0 <= stride <= window <= 1",
        ),
        (
            {"stride": -0.1},
            "window, stride: found 0.25, -0.1, expected shares of the image, 0 <= stride <= window <= 1",
        ),
    ],
    ids=["fill", "window", "stride", "negative"],
)
def test_bad_parameters_are_refused(setting: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=r"^(fill|window, stride): found") as error:
        occlusion(conv_classifier(), IMAGES, TARGETS, generator=generator(), **setting)
    assert str(error.value) == message
