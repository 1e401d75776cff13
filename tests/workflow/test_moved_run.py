"""A finished run whose folder was moved to a machine without its images, weights and tables."""

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from checkout import Checkout
from PIL import Image

from saliency_assay.runs.archive import export, import_run
from saliency_assay.runs.compare import compare

pytestmark = pytest.mark.slow

MINE = """
from pathlib import Path

from torch import nn


def net(*, classes, channels, generator):
    width = int(Path(__file__).with_name("width.txt").read_text())
    return nn.Sequential(
        nn.Conv2d(channels, width, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes)
    )
"""
STUDY = {
    "device": "cpu",
    "data": {"photos": {"kind": "folder", "path": "photos/list.csv", "size": 8, "gray": True}},
    "models": {
        "net": {
            "function": "mine:net",
            "files": ["width.txt"],
            "data": "photos",
            "trained_on": "class",
            "weights": "weights.pt",
            "training": {"epochs": 1, "batch_size": 8},
        }
    },
    "methods": {"gradient": {}, "random": {}},
    # Its masks are a column of the list of images.
    "metrics": {"mask_attribution": {}},
    "studies": {"compare": {"kind": "fidelity", "model": "net"}},
}
LIST = "data.photos.path: found 'photos/list.csv', expected a file that exists (tried {}/photos/list.csv)"
WEIGHTS = "models.net.weights: found 'weights.pt', expected a file that exists (tried {}/weights.pt)"


@pytest.fixture
def moved(tmp_path: Path) -> Checkout:
    """A finished run in another folder, without the images and the weights."""
    checkout = Checkout.fresh(tmp_path / "here/project")
    root = checkout.root
    (root / checkout.configuration).write_text(yaml.safe_dump(STUDY, sort_keys=False))
    (root / "mine.py").write_text(MINE)
    (root / "width.txt").write_text("4")
    namespace = {"__file__": str(root / "mine.py")}
    exec(MINE, namespace)
    torch.save(namespace["net"](classes=2, channels=1, generator=None).state_dict(), root / "weights.pt")  # type: ignore[operator]
    generator, rows = np.random.default_rng(0), ["image,label,mask,split"]
    (root / "photos").mkdir()
    for number in range(24):
        pixels = generator.integers(0, 256, (8, 8), dtype=np.uint8)
        mask = np.zeros((8, 8), np.uint8)
        mask[2:6, 2:6] = 255
        Image.fromarray(pixels).save(root / f"photos/{number}.png")
        Image.fromarray(mask).save(root / f"photos/mask{number}.png")
        rows.append(f"{number}.png,{'ab'[number % 2]},mask{number}.png,{'train' if number < 16 else 'test'}")
    (root / "photos/list.csv").write_text("\n".join(rows))
    done = checkout.assay("run", "--cores=2")
    assert done.returncode == 0, done.stderr
    moved = replace(checkout, root=tmp_path / "there/project")
    shutil.move(tmp_path / "here", tmp_path / "there")
    shutil.rmtree(moved.root / "photos")
    (moved.root / "weights.pt").unlink()
    return moved


def test_files_are_missed_only_by_jobs_that_read_them(moved: Checkout) -> None:
    (moved.root / "width.txt").rename(moved.root / "width.gone")
    assert "Nothing to run" in moved.assay("dry").stdout
    assert "compare" in moved.assay("plan").stdout
    for command in ("run", "report", "table"):
        done = moved.assay(command, "--cores=2")
        assert done.returncode == 0, done.stderr
    assert (moved.root / "results/export/results.csv").exists()

    # Maps of a further method need the network, but neither images nor initial weights.
    moved.configure(methods__gradient_x_input={})
    done = moved.assay("run", "--cores=2")
    assert done.returncode == 1
    assert "expected a file that exists" in line_of(done, "models.net.files: found")
    assert not (moved.root / "results/maps/net/seed0/photos/gradient_x_input.zarr.zip").exists()
    (moved.root / "width.gone").rename(moved.root / "width.txt")
    done = moved.assay("run", "--cores=2")
    assert done.returncode == 0, done.stderr
    assert "gradient_x_input" in (moved.root / "results/tables/compare/summary.csv").read_text()

    before = moved.files("results/models")
    moved.configure(models__net__training__epochs=2)
    done = moved.assay("run", "--cores=2")
    assert (done.returncode, line_of(done, "models.net.weights")) == (1, WEIGHTS.format(moved.root))
    assert moved.files("results/models") == before
    moved.configure(data__photos__size=10)
    done = moved.assay("dry")
    expected = [LIST.format(moved.root), WEIGHTS.format(moved.root)]
    assert (done.returncode, done.stderr.splitlines()[-2:]) == (1, expected)


def test_an_archive_has_the_code_of_the_run_and_none_of_its_images(
    moved: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From its archive, the run is drawn, exported, compared and continued with its own network."""
    monkeypatch.chdir(moved.root)
    export(Path(moved.configuration), tmp_path / "run.tar")
    other = Checkout.fresh(tmp_path / "other/project")
    (other.root / other.configuration).unlink()
    import_run(tmp_path / "run.tar", other.root)
    assert {"mine.py", "width.txt"} <= {path.name for path in other.root.iterdir()}
    assert not (other.root / "photos").exists()
    assert "Nothing to run" in other.assay("dry").stdout
    for command in ("report", "table"):
        done = other.assay(command, "--cores=2")
        assert done.returncode == 0, done.stderr
    assert compare(moved.root / "results", other.root / "results").is_equal
    other.configure(methods__gradient_x_input={})
    done = other.assay("run", "--cores=2")
    assert done.returncode == 0, done.stderr
    assert "gradient_x_input" in (other.root / "results/tables/compare/summary.csv").read_text()


def line_of(done: "subprocess.CompletedProcess[str]", place: str) -> str:
    """Return the error line that begins with a place of the configuration."""
    (line,) = (line for line in done.stderr.splitlines() if line.startswith(place))
    return line
