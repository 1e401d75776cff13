"""Rank the methods of a BAM study by every metric, and check the claims of the paper."""

from saliency_assay.plotting.html import table_page, tables_page
from saliency_assay.plotting.text import with_minus_signs
from saliency_assay.registry.labels import Labels
from saliency_assay.runtime.job import run_job
from saliency_assay.storage.csv_tables import read_table
from saliency_assay.studies.bam.bam_tables import BamTables
from saliency_assay.studies.bam.claims import claims, summary
from saliency_assay.studies.bam.ranking import agreement, displayed_agreement, displayed_ranking, ranking

with run_job(snakemake, needs=("premise", "metrics")) as job:
    settings, output = job.settings, job.output
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
    study_tables = {name: read_table(path) for name in names if (path := job.input.get(name))}
    keys = ("data", "object_model", "scene_model", "methods", "baselines", "classes")
    labels = Labels(**settings["labels"])
    setting = settings["setting"]
    tables = BamTables(
        **{key: settings[key] for key in keys}, **study_tables, labels=labels, setting=setting["phrase"]
    )
    rank_table, claim_table = ranking(tables), claims(tables)
    rank_table.to_csv(output.ranking, index=False)
    claim_table.to_csv(output.claims, index=False)
    study = labels.study(settings["study"])
    page_contents = {
        f"{study}: rank (score ± standard deviation); 1 is best": displayed_ranking(rank_table, tables),
        f"{study}: agreement of the rankings, without baselines": displayed_agreement(
            agreement(rank_table, tables)
        ),
    }
    page = tables_page(page_contents, title=f"{study}: ranking", digits=2)
    output.ranking_page.write_text(page, encoding="utf-8")
    claim_table["measured"] = claim_table["measured"].map(with_minus_signs)  # the CSV file keeps hyphens
    title = f"{study}: claims of Yang & Kim (2019): {summary(claim_table)}"
    if setting["differences"]:
        title += f". Unlike in the paper: {'; '.join(setting['differences'])}"
    page = table_page(claim_table, title=title, digits=3)
    output.claims_page.write_text(page, encoding="utf-8")
