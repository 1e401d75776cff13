"""Plot scores over the values of a swept method, or ranks of methods over those of a swept metric."""

from saliency_assay.plotting.style import save, styled
from saliency_assay.registry.labels import Labels
from saliency_assay.registry.sweeps import Family
from saliency_assay.reliability.sweep_figures import rank_sweep_figure, sweep_figure
from saliency_assay.runtime.job import run_job
from saliency_assay.storage.csv_tables import read_table

with run_job(snakemake) as job:
    family, labels = Family(**job.settings["family"]), Labels(**job.settings["labels"])
    with styled():
        if job.wildcards.section == "methods":
            figure = sweep_figure(read_table(job.input.sweeps), family, labels)
        else:
            order, agreement = read_table(job.input.order), read_table(job.input.metric_sweeps, "sub_variant")
            figure = rank_sweep_figure(order, agreement, family, labels)
        save(figure, job.output[0])
