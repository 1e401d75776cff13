"""Tables of the commonality series: accuracy with and without the object, MCS of every f_k, and their correlation.

They correspond to Yang & Kim (2019), section 5.1 and Figs. 2 (bottom), 6 and 13.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch

from saliency_assay.metrics.scored import correlation
from saliency_assay.plotting.labels import with_labels
from saliency_assay.plotting.statistics import mean_and_error
from saliency_assay.plotting.text import span_text
from saliency_assay.registry.labels import UNLABELED, Labels
from saliency_assay.studies.bam.bam_tables import TCAV
from saliency_assay.studies.bam.mcs_and_idr import BASELINE_REGIONS
from saliency_assay.studies.bam.series import contrast

# Yang & Kim (2019), Fig. 2, bottom: test accuracy of bamboo forest in percent, for k = 0.1 … 1.0.
PRINTED_SCENE = "bamboo_forest"
PRINTED_KS = tuple(tenth / 10 for tenth in range(1, 11))
PRINTED_WITH = dict(zip(PRINTED_KS, (97, 98, 96, 95, 96, 95, 92, 93, 92, 95), strict=True))
PRINTED_WITHOUT = dict(zip(PRINTED_KS, (78, 77, 81, 75, 78, 81, 93, 93, 93, 93), strict=True))

MEAN_LAYER = "mean"
LEAST_POINTS = 3  # values of k for a correlation
MCS_COLUMNS = ["mcs", "standard_error", "random", "random_standard_error", "images", "undefined"]


@dataclass(frozen=True)
class SeriesModel:
    """f_k: a scene classifier, trained with the object in all images of a share k of the scene classes."""

    model: str
    data: str  # the set on which it was trained and is explained
    k: float  # commonality: the share of scene classes with the object, in (0, 1]


def commonality_table(
    predictions: pd.DataFrame, series: Sequence[SeriesModel], *, without: str, scene: str
) -> pd.DataFrame:
    """Return the accuracy on test images of the first scene class with and without the object, for each seed and f_k.

    Args:
        predictions: rows model, seed, data, image, split, label and predicted; other sets and models are ignored. The
            label of the first scene class is 0.
        series: f_k in order of increasing k.
        without: the set of the same scenes without the object.
        scene: the first scene class; the paper's values are those of bamboo forest.

    Returns:
        ``seed, model, k, with_object, without, drop, images, printed_with, printed_without``: accuracies in percent,
        ``drop`` = with − without in points, and the paper's values for this k and scene, else NaN.

    Raises:
        ValueError: a model has no such image in one of the two sets, or the images of the two sets differ.
    """
    test = predictions[(predictions["split"] == "test") & (predictions["label"] == 0)]
    by_set: dict[Any, pd.DataFrame] = dict(iter(test.groupby(["seed", "model", "data"])))
    rows: list[dict[str, Any]] = []
    for seed in dict.fromkeys(predictions["seed"]):
        for member in series:
            location = f"predictions: {member.model}, seed {seed}"
            tables = [
                _test_images(by_set, (seed, member.model, data), location) for data in (member.data, without)
            ]
            images = [set(table["image"]) for table in tables]
            if images[0] != images[1]:
                counts_text = (
                    f"{len(images[0])} test images of {scene} in {member.data}, {len(images[1])} in {without}"
                )
                raise ValueError(f"{location}: found {counts_text}, expected the same images")
            accuracies = [100 * float((table["predicted"] == 0).mean()) for table in tables]
            row = {"seed": seed, "model": member.model, "k": member.k}
            row |= {
                "with_object": accuracies[0],
                "without": accuracies[1],
                "drop": accuracies[0] - accuracies[1],
            }
            rows.append({**row, "images": len(images[0]), **_paper_values(member.k, scene)})
    return pd.DataFrame(rows)


def _test_images(by_set: dict[Any, pd.DataFrame], key: tuple[int, str, str], location: str) -> pd.DataFrame:
    if key not in by_set:
        raise ValueError(
            f"{location}: found no test image of the first scene class in {key[-1]}, expected at least one"
        )
    return by_set[key]


def _paper_values(k: float, scene: str) -> dict[str, float]:
    if scene != PRINTED_SCENE or round(k, 6) not in PRINTED_KS:
        return {"printed_with": np.nan, "printed_without": np.nan}
    return {
        "printed_with": float(PRINTED_WITH[round(k, 6)]),
        "printed_without": float(PRINTED_WITHOUT[round(k, 6)]),
    }


def series_table(
    scores: pd.DataFrame, series: Sequence[SeriesModel], concepts: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return the MCS of every f_k against f_1.0, the last model, for each seed and method, as means over X_corr.

    Args:
        scores: a score table with metric ``mcs``, models ``contrast(f_k, f_1.0)``, variants ``object`` and ``random``,
            one row for each image of X_corr.
        series: f_k in order of increasing k.
        concepts: TCAV of the models, with columns model, seed, layer, score, random and images; only the rows of layer
            ``mean``, G_c, are used. If not None, ``tcav`` is the last method: its MCS_k is G_c(f_k) − G_c(f_1.0), its
            random baseline the same difference for random concepts, and it has no standard error.

    Returns:
        ``seed, model, k, method, mcs, standard_error, random, random_standard_error, images, undefined``.
        ``standard_error`` is the standard deviation over images (n − 1) divided by √n, NaN for fewer than two;
        ``images`` the number of images with a score, ``undefined`` the number in X_corr without one. A method without
        images in X_corr has NaN.

    Raises:
        ValueError: ``concepts`` does not contain the mean of a model and seed.
    """
    last = series[-1].model
    mcs = scores[scores["metric"] == "mcs"]
    values_by_key = {
        key: rows.to_numpy() for key, rows in mcs.groupby(["seed", "method", "model", "variant"])["score"]
    }
    rows: list[dict[str, Any]] = []
    for seed, method in dict.fromkeys(zip(scores["seed"], scores["method"], strict=True)):
        for member in series:
            row = {"seed": seed, "model": member.model, "k": member.k, "method": method}
            key = (seed, method, contrast(member.model, last))
            on_object, on_random = (
                values_by_key.get((*key, variant), np.empty(0))
                for variant in ("object", BASELINE_REGIONS["mcs"])
            )
            row["mcs"], row["standard_error"] = mean_and_error(on_object)
            row["random"], row["random_standard_error"] = mean_and_error(on_random)
            undefined_count = int(np.isnan(on_object).sum())
            rows.append({**row, "images": len(on_object) - undefined_count, "undefined": undefined_count})
    if concepts is not None:
        rows += _concept_rows(concepts, series, list(dict.fromkeys(scores["seed"])))
    return pd.DataFrame(rows, columns=["seed", "model", "k", "method", *MCS_COLUMNS])


def _concept_rows(
    concepts: pd.DataFrame, series: Sequence[SeriesModel], seeds: Sequence[int]
) -> list[dict[str, Any]]:
    means = concepts[concepts["layer"] == MEAN_LAYER]
    by_model = {(row["seed"], row["model"]): row for row in means.to_dict("records")}
    rows: list[dict[str, Any]] = []
    for seed in seeds:
        if missing := [member.model for member in series if (seed, member.model) not in by_model]:
            raise ValueError(f"concepts: found no mean of {missing[0]}, seed {seed}, expected one")
        last = by_model[seed, series[-1].model]
        for member in series:
            concept = by_model[seed, member.model]
            row: dict[str, Any] = {"seed": seed, "model": member.model, "k": member.k, "method": TCAV}
            row |= {"mcs": concept["score"] - last["score"], "random": concept["random"] - last["random"]}
            row |= {"standard_error": np.nan, "random_standard_error": np.nan}
            image_count = int(np.nan_to_num(concept["images"]))
            undefined_count = image_count if np.isnan(row["mcs"]) else 0
            rows.append({**row, "images": image_count - undefined_count, "undefined": undefined_count})
    return rows


def correlation_table(series: pd.DataFrame, commonality: pd.DataFrame) -> pd.DataFrame:
    """Return Pearson's ρ over k between a method's MCS and the accuracy drop, in [−1, 1]; higher is better.

    Args:
        series: a ``series_table``.
        commonality: the ``commonality_table`` of the same models and seeds.

    Returns:
        ``method, seed, correlation, points``: ``points`` is the number of k at which the MCS is defined, including
        k = 1. The correlation is NaN for fewer than three points, and if MCS or drop is constant.
    """
    joined = series.merge(
        commonality[["seed", "model", "drop"]], on=["seed", "model"], validate="many_to_one"
    )
    joined = joined.dropna(subset=["mcs", "drop"])
    rows: list[dict[str, Any]] = []
    for method, seed in dict.fromkeys(zip(series["method"], series["seed"], strict=True)):
        pairs = joined[(joined["method"] == method) & (joined["seed"] == seed)]
        rho = np.nan
        if len(pairs) >= LEAST_POINTS:
            values = (torch.tensor(pairs[name].to_numpy(dtype=np.float64)) for name in ("mcs", "drop"))
            rho = float(correlation(*values))
        rows.append({"method": method, "seed": seed, "correlation": rho, "points": len(pairs)})
    return pd.DataFrame(rows)


def series_tables(
    commonality: pd.DataFrame,
    series: pd.DataFrame,
    correlation: pd.DataFrame,
    *,
    scene: str,
    labels: Labels = UNLABELED,
) -> dict[str, pd.DataFrame]:
    """Return the three displayed tables by title: accuracy next to the paper's, MCS by k, and its baseline.

    Args:
        commonality: a ``commonality_table``.
        series: a ``series_table``.
        correlation: the ``correlation_table`` of both.
        scene: the first scene class.
        labels: labels of methods and models.
    """
    commonality, series, correlation = (
        with_labels(table, labels) for table in (commonality, series, correlation)
    )
    drop = commonality["printed_with"] - commonality["printed_without"]
    accuracy = commonality[["seed", "model", "k"]].assign(k=[f"{k:.3g}" for k in commonality["k"]])
    columns = {
        "with the object (%)": (commonality["with_object"], commonality["printed_with"]),
        "without the object (%)": (commonality["without"], commonality["printed_without"]),
        "drop (points)": (commonality["drop"], drop),
    }
    for name, values in columns.items():
        accuracy[f"{name}: this study / published"] = [
            f"{_percent_text(ours)} / {_percent_text(paper)}" for ours, paper in zip(*values, strict=True)
        ]
    rho = correlation[["method", "seed", "correlation"]].rename(columns={"correlation": "ρ with the drop"})
    on_object = _columns_by_k(series, "mcs").merge(rho, on=["method", "seed"], how="left")
    return {
        f"Accuracy on test images of {scene}": accuracy.assign(images=commonality["images"]),
        "MCS by commonality k, on the object": on_object,
        "MCS by commonality k, on an equal number of random pixels (TCAV: random concepts)": _columns_by_k(
            series, "random"
        ),
    }


def _percent_text(value: float) -> str:
    return f"{value:.1f}" if np.isfinite(value) else "–"


def _columns_by_k(series: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return one row per method and seed with a column per k, and the numbers of images with and without a value."""
    rows: list[dict[str, Any]] = []
    for (method, seed), group in series.groupby(["method", "seed"], sort=False):
        row = {"method": method, "seed": seed}
        row |= {f"k = {k:.3g}": value for k, value in zip(group["k"], group[name], strict=True)}
        counts = {"images": span_text(group["images"]), "without score": int(group["undefined"].sum())}
        rows.append({**row, **counts})
    return pd.DataFrame(rows)
