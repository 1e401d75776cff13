"""Base of the settings of all kinds of study."""

from pydantic import Field

from saliency_assay.registry.settings import Distinct, OrAbsent, Settings


class StudySettings(Settings):
    """Keys of every study."""

    methods: OrAbsent[Distinct[str]] = Field(
        None, min_length=1, description="Names under `methods`; by default all."
    )
