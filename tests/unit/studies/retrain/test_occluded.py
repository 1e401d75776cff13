"""D_i composed from stored masks and colors, against images occluded one by one in NumPy."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from saliency_assay.data.batching import batches
from saliency_assay.runtime.shards import shard_suffixes
from saliency_assay.storage import zarr_store
from saliency_assay.studies.retrain.occluded import (
    ImageRange,
    MaskImages,
    Occluded,
    layers_of,
    open_masks,
    states_of,
)

CPU = torch.device("cpu")
COUNT, MASKS = 11, 5
SIZE = (5, 7)  # 35 pixels: no whole number of bytes
SPLITS = [(1, 1, 1, 1, 1), (5,), (2, 1, 2)]
"""Number of masks in each store."""
Bytes = NDArray[np.uint8]
Open = Callable[..., list[zarr_store.Store]]
RANDOM = np.random.default_rng(0)
IMAGES = {channels: RANDOM.integers(1, 256, (COUNT, channels, *SIZE), dtype=np.uint8) for channels in (1, 3)}
MASK = RANDOM.random((COUNT, MASKS, *SIZE)) < RANDOM.random((COUNT, MASKS, 1, 1)) / 2
MEAN = {channels: RANDOM.integers(0, 256, (COUNT, MASKS, channels), dtype=np.uint8) for channels in (1, 3)}


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    with ExitStack() as stack:

        def open_all(channels: int, split: Sequence[int]) -> list[zarr_store.Store]:
            """The masks in stores of so many each, the images in blocks of 4."""
            stores = []
            for number, end in enumerate(np.cumsum(split)):
                part, path = slice(end - split[number], end), tmp_path / f"{number}.zarr.zip"
                blocks = (
                    {"mask": MASK[start : start + 4, part], "mean": MEAN[channels][start : start + 4, part]}
                    for start in range(0, COUNT, 4)
                )
                zarr_store.write(path, blocks, kind="masks", attributes={})
                stores.append(stack.enter_context(zarr_store.open_store(path, kind="masks")))
            return stores

        yield open_all


def needed(split: Sequence[int], iteration: int) -> int:
    """Return the number of stores that contain the masks of D_i."""
    return sum(before < iteration for before in np.cumsum([0, *split[:-1]]))


def plain_states(channels: int, fill: str, iteration: int) -> list[Bytes]:
    """D_0 … D_i, pixel by pixel."""
    states = [IMAGES[channels].copy()]
    for step in range(iteration):
        after = states[-1].copy()
        for image, channel, row, column in product(range(COUNT), range(channels), *map(range, SIZE)):
            if MASK[image, step, row, column]:
                color = MEAN[channels][image, step, channel] if fill == "mean" else 0
                after[image, channel, row, column] = color
        states.append(after)
    return states


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize(("channels", "fill"), [(1, "zero"), (3, "mean")])
def test_images_are_those_occluded_one_by_one(
    opened: Open, channels: int, fill: str, split: tuple[int, ...]
) -> None:
    stores = opened(channels, split)
    images = IMAGES[channels].copy()
    for iteration, expected in enumerate(plain_states(channels, fill, MASKS)):
        occluded = Occluded(images, layers_of(stores[: needed(split, iteration)], fill, iteration), CPU)
        assert (len(occluded), occluded.shape, occluded.dtype) == (COUNT, (COUNT, channels, *SIZE), np.uint8)
        for index in ([7, 2, 2, 10, 0], [3], []):
            array = np.array(index, dtype=np.int64)
            for places in (array, torch.from_numpy(array)):
                assert torch.equal(occluded[places], torch.from_numpy(expected[array]))
        for part in (slice(None), slice(3, 9), slice(9, 40), slice(4, 4)):
            assert torch.equal(occluded[part], torch.from_numpy(expected[part]))
    np.testing.assert_array_equal(images, IMAGES[channels])


@pytest.mark.parametrize(("channels", "split"), [(1, (2, 1, 2)), (3, (5,))])
def test_interpolated_pixels_are_weighted_means_of_their_neighbors(
    opened: Open, channels: int, split: tuple[int, ...]
) -> None:
    """Up to the noise and rounding, from all pixels that no mask occludes, whichever mask occluded them."""
    free = MASK[:, :MASKS].any(1).sum((1, 2)) < np.prod(SIZE)
    rows = np.flatnonzero(free)
    assert len(rows) > 3
    stores = opened(channels, split)
    for iteration in (1, 3, MASKS):
        layers = layers_of(stores[: needed(split, iteration)], "linear", iteration)
        filled = Occluded(IMAGES[channels], layers, CPU)[rows].numpy()
        occluded = MASK[rows, :iteration].any(1)
        for image, row, mask in zip(filled, rows, occluded, strict=True):
            original = IMAGES[channels][row]
            assert (image[:, ~mask] == original[:, ~mask]).all()
            expected = plain_interpolation(original, mask)
            difference = (image - expected)[:, mask]
            assert np.abs(difference).max(initial=0) < 5 * 2.55 + 0.5
    assert np.std([difference]) > 0  # there is noise


def plain_interpolation(image: Bytes, mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Solve for the occluded pixels with a dense matrix: each is the weighted mean of the neighbors that it has."""
    places = [(int(row), int(column)) for row, column in np.argwhere(mask)]
    number = {place: index for index, place in enumerate(places)}
    matrix, right = np.eye(len(places)), np.zeros((len(places), len(image)))
    for (row, column), index in number.items():
        neighbors = {
            (row + down, column + across): 1 / 6 if 0 in (down, across) else 1 / 12
            for down, across in product((-1, 0, 1), repeat=2)
            if (down, across) != (0, 0) and 0 <= row + down < SIZE[0] and 0 <= column + across < SIZE[1]
        }
        for place, weight in neighbors.items():
            share = weight / sum(neighbors.values())
            if place in number:
                matrix[index, number[place]] -= share
            else:
                right[index] += share * image[:, place[0], place[1]]
    filled = image.astype(np.float64)
    if places:
        filled[:, mask] = np.linalg.solve(matrix, right).T
    return filled


def test_noise_of_interpolated_pixels_depends_on_the_image_alone(opened: Open) -> None:
    stores = opened(3, (MASKS,))
    one = Occluded(IMAGES[3], layers_of(stores, "linear", 1), CPU)
    assert torch.equal(one[2:5], one[np.array([2, 3, 4])])
    assert torch.equal(one[torch.tensor([4, 2])], one[2:5][[2, 0]])
    states, _ = states_of(IMAGES[3], layers_of(stores, "linear", 2), slice(2, 5))
    assert torch.equal(states[1], one[2:5])
    assert torch.equal(states[2], Occluded(IMAGES[3], layers_of(stores, "linear", 2), CPU)[2:5])


@pytest.mark.parametrize("split", SPLITS)
def test_shapes_are_unions_of_masks(opened: Open, split: tuple[int, ...]) -> None:
    stores = opened(1, split)
    for iteration in range(1, MASKS + 1):
        images = MaskImages(layers_of(stores[: needed(split, iteration)], "zero", iteration), CPU)
        assert (len(images), images.shape, images.dtype) == (COUNT, (COUNT, 1, *SIZE), np.uint8)
        expected = np.where(MASK[:, :iteration].any(1, keepdims=True), 255, 0).astype(np.uint8)
        index = np.array([6, 1, 10, 1])
        assert torch.equal(images[2:9], torch.from_numpy(expected[2:9]))
        assert torch.equal(images[index], torch.from_numpy(expected[index]))
        assert torch.equal(images[torch.from_numpy(index)], torch.from_numpy(expected[index]))
    assert (MaskImages(layers_of(stores, "zero", MASKS), CPU)[:].numpy() == 0).any()


@pytest.mark.parametrize(("channels", "fill"), [(1, "mean"), (3, "zero")])
def test_states_are_all_that_an_image_goes_through(opened: Open, channels: int, fill: str) -> None:
    chosen = np.array([8, 0, 5])
    shown, masks = states_of(
        IMAGES[channels], layers_of(opened(channels, (2, 1, 2)), fill, MASKS - 1), chosen
    )
    expected = np.stack([state[chosen] for state in plain_states(channels, fill, MASKS - 1)])
    assert shown.dtype == torch.uint8
    np.testing.assert_array_equal(shown, expected)
    assert masks.dtype == torch.bool
    np.testing.assert_array_equal(masks, np.stack([MASK[chosen, step] for step in range(MASKS - 1)]))


def test_only_as_many_masks_as_iterations_are_used(opened: Open) -> None:
    layers = layers_of(opened(3, (2, 1, 2)), "zero", 4)
    assert [(layer.used, layer.mean) for layer in layers] == [(2, None), (1, None), (1, None)]
    assert layers_of([], "shared", 0) == []  # f_0's masks serve every fill


@pytest.mark.parametrize(
    ("stores", "iteration", "held"), [(1, 3, 2), (3, 3, 5), (0, 1, 0), (1, 0, 2), (3, 6, 5)]
)
def test_too_few_or_too_many_stores_are_refused(opened: Open, stores: int, iteration: int, held: int) -> None:
    chosen = opened(1, (2, 1, 2))[:stores]
    message = f"^masks: found {held} in {stores} stores, expected those of {iteration} iterations$"
    with pytest.raises(ValueError, match=message):
        layers_of(chosen, "zero", iteration)


def test_masks_in_parts_are_masks_of_all_images(tmp_path: Path) -> None:
    """Two stores of masks, each in parts of four, four and three images, against the same masks whole."""
    paths: list[Path] = []
    with ExitStack() as stack:
        zarr_store.write(tmp_path / "data", [{"image": IMAGES[3]}], kind="data", attributes={})
        data = stack.enter_context(zarr_store.open_store(tmp_path / "data", kind="data"))
        for step in (0, 1):
            before = [opened.attributes["digest"] for opened in open_masks(stack, paths, data)]
            shared = {"data": data.attributes["digest"], "before": before}
            for number, name in enumerate(shard_suffixes(3), 1):
                here = slice(4 * (number - 1), 4 * number)
                block = {"mask": MASK[here, step : step + 1], "mean": MEAN[3][here, step : step + 1]}
                path = tmp_path / f"{step}{name}.zarr.zip"
                attributes = {**shared, "shard": (number, 3), "offset": here.start}
                zarr_store.write(path, [block], kind="masks", attributes=attributes)
                paths.append(path)
        opened = open_masks(stack, paths, data)
        assert [len(masks) for masks in opened] == [COUNT, COUNT]
        layers = layers_of(opened, "mean", 2)
        expected = torch.from_numpy(plain_states(3, "mean", 2)[-1])
        images = Occluded(data["image"], layers, CPU)
        order = torch.from_numpy(np.random.default_rng(1).permutation(COUNT))
        assert torch.equal(torch.cat(list(batches(images, None, 3, CPU))), expected)
        assert torch.equal(torch.cat(list(batches(images, order, 3, CPU))), expected[order])
        covered = torch.from_numpy(MASK[:, :2].any(1)[:, None].astype(np.uint8) * 255)
        assert torch.equal(MaskImages(layers, CPU)[order], covered[order])
        with pytest.raises(
            zarr_store.StoreError, match=r"1\.shard2of3\.zarr\.zip: found shard 2 of 3, expected 1 of 2$"
        ):
            open_masks(stack, [*paths[:3], *paths[4:]], data)
        with pytest.raises(
            zarr_store.StoreError, match=r"1\.shard1of3\.zarr\.zip: before is \['.*'\], expected \[\]$"
        ):
            open_masks(stack, paths[3:], data)
        zarr_store.write(tmp_path / "other", [{"image": IMAGES[3][::-1].copy()}], kind="data", attributes={})
        other = stack.enter_context(zarr_store.open_store(tmp_path / "other", kind="data"))
        with pytest.raises(
            zarr_store.StoreError, match=r"0\.shard1of3\.zarr\.zip: data is '\w+', expected '"
        ):
            open_masks(stack, paths, other)


def test_a_stretch_is_sliced_as_all_there_is() -> None:
    images = ImageRange(IMAGES[1], slice(3, 9))
    assert (len(images), images.shape) == (6, (6, 1, *SIZE))
    np.testing.assert_array_equal(images[0:4], IMAGES[1][3:7])
    np.testing.assert_array_equal(images[4:9], IMAGES[1][7:9])
