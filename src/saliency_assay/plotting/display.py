"""Result tables for HTML pages: labels in place of keys, and column names in words."""

from collections.abc import Mapping
from types import MappingProxyType

import pandas as pd

from saliency_assay.plotting.labels import with_labels
from saliency_assay.registry.directions import Direction
from saliency_assay.registry.labels import Labels

HEADS: Mapping[str, str] = MappingProxyType(
    {
        "data": "data set",
        "set": "data set",
        "other_metric": "other metric",
        "direction": "better direction",
        "baseline": "baseline",
        "baselines": "baselines",
        "seeds": "training seeds",
        "over": "variation over",
        "all_images": "all images",
        "undefined": "without score",
        "low": "lower CI limit",
        "high": "upper CI limit",
        "rank_low": "best rank",
        "rank_high": "worst rank",
        "lead": "lead in mean",
        "lead_over": "lead over",
        "lead_p": "p against all others (adjusted)",
        "above_baselines": "better than every baseline",
        "mean_worst": "mean, missing scores worst",
        "mean_best": "mean, missing scores best",
        "win_rate": "win rate",
        "lead_low": "lead, lower CI limit",
        "lead_high": "lead, upper CI limit",
        "best_share": "images with the best score",
        "ranked_by": "ranks compare",
        "other": "other method",
        "difference": "difference of means",
        "difference_low": "difference, lower CI limit",
        "difference_high": "difference, upper CI limit",
        "difference_p": "p of the difference",
        "skew_images": "images that skewness requires",
        "wins": "probability of winning",
        "wins_low": "winning, lower CI limit",
        "wins_high": "winning, upper CI limit",
        "wins_p": "p of the win rates",
        "wins_worst": "winning, missing scores worst",
        "wins_best": "winning, missing scores best",
        "detectable": "detectable difference",
        "images_needed": "images needed",
        "equivalent_p": "p of equivalence",
        "lower": "lower control",
        "lower_mean": "mean of the lower control",
        "upper": "upper control",
        "upper_mean": "mean of the upper control",
        "range_low": "range, lower CI limit",
        "range_high": "range, upper CI limit",
        "share": "share of the range",
        "share_low": "share, lower CI limit",
        "share_high": "share, upper CI limit",
        "concordance": "concordance",
        "concordance_low": "concordance, lower CI limit",
        "concordance_high": "concordance, upper CI limit",
        "alpha": "α",
        "alpha_low": "α, lower CI limit",
        "alpha_high": "α, upper CI limit",
        "correlation": "Spearman's ρ",
        "correlation_low": "ρ, lower CI limit",
        "correlation_high": "ρ, upper CI limit",
        "correlation_images": "images for ρ",
        "between": "raters",
        "raters": "number of raters",
        "printed": "published",
        "spread": "sd over samples of images",
        "selected": "selected value",
        "other_selected": "selected value of the other",
        "selection_images": "images of the selection",
        "baseline_spread": "sd of the baseline",
        "p_value": "p",
    }
)
"""Names of columns in words; all other columns keep their names."""
WORDS: Mapping[str, Mapping[object, str]] = MappingProxyType(
    {
        "baseline": {True: "yes", False: "no"},
        "kept": {True: "yes", False: "no"},
        "above_baselines": {1.0: "yes", 0.0: "no"},
        "baselines": {"with": "included", "without": "excluded", "none": "none in the study"},
        "between": {"halves": "halves of the images", "classes": "classes of the images"},
    }
)
"""Values of columns in words."""


def displayed(
    table: pd.DataFrame, labels: Labels, heads: Mapping[str, str] = MappingProxyType({})
) -> pd.DataFrame:
    """Return a result table for an HTML page, with the labels of ``with_labels`` and names of columns in words.

    Args:
        table: the content of a CSV file of results.
        labels: labels of the keys in the table; keys without a label stay.
        heads: names of columns that are not in ``HEADS``, or differ from it.
    """
    formatted = with_labels(table, labels)
    if "other_metric" in table:
        pairs = zip(table["other_metric"], table["other_variant"], strict=True)
        formatted["other_metric"] = [labels.score(*pair) for pair in pairs]
        formatted = formatted.drop(columns="other_variant")
    if "direction" in formatted:
        formatted["direction"] = formatted["direction"].map(lambda direction: Direction(direction).phrase)
    for column in WORDS.keys() & set(formatted):
        has_flags = any(isinstance(value, bool) for value in WORDS[column])
        if has_flags and pd.api.types.is_float_dtype(formatted[column]):
            continue  # scores of a baseline, not flags
        formatted[column] = [_in_words(value, WORDS[column]) for value in formatted[column]]
    return formatted.rename(columns={**HEADS, **heads})


def _in_words(value: object, texts: Mapping[object, str]) -> str:
    return "–" if value != value else texts.get(value, str(value))
