"""The workflow as a module of another Snakefile."""

from collections.abc import Mapping
from typing import Any

from snakemake.path_modifier import PathModifier
from snakemake.pathvars import Pathvars

from saliency_assay.runtime.project import RESULTS


def with_prefix(workflow: Any, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of a module, with the module's ``prefix`` or ``replace_prefix`` applied to ``results``.

    Snakemake itself would change inputs and outputs, but not the same paths in the settings of jobs. It no longer
    changes any path of the module after this call; paths of data remain relative to the working directory.

    Args:
        workflow: Snakemake's workflow while it reads a file of the module.
        config: the configuration that the module was given.
    """
    results = str(config.get("results") or RESULTS)
    modified = workflow.modifier.path_modifier.replace_prefix(f"{results}/")
    workflow.modifier.path_modifier = PathModifier(None, None, workflow)
    return {**config, "results": modified.rstrip("/")}


def set_pathvars(workflow: Any, **values: str) -> None:
    """Set Snakemake's path variables for the rules of this workflow, before those of an importing Snakefile."""
    workflow.pathvars.update(Pathvars.from_module(values))


def rules_by_name(rules: Any, workflow: Any) -> dict[str, Any]:
    """Return Snakemake's rules by their names in the workflow's own files, without those that are not imported.

    Args:
        rules: the global variable of this name in a Snakefile. The rules of a module have further names elsewhere.
        workflow: Snakemake's workflow while it reads a file of the module.
    """
    is_available = workflow.modifier.avail_rulename
    return {name: proxy.rule for name, proxy in rules._rules.items() if is_available(name)}
