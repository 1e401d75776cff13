"""Results of a run: the same for the same seeds, at the paths in DESIGN, and with their provenance."""

import json
import os
import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from checkout import PROJECT, Checkout

from saliency_assay import metrics, models
from saliency_assay.models.classifier import digest
from saliency_assay.pipeline.estimate import mask_bytes
from saliency_assay.reliability.order_tables import UNTESTED
from saliency_assay.runtime.provenance import digest_of_file
from saliency_assay.storage import score_tables
from saliency_assay.storage.zarr_store import open_store

pytestmark = pytest.mark.slow

BAM_METHODS = ("gradcam", "random", "edge")
COMPARED = (
    *(("f_o", name) for name in ("bam_os", "bam_os_scale")),
    *(("f_s", name) for name in ("bam_os", "bam_os_scale", "bam_0s", "bam_delta_seed0")),
    ("f_k01", "bam_os_k01"),
    ("f_k10", "bam_os_k10"),
)
RATED = ("bam", "captions", "digits", "retrain")
FOLDERS = {
    "collections": "",
    "data": "data",
    "maps": "maps",
    "responses": "responses",
    "curves": "curves",
    "remask": "masks",
}
"""Folders of stores, and the kind of store in each; in a collection each store has the kind that it is named after."""
MEASURED = ("overview", "methods", "provenance")
"""Pages that tell how long the run took."""


def stores(checkout: Checkout) -> dict[str, str]:
    """Return the kind of each store of a run, by its path in the results folder."""
    results = checkout.root / "results"
    return {
        str(path.relative_to(results)): kind or path.name.partition(".")[0]
        for folder, kind in FOLDERS.items()
        for path in sorted((results / folder).rglob("*.zarr.zip"))
    }


def made(checkout: Checkout) -> dict[str, bytes]:
    """All results but the drawn sources themselves, whose digests stand in SHA256SUMS, and what measures the run.

    Outputs that are kept for combined jobs and the mark of a passed check of models are left out, too; a training
    leaves no state.
    """
    state = (".state/parts/", ".state/model_check")
    left_out = ("sources/bam/coco/", "sources/bam/miniplaces/", "logs/", "benchmarks/", *state)
    return {name: content for name, content in checkout.files().items() if not name.startswith(left_out)}


def test_results_are_the_outputs_of_jobs_and_nothing_else(finished_once: Checkout) -> None:
    """No temporary file, no training state, no store half-written is left."""
    status, summary = finished_once.snakemake("--summary", "--nolock")
    assert status == 0
    outputs = {line.partition("\t")[0] for line in summary.splitlines() if line.startswith("results/")}
    assert {f"results/{name}" for name in made(finished_once)} == outputs
    assert len(stores(finished_once)) > 60


def test_every_job_leaves_a_log_and_a_benchmark(finished_once: Checkout) -> None:
    logs = {name.removesuffix(".log") for name in finished_once.files("results/logs")}
    logs = {name for name in logs if not name.startswith("combined/")} - {"check_models"}  # no job
    benchmarks = finished_once.files("results/benchmarks")
    assert len(logs) > 140
    assert logs == {name.removesuffix(".tsv") for name in benchmarks}
    assert all(content.startswith(b"s\th:m:s\tmax_rss") for content in benchmarks.values())


def test_no_job_warns(finished_once: Checkout) -> None:
    logs = finished_once.files("results/logs")
    assert [name for name, content in logs.items() if b"warning" in content.lower()] == []


def test_a_second_run_does_nothing(finished: Checkout) -> None:
    before = {path: path.stat().st_mtime_ns for path in (finished.root / "results").rglob("*")}
    finished.make()
    assert {path: path.stat().st_mtime_ns for path in (finished.root / "results").rglob("*")} == before


@pytest.fixture
def poor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """ASCII alone, no home, no folder for temporary files, clocks half an hour off, and files for oneself alone."""
    cache = tmp_path / "cache"  # Snakemake has one somewhere, or does not start
    changes = {
        **{"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "TZ": "America/St_Johns"},
        **{"HOME": "/proc", "TMPDIR": "/nowhere/at/all", "MPLCONFIGDIR": "/proc/nowhere"},
        "XDG_CACHE_HOME": str(cache),
    }
    for name, value in changes.items():
        monkeypatch.setenv(name, value)
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.mark.exhaustive
def test_the_same_seeds_give_the_same_bytes_elsewhere(
    finished_once: Checkout, fresh: Checkout, poor: None
) -> None:
    """In another folder, locale and time zone, without a home folder or a folder for temporary files."""
    fresh.make()
    one, two = made(finished_once), made(fresh)
    assert set(one) == set(two)
    differing = {name for name in one if one[name] != two[name] and not name.startswith("costs/")}
    # Snakemake writes its run's date and paths into the report.
    assert differing <= {"report.html", *(f"figures/{page}.html" for page in MEASURED)}
    assert (fresh.root / "results/data/digits.zarr.zip").stat().st_mode & 0o777 == 0o600


def test_another_data_seed_gives_other_images(finished: Checkout) -> None:
    path = finished.root / "results/data/bam_os.zarr.zip"
    with open_store(path, kind="data") as data:
        before, labels = data["image"][:], data["label_object"][:]
    finished.configure(data__bam__seed=1)
    finished.make("results/data/bam_os.zarr.zip")
    with open_store(path, kind="data") as data:
        after = data["image"][:]
        np.testing.assert_array_equal(data["label_object"][:], labels)
    assert after.shape == before.shape
    assert (after != before).any(axis=(1, 2, 3)).all()


def test_another_training_seed_gives_other_weights(finished: Checkout) -> None:
    finished.configure(seeds=[0, 1])
    finished.make("results/models/f_o/seed1/weights.pt")
    one, two = (
        torch.load(finished.root / f"results/models/f_o/seed{seed}/weights.pt", weights_only=True)
        for seed in (0, 1)
    )
    learned = [name for name in one["state_dict"] if "running" not in name and "num_batches" not in name]
    assert len(learned) > 20
    assert [name for name in learned if torch.equal(one["state_dict"][name], two["state_dict"][name])] == []
    assert one["classifier"]["mean"] == two["classifier"]["mean"]  # of the same training images


def test_a_store_records_how_it_was_made(finished_once: Checkout) -> None:
    for name, kind in stores(finished_once).items():
        with open_store(finished_once.root / "results" / name, kind=kind) as store:
            attributes = store.attributes
            assert len(store) > 0, name
        assert len(bytes.fromhex(attributes["digest"])) == 32
        assert len(bytes.fromhex(attributes["provenance"]["code"])) == 32
        libraries = attributes["libraries"]
        assert {"numpy", "zarr"} <= set(libraries)
        assert libraries == {library: version(library) for library in libraries}


@pytest.mark.parametrize("method", ["gradcam", "random"])
def test_a_map_names_its_method_model_and_data(method: str, finished_once: Checkout) -> None:
    results = finished_once.root / "results"
    with open_store(results / "data/bam_0s.zarr.zip", kind="data") as data:
        digest_of_data = data.attributes["digest"]
    weights = torch.load(results / "models/f_s/seed0/weights.pt", weights_only=True)
    with open_store(results / f"maps/f_s/seed0/bam_0s/{method}.zarr.zip", kind="maps") as maps:
        attributes = maps.attributes
    assert attributes["data"] == digest_of_data
    assert attributes["model"] == digest(weights["state_dict"])
    made_with = attributes["provenance"]
    parameters = {"gradcam": {"relu": True, "upsampling": "bilinear", "layer": ""}, "random": {}}[method]
    assert (made_with["method"], made_with["parameters"], made_with["seed"]) == (method, parameters, 0)
    assert "torch" in attributes["libraries"]


def test_two_states_of_an_image_are_drawn_with_the_same_noise(finished_once: Checkout) -> None:
    """Images beside their changes: a method that knows no model sees no difference, one that does sees some."""
    folder = finished_once.root / "results/maps/f_s/seed0/bam_delta_seed0"
    halves = {}
    for method in ("random", "gradcam"):
        with open_store(folder / f"{method}.zarr.zip", kind="maps") as maps:
            halves[method] = np.split(maps["map"][:], 2)
    np.testing.assert_array_equal(*halves["random"])
    assert (halves["gradcam"][0] != halves["gradcam"][1]).any(axis=(1, 2, 3)).all()


def test_changes_without_effect_are_where_the_object_is(finished_once: Checkout) -> None:
    with open_store(finished_once.root / "results/data/bam_delta_seed0.zarr.zip", kind="data") as data:
        images, masks, source = (np.split(data[name][:], 2) for name in ("image", "mask", "source"))
        changed = data["changed"][:]
    with open_store(finished_once.root / "results/data/bam_0s.zarr.zip", kind="data") as scenes:
        np.testing.assert_array_equal(images[0], scenes["image"][source[0]])
    np.testing.assert_array_equal(*source)
    assert changed.tolist() == [False] * len(source[0]) + [True] * len(source[0])
    differs = (images[0] != images[1]).any(axis=1)
    assert not (differs & ~masks[0]).any()
    assert differs.any(axis=(1, 2)).all()


def test_sources_are_what_their_sums_say(finished_once: Checkout) -> None:
    folder = finished_once.root / "results/sources/bam"
    lines = (folder / "SHA256SUMS").read_text().splitlines()
    assert len(lines) == 10 * 4 + 1 + 10 * 6 + 3
    for line in lines:
        expected, _, name = line.partition("  ")
        assert digest_of_file(folder / name) == expected


@pytest.mark.parametrize("method", BAM_METHODS)
def test_a_score_table_has_a_row_for_every_image(method: str, finished_once: Checkout) -> None:
    table = pd.read_parquet(finished_once.root / f"results/scores/bam/bam/seed0/{method}.parquet")
    assert list(table.columns) == list(score_tables.COLUMNS)
    assert {column: str(kind) for column, kind in table.dtypes.items()} == score_tables.COLUMNS
    assert set(table["study"]) == {"bam"}
    assert set(table["method"]) == {method}
    assert set(table["seed"]) == {0}
    rows = table.groupby(["metric", "model", "data", "variant"]).size()
    concept = {("concept_attribution", model, data) for model, data in COMPARED[:5]}
    assert {key[:3] for key in rows.index} == {
        *concept,
        *(("mcs", "f_o-f_s", data) for data in ("bam_os", "bam_os_scale")),
        *(("idr", "f_s", data) for data in ("bam_os", "bam_os_scale")),
    }
    assert all(count == 30 for key, count in rows.items() if key[0] == "concept_attribution")
    assert all(5 < count <= 30 for key, count in rows.items() if key[0] != "concept_attribution")


def test_a_studys_table_has_all_scores(finished_once: Checkout) -> None:
    results = finished_once.root / "results"
    table = score_tables.read([results / "tables/digits/scores.parquet"])
    with open_store(results / "maps/digits/seed0/digits/smooth.zarr.zip", kind="maps") as maps:
        images = maps["image"][:].tolist()
    assert set(table["study"]) == {"digits"}
    for (method, metric), rows in table.groupby(["method", "metric"]):
        assert method in ("gradient", "smooth")
        variant = {"infidelity": "infidelity", "sensitivity_max": "sensitivity"}.get(metric, "faithfulness")
        assert set(rows["variant"]) == {variant}
        assert rows["image"].tolist() == images
    assert len(table) == 2 * 3 * len(images) == 120
    summary = pd.read_csv(results / "tables/digits/summary.csv").set_index(["method", "metric"])
    valid = table[table["score"].notna()].groupby(["method", "metric"])["score"]
    np.testing.assert_allclose(summary["mean"].sort_index(), valid.mean().sort_index(), rtol=1e-12)
    assert summary.loc[("gradient", "infidelity"), "printed"] == 4.12
    assert summary["printed"].notna().sum() == 1


@pytest.mark.parametrize("study", RATED)
def test_methods_are_rated_in_every_kind_of_study(study: str, finished_once: Checkout) -> None:
    """By the study's own methods and metrics, on one set and model, with baselines as such."""
    methods, metrics = {
        "bam": (BAM_METHODS, ("mcs", "idr", "iir", "iir_difference")),
        "captions": (("gradient",), ("infidelity",)),  # optimal_halves is a control
        "digits": (("gradient", "smooth"), ("faithfulness", "infidelity", "sensitivity_max")),
        "retrain": (("gradient",), ("accuracy",)),
    }[study]
    order = pd.read_csv(finished_once.root / f"results/tables/{study}/order.csv")
    assert list(dict.fromkeys(order["method"])) == list(methods)
    assert set(order["metric"]) <= set(metrics)
    # IIR has no score if f_s misclassifies all images.
    assert set(metrics) - set(order["metric"]) <= {"iir", "iir_difference"}
    assert set(order.loc[order["baseline"], "method"]) == {"random", "edge"} & set(methods)
    lower = {"iir_difference", "infidelity", "sensitivity_max", "accuracy"}
    assert (order["direction"] == np.where(order["metric"].isin(lower), "lower", "higher")).all()
    assert len(order[["data", "model"]].drop_duplicates()) == 1
    over = {"bam": "cut-outs × scenes", "retrain": UNTESTED}.get(study, "images")  # one seed
    assert set(order["over"]) == {over}


@pytest.mark.parametrize("profile", ["slurm", "profiles/local"])
def test_every_profile_plans_the_same_jobs(profile: str, fresh: Checkout) -> None:
    assert fresh.planned(profile=("--profile", profile)) == fresh.planned(profile=())


def test_both_entrances_are_one_workflow(finished_once: Checkout, fresh: Checkout) -> None:
    """Without ``--snakefile``, Snakemake takes the Snakefile at the root."""
    assert fresh.planned("--snakefile", "workflow/Snakefile") == fresh.planned()
    assert finished_once.planned("--snakefile", "workflow/Snakefile") == finished_once.planned() == set()


def test_masks_take_the_bytes_that_the_docs_say(finished_once: Checkout) -> None:
    """A bit a pixel, a color, a flag; what the file holds beside them does not grow with the images."""
    with open_store(finished_once.root / "results/data/digits.zarr.zip", kind="data") as data:
        count, *shape = data["image"].shape
    for name, kind in stores(finished_once).items():
        if kind == "masks":
            size = (finished_once.root / "results" / name).stat().st_size
            expected = mask_bytes(count, shape, 1)
            assert expected == count * (8 + 1 + 1)
            assert expected < size < expected + 8192


def test_a_retrain_study_scores_every_test_image(finished_once: Checkout) -> None:
    results = finished_once.root / "results"
    table = pd.read_parquet(results / "tables/retrain/scores.parquet")
    assert list(table.columns) == list(score_tables.COLUMNS)
    counts = table.groupby(["metric", "variant"]).size()
    iterations, masks = [f"iteroar/mean/{i}" for i in range(3)], [f"iteroar/mean/{i}" for i in range(2)]
    images = counts["accuracy"].iloc[0]
    assert images == round(0.1 * 1797)
    assert counts["accuracy"].to_dict() == dict.fromkeys(iterations, images)
    assert counts["accuracy_validation"].to_dict() == dict.fromkeys(iterations, 1)
    assert counts["accuracy_train"].to_dict() == dict.fromkeys(iterations, 1)
    assert counts["mmo"].to_dict() == counts["mamo"].to_dict() == {masks[0]: images}
    assert counts["cma"].to_dict() == dict.fromkeys(masks, images)
    assert counts["overlap"].to_dict() == {"iteroar/mean/0-1": images}
    repeats = [f"iteroar/mean/2/repeat{repeat}" for repeat in range(2)]
    for name in ("leakage", "leakage_random", "leakage_loss", "leakage_loss_random"):
        assert counts[name].to_dict() == dict.fromkeys(repeats, 1)
    assert (table.loc[table["variant"] == masks[0]].query("metric == 'cma'")["score"] == 16).all()  # k of 64


def test_a_search_keeps_the_most_accurate_trial(finished_once: Checkout) -> None:
    results = finished_once.root / "results"
    chosen = json.loads((results / "search/searched/hyperparameters.json").read_text())
    trials = [pd.read_csv(results / f"search/searched/trial{i}.csv") for i in range(2)]
    accuracies = [trial["validation_accuracy"].iloc[-1] for trial in trials]
    assert [trial["validation_accuracy"] for trial in chosen["trials"]] == pytest.approx(accuracies)
    best = (0.05, 0.1)[accuracies.index(max(accuracies))]
    assert chosen["training"] == {"learning_rate": best}
    curve = pd.read_csv(results / "models/searched/seed0/training.csv")
    assert curve["validation_accuracy"].iloc[-1] == pytest.approx(max(accuracies))  # of the same seed


def test_the_page_on_python_reads_and_repeats_them(
    finished_once: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The block of docs/api.md scores stored maps again and compares."""
    page = (PROJECT / "docs/api.md").read_text()
    [block] = re.findall(r"```python\n((?:(?!```).)*?results = Path\(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(finished_once.root)
    names: dict[str, Any] = {"models": models, "metrics": metrics}
    exec(compile(block, "docs/api.md", "exec"), names)
    assert len(names["same"]) == 20
