"""The configuration as Pydantic models, whose objects are the records that the workflow reads.

``read`` validates keys, types and ranges. Each entry then completes itself: it checks its parameters against its
registry record and its references to other entries, and sets what follows from them. Every error names the key, the
value and the valid choices. ``config/schema.yaml`` and ``docs/configuration.md`` are generated from these models. This
module does not import torch, because the Snakefile reads the configuration each time it is parsed, in every cluster job
too.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property, reduce
from operator import or_
from os.path import normpath
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, PrivateAttr, Tag, ValidationError, create_model

from saliency_assay.config.checks import Catalog
from saliency_assay.config.data import AnyData, DataEntry, check_sets
from saliency_assay.config.errors import ConfigError, line_of
from saliency_assay.config.fields import INTEGER, NUMBER, Distinct, Natural, OrAbsent, Settings, Text
from saliency_assay.config.labels import check_distinct
from saliency_assay.config.methods import AnyMethod, check_masks, check_needs, complete_methods, stored_maps
from saliency_assay.config.metrics import (
    AnyMetric,
    check_finetuning,
    check_in_domain,
    check_new_weights,
    check_scores,
    complete_metrics,
)
from saliency_assay.config.models import AnyModel, complete_models
from saliency_assay.config.studies import Study
from saliency_assay.config.sweeps import check_images, expanded, with_members
from saliency_assay.config.training_images import check_training_images
from saliency_assay.registry.records import resolve
from saliency_assay.registry.study_kind import StudyKind
from saliency_assay.runtime.user_files import Source, UserFiles

Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]


class ReliabilitySettings(Settings):
    """Statistics of the [reliability](reliability.md) of metrics."""

    resamples: Annotated[int, Field(ge=100, le=1_000_000), INTEGER] = Field(
        10_000, description="Bootstrap resamples for the interval of [α](reliability.md#krippendorffs-α)."
    )
    level: Annotated[float, Field(gt=0, lt=1), NUMBER] = Field(
        0.999, description="Confidence level of α and of inter-method reliability."
    )
    ranks: Literal["wins", "means"] = Field(
        "wins",
        description="What [rank sets](reliability.md#rank-sets) compare: how often a method has the better score on an"
        " image (`wins`), or mean scores (`means`).",
    )
    margin: OrAbsent[Annotated[float, Field(gt=0), NUMBER]] = Field(
        None,
        description="Largest difference of means of [equivalent](reliability.md#equivalence) methods; by default, no"
        " methods are called equivalent.",
    )
    margin_unit: Literal["sd", "score"] = Field(
        "sd",
        description="Unit of `margin`: the standard deviation of a metric's scores, or the score itself.",
    )


class ReportSettings(Settings):
    """Contents of the report."""

    gallery_images: Annotated[int, Field(ge=1, le=20), INTEGER] = Field(
        6, description="Images in each gallery of maps."
    )


STUDIES: Any = Field(
    {},
    description="Studies; without any, all data sets are built and all models trained.",
)


class Configuration(Settings):
    """Sections of a configuration."""

    model_config = ConfigDict(frozen=False)

    data: dict[Name, AnyData] = Field(min_length=1, description="Data sets.")
    models: dict[Name, AnyModel] = Field({}, description="Models; a study needs at least one.")
    methods: dict[Name, AnyMethod] = Field({}, description="Methods; a study needs at least one.")
    metrics: dict[Name, AnyMetric] = Field({}, description="Metrics.")
    studies: dict[str, Study] = STUDIES
    seeds: Distinct[Natural] = Field(
        (0,),
        min_length=1,
        description="Training seeds; every model is trained once with each.",
    )
    results: Text = Field("results", description="Folder for all results.")
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto",
        description="Device for the models; `auto` is `cuda` if a GPU is available.",
    )
    reliability: ReliabilitySettings = Field(
        ReliabilitySettings(), description="Statistics of the reliability of metrics."
    )
    report: ReportSettings = Field(ReportSettings(), description="Contents of the report.")

    _catalog: Catalog = PrivateAttr()
    _files: UserFiles = PrivateAttr()
    _listed_metrics: tuple[str, ...] = PrivateAttr()
    _sources: list[Source] = PrivateAttr(default_factory=list)

    @property
    def catalog(self) -> Catalog:
        """All registries, by name."""
        return self._catalog

    @property
    def files(self) -> UserFiles:
        """Digests and contents of the user's files, from this or an earlier run."""
        return self._files

    @property
    def sources(self) -> Sequence[Source]:
        """The user's files and folders that jobs may read."""
        return self._sources

    @property
    def listed_metrics(self) -> tuple[str, ...]:
        """Metrics that have an entry; ``metrics`` also has those without an entry that studies use."""
        return self._listed_metrics

    @cached_property
    def sets(self) -> dict[str, DataEntry]:
        """For the name of each set the entry that provides it."""
        return {name: entry for entry in self.data.values() for name in entry.sets}

    @property
    def masked_sets(self) -> list[str]:
        """Names of the sets whose images have masks of an object or a caption."""
        return [name for name, entry in self.sets.items() if entry.has_masks]

    def complete(self, catalog: Catalog) -> None:
        """Complete all entries, in the order of their references to each other.

        Raises:
            ConfigError: an entry is not valid.
        """
        self._catalog = catalog
        self.methods = expanded("methods", self.methods, catalog.methods)
        self.metrics = expanded("metrics", self.metrics, catalog.metrics)
        self._listed_metrics = tuple(self.metrics)
        self.results = _results(self.results)
        self._files = UserFiles(Path(self.results) / ".state/digests.json")
        for section in ("models", "methods"):
            if self.studies and not getattr(self, section):
                raise ConfigError(f"{section}: found none, expected at least one, because there are studies")
        for name, entry in self.data.items():
            entry.complete(name, catalog, self.files)
            self._check_sources(entry.sources)
        check_sets(self.data)
        self.models = complete_models(self.models, self.data, catalog, self.files)
        for model in self.models.values():
            self._check_sources((*model.sources, *model.weights_files, *model.class_files))
        complete_methods(self.methods, catalog)
        requested = [
            metric
            for name, study in self.studies.items()
            for metric in with_members(
                f"studies.{name}.metrics",
                study.metrics or catalog.study_kinds[study.kind].metrics,
                self.metrics,
            )
        ]
        self.metrics = complete_metrics(self.metrics, requested, catalog)  # type: ignore[assignment]  # same types
        for function in (*self.methods.values(), *self.metrics.values()):
            self._check_sources(function.sources)
        for name, study in self.studies.items():
            study.complete(name, self)
        for section in ("data", "models", "methods", "metrics", "studies"):
            listed = self.listed_metrics if section == "metrics" else getattr(self, section)
            check_distinct(section, getattr(self, section), listed)
        for study in self.studies.values():
            check_needs(study, "methods", self.models, self.methods, catalog.architectures)
            check_needs(study, "metrics", self.models, self.metrics, catalog.architectures)
            check_new_weights(study, self.models, self.metrics)
            check_finetuning(study, self.models, self.metrics)
            check_in_domain(study, self.models, self.metrics)
            check_scores(study, self.metrics)
            check_images(study, self)
            check_masks(study, self)
        check_training_images(self)
        # Not required yet: another program may need the models that this run trains.
        for source in stored_maps(self):
            self.files.is_known(source)

    def _check_sources(self, sources: Iterable[Source]) -> None:
        """Check that files and folders exist or, for results that were moved without them, existed in an earlier run.

        Before the first job, the sources of the jobs to run are checked again (``pipeline.sources``).

        Raises:
            ConfigError: a file or folder has never existed.
        """
        for source in sources:
            self._sources.append(source)
            if not self.files.is_known(source):
                raise ConfigError(source.problem)


@cache
def configuration_of(kinds: tuple[StudyKind, ...]) -> type[Configuration]:
    """Return the model of a configuration whose studies are of these kinds."""
    union: Any = reduce(or_, (Annotated[resolve(kind.settings), Tag(kind.name)] for kind in kinds))
    studies: Any = dict[Name, Annotated[union, Field(discriminator="kind")]]
    return create_model(
        "Configuration", __base__=Configuration, __doc__=Configuration.__doc__, studies=(studies, STUDIES)
    )


def read(raw: Mapping[str, Any], *, catalog: Catalog, source: str) -> Configuration:
    """Return the checked configuration.

    Args:
        raw: the content of the configuration file.
        catalog: all registries.
        source: the name of the file, for error messages.

    Raises:
        ConfigError: the configuration is not valid; the message is one line for the first fault, after ``source``.
    """
    try:
        configuration = configuration_of(tuple(catalog.study_kinds.values())).model_validate(raw)
        configuration.complete(catalog)
    except ValidationError as error:
        raise ConfigError(f"{source}: {line_of(error.errors(include_url=False))}") from None
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None
    return configuration


def _results(path: str) -> str:
    """Return the folder of results in its shortest form, since Snakemake compares paths as text.

    Braces and angle brackets are refused, because Snakemake would read them as wildcards and path variables; ``~`` and
    ``$``, because neither is expanded.
    """
    if not path.isprintable() or not path.strip("/ ") or path[0] in "-~" or set("{}<>$") & set(path):
        expected = (
            "a folder's path without ~ at its beginning, braces, $, <, >, line breaks and other control "
            "characters"
        )
        raise ConfigError(f"results: found {path!r}, expected {expected}")
    return normpath(path)
