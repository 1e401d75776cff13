"""All sets of one collection by their names, and the script that makes their stores."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jobs import run_script

from saliency_assay.data.bam.compose import compose
from saliency_assay.data.bam.members import VARIANTS, compose_member, is_series, plan_common
from saliency_assay.data.bam.placement import Collection, collection_of, plan, side_range
from saliency_assay.runtime.provenance import seed_of
from saliency_assay.storage import zarr_store

SIZE, CANVAS, SCENES, SEED = 24, 32, 5, 7
SHAPE: dict[str, Any] = {"size": SIZE, "measure": "area", "smallest": 1 / 3, "largest": 1 / 2}
BASE = {**SHAPE, "images_per_pair": 6, "test_share": 0.25, "leak_free": True}
SCALE = {**BASE, "variant_smallest": 1 / 6, "variant_largest": 1 / 3}
SERIES = {**SHAPE, "images_per_scene": 8, "test_share": 0.25, "leak_free": True}
SETTINGS: dict[str, Any] = {
    **{member: {"parameters": BASE} for member in ("os", "0s", "og", "os_location")},
    "os_scale": {"parameters": SCALE},
    **{
        member: {"parameters": SERIES, "common_object": "kite"}
        for member in ("os_k01", "os_k03", "os_k05", "0s_k")
    },
}
OBJECTS, PLACES = ["dog", "kite"], [f"scene{label}" for label in range(SCENES)]
GENERATOR = np.random.default_rng(0)
CUTOUTS = {
    "image": GENERATOR.integers(0, 256, (16, 4, CANVAS, CANVAS), dtype=np.uint8),
    "height": GENERATOR.integers(8, CANVAS + 1, 16),
    "width": GENERATOR.integers(8, CANVAS + 1, 16),
    "label_object": np.repeat([0, 1], 8),
    "coco_image": np.arange(16),
}
SCENERY = {
    "image": GENERATOR.integers(0, 256, (6 * SCENES, 3, SIZE, SIZE), dtype=np.uint8),
    "label_scene": np.repeat(np.arange(SCENES), 6),
}


def collection() -> Collection:
    return collection_of(CUTOUTS, SCENERY, object_names=OBJECTS, scene_names=PLACES)


def made(member: str, seed: int = SEED, **changes: Any) -> dict[str, np.ndarray]:
    settings = dict(SETTINGS[member])
    parameters = {**settings.pop("parameters"), **changes}
    blocks = list(compose_member(collection(), member, parameters, seed=seed, **settings, block=11))
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


@pytest.mark.parametrize("member", ["os", "0s", "og"])
def test_base_sets_are_composed_from_the_seed_of_their_rule(member: str) -> None:
    generator = np.random.default_rng(seed_of(SEED, "compose_bam"))
    drawn = plan(collection(), **BASE, generator=generator)
    (block,) = compose(drawn, collection(), member)
    images = made(member)
    assert list(images) == list(block)
    assert all((images[name] == block[name]).all() for name in block)


def boxed(images: dict[str, np.ndarray], image: int) -> np.ndarray:
    """The object of one image in its box, RGB and mask ``[4, height, width]``; 0 around it."""
    top, left, height, width = images["placement"][image]
    layers = np.concatenate([images["image"][image] * images["mask"][image], images["mask"][image][None]])
    return layers[:, top : top + height, left : left + width]


@pytest.mark.parametrize("member", VARIANTS)
def test_variants_are_x_os_but_for_where_the_object_is(member: str) -> None:
    base, variant = made("os"), made(member)
    for name in ("cutout", "scene", "split", "label_object", "label_scene"):
        assert (variant[name] == base[name]).all()
    assert (variant["placement"] != base["placement"]).any(axis=1).mean() > 0.9
    mask, scenes = variant["mask"][:, None], made("0s")["image"]
    assert (np.where(mask, scenes, variant["image"]) == scenes).all()
    assert (variant["covered"] == np.where(mask, scenes, 0)).all()
    if member == "os_location":
        # The same pixels elsewhere.
        assert (variant["placement"][:, 2:] == base["placement"][:, 2:]).all()
        for image in range(len(mask)):
            assert boxed(base, image).tolist() == boxed(variant, image).tolist()
    else:
        least, greatest = side_range(SIZE, measure="area", smallest=1 / 6, largest=1 / 3)
        longer = variant["placement"][:, 2:].max(axis=1)
        assert (longer.min(), longer.max()) == (least, greatest)


def test_a_variants_parameters_change_that_variant_only() -> None:
    other = {"variant_smallest": 0.1, "variant_largest": 0.2}
    assert (made("os_scale")["placement"] != made("os_scale", **other)["placement"]).any()
    assert (made("os_location")["placement"] == made("os_location", **other)["placement"]).all()


def test_variants_are_not_drawn_by_what_drew_x_os() -> None:
    places = [made(member, images_per_pair=40) for member in ("os", *VARIANTS)]
    room = SIZE - places[0]["placement"][:, 2]
    tops = [images["placement"][:, 0] / room for images in (places[0], places[2])]
    assert abs(np.corrcoef(*tops)[0, 1]) < 0.15
    sizes = [images["placement"][:, 2:].max(axis=1) for images in places[:2]]
    assert abs(np.corrcoef(*sizes)[0, 1]) < 0.15


def test_the_series_draws_from_a_seed_of_its_own() -> None:
    def drawn(*names: str) -> np.ndarray:
        generator = np.random.default_rng(seed_of(SEED, *names))
        return plan_common(collection(), common_object="kite", **SERIES, generator=generator).placement

    images = made("os_k05")["placement"]
    assert (images == drawn("compose_bam", "commonality")).all()
    assert (images != drawn("compose_bam")).any(axis=1).mean() > 0.9  # those of X_os


@pytest.mark.parametrize("member", ["os_scale", "os_location", "os_k03"])
def test_sets_follow_the_seed(member: str) -> None:
    one, same, other = made(member), made(member), made(member, seed=SEED + 1)
    assert all((one[name] == same[name]).all() for name in one)
    for name in ("image", "cutout", "scene", "placement"):
        assert (one[name] != other[name]).any()


@pytest.mark.parametrize("member", ["X_os", "os_k1", "os_kale"])
def test_an_unknown_set(member: str) -> None:
    with pytest.raises(ValueError, match=f"^set '{member}': expected one of os, 0s, og, os_scale"):
        compose_member(collection(), member, BASE, seed=SEED)
    with pytest.raises(ValueError, match=f"^set '{member}': expected one of os, 0s, og, os_scale"):
        is_series(member)


@pytest.mark.parametrize("member", ["os_scale", "os_k03"])
def test_the_script(member: str, tmp_path: Path) -> None:
    paths = {name: tmp_path / f"{name}.zarr.zip" for name in ("cutouts", "scenes", "made")}
    zarr_store.write(paths["cutouts"], [CUTOUTS], kind="cutouts", attributes={"objects": OBJECTS})
    zarr_store.write(paths["scenes"], [SCENERY], kind="scenes", attributes={"scenes": PLACES})
    settings = {**SETTINGS[member], "member": member, "seed": SEED}
    files = {name: paths[name] for name in ("cutouts", "scenes")}
    run_script("compose_bam", tmp_path, settings, files, [paths["made"]])
    expected = made(member)
    with zarr_store.open_store(paths["made"], kind="data") as images:
        assert set(images.names) == set(expected)
        for name, array in expected.items():
            assert images[name].dtype == array.dtype
            assert (images[name][:] == array).all()
        labels = {"scene": PLACES} if is_series(member) else {"object": OBJECTS, "scene": PLACES}
        assert images.attributes["classes"] == labels
        assert {f"label_{label}" for label in labels} == {n for n in images.names if n.startswith("label_")}
        assert images.attributes["provenance"] == settings
