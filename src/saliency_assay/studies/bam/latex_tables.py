"""Tables of a BAM study in LaTeX: premise, ranking, series and concepts."""

from collections.abc import Mapping

import pandas as pd

from saliency_assay.registry.labels import UNLABELED, Labels
from saliency_assay.studies.bam.bam_tables import label
from saliency_assay.studies.latex_tables import PREMISE, StudyTableSpec, floats_of

TABLES = {
    "premise": StudyTableSpec(
        r"accuracy of both models with and without object and scene, and share of the images on which confidence rises "
        "without object or scene, with values of Yang and Kim (2019)",
        {"model": "model", "seed": "seed", "check": "check", **PREMISE, "percent": r"test images (\%)"},
    ),
    "ranking": StudyTableSpec(
        "methods by every metric, means over seeds; sd: standard deviation between seeds or, for a single seed, over "
        "samples of images",
        {"metric": "metric", "method": "method", "score": "score", "spread": "sd", "rank": "rank"},
    ),
    "commonality": StudyTableSpec(
        r"accuracy (\%) with and without the common object, which is in a share $k$ of the scene classes, and values "
        "of Yang and Kim (2019)",
        {
            **{"model": "model", "seed": "seed", "k": "$k$", "with_object": "with", "without": "without"},
            **{"drop": "drop", "printed_with": "published with", "printed_without": "published without"},
            "images": "images",
        },
    ),
    "correlation": StudyTableSpec(
        "Pearson's correlation over $k$ of a method's MCS and the accuracy drop without the common object",
        {"method": "method", "seed": "seed", "correlation": r"$\rho$", "points": "points"},
    ),
    "concepts": StudyTableSpec(
        "TCAV of the common object and of random concepts by layer; $p$: two-sided $t$-test",
        {
            **{"model": "model", "seed": "seed", "layer": "layer", "score": "TCAV", "random": "random"},
            **{"p_value": "$p$", "kept": "significant", "images": "images"},
        },
    ),
}


def latex_tables(study: str, tables: Mapping[str, pd.DataFrame], labels: Labels = UNLABELED) -> list[str]:
    """Return the tables of ``TABLES`` that the study has, as LaTeX floats."""
    labeled_tables = {
        name: table.assign(metric=table["metric"].map(label)) if name == "ranking" else table
        for name, table in tables.items()
    }
    return floats_of(study, TABLES, labeled_tables, labels)
