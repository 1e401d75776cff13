"""HTML page of a comparison of two runs, with the maps that changed most."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy import ndarray as Array

from saliency_assay.metrics.reductions import reduce
from saliency_assay.plotting.html import Code, table_of
from saliency_assay.plotting.page import page_templates
from saliency_assay.plotting.thumbnails import thumbnails
from saliency_assay.runs.compare import RunComparison, score_name
from saliency_assay.runs.map_changes import Example, MapChange
from saliency_assay.runs.results_folder import open_results
from saliency_assay.runs.score_changes import SIGN, ScoreChanges
from saliency_assay.runs.text import not_compared, summary
from saliency_assay.runtime.atomic import replacing
from saliency_assay.storage.zarr_store import open_store

TEMPLATES = Path(__file__).with_name("templates")
MOST_METHODS = 40
"""Number of methods and models whose maps are shown, those with the largest distances."""
DIGITS = 4


def write_page(compared: RunComparison, file: Path) -> None:
    """Write a comparison as one HTML file that needs no network."""
    template = page_templates(TEMPLATES).get_template("compare.html.j2")
    page = template.render(
        old=compared.old,
        new=compared.new,
        summary=summary(compared),
        causes=compared.causes,
        scores=table_of(_score_table(compared.scores), "Scores that differ", DIGITS),
        sign=SIGN,
        ranks=table_of(_rank_table(compared), "Ranks that differ", DIGITS),
        maps=table_of(_map_table(compared.maps), "Maps that differ", 2),
        examples=list(_examples(compared)),
        one_sided=compared.one_sided,
        not_compared=not_compared(compared),
    )
    with replacing(file) as temporary:
        temporary.write_text(page, encoding="utf-8")


def _score_table(scores: ScoreChanges) -> pd.DataFrame:
    rows = scores.rows
    names = [score_name(*names) for names in zip(rows["metric"], rows["variant"], strict=True)]
    keys = {name: _keys(rows[name]) for name in ("study", "data", "model") if rows[name].any()}
    numbers = {
        "images": rows["images"],
        "old mean": rows["old"],
        "new mean": rows["new"],
        "difference": rows["difference"],
        "lower CI limit": rows["low"],
        "upper CI limit": rows["high"],
        "size": rows["effect"],
        "p (adjusted)": rows["p"],
        "test": rows["test"],
        "new is": rows["verdict"],
    }
    return pd.DataFrame({"method": _keys(rows["method"]), "score": _keys(names), **keys, **numbers})


def _rank_table(compared: RunComparison) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "study": _keys([change.study for change in compared.ranks]),
            "score": _keys([score_name(change.metric, change.variant) for change in compared.ranks]),
            "model": _keys([change.model for change in compared.ranks]),
            "data": _keys([change.data for change in compared.ranks]),
            "rank sets": [
                ", ".join(f"{method} {before} → {now}" for method, (before, now) in change.sets.items())
                for change in compared.ranks
            ],
            "old order": [", ".join(change.order[0]) for change in compared.ranks],
            "new order": [", ".join(change.order[1]) for change in compared.ranks],
        }
    )


def _map_table(maps: Sequence[MapChange]) -> pd.DataFrame:
    names = {name: _keys([getattr(change, name) for change in maps]) for name in ("method", "model", "data")}
    numbers = {
        "seed": [change.seed for change in maps],
        "images": [change.images for change in maps],
        "images with other maps": [change.changed for change in maps],
        "median distance": [change.median for change in maps],
        "largest distance": [change.largest for change in maps],
    }
    return pd.DataFrame({**names, **numbers})


def _keys(names: Sequence[str] | pd.Series) -> list[Code]:
    return [Code(str(name)) for name in names]


def _examples(compared: RunComparison) -> Iterator[dict[str, Any]]:
    """Yield for each method its names and the pictures of its examples."""
    data = open_results(compared.new).data_files
    for change in compared.maps[:MOST_METHODS]:
        if change.data in data:
            with open_store(data[change.data], kind="data") as store:
                images = store["image"][np.array([example.image for example in change.examples])]
            pairs = [
                _pictures(example, image) for example, image in zip(change.examples, images, strict=True)
            ]
            names = {name: getattr(change, name) for name in ("method", "model", "seed", "data")}
            yield {**names, "pairs": pairs}


def _pictures(example: Example, image: Array) -> dict[str, Any]:
    maps = {
        name: reduce(torch.from_numpy(saliency[None]), "visual").numpy()
        for name, saliency in (("old", example.old), ("new", example.new))
    }
    small = thumbnails(image[None], {"": maps}, titles=[""])
    [of_model] = small["maps"].values()
    pictures = {"image": small["images"][0], **{name: of_name[0] for name, of_name in of_model.items()}}
    return {"image": example.image, "distance": f"{example.distance:.2f}", "pictures": pictures}
