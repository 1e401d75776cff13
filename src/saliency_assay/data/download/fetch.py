"""Resumable, checksum-verified download of one file over HTTP."""

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
_RETRYABLE = {408, 425, 429, 500, 502, 503, 504}
"""HTTP status codes of temporary errors (RFC 9110, RFC 6585)."""


@dataclass(frozen=True)
class Patience:
    """Retry policy: at most ``attempts`` consecutive attempts without a new byte.

    The pauses between them are 1, 2, 4, … times ``wait`` seconds. ``timeout`` is that of the connection, in seconds.
    """

    attempts: int = 6
    wait: float = 1.0
    timeout: float = 60.0


class _IncompleteError(Exception):
    """Error of an attempt that may be retried; the bytes received so far are kept."""


def fetch(
    url: str,
    file: Path,
    *,
    size: int = 0,
    checksum: str = "",
    patience: Patience | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> str:
    """Fetch ``url`` to ``file`` and return its SHA-256 (hex).

    Bytes are written to ``file`` with the suffix ``.part``. A second file records the version of the server's file: its
    ETag or, without one, its modification time. An interrupted download is resumed if the version is unchanged, and
    restarted if it has changed or the server does not support ranges.

    Args:
        url: address with http or https.
        file: target; it is created only after size and checksum are verified.
        size: expected size in bytes; 0 if unknown, in which case the server must report it.
        checksum: ``md5:…`` or ``sha256:…``; empty if unknown.
        patience: retry policy.
        progress: callback, called after each MiB with the number of received bytes and the total.

    Raises:
        ValueError: size or checksum differ from the expected ones (the received bytes are then deleted), the server
            does not have the file, the address is not HTTP, or all attempts failed.
        BlockingIOError: another process is downloading the same file.
        OSError: there is too little free space, checked before the first byte.
    """
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise ValueError(f"{url}: expected an address that begins with http:// or https://")
    patience = patience or Patience()
    file.parent.mkdir(parents=True, exist_ok=True)
    partial_file, version_file = (file.with_name(file.name + suffix) for suffix in (".part", ".part.version"))
    with _open_exclusively(partial_file) as stream:
        failures = 0
        while True:
            length_before = _length(stream)
            try:
                _try_fetch(url, stream, version_file, size, patience.timeout, progress)
                break
            except _IncompleteError as error:
                reason = str(error)
                # Slow progress is no failure: an attempt that added bytes restarts the count.
                failures = 1 if _length(stream) > length_before else failures + 1
                if failures >= patience.attempts:
                    hint = f"{_length(stream)} bytes are kept, and the next download resumes from there"
                    raise ValueError(f"{url}: gave up after {failures} attempts: {reason}; {hint}") from None
                logger.info("%s: %s; retrying", url, reason)
                time.sleep(patience.wait * 2 ** (failures - 1))
        sha256, problem = _compute_digests(partial_file, checksum)
        if problem:
            partial_file.unlink()
            version_file.unlink(missing_ok=True)
            raise ValueError(f"{url}: {problem}; the downloaded bytes are deleted")
        partial_file.replace(file)
        version_file.unlink(missing_ok=True)
    return sha256


def check(file: Path, size: int, checksum: str) -> str:
    """Check an existing file and return its SHA-256 (hex).

    Raises:
        ValueError: the file does not have the ``size`` (unless 0) or the ``checksum`` (unless empty).
    """
    actual = file.stat().st_size
    if size and actual != size:
        raise ValueError(
            f"{file}: found {actual} bytes, expected {size}; delete or move it to download it again"
        )
    sha256, problem = _compute_digests(file, checksum)
    if problem:
        raise ValueError(f"{file}: {problem}; delete or move it to download it again")
    return sha256


def need_space(folder: Path, needed: int) -> None:
    """Check that ``needed`` more bytes fit on the disk of ``folder``.

    Raises:
        OSError: there is too little free space.
    """
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise OSError(f"{folder}: {needed} more bytes are needed, {free} are free")


@contextmanager
def _open_exclusively(partial_file: Path) -> Iterator[IO[bytes]]:
    """Open the partial file and lock it against other processes."""
    with partial_file.open("ab+") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BlockingIOError(f"{partial_file}: another process is downloading this file") from None
        yield stream


def _try_fetch(
    url: str,
    stream: IO[bytes],
    version_file: Path,
    size: int,
    timeout: float,
    progress: Callable[[int, int], None],
) -> None:
    received = _length(stream)
    version = version_file.read_text(encoding="utf-8") if version_file.is_file() else ""
    # Without a version, the server's file may have changed since the first bytes were received.
    if received and not version:
        stream.truncate(0)
        received = 0
    if size and received == size:
        return
    response = _request(url, received, version, timeout)
    if response is None:  # the server has no bytes after those received, so these may be invalid
        stream.truncate(0)
        raise _IncompleteError("the server has no such range")
    with response:
        start, total = _parse_range(response)
        if start != received:
            stream.truncate(0)
            if start:
                raise _IncompleteError(f"the server sent bytes from {start}, expected from {received}")
            received = 0
        if size and total and total != size:
            raise ValueError(f"{url}: the server has {total} bytes, expected {size}")
        total = total or size
        if not total:
            raise ValueError(f"{url}: the server does not report the size of the file")
        version_file.write_text(_version(response), encoding="utf-8")
        need_space(version_file.parent, total - received)
        while received < total and (chunk := _read(response, min(CHUNK, total - received))):
            stream.write(chunk)
            stream.flush()
            received += len(chunk)
            progress(received, total)
        if received < total:
            raise _IncompleteError(f"the connection ended after {received} of {total} bytes")


def _request(url: str, start: int, version: str, timeout: float) -> http.client.HTTPResponse | None:
    """Request the file from byte ``start`` on and return the response; None if the server has no such range."""
    headers = {"User-Agent": f"saliency-assay/{__version__}", "Accept-Encoding": "identity"}
    if start:
        headers |= {"Range": f"bytes={start}-", "If-Range": version}
    try:
        response = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=timeout)
    except urllib.error.HTTPError as error:
        error.close()
        message = f"the server returned {error.code} {error.reason}"
        if error.code == 416:
            return None
        if error.code in _RETRYABLE:
            raise _IncompleteError(message) from None
        raise ValueError(f"{url}: {message}") from None
    except (OSError, http.client.HTTPException) as error:
        raise _IncompleteError(_describe(error)) from None
    typed_response: http.client.HTTPResponse = response
    return typed_response


def _read(response: http.client.HTTPResponse, size: int) -> bytes:
    try:
        return response.read(size)
    except (OSError, http.client.HTTPException) as error:
        raise _IncompleteError(_describe(error)) from None


def _parse_range(response: http.client.HTTPResponse) -> tuple[int, int]:
    """Return the first byte of this response, and the size of the complete file (0 if unknown)."""
    if response.status == 206:
        match = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
        if not match:
            raise _IncompleteError("the server sent a range without a valid Content-Range header")
        return int(match[1]), int(match[2]) if match[2] != "*" else 0
    length = response.headers.get("Content-Length", "")
    return 0, int(length) if length.isdecimal() else 0


def _version(response: http.client.HTTPResponse) -> str:
    """Return the version of the server's file for If-Range, where a weak ETag is not allowed (RFC 9110, 13.1.5)."""
    etag = response.headers.get("ETag", "")
    return etag if etag.startswith('"') else response.headers.get("Last-Modified", "")


def _length(stream: IO[bytes]) -> int:
    return os.fstat(stream.fileno()).st_size


def _describe(error: Exception) -> str:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    return " ".join(str(cause).split()) or type(cause).__name__


def _compute_digests(file: Path, checksum: str) -> tuple[str, str]:
    """Return the SHA-256 of a file, and a description of the mismatch with ``checksum``, empty if they agree."""
    kind, _, expected = checksum.partition(":")
    digests = {"sha256": hashlib.sha256()}
    if kind and kind not in digests:
        digests[kind] = hashlib.new(kind, usedforsecurity=False)
    with file.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            for digest in digests.values():
                digest.update(chunk)
    actual = digests[kind].hexdigest() if kind else ""
    problem = "" if actual == expected else f"found {kind.upper()} {actual}, expected {expected}"
    return digests["sha256"].hexdigest(), problem
