"""The caller of attribution methods: batches, checks, and what it leaves as it was."""

import gc
import itertools
import logging
import re
from collections.abc import Callable
from typing import ClassVar
from weakref import ref

import numpy as np
import pytest
import torch
from support import conv_classifier, state_of
from torch import Tensor

from saliency_assay.methods import engine
from saliency_assay.methods.engine import attribute
from saliency_assay.methods.gradient import gradient
from saliency_assay.methods.model_free import random
from saliency_assay.methods.optimal import optimal_square
from saliency_assay.methods.sampling import BlockGenerator, Role, sample_seeds
from saliency_assay.methods.smoothing import smoothgrad
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.state import changed
from saliency_assay.runtime import shards
from saliency_assay.runtime.shards import Shard

IMAGES = np.random.default_rng(0).integers(0, 256, (7, 3, 8, 8), dtype=np.uint8)
TARGETS = np.arange(7) % 4


@pytest.fixture
def model() -> Classifier:
    return conv_classifier(dtype=torch.float32)


def maps_of(
    method: Callable[..., Tensor], model: Classifier, batch_size: int = 3, **parameters: object
) -> np.ndarray:
    blocks = list(attribute(method, parameters, model, IMAGES, TARGETS, seed=2, batch_size=batch_size))
    assert [set(block) for block in blocks] == [{"map"}] * -(-len(IMAGES) // batch_size)
    assert max(len(block["map"]) for block in blocks) <= batch_size
    return np.concatenate([block["map"] for block in blocks])


def test_maps_are_those_of_the_method_called_with_each_image(model: Classifier) -> None:
    maps = maps_of(gradient, model)
    assert maps.dtype == np.float32
    generator = torch.Generator()
    for image, target, raw in zip(IMAGES, TARGETS, maps, strict=True):
        pixels = torch.tensor(image[None] / 255, dtype=torch.float32)
        expected = gradient(model, pixels, torch.tensor([target]), generator=generator)
        np.testing.assert_allclose(raw, expected[0].numpy(), rtol=1e-4, atol=1e-6)


def in_parts(method: Callable[..., Tensor], model: Classifier, of: int, **parameters: object) -> np.ndarray:
    """The maps of the shards, each computed by itself, one after another."""
    maps = []
    for number in range(1, of + 1):
        rows = Shard(number, of).slice_of(len(IMAGES))
        blocks = attribute(
            method, parameters, model, IMAGES[rows], TARGETS[rows], seed=2, batch_size=2, offset=rows.start
        )
        maps += [block["map"] for block in blocks]
    return np.concatenate(maps)


@pytest.mark.parametrize(
    ("method", "parameters"),
    [(smoothgrad, {"samples": 3}), (random, {}), (optimal_square, {"largest": 3, "squares": 20})],
)
def test_shards_equal_the_whole_bit_for_bit(
    model: Classifier,
    monkeypatch: pytest.MonkeyPatch,
    method: Callable[..., Tensor],
    parameters: dict[str, object],
) -> None:
    monkeypatch.setattr(shards, "BLOCK", 3)
    whole = in_parts(method, model, 1, **parameters)
    for of in (2, 3):
        np.testing.assert_array_equal(in_parts(method, model, of, **parameters), whole)


def test_batch_size_does_not_change_maps_of_several_blocks(
    model: Classifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "BLOCK", 3)
    joined = []
    for batch_size, sizes in ((1, [1] * 7), (2, [2, 1, 2, 1, 1]), (7, [3, 3, 1])):
        blocks = attribute(smoothgrad, {"samples": 4}, model, IMAGES, TARGETS, seed=2, batch_size=batch_size)
        maps = [block["map"] for block in blocks]
        assert [len(block) for block in maps] == sizes
        joined.append(np.concatenate(maps))
    for each in joined[:-1]:
        np.testing.assert_allclose(each, joined[-1], rtol=1e-4, atol=1e-6)


def test_noise_depends_on_role_seed_and_block() -> None:
    def first_seed(seed: int, role: Role, block: int) -> int:
        return sample_seeds(1, 1, BlockGenerator(seed, role).at(block))[0]

    cases = list(itertools.product((0, 5), ("method", "metric"), (0, 1)))
    seeds = [first_seed(*case) for case in cases]
    assert seeds == [first_seed(*case) for case in cases]
    shared = {BlockGenerator(seed, role).initial_seed() for seed in (0, 5) for role in ("method", "metric")}
    assert len({*seeds, *shared}) == len(cases) + 4


def test_a_block_continues_and_what_images_share_stays() -> None:
    generator = BlockGenerator(5, "method")
    whole, shared = sample_seeds(4, 1, generator), generator.initial_seed()
    again = BlockGenerator(5, "method")
    assert [*sample_seeds(3, 1, again), *sample_seeds(1, 1, again.at(0))] == whole
    assert again.at(1).initial_seed() == shared


def test_a_block_is_256_images_for_any_batch(model: Classifier) -> None:
    """At the real size: the second block's noise begins at image 256, whatever a part or a batch has before it."""
    count = 256 + 5
    images = np.random.default_rng(1).integers(0, 256, (count, 3, 4, 4), dtype=np.uint8)
    targets = np.zeros(count, dtype=np.int64)
    whole = list(attribute(random, {}, model, images, targets, seed=2, batch_size=100))
    assert [len(block["map"]) for block in whole] == [100, 100, 56, 5]
    part = attribute(random, {}, model, images[256:], targets[256:], seed=2, batch_size=100, offset=256)
    np.testing.assert_array_equal(next(part)["map"], whole[-1]["map"])
    alone = attribute(random, {}, model, images[256:], targets[256:], seed=2, batch_size=100)
    assert not np.isclose(next(alone)["map"], whole[-1]["map"]).any()


def test_reads_images_batch_by_batch(model: Classifier) -> None:
    class Stored:
        """An array on disk: it has a length and slices, nothing else."""

        read: ClassVar[list[tuple[int, int]]] = []

        def __len__(self) -> int:
            return len(IMAGES)

        def __getitem__(self, key: slice) -> np.ndarray:
            self.read.append((key.start, key.stop))
            block = IMAGES[key]
            block.flags.writeable = False
            return block

    blocks = attribute(gradient, {}, model, Stored(), TARGETS, seed=0, batch_size=3)
    for number, _ in enumerate(blocks, start=1):
        assert len(Stored.read) == number
    assert Stored.read == [(0, 3), (3, 6), (6, 7)]


def test_method_sees_evaluation_mode_and_frozen_parameters_and_nothing_stays(model: Classifier) -> None:
    model.train()
    model.network.body[9].eval()
    frozen = next(model.parameters())
    frozen.requires_grad_(False)
    before = state_of(model)

    def watcher(model: Classifier, images: Tensor, targets: Tensor, *, generator: torch.Generator) -> Tensor:
        assert not any(module.training for module in model.modules())
        assert not any(parameter.requires_grad for parameter in model.parameters())
        assert torch.backends.cudnn.conv.fp32_precision == "ieee"
        return images

    blocks = attribute(watcher, {}, model, IMAGES, TARGETS, seed=0, batch_size=3)
    next(blocks)
    assert state_of(model) == before  # between blocks too: an abandoned iterator leaves nothing behind
    assert torch.backends.cudnn.conv.fp32_precision == "tf32"


def failing(change: Callable[[Classifier, Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    def method(model: Classifier, images: Tensor, targets: Tensor, *, generator: torch.Generator) -> Tensor:
        return change(model, images, targets)

    return method


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda m, x, t: x.mean(1),
            "returned float32 [3, 8, 8] on cpu, expected float32 [3, 3 or 1, 8, 8] on cpu",
        ),
        (lambda m, x, t: x[:, :2], "returned float32 [3, 2, 8, 8] on cpu"),
        (lambda m, x, t: x[:1], "returned float32 [1, 3, 8, 8] on cpu"),
        (lambda m, x, t: x.double(), "returned float64 [3, 3, 8, 8] on cpu"),
        (lambda m, x, t: x.to("meta"), "returned float32 [3, 3, 8, 8] on meta"),
        (lambda m, x, t: x.numpy(), "returned ndarray"),
        (lambda m, x, t: x.mul_(2), "changed the images in place; "),
        (lambda m, x, t: x + t.add_(1)[:, None, None, None], "changed the targets in place; "),
        (lambda m, x, t: x + next(m.parameters()).mul_(2).sum(), "changed network.body.0.weight in place; "),
    ],
)
def test_a_method_that_breaks_the_contract_is_refused(
    model: Classifier, change: Callable[[Classifier, Tensor, Tensor], Tensor], message: str
) -> None:
    with pytest.raises(ValueError, match=rf"^{__name__}:failing.<locals>.method: {re.escape(message)}"):
        list(attribute(failing(change), {}, model, IMAGES, TARGETS, seed=0, batch_size=3))


def test_weights_are_compared_once_for_each_method_parameters_and_network(
    model: Classifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = []

    def record(before: dict[str, Tensor], after: dict[str, Tensor]) -> list[str]:
        compared.append(len(before))
        return changed(before, after)

    monkeypatch.setattr(engine, "changed", record)

    def comparisons(method: Callable[..., Tensor], **parameters: object) -> int:
        compared.clear()
        maps_of(method, model, **parameters)
        return len(compared)

    assert [comparisons(gradient) for _ in range(3)] == [1, 0, 0]
    assert [comparisons(random), comparisons(gradient)] == [1, 0]
    assert [comparisons(smoothgrad, samples=count) for count in (1, 2, 1)] == [1, 1, 0]
    assert [comparisons(smoothgrad, samples=1, base=gradient) for _ in range(2)] == [1, 1]
    with torch.no_grad():
        next(model.parameters()).mul_(2)
    assert [comparisons(gradient) for _ in range(2)] == [1, 0]
    scale = failing(lambda m, x, t: x * next(m.network.parameters()).mul_(2).sum())
    for _ in range(2):
        with pytest.raises(ValueError, match="in place"):
            comparisons(scale)


def test_a_method_that_refers_to_the_network_does_not_keep_it_alive() -> None:
    model = conv_classifier(dtype=torch.float32)
    maps_of(failing(lambda m, x, t, own=model: x), model)
    network = ref(model.network)
    del model
    gc.collect()
    assert network() is None


def test_maps_that_are_not_finite_are_kept_and_counted(
    model: Classifier, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(model: Classifier, images: Tensor, targets: Tensor, *, generator: torch.Generator) -> Tensor:
        maps = images.clone()
        maps[targets == 1] = torch.nan
        maps[targets == 2, 0, 0, 0] = torch.inf
        return maps

    with caplog.at_level(logging.INFO):
        maps = maps_of(broken, model)
    np.testing.assert_array_equal(np.isnan(maps).all((1, 2, 3)), TARGETS == 1)
    np.testing.assert_array_equal(np.isinf(maps).any((1, 2, 3)), TARGETS == 2)
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warning.endswith("broken: 4 of 7 maps contain NaN or infinity")


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_maps_that_must_be_finite_are_refused_if_one_is_not(model: Classifier, value: float) -> None:
    def broken(model: Classifier, images: Tensor, targets: Tensor, *, generator: torch.Generator) -> Tensor:
        maps = images.clone()
        maps[targets == 3, 0, 0, 0] = value  # image 3, the first of the second batch
        return maps

    with pytest.raises(
        ValueError, match=r"broken: returned NaN or infinity for image 3, expected finite values$"
    ):
        list(attribute(broken, {}, model, IMAGES, TARGETS, seed=0, batch_size=3, finite=True))
    # In a part it is counted as in the whole.
    with pytest.raises(ValueError, match=r"broken: returned NaN or infinity for image 259, "):
        list(attribute(broken, {}, model, IMAGES, TARGETS, seed=0, batch_size=3, finite=True, offset=256))
    list(attribute(gradient, {}, model, IMAGES, TARGETS, seed=0, batch_size=3, finite=True))


@pytest.mark.parametrize(
    ("images", "targets", "settings", "message"),
    [
        (IMAGES, TARGETS, {"batch_size": 0}, "batch_size: found 0, expected at least 1"),
        (IMAGES, TARGETS, {"offset": 7}, "offset: found 7, expected a multiple of 256"),
        (IMAGES, TARGETS[:6], {}, "targets: found int64 [6] for 7 images, expected int64 [N]"),
        (IMAGES[:0], TARGETS[:0], {}, "targets: found int64 [0] for 0 images"),
        (IMAGES, TARGETS.astype(np.int32), {}, "targets: found int32 [7] for 7 images"),
        (IMAGES, TARGETS + 1, {}, "targets: found class 4, expected 0 to 3"),
        (IMAGES, TARGETS - 1, {}, "targets: found class -1, expected 0 to 3"),
    ],
)
def test_wrong_input_is_refused_before_the_first_map(
    model: Classifier, images: np.ndarray, targets: np.ndarray, settings: dict[str, int], message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        attribute(gradient, {}, model, images, targets, **{"seed": 0, "batch_size": 3, **settings})


@pytest.mark.parametrize(
    ("images", "shape"), [(IMAGES / 255, "float64 [3, 3, 8, 8]"), (IMAGES[:, 0], "uint8 [3, 8, 8]")]
)
def test_images_of_another_kind_are_refused(model: Classifier, images: np.ndarray, shape: str) -> None:
    with pytest.raises(
        ValueError, match=rf"^images: found {re.escape(shape)}, expected uint8 or float32 \[N"
    ):
        next(attribute(gradient, {}, model, images, TARGETS, seed=0, batch_size=3))
