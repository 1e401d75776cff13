"""The scores of all arms of a retrain study, image by image and in summary."""

from pathlib import Path

from saliency_assay import scores, store
from saliency_assay.job import job
from saliency_assay.report.retrain import summary
from saliency_assay.retrain_settings import pixels

with job("tabulate_retrain", snakemake.log[0]):
    settings, paths = snakemake.params.settings, snakemake.input
    with store.open_store(Path(paths.data), kind="data") as data:
        _, _, height, width = data["image"].shape
        classes = len(data.attributes["classes"][settings["label"]])
    table = scores.read(map(Path, paths.scores))
    scores.write(Path(snakemake.output.scores), table)
    area = height * width
    occluded = pixels(area, settings["percentile"])
    counts = {"area": area, "occluded": occluded, "iterations": settings["iterations"], "classes": classes}
    summary(table, **counts).to_csv(snakemake.output.summary, index=False)
