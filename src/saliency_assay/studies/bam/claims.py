"""The claims of Yang & Kim (2019) as statements that a study's tables bear out, or do not.

Scores are means over training seeds. A claim about methods is judged on those that the paper compares and the study
has, a claim about metrics on all methods but the controls. A claim's text says what is compared with what.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import pandas as pd

from saliency_assay.studies.bam.claims_methods import (
    BEST,
    MUCH,
    PASSED,
    changes_least,
    changes_most,
    exceeds,
    high_but_low,
    largest_contrast,
    leads,
    most_fail,
    nearly_best,
)
from saliency_assay.studies.bam.claims_metrics import (
    AGREE,
    HALF,
    ZERO,
    agrees,
    baseline_near_half,
    baseline_near_zero,
    rankings_differ,
    robust,
)
from saliency_assay.studies.bam.claims_premise import (
    FALLS,
    KEPT,
    LOST,
    confidence_rises,
    drop_falls,
    falls_to_chance,
    keeps,
    more_accurate_without,
)
from saliency_assay.studies.bam.tables import SERIES, TCAV, BamTables, UntestedError

COLUMNS = ["claim", "source", "measured", "verdict"]
HOLDS, FAILS, UNTESTED = VERDICTS = ("holds", "does not hold", "not tested")

Claim = tuple[str, str, Callable[[BamTables], tuple[bool, str]]]

_LEFT = "of its accuracy above chance on X_os is left"
_TO_CHANCE = f"at most {100 * LOST:.0f} % {_LEFT}, or no more than two standard errors of a guess"
_KEEPS = f"at least {100 * KEPT:.0f} % {_LEFT}"
_LEADS = "no other method of the paper scores higher than"
_SMOOTHED = {"smoothgrad": "SmoothGrad", "smoothgrad_squared": "SmoothGrad² (the released SmoothGrad)"}
_REST = ("gradcam", *_SMOOTHED)


def _robust(metric: str, source: str) -> tuple[Claim, ...]:
    bar = f"Spearman's ρ of the scores of all methods but the controls with those on X_os is at least {AGREE}"
    return tuple(
        (
            f"{metric.upper()} is robust to the {variant} of objects: {bar}",
            source,
            partial(robust, metric=metric, variant=variant),
        )
        for variant in ("scale", "location")
    )


PREMISE: tuple[Claim, ...] = (
    (
        f"f_o falls to chance without objects: on X_0s {_TO_CHANCE}",
        "section 3.3, Fig. 2",
        partial(falls_to_chance, role="object", member="0s"),
    ),
    (
        f"f_o does not need scenes: on X_og {_KEEPS}",
        "section 3.3, Fig. 2",
        partial(keeps, role="object", member="og"),
    ),
    (
        f"f_s falls to chance without scenes: on X_og {_TO_CHANCE}",
        "section 3.3, Fig. 2",
        partial(falls_to_chance, role="scene", member="og"),
    ),
    (
        f"f_s does not need objects: on X_0s {_KEEPS}",
        "section 3.3, Fig. 2",
        partial(keeps, role="scene", member="0s"),
    ),
    (
        "f_s is more accurate without the object: its accuracy on X_0s is above that on X_os",
        "section 3.4, Fig. 2",
        more_accurate_without,
    ),
    (
        "most confidence rises when the object is removed: f_s gives the label a higher probability on X_0s for "
        "more than 50 %, by two standard errors, of the images of X_os that it has right",
        "section 3.4, Fig. 2",
        confidence_rises,
    ),
    (
        "the rarer the common feature, the more it matters: as k grows, accuracy on the first scene class drops less "
        f"without it, Spearman's ρ of k and drop at most {FALLS}",
        "section 3.3, Fig. 2",
        drop_falls,
    ),
)
CONTRAST: tuple[Claim, ...] = (
    (
        "MCS is largest between f_o and f_s: above that of every f_k, k < 1, against f_1.0 for more than half of the "
        "methods, with TCAV and without controls",
        "section 4.2",
        largest_contrast,
    ),
    (
        f"GradCAM leads MCS among saliency methods: {_LEADS} GradCAM",
        "section 5.1, Fig. 4",
        partial(leads, metric="mcs", wanted=("gradcam",)),
    ),
    (
        f"TCAV has the highest MCS, GradCAM the next: {_LEADS} GradCAM, nor GradCAM than TCAV",
        "section 5.1, Fig. 4",
        partial(leads, metric="mcs", wanted=(TCAV, "gradcam"), in_this_order=True),
    ),
    *(
        (
            f"smoothing improves MCS: {name} is above gradient",
            "section 5.1, Fig. 4",
            partial(exceeds, metric="mcs", better=method, worse="gradient"),
        )
        for method, name in _SMOOTHED.items()
    ),
    *(
        (
            f"{name} outperforms the rest in MCS: {_LEADS} it, GradCAM, TCAV and the other SmoothGrad aside",
            "section 5.1, Fig. 4",
            partial(leads, metric="mcs", wanted=(method,), besides=_REST),
        )
        for method, name in _SMOOTHED.items()
    ),
    *_robust("mcs", "section 5.1, Fig. 4"),
    (
        f"MCS of random pixels is near zero: within ±{ZERO} for every method but the controls",
        "section 5.1, Fig. 4",
        baseline_near_zero,
    ),
    (
        "guided backprop changes least over the series: the range of its MCS over k is above that of no other "
        "method of the paper",
        "section 5.1, Figs. 5, 6",
        partial(changes_least, method="guided_backprop"),
    ),
    (
        "all methods but TCAV and GradCAM change at a much smaller scale over the series: the range of MCS over k of "
        f"every other method of the paper is at most {100 * MUCH:.0f} % of GradCAM's",
        "section 5.1, Fig. 6",
        partial(changes_most, method="gradcam"),
    ),
    (
        "TCAV correlates most with the accuracy drop, GradCAM next (Pearson's ρ over k, mean over seeds): "
        f"{_LEADS} GradCAM, nor GradCAM than TCAV",
        "section 5.1, Fig. 6",
        partial(leads, metric=SERIES, wanted=(TCAV, "gradcam"), in_this_order=True),
    ),
    (
        "GradCAM correlates most with the accuracy drop among saliency methods (Pearson's ρ over k, mean over seeds): "
        f"{_LEADS} GradCAM",
        "section 5.1, Fig. 6",
        partial(leads, metric=SERIES, wanted=("gradcam",)),
    ),
    (
        "both kinds of MCS rank alike: Spearman's ρ, over TCAV and all methods but the controls, of the MCS between "
        f"f_o and f_s and the correlation with the accuracy drop is at least {AGREE}",
        "section 5.1",
        partial(agrees, one="mcs", other=SERIES),
    ),
)
INPUTS: tuple[Claim, ...] = (
    (
        f"GradCAM and gradient lead IDR: {_LEADS} either of the two",
        "section 5.2, Fig. 8",
        partial(leads, metric="idr", wanted=("gradcam", "gradient")),
    ),
    (
        "the cheapest method is nearly the best in IDR: gradient is at most "
        f"{BEST:.0f} points below the best method of the paper",
        "section 5.2",
        partial(nearly_best, metric="idr", method="gradient"),
    ),
    (
        f"IDR of random pixels is near 50 %: within {HALF:.0f} points, or two standard errors if that is more, for "
        "every method but the controls",
        "section 5.2, Fig. 8",
        baseline_near_half,
    ),
    *_robust("idr", "Fig. 8"),
    (
        f"most methods fail IIR on more than {100 - PASSED:.0f} % of the images: IIR is below {PASSED:.0f} % for more "
        "than half of the paper's methods besides GradCAM and gradient, and for neither of these",
        "section 5.3, Fig. 10",
        partial(most_fail, spared=("gradcam", "gradient")),
    ),
    (
        f"GradCAM and gradient lead IIR: {_LEADS} either of the two",
        "section 5.3, Fig. 10",
        partial(leads, metric="iir", wanted=("gradcam", "gradient")),
    ),
    (
        "multiplying by the input hurts IIR: gradient is above gradient × input",
        "section 5.3",
        partial(exceeds, metric="iir", better="gradient", worse="gradient_x_input"),
    ),
    (
        "the average attribution difference ranks roughly as IIR: Spearman's ρ over all methods but the controls, best "
        f"first in both, is at least {AGREE}",
        "appendix C, Fig. 11",
        partial(agrees, one="iir", other="iir_difference"),
    ),
    (
        "rankings differ between metrics: Spearman's ρ over all methods but the controls of some two of MCS, IDR and "
        f"IIR is below {AGREE}",
        "sections 1 and 5",
        partial(rankings_differ, metrics=("mcs", "idr", "iir")),
    ),
    (
        "gradient has high IDR and IIR but low MCS: its rank among the paper's methods is better than the middle one "
        "in IDR and in IIR, and worse in MCS",
        "section 5",
        partial(high_but_low, method="gradient", high=("idr", "iir"), low="mcs"),
    ),
)
CLAIMS = PREMISE + CONTRAST + INPUTS


def claims(tables: BamTables, listed: Iterable[Claim] = CLAIMS) -> pd.DataFrame:
    """Every claim, judged.

    Returns:
        ``claim, source`` (where in the paper), ``measured`` and ``verdict``, one of ``VERDICTS``; why a claim is not
        tested stands in ``measured``.
    """
    rows = [(text, source, *_judged(check, tables)) for text, source, check in listed]
    return pd.DataFrame(rows, columns=COLUMNS)


def _judged(check: Callable[[BamTables], tuple[bool, str]], tables: BamTables) -> tuple[str, str]:
    try:
        holds, measured = check(tables)
    except UntestedError as reason:
        return str(reason), UNTESTED
    return measured, HOLDS if holds else FAILS


def summary(found: pd.DataFrame) -> str:
    """How many claims have each verdict, in words."""
    holds, fails, untested = ((found["verdict"] == verdict).sum() for verdict in VERDICTS)
    return f"{holds} hold, {fails} do not, {untested} not tested"


def cautions(tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """Return one sentence on the verdicts of the table ``claims``."""
    found = summary(tables["claims"])
    return [f"Of the paper's claims (Yang & Kim, 2019), {found} here; the report lists each of them."]
