"""Settings of a study of kind ``gallery``."""

from typing import Literal

from pydantic import Field

from saliency_assay.studies.settings import StudySettings


class GalleryStudy(StudySettings):
    """Shows the maps of one model."""

    kind: Literal["gallery"]
    model: str = Field(description="The model whose maps are shown, on the set that it was trained on.")
