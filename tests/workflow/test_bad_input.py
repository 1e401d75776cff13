"""Bad input, end to end: one line on the terminal, a status that says so, and nothing half-written.

Of many faulty files each has its own job in one run with ``--keep-going``.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from checkout import SMALLEST, Checkout

from saliency_assay.data.synthetic.sources import write_sources
from saliency_assay.runtime.job import printable
from saliency_assay.storage.zarr_store import open_store, write


@dataclass(frozen=True)
class Run:
    """A run that has ended."""

    checkout: Checkout
    status: int
    output: str
    made: set[str]
    """Files that are new in the results folder, but for digests of the user's files."""


def run(checkout: Checkout, *targets: str) -> Run:
    """Run all that can be, each job by itself."""
    before = set(checkout.files())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SALIENCY_ASSAY_SEPARATE", "1")
        status, output = checkout.snakemake(*targets, "--keep-going")
    records = ".state/digests.json"
    created = {name for name in checkout.files() if not name.startswith(records)}
    return Run(checkout, status, output, created - before)


def check_refused(run: Run, target: str, line: str, log: str = "") -> None:
    """Snakemake fails with just one line that matches ``line``; of ``target`` there is nothing but the job's log."""
    assert run.status == 1
    assert "Traceback" not in run.output
    lines = [text for text in run.output.splitlines() if re.fullmatch(line, text)]
    assert len(lines) == 1, run.output
    assert not (run.checkout.root / target).exists()
    if log:
        logged = run.checkout.log(log).splitlines()
        assert "Traceback (most recent call last):" in logged
        assert lines[0].endswith(f": {printable(logged[-1].partition(': ')[2])}")


@pytest.fixture
def fresh(tmp_path: Path) -> Checkout:
    """A checkout of the smallest study in which nothing has run yet."""
    checkout = Checkout.fresh(tmp_path / "project")
    shutil.copy(SMALLEST, checkout.root / checkout.configuration)
    return checkout


# ---- the configuration: before anything is planned


def test_a_wrong_configuration_is_one_line(fresh: Checkout) -> None:
    fresh.configure(seeds=None, sedes=[0])
    line = r"tiny\.yaml: top level: unknown key 'sedes'; did you mean 'seeds'\? valid: .*\bseeds\b.*"
    check_refused(run(fresh, "results/report.html"), "results", line)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: " + "[" * 9000, "my.yaml: line 1: lists and mappings in each other, expected 50 levels at most"),
        ("seeds: &s {x: *s}", "my.yaml: line 1: found *s within &s, expected no recursion"),
        ("seeds: [1" + "0" * 5000 + "]", "my.yaml: not YAML: Exceeds the limit (4300 digits) for integer"),
    ],
    ids=["deep", "loop", "5,000 digits"],
)
def test_make_asks_first_whether_a_configuration_can_be_read(text: str, line: str, tmp_path: Path) -> None:
    """Snakemake answers these with a traceback, or not at all, before anything of ours runs."""
    (tmp_path / "my.yaml").write_text(text)
    command = [sys.executable, "-m", "saliency_assay.cli", "run", "my.yaml"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 1
    assert len(ran.stderr.splitlines()) == 1
    assert ran.stderr.startswith(line)
    assert [path.name for path in tmp_path.iterdir()] == ["my.yaml"]


def test_a_function_that_exits_is_named(fresh: Checkout) -> None:
    (fresh.root / "leaving").mkdir()
    (fresh.root / "leaving/__init__.py").write_text("import sys\n\nsys.exit()\n")
    (fresh.root / "leaving/maps.py").write_text("def bright(model, images, targets, *, generator): ...\n")
    fresh.configure(methods__bright={"function": "leaving.maps:bright"})
    line = (
        r"tiny\.yaml: methods\.bright\.function: found 'leaving\.maps:bright', "
        r"'leaving\.maps': SystemExit when its package is imported: .*"
    )
    check_refused(run(fresh, "results/report.html"), "results/report.html", line)


# ---- photographs and annotations

ANNOTATIONS = "coco/annotations/instances.json"
PHOTO = "coco/images/000000000001.jpg"


def annotate(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    path = folder / ANNOTATIONS
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def steer(folder: Path) -> None:
    annotate(folder, lambda content: content["categories"][0].update(name="\x1b[2J\ud800"))


def flatten_one(folder: Path) -> None:
    """Images are behind a link, as on clusters, and one polygon has no area."""
    (folder / "coco/images").rename(folder.parent / "elsewhere")
    (folder / "coco/images").symlink_to(folder.parent / "elsewhere")
    annotate(folder, lambda content: content["annotations"][0].update(segmentation=[[5, 5, 40, 40]]))


def cut(folder: Path) -> None:
    path = folder / ANNOTATIONS
    path.write_bytes(path.read_bytes()[:5000])


FAULTY: dict[str, tuple[Callable[[Path], None], str]] = {
    "broken_json": (
        cut,
        rf"collect_bam: broken_json/{ANNOTATIONS}: not JSON: .+ at line 1, column \d+",
    ),
    # Names do not steer the terminal.
    "steers": (steer, rf"collect_bam: steers/{ANNOTATIONS}: unknown category 'backpack'; .*"),
}
"""Folders of photographs with a fault each, and the line that names it."""


def cutouts(name: str) -> str:
    return f"results/collections/{name}/cutouts.zarr.zip"


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that collects photographs and scenes of one's own from a folder for each fault."""
    checkout = Checkout.fresh(tmp_path_factory.mktemp("photos") / "project", SMALLEST)
    whole = checkout.root / "photos"
    generator = np.random.default_rng(0)
    sizes = {"cutouts_per_object": 4, "scenes_per_class": 6, "source_size": 64}
    write_sources(whole, **sizes, generator=generator)
    changes = {name: change for name, (change, _) in FAULTY.items()} | {"degenerate": flatten_one}
    data = {}
    for name, change in changes.items():
        shutil.copytree(whole, checkout.root / name)
        change(checkout.root / name)
        data[name] = {
            "kind": "bam",
            "coco": [{"annotations": f"{name}/{ANNOTATIONS}", "images": f"{name}/coco/images"}],
            "miniplaces": f"{name}/miniplaces",
            "size": 24,
            "images_per_pair": 2,
            "min_object_area": 64,
        }
    checkout.configure(**{f"data__{name}": entry for name, entry in data.items()})
    return run(checkout, *map(cutouts, changes))


def test_faulty_annotations_are_named_and_leave_nothing_but_logs(photos: Run) -> None:
    for name, (_, line) in FAULTY.items():
        check_refused(photos, cutouts(name), line, f"collect_bam/{name}.log")
    results = {name for name in photos.made if not name.startswith(("logs/", "benchmarks/"))}
    assert results == {f"collections/degenerate/{kind}.zarr.zip" for kind in ("cutouts", "scenes")}


def test_a_degenerate_polygon_is_counted_and_the_run_goes_on(photos: Run) -> None:
    assert "39 cut-outs, 60 scenes; left out: {'backpack': {'degenerate polygon': 1, " in photos.checkout.log(
        "collect_bam/degenerate.log"
    )
    with open_store(photos.checkout.root / cutouts("degenerate"), kind="cutouts") as store:
        assert len(store) == 10 * 4 - 1
        assert store.attributes["skipped"]["backpack"]["degenerate polygon"] == 1


# ---- weights and stores


class Payload:
    """Unpickled, it writes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_weights_that_contain_code_are_refused_before_any_job_and_not_run(fresh: Checkout) -> None:
    mark, target = fresh.root / "the_code_ran", "results/models/digits/seed0/weights.pt"
    torch.save({"fc.weight": Payload(mark)}, fresh.root / "code.pt")
    fresh.configure(models__digits__weights="code.pt")
    refused = run(fresh, target)
    line = (
        r"check_models: models\.digits\.weights: code\.pt: contains code \(.+\), which is not run; "
        r"valid: a state dict of tensors, .*"
    )
    check_refused(refused, target, line)
    assert not mark.exists()
    assert refused.made == {"logs/check_models.log"}


MAPS = {
    "cut": r"truncated, or not a Zarr store \(.+\)",
    "other_model": r"model is '0{64}', expected '[0-9a-f]{64}'",
}
"""Methods whose maps are faulty, and what is wrong with their files."""


def test_faulty_maps_are_refused_and_leave_nothing_but_logs(smallest: Checkout) -> None:
    """Maps that are cut off, or name another model."""
    folder = smallest.root / "results/maps/digits/seed0/digits"
    whole = folder / "gradient.zarr.zip"
    (folder / "cut.zarr.zip").write_bytes(whole.read_bytes()[:2000])
    with open_store(whole, kind="maps") as maps:
        arrays, attributes = {name: maps[name][:] for name in maps.names}, dict(maps.attributes)
    write(
        folder / "other_model.zarr.zip", [arrays], kind="maps", attributes={**attributes, "model": "0" * 64}
    )
    smallest.configure(**{f"methods__{name}": {"method": "gradient"} for name in MAPS})
    targets = {name: f"results/scores/sensitivity/digits/seed0/digits/{name}.parquet" for name in MAPS}
    refused = run(smallest, *targets.values())
    for name, fault in MAPS.items():
        line = rf"score: metrics\.sensitivity: results/maps/digits/seed0/digits/{name}\.zarr\.zip: {fault}"
        check_refused(refused, targets[name], line, f"score/sensitivity/digits/seed0/digits/{name}.log")
    assert len(refused.made) == len(MAPS)
    assert {name.partition("/")[0] for name in refused.made} == {"logs"}
