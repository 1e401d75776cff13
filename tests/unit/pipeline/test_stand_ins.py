"""Stand-ins for missing data: files that only a plan sees, and the sizes of public data."""

from pathlib import Path
from typing import Any

import pytest
from pipelines import TINY, studies

from saliency_assay.pipeline.stand_ins import (
    explained_count,
    image_shape,
    missing_sources,
    missing_text,
    stand_ins,
)

CONFIGURATION = {
    "data": {
        "imagenet": {"kind": "folder", "path": "data/imagenet", "test_folder": "val", "masks": "boxes.json"},
        "bam": {"kind": "bam", "coco": "../coco", "miniplaces": "places"},
        "listed": {"kind": "bam", "coco": [{"annotations": "a/list.json", "images": "a/images"}]},
        "digits": {"kind": "digits"},
        "invalid": 3,
    },
    "models": {"vgg16": {"weights": "data/vgg16_imagenet.pth"}, "digits": {}},
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory, in which some data are present."""
    folder = tmp_path / "project"
    for name in ("places/images", "data/mnist", ".snakemake/metadata", "results"):
        (folder / name).mkdir(parents=True)
    (folder / "study.yaml").write_text("seeds: [0]")
    monkeypatch.chdir(folder)
    return folder


def test_missing_data_and_weights_are_found(folder: Path) -> None:
    missing = missing_sources(CONFIGURATION)
    assert missing == {
        "data/imagenet": {"train": False, "val": False},
        "boxes.json": {},
        "../coco": {"annotations/instances_train2017.json": True, "train2017": False},
        "a/list.json": {"": True},
        "a/images": {},
        "data/vgg16_imagenet.pth": {"": True},
    }
    assert missing_sources({}) == missing_sources({"data": [1], "models": None}) == {}


def test_stand_ins_exist_beside_the_files_of_the_folder_and_leave_it_as_it_is(folder: Path) -> None:
    before = sorted(folder.parent.rglob("*"))
    with stand_ins(missing_sources(CONFIGURATION)):
        assert Path.cwd() != folder
        assert missing_sources(CONFIGURATION) == {}
        assert Path("study.yaml").read_text() == "seeds: [0]"
        for name in ("places/images", "data/mnist", "data/imagenet/val", "../coco/train2017", "results"):
            assert Path(name).is_dir()
        for name in (
            "a/list.json",
            "data/vgg16_imagenet.pth",
            "../coco/annotations/instances_train2017.json",
        ):
            assert Path(name).stat().st_size == 0
        assert not Path(".snakemake").exists()
        copy = Path.cwd()
    assert Path.cwd() == folder
    assert not copy.exists()
    assert sorted(folder.parent.rglob("*")) == before


def test_nothing_stands_in_if_nothing_is_missing(folder: Path) -> None:
    with stand_ins({}):
        assert Path.cwd() == folder


def test_the_way_to_get_public_data_is_shown() -> None:
    lines = missing_text(missing_sources(CONFIGURATION)).splitlines()
    assert lines[0].startswith("not found: data/imagenet, ")
    assert lines[1] == '  make download DATA="vgg16"'
    assert lines[2].startswith("  https://image-net.org/download: register there")
    assert len(missing_text(["../mine", "mine/images"]).splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "shape"),
    [("bam_os", (600, 3, 24, 24)), ("bam_0s_k", (300, 3, 24, 24)), ("digits", (1797, 1, 8, 8))],
)
def test_shapes_are_those_of_the_built_sets(name: str, shape: tuple[int, ...]) -> None:
    """Of ``tests/workflow/tiny.yaml``, as its runs build them."""
    assert image_shape(studies(TINY).config, name) == shape


@pytest.mark.parametrize(
    ("data", "name", "images"),
    [
        ({}, "bam_os", 30),
        ({}, "bam_delta_seed0", 16),
        ({"digits": {**TINY["data"]["digits"], "max_explained_images": 500}}, "digits", 180),
        ({"digits": {"kind": "folder", "path": ".", "max_explained_images": 500}}, "digits", 500),
    ],
)
def test_explained_images_are_limited_by_the_test_images_if_known(
    data: dict[str, Any], name: str, images: int
) -> None:
    assert explained_count(studies(TINY | {"data": TINY["data"] | data}).config, name) == images


def test_image_pairs_have_the_size_of_their_studys_data() -> None:
    larger = {name: {**TINY["data"]["bam"], "size": size} for name, size in (("first", 32), ("bam", 24))}
    config = studies({**TINY, "data": {**larger, **TINY["data"]}}).config
    assert image_shape(config, "bam_delta_seed0") == (16, 3, 24, 24)


def test_sizes_of_public_data_have_the_limits_of_the_configuration(folder: Path) -> None:
    entry = {"kind": "mnist", "path": "data/mnist"}
    config = studies({"data": {"all": entry, "some": {**entry, "images_per_class": 20, "size": 32}}}).config
    assert image_shape(config, "all") == (70_000, 1, 28, 28)
    assert image_shape(config, "some") == (400, 1, 32, 32)
