"""Planned cost of a study: jobs as Snakemake counts them, measured times, bytes as stored."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saliency_assay.pipeline.plan import (
    MORE,
    Study,
    demo_seconds_of,
    duration_text,
    mask_bytes,
    plan_text,
    row_of,
    seconds_of,
    storage_of,
)
from saliency_assay.storage import zarr_store


def measured(root: Path, name: str, *seconds: float) -> None:
    """A benchmark file as Snakemake writes it, a line for each repeat."""
    file = root / f"{name}.tsv"
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"{value}\t0:00:03\t686.22\tNA" for value in seconds]
    file.write_text("\n".join(["s\th:m:s\tmax_rss\tcpu_time", *lines]) + "\n")


def study(jobs: Mapping[str, int], name: str = "s", **changes: Any) -> Study:
    return Study(name, jobs, **{"like": {}, "models_each": {}, "storage": None, **changes})


# --- times ----------------------------------------------------------------------------------------------------


def test_seconds_are_means_of_the_first_jobs_that_ran(tmp_path: Path) -> None:
    like = {
        "retrain": [["retrain/mine", 1], ["train/m", 1], ["trial/m", 1]],
        "measure_mask_leakage": [["measure_mask_leakage/mine", 1], ["train/m", 6]],
        "remask": [["remask/mine", 1]],
    }
    mine = study({}, "mine", like=like)
    assert [seconds_of(rule, mine, tmp_path) for rule in like] == [None, None, None]
    measured(tmp_path, "retrain/other/a", 999)
    measured(tmp_path, "remask/other/a", 999)
    measured(tmp_path, "train/another_model/seed0", 999)
    # Times of other studies and models are not used.
    assert [seconds_of(rule, mine, tmp_path) for rule in like] == [None, None, None]
    measured(tmp_path, "trial/m/trial0", 20)
    assert [seconds_of(rule, mine, tmp_path) for rule in like] == [20, None, None]
    measured(tmp_path, "train/m/seed0", 30)
    measured(tmp_path, "train/m/seed1", 50)
    assert [seconds_of(rule, mine, tmp_path) for rule in like] == [40, 240, None]
    measured(tmp_path, "measure_mask_leakage/mine/iteroar/gradient/zero/seed0/iteration1", 7.5)
    assert [seconds_of(rule, mine, tmp_path) for rule in like] == [40, 7.5, None]
    measured(tmp_path, "plot_retrain/other", 3)  # like nothing: as in any study
    assert seconds_of("plot_retrain", mine, tmp_path) == 3


def test_jobs_of_a_shard_are_counted_as_its_share_of_the_whole(tmp_path: Path) -> None:
    """However many parts the set had when they were measured."""
    eight = study({}, "mine", like={"attribute": [["attribute/m", 1 / 8]]})
    measured(tmp_path, "attribute/m/seed0/d/gradient", 80)
    assert seconds_of("attribute", eight, tmp_path) == 10
    measured(tmp_path, "attribute/m/seed0/d/gradient.shard3of4", 40)
    assert seconds_of("attribute", eight, tmp_path) == (80 + 4 * 40) / 2 / 8
    assert seconds_of("attribute", study({}), tmp_path) == (80 + 4 * 40) / 2  # as one job


def test_a_row_adds_up(tmp_path: Path) -> None:
    measured(tmp_path, "train/m/seed0", 1800)
    measured(tmp_path, "remask/s/a", 36)
    measured(tmp_path, "plot_retrain/s", 9)
    planned = study(
        {
            "build_data": 1,
            "train": 3,
            "retrain": 20,
            "measure_mask_leakage": 2,
            "remask": 50,
            "plot_retrain": 2,
        },
        like={
            "retrain": [["train/m", 1]],
            "measure_mask_leakage": [["train/m", 4]],
            "trial": [["train/m", 1]],
        },
        models_each={"train": 1, "retrain": 1, "measure_mask_leakage": 4, "trial": 1},
        storage=2.5e9,
    )
    row = row_of(planned, ["train", "retrain", "measure_mask_leakage", "remask", "trial"], tmp_path, {})
    assert row.pop("device") == (pytest.approx(1800 * (3 + 20 + 2 * 4) + 36 * 50), "")
    assert row.pop("other") == (pytest.approx(9 * 2), MORE)
    assert row == {
        "study": "s",
        "jobs": 78,
        "models": 31,
        "storage": (2.5, ""),
        "unmeasured": ["build_data"],
    }


def test_a_row_of_what_nothing_has_measured(tmp_path: Path) -> None:
    like = {"retrain": [["train", 1]]}
    planned = study({"retrain": 2, "plot": 1}, like=like)
    assert row_of(planned, ["train", "retrain"], tmp_path / "none", {}) == {
        "study": "s",
        "jobs": 3,
        "models": 0,
        "device": (0, MORE),
        "other": (0, MORE),
        "storage": (0, MORE),
        "unmeasured": ["retrain", "plot"],
    }


def test_times_are_those_of_the_demo_until_a_job_of_the_rule_has_run(tmp_path: Path) -> None:
    like = {"retrain": [["retrain/s", 1], ["train/m", 1]], "remask": [["remask/s", 0.5]]}
    planned = study({"retrain": 2, "remask": 4, "plot": 1}, like=like)
    demo = {"train": 10.0, "remask": 6.0, "plot": 2.0}
    assert [demo_seconds_of(rule, planned, demo) for rule in (*planned.jobs, "other")] == [10, 3, 2, None]
    row = row_of(planned, ["retrain", "remask"], tmp_path, demo)
    assert (row["device"], row["other"], row["unmeasured"]) == ((2 * 10 + 4 * 3, ">"), (2, ">"), [])
    measured(tmp_path, "train/m/seed0", 50)
    measured(tmp_path, "plot/s", 3)
    row = row_of(planned, ["retrain", "remask"], tmp_path, demo)
    assert (row["device"], row["other"]) == ((2 * 50 + 4 * 3, ">"), (3, ""))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (99, "99 s"), (150, "2 min"), (7100, "118 min"), (7200, "2 h"), (4e6, "1,111 h")],
)
def test_times_are_in_seconds_minutes_or_hours(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


# --- storage --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("images", "masks"), [(100, 2), (300, 2), (300, 5)])
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


def test_storage_is_of_images_masks_and_maps() -> None:
    """Ten images of 2 · 8 · 8: 128 bytes each; a mask of one takes 8 + 2 + 1, a map 4 · 128."""
    assert storage_of((10, 2, 8, 8), [], 0, 0) == 1280
    assert storage_of((10, 2, 8, 8), [], 3, 70) == 1280 + 3 * 512 + 70
    assert storage_of((10, 2, 8, 8), [(4, 1), (2, 3)], 0, 0) == 1280 + 10 * (4 * 11 + 2 * (24 + 6 + 1))


# --- the table ------------------------------------------------------------------------------------------------


def test_the_plan_is_a_table_and_says_what_it_does_not_know() -> None:
    known = {"device": (4.4e6, ""), "other": (70, ""), "storage": (5217.4, ""), "unmeasured": []}
    partly = {
        "device": (360, MORE),
        "other": (0, ""),
        "storage": (0, MORE),
        "unmeasured": ["measure_mask_leakage", "a"],
    }
    estimated = {"device": (0, MORE), "other": (90, ">"), "storage": (0.5, ""), "unmeasured": ["remask"]}
    rows = [
        {"study": "iteroar_stl10", "jobs": 2500, "models": 663, **known},
        {"study": "b", "jobs": 7, "models": 0, **partly},
        {"study": "c", "jobs": 7, "models": 0, **estimated},
    ]
    assert plan_text(rows, "two cores, 2026").splitlines() == [
        "                  jobs  models  model time  other time  storage, GB",
        "iteroar_stl10    2,500     663     1,222 h        70 s        5,217",
        "b                    7       0      6 min+         0 s            ?",
        "c                    7       0           ?      > 90 s          0.5",
        "> at the speed of the demo's jobs (two cores, 2026), for rules of which no job has run here yet;",
        "  larger images and networks, or more passes, turn seconds into hours (docs/scaling.md)",
        "times without the rules a, measure_mask_leakage, remask: none of their jobs has been measured",
        "storage ?: the size of the data set is unknown until it is built",
    ]
    assert plan_text(rows[:1], "").splitlines()[2:] == ["times: of jobs that have run here"]
