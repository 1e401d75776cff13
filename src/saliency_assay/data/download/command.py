"""Public data into the folders that configurations name; as a program, what there is: ``python -m`` this [name …]."""

import json
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tqdm import tqdm

from saliency_assay.data.download.catalogue import DOWNLOADS, Download, Remote
from saliency_assay.data.download.fetch import Patience, check, fetch
from saliency_assay.data.download.unpack import unpack
from saliency_assay.registry.records import unknown
from saliency_assay.runtime.atomic import replacing
from saliency_assay.runtime.job import print_anything

logger = logging.getLogger(__name__)

MIRROR = "SALIENCY_ASSAY_MIRROR"
"""Environment variable: an address that holds the files as ``{name of the download}/{name of the file}``."""
RECEIPTS = "downloaded"
"""Folder below the data folder: partial files, archives until they are unpacked, and what was fetched."""

Receipt = dict[str, Any]


def obtain(
    download: Download, folder: Path, *, mirror: str = "", patience: Patience | None = None
) -> dict[str, Receipt]:
    """Fetch, check and unpack all files of a download that are not there yet.

    Of each file a receipt is kept: where it came from, bytes, SHA-256, the checksum that it was held to and whose that
    is, and the files that it holds. While those are there in their sizes, an archive is not fetched again; a file that
    is no archive is checked whole.

    Args:
        download: what to fetch.
        folder: the data folder.
        mirror: where from, if not from the publisher.
        patience: when to give up.

    Returns:
        The receipts, by the name of the file.

    Raises:
        ValueError: it cannot be fetched without a person, or one of its files is not what it should be.
        OSError: no network, no room.
    """
    if download.by_hand:
        raise ValueError(
            f"{download.name}: not fetched: {download.page}: {download.by_hand}; expected: {folder}/{download.layout}"
        )
    receipts = {}
    for remote in download.files:
        url = f"{mirror.rstrip('/')}/{download.name}/{remote.name}" if mirror else remote.url
        kept = folder / RECEIPTS / download.name / f"{remote.name}.json"
        found = _known(kept, remote, folder)
        receipts[remote.name] = found or _fetched(url, remote, folder, kept, patience)
    return receipts


def _known(kept: Path, remote: Remote, folder: Path) -> Receipt | None:
    """The receipt of an archive, if it is of this one and all that it holds is there."""
    if not remote.archive or not kept.is_file():
        return None
    receipt: Receipt = json.loads(kept.read_text(encoding="utf-8"))
    top = folder / remote.to
    there = receipt["checksum"] == remote.checksum and all(
        (top / path).is_file() and (top / path).stat().st_size == size
        for path, size in receipt["files"].items()
    )
    if not there:
        return None
    logger.info("%s: %s is there, whole", top, remote.name)
    return receipt


def _fetched(url: str, remote: Remote, folder: Path, kept: Path, patience: Patience | None) -> Receipt:
    """Fetch one file, unless it is there, unpack it if it is an archive, and keep a receipt."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    file = kept.parent / remote.name if remote.archive else folder / remote.to
    if file.is_file():
        sha256 = check(file, remote.size, remote.checksum)
        logger.info("%s: is there, %s", file, "checked" if remote.checksum else remote.said_by)
    else:
        with _bar(remote.name) as told:
            sha256 = fetch(
                url, file, size=remote.size, checksum=remote.checksum, patience=patience, told=told
            )
        logger.info("%s: fetched from %s", file, url)
    receipt: Receipt = {
        "url": url,
        "bytes": file.stat().st_size,
        "sha256": sha256,
        "checksum": remote.checksum,
        "said_by": remote.said_by,
    }
    if remote.archive:
        with _bar(f"unpacking {remote.name}") as told:
            receipt["files"] = unpack(file, folder / remote.to, told)
    with replacing(kept) as temporary:
        temporary.write_text(json.dumps(receipt, indent=1), encoding="utf-8")
    if remote.archive:
        file.unlink()
    return receipt


@contextmanager
def _bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Bytes a second: live on a terminal, even where standard error is a log; else a line every half minute in it."""
    terminal = sys.__stderr__
    live = terminal is not None and terminal.isatty()
    with tqdm(
        desc=what,
        unit="B",
        unit_scale=True,
        unit_divisor=1000,
        dynamic_ncols=live,
        mininterval=0.5 if live else 30.0,
        file=terminal if live else sys.stderr,
    ) as bar:

        def told(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield told


def by_name() -> Mapping[str, Download]:
    """All downloads."""
    return {download.name: download for download in DOWNLOADS}


def described(download: Download) -> str:
    """A download in lines: what it is, from where, under which terms, how large, and where it goes."""
    size = f"{download.size / 1e6:,.0f} MB" if download.size else "not known"
    lines = [
        f"{download.name}: {download.title}",
        f"  from    {download.page}",
        f"  terms   {download.licence}",
        f"  layout  data/{download.layout}",
    ]
    if download.by_hand:
        return "\n".join([*lines, f"  not fetched: {download.by_hand}"])
    lines.append(f"  bytes   {size}")
    lines += [f"  file    {file.url}: {file.checksum or file.said_by}" for file in download.files]
    return "\n".join(lines)


if __name__ == "__main__":
    print_anything()
    known = by_name()
    for name in sys.argv[1:]:
        if name not in known:
            raise SystemExit(f"DATA: {unknown('download', name, known)}")
    print("\n".join(described(known[name]) for name in sys.argv[1:] or known))
