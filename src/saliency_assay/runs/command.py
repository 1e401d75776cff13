"""The commands of ``saliency-assay`` on results: compare, keep, merge, prune, export and import."""

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from saliency_assay.runs.prune import KINDS
from saliency_assay.runtime.project import RESULTS

COMPARE_EPILOG = """\
The exit status is 0 if nothing differs, 1 if something differs and 2 after an error. Differences are those of the mean
score of the same images and seeds, with an interval that respects clusters of images, such as patients. p is adjusted
for the number of scores that differ (Holm); * marks scores that are too skewed for their number: p then compares the
numbers of images whose score rose and fell. Nothing is tested if each method has its own models, of one seed."""


def main(arguments: Sequence[str], find_configuration: Callable[[str], Path]) -> int:
    """Run one of the commands with its command-line arguments and return the exit status.

    ``find_configuration`` returns the file of a configuration by its path or name.
    """
    options = _parser().parse_args(arguments)
    options.find_configuration = find_configuration
    try:
        status: int = options.run(options)
    except (OSError, ValueError) as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 2 if options.command == "compare" else 1
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="saliency-assay", allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    compare = commands.add_parser(
        "compare",
        description="Compare the results of two runs.",
        epilog=COMPARE_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    compare.add_argument("old", type=Path, metavar="OLD", help="results folder, also one that keep wrote")
    compare.add_argument("new", type=Path, metavar="NEW", help="results folder to compare with it")
    compare.add_argument(
        "--html", type=Path, metavar="FILE", help="also write all differences as a page, with maps"
    )
    compare.set_defaults(run=_compare)
    keep = commands.add_parser(
        "keep",
        description="Keep the results of a run beside its folder, in FOLDER_kept/NAME.",
        allow_abbrev=False,
    )
    keep.add_argument("name", metavar="NAME", help="name of the kept folder")
    folder = keep.add_mutually_exclusive_group()
    folder.add_argument(
        "config", nargs="?", metavar="CONFIG", help="configuration of the run; by default, results/ is kept"
    )
    folder.add_argument("--results", type=Path, metavar="FOLDER", help="results folder")
    keep.add_argument(
        "--all", action="store_true", help="also keep weights of models and intermediate results"
    )
    keep.set_defaults(run=_keep)
    merge = commands.add_parser(
        "merge",
        description="Join results of several studies that were computed in different folders.",
        allow_abbrev=False,
    )
    merge.add_argument(
        "folders", nargs="+", type=Path, metavar="FOLDER", help="results folders, at least two"
    )
    merge.add_argument("--output", type=Path, required=True, metavar="OUT", help="new results folder")
    merge.set_defaults(run=_merge)
    prune = commands.add_parser(
        "prune",
        description="Show the size of the results of a run by kind, and delete those that can be made again.",
        allow_abbrev=False,
    )
    prune.add_argument("kinds", nargs="*", metavar="KIND", help=f"kinds to delete: {', '.join(KINDS)}")
    prune.add_argument("--results", type=Path, default=Path(RESULTS), metavar="FOLDER", help="results folder")
    prune.add_argument("--delete", action="store_true", help="delete the files; without, nothing is deleted")
    prune.set_defaults(run=_prune)
    export = commands.add_parser(
        "export",
        description="Write a run to a tar file, without the images that it read.",
        allow_abbrev=False,
    )
    export.add_argument("archive", type=Path, metavar="ARCHIVE", help="new file, such as run.tar")
    export.add_argument(
        "config", nargs="?", default="config", metavar="CONFIG", help="configuration of the run"
    )
    export.add_argument(
        "--without", nargs="+", default=[], metavar="KIND", help=f"leave out: {', '.join(KINDS)}"
    )
    export.set_defaults(run=_export)
    unpack = commands.add_parser(
        "import",
        description="Unpack a run that export wrote, to continue it or write its report.",
        allow_abbrev=False,
    )
    unpack.add_argument("archive", type=Path, metavar="ARCHIVE", help="file that export wrote")
    unpack.add_argument("--folder", type=Path, default=Path(), metavar="FOLDER", help="where to unpack it")
    unpack.set_defaults(run=_import)
    return parser


def _compare(options: argparse.Namespace) -> int:
    from saliency_assay.runs.compare import compare
    from saliency_assay.runs.text import comparison_text

    compared = compare(options.old, options.new)
    print(comparison_text(compared))
    if options.html:
        import_module("saliency_assay.runs.page").write_page(compared, options.html)
        print("Page:", options.html.resolve())
    return 0 if compared.is_equal else 1


def _keep(options: argparse.Namespace) -> int:
    from saliency_assay.runs.keep import keep
    from saliency_assay.runs.results_folder import read_configuration

    configuration = read_configuration(options.find_configuration(options.config)) if options.config else {}
    results = options.results or Path(configuration.get("results") or RESULTS)
    print(keep(results, options.name, everything=options.all))
    return 0


def _merge(options: argparse.Namespace) -> int:
    from saliency_assay.runs.merge import merge

    print(merge(options.folders, options.output))
    return 0


def _prune(options: argparse.Namespace) -> int:
    from saliency_assay.runs.prune import prune, usage, usage_text

    if options.kinds:
        print(prune(options.results, options.kinds, delete=options.delete))
    elif options.delete:
        raise ValueError("KIND: found none, expected the kinds to delete")
    else:
        print(usage_text(usage(options.results)))
    return 0


def _export(options: argparse.Namespace) -> int:
    from saliency_assay.runs.archive import export

    print(export(options.find_configuration(options.config), options.archive, options.without))
    return 0


def _import(options: argparse.Namespace) -> int:
    from saliency_assay.runs.archive import import_run

    print(import_run(options.archive, options.folder))
    return 0
