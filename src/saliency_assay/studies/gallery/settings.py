"""Settings of a study of kind ``gallery``."""

from typing import Literal

from pydantic import Field

from saliency_assay.config.checks import look_up
from saliency_assay.config.records import Sections, Study
from saliency_assay.config.settings import StudySettings


class GalleryStudy(StudySettings):
    """Maps of one model, without scores."""

    kind: Literal["gallery"] = Field(description="The kind of study.")
    model: str = Field(description="The model whose maps are shown, on the data set that it is trained on.")


def read_study(name: str, entry: GalleryStudy, methods: tuple[str, ...], sections: Sections) -> Study:
    """Return the record of a study of one model on the set that it was trained on.

    Raises:
        ConfigError: the model does not exist.
    """
    model = look_up(f"studies.{name}.model", "model", entry.model, sections.models)
    return Study(name, entry.kind, model.data, (model.name,), methods, settings=entry)
