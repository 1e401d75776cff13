"""Image files recognized by their content, wherever they lie."""

from pathlib import Path

from saliency_assay.runtime.provenance import digest_of_file


class KnownFiles:
    """Files seen so far; a file is read only if one of the same size has been seen."""

    def __init__(self) -> None:
        self._first: dict[Path, Path] = {}
        self._by_size: dict[int, list[Path]] = {}
        self._digests: dict[Path, str] = {}

    def first(self, path: Path) -> Path:
        """Return the first file seen that has the content of the file ``path``, which may be that file itself.

        A path where there is no file is equal to itself only.
        """
        if path not in self._first:
            self._first[path] = self._search(path) if path.is_file() else path
        return self._first[path]

    def _search(self, path: Path) -> Path:
        of_this_size = self._by_size.setdefault(path.stat().st_size, [])
        for other in of_this_size:
            if self._digest(other) == self._digest(path):
                return other
        of_this_size.append(path)
        return path

    def _digest(self, path: Path) -> str:
        if path not in self._digests:
            self._digests[path] = digest_of_file(path)
        return self._digests[path]
