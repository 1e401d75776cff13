"""Digests of the user's files, cached so that an unchanged file is read only once.

Results depend on the content of a file and not on its date: ``mv``, ``cp -p`` and ``rsync`` can replace a file with an
older one, and ``touch`` or a new checkout gives an unchanged file a new date.
"""

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from saliency_assay.runtime.atomic import replacing
from saliency_assay.runtime.provenance import digest_of_file, fingerprint

SETTLED = 2_000_000_000  # ns; a file changed more recently may change again within the same time stamp


class FileDigests:
    """SHA-256 of files by path, cached in a JSON file.

    A digest is computed again if the size, the times or the inode of its file have changed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stored = self._read()
        # Digests computed by this process. A plan is consistent: it uses the content of each file at its first use.
        self._computed: dict[str, str] = {}

    def of(self, file: Path) -> str:
        """Return the SHA-256 (hex) of a file's bytes; an empty string if the file does not exist.

        That of a folder, such as a Zarr array, is the digest of the names and digests of its files.
        """
        if file.is_dir():
            files = sorted(path for path in file.rglob("*") if path.is_file())
            return fingerprint([[path.relative_to(file).as_posix(), self.of(path)] for path in files])
        try:
            state = file.stat()
        except OSError:
            return ""
        key = str(file.absolute())
        status = [state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino]
        entry = self._stored.get(key)
        if isinstance(entry, list) and entry[:-1] == status:
            return str(entry[-1])
        if key not in self._computed:
            self._computed[key] = digest_of_file(file)
            if time.time_ns() - max(state.st_mtime_ns, state.st_ctime_ns) > SETTLED:
                self._stored[key] = [*status, self._computed[key]]
                self._write()
        return self._computed[key]

    def of_all(self, files: Sequence[str | Path]) -> list[list[str]]:
        """Return name and SHA-256 of each file, in order."""
        return [[Path(file).name, self.of(Path(file))] for file in files]

    def _read(self) -> dict[str, object]:
        """Return the cached digests of earlier runs; none if the cache is unreadable, as they can be recomputed."""
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}

    def _write(self) -> None:
        """Write the cache. Concurrent processes may overwrite each other's digests, which are then recomputed."""
        # If the cache cannot be written, the next process reads the files again.
        with suppress(OSError), replacing(self.path) as temporary:
            temporary.write_text(json.dumps(self._stored), encoding="utf-8")
