"""Plot reliability against validity, and write the tables of a validity study as a page."""

from saliency_assay.plotting.display import displayed
from saliency_assay.plotting.html import tables_page
from saliency_assay.plotting.style import save, styled
from saliency_assay.registry.labels import Labels
from saliency_assay.runtime.job import run_job
from saliency_assay.storage.csv_tables import read_table
from saliency_assay.studies.validity.figures import validity_scatter
from saliency_assay.studies.validity.page import HEADS, in_words

with run_job(snakemake) as job:
    labels = Labels(**job.settings["labels"])
    title = labels.study(job.settings["study"])
    tables = {
        name: read_table(path, "verdict", "baseline", "best_baseline") for name, path in job.input.items()
    }
    contents = {
        heading: displayed(in_words(tables[name], labels), labels, HEADS)
        for name, heading in {
            "recommendations": "validity, reliability and cost of every score",
            "known_order": "agreement with the known order of degraded maps",
            "meta_consistency": "meta-consistency under changes of the model and the image",
            "baselines": "baselines that score better than every method",
            "settings_pairs": "agreement of scores that differ in one setting",
        }.items()
        if len(tables[name])
    }
    page = tables_page(contents, title=f"{title}: validity of metrics", digits=3)
    job.output.page.write_text(page, encoding="utf-8")
    with styled():
        save(validity_scatter(tables["recommendations"], job.settings["level"], labels), job.output.scatter)
