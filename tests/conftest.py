"""Fixtures shared by several kinds of tests."""

import os
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

# Small tensors do not benefit from threads, and on a busy machine, waiting threads made tests forty times slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from archives import SAFELY
from mounts import mounted
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
NEEDS = {"cluster": pytest.mark.slurm, "real": pytest.mark.real}
"""Marker of all tests in a folder."""
SHARING = (
    *("workflow", "real", "cluster"),
    *("test_distributed.py", "test_networks.py", "test_packaging.py", "test_sizes.py"),
)
"""Folders and files whose tests share long runs: all tests of a file run in one process."""


@pytest.hookimpl(tryfirst=True)  # before tests are selected by their markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Add the marker for the requirement of each test's folder."""
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        if folder in NEEDS:
            item.add_marker(NEEDS[folder])


class Scheduling(LoadScopeScheduling):
    """Run tests that share a run in one process.

    The markers ``xdist_group`` have no effect: pytest-xdist 3.8 adds their names to an attribute that pytest 9.2 lacks.
    """

    def _split_scope(self, nodeid: str) -> str:
        """Return a test's group: its file if it shares a run, else its own name; all cluster tests are one group."""
        file = Path(nodeid.partition("::")[0])
        if "cluster" in file.parts:
            return "cluster"
        return str(file) if {*file.parts} & set(SHARING) else nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling | None:
    return Scheduling(config, log) if config.getvalue("dist") == "loadscope" else None


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Folder of real images; see README. Tests that need it are skipped where there is none."""
    folder = Path(os.environ.get("SALIENCY_ASSAY_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real images: {folder} is no folder; set SALIENCY_ASSAY_DATA to one that is")
    return folder


@pytest.fixture(scope="session")
def miniplaces(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MiniPlaces' real images with the publishers' object annotations and their list of names beside them."""
    folder = tmp_path_factory.mktemp("miniplaces")
    for entry in (real_data / "miniplaces").iterdir():
        (folder / entry.name).symlink_to(entry.resolve())
    annotations = real_data / "miniplaces_objects"
    with tarfile.open(annotations / "objects.tar.xz") as archive:
        archive.extractall(folder, **SAFELY)
    (folder / "object_categories.txt").symlink_to((annotations / "object_categories.txt").resolve())
    return folder


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=2m", "tmpfs") as folder:
        yield folder


@pytest.fixture
def one_thread() -> Iterator[None]:
    """One thread of PyTorch, as many as before afterwards."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """A browser without a window."""
    from playwright.sync_api import sync_playwright  # slow to import

    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no browser: install Debian's package chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()
