"""Tables of the BAM study: the premise (Fig. 2 of the paper), and the metrics with baselines and spread."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import pandas as pd

from saliency_assay.registry.limits import Limits, PositiveInt
from saliency_assay.runtime.provenance import seed_of
from saliency_assay.studies.bam.mcs_and_idr import BASELINE_REGIONS

# Yang & Kim (2019), Fig. 2, in percent. The shares of images whose confidence rises are assigned to models as in the
# figure; the text (section 3.4) assigns 86.7 to f_s.
PRINTED_ACCURACY = {
    ("object", "os"): 91.1,
    ("object", "og"): 93.1,
    ("object", "0s"): 9.7,
    ("scene", "os"): 94.0,
    ("scene", "0s"): 95.5,
    ("scene", "og"): 9.8,
}
PRINTED_CONFIDENCE = {"object": 86.7, "scene": 79.5}

QUESTIONS = {
    ("object", "os"): "object on scene, as in training",
    ("object", "og"): "object on gray: scene removed",
    ("object", "0s"): "scene only: chance level if the model needs objects",
    ("scene", "os"): "object on scene, as in training",
    ("scene", "0s"): "scene only: common feature removed",
    ("scene", "og"): "object on gray: chance level if the model needs scenes",
}

KEYS = ("metric", "data", "method", "seed")
COLUMNS = [*KEYS, "score", "spread", "baseline", "baseline_spread", "images", "undefined"]


def premise(predictions: pd.DataFrame, *, data: str, object_model: str, scene_model: str) -> pd.DataFrame:
    """Return the test accuracies that show that f_o needs objects and f_s needs scenes (Yang & Kim 2019, Fig. 2).

    Args:
        predictions: one row per model, seed, data and image, with ``split``, ``label``, ``predicted`` and
            ``probability`` (softmax of the label's logit).
        data: the BAM data's name; its sets are ``{data}_os``, ``{data}_0s`` and ``{data}_og``.
        object_model: f_o.
        scene_model: f_s.

    Returns:
        One row per check and seed: ``model, seed, set, check, percent, images, printed`` with ``percent`` in
        0–100 and ``printed`` the paper's value.
    """
    test = predictions[predictions["split"] == "test"]
    rows: list[dict[str, Any]] = []
    for role, model in (("object", object_model), ("scene", scene_model)):
        for seed, seed_rows in test[test["model"] == model].groupby("seed"):
            sets = {name: table.set_index("image").sort_index() for name, table in seed_rows.groupby("data")}
            for (checked_role, member), question in QUESTIONS.items():
                if checked_role == role:
                    table = sets[f"{data}_{member}"]
                    is_correct = table["predicted"] == table["label"]
                    row = {"set": f"{data}_{member}", "check": f"accuracy, {question}"}
                    printed = PRINTED_ACCURACY[role, member]
                    rows.append(
                        {
                            "model": model,
                            "seed": seed,
                            **row,
                            **_percent_and_count(is_correct),
                            "printed": printed,
                        }
                    )
            removed = "og" if role == "object" else "0s"
            removed_part = "scene" if role == "object" else "object"
            row = {
                "set": f"{data}_os → {data}_{removed}",
                "check": f"confidence rises when the {removed_part} is removed",
            }
            rises = _percent_and_count(_confidence_rises(sets[f"{data}_os"], sets[f"{data}_{removed}"]))
            rows.append({"model": model, "seed": seed, **row, **rises, "printed": PRINTED_CONFIDENCE[role]})
    return pd.DataFrame(rows)


def _percent_and_count(holds: "pd.Series[bool]") -> dict[str, float]:
    """Return the percentage of True values, NaN without a value, and the number of values."""
    return {"percent": 100 * float(holds.mean()) if len(holds) else np.nan, "images": len(holds)}


def _confidence_rises(before: pd.DataFrame, after: pd.DataFrame) -> "pd.Series[bool]":
    """Return True where the label is more probable ``after``, for the images classified correctly ``before``."""
    is_correct = before["predicted"] == before["label"]
    rises: pd.Series[bool] = (
        after["probability"].loc[before.index][is_correct] > before["probability"][is_correct]
    )
    return rises


def metrics_table(
    scores: pd.DataFrame,
    parameters: Mapping[str, Mapping[str, Any]],
    metrics: Sequence[str] = ("mcs", "idr"),
    sets: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Return BAM's metrics of every set, method and seed, with the baseline of random pixels and the spread.

    Args:
        scores: a score table with ``metrics``, each in the variant ``object`` and in that of its
            baseline; one row for each image of X_corr.
        parameters: ``samples`` and ``sample_size`` of each metric; other keys are ignored.
        metrics: metrics of the table; ``BASELINE_REGIONS`` has the baseline variant of each.
        sets: the evaluated sets, X_os and then its variants; a set without images has rows of NaN. By default the sets
            in the rows of the metrics, in order of appearance.

    Returns:
        One row per metric, set, method and seed: ``metric, data, method, seed``; ``score`` and ``baseline``, means over
        ``images``; ``spread`` and ``baseline_spread``, the standard deviation of the mean over samples of images (Yang
        & Kim 2019, Figs. 4, 8); ``undefined``, the number of images of X_corr without a score, because a map is
        constant or not finite. Shares of images are in 0–1.
    """
    of_metrics = scores[scores["metric"].isin(metrics)]
    grouped = of_metrics.groupby(["metric", "data", "method", "seed", "variant"], sort=False, observed=True)
    values_by_key = {key: values.to_numpy() for key, values in grouped["score"]}
    # From all scores, not only those of the metrics: a method without images in X_corr has a row without a score.
    method_seeds = list(dict.fromkeys(zip(scores["method"], scores["seed"], strict=True)))
    rows: list[dict[str, Any]] = []
    for metric in metrics:
        baseline = BASELINE_REGIONS[metric]
        sampling = {name: parameters[metric][name] for name in ("samples", "sample_size")}
        for data in dict.fromkeys(of_metrics["data"]) if sets is None else sets:
            for method, seed in method_seeds:
                row: dict[str, Any] = {"metric": metric, "data": data, "method": method, "seed": seed}
                for variant, prefix in (("object", ""), (baseline, "baseline_")):
                    values = values_by_key.get((metric, data, method, seed, variant), np.empty(0))
                    valid = values[~np.isnan(values)]
                    # The seed does not depend on method and set, so all of them use the same samples of images.
                    generator = np.random.default_rng(seed_of(int(seed), "spread", metric))
                    row["baseline" if prefix else "score"] = float(valid.mean()) if len(valid) else np.nan
                    row[f"{prefix}spread"] = spread(values, generator=generator, **sampling)
                    if variant == "object":
                        row |= {"images": len(valid), "undefined": len(values) - len(valid)}
                rows.append(row)
    return pd.DataFrame(rows, columns=COLUMNS)


def spread(
    scores: np.ndarray,
    *,
    generator: np.random.Generator,
    samples: Annotated[int, Limits(minimum=2)] = 10,
    sample_size: PositiveInt = 100,
) -> float:
    """Return the standard deviation of means over ``samples`` subsets of ``sample_size`` images (BAM, Figs. 4, 8).

    ``scores`` is ``[N]``; NaN is ignored. Images are sampled without replacement within a sample, and samples are
    independent. The deviation has ``samples − 1`` in the denominator. It is NaN unless more than ``sample_size`` images
    are valid: otherwise all samples would contain the same images, and the deviation would be a meaningless 0.
    """
    if np.count_nonzero(~np.isnan(scores)) <= sample_size:
        return float("nan")
    # All images are shuffled before the valid ones are selected: methods with different missing scores then share most
    # of each sample.
    shuffled = (scores[generator.permutation(len(scores))] for _ in range(samples))
    means = [sample[~np.isnan(sample)][:sample_size].mean() for sample in shuffled]
    return float(np.std(means, ddof=1))
