"""A run that also writes a report if methods or metrics fail.

If jobs of methods or metrics fail, and no others, Snakemake runs again without
these methods and metrics, which the report then lists with their error lines.
"""

import argparse
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from saliency_assay.pipeline.not_computed import KEY, LEFT_OUT
from saliency_assay.runtime.atomic import replacing
from saliency_assay.runtime.failures import RESULTS

SENTENCES = ".state/not_computed.json"
"""File in the results folder: sentences on what the report lacks, which ``report.outcome`` prints."""

Entries = Sequence[Mapping[str, str]]


def run_without_failures(
    run: Callable[[Entries], int], read_left_out: Callable[[], Mapping[str, Any]]
) -> tuple[int, list[str]]:
    """Run Snakemake until it succeeds without the methods and metrics that failed.

    It runs again only if the last run left out other methods and metrics than those that failed, and no other job
    failed.

    Args:
        run: runs Snakemake without the methods and metrics given, and returns its exit status.
        read_left_out: returns the content of ``LEFT_OUT`` after a run that failed, or an empty mapping.

    Returns:
        The exit status of the last run, and the sentences on the methods and metrics that it left out.
    """
    known: list[Entries] = [[]]
    sentences: list[str] = []
    while (status := run(known[-1])) and (left_out := read_left_out()) and left_out["entries"] not in known:
        known.append(left_out["entries"])
        sentences = left_out["sentences"]
        names = dict.fromkeys("{section}.{name}".format(**entry) for entry in known[-1])
        print(f"Running again without {', '.join(names)}, to write the report", file=sys.stderr)
    return status, sentences


class Snakemake:
    """Snakemake as a child process, which ends by itself after Ctrl-C or when this process is terminated."""

    def __init__(self, arguments: Sequence[str], results: Path) -> None:
        self._command = [sys.executable, "-P", "-m", "snakemake"]
        self._arguments = arguments
        self._left_out = results / LEFT_OUT
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = False
        # Not ignored, because the child would inherit that.
        signal.signal(signal.SIGINT, self._stop)
        signal.signal(signal.SIGTERM, self._stop)

    def _stop(self, number: int, _: object) -> None:
        self._is_stopped = True
        # The terminal sends Ctrl-C to all processes.
        if self._process and number == signal.SIGTERM:
            self._process.send_signal(number)

    def run(self, entries: Entries) -> int:
        """Run Snakemake without ``entries`` and return its exit status."""
        self._left_out.unlink(missing_ok=True)
        text = json.dumps(entries, ensure_ascii=False)
        arguments = with_setting(self._arguments, f"{KEY}={text}") if entries else self._arguments
        with subprocess.Popen([*self._command, *arguments]) as process:
            self._process = process
            status = process.wait()
        self._process = None
        return status

    def left_out(self) -> Mapping[str, Any]:
        """Return the content of ``LEFT_OUT``; empty if it is missing or the user has stopped the run."""
        if self._is_stopped or not self._left_out.exists():
            return {}
        content: Mapping[str, Any] = json.loads(self._left_out.read_text(encoding="utf-8"))
        return content


def with_setting(arguments: Sequence[str], setting: str) -> list[str]:
    """Return the arguments with a ``setting`` in addition to those of the user's last ``--config``, which counts.

    Without one, the setting comes first, because words at the end may be targets.
    """
    places = [place for place, word in enumerate(arguments) if word.split("=")[0] in ("--config", "-C")]
    if not places:
        return ["--config", setting, *arguments]
    option, *value = arguments[places[-1]].split("=", 1)
    return [*arguments[: places[-1]], option, setting, *value, *arguments[places[-1] + 1 :]]


def main(arguments: Sequence[str]) -> int:
    """Run Snakemake with ``arguments``; return 0 if the report was written, with or without all methods."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--configfile", required=True)
    file = Path(parser.parse_known_args(arguments)[0].configfile)
    raw = yaml.safe_load(file.read_text(encoding="utf-8"))
    results = Path(str((raw.get("results") if isinstance(raw, dict) else None) or RESULTS))
    snakemake = Snakemake(arguments, results)
    (results / SENTENCES).unlink(missing_ok=True)
    status, sentences = run_without_failures(snakemake.run, snakemake.left_out)
    if sentences and not status:
        with replacing(results / SENTENCES) as temporary:
            temporary.write_text(json.dumps(sentences), encoding="utf-8")
    return status
