"""Bad input, end to end: one line on the terminal, a status that says so, and nothing half-written.

Of many faulty files each has its own job in one run with ``--keep-going``.
"""

import json
import pickle
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
import yaml
from checkout import SMALLEST, Checkout
from PIL import Image

from saliency_assay.catalog import CATALOG
from saliency_assay.config.configuration import read
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.yaml_text import check_text
from saliency_assay.data.bam.classes import OBJECTS
from saliency_assay.data.synthetic.sources import write_sources
from saliency_assay.models.resnet import resnet18
from saliency_assay.runtime import failure
from saliency_assay.runtime.job import printable
from saliency_assay.storage.zarr_store import open_store, write


@dataclass(frozen=True)
class Run:
    """A run that has ended."""

    checkout: Checkout
    status: int
    said: str
    made: set[str]
    """Files that are new in the results folder, but for digests of the user's files."""


def run(checkout: Checkout, *targets: str) -> Run:
    """Run all that can be, each job by itself."""
    before = set(checkout.files())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SALIENCY_ASSAY_SEPARATE", "1")
        status, said = checkout.snakemake(*targets, "--keep-going")
    records = ".state/digests.json"
    created = {name for name in checkout.files() if not name.startswith(records)}
    return Run(checkout, status, said, created - before)


def check_refused(run: Run, target: str, line: str, log: str = "") -> None:
    """Snakemake fails with just one line that matches ``line``; of ``target`` there is nothing but the job's log."""
    assert run.status == 1
    assert "Traceback" not in run.said
    lines = [text for text in run.said.splitlines() if re.fullmatch(line, text)]
    assert len(lines) == 1, run.said
    assert not (run.checkout.root / target).exists()
    if log:
        told = run.checkout.log(log).splitlines()
        assert "Traceback (most recent call last):" in told
        assert lines[0].endswith(f": {printable(told[-1].partition(': ')[2])}")


@pytest.fixture
def fresh(tmp_path: Path) -> Checkout:
    """A checkout of the smallest study in which nothing has run yet."""
    checkout = Checkout.fresh(tmp_path / "project")
    shutil.copy(SMALLEST, checkout.root / checkout.configuration)
    return checkout


# ---- the configuration: before anything is planned

MISSPELT = (
    {"seeds": None, "sedes": [0]},
    r"tiny\.yaml: top level: unknown key 'sedes'; did you mean 'seeds'\? valid: .*\bseeds\b.*",
)
NO_FOLDER = (
    {"data__own": {"kind": "bam", "coco": "nowhere/coco", "miniplaces": "nowhere"}},
    r"tiny\.yaml: data\.own\.coco: found 'nowhere/coco', expected a folder that exists",
)


@pytest.mark.parametrize(("changes", "line"), [MISSPELT, NO_FOLDER], ids=["misspelt key", "missing folder"])
def test_a_wrong_configuration_is_one_line(changes: dict[str, Any], line: str, fresh: Checkout) -> None:
    fresh.configure(**changes)
    check_refused(run(fresh, "results/report.html"), "results", line)


def test_hostile_values_of_a_configuration_are_one_line(fresh: Checkout) -> None:
    fresh.edit("tiny.yaml", lambda text: re.sub(r"seeds: .*", f"seeds: [{10**400}]", text))
    line = r"tiny\.yaml: seeds\.0: found 10+…, expected an integer of 64 bits"
    check_refused(run(fresh, "results/report.html"), "results", line)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            lambda text: text.replace("epochs: 1", "epoch: 3"),
            r"tiny\.yaml: models\.digits\.training: unknown key 'epoch'; did you mean 'epochs'\? "
            r"valid: .*\bepochs\b.*",
        ),
        (
            lambda text: text.replace("gradcam: {}", "gradcm: {}"),
            r"tiny\.yaml: methods\.gradcm: unknown method 'gradcm'; did you mean 'gradcam'\? valid: .*\bgradcam\b.*",
        ),
        (
            lambda text: text.replace("width: 4", "width: 4, weights: nowhere/resnet8.pt"),
            r"tiny\.yaml: models\.digits\.weights: found 'nowhere/resnet8\.pt', expected a file that exists",
        ),
        (
            lambda text: f"seeds: [0]\n{text}",
            r"tiny\.yaml: line \d+: found the key 'seeds' twice, expected unique keys",
        ),
        (
            lambda text: f"{text}\nreliability: {{level: .nan}}\n",
            r"tiny\.yaml: reliability\.level: found nan, expected a finite number",
        ),
    ],
    ids=["misspelt parameter", "unknown method", "missing file", "key twice", "no number"],
)
def test_the_reader_refuses_a_wrong_configuration_in_one_line(
    change: Callable[[str], str], line: str, tmp_path: Path
) -> None:
    """As ``workflow/rules/common.smk`` calls it."""
    text = change(SMALLEST.read_text())
    assert text != SMALLEST.read_text()
    path = tmp_path / "tiny.yaml"
    path.write_text(text)

    def read_file() -> None:
        check_text(path, path.name)
        read(yaml.safe_load(text), catalog=CATALOG, source=path.name)

    with pytest.raises(ConfigError) as error:
        read_file()
    assert re.fullmatch(line, str(error.value))


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


def half(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


def without_zebras(folder: Path) -> None:
    number = OBJECTS.index("zebra") + 1

    def change(content: dict[str, Any]) -> None:
        kept = [entry for entry in content["annotations"] if entry["category_id"] != number]
        assert 0 < len(kept) < len(content["annotations"])
        content["annotations"] = kept

    annotate(folder, change)


def lead_out(folder: Path) -> None:
    """What the name leads to is there, and not looked at."""
    shutil.copy(folder / PHOTO, folder / "secret.jpg")
    annotate(folder, lambda content: content["images"][0].update(file_name="../../secret.jpg"))


def bomb(folder: Path) -> None:
    with (folder / PHOTO).open("wb") as file:
        Image.new("1", (30_000, 30_000)).save(file, "PNG")
    assert (folder / PHOTO).stat().st_size < 200_000


def steer(folder: Path) -> None:
    annotate(folder, lambda content: content["categories"][0].update(name="\x1b[2J\ud800"))


def link(folder: Path) -> None:
    """Data sets on clusters are links to where the disk is."""
    (folder / "coco/images").rename(folder.parent / "elsewhere")
    (folder / "coco/images").symlink_to(folder.parent / "elsewhere")


def flatten_one(folder: Path) -> None:
    annotate(folder, lambda content: content["annotations"][0].update(segmentation=[[5, 5, 40, 40]]))


FAULTY: dict[str, tuple[Callable[[Path], None], str]] = {
    "broken_json": (
        lambda folder: half(folder / ANNOTATIONS, 5000),
        r"collect_bam: broken_json/coco/annotations/instances\.json: not JSON: .+ at line 1, column \d+",
    ),
    "no_zebra": (
        without_zebras,
        rf"collect_bam: no_zebra/{ANNOTATIONS}: no usable instance of 'zebra'; found: none",
    ),
    "truncated": (
        lambda folder: half(folder / PHOTO, 700),
        rf"collect_bam: truncated/{PHOTO}: .*truncated.*",
    ),
    "leads_out": (
        lead_out,
        rf"collect_bam: leads_out/{ANNOTATIONS}: images\[0\]: file_name is '\.\./\.\./secret\.jpg', "
        r"expected a path inside the image folder",
    ),
    "bomb": (
        bomb,
        rf"collect_bam: bomb/{PHOTO}: found more than 89478485 pixels, expected at most that many",
    ),
    # Names do not steer the terminal.
    "steers": (steer, rf"collect_bam: steers/{ANNOTATIONS}: unknown category 'backpack'; .*"),
}
"""Folders of photographs with a fault each, and the line that names it."""
USABLE = {"links": link, "degenerate": flatten_one}


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
    changes = {name: change for name, (change, _) in FAULTY.items()} | USABLE
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


@pytest.mark.parametrize("name", FAULTY)
def test_faulty_photographs_and_annotations_are_named(name: str, photos: Run) -> None:
    check_refused(photos, cutouts(name), FAULTY[name][1], f"collect_bam/{name}.log")


def test_of_faulty_ones_nothing_is_left_but_logs(photos: Run) -> None:
    results = {name for name in photos.made if not name.startswith(("logs/", "benchmarks/"))}
    assert results == {
        f"collections/{name}/{kind}.zarr.zip" for name in USABLE for kind in ("cutouts", "scenes")
    }


def test_links_of_a_user_are_followed(photos: Run) -> None:
    with open_store(photos.checkout.root / cutouts("links"), kind="cutouts") as found:
        assert len(found) == 10 * 4


def test_a_degenerate_polygon_is_counted_and_the_run_goes_on(photos: Run) -> None:
    assert "39 cut-outs, 60 scenes; left out: {'backpack': {'degenerate polygon': 1, " in photos.checkout.log(
        "collect_bam/degenerate.log"
    )
    with open_store(photos.checkout.root / cutouts("degenerate"), kind="cutouts") as found:
        assert len(found) == 10 * 4 - 1
        assert found.attributes["skipped"]["backpack"]["degenerate polygon"] == 1


# ---- weights and stores


class Payload:
    """Unpickled, it writes the file that it is told of."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


WEIGHTS = {
    "other_architecture": (
        r"check_models: models\.other_architecture\.weights: other_architecture\.pt: not weights of resnet8: "
        r"66 unexpected \(layer1\.1\..+, …\), 45 of another shape \(conv1\.weight .+, …\)"
    ),
    **{
        name: rf"check_models: models\.{name}\.weights: {name}\.pt: contains code \(.+\), which is not run; "
        r"valid: a state dict of tensors, .*"
        for name in ("saved_code", "pickled_code")
    },
}
"""Models whose weights are faulty, all of them in one run."""
MAPS = {
    "cut": (
        r"score: metrics\.sensitivity: results/maps/digits/seed0/digits/cut\.zarr\.zip: "
        r"truncated, or not a Zarr store \(.+\)"
    ),
    "other_data": (
        r"score: metrics\.sensitivity: results/maps/digits/seed0/digits/other_data\.zarr\.zip: "
        r"data is '0{64}', expected '[0-9a-f]{64}'"
    ),
    "other_model": (
        r"score: metrics\.sensitivity: results/maps/digits/seed0/digits/other_model\.zarr\.zip: "
        r"model is '0{64}', expected '[0-9a-f]{64}'"
    ),
}
"""Methods whose maps are faulty."""
RESPONSES = "results/responses/aopc/digits/seed0/digits.zarr.zip"


def weights(name: str) -> str:
    return f"results/models/{name}/seed0/weights.pt"


def scores(name: str) -> str:
    return f"results/scores/sensitivity/digits/seed0/digits/{name}.parquet"


def write_weights(root: Path) -> None:
    """Weights of another network, and two files of those that run code when unpickled."""
    network = resnet18(classes=10, channels=3, generator=torch.Generator())
    torch.save(network.state_dict(), root / "other_architecture.pt")
    mark = root / "the_code_ran"
    pickle.loads(pickle.dumps(Payload(mark)))
    assert mark.exists()
    mark.unlink()
    torch.save({"fc.weight": Payload(mark)}, root / "saved_code.pt")
    (root / "pickled_code.pt").write_bytes(pickle.dumps({"fc.weight": Payload(mark)}))


def write_maps(folder: Path) -> None:
    """The maps of the gradient with other attributes or arrays, or cut off."""
    whole = folder / "gradient.zarr.zip"
    (folder / "cut.zarr.zip").write_bytes(whole.read_bytes()[:2000])
    with open_store(whole, kind="maps") as maps:
        arrays, attributes = {name: maps[name][:] for name in maps.names}, dict(maps.attributes)
    for name, other in (("other_data", "data"), ("other_model", "model")):
        changed = attributes | {other: "0" * 64}
        write(folder / f"{name}.zarr.zip", [arrays], kind="maps", attributes=changed)


@pytest.fixture(scope="module")
def faulty(smallest_once: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A finished run that goes on with faulty maps, and with a metric that asks for too much."""
    checkout = smallest_once.copy(tmp_path_factory.mktemp("faulty") / "project")
    content = yaml.safe_load(SMALLEST.read_text())
    write_maps(checkout.root / "results/maps/digits/seed0/digits")
    methods = {f"methods__{name}": {"method": "gradient"} for name in MAPS}
    metrics = [*content["studies"]["digits"]["metrics"], "aopc"]
    checkout.configure(**methods, metrics__aopc={"steps": 65}, studies__digits__metrics=metrics)
    return run(checkout, *map(scores, MAPS), RESPONSES)


def test_faulty_weights_are_refused_before_any_job_and_their_code_is_not_run(fresh: Checkout) -> None:
    write_weights(fresh.root)
    model = yaml.safe_load(SMALLEST.read_text())["models"]["digits"]
    fresh.configure(**{f"models__{name}": {**model, "weights": f"{name}.pt"} for name in WEIGHTS})
    refused = run(fresh, *map(weights, WEIGHTS))
    for name, line in WEIGHTS.items():
        check_refused(refused, weights(name), line)
    assert not (fresh.root / "the_code_ran").exists()
    assert refused.made == {"logs/check_models.log"}


@pytest.mark.parametrize("name", MAPS)
def test_faulty_maps_are_refused(name: str, faulty: Run) -> None:
    check_refused(faulty, scores(name), MAPS[name], f"score/sensitivity/digits/seed0/digits/{name}.log")


def test_more_steps_than_pixels_are_a_failure_of_the_metric(faulty: Run) -> None:
    recorded = failure.read(faulty.checkout.root / RESPONSES)
    assert recorded is not None
    assert recorded.reason == "steps: found 65, expected at most 64, the pixels of an image"


def test_faulty_files_leave_nothing_but_logs(faulty: Run) -> None:
    made = faulty.made - {name for name in faulty.made if "aopc" in name}
    assert len(made) == len(MAPS)
    assert {name.partition("/")[0] for name in made} == {"logs"}


def test_a_gpu_that_is_not_there_is_asked_for(smallest: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    smallest.configure(
        device="cuda", models__other={"architecture": "resnet8", "data": "digits", "trained_on": "class"}
    )
    line = r"train: device: found 'cuda', but no GPU is available; valid: auto, cpu"
    check_refused(run(smallest, weights("other")), weights("other"), line, "train/other/seed0.log")
