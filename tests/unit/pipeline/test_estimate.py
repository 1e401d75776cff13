"""Estimated cost of a study: jobs as Snakemake counts them, measured times, bytes as stored, and missing data."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from saliency_assay.pipeline.estimate import (
    FROM_DEMO,
    UNKNOWN,
    duration_text,
    mask_bytes,
    missing_text,
    placeholders,
    seconds_of,
    time_text,
)
from saliency_assay.storage import zarr_store


def measured(root: Path, name: str, *seconds: float) -> None:
    """A benchmark file as Snakemake writes it, a line for each repeat."""
    file = root / f"{name}.tsv"
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{value}\t0:00:03\t686.22\tNA" for value in seconds]
    file.write_text("\n".join(["s\th:m:s\tmax_rss\tcpu_time", *lines]) + "\n")


def test_seconds_are_means_of_the_first_jobs_that_ran(tmp_path: Path) -> None:
    like = {
        "retrain": [("retrain/mine", 1.0), ("train/m", 1.0), ("trial/m", 1.0)],
        "measure_mask_leakage": [("measure_mask_leakage/mine", 1.0), ("train/m", 6.0)],
        "remask": [("remask/mine", 0.5)],
        "plot": [("plot/mine", 1.0)],
    }
    demo = {"train": 10.0, "remask": 6.0}

    def estimates() -> list[tuple[float, str]]:
        return [seconds_of(rule, like, tmp_path, demo) for rule in like]

    of_demo = [(10, FROM_DEMO), (60, FROM_DEMO), (3, FROM_DEMO), (0, UNKNOWN)]
    for name in ("retrain/other/a", "remask/other/a", "train/another_model/seed0"):
        measured(tmp_path, name, 999)
    # Times of other studies and models are not used.
    assert estimates() == of_demo
    measured(tmp_path, "trial/m/trial0", 20)
    assert estimates() == [(20, ""), *of_demo[1:]]
    measured(tmp_path, "train/m/seed0", 30)
    measured(tmp_path, "train/m/seed1", 50)
    assert estimates() == [(40, ""), (240, ""), *of_demo[2:]]
    measured(tmp_path, "measure_mask_leakage/mine/iteroar/gradient/zero/seed0/iteration1", 7.5)
    assert estimates() == [(40, ""), (7.5, ""), *of_demo[2:]]
    measured(tmp_path, "plot_retrain/other", 3)  # like nothing: as in any study
    assert seconds_of("plot_retrain", like, tmp_path, demo) == (3, "")


def test_jobs_of_a_shard_are_counted_as_its_share_of_the_whole(tmp_path: Path) -> None:
    """However many shards the set had when they were measured."""
    like = {"attribute": [("attribute/m", 1 / 8)]}
    measured(tmp_path, "attribute/m/seed0/d/gradient", 80)
    assert seconds_of("attribute", like, tmp_path, {}) == (10, "")
    measured(tmp_path, "attribute/m/seed0/d/gradient.shard3of4", 40)
    assert seconds_of("attribute", like, tmp_path, {}) == ((80 + 4 * 40) / 2 / 8, "")


def test_a_time_with_marked_estimates_is_a_lower_bound() -> None:
    estimates = {"train": (1800.0, ""), "remask": (36.0, FROM_DEMO), "plot": (0.0, UNKNOWN)}
    assert time_text({"train": 4}, estimates) == "2 h"
    assert time_text({"train": 4, "remask": 100}, estimates) == "> 3 h"
    assert time_text({"plot": 3}, estimates) == "> 0 s"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (99, "99 s"), (150, "2 min"), (7100, "118 min"), (7200, "2 h"), (4e6, "1,111 h")],
)
def test_times_are_in_seconds_minutes_or_hours(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


@pytest.mark.parametrize(("images", "masks"), [(100, 2), (300, 5)])
def test_masks_take_what_a_store_of_them_takes(tmp_path: Path, images: int, masks: int) -> None:
    """But for a header that does not grow; 9 · 9 pixels are no whole bytes."""

    def blocks() -> Iterator[dict[str, np.ndarray]]:
        for count in (images - 60, 60):
            yield {
                "mask": np.ones((count, masks, 9, 9), dtype=bool),
                "mean": np.ones((count, masks, 3), dtype=np.uint8),
                "ranked": np.ones(count, dtype=bool),
            }

    path = tmp_path / "masks.zarr.zip"
    zarr_store.write(path, blocks(), kind="masks", attributes={})
    header = path.stat().st_size - mask_bytes(images, (3, 9, 9), masks)
    assert 0 < header < 4000


def test_masks_of_the_papers_images() -> None:
    """224 · 224 / 8 bytes of bits, three of color, one flag."""
    assert mask_bytes(1, (3, 224, 224), 1) == 6272 + 3 + 1
    assert mask_bytes(60_000, (3, 224, 224), 10) == 60_000 * (62_720 + 30 + 1)
    assert mask_bytes(7, (1, 9, 9), 2) == 7 * (21 + 2 + 1)  # 162 bits


def test_missing_data_and_weights_are_replaced_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "places").mkdir()
    configuration = {
        "results": "here",
        "data": {
            "imagenet": {"kind": "folder", "path": "data/imagenet", "masks": "boxes.json"},
            "bam": {"kind": "bam", "coco": "../coco", "miniplaces": "places"},
            "digits": {"kind": "digits"},
            "invalid": 3,
        },
        "models": {"vgg16": {"weights": "data/vgg16_imagenet.pth"}, "again": {"weights": "here/weights.pt"}},
    }
    folder = tmp_path / "empty"
    replaced, missing = placeholders(configuration, folder)
    assert missing == ["../coco", "boxes.json", "data/imagenet", "data/vgg16_imagenet.pth"]
    images = str(folder / "images")
    assert replaced["data"] == {
        "imagenet": {"path": images, "masks": str(folder / "masks")},
        "bam": {"coco": images},
    }
    assert list(replaced["models"]) == ["vgg16"]
    assert Path(replaced["models"]["vgg16"]["weights"]).stat().st_size == 0
    assert 'make download DATA="vgg16"' in missing_text(missing)
    assert "https://image-net.org/download" in missing_text(missing)
    assert len(missing_text(["../mine", "mine/images"]).splitlines()) == 1
    for number, invalid in enumerate((None, {}, {"data": [1], "models": None})):
        assert placeholders(invalid, tmp_path / str(number))[1] == []
