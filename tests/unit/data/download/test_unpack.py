"""Archives, whole and hostile."""

import io
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from saliency_assay.data.download.unpack import unpack
from saliency_assay.runtime.atomic import machine_digest

FILES = {"set/a.txt": b"one", "set/deep/b.txt": b"two\n" * 1000, "read me.txt": "ü".encode()}


def tar(path: Path, files: dict[str, bytes], mode: str = "w:gz") -> None:
    with tarfile.open(path, mode) as content:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            member.type = tarfile.DIRTYPE if name.endswith("/") else tarfile.REGTYPE
            content.addfile(member, io.BytesIO(data))


def zipped(path: Path, files: dict[str, bytes], mode: int = 0) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as content:
        for name, data in files.items():
            member = zipfile.ZipInfo(name)
            member.external_attr = mode << 16
            content.writestr(member, data, zipfile.ZIP_DEFLATED)


WRITERS: dict[str, Callable[[Path], None]] = {
    "tar.gz": lambda path: tar(path, {"./": b"", **FILES}),
    "tar.xz": lambda path: tar(path, FILES, "w:xz"),
    "zip": lambda path: zipped(path, FILES),
}


def below(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("kind", WRITERS)
def test_an_archive_is_unpacked_beside_what_is_there(kind: str, tmp_path: Path) -> None:
    archive, folder = tmp_path / f"a.{kind}", tmp_path / "new/here"
    (folder / "set").mkdir(parents=True)
    (folder / "set/mine.txt").write_bytes(b"mine")
    (folder / "set/a.txt").write_bytes(b"old")
    WRITERS[kind](archive)
    steps: list[tuple[int, int]] = []
    sizes = unpack(archive, folder, lambda done, total: steps.append((done, total)))
    assert sizes == {name: len(data) for name, data in FILES.items()}
    assert below(folder) == {**FILES, "set/mine.txt": b"mine"}
    assert steps[-1] == (sum(sizes.values()),) * 2


def refused(archive: Path, match: str) -> None:
    """One line that names the archive, and nothing anywhere."""
    folder = archive.parent / "here"
    outside = below(archive.parent)
    with pytest.raises(ValueError, match=match) as error:
        unpack(archive, folder)
    assert str(error.value).startswith(f"{archive}: not unpacked: ")
    assert len(str(error.value).splitlines()) == 1
    assert list(folder.iterdir()) == []
    assert below(archive.parent) == outside


OUTSIDE = ["/tmp/evil_of_saliency_assay", "set/../../evil", "set\\..\\..\\evil"]


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("write", [tar, zipped])
def test_no_name_leads_out_of_the_folder(write: Callable[..., None], name: str, tmp_path: Path) -> None:
    write(tmp_path / "a", {"good.txt": b"good", name: b"evil"})
    refused(tmp_path / "a", "the path .*evil.* is outside the folder$")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_a_tar_holds_plain_files_only(kind: bytes, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "b", "w") as content:
        member = tarfile.TarInfo("set")
        member.type, member.linkname = kind, "/etc"
        content.addfile(member)
    refused(tmp_path / "b", "'set' is not a regular file$")


def test_a_zip_holds_plain_files_only(tmp_path: Path) -> None:
    zipped(tmp_path / "a", {"set": b"/etc"}, stat.S_IFLNK | 0o777)
    refused(tmp_path / "a", "'set' is not a regular file$")


@pytest.mark.parametrize("kind", WRITERS)
def test_a_truncated_archive_leaves_nothing(kind: str, tmp_path: Path) -> None:
    archive = tmp_path / f"a.{kind}"
    WRITERS[kind](archive)
    archive.write_bytes(archive.read_bytes()[:-70])
    refused(archive, "not unpacked: .")


def test_a_damaged_file_in_a_zip_leaves_nothing(tmp_path: Path) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as content:
        content.writestr("good.txt", b"good")
        content.writestr("bad.txt", b"bytes that change")
    archive.write_bytes(archive.read_bytes().replace(b"bytes that change", b"bytes that chanGe"))
    refused(archive, "Bad CRC-32 for file 'bad.txt'")


def test_a_zip_with_more_than_it_says_leaves_nothing(tmp_path: Path) -> None:
    """Ten million bytes that are declared as ten: what the free space was compared with must hold."""
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as content:
        content.writestr("bomb", bytes(10_000_000))
    size = (10_000_000).to_bytes(4, "little")
    archive.write_bytes(archive.read_bytes().replace(size, (10).to_bytes(4, "little")))
    refused(archive, "Bad CRC-32 for file 'bomb'")


def test_something_else_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"<html>not found</html>" * 100)
    refused(tmp_path / "a", "not unpacked: file could not be opened successfully")


def test_too_little_space_is_reported_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zipped(tmp_path / "a.zip", FILES)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=4004))
    with pytest.raises(OSError, match=r"here: 4005 more bytes are needed, 4004 are free$"):
        unpack(tmp_path / "a.zip", tmp_path / "here")
    assert list((tmp_path / "here").iterdir()) == []


def test_a_disk_that_fills_leaves_nothing(tmp_path: Path, full_disk: Path) -> None:
    zipped(tmp_path / "a.zip", {"set/good.txt": b"good", "set/large.txt": bytes(3 << 20)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=1 << 40))
        with pytest.raises(OSError, match="No space left on device"):
            unpack(tmp_path / "a.zip", full_disk)
    assert list(full_disk.iterdir()) == []


def test_what_a_killed_unpacking_left_is_deleted(tmp_path: Path) -> None:
    archive, folder = tmp_path / "a.zip", tmp_path / "data"
    zipped(archive, FILES)
    left = folder / f".a.zip.{machine_digest()}-999999999.unpacking/set"
    left.mkdir(parents=True)
    (left / "a.txt").write_bytes(b"half")
    unpack(archive, folder)
    assert below(folder) == FILES
    assert not left.parent.exists()
