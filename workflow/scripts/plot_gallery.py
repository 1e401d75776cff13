"""Plot the same images under every method and model of a study."""

import json

import pandas as pd
import torch

from saliency_assay.data.selection import explained_images, fitting
from saliency_assay.metrics.reductions import reduce
from saliency_assay.models.classes import of_data
from saliency_assay.plotting.gallery import class_names, class_text, gallery, titles
from saliency_assay.plotting.style import save, styled
from saliency_assay.plotting.thumbnails import gallery_page, thumbnails
from saliency_assay.registry.labels import Labels
from saliency_assay.registry.records import resolve
from saliency_assay.reliability.controls import TEXTS
from saliency_assay.report.pages.failures import failures, failures_content, shown_scores
from saliency_assay.report.pages.image_details import image_predictions, image_scores
from saliency_assay.runtime.job import run_job
from saliency_assay.storage import text, zarr_store
from saliency_assay.storage.csv_tables import read_table
from saliency_assay.storage.shards import grouped, open_stores

with run_job(snakemake, needs=("data", "maps")) as job:
    settings = job.settings
    with zarr_store.open_store(job.input.data, kind="data") as data:
        labels = {name: data[name][:] for name in data.names if name.startswith("label_")}
        selection = {"order": settings["order"], "among": fitting(data, settings["where"])}
        indices = explained_images(data["split"][:], list(labels.values()), settings["images"], **selection)
        images = data["image"][indices]
        masks = data["mask"][indices] if "mask" in data.names else None
        files = text.decode(data["file"][indices]) if "file" in data.names else []
        classes = data.attributes["classes"]
        model_classes = {
            model: of_data(classes[entry["label"]], entry.get("classes"))[1]
            for model, entry in settings["models"].items()
        }
        labels = {name: label[indices] for name, label in labels.items()}
        captions = titles(labels, classes)
        expect = {"data": data.attributes["digest"]}
    maps = {model: {} for model in settings["models"]}
    targets = {}  # class that the maps of a model explain, the same for all methods
    files_of_maps = grouped(job.input.maps, len(settings["models"]) * len(settings["methods"]))
    arms = [(model, method) for model in settings["models"] for method in settings["methods"]]
    map_files = dict(zip(arms, files_of_maps, strict=True))
    for model in settings["models"]:
        for method in settings["methods"]:
            with open_stores(map_files[model, method], kind="maps", expect=expect) as store:
                rows = zarr_store.rows_of("image", indices, store)
                targets[model] = store["target"][rows]
                maps[model][method] = reduce(torch.from_numpy(store["map"][rows]), "visual").numpy()
    display = Labels(**settings["labels"])
    with styled():
        figure = gallery(images, maps, titles=captions, masks=masks, labels=display)
        save(figure, job.output.image)
        save(figure, job.output.vector)
    small = thumbnails(images, maps, titles=captions, masks=masks, labels=display)

    prediction_files = dict(zip(settings["models"], job.input.predictions, strict=True))

    def predictions_of(images, models):
        # Only the rows of these images are read, because tables of scores and predictions may have millions.
        of_images = [("data", "==", settings["data"]), ("image", "in", images.tolist())]
        return {
            display.model(model): image_predictions(
                pd.read_parquet(prediction_files[model], filters=of_images), images, model_classes[model]
            )
            for model in models
        }

    predictions = predictions_of(indices, settings["models"])
    scores = []
    if job.input.scores:
        rated = settings["scores"]
        read_scores, models = resolve(rated["rated_scores"]), list(settings["models"])
        scores = image_scores(
            read_scores(job.input.scores, data=rated["data"], models=models, images=indices).chunks(
                "metric", "variant"
            ),
            indices,
            settings["methods"],
            rated["directions"],
            variants=rated["variants"],
            labels=display,
        )
        worst, tables = None, [job.input.get(name) for name in ("order", "pairs", "reliability")]
        if not rated["retrained"] and all(tables):
            worst = failures(
                read_scores(job.input.scores, data=rated["data"], models=models).chunks("metric", "variant"),
                settings["methods"],
                rated["directions"],
                shown=shown_scores(*(read_table(file, "other", *TEXTS) for file in tables)),
                left_out=rated["left_out"],
                variants=rated["variants"],
            )
        if worst:
            shown = models
            if rated["variants"] == "models":  # the score is that of the maps of one model
                shown = [worst.variant.partition(" ")[2]]
            with zarr_store.open_store(job.input.data, kind="data") as data:
                worst_images = data["image"][worst.images]
                worst_masks = None if masks is None else data["mask"][worst.images]
                worst_labels = {name: data[name][worst.images] for name in labels}
                worst_files = text.decode(data["file"][worst.images]) if files else worst.images.tolist()
            worst_maps = {}
            for model in shown:
                with open_stores(map_files[model, worst.method], kind="maps", expect=expect) as store:
                    rows = zarr_store.rows_of("image", worst.images, store)
                    visual = reduce(torch.from_numpy(store["map"][rows]), "visual").numpy()
                worst_maps[model] = {worst.method: visual}
            worst_small = thumbnails(
                worst_images,
                worst_maps,
                titles=titles(worst_labels, classes),
                masks=worst_masks,
                labels=display,
            )
            worst_predictions = predictions_of(worst.images, shown)
            small["failures"] = failures_content(worst, worst_small, worst_files, worst_predictions, display)
    job.output.thumbnails.write_text(json.dumps(small), encoding="utf-8")
    # An image file is known by its name; other images have only their number.
    named = zip(files or indices.tolist(), class_names(labels, classes), strict=True)
    explained = {
        display.model(model): [class_text(model_classes[model][target]) for target in targets[model]]
        for model in settings["models"]
    }
    details = {
        "explained": explained,
        "images": [{"id": name, "classes": names} for name, names in named],
        "predictions": predictions,
        "scores": scores,
    }
    page = gallery_page(small, details, title="Maps of the same images by every method")
    job.output.page.write_text(page, encoding="utf-8")
