"""Settings, schedule and augmentation: everything of a training that needs no model."""

import math

import numpy as np
import pytest
import torch

from saliency_assay.training.hyperparameters import finetuning, training_from
from saliency_assay.training.loop import augment, learning_rates, remove_pixels, sample_epoch

MOVED = training_from({"augment_flip": True, "augment_shift": 2})


def test_settings_name_what_is_wrong() -> None:
    with pytest.raises(ValueError, match=r"unknown parameter 'epoch'; did you mean 'epochs'\?"):
        training_from({"epoch": 3})
    with pytest.raises(ValueError, match=r"decay: found 'step', valid: linear, cosine"):
        training_from({"decay": "step"})
    with pytest.raises(ValueError, match=r"epochs: found -1, expected at least 0"):
        training_from({"epochs": -1})


def test_patience_needs_images_to_choose_by() -> None:
    assert training_from({"patience": 2, "validation_share": 0.15}).patience == 2
    with pytest.raises(ValueError, match=r"^patience: found 2 with validation_share 0, expected"):
        training_from({"patience": 2})
    with pytest.raises(ValueError, match=r"validation_share: found 0\.6, expected at most 0\.5"):
        training_from({"validation_share": 0.6})


def test_the_only_cell_of_a_grid_is_not_deleted() -> None:
    with pytest.raises(ValueError, match=r"^augment_deletion: found 1, expected 0 or at least 2"):
        training_from({"augment_deletion": 1})


def test_fine_tuning_takes_over_all_but_rate_and_changes() -> None:
    training = training_from({"epochs": 20, "learning_rate": 0.5, "momentum": 0.8})
    assert finetuning(vars(training), {}) == {**vars(training), "learning_rate": 0.05}
    assert finetuning(vars(training), {"epochs": 0, "learning_rate": 0.3, "augment_removal": 0.1}) == {
        **vars(training), "epochs": 0, "learning_rate": 0.3, "augment_removal": 0.1,
    }  # fmt: skip
    assert finetuning(vars(training_from({"epochs": 0})), {})["epochs"] == 1


def test_linear_schedule() -> None:
    settings = training_from({"learning_rate": 1.0, "warmup": 0.4, "decay": "linear"})
    expected = [0.25, 0.5, 0.75, 1, 1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6]
    assert learning_rates(settings, 10) == pytest.approx(expected)


def test_cosine_schedule() -> None:
    settings = training_from({"learning_rate": 2.0, "warmup": 0.0, "decay": "cosine"})
    half = math.sqrt(0.5)
    assert learning_rates(settings, 4) == pytest.approx([2, 1 + half, 1, 1 - half])


def test_schedule_of_warmup_alone() -> None:
    assert learning_rates(training_from({"learning_rate": 1.0, "warmup": 1}), 2) == [0.5, 1.0]


def test_augment_equals_flip_pad_and_crop() -> None:
    generator = torch.Generator().manual_seed(3)
    images = torch.randint(0, 256, (9, 3, 6, 5), generator=generator, dtype=torch.uint8)
    flip = torch.rand(9, generator=generator) < 0.5
    shift = torch.randint(-4, 5, (9, 2), generator=generator)
    changed = augment(images, flip, shift).numpy()
    for image, mirrored, (down, right), moved in zip(images.numpy(), flip, shift, changed, strict=True):
        source = image[:, :, ::-1] if mirrored else image
        padded = np.pad(source, ((0, 0), (4, 4), (4, 4)), mode="reflect")
        np.testing.assert_array_equal(moved, padded[:, 4 - down : 10 - down, 4 - right : 9 - right])


@pytest.mark.parametrize(("share", "count"), [(0.0, 0), (0.1, 3), (0.25, 8), (1.0, 30)])
def test_removed_pixels_are_those_of_greatest_keys(share: float, count: int) -> None:
    generator = torch.Generator().manual_seed(3)
    images = torch.randint(100, 256, (9, 2, 6, 5), generator=generator, dtype=torch.uint8)
    keys = torch.rand(9, 30, generator=generator)
    changed = remove_pixels(images, keys, share, torch.tensor([7, 9], dtype=torch.uint8))
    assert changed.dtype == torch.uint8
    for image, image_keys, shown in zip(images, keys.tolist(), changed, strict=True):
        for pixel, key in enumerate(image_keys):
            is_removed = sum(other > key for other in image_keys) < count
            expected = [7, 9] if is_removed else image.flatten(1)[:, pixel].tolist()
            assert shown.flatten(1)[:, pixel].tolist() == expected


def test_draws_are_shared_by_whatever_has_the_same_seed() -> None:
    plain = sample_epoch(50, training_from({}), 5, 2)
    moved = sample_epoch(50, MOVED, 5, 2)
    assert torch.equal(plain.order, moved.order)
    assert sorted(plain.order.tolist()) == list(range(50))
    assert not plain.flip.any()
    assert not plain.shift.any()
    assert 10 < int(moved.flip.sum()) < 40
    assert sorted(set(moved.shift.flatten().tolist())) == [-2, -1, 0, 1, 2]
    for seed, epoch in ((5, 3), (6, 2)):
        assert not torch.equal(sample_epoch(50, MOVED, seed, epoch).order, plain.order)


def test_adamw_forgets_gradients() -> None:
    assert training_from({"optimizer": "adamw", "momentum": 0.99}).momentum == 0.99
    with pytest.raises(ValueError, match=r"^momentum: found 1 with adamw, expected less than 1$"):
        training_from({"optimizer": "adamw", "momentum": 1})
