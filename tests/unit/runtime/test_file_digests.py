import hashlib
import os
import shutil
from pathlib import Path

import pytest

from saliency_assay.runtime import file_digests
from saliency_assay.runtime.file_digests import FileDigests

LONG_AGO = 1_000_000_000


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that were read to take their digest."""
    names: list[str] = []
    digest = file_digests.digest_of_file
    monkeypatch.setattr(file_digests, "digest_of_file", lambda path: names.append(path.name) or digest(path))
    monkeypatch.setattr(file_digests, "SETTLED", -1)  # files of a moment ago are kept, too
    return names


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_an_unchanged_file_is_read_once(tmp_path: Path, reads: list[str]) -> None:
    file, kept = tmp_path / "weights.pt", tmp_path / "state/digests.json"
    file.write_bytes(b"one")
    assert FileDigests(kept).of(file) == sha256(b"one")
    assert FileDigests(kept).of(file) == sha256(b"one")
    assert reads == ["weights.pt"]


def test_an_older_file_of_the_same_size_in_its_place_is_seen(tmp_path: Path, reads: list[str]) -> None:
    file, other, kept = tmp_path / "a.json", tmp_path / "b.json", tmp_path / "digests.json"
    file.write_bytes(b"one")
    other.write_bytes(b"two")
    for path in (file, other):
        os.utime(path, (LONG_AGO, LONG_AGO))
    before = FileDigests(kept).of(file)
    shutil.move(other, file)
    assert file.stat().st_mtime == LONG_AGO
    assert (before, FileDigests(kept).of(file)) == (sha256(b"one"), sha256(b"two"))


def test_a_newer_date_alone_changes_no_digest(tmp_path: Path, reads: list[str]) -> None:
    file, kept = tmp_path / "a.json", tmp_path / "digests.json"
    file.write_bytes(b"one")
    before = FileDigests(kept).of(file)
    os.utime(file, (LONG_AGO, LONG_AGO))
    assert FileDigests(kept).of(file) == before
    assert reads == ["a.json", "a.json"]


def test_a_file_that_may_still_change_is_read_again(tmp_path: Path, reads: list[str], monkeypatch) -> None:
    monkeypatch.setattr(file_digests, "SETTLED", 10**12)
    file, kept = tmp_path / "a.json", tmp_path / "digests.json"
    file.write_bytes(b"one")
    FileDigests(kept).of(file)
    FileDigests(kept).of(file)
    assert reads == ["a.json", "a.json"]


@pytest.mark.parametrize("content", ["", "[]", '{"a": 1}'])
def test_a_damaged_record_is_no_fault(content: str, tmp_path: Path, reads: list[str]) -> None:
    file, kept = tmp_path / "a.json", tmp_path / "digests.json"
    file.write_bytes(b"one")
    kept.write_text(content)
    assert FileDigests(kept).of(file) == sha256(b"one")


def test_a_missing_file_has_no_digest_and_files_keep_their_order(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"two")
    digests = FileDigests(tmp_path / "none/digests.json")
    assert digests.of_all([tmp_path / "b", tmp_path / "a"]) == [["b", sha256(b"two")], ["a", ""]]


def test_the_digest_of_a_folder_is_that_of_its_files(tmp_path: Path) -> None:
    folder, digests = tmp_path / "maps.zarr", set()
    for name, content in (("c/0", "one"), ("c/0", "two"), ("c/1", "two")):
        (folder / "c").mkdir(parents=True)
        (folder / name).write_text(content)
        digests.add(FileDigests(tmp_path / "digests.json").of(folder))
        (folder / "d").mkdir()
        digests.add(FileDigests(tmp_path / "digests.json").of(folder))
        shutil.rmtree(folder)
    assert len(digests) == 3
    assert "" not in digests
