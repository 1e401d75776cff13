"""Missing folders and odd names of folders, files and classes."""

import shutil
from pathlib import Path

import pytest
from checkout import LOCAL, Checkout
from mounts import mounted
from PIL import Image

from saliency_assay.storage.zarr_store import open_store

pytestmark = pytest.mark.slow


def test_paths_and_classes_may_have_any_name(fresh: Checkout, tmp_path: Path) -> None:
    """A results folder behind a link on another file system, a long path, and letters of other scripts."""
    names = ["Äpfel & Birnen", "[1] {a}", "コード 2"]
    for name in names:
        folder = tmp_path / "Daten (neu)" / "100 %" / name
        folder.mkdir(parents=True)
        for number in range(10):
            Image.new("RGB", (8, 8), (number, 0, 0)).save(folder / f"Bild {number} ü.png")
    results = fresh.root / "mein Ergebnis"
    with mounted(tmp_path / ("lang " * 40) / "Platte", "-t", "tmpfs", "tmpfs") as disk:
        results.symlink_to(disk)
        fresh.configure(
            results="mein Ergebnis",
            data__eigene={"kind": "folder", "path": str(tmp_path / "Daten (neu)/100 %"), "size": 8},
        )
        own = fresh.root / "Prüfung (neu) ß.yaml"
        shutil.move(fresh.root / fresh.configuration, own)
        checkout = Checkout(fresh.root, own.name)
        checkout.make("mein Ergebnis/data/eigene.zarr.zip")
        with open_store(disk / "data/eigene.zarr.zip", kind="data") as data:
            assert list(data.attributes["classes"]["class"]) == sorted(names)
            assert len(data) == 30
        assert checkout.planned("mein Ergebnis/data/eigene.zarr.zip", profile=LOCAL) == set()
