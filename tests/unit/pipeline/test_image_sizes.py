"""Published numbers and sizes of images."""

from pathlib import Path
from typing import Any

import pytest
from pipelines import TINY, studies

from saliency_assay.pipeline.image_sizes import explained_count, image_shape, one_image_shape


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


def test_sizes_of_public_data_have_the_limits_of_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data/mnist").mkdir(parents=True)
    entry = {"kind": "mnist", "path": "data/mnist"}
    config = studies({"data": {"all": entry, "some": {**entry, "images_per_class": 20, "size": 32}}}).config
    assert image_shape(config, "all") == (70_000, 1, 28, 28)
    assert image_shape(config, "some") == (400, 1, 32, 32)


def test_images_of_a_folder_may_be_rectangles() -> None:
    images = {"kind": "folder", "path": ".", "size": [96, 128], "gray": True}
    captions = {"kind": "caption", "source": "images", "classes": ["a", "b"]}
    config = studies({"data": {"images": images, "words": captions}}).config
    assert one_image_shape(config, "images") == (1, 96, 128)
    assert one_image_shape(config, "words_both") == (1, 96, 256)
