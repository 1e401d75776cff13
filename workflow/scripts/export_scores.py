"""Export the scores of single images that rate a study's methods."""

from saliency_assay.registry.records import resolve
from saliency_assay.report.export.image_scores import write_image_scores
from saliency_assay.runtime.job import run_job
from saliency_assay.storage import text
from saliency_assay.storage.zarr_store import open_store

with run_job(snakemake) as job:
    settings = job.settings
    read_scores = resolve(settings["rated_scores"])
    rated = read_scores(job.input.scores, data=settings["data"], models=settings["models"])
    with open_store(job.input.data, kind="data") as data:
        classes = data.attributes["classes"][settings["label"]]
        labels = [classes[number] for number in data[f"label_{settings['label']}"][:]]
        files = text.decode(data["file"][:]) if "file" in data.names else []
    write_image_scores(job.output[0], rated.chunks("metric", "variant"), settings["study"], labels, files)
