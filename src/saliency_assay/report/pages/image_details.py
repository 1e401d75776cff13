"""Predictions and scores of single images, which the gallery shows beside an enlarged map."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
from numpy import ndarray as Array

from saliency_assay.plotting.gallery import class_text
from saliency_assay.registry.directions import Direction
from saliency_assay.registry.labels import UNLABELED, Labels
from saliency_assay.reliability.reliability_tables import SCORED, by_method, groups
from saliency_assay.report.pages.study import named_scores
from saliency_assay.report.pages.words import number, percent


def image_predictions(
    predictions: pd.DataFrame, images: Array, classes: Sequence[str]
) -> list[tuple[str, bool, str] | None]:
    """Return a model's prediction of each image: the class, True if it is right, and the probability of the true class.

    An image without a prediction is None. The probability of a wrongly predicted class is not in the table.

    Args:
        predictions: rows of ``training.evaluation.predict`` for one set and seed.
        images: indices of the images in the set.
        classes: names of the classes.
    """
    columns = predictions[["image", "predicted", "label", "probability"]].to_numpy()
    by_image = {
        int(image): (
            f"not {class_text(classes[int(label)])}"
            if predicted < 0
            else class_text(classes[int(predicted)]),
            bool(predicted == label),
            percent(probability),
        )
        for image, predicted, label, probability in columns
    }
    return [by_image.get(image) for image in images.tolist()]


def image_scores(
    scores: pd.DataFrame | Iterable[pd.DataFrame],
    images: Array,
    methods: Sequence[str],
    directions: Mapping[str, str],
    *,
    variants: str = "variants",
    labels: Labels = UNLABELED,
) -> list[dict[str, Any]]:
    """Return each image's scores and the rank of each method among the methods that have a score on this image.

    Args:
        scores: rated scores of a study, or chunks by metric and variant, see ``reliability.rated_scores``.
        images: indices of the images in the set.
        methods: methods of the study.
        directions: for each metric the direction of its scores, see ``registry.directions``.
        variants: kind of the variants of a score, see ``StudyResult.variants``.
        labels: labels of scores.

    Returns:
        For each score that pages name (``named_scores``) and that an image has: ``label``; ``model``, the label of the
        model whose maps are scored, empty if those of all are; ``direction`` in words,
        ``seeds``, the number of training seeds over which scores are averaged, and ``values``: for each image a list
        with each method's score as text, rank, and score in the orientation in which higher is better; None without a
        score. Methods with equal scores have the same rank.
    """
    tables = {(str(keys["metric"]), str(keys["variant"])): table for keys, table in groups(scores, SCORED)}
    blocks = []
    for metric, variant in named_scores(pd.DataFrame(list(tables), columns=["metric", "variant"]), variants):
        table, direction = tables[metric, variant], directions[metric]
        means = by_method(table).reindex(index=images, columns=list(methods))
        # As in the ranks of the study, the distance from a target is averaged over seeds, not the score itself.
        oriented = by_method(table, direction).reindex(index=images, columns=list(methods))
        ranks = oriented.rank(axis=1, method="min", ascending=False)
        if means.isna().all(axis=None):
            continue  # such as scores of pairs of images that the gallery does not show
        values = [
            [
                None if score != score else (number(score), int(rank), float(f"{value:.4g}"))
                for score, rank, value in zip(*of_image, strict=True)
            ]
            for of_image in zip(means.to_numpy(), ranks.to_numpy(), oriented.to_numpy(), strict=True)
        ]
        blocks.append(
            {
                "label": labels.score(metric, variant),
                "model": labels.model(variant.partition(" ")[2]) if variants == "models" else "",
                "direction": Direction(direction).phrase,
                "seeds": int(table["seed"].nunique()),
                "values": values,
            }
        )
    return blocks
