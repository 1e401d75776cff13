"""Plot infidelity against sensitivity for the methods of a study."""

from saliency_assay.plotting.style import save, styled
from saliency_assay.registry.labels import Labels
from saliency_assay.reliability.clusters import with_clusters
from saliency_assay.runtime.job import run_job
from saliency_assay.storage import score_tables, zarr_store
from saliency_assay.studies.fidelity.scatter import infidelity_sensitivity

with run_job(snakemake) as job:
    with zarr_store.open_store(job.input.data, kind="data") as data:
        table = with_clusters(score_tables.read([job.input.scores]), data)
    with styled():
        figure = infidelity_sensitivity(table, job.settings["pairs"], Labels(**job.settings["labels"]))
        save(figure, job.output[0])
