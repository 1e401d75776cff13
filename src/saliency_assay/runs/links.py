"""New folders with the files of results folders, by hard links where the file system has them.

Jobs delete their outputs before they write new ones, so a hard link to an old file keeps the old content. Files that
are written in place, logs and times of jobs, are copied.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from saliency_assay.runtime.atomic import remove_leftovers, temporary_path

WRITTEN_IN_PLACE = ("logs", "benchmarks")


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Yield a temporary folder, which is then renamed to ``target``, or deleted if the block raises an exception."""
    target.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(target)
    temporary = temporary_path(target, "tmp")
    try:
        temporary.mkdir()
        yield temporary
        temporary.rename(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def place(folder: Path, file: str, target: Path) -> bool:
    """Make ``target / file`` a hard link to ``folder / file``, or a copy; return True if it is a copy."""
    source, new = folder / file, target / file
    new.parent.mkdir(parents=True, exist_ok=True)
    if file.split("/")[0] not in WRITTEN_IN_PLACE:
        with suppress(OSError):  # of another file system, or one without hard links
            os.link(source, new)
            return False
    shutil.copy2(source, new)
    return True
