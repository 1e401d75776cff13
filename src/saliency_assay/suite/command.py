"""Commands of the reference suite: ``saliency-assay enter`` and ``saliency-assay suite``."""

import argparse
import json
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saliency_assay.suite import VERSION

if TYPE_CHECKING:
    from saliency_assay.suite.enter import Standing


def main(words: Sequence[str]) -> int:
    """Run ``enter`` or ``suite``, the first of ``words``, with its arguments, the others; return the exit status."""
    command, *arguments = words
    options = (_enter_parser() if command == "enter" else _suite_parser()).parse_args(arguments)
    from saliency_assay.suite.tasks import MissingData  # imports PyTorch

    try:
        return _enter(options) if command == "enter" else _suite(options)
    except KeyboardInterrupt:
        print("interrupted; the same command continues", file=sys.stderr)
        return 130
    except (ValueError, OSError, ImportError, MissingData) as error:
        print(str(error).splitlines()[0], file=sys.stderr)
        return 1


def _enter_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="saliency-assay enter",
        description=f"Compare a method with those of the reference suite {VERSION}. Only its own maps and scores are "
        "computed. Writes a report and entry.zip.",
    )
    parser.add_argument(
        "method",
        nargs="?",
        default="",
        help="FILE.py:FUNCTION, PACKAGE.MODULE:FUNCTION, captum:CLASS, or the name of a registered method",
    )
    parser.add_argument(
        "--maps", default="", metavar="PATH", help="maps from another program, such as maps/{task}.npz"
    )
    parser.add_argument(
        "--name", default="", help="name of the method in tables; by default that of the function"
    )
    parser.add_argument("--label", default="", help="name in figures")
    parser.add_argument(
        "--set",
        nargs="+",
        action="extend",
        default=[],
        metavar="KEY=VALUE",
        help="parameters, with values in JSON",
    )
    parser.add_argument(
        "--task", nargs="+", action="extend", default=[], help="tasks; by default all whose data are there"
    )
    parser.add_argument(
        "--data", default="data", type=Path, help="folder of images and weights (default: data)"
    )
    parser.add_argument("--output", type=Path, help="folder of the results (default: entries/NAME)")
    return parser


def _enter(options: argparse.Namespace) -> int:
    from saliency_assay.suite.enter import enter, write_entry
    from saliency_assay.suite.entries import NAME
    from saliency_assay.suite.report import write_report
    from saliency_assay.suite.tasks import task_of

    if bool(options.method) == bool(options.maps):
        raise ValueError("enter: expected a method or --maps, and not both")
    method = _reference(options.method)
    name = options.name or (method.rpartition(":")[2] if method else "")
    if not NAME.fullmatch(name):
        raise ValueError(f"--name: found {name!r}, expected up to 60 letters, digits and _ . + -")
    output = options.output or Path("entries") / name
    settings = _settings(options.set)
    standings, left_out = enter(
        method,
        name,
        label=options.label,
        settings=settings,
        tasks=[task_of(each) for each in options.task],
        maps=options.maps,
        data=options.data,
        output=output,
    )
    label = options.label or name
    write_entry(
        output / "entry.zip", standings, {"name": name, "label": label, "method": method or options.maps}
    )
    write_report(output / "report.html", label, standings, left_out)
    for each in standings:
        print(f"\n{each.task.label} ({each.task.model})")
        print(_text(each))
    for task, reason in left_out.items():
        print(f"{task}: left out: {reason}")
    print(f"\nReport: {output / 'report.html'}\nEntry:  {output / 'entry.zip'}")
    return 0


def _reference(method: str) -> str:
    """Return a reference ``module:name``, importable from here; a registered name unchanged."""
    module, colon, function = method.rpartition(":")
    if not colon:
        return method
    if module == "captum":
        return f"saliency_assay.adapters.captum:{function}"
    if module.endswith(".py"):
        file = Path(module)
        if not file.is_file():
            raise ValueError(f"{module}: no such file")
        if not file.stem.isidentifier():
            raise ValueError(
                f"{module}: found a name that cannot be imported, expected letters, digits and _"
            )
        sys.path.insert(0, str(file.parent.resolve()))
        module = file.stem
    else:
        sys.path.insert(0, str(Path.cwd()))
    if not hasattr(import_module(module), function):
        raise ValueError(f"{method}: found no {function} in {module}")
    return f"{module}:{function}"


def _settings(words: Sequence[str]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise ValueError(f"--set: found {word!r}, expected KEY=VALUE")
        try:
            settings[key] = json.loads(value)
        except json.JSONDecodeError:
            settings[key] = value
    return settings


def _text(standing: "Standing") -> str:
    """Return the standing on a task as a table, and the failures."""
    import pandas as pd

    rows = [
        {
            "score": place.score,
            "mean": f"{place.mean:.3g}",
            "rank set": place.rank_set,
            "better than": len(place.better_than),
            "not distinguishable": len(place.same_as),
            "worse than": len(place.worse_than),
        }
        for place in standing.places
    ]
    lines = [pd.DataFrame(rows).to_string(index=False)] if rows else []
    lines += [str(each) for each in standing.scores.failures]
    lines += [f"Caution: {each}" for each in standing.changed]
    return "\n".join(lines)


def _suite_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="saliency-assay suite",
        description=f"Tasks and scores of the reference suite {VERSION}.",
    )
    commands = parser.add_subparsers(dest="action", required=True)
    commands.add_parser("list", help="tasks, and the data that they need")
    board = commands.add_parser("leaderboard", help="write the page of the leaderboard")
    board.add_argument(
        "--entries", default=Path("suite/entries"), type=Path, help="folder of accepted entries"
    )
    board.add_argument("--output", default=Path("leaderboard.html"), type=Path, help="the HTML file")
    verify = commands.add_parser("verify", help="check the format, ranges and digests of entries")
    verify.add_argument("entry", nargs="+", type=Path, help="entry.zip")
    for name, text in (
        ("make", "compute the reference scores; an interrupted computation is continued"),
        ("check", "compute a tenth of the reference scores again, and compare"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument(
            "--task",
            nargs="+",
            action="extend",
            default=[],
            help="tasks; by default all whose data are there",
        )
        command.add_argument(
            "--data", default="data", type=Path, help="folder of images and weights (default: data)"
        )
        command.add_argument(
            "--output", default=Path("suite_results"), type=Path, help="folder of the results"
        )
    return parser


def _suite(options: argparse.Namespace) -> int:
    from saliency_assay.suite import make
    from saliency_assay.suite.tasks import task_of

    if options.action == "list":
        print(make.task_list())
        return 0
    if options.action == "leaderboard":
        from saliency_assay.suite.leaderboard import write_page

        write_page(options.output, options.entries)
        return 0
    if options.action == "verify":
        from saliency_assay.suite.entries import problems

        found = [f"{path}: {problem}" for path in options.entry for problem in problems(path)]
        print("\n".join(found or ["valid"]))
        return int(bool(found))
    tasks = [task_of(each) for each in options.task]
    run = make.make if options.action == "make" else make.check
    return run(tasks, options.data, options.output)
