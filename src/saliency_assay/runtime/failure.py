"""Failures of methods and metrics, which their jobs record in place of their outputs.

A method or metric that raises an exception on its input has a result: the failure, with the message, the place and the
traceback. The job succeeds for Snakemake, and an edit of the code reruns it like any other job. Jobs that read a
failure pass it on (``runtime.job``).

A job fails instead, so that Snakemake tries it again and no false result is kept, if the cause may be its environment
(``is_recorded``), if it receives a signal or exits, or if it is one of several processes (``runtime.launch``), of which
the others only lose their connections.
"""

import json
import re
import struct
import traceback
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from saliency_assay.runtime.atomic import replacing

KEY = '{"saliency_assay_failure": '
"""Beginning of the JSON text of a failure, which is among the first ``START`` bytes of every file that records one."""
START = 128
NOT_RECORDED = (MemoryError, OSError)
ENVIRONMENT = re.compile(
    r"CUDA|cuDNN|CUBLAS|NCCL|NVIDIA|out of memory|not enough memory|allocate memory|killed by signal"
)
"""In the message of an error of a GPU, a driver, memory or a process that loads data."""
OPENING = ("runtime/", "storage/", "data/", "models/weights.py", "models/jobs.py")
"""Code of the package that opens inputs and devices: an error that is raised there, or by a library that is called
there, does not depend on the method or metric."""
PACKAGE = Path(__file__).parents[1]

_N, _FILE = "[^/]+", r"(?P<method>[^/.]+)\.[^/]+"
RESULTS_OF_METHODS = tuple(
    re.compile(f"(?:.*/)?{pattern}")
    for pattern in (
        f"(?:maps|costs)/{_N}/seed[0-9]+/{_N}/{_FILE}",
        f"(?:scores|curves)/(?P<metric>{_N})/{_N}/seed[0-9]+/{_N}/{_FILE}",
        f"scores/(?P<metric>bam|series|independence|parts)/{_N}/seed[0-9]+/{_FILE}",
        f"(?:scores/grid|aggatt)/{_N}/(?P<metric>{_N})/seed[0-9]+/{_FILE}",
        f"scores/validity/{_N}/(?P<metric>{_N})/seed[0-9]+/{_FILE}",
        f"(?:remask|scores/retrain)/{_N}/{_N}/(?P<method>{_N})/{_N}/seed[0-9]+[./].*",
    )
)
"""Paths of the results of a method in ``pipeline.paths.Paths``, with the metric or kind of scores."""


@dataclass(frozen=True)
class Failure:
    """An exception in a job of a method or metric; ``wildcards`` without those that are empty."""

    rule: str
    wildcards: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    """Error line."""
    place: str = ""
    """Line of code outside of installed packages, such as ``mine.py, line 3``."""
    traceback: str = ""


def is_of_method_or_metric(wildcards: Mapping[str, Any]) -> bool:
    """Return True for a job of one method, or of one metric: its model responses or fine-tuned model, not a figure."""
    return "method" in wildcards or ("metric" in wildcards and "figure" not in wildcards)


def is_recorded(error: BaseException) -> bool:
    """Return False if an exception, or the one that caused it, may be an error of the environment or of an input file.

    These are out of memory, errors of GPUs and drivers, ``OSError`` (such as a full disk or a missing file), and errors
    raised by the code that opens inputs and devices (``OPENING``).
    """
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    frames = [Path(frame.filename) for frame in traceback.extract_tb(error.__traceback__)]
    own = [frame.relative_to(PACKAGE).as_posix() for frame in frames if frame.is_relative_to(PACKAGE)]
    own = [name for name in own if name != "runtime/job.py"]  # whose frames surround the script
    return not (
        isinstance(error, NOT_RECORDED)
        or not isinstance(error, Exception)
        or ENVIRONMENT.search(f"{type(error).__name__}: {error}")
        or (own and own[-1].startswith(OPENING))
        or (cause is not None and not is_recorded(cause))
    )


def entry_of(path: str) -> tuple[str, str] | None:
    """Return method and metric of a result of a method; None for another file. Maps have an empty metric."""
    for pattern in RESULTS_OF_METHODS:
        if match := pattern.fullmatch(path):
            return match["method"], match.groupdict().get("metric") or ""
    return None


def read(path: Path) -> Failure | None:
    """Return the failure that is recorded in a file; None if it has other content or is missing."""
    try:
        with path.open("rb") as file:
            start = file.read(START)
            if KEY.encode() not in start:
                return None
            text = (start + file.read()).decode("latin-1")
    except OSError:
        return None
    content, _ = json.JSONDecoder().raw_decode(text, text.index(KEY))
    return Failure(**next(iter(content.values())))


def check(path: Path, error: type[ValueError] = ValueError) -> None:
    """Raise an ``error`` if a failure is recorded in place of a result."""
    if failure := read(path):
        raise error(f"{path}: not computed, because {failure.rule} failed: {failure.reason}")


def write(paths: Iterable[Path], failure: Failure, labels: Mapping[str, Any]) -> None:
    """Record a failure in each of ``paths``, in figures and pages as a valid file that tells what was not computed.

    ``labels`` are a ``registry.labels.Labels`` as plain data; those of methods and metrics are optional.
    """
    names = {
        kind: labels.get(f"{kind}s", {}).get(failure.wildcards[kind], failure.wildcards[kind])
        for kind in ("metric", "method")
        if kind in failure.wildcards
    }
    sentence = escape(f"Not computed: {' of '.join(names.values())}: {failure.reason}")
    text = f"{KEY}{json.dumps(asdict(failure))}}}"  # ASCII
    comment = "<!--{}-->".format(text.replace("--", r"-\u002d"))
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="900" height="40"><text x="8" y="25">{sentence}</text></svg>'
    html = f'<!DOCTYPE html>\n<meta charset="utf-8">\n<title>Not computed</title>\n<p>{sentence}</p>\n'
    contents = {
        ".svg": f"{comment}\n{svg}\n".encode(),
        ".html": f"{comment}\n{html}".encode(),
        ".png": _png(text),
    }
    for path in paths:
        with replacing(path) as temporary:
            temporary.write_bytes(contents.get(path.suffix, f"{text}\n".encode()))


def _png(text: str) -> bytes:
    """Return an image of one white pixel with a comment."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        )

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)  # width, height, 8 bits, gray
    chunks = [
        (b"IHDR", header),
        (b"tEXt", b"Comment\0" + text.encode()),
        (b"IDAT", zlib.compress(b"\0\xff")),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*each) for each in chunks)
