"""Tables of the retrain study: accuracy of every iteration, and overlap of its masks compared with random masks."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from saliency_assay.registry.labels import UNLABELED, Labels
from saliency_assay.storage.score_tables import COLUMNS
from saliency_assay.studies.retrain.overlap import expected_cma, expected_mamo, expected_mmo
from saliency_assay.studies.retrain.parameters import PROTOCOLS

KEYS = ["protocol", "fill", "method", "iteration"]
ACCURACIES = {
    "accuracy": "test",
    "accuracy_validation": "validation",
    "accuracy_train": "train",
    "accuracy_without_retraining": "without_retraining",
}
OVERLAPS = ("mmo", "mamo", "cma")
ARM = r"(?P<protocol>[^/]+)/(?P<fill>[^/]+)"
# Forms of variants in score tables, each with the regular expression that parses it.
FORMS = {
    "protocol/fill/iteration": rf"^{ARM}/(?P<iteration>\d+)$",
    "protocol/fill/first-second": rf"^{ARM}/(?P<first>\d+)-(?P<second>\d+)$",
    "protocol/fill/iteration/repeatN": rf"^{ARM}/(?P<iteration>\d+)/repeat(?P<repeat>\d+)$",
}


def named(protocol: str, fill: str) -> str:
    """Return the title of the panel of an arm, identified by protocol and fill."""
    return f"{protocol_label(protocol)}, {fill} fill"


def protocol_label(protocol: str) -> str:
    """Return the name of a protocol as papers write it."""
    return PROTOCOLS.get(protocol, protocol)


def means(scores: pd.DataFrame) -> pd.DataFrame:
    """Return means over the images of a score table, and their spread, for tables and figures.

    The rows of an arm do not depend on other arms, so the results for several arms can be concatenated.

    Args:
        scores: a score table with all seeds of its arms; text columns are strings or categories.

    Returns:
        One row for each study, data, model, method, metric, variant and seed, in the order of ``scores``: ``score``,
        the mean over images, or the score of a whole set; ``images``, the number of images with a score, 0 for the
        score of a set; ``images_sd``, the standard deviation over images (n − 1) of each image's mean over seeds,
        repeated for each seed.
    """
    columns = [name for name in COLUMNS if name not in ("image", "score")]
    text_columns = [name for name in columns if COLUMNS[name] == "str"]
    table = scores.groupby([*text_columns, "seed"], sort=False, observed=True)["score"].mean().reset_index()
    image_scores = scores[(scores["image"] >= 0) & scores["score"].notna()]
    images = image_scores.groupby([*text_columns, "seed"], sort=False, observed=True).size().rename("images")
    # Spread over images, not over seeds: the mean over seeds comes first.
    by_image = image_scores.groupby([*text_columns, "image"], sort=False, observed=True)["score"].mean()
    image_spreads = by_image.groupby(level=text_columns, sort=False, observed=True).std().rename("images_sd")
    table = table.astype({name: COLUMNS[name] for name in columns})
    for values, names in ((images, [*text_columns, "seed"]), (image_spreads, text_columns)):
        column = values.reset_index().astype({name: COLUMNS[name] for name in names})
        table = table.merge(column, how="left", on=names)
    table["images"] = table["images"].fillna(0).astype("int64")
    return table.reindex(columns=[*columns, "score", "images", "images_sd"])


def split_variants(table: pd.DataFrame, metrics: Sequence[str], form: str) -> pd.DataFrame:
    """Return the rows of ``metrics``, with the components of their variants as columns, numbers as int.

    Args:
        table: the ``means`` or the score table of one study, data set and model.
        metrics: names in the column ``metric``.
        form: one of ``FORMS``.

    Raises:
        ValueError: there are several studies, sets or models, no row of these metrics, or a variant of another form.
    """
    sources = table[["study", "data", "model"]].drop_duplicates()
    if len(sources) > 1:
        raise ValueError(f"scores: found {len(sources)} combinations of study, data and model, expected one")
    rows = table[table["metric"].isin(list(metrics))]
    if rows.empty:
        raise ValueError(f"scores: found none of {', '.join(metrics)}, expected at least one")
    # Only distinct variants are parsed: a score table may have millions of rows.
    variants = pd.Series(rows["variant"].unique(), dtype=str)
    components = variants.str.extract(FORMS[form]).set_index(variants)
    wrong = components.index[components["protocol"].isna()]
    if len(wrong):
        raise ValueError(f"variant: found {wrong[0]!r}, expected {form}")
    numbers = [name for name in components.columns if name not in ("protocol", "fill")]
    return rows.join(components.astype(dict.fromkeys(numbers, "int64")), on="variant")


def by_iteration(table: pd.DataFrame, iterations: int) -> pd.DataFrame:
    """Return the ``means`` of accuracy, MMO, MAMO and CMA with ``protocol``, ``fill`` and ``iteration`` as columns.

    Raises:
        ValueError: an iteration is above ``iterations``, or an error of ``split_variants``.
    """
    rows = split_variants(table, (*ACCURACIES, *OVERLAPS), "protocol/fill/iteration")
    last = int(rows["iteration"].max())
    if last > iterations:
        raise ValueError(f"iteration: found {last}, expected at most {iterations}")
    return rows


def expected(metric: str, iteration: int, *, area: int, occluded: int) -> float:
    """Return the expected MMO, MAMO or CMA, in pixels, of random masks of ``occluded`` of ``area`` pixels."""
    if metric == "mmo":
        return expected_mmo(occluded, area)
    return {"mamo": expected_mamo, "cma": expected_cma}[metric](iteration, occluded, area)


def summary(table: pd.DataFrame, *, area: int, occluded: int, iterations: int, classes: int) -> pd.DataFrame:
    """Return accuracy and mask overlap of every iteration, with their spreads and the values of random masks.

    Row i has the accuracy of f_i, which is trained on D_i, and MMO, MAMO and CMA of iteration i; CMA is the number of
    pixels occluded in D_{i+1}. Undefined values are NaN: MMO and MAMO from i = I − 1 on, CMA at i = I.

    Args:
        table: the study's ``means``.
        area: A, number of pixels of an image.
        occluded: k, number of pixels that a mask occludes.
        iterations: I.
        classes: K.

    Returns:
        One row for each of ``KEYS`` in the order of ``table``, with

        - ``nominal``, ``masked``: the share of pixels occluded in D_i: i·k/A, that of disjoint masks, and the measured
        one;
        - ``accuracy_test``, ``…_validation``, ``…_train``, and ``…_without_retraining``, that of f_0 on test images
          of D_i, NaN for i = 0, in 0–1, means over seeds, and ``…_sd`` over seeds (NaN for a single seed), with
          ``chance`` = 1/K;
        - ``seeds`` and ``images``, the numbers of seeds and test images;
        - for ``mmo``, ``mamo``, ``cma``: the mean in pixels; ``…_sd`` over images, of each image's mean over seeds;
          ``…_random``, the expectation for random masks; and each of these as ``…_share`` of k (MMO and MAMO) or A
          (CMA);
        - ``cma_most`` = (i + 1)·k, which is ρA after the last mask, and ``cma_of_most``, CMA's share of it.
    """
    rows = by_iteration(table, iterations)
    seed_groups = rows.pivot(index=[*KEYS, "seed"], columns="metric", values="score").groupby(
        level=KEYS, sort=False
    )
    mean, over_seeds = seed_groups.mean(), seed_groups.std()
    over_images = rows.groupby([*KEYS, "metric"], sort=False)["images_sd"].first().unstack("metric")
    table = pd.DataFrame(index=mean.index)
    iteration = table.index.get_level_values("iteration").to_numpy()
    table["nominal"] = iteration * occluded / area
    table["masked"] = _occluded_share(mean, area)
    for metric, split in ACCURACIES.items():
        table[f"accuracy_{split}"] = mean.get(metric, np.nan)
        table[f"accuracy_{split}_sd"] = over_seeds.get(metric, np.nan)
    table["chance"] = 1 / classes
    groups = rows[rows["images"] > 0].groupby(KEYS, sort=False)
    for name, counts in (("seeds", groups["seed"].nunique()), ("images", groups["images"].max())):
        table[name] = counts.reindex(table.index, fill_value=0)
    for metric in OVERLAPS:
        table[metric] = mean.get(metric, np.nan)
        table[f"{metric}_sd"] = over_images.get(metric, np.nan)
        random = np.array([expected(metric, int(i), area=area, occluded=occluded) for i in iteration])
        table[f"{metric}_random"] = np.where(table[metric].notna(), random, np.nan)
        denominator = area if metric == "cma" else occluded
        for name in (metric, f"{metric}_sd", f"{metric}_random"):
            table[f"{name}_share"] = table[name] / denominator
    table["cma_most"] = np.where(table["cma"].notna(), (iteration + 1) * occluded, np.nan)
    table["cma_of_most"] = table["cma"] / table["cma_most"]
    return ordered(table.reset_index(), rows)


def _occluded_share(mean: pd.DataFrame, area: int) -> "pd.Series[float]":
    """Return the share of pixels occluded in D_i: CMA of iteration i − 1, and 0 for D_0."""
    names = list(mean.index.names)
    previous_cma = mean.get("cma", pd.Series(np.nan, index=mean.index)).reset_index()
    previous_cma["iteration"] += 1  # the masks up to iteration i − 1 occlude D_i
    share = previous_cma.set_index(names).iloc[:, 0].reindex(mean.index) / area
    return share.mask(mean.index.get_level_values("iteration") == 0, 0.0)


def ordered(table: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Sort arms by their first appearance in ``rows``, and iterations in ascending order."""
    positions = {
        name: {value: position for position, value in enumerate(rows[name].unique())} for name in KEYS[:3]
    }
    return table.sort_values(
        KEYS, key=lambda column: column.map(positions.get(str(column.name), lambda i: i)), ignore_index=True
    )


def summary_tables(table: pd.DataFrame, study: str, labels: Labels = UNLABELED) -> dict[str, pd.DataFrame]:
    """Return a ``summary`` as two displayed tables by title: accuracy, and overlap of masks. Shares are in percent."""
    arms = table[KEYS].assign(
        protocol=table["protocol"].map(protocol_label),
        method=table["method"].map(labels.method),
    )
    shares = {"occluded, nominal (%)": "nominal", "occluded, measured (%)": "masked"}
    accuracies = dict(shares)
    split_names = {"test": "test", "validation": "validation", "train": "training"}
    for split, name in {**split_names, "without_retraining": "without retraining: test"}.items():
        accuracies[f"{name} accuracy (%)"] = f"accuracy_{split}"
        accuracies[f"{name}: sd over seeds"] = f"accuracy_{split}_sd"
    accuracies["chance (%)"] = "chance"
    accuracy = arms.assign(**{name: 100 * table[column] for name, column in accuracies.items()})
    overlap = arms.copy()
    for metric in OVERLAPS:
        name, denominator = metric.upper(), "A" if metric == "cma" else "k"
        overlap[f"{name} (pixels)"] = table[metric]
        overlap[f"{name} (% of {denominator})"] = 100 * table[f"{metric}_share"]
        overlap[f"{name}: sd over images (% of {denominator})"] = 100 * table[f"{metric}_sd_share"]
        overlap[f"{name} of random masks (% of {denominator})"] = 100 * table[f"{metric}_random_share"]
    overlap["CMA (% of (i + 1)·k)"] = 100 * table["cma_of_most"]
    counts = {"seeds": table["seeds"], "images": table["images"]}
    masked = table[list(OVERLAPS)].notna().any(axis=1)
    return {
        f"{labels.study(study)}: accuracy of f_i, trained on D_i": accuracy.assign(**counts),
        f"{labels.study(study)}: overlap of masks": overlap.assign(**counts)[masked],
    }
