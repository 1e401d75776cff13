"""Tables of a caption study in LaTeX: premise, and INFD and attribution."""

from collections.abc import Mapping

import pandas as pd

from saliency_assay.registry.labels import UNLABELED, Labels
from saliency_assay.studies.latex_tables import PREMISE, StudyTableSpec, floats_of

TABLES = {
    "premise": StudyTableSpec(
        "accuracy of both models on both halves and on either alone, and values of Yeh et al. (2019)",
        {"model": "model", "seed": "seed", **PREMISE},
    ),
    "table": StudyTableSpec(
        "INFD under the removal of a half, and the share of absolute attribution on the half that the model uses; "
        "most: share of images with most attribution on that half",
        {
            **{"method": "method", "model": "model", "seed": "seed", "used": "used"},
            **{"infidelity": "INFD", "share": "share", "above_half": "most", "images": "images"},
        },
    ),
}


def latex_tables(study: str, tables: Mapping[str, pd.DataFrame], labels: Labels = UNLABELED) -> list[str]:
    """Return the tables of ``TABLES`` that the study has, as LaTeX floats."""
    return floats_of(study, TABLES, tables, labels)
