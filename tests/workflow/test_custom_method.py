"""A user's own method, in a file outside the project, by configuration alone."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from checkout import SMALLEST, Checkout
from tiny_jobs import combined, with_page_jobs

from saliency_assay.runtime import failure

pytestmark = pytest.mark.slow

MINE = '''"""The gradient, but only where the image is bright."""

from helpers import slope


def bright(model, images, targets, *, generator, level=0.5, power: int = 1):
    maps = slope(model, images, targets)
    return maps.abs() ** power * (images > level)
'''
HELPERS = """import torch


def slope(model, images, targets):
    pixels = images.detach().requires_grad_()
    with torch.enable_grad():
        score = model(pixels).gather(1, targets[:, None]).sum()
    return torch.autograd.grad(score, pixels)[0]
"""


@pytest.fixture
def elsewhere(smallest: Checkout, tmp_path: Path) -> Checkout:
    """The finished run, with a configuration in another folder that has a method of its own beside it."""
    folder = tmp_path / "my study"
    folder.mkdir()
    (folder / "mine.py").write_text(MINE)
    (folder / "helpers.py").write_text(HELPERS)
    (folder / "table.csv").write_text("0\n")
    content = yaml.safe_load(SMALLEST.read_text())
    content["methods"]["bright"] = {"function": "mine:bright", "level": 0.25, "files": ["table.csv"]}
    content["studies"]["digits"]["methods"].append("bright")
    (folder / "study.yaml").write_text(yaml.safe_dump(content))
    return replace(smallest, configuration=str(folder / "study.yaml"))


METRICS = ("faithfulness", "infidelity", "sensitivity")
SHOWN = {
    *(f"{rule} digits" for rule in ("tabulate_scores", "plot_scores", "plot_scatter", "plot_gallery")),
    *(f"{rule} digits" for rule in ("tabulate_reliability", "plot_reliability")),
    *(f"plot_metric digits {metric} scores" for metric in METRICS),
    "report",
    "all",
}


def test_it_runs_through_the_workflow_and_again_after_an_edit(elsewhere: Checkout) -> None:
    folder = Path(elsewhere.configuration).parent
    maps = "attribute digits 0 digits bright"
    scores = {f"score {metric} digits 0 digits bright" for metric in METRICS}
    others = {f"score {metric} digits 0 digits gradient" for metric in METRICS}
    # The cost of a custom method is unknown, so its maps, and scores that need further maps, are jobs of their own.
    alone = {maps, "score sensitivity digits 0 digits bright"}
    planned = combined(with_page_jobs({maps, *scores, *SHOWN}, configured=True), others, alone)
    assert elsewhere.planned() == planned
    elsewhere.make()
    table = (elsewhere.root / "results/tables/digits/summary.csv").read_text()
    assert "bright" in table
    assert elsewhere.planned() == set()
    (folder / "mine.py").write_text(MINE + "\n# A remark.\n")
    assert elsewhere.planned() == set()
    for file, text in (("mine.py", MINE), ("helpers.py", HELPERS), ("table.csv", "0\n")):
        (folder / file).write_text(text + "\nADDED = 1\n")
        assert elsewhere.planned() == planned
        (folder / file).write_text(text)
        assert elsewhere.planned() == set()
    elsewhere.configure(methods__bright__power=2)
    assert elsewhere.planned() == planned


def test_what_breaks_the_contract_is_one_line(elsewhere: Checkout) -> None:
    module = Path(elsewhere.configuration).parent / "mine.py"
    module.write_text(
        "def bright(model, images, targets, *, generator, level):\n    return images[:, :, 1:]\n"
    )
    target = "results/maps/digits/seed0/digits/bright.zarr.zip"
    status, output = elsewhere.snakemake(target)
    assert status == 0
    assert "Traceback" not in output
    line = r"returned float32 \[\d+, 1, 7, 8\] on cpu, expected float32 \[\d+, 1, 8, 8\] on cpu"
    pattern = f"Not computed: attribute digits 0 digits bright: mine:bright: {line}"
    assert len([text for text in output.splitlines() if re.fullmatch(pattern, text)]) == 1, output
    assert failure.read(elsewhere.root / target)
