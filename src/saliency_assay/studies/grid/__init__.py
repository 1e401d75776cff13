"""Grid study: attribution to the cell of the explained image in grids of images (Rao et al., 2022)."""

from saliency_assay.registry.directions import HIGHER
from saliency_assay.registry.properties import LOCALIZATION
from saliency_assay.registry.study_kind import Outputs, RatingScore, StudyKind


def _score(setting: str, label: str, summary: str) -> RatingScore:
    text = f"share of positive attribution in the explained cell of a grid of images, {summary}"
    return RatingScore(setting, f"Localization ({label})", HIGHER, text, LOCALIZATION, (0.0, 1.0))


GRID = StudyKind(
    "grid",
    "Grids of images",
    "Is the attribution in the cell of a grid of images that the model can use for the explained class?"
    " (grid pointing game: Böhle et al., 2021; DiFull and DiPart: Rao et al., 2022)",
    settings="saliency_assay.studies.grid.grid_study:GridStudy",
    inputs="saliency_assay.studies.grid.pipeline:GridInputs",
    params="saliency_assay.studies.grid.pipeline:GridParams",
    on_device=("compose_grid", "score_grid"),
    outputs=(
        Outputs(("localization",), ("localization.svg", "localization.html")),
        Outputs(figures=("{setting}_aggatt.png",)),
    ),
    scores=(
        _score("gridpg", "GridPG", "which the network takes as one image"),
        _score("difull", "DiFull", "each of which has its own copy of the network"),
        _score("dipart", "DiPart", "each of which has its own head over its part of the last feature map"),
    ),
    rated_scores="saliency_assay.studies.fidelity.rated_scores:rated_scores",
    rule_labels={"score_grid": "Localization"},
)
