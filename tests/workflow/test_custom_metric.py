"""A user's own metric, in a file outside the project, by configuration alone."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from checkout import TINY, Checkout
from tiny_jobs import combined, with_page_jobs

from saliency_assay.runtime import failure
from saliency_assay.storage.zarr_store import open_store

pytestmark = pytest.mark.slow

MINE = '''"""Share of absolute attribution on the strongest pixels, and change of the map."""


def sparseness(predict, images, targets, maps, *, generator, share=0.1):
    strength = maps.abs().sum(1).flatten(1)
    strongest = strength.topk(round(share * strength.shape[1]), dim=1).values
    return strongest.sum(1) / strength.sum(1)


def moved(predict, images, targets, maps, *, generator, explain, mean):
    again = explain(images, targets)
    return (again - maps).abs().sum((1, 2, 3)) + 0 * mean.sum()
'''
METHODS = ("gradient", "smooth")


@pytest.fixture
def elsewhere(finished: Checkout, tmp_path: Path) -> Checkout:
    """The finished run, with a configuration in another folder that has metrics of its own beside it."""
    folder = tmp_path / "my metrics"
    folder.mkdir()
    (folder / "mine.py").write_text(MINE)
    content = yaml.safe_load(TINY.read_text())
    content["metrics"]["sparse"] = {"function": "mine:sparseness", "direction": "higher", "share": 0.25}
    content["metrics"]["moved"] = {"function": "mine:moved", "direction": "lower"}
    content["studies"]["digits"]["metrics"] += ["sparse", "moved"]
    (folder / "study.yaml").write_text(yaml.safe_dump(content))
    return replace(finished, configuration=str(folder / "study.yaml"))


@pytest.mark.exhaustive  # test_howto.py runs another metric
def test_it_runs_through_the_workflow_and_again_after_an_edit(elsewhere: Checkout) -> None:
    scored = {
        f"score {metric} digits 0 digits {method}" for metric in ("sparse", "moved") for method in METHODS
    }
    drawn = {f"plot_metric digits {metric} scores" for metric in ("sparse", "moved")}
    shown = {f"{rule} digits" for rule in ("tabulate_scores", "plot_scores", "plot_scatter", "plot_gallery")}
    shown |= {"tabulate_reliability digits", "plot_reliability digits", "report", "all"}
    assert elsewhere.planned() == combined(
        with_page_jobs(scored | drawn | shown, configured=True), shown, scored
    )
    elsewhere.make()
    results = elsewhere.root / "results"
    table = pd.read_parquet(results / "tables/digits/scores.parquet")
    scores = {key: rows["score"].to_numpy() for key, rows in table.groupby(["metric", "method"])}
    with open_store(results / "maps/digits/seed0/digits/gradient.zarr.zip", kind="maps") as maps:
        strength = np.abs(maps["map"][:]).sum(1).reshape(len(maps), -1)
    strongest = np.sort(strength, axis=1)[:, -round(0.25 * strength.shape[1]) :]
    expected = strongest.sum(1) / strength.sum(1)
    np.testing.assert_allclose(scores["sparse", "gradient"], expected, rtol=1e-5)
    assert scores["moved", "smooth"].max() < 1e-5
    module = Path(elsewhere.configuration).parent / "mine.py"
    module.write_text(MINE + "\nADDED = 1\n")
    assert elsewhere.planned() == combined(with_page_jobs(scored | drawn | shown), shown, scored)


FAULTS = {
    "infinity": (
        "return maps.sum((1, 2, 3)) / 0",
        "mine:sparseness: returned infinity in 20 of 20 scores as sparse, expected NaN if undefined",
    ),
    "wrong shape": (
        "return maps.sum((2, 3))",
        r"mine:sparseness: returned float32 \[20, 1\] as sparse, expected a floating-point score for each of 20 images",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_breaks_the_contract_is_one_line(fault: str, elsewhere: Checkout) -> None:
    body, line = FAULTS[fault]
    module = Path(elsewhere.configuration).parent / "mine.py"
    module.write_text(MINE.replace("    strength = maps", f"    {body}\n    strength = maps", 1))
    target = "results/scores/sparse/digits/seed0/digits/gradient.parquet"
    status, output = elsewhere.snakemake(target)
    assert status == 0
    assert "Traceback" not in output
    pattern = f"Not computed: score sparse digits 0 digits gradient: {line}"
    assert len([text for text in output.splitlines() if re.fullmatch(pattern, text)]) == 1, output
    assert failure.read(elsewhere.root / target)
