"""Occluded pixels and chains of masks, compared with plain re-derivations and closed forms."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from fractions import Fraction
from functools import partial
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
from saliency_assay.runtime.provenance import seed_of
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


@pytest.mark.parametrize(("count", "masks"), [(1, 1), (3, 1), (54, 1), (3, 10), (5, 10), (1, 54), (27, 2)])
def test_masks_are_of_the_highest_values_and_ties_of_the_lowest_index(count: int, masks: int) -> None:
    maps = some_maps()
    before = maps.clone()
    found = highest(maps, count, masks)
    assert found.dtype == torch.bool
    assert found.shape == (len(maps), masks, *SIZE)
    assert (found.sum((2, 3)) == count).all()
    assert (found.sum(1) <= 1).all()
    for saliency, of_map in zip(maps, found.flatten(2), strict=True):
        order = in_order(saliency)
        for step, mask in enumerate(of_map):
            assert set(mask.nonzero().flatten().tolist()) == set(order[step * count : (step + 1) * count])
    np.testing.assert_array_equal(maps, before)


def test_unions_of_roars_masks_are_those_of_a_lower_threshold() -> None:
    maps = some_maps()
    masks = highest(maps, 4, 13)
    for step in range(13):
        assert torch.equal(masks[:, : step + 1].any(1), highest(maps, 4 * (step + 1))[:, 0])
    assert torch.equal(masks[:, :1], highest(maps, 4))


@pytest.mark.parametrize("value", [0.0, 7.0, nan, inf, -inf])
def test_a_constant_map_occludes_in_reading_order(value: float) -> None:
    masks = highest(torch.full((2, *SIZE), value), 10, 2).flatten(2)
    assert masks[:, 0, :10].all()
    assert masks[:, 1, 10:20].all()


def test_values_beyond_all_numbers_have_their_places() -> None:
    maps = torch.tensor([[[nan, -inf, 1.0], [inf, 3e38, -3e38]]])
    order = [highest(maps, 1, 6)[0, step].flatten().nonzero().item() for step in range(6)]
    assert order == [3, 4, 2, 5, 0, 1]


def test_more_pixels_than_there_are_are_refused() -> None:
    for count, masks in ((55, 1), (6, 10), (28, 2)):
        with pytest.raises(ValueError, match=r"^occluded: ") as error:
            highest(some_maps(), count, masks)
        found = f"occluded: found {count * masks} pixels in total"
        assert str(error.value) == f"{found}, expected at most 54, those of an image"


# ------------------------------------------------------------------------------------------- the color


def plain_mean(image: NDArray[np.uint8], mask: NDArray[np.bool_]) -> list[int]:
    """Of each channel, in fractions, half rounded up."""
    means = []
    for channel in image.tolist():
        values = [channel[y][x] for y, x in product(*map(range, mask.shape)) if mask[y][x]]
        means.append(floor(Fraction(sum(values), len(values)) + Fraction(1, 2)) if values else 0)
    return means


@pytest.mark.parametrize("channels", [1, 3])
def test_a_mean_is_the_exact_one_rounded_half_up(channels: int) -> None:
    rng = np.random.default_rng(1)
    images = rng.integers(0, 256, (40, channels, *SIZE), dtype=np.uint8)
    mask = rng.random((40, *SIZE)) < rng.random((40, 1, 1))
    images[:2], mask[0], mask[1], mask[2] = 255, True, False, False
    found = mean_under(torch.from_numpy(images), torch.from_numpy(mask))
    assert found.dtype == torch.uint8
    assert found.tolist() == [plain_mean(image, part) for image, part in zip(images, mask, strict=True)]
    assert found[:2].tolist() == [[255] * channels, [0] * channels]


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
    wanted = cyclic_targets(len(images)) if targets is None else targets
    blocks = list(remasked(method, {}, classifier, images, wanted.numpy(), **{**settings, **changed}))
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
each_kind = pytest.mark.parametrize(("method", "shape", "masks"), KINDS)


@each_kind
def test_masks_do_not_depend_on_batches(
    method: Callable[..., Tensor], shape: Mapping[str, Any], masks: int
) -> None:
    whole = remask(some_images(), method, shape=shape, masks=masks, batch_size=100)
    assert whole["mask"].shape == (5, masks, 12, 12)
    assert whole["mask"].dtype == whole["ranked"].dtype == bool
    assert whole["mean"].shape == (5, masks, 3)
    assert whole["mean"].dtype == np.uint8
    assert whole["ranked"].tolist() == [True] * 5
    for batch_size in (1, 2, 3):
        assert equal(whole, remask(some_images(), method, shape=shape, masks=masks, batch_size=batch_size))


@pytest.mark.parametrize("target", ["label", "predicted"])
@each_kind
def test_masks_do_not_depend_on_parts(
    method: Callable[..., Tensor],
    shape: Mapping[str, Any],
    masks: int,
    target: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Seven images in blocks of three and batches of two: masks, colors and flags of all parts are those of one."""
    monkeypatch.setattr(shards, "BLOCK", 3)
    images = torch.cat([some_images(), some_images(seed=8)[:2]])
    labels = cyclic_targets(7).numpy()
    classifier = conv_classifier(dtype=torch.float32)

    def parts(of: int) -> Blocks:
        blocks = []
        for number in range(1, of + 1):
            where = Shard(number, of).slice_of(7)
            mine = ImageRange(images, where)
            blocks += remasked(
                method, {}, classifier, mine, targets_of(classifier, mine, labels[where], target, 2),
                seed=3, batch_size=2, finite=True, reduction="abs_max", count=7, masks=masks, shape=shape,
                offset=where.start,
            )  # fmt: skip
        return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}

    whole = parts(1)
    assert len(whole["mask"]) == 7
    for of in (2, 3):
        assert equal(whole, parts(of))


@each_kind
def test_a_mask_depends_on_its_own_image_alone(
    method: Callable[..., Tensor], shape: Mapping[str, Any], masks: int
) -> None:
    images = some_images()
    before = remask(images, method, shape=shape, masks=masks)
    images[3] = some_images(seed=8)[3]
    after = remask(images, method, shape=shape, masks=masks)
    assert equal(before, after, [0, 1, 2, 4])
    assert not equal(before, after, [3])


def test_masks_follow_classifier_and_target_but_a_seed_only_where_something_is_drawn() -> None:
    images = some_images()
    first = remask(images)
    assert equal(first, remask(images))
    assert equal(first, remask(images, seed=4))
    other = remask(images, model=2)
    assert all((first["mask"][image] != other["mask"][image]).any() for image in range(5))
    moved = remask(images, targets=(cyclic_targets(5) + torch.tensor([0, 1, 0, 0, 2])) % CLASSES)
    changed = [bool((first["mask"][image] != moved["mask"][image]).any()) for image in range(5)]
    assert changed == [False, True, False, False, True]


def test_the_random_baseline_draws_other_masks_from_another_seed_and_for_each_image() -> None:
    images = some_images()[:1].expand(5, -1, -1, -1)
    one, other = (remask(images, random, seed=seed)["mask"][:, 0] for seed in (3, 4))
    assert len({mask.tobytes() for mask in [*one, *other]}) == 10
    assert np.array_equal(one, remask(images, random, model=2)["mask"][:, 0])


@pytest.mark.parametrize("reduction", ["sum", "abs_max"])
def test_masks_are_of_the_highest_reduced_values(reduction: str) -> None:
    """Plainly: the gradient, its channels reduced, sorted; and what the image shows there."""
    images, targets = some_images(), cyclic_targets(5)
    found = remask(images, masks=3, reduction=reduction)
    classifier = conv_classifier(dtype=torch.float32)
    for image in range(5):
        pixel = to_pixels(images[image : image + 1]).requires_grad_()
        classifier(pixel)[0, targets[image]].backward()
        slopes = pixel.grad[0].numpy()
        order = in_order(torch.from_numpy({"sum": slopes.sum(0), "abs_max": abs(slopes).max(0)}[reduction]))
        for step in range(3):
            mask = found["mask"][image, step]
            assert set(np.flatnonzero(mask).tolist()) == set(order[7 * step : 7 * (step + 1)])
            assert found["mean"][image, step].tolist() == plain_mean(images[image].numpy(), mask)


@pytest.mark.parametrize(("count", "masks"), [(1, 1), (3, 1), (27, 2), (3, 10)])
def test_the_least_important_pixels_are_those_that_come_last(count: int, masks: int) -> None:
    """Equal pixels, too, so that the two orders first share pixels when they meet; NaN is in reading order."""
    maps = some_maps()
    found = highest(maps, count, masks, least_first=True)
    for saliency, chosen in zip(maps, found, strict=True):
        order = in_order(saliency) if saliency.isnan().all() else in_order(saliency)[::-1]
        for step in range(masks):
            expected = set(order[step * count : (step + 1) * count])
            assert set(torch.nonzero(chosen[step].flatten()).flatten().tolist()) == expected


def test_masks_of_both_orders_are_disjoint_until_they_meet() -> None:
    def sparse(*arguments: Any, **keywords: Any) -> Tensor:
        maps = gradient(*arguments, **keywords).abs().amax(1, keepdim=True)
        return maps.maximum(maps.flatten(1).quantile(0.8, 1)[:, None, None, None])

    images = some_images()
    first, last = (
        remask(images, sparse, masks=3, reduction="abs_max", least_first=least)["mask"]
        for least in (False, True)
    )
    assert (last.sum((2, 3)) == 7).all()
    assert not (first.any(1) & last.any(1)).any()  # 21 of 144 pixels each, most of them equal


@pytest.mark.parametrize("masks", [1, 3])
@pytest.mark.parametrize("shape", [{"kind": "dilation", "radius": 1}, {"kind": "convex_hull"}])
def test_a_transform_changes_masks_and_colors_follow_it(shape: dict[str, Any], masks: int) -> None:
    """A pixel on which masks of one map overlap has the color of the last of them."""
    images = some_images()
    bare, found = remask(images, masks=masks), remask(images, masks=masks, shape=shape)
    assert (found["mask"].sum((2, 3)) > 7).all()
    for image in range(5):
        state = images[image].numpy().copy()
        for step in range(masks):
            [expected] = transform(bare["mask"][image, step][None], shape, [0])
            np.testing.assert_array_equal(found["mask"][image, step], expected)
            color = plain_mean(state, expected)
            assert found["mean"][image, step].tolist() == color
            state[:, expected] = np.array(color)[:, None]
    assert (found["mask"].sum(1) > 1).any() == (masks > 1)


def test_a_drawn_transform_differs_between_images_and_masks() -> None:
    found = remask(
        some_images()[:1].expand(5, -1, -1, -1), constant, masks=2, shape={"kind": "transposition"}
    )
    assert (found["mask"].sum((2, 3)) == 7).all()
    assert len({mask.tobytes() for mask in found["mask"].reshape(10, -1)}) == 10
    other = remask(
        some_images()[:1].expand(5, -1, -1, -1), constant, masks=2, shape={"kind": "transposition"}, seed=4
    )
    assert not equal(found, other)


def test_roars_first_mask_is_transformed_as_iteroars() -> None:
    """Else f_1 would differ between the protocols by chance."""
    images, shape = some_images(), {"kind": "transposition"}
    one, several = remask(images, masks=1, shape=shape), remask(images, masks=3, shape=shape)
    np.testing.assert_array_equal(one["mask"], several["mask"][:, :1])


def test_maps_are_kept_where_asked() -> None:
    images = some_images()
    assert set(remask(images)) == {"mask", "mean", "ranked"}
    kept = remask(images, keep_maps=True)
    assert kept["map"].dtype == np.float32
    assert kept["map"].shape[0] == len(images)
    again = highest(reduce(torch.from_numpy(kept["map"]), "abs_max"), int(kept["mask"][0].sum()))
    np.testing.assert_array_equal(again.numpy(), kept["mask"])


def says(model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator) -> Tensor:
    """Maps that rank nothing for three kinds of images, told by their first pixel."""
    maps = random(model, images, targets, generator=generator)
    kind = (images[:, 0, 0, 0] * 255).round().int().tolist()
    for row, told in zip(maps, kind, strict=True):
        if told == 1:
            row.fill_(0.5)
        elif told == 2:
            row.fill_(0.5)[0, 5, 5] = 0.5 + 2**-23  # as upsampling one value leaves it
        elif told == 3:
            row[0, 5, 5] = nan
    return maps


def test_maps_that_rank_nothing_occlude_in_reading_order_and_are_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    images = some_images()
    images[:, 0, 0, 0] = torch.tensor([9, 1, 2, 9, 3], dtype=torch.uint8)
    with caplog.at_level(logging.WARNING, "saliency_assay.studies.retrain.masks"):
        found = remask(images, says, masks=2)
    assert found["ranked"].tolist() == [True, False, False, True, False]
    for image in (1, 2, 4):
        flat = found["mask"][image].reshape(2, -1)
        assert flat[0, :7].all()
        assert flat[1, 7:14].all()
    assert (found["mask"].sum((2, 3)) == 7).all()
    lines = [
        record.getMessage()
        for record in caplog.records
        if record.name == "saliency_assay.studies.retrain.masks"
    ]
    assert lines == ["3 of 5 maps are constant or not finite, so they do not rank pixels"]


def test_nothing_is_said_where_all_maps_rank(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        remask(some_images())
    assert caplog.records == []


def test_a_users_method_may_not_return_nan() -> None:
    images = some_images()
    images[:, 0, 0, 0] = torch.tensor([9, 9, 9, 3, 9], dtype=torch.uint8)
    with pytest.raises(ValueError, match="NaN") as error:
        remask(images, says, finite=True)
    expected = f"{__name__}:says: returned NaN or infinity for image 3, expected finite values"
    assert str(error.value) == expected


def test_targets_are_labels_or_what_the_classifier_says() -> None:
    images, labels = some_images(23), (np.arange(23) % CLASSES).astype(np.int64)
    network = with_random_state(SmoothNet(3 * 12 * 12), 1)
    classifier = wrapped(network, "", dtype=torch.float32)
    assert targets_of(classifier, images, labels, "label", 5).tolist() == labels.tolist()
    said = classifier(to_pixels(images)).argmax(1)
    assert len(set(said.tolist())) > 1
    found = targets_of(classifier, images, labels, "predicted", 5)[0:23]
    assert found.dtype == np.int64
    assert found.tolist() == said.tolist()
    with pytest.raises(ValueError, match=f"^targets: found class {CLASSES}, expected 0 to {CLASSES - 1}$"):
        targets_of(classifier, images, labels + CLASSES - labels.max(), "label", 5)


def test_predictions_are_made_block_by_block_when_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "BLOCK", 8)
    images, seen = some_images(23), []
    classifier = conv_classifier(dtype=torch.float32)
    expected = classifier(to_pixels(images)).argmax(1)
    classifier.register_forward_pre_hook(lambda _, given: seen.append(len(given[0])))
    found = targets_of(classifier, images, np.empty(0), "predicted", 5)
    for start, stop, batches in [(8, 11, [5, 3]), (11, 16, [5, 3]), (20, 23, [5, 3, 5, 2])]:
        assert found[start:stop].tolist() == expected[start:stop].tolist()
        assert seen == batches


# ------------------------------------------------------------------------------------------ the chain in small

SIDE, ITERATIONS = 20, 10
K = pixels(SIDE * SIDE, 95)


def brightness(model: nn.Module, images: Tensor, targets: Tensor, *, generator: torch.Generator) -> Tensor:
    """A map that sees what is occluded with black, and so leaves it."""
    return images.sum(1, keepdim=True)


def chain_images(count: int) -> Tensor:
    generator = torch.Generator().manual_seed(5)
    return torch.randint(1, 256, (count, 1, SIDE, SIDE), generator=generator, dtype=torch.uint8)


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[Callable[..., tuple[Tensor, dict[str, pd.DataFrame], Tensor]]]:
    """m̄_0 … m̄_9 of D_0 … D_9, each kept in a store, as the jobs do; f_i is the same throughout."""
    classifier = conv_classifier(channels=1, dtype=torch.float32)
    with ExitStack() as stack:

        def run(method: Callable[..., Tensor], count: int, fill: str = "zero", *, roar: bool = False) -> Any:
            images, stores = chain_images(count), []
            for iteration in range(1 if roar else ITERATIONS):
                before = Occluded(images, layers_of(stores, fill, iteration), CPU)
                blocks = remasked(
                    method, {}, classifier, before, cyclic_targets(count).numpy(),
                    seed=seed_of(1, "remask", str(iteration)), batch_size=max(2, count // 3), finite=True,
                    reduction="sum", count=K, masks=ITERATIONS if roar else 1, shape=NONE,
                )  # fmt: skip
                path = tmp_path / f"{method.__name__}_{roar}_{fill}_{iteration}.zarr.zip"
                zarr_store.write(path, blocks, kind="masks", attributes={})
                stores.append(stack.enter_context(zarr_store.open_store(path, kind="masks")))
            layers = layers_of(stores, fill, ITERATIONS)
            table = overlap_scores(layers, np.arange(count))
            masks = torch.cat([torch.from_numpy(opened["mask"][:]) for opened in stores], 1)
            ranked = np.stack([opened["ranked"][:] for opened in stores])
            assert ranked.all() == (method is not constant)
            return masks, dict(list(table.groupby("metric"))), Occluded(images, layers, CPU)[:]

        yield run


def by_iteration(table: pd.DataFrame) -> pd.DataFrame:
    """A row an image, a column an iteration."""
    wide = table.pivot(index="image", columns="variant", values="score")
    return wide[sorted(wide.columns, key=int)]


def test_random_masks_overlap_as_independent_ones_do(chain: Callable[..., Any]) -> None:
    """MMO → (1 − τ)²A, CMA → A(1 − τ^I) = 0.401 A with τ = 0.95: all iterations within five standard errors."""
    masks, scores, _ = chain(random, 600)
    assert K == 20
    assert (masks.sum((2, 3)) == K).all()
    area, found = SIDE * SIDE, {name: by_iteration(scores[name]) for name in ("mmo", "mamo", "cma")}
    expected = {
        "mmo": [0.05**2 * area] * 9,
        "mamo": [0.05 * area * (1 - 0.95 ** (i + 1)) for i in range(9)],
        "cma": [area * (1 - 0.95 ** (i + 1)) for i in range(10)],
    }
    assert expected["cma"][-1] / area == pytest.approx(0.401, abs=5e-4)
    for name, values in expected.items():
        error = found[name].std() / 600**0.5
        assert found[name].shape == (600, len(values))
        assert (error < 0.25).all()
        assert ((found[name].mean() - values).abs() <= 5 * error + 1e-9).all()
    pairs = scores["overlap"].groupby("variant")["score"].mean()
    assert len(pairs) == 45
    assert (pairs - 1).abs().max() < 5 * 1 / 600**0.5


def test_a_map_that_never_changes_covers_one_mask(chain: Callable[..., Any]) -> None:
    """MMO = MAMO = CMA = k, 5 % of A."""
    masks, scores, _ = chain(constant, 5)
    assert (masks == masks[:, :1]).all()
    for name in ("mmo", "mamo", "cma", "overlap"):
        assert set(scores[name]["score"]) == {K}
    assert K == 0.05 * SIDE * SIDE


def test_a_map_that_leaves_black_pixels_covers_all_that_is_allowed(chain: Callable[..., Any]) -> None:
    """MMO = MAMO = 0, CMA = ρA; the masks are those that ROAR takes from the first map at once."""
    masks, scores, left = chain(brightness, 7)
    for name in ("mmo", "mamo", "overlap"):
        assert set(scores[name]["score"]) == {0}
    assert (by_iteration(scores["cma"]) == K * np.arange(1, ITERATIONS + 1)).all(axis=None)
    assert set(by_iteration(scores["cma"])["9"]) == {0.5 * SIDE * SIDE}
    at_once, _, same = chain(brightness, 7, roar=True)
    assert torch.equal(masks, at_once)
    assert torch.equal(left, same)
    darkest = chain_images(7).flatten(1).sort(1).values[:, : SIDE * SIDE // 2]
    assert torch.equal(left.flatten(1).sort(1).values[:, SIDE * SIDE // 2 :], darkest)


def test_a_fill_that_is_seen_is_chosen_again(chain: Callable[..., Any]) -> None:
    """The mean of the brightest pixels is bright: under fill ``mean`` masks come back to what was filled."""
    masks, scores, left = chain(brightness, 7, "mean")
    images = chain_images(7)
    for image in range(7):
        state = images[image, 0].numpy().copy()
        for step in range(ITERATIONS):
            order = in_order(torch.from_numpy(state.astype(float)))[:K]
            assert set(masks[image, step].flatten().nonzero().flatten().tolist()) == set(order)
            state.flat[order] = floor(Fraction(int(state.flat[order].sum(dtype=int)), K) + Fraction(1, 2))
        np.testing.assert_array_equal(left[image, 0], state)
    assert by_iteration(scores["mmo"]).min(axis=None) > 0


def test_arms_share_the_masks_of_their_first_map(chain: Callable[..., Any]) -> None:
    """m̄_0 knows no fill, and later masks of the random baseline know nothing but their noise."""
    run = partial(chain, count=5)
    bright, filled = run(brightness)[0], run(brightness, fill="mean")[0]
    assert torch.equal(bright[:, 0], filled[:, 0])
    assert not torch.equal(bright[:, 1], filled[:, 1])
    assert torch.equal(run(random)[0], run(random, fill="mean")[0])
