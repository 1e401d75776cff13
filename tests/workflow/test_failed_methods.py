"""Runs in which methods and metrics fail: the failure is a result, and tables and report have the others."""

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml
from checkout import SMALLEST, Checkout

from saliency_assay.runtime import failure

pytestmark = pytest.mark.slow

MINE = """def bright(model, images, targets, *, generator):
    if float(images.max()) > 0:
        raise RuntimeError("an image is too bright")
    return images


def second_shard(model, images, targets, *, generator):
    if len(images) == 64:  # 320 images are a block of 256 and one of 64
        raise RuntimeError("another block")
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
REASON = "RuntimeError: an image is too bright (mine.py, line 3)"
OF_DIGITS = [
    f"Not computed: Bright in Digits: {REASON}",
    "Not computed: Faithfulness correlation estimate of Gradient in Digits: found a negative relevance",
    "Not computed: Mean relevance in Digits: ZeroDivisionError: division by zero (mine.py, line 14)",
]
SENTENCES = [*OF_DIGITS, f"Not computed: Bright in Dark: {REASON}"]
SCORED = {
    *(("gradcam", "faithfulness"), ("smooth", "faithfulness")),
    *(("gradcam", "infidelity"), ("smooth", "infidelity"), ("gradient", "infidelity")),
}


@pytest.fixture
def faulty(tmp_path: Path) -> Checkout:
    checkout = Checkout.fresh(tmp_path / "project", SMALLEST)
    content = yaml.safe_load(SMALLEST.read_text())
    content |= {"methods": METHODS, "metrics": METRICS}
    study = content["studies"]["digits"] | {"methods": [*METHODS], "metrics": [*METRICS]}
    study["printed"] = {
        **{"gradcam": {"infidelity": 4.12, "mean": 2.0}, "bright": {"mean": 1.0}},
        "gradient": {"infidelity": 3.0},
    }
    study["printed_alpha"] = {"mean": {"without": 0.5}, "faithfulness": {"without": 0.1}}
    dark = {"kind": "fidelity", "model": "digits", "methods": ["bright"], "metrics": ["faithfulness"]}
    content["studies"] = {"digits": study, "dark": dark}
    (checkout.root / checkout.configuration).write_text(yaml.safe_dump(content, sort_keys=False))
    (checkout.root / "mine.py").write_text(MINE)
    checkout.edit(METRIC, lambda text: text.replace(LINE, FAULT))
    return checkout


def run(checkout: Checkout, command: str = "run") -> tuple[int, list[str], str]:
    """Run a command of ``saliency-assay``; return its exit status, its last lines, and what Snakemake printed."""
    done = checkout.assay(command, "--cores=2")
    return done.returncode, done.stdout.splitlines(), done.stderr


def sentences_in(file: Path) -> list[str]:
    return [html.unescape(sentence) for sentence in re.findall("Not computed: [^<]*", file.read_text())]


def scored(checkout: Checkout) -> set[tuple[str, str]]:
    """Return the methods and metrics of the study's tables."""
    tables = [
        pd.read_csv(checkout.root / f"results/tables/digits/{name}.csv") for name in ("summary", "order")
    ]
    pairs = [set(zip(table["method"], table["metric"], strict=True)) for table in tables]
    assert pairs[0] == pairs[1]
    return pairs[0]


def test_failures_are_results_until_the_code_is_corrected(faulty: Checkout) -> None:
    status, lines, printed = run(faulty)
    results = faulty.root / "results"
    assert (status, lines) == (1, [f"Report: {results / 'report.html'}", *SENTENCES]), printed
    assert f"Not computed: attribute digits 0 digits bright: {REASON}" in printed.splitlines()
    figures = results / "figures"
    assert sentences_in(figures / "overview.html") == SENTENCES
    assert sentences_in(figures / "digits/study.html") == OF_DIGITS
    assert "failed" in (figures / "digits/study.html").read_text()
    assert scored(faulty) == SCORED
    assert sentences_in(figures / "dark/scores.html") == [f"Not computed: Bright: {REASON}"]
    assert failure.read(results / "tables/dark/order.csv")
    assert faulty.planned() == set()
    status, lines, printed = run(faulty)
    assert (status, lines[1:]) == (1, SENTENCES)
    assert "Nothing to be done" in printed

    status, lines, printed = run(faulty, "table")
    assert (status, lines) == (1, [f"Tables: {results / 'export'}", *SENTENCES]), printed
    missing = pd.read_csv(results / "export/not_computed.csv")
    assert list(missing["sentence"].unique()) == SENTENCES
    assert "RuntimeError: an image is too bright" in missing["traceback"][0]

    faulty.edit("mine.py", lambda text: text.replace("> 0:", "> 1e9:"))
    planned = faulty.planned()
    assert {job for job in planned if job.startswith(("train", "build_data", "respond"))} == set()
    assert {job for job in planned if job.startswith("attribute")} == {"attribute digits 0 digits bright"}
    faulty.edit("mine.py", lambda text: text.replace(" + 1 / 0", ""))
    faulty.edit(METRIC, lambda text: text.replace(FAULT, LINE))
    status, lines, printed = run(faulty)
    assert (status, lines) == (0, [f"Report: {results / 'report.html'}"]), printed
    assert sentences_in(figures / "overview.html") == sentences_in(figures / "digits/study.html") == []
    assert scored(faulty) == {(method, metric) for method in METHODS for metric in METRICS}
    assert faulty.planned() == set()


def test_plain_snakemake_prints_what_failed_in_separate_jobs(
    faulty: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SALIENCY_ASSAY_SEPARATE", "1")
    target = "results/tables/digits/not_computed.csv"
    status, printed = faulty.snakemake(target, "results/figures/digits/mean_scores.svg")
    assert status == 0
    assert [line for line in printed.splitlines() if line in SENTENCES] == OF_DIGITS
    assert scored(faulty) == SCORED
    figure = (faulty.root / "results/figures/digits/mean_scores.svg").read_text()
    assert "Not computed: Mean relevance of" in figure


def test_a_failed_shard_leaves_the_method_out_as_a_module(tmp_path: Path) -> None:
    checkout = Checkout.fresh(tmp_path / "project", Path(__file__).parent / "shards.yaml")
    content = yaml.safe_load((checkout.root / checkout.configuration).read_text())
    content["data"]["digits"] |= {"max_explained_images": 320, "shards": 2}
    content["methods"] = {"gradient": {}, "mine": {"function": "mine:second_shard"}}
    content["metrics"] = {"aopc": content["metrics"]["aopc"]}
    content["studies"] = {"digits": {"kind": "fidelity", "model": "digits"}}
    checkout.edit(checkout.configuration, lambda _: yaml.safe_dump({"saliency": content}))
    (checkout.root / "mine.py").write_text(MINE)
    (checkout.root / "Snakefile").write_text(
        f'configfile: "{checkout.configuration}"\n'
        'module saliency:\n    snakefile: "workflow/Snakefile"\n    config: config["saliency"]\n'
        "use rule * from saliency as saliency_*\n"
    )
    target = "results/tables/digits/not_computed.csv"
    command = [sys.executable, "-m", "snakemake", "--snakefile=Snakefile", "--cores=2", target]
    done = subprocess.run(command, cwd=checkout.root, env=os.environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    shards = [
        checkout.root / f"results/maps/digits/seed0/digits/mine.shard{number}of2.zarr.zip"
        for number in (1, 2)
    ]
    assert [failure.read(path) is None for path in shards] == [True, False]
    assert {method for method, _ in scored(checkout)} == {"gradient"}
    (sentence,) = pd.read_csv(checkout.root / target)["sentence"]
    assert sentence == "Not computed: Mine in Digits: RuntimeError: another block (mine.py, line 9)"


def test_a_failed_training_ends_the_run(faulty: Checkout) -> None:
    training = "src/saliency_assay/training/loop.py"
    faulty.edit(training, lambda text: f"{text}\n\nraise ValueError('no training')\n")
    status, lines, printed = run(faulty)
    assert (status, lines) == (1, [])
    assert "no training" in printed
    assert not (faulty.root / "results/report.html").exists()
