"""Rank a BAM study's methods by every metric, and check what the paper claims."""

from saliency_assay.plotting.html import table_page, tables_page
from saliency_assay.runtime.job import run_job
from saliency_assay.storage.csv_tables import read_table
from saliency_assay.studies.bam.claims import claims, summary
from saliency_assay.studies.bam.ranking import agreement, agreement_shown, ranking, ranking_shown
from saliency_assay.studies.bam.tables import BamTables

with run_job(snakemake) as job:
    settings, made = job.settings, job.output
    names = (
        "premise",
        "metrics",
        "independence",
        "deltas",
        "commonality",
        "series",
        "correlation",
        "concepts",
    )
    read = {name: read_table(path) for name in names if (path := job.input.get(name))}
    keys = ("data", "object_model", "scene_model", "methods", "controls", "classes")
    tables = BamTables(**{key: settings[key] for key in keys}, **read)
    ranked, judged = ranking(tables), claims(tables)
    ranked.to_csv(made.ranking, index=False)
    judged.to_csv(made.claims, index=False)
    study = settings["study"]
    shown = {
        f"{study}: rank (score ± spread), 1 is the best": ranking_shown(ranked, tables),
        "Agreement of the rankings, controls aside": agreement_shown(agreement(ranked, tables)),
    }
    page = tables_page(shown, title=f"{study}: ranking", digits=2)
    made.ranking_page.write_text(page, encoding="utf-8")
    page = table_page(judged, title=f"{study}: the claims of Yang & Kim (2019): {summary(judged)}", digits=3)
    made.claims_page.write_text(page, encoding="utf-8")
