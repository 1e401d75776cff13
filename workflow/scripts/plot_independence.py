"""Show input independence: bars and numbers, and how far images could be changed without changing the output."""

from contextlib import ExitStack
from pathlib import Path

import numpy as np

from saliency_assay.plotting.html import image_page, tables_page
from saliency_assay.plotting.style import readable, save, styled
from saliency_assay.runtime.job import job
from saliency_assay.storage import score_tables, zarr_store
from saliency_assay.studies.bam.figures import metric_bars
from saliency_assay.studies.bam.input_independence import BASELINES
from saliency_assay.studies.bam.input_independence_figures import (
    convergence_curves,
    delta_images,
    delta_table,
    note,
)
from saliency_assay.studies.bam.metric_tables import metrics_table

NORMS = ("output_norm", "output_change", "delta_norm", "start_distance")

with job("plot_independence", snakemake.log[0], snakemake.params.settings), ExitStack() as stack:
    settings, paths, output = snakemake.params.settings, snakemake.input, snakemake.output
    study, original = settings["study"], f"{settings['data']}_0s"
    stores = [stack.enter_context(zarr_store.open_store(Path(path), kind="data")) for path in paths.deltas]
    data = stack.enter_context(zarr_store.open_store(Path(paths.data), kind="data"))
    found = {
        seed: {name: of[name][len(of) // 2 :] for name in (*NORMS, "convergence")}
        for seed, of in zip(settings["seeds"], stores, strict=True)
    }
    parameters = dict.fromkeys(BASELINES, settings["metrics"]["iir"])
    table = metrics_table(
        score_tables.read(map(Path, paths.scores)), parameters, baselines=BASELINES, sets=[original]
    )
    table.to_csv(output.metrics, index=False)
    numbers = delta_table(found)
    numbers.to_csv(output.deltas, index=False)
    first, measured = stores[0], found[settings["seeds"][0]]
    count = len(first) // 2
    shown = np.arange(min(settings["images"], count))
    source, scenes = first["source"][shown], first.attributes["classes"]["scene"]
    names = [readable(scenes[label]) for label in first["label_scene"][shown]]
    notes = [note(name, *(float(measured[key][row]) for key in NORMS)) for row, name in enumerate(names)]
    pictures = (first["image"][shown], data["image"][source], first["image"][count + shown])
    with styled():
        for metric in BASELINES:
            save(metric_bars(table, metric), Path(output[metric]))
        convergence, norms = (
            np.concatenate([of[name] for of in found.values()]) for name in ("convergence", NORMS[0])
        )
        save(convergence_curves(convergence, norms, seeds=len(found)), Path(output.convergence))
        save(delta_images(*pictures, first["mask"][shown], notes=notes), Path(output.image))
    page = image_page(Path(output.image).read_bytes(), title=f"{study}: changes without effect")
    Path(output.delta).write_text(page, encoding="utf-8")
    tables = {f"{study}: IIR and relative change": table, f"{study}: changes (medians)": numbers}
    page = tables_page(tables, title=f"{study}: input independence", digits=3)
    Path(output.independence).write_text(page, encoding="utf-8")
