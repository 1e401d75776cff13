"""Check of all models before the jobs of a run: its settings, and its start in a process of its own."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from saliency_assay.config.configuration import Configuration
from saliency_assay.config.methods import Method
from saliency_assay.config.models import Model
from saliency_assay.pipeline.code_digest import code_of
from saliency_assay.pipeline.combined import base_rule
from saliency_assay.pipeline.image_sizes import class_count, is_shape_known, one_image_shape
from saliency_assay.pipeline.params import rebuilding
from saliency_assay.registry.records import module_of
from saliency_assay.registry.signatures import declared
from saliency_assay.runtime.atomic import replacing
from saliency_assay.runtime.environment import versions_of
from saliency_assay.runtime.provenance import fingerprint, plain

Settings = dict[str, Any]
CHECK = "saliency_assay.methods.model_check"


def check_models(workflow: Any, params: Any) -> None:
    """Check all models if a planned job of Snakemake's ``workflow`` runs one; ``params`` are its ``params.Params``.

    Raises:
        ValueError: as ``ModelChecks.run``.
    """
    rules = {base_rule(job.rule.name) for job in workflow.dag.needrun_jobs()}
    if rules & set(params.settings.on_device):
        ModelChecks(params).run()


class ModelChecks:
    """Checks of the models of a configuration: their networks, layers and weights, and the methods of all studies."""

    def __init__(self, params: Any) -> None:
        """Store the ``params.Params`` of a configuration."""
        self.params = params
        self.config: Configuration = params.config
        self.methods = params.catalog.methods

    def run(self) -> None:
        """Check all models, unless a check with the same settings, code and packages has passed before.

        The check runs in a process of its own, because it imports PyTorch. Its log is ``logs/check_models.log``.

        Raises:
            ValueError: with one line for each problem of a model.
        """
        settings = self.settings()
        code = code_of(CHECK, *dict.fromkeys(map(module_of, _functions(settings))))
        identity = fingerprint([settings, code.digest, versions_of(code.packages)])
        passed = Path(self.params.paths.state) / "model_check"
        with suppress(OSError):
            if passed.read_text(encoding="utf-8") == identity:
                return
        log = Path(self.config.results, "logs/check_models.log")
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w", encoding="utf-8") as file:
            command = [sys.executable, "-m", CHECK]
            done = subprocess.run(
                command,
                input=json.dumps(settings),
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                check=False,
            )
        if done.returncode:
            lines = done.stdout.splitlines() or [f"ended with status {done.returncode}, see {log}"]
            raise ValueError("\n".join(f"check_models: {line}" for line in lines))
        with replacing(passed) as temporary:
            temporary.write_text(identity, encoding="utf-8")

    def settings(self) -> Settings:
        """Return the settings of the check, as plain JSON."""
        alternatives = {
            name: self._checked_as(name, {}) or {"function": ""}
            for name, record in self.methods.items()
            if record.uses_model and "exact_importance" not in record.needs
        }
        models = [entry for model in self.config.models.values() for entry in self._entries(model)]
        settings: Settings = plain(
            {"models": models, "alternatives": alternatives, "device": self.config.device}
        )
        return settings

    def _entries(self, model: Model) -> Iterator[Settings]:
        """Yield the check of a model, and those of the models that studies derive from it."""
        studies = [study for study in self.config.studies.values() if model.name in study.all_models]
        names = dict.fromkeys(name for study in studies for name in study.methods)
        methods = {name: self._check_of(self.config.methods[name]) for name in names}
        params = {study.name: self.params.of_kind(study.kind) for study in studies}
        # A file that is gone although the model was trained from it in an earlier run is not checked again.
        is_there = Path(model.weights).is_file() and not self.params.inputs.is_result(model.weights)
        entry = {
            "name": f"models.{model.name}",
            "blueprint": {
                **rebuilding(model),
                "cam_layer": model.cam_layer,
                "concept_layers": model.concept_layers,
                "token_grid": model.token_grid,
            },
            "data": self._data(model),
            "classes": None,
            **self.params.label(model),
            "channels": 0,  # those of the images
            "trains": model.training["epochs"] > 0,
            "has_training_images": self.config.sets[model.data].has_training_images,
            "weights": model.weights if is_there else "",
            **self.params.read_files(model, others=model.weights_files if is_there else ()),
            "normalization": model.normalization.channels if model.normalization else None,
            "methods": {name: method for name, method in methods.items() if method},
            "uses": {
                key: function
                for name, of_kind in params.items()
                for key, function in of_kind.model_uses(name).items()
            },
        }
        yield entry
        plain_model: Settings = {
            "weights": "",
            "normalization": None,
            "methods": {},
            "uses": {},
            "trains": True,
        }
        for name, of_kind in params.items():
            for key, (base, channels) in of_kind.derived_models(name).items():
                if base == model.name:
                    yield {**entry, **plain_model, "name": key, "channels": channels}

    def _data(self, model: Model) -> Settings:
        """Return shape and classes of a model's images or, as far as these are unknown, how to find them out."""
        data = self.config.sets[model.data]
        if not is_shape_known(self.config, model.data):
            source = {"function": data.function, "parameters": data.parameters}
            return {"shape": [], "classes": 0, "class_names": {}, **source}
        shape = one_image_shape(self.config, model.data)
        if function := self.params.catalog.data_kinds[data.kind].class_names:
            parameters = {name: data.parameters[name] for name in declared(function)}
            return {
                "shape": shape,
                "classes": 0,
                "class_names": {"function": function, "parameters": parameters},
            }
        return {"shape": shape, "classes": class_count(self.config, model), "class_names": {}}

    def _check_of(self, method: Method) -> Settings:
        """Return the check of a method, or of the method that it smooths; empty if it needs only predictions.

        A custom method is not checked, because the time that it takes is unknown.
        """
        if method.smoothed:
            return self._check_of(method.smoothed)
        return self._checked_as(method.method, method.parameters) if method.method else {}

    def _checked_as(self, name: str, parameters: Settings) -> Settings:
        """Return the call of the method by which a registered one is checked, with defaults for other parameters."""
        record = self.methods[name]
        # A method without passes needs nothing of a model that the configuration does not check.
        if record.passes == 0 or (not isinstance(record.passes, int | float) and not record.checked_as):
            return {}
        if record.checked_as:
            return self._checked_as(record.checked_as, {})
        defaults = {key: parameter.default for key, parameter in record.parameters.items()}
        return {"function": record.function, "parameters": {**defaults, **parameters}, "needs": record.needs}


def _functions(settings: Any) -> Iterator[str]:
    """Yield the references to all functions in settings, which the check calls."""
    if isinstance(settings, dict):
        for key, value in settings.items():
            if key == "uses":
                yield from value.values()
            elif key == "function" and value:
                yield value
            else:
                yield from _functions(value)
    elif isinstance(settings, list):
        for value in settings:
            yield from _functions(value)
