"""Download of public data into the data folder; run with ``python -m``, the module lists the available data."""

import json
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tqdm import tqdm

from saliency_assay.data.download.catalog import DOWNLOADS, Download, Remote
from saliency_assay.data.download.fetch import Patience, check, fetch
from saliency_assay.data.download.unpack import unpack
from saliency_assay.registry.records import unknown
from saliency_assay.runtime.atomic import replacing
from saliency_assay.runtime.job import print_anything

logger = logging.getLogger(__name__)

MIRROR = "SALIENCY_ASSAY_MIRROR"
"""Environment variable: address of a mirror, which serves a file as ``{name of the download}/{name of the file}``."""
RECEIPTS = "downloaded"
"""Subfolder of the data folder for partial files, archives that are not yet unpacked, and receipts."""

Receipt = dict[str, Any]


def obtain(
    download: Download, folder: Path, *, mirror: str = "", patience: Patience | None = None
) -> dict[str, Receipt]:
    """Fetch, verify and unpack all files of a download that do not exist yet.

    The receipt of a file records its address, size, SHA-256, expected checksum and the source of the checksum, and for
    an archive the files that it contained. While these exist with their sizes, the archive is not fetched again. An
    existing file that is not an archive is verified by its checksum.

    Args:
        download: data set or weights to fetch.
        folder: the data folder.
        mirror: address of a mirror; empty for the publisher's.
        patience: retry policy.

    Returns:
        The receipts by file name.

    Raises:
        ValueError: the download needs manual steps, or a file fails its verification.
        OSError: there is no network or too little free space.
    """
    if download.by_hand:
        raise ValueError(
            f"{download.name}: not fetched: {download.page}: {download.by_hand}; expected: {folder}/{download.layout}"
        )
    receipts = {}
    for remote in download.files:
        url = f"{mirror.rstrip('/')}/{download.name}/{remote.name}" if mirror else remote.url
        receipt_file = folder / RECEIPTS / download.name / f"{remote.name}.json"
        receipt = _read_receipt(receipt_file, remote, folder)
        receipts[remote.name] = receipt or _fetch_file(url, remote, folder, receipt_file, patience)
    return receipts


def _read_receipt(receipt_file: Path, remote: Remote, folder: Path) -> Receipt | None:
    """Return the receipt of an archive if it matches ``remote`` and all files of the archive exist, else None."""
    if not remote.archive or not receipt_file.is_file():
        return None
    receipt: Receipt = json.loads(receipt_file.read_text(encoding="utf-8"))
    target = folder / remote.to
    complete = receipt["checksum"] == remote.checksum and all(
        (target / path).is_file() and (target / path).stat().st_size == size
        for path, size in receipt["files"].items()
    )
    if not complete:
        return None
    logger.info("%s: all files of %s exist", target, remote.name)
    return receipt


def _fetch_file(
    url: str, remote: Remote, folder: Path, receipt_file: Path, patience: Patience | None
) -> Receipt:
    receipt_file.parent.mkdir(parents=True, exist_ok=True)
    file = receipt_file.parent / remote.name if remote.archive else folder / remote.to
    if file.is_file():
        sha256 = check(file, remote.size, remote.checksum)
        logger.info(
            "%s: exists, %s", file, "checksum verified" if remote.checksum else remote.checksum_source
        )
    else:
        with _progress_bar(remote.name) as report_progress:
            sha256 = fetch(
                url,
                file,
                size=remote.size,
                checksum=remote.checksum,
                patience=patience,
                progress=report_progress,
            )
        logger.info("%s: fetched from %s", file, url)
    receipt: Receipt = {
        "url": url,
        "bytes": file.stat().st_size,
        "sha256": sha256,
        "checksum": remote.checksum,
        "checksum_source": remote.checksum_source,
    }
    if remote.archive:
        with _progress_bar(f"unpacking {remote.name}") as report_progress:
            receipt["files"] = unpack(file, folder / remote.to, report_progress)
    # The receipt is written before the archive is deleted: an interruption in between costs no new download.
    with replacing(receipt_file) as temporary:
        temporary.write_text(json.dumps(receipt, indent=1), encoding="utf-8")
    if remote.archive:
        file.unlink()
    return receipt


@contextmanager
def _progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """Show progress in bytes, on the terminal or else as a line in the log every 30 seconds.

    Yield the callback for completed and total bytes.
    """
    terminal = sys.__stderr__
    live = terminal is not None and terminal.isatty()
    with tqdm(
        desc=label,
        unit="B",
        unit_scale=True,
        unit_divisor=1000,
        dynamic_ncols=live,
        mininterval=0.5 if live else 30.0,
        file=terminal if live else sys.stderr,
    ) as bar:

        def report_progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield report_progress


def by_name() -> Mapping[str, Download]:
    """Return all downloads by name."""
    return {download.name: download for download in DOWNLOADS}


def described(download: Download) -> str:
    """Return a description of several lines: title, page, license, layout, size and files."""
    size = f"{download.size / 1e6:,.0f} MB" if download.size else "unknown"
    lines = [
        f"{download.name}: {download.title}",
        f"  from    {download.page}",
        f"  terms   {download.license}",
        f"  layout  data/{download.layout}",
    ]
    if download.by_hand:
        return "\n".join([*lines, f"  not fetched: {download.by_hand}"])
    lines.append(f"  bytes   {size}")
    lines += [f"  file    {file.url}: {file.checksum or file.checksum_source}" for file in download.files]
    return "\n".join(lines)


if __name__ == "__main__":
    print_anything()
    downloads = by_name()
    for name in sys.argv[1:]:
        if name not in downloads:
            raise SystemExit(f"DATA: {unknown('download', name, downloads)}")
    print("\n".join(described(downloads[name]) for name in sys.argv[1:] or downloads))
