"""Files behind each digest of code, so that a changed digest can be traced to the files that changed."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from saliency_assay.pipeline.code_digest import Code
from saliency_assay.runtime.atomic import replacing
from saliency_assay.runtime.project import ROOT
from saliency_assay.runtime.provenance import SOURCE

CODE_RECORD = Path(".snakemake/saliency_assay_code.jsonl")
LARGEST = 20_000_000
"""Size of the file in bytes above which its older half is deleted."""


class CodeRecord:
    """Digests of files by digest of code, in a file with one JSON object per line.

    Every plan adds the digests that it computes for the first time. A digest determines its files, so plans that run at
    the same time do not conflict.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with suppress(OSError):
            if path.stat().st_size > LARGEST:
                lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
                with replacing(path) as temporary:
                    temporary.write_text("".join(lines[len(lines) // 2 :]), encoding="utf-8")
        self._files = recorded_files(path)

    def add(self, code: Code) -> None:
        """Record the files of ``code``."""
        if code.digest not in self._files:
            files = {_name(path): digest[:16] for path, digest in code.files.items()}
            self._files[code.digest] = files
            # If this fails, a dry run only lacks the names of changed files.
            with suppress(OSError):
                self._path.parent.mkdir(exist_ok=True)
                with self._path.open("a", encoding="utf-8") as lines:
                    lines.write(f"{json.dumps({code.digest: files})}\n")

    def changed_files(self, old: str, new: str) -> list[str]:
        """Return the files whose code differs between two digests; empty if one of the digests is not recorded."""
        return changed_files(self._files.get(old, {}), self._files.get(new, {}))


def recorded_files(path: Path) -> dict[str, dict[str, str]]:
    """Return for each digest of code in the record at ``path`` the digests of its files; empty if it is unreadable."""
    files: dict[str, dict[str, str]] = {}
    with suppress(OSError):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            with suppress(ValueError):  # a line that another process is writing
                files.update(json.loads(line))
    return files


def changed_files(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the files whose digests differ; empty if one side is empty, which means that it is not recorded.

    Files that only one side contains are returned only if no common file differs: an edit that adds an import is in the
    importing file.
    """
    if not before or not now:
        return []
    edited = [path for path in before.keys() & now.keys() if before[path] != now[path]]
    return sorted(edited or before.keys() ^ now.keys())


def _name(path: Path) -> str:
    """Return the name of a file, the same in a checkout and in an installed package; others relative to the folder."""
    for folder in (SOURCE, ROOT):
        if path.is_relative_to(folder / "saliency_assay") or path.is_relative_to(folder / "workflow"):
            return str(path.relative_to(folder))
    return os.path.relpath(path)
