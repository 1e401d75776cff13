"""Jobs that Snakemake plans, from its own dependency graph in this process."""

import logging
import sys
from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

from snakemake import cli
from snakemake.api import DAGApi


def with_plan(arguments: Sequence[str], show: Callable[[Any], None]) -> int:
    """Plan a run with the command line ``arguments`` of Snakemake, and call ``show`` with its ``Workflow``.

    Nothing is run, and of Snakemake's messages only warnings and errors are printed. Returns the exit status.
    """
    execute = DAGApi.execute_workflow

    def plan(api: Any, *positional: Any, **settings: Any) -> None:
        # For exactly this set of --quiet, Snakemake ends a dry run once it knows the jobs.
        logging.getLogger("snakemake.logging").setLevel(logging.WARNING)
        execute(api, *positional, **settings)
        show(api.workflow_api._workflow)

    with patch.object(DAGApi, "execute_workflow", plan):
        try:
            cli.main(["--quiet", "rules", "progress", "--dry-run", *arguments])
        except SystemExit as end:  # how Snakemake's command line always ends
            if isinstance(end.code, str):  # the message of the Snakefile
                print(end.code, file=sys.stderr)
                return 1
            return int(end.code or 0)
    raise AssertionError("Snakemake's command line has returned")
