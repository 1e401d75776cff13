"""Plot input independence: bars, tables, and images with patches that do not change the model output."""

import numpy as np

from saliency_assay.plotting.display import displayed
from saliency_assay.plotting.gallery import class_text
from saliency_assay.plotting.html import tables_page
from saliency_assay.plotting.style import save, styled
from saliency_assay.registry.labels import Labels
from saliency_assay.runtime.job import run_job
from saliency_assay.storage.csv_tables import read_table
from saliency_assay.storage.zarr_store import open_store
from saliency_assay.studies.bam.figures import metric_bars
from saliency_assay.studies.bam.input_independence import METRICS
from saliency_assay.studies.bam.input_independence_figures import convergence_curves, delta_images, note
from saliency_assay.studies.bam.input_independence_tables import HEADS, NORMS, changes_of

with run_job(snakemake) as job:
    settings, paths, output = job.settings, job.input, job.output
    labels, table, change_table = (
        Labels(**settings["labels"]),
        read_table(paths.metrics),
        read_table(paths.changes),
    )
    study = labels.study(settings["study"])
    stores = [job.open(open_store(path, kind="data")) for path in paths.deltas]
    data = job.open(open_store(paths.data, kind="data"))
    changes = [changes_of(store) for store in stores]
    first, first_changes = stores[0], changes[0]
    count = len(first) // 2
    rows = np.arange(min(settings["images"], count))
    source, scenes = first["source"][rows], first.attributes["classes"]["scene"]
    names = [class_text(scenes[label]) for label in first["label_scene"][rows]]
    notes = [note(name, *(float(first_changes[key][row]) for key in NORMS)) for row, name in enumerate(names)]
    panels = (first["image"][rows], data["image"][source], first["image"][count + rows])
    with styled():
        for metric in METRICS:
            save(metric_bars(table, metric, labels), output[metric])
        convergence, norms = (
            np.concatenate([seed_changes[name] for seed_changes in changes])
            for name in ("convergence", "output_norm")
        )
        save(convergence_curves(convergence, norms, seeds=len(changes)), output.convergence)
        save(delta_images(*panels, first["mask"][rows], notes=notes), output.delta)
    tables = {
        f"{study}: IIR and relative change": displayed(table, labels),
        f"{study}: similarity of the outputs (medians over images)": displayed(change_table, labels, HEADS),
    }
    page = tables_page(tables, title=f"{study}: input independence", digits=3)
    output.independence.write_text(page, encoding="utf-8")
