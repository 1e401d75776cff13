"""Show the scores of a study in numbers, and beside those that a paper prints."""

from pathlib import Path

import pandas as pd

from saliency_assay.plotting.html import tables_page
from saliency_assay.reliability.printed import score_tables
from saliency_assay.runtime.job import job

with job("plot_scores", snakemake.log[0], snakemake.params.settings):
    # A method may be called NA.
    table = pd.read_csv(snakemake.input[0], keep_default_na=False, na_values=[""])
    study = snakemake.wildcards.study
    page = tables_page(score_tables(table, study), title=f"{study}: scores", digits=3)
    Path(snakemake.output[0]).write_text(page, encoding="utf-8")
