"""Common behavior of trainings: initial weights, images and their order, and resumption."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from saliency_assay.data.splits import TEST, TRAIN, VALIDATION, with_validation
from saliency_assay.models import weights
from saliency_assay.models.classifier import Blueprint, Classifier, build, digest
from saliency_assay.models.normalization import IMAGENET
from saliency_assay.training.task import RuntimeOptions, TrainingTask, fit, training_of

pytestmark = pytest.mark.usefixtures("one_thread")

CPU = torch.device("cpu")
COUNT, SIDE, CLASSES = 50, 8, 3
RESNET: Mapping[str, Any] = {
    "architecture": "resnet8",
    "function": "saliency_assay.models.resnet:resnet8",
    "parameters": {"width": 4, "stem_stride": 2},
}
SHORT: Mapping[str, Any] = {"epochs": 2, "batch_size": 8, "validation_share": 0.2}
RANDOM = np.random.default_rng(0)
LABELS = RANDOM.integers(0, CLASSES, COUNT)
SPLIT = RANDOM.permutation(np.where(np.arange(COUNT) < 12, TEST, TRAIN)).astype(np.uint8)
Normalization = tuple[list[float], list[float]]


class Seen:
    """Images that record the indices that are read."""

    def __init__(self, images: np.ndarray) -> None:
        self.images, self.shape, self.dtype = images, images.shape, images.dtype
        self.indices: list[list[int]] = []

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: Any) -> Tensor:
        self.indices.append(np.arange(COUNT)[index].tolist())
        return torch.from_numpy(self.images[index])


def some_images(seed: int = 1, channels: int = 3) -> np.ndarray:
    shape = (COUNT, channels, SIDE, SIDE)
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def task(images: Any, fingerprint: str = "of these images") -> TrainingTask:
    return TrainingTask(images, LABELS, SPLIT, CLASSES, fingerprint)


@pytest.fixture
def runtime(tmp_path: Path) -> RuntimeOptions:
    """Nothing is kept on the device, so that what is read is what is seen."""
    return RuntimeOptions(CPU, tmp_path / "state.pt", save_seconds=60, resident_limit=0)


def values(classifier: Classifier) -> str:
    return digest(classifier.network.state_dict())


def scale(classifier: Classifier) -> Normalization:
    return classifier.mean.flatten().tolist(), classifier.std.flatten().tolist()


def learnt(images: Seen, epoch: int = 0) -> list[list[int]]:
    """The batches that an epoch trained on: 30 training images are three whole batches of eight.

    After each epoch 8 validation and 12 test images are looked at, a batch and two.
    """
    return images.indices[6 * epoch : 6 * epoch + 3]


def own(split: int, seed: int) -> list[int]:
    """Of which images a part consists once validation images are taken."""
    return np.flatnonzero(with_validation(SPLIT, SHORT["validation_share"], seed) == split).tolist()


# ------------------------------------------------------------------------------------------ one seed


def test_tasks_of_one_seed_start_alike_and_see_the_same_in_the_same_order(runtime: RuntimeOptions) -> None:
    """Whatever the images, their normalization and where the masks are: common random numbers."""
    arms = [(some_images(1), ([0.5] * 3, [0.5] * 3)), (some_images(2), ([0.1] * 3, [0.7] * 3))]
    views, starts, ends = [], [], []
    for number, (images, normalization) in enumerate(arms):
        settings: dict[str, Any] = {"seed": 7, "normalization": normalization}
        start, _ = fit(task(images), RESNET, {**SHORT, "epochs": 0}, runtime, **settings)
        view = Seen(images)
        at = replace(runtime, state=runtime.state.with_name(f"{number}.pt"))
        end, _ = fit(task(view, str(number)), RESNET, SHORT, at, **settings)
        views.append(view)
        starts.append(values(start))
        ends.append(values(end))
    assert starts[0] == starts[1]
    assert ends[0] != ends[1]
    assert views[0].indices == views[1].indices
    assert len(views[0].indices) == 12
    assert learnt(views[0], 0) != learnt(views[0], 1)


def test_training_validation_and_test_images_are_kept_apart(runtime: RuntimeOptions) -> None:
    view = Seen(some_images())
    fit(task(view), RESNET, SHORT, runtime, seed=7, normalization=([0.5] * 3, [0.5] * 3))
    training = own(TRAIN, 7)
    assert (len(training), len(own(VALIDATION, 7)), len(own(TEST, 7))) == (30, 8, 12)
    for epoch in range(2):
        batches = learnt(view, epoch)
        assert [len(batch) for batch in batches] == [8, 8, 8]
        seen = [image for batch in batches for image in batch]
        assert len(set(seen)) == 24
        assert set(seen) < set(training)
        validation, *test = view.indices[6 * epoch + 3 : 6 * epoch + 6]
        assert validation == own(VALIDATION, 7)
        assert test[0] + test[1] == own(TEST, 7)


def test_another_seed_starts_elsewhere_and_sees_another_order(runtime: RuntimeOptions) -> None:
    starts, orders = [], []
    for seed in (7, 8):
        settings: dict[str, Any] = {"seed": seed, "normalization": ([0.5] * 3, [0.5] * 3)}
        start, curve = fit(task(some_images()), RESNET, {**SHORT, "epochs": 0}, runtime, **settings)
        assert curve == []
        starts.append(values(start))
        view, at = Seen(some_images()), replace(runtime, state=runtime.state.with_name(f"{seed}.pt"))
        fit(task(view), RESNET, {**SHORT, "validation_share": 0.0}, at, **settings)  # of the same images
        orders.append(view.indices[:4])
        assert len({image for batch in view.indices[:4] for image in batch}) == 32
    assert starts[0] != starts[1]
    assert orders[0] != orders[1]
    assert own(VALIDATION, 7) != own(VALIDATION, 8)


def test_equal_arguments_give_equal_weights_and_curves_wherever_images_are(runtime: RuntimeOptions) -> None:
    runs = []
    for number, limit in enumerate((0, 10**9)):
        at = replace(runtime, state=runtime.state.with_name(f"{number}.pt"), resident_limit=limit)
        classifier, curve = fit(task(some_images()), RESNET, SHORT, at, seed=7)
        assert not classifier.training
        assert [row["epoch"] for row in curve] == [1, 2]
        runs.append((values(classifier), scale(classifier), curve))
    assert runs[0] == runs[1]


def test_labels_are_learnt(runtime: RuntimeOptions) -> None:
    """Only of training images: others may have any label, and the weights are the same."""
    images, held_out = some_images(), with_validation(SPLIT, 0.2, 7) != TRAIN
    settings = task(images)
    first, _ = fit(settings, RESNET, SHORT, runtime, seed=7)
    others = replace(settings, labels=np.where(held_out, (LABELS + 1) % CLASSES, LABELS))
    again, _ = fit(others, RESNET, SHORT, replace(runtime, state=runtime.state.with_name("2.pt")), seed=7)
    assert values(first) == values(again)
    changed = replace(settings, labels=np.where(held_out, LABELS, (LABELS + 1) % CLASSES))
    moved, _ = fit(changed, RESNET, SHORT, replace(runtime, state=runtime.state.with_name("3.pt")), seed=7)
    assert values(first) != values(moved)


# ------------------------------------------------------------------------------------ normalization


def test_the_normalization_is_that_of_the_images_that_are_trained_on(runtime: RuntimeOptions) -> None:
    images = some_images()
    images[np.array(own(VALIDATION, 7) + own(TEST, 7))] = 255
    classifier, _ = fit(task(images), RESNET, SHORT, runtime, seed=7)
    pixels = images[np.array(own(TRAIN, 7))].astype(np.float64) / 255
    np.testing.assert_allclose(scale(classifier)[0], pixels.mean((0, 2, 3)), rtol=1e-6)
    np.testing.assert_allclose(scale(classifier)[1], pixels.std((0, 2, 3)), rtol=1e-6)


# ------------------------------------------------------------------------------------ initial weights


def initial(path: Path, *, bare: bool = False) -> Classifier:
    """Weights of another seed, with a normalization of their own unless they are ``bare``."""
    generator = torch.Generator().manual_seed(99)
    mean, std = [0.125] * 3, [0.375] * 3
    classifier = build(Blueprint(**RESNET), classes=CLASSES, mean=mean, std=std, generator=generator)
    if bare:
        torch.save(classifier.network.state_dict(), path)
    else:
        weights.save(path, classifier, Blueprint(**RESNET))
    return classifier


@pytest.mark.parametrize("bare", [False, True])
def test_no_epochs_leave_initial_weights_as_they_are(
    runtime: RuntimeOptions, tmp_path: Path, bare: bool
) -> None:
    path = tmp_path / "initial.pt"
    expected = initial(path, bare=bare)
    training = {**SHORT, "epochs": 0}
    classifier, curve = fit(task(some_images()), RESNET, training, runtime, seed=7, initial=path)
    assert values(classifier) == values(expected)
    assert curve == []
    assert not classifier.training
    assert not runtime.state.exists()
    own_scale = IMAGENET if bare else ([0.125] * 3, [0.375] * 3)
    np.testing.assert_allclose(np.array(scale(classifier)), np.array(own_scale), rtol=1e-6)
    settings = ([0.25, 0.5, 0.75], [0.25, 0.5, 1.0])
    for epochs in (0, 1):
        training = {**SHORT, "epochs": epochs}
        arguments: dict[str, Any] = {"initial": path, "normalization": settings}
        other, _ = fit(task(some_images()), RESNET, training, runtime, seed=7, **arguments)
        assert scale(other) == settings


def test_training_starts_from_initial_weights(runtime: RuntimeOptions, tmp_path: Path) -> None:
    initial(tmp_path / "initial.pt")
    settings: dict[str, Any] = {"seed": 7, "normalization": ([0.5] * 3, [0.5] * 3)}
    still = {**SHORT, "epochs": 1, "learning_rate": 0.0, "weight_decay": 0.0}
    classifier, _ = fit(
        task(some_images()), RESNET, still, runtime, initial=tmp_path / "initial.pt", **settings
    )
    expected = weights.read_state(tmp_path / "initial.pt")
    for name, parameter in classifier.network.named_parameters():
        assert torch.equal(parameter, expected[name])


def test_initial_weights_without_a_training_need_a_head_that_fits(
    runtime: RuntimeOptions, tmp_path: Path
) -> None:
    initial(tmp_path / "initial.pt")
    settings = replace(task(some_images()), classes=CLASSES + 1)
    with pytest.raises(ValueError, match=r"fc\.weight \[3, 16\] for \[4, 16\]"):
        fit(settings, RESNET, {**SHORT, "epochs": 0}, runtime, seed=7, initial=tmp_path / "initial.pt")
    classifier, _ = fit(settings, RESNET, SHORT, runtime, seed=7, initial=tmp_path / "initial.pt")
    assert classifier.classes == CLASSES + 1


# ------------------------------------------------------------------------------------------- states


def test_a_training_goes_on_from_its_own_state_and_from_no_other(
    runtime: RuntimeOptions, tmp_path: Path
) -> None:
    """a state is of the task, settings, seed, normalization and initial weights that it was saved for."""
    at = replace(runtime, save_seconds=0)
    base: dict[str, Any] = {"seed": 7, "normalization": ([0.5] * 3, [0.5] * 3)}
    for name in ("one.pt", "other.pt"):
        initial(tmp_path / name, bare=name == "one.pt")

    once = {**SHORT, "epochs": 1, "batch_size": 24}

    def steps(fingerprint: str = "a", training: Mapping[str, Any] = once, **changed: Any) -> int:
        """Return the number of images that were read."""
        view = Seen(some_images())
        fit(task(view, fingerprint), RESNET, training, at, **{**base, **changed})
        return sum(map(len, view.indices))

    whole = 24 + 8 + 12
    assert (steps(), steps()) == (whole, 0)
    changes: list[dict[str, Any]] = [
        {"fingerprint": "b"},
        {"training": {**once, "learning_rate": 0.2}},
        {"seed": 8},
        {"normalization": ([0.5] * 3, [0.25] * 3)},
        {"normalization": ([0.25] * 3, [0.5] * 3)},
        {"initial": tmp_path / "one.pt"},
        {"initial": tmp_path / "other.pt"},
    ]
    for change in changes:
        assert (steps(**change), steps()) == (whole, whole)
    first, second = changes[-2:]
    assert (steps(**first), steps(**second), steps(**second)) == (whole, whole, 0)


def test_runtime_options_change_nothing_that_is_learnt(runtime: RuntimeOptions) -> None:
    """A state serves whatever memory and intervals a later attempt has."""
    view = Seen(some_images())
    fit(task(view), RESNET, SHORT, replace(runtime, save_seconds=0), seed=7)
    view.indices.clear()
    elsewhere = RuntimeOptions(CPU, runtime.state, save_seconds=5, resident_limit=0)
    fit(task(view), RESNET, SHORT, elsewhere, seed=7, normalization=None)
    assert sorted(image for batch in view.indices for image in batch) == own(TRAIN, 7)  # for their statistics


# ------------------------------------------------------------------------------------- places, settings


def test_a_place_is_what_the_jobs_resources_say() -> None:
    settings = {"resident_limit": 250, "save_seconds": 5, "mem_mb": 1000}
    expected = RuntimeOptions(CPU, Path("a/b.pt"), save_seconds=5, resident_limit=250_000_000)
    assert RuntimeOptions.of(CPU, "a/b.pt", settings) == expected
    usual = RuntimeOptions(CPU, Path("a/b.pt"), save_seconds=60, resident_limit=8_000_000_000)
    assert RuntimeOptions.of(CPU, "a/b.pt", {}) == usual


def test_what_a_search_has_chosen_takes_the_place_of_what_is_configured(tmp_path: Path) -> None:
    settings = {"epochs": 3, "learning_rate": 0.1, "momentum": 0.9}
    path = tmp_path / "hyperparameters.json"
    path.write_text(json.dumps({"training": {"learning_rate": 0.4}, "trials": []}), encoding="utf-8")
    assert training_of(settings, path) == {"epochs": 3, "learning_rate": 0.4, "momentum": 0.9}
    assert training_of(settings, None) == settings
    assert settings["learning_rate"] == 0.1
