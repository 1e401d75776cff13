"""The record of a kind of study, read by the Snakefile, so nothing heavy is imported here."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class RatingScore:
    """A score of single images that rates methods and that no registered metric computes."""

    name: str
    direction: str
    """``higher`` or ``lower`` is better, or ``target X`` (``registry.directions``)."""
    summary: str


@dataclass(frozen=True)
class Outputs:
    """Tables and figures of its own that a study has: always, or with one option."""

    tables: tuple[str, ...] = ()
    """Names of CSV files."""
    figures: tuple[str, ...] = ()
    """Files of the report in its order; a name in braces stands for each of its values."""
    option: str = ""
    """Option that the study's settings must have; empty if none."""


@dataclass(frozen=True)
class StudyKind:
    """One kind of study; callables are named as ``package.module:name``."""

    name: str
    """As ``kind`` of an entry under ``studies``."""
    question: str
    """Question of the study, for the pages of the report."""
    settings: str
    """The model of its entries in the configuration (``config.settings.StudySettings``)."""
    read: str
    """``(name, entry, methods, sections) -> Study``: what an entry means, checked (``config.records``)."""
    inputs: str = "saliency_assay.pipeline.inputs:StudyInputs"
    """The inputs of its rules, and the files of its studies that other rules read."""
    params: str = "saliency_assay.pipeline.params:StudyParams"
    """The parameters of its rules."""
    on_device: tuple[str, ...] = ()
    """Its rules that run models."""
    outputs: tuple[Outputs, ...] = ()
    """Beside those that every study has, or every one that is rated."""
    mask_question: str = ""
    """Question where all its metrics take the object's mask; empty if the same."""
    metrics: tuple[str, ...] = ()
    """Metrics that rate its methods, where the study's entry does not choose them."""
    scores: tuple[RatingScore, ...] = ()
    """Scores beside those of metrics that rate its methods."""
    rated_scores: str = ""
    """``(paths, *, data, models) -> RatedScores`` (``reliability.rated_scores``); empty where no method is rated."""
    variants: str = "variants"
    """Kind of the variants of a score: ``variants`` of a metric, or ``models``, which expect different maps."""
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
    caution_tables: tuple[str, ...] = ()
    """The tables that it reads where the study has them."""

    @property
    def is_rated(self) -> bool:
        """True where scores rate the methods, so that there are ranks and their reliability."""
        return bool(self.rated_scores)

    def tables(self, options: Collection[str]) -> list[str]:
        """Return the names of a study's own tables, given the options that it asks for."""
        return [name for outputs in self._outputs(options) for name in outputs.tables]

    def figures(self, options: Collection[str]) -> list[str]:
        """Return the files of a study's own figures, given the options that it asks for."""
        return [name for outputs in self._outputs(options) for name in outputs.figures]

    def _outputs(self, options: Collection[str]) -> Iterator[Outputs]:
        return (outputs for outputs in self.outputs if not outputs.option or outputs.option in options)

    def question_for(self, takes: Iterable[Collection[str]]) -> str:
        """Return what a study asks whose metrics take ``takes``."""
        masked = self.mask_question and all("mask" in names for names in takes)
        return self.mask_question if masked else self.question
