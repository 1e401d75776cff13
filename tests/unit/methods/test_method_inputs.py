"""Images that a model's maps explain, and the explained class of each."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

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
    classes = {"scene": [f"scene{number}" for number in range(3)]}
    zarr_store.write(path, [block], kind="data", attributes={"classes": classes})
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


@pytest.mark.parametrize("label", ["object", "scene"])
@pytest.mark.parametrize("limit", [1, 6, 1000])
def test_balanced_images_depend_on_all_labels_and_targets_on_one(
    data: zarr_store.Store, model: Classifier, label: str, limit: int
) -> None:
    chosen, targets, _ = explained(
        data, model, limit=limit, order="balanced", label=label, target="label", batch_size=4
    )
    expected = explained_images(SPLIT, [OBJECT, SCENE], limit)
    assert chosen.tolist() == sorted(expected.tolist())
    assert len(chosen) == min(limit, len(TESTED))
    assert targets.tolist() == {"object": OBJECT, "scene": SCENE}[label][chosen].tolist()
    assert (chosen.dtype, targets.dtype) == (np.int64, np.int64)


@pytest.mark.parametrize("target", ["label", "predicted"])
@pytest.mark.parametrize(("of", "offsets"), [(2, [0, 10]), (4, [0, 5, 10, 15])])
def test_shards_are_the_whole_one_after_another(
    data: zarr_store.Store,
    model: Classifier,
    monkeypatch: pytest.MonkeyPatch,
    target: str,
    of: int,
    offsets: list[int],
) -> None:
    monkeypatch.setattr(shards, "BLOCK", 5)
    select = partial(
        explained, data, model, limit=18, order="balanced", label="object", target=target, batch_size=2
    )
    whole = select()
    assert (len(whole.images), whole.offset) == (18, 0)
    parts = [select(shard=Shard(number, of)) for number in range(1, of + 1)]
    assert [part.offset for part in parts] == offsets
    for name in ("images", "targets"):
        joined = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(joined, getattr(whole, name))
        assert joined.dtype == np.int64


def test_predicted_classes_are_computed_in_the_batches_of_the_whole(
    data: zarr_store.Store, model: Classifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "BLOCK", 5)
    seen: list[int] = []
    forward = model.forward
    monkeypatch.setattr(model, "forward", lambda images: (seen.append(len(images)), forward(images))[1])
    select = partial(
        explained, data, model, limit=13, order="first", label="object", target="predicted", batch_size=4
    )
    select()
    assert seen == [4, 1, 4, 1, 3]
    seen.clear()
    select(shard=Shard(2, 3))
    assert seen == [4, 1]


def test_more_parts_than_blocks_of_images_are_refused(data: zarr_store.Store, model: Classifier) -> None:
    settings = {"limit": 1000, "order": "first", "label": "object", "target": "label", "batch_size": 4}
    with pytest.raises(
        ValueError, match=rf"^shards: found 3, expected at most 1: .*\b{len(TESTED)} explained"
    ):
        explained(data, model, shard=Shard(1, 3), **settings)


@pytest.mark.parametrize(
    ("where", "fitting"),
    [
        ({"label_object": 3}, OBJECT == 3),
        ({"present": True}, PRESENT),
        ({"present": 0, "label_scene": 2}, ~PRESENT & (SCENE == 2)),
        ({"label_scene": ["scene1", "scene2"]}, (SCENE == 1) | (SCENE == 2)),
        (None, np.ones(COUNT, bool)),
    ],
)
@pytest.mark.parametrize("order", ["balanced", "first"])
@pytest.mark.parametrize("limit", [2, 1000])
def test_only_images_with_the_values_of_where(
    data: zarr_store.Store,
    model: Classifier,
    where: dict[str, int] | None,
    fitting: np.ndarray,
    order: str,
    limit: int,
) -> None:
    select = partial(explained, data, model, order=order, label="scene", batch_size=4, where=where)
    chosen, targets, _ = select(limit=limit, target="label")
    tested = [image for image in range(COUNT) if SPLIT[image] == TEST and fitting[image]]
    assert len(tested) > 2
    assert targets.tolist() == SCENE[chosen].tolist()
    if order == "first":
        assert chosen.tolist() == tested[:limit]
    # As if there were no others.
    rest = np.where(fitting, SPLIT, TRAIN)
    expected = explained_images(rest, [OBJECT, SCENE], limit, order=order)
    assert chosen.tolist() == sorted(expected.tolist())
    also, classes, _ = select(limit=limit, target="predicted")
    assert also.tolist() == chosen.tolist()
    assert classes.tolist() == predictions(model, chosen)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"where": {"present": True, "label_scene": -1}},
            "where: found no test image of present True, label_scene -1",
        ),
        # There are such images, but none is tested.
        ({"where": {"split": TRAIN}}, "where: found no test image of split 0"),
        ({"where": {"image": 0}}, "where: found 'image', valid: label_object, label_scene, present, split"),
        (
            {"where": {"label_scene": ["beach"]}},
            "explained_classes: unknown class 'beach'; .*valid: scene0, ",
        ),
        ({"target": "truth"}, "target: found 'truth', valid: label, predicted"),
        ({"order": "frist"}, "order: found 'frist', valid: balanced, first"),
    ],
)
def test_a_selection_that_does_not_fit_is_refused(
    data: zarr_store.Store, model: Classifier, changes: dict[str, Any], message: str
) -> None:
    settings = {
        "limit": 3,
        "order": "first",
        "label": "object",
        "target": "label",
        "batch_size": 4,
        **changes,
    }
    with pytest.raises(ValueError, match=f"^{message}"):
        explained(data, model, **settings)


def test_arguments_include_the_base_and_a_background_of_training_images(data: zarr_store.Store) -> None:
    cpu = torch.device("cpu")
    assert arguments_of({"parameters": {"samples": 3}}, data, cpu) == {"samples": 3}
    base = {"function": "saliency_assay.methods.path:integrated_gradients", "parameters": {"steps": 5}}
    arguments = arguments_of({"parameters": {}, "base": base, "background": 5}, data, cpu)
    assert (arguments["base"].func, arguments["base"].keywords) == (integrated_gradients, {"steps": 5})
    sample = background_images(SPLIT, [OBJECT, SCENE], 5)
    assert len(sample) == 5
    np.testing.assert_allclose(arguments["background"], IMAGES[sample] / np.float32(255))
    assert set(arguments) == {"base", "background"}


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
