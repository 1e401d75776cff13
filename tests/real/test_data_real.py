from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from saliency_assay.data.bam import GREY, SETS, compose
from saliency_assay.data.classes import OBJECTS, SCENES
from saliency_assay.data.coco import Source, find_instances
from saliency_assay.data.collection import collect_cutouts, collect_scenes
from saliency_assay.data.explained import explained_images
from saliency_assay.data.miniplaces import find_scenes
from saliency_assay.data.plan import Collection, canvas_side, collection_of, plan
from saliency_assay.data.splits import TEST

SIZE = 64
SIDES = {"measure": "area", "smallest": 1 / 3, "largest": 1 / 2}


@pytest.fixture(scope="module")
def collection(real_data: Path) -> Collection:
    sources = [
        Source(real_data / f"coco/annotations/instances_{half}2017.json", real_data / f"coco/{half}2017")
        for half in ("train", "val")
    ]
    instances, skipped = find_instances(sources, OBJECTS, min_area=1024, limit=1000)
    scenes, held = find_scenes(real_data / "miniplaces", SCENES, objects=OBJECTS, limit=30)
    assert min(sum(i.category == name for i in instances) for name in OBJECTS) >= 5
    assert skipped["kite"]["smaller than 1024 px²"] > 0
    assert held["track"] == {"beyond the limit": 370}
    cutouts = list(collect_cutouts(instances, OBJECTS, canvas=canvas_side(SIZE, **SIDES)))
    places = list(collect_scenes(scenes, SCENES, size=SIZE))
    return collection_of(
        {name: np.concatenate([block[name] for block in cutouts]) for name in cutouts[0]},
        {name: np.concatenate([block[name] for block in places]) for name in places[0]},
        object_names=OBJECTS,
        scene_names=SCENES,
    )


@pytest.mark.parametrize("leak_free", [False, True])
def test_real_composites(collection: Collection, leak_free: bool) -> None:
    drawing = plan(
        collection,
        size=SIZE,
        images_per_pair=100,
        test_share=0.1,
        leak_free=leak_free,
        generator=np.random.default_rng(0),
        **SIDES,
    )
    assert (drawing.split == TEST).sum() == 1000
    tested = drawing.split == TEST
    photos = collection.photo[drawing.cutout]
    assert bool(set(photos[tested].tolist()) & set(photos[~tested].tolist())) != leak_free
    chosen = explained_images(drawing.split, [drawing.label_object, drawing.label_scene], 100)
    few = replace(
        drawing,
        **{
            name: getattr(drawing, name)[chosen]
            for name in ("cutout", "scene", "label_object", "label_scene", "split", "placement")
        },
    )
    images = {}
    for name in SETS:
        blocks = list(compose(few, collection, name, block=32))
        images[name] = {key: np.concatenate([block[key] for block in blocks]) for key in blocks[0]}
    os, none, og = (images[name]["image"] for name in SETS)
    mask = images["os"]["mask"][:, None]
    assert (np.where(mask, images["os"]["covered"], os) == none).all()
    assert (og == np.where(mask, os, GREY)).all()
    longer = images["os"]["placement"][:, 2:].max(axis=1)
    assert longer.min() ** 2 >= SIZE**2 / 3
    assert longer.max() ** 2 < SIZE**2 / 2
    # An object fills a good part of its box, and differs from the scene that it covers.
    share = mask.sum(axis=(1, 2, 3)) / images["os"]["placement"][:, 2:].prod(axis=1)
    assert 0.5 < np.median(share) < 0.95
    assert share.min() > 0.1
    changed = (os != none).any(axis=1).sum(axis=(1, 2)) / mask.sum(axis=(1, 2, 3))
    assert changed.min() > 0.9
