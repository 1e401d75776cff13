"""Occluded pixels and chains of masks, compared with plain re-derivations and closed forms."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from fractions import Fraction
from itertools import product
from math import floor, inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray
from support import CLASSES, SmoothNet, conv_classifier, cyclic_targets, with_random_state
from support import classifier as wrapped
from torch import Tensor, nn

from saliency_assay.methods.gradient import gradient
from saliency_assay.methods.model_free import constant, random
from saliency_assay.metrics.reductions import reduce
from saliency_assay.models.inference import to_pixels
from saliency_assay.runtime import shards
from saliency_assay.runtime.shards import Shard
from saliency_assay.storage import zarr_store
from saliency_assay.studies.retrain.mask_transforms import transform
from saliency_assay.studies.retrain.masks import highest, mean_under, remasked, targets_of
from saliency_assay.studies.retrain.occluded import ImageRange, Occluded, layers_of
from saliency_assay.studies.retrain.parameters import pixels
from saliency_assay.studies.retrain.scores import overlap_scores

CPU = torch.device("cpu")
NONE = {"kind": "none"}
SIZE = (6, 9)
AREA = 54
Blocks = dict[str, NDArray[Any]]


# ---------------------------------------------------------------------------------------- the threshold


def some_maps() -> Tensor:
    """Many ties, constant maps, values that are not finite, both zeros, and values next to each other."""
    rng = np.random.default_rng(0)
    maps = [rng.integers(0, values, SIZE).astype(float) for values in (2, 3, 5, 20)]
    maps += [np.full(SIZE, value) for value in (0.0, -3.0, nan, inf, -inf)]
    maps += [rng.choice([nan, inf, -inf, -1.0, 0.0, -0.0, 1.0], SIZE) for _ in range(4)]
    maps += [rng.standard_normal(SIZE), -np.arange(AREA).reshape(SIZE), np.arange(AREA).reshape(SIZE)]
    return torch.tensor(np.array(maps), dtype=torch.float32)


def in_order(saliency: Tensor) -> list[int]:
    """The pixels from the highest value to the lowest, ties by index, what is not a number last."""
    values = [-inf if value != value else value for value in saliency.flatten().tolist()]
    return sorted(range(len(values)), key=lambda pixel: -values[pixel])  # sorted is stable


@pytest.mark.parametrize(("count", "masks"), [(3, 1), (54, 1), (5, 10), (1, 54)])
@pytest.mark.parametrize("least_first", [False, True])
def test_masks_are_of_the_highest_or_lowest_values(count: int, masks: int, least_first: bool) -> None:
    """Ties are in reading order, reversed if the least come first; NaN throughout is in reading order always."""
    maps = some_maps()
    before = maps.clone()
    chosen = highest(maps, count, masks, least_first=least_first)
    assert chosen.dtype == torch.bool
    assert chosen.shape == (len(maps), masks, *SIZE)
    for saliency, of_map in zip(maps, chosen.flatten(2), strict=True):
        order = in_order(saliency)
        if least_first and not saliency.isnan().all():
            order.reverse()
        for step, mask in enumerate(of_map):
            assert set(mask.nonzero().flatten().tolist()) == set(order[step * count : (step + 1) * count])
    np.testing.assert_array_equal(maps, before)


@pytest.mark.parametrize(("count", "masks"), [(55, 1), (28, 2)])
def test_more_pixels_than_there_are_are_refused(count: int, masks: int) -> None:
    with pytest.raises(ValueError, match=rf"^occluded: found {count * masks} pixels .* at most 54\b"):
        highest(some_maps(), count, masks)


# ------------------------------------------------------------------------------------------- the color


def plain_mean(image: NDArray[np.uint8], mask: NDArray[np.bool_]) -> list[int]:
    """Of each channel, in fractions, half rounded up."""
    means = []
    for channel in image.tolist():
        values = [channel[y][x] for y, x in product(*map(range, mask.shape)) if mask[y][x]]
        means.append(floor(Fraction(sum(values), len(values)) + Fraction(1, 2)) if values else 0)
    return means


def test_halves_are_rounded_up() -> None:
    images = torch.tensor([[[[1, 2]]], [[[2, 3]]], [[[0, 1]]], [[[254, 255]]]], dtype=torch.uint8)
    assert mean_under(images, torch.ones(4, 1, 2, dtype=torch.bool)).tolist() == [[2], [3], [1], [255]]


def test_a_mean_of_many_pixels_does_not_overflow() -> None:
    images = torch.full((1, 1, 3000, 3000), 255, dtype=torch.uint8)
    assert mean_under(images, torch.ones(1, 3000, 3000, dtype=torch.bool)).item() == 255


# ------------------------------------------------------------------------------------------------- remasking


def some_images(count: int = 5, channels: int = 3, seed: int = 2) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(1, 256, (count, channels, 12, 12), generator=generator, dtype=torch.uint8)


def remask(
    images: Any,
    method: Callable[..., Tensor] = gradient,
    *,
    model: int = 1,
    targets: Tensor | None = None,
    **changed: Any,
) -> Blocks:
    """All blocks of ``remasked`` as one, seven pixels a mask, two images a batch."""
    settings: dict[str, Any] = {
        "seed": 3, "batch_size": 2, "finite": False, "reduction": "abs_max", "count": 7, "masks": 1, "shape": NONE
    }  # fmt: skip
    classifier = conv_classifier(model, images.shape[1], dtype=torch.float32)
    targets = cyclic_targets(len(images)) if targets is None else targets
    blocks = list(remasked(method, {}, classifier, images, targets.numpy(), **{**settings, **changed}))
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def equal(one: Blocks, other: Blocks, images: Any = slice(None)) -> bool:
    return all(np.array_equal(one[name][images], other[name][images]) for name in one)


def with_noise(model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator) -> Tensor:
    """A map of image, model and noise alike."""
    maps = gradient(model, images, targets, generator=generator).abs().amax(1, keepdim=True)
    noise = random(model, images, targets, generator=generator)
    return maps / maps.amax((2, 3), keepdim=True) + 0.3 * noise


KINDS: list[tuple[Callable[..., Tensor], Mapping[str, Any], int]] = [
    (gradient, NONE, 1),
    (with_noise, NONE, 4),
    (random, {"kind": "transposition"}, 1),
    (gradient, {"kind": "noise", "share": 0.1}, 3),
    (gradient, {"kind": "dilation", "radius": 2}, 2),
]


@pytest.mark.parametrize(("method", "shape", "masks"), KINDS)
def test_masks_do_not_depend_on_shards_and_batches(
    method: Callable[..., Tensor], shape: Mapping[str, Any], masks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seven images in blocks of three: masks, colors and flags of all shards are those of one."""
    monkeypatch.setattr(shards, "BLOCK", 3)
    images = some_images(7)
    classifier = conv_classifier(dtype=torch.float32)

    def in_shards(of: int, batch_size: int) -> Blocks:
        blocks = []
        for number in range(1, of + 1):
            where = Shard(number, of).slice_of(7)
            part = ImageRange(images, where)
            blocks += remasked(
                method, {}, classifier, part, targets_of(classifier, part, np.empty(0), "predicted", 2),
                seed=3, batch_size=batch_size, finite=True, reduction="abs_max", count=7, masks=masks,
                shape=shape, offset=where.start,
            )  # fmt: skip
        return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}

    whole = in_shards(1, 100)
    assert (whole["mask"].shape, whole["mask"].dtype) == ((7, masks, 12, 12), bool)
    assert (whole["mean"].shape, whole["mean"].dtype) == ((7, masks, 3), np.uint8)
    assert whole["ranked"].tolist() == [True] * 7
    for of, batch_size in ((1, 1), (2, 2), (3, 3)):
        assert equal(whole, in_shards(of, batch_size))


def test_masks_of_gradients_depend_on_classifier_and_target_but_not_on_the_seed() -> None:
    images = some_images()
    first = remask(images)
    assert equal(first, remask(images, seed=4))
    other = remask(images, model=2)
    assert all((first["mask"][image] != other["mask"][image]).any() for image in range(5))
    moved = remask(images, targets=(cyclic_targets(5) + torch.tensor([0, 1, 0, 0, 2])) % CLASSES)
    changed = [bool((first["mask"][image] != moved["mask"][image]).any()) for image in range(5)]
    assert changed == [False, True, False, False, True]


def test_masks_of_the_random_baseline_differ_between_seeds_and_images() -> None:
    images = some_images()[:1].expand(5, -1, -1, -1)
    one, other = (remask(images, random, seed=seed)["mask"][:, 0] for seed in (3, 4))
    assert len({mask.tobytes() for mask in [*one, *other]}) == 10
    assert np.array_equal(one, remask(images, random, model=2)["mask"][:, 0])


@pytest.mark.parametrize(("reduction", "least_first"), [("sum", False), ("abs_max", False), ("sum", True)])
def test_masks_are_of_the_highest_or_lowest_reduced_values(reduction: str, least_first: bool) -> None:
    """Plainly: the gradient, its channels reduced, sorted; and the image's mean color there."""
    images, targets = some_images(), cyclic_targets(5)
    blocks = remask(images, masks=3, reduction=reduction, least_first=least_first)
    classifier = conv_classifier(dtype=torch.float32)
    for image in range(5):
        pixel = to_pixels(images[image : image + 1]).requires_grad_()
        classifier(pixel)[0, targets[image]].backward()
        slopes = pixel.grad[0].numpy()
        order = in_order(torch.from_numpy({"sum": slopes.sum(0), "abs_max": abs(slopes).max(0)}[reduction]))
        order = order[::-1] if least_first else order
        for step in range(3):
            mask = blocks["mask"][image, step]
            assert set(np.flatnonzero(mask).tolist()) == set(order[7 * step : 7 * (step + 1)])
            assert blocks["mean"][image, step].tolist() == plain_mean(images[image].numpy(), mask)


def test_a_transform_changes_masks_and_colors_follow_it() -> None:
    """A pixel on which masks of one map overlap has the color of the last of them."""
    images, shape = some_images(), {"kind": "dilation", "radius": 1}
    bare, transformed = remask(images, masks=3), remask(images, masks=3, shape=shape)
    for image in range(5):
        state = images[image].numpy().copy()
        for step in range(3):
            [expected] = transform(bare["mask"][image, step][None], shape, [0])
            np.testing.assert_array_equal(transformed["mask"][image, step], expected)
            color = plain_mean(state, expected)
            assert transformed["mean"][image, step].tolist() == color
            state[:, expected] = np.array(color)[:, None]
    assert (transformed["mask"].sum(1) > 1).any()


def test_a_random_transform_differs_between_seeds_images_and_masks() -> None:
    images, settings = (
        some_images()[:1].expand(5, -1, -1, -1),
        {"shape": {"kind": "transposition"}, "masks": 2},
    )
    masks = np.concatenate([remask(images, constant, seed=seed, **settings)["mask"] for seed in (3, 4)])
    assert (masks.sum((2, 3)) == 7).all()
    assert len({mask.tobytes() for mask in masks.reshape(20, -1)}) == 20


def test_roars_first_mask_is_transformed_as_iteroars() -> None:
    """Else f_1 would differ between the protocols by chance."""
    images, shape = some_images(), {"kind": "transposition"}
    one, several = remask(images, masks=1, shape=shape), remask(images, masks=3, shape=shape)
    np.testing.assert_array_equal(one["mask"], several["mask"][:, :1])


def test_maps_are_kept_with_keep_maps() -> None:
    images = some_images()
    assert set(remask(images)) == {"mask", "mean", "ranked"}
    kept = remask(images, keep_maps=True)
    assert kept["map"].dtype == np.float32
    assert kept["map"].shape[0] == len(images)
    again = highest(reduce(torch.from_numpy(kept["map"]), "abs_max"), int(kept["mask"][0].sum()))
    np.testing.assert_array_equal(again.numpy(), kept["mask"])


def unranked(model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator) -> Tensor:
    """Maps that rank nothing for three kinds of images, which their first pixel names."""
    maps = random(model, images, targets, generator=generator)
    kinds = (images[:, 0, 0, 0] * 255).round().int().tolist()
    for row, kind in zip(maps, kinds, strict=True):
        if kind == 1:
            row.fill_(0.5)
        elif kind == 2:
            row.fill_(0.5)[0, 5, 5] = 0.5 + 2**-23  # as upsampling one value leaves it
        elif kind == 3:
            row[0, 5, 5] = nan
    return maps


def test_maps_that_rank_nothing_occlude_in_reading_order_and_are_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    images = some_images()
    images[:, 0, 0, 0] = torch.tensor([9, 1, 2, 9, 3], dtype=torch.uint8)
    with caplog.at_level(logging.WARNING, "saliency_assay.studies.retrain.masks"):
        remask(some_images())
        assert caplog.messages == []
        blocks = remask(images, unranked, masks=2)
    assert blocks["ranked"].tolist() == [True, False, False, True, False]
    for image in (1, 2, 4):
        flat = blocks["mask"][image].reshape(2, -1)
        assert flat[0, :7].all()
        assert flat[1, 7:14].all()
    assert (blocks["mask"].sum((2, 3)) == 7).all()
    assert caplog.messages[-1].startswith("3 of 5 maps are constant or not finite")
    with pytest.raises(ValueError, match=r"unranked: returned NaN or infinity for image 4\b"):
        remask(images, unranked, finite=True)


def test_targets_are_labels_of_the_classifier() -> None:
    images, labels = some_images(23), (np.arange(23) % CLASSES).astype(np.int64)
    classifier = conv_classifier(dtype=torch.float32)
    assert targets_of(classifier, images, labels, "label", 5).tolist() == labels.tolist()
    with pytest.raises(ValueError, match=f"^targets: found class {CLASSES}, expected 0 to {CLASSES - 1}$"):
        targets_of(classifier, images, labels + 1, "label", 5)


def test_predictions_are_made_block_by_block_when_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "BLOCK", 8)
    images, seen = some_images(23), []
    network = with_random_state(SmoothNet(3 * 12 * 12), 1)
    classifier = wrapped(network, "", dtype=torch.float32)
    expected = classifier(to_pixels(images)).argmax(1)
    assert len(set(expected.tolist())) > 1
    classifier.register_forward_pre_hook(lambda _, inputs: seen.append(len(inputs[0])))
    predicted = targets_of(classifier, images, np.empty(0), "predicted", 5)
    for start, stop, batches in [(8, 11, [5, 3]), (11, 16, [5, 3]), (20, 23, [5, 3, 5, 2])]:
        classes = predicted[start:stop]
        assert classes.dtype == np.int64
        assert classes.tolist() == expected[start:stop].tolist()
        assert seen == batches


# ------------------------------------------------------------------------------------------ the chain in small

SIDE, ITERATIONS = 20, 10
K = pixels(SIDE * SIDE, 95)


def brightness(model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator) -> Tensor:
    """A map that is lowest where pixels are occluded with black."""
    return images.sum(1, keepdim=True)


def chain_images() -> Tensor:
    generator = torch.Generator().manual_seed(5)
    return torch.randint(1, 256, (7, 1, SIDE, SIDE), generator=generator, dtype=torch.uint8)


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[Callable[..., tuple[Tensor, dict[str, pd.DataFrame], Tensor]]]:
    """m̄_0 … m̄_9 of D_0 … D_9, each kept in a store, as the jobs do; f_i is the same throughout."""
    classifier = conv_classifier(channels=1, dtype=torch.float32)
    with ExitStack() as stack:

        def run(fill: str = "zero", *, roar: bool = False) -> Any:
            images, stores = chain_images(), []
            for iteration in range(1 if roar else ITERATIONS):
                before = Occluded(images, layers_of(stores, fill, iteration), CPU)
                blocks = remasked(
                    brightness, {}, classifier, before, cyclic_targets(7).numpy(), seed=1, batch_size=2,
                    finite=True, reduction="sum", count=K, masks=ITERATIONS if roar else 1, shape=NONE,
                )  # fmt: skip
                path = tmp_path / f"{roar}_{fill}_{iteration}.zarr.zip"
                zarr_store.write(path, blocks, kind="masks", attributes={})
                stores.append(stack.enter_context(zarr_store.open_store(path, kind="masks")))
            layers = layers_of(stores, fill, ITERATIONS)
            table = overlap_scores(layers, np.arange(7))
            masks = torch.cat([torch.from_numpy(opened["mask"][:]) for opened in stores], 1)
            return masks, dict(list(table.groupby("metric"))), Occluded(images, layers, CPU)[:]

        yield run


def by_iteration(table: pd.DataFrame) -> pd.DataFrame:
    """A row an image, a column an iteration."""
    wide = table.pivot(index="image", columns="variant", values="score")
    return wide[sorted(wide.columns, key=int)]


def test_a_map_that_leaves_black_pixels_covers_all_that_is_allowed(chain: Callable[..., Any]) -> None:
    """MMO = MAMO = 0, CMA = ρA; the masks are those that ROAR takes from the first map at once."""
    masks, scores, left = chain()
    for name in ("mmo", "mamo", "overlap"):
        assert set(scores[name]["score"]) == {0}
    assert K == 0.05 * SIDE * SIDE
    assert (by_iteration(scores["cma"]) == K * np.arange(1, ITERATIONS + 1)).all(axis=None)
    assert set(by_iteration(scores["cma"])["9"]) == {0.5 * SIDE * SIDE}
    at_once, _, same = chain(roar=True)
    assert torch.equal(masks, at_once)
    assert torch.equal(left, same)
    darkest = chain_images().flatten(1).sort(1).values[:, : SIDE * SIDE // 2]
    assert torch.equal(left.flatten(1).sort(1).values[:, SIDE * SIDE // 2 :], darkest)


def test_pixels_of_a_bright_fill_are_masked_again(chain: Callable[..., Any]) -> None:
    """The mean of the brightest pixels is bright: with fill ``mean``, masks include pixels that were filled before."""
    masks, scores, left = chain("mean")
    images = chain_images()
    for image in range(7):
        state = images[image, 0].numpy().copy()
        for step in range(ITERATIONS):
            order = in_order(torch.from_numpy(state.astype(float)))[:K]
            assert set(masks[image, step].flatten().nonzero().flatten().tolist()) == set(order)
            state.flat[order] = floor(Fraction(int(state.flat[order].sum(dtype=int)), K) + Fraction(1, 2))
        np.testing.assert_array_equal(left[image, 0], state)
    assert by_iteration(scores["mmo"]).min(axis=None) > 0
