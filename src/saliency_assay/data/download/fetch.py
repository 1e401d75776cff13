"""One file over HTTP: it goes on where it was cut, is checked, and only then has its name."""

import fcntl
import hashlib
import http.client
import logging
import os
import re
import shutil
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from saliency_assay import __version__

logger = logging.getLogger(__name__)

CHUNK = 1 << 20
_AGAIN = {408, 425, 429, 500, 502, 503, 504}
"""Status codes that may go away by themselves (RFC 9110, RFC 6585)."""


@dataclass(frozen=True)
class Patience:
    """How long to try: so many times in a row without a new byte, waiting 1, 2, 4, … times ``wait`` seconds."""

    attempts: int = 6
    wait: float = 1.0
    timeout: float = 60.0


class _CutError(Exception):
    """An attempt ended early; what has come is kept."""


def fetch(
    url: str,
    file: Path,
    *,
    size: int = 0,
    checksum: str = "",
    patience: Patience | None = None,
    told: Callable[[int, int], None] = lambda done, total: None,
) -> str:
    """Fetch ``url`` to ``file`` and return its SHA-256 (hex).

    Bytes go to ``file`` with ``.part`` added, beside a note of the server's version of the file (its ETag, or else the
    time it was changed). An interrupted download goes on from there while that version stands, and begins anew when
    the server has another one or does not know ranges.

    Args:
        url: http or https.
        file: where to; nothing stands there until all is checked.
        size: bytes, 0 if unknown; then the server must say.
        checksum: ``md5:…`` or ``sha256:…``; empty if none is known.
        patience: when to give up.
        told: called with the bytes that are here and the bytes in all (0 if unknown) after each MiB.

    Raises:
        ValueError: another size or checksum than expected (what has come is removed), no such file on the server, not
            an HTTP address, or no end to failures.
        BlockingIOError: another process fetches the same file.
        OSError: too little free space, told before the first byte where the size is known.
    """
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise ValueError(f"{url}: expected an address that begins with http:// or https://")
    patience = patience or Patience()
    file.parent.mkdir(parents=True, exist_ok=True)
    part, note = (file.with_name(file.name + ending) for ending in (".part", ".part.version"))
    with _alone(part) as stream:
        failures = 0
        while True:
            before = _length(stream)
            try:
                _attempt(url, stream, note, size, patience.timeout, told)
                break
            except _CutError as error:
                reason = str(error)
                failures = 1 if _length(stream) > before else failures + 1
                if failures >= patience.attempts:
                    kept = f"{_length(stream)} bytes are kept, and the next attempt goes on from there"
                    raise ValueError(f"{url}: gave up after {failures} attempts: {reason}; {kept}") from None
                logger.info("%s: %s; trying again", url, reason)
                time.sleep(patience.wait * 2 ** (failures - 1))
        sha256, problem = _check(part, checksum)
        if problem:
            part.unlink()
            note.unlink(missing_ok=True)
            raise ValueError(f"{url}: {problem}; what came is removed")
        part.replace(file)
        note.unlink(missing_ok=True)
    return sha256


def check(file: Path, size: int, checksum: str) -> str:
    """SHA-256 (hex) of a file that is there already.

    Raises:
        ValueError: it is not what ``size`` (unless 0) and ``checksum`` (unless empty) say.
    """
    found = file.stat().st_size
    if size and found != size:
        raise ValueError(f"{file}: found {found} bytes, expected {size}; move it away to have it fetched")
    sha256, problem = _check(file, checksum)
    if problem:
        raise ValueError(f"{file}: {problem}; move it away to have it fetched")
    return sha256


def need_space(folder: Path, needed: int) -> None:
    """That there is room for ``needed`` more bytes in ``folder``.

    Raises:
        OSError: there is not.
    """
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise OSError(f"{folder}: {needed} more bytes are needed, {free} are free")


@contextmanager
def _alone(part: Path) -> Iterator[IO[bytes]]:
    """The partial file, which no other process writes meanwhile."""
    with part.open("ab+") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BlockingIOError(f"{part}: another process fetches this file") from None
        yield stream


def _attempt(
    url: str, stream: IO[bytes], note: Path, size: int, timeout: float, told: Callable[[int, int], None]
) -> None:
    """Fetch what is missing; return when all is there."""
    have = _length(stream)
    version = note.read_text(encoding="utf-8") if note.is_file() else ""
    if have and not version:
        stream.truncate(0)
        have = 0
    if size and have == size:
        return
    response = _asked(url, have, version, timeout)
    if response is None:  # nothing beyond what is here, which is all of it or of no use
        stream.truncate(0)
        raise _CutError("the server has no such range")
    with response:
        begin, total = _announced(response)
        if begin != have:
            stream.truncate(0)
            if begin:
                raise _CutError(f"the server sent bytes from {begin}, asked for those from {have}")
            have = 0
        if size and total and total != size:
            raise ValueError(f"{url}: the server has {total} bytes, expected {size}")
        total = total or size
        if not total:
            raise ValueError(f"{url}: the server does not say how many bytes there are")
        note.write_text(_version(response), encoding="utf-8")
        need_space(note.parent, total - have)
        while have < total and (chunk := _read(response, min(CHUNK, total - have))):
            stream.write(chunk)
            stream.flush()
            have += len(chunk)
            told(have, total)
        if have < total:
            raise _CutError(f"the connection ended after {have} of {total} bytes")


def _asked(url: str, have: int, version: str, timeout: float) -> http.client.HTTPResponse | None:
    """The server's answer to a request for all from byte ``have`` on; None if it has nothing there."""
    headers = {"User-Agent": f"saliency-assay/{__version__}", "Accept-Encoding": "identity"}
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": version}
    try:
        response = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=timeout)
    except urllib.error.HTTPError as error:
        error.close()
        said = f"the server says {error.code} {error.reason}"
        if error.code == 416:
            return None
        if error.code in _AGAIN:
            raise _CutError(said) from None
        raise ValueError(f"{url}: {said}") from None
    except (OSError, http.client.HTTPException) as error:
        raise _CutError(_reason(error)) from None
    answer: http.client.HTTPResponse = response
    return answer


def _read(response: http.client.HTTPResponse, size: int) -> bytes:
    try:
        return response.read(size)
    except (OSError, http.client.HTTPException) as error:
        raise _CutError(_reason(error)) from None


def _announced(response: http.client.HTTPResponse) -> tuple[int, int]:
    """First byte that this response holds, and bytes of the whole file (0 if unknown)."""
    if response.status == 206:
        found = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
        if not found:
            raise _CutError("the server sent a part and does not say which")
        return int(found[1]), int(found[2]) if found[2] != "*" else 0
    length = response.headers.get("Content-Length", "")
    return 0, int(length) if length.isdecimal() else 0


def _version(response: http.client.HTTPResponse) -> str:
    """What names the server's version of the file in If-Range; weak ETags must not stand there (RFC 9110, 13.1.5)."""
    etag = response.headers.get("ETag", "")
    return etag if etag.startswith('"') else response.headers.get("Last-Modified", "")


def _length(stream: IO[bytes]) -> int:
    return os.fstat(stream.fileno()).st_size


def _reason(error: Exception) -> str:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    return " ".join(str(cause).split()) or type(cause).__name__


def _check(file: Path, checksum: str) -> tuple[str, str]:
    """SHA-256 of a file, and what is wrong with it, if anything is."""
    kind, _, expected = checksum.partition(":")
    digests = {"sha256": hashlib.sha256()}
    if kind and kind not in digests:
        digests[kind] = hashlib.new(kind, usedforsecurity=False)
    with file.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            for digest in digests.values():
                digest.update(chunk)
    found = digests[kind].hexdigest() if kind else ""
    problem = "" if found == expected else f"found {kind.upper()} {found}, expected {expected}"
    return digests["sha256"].hexdigest(), problem
