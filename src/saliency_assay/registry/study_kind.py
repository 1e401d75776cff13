"""Record of a kind of study; the Snakefile imports it, so this module must not import torch."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf

from saliency_assay.registry.directions import Direction


@dataclass(frozen=True)
class RatingScore:
    """A score of single images that rates methods but is not computed by a registered metric."""

    name: str
    label: str
    """Name in figures, tables and pages."""
    direction: Direction
    summary: str
    measures: str
    """Property of a map that it measures, one of ``registry.properties.PROPERTIES``."""
    range: tuple[float, float] = (-inf, inf)
    """Smallest and largest possible score."""


@dataclass(frozen=True)
class Outputs:
    """Tables and figures of one kind of study, present always or only with an option."""

    tables: tuple[str, ...] = ()
    """Names of CSV files."""
    figures: tuple[str, ...] = ()
    """Files of figures in the order of the report; a name in braces is replaced by each of its values."""
    option: str = ""
    """Option that a study must have for these outputs; empty if they are always present."""


@dataclass(frozen=True)
class StudyKind:
    """One kind of study; callables are references ``package.module:name``."""

    name: str
    """Value of ``kind`` in entries under ``studies``."""
    label: str
    """Name in figures, tables and pages."""
    question: str
    """Research question, for the pages of the report."""
    settings: str
    """Pydantic model of its entries in the configuration, a ``config.studies.Study``."""
    inputs: str = "saliency_assay.pipeline.inputs:StudyInputs"
    """Class of the inputs of its rules, and of the files of its studies that other rules read."""
    params: str = "saliency_assay.pipeline.params:StudyParams"
    """Class of the settings of its rules."""
    on_device: tuple[str, ...] = ()
    """Names of its rules that run models."""
    outputs: tuple[Outputs, ...] = ()
    """Outputs in addition to those of all studies, or of all rated studies."""
    mask_question: str = ""
    """Research question if all metrics take the object's mask; empty if it is ``question``."""
    mixed_question: str = ""
    """The same if some metrics take the mask, and others do not."""
    metrics: tuple[str, ...] = ()
    """Metrics that rate its methods; empty if the study's entry selects them."""
    scores: tuple[RatingScore, ...] = ()
    """Scores that rate its methods in addition to those of metrics."""
    rated_scores: str = ""
    """``(paths, *, data, models, images=None) -> RatedScores`` (``reliability.rated_scores``), all scores or those of
    ``images``; empty if no method is rated."""
    variants: str = "variants"
    """Kind of a score's variants: ``variants`` of a metric, or ``models``, whose maps should differ."""
    sub_variants: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Labels of the sub-variants of its scores: regular expressions and formats of their groups; see
    ``registry.labels``."""
    method_labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Labels of rows of its tables that are not methods but listed among them, such as TCAV."""
    rule_labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Labels of what a rule scores if several rules without a metric in their wildcards score a method."""
    retrains_models: bool = False
    """True if each method has its own trained models, so that differences between methods include training noise."""
    class_label: str = ""
    """Label whose classes are raters; empty for the label on which the first model is trained."""
    takes_stored_maps: bool = False
    """True if its only maps are those of its models on its set, so that another program can compute them, too."""
    explains_all_images: bool = False
    """True if all images of a set are explained, not a selection of test images."""
    printed_table: str = ""
    """Name of its table with values from a paper, for the tidy table of all scores."""
    latex: str = ""
    """``(study, tables) -> floats``: its additional LaTeX tables; empty if it has none."""
    cautions: str = ""
    """``(tables, labels) -> sentences`` on limits of the ranks; empty if there are none."""
    notes: str = ""
    """``(tables, labels) -> sentences`` that are folded on its page; empty if there are none."""
    answer: str = ""
    """``(tables, labels) -> list[Answer]`` (``plotting.text``) that answers its question; empty if ranks answer it."""
    summary_tables: tuple[str, ...] = ()
    """Tables that ``answer``, ``cautions`` and ``notes`` read, as far as the study has them."""

    @property
    def is_rated(self) -> bool:
        """True if scores rate the methods, so that there are ranks and their reliability."""
        return bool(self.rated_scores)

    def tables(self, options: Collection[str]) -> list[str]:
        """Return the names of the additional tables of a study with these options."""
        return [name for outputs in self._outputs(options) for name in outputs.tables]

    def figures(self, options: Collection[str]) -> list[str]:
        """Return the files of the additional figures of a study with these options."""
        return [name for outputs in self._outputs(options) for name in outputs.figures]

    def _outputs(self, options: Collection[str]) -> Iterator[Outputs]:
        return (outputs for outputs in self.outputs if not outputs.option or outputs.option in options)

    def question_for(self, takes: Iterable[Collection[str]]) -> str:
        """Return the research question of a study; ``takes`` are the arguments of each of its metrics."""
        masked = {"mask" in names for names in takes}
        questions = {(True,): self.mask_question, (False, True): self.mixed_question}
        return questions.get(tuple(sorted(masked))) or self.question
