"""Keys and derived values of every study; each kind of study has its own model."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from saliency_assay.config.checks import look_up
from saliency_assay.config.fields import LABEL, Derived, Distinct, Line, Record
from saliency_assay.config.sweeps import with_members
from saliency_assay.registry.labels import label_of

if TYPE_CHECKING:
    from saliency_assay.config.configuration import Configuration

BaselineSubset = Literal["with", "without"]


class Study(Record):
    """Keys of every study."""

    if TYPE_CHECKING:
        kind: str  # a literal in the model of each kind

    label: Line = Field("", description=LABEL)
    methods: Annotated[Distinct[str], Field(min_length=1)] = Field(
        (), description="Entries under `methods` to compare; by default all."
    )

    data: Derived[str] = ""
    """Set on which its models are compared."""
    models: Derived[tuple[str, ...]] = ()
    """Models whose maps the gallery shows."""
    metrics: Derived[tuple[str, ...]] = ()
    """Metrics of its kind, or those that its entry selects if the kind has none."""
    options: Derived[tuple[str, ...]] = ()
    """Options that add outputs to those of all studies of its kind (``Outputs.option``)."""
    evaluated: Derived[Mapping[str, tuple[str, ...]]] = Field({})
    """For each model the sets on which it is evaluated in addition to its training set."""
    pair_sets: Derived[Mapping[str, int]] = Field({})
    """For each set of image pairs (original and changed copy) that a rule makes for one model, the number of pairs."""
    figure_values: Derived[tuple[Mapping[str, str], ...]] = ({},)
    """Values for the names in braces in ``Outputs.figures``."""
    printed: Derived[Mapping[str, Mapping[str, float]]] = Field({})
    """Values from a paper: for each score the value of each method."""
    printed_alpha: Derived[Mapping[str, Mapping[BaselineSubset, float]]] = Field({})
    """Values of Krippendorff's α from a paper: for each score those ``with`` and ``without`` baselines."""
    printed_correlation: Derived[Mapping[str, Mapping[str, Mapping[str, float]]]] = Field({})
    """Values of Spearman's ρ from a paper: for each pair of scores the value of each method."""

    def complete(self, name: str, config: "Configuration") -> None:
        """Check the entry ``studies.name`` against the other sections, and set defaults and derived fields.

        Raises:
            ConfigError: the entry is not valid.
        """
        kind = config.catalog.study_kinds[self.kind]
        self.name, self.label = name, label_of(name, self.label, kind)
        self.methods = with_members(
            f"{self.place}.methods", self.methods or tuple(config.methods), config.methods
        )
        for method in self.methods:
            look_up(f"{self.place}.methods", "method", method, config.methods)
        self.complete_kind(config)
        self.metrics = kind.metrics or self.metrics

    def complete_kind(self, config: "Configuration") -> None:
        """Check the keys of its kind, and set ``data``, ``models`` and the other derived fields of its kind."""
        raise NotImplementedError

    @property
    def place(self) -> str:
        """Place of the entry in the configuration, for error messages."""
        return f"studies.{self.name}"

    @property
    def all_models(self) -> tuple[str, ...]:
        """All models that it explains."""
        return tuple(dict.fromkeys([*self.models, *self.evaluated]))
