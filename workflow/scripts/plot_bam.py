"""Plot a BAM study: its premise as a table, MCS and IDR as bars and as a table."""

from saliency_assay.plotting.html import table_page
from saliency_assay.plotting.style import save, styled
from saliency_assay.runtime.job import run_job
from saliency_assay.storage.csv_tables import read_table
from saliency_assay.studies.bam.figures import metric_bars

with run_job(snakemake) as job:
    study, output = job.settings["study"], job.output
    premise, metrics = map(read_table, job.input)
    with styled():
        save(metric_bars(metrics, "mcs"), output.mcs)
        save(metric_bars(metrics, "idr"), output.idr)
    premise_table = premise.rename(
        columns={"percent": "test images (%)", "printed": "printed in the paper (%)"}
    )
    page = table_page(premise_table, title=f"{study}: the premise", digits=1)
    output.premise.write_text(page, encoding="utf-8")
    metric_table = metrics.sort_values(["metric", "data", "score"], ascending=[False, True, False])
    page = table_page(metric_table, title=f"{study}: MCS and IDR", digits=3)
    output.metrics.write_text(page, encoding="utf-8")
