"""Tables of the caption study: two models that use known halves of an image, and the scores of their explanations."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy import ndarray as Array

from saliency_assay.plotting.statistics import mean_and_error
from saliency_assay.plotting.text import Answer, joined
from saliency_assay.registry.labels import UNLABELED, Labels
from saliency_assay.reliability.variance import GROUPS, mean_of
from saliency_assay.storage import GROUP

ROLES = ("image", "caption")
"""The halves of an image that the first and the second model should use; also the sets with only this half."""
HALVES = {"image": "the picture", "caption": "the caption", "": "–"}
"""Names of the halves on pages."""
HEADS = {
    "used": "model uses",
    "infidelity": "INFD",
    "infidelity_error": "standard error of INFD",
    "share": "attribution on the used half (share)",
    "share_error": "standard error of the attribution",
    "above_half": "images with most attribution on the used half (share)",
    "above_half_error": "standard error of the images",
}
"""Names of the columns of a ``caption_table`` on pages."""
CHECKS = {
    "both": "accuracy, picture and caption, as in training",
    "image": "accuracy, picture alone (caption half black)",
    "caption": "accuracy, caption alone (picture half black)",
}

# Yeh et al. (2019), section 5 ("above 0.95") and footnote 7, in percent; and Table 3, by method.
PRINTED_ACCURACY = {
    ("image", "both"): 95.0,
    ("image", "image"): 90.0,
    ("image", "caption"): 50.0,
    ("caption", "both"): 95.0,
    ("caption", "image"): 50.0,
    ("caption", "caption"): 98.0,
}
PRINTED_INFIDELITY = {
    "gradient": 0.55,
    "gradient_x_input": 0.55,
    "smoothgrad": 0.38,
    "integrated_gradients": 0.35,
    "optimal_halves": 0.0,
}
ABOVE = 95.0  # percent; the test accuracy of both models is higher in the paper
CHANCE = (45.0, 55.0)  # percent; the range considered chance level, which is 0.5 in footnote 7
DECIDED = ("reproduced", "not reproduced")  # verdicts on claims that were tested
ZERO = 1e-6  # squared logits; an INFD up to this is 0 up to rounding


def premise(
    predictions: pd.DataFrame, *, image_model: str, caption_model: str, data: Sequence[str]
) -> pd.DataFrame:
    """Return the accuracy of both models on test images with both halves and with each half alone (footnote 7).

    Args:
        predictions: one row per model, seed, data and image, with ``split``, ``label`` and ``predicted``.
        image_model: the model that should rely on the picture.
        caption_model: the model that should rely on the caption.
        data: the data entry that each model was trained on; its sets are ``{entry}_both`` and so on.

    Returns:
        One row per model, seed and set: ``model, seed, set, check, percent, images, printed``;
        ``printed`` is the paper's value, a lower bound for ``both``.
    """
    test = predictions[predictions["split"] == "test"]
    rows: list[dict[str, Any]] = []
    for role, model, entry in zip(ROLES, (image_model, caption_model), data, strict=True):
        for seed, seed_rows in test[test["model"] == model].groupby("seed"):
            for member, check in CHECKS.items():
                table = seed_rows[seed_rows["data"] == f"{entry}_{member}"]
                is_correct = table["predicted"] == table["label"]
                percent = 100 * int(is_correct.sum()) / len(is_correct) if len(is_correct) else np.nan
                row = {"model": model, "seed": seed, "set": f"{entry}_{member}", "check": check}
                row |= {"percent": percent, "images": len(is_correct)}
                rows.append({**row, "printed": PRINTED_ACCURACY[role, member]})
    return pd.DataFrame(rows)


def used_half(checks: pd.DataFrame, model: str, seed: int) -> str:
    """Return the half that a model relies on, ``image`` or ``caption``: the one with the higher accuracy alone.

    The result is empty if both accuracies are equal or one was not measured. ``checks`` are from ``premise``.
    """
    alone = [accuracy(checks, model, seed, member) for member in ROLES]
    if alone[0] == alone[1] or np.isnan(alone).any():
        return ""
    return ROLES[int(np.argmax(alone))]


def accuracy(checks: pd.DataFrame, model: str, seed: int, member: str) -> float:
    """Return a model's test accuracy on its set ``member`` in percent; NaN if it was not measured."""
    rows = checks[(checks["model"] == model) & (checks["seed"] == seed)]
    percents = rows.loc[rows["check"] == CHECKS[member], "percent"]
    return float(percents.iloc[0]) if len(percents) else np.nan


def caption_table(scores: pd.DataFrame, checks: pd.DataFrame) -> pd.DataFrame:
    """Return INFD, and the attribution on the half that the model uses, for every model, seed and method.

    Args:
        scores: a score table of ``infidelity_halves`` and ``block_attribution``, whose block is the caption.
        checks: from ``premise``; they determine the used half.

    Returns:
        One row per model, seed and method: ``used``, the half; ``infidelity``, the mean INFD over images, in squared
        logits; ``share``, the mean share of absolute attribution on that half; ``above_half``, the share of images in
        which that half has more than half of it; ``…_error``, the standard error of each; ``images`` and ``undefined``,
        the numbers of images with and without an INFD. If ``scores`` has the column ``group``, ``groups`` is the number
        of groups with an INFD, and standard errors are those of ``variance.mean_of``.
    """
    infidelity = scores[(scores["metric"] == "infidelity") & (scores["variant"] == "infidelity_halves")]
    attribution = scores[scores["metric"] == "block_attribution"]
    keys = dict.fromkeys(zip(scores["model"], scores["seed"], scores["method"], strict=True))
    rows: list[dict[str, Any]] = []
    for model, seed, method in keys:
        used = used_half(checks, model, seed)
        of_method = [_select(table, model, seed, method) for table in (infidelity, attribution)]
        squared, shares = (table["score"].to_numpy(dtype=np.float64) for table in of_method)
        groups = [pd.factorize(table[GROUP])[0] if GROUP in table else None for table in of_method]
        if used == "image":
            shares = 1 - shares  # the scored block is the caption
        if not used:
            shares = np.full_like(shares, np.nan)
        above_half = np.where(np.isnan(shares), np.nan, shares > 0.5)
        row: dict[str, Any] = {"model": model, "seed": seed, "method": method, "used": used}
        columns = {"infidelity": (squared, 0), "share": (shares, 1), "above_half": (above_half, 1)}
        for name, (values, place) in columns.items():
            row[name], row[f"{name}_error"] = _mean_and_error(values, groups[place])
        defined = np.isfinite(squared)
        row |= {"images": int(defined.sum()), "undefined": int((~defined).sum())}
        if groups[0] is not None:
            row[GROUPS] = len(np.unique(groups[0][defined]))
        rows.append(row)
    return pd.DataFrame(rows)


def compare_with_printed(
    table: pd.DataFrame, methods: Mapping[str, str], labels: Labels = UNLABELED
) -> pd.DataFrame:
    """Return one row per method: means over seeds for each model and both, next to the values of Table 3.

    Args:
        table: from ``caption_table``.
        methods: name in Table 3 of each method of the study.
        labels: labels of methods and models.
    """
    models = list(dict.fromkeys(table["model"]))
    by_model = table.groupby(["method", "model"])[["infidelity", "share", "above_half"]].mean()
    rows: list[dict[str, Any]] = []
    for method in dict.fromkeys(table["method"]):
        model_means = by_model.loc[method].reindex(models)
        row: dict[str, Any] = {"method": labels.method(method)}
        row |= {f"INFD, {labels.model(model)}": model_means.loc[model, "infidelity"] for model in models}
        row |= {"INFD, mean of both": model_means["infidelity"].mean(skipna=False)}
        row |= {"INFD, published": PRINTED_INFIDELITY.get(methods.get(method, ""), np.nan)}
        row |= {
            f"share on the used half, {labels.model(model)}": model_means.loc[model, "share"]
            for model in models
        }
        rows.append(
            {
                **row,
                "images with most attribution on the used half": model_means["above_half"].mean(skipna=False),
            }
        )
    return pd.DataFrame(rows)


def answer(tables: Mapping[str, pd.DataFrame], labels: Labels = UNLABELED) -> list[Answer]:
    """Return for each model which methods highlight the half that it uses, with the share of attribution on this half.

    Shares are means over seeds, with the 95 % confidence interval over images of the figure.

    Args:
        tables: ``table`` from ``caption_table``, with the column ``reference``: best possible maps, which are left out.
        labels: labels of methods and models.
    """
    lines = []
    table = tables["table"]
    for model, rows in table[~table["reference"].astype(bool)].groupby("model", sort=False):
        halves = [half for half in dict.fromkeys(rows["used"]) if half]
        name = labels.model(str(model))
        if len(halves) != 1:
            lines.append(Answer(f"{name} does not use one half in all seeds, so its maps are not judged."))
            continue
        columns = ["share", "share_error"]
        means = rows.groupby("method", sort=False)[columns].mean().sort_values("share", ascending=False)
        above = [labels.method(str(name)) for name, *row in means.itertuples(name=None) if _low(*row) > 0.5]
        shares = [
            f"{labels.method(str(method))} {_share_text(share, error)}"
            for method, share, error in means.itertuples(name=None)
        ]
        who = f"Only {joined(above)}" if above else "No method"
        who = "All methods" if len(above) == len(means) else who
        verb = "highlight" if len(above) > 1 else "highlights" if above else "is shown to highlight"
        detail = f"share of attribution, 50 % is no preference: {', '.join(shares)}"
        lines.append(Answer(f"{verb} {HALVES[halves[0]]}, which {name} uses", who, detail))
    return lines


def _low(share: float, error: float) -> float:
    """Return the lower end of the 95 % confidence interval of a share; NaN if undefined."""
    return share - 1.96 * error


def _share_text(share: float, error: float) -> str:
    if np.isnan(share):
        return "undefined"
    ends = 100 * max(_low(share, error), 0), 100 * min(share + 1.96 * error, 1)
    interval = "" if np.isnan(error) else f" [{ends[0]:.0f}, {ends[1]:.0f} %]"
    return f"{100 * share:.0f} %{interval}"


def statements(
    checks: pd.DataFrame,
    table: pd.DataFrame,
    methods: Mapping[str, str],
    labels: Labels = UNLABELED,
    setting: str = "",
) -> pd.DataFrame:
    """Return the paper's claims about the experiment with verdicts: ``claim, source, measured, verdict``.

    ``setting`` is a phrase about the study's setting that follows the verdicts, if it differs from the paper's.
    """
    rows = [_accuracy_claim(checks)]
    rows += [
        _reliance_claim(checks, model, role, labels)
        for role, model in zip(ROLES, dict.fromkeys(checks["model"]), strict=True)
    ]
    means = compare_with_printed(table, methods, labels)[["method", "INFD, mean of both", "INFD, published"]]
    order = [row for row in means.itertuples(index=False, name=None) if not np.isnan(row[2])]
    rows += [_optimal_claim(order), _order_claim(order)]
    rows = [
        [*row, f"{verdict} {setting}".strip() if verdict in DECIDED else verdict] for *row, verdict in rows
    ]
    return pd.DataFrame(rows, columns=["claim", "source", "measured", "verdict"])


def _accuracy_claim(checks: pd.DataFrame) -> list[str]:
    accuracies = checks.loc[checks["check"] == CHECKS["both"], "percent"]
    measured = f"lowest accuracy {accuracies.min():.1f} %"
    claim = f"Both models classify more than {ABOVE:g} % of test images correctly."
    return [claim, "section 5", measured, _verdict(bool((accuracies > ABOVE).all()))]


def _reliance_claim(checks: pd.DataFrame, model: str, role: str, labels: Labels) -> list[str]:
    """Check that a model is above chance on one half alone and at chance on the other, for all seeds."""
    other = ROLES[1 - ROLES.index(role)]
    seeds = dict.fromkeys(checks.loc[checks["model"] == model, "seed"])
    alone = np.array([[accuracy(checks, model, seed, half) for half in (role, other)] for seed in seeds])
    half = "picture" if role == "image" else "caption"
    claim = f"{labels.model(model)} relies on the {half} alone."
    pairs_text = ", ".join(f"{used:.1f} % and {unused:.1f} %" for used, unused in alone)
    measured = f"{half} alone, other half alone: {pairs_text}; chance is {CHANCE[0]:g} to {CHANCE[1]:g} %"
    low, high = CHANCE
    holds = (alone[:, 0] > high) & (alone[:, 1] >= low) & (alone[:, 1] <= high)
    return [claim, "footnote 7", measured, _verdict(bool(holds.all()))]


def _optimal_claim(order: Sequence[tuple[str, float, float]]) -> list[str]:
    claim, source = "The optimal explanation has INFD 0.", "Table 3"
    optimal = [row for row in order if row[2] == 0]
    if not optimal:
        return [claim, source, "no method of the study is optimal for the halves", "not tested"]
    if unscored := _missing_scores_text(optimal):
        return [claim, source, unscored, "not tested"]
    measured = ", ".join(f"{method} {infidelity:.2g}" for method, infidelity, _ in optimal)
    return [claim, source, measured, _verdict(all(infidelity <= ZERO for _, infidelity, _ in optimal))]


def _missing_scores_text(rows: Sequence[tuple[str, float, float]]) -> str:
    names = [method for method, infidelity, _ in rows if np.isnan(infidelity)]
    return f"without a score: {', '.join(names)}" if names else ""


def _order_claim(order: Sequence[tuple[str, float, float]]) -> list[str]:
    """Check that a method with a higher printed INFD never has a lower INFD than one with a lower printed INFD."""
    claim, source = "INFD decreases in the published order: Grad ≥ Grad-SG ≥ IG ≥ OPT.", "Table 3"
    order = sorted(order, key=lambda row: -row[2])
    if len({printed for _, _, printed in order}) < 2:
        return [claim, source, "fewer than two of these methods are in the study", "not tested"]
    if unscored := _missing_scores_text(order):
        return [claim, source, unscored, "not tested"]
    measured = ", ".join(f"{method} {infidelity:.3g}" for method, infidelity, _ in order)
    pairs = [(first, second) for first in order for second in order if first[2] > second[2]]
    return [claim, source, measured, _verdict(all(first[1] >= second[1] for first, second in pairs))]


def _verdict(meets_criterion: bool) -> str:
    return DECIDED[0] if meets_criterion else DECIDED[1]


def _select(table: pd.DataFrame, model: str, seed: int, method: str) -> pd.DataFrame:
    return table[(table["model"] == model) & (table["seed"] == seed) & (table["method"] == method)]


def _mean_and_error(values: Array, groups: Array | None) -> tuple[float, float]:
    """Return mean and standard error of the finite values of ``[n]``, the error also of images in groups ``[n]``."""
    if groups is None:
        return mean_and_error(values)
    mean = mean_of(np.where(np.isfinite(values), values, np.nan), {GROUPS: groups})
    return mean.value, float(mean.variance**0.5)
