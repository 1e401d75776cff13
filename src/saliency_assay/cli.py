"""The command ``saliency-assay``: the workflow in any folder, without a checkout."""

import argparse
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from textwrap import shorten

from saliency_assay import SNAKEFILE, __version__
from saliency_assay.config.errors import ConfigError
from saliency_assay.runtime.project import LAST_LINES, ROOT

COMMANDS = {
    "run": "run CONFIG and write its report",
    "report": "write the report again; runs missing jobs",
    "table": "export all results as CSV and LaTeX; runs missing jobs",
    "plan": "show the number of jobs and models, time and storage of each study, without running it",
    "dry": "show how many jobs of each rule would run, and what causes them, without running any",
    "compare": "compare the results folders of two runs: compare OLD NEW",
    "keep": "keep results beside their folder, for compare: keep NAME",
    "merge": "join results folders with different studies: merge A B --output OUT",
    "prune": "show sizes of results by kind, and delete some: prune maps --delete",
    "export": "write a run to a file: export run.tar CONFIG",
    "import": "unpack a run that export wrote: import run.tar",
    "enter": "compare a method with those of the reference suite: enter FILE.py:FUNCTION",
    "suite": "tasks of the reference suite, and computation of its scores: suite list",
    "config": "print CONFIG or a profile, such as profiles/slurm; without one, list the configurations",
}
ON_RESULTS, IN_SUITE = ("compare", "keep", "merge", "prune", "export", "import"), ("enter", "suite")
"""Commands of ``saliency_assay.runs`` and ``saliency_assay.suite``, which have their own options and help."""
EPILOG = """\
CONFIG is a configuration file or the name of a configuration of the package; by default it is the demo. Further
arguments are those of Snakemake, such as --cores 4 or --profile slurm."""
HELP = ("-h", "--help", "--version")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with its command-line ``arguments`` and return its exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    status: int
    if words[:1] and words[0] in ON_RESULTS:
        status = import_module("saliency_assay.runs.command").main(words, configuration_file)
    elif words[:1] and words[0] in IN_SUITE:
        status = import_module("saliency_assay.suite.command").main(words)
    else:
        status = _main(words)
    return status


def _main(words: list[str]) -> int:
    """Run a command that takes a configuration."""
    command, name, options = _parse(words)
    if command == "config" and not name:
        print(configuration_list())
        return 0
    try:
        late = [word for word in options if word.endswith((".yaml", ".yml")) and Path(word).is_file()]
        if late and not name:
            raise ConfigError(
                f"CONFIG: found {late[0]} after options, expected saliency-assay {command} {late[0]} …"
            )
        file = configuration_file(name or "config")
        if command == "config":
            print(file.read_text(encoding="utf-8"), end="")
            return 0
        if find_spec("snakemake") is None:
            print("Snakemake is not installed: pip install 'saliency-assay[workflow]'", file=sys.stderr)
            return 1
        from saliency_assay.config.yaml_text import check_text  # needs PyYAML

        # Snakemake reads the file before any code of this project, and answers some errors with a traceback.
        check_text(file, str(file))
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 1
    return _run(command, file, options)


def _parse(arguments: list[str]) -> tuple[str, str, list[str]]:
    """Return the command, the name of the configuration or an empty string, and the arguments of Snakemake."""
    parser = argparse.ArgumentParser(
        prog="saliency-assay",
        usage="saliency-assay COMMAND [CONFIG] [ARGUMENT ...]",
        description="Benchmark saliency methods, and the metrics that evaluate them.\n\ncommands:\n"
        + "\n".join(f"  {name:8}{text}" for name, text in COMMANDS.items()),
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument("command", choices=COMMANDS, help=argparse.SUPPRESS)
    # Only the first words are parsed: what follows may contain any option of Snakemake, and its values.
    own = arguments if set(HELP) & set(arguments) else arguments[:1]
    command = parser.parse_known_args(own)[0].command
    has_name = len(arguments) > 1 and not arguments[1].startswith("-")
    return command, arguments[1] if has_name else "", arguments[1 + has_name :]


def configuration_list() -> str:
    """Return the names of the configurations of the package, each with the beginning of its comment."""
    lines = []
    for file in _packaged():
        text = file.read_text(encoding="utf-8").splitlines()
        comment = " ".join(line.lstrip("# ") for line in takewhile(lambda line: line.startswith("#"), text))
        lines.append(f"{file.stem:26}{shorten(comment, 100, placeholder=' …')}")
    return "\n".join(lines)


def configuration_file(name: str) -> Path:
    """Return the configuration file ``name``, or that of the package with this name.

    Raises:
        ConfigError: there is neither.
    """
    packaged = {file.stem: file for file in _packaged()}
    packaged |= {f"profiles/{file.parent.name}": file for file in ROOT.glob("profiles/*/config.yaml")}
    file = Path(name) if Path(name).is_file() else packaged.get(name)
    if file is None:
        raise ConfigError(f"CONFIG: {name}: no such file, and not one of {', '.join(packaged)}")
    return file


def _packaged() -> list[Path]:
    return [file for file in sorted((ROOT / "config").glob("*.yaml")) if file.stem != "schema"]


def snakemake_arguments(file: Path, options: Sequence[str], *targets: str) -> list[str]:
    """Return the arguments with which Snakemake runs a configuration.

    The default profile is the package's for one machine. ``targets`` precede those among the ``options``.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--profile", action="append")
    given, others = parser.parse_known_args(list(options))
    arguments = ["--configfile", str(file), "--snakefile", SNAKEFILE]
    for name in map(_profile, given.profile) if given.profile else [str(ROOT / "profiles/local")]:
        arguments += ["--profile", name]
    return [*arguments, *targets, *others]


def _profile(name: str) -> str:
    """Return a profile of the user with this name, otherwise the package's."""
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "snakemake"
    packaged = ROOT / "profiles" / name
    is_own = any(folder.is_dir() for folder in (Path(name), home / name, Path("/etc/xdg/snakemake", name)))
    return str(packaged) if packaged.is_dir() and not is_own else name


def _run(command: str, file: Path, options: Sequence[str]) -> int:
    """Run a command that needs Snakemake; the modules that only one of them needs are imported here."""
    arguments = snakemake_arguments(file, options, *(["table"] if command == "table" else []))
    if module := {"plan": "estimate", "dry": "dry_run"}.get(command):
        planned: int = import_module(f"saliency_assay.pipeline.{module}").main(arguments)
        return planned
    from saliency_assay.report import outcome

    status = _snakemake([*(["--forcerun", "report"] if command == "report" else []), *arguments])
    is_dry = any(re.fullmatch(r"--dry-?run|-[a-zA-Z]*n[a-zA-Z]*", word) for word in options)
    return status if is_dry else status or outcome.print_outcome(file, tables=command == "table")


def _snakemake(arguments: Sequence[str]) -> int:
    """Run Snakemake as a child process, which ends by itself after Ctrl-C or when this process is terminated."""
    # The terminal sends Ctrl-C to all processes. It is not ignored here, because the child would inherit that.
    signal.signal(signal.SIGINT, lambda *_: None)
    command = [sys.executable, "-P", "-m", "snakemake", *arguments]
    with subprocess.Popen(command, env={**os.environ, LAST_LINES: "1"}) as process:
        signal.signal(signal.SIGTERM, lambda number, _: process.send_signal(number))
        return process.wait()


if __name__ == "__main__":
    sys.exit(main())
