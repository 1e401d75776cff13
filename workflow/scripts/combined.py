"""Run the parts of a combined job."""

from saliency_assay.runtime.parts import run_parts

run_parts(snakemake)
