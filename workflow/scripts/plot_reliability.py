"""Plot the reliability of a study's metrics and the ranks of its methods."""

from saliency_assay.plotting.html import tables_page
from saliency_assay.plotting.style import save, styled
from saliency_assay.registry.labels import Labels
from saliency_assay.reliability.controls import TEXTS
from saliency_assay.reliability.figures import (
    agreement_figure,
    consistency_figure,
    order_figure,
    reliability_figure,
    score_pairs_chart,
)
from saliency_assay.report.pages.reliability_page import page_tables
from saliency_assay.runtime.job import run_job
from saliency_assay.storage.csv_tables import read_table

with run_job(snakemake) as job:
    settings, paths, output = job.settings, job.input, job.output
    labels, level = Labels(**settings["labels"]), settings["level"]
    study = labels.study(job.wildcards.study)
    tables = {
        # In the table of variances, the column of the methods is their share.
        name: read_table(paths[name], *TEXTS, numbers=["method"] if name == "variance" else [])
        for name in (
            "reliability",
            "agreement",
            "order",
            "controls",
            "pairs",
            "consistency",
            "rankings",
            "variance",
        )
    }
    with styled():
        save(reliability_figure(tables["reliability"], level=level, labels=labels), output.reliability)
        save(agreement_figure(tables["agreement"], labels), output.agreement)
        save(order_figure(tables["order"], labels), output.order)
        save(score_pairs_chart(tables["order"], labels), output.score_pairs)
        figure = consistency_figure(tables["consistency"], settings["baselines"], labels)
        save(figure, output.consistency)
    page_contents = page_tables(tables, study, labels, level=level)
    output.page.write_text(
        tables_page(page_contents, title=f"{study}: reliability", digits=3), encoding="utf-8"
    )
