"""Unpacking of archives; nothing is written outside the target folder, or before the free space is checked."""

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

# zipfile raises RuntimeError for an encrypted member and NotImplementedError for an unknown compression method.
DAMAGED = (
    *(tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError),
    *(RuntimeError, NotImplementedError),
)


def unpack(
    archive: Path, folder: Path, progress: Callable[[int, int], None] = lambda done, total: None
) -> dict[str, int]:
    """Unpack a zip file or a tar file of any compression into ``folder``.

    Files are unpacked into a temporary subfolder and moved when all are complete; existing files are replaced.

    Args:
        archive: the archive file.
        folder: target, created if needed.
        progress: callback, called after each file with the number of unpacked bytes and the total.

    Returns:
        Size of each file in bytes, by its path relative to ``folder``.

    Raises:
        ValueError: the file is not such an archive or is damaged, or a member is not a regular file or folder below
            ``folder``.
        OSError: there is too little free space for the sizes stated in the archive.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # A first pass checks all names and sizes before anything is written.
    with _one_line_errors(archive):
        members = _iterate_zip if zipfile.is_zipfile(archive) else _iterate_tar
        sizes = list(members(archive, None))
    total, done = sum(size for _, size in sizes), 0
    need_space(folder, total)
    target = folder / archive.name
    remove_leftovers(target)
    temporary = temporary_path(target, "unpacking")
    temporary.mkdir()
    try:
        with _one_line_errors(archive):
            for _, size in members(archive, temporary):
                done += size
                progress(done, total)
            _move(temporary, folder)
    finally:
        shutil.rmtree(temporary)
    return dict(sizes)


@contextmanager
def _one_line_errors(archive: Path) -> Iterator[None]:
    """Convert the exceptions of a damaged archive into a ValueError of one line."""
    try:
        yield
    except DAMAGED as error:
        raise ValueError(f"{archive}: not unpacked: {' '.join(str(error).split())}") from None


def _iterate_tar(archive: Path, folder: Path | None) -> Iterator[tuple[str, int]]:
    """Yield path and size of each file in a tar archive; write the file below ``folder`` unless it is None."""
    with tarfile.open(archive) as content:
        for member in content:
            _check_name(member.name)
            if member.isdir():
                continue
            if not member.isreg():
                raise tarfile.TarError(f"{member.name!r} is not a regular file")
            source = content.extractfile(member)
            if folder and source:
                _write(source, folder / member.name)
            yield str(PurePosixPath(member.name)), member.size


def _iterate_zip(archive: Path, folder: Path | None) -> Iterator[tuple[str, int]]:
    """Yield path and size of each file in a zip archive; write the file below ``folder`` unless it is None."""
    with zipfile.ZipFile(archive) as content:
        for member in content.infolist():
            _check_name(member.filename)
            if member.is_dir():
                continue
            if stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG):
                raise zipfile.BadZipFile(f"{member.filename!r} is not a regular file")
            if folder:
                # zipfile reads no more bytes than the archive states, so a wrong size shows as a wrong checksum.
                _write(content.open(member), folder / member.filename)
            yield str(PurePosixPath(member.filename)), member.file_size


def _write(source: IO[bytes], target: Path) -> None:
    """Write a member as a regular file; ignore owner and permissions in the archive."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with source, target.open("wb") as sink:
        shutil.copyfileobj(source, sink, CHUNK)


def _check_name(name: str) -> None:
    """Check that the path of a member is inside the folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name:
        raise tarfile.TarError(f"the path {name!r} is outside the folder")


def _move(source: Path, target: Path) -> None:
    """Move the content of ``source`` into ``target``, merging folders and replacing files."""
    for entry in sorted(source.iterdir()):
        existing = target / entry.name
        if entry.is_dir() and existing.is_dir():
            _move(entry, existing)
        else:
            entry.replace(existing)
