"""Records in the pictures of the documentation: program, version, date, and a digest of the code that a picture shows.

The program of a picture writes the record, and ``make lint`` compares its digest with that of the present code.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from zlib import crc32

from saliency_assay import __version__
from saliency_assay.methods import METHODS
from saliency_assay.pipeline.code_digest import code_of
from saliency_assay.registry.records import module_of
from saliency_assay.runtime.provenance import fingerprint
from tools.pages import DOCS
from tools.source_tree import PACKAGE, ROOT, Problem

IMAGES = DOCS / "images"
RECORD = re.compile(rb'\{"picture": \{.*?\}\}')
SCRIPTS = ROOT / "workflow/scripts"


@dataclass(frozen=True)
class Program:
    """Program that makes pictures, ``python -m tools.NAME``."""

    name: str
    pictures: tuple[Path, ...]
    roots: tuple[str, ...]
    """Modules and scripts whose code the pictures show; empty if the code is not compared."""
    shown: tuple[str, ...] = ()
    """Folders and endings of names of the modules, among those that the roots import, that count as shown."""
    needs: tuple[Path, ...] = ()
    """Files of a finished run from which the pictures are made."""
    command: str = ""
    """Command that writes them."""

    def digest(self) -> str:
        """Return the digest of the program and of the code that its pictures show; empty if it is not compared."""
        if not self.roots:
            return ""
        program = ROOT / f"tools/{self.name}.py"
        files = {**code_of(*self.roots).files, **code_of(str(program)).files}
        kept = {path: digest for path, digest in files.items() if path == program or self._is_shown(path)}
        return fingerprint(sorted([path.stem, digest] for path, digest in kept.items()))

    def _is_shown(self, path: Path) -> bool:
        if not path.is_relative_to(PACKAGE):
            return False
        inside = path.relative_to(PACKAGE)
        return inside.parts[0] in self.shown or inside.name.endswith(self.shown)


def _images(*names: str) -> tuple[Path, ...]:
    return tuple(IMAGES / name for name in names)


def _scripts(*names: str) -> tuple[str, ...]:
    return tuple(str(SCRIPTS / f"{name}.py") for name in names)


RESULTS = ROOT / "results"
STYLE = ("plot.py", "gallery.py", "palette.py", "style.py")
PROGRAMS = (
    Program(
        "report_pictures",
        (
            DOCS / "gallery.jpg",
            *_images(
                "overview.png",
                "trust.png",
                "heat_map.png",
                "reliability.png",
                "curves.png",
                "mcs.png",
                "enlarged_map.png",
                "gallery.png",
                "modes.png",
            ),
        ),
        _scripts(
            "overview", "summarize", "report", "plot_gallery", "plot_reliability", "plot_metric", "plot_bam"
        ),
        shown=("plotting", "report", "figures.py"),
        needs=(RESULTS / "report.html", RESULTS / "figures/bam/gallery.png"),
        command="make demo",
    ),
    Program(
        "method_pictures",
        _images(
            *(
                f"methods_{page}.png"
                for page in ("attention", "cam", "gradient", "path", "perturbation", "propagation")
            )
        ),
        ("saliency_assay.plot", *sorted({module_of(method.function) for method in METHODS})),
        shown=("methods", *STYLE),
        needs=(ROOT / "results_methods/maps/f_o/seed0/bam_os/gradient.zarr.zip",),
        command="make run CONFIG=config/methods.yaml",
    ),
    Program(
        "suite_sweeps",
        _images("suite_sweep_aopc.png", "suite_sweep_smoothgrad.png"),
        ("saliency_assay.plot",),
        shown=(*STYLE, "figures.py"),
    ),
    Program(
        "suite_picture",
        _images("coco.png"),
        ("saliency_assay.plot",),
        shown=STYLE,
    ),
    # Runs of an hour on images that a checkout lacks: the code is not compared.
    Program(
        "study_pictures",
        _images("imagenet_localization.svg"),
        (),
        needs=(ROOT / "results_imagenet_small/figures/localization/order.svg",),
        command="make run CONFIG=config/imagenet_small.yaml",
    ),
    Program(
        "study_pictures",
        _images("validity_cifar10.png"),
        (),
        needs=(ROOT / "results_validity_cifar10/figures/trust/validity.svg",),
        command="make run CONFIG=config/validity_cifar10.yaml",
    ),
)


def record_of(path: Path) -> dict[str, str]:
    """Return the record in a picture; empty without one."""
    match = RECORD.search(path.read_bytes())
    return dict(json.loads(match[0])["picture"]) if match else {}


def write_record(path: Path) -> None:
    """Write program, version, date and digest into a PNG, JPEG or SVG file, in place of an earlier record.

    Raises:
        ValueError: no program makes this picture.
    """
    program = next((each for each in PROGRAMS if path in each.pictures), None)
    if program is None:
        raise ValueError(
            f"{path}: found no program that makes this picture, expected one in tools.picture_records"
        )
    record = {
        "program": f"python -m tools.{program.name}",
        "version": __version__,
        "date": datetime.now(UTC).date().isoformat(),
        "code": program.digest(),
    }
    path.write_bytes(with_record(path.read_bytes(), json.dumps({"picture": record})))


def with_record(content: bytes, text: str) -> bytes:
    """Return the content of a PNG, JPEG or SVG file with a text that viewers do not show, in place of an earlier one.

    Raises:
        ValueError: another kind of file.
    """
    comment = text.encode("ascii")
    if content.startswith(b"\x89PNG"):
        content = b"".join(_without_records(content))
        body = b"tEXtComment\0" + comment
        chunk = (len(body) - 4).to_bytes(4, "big") + body + crc32(body).to_bytes(4, "big")
        start = 33  # after the signature and the header
    elif content.startswith(b"\xff\xd8"):
        if match := RECORD.search(content):
            content = content[: match.start() - 4] + content[match.end() :]
        chunk, start = b"\xff\xfe" + (len(comment) + 2).to_bytes(2, "big") + comment, 2
    elif (start := content.find(b"<svg")) >= 0:
        content = re.sub(rb"<!--" + RECORD.pattern + rb"-->", b"", content)
        chunk, start = b"<!--" + comment + b"-->", content.index(b">", start) + 1
    else:
        raise ValueError(f"found a file that begins with {content[:4]!r}, expected PNG, JPEG or SVG")
    return content[:start] + chunk + content[start:]


def _without_records(content: bytes) -> Iterator[bytes]:
    """Yield the signature and all chunks of a PNG file but those with a record."""
    yield content[:8]
    place = 8
    while place < len(content):
        end = place + 12 + int.from_bytes(content[place : place + 4], "big")
        if not (content[place + 4 : place + 8] == b"tEXt" and RECORD.search(content[place:end])):
            yield content[place:end]
        place = end


def check_pictures() -> Iterator[Problem]:
    """Check that all pictures in ``docs`` have a record, and that none is older than the code that it shows."""
    known = {path for program in PROGRAMS for path in program.pictures}
    files = {
        path
        for path in DOCS.rglob("*")
        if path.suffix in (".png", ".jpg", ".svg") and "theme" not in path.parts
    }
    for path in sorted(files - known):
        yield Problem(
            path, 1, "no program makes this picture; add one to PROGRAMS in tools/picture_records.py"
        )
    for program in PROGRAMS:
        present = program.digest()
        for path in program.pictures:
            if not path.is_file():
                yield Problem(path, 1, f"missing; run python -m tools.{program.name}")
            elif not (record := record_of(path)):
                yield Problem(
                    path, 1, f"no record of its version and code; run python -m tools.{program.name}"
                )
            elif record["code"] != present:
                first = f"{program.command}, then " if program.command else ""
                message = f"of {record['date']}, older than the code that it shows"
                yield Problem(path, 1, f"{message}; run {first}python -m tools.{program.name}")
