"""The training loop against a plain one, its determinism, and what an interruption leaves behind."""

import logging
import math
import os
import re
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from saliency_assay.models.classifier import Blueprint, Classifier, build, digest
from saliency_assay.models.inference import logits
from saliency_assay.runtime.provenance import seed_of
from saliency_assay.training.hyperparameters import Training, training_from
from saliency_assay.training.loop import (
    COLUMNS,
    RESIDENT_LIMIT,
    augment,
    learning_rates,
    precision_of,
    sample_epoch,
    train,
)
from saliency_assay.training.state import Row, remove_state

pytestmark = pytest.mark.usefixtures("one_thread")

COUNT, SIZE, CLASSES = 60, 8, 3
BLUEPRINT = Blueprint(
    architecture="resnet8",
    function="saliency_assay.models.resnet:resnet8",
    parameters={"width": 4, "stem_stride": 1},
    cam_layer="layer3",
    concept_layers=[],
)
DROPPING = Blueprint(  # with dropout
    architecture="reliability_cnn",
    function="saliency_assay.models.cnn:reliability_cnn",
    parameters={"width": 8, "pooled": 1, "dropout": 0.5, "center": False},
    cam_layer="block3",
    concept_layers=[],
)
SHORT = training_from(
    {"epochs": 3, "batch_size": 16, "augment_flip": True, "augment_shift": 2, "augment_removal": 0.1}
)
STEPS = 3 * 3  # of SHORT: 50 training images


@pytest.fixture
def state_path(tmp_path: Path) -> Path:
    return tmp_path / ".state" / "train.pt"


def classifier(seed: int = 0, blueprint: Blueprint = BLUEPRINT) -> Classifier:
    generator = torch.Generator().manual_seed(seed)
    return build(blueprint, classes=CLASSES, mean=[0.5] * 3, std=[0.25] * 3, generator=generator)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def data() -> dict[str, Tensor]:
    """Images whose class is their brightest channel."""
    generator = torch.Generator().manual_seed(1)
    labels = torch.randint(0, CLASSES, (COUNT,), generator=generator)
    images = torch.randint(0, 180, (COUNT, 3, SIZE, SIZE), generator=generator, dtype=torch.uint8)
    images[torch.arange(COUNT), labels] += 75
    order = torch.randperm(COUNT, generator=generator)
    return {"images": images, "labels": labels, "train_indices": order[:50], "test_indices": order[50:]}


def trained(
    state_path: Path,
    settings: Training = SHORT,
    *,
    seed: int = 0,
    fingerprint: str = "same",
    save_seconds: float = 60,
    on_step: object = None,
    blueprint: Blueprint = BLUEPRINT,
    resident_limit: int = RESIDENT_LIMIT,
    **changed: object,
) -> tuple[Classifier, list[Row]]:
    model = classifier(blueprint=blueprint)
    if on_step:
        model.register_forward_pre_hook(on_step)
    rows = train(
        model,
        **{**data(), **changed},
        settings=settings,
        seed=seed,
        state_path=state_path,
        fingerprint=fingerprint,
        save_seconds=save_seconds,
        resident_limit=resident_limit,
    )
    return model, rows


def signature(outcome: tuple[Classifier, list[Row]]) -> tuple[str, str]:
    """Weights and curve; as text, because NaN is not NaN."""
    model, rows = outcome
    return digest(model.state_dict()), repr(rows)


@cache
def uninterrupted(
    settings: Training = SHORT, blueprint: str = "resnet8", indices: str = ""
) -> tuple[str, str]:
    """Signature of a training that nothing interrupts."""
    changes = {"": dict, "held out": held_out, "evaluated": evaluated}[indices]()
    with TemporaryDirectory() as folder:
        chosen = DROPPING if blueprint == "dropping" else BLUEPRINT
        return signature(trained(Path(folder) / "state.pt", settings, blueprint=chosen, **changes))


class Passes:
    """A hook that counts the passes in training or in evaluation, and acts before one of them (from 1)."""

    def __init__(
        self, number: int = 0, action: Callable[[Classifier], object] = repr, *, training: bool = True
    ) -> None:
        self.number, self.action, self.training, self.count = number, action, training, 0

    def __call__(self, model: Classifier, inputs: tuple[Tensor]) -> None:
        self.count += model.training == self.training
        if self.count == self.number and model.training == self.training:
            self.action(model)


def terminate(model: Classifier) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def spoil(model: Classifier) -> None:
    nn.init.constant_(model.network.get_parameter("fc.bias"), math.nan)


# --- the loop -----------------------------------------------------------------------------------------------


def test_equals_a_plain_loop(state_path: Path) -> None:
    """The same in the simplest torch: NCHW, no fused optimizer, everything read back at every step."""
    settings = replace(SHORT, label_smoothing=0.1, weight_decay=0.02, warmup=0.3)
    inputs, plain = data(), classifier().train()
    weights = [p for name, p in plain.named_parameters() if name.endswith("weight") and p.ndim > 1]
    others = [p for name, p in plain.named_parameters() if not (name.endswith("weight") and p.ndim > 1)]
    optimizer = torch.optim.SGD(
        [{"params": weights, "weight_decay": 0.02}, {"params": others}],
        lr=0.1,
        momentum=0.9,
        nesterov=True,
        foreach=False,
    )
    rates, expected = learning_rates(settings, STEPS), []
    for epoch in range(3):
        draws, losses, right = sample_epoch(50, settings, 0, epoch), [], []
        for step in range(3):
            part = slice(16 * step, 16 * (step + 1))
            chosen = inputs["train_indices"][draws.order[part]]
            batch = augment(inputs["images"][chosen], draws.flip[part], draws.shift[part])
            keys = torch.rand(16, SIZE**2, generator=seeded(seed_of(0, "removal", str(epoch), str(step))))
            for image, image_keys in zip(batch, keys, strict=True):
                image[:, image_keys.reshape(SIZE, SIZE) >= image_keys.sort().values[-6]] = 128  # 6.4 pixels
            batch = batch / 255
            output = plain(batch)
            loss = functional.cross_entropy(output, inputs["labels"][chosen], label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            for group in optimizer.param_groups:
                group["lr"] = rates[3 * epoch + step]
            optimizer.step()
            losses.append(loss.item())
            right += (output.argmax(1) == inputs["labels"][chosen]).tolist()
        expected.append((np.mean(losses), np.mean(right)))
    model, rows = trained(state_path, settings)
    for name, value in plain.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], value, atol=1e-4, rtol=1e-3)
    for row, (loss, accuracy) in zip(rows, expected, strict=True):
        assert row["train_loss"] == pytest.approx(loss, abs=1e-4)
        assert row["train_accuracy"] == pytest.approx(accuracy)


def test_removed_pixels_are_other_ones_in_every_step(state_path: Path) -> None:
    seen: list[Tensor] = []

    def note(model: Classifier, inputs: tuple[Tensor]) -> None:
        if model.training:
            seen.append(inputs[0])

    white = torch.full((COUNT, 3, SIZE, SIZE), 255, dtype=torch.uint8)
    for fill, color in (("mean", 128 / 255), ("black", 0.0)):
        seen.clear()
        settings = replace(SHORT, augment_removal=0.25, augment_fill=fill)
        trained(state_path, settings, on_step=note, images=white)
        remove_state(state_path)
        removed = torch.stack(seen) < 1
        assert removed.shape == (STEPS, 16, 3, SIZE, SIZE)
        assert torch.equal(removed, removed[:, :, :1].expand_as(removed))
        assert bool((removed[:, :, 0].sum((2, 3)) == 16).all())
        assert len(removed[:, :, 0].flatten(0, 1).flatten(1).unique(dim=0)) == STEPS * 16
        np.testing.assert_allclose(torch.stack(seen)[removed], color, rtol=1e-6)


def test_cells_are_deleted_from_some_images_in_every_step(state_path: Path) -> None:
    seen: list[Tensor] = []

    def note(model: Classifier, inputs: tuple[Tensor]) -> None:
        if model.training:
            seen.append(inputs[0])

    white = torch.full((COUNT, 3, SIZE, SIZE), 255, dtype=torch.uint8)
    settings = replace(SHORT, augment_removal=0, augment_deletion=4, augment_fill="black")
    trained(state_path, settings, on_step=note, images=white)
    removed = torch.stack(seen)[:, :, 0].flatten(0, 1) == 0
    assert torch.equal(torch.stack(seen)[:, :, 1:].flatten(0, 1) == 0, removed[:, None].expand(-1, 2, -1, -1))
    cells = removed.reshape(-1, 4, 2, 4, 2).sum((2, 4))  # removed pixels of each cell
    assert set(cells.unique().tolist()) == {0, 4}
    assert set((cells > 0).sum((1, 2)).tolist()) == {0, 1}
    assert 0.3 < float((cells > 0).any(2).any(1).double().mean()) < 0.7
    assert bool((cells > 0).any(0).all())
    with pytest.raises(ValueError, match=f"^augment_deletion: found 9, expected at most {SIZE}"):
        trained(state_path, replace(settings, augment_deletion=9))


def test_floats_of_the_levels_train_as_the_levels_do(state_path: Path) -> None:
    floats, settings = data()["images"].float() / 255, replace(SHORT, augment_removal=0)
    model, _ = trained(state_path, settings, images=floats)
    assert digest(model.state_dict()) == uninterrupted(settings)[0]
    remove_state(state_path)
    settings = replace(SHORT, augment_removal=0.25)
    model, _ = trained(state_path, settings, images=torch.ones(COUNT, 3, SIZE, SIZE))
    assert all(parameter.isfinite().all() for parameter in model.parameters())


def test_looking_at_test_images_changes_nothing(state_path: Path) -> None:
    seldom, rows = trained(state_path, replace(SHORT, evaluate="end"))
    assert digest(seldom.state_dict()) == uninterrupted()[0]
    assert [math.isnan(row["test_accuracy"]) for row in rows] == [True, True, False]
    never, rows = trained(state_path, test_indices=torch.empty(0, dtype=torch.int64))
    assert digest(never.state_dict()) == uninterrupted()[0]
    assert all(math.isnan(row["test_accuracy"]) for row in rows)


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_same_seed_same_weights(tmp_path: Path, precision: str) -> None:
    settings = replace(SHORT, precision=precision)
    first, again, other = (
        signature(trained(tmp_path / f"{run}.pt", settings, seed=seed)) for run, seed in enumerate((4, 4, 5))
    )
    assert first == again
    assert first[0] != other[0]


def test_dropout_depends_on_the_seed_alone(tmp_path: Path) -> None:
    runs = []
    for run, (outer, seed) in enumerate([(1, 4), (2, 4), (1, 5)]):
        with torch.random.fork_rng():
            torch.manual_seed(outer)
            runs.append(signature(trained(tmp_path / f"{run}.pt", seed=seed, blueprint=DROPPING)))
    assert runs[0] == runs[1]
    assert runs[0][0] != runs[2][0]


def test_dropout_differs_from_step_to_step(state_path: Path) -> None:
    masks = []

    def note(model: Classifier, inputs: tuple[Tensor]) -> None:
        if model.training and not masks:
            layer = model.layer("block1.dropout")
            layer.register_forward_hook(lambda layer, x, out: masks.append((out == 0) & (x[0] != 0)))

    trained(state_path, blueprint=DROPPING, on_step=note)
    kept = [mask for mask in masks if mask.any()]
    assert len(kept) == STEPS
    assert len({tuple(mask.flatten().tolist()) for mask in kept}) == STEPS


@pytest.mark.parametrize(
    ("precision", "device", "native", "expected"),
    [
        ("auto", "cpu", True, "float32"),
        ("auto", "cuda", True, "bf16"),
        ("auto", "cuda", False, "float32"),  # such as a V100, on which torch emulates it
        ("bf16", "cuda", False, "bf16"),
        ("float32", "cuda", True, "float32"),
    ],
)
def test_auto_is_bf16_where_a_gpu_computes_with_it(
    monkeypatch: pytest.MonkeyPatch, precision: str, device: str, native: bool, expected: str
) -> None:
    def supported(including_emulation: bool = True) -> bool:
        return native or including_emulation

    monkeypatch.setattr(torch.cuda, "is_bf16_supported", supported)
    assert precision_of(replace(SHORT, precision=precision), torch.device(device)) == expected


def test_leaves_torch_as_it_was(state_path: Path) -> None:
    before = torch.random.get_rng_state()
    handler = signal.getsignal(signal.SIGTERM)
    model, _ = trained(state_path)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert not torch.are_deterministic_algorithms_enabled()
    assert not torch.backends.cudnn.benchmark
    assert signal.getsignal(signal.SIGTERM) is handler
    assert not model.training
    assert model.layer("layer1.0.conv1").weight.is_contiguous()
    assert not state_path.exists()


class Readings(TorchDispatchMode):
    """Counts values read back from the device."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func is torch.ops.aten._local_scalar_dense.default
        return func(*args, **(kwargs or {}))


def test_no_step_waits_for_the_device(tmp_path: Path) -> None:
    counts = []
    for batch_size in (25, 5):
        with Readings() as readings:
            trained(tmp_path / f"{batch_size}.pt", replace(SHORT, batch_size=batch_size, evaluate="end"))
        counts.append(readings.count)
    assert counts[0] == counts[1]
    assert counts[0] >= 2 * SHORT.epochs  # the sums of loss and right answers


# --- images that are not on the device ------------------------------------------------------------------------


class View:
    """The same images, composed when asked for."""

    def __init__(self, images: Tensor, *, tensors: bool) -> None:
        self.images, self.tensors = images, tensors
        self.shape = tuple(images.shape)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: object) -> Tensor | np.ndarray:
        images = self.images.clone()[index]
        return images if self.tensors else images.numpy()


def readers() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("feed")]


@pytest.mark.parametrize(
    ("limit", "tensors"), [(0, False), (COUNT * 3 * SIZE * SIZE - 1, True), (COUNT * 3 * SIZE * SIZE, True)]
)
def test_streamed_images_give_the_same_weights(tmp_path: Path, limit: int, tensors: bool) -> None:
    streams = set()
    view = View(data()["images"], tensors=tensors)

    def note(model: Classifier, inputs: tuple[Tensor]) -> None:
        streams.add(len(readers()))

    path = tmp_path / "view.pt"
    outcome = trained(path, blueprint=DROPPING, on_step=note, resident_limit=limit, images=view)
    assert signature(outcome) == uninterrupted(blueprint="dropping")
    assert streams == {0 if limit == COUNT * 3 * SIZE * SIZE else 1}
    assert readers() == []


@pytest.mark.parametrize("step", [3, 5])
def test_sigterm_while_images_are_streamed(state_path: Path, step: int) -> None:
    view, passes = View(data()["images"], tensors=False), Passes(step, terminate)
    with pytest.raises(SystemExit) as stopped:
        trained(state_path, on_step=passes, resident_limit=0, images=view)
    assert stopped.value.code == 143
    assert readers() == []
    assert passes.count == step
    assert signature(trained(state_path, resident_limit=0, images=view)) == uninterrupted()


# --- validation and early stopping ----------------------------------------------------------------------------

PATIENT = replace(SHORT, epochs=12, learning_rate=0.2, validation_share=0.2, patience=3)


def held_out() -> dict[str, Tensor]:
    inputs = data()
    return {"train_indices": inputs["train_indices"][:34], "validation_indices": inputs["train_indices"][34:]}


def whole_curve(path: Path) -> tuple[list[Row], list[str]]:
    """The curve of a training that is not stopped, and the weights after each of its epochs."""
    weights: list[str] = []

    def note(model: Classifier, inputs: tuple[Tensor]) -> None:
        if not model.training:
            weights.append(digest({name: value.contiguous() for name, value in model.state_dict().items()}))

    _, rows = trained(path, replace(PATIENT, patience=0), on_step=note, **held_out())
    return rows, weights[:: len(weights) // len(rows)]


def test_the_curve_has_the_accuracies_of_validation_and_test_images(state_path: Path) -> None:
    model, rows = trained(state_path, **held_out())
    assert [row["epoch"] for row in rows] == [1, 2, 3]
    assert all(tuple(row) == COLUMNS for row in rows)
    assert [row["learning_rate"] for row in rows] == learning_rates(SHORT, 6)[1::2]
    inputs = data() | held_out()
    for name in ("validation", "test"):
        indices = inputs[f"{name}_indices"]
        predicted = logits(model, inputs["images"], batch_size=7, indices=indices).argmax(1)
        right = (predicted == inputs["labels"][indices]).double().mean().item()
        assert rows[-1][f"{name}_accuracy"] == right
    assert not any(math.isnan(row["validation_accuracy"]) for row in rows)


@pytest.mark.parametrize("patience", [1, 3])
def test_patience(tmp_path: Path, patience: int) -> None:
    rows, weights = whole_curve(tmp_path / "whole.pt")
    best = waited = 0
    for number, row in enumerate(rows):
        waited += 1
        if number == 0 or row["validation_accuracy"] > rows[best]["validation_accuracy"]:
            best, waited = number, 0
        if waited == patience:
            break
    model, curve = trained(tmp_path / "stopped.pt", replace(PATIENT, patience=patience), **held_out())
    assert curve == rows[: number + 1]
    assert digest(model.state_dict()) == weights[best]
    assert best < number, "the last epoch is the best: nothing is tested"


def test_patience_looks_at_validation_images_after_each_epoch(tmp_path: Path) -> None:
    often, expected = trained(tmp_path / "often.pt", PATIENT, **held_out())
    seldom, rows = trained(tmp_path / "seldom.pt", replace(PATIENT, evaluate="end"), **held_out())
    assert digest(seldom.state_dict()) == digest(often.state_dict())
    assert len(rows) < PATIENT.epochs
    for row, other in zip(rows, expected, strict=True):
        assert row["validation_accuracy"] == other["validation_accuracy"]
        assert math.isnan(row["test_accuracy"]) == (row["epoch"] < len(rows))
    assert rows[-1]["test_accuracy"] == expected[-1]["test_accuracy"]


@pytest.mark.parametrize("epoch", [1, 4, 6])
def test_sigterm_under_early_stopping(state_path: Path, epoch: int) -> None:
    with pytest.raises(SystemExit):  # in the second and last step of the epoch
        trained(state_path, PATIENT, on_step=Passes(2 * epoch, terminate), **held_out())
    assert signature(trained(state_path, PATIENT, **held_out())) == uninterrupted(PATIENT, indices="held out")


@pytest.mark.parametrize("stops_early", [True, False])
def test_a_finished_training_makes_no_more_steps(state_path: Path, stops_early: bool) -> None:
    settings, indices = (PATIENT, held_out()) if stops_early else (SHORT, {})
    whole, passes = signature(trained(state_path, settings, save_seconds=0, **indices)), Passes()
    assert signature(trained(state_path, settings, on_step=passes, **indices)) == whole
    assert passes.count == 0


# --- what does not fit --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "changed", "message"),
    [
        ({"batch_size": 51}, {}, "batch_size: found 51, expected at most 50"),
        ({"augment_shift": 8}, {}, "augment_shift: found 8, expected less than 8"),
        ({}, {"labels": torch.full((COUNT,), 3)}, "label 3: expected 0 to 2"),
        ({}, {"labels": torch.full((COUNT,), -1)}, "label -1: expected 0 to 2"),
        ({}, {"labels": torch.zeros(COUNT)}, "labels [60] of torch.float32: expected [60] of torch.int64"),
        ({}, {"labels": torch.zeros(9).long()}, "labels [9] of torch.int64: expected [60] of torch.int64"),
        ({}, {"test_indices": torch.tensor([60])}, "index 60: expected 0 to 59"),
        ({}, {"validation_indices": torch.tensor([-1])}, "index -1: expected 0 to 59"),
        ({"patience": 2}, {}, "patience: found 2 without validation images, expected 0"),
        ({}, {"images": np.zeros((COUNT, 8, 8), np.uint8)}, "images [60, 8, 8] of torch.uint8: expected"),
        ({}, {"images": torch.zeros(COUNT, 1, 8, 8, dtype=torch.uint8)}, "images [60, 1, 8, 8] of"),
        (
            {},
            {"images": torch.zeros(COUNT, 3, 8, 8).double()},
            "images [60, 3, 8, 8] of torch.float64: expected",
        ),
    ],
)
def test_unfit_input(
    state_path: Path, settings: dict[str, object], changed: dict[str, Tensor], message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        trained(state_path, replace(SHORT, **settings), **changed)


def test_divergence_is_reported_at_the_end_of_its_epoch(state_path: Path) -> None:
    passes = Passes(5, spoil)
    with pytest.raises(ValueError, match=r"training diverged: loss nan in epoch 2 of 3; .* below 0\.1$"):
        trained(state_path, replace(SHORT, evaluate="end"), on_step=passes)
    assert passes.count == 6


@pytest.mark.parametrize(("save_seconds", "steps"), [(0, 5), (60, 6)], ids=["saved", "not saved"])
def test_divergence_is_not_repeated(state_path: Path, save_seconds: float, steps: int) -> None:
    """It is noticed when the state is saved, or else at the epoch's end. A retry ends before its first step."""
    messages = []
    for expected in (steps, 0):
        passes = Passes(5, spoil)
        with pytest.raises(ValueError, match="training diverged: loss nan in epoch 2 of 3; ") as error:
            trained(state_path, on_step=passes, save_seconds=save_seconds)
        messages.append(str(error.value))
        assert passes.count == expected
    assert messages[1].startswith(messages[0])
    assert str(state_path) in messages[1]
    calmer = replace(SHORT, learning_rate=0.05)
    assert signature(trained(state_path, calmer, fingerprint="calmer")) == uninterrupted(calmer)


def test_weights_that_are_not_finite_are_no_result(state_path: Path) -> None:
    """The last step of a training can leave a finite loss and weights that are not."""
    settings = replace(SHORT, learning_rate=1e39, warmup=0.0, epochs=1, batch_size=48)
    passes = Passes()
    with pytest.raises(ValueError, match=r"^training diverged: weights that are not finite in epoch 1 of 1"):
        trained(state_path, settings, on_step=passes)
    assert passes.count == 1


def test_a_divergence_before_sigterm_is_reported(state_path: Path) -> None:
    def spoil_and_terminate(model: Classifier) -> None:
        spoil(model)
        terminate(model)

    with pytest.raises(ValueError, match="training diverged: loss nan in epoch 1 of 3; "):
        trained(state_path, on_step=Passes(2, spoil_and_terminate))


# --- kill and resume ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "blueprint"),
    [(4, "dropping"), (1, "resnet8"), (3, "resnet8"), (5, "resnet8"), (STEPS, "resnet8")],
)
def test_sigterm_at_any_step(state_path: Path, step: int, blueprint: str) -> None:
    settings, network = replace(SHORT, evaluate="end"), DROPPING if blueprint == "dropping" else BLUEPRINT
    handler, passes, rest = signal.getsignal(signal.SIGTERM), Passes(step, terminate), Passes()
    with pytest.raises(SystemExit) as stopped:
        trained(state_path, settings, on_step=passes, blueprint=network)
    assert stopped.value.code == 143
    assert passes.count == step
    assert signal.getsignal(signal.SIGTERM) is handler
    resumed = trained(state_path, settings, on_step=rest, blueprint=network)
    assert signature(resumed) == uninterrupted(settings, blueprint)
    assert rest.count == STEPS - step
    remove_state(state_path)
    remove_state(state_path)
    assert not list(state_path.parent.iterdir())


# Of two epochs, with two batches of validation images and three of test images after each.
EVALUATED = replace(SHORT, epochs=2, batch_size=4, augment_shift=1)


def evaluated() -> dict[str, Tensor]:
    inputs = data()
    return {"train_indices": inputs["train_indices"][:42], "validation_indices": inputs["train_indices"][42:]}


def resumed_in(state_path: Path, epoch: int) -> None:
    """A training killed while ``epoch`` (from 1) of ``EVALUATED`` was evaluated goes on from there, to the same end."""
    reached = torch.load(state_path, weights_only=True)["progress"]
    assert (reached["epoch"], reached["step"], len(reached["rows"])) == (epoch - 1, 10, epoch - 1)
    rest = Passes()
    resumed = trained(state_path, EVALUATED, on_step=rest, **evaluated())
    assert rest.count == 20 - 10 * epoch
    assert signature(resumed) == uninterrupted(EVALUATED, indices="evaluated")


@pytest.mark.parametrize(("number", "epoch"), [(1, 1), (5, 1), (8, 2), (10, 2)])
def test_sigterm_during_evaluation(state_path: Path, number: int, epoch: int) -> None:
    passes = Passes(number, terminate, training=False)
    with pytest.raises(SystemExit) as stopped:
        trained(state_path, EVALUATED, on_step=passes, **evaluated())
    assert stopped.value.code == 143
    assert passes.count == number, "it went on after the signal"
    resumed_in(state_path, epoch)


class Killed(BaseException):
    """In place of SIGKILL."""


def kill(model: Classifier) -> None:
    raise Killed


@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
def test_a_killed_process_leaves_a_state_to_resume_from(state_path: Path, training: bool) -> None:
    """Killed in the second epoch, or in the second pass of its evaluation."""
    passes, rest = Passes(5 if training else 7, kill, training=training), Passes()
    settings, indices = (SHORT, {}) if training else (EVALUATED, evaluated())
    with pytest.raises(Killed):
        trained(state_path, settings, save_seconds=0, on_step=passes, **indices)
    if training:
        assert signature(trained(state_path, on_step=rest)) == uninterrupted()
        assert rest.count == STEPS - 4
    else:
        resumed_in(state_path, 2)


def test_state_of_other_fingerprint_is_discarded(state_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    trained(state_path, seed=9, fingerprint="before", save_seconds=0)
    with caplog.at_level(logging.WARNING):
        outcome = signature(trained(state_path, fingerprint="after"))
    assert caplog.messages == [f"{state_path}: discarded, found fingerprint before, expected after"]
    assert outcome == uninterrupted()
    assert not state_path.exists()


@pytest.mark.parametrize("content", [b"", None], ids=["empty", "truncated"])
def test_unreadable_state_is_discarded(
    state_path: Path, caplog: pytest.LogCaptureFixture, content: bytes | None
) -> None:
    trained(state_path, save_seconds=0)
    state_path.write_bytes(state_path.read_bytes()[:3000] if content is None else content)
    with caplog.at_level(logging.WARNING):
        outcome = signature(trained(state_path))
    (message,) = caplog.messages
    assert message.startswith(f"{state_path}: discarded, not a training state ({state_path}: ")
    assert outcome == uninterrupted()
