"""Show an image-or-caption study: its premise, INFD and attribution in numbers, and both as bars."""

from pathlib import Path

import pandas as pd

from saliency_assay.plotting.html import tables_page
from saliency_assay.plotting.style import save, styled
from saliency_assay.runtime.job import job
from saliency_assay.storage import score_tables
from saliency_assay.studies.caption.figures import infidelity_bars, share_bars
from saliency_assay.studies.caption.tables import beside_printed, caption_table, premise, statements

with job("plot_caption", snakemake.log[0], snakemake.params.settings):
    settings, output = snakemake.params.settings, snakemake.output
    study, methods = settings["study"], settings["methods"]
    predictions = pd.concat(map(pd.read_parquet, snakemake.input.predictions), ignore_index=True)
    names = {key: settings[key] for key in ("image_model", "caption_model", "data")}
    checks = premise(predictions, **names)
    table = caption_table(score_tables.read(map(Path, snakemake.input.scores)), checks)
    checks.to_csv(output.premise, index=False)
    table.to_csv(output.table, index=False)
    shown = checks.rename(columns={"percent": "test images (%)", "printed": "printed in the paper (%)"})
    tables = {
        f"{study}: the premise": shown,
        f"{study}: means over images and seeds, beside Table 3": beside_printed(table, methods),
        f"{study}: what the paper says": statements(checks, table, methods),
        f"{study}: all scores": table,
    }
    page = tables_page(tables, title=f"{study}: image or caption", digits=3)
    Path(output.page).write_text(page, encoding="utf-8")
    with styled():
        save(infidelity_bars(table), Path(output.infidelity))
        save(share_bars(table), Path(output.attribution))
