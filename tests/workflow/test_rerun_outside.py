"""Changes outside of the configuration and the project, and exactly the jobs that each of them runs again."""

import os
import shutil
import struct
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from checkout import Checkout

from saliency_assay.data.synthetic.sources import write_sources

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive]

CONFIGURATION = {
    "results": "results",
    "device": "cpu",
    "data": {
        "photos": {
            "kind": "bam",
            "coco": [
                {"annotations": "sources/coco/annotations/instances.json", "images": "sources/coco/images"}
            ],
            "miniplaces": "sources/miniplaces",
            "size": 24,
            "min_object_area": 64,
        },
        "mnist": {"kind": "mnist", "path": "mnist", "size": 8},
    },
    "models": {
        "net": {
            "function": "lab.nets:build",
            "data": "mnist",
            "trained_on": "class",
            "weights": "start.pt",
            "training": {"epochs": 1, "batch_size": 8},
        }
    },
    "methods": {"gradient": {}},
    "studies": {"shown": {"kind": "gallery", "model": "net"}},
}
NETS = """
from torch import nn

from lab.layers import head


def build(*, classes, channels, generator):
    return nn.Sequential(nn.Flatten(), head(channels * 64, classes))
"""
LAYERS = """
from torch import nn


def head(features, classes):
    return nn.Linear(features, classes)
"""
TARGETS = ("results/models/net/seed0/weights.pt", "results/collections/photos/cutouts.zarr.zip")
COLLECT, BUILD, TRAIN = "collect_bam photos", "build_data mnist", "train net 0"
NOTHING: set[str] = set()
LONG_AGO = 1_000_000_000


def write_mnist(folder: Path) -> None:
    """Write MNIST's four files with a few images in each, in the publisher's format."""
    folder.mkdir()
    generator = np.random.default_rng(0)
    for half, count in (("train", 40), ("t10k", 20)):
        images = generator.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        header = struct.pack(">BBBB3I", 0, 0, 8, 3, *images.shape)
        (folder / f"{half}-images-idx3-ubyte").write_bytes(header + images.tobytes())
        labels = struct.pack(">BBBBI", 0, 0, 8, 1, count) + bytes(index % 10 for index in range(count))
        (folder / f"{half}-labels-idx1-ubyte").write_bytes(labels)


def write_weights(path: Path, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    shapes = {"1.weight": (10, 64), "1.bias": (10,)}
    torch.save({name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}, path)


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A finished run on files of a user's own: photographs, scenes, MNIST, weights, and a model's code."""
    checkout = Checkout.fresh(tmp_path_factory.mktemp("outside") / "project")
    root = checkout.root
    write_sources(
        root / "sources",
        cutouts_per_object=2,
        scenes_per_class=3,
        source_size=64,
        generator=np.random.default_rng(0),
    )
    write_mnist(root / "mnist")
    write_weights(root / "start.pt", seed=0)
    (root / "lab").mkdir()  # a package without __init__.py
    (root / "lab/nets.py").write_text(NETS)
    (root / "lab/layers.py").write_text(LAYERS)
    (root / "outside.yaml").write_text(yaml.safe_dump(CONFIGURATION, sort_keys=False))
    checkout = replace(checkout, configuration="outside.yaml")
    checkout.make(*TARGETS)
    return checkout


def older(path: Path, content: bytes) -> None:
    """Put an older file with another content into the place of a file, as ``mv`` or ``rsync`` do."""
    assert path.read_bytes() != content
    other = path.with_name("other")
    other.write_bytes(content)
    os.utime(other, (LONG_AGO, LONG_AGO))
    shutil.move(other, path)


def newer_dates(root: Path) -> None:
    """Give every file of the user a date after all results, and leave the content."""
    for path in [*root.glob("sources/**/*"), *root.glob("mnist/*"), *root.glob("lab/*"), root / "start.pt"]:
        os.utime(path)


def older_weights(root: Path) -> None:
    write_weights(root / "new.pt", seed=1)
    older(root / "start.pt", (root / "new.pt").read_bytes())


def older_annotations(root: Path) -> None:
    path = root / "sources/coco/annotations/instances.json"
    older(path, path.read_bytes() + b" ")


def older_scenes(root: Path) -> None:
    path = root / "sources/miniplaces/train.txt"
    older(path, b"".join(path.read_bytes().splitlines(keepends=True)[1:]))


def annotated_scene(root: Path) -> None:
    path = root / "sources/miniplaces/objects/train/b/bamboo_forest/00000001.xml"
    path.parent.mkdir(parents=True)
    path.write_text("<filename>00000001.jpg</filename>\n")


def other_photograph(root: Path) -> None:
    first, second, *_ = sorted((root / "sources/coco/images").glob("*.jpg"))
    assert first.read_bytes() != second.read_bytes()
    shutil.copyfile(second, first)


def older_labels(root: Path) -> None:
    path = root / "mnist/t10k-labels-idx1-ubyte"
    older(path, path.read_bytes()[:-1] + b"\0")


def helper(root: Path) -> None:
    path = root / "lab/layers.py"
    path.write_text(
        path.read_text().replace("nn.Linear(features, classes)", "nn.Linear(features, classes, True)")
    )


def package(name: str) -> Callable[[Path], None]:
    """Let another version of a package be installed, as the plan of a run sees it."""

    def update(root: Path) -> None:
        folder = root / f"site/{name}-99.0.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 99.0\n")

    return update


def device(root: Path) -> None:
    path = root / "outside.yaml"
    path.write_text(path.read_text().replace("device: cpu", "device: auto"))


CHANGES: dict[str, tuple[Callable[[Path], None], set[str]]] = {
    "newer dates of all files": (newer_dates, NOTHING),
    "older weights": (older_weights, {TRAIN}),
    "older annotations": (older_annotations, {COLLECT}),
    "an older list of scenes": (older_scenes, {COLLECT}),
    "an annotation of a scene more": (annotated_scene, {COLLECT}),
    "another photograph": (other_photograph, NOTHING),
    "older labels of MNIST": (older_labels, {BUILD, TRAIN}),
    "a helper module": (helper, {TRAIN}),
    "another version of torch": (package("torch"), {TRAIN}),
    "another version of Pillow": (package("pillow"), {COLLECT, BUILD, TRAIN}),
    "another version of zarr": (package("zarr"), {COLLECT, BUILD, TRAIN}),
    "another version of pycocotools": (package("pycocotools"), {COLLECT}),
    "another version of pandas": (package("pandas"), NOTHING),
    "another version of tqdm": (package("tqdm"), NOTHING),
    "another device": (device, {TRAIN}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_runs_what_it_concerns(
    name: str, settled: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = settled.copy(tmp_path / "project")
    change, expected = CHANGES[name]
    change(checkout.root)
    monkeypatch.setenv("PYTHONPATH", str(checkout.root / "site"))
    assert checkout.planned(*TARGETS) == expected


def test_another_number_of_threads_runs_nothing(settled: Checkout) -> None:
    assert settled.planned(*TARGETS, "--set-threads", "train=2") == NOTHING


def test_a_job_refuses_an_environment_that_changed_since_the_plan(
    settled: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = settled.copy(tmp_path / "project")
    older_weights(checkout.root)
    package("torch")(checkout.root)
    monkeypatch.setenv("PYTHONPATH", str(checkout.root / "site"))
    # Snakemake has planned the jobs, and then torch 99.0 is replaced by the one that is there.
    removal = "    import shutil\n    shutil.rmtree('site')\n"
    checkout.edit(
        "workflow/rules/cluster.smk", lambda text: text.replace("onstart:\n", f"onstart:\n{removal}", 1)
    )
    status, printed = checkout.snakemake(*TARGETS)
    assert status != 0
    assert f"train: environment: found torch {version('torch')}, expected 99.0" in printed
