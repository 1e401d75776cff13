"""File systems of one's own: a small one that fills, one that cannot be written. Root alone may mount them."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted(folder: Path, *how: str) -> Iterator[Path]:
    """``mount`` with these arguments on ``folder`` while the block runs; skips the test where that is not allowed."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(["mount", *how, folder], check=False, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("no program mount")
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
