"""Parts of a combined job (``pipeline.combined``): scripts that run one after another in one process.

Snakemake deletes all outputs of a job before it runs it again. The outputs of each part are therefore also kept, as
hard links, in a folder of state, with the digests of everything that they depend on. The outputs of an unchanged
part are restored from there. After a failure, the parts that succeeded do not run again.
"""

import gc
import json
import os
import runpy
import shutil
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, suppress
from io import StringIO
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from typing import Any, TextIO

from saliency_assay.runtime.atomic import replacing
from saliency_assay.runtime.job import in_one_line, print_anything
from saliency_assay.runtime.project import ROOT
from saliency_assay.runtime.provenance import digest_of_file, fingerprint
from saliency_assay.runtime.run_lock import share_run_lock

FORCED = "SALIENCY_ASSAY_FORCED"
"""Environment variable: the time at which the run started, and in further lines the rules and files of ``--forcerun``
or ``--force``; ``*`` for ``--forceall``."""
SCRIPTS = ROOT / "workflow/scripts"
LARGEST_DIGESTED = 100_000_000
"""Bytes up to which inputs are compared by content, as in the profiles (``max-checksum-file-size``)."""


def run_parts(snakemake: Any) -> None:
    """Run the changed parts of a combined job in order.

    A part that fails does not stop those that do not depend on it.

    Args:
        snakemake: the object of this name in a script, with the settings of ``pipeline.combined.settings_of``.

    Raises:
        SystemExit: status 1, after all other parts have run, if a part failed.
    """
    parts, kept = snakemake.params.settings["parts"], KeptOutputs(Path(snakemake.params.settings["state"]))
    failed, errors = set[str](), list[str]()
    start, *names = os.environ.get(FORCED, "0").split("\n")
    print_anything()
    with (
        share_run_lock(),
        Path(snakemake.log[0]).open("w", buffering=1, encoding="utf-8", errors="backslashreplace") as log,
    ):
        for number, part in enumerate(parts, 1):
            print(f"part {number} of {len(parts)}: {part['name']}", file=log)
            outputs = part["output"]["files"]
            if not failed.isdisjoint(part["input"]["files"]):
                print("not run: a part that it depends on failed", file=log)
                failed.update(outputs)
                continue
            is_forced = not {"*", snakemake.rule, part["rule"], *outputs}.isdisjoint(names)
            # Parts that an earlier attempt of this run has computed are not computed again.
            if kept.restore(part, since=float(start) if is_forced else 0):
                print("unchanged", file=log)
            elif error := _run(part, snakemake, log):
                errors.append(error)
                failed.update(outputs)
            else:
                kept.keep(part)
            gc.collect()
        log.writelines(errors)  # the last line of every failed job's log is an error line
    if failed:
        raise SystemExit(1)


def _run(part: Mapping[str, Any], snakemake: Any, log: TextIO) -> str:
    """Run the script of a part and write its benchmark file; return its error lines if it failed."""
    own = type(snakemake)(
        _files(type(snakemake.input), part["input"]),
        _files(type(snakemake.output), part["output"]),
        type(snakemake.params)(fromdict={"settings": part["settings"]}),
        type(snakemake.wildcards)(fromdict=part["wildcards"]),
        snakemake.threads,
        snakemake.resources,
        type(snakemake.log)([part["log"]]),
        snakemake.config,
        part["rule"],
        None,
        snakemake.scriptdir,
    )
    for file in map(Path, part["output"]["files"]):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
    start, processor, printed = time.perf_counter(), time.process_time(), StringIO()
    try:
        with redirect_stderr(_Both(sys.stderr, printed)):
            runpy.run_path(str(SCRIPTS / part["script"]), {"snakemake": own}, "__main__")
    except SystemExit as error:
        if error.code:
            print(f"failed, see {part['log']}", file=log)
            return printed.getvalue() or f"{part['rule']}: exited with status {error.code}\n"
    except Exception as error:  # before the script opens its log, such as a failed import
        print(f"failed, see {part['log']}", file=log)
        traceback.print_exc(file=log)
        line = f"{part['rule']}: {in_one_line(error)}"
        print(line, file=sys.stderr)
        return f"{line}\n"
    if missing := [file for file in part["output"]["files"] if not Path(file).exists()]:
        return f"{part['rule']}: the script did not write {missing[0]}\n"
    seconds, processor = time.perf_counter() - start, time.process_time() - processor
    print(f"{seconds:.1f} s", file=log)
    _write_benchmark(Path(part["benchmark"]), seconds, processor)
    return ""


def _files(kind: Any, described: Mapping[str, Any]) -> Any:
    files = kind(described["files"])
    for name, (start, end) in described["names"].items():
        files._set_name(name, start, end=end)
    return files


def _write_benchmark(path: Path, seconds: float, processor: float) -> None:
    """Write a benchmark file with those of Snakemake's columns that are known for a part."""
    clock = f"{int(seconds // 3600)}:{int(seconds // 60 % 60):02}:{int(seconds % 60):02}"
    memory = getrusage(RUSAGE_SELF).ru_maxrss / 1024  # MB
    path.parent.mkdir(parents=True, exist_ok=True)
    values = f"{seconds:.4f}\t{clock}\t{memory:.2f}\t{processor:.2f}"
    path.write_text(f"s\th:m:s\tmax_rss\tcpu_time\n{values}\n", encoding="utf-8")


class _Both:
    """A text stream that writes to two streams."""

    def __init__(self, *streams: TextIO) -> None:
        self._streams = streams

    def write(self, text: str) -> int:
        for stream in self._streams:
            stream.write(text)
        return len(text)

    def flush(self) -> None:
        for stream in self._streams:
            stream.flush()


class KeptOutputs:
    """The outputs of parts from earlier runs, in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._digests: dict[str, str] = {}

    def restore(self, part: Mapping[str, Any], since: float = 0) -> bool:
        """Restore the outputs of a part that has not changed since it ran, and return True; else return False.

        With ``since``, a part that ran before this time counts as changed.
        """
        folder, outputs = self._folder_of(part), list(map(Path, part["output"]["files"]))
        try:
            if (folder / "part.json").stat().st_mtime < since:
                return False
            record = json.loads((folder / "part.json").read_text(encoding="utf-8"))
            files = [folder / str(number) for number in range(len(outputs))]
            # An output that was modified in place is modified here, too, because it is the same file.
            if record != self._record(part, files):
                return False
            for file, output in zip(files, outputs, strict=True):
                output.parent.mkdir(parents=True, exist_ok=True)
                output.unlink(missing_ok=True)
                _link(file, output)
        except (OSError, ValueError):
            return False
        return True

    def keep(self, part: Mapping[str, Any]) -> None:
        """Keep the outputs of a part that has just run; if this fails, the part runs again in the next run."""
        folder, outputs = self._folder_of(part), list(map(Path, part["output"]["files"]))
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):
            folder.mkdir(parents=True)
            for number, output in enumerate(outputs):
                _link(output, folder / str(number))
            text = json.dumps(self._record(part, outputs))
            with replacing(folder / "part.json") as temporary:
                temporary.write_text(text, encoding="utf-8")

    def _folder_of(self, part: Mapping[str, Any]) -> Path:
        return self._folder / fingerprint(part["name"])[:16]

    def _record(self, part: Mapping[str, Any], outputs: Sequence[Path]) -> dict[str, Any]:
        """Return the digests of all that the outputs depend on, and of the outputs themselves."""
        inputs = {path: self._digest(path) for path in part["input"]["files"]}
        return {
            "name": part["name"],
            "settings": fingerprint([part["settings"], part["software"], part["output"]]),
            "inputs": inputs,
            "outputs": list(map(digest_of_file, outputs)),
        }

    def _digest(self, path: str) -> str:
        """Return the digest of an input, which is read once; of a large one, its size and time of modification."""
        if path not in self._digests:
            status = Path(path).stat()
            is_large = status.st_size > LARGEST_DIGESTED
            self._digests[path] = (
                f"{status.st_size} {status.st_mtime_ns}" if is_large else digest_of_file(Path(path))
            )
        return self._digests[path]


def _link(source: Path, target: Path) -> None:
    """Make ``target`` a hard link to ``source``, or a copy on a file system without hard links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
