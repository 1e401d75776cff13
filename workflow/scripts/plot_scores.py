"""Write the scores of a study as tables, with the values printed in a paper."""

from saliency_assay.plotting.html import tables_page
from saliency_assay.registry.labels import Labels
from saliency_assay.reliability.printed import score_tables
from saliency_assay.runtime.job import run_job
from saliency_assay.storage.csv_tables import read_table

with run_job(snakemake) as job:
    study, labels = job.wildcards.study, Labels(**job.settings["labels"])
    tables = score_tables(read_table(job.input[0]), study, labels)
    job.output[0].write_text(
        tables_page(tables, title=f"{labels.study(study)}: scores", digits=3), encoding="utf-8"
    )
