"""Runs side by side: comparisons of a finished run with an earlier one, and runs that are merged."""

import shutil
from pathlib import Path

import pytest
from checkout import Checkout

from saliency_assay.runs.compare import compare
from saliency_assay.runs.keep import keep
from saliency_assay.runs.merge import merge

METHOD = "src/saliency_assay/methods/smoothing.py"
TABLE = "results/tables/digits/order.csv"


def test_an_edited_method_changes_its_rows_alone(smallest: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(smallest.root)
    results, kept = Path("results"), Path("results_kept/before")
    keep(results, "before")
    files = smallest.files(str(kept))
    assert compare(kept, results).is_equal
    smallest.edit(
        METHOD, lambda code: code.replace("times_input else mean\n", "times_input else mean.square()\n")
    )
    smallest.make(TABLE)
    compared = compare(kept, results)
    assert set(compared.scores.rows["method"]) == {"smooth"}
    assert len(compared.scores.rows) + compared.scores.equal == 6
    assert [change.method for change in compared.maps] == ["smooth"]
    assert list(compared.causes) == ["Code"]
    [line] = compared.causes["Code"]
    assert line.startswith("saliency_assay/methods/smoothing.py ")
    assert compared.one_sided == []
    assert smallest.files(str(kept)) == files


def test_snakemake_continues_a_merged_run(smallest: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(smallest.root)
    shutil.copytree("results", "copy")
    merge([Path("results"), Path("copy")], Path("merged"))
    smallest.edit("tiny.yaml", lambda _: Path("merged/configuration.yaml").read_text())
    assert smallest.planned() == {
        "all",
        "document_methods",
        "overview",
        "plot_training",
        "provenance",
        "report",
    }
