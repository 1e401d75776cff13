"""The workflow as a module of another Snakefile."""

from collections.abc import Mapping
from typing import Any

from snakemake.path_modifier import PathModifier

from saliency_assay.runtime.failures import RESULTS


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


def rules_by_name(rules: Any) -> dict[str, Any]:
    """Return Snakemake's rules by their names in the workflow's own files.

    Args:
        rules: the global variable of this name in a Snakefile. The rules of a module have further names elsewhere.
    """
    return {name: proxy.rule for name, proxy in rules._rules.items()}
