"""Results of studies of any size from generated scores, through the functions that compute the tables of a run."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from saliency_assay.plotting.thumbnails import thumbnails
from saliency_assay.registry.labels import Labels
from saliency_assay.registry.properties import PROPERTIES
from saliency_assay.reliability import statistics
from saliency_assay.reliability.across import ALL
from saliency_assay.reliability.controls import Controls, controls_table
from saliency_assay.reliability.evidence import evidence_table
from saliency_assay.reliability.order_tables import order_tables
from saliency_assay.reliability.reliability_tables import SCORED, by_method, groups, rankings_table
from saliency_assay.report.pages.study import StudyResult

METHODS = (
    *("Gradient", "Sensitivity", "Gradient × Input", "Guided Backpropagation", "CAM", "Grad-CAM"),
    *("Guided Grad-CAM", "SmoothGrad", "SmoothGrad-Squared", "VarGrad", "Integrated Gradients", "Occlusion"),
    *("LRP (α = 1, β = 0)", "LRP-ε", "Deep Taylor decomposition", "DeepLIFT", "Deep SHAP", "Kernel SHAP"),
)
SCORES = (
    *("AOPC (MoRF, L = 40)", "Faithfulness correlation", "Pointing game", "Relevance mass accuracy", "MCS"),
    *("SENS_MAX", "Sparseness", "SSIM after randomizing layer1.0.conv2", "INFD (squares)", "Custom score"),
)
IMAGES = 32
AGREEMENT = pd.DataFrame(columns=["metric", "variant", "between", "raters", "methods", "correlation"])


def generated_study(
    methods: int, metrics: int, seeds: int, *, baselines: int = 0, name: str = "s"
) -> StudyResult:
    """Return the results of a study.

    Metrics differ in the noise of their scores, from a ranking on which all images agree to one at random, and the
    second one lacks scores of the first method. Long names repeat with a number.

    Args:
        methods: number of methods, with baselines.
        metrics, seeds: number of metrics and of training seeds.
        baselines: number of baselines, the last methods.
        name: name of the study.
    """
    generator = np.random.default_rng(0)
    method_labels = [_numbered(METHODS, place) for place in range(methods - baselines)]
    method_labels += [f"Baseline {place + 1}" for place in range(baselines)]
    properties = [*PROPERTIES][: max(metrics // 2, 1)]
    labels = {f"score{place}": _numbered(SCORES, place) for place in range(metrics)}
    measured = {score: properties[place % len(properties)] for place, score in enumerate(labels)}
    shape = (metrics, seeds, IMAGES, methods)
    noise = np.geomspace(0.01, 40, metrics).reshape(-1, 1, 1, 1)
    values = -np.arange(methods) * 4 / methods + noise * generator.standard_normal(shape)
    values[min(1, metrics - 1), :, : IMAGES // 2, 0] = (
        np.nan if metrics > 1 else values[0, :, : IMAGES // 2, 0]
    )
    index = pd.MultiIndex.from_product(
        [labels, range(seeds), range(IMAGES), method_labels], names=["metric", "seed", "image", "method"]
    )
    scores = pd.DataFrame({"score": values.ravel()}, index=index).reset_index()
    scores = scores.assign(variant=scores["metric"], data="d", model="m")
    directions = dict.fromkeys(labels, "higher")
    of_baselines = method_labels[methods - baselines :]
    order, pairs = order_of(scores, directions, of_baselines, seeds)
    tables = {
        "order": order,
        "pairs": pairs,
        "reliability": reliability_of(scores[~scores["method"].isin(of_baselines)]),
        "rankings": rankings_table(scores, directions, of_baselines),
        "agreement": AGREEMENT,
        "controls": controls_of(scores, directions, method_labels[-1]),
    }
    images = generator.integers(0, 255, (6, 1, 8, 8), dtype=np.uint8)
    maps = {"m": {method: generator.random((6, 8, 8)) for method in method_labels}}
    return StudyResult(
        name=name,
        label=f"{methods} × {metrics}",
        page=f"Study {name}",
        labels=Labels(scores=labels),
        question="Do maps identify the pixels on which the model's output depends?",
        data="digits (1797 images)",
        models=["ResNet-8 (test accuracy 97.0 %)"],
        score_summaries=dict.fromkeys(labels, "a generated score"),
        measured=measured,
        methods=method_labels,
        tables=tables,
        level=0.95,
        thumbnails=thumbnails(images, maps, titles=[f"class {place}" for place in range(6)]),
    )


def controls_of(scores: pd.DataFrame, directions: dict[str, str], lower: str) -> pd.DataFrame:
    """Return the shares of the range from a method to a map with the score 9, the best possible one of every metric."""
    best = scores[scores["method"] == lower].assign(method="Object mask", score=9.0)
    upper = {score: {score: ["Object mask"]} for score in directions}
    return controls_table(pd.concat([scores, best]), directions, Controls(lower, upper))


def generated_evidence(studies: Sequence[StudyResult]) -> pd.DataFrame:
    """Return evidence of every kind on the metrics of studies, with findings that differ between metrics."""
    generator, rows = np.random.default_rng(0), []
    tables = {}
    for study in studies:
        scores = study.tables["order"][["metric", "variant"]].drop_duplicates()
        middle = generator.uniform(-0.5, 1, len(scores)).clip(-0.6, 0.6)
        order = scores.assign(micro=middle, micro_low=middle - 0.3, micro_high=middle + 0.3)
        meta = [
            scores.assign(test=test, seed=0, mc=0.6, mc_sd=0.02, iterations=3) for test in ("model", "input")
        ]
        truth = scores.assign(rank_low=1, rho=middle, rho_low=middle - 0.3, rho_high=middle + 0.3)
        rows.append(scores.assign(task=ALL, tasks=2, correlation=0.8, low=0.3, high=1.0))
        tables[study.name] = {
            **{name: study.tables[name] for name in ("reliability", "controls")},
            **{"known_order": order, "meta_consistency": pd.concat(meta), "metric_truth": truth},
        }
    measured = {score: measures for study in studies for score, measures in study.measured.items()}
    return evidence_table(tables, pd.concat(rows).drop_duplicates(["metric", "variant"]), measured, measured)


def order_of(
    scores: pd.DataFrame, directions: dict[str, str], baselines: Sequence[str], seeds: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return order and pairs of the methods as if all seeds had different images, so that ranks are certain."""
    images = scores["image"] + IMAGES * scores["seed"]
    order, pairs = order_tables(scores.assign(image=images, seed=0), directions, baselines)
    return order.assign(seeds=seeds, images=(order["images"] / seeds).astype(int)), pairs


def reliability_of(scores: pd.DataFrame) -> pd.DataFrame:
    """Return α of the methods in ``scores``; ``reliability_table`` also takes time for pairs of methods."""
    rows = []
    for names, of_metric in groups(scores, [*SCORED, "seed"]):
        wide = by_method(of_metric)
        alpha = statistics.alpha(wide.to_numpy(), resamples=50, level=0.95)
        concordance = statistics.concordance(wide.to_numpy(), level=0.95)
        values = {}
        for name, estimate in (("alpha", alpha), ("concordance", concordance)):
            values |= {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
        rows.append(
            {
                **names,
                "baselines": "without",
                "methods": wide.shape[1],
                "images": alpha.images,
                "two_valued": False,
                **values,
            }
        )
    return pd.DataFrame(rows)


def _numbered(names: tuple[str, ...], place: int) -> str:
    name = names[place % len(names)]
    return name if place < len(names) else f"{name} ({place // len(names) + 1})"
