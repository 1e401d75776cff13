"""Results of a run: the same for the same seeds, at the paths in DESIGN, and with their provenance."""

import json
import math
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
BAM_SETS = (
    "bam_os",
    "bam_0s",
    "bam_og",
    "bam_os_scale",
    "bam_os_k01",
    "bam_os_k10",
    "bam_0s_k",
    "bam_delta_seed0",
)
CAPTION_SETS = ("captioned_both", "captioned_image", "captioned_caption")
COMPARED = (
    *(("f_o", name) for name in ("bam_os", "bam_os_scale")),
    *(("f_s", name) for name in ("bam_os", "bam_os_scale", "bam_0s", "bam_delta_seed0")),
    ("f_k01", "bam_os_k01"),
    ("f_k10", "bam_os_k10"),
)
CAPTIONED = ("f_picture", "f_caption")
ARM = "remask/retrain/iteroar/gradient"
STORES = {
    **{f"collections/bam/{name}.zarr.zip": name for name in ("cutouts", "scenes")},
    **{f"data/{name}.zarr.zip": "data" for name in (*BAM_SETS, *CAPTION_SETS, "digits")},
    **{
        f"maps/{model}/seed0/{data}/{method}.zarr.zip": "maps"
        for model, data in COMPARED
        for method in BAM_METHODS
    },
    **{
        f"{folder}/{model}/seed0/captioned_both/{method}.zarr.zip": kind
        for folder, kind in (
            ("maps", "maps"),
            ("curves/infidelity_halves", "curves"),
            ("curves/block_attribution", "curves"),
        )
        for model in CAPTIONED
        for method in ("gradient", "optimal_halves")
    },
    **{
        f"responses/infidelity_halves/{model}/seed0/captioned_both.zarr.zip": "responses"
        for model in CAPTIONED
    },
    "maps/digits/seed0/digits/gradient.zarr.zip": "maps",
    "maps/digits/seed0/digits/smooth.zarr.zip": "maps",
    **{
        f"responses/{metric}/digits/seed0/digits.zarr.zip": "responses"
        for metric in ("faithfulness", "infidelity")
    },
    **{
        f"curves/{metric}/digits/seed0/digits/{method}.zarr.zip": "curves"
        for metric in ("faithfulness", "infidelity", "sensitivity")
        for method in ("gradient", "smooth")
    },
    "maps/searched/seed0/digits/gradient.zarr.zip": "maps",
    f"{ARM}/shared/seed0/iteration0/masks.zarr.zip": "masks",
    f"{ARM}/mean/seed0/iteration1/masks.zarr.zip": "masks",
}
MODELS = ("f_o", "f_s", "f_k01", "f_k10", *CAPTIONED, "digits", "searched")
MODEL_FILES = ("weights.pt", "training.csv", "evaluation.json", "predictions.parquet")
FIGURES = (
    *("premise.html", "mcs.svg", "idr.svg", "metrics.html", "gallery.png", "gallery.json", "gallery.html"),
    *("commonality.html", "series.svg", "series_maps.png", "concepts.svg", "concepts.html"),
    *("iir.svg", "iir_difference.svg", "delta.png", "convergence.svg", "independence.html"),
    *("pairs.png", "ranking.html", "claims.html"),
)
TABLES = (
    *("premise", "metrics", "commonality", "series", "correlation", "concepts", "independence", "deltas"),
    *("ranking", "claims"),
)
RATED = ("bam", "captions", "digits", "retrain")
RELIABILITY = {
    "tables": [
        f"{name}.csv"
        for name in ("reliability", "agreement", "order", "pairs", "consistency", "rankings", "variance")
    ],
    "figures": [
        *(f"{name}.svg" for name in ("reliability", "agreement", "order", "consistency", "score_pairs")),
        "reliability.html",
    ],
}
MEASURED = ("overview", "methods", "provenance")
"""Pages that tell how long the run took."""
RESULTS = {
    *STORES,
    "sources/bam/SHA256SUMS",
    *(f"models/{model}/seed0/{name}" for model in MODELS for name in MODEL_FILES),
    *(f"search/searched/{name}" for name in ("trial0.csv", "trial1.csv", "hyperparameters.json")),
    *(
        f"{ARM}/mean/seed0/iteration{iteration}/{name}"
        for iteration in (1, 2)
        for name in ("weights.pt", "training.csv", "predictions.parquet")
    ),
    f"{ARM}/mean/seed0/iteration2/leakage.csv",
    "scores/retrain/retrain/iteroar/gradient/mean/seed0.parquet",
    *(
        f"tables/retrain/{name}"
        for name in ("summary.csv", "scores.parquet", "means.parquet", "leakage.csv", "rank_agreement.csv")
    ),
    *(f"figures/retrain/{name}" for name in ("accuracy.svg", "overlap.svg", "summary.html")),
    *(
        f"figures/retrain/{name}"
        for name in ("leakage.svg", "leakage.html", "gallery.png", "gallery.json", "gallery.html")
    ),
    *(f"figures/retrain/iteroar_mean/{name}" for name in ("matrices.svg", "images.html")),
    *(
        f"scores/{kind}/bam/seed0/{method}.parquet"
        for kind in ("bam", "series", "independence")
        for method in BAM_METHODS
    ),
    *(f"scores/concepts/bam/seed0/{model}.parquet" for model in ("f_o", "f_s", "f_k01", "f_k10")),
    *(
        f"scores/{metric}/{model}/seed0/captioned_both/{method}.parquet"
        for metric in ("infidelity_halves", "block_attribution")
        for model in CAPTIONED
        for method in ("gradient", "optimal_halves")
    ),
    *(f"tables/captions/{name}.csv" for name in ("premise", "table")),
    *(f"tables/{study}/not_computed.csv" for study in ("bam", "captions", "digits", "retrain")),
    *(f"figures/captions/{name}" for name in ("caption.html", "infidelity.svg", "attribution.svg")),
    *(f"figures/captions/{name}" for name in ("gallery.png", "gallery.json", "gallery.html")),
    *(f"tables/bam/{name}.csv" for name in TABLES),
    *(f"figures/bam/{name}" for name in FIGURES),
    "figures/digits/gallery.json",
    "figures/digits/gallery.png",
    "figures/digits/gallery.html",
    "figures/digits/scores.html",
    "figures/digits/infidelity_sensitivity.svg",
    *(f"figures/digits/{metric}_scores.svg" for metric in ("faithfulness", "infidelity", "sensitivity")),
    *(f"tables/digits/{name}" for name in ("summary.csv", "scores.parquet")),
    *(
        f"{folder}/{study}/{name}"
        for study in RATED
        for folder, names in RELIABILITY.items()
        for name in names
    ),
    *(
        f"scores/{metric}/digits/seed0/digits/{method}.parquet"
        for metric in ("faithfulness", "infidelity", "sensitivity")
        for method in ("gradient", "smooth")
    ),
    *(
        name.replace("maps/", "costs/", 1).replace(".zarr.zip", ".json")
        for name in STORES
        if name.startswith("maps/")
    ),
    *(f"figures/{study}/study.html" for study in RATED),
    *(f"figures/{page}.html" for page in MEASURED),
    "figures/metrics.html",
    "figures/trust.html",
    "figures/training.svg",
    "figures/accuracy.html",
    "report.html",
    "configuration.yaml",
}


def made(checkout: Checkout) -> dict[str, bytes]:
    """All results but the drawn sources themselves, whose digests stand in SHA256SUMS, and what measures the run.

    Outputs that are kept for combined jobs and the mark of a passed check of models are left out, too; a training
    leaves no state.
    """
    state = (".state/parts/", ".state/model_check")
    left_out = ("sources/bam/coco/", "sources/bam/miniplaces/", "logs/", "benchmarks/", *state)
    return {name: content for name, content in checkout.files().items() if not name.startswith(left_out)}


def test_results_lie_where_they_should_and_nothing_else_does(finished_once: Checkout) -> None:
    """No temporary file, no training state, no store half-written is left either."""
    assert set(made(finished_once)) == RESULTS


def test_every_job_leaves_a_log_and_a_benchmark(finished_once: Checkout) -> None:
    logs = {name.removesuffix(".log") for name in finished_once.files("results/logs")}
    logs = {name for name in logs if not name.startswith("combined/")} - {"check_models"}  # no job
    benchmarks = finished_once.files("results/benchmarks")
    assert len(logs) == 146
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


@pytest.mark.parametrize("name", STORES)
def test_a_store_says_how_it_was_made(name: str, finished_once: Checkout) -> None:
    with open_store(finished_once.root / "results" / name, kind=STORES[name]) as found:
        attributes = found.attributes
        assert len(found) > 0
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
    parameters = {"gradcam": {"relu": True, "upsampling": "bilinear"}, "random": {}}[method]
    assert (made_with["method"], made_with["parameters"], made_with["seed"]) == (method, parameters, 0)
    assert "torch" in attributes["libraries"]


def test_two_states_of_an_image_are_drawn_with_the_same_noise(finished_once: Checkout) -> None:
    """Images beside their changes: a method that knows no model sees no difference, one that does sees some."""
    folder = finished_once.root / "results/maps/f_s/seed0/bam_delta_seed0"
    found = {}
    for method in ("random", "gradcam"):
        with open_store(folder / f"{method}.zarr.zip", kind="maps") as maps:
            found[method] = np.split(maps["map"][:], 2)
    np.testing.assert_array_equal(*found["random"])
    assert (found["gradcam"][0] != found["gradcam"][1]).any(axis=(1, 2, 3)).all()


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
        "captions": (("gradient", "optimal_halves"), ("infidelity",)),
        "digits": (("gradient", "smooth"), ("faithfulness", "infidelity", "sensitivity_max")),
        "retrain": (("gradient",), ("accuracy",)),
    }[study]
    folder = finished_once.root / "results/tables" / study
    order = pd.read_csv(folder / "order.csv")
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
    pairs = pd.read_csv(folder / "pairs.csv")
    assert len(pairs) == len(order[["metric", "variant"]].drop_duplicates()) * math.comb(len(methods), 2)
    scored = order["rank_low"].notna()
    assert (order.loc[scored, "rank_low"] <= order.loc[scored, "rank_high"]).all()
    rankings = pd.read_csv(folder / "rankings.csv")
    known = set(methods) - {"random", "edge"}
    assert (rankings["methods"] <= len(known)).all()
    assert rankings["correlation"].isna().all(), "one or two methods have no correlation of ranks"
    reliability = pd.read_csv(folder / "reliability.csv")
    assert set(reliability["baselines"]) == ({"with", "without"} if study == "bam" else {"none"})
    agreement = pd.read_csv(folder / "agreement.csv")
    assert {"halves", *(["classes"] if len(methods) > 1 else [])} <= set(agreement["between"])
    assert agreement["methods"].max() == len(methods)


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
    for name, kind in STORES.items():
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
