"""Digests of files that a user names, kept so that an unchanged file is read once.

Results depend on what a file holds, not on its date: ``mv``, ``cp -p``, and ``rsync`` put an older file in the place of
a newer one, and ``touch`` or a new checkout makes an unchanged one newer.
"""

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from saliency_assay.runtime.atomic import replacing
from saliency_assay.runtime.provenance import digest_of_file

SETTLED = 2_000_000_000  # ns; a file as young as this may change again without another time


class FileDigests:
    """SHA-256 of files by path, kept in a JSON file.

    A digest is taken again when the size, the times, or the inode of its file differ.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known = self._read()
        # Read by this process: a plan is of the files as they are when it first needs them.
        self._fresh: dict[str, str] = {}

    def of(self, file: Path) -> str:
        """Return the SHA-256 (hex) of a file's bytes; an empty text if there is no such file."""
        try:
            state = file.stat()
        except OSError:
            return ""
        key = str(file.absolute())
        marks = [state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino]
        known = self._known.get(key)
        if isinstance(known, list) and known[:-1] == marks:
            return str(known[-1])
        if key not in self._fresh:
            self._fresh[key] = digest_of_file(file)
            if time.time_ns() - max(state.st_mtime_ns, state.st_ctime_ns) > SETTLED:
                self._known[key] = [*marks, self._fresh[key]]
                self._write()
        return self._fresh[key]

    def of_all(self, files: Sequence[str | Path]) -> list[list[str]]:
        """Return the name and the SHA-256 of each file, in their order."""
        return [[Path(file).name, self.of(Path(file))] for file in files]

    def _read(self) -> dict[str, object]:
        """Return what an earlier run kept; nothing if that cannot be read, for it can be computed again."""
        try:
            kept = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return kept if isinstance(kept, dict) else {}

    def _write(self) -> None:
        """Keep the digests. Several processes may, each of its own; what is lost is computed again."""
        # Where it cannot be written, files are read anew.
        with suppress(OSError), replacing(self.path) as temporary:
            temporary.write_text(json.dumps(self._known), encoding="utf-8")
