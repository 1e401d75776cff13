"""Jobs that Snakemake plans, from its own dependency graph in this process."""

import logging
from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

from snakemake import cli
from snakemake.api import DAGApi


def with_plan(arguments: Sequence[str], show: Callable[[Any], None]) -> None:
    """Plan a run with the command line ``arguments`` of Snakemake, and call ``show`` with its ``Workflow``.

    Nothing is run, and of Snakemake's messages only warnings and errors are printed.

    Raises:
        SystemExit: always, as at the end of a command: with status 1 after an error, else 0.
    """
    execute = DAGApi.execute_workflow

    def plan(api: Any, *positional: Any, **settings: Any) -> None:
        # For exactly this set of --quiet, Snakemake ends a dry run once it knows the jobs.
        logging.getLogger("snakemake.logging").setLevel(logging.WARNING)
        execute(api, *positional, **settings)
        show(api.workflow_api._workflow)

    with patch.object(DAGApi, "execute_workflow", plan):
        cli.main(["--quiet", "rules", "progress", "--dry-run", *arguments])
