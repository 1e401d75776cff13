"""The user's files: their digests, and what earlier runs saw of files that are gone.

Results depend on the content of a file and not on its date: ``mv``, ``cp -p`` and ``rsync`` can replace a file with an
older one, and ``touch`` or a new checkout gives an unchanged file a new date. A run whose results were moved to a
machine without the data still has the settings of the jobs that read them, because their digests are kept.
"""

import json
import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from saliency_assay.runtime.atomic import replacing
from saliency_assay.runtime.provenance import digest_of_file, fingerprint

T = TypeVar("T")

SETTLED = 2_000_000_000  # ns; a file changed more recently may change again within the same time stamp


@dataclass(frozen=True)
class Source:
    """A file or folder of the user that jobs read."""

    place: str
    """Place of its path in the configuration, for messages."""
    path: str
    is_folder: bool = False
    is_tracked: bool = True
    """False if a change of its content reruns nothing, as for folders of images."""
    expected: str = ""
    """Valid values, if these are not just an existing file or folder."""

    @property
    def exists(self) -> bool:
        """True if there is such a file or folder."""
        return Path(self.path).is_dir() if self.is_folder else Path(self.path).is_file()

    @property
    def problem(self) -> str:
        """Error line if it is not valid; for a relative path that does not exist, with the absolute one."""
        expected = self.expected or f"a {'folder' if self.is_folder else 'file'} that exists"
        path = Path(self.path)
        tried = "" if self.exists or path.is_absolute() else f" (tried {path.absolute()})"
        return f"{self.place}: found {self.path!r}, expected {expected}{tried}"


class UserFiles:
    """Digests of files and folders, and values read from them, by path; kept in a JSON file.

    A digest is computed again if the size, the times or the inode of its file have changed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.gone: list[Source] = []
        """Sources that ``is_known`` only knows from earlier."""
        self.requested: dict[Source, None] = {}
        """Arguments of ``of_all``."""
        self._known = self._read()
        self._is_changed = False
        # Digests computed by this process. A plan is consistent: it uses the content of each file at its first use.
        self._computed: dict[str, str] = {}

    def of(self, file: Path) -> str:
        """Return the SHA-256 (hex) of a file's bytes, or for a folder that of the names and digests of its files.

        For a path that does not exist, it is the last known digest, or an empty string if there is none.
        """
        if file.is_dir():
            files = sorted(path for path in file.rglob("*") if path.is_file())
            digest = fingerprint([[path.relative_to(file).as_posix(), self.of(path)] for path in files])
            self._set(file, digest=digest)
            return digest
        known, key = self._known.get(_key(file), {}), str(file.absolute())
        try:
            state = file.stat()
        except OSError:
            return str(known.get("digest", ""))
        status = [state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino]
        if known.get("status") == status:
            return str(known["digest"])
        if key not in self._computed:
            self._computed[key] = digest_of_file(file)
            is_settled = time.time_ns() - max(state.st_mtime_ns, state.st_ctime_ns) > SETTLED
            self._set(file, status=status if is_settled else [], digest=self._computed[key])
        return self._computed[key]

    def of_all(self, sources: Iterable[Source]) -> list[list[str]]:
        """Return name and digest of each of the ``sources`` that is tracked, in order."""
        sources = list(sources)
        self.requested |= dict.fromkeys(sources)
        digests = [[Path(each.path).name, self.of(Path(each.path))] for each in sources if each.is_tracked]
        self.save()
        return digests

    def recall(self, name: str, path: str, read: Callable[[], T], default: T) -> T:
        """Return what ``read`` returns of an existing ``path``, or else what it returned last; ``default`` if never.

        ``name`` is that of the value, which is plain JSON. ``save`` stores it.
        """
        if not Path(path).exists():
            value: T = self._known.get(_key(Path(path)), {}).get(name, default)
            return value
        value = read()
        self._set(Path(path), **{name: value})
        return value

    def matching(self, folder: str, pattern: str) -> list[str]:
        """Return the paths of the files in a folder that match ``pattern``, sorted; ``recall`` them if it is gone."""
        none: list[str] = []
        return self.recall(pattern, folder, lambda: sorted(map(str, Path(folder).glob(pattern))), none)

    def is_known(self, source: Source) -> bool:
        """Return True if a source exists, which ``save`` stores, or existed earlier."""
        if source.exists:
            self._set(Path(source.path))
            return True
        self.gone.append(source)
        return _key(Path(source.path)) in self._known

    def save(self) -> None:
        """Write what has changed. Concurrent processes may overwrite each other's values, which are then read again."""
        if self._is_changed:
            self._known, self._is_changed = {**self._read(), **self._known}, False
            # If this fails, the next process reads the files again.
            with suppress(OSError), replacing(self.path) as temporary:
                temporary.write_text(json.dumps(self._known), encoding="utf-8")

    def _set(self, path: Path, **values: Any) -> None:
        known = self._known.get(_key(path))
        if known is None or known != {**known, **values}:
            self._known[_key(path)] = {**(known or {}), **values}
            self._is_changed = True

    def _read(self) -> dict[str, dict[str, Any]]:
        """Return what earlier runs have stored; nothing if it is unreadable."""
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        items = content.items() if isinstance(content, dict) else ()
        return {path: known for path, known in items if isinstance(known, dict)}


def _key(path: Path) -> str:
    """Return a path relative to the working directory if it is inside, so that a moved folder of a run is known."""
    normal, folder = Path(os.path.normpath(path)), Path.cwd()
    return str(normal.relative_to(folder) if normal.is_relative_to(folder) else normal)
