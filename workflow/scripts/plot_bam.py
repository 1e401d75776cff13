"""Plot a BAM study: its premise as a table, MCS and IDR as bars and as a table."""

from saliency_assay.plotting.display import displayed
from saliency_assay.plotting.html import table_page
from saliency_assay.plotting.style import save, styled
from saliency_assay.registry.labels import Labels
from saliency_assay.runtime.job import run_job
from saliency_assay.storage.csv_tables import read_table
from saliency_assay.studies.bam.figures import metric_bars

with run_job(snakemake) as job:
    labels, output = Labels(**job.settings["labels"]), job.output
    title = labels.study(job.settings["study"])
    premise, metrics = map(read_table, job.input)
    with styled():
        save(metric_bars(metrics, "mcs", labels), output.mcs)
        save(metric_bars(metrics, "idr", labels), output.idr)
    premise_heads = {"percent": "test images (%)", "printed": "published (%)"}
    premise_table = displayed(premise, labels, premise_heads)
    page = table_page(premise_table, title=f"{title}: premise", digits=1)
    output.premise.write_text(page, encoding="utf-8")
    metric_table = metrics.sort_values(["metric", "data", "score"], ascending=[False, True, False])
    page = table_page(displayed(metric_table, labels), title=f"{title}: MCS and IDR", digits=3)
    output.metrics.write_text(page, encoding="utf-8")
