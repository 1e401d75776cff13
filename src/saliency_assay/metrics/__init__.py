"""Registry of metrics; the Snakefile reads it, so this module must not import torch.

To add a metric, write its function in a module of this package and its record in ``METRICS``. Metrics that compare the
maps of two models or of two inputs are computed in ``studies/bam``.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf

from saliency_assay.registry.callable import CallableRegistry
from saliency_assay.registry.directions import HIGHER, LOWER, Direction
from saliency_assay.registry.properties import (
    COMPLEXITY,
    FAITHFULNESS,
    GROUND_TRUTH,
    LOCALIZATION,
    RANDOMIZATION,
    RELATIVE_IMPORTANCE,
    ROBUSTNESS,
)
from saliency_assay.registry.records import Parameter
from saliency_assay.registry.signatures import parameters_of

sys.modules[__name__].__class__ = CallableRegistry


@dataclass(frozen=True)
class Score:
    """One number per image that a metric returns, as described in the score table and the report."""

    name: str
    direction: Direction
    range: tuple[float, float]
    """Smallest and largest possible score, inclusive, with the metric's default parameters."""
    label: str
    """Name in figures, tables and pages, as papers write it."""
    rates_constant_maps: bool = False
    """True if a constant map has a score; by default its score is NaN."""
    unit: str = ""
    """Unit or statistic, for axes."""
    summary: str = ""
    """Description, if that of the metric does not apply to it."""


@dataclass(frozen=True)
class Figure:
    """A figure of a metric's scores."""

    function: str  # package.module:name of the plotting function, (results) -> Figure
    reads: tuple[str, ...] = ()  # inputs in addition to the score table: curves, responses


BOXES = Figure("saliency_assay.studies.fidelity.figures:boxes")


@dataclass(frozen=True)
class Metric:
    """A metric ``(predict, images, targets, maps, *, generator, **parameters) -> Scored``, or one of BAM studies."""

    name: str
    label: str
    """Name in figures, tables and pages, as papers write it."""
    function: str
    """``package.module:name`` of the callable."""
    reference: str
    summary: str
    scores: tuple[Score, ...]
    """Scores that are computed from the same passes through the model."""
    measures: str
    """Property of a map that it measures, one of ``registry.properties.PROPERTIES``."""
    reduction: str = "sum"
    """Reduction of raw maps that is part of the metric's definition; empty if the metric scores raw maps."""
    scores_single_maps: bool = True
    """True if it scores the maps of one model one by one; False if a BAM study uses it to compare models or inputs."""
    takes: tuple[str, ...] = ()
    """Arguments in addition to its parameters: ``mean``, the data set's mean ``[C]``; ``mask``, the object's pixels,
    bool ``[N, H, W]``; ``responses``, its model responses; ``explain``, the method ``(images, targets, model=None) ->
    maps``; ``randomized_model``, the model with new weights; ``finetuned_model``, the model trained further."""
    responses: str = ""
    """``package.module:name`` of the function that computes its model responses once for all methods, because they do
    not depend on the maps: ``(predict, images, targets, *, generator, **parameters) -> {name: [N, …]}``, with the
    metric's seed. Figures may read them, too."""
    finetuning: Mapping[str, str] = field(default_factory=dict)
    """For metrics that take ``finetuned_model``, the training parameters of this model that equal parameters of the
    metric."""
    in_domain: Mapping[str, str] = field(default_factory=dict)
    """Training parameters of models that are trained on images as the metric evaluates, and the parameters of the
    metric that they equal; the first is 0 for other models."""
    figures: Mapping[str, Figure] = field(default_factory=lambda: {"scores": BOXES})
    sub_variants: Mapping[str, str] = field(default_factory=dict)
    """Labels of sub-variants: regular expressions and formats of their groups; see ``registry.labels``."""
    formula: str = ""
    """Formula in one line of text; docs/metrics.md explains its symbols."""
    check: str = ""
    """``package.module:name`` of a function that returns why parameters are inconsistent; it must not import torch."""
    read_by: tuple[str, ...] = ()
    """``package.module:name`` of the functions and records that take its parameters; by default its function and its
    ``responses``."""
    noise_group: str = ""
    """Part of the seed of its random numbers; by default its name."""
    needs: tuple[str, ...] = ()
    """Requirements on the model, as those of a method."""
    several_classes: bool = False
    """True if a model with one output has no scores: the metric has no parameter ``output``, and uses probabilities or
    other classes."""
    passes: float | str | None = None
    """Images, for each scored image, that go through the model: a number, ``package.module:name`` of a function
    (``metrics.cost``), or None if it depends on the map or on the layers of the model."""

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """Return the keyword-only parameters of its functions, by name."""
        functions = self.read_by or filter(None, (self.responses, self.function))
        return parameters_of(
            *functions,
            apart=("reduction", *self.takes),
        )


_SPREAD_OF_SCORES = "saliency_assay.studies.bam.metric_tables:spread"
_INFIDELITY = (Score("infidelity", LOWER, (0, inf), "INFD", True, "squared logits"),)
_INFD = "INFD = E_I (IᵀΦ − (f(x) − f(x − I)))²"
_AOPC_CURVES = Figure("saliency_assay.studies.fidelity.curves:aopc_curves", ("curves", "responses"))
_REMOVAL_CURVES = Figure("saliency_assay.studies.fidelity.curves:removal_curves", ("curves",))
_SUBSET_CURVES = Figure("saliency_assay.studies.fidelity.curves:subset_curves", ("curves",))
_RANDOMIZATION_CURVES = Figure("saliency_assay.studies.fidelity.curves:randomization_curves", ("curves",))

METRICS: tuple[Metric, ...] = (
    Metric(
        "aopc",
        "AOPC",
        "saliency_assay.metrics.aopc:aopc",
        "Samek et al., 2017; Tomsett et al., 2020",
        "area over the perturbation curve: decrease of the output as pixels are replaced one at a time",
        formula="AOPC_L = 1/(L + 1) Σ_{k=1..L} (f(x⁰) − f(x^k)), x^k without its k most (MoRF) or least "
        "(LeRF) relevant pixels",
        scores=(
            Score("aopc_morf", HIGHER, (-1, 1), "AOPC (MoRF)"),
            Score("aopc_lerf", LOWER, (-1, 1), "AOPC (LeRF)"),
        ),
        measures=FAITHFULNESS,
        takes=("mean",),
        responses="saliency_assay.metrics.aopc:random_orders",
        sub_variants={"L=(.+)": "(L = {})"},
        figures={"curves": _AOPC_CURVES, "scores": BOXES},
        passes="saliency_assay.metrics.cost:orders_of_steps",
    ),
    Metric(
        "faithfulness",
        "Faithfulness correlation estimate",
        "saliency_assay.metrics.faithfulness:faithfulness",
        "Alvarez-Melis & Jaakkola, 2018; Tomsett et al., 2020",
        "correlation of a pixel's relevance with the decrease of the output when that pixel is replaced",
        formula="F = Pearson's ρ(R_i, f(x) − f(x without pixel i)) over random pixels i",
        scores=(
            Score("faithfulness", HIGHER, (-1, 1), "Faithfulness correlation estimate", unit="Pearson's ρ"),
        ),
        measures=FAITHFULNESS,
        takes=("mean", "responses"),
        responses="saliency_assay.metrics.faithfulness:single_pixels",
        figures={"scores": Figure("saliency_assay.studies.fidelity.figures:distributions")},
        passes="saliency_assay.metrics.cost:single_pixels",
    ),
    Metric(
        "necessity_sufficiency",
        "Necessity and sufficiency",
        "saliency_assay.metrics.necessity_sufficiency:necessity_sufficiency",
        "Wang et al., 2020",
        "agreement of positive relevance with the necessity and sufficiency of pixels, in order (N-Ord, S-Ord) and in "
        "proportion (TPN, TPS)",
        formula="N-Ord = mean_m max(R_m − y_b, 0); S-Ord = mean_m (min(R′_m, y_0) − y_b); TPN = ∫|R(π) − R(π "
        "reversed)| dk / (r y_0), TPS the same with R′ and r′",
        scores=(
            Score("n_ord", LOWER, (0, 1), "N-Ord"),
            Score("s_ord", HIGHER, (-1, 1), "S-Ord"),
            Score("tpn", LOWER, (0, inf), "TPN", True),
            Score("tps", LOWER, (0, inf), "TPS", True),
        ),
        measures=FAITHFULNESS,
        takes=("mean",),
        noise_group="criteria",  # its name in version 0.1, so that random fills stay the same
        figures={
            "boxes": Figure(
                "saliency_assay.studies.fidelity.necessity_sufficiency_figures:necessity_sufficiency_boxes"
            ),
            "areas": Figure(
                "saliency_assay.studies.fidelity.necessity_sufficiency_figures:necessity_sufficiency_areas",
                ("curves",),
            ),
        },
    ),
    Metric(
        "deletion",
        "Deletion",
        "saliency_assay.metrics.deletion:deletion",
        "Petsiuk et al., 2018",
        "area under the curve of the output as pixels are removed, the most salient first",
        formula="∫₀¹ f(x with the most relevant share p of its pixels replaced by the fill) dp",
        scores=(Score("deletion", LOWER, (0, 1), "Deletion", unit="AUC"),),
        measures=FAITHFULNESS,
        takes=("mean",),
        figures={"curves": _REMOVAL_CURVES, "scores": BOXES},
        passes="saliency_assay.metrics.cost:blocks",
    ),
    Metric(
        "insertion",
        "Insertion",
        "saliency_assay.metrics.deletion:insertion",
        "Petsiuk et al., 2018",
        "area under the curve of the output as pixels are inserted, the most salient first",
        formula="∫₀¹ f(fill image with the most relevant share p of x's pixels inserted) dp",
        scores=(Score("insertion", HIGHER, (0, 1), "Insertion", unit="AUC"),),
        measures=FAITHFULNESS,
        takes=("mean",),
        figures={"curves": _REMOVAL_CURVES, "scores": BOXES},
        passes="saliency_assay.metrics.cost:blocks",
    ),
    Metric(
        "road",
        "ROAD",
        "saliency_assay.metrics.road:road",
        "Rong et al., 2022",
        "mean output as a growing share of pixels is replaced by a noisy interpolation of their neighbors",
        formula="mean over shares p of f(x with the share p of its most (MoRF) or least (LeRF) relevant pixels "
        "imputed from their neighbors)",
        scores=(
            Score("road_morf", LOWER, (0, 1), "ROAD (MoRF)"),
            Score("road_lerf", HIGHER, (0, 1), "ROAD (LeRF)"),
        ),
        measures=FAITHFULNESS,
        figures={"curves": _REMOVAL_CURVES, "scores": BOXES},
        passes="saliency_assay.metrics.cost:orders_of_points",
    ),
    Metric(
        "f_fidelity",
        "F-Fidelity",
        "saliency_assay.metrics.f_fidelity:f_fidelity",
        "Zheng et al., 2025",
        "decrease of the output of a fine-tuned model as random pixels of the explanation, or of the rest, are removed",
        formula="mean over s of f_r(x) − E f_r(x without min(α⁺s, βd) random ones of the s most relevant of d pixels "
        "(FFid+), or min(α⁻(d − s), βd) of the others (FFid−))",
        scores=(
            Score("f_fidelity_plus", HIGHER, (-1, 1), "FFid+"),
            Score("f_fidelity_minus", LOWER, (-1, 1), "FFid−"),
        ),
        measures=FAITHFULNESS,
        takes=("mean", "finetuned_model"),
        finetuning={"augment_removal": "beta", "augment_fill": "fill"},
        passes="saliency_assay.metrics.cost:samples_of_points",
    ),
    Metric(
        "single_deletion",
        "Single deletion",
        "saliency_assay.metrics.single_deletion:single_deletion",
        "Hesse et al., 2024",
        "rank correlation of the attribution of cells of a grid with the decrease of the output when one is deleted",
        formula="Spearman's ρ(Σ_{i ∈ c} R_i, f(x) − f(x without c)) over the cells c of a grid",
        scores=(Score("single_deletion", HIGHER, (-1, 1), "Single deletion", unit="Spearman's ρ"),),
        measures=FAITHFULNESS,
        takes=("mean", "responses"),
        responses="saliency_assay.metrics.single_deletion:deleted_cells",
        in_domain={"augment_deletion": "grid", "augment_fill": "fill"},
        passes="saliency_assay.metrics.cost:cells",
    ),
    Metric(
        "average_drop",
        "Average drop",
        "saliency_assay.metrics.average_drop:average_drop",
        "Chattopadhay et al., 2018; Zhang et al., 2024",
        "change of the probability from the image to its product with the map: relative decrease, relative increase, "
        "and share of images with an increase",
        formula="drop = max(y − o, 0) / y; gain = max(o − y, 0) / (1 − y); increase = 1 if o > y, else 0; y the "
        "probability for the image, o for its product with the map",
        scores=(
            Score("average_drop", LOWER, (0, 1), "Average drop"),
            Score("average_gain", HIGHER, (0, 1), "Average gain"),
            Score("increase_in_confidence", HIGHER, (0, 1), "Increase in confidence", unit="share of images"),
        ),
        measures=FAITHFULNESS,
        takes=("mean",),
        passes=2,
        several_classes=True,
    ),
    Metric(
        "sensitivity_n",
        "Sensitivity-n",
        "saliency_assay.metrics.sensitivity_n:sensitivity_n",
        "Ancona et al., 2018",
        "correlation of a random subset's summed attribution with the decrease of the output when it is removed",
        formula="mean over n of Pearson's ρ(Σ_{i ∈ S} R_i, f(x) − f(x without S)) over random sets S of n pixels",
        scores=(Score("sensitivity_n", HIGHER, (-1, 1), "Sensitivity-n", unit="Pearson's ρ"),),
        measures=FAITHFULNESS,
        takes=("mean", "responses"),
        responses="saliency_assay.metrics.sensitivity_n:random_subsets",
        sub_variants={"n=(.+)": "(n = {})"},
        figures={"curves": _SUBSET_CURVES, "scores": BOXES},
        passes="saliency_assay.metrics.cost:sizes_of_subsets",
    ),
    Metric(
        "faithfulness_correlation",
        "Faithfulness correlation",
        "saliency_assay.metrics.sensitivity_n:faithfulness_correlation",
        "Bhatt et al., 2020",
        "correlation of the summed attribution of random sets of one size with the decrease of the output without them",
        formula="ρ(Σ_{i ∈ S} R_i, f(x) − f(x without S)) over random sets S of a share of the pixels",
        scores=(
            Score(
                "faithfulness_correlation",
                HIGHER,
                (-1, 1),
                "Faithfulness correlation",
                unit="ρ",
            ),
        ),
        measures=FAITHFULNESS,
        takes=("mean", "responses"),
        responses="saliency_assay.metrics.sensitivity_n:random_sets",
        check="saliency_assay.methods.checks:grid",
        passes="saliency_assay.metrics.cost:subsets",
    ),
    Metric(
        "region_perturbation",
        "Region perturbation",
        "saliency_assay.metrics.regions:region_perturbation",
        "Samek et al., 2017",
        "area over the perturbation curve: decrease of the output as squares of a grid are replaced one at a time",
        formula="1/(L + 1) Σ_{k=0..L} (f(x⁰) − f(x^k)), x^k without its k most (MoRF) or least (LeRF) relevant squares",
        scores=(
            Score("region_perturbation_morf", HIGHER, (-1, 1), "Region perturbation (MoRF)"),
            Score("region_perturbation_lerf", LOWER, (-1, 1), "Region perturbation (LeRF)"),
        ),
        measures=FAITHFULNESS,
        takes=("mean",),
        passes="saliency_assay.metrics.cost:orders_of_regions",
    ),
    Metric(
        "irof",
        "IROF",
        "saliency_assay.metrics.regions:irof",
        "Rieger & Hansen, 2020",
        "iterative removal of features: area over the relative output as superpixels are replaced",
        formula="1 − ∫₀¹ f(x without the share p of its superpixels, the most relevant first) / f(x) dp",
        scores=(Score("irof", HIGHER, (-inf, 1), "IROF"),),
        measures=FAITHFULNESS,
        takes=("mean",),
        several_classes=True,
    ),
    Metric(
        "monotonicity",
        "Monotonicity",
        "saliency_assay.metrics.monotonicity:monotonicity",
        "Arya et al., 2019; Luss et al., 2019",
        "share of steps in which the output does not decrease as pixels are inserted, the least relevant first",
        formula="share of steps k with f(x_k) ≥ f(x_{k−1}), x_k the fill image with the k least relevant blocks of x",
        scores=(Score("monotonicity", HIGHER, (0, 1), "Monotonicity"),),
        measures=FAITHFULNESS,
        takes=("mean",),
        passes="saliency_assay.metrics.cost:blocks",
    ),
    Metric(
        "saco",
        "SaCo",
        "saliency_assay.metrics.saco:saco",
        "Wu et al., 2024",
        "salience-guided faithfulness coefficient: agreement of the order of groups of pixels by salience with that by "
        "the decrease of the output without them, weighted by differences of salience",
        formula="Σ_{i<j} ±(s_i − s_j) / Σ_{i<j} (s_i − s_j), + if f(x) − f(x without group i) ≥ f(x) − f(x without "
        "group j); s_i the mean relevance of group i, s_1 ≥ s_2 ≥ …",
        scores=(Score("saco", HIGHER, (-1, 1), "SaCo"),),
        measures=FAITHFULNESS,
        takes=("mean",),
        passes="saliency_assay.metrics.cost:groups",
    ),
    Metric(
        "non_sensitivity",
        "Non-sensitivity",
        "saliency_assay.metrics.non_sensitivity:non_sensitivity",
        "Nguyen & Martínez, 2020",
        "share of pixels that have no relevance although they affect the output, or relevance without an effect",
        formula="|{i : R_i = 0} Δ {i : f(x) = f(x without pixel i)}| / n over n random pixels i, Δ the symmetric "
        "difference",
        scores=(Score("non_sensitivity", LOWER, (0, 1), "Non-sensitivity", True, "share of pixels"),),
        measures=FAITHFULNESS,
        reduction="abs_sum",
        takes=("mean", "responses"),
        responses="saliency_assay.metrics.faithfulness:single_pixels",
        passes="saliency_assay.metrics.cost:single_pixels",
    ),
    Metric(
        "completeness",
        "Completeness error",
        "saliency_assay.metrics.completeness:completeness",
        "Sundararajan et al., 2017",
        "difference between a map's sum and the change of the output from the fill image to the image",
        formula="|Σ_i R_i − (f(x) − f(x′))|, x′ the fill image",
        scores=(Score("completeness", LOWER, (0, inf), "Completeness error", True, "logits"),),
        measures=FAITHFULNESS,
        takes=("mean",),
        passes=2,
    ),
    Metric(
        "infidelity_square",
        "INFD (squares)",
        "saliency_assay.metrics.infidelity:infidelity_square",
        "Yeh et al., 2019",
        "squared error of the map's prediction of how the logit changes when a square turns black",
        formula=f"{_INFD}, I the image inside a square",
        scores=_INFIDELITY,
        measures=FAITHFULNESS,
        reduction="",
        takes=("responses",),
        responses="saliency_assay.metrics.infidelity:removed_squares",
        check="saliency_assay.methods.checks:sides",
        passes="saliency_assay.methods.cost:squares",
    ),
    Metric(
        "infidelity_noisy_baseline",
        "INFD (noisy baseline)",
        "saliency_assay.metrics.infidelity:infidelity_noisy_baseline",
        "Yeh et al., 2019",
        "squared error of the map's prediction of how the logit changes when pixels are replaced by noise around black",
        formula=f"{_INFD}, I = x − z, z noise around black",
        scores=_INFIDELITY,
        measures=FAITHFULNESS,
        reduction="",
        takes=("responses",),
        responses="saliency_assay.metrics.infidelity:noisy_baselines",
        passes="saliency_assay.methods.cost:shared_samples",
    ),
    Metric(
        "infidelity_subset",
        "INFD (subsets)",
        "saliency_assay.metrics.infidelity:infidelity_subset",
        "Yeh et al., 2019",
        "squared error of the map's prediction of how the logit changes when random pixels turn black",
        formula=f"{_INFD}, I the image at a random subset of pixels",
        scores=_INFIDELITY,
        measures=FAITHFULNESS,
        reduction="",
        takes=("responses",),
        responses="saliency_assay.metrics.infidelity:removed_subsets",
        passes="saliency_assay.metrics.cost:samples",
    ),
    Metric(
        "infidelity_shap",
        "INFD (Shapley kernel)",
        "saliency_assay.metrics.infidelity:infidelity_shap",
        "Yeh et al., 2019; Lundberg & Lee, 2017",
        "squared error of the map's prediction of how the logit changes when a Shapley coalition of pixels turns black",
        formula=f"{_INFD}, I the image at a subset sampled by the Shapley kernel",
        scores=_INFIDELITY,
        measures=FAITHFULNESS,
        reduction="",
        takes=("responses",),
        responses="saliency_assay.metrics.infidelity:removed_coalitions",
        passes="saliency_assay.metrics.cost:samples",
    ),
    Metric(
        "infidelity_halves",
        "INFD (halves)",
        "saliency_assay.metrics.infidelity:infidelity_halves",
        "Yeh et al., 2019",
        "squared error of the map's prediction of how the logit changes when the left or the right half turns black",
        formula=f"{_INFD}, I the image inside its left or its right half",
        scores=_INFIDELITY,
        measures=FAITHFULNESS,
        reduction="",
        takes=("responses",),
        responses="saliency_assay.metrics.infidelity:removed_halves",
        passes=3,
    ),
    Metric(
        "sensitivity_max",
        "SENS_MAX",
        "saliency_assay.metrics.sensitivity_max:sensitivity_max",
        "Yeh et al., 2019",
        "largest change of the map under small perturbations of the image, relative to the map's norm",
        formula="max over ‖y − x‖_∞ ≤ r of ‖Φ(f, y) − Φ(f, x)‖ / ‖Φ(f, x)‖ (not divided if `relative` is false)",
        scores=(Score("sensitivity_max", LOWER, (0, inf), "SENS_MAX", True),),
        measures=ROBUSTNESS,
        reduction="",
        takes=("explain",),
        passes="saliency_assay.metrics.cost:explained_samples",
    ),
    Metric(
        "local_lipschitz",
        "Local Lipschitz estimate",
        "saliency_assay.metrics.local_lipschitz:local_lipschitz",
        "Alvarez-Melis & Jaakkola, 2018",
        "largest change of the map per change of the image, under small perturbations",
        formula="max over ‖y − x‖_∞ ≤ r of ‖Φ(f, y) − Φ(f, x)‖₂ / ‖y − x‖₂",
        scores=(Score("local_lipschitz", LOWER, (0, inf), "Local Lipschitz estimate", True),),
        measures=ROBUSTNESS,
        reduction="",
        takes=("explain",),
        passes="saliency_assay.metrics.cost:explained_samples",
    ),
    Metric(
        "relative_stability",
        "Relative stability",
        "saliency_assay.metrics.relative_stability:relative_stability",
        "Agarwal et al., 2022",
        "largest relative change of the map under noise, per change of the image, of the last hidden representation, "
        "and of the logits",
        formula="max over noisy x′ of ‖(e_x − e_x′) / e_x‖₂ / d, e the map; d = ‖(x − x′) / x‖₂ (RIS), "
        "‖(L_x − L_x′) / L_x‖₂ with representation L (RRS), ‖h(x) − h(x′)‖₂ with logits h (ROS)",
        scores=(
            Score("ris", LOWER, (0, inf), "RIS", True),
            Score("rrs", LOWER, (0, inf), "RRS", True),
            Score("ros", LOWER, (0, inf), "ROS", True),
        ),
        measures=ROBUSTNESS,
        reduction="",
        takes=("explain",),
        passes="saliency_assay.metrics.cost:evaluated_and_explained_samples",
    ),
    Metric(
        "input_invariance",
        "Input invariance",
        "saliency_assay.metrics.input_invariance:input_invariance",
        "Kindermans et al., 2019",
        "relative change of the map if a constant is added to the image and the model subtracts it again",
        formula="‖Φ(f₂, x + m) − Φ(f, x)‖ / ‖Φ(f, x)‖, f₂(x + m) = f(x)",
        scores=(Score("input_invariance", LOWER, (0, inf), "Input invariance error", True),),
        measures=ROBUSTNESS,
        reduction="",
        takes=("explain",),
        check="saliency_assay.methods.checks:shift",
        passes="saliency_assay.metrics.cost:explained",
    ),
    Metric(
        "sparseness",
        "Sparseness",
        "saliency_assay.metrics.concentration:sparseness",
        "Chalasani et al., 2020",
        "Gini index of the absolute attribution of the pixels",
        formula="Σ_k (2k − P − 1) a_(k) / (P Σ_k a_(k)), a_(k) the k-th smallest absolute attribution of P pixels",
        scores=(Score("sparseness", HIGHER, (0, 1), "Sparseness", True, "Gini index"),),
        measures=COMPLEXITY,
        reduction="abs_sum",
        passes=0,
    ),
    Metric(
        "complexity",
        "Complexity",
        "saliency_assay.metrics.concentration:complexity",
        "Bhatt et al., 2020",
        "entropy of the shares of the pixels in the absolute attribution",
        formula="−Σ_i p_i ln p_i, p_i = |R_i| / Σ |R|",
        scores=(Score("complexity", LOWER, (0, inf), "Complexity", True, "nats"),),
        measures=COMPLEXITY,
        reduction="abs_sum",
        passes=0,
    ),
    Metric(
        "effective_complexity",
        "Effective complexity",
        "saliency_assay.metrics.concentration:effective_complexity",
        "Nguyen & Martínez, 2020; Hedström et al., 2023",
        "number of pixels whose absolute attribution exceeds a share of the map's maximum",
        formula="|{i : |R_i| > t max |R|}|",
        scores=(Score("effective_complexity", LOWER, (0, inf), "Effective complexity", True, "pixels"),),
        measures=COMPLEXITY,
        reduction="abs_sum",
        passes=0,
    ),
    Metric(
        "pointing_game",
        "Pointing game",
        "saliency_assay.metrics.localization:pointing_game",
        "Zhang et al., 2018",
        "hit rate: share of maps whose maximum lies on the object",
        formula="1 if the maximum lies within the tolerance of the object, else 0",
        scores=(Score("pointing_game", HIGHER, (0, 1), "Pointing game", unit="hit rate"),),
        measures=LOCALIZATION,
        takes=("mask",),
        passes=0,
    ),
    Metric(
        "mask_attribution",
        "Relevance accuracy",
        "saliency_assay.metrics.localization:mask_attribution",
        "Arras et al., 2022",
        "share of the positive attribution, and share of the most relevant pixels, on the object",
        formula="mass = Σ_M max(R, 0) / Σ max(R, 0); rank = |(the |M| pixels of greatest R) ∩ M| / |M|",
        scores=(
            Score(
                "relevance_mass_accuracy",
                HIGHER,
                (0, 1),
                "Relevance mass accuracy",
                summary="share of the positive attribution that is on the object",
            ),
            Score(
                "relevance_rank_accuracy",
                HIGHER,
                (0, 1),
                "Relevance rank accuracy",
                summary="share of the |M| most relevant pixels that are on the object, which has |M| pixels",
            ),
        ),
        measures=LOCALIZATION,
        takes=("mask",),
        passes=0,
    ),
    Metric(
        "mask_overlap",
        "Overlap with the mask",
        "saliency_assay.metrics.localization:mask_overlap",
        "Zhou et al., 2016",
        "overlap of the object and the pixels above a threshold",
        formula="IoU = |T ∩ M| / |T ∪ M|; Dice = 2|T ∩ M| / (|T| + |M|); T the pixels above the threshold",
        scores=(
            Score("iou", HIGHER, (0, 1), "IoU"),
            Score("dice", HIGHER, (0, 1), "Dice"),
        ),
        measures=LOCALIZATION,
        takes=("mask",),
        passes=0,
    ),
    Metric(
        "mask_ranking",
        "Ranking of the mask",
        "saliency_assay.metrics.localization:mask_ranking",
        "Fawcett, 2006; Choe et al., 2020",
        "area under the ROC curve, and average precision, of the map as a predictor of the object's pixels",
        formula="AUC = P(R_i > R_j) + P(R_i = R_j) / 2, i in M, j not in M; AP = mean over i in M of "
        "|{k in M : R_k ≥ R_i}| / |{k : R_k ≥ R_i}|",
        scores=(
            Score("mask_auc", HIGHER, (0, 1), "ROC AUC of the mask"),
            Score("average_precision", HIGHER, (0, 1), "Average precision of the mask"),
        ),
        measures=LOCALIZATION,
        takes=("mask",),
        passes=0,
    ),
    Metric(
        "block_attribution",
        "Block attribution",
        "saliency_assay.metrics.block_attribution:block_attribution",
        "Yeh et al., 2019",
        "share of the absolute attribution on the caption or the object",
        formula="Σ_M |Φ| / Σ |Φ|",
        scores=(Score("block_attribution", HIGHER, (0, 1), "Block attribution", True),),
        measures=LOCALIZATION,
        reduction="abs_sum",
        takes=("mask",),
        passes=0,
    ),
    Metric(
        "truth_agreement",
        "Agreement with exact importance",
        "saliency_assay.metrics.truth:truth_agreement",
        "this project; Zhang et al., 2023",
        "agreement of the map with the exact importance of the pixels of a designed network",
        formula="Pearson's ρ(R, φ); Σ_{φ ≠ 0} |R| / Σ |R|; P(|R_i| > |R_j|) for φ_i ≠ 0 and φ_j = 0; share of φ_i ≠ 0 "
        "with sgn R_i = sgn φ_i",
        scores=(
            Score(
                "truth_correlation", HIGHER, (-1, 1), "Correlation with exact importance", True, "Pearson's ρ"
            ),
            Score("truth_mass", HIGHER, (0, 1), "Mass on relevant pixels", True),
            Score("truth_auc", HIGHER, (0, 1), "ROC AUC of relevant pixels", True),
            Score("truth_sign", HIGHER, (0, 1), "Sign agreement", True),
        ),
        measures=GROUND_TRUTH,
        takes=("responses",),
        responses="saliency_assay.metrics.truth:exact_importance",
        needs=("exact_importance",),
        passes=0,
    ),
    Metric(
        "randomization",
        "Randomization test",
        "saliency_assay.metrics.randomization:randomization",
        "Adebayo et al., 2018",
        "similarity of the maps before and after the model's weights are randomized",
        formula="Spearman's ρ, or SSIM, of Φ(f, x) and Φ(f with new weights in some layers, x)",
        scores=(
            Score("randomization_spearman", Direction.closer_to(0.0), (-1, 1), "Spearman's ρ"),
            Score(
                "randomization_spearman_absolute",
                Direction.closer_to(0.0),
                (-1, 1),
                "Spearman's ρ of absolute values",
            ),
            Score("randomization_ssim", Direction.closer_to(0.0), (-1, 1), "SSIM"),
        ),
        measures=RANDOMIZATION,
        takes=("explain", "randomized_model"),
        figures={"curves": _RANDOMIZATION_CURVES},
        sub_variants={
            "cascading [0-9]+": "after cascading randomization of the network",
            "cascading [0-9]+ (.+)": "after cascading randomization to {}",
            "independent [0-9]+": "after randomizing the network",
            "independent [0-9]+ (.+)": "after randomizing {}",
        },
    ),
    Metric(
        "random_logit",
        "Random logit",
        "saliency_assay.metrics.random_logit:random_logit",
        "Sixt et al., 2020",
        "similarity of the map and the map of another class",
        formula="SSIM of the map of the explained class and the map of another class",
        scores=(Score("random_logit", Direction.closer_to(0.0), (-1, 1), "Random logit", unit="SSIM"),),
        measures=RANDOMIZATION,
        takes=("explain",),
        passes="saliency_assay.metrics.cost:explained",
        several_classes=True,
    ),
    Metric(
        "emprt",
        "eMPRT",
        "saliency_assay.metrics.mprt:emprt",
        "Hedström et al., 2024",
        "efficient randomization test: relative rise in the complexity of the map after all weights are randomized",
        formula="(C(ê) − C(e)) / C(e), C the entropy of a histogram of the map, ê the map of the randomized model",
        scores=(Score("emprt", HIGHER, (-1, inf), "eMPRT"),),
        measures=RANDOMIZATION,
        takes=("explain", "randomized_model"),
        passes="saliency_assay.metrics.cost:explained",
    ),
    Metric(
        "smprt",
        "sMPRT",
        "saliency_assay.metrics.mprt:smprt",
        "Hedström et al., 2024",
        "smooth randomization test: similarity of denoised maps before and after randomization from the input up",
        formula="Spearman's ρ of the mean of Φ(f, x + ε) and of Φ(f with new weights up to a layer, x + ε)",
        scores=(Score("smprt", Direction.closer_to(0.0), (-1, 1), "sMPRT", unit="Spearman's ρ"),),
        measures=RANDOMIZATION,
        takes=("explain", "randomized_model"),
        sub_variants={
            "bottom-up [0-9]+": "after randomizing the network",
            "bottom-up [0-9]+ (.+)": "after randomization up to {}",
        },
    ),
    Metric(
        "mcs",
        "MCS",
        "saliency_assay.studies.bam.mcs_and_idr:model_contrast",
        "Yang & Kim, 2019",
        "model contrast score: attribution on the object in the model trained on object labels minus that in the "
        "model trained on scene labels",
        formula="MCS = G_c(f_o, X_os) − G_c(f_s, X_os), G_c the mean of visual attribution on the object's pixels c",
        scores=(Score("mcs", HIGHER, (-1, 1), "MCS"),),
        measures=RELATIVE_IMPORTANCE,
        reduction="visual",
        scores_single_maps=False,
        figures={},
        read_by=(_SPREAD_OF_SCORES,),
    ),
    Metric(
        "idr",
        "IDR",
        "saliency_assay.studies.bam.mcs_and_idr:input_dependence",
        "Yang & Kim, 2019",
        "input dependence rate: share of images in which an unimportant object gets less attribution than the scene "
        "that the object covers",
        formula="IDR = share of images with g_c(f_s, x with the object) < g_c(f_s, x without the object)",
        scores=(Score("idr", HIGHER, (0, 1), "IDR"),),
        measures=RELATIVE_IMPORTANCE,
        reduction="visual",
        scores_single_maps=False,
        figures={},
        read_by=(_SPREAD_OF_SCORES,),
    ),
    Metric(
        "iir",
        "IIR",
        "saliency_assay.studies.bam.input_independence:input_independence",
        "Yang & Kim, 2019",
        "input independence rate: share of images in which a patch that does not change the output leaves the "
        "attribution of its region nearly unchanged",
        formula="IIR = share of images with |g_c(f, x + δ) − g_c(f, x)| / g_c(f, x) < t, where f(x + δ) ≈ f(x)",
        scores=(
            Score("iir", HIGHER, (0, 1), "IIR"),
            Score(
                "iir_difference",
                LOWER,
                (0, inf),
                "Relative change of concept attribution",
                summary="relative change of a region's attribution under a patch that does not change the output",
            ),
        ),
        measures=RELATIVE_IMPORTANCE,
        reduction="visual",
        scores_single_maps=False,
        figures={},
        read_by=(
            "saliency_assay.studies.bam.input_independence:score_independence",
            "saliency_assay.studies.bam.invariant_patch:Descent",
            _SPREAD_OF_SCORES,
        ),
    ),
    Metric(
        "tcav",
        "TCAV",
        "saliency_assay.studies.bam.tcav:tcav",
        "Kim et al., 2018; Yang & Kim, 2019",
        "share of images whose logit increases in the direction of a concept, mean over the layers where this is "
        "significant",
        formula="TCAV = |{x : ∂f_t(x)/∂a_l · v_l > 0}| / |X|, v_l the direction toward the concept at layer l",
        scores=(Score("tcav", HIGHER, (0, 1), "TCAV"),),
        measures=RELATIVE_IMPORTANCE,
        reduction="",
        scores_single_maps=False,
        figures={},
        read_by=("saliency_assay.studies.bam.tcav:tcav", "saliency_assay.studies.bam.tcav:layer_test"),
    ),
)
