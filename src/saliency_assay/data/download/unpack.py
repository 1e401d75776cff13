"""Archives from elsewhere: nothing in them is written outside the folder, or before there is room for all of it."""

import gzip
import lzma
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from saliency_assay.data.download.fetch import CHUNK, need_space
from saliency_assay.runtime.atomic import remove_leftovers, temporary_path

# RuntimeError and NotImplementedError are zipfile's, of an encrypted member and of a method it does not know.
DAMAGED = (
    *(tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError),
    *(RuntimeError, NotImplementedError),
)


def unpack(
    archive: Path, folder: Path, told: Callable[[int, int], None] = lambda done, total: None
) -> dict[str, int]:
    """Unpack a zip file or a tar file of any compression into ``folder``.

    All of it goes to a folder within first, and is moved once it is whole; files of the same name are replaced.

    Args:
        archive: the file.
        folder: made if there is none.
        told: called with the bytes unpacked and the bytes in all after each file.

    Returns:
        Bytes of each file, by its path relative to ``folder``.

    Raises:
        ValueError: not such an archive, a damaged one, or a member that is no plain file or folder within.
        OSError: there is no room for what the archive says it holds.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _in_one_line(archive):
        members = _zip if zipfile.is_zipfile(archive) else _tar
        sizes = list(members(archive, None))
    total, done = sum(size for _, size in sizes), 0
    need_space(folder, total)
    target = folder / archive.name
    remove_leftovers(target)
    temporary = temporary_path(target, "unpacking")
    temporary.mkdir()
    try:
        with _in_one_line(archive):
            for _, size in members(archive, temporary):
                done += size
                told(done, total)
            _move(temporary, folder)
    finally:
        shutil.rmtree(temporary)
    return dict(sizes)


@contextmanager
def _in_one_line(archive: Path) -> Iterator[None]:
    try:
        yield
    except DAMAGED as error:
        raise ValueError(f"{archive}: not unpacked: {' '.join(str(error).split())}") from None


def _tar(archive: Path, folder: Path | None) -> Iterator[tuple[str, int]]:
    """Path and bytes of each file in a tar, which is written below ``folder`` if that is given."""
    with tarfile.open(archive) as content:
        for member in content:
            _check_name(member.name)
            if member.isdir():
                continue
            if not member.isreg():
                raise tarfile.TarError(f"{member.name!r} is no plain file")
            source = content.extractfile(member)
            if folder and source:
                _write(source, folder / member.name)
            yield str(PurePosixPath(member.name)), member.size


def _zip(archive: Path, folder: Path | None) -> Iterator[tuple[str, int]]:
    """Path and bytes of each file in a zip, which is written below ``folder`` if that is given."""
    with zipfile.ZipFile(archive) as content:
        for member in content.infolist():
            _check_name(member.filename)
            if member.is_dir():
                continue
            if stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG):
                raise zipfile.BadZipFile(f"{member.filename!r} is no plain file")
            if folder:
                # No more bytes than the archive says: zipfile reads no further, and then finds a wrong checksum.
                _write(content.open(member), folder / member.filename)
            yield str(PurePosixPath(member.filename)), member.file_size


def _write(source: IO[bytes], target: Path) -> None:
    """Make a member a plain file of the user, whatever owner and rights the archive names."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with source, target.open("wb") as sink:
        shutil.copyfileobj(source, sink, CHUNK)


def _check_name(name: str) -> None:
    """Check that a member stays below the folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name:
        raise tarfile.TarError(f"the name {name!r} leads out of the folder")


def _move(source: Path, target: Path) -> None:
    for entry in sorted(source.iterdir()):
        there = target / entry.name
        if entry.is_dir() and there.is_dir():
            _move(entry, there)
        else:
            entry.replace(there)
