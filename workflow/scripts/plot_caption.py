"""Plot an image-or-caption study: premise, INFD and attribution as tables, the last two also as bars."""

from saliency_assay.plotting.html import tables_page
from saliency_assay.plotting.style import save, styled
from saliency_assay.runtime.job import run_job
from saliency_assay.storage.csv_tables import read_table
from saliency_assay.studies.caption.figures import infidelity_bars, share_bars
from saliency_assay.studies.caption.tables import compare_with_printed, statements

with run_job(snakemake) as job:
    study, methods = job.settings["study"], job.settings["methods"]
    checks, table = read_table(job.input.premise), read_table(job.input.table, "used")
    premise_table = checks.rename(
        columns={"percent": "test images (%)", "printed": "printed in the paper (%)"}
    )
    tables = {
        f"{study}: the premise": premise_table,
        f"{study}: means over images and seeds, with the values of Table 3": compare_with_printed(
            table, methods
        ),
        f"{study}: claims of the paper": statements(checks, table, methods),
        f"{study}: all scores": table,
    }
    page = tables_page(tables, title=f"{study}: image or caption", digits=3)
    job.output.page.write_text(page, encoding="utf-8")
    with styled():
        save(infidelity_bars(table), job.output.infidelity)
        save(share_bars(table), job.output.attribution)
