"""The record of a kind of study, read by the Snakefile, so nothing heavy is imported here."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class RatingScore:
    """A score of single images that rates methods and that no registered metric computes."""

    name: str
    direction: str
    """``higher`` or ``lower`` is better, or ``target X`` (``registry.directions``)."""
    summary: str


@dataclass(frozen=True)
class StudyKind:
    """What distinguishes one kind of study from another; callables are named as ``package.module:name``."""

    name: str
    """As ``kind`` of an entry under ``studies``."""
    question: str
    """What it asks, for the pages of the report."""
    mask_question: str = ""
    """What it asks where all its metrics take the object's mask; empty if the same."""
    metrics: tuple[str, ...] = ()
    """Metrics that rate its methods, where the study's entry does not choose them."""
    scores: tuple[RatingScore, ...] = ()
    """Scores beside those of metrics that rate its methods."""
    rated_scores: str = ""
    """``(paths, *, data, models) -> RatedScores`` (``reliability.rated_scores``); empty where no method is rated."""
    variants: str = "variants"
    """What the variants of a score are: ``variants`` of a metric, or ``models``, which expect different maps."""
    label: str = ""
    """The label whose classes are raters; empty for the one that the first model was trained on."""
    explains_all_images: bool = False
    """True where maps are of all images of a set, not of a selection of test images."""
    printed_table: str = ""
    """Its table with the values that a paper printed, for the tidy table of all scores."""
    latex: str = ""
    """``(study, tables) -> floats``: its own tables in LaTeX; empty where it has none."""
    cautions: str = ""
    """``(tables) -> sentences`` on limits of the ranks; empty where there are none."""

    @property
    def is_rated(self) -> bool:
        """True where scores rate the methods, so that there are ranks and their reliability."""
        return bool(self.rated_scores)

    def question_for(self, takes: Iterable[Collection[str]]) -> str:
        """Return what a study asks whose metrics take ``takes``."""
        masked = self.mask_question and all("mask" in names for names in takes)
        return self.mask_question if masked else self.question
