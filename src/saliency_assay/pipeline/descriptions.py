"""Descriptions of studies, methods and metrics as plain data, for the pages of the report."""

from collections.abc import Collection, Iterable
from dataclasses import asdict
from math import isfinite
from typing import Any

from saliency_assay.config.checks import Catalog
from saliency_assay.config.configuration import Configuration
from saliency_assay.config.labels import labels_of
from saliency_assay.config.methods import Method
from saliency_assay.config.metrics import Metric
from saliency_assay.pipeline.studies import Studies
from saliency_assay.registry.labels import Labels

COLOR_PARAMETERS = ("fill", "baseline", "perturbation")
COLORS = ("black", "gray", "mean")


class Descriptions:
    """Descriptions of entries of the configuration, for the pages of the report."""

    def __init__(self, config: Configuration, catalog: Catalog, studies: Studies) -> None:
        self.config = config
        self.catalog = catalog
        self.studies = studies

    def labels(self, *studies: str, only: Collection[str] = ()) -> dict[str, Any]:
        """Return the ``registry.labels.Labels`` of studies, without names those of all entries, as plain data.

        ``only`` are the fields that a job reads: a change of other labels must not rerun it.
        """
        labels = asdict(labels_of(self.config, studies or None))
        return {name: labels[name] for name in only or labels}

    def labels_of_models(self, models: Iterable[str], sets: Iterable[str]) -> dict[str, Any]:
        """Return the ``registry.labels.Labels`` of models and sets, as plain data."""
        set_labels = {
            name: label for entry in self.config.data.values() for name, label in entry.labels_of_sets.items()
        }
        model_labels = {name: self.config.models[name].label for name in sorted(models)}
        return asdict(Labels(models=model_labels, data={name: set_labels[name] for name in sorted(sets)}))

    def study(self, name: str) -> dict[str, Any]:
        """Return the description of a study for the overview and its summary."""
        study, kind = self.studies.study(name), self.studies.kind(name)
        return {
            "name": name,
            "label": study.label,
            "page": self.studies.report_page({"study": name}),
            "labels": self.labels(name),
            "question": self.studies.study_question(name),
            "variants": kind.variants,
            "explains_all_images": kind.explains_all_images,
            "answer": kind.answer,
            "cautions": kind.cautions,
            "notes": kind.notes,
            "rule_labels": kind.rule_labels,
            "references": self._references(name),
            "data": self.studies.gallery_set(name),
            "models": {
                model: {
                    "label": self.config.models[model].label,
                    "architecture": self._architecture_label(self.config.models[model].architecture),
                    "trained_on": self.config.models[model].trained_on,
                    "data": self.config.models[model].data,
                    **({"is_designed": True} if self.config.models[model].is_designed else {}),
                }
                for model in study.all_models
            },
            "methods": study.methods,
            "reference_colors": {
                method: value
                for method in study.methods
                for name in COLOR_PARAMETERS
                if (value := self.config.methods[method].parameters.get(name)) in COLORS
            },
            "score_summaries": self.studies.questions(name),
            "measured": self.studies.measured(name),
            "seeds": len(self.config.seeds),
            "trains": any(self.config.models[model].is_trained for model in study.all_models),
            "level": self.config.reliability.level,
        }

    def _architecture_label(self, architecture: str) -> str:
        """Return the label of a registered architecture, or the reference of a custom function."""
        record = self.catalog.architectures.get(architecture)
        return record.label if record else architecture

    def _references(self, name: str) -> list[str]:
        """Return a caution for each method that is the best possible map under some of a rated study's metrics."""
        if name not in self.studies.rated:
            return []
        best: dict[str, dict[str, None]] = {}
        for of_score in self.studies.controls(name)["upper"].values():
            for entry, methods in of_score.items():
                for method in methods:
                    best.setdefault(method, {})[self.config.metrics[entry].label] = None
        return [
            f"{self.config.methods[method].label} is the best possible map under {', '.join(entries)}, and not ranked."
            for method, entries in best.items()
        ]

    def method(self, method: Method) -> dict[str, Any]:
        """Return the description of a method for the page of methods."""
        record = self.catalog.methods.get(method.method)
        base = self.method(method.smoothed) if method.smoothed else None
        base_text = f" ({base['label']})" if base else ""
        return {
            "name": method.name or method.method,
            "label": method.label,
            "method": method.method,
            "summary": f"{record.summary}{base_text}" if record else method.summary or method.function,
            "reference": record.reference if record else method.maps or method.function,
            "parameters": method.parameters,
            "signed": record.signed if record else None,
            "passes": record.passes if record else None,
            "baseline": method.is_baseline,
            "stored": bool(method.maps),
            "background": method.background,
            **({"base": base} if base else {}),
        }

    def ranges(self, study: str) -> dict[str, list[float | None]]:
        """Return the smallest and largest possible value of the scores of a study; None without a limit.

        Scores of custom metrics are left out.
        """
        records = [self.catalog.metrics.get(metric.metric) for metric in self.studies.metrics(study)]
        scores = [score for record in records if record for score in record.scores]
        return {
            score.name: [end if isfinite(end) else None for end in score.range]
            for score in [*scores, *self.studies.kind(study).scores]
        }

    def metric(self, metric: Metric) -> dict[str, Any]:
        """Return the description of a metric for the page of metrics."""
        record = self.catalog.metrics.get(metric.metric)
        ranges = {score.name: range_text(*score.range) for score in record.scores} if record else {}
        return {
            "name": metric.name,
            "label": metric.label,
            "metric": metric.metric,
            "scores_single_maps": metric.scores_single_maps,
            "summary": metric.summary,
            "reference": record.reference if record else metric.function,
            "formula": record.formula if record else "",
            "reduction": record.reduction if record else "",
            "parameters": metric.parameters,
            "scores": [
                {
                    "name": name,
                    "label": metric.labels[name],
                    "unit": metric.units[name],
                    "direction": direction,
                    "range": ranges.get(name, ""),
                }
                for name, direction in metric.directions.items()
            ],
        }

    def paper_method(self, name: str) -> str:
        """Return the name under which papers report a method.

        The name of a smoothing method includes its base unless the base is the gradient.
        """
        method = self.config.methods[name]
        if method.smoothed and method.smoothed.method != "gradient":
            return f"{method.method} of {method.smoothed.method}"
        return method.method


def range_text(low: float, high: float) -> str:
    """Return a range as the text of an interval, such as ``[0, ∞)``."""
    ends = [f"{end:g}" if abs(end) < float("inf") else "∞" for end in (low, high)]
    return f"[{ends[0]}, {ends[1]}{')' if ends[1] == '∞' else ']'}"
