"""Images on which the best method of a study has its worst scores, selected from all explained images."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy import ndarray as Array

from saliency_assay.registry.directions import Direction
from saliency_assay.registry.labels import Labels
from saliency_assay.reliability.reliability_tables import SCORED, by_method, groups
from saliency_assay.reliability.verdicts import alpha_row, verdict
from saliency_assay.report.pages.study import named_scores
from saliency_assay.report.pages.words import number, rows_of

MOST_IMAGES = 4


@dataclass(frozen=True)
class Failures:
    """Images on which a method has its worst scores under one metric."""

    method: str
    metric: str
    variant: str
    arrow: str
    """Better direction."""
    images: Array
    """Indices of the images in the set, the worst first."""
    scores: Sequence[str]
    """Score of each of these as text."""
    total: int
    """Number of images with a score."""


def failures(
    scores: pd.DataFrame | Iterable[pd.DataFrame],
    methods: Sequence[str],
    directions: Mapping[str, str],
    *,
    shown: Collection[tuple[str, str]],
    left_out: Collection[str] = (),
    variants: str = "variants",
) -> Failures | None:
    """Return the images with the worst scores of the best method, if they are worse than another method's mean score.

    The best method has the best mean, over images and seeds, under the most metrics that pages name and that show an
    order. The first of these metrics whose worst images are not tied with others selects them, if there is none the
    first with such images. None if there is no such image.

    Args:
        scores: rated scores of a study of all images, or chunks by metric and variant.
        methods: methods of the study.
        directions: for each metric the direction of its scores.
        shown: metric and variant of the scores that show an order of the methods, see ``shown_scores``.
        left_out: methods that are not compared, such as baselines and upper controls.
        variants: kind of the variants of a score, see ``StudyResult.variants``.
    """
    candidates = [method for method in methods if method not in set(left_out)]
    oriented_scores, raw_scores = {}, {}
    for keys, table in groups(scores, SCORED):
        pair = str(keys["metric"]), str(keys["variant"])
        oriented_scores[pair] = by_method(table, directions[pair[0]]).reindex(columns=candidates)
        raw_scores[pair] = by_method(table).reindex(columns=candidates)
    best: dict[str, list[tuple[str, str]]] = {}
    for pair in named_scores(pd.DataFrame(list(raw_scores), columns=["metric", "variant"]), variants):
        means = oriented_scores[pair].mean()
        if pair in shown and means.notna().any():
            best.setdefault(str(means.idxmax()), []).append(pair)
    if not best:
        return None
    method, pairs = max(best.items(), key=lambda item: len(item[1]))
    for pair in sorted(pairs, key=lambda pair: _is_tied(oriented_scores[pair][method])):
        oriented = oriented_scores[pair][method].dropna()
        failed = oriented[oriented < oriented_scores[pair].mean().drop(method).max()]
        if failed.empty:
            continue
        worst = failed.sort_values(kind="stable").index[:MOST_IMAGES]
        values = raw_scores[pair][method].loc[worst]
        return Failures(
            method,
            *pair,
            Direction(directions[pair[0]]).arrow,
            np.asarray(worst, dtype=np.int64),
            [number(value) for value in values],
            len(oriented),
        )
    return None


def shown_scores(order: pd.DataFrame, pairs: pd.DataFrame, reliability: pd.DataFrame) -> set[tuple[str, str]]:
    """Return metric and variant of the scores of a study that show an order of the methods, by their verdicts.

    Args:
        order: content of ``order.csv``.
        pairs: content of ``pairs.csv``.
        reliability: content of ``reliability.csv``.
    """
    scores = list(dict.fromkeys(order[["metric", "variant"]].itertuples(index=False, name=None)))
    return {
        score
        for score in scores
        if verdict(rows_of(order, *score), rows_of(pairs, *score), alpha_row(reliability, *score)).is_shown
    }


def _is_tied(oriented: pd.Series) -> bool:
    """Return True if an image that is not among the worst has the same score as one that is."""
    ordered = oriented.dropna().sort_values()
    return bool((ordered.iloc[:MOST_IMAGES].max() == ordered.iloc[MOST_IMAGES:]).any())


def failures_content(
    found: Failures,
    small: Mapping[str, Any],
    names: Sequence[str],
    predictions: Mapping[str, Sequence[tuple[str, bool, str] | None]],
    labels: Labels,
) -> dict[str, Any]:
    """Return the content of the table of failures, for ``gallery.json``.

    Args:
        found: result of ``failures``.
        small: ``plotting.thumbnails.thumbnails`` of its images and the maps of its method.
        names: number or file of each image.
        predictions: result of ``image_details.image_predictions`` for each label of a model that is explained.
        labels: labels of methods and scores.
    """
    method, metric = labels.method(found.method), labels.score(found.metric, found.variant)
    return {
        "title": f"Where {method} fails: {len(found.images)} worst of {found.total} images",
        "titles": [f"image {name} ({title})" for name, title in zip(names, small["titles"], strict=True)],
        "images": small["images"],
        "outlines": small["outlines"],
        "wrong": [
            [
                f"{model if len(predictions) > 1 else 'predicted'}: {predicted[0]}"
                for model, of_model in predictions.items()
                if (predicted := of_model[place]) and not predicted[1]
            ]
            for place in range(len(found.images))
        ],
        "captions": small["titles"],
        "maps": {
            f"{method}, {model}" if len(small["maps"]) > 1 else method: of_model[method]
            for model, of_model in small["maps"].items()
        },
        "metric": f"{metric} {found.arrow}",
        "scores": list(found.scores),
    }
