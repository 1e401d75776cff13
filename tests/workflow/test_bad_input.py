"""Bad input, end to end: one line on the terminal, a status that says so, and nothing half-written."""

import json
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from checkout import PROJECT, Checkout
from PIL import Image

from saliency_assay.data.bam.classes import OBJECTS
from saliency_assay.models.resnet import resnet18
from saliency_assay.runtime.job import printable
from saliency_assay.storage.zarr_store import open_store, write

ANNOTATIONS = "photos/coco/annotations/instances.json"
PHOTO = "photos/coco/images/000000000001.jpg"
CUTOUTS = "results/collections/own/cutouts.zarr.zip"
WEIGHTS = "results/models/f_o/seed0/weights.pt"
SCORES = "results/scores/bam/bam/seed0/gradcam.parquet"


def refused(checkout: Checkout, target: str, line: str, *, log: str = "") -> None:
    """Snakemake fails with just one line that matches ``line``, and makes nothing but the job's log.

    Digests of the user's files, which are taken before, stay.
    """
    before = set(checkout.files())
    status, said = checkout.snakemake(target)
    assert status == 1
    assert "Traceback" not in said
    lines = [text for text in said.splitlines() if re.fullmatch(line, text)]
    assert len(lines) == 1, said
    made = set(checkout.files()) - before - {".state/digests.json"}
    assert made <= {f"logs/{log}"}
    assert not (checkout.root / target).exists()
    if log:
        told = checkout.log(log).splitlines()
        assert "Traceback (most recent call last):" in told
        assert lines[0].endswith(f": {printable(told[-1].partition(': ')[2])}")


@pytest.fixture
def photos(finished_once: Checkout, fresh: Checkout) -> Checkout:
    """A checkout with photographs and scenes of one's own, read as data of kind bam."""
    shutil.copytree(finished_once.root / "results/sources/bam", fresh.root / "photos")
    fresh.configure(
        data__own={
            "kind": "bam",
            "coco": [{"annotations": ANNOTATIONS, "images": "photos/coco/images"}],
            "miniplaces": "photos/miniplaces",
            "size": 24,
            "images_per_pair": 2,
            "min_object_area": 64,
        }
    )
    return fresh


def annotate(checkout: Checkout, change: Callable[[dict[str, Any]], None]) -> None:
    path = checkout.root / ANNOTATIONS
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


# ---- the configuration: before anything is planned


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"seeds": None, "sedes": [0]},
            r"tiny\.yaml: top level: unknown key 'sedes'; did you mean 'seeds'\? valid: .*\bseeds\b.*",
        ),
        (
            {"models__f_o__training__epoch": 3},
            r"tiny\.yaml: models\.f_o\.training: unknown key 'epoch'; did you mean 'epochs'\? valid: .*\bepochs\b.*",
        ),
        (
            {"methods__gradcm": {}},
            r"tiny\.yaml: methods\.gradcm: unknown method 'gradcm'; did you mean 'gradcam'\? valid: .*\bgradcam\b.*",
        ),
        (
            {"data__own": {"kind": "bam", "coco": "nowhere/coco", "miniplaces": "nowhere"}},
            r"tiny\.yaml: data\.own\.coco: found 'nowhere/coco', expected a folder that exists",
        ),
        (
            {"models__f_o__weights": "nowhere/resnet8.pt"},
            r"tiny\.yaml: models\.f_o\.weights: found 'nowhere/resnet8\.pt', expected a file that exists",
        ),
    ],
    ids=["misspelt key", "misspelt parameter", "unknown method", "missing folder", "missing file"],
)
def test_a_wrong_configuration_is_one_line(changes: dict[str, Any], line: str, fresh: Checkout) -> None:
    fresh.configure(**changes)
    refused(fresh, "results/report.html", line)
    assert not (fresh.root / "results").exists()


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            lambda text: f"seeds: [0]\n{text}",
            r"tiny\.yaml: line \d+: found the key 'seeds' twice, expected unique keys",
        ),
        (
            lambda text: re.sub(r"seeds: .*", f"seeds: [{10**400}]", text),
            r"tiny\.yaml: seeds\.0: found 10+…, expected an integer of 64 bits",
        ),
        (
            lambda text: f"{text}\nreliability: {{level: .nan}}\n",
            r"tiny\.yaml: reliability\.level: found nan, expected a finite number",
        ),
    ],
    ids=["key twice", "400 digits", "no number"],
)
def test_hostile_values_of_a_configuration_are_one_line(
    change: Callable[[str], str], line: str, fresh: Checkout
) -> None:
    text = (fresh.root / "tiny.yaml").read_text()
    (fresh.root / "tiny.yaml").write_text(change(re.sub(r"(?m)^reliability:.*\n(?: .*\n)*", "", text)))
    refused(fresh, "results/report.html", line)
    assert not (fresh.root / "results").exists()


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
    module = "saliency_assay.config.yaml_text"
    ran = subprocess.run(
        [sys.executable, "-m", module, "my.yaml"], cwd=tmp_path, capture_output=True, text=True
    )
    assert ran.returncode == 1
    assert len(ran.stderr.splitlines()) == 1
    assert ran.stderr.startswith(line)
    makefile = (PROJECT / "Makefile").read_text()
    assert f"SNAKEMAKE := $(BIN)/python -m {module} $(CONFIG) && $(BIN)/snakemake " in makefile
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
    refused(fresh, "results/report.html", line)


# ---- photographs and annotations


def test_photographs_of_ones_own_are_collected(photos: Checkout) -> None:
    """The same as the faulty ones below, whole."""
    photos.make(CUTOUTS)
    with open_store(photos.root / CUTOUTS, kind="cutouts") as cutouts:
        assert len(cutouts) == 10 * 4


def test_broken_json_is_named_with_its_place(photos: Checkout) -> None:
    path = photos.root / ANNOTATIONS
    path.write_text(path.read_text()[:5000])
    line = rf"collect_bam: {ANNOTATIONS}: not JSON: .+ at line 1, column \d+"
    refused(photos, CUTOUTS, line, log="collect_bam/own.log")


def test_a_category_without_instances_is_named(photos: Checkout) -> None:
    number = OBJECTS.index("zebra") + 1

    def without_zebras(content: dict[str, Any]) -> None:
        kept = [entry for entry in content["annotations"] if entry["category_id"] != number]
        assert 0 < len(kept) < len(content["annotations"])
        content["annotations"] = kept

    annotate(photos, without_zebras)
    line = rf"collect_bam: {ANNOTATIONS}: no usable instance of 'zebra'; found: none"
    refused(photos, CUTOUTS, line, log="collect_bam/own.log")


def test_a_truncated_image_is_named(photos: Checkout) -> None:
    path = photos.root / PHOTO
    path.write_bytes(path.read_bytes()[:700])
    refused(photos, CUTOUTS, rf"collect_bam: {PHOTO}: .*truncated.*", log="collect_bam/own.log")


def test_a_degenerate_polygon_is_counted_and_the_run_goes_on(photos: Checkout) -> None:
    def flatten_one(content: dict[str, Any]) -> None:
        content["annotations"][0]["segmentation"] = [[5, 5, 40, 40]]

    annotate(photos, flatten_one)
    photos.make(CUTOUTS)
    assert "39 cut-outs, 60 scenes; left out: {'backpack': {'degenerate polygon': 1, " in photos.log(
        "collect_bam/own.log"
    )
    with open_store(photos.root / CUTOUTS, kind="cutouts") as cutouts:
        assert len(cutouts) == 10 * 4 - 1
        assert cutouts.attributes["skipped"]["backpack"]["degenerate polygon"] == 1


def test_a_name_that_leads_out_of_the_folder_is_refused(photos: Checkout) -> None:
    """And what it leads to is not looked at."""
    shutil.copy(photos.root / PHOTO, photos.root / "photos/secret.jpg")
    annotate(photos, lambda content: content["images"][0].update(file_name="../../secret.jpg"))
    name = r"file_name is '\.\./\.\./secret\.jpg', expected a path inside the image folder"
    line = rf"collect_bam: {ANNOTATIONS}: images\[0\]: {name}"
    refused(photos, CUTOUTS, line, log="collect_bam/own.log")


def test_a_users_own_links_are_followed(photos: Checkout) -> None:
    """Data sets on clusters are links to where the disk is."""
    images = photos.root / "photos/coco/images"
    images.rename(photos.root / "elsewhere")
    images.symlink_to(photos.root / "elsewhere")
    photos.make(CUTOUTS)


def test_a_bomb_is_refused_before_it_goes_off(photos: Checkout) -> None:
    with (photos.root / PHOTO).open("wb") as file:
        Image.new("1", (30_000, 30_000)).save(file, "PNG")
    assert (photos.root / PHOTO).stat().st_size < 200_000
    line = rf"collect_bam: {PHOTO}: found more than 89478485 pixels, expected at most that many"
    refused(photos, CUTOUTS, line, log="collect_bam/own.log")


def test_names_do_not_steer_the_terminal(photos: Checkout) -> None:
    annotate(photos, lambda content: content["categories"][0].update(name="\x1b[2J\ud800"))
    line = rf"collect_bam: {ANNOTATIONS}: unknown category 'backpack'; .*"
    refused(photos, CUTOUTS, line, log="collect_bam/own.log")


# ---- weights


def with_weights(checkout: Checkout, write: Callable[[Path], None]) -> None:
    write(checkout.root / "given.pt")
    checkout.configure(models__f_o__weights="given.pt")


def test_weights_of_another_architecture_are_refused(finished: Checkout) -> None:
    network = resnet18(classes=10, channels=3, generator=torch.Generator())
    with_weights(finished, lambda path: torch.save(network.state_dict(), path))
    line = (
        r"train: given\.pt: not weights of resnet8: "
        r"66 unexpected \(layer1\.1\..+, …\), 45 of another shape \(conv1\.weight .+, …\)"
    )
    refused(finished, WEIGHTS, line, log="train/f_o/seed0.log")


class Payload:
    """Unpickled, it writes the file that it is told of."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def pickled(content: object, path: Path) -> None:
    path.write_bytes(pickle.dumps(content))


@pytest.mark.parametrize("write", [torch.save, pickled], ids=["by torch.save", "by pickle"])
def test_weights_with_code_are_refused_and_not_run(write: Callable[..., None], finished: Checkout) -> None:
    mark = finished.root / "the_code_ran"
    pickle.loads(pickle.dumps(Payload(mark)))
    assert mark.exists()
    mark.unlink()

    with_weights(finished, lambda path: write({"fc.weight": Payload(mark)}, path))
    line = r"train: given\.pt: contains code \(.+\), which is not run; valid: a state dict of tensors, .*"
    refused(finished, WEIGHTS, line, log="train/f_o/seed0.log")
    assert not mark.exists()


# ---- devices and stores


def test_a_gpu_that_is_not_there_is_asked_for(finished: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    finished.configure(device="cuda")
    line = r"train: device: found 'cuda', but no GPU is available; valid: auto, cpu"
    refused(finished, WEIGHTS, line, log="train/f_o/seed0.log")


def test_a_truncated_map_is_refused(finished: Checkout) -> None:
    name = "results/maps/f_s/seed0/bam_os/gradcam.zarr.zip"
    path = finished.root / name
    path.write_bytes(path.read_bytes()[:2000])
    line = rf"score_bam: {re.escape(name)}: truncated, or not a Zarr store \(.+\)"
    refused(finished, SCORES, line, log="score_bam/bam/seed0/gradcam.log")


def test_a_map_of_other_data_is_refused(finished: Checkout) -> None:
    maps = finished.root / "results/maps/f_s/seed0"
    shutil.copy(maps / "bam_0s/gradcam.zarr.zip", maps / "bam_os/gradcam.zarr.zip")
    line = r"score_bam: results/maps/f_s/seed0/bam_os/gradcam\.zarr\.zip: data is '\w{64}', expected '\w{64}'"
    refused(finished, SCORES, line, log="score_bam/bam/seed0/gradcam.log")


SCORED = "results/scores/sensitivity/digits/seed0/digits/smooth.parquet"
LOGGED = "score/sensitivity/digits/seed0/digits/smooth.log"


def rewrite(checkout: Checkout, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> None:
    """The maps of ``smooth`` on digits with other arrays or attributes; their scores are to be made again."""
    path = checkout.root / "results/maps/digits/seed0/digits/smooth.zarr.zip"
    with open_store(path, kind="maps") as maps:
        arrays, attributes = {name: maps[name][:] for name in maps.names}, dict(maps.attributes)
    change(arrays, attributes)
    write(path, [arrays], kind="maps", attributes=attributes)
    (checkout.root / SCORED).unlink()


def test_maps_of_another_model_are_refused(finished: Checkout) -> None:
    rewrite(finished, lambda arrays, attributes: attributes.update(model="0" * 64))
    maps = r"results/maps/digits/seed0/digits/smooth\.zarr\.zip"
    line = rf"score: metrics\.sensitivity: {maps}: model is '0{{64}}', expected '[0-9a-f]{{64}}'"
    refused(finished, SCORED, line, log=LOGGED)


def test_maps_of_another_size_are_refused(finished: Checkout) -> None:
    rewrite(finished, lambda arrays, attributes: arrays.update(map=arrays["map"][:, :, 1:]))
    refused(
        finished,
        SCORED,
        r"score: metrics\.sensitivity: maps: found 20 of \[1, 7, 8\], expected 20 of \[1 or 1, 8, 8\]",
        log=LOGGED,
    )


def test_more_steps_than_pixels_are_refused(finished: Checkout) -> None:
    finished.configure(
        metrics__aopc={"steps": 65}, studies__digits__metrics=["aopc"], studies__digits__printed=None
    )
    target = "results/responses/aopc/digits/seed0/digits.zarr.zip"
    line = "respond: metrics.aopc: steps: found 65, expected at most 64, the pixels of an image"
    refused(finished, target, line, log="respond/aopc/digits/seed0/digits.log")
