"""Settings of a study of kind ``caption``."""

from typing import Literal

from pydantic import Field

from saliency_assay.config.settings import StudySettings


class CaptionStudy(StudySettings):
    """Comparison of two models of captioned images: one relies on the picture, and the other on the caption."""

    kind: Literal["caption"] = Field(description="The kind of study.")
    image_model: str = Field(
        description="The model that relies on the picture, trained on a set `NAME_both`."
    )
    caption_model: str = Field(
        description="The model that relies on the caption, trained on a set `NAME_both` with the same classes and "
        "captions."
    )
