"""Plot an image-or-caption study: premise, INFD and attribution as tables, the last two also as bars."""

from saliency_assay.plotting.display import displayed
from saliency_assay.plotting.html import tables_page
from saliency_assay.plotting.style import save, styled
from saliency_assay.registry.labels import Labels
from saliency_assay.runtime.job import run_job
from saliency_assay.storage.csv_tables import read_table
from saliency_assay.studies.caption.caption_tables import HALVES, HEADS, compare_with_printed, statements
from saliency_assay.studies.caption.figures import infidelity_bars, share_bars

with run_job(snakemake) as job:
    labels, methods = Labels(**job.settings["labels"]), job.settings["methods"]
    title = labels.study(job.settings["study"])
    checks, table = read_table(job.input.premise), read_table(job.input.table, "used")
    premise_heads = {"percent": "test images (%)", "printed": "published (%)"}
    premise_table = displayed(checks, labels, premise_heads)
    tables = {
        f"{title}: premise": premise_table,
        f"{title}: means over images and seeds, and published values (Table 3)": compare_with_printed(
            table, methods, labels
        ),
        f"{title}: claims of Yeh et al. (2019)": statements(
            checks, table, methods, labels, job.settings["setting"]
        ),
        f"{title}: all scores": displayed(table.assign(used=table["used"].map(HALVES)), labels, HEADS),
    }
    page = tables_page(tables, title=f"{title}: picture or caption", digits=3)
    job.output.page.write_text(page, encoding="utf-8")
    with styled():
        save(infidelity_bars(table, labels), job.output.infidelity)
        save(share_bars(table, labels), job.output.attribution)
