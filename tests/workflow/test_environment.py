"""Locales, time zones, umasks, missing folders and odd names: the same tables, byte for byte, and no traceback."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from checkout import LOCAL, Checkout
from mounts import mounted
from PIL import Image

from saliency_assay.storage.zarr_store import open_store

pytestmark = pytest.mark.slow

LATE = (
    "tabulate_scores",
    "tabulate_reliability",
    "check_claims",
    "tabulate_retrain",
    "plot_leakage",
    "report",
)
LATE += ("tabulate_series", "tabulate_leakage")
EARLY = (
    "data/digits.zarr.zip",
    "models/digits/seed0/weights.pt",
    "maps/digits/seed0/digits/gradient.zarr.zip",
)


@pytest.fixture
def poor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """ASCII alone, no home, no folder for temporary files, clocks half an hour off, and files for oneself alone."""
    cache = tmp_path / "cache"  # Snakemake has one somewhere, or does not start
    changes = {
        **{"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "TZ": "America/St_Johns"},
        **{"HOME": "/proc", "TMPDIR": "/nowhere/at/all", "MPLCONFIGDIR": "/proc/nowhere"},
        "XDG_CACHE_HOME": str(cache),
    }
    for name, value in changes.items():
        monkeypatch.setenv(name, value)
    before = os.umask(0o077)
    yield
    os.umask(before)


def test_results_do_not_depend_on_locale_time_zone_and_folders(
    finished_once: Checkout, finished: Checkout, poor: None
) -> None:
    finished.make("--forcerun", *LATE)
    tables = finished_once.files("results/tables")
    assert finished.files("results/tables") == tables
    assert any(name.endswith(".csv") for name in tables)
    before, after = (checkout.files("results/figures") for checkout in (finished_once, finished))
    timed = {"overview.html", "provenance.html"}  # how long jobs took
    assert {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)} <= timed


def test_data_weights_and_maps_do_not_either(finished_once: Checkout, fresh: Checkout, poor: None) -> None:
    fresh.make(*(f"results/{name}" for name in EARLY))
    for name in EARLY:
        assert (fresh.root / "results" / name).read_bytes() == (
            finished_once.root / "results" / name
        ).read_bytes()
    assert (fresh.root / "results/data/digits.zarr.zip").stat().st_mode & 0o777 == 0o600


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
