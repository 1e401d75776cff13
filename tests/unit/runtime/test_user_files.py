import hashlib
import os
import shutil
from pathlib import Path

import pytest

from saliency_assay.runtime import user_files
from saliency_assay.runtime.user_files import Source, UserFiles

LONG_AGO = 1_000_000_000


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that were read to take their digest."""
    names: list[str] = []
    digest = user_files.digest_of_file
    monkeypatch.setattr(user_files, "digest_of_file", lambda path: names.append(path.name) or digest(path))
    monkeypatch.setattr(user_files, "SETTLED", -1)  # files of a moment ago are kept, too
    return names


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def digest_of(file: Path, kept: Path) -> str:
    """The digest by a process of its own."""
    files = UserFiles(kept)
    digest = files.of(file)
    files.save()
    return digest


def test_an_unchanged_file_is_read_once(tmp_path: Path, reads: list[str]) -> None:
    file, kept = tmp_path / "weights.pt", tmp_path / "state/digests.json"
    file.write_bytes(b"one")
    assert digest_of(file, kept) == sha256(b"one")
    assert digest_of(file, kept) == sha256(b"one")
    assert reads == ["weights.pt"]


def test_an_older_file_of_the_same_size_in_its_place_is_seen(tmp_path: Path, reads: list[str]) -> None:
    file, other, kept = tmp_path / "a.json", tmp_path / "b.json", tmp_path / "digests.json"
    file.write_bytes(b"one")
    other.write_bytes(b"two")
    for path in (file, other):
        os.utime(path, (LONG_AGO, LONG_AGO))
    before = digest_of(file, kept)
    shutil.move(other, file)
    assert file.stat().st_mtime == LONG_AGO
    assert (before, digest_of(file, kept)) == (sha256(b"one"), sha256(b"two"))


def test_a_newer_date_alone_changes_no_digest(tmp_path: Path, reads: list[str]) -> None:
    file, kept = tmp_path / "a.json", tmp_path / "digests.json"
    file.write_bytes(b"one")
    before = digest_of(file, kept)
    os.utime(file, (LONG_AGO, LONG_AGO))
    assert digest_of(file, kept) == before
    assert reads == ["a.json", "a.json"]


def test_a_file_that_may_still_change_is_read_again(tmp_path: Path, reads: list[str], monkeypatch) -> None:
    monkeypatch.setattr(user_files, "SETTLED", 10**12)
    file, kept = tmp_path / "a.json", tmp_path / "digests.json"
    file.write_bytes(b"one")
    digest_of(file, kept)
    digest_of(file, kept)
    assert reads == ["a.json", "a.json"]


@pytest.mark.parametrize("content", ["", "[]", '{"a": 1}'])
def test_a_damaged_record_is_no_fault(content: str, tmp_path: Path, reads: list[str]) -> None:
    file, kept = tmp_path / "a.json", tmp_path / "digests.json"
    file.write_bytes(b"one")
    kept.write_text(content)
    assert digest_of(file, kept) == sha256(b"one")


def test_a_missing_file_has_no_digest_and_files_keep_their_order(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"two")
    files = UserFiles(tmp_path / "none/digests.json")
    sources = [Source("data.x.path", str(tmp_path / name)) for name in ("b", "a")]
    images = Source("data.x.path", str(tmp_path), is_folder=True, is_tracked=False)
    assert files.of_all([*sources, images]) == [["b", sha256(b"two")], ["a", ""]]
    assert list(files.requested) == [*sources, images]


def test_what_is_gone_is_remembered_in_a_moved_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    (here / "data/maps.zarr/c").mkdir(parents=True)
    for name in ("list.csv", "maps.zarr/c/0"):
        (here / "data" / name).write_text(name)
    outside = tmp_path / "weights.pt"
    outside.write_text("weights")
    names = ("data/list.csv", "data/maps.zarr", str(outside))
    monkeypatch.chdir(here)
    files = UserFiles(Path("digests.json"))
    digests = [files.of(Path(name)) for name in names]
    assert files.recall("columns", "data/list.csv", lambda: ["image"], []) == ["image"]
    assert files.matching("data", "*.csv") == ["data/list.csv"]
    assert files.is_known(Source("data.x.path", "data", is_folder=True))
    assert "" not in digests
    files.save()
    shutil.rmtree(here / "data")
    outside.unlink()
    here.rename(there)
    monkeypatch.chdir(there)
    files = UserFiles(Path("digests.json"))
    assert [files.of(Path(name)) for name in names] == digests
    assert files.recall("columns", "data/list.csv", list, []) == ["image"]
    assert files.matching("data", "*.csv") == ["data/list.csv"]
    gone = Source("data.x.path", "data", is_folder=True)
    assert files.is_known(gone)
    assert files.gone == [gone]
    assert (
        gone.problem == f"data.x.path: found 'data', expected a folder that exists (tried {there / 'data'})"
    )
    assert not files.is_known(Source("data.x.path", "other"))
    assert files.matching("other", "*.csv") == []


def test_the_digest_of_a_folder_is_that_of_its_files(tmp_path: Path) -> None:
    folder, digests = tmp_path / "maps.zarr", set()
    for name, content in (("c/0", "one"), ("c/0", "two"), ("c/1", "two")):
        (folder / "c").mkdir(parents=True)
        (folder / name).write_text(content)
        digests.add(digest_of(folder, tmp_path / "digests.json"))
        (folder / "d").mkdir()
        digests.add(digest_of(folder, tmp_path / "digests.json"))
        shutil.rmtree(folder)
    assert len(digests) == 3
    assert "" not in digests
