"""Settings of a study of kind ``caption``."""

from typing import Literal

from pydantic import Field

from saliency_assay.config.settings import StudySettings


class CaptionStudy(StudySettings):
    """Measures which half of a picture with a caption the maps of two models point at."""

    kind: Literal["caption"]
    image_model: str = Field(description="A model of `NAME_both` that looks at the picture.")
    caption_model: str = Field(
        description="A model of pictures of the same classes that looks at the caption."
    )
