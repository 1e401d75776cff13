"""Entrance of a checkout for `snakemake` in this folder; the workflow is workflow/Snakefile."""


include: "workflow/Snakefile"


# Snakemake takes the default target from this file alone, not from one that it includes.
workflow.default_target = "all"
