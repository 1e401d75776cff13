"""Settings of the check of all models before any training."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from saliency_assay.config.records import Config, Method, Model
from saliency_assay.pipeline.stand_ins import class_count, one_image_shape

Settings = dict[str, Any]


@dataclass(frozen=True)
class Checks:
    """Settings of one job, and references to the functions that it calls."""

    settings: Settings
    functions: list[str]


class ModelChecks:
    """Checks of the models of a configuration: their networks, layers and weights, and the methods of all studies."""

    def __init__(self, params: Any) -> None:
        """Store the ``params.Params`` of a configuration."""
        self.params = params
        self.config: Config = params.config
        self.methods = params.catalog.methods

    def of(self, checked: str) -> Checks:
        """Return the checks of a job: those of the models with this value of the wildcard ``checked``."""
        is_checked = self.params.inputs.checked
        models = [model for model in self.config.models.values() if is_checked(model.data) == checked]
        entries = [entry for model in models for entry in self._entries(model, is_built="/" in checked)]
        functions = [model.function for model in models]
        functions += [method["function"] for entry in entries for method in entry["methods"].values()]
        functions += [function for entry in entries for function in entry["uses"].values()]
        functions += [entry["count_classes"]["function"] for entry in entries if entry["count_classes"]]
        alternatives = {
            name: self._checked_as(name, {}) or {"function": ""}
            for name, record in self.methods.items()
            if record.uses_model
        }
        return Checks({"models": entries, "alternatives": alternatives}, functions)

    def _entries(self, model: Model, *, is_built: bool) -> Iterator[Settings]:
        """Yield the check of a model, and those of the models that studies derive from it."""
        studies = [study for study in self.config.studies.values() if model.name in study.all_models]
        names = dict.fromkeys(name for study in studies for name in study.methods)
        methods = {name: self._check_of(self.config.methods[name]) for name in names}
        params = {study.name: self.params.of_kind(study.kind) for study in studies}
        file = self.params.initial(model)
        entry = {
            "name": f"models.{model.name}",
            "blueprint": {
                "architecture": model.architecture,
                "function": model.function,
                "parameters": model.parameters,
                "cam_layer": model.cam_layer,
                "concept_layers": model.concept_layers,
            },
            # The job takes what is unknown here from the set.
            "shape": [] if is_built else one_image_shape(self.config, model.data),
            "label": model.trained_on,
            **self._classes(model, is_built=is_built),
            "trains": model.training["epochs"] > 0,
            "weights": model.weights if file else "",
            **file,
            "normalization": model.normalization,
            "methods": {name: method for name, method in methods.items() if method},
            "uses": {
                key: function
                for name, of_kind in params.items()
                for key, function in of_kind.model_uses(name).items()
            },
        }
        yield entry
        plain = {"weights": "", "normalization": None, "methods": {}, "uses": {}, "trains": True}
        for name, of_kind in params.items():
            for key, (base, channels) in of_kind.derived_models(name).items():
                if base == model.name:
                    yield {**entry, **plain, "name": key, "channels": channels}

    def _classes(self, model: Model, *, is_built: bool) -> Settings:
        """Return the number of a model's classes, or how to count them."""
        data = self.config.sets[model.data]
        count = "" if is_built else self.params.catalog.data_kinds[data.kind].count_classes
        if count:
            parameters = {name: data.parameters[name] for name in ("path", "test_folder")}
            return {"classes": 0, "count_classes": {"function": count, "parameters": parameters}}
        return {"classes": 0 if is_built else class_count(self.config, model), "count_classes": {}}

    def _check_of(self, method: Method) -> Settings:
        """Return the check of a method, or of the method that it smooths; empty if it needs only predictions.

        A custom method is not checked, because the time that it takes is unknown.
        """
        if method.base:
            return self._check_of(method.base)
        return self._checked_as(method.method, method.parameters) if method.method else {}

    def _checked_as(self, name: str, parameters: Settings) -> Settings:
        """Return the call of the method by which a registered one is checked, with defaults for other parameters."""
        record = self.methods[name]
        if not record.uses_model or (isinstance(record.passes, str) and not record.checked_as):
            return {}
        if record.checked_as:
            return self._checked_as(record.checked_as, {})
        defaults = {key: parameter.default for key, parameter in record.parameters.items()}
        return {"function": record.function, "parameters": {**defaults, **parameters}, "needs": record.needs}
