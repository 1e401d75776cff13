"""``snakemake table``: one folder with all results as CSV and LaTeX."""

from io import BytesIO

import pandas as pd
import pytest
from checkout import Checkout

from saliency_assay.report.export.image_scores import COLUMNS
from saliency_assay.storage.zarr_store import open_store

pytestmark = pytest.mark.slow

COPIES = {
    "bam": (
        *("claims", "commonality", "concepts", "correlation", "deltas"),
        *("independence", "metrics", "premise", "ranking", "series"),
    ),
    "captions": ("premise", "table"),
    "digits": ("consistency", "order", "rankings", "reliability", "summary", "variance"),
    "retrain": ("leakage", "summary"),
}

SETS = {"bam": ("bam_os", "scene"), "captions": ("captioned_both", "class"), "digits": ("digits", "class")}
"""The set whose images are scored, and its label, of each study with scores of images."""


def check_image_scores(finished: Checkout, study: str, content: bytes) -> None:
    """All digits of the scores of single images are exported, whose means are those of the study's order."""
    table = pd.read_csv(BytesIO(content), dtype={"label": str})
    assert list(table) == COLUMNS
    assert set(table["study"]) == {study}
    assert table["file"].isna().all(), "synthetic images are in no files"
    name, label = SETS[study]
    with open_store(finished.root / f"results/data/{name}.zarr.zip", kind="data") as data:
        labels, classes = data[f"label_{label}"][:], data.attributes["classes"][label]
    assert table["label"].tolist() == [classes[labels[image]] for image in table["image"]]
    keys = ["metric", "variant", "method"]
    order = pd.read_csv(finished.root / f"results/tables/{study}/order.csv").set_index(keys)["mean"]
    means = table.groupby([*keys, "image"])["score"].mean().groupby(keys).mean()
    pd.testing.assert_series_equal(means.reindex(order.index), order, check_names=False)
    assert not table.duplicated([name for name in COLUMNS if name != "score"]).any()


def test_all_results_are_exported_once_and_again_after_an_edit_of_the_export(finished: Checkout) -> None:
    exports = {"table", *(f"export_scores {study}" for study in SETS)}
    assert finished.planned("table") == exports
    finished.make("table")
    files = finished.files("results/export")
    figures = {name: content for name, content in files.items() if name.startswith("figures/")}
    files = {name: content for name, content in files.items() if name not in figures}
    vectors = {
        name.removesuffix(".svg") for name in finished.files("results/figures") if name.endswith(".svg")
    }
    vectors |= {f"{study}/gallery" for study in COPIES}
    assert figures.keys() == {f"figures/{name}.pdf" for name in vectors}
    assert all(content.startswith(b"%PDF") for content in figures.values())
    copies = {f"{study}/{name}.csv" for study, names in COPIES.items() for name in names}
    assert copies <= set(files)
    for study in SETS:
        check_image_scores(finished, study, files.pop(f"{study}/scores.csv"))
    assert set(files) - copies >= {
        "results.csv",
        "models.csv",
        "trust.csv",
        *(f"{study}.tex" for study in COPIES),
    }
    tables = finished.files("results/tables")
    of_studies = {name for name in tables if "/" in name and name.endswith(".csv")}
    copied = {name for name in of_studies if not name.endswith("/not_computed.csv")}
    assert copied == {name for name in files if "/" in name}, "failures of all studies are in one table"
    assert "not_computed.csv" in files
    assert [name for name in files if "/" in name and files[name] != tables[name]] == []

    exported = pd.read_csv(finished.root / "results/export/results.csv")
    order = pd.read_csv(finished.root / "results/tables/digits/order.csv")
    of_study = exported[exported["study"] == "digits"].reset_index(drop=True)
    pd.testing.assert_frame_equal(of_study[list(order)], order)
    assert of_study.set_index(["metric", "method"])["printed"].dropna().to_dict() == {
        ("infidelity", "gradient"): 4.12
    }
    models = pd.read_csv(finished.root / "results/export/models.csv")
    assert set(models["model"]) == {
        "f_o",
        "f_s",
        "f_k01",
        "f_k10",
        "f_picture",
        "f_caption",
        "digits",
        "searched",
    }
    assert dict(models[["model", "model_label"]].to_numpy())["f_o"] == "F o"
    assert dict(exported[["method", "method_label"]].to_numpy())["smooth"] == "Smooth"
    for study in COPIES:
        text = files[f"{study}.tex"].decode()
        assert text.count(r"\begin{table}") == text.count(r"\end{table}") >= 1
    assert "Smooth & " in files["digits.tex"].decode()
    assert b"warning" not in (finished.root / "results/logs/table.log").read_bytes().lower()

    assert finished.planned("table") == set()
    finished.edit(
        "src/saliency_assay/plotting/latex.py", lambda text: text.replace("DIGITS = 3", "DIGITS = 4", 1)
    )
    assert "table" in finished.planned("table")
    jobs = {job.split()[0] for job in finished.planned("table") | finished.planned()}
    pages = {job for job in jobs if job.startswith("plot__")}
    assert pages, "pages of studies offer their tables as LaTeX"
    assert jobs - pages <= {"table", "summarize", "overview", "report", "provenance", "all"}
