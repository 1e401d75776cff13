"""Temporary names of unfinished files: of one process each, and deleted when their writer was killed."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from saliency_assay.models import weights
from saliency_assay.runtime.atomic import (
    ABANDONED,
    machine_digest,
    remove_leftovers,
    replacing,
    temporary_path,
)
from saliency_assay.runtime.provenance import SOURCE
from saliency_assay.storage import score_tables, zarr_store


def table() -> pd.DataFrame:
    names = dict.fromkeys(score_tables.COLUMNS, "")
    return pd.DataFrame([{**names, "seed": 0, "image": 0, "score": 0.5}]).astype(score_tables.COLUMNS)


def write_store(path: Path) -> None:
    zarr_store.write(path, [{"map": np.zeros((3, 2), np.float32)}], kind="maps", attributes={})


def write_parts(path: Path) -> None:
    with score_tables.writer(path) as append:
        append(table())


WRITERS: dict[str, Callable[[Path], None]] = {
    "store": write_store,
    "scores": lambda path: score_tables.write(path, table()),
    "parts of scores": write_parts,
    "weights": lambda path: weights.write(path, {"step": 1}),
}

KILLED = """
import os, signal, sys
from pathlib import Path
import numpy as np
from saliency_assay.storage import zarr_store

def blocks():
    yield {"map": np.ones((3, 500_000), np.float32)}  # more than a chunk, so that some of it is on disk
    print("writing", flush=True)
    sys.stdin.read()
    yield {"map": np.ones((3, 500_000), np.float32)}

zarr_store.write(Path(sys.argv[1]), blocks(), kind="maps", attributes={})
"""


def start_writer(path: Path) -> "subprocess.Popen[str]":
    """Start a process that is in the midst of writing a store until its standard input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "writing\n"
    return process


def test_two_writers_of_one_store_both_finish(tmp_path: Path) -> None:
    path = tmp_path / "maps.zarr.zip"
    first = start_writer(path)
    write_store(path)
    with zarr_store.open_store(path, kind="maps") as maps:
        assert len(maps) == 3
    first.communicate()
    assert first.returncode == 0
    with zarr_store.open_store(path, kind="maps") as maps:
        assert maps["map"][:].sum() == 6 * 500_000
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_killed_writer_left_is_deleted_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "maps.zarr.zip"
    killed = start_writer(path)
    killed.kill()
    killed.communicate()
    [left] = tmp_path.iterdir()
    assert left.is_dir()
    write_store(path)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("write", WRITERS.values(), ids=list(WRITERS))
def test_no_writer_touches_the_unfinished_file_of_another(
    write: Callable[[Path], None], tmp_path: Path
) -> None:
    """Of another machine, whose processes cannot be seen, and of this process's parent, which is alive."""
    path = tmp_path / "result"
    names = [f".{path.name}.{machine_digest()}-{os.getppid()}.tmp", f".{path.name}.00000000-1.tmp"]
    for name in names:
        (tmp_path / name).write_bytes(b"unfinished")
    left_behind = tmp_path / f".{path.name}.{machine_digest()}-999999999.tmp"
    left_behind.touch()
    write(path)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted([*names, path.name])
    assert [(tmp_path / name).read_bytes() for name in names] == [b"unfinished"] * 2


def test_what_was_abandoned_elsewhere_is_deleted(tmp_path: Path) -> None:
    path, folder = tmp_path / "result", tmp_path / ".result.00000000-1.writing"
    old = tmp_path / ".result.00000000-2.tmp"
    (folder / "map").mkdir(parents=True)
    for entry in (old, folder / "map/c"):
        entry.write_bytes(b"unfinished")
    then = old.stat().st_mtime - ABANDONED - 60
    for entry in (old, folder, folder / "map"):
        os.utime(entry, (then, then))
    write_store(path)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [folder.name, path.name]
    os.utime(folder / "map/c", (then, then))
    write_store(path)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_a_failure_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "result"
    path.write_text("old")
    with pytest.raises(KeyError), replacing(path) as temporary:
        temporary.write_text({}["half"])
    assert {entry.name: entry.read_text() for entry in tmp_path.iterdir()} == {"result": "old"}


def test_names_that_are_no_temporary_names_stay(tmp_path: Path) -> None:
    names = [
        ".result",
        ".result.tmp",
        ".result.version",
        f".results.{machine_digest()}-999999999.tmp",
        "result.part",
    ]
    for name in names:
        (tmp_path / name).touch()
    (tmp_path / f".result.{machine_digest()}-999999999.tmp").touch()
    remove_leftovers(tmp_path / "result")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted(names)


def test_a_child_process_has_names_of_its_own(tmp_path: Path) -> None:
    mine = temporary_path(tmp_path / "result", "tmp")
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        os.write(writer, temporary_path(tmp_path / "result", "tmp").name.encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 1000).decode() not in ("", mine.name)
