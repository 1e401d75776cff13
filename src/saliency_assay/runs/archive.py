"""Archives of runs, with which another machine continues them, or writes their reports, without the raw images."""

import filecmp
import json
import os
import shutil
import tarfile
from base64 import urlsafe_b64decode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

from saliency_assay import __version__
from saliency_assay.pipeline.code_record import CODE_RECORD
from saliency_assay.runs.code_used import METADATA, code_used
from saliency_assay.runs.prune import KINDS, parts_with, usage
from saliency_assay.runs.results_folder import (
    CONFIGURATION,
    RunError,
    open_results,
    read_configuration,
    read_json,
)
from saliency_assay.runtime.atomic import remove_leftovers, replacing, temporary_path
from saliency_assay.runtime.lock import NAME as LOCK
from saliency_assay.runtime.lock import acquire, release
from saliency_assay.runtime.project import RESULTS

MANIFEST = "saliency_assay_run.json"
"""First member of an archive: version, configuration, results folder and the kinds of results that are left out."""
STATES, IMPORT = "states", "saliency_assay_import"
OF_PACKAGE = ("saliency_assay/", "workflow/")


def export(configuration: Path, archive: Path, without: Sequence[str] = ()) -> str:
    """Write a run to a new tar file: results, Snakemake's records of them, the configuration and its own code.

    Images, weights and lists that the configuration names are not written; jobs that read them cannot run elsewhere.

    Args:
        configuration: the configuration file of the run; the working directory is that of the run.
        archive: path of the new file.
        without: kinds of results that are left out, see ``prune.KINDS``; states of unfinished jobs always are.

    Returns:
        One line with the path, the number of files and their size.

    Raises:
        ValueError: there are no results, a run uses them, the results folder is not in the working directory, a kind is
            unknown, or ``archive`` exists.
    """
    if unknown := [kind for kind in without if kind not in KINDS]:
        raise RunError(f"--without: found {unknown[0]!r}; valid: {', '.join(KINDS)}")
    if archive.exists():
        raise RunError(f"ARCHIVE: {archive} exists, expected a new file")
    content = read_configuration(configuration)
    results = Path(content.get("results") or RESULTS)
    if results.is_absolute() or ".." in results.parts:
        raise RunError(f"results: found {str(results)!r}, expected a folder in the working directory")
    run = open_results(results)
    own = _inside(configuration)
    if own is None:
        own = results / CONFIGURATION  # of the package, so it has no code of its own
        if not own.is_file():
            raise RunError(
                f"{configuration}: outside of the working directory, and the run has written no {own}"
            )
    lock = acquire(results)
    try:
        left_out = {
            file for kind, each in usage(results).items() if kind in (*without, STATES) for file in each.files
        }
        left_out |= {file for part in parts_with(results, left_out) for file in part.iterdir()}
        files = [file for file in sorted(results.rglob("*")) if file.is_file() and file not in left_out]
        files = [file for file in files if file.name != LOCK]
        files += [*_records(results), *_own_files(own, content, code_used(run).files)]
        if CODE_RECORD.is_file():
            files.append(CODE_RECORD)
        manifest = {"version": __version__, "configuration": str(own), "results": str(results)}
        with replacing(archive) as temporary, tarfile.open(temporary, "w", format=tarfile.PAX_FORMAT) as tar:
            _add_text(tar, MANIFEST, json.dumps({**manifest, "without": sorted({*without, STATES})}))
            for file in dict.fromkeys(files):
                tar.add(file, arcname=file.as_posix(), recursive=False)
    finally:
        release(lock, os.getpid())
    return f"{archive}: {len(files):,} files, {archive.stat().st_size / 1e6:,.1f} MB"


def import_run(archive: Path, folder: Path) -> str:
    """Unpack a run in ``folder``, which is created if it does not exist; return one line with the next command.

    Raises:
        ValueError: ``archive`` is not an archive of a run, or is incomplete, or the folder has such results, or another
            configuration or code of the same name. Nothing is written.
    """
    if not archive.is_file():
        raise RunError(f"ARCHIVE: found {str(archive)!r}, expected a file that exists")
    folder.mkdir(parents=True, exist_ok=True)
    remove_leftovers(folder / IMPORT)
    temporary = temporary_path(folder / IMPORT, "tmp")
    try:
        try:
            with tarfile.open(archive) as tar:
                tar.extractall(temporary, filter="data")
        except (tarfile.TarError, EOFError) as error:
            raise RunError(f"{archive}: not an archive of a run, or incomplete ({error})") from None
        facts = read_json(temporary / MANIFEST)
        if not {"configuration", "results"} <= facts.keys():
            raise RunError(
                f"{archive}: found no {MANIFEST}, expected a file that saliency-assay export wrote"
            )
        results = Path(str(facts["results"]))
        if results.is_absolute() or ".." in results.parts:
            raise RunError(f"{archive}: found results {str(results)!r}, expected a folder in the archive")
        others = [
            file for file in _files(temporary) if not file.is_relative_to(results) and file.name != MANIFEST
        ]
        if (folder / results).exists():
            raise RunError(f"{folder / results} exists; choose another --folder, or move it")
        for file in others:
            is_record = file.parts[0] == METADATA.parts[0]
            if (
                not is_record
                and (folder / file).exists()
                and not filecmp.cmp(folder / file, temporary / file, False)
            ):
                raise RunError(f"{folder / file} exists and differs; choose another --folder, or move it")
        (folder / results).parent.mkdir(parents=True, exist_ok=True)
        (temporary / results).rename(folder / results)
        for file in others:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            if file == CODE_RECORD and (folder / file).exists():
                text = (temporary / file).read_text(encoding="utf-8")
                with (folder / file).open("a", encoding="utf-8") as lines:
                    lines.write(text)
            else:
                (temporary / file).replace(folder / file)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return f"{folder}: unpacked; in this folder, write the report with: saliency-assay report {facts['configuration']}"


def _inside(file: Path) -> Path | None:
    """Return a path relative to the working directory; None if the file is not in it."""
    absolute = Path(os.path.normpath(file.absolute()))
    return absolute.relative_to(Path.cwd()) if absolute.is_relative_to(Path.cwd()) else None


def _records(results: Path) -> Iterator[Path]:
    """Yield Snakemake's records of the files in the results folder."""
    for record in sorted(METADATA.rglob("*")):
        with suppress(ValueError):  # of another version
            parts = (part.removeprefix("@") for part in record.relative_to(METADATA).parts)
            if record.is_file() and Path(urlsafe_b64decode("".join(parts)).decode()).is_relative_to(results):
                yield record


def _own_files(configuration: Path, content: Any, code: Mapping[str, Mapping[str, str]]) -> Iterator[Path]:
    """Yield the configuration, the modules of its functions with what they import, and the files of its entries."""
    yield configuration
    names = {name for files in code.values() for name in files if not name.startswith(OF_PACKAGE)}
    yield from (file for file in map(Path, sorted(names)) if _inside(file) and file.is_file())
    for files in _listed(content):
        yield from (file for name in files if (file := configuration.parent / name).is_file())


def _listed(content: Any) -> Iterator[list[str]]:
    """Yield the values of all keys ``files``."""
    if isinstance(content, Mapping):
        for key, value in content.items():
            if key == "files" and isinstance(value, list):
                yield list(map(str, value))
            else:
                yield from _listed(value)


def _add_text(tar: tarfile.TarFile, name: str, text: str) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(text.encode())
    tar.addfile(member, BytesIO(text.encode()))


def _files(folder: Path) -> list[Path]:
    return [file.relative_to(folder) for file in sorted(folder.rglob("*")) if file.is_file()]
