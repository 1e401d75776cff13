"""Runs in which a method or a metric fails: the report has the others, and lists what failed and why."""

import html
import re
from pathlib import Path

import pandas as pd
import pytest
import yaml
from checkout import SMALLEST, Checkout

pytestmark = pytest.mark.slow

MINE = """def bright(model, images, targets, *, generator):
    if float(images.max()) > 0:
        raise RuntimeError("an image is too bright")
    return images


def mean(predict, images, targets, maps, *, generator):
    return maps.mean((1, 2, 3)) + 1 / 0
"""
METRIC = "src/saliency_assay/metrics/faithfulness.py"
LINE = '    pixel, drop, unperturbed = responses["pixel"]'
FAULT = f'    if bool((maps < 0).any()):\n        raise ValueError("found a negative relevance")\n{LINE}'
METHODS = {
    "gradcam": {},
    "smooth": {"method": "smoothgrad", "base": "gradcam", "samples": 2},
    "gradient": {},
    "bright": {"function": "mine:bright", "label": "Bright"},
}
METRICS = {
    "faithfulness": {"pixels": 10},
    "infidelity": {"metric": "infidelity_square", "largest": 2},
    "mean": {"function": "mine:mean", "direction": "higher", "label": "Mean relevance"},
}
SENTENCES = [
    "Not computed: Gradient in Digits: found a negative relevance",
    "Not computed: Bright in Digits: RuntimeError: an image is too bright (mine.py, line 3)",
    "Not computed: Mean relevance in Digits: ZeroDivisionError: division by zero (mine.py, line 8)",
]


@pytest.fixture
def faulty(tmp_path: Path) -> Checkout:
    checkout = Checkout.fresh(tmp_path / "project", SMALLEST)
    content = yaml.safe_load(SMALLEST.read_text())
    content |= {"methods": METHODS, "metrics": METRICS}
    printed = {"gradcam": {"infidelity": 4.12}, "bright": {"mean": 1.0}, "gradient": {"infidelity": 3.0}}
    content["studies"]["digits"] |= {"methods": [*METHODS], "metrics": [*METRICS], "printed": printed}
    (checkout.root / checkout.configuration).write_text(yaml.safe_dump(content, sort_keys=False))
    (checkout.root / "mine.py").write_text(MINE)
    checkout.edit(METRIC, lambda text: text.replace(LINE, FAULT))
    return checkout


def make_run(checkout: Checkout, command: str = "run") -> tuple[int, list[str], str]:
    """Do what ``make run`` does; return its exit status, its last lines, and all that Snakemake has printed."""
    run = checkout.assay(command, "--cores=2")
    return run.returncode, run.stdout.splitlines(), run.stderr


def listed(checkout: Checkout, page: str) -> list[str]:
    text = (checkout.root / "results/figures" / page).read_text()
    return [html.unescape(sentence) for sentence in re.findall("Not computed: [^<]*", text)]


def scored(checkout: Checkout) -> tuple[set[str], set[str]]:
    """Return the methods and metrics of the study's table."""
    table = pd.read_csv(checkout.root / "results/tables/digits/summary.csv")
    return {*table["method"]}, {*table["metric"]}


def test_what_fails_is_listed_until_it_is_mended(faulty: Checkout) -> None:
    status, lines, printed = make_run(faulty)
    results = faulty.root / "results"
    assert status == 1
    assert lines == [f"Report: {results / 'report.html'}", *SENTENCES], printed
    assert listed(faulty, "overview.html") == listed(faulty, "digits/study.html") == SENTENCES
    assert "an image is too bright" in (results / "report.html").read_text()
    assert scored(faulty) == ({"gradcam", "smooth"}, {"faithfulness", "infidelity"})
    status, lines, printed = make_run(faulty, "table")
    assert (status, lines) == (1, [f"Tables: {results / 'export'}", *SENTENCES]), printed

    (faulty.root / "mine.py").write_text(MINE.replace("> 0:", "> 1e9:").replace(" + 1 / 0", ""))
    faulty.edit(METRIC, lambda text: text.replace(FAULT, LINE))
    planned = faulty.planned()
    assert "attribute digits 0 digits bright" in planned
    assert not {job for job in planned if job.startswith(("train", "build_data"))}
    status, lines, printed = make_run(faulty)
    assert (status, lines) == (0, [f"Report: {results / 'report.html'}"]), printed
    assert listed(faulty, "overview.html") == listed(faulty, "digits/study.html") == []
    assert scored(faulty) == ({*METHODS}, {*METRICS})
    maps = faulty.log("combined/attribute__digits__seed0__digits.log").splitlines()
    assert {line for line in maps if not line.startswith("part ")} == {"unchanged"}
    assert faulty.planned() == set()


def test_another_failure_ends_the_run_without_a_report(faulty: Checkout) -> None:
    training = "src/saliency_assay/training/loop.py"
    faulty.edit(training, lambda text: f"{text}\n\nraise ValueError('no training')\n")
    status, lines, printed = make_run(faulty)
    assert (status, lines) == (1, [])
    assert "no training" in printed
    assert "Running again" not in printed
    assert not (faulty.root / "results/report.html").exists()
