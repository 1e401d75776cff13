"""Scores of one arm of a retrain study: accuracy of each f_i, overlap of its masks, and leakage (IteROAR, 4.5, 4.7)."""

import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
import torch

from saliency_assay.data.splits import Ints
from saliency_assay.storage import WHOLE_SET
from saliency_assay.studies.retrain.occluded import Layer, unpacked
from saliency_assay.studies.retrain.overlap import cma, mamo, mmo, pairwise

BLOCK = 256  # images whose masks are in memory at a time


def accuracy_scores(predictions: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return rows ``metric, variant, image, score`` of f_0, f_1, …: 1 for a correctly classified test image, else 0.

    Args:
        predictions: rows of ``training.evaluation.predict`` of every f_i, in order.

    The variant is i. ``accuracy_train`` and ``accuracy_validation`` have one row per f_i, the share of correctly
    classified images. ``accuracy_without_retraining`` is that of f_0 on the test images of D_1, D_2, …
    """
    tables = []
    for step, table in enumerate(predictions):
        is_correct = (table["predicted"] == table["label"]).astype(float)
        test = table["split"] == "test"
        tables.append(
            _rows("accuracy", str(step), table.loc[test, "image"].to_numpy(), is_correct[test].to_numpy())
        )
        if "predicted_by_original" in table:
            is_correct_before = (table["predicted_by_original"] == table["label"]).astype(float)
            tables.append(
                _rows(
                    "accuracy_without_retraining",
                    str(step),
                    table.loc[test, "image"].to_numpy(),
                    is_correct_before[test].to_numpy(),
                )
            )
        for split, score in is_correct[~test].groupby(table.loc[~test, "split"]).mean().items():
            tables.append(_rows(f"accuracy_{split}", str(step), np.array([WHOLE_SET]), np.array([score])))
    return pd.concat(tables, ignore_index=True)


def overlap_scores(layers: Sequence[Layer], images: Ints) -> pd.DataFrame:
    """Return rows as in ``accuracy_scores`` with ``mmo``, ``mamo``, ``cma`` and all pairs as ``overlap``, in pixels.

    ``layers`` contain the masks m̄_0, m̄_1, … in order; ``images`` are the indices of the scored images. The variant is i
    or, for ``overlap``, the pair, such as ``2-5``.
    """
    blocks = [
        table
        for start in range(0, len(images), BLOCK)
        for table in _overlap_tables(layers, images[start : start + BLOCK])
    ]
    return pd.concat(blocks, ignore_index=True)


def _overlap_tables(layers: Sequence[Layer], images: Ints) -> Iterator[pd.DataFrame]:
    size = layers[0].mask.shape[2:]
    masks = torch.cat([unpacked(layer, images, size, torch.device("cpu")) for layer in layers], 1)
    for name, values in (("mmo", mmo(masks)), ("mamo", mamo(masks)), ("cma", cma(masks))):
        for step, column in enumerate(values.unbind(1)):
            yield _rows(name, str(step), images, column.numpy())
    pairs = pairwise(masks)
    for one, other in itertools.combinations(range(masks.shape[1]), 2):
        yield _rows("overlap", f"{one}-{other}", images, pairs[:, one, other].numpy())


def leakage_scores(tables: Mapping[int, pd.DataFrame]) -> pd.DataFrame:
    """Return rows as in ``accuracy_scores`` with ``leakage`` and ``leakage_random``: test accuracy on masks alone.

    ``leakage_loss`` and ``leakage_loss_random`` are the corresponding cross-entropies in nats. ``tables`` are the
    results of ``leakage.leakage``, by the i of D_i. The variant is i and the repeat, such as ``10/repeat0``.
    """
    rows = []
    for step, table in tables.items():
        for row in table.itertuples():
            variant, suffix = f"{step}/repeat{row.repeat}", "" if row.labels == "own" else "_random"
            for name, score in (("leakage", row.accuracy), ("leakage_loss", row.loss)):
                rows.append(_rows(name + suffix, variant, np.array([WHOLE_SET]), np.array([score])))
    return pd.concat(rows, ignore_index=True)


def _rows(metric: str, variant: str, images: Ints, scores: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(
        {"metric": metric, "variant": variant, "image": images, "score": scores.astype(float)}
    )
