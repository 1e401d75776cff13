"""Images that a model's maps explain, and the explained class of each."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from support import CLASSES, SmoothNet, classifier, with_random_state

from saliency_assay.data.selection import background_images, explained_images
from saliency_assay.data.splits import TEST, TRAIN
from saliency_assay.methods.inputs import arguments_of, explained, map_seed
from saliency_assay.methods.path import integrated_gradients
from saliency_assay.models.classifier import Classifier
from saliency_assay.runtime import shards
from saliency_assay.runtime.shards import Shard
from saliency_assay.storage import zarr_store

COUNT = 40
RNG = np.random.default_rng(3)
# Sorted by class, as a folder of classes is read: the first test images are all of class 0.
OBJECT = np.repeat(np.arange(CLASSES), COUNT // CLASSES)
SCENE = RNG.integers(0, 3, COUNT)
SPLIT = np.where(np.arange(COUNT) % 5 == 0, TRAIN, TEST).astype(np.uint8)
PRESENT = np.arange(COUNT) % 3 == 0
IMAGES = RNG.integers(0, 256, (COUNT, 3, 8, 8), dtype=np.uint8)
TESTED = np.flatnonzero(SPLIT == TEST)


@pytest.fixture
def data(tmp_path: Path) -> Iterator[zarr_store.Store]:
    path = tmp_path / "data.zarr.zip"
    block = {
        "image": IMAGES,
        "split": SPLIT,
        "label_object": OBJECT,
        "label_scene": SCENE,
        "present": PRESENT,
    }
    zarr_store.write(path, [block], kind="data", attributes={})
    with zarr_store.open_store(path, kind="data") as opened:
        yield opened


@pytest.fixture
def model() -> Classifier:
    network = with_random_state(SmoothNet(IMAGES[0].size), seed=1)
    return classifier(network, "layers", dtype=torch.float32)


def predictions(model: Classifier, chosen: np.ndarray) -> list[int]:
    """The most probable class of each image, image by image."""
    pixels = torch.tensor(IMAGES[chosen]).float() / 255
    with torch.no_grad():
        return [int(model(pixels[i : i + 1]).argmax()) for i in range(len(chosen))]


@pytest.mark.parametrize("order", ["balanced", "first"])
@pytest.mark.parametrize("limit", [1, 6, 1000])
def test_images_are_chosen_in_an_order_and_given_in_the_data_sets(
    data: zarr_store.Store, model: Classifier, order: str, limit: int
) -> None:
    chosen, targets, _ = explained(
        data, model, limit=limit, order=order, label="object", target="label", batch_size=4
    )
    expected = explained_images(SPLIT, [OBJECT, SCENE], limit, order=order)
    assert chosen.tolist() == sorted(expected.tolist())
    assert len(chosen) == min(limit, len(TESTED))
    assert targets.tolist() == OBJECT[chosen].tolist()
    assert (chosen.dtype, targets.dtype) == (np.int64, np.int64)


def test_the_label_is_the_models_own(data: zarr_store.Store, model: Classifier) -> None:
    asked = partial(explained, data, model, limit=9, order="balanced", target="label", batch_size=4)
    chosen, targets, _ = asked(label="scene")
    assert targets.tolist() == SCENE[chosen].tolist()
    # Which images they are hangs on all labels, not on the one that is explained.
    assert chosen.tolist() == asked(label="object")[0].tolist()


@pytest.mark.parametrize("batch_size", [1, 4, 100])
@pytest.mark.parametrize("label", ["object", "scene"])
def test_predicted_is_the_most_probable_class(
    data: zarr_store.Store, model: Classifier, label: str, batch_size: int
) -> None:
    chosen, targets, _ = explained(
        data, model, limit=11, order="first", label=label, target="predicted", batch_size=batch_size
    )
    assert chosen.tolist() == TESTED[:11].tolist()
    assert targets.tolist() == predictions(model, chosen)
    assert targets.dtype == np.int64
    assert targets.tolist() != OBJECT[chosen].tolist()
    assert len(set(targets.tolist())) > 1


@pytest.mark.parametrize("target", ["label", "predicted"])
@pytest.mark.parametrize("of", [1, 2, 4])
def test_shards_are_the_whole_one_after_another(
    data: zarr_store.Store, model: Classifier, monkeypatch: pytest.MonkeyPatch, target: str, of: int
) -> None:
    monkeypatch.setattr(shards, "BLOCK", 5)
    asked = partial(
        explained, data, model, limit=18, order="balanced", label="object", target=target, batch_size=2
    )
    whole = asked()
    assert (len(whole.images), whole.offset) == (18, 0)
    parts = [asked(shard=Shard(number, of)) for number in range(1, of + 1)]
    assert [part.offset for part in parts] == {1: [0], 2: [0, 10], 4: [0, 5, 10, 15]}[of]
    for name in ("images", "targets"):
        found = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(found, getattr(whole, name))
        assert found.dtype == np.int64


def test_the_most_probable_class_is_sought_in_the_batches_of_the_whole(
    data: zarr_store.Store, model: Classifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "BLOCK", 5)
    seen: list[int] = []
    forward = model.forward
    monkeypatch.setattr(model, "forward", lambda images: (seen.append(len(images)), forward(images))[1])
    asked = partial(
        explained, data, model, limit=13, order="first", label="object", target="predicted", batch_size=4
    )
    asked()
    assert seen == [4, 1, 4, 1, 3]
    seen.clear()
    asked(shard=Shard(2, 3))
    assert seen == [4, 1]


def test_more_parts_than_blocks_of_images_are_refused(data: zarr_store.Store, model: Classifier) -> None:
    asked = {"limit": 1000, "order": "first", "label": "object", "target": "label", "batch_size": 4}
    with pytest.raises(ValueError, match=r"^shards: found 3, expected at most 1: ") as error:
        explained(data, model, shard=Shard(1, 3), **asked)
    assert str(error.value).endswith(f"{len(TESTED)} explained images are 1 block of 256")


@pytest.mark.parametrize(
    ("where", "fitting"),
    [
        ({"label_scene": 0}, SCENE == 0),
        ({"label_object": 3}, OBJECT == 3),
        ({"present": True}, PRESENT),
        ({"present": 1}, PRESENT),
        ({"present": False}, ~PRESENT),
        ({"present": 0, "label_scene": 2}, ~PRESENT & (SCENE == 2)),
        ({}, np.ones(COUNT, bool)),
        (None, np.ones(COUNT, bool)),
    ],
)
@pytest.mark.parametrize("order", ["balanced", "first"])
@pytest.mark.parametrize("limit", [2, 1000])
def test_only_images_with_given_values(
    data: zarr_store.Store,
    model: Classifier,
    where: dict[str, int] | None,
    fitting: np.ndarray,
    order: str,
    limit: int,
) -> None:
    asked = partial(explained, data, model, order=order, label="scene", batch_size=4, where=where)
    chosen, targets, _ = asked(limit=limit, target="label")
    tested = [image for image in range(COUNT) if SPLIT[image] == TEST and fitting[image]]
    assert len(tested) > 2
    assert len(chosen) == min(limit, len(tested))
    assert set(chosen.tolist()) <= set(tested)
    assert chosen.tolist() == sorted(chosen.tolist())
    assert targets.tolist() == SCENE[chosen].tolist()
    if order == "first":
        assert chosen.tolist() == tested[:limit]
    # As if there were no others.
    rest = np.where(fitting, SPLIT, TRAIN)
    expected = explained_images(rest, [OBJECT, SCENE], limit, order=order)
    assert chosen.tolist() == sorted(expected.tolist())
    also, found, _ = asked(limit=limit, target="predicted")
    assert also.tolist() == chosen.tolist()
    assert found.tolist() == predictions(model, chosen)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"label_scene": 3}, "found no test image of label_scene 3, expected at least one"),
        (
            {"present": True, "label_scene": -1},
            "found no test image of present True, label_scene -1, expected at least one",
        ),
        # There are such images, but none is tested.
        ({"split": TRAIN}, "found no test image of split 0, expected at least one"),
        ({"label": 0}, "found 'label', valid: label_object, label_scene, present, split"),
        ({"image": 0}, "found 'image', valid: label_object, label_scene, present, split"),
    ],
)
def test_no_image_with_given_values(
    data: zarr_store.Store, model: Classifier, where: dict[str, int], message: str
) -> None:
    with pytest.raises(ValueError, match=r"^where") as error:
        explained(
            data,
            model,
            limit=3,
            order="first",
            label="object",
            target="label",
            batch_size=4,
            where=where,
        )
    assert str(error.value) == f"where: {message}"


def test_another_target_is_refused(data: zarr_store.Store, model: Classifier) -> None:
    with pytest.raises(ValueError, match=r"^target") as error:
        explained(data, model, limit=3, order="first", label="object", target="truth", batch_size=4)
    assert str(error.value) == "target: found 'truth', valid: label, predicted"


@pytest.mark.parametrize("limit", [0, 1, 7, None])
def test_the_first_are_those_that_stand_first(limit: int | None) -> None:
    found = explained_images(SPLIT, [OBJECT, SCENE], limit, order="first")
    assert found.tolist() == TESTED[:limit].tolist()
    assert found.dtype == np.int64


def test_the_first_are_not_the_balanced() -> None:
    first, balanced = (explained_images(SPLIT, [OBJECT], 8, order=order) for order in ("first", "balanced"))
    assert np.bincount(OBJECT[first], minlength=CLASSES).tolist() == [8, 0, 0, 0]
    assert np.bincount(OBJECT[balanced], minlength=CLASSES).tolist() == [2, 2, 2, 2]
    np.testing.assert_array_equal(explained_images(SPLIT, [OBJECT], 8), balanced)  # by default


def test_another_order_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^order") as error:
        explained_images(SPLIT, [OBJECT], 8, order="frist")
    assert str(error.value) == "order: found 'frist', valid: balanced, first"


def test_a_method_is_given_its_base_and_a_background_of_training_images(data: zarr_store.Store) -> None:
    cpu = torch.device("cpu")
    assert arguments_of({"parameters": {"samples": 3}}, data, cpu) == {"samples": 3}
    base = {"function": "saliency_assay.methods.path:integrated_gradients", "parameters": {"steps": 5}}
    given = arguments_of({"parameters": {}, "base": base, "background": 5}, data, cpu)
    assert (given["base"].func, given["base"].keywords) == (integrated_gradients, {"steps": 5})
    sample = background_images(SPLIT, [OBJECT, SCENE], 5)
    assert len(sample) == 5
    np.testing.assert_allclose(given["background"], IMAGES[sample] / np.float32(255))
    assert set(given) == {"base", "background"}


def test_only_methods_of_one_noise_group_share_the_seed_of_their_maps() -> None:
    seed = map_seed(0, "digits", "digits", "smoothgrad")
    assert seed == map_seed(0, "digits", "digits", "smoothgrad")
    others = [
        map_seed(1, "digits", "digits", "smoothgrad"),
        map_seed(0, "other", "digits", "smoothgrad"),
        map_seed(0, "digits", "other", "smoothgrad"),
        map_seed(0, "digits", "digits", "vargrad"),
    ]
    assert len({seed, *others}) == 5
