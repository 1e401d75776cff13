"""The caller of metrics: batches, what it gives a metric, checks, and what it leaves as it was."""

import logging
import math
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from support import RESNET8, conv_classifier, small_resnet8, state_of
from torch import Tensor, nn

from saliency_assay.methods.engine import attribute
from saliency_assay.methods.sampling import BlockGenerator, sample_seeds
from saliency_assay.methods.smoothing import smoothgrad
from saliency_assay.metrics.engine import (
    Explainer,
    MetricInputs,
    build_randomized_model,
    curves_of,
    model_responses,
    score,
    table_of,
)
from saliency_assay.metrics.faithfulness import single_pixels
from saliency_assay.metrics.scored import Scored
from saliency_assay.models.classifier import Classifier
from saliency_assay.runtime import shards
from saliency_assay.runtime.shards import Shard

COUNT = 7
RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (COUNT, 3, 8, 8), dtype=np.uint8)
TARGETS = np.arange(COUNT) % 4
MAPS = RNG.normal(size=(COUNT, 3, 8, 8)).astype(np.float32)
MASK = RNG.random((COUNT, 8, 8)) < 0.3
MEAN = torch.tensor([0.2, 0.4, 0.6])
SAMPLES = {"samples": 3}


@pytest.fixture
def model() -> Classifier:
    return conv_classifier(dtype=torch.float32)


@pytest.fixture
def randomized_model() -> Classifier:
    return conv_classifier(seed=8, dtype=torch.float32)


NAMES = ("entry", "a", "b", "deletion", "noise", "steep", "mask", "mean", "responses", "logit", "explain")


def scored(
    function: Callable[..., Any], model: Classifier, inputs: MetricInputs | None = None, **changes: Any
) -> list[Scored]:
    """The blocks of seven images, or of those in ``changes``."""
    settings: dict[str, Any] = {"parameters": {}, "images": IMAGES, "targets": TARGETS, "maps": MAPS}
    settings |= {"names": NAMES, "seed": 5, "batch_size": 3, **changes}
    parts = [settings.pop(key) for key in ("parameters", "images", "targets", "maps")]
    return list(score(function, parts[0], model, *parts[1:], inputs=inputs or MetricInputs(), **settings))


def joined(blocks: list[Scored]) -> dict[Any, np.ndarray]:
    """All scores and curves, by their keys."""
    values: dict[Any, np.ndarray] = {}
    for kind in ("scores", "curves"):
        for key in getattr(blocks[0], kind):
            values[key] = torch.cat([getattr(block, kind)[key] for block in blocks]).numpy()
    return values


def responses_of(
    predict: Classifier,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    mean: Tensor,
    power: float,
) -> dict[str, Tensor]:
    """Model responses: an output for a noisy image, and another that has more axes."""
    noise = [math.sin(seed) for seed in sample_seeds(len(images), 1, generator)]
    shown = images * mean[None, :, None, None] + 0.01 * torch.tensor(noise)[:, None, None, None]
    logits = predict(shown).double() ** power
    return {"drop": logits.gather(1, targets[:, None])[:, 0], "all": logits}


def judged(
    predict: Classifier,
    images: Tensor,
    targets: Tensor,
    maps: Tensor,
    *,
    generator: torch.Generator,
    mean: Tensor,
    mask: Tensor,
    responses: dict[str, Tensor],
    explain: Callable[..., Tensor],
    randomized_model: nn.Module,
    level: float,
) -> Scored:
    """A metric that uses all inputs that there are, each in a score of its own."""
    first, second = torch.tensor(sample_seeds(len(images), 2, generator)).reshape(-1, 2).double().sin().T
    inside = (maps.sum(1) * mask).double().sum((1, 2))
    moved = explain(images, targets).double() - explain(images, targets, model=randomized_model).double()
    scores = {
        ("noise", "first"): first,
        ("noise", "second"): second * level,
        ("mask", ""): inside,
        ("mean", ""): (images * mean[None, :, None, None]).double().mean((1, 2, 3)),
        ("responses", ""): responses["drop"] * inside,
        ("logit", ""): predict(images).double().gather(1, targets[:, None])[:, 0],
        ("explain", ""): moved.square().sum((1, 2, 3)),
    }
    return Scored(scores, {"curve": responses["all"], "whole": maps.double()})


def all_inputs(randomized_model: Classifier, responses: Any) -> MetricInputs:
    return MetricInputs(
        sliced={"mask": MASK, "responses": responses},
        whole={"mean": MEAN, "randomized_model": randomized_model},
        explainer=Explainer(smoothgrad, SAMPLES, seed=11),
    )


def responses_in(model: Classifier, batch_size: int) -> dict[str, np.ndarray]:
    """The responses of all images; ``level`` is a parameter of the metric alone."""
    inputs = MetricInputs(whole={"mean": MEAN})
    parameters = {"power": 2.0, "level": 3.0}
    parts = list(
        model_responses(
            responses_of, parameters, model, IMAGES, TARGETS, seed=5, batch_size=batch_size, inputs=inputs
        )
    )
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


# --- batches ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("of", [2, 3])
def test_parts_are_scored_as_the_whole_bit_for_bit(
    model: Classifier, randomized_model: Classifier, monkeypatch: pytest.MonkeyPatch, of: int
) -> None:
    """The metric's own noise, the method's at each call, and what the metric takes beside the maps."""
    monkeypatch.setattr(shards, "BLOCK", 3)
    parameters = {"power": 2.0, "level": 3.0}
    inputs, responses = MetricInputs(whole={"mean": MEAN}), []
    everything = all_inputs(randomized_model, responses_in(model, 2))
    whole = joined(scored(judged, model, everything, parameters=parameters, batch_size=2))
    blocks = []
    for number in range(1, of + 1):
        rows = Shard(number, of).slice_of(COUNT)
        at: dict[str, Any] = {"seed": 5, "batch_size": 2, "offset": rows.start}
        images, targets = IMAGES[rows], TARGETS[rows]
        parts = list(model_responses(responses_of, parameters, model, images, targets, inputs=inputs, **at))
        responses.append({name: np.concatenate([part[name] for part in parts]) for name in parts[0]})
        sliced = {"responses": responses[-1], "mask": MASK[rows]}
        of_shard = MetricInputs(sliced, everything.whole, everything.explainer)
        blocks += scored(
            judged,
            model,
            of_shard,
            parameters=parameters,
            images=images,
            targets=targets,
            maps=MAPS[rows],
            **at,
        )
    for name, values in responses_in(model, 2).items():
        np.testing.assert_array_equal(np.concatenate([part[name] for part in responses]), values)
    in_shards = joined(blocks)
    assert set(in_shards) == set(whole)
    for key, values in whole.items():
        np.testing.assert_array_equal(in_shards[key], values, err_msg=str(key))


def test_what_a_metric_samples_once_is_the_same_in_every_block(
    model: Classifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Faithfulness takes one set of random pixels for all images, from the initial seed."""
    monkeypatch.setattr(shards, "BLOCK", 2)
    blocks = list(model_responses(single_pixels, {"pixels": 9}, model, IMAGES, TARGETS, seed=5, batch_size=2))
    pixels = np.concatenate([block["pixel"] for block in blocks])
    assert pixels.shape == (COUNT, 9)
    np.testing.assert_array_equal(pixels, np.repeat(pixels[:1], COUNT, 0))


def test_all_at_once_is_the_function_itself(model: Classifier, randomized_model: Classifier) -> None:
    pixels, targets = torch.tensor(IMAGES).float() / 255, torch.tensor(TARGETS)
    seeded = partial(BlockGenerator, 5, "metric")
    responses = responses_of(model, pixels, targets, generator=seeded(), mean=MEAN, power=2.0)
    for name, values in responses_in(model, COUNT).items():
        np.testing.assert_allclose(values, responses[name].detach(), rtol=1e-5)

    def explain(images: Tensor, targets: Tensor, model: nn.Module = model) -> Tensor:
        return smoothgrad(model, images, targets, generator=BlockGenerator(11, "method"), **SAMPLES)

    expected = judged(
        model, pixels, targets, torch.tensor(MAPS), generator=seeded(), mean=MEAN, mask=torch.tensor(MASK),
        responses=responses, explain=explain, randomized_model=randomized_model, level=3.0,
    )  # fmt: skip
    inputs = all_inputs(randomized_model, responses_in(model, 2))
    blocks = scored(judged, model, inputs, parameters={"level": 3.0}, batch_size=2)
    assert not any(values.requires_grad for block in blocks for values in block.scores.values())
    results = joined(blocks)
    for key, values in {**expected.scores, **expected.curves}.items():
        np.testing.assert_allclose(results[key], values.detach(), rtol=1e-5, atol=1e-6, err_msg=str(key))
    for key, values in joined(scored(judged, model, inputs, parameters={"level": 3.0}, seed=6)).items():
        # The seed is that of the metric's own noise; the maps of ``explain`` have another one.
        assert np.allclose(results[key], values, 1e-4, 1e-6) == (key[0] != "noise")


@pytest.mark.parametrize(
    ("count", "batch_size", "sizes"),
    [
        (300, 200, [128, 128, 44]),
        (9, 4, [3, 3, 3]),
        (5, 2, [2, 2, 1]),
        (3, 100, [3]),
    ],
)
def test_batches_are_nearly_of_one_size(
    model: Classifier, count: int, batch_size: int, sizes: list[int]
) -> None:
    def lengths(predict: Any, images: Tensor, targets: Tensor, *rest: Tensor, generator: Any) -> Any:
        seen.append({len(images), len(targets), *map(len, rest)})
        return torch.zeros(len(images)) if rest else {"zero": torch.zeros(len(images))}

    seen: list[set[int]] = []
    images = np.zeros((count, 3, 2, 2), np.uint8)
    targets, maps = np.zeros(count, np.int64), np.zeros((count, 1, 2, 2), np.float32)
    blocks = scored(lengths, model, images=images, targets=targets, maps=maps, batch_size=batch_size)
    assert [len(block.scores["entry", ""]) for block in blocks] == sizes
    responses = model_responses(
        lengths, {}, model, images, targets, seed=0, batch_size=batch_size, inputs=MetricInputs()
    )
    assert [len(block["zero"]) for block in responses] == sizes
    assert seen == [{size} for size in sizes] * 2


def test_everything_is_read_batch_by_batch(model: Classifier) -> None:
    class Stored:
        """An array on disk: it has a length and slices, nothing else."""

        read: ClassVar[list[tuple[str, int, int]]] = []

        def __init__(self, name: str, values: np.ndarray) -> None:
            self.name, self.values = name, values

        def __len__(self) -> int:
            return len(self.values)

        def __getitem__(self, key: slice) -> np.ndarray:
            self.read.append((self.name, key.start, key.stop))
            block = self.values[key]
            block.flags.writeable = False
            return block

    def inside(predict: Any, images: Any, targets: Any, maps: Tensor, *, generator: Any, mask: Tensor) -> Any:
        assert mask.dtype == torch.bool
        return (maps.sum(1) * mask).sum((1, 2))

    images, maps, mask = Stored("images", IMAGES), Stored("maps", MAPS), Stored("mask", MASK)
    inputs = MetricInputs(sliced={"mask": mask})
    blocks = score(
        inside, {}, model, images, TARGETS, maps, names=("entry",), seed=0, batch_size=3, inputs=inputs
    )
    for number, _ in enumerate(blocks, start=1):
        assert len(Stored.read) == 3 * number
    assert Stored.read == [
        (name, start, stop) for start, stop in ((0, 3), (3, 6), (6, 7)) for name in ("images", "maps", "mask")
    ]


# --- arguments of a metric ----------------------------------------------------------------------------------


def test_a_function_receives_only_what_it_declares(model: Classifier, randomized_model: Classifier) -> None:
    everything = all_inputs(randomized_model, responses_in(model, COUNT))
    parameters = {"level": 3, "power": 2}
    seen: list[set[str]] = []

    def bare(predict: Any, images: Tensor, targets: Any, maps: Any, *, generator: Any) -> Tensor:
        seen.append(set())
        return torch.zeros(len(images))

    def optional(
        predict: Any, images: Tensor, *inputs: Any, generator: Any, mask: Any = None, other: int = 1
    ) -> Tensor:
        seen.append({"mask"} if mask is not None else set())
        return torch.full([len(images)], float(other))

    def anything(
        predict: Any, images: Tensor, targets: Any, maps: Any, *, randomized_model: nn.Module, **rest: Any
    ) -> Tensor:
        seen.append({"randomized_model", *rest})
        return torch.full([len(images)], float(rest["level"]))

    for function, value, names in (
        (bare, 0, set()),
        (optional, 1, {"mask"}),
        (anything, 3, {"randomized_model", "generator", "level", "power"}),  # inputs only by their names
    ):
        seen.clear()
        (block,) = scored(function, model, everything, parameters=parameters, batch_size=COUNT)
        assert block.scores["entry", ""].tolist() == [value] * COUNT
        assert seen == [names]


# --- the method under test ----------------------------------------------------------------------------------


def maps_of(
    model: Classifier, batch_size: int = 3, seed: int = 11, parameters: dict[str, Any] = SAMPLES
) -> np.ndarray:
    blocks = attribute(smoothgrad, parameters, model, IMAGES, TARGETS, seed=seed, batch_size=batch_size)
    return np.concatenate([block["map"] for block in blocks])


def explaining(
    calls: Callable[[Callable[..., Tensor], Tensor, Tensor], list[Tensor]],
) -> tuple[list[list[Tensor]], Callable[..., Tensor]]:
    """A metric that computes maps by ``calls``, and where it leaves them: a list for each batch."""
    seen: list[list[Tensor]] = []

    def metric(
        predict: Any, images: Tensor, targets: Tensor, maps: Any, *, generator: Any, explain: Any
    ) -> Tensor:
        seen.append(calls(explain, images, targets))
        return torch.zeros(len(images))

    return seen, metric


def all_maps(seen: list[list[Tensor]], call: int) -> np.ndarray:
    return torch.cat([batch[call] for batch in seen]).numpy()


EXPLAINED = MetricInputs(explainer=Explainer(smoothgrad, SAMPLES, seed=11))


def test_explain_does_not_go_on_where_the_metrics_own_noise_is(model: Classifier) -> None:
    def noisy(
        predict: Any, images: Tensor, targets: Any, maps: Any, *, generator: torch.Generator, explain: Any
    ) -> Tensor:
        sample_seeds(len(images), 5, generator)
        return explain(images, targets).sum((1, 2, 3))

    scores = joined(scored(noisy, model, EXPLAINED, batch_size=2))["entry", ""]
    np.testing.assert_allclose(scores, maps_of(model).sum((1, 2, 3)), rtol=1e-4, atol=1e-5)


def test_explain_computes_maps_of_any_model_and_images_with_the_same_noise(
    model: Classifier, randomized_model: Classifier
) -> None:
    """Bit for bit the stored maps, at every call."""
    seen, metric = explaining(
        lambda explain, x, t: [
            explain(x, t, model=randomized_model),
            explain(1 - x, t),
            explain(x, t),
        ]
    )
    scored(metric, model, EXPLAINED, batch_size=4)
    assert not any(maps.requires_grad for batch in seen for maps in batch)
    negative = attribute(smoothgrad, SAMPLES, model, 255 - IMAGES, TARGETS, seed=11, batch_size=COUNT)
    expected = np.concatenate([block["map"] for block in negative])
    np.testing.assert_array_equal(all_maps(seen, 0), maps_of(randomized_model, batch_size=4))
    np.testing.assert_allclose(all_maps(seen, 1), expected, rtol=1e-3, atol=1e-5)
    np.testing.assert_array_equal(all_maps(seen, 2), maps_of(model, batch_size=4))
    # Only then are they the same: other noise gives other maps.
    assert not np.isclose(maps_of(model, seed=12), maps_of(model)).any(axis=(1, 2, 3)).all()
    assert not np.allclose(maps_of(randomized_model), maps_of(model))


def test_a_method_has_its_own_parameters(model: Classifier) -> None:
    seen, metric = explaining(lambda explain, x, t: [explain(x, t)])
    parameters = {"samples": 2, "noise": 0.5}
    inputs = MetricInputs(explainer=Explainer(smoothgrad, parameters, seed=11))
    scored(metric, model, inputs, parameters={"noise": 9})
    np.testing.assert_array_equal(all_maps(seen, 0), maps_of(model, parameters=parameters))


# --- what a metric returns ----------------------------------------------------------------------------------


def returning(values: object) -> Callable[..., object]:
    def metric(predict: Any, images: Any, targets: Any, maps: Any, *, generator: Any) -> object:
        return values

    return metric


@pytest.mark.parametrize(
    ("values", "returned"),
    [
        (torch.zeros(3, 1), "float32 [3, 1] as entry"),
        (torch.zeros(2), "float32 [2] as entry"),
        (torch.zeros(3).long(), "int64 [3] as entry"),
        (np.zeros(3), "ndarray as entry"),
        (None, "NoneType as entry"),
        (Scored({}), "no scores"),
        (Scored({("a", ""): torch.zeros(3), ("b", "n=1"): torch.zeros(4)}), "float32 [4] as b n=1"),
        (Scored({("mine", ""): torch.zeros(3)}), "a score 'mine', expected entry, a, b"),
    ],
)
def test_what_is_no_score_for_each_image_is_refused(model: Classifier, values: object, returned: str) -> None:
    with pytest.raises(ValueError, match=rf"^{__name__}:returning.* returned {re.escape(returned)}, "):
        scored(returning(values), model)


def test_scores_that_are_not_defined_are_counted(model: Classifier, caplog: pytest.LogCaptureFixture) -> None:
    def partly(predict: Any, images: Any, targets: Tensor, maps: Any, *, generator: Any) -> Scored:
        values = torch.where(targets == 1, torch.nan, targets.double())
        return Scored({
            ("a", "L=2"): values,
            ("a", "L=4"): torch.zeros_like(values),
            ("b", ""): torch.where(targets == 0, values, torch.nan),
        })  # fmt: skip

    with caplog.at_level(logging.INFO):
        blocks = scored(partly, model)
    assert int(np.isnan(joined(blocks)["a", "L=2"]).sum()) == (TARGETS == 1).sum() == 2
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert [warning.partition(",")[0] for warning in warnings] == [
        "a L=2 is not defined for 2 of 7 images",
        "b is not defined for 5 of 7 images",
    ]


# --- what does not fit --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch_size": 0}, "batch_size: found 0, expected at least 1"),
        ({"targets": TARGETS[:6]}, "targets: found int64 [6] for 7 images"),
        ({"targets": TARGETS + 1}, "targets: found class 4, expected 0 to 3"),
        (
            {"images": IMAGES / 255},
            "images: found float64 [3, 3, 8, 8], expected uint8 or float32 [N, C, H, W]",
        ),
        ({"maps": MAPS[:6]}, "maps: found 6 of [3, 8, 8], expected 7 of [3 or 1, 8, 8]"),
        ({"maps": np.concatenate([MAPS, MAPS])}, "maps: found 14 of [3, 8, 8]"),
        ({"maps": MAPS[..., :7]}, "maps: found 7 of [3, 8, 7]"),
        ({"maps": MAPS[:, :2]}, "maps: found 7 of [2, 8, 8]"),
        ({"maps": MAPS[:, 0]}, "maps: found 7 of [8, 8]"),
    ],
)
def test_wrong_input_is_refused_before_the_metric_runs(
    model: Classifier, changes: dict[str, Any], message: str
) -> None:
    def never(*arguments: object, **keywords: object) -> Tensor:
        raise AssertionError("the metric ran")

    message = f"^{re.escape(message)}"
    with pytest.raises(ValueError, match=message):
        scored(never, model, **changes)
    if "maps" not in changes:
        settings = {"images": IMAGES, "targets": TARGETS, "batch_size": 3, **changes}
        with pytest.raises(ValueError, match=message):
            list(model_responses(never, {}, model, seed=0, inputs=MetricInputs(), **settings))


# --- what is left as it was ---------------------------------------------------------------------------------


def test_functions_see_evaluation_mode_and_frozen_parameters_and_nothing_stays(model: Classifier) -> None:
    model.train()
    model.network.body[9].eval()
    next(model.parameters()).requires_grad_(False)
    before = state_of(model)
    assert torch.backends.cudnn.conv.fp32_precision == "tf32"

    def watcher(predict: Classifier, images: Tensor, *rest: Any, generator: Any) -> Any:
        assert predict is model
        assert not any(module.training for module in model.modules())
        assert not any(parameter.requires_grad for parameter in model.parameters())
        assert torch.backends.cudnn.conv.fp32_precision == "ieee"
        model(images)
        return torch.zeros(len(images)) if len(rest) == 2 else {"zero": torch.zeros(len(images))}

    def between(blocks: Iterator[Any]) -> None:
        next(blocks)
        assert state_of(model) == before  # an abandoned iterator leaves nothing behind
        assert torch.backends.cudnn.conv.fp32_precision == "tf32"
        list(blocks)
        assert state_of(model) == before

    between(score(
        watcher, {}, model, IMAGES, TARGETS, MAPS, names=("entry",), seed=0, batch_size=3, inputs=MetricInputs()
    ))  # fmt: skip
    between(model_responses(watcher, {}, model, IMAGES, TARGETS, seed=0, batch_size=3, inputs=MetricInputs()))

    def failing(*arguments: object, **keywords: object) -> Tensor:
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        scored(failing, model)
    assert state_of(model) == before
    assert torch.backends.cudnn.conv.fp32_precision == "tf32"


def test_arrays_and_global_noise_are_left_alone(model: Classifier, randomized_model: Classifier) -> None:
    def rude(
        predict: Any, images: Tensor, targets: Tensor, maps: Tensor, *, generator: Any, mask: Tensor
    ) -> Any:
        for tensor in (images, maps):
            tensor.mul_(0)
        targets.add_(1)
        mask.logical_not_()
        return torch.zeros(len(images))

    arrays = [IMAGES, TARGETS, MAPS, MASK]
    before, state = [array.copy() for array in arrays], state_of(randomized_model)
    noise = torch.get_rng_state()
    scored(rude, model, MetricInputs(sliced={"mask": MASK}))
    scored(judged, model, all_inputs(randomized_model, responses_in(model, 3)), parameters={"level": 1.0})
    for array, old in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, old)
    assert torch.equal(torch.get_rng_state(), noise)
    assert state_of(randomized_model) == state


# --- a model with new weights -------------------------------------------------------------------------------


def test_a_randomized_model_has_the_same_architecture_and_other_weights_by_its_seed() -> None:
    model = small_resnet8().train()
    for name, values in model.state_dict().items():
        if name.endswith("running_mean"):
            values.add_(1)
    before, noise = state_of(model), torch.get_rng_state()
    randomized, again, other = (build_randomized_model(model, RESNET8, seed=seed) for seed in (3, 3, 4))
    assert state_of(model) == before
    assert torch.equal(torch.get_rng_state(), noise)
    assert not any(module.training for module in randomized.modules())
    assert not any(parameter.requires_grad for parameter in randomized.parameters())
    old, new = model.state_dict(), randomized.state_dict()
    assert [(name, values.shape) for name, values in old.items()] == [
        (name, values.shape) for name, values in new.items()
    ]
    weights = [name for name, values in model.named_parameters() if values.ndim > 1]
    assert len(weights) > 5
    assert not any(torch.equal(old[name], new[name]) for name in weights)
    # What BatchNorm learned is gone too; the normalization of pixels is no weight.
    assert all(not values.any() for name, values in new.items() if name.endswith("running_mean"))
    assert torch.equal(new["mean"], old["mean"])
    assert torch.equal(new["std"], old["std"])
    assert (randomized.classes, randomized.cam_layer) == (3, "layer3")
    assert all(torch.equal(values, again.state_dict()[name]) for name, values in new.items())
    assert any(not torch.equal(values, other.state_dict()[name]) for name, values in new.items())


# --- for the store and the table ----------------------------------------------------------------------------


def some_blocks() -> list[Scored]:
    """Two images and one, some scores of them not finite."""
    nan, infinite = torch.nan, torch.inf
    first = {("a", "L=2"): [0.5, nan], ("a", "L=4"): [1, 2], ("b", ""): [3, 4]}
    second = {("a", "L=2"): [0.25], ("a", "L=4"): [7], ("b", ""): [infinite]}
    return [
        Scored({key: torch.tensor(values).float() for key, values in scores.items()}, {"curve": curve})
        for scores, curve in ((first, torch.arange(6.0).reshape(2, 3)), (second, torch.ones(1, 3)))
    ]


def test_curves_go_on_and_scores_are_gathered() -> None:
    blocks, gathered = some_blocks(), list[Scored]()
    stream = curves_of(iter(blocks), gathered)
    first = next(stream)
    assert len(gathered) == 1  # one block at a time
    np.testing.assert_array_equal(first["curve"], [[0, 1, 2], [3, 4, 5]])
    (last,) = list(stream)
    assert (first["defined"].tolist(), last["defined"].tolist()) == ([True, False], [False])
    assert {key: type(values) for key, values in last.items()} == {"curve": np.ndarray, "defined": np.ndarray}
    assert [block.curves for block in gathered] == [{}, {}]
    for kept, block in zip(gathered, blocks, strict=True):
        assert kept.scores is block.scores
    (bare,) = curves_of([Scored({("b", ""): torch.zeros(2)})], [])
    assert {key: values.tolist() for key, values in bare.items()} == {"defined": [True, True]}


def test_a_table_has_a_row_for_each_score_and_image() -> None:
    table = table_of(some_blocks(), np.array([4, 9, 30]), "entry")
    assert list(table.columns) == ["image", "metric", "variant", "score"]
    assert table["image"].tolist() == [4, 9, 30] * 3
    assert table["metric"].tolist() == ["a"] * 6 + ["b"] * 3
    assert table["variant"].tolist() == ["entry L=2"] * 3 + ["entry L=4"] * 3 + ["entry"] * 3
    np.testing.assert_array_equal(table["score"], [0.5, np.nan, 0.25, 1, 2, 7, 3, 4, np.inf])
    assert table["score"].dtype == np.float64
    assert table.index.tolist() == list(range(9))
