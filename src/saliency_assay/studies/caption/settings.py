"""Settings of a study of kind ``caption``."""

from typing import Literal

from pydantic import Field

from saliency_assay.config.settings import StudySettings


class CaptionStudy(StudySettings):
    """Comparison of the halves, picture or caption, that the maps of two models highlight."""

    kind: Literal["caption"]
    image_model: str = Field(description="A model trained on `NAME_both` that relies on the picture.")
    caption_model: str = Field(
        description="A model trained on images with captions of the same classes that relies on the caption."
    )
