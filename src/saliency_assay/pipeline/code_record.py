"""Files behind each digest of code, so that a changed digest can be traced to the files that changed."""

import json
import os
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
        self._files: dict[str, dict[str, str]] = {}
        with suppress(OSError):
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
            if path.stat().st_size > LARGEST:
                lines = lines[len(lines) // 2 :]
                with replacing(path) as temporary:
                    temporary.write_text("".join(lines), encoding="utf-8")
            for line in lines:
                with suppress(ValueError):  # a line that another process is writing
                    self._files.update(json.loads(line))

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
        """Return the files whose code differs between two digests; empty if one of the digests is not recorded.

        Files that only one of them contains are returned only if no common file differs: an edit that adds an import is
        in the importing file.
        """
        before, now = self._files.get(old, {}), self._files.get(new, {})
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
