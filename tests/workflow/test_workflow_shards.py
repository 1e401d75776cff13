"""A set that is explained and scored whole, and in shards: everything is the same, value by value."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from checkout import Checkout
from tiny_jobs import combined

from saliency_assay.storage.shards import open_stores
from saliency_assay.storage.zarr_store import open_store

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive]

CONFIGURATION = Path(__file__).parent / "shards.yaml"
SIZES = (256, 256, 256, 130)
METHODS, METRICS = ("gradient", "smooth"), ("aopc", "sensitivity")
STORES = {
    **{f"maps/digits/seed0/digits/{method}": "maps" for method in METHODS},
    "responses/aopc/digits/seed0/digits": "responses",
    **{f"curves/{metric}/digits/seed0/digits/{method}": "curves" for metric in METRICS for method in METHODS},
}
TABLES = ("scores.parquet", "summary.csv")
RELIABILITY = (
    "reliability",
    "agreement",
    "order",
    "pairs",
    "consistency",
    "rankings",
    "variance",
    "controls",
)
SHOWN = {
    *("tabulate_scores digits", "plot_scores digits", "plot_gallery digits", "summarize digits"),
    *("tabulate_reliability digits", "plot_reliability digits"),
    *(f"plot_metric digits {figure}" for figure in ("aopc scores", "sensitivity scores")),
    "plot_curves digits aopc curves",
    *("overview", "document_methods", "provenance", "report", "all"),
}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Checkout, Path]:
    """A run in four shards with its report, and a folder with the tables that it first had as a whole."""
    root = tmp_path_factory.mktemp("shards") / "project"
    checkout = replace(Checkout.fresh(root), configuration=CONFIGURATION.name)
    shutil.copy2(CONFIGURATION, root)
    tables = [f"results/tables/digits/{name}" for name in (*TABLES, *(f"{name}.csv" for name in RELIABILITY))]
    checkout.make(*tables, "results/responses/aopc/digits/seed0/digits.zarr.zip")
    whole = root.parent / "whole"
    shutil.copytree(root / "results/tables", whole)
    checkout.configure(data__digits__shards=4)
    checkout.make()
    return checkout, whole


@pytest.mark.parametrize("name", STORES)
def test_stores_hold_the_same(name: str, both: tuple[Checkout, Path]) -> None:
    """Those of the whole set are still there, and no longer read."""
    results, kind = both[0].root / "results", STORES[name]
    shards = [results / f"{name}.shard{number}of4.zarr.zip" for number in range(1, 5)]
    for path, size in zip(shards, SIZES, strict=True):
        with open_store(path, kind=kind) as shard:
            assert len(shard) == size
    with (
        open_store(results / f"{name}.zarr.zip", kind=kind) as whole,
        open_stores(shards, kind=kind) as gathered,
    ):
        assert gathered.names == whole.names
        for array in whole.names:
            assert gathered[array].dtype == whole[array].dtype
            np.testing.assert_array_equal(gathered[array][:], whole[array][:], err_msg=array)
        expected = {**whole.attributes}
        for attribute in ("shard", "offset", "digest", "maps", "format", "version", "libraries"):
            expected.pop(attribute, None)
        gathered.attributes.pop("digest")
        assert gathered.attributes == expected


def test_tables_are_the_same_files(both: tuple[Checkout, Path]) -> None:
    checkout, whole = both
    tables = checkout.files("results/tables")
    before = {str(path.relative_to(whole)): path.read_bytes() for path in whole.rglob("*") if path.is_file()}
    assert len(before) == len(TABLES) + len(RELIABILITY)
    assert tables == before


def test_noise_and_targets_were_at_work(both: tuple[Checkout, Path]) -> None:
    """Else equal results would say little: maps smoothed by noise, other classes than the labels, moved maps."""
    results = both[0].root / "results"
    with open_store(results / "data/digits.zarr.zip", kind="data") as data:
        with open_store(
            results / "maps/digits/seed0/digits/smooth.shard4of4.zarr.zip", kind="maps"
        ) as smooth:
            images, targets, smoothed = (smooth[name][:] for name in ("image", "target", "map"))
        assert (targets != data["label_class"][images]).any()
    with open_store(results / "maps/digits/seed0/digits/gradient.shard4of4.zarr.zip", kind="maps") as plain:
        assert (plain["map"][:] != smoothed).any(axis=(1, 2, 3)).all()
    with open_store(
        results / "responses/aopc/digits/seed0/digits.shard4of4.zarr.zip", kind="responses"
    ) as responses:
        orders = responses["random_aopc"][:].reshape(len(images), -1)
    assert (orders[:, 0] != orders[:, 1]).mean() > 0.5


def test_the_report_is_built_and_jobs_are_those_of_the_shards(both: tuple[Checkout, Path]) -> None:
    checkout, _ = both
    assert (checkout.root / "results/report.html").stat().st_size > 100_000
    page = (checkout.root / "results/figures/digits/study.html").read_text()
    assert "maps for 898 test images" in page
    logs = {name for name in checkout.files("results/logs") if name.startswith("attribute/")}
    names = ["", *(f".shard{number}of4" for number in range(1, 5))]
    assert logs == {
        f"attribute/digits/seed0/digits/{method}{name}.log" for method in METHODS for name in names
    }
    assert checkout.planned() == set()


def test_another_number_of_shards_makes_those_and_what_reads_them_alone(both: tuple[Checkout, Path]) -> None:
    checkout = both[0].copy(both[1].parent / "another")
    checkout.configure(data__digits__shards=2)
    shards = [f".shard{number}of2" for number in (1, 2)]
    made = {
        *(f"attribute digits 0 digits {method} {shard}" for method in METHODS for shard in shards),
        *(f"respond aopc digits 0 digits {shard}" for shard in shards),
        *(
            f"score {metric} digits 0 digits {method} {shard}"
            for metric in METRICS
            for method in METHODS
            for shard in shards
        ),
    }
    assert checkout.planned() == made | combined(SHOWN, SHOWN)
    # What was made of the whole set is still good, but the model was evaluated by a separate job since. The combined
    # job therefore runs, and restores all of its parts.
    checkout.configure(data__digits__shards=None)
    restored = {
        "attribute__digits__seed0__digits",
        *(f"score__{metric}__digits__seed0__digits" for metric in METRICS),
    }
    assert checkout.planned() == combined(SHOWN, SHOWN) | restored | {"plot_training"}


def test_a_shard_of_another_run_is_refused(both: tuple[Checkout, Path]) -> None:
    checkout = both[0].copy(both[1].parent / "mixed")
    folder = checkout.root / "results/maps/digits/seed0/digits"
    shutil.copy2(folder / "smooth.shard3of4.zarr.zip", folder / "gradient.shard3of4.zarr.zip")
    target = "results/figures/digits/gallery.html"
    status, output = checkout.snakemake(target, "--rerun-triggers=mtime", "--force")
    assert status == 1
    assert "plot_gallery: " in output
    assert (
        "gradient.shard3of4.zarr.zip: provenance.method is 'smoothgrad', expected 'gradient' as in " in output
    )


def test_more_shards_than_there_are_blocks_of_images(both: tuple[Checkout, Path]) -> None:
    """Known by the configuration where fewer images are asked for, and by the job where the set has fewer."""
    checkout = both[0].copy(both[1].parent / "too many")
    checkout.configure(data__digits__shards=5)
    status, output = checkout.snakemake("--dry-run")
    expected = "found 5, expected at most 4: 898 explained images are 4 blocks of 256"
    assert (status, f"shards.yaml: data.digits.shards: {expected}" in output) == (1, True)
    checkout.configure(data__digits__max_explained_images=5000)
    status, output = checkout.snakemake("results/maps/digits/seed0/digits/gradient.shard1of5.zarr.zip")
    assert status == 1
    assert f"attribute: shards: {expected}" in output
