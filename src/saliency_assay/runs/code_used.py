"""Digests of the code that computed each result, and the files behind them.

Snakemake's records in the working directory have the settings of the last job of each result. ``keep`` copies what
``compare`` needs of them, because a rerun replaces them.
"""

import ast
import json
from base64 import urlsafe_b64decode
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from saliency_assay.pipeline.code_record import CODE_RECORD, changed_files, recorded_files
from saliency_assay.runs.results_folder import Results, read_json
from saliency_assay.runtime.atomic import replacing

KEPT_CODE = Path(".state/code.json")
"""In a kept folder, the digest of code of each result, and the digests of the files of each digest."""
METADATA = Path(".snakemake/metadata")
RESULTS_OF_CODE = ("data", "models", "maps", "responses", "scores", "tables")
"""Folders of results whose code is compared; the others only show these results."""
UNKNOWN = "files that the runs did not record"


@dataclass(frozen=True)
class CodeUsed:
    """Code of a run as far as it is recorded."""

    results: dict[str, str]
    """Digest of the code that computed each result, by path."""
    files: dict[str, dict[str, str]]
    """Digests of the files of each digest of code."""


def code_changes(old: Results, new: Results) -> dict[str, int]:
    """Return the names of the files of code that changed, with the number of results of both runs that they computed.

    The most frequent ones are first.
    """
    before, now = code_used(old), code_used(new)
    files = before.files | now.files
    pairs = Counter(
        (digest, now.results[result])
        for result, digest in before.results.items()
        if now.results.get(result, digest) != digest
    )
    changes = Counter[str]()
    for (one, other), count in pairs.items():
        for name in changed_files(files.get(one, {}), files.get(other, {})) or [UNKNOWN]:
            changes[name] += count
    return dict(changes.most_common())


def code_used(run: Results) -> CodeUsed:
    """Return the code of the results, from the stores, from Snakemake's records and from what ``keep_code`` wrote.

    The records are those of the working directory and of the folders above the results.
    """
    folder, kept = run.folder.resolve(), read_json(run.folder / KEPT_CODE)
    code, files = dict(kept.get("results", {})), dict(kept.get("files", {}))
    for directory in dict.fromkeys([Path.cwd(), *folder.parents]):
        code |= _snakemake_records(directory, folder)
        files |= recorded_files(directory / CODE_RECORD)
    stores = {**run.maps, **{f"data/{name}.zarr.zip": store for name, store in run.data.items()}}
    code |= {file: store.get("provenance", {}).get("code", "") for file, store in stores.items()}
    return CodeUsed({file: digest for file, digest in code.items() if digest}, files)


def keep_code(runs: Iterable[Results], target: Path) -> None:
    """Write the code of the results of ``runs`` to the folder ``target``."""
    used = list(map(code_used, runs))
    results = {file: digest for of_run in used for file, digest in of_run.results.items()}
    files = {
        digest: of_run.files[digest]
        for of_run in used
        for digest in of_run.results.values()
        if digest in of_run.files
    }
    with replacing(target / KEPT_CODE) as temporary:
        temporary.write_text(json.dumps({"results": results, "files": files}), encoding="utf-8")


def _snakemake_records(directory: Path, results: Path) -> dict[str, str]:
    """Return the digest of the code of each result in the folder ``results`` from a working directory's records."""
    code = dict[str, str]()
    settings = cache(_settings)
    for record in (directory / METADATA).rglob("*"):
        with suppress(
            OSError, ValueError, TypeError, KeyError, SyntaxError
        ):  # of another version, or being written
            encoded = "".join(
                part.removeprefix("@") for part in record.relative_to(directory / METADATA).parts
            )
            file = directory / urlsafe_b64decode(encoded).decode()
            name = file.relative_to(results).as_posix()
            if name.split("/")[0] in RESULTS_OF_CODE and record.is_file():
                for text in json.loads(record.read_text(encoding="utf-8"))["params"]:
                    of_files, of_job = settings(text)
                    code[name] = of_files.get(
                        str(file.relative_to(directory)), of_files.get(str(file), of_job)
                    )
    return code


def _settings(text: str) -> tuple[dict[str, str], str]:
    """Return the digests of code in the settings of a job: by output of a combined job, and that of another job."""
    settings: dict[str, Any] = ast.literal_eval(text)
    return dict(_parts(settings)), settings.get("code", "")


def _parts(settings: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for part in settings.get("parts", ()):
        for file in part["output"]["files"]:
            yield file, part["settings"]["code"]
