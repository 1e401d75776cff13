"""Display names: the labels by which figures, tables and pages name entries of the configuration and their scores.

A sub-variant of a score, such as ``L=20`` of AOPC, is labeled by a pattern: a regular expression, and a format string
for its groups. A label in parentheses joins those of the score: ``AOPC (MoRF)`` and ``(L = 20)`` become
``AOPC (MoRF, L = 20)``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

FIRST_METHODS = (
    *("gradient", "gradient_x_input", "integrated_gradients", "gradcam", "guided_backprop", "smoothgrad"),
    *("lrp_epsilon", "deeplift"),
)
"""Methods that are compared most often: the first places of the palette, whose lines are solid and differ in color."""


@dataclass(frozen=True)
class Labels:
    """Labels by key; plain data, so that it can be a parameter of jobs."""

    methods: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)
    """Labels of entries under ``metrics``, and of registered metrics without an entry."""
    scores: Mapping[str, str] = field(default_factory=dict)
    """Labels of scores by the score's name, whichever entry computes it."""
    data: Mapping[str, str] = field(default_factory=dict)
    """Labels of entries under ``data``, and of the sets that they provide."""
    models: Mapping[str, str] = field(default_factory=dict)
    studies: Mapping[str, str] = field(default_factory=dict)
    entry_scores: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """For each entry under ``metrics`` the labels of its scores, which differ from those of other entries."""
    sub_variants: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Patterns of sub-variants for each entry under ``metrics``; those under ``""`` apply to all entries."""
    places: Mapping[str, int] = field(default_factory=dict)
    """Place of each method in the palette of lines, the same in all figures; negative for baselines."""

    def method(self, name: str) -> str:
        """Return the label of a method, or of another row among the methods in tables; without a label the key."""
        return self.methods.get(name, name)

    def model(self, name: str) -> str:
        """Return the label of a model, or of several in one text such as ``f_o, f_s``."""
        return ", ".join(self.models.get(key, key) for key in name.split(", "))

    def data_set(self, name: str) -> str:
        """Return the label of a set or of an entry under ``data``, or of two sets that are compared (``a → b``)."""
        return " → ".join(self.data.get(key, key) for key in name.split(" → "))

    def study(self, name: str) -> str:
        """Return the label of a study."""
        return self.studies.get(name, name)

    def score(self, score: str, variant: str = "") -> str:
        """Return the label of a score, or of one of its variants.

        Args:
            score: name of the score, the column ``metric`` of score tables.
            variant: column ``variant`` of score tables: entry under ``metrics`` and sub-variant, or the sub-variant
                alone if no metric computes the score.
        """
        if not self.scores:
            return " ".join(dict.fromkeys((score, *variant.split())))
        entry, _, sub_variant = variant.partition(" ")
        if entry not in self.entry_scores:
            # A score that a metric returns in addition may be a variant of its own name.
            entry, sub_variant = "", sub_variant if entry == score else variant
        label = self.entry_scores.get(entry, {}).get(score) or self.scores.get(score, score)
        return f"{label} {self._sub_variant(entry, sub_variant)}".strip().replace(") (", ", ")

    def sub_variant(self, entry: str, sub_variant: str) -> str:
        """Return the label of a sub-variant alone, such as ``L = 20``, as the title of a panel."""
        label = self._sub_variant(entry, sub_variant)
        return label[1:-1] if label.startswith("(") else label

    def _sub_variant(self, entry: str, sub_variant: str) -> str:
        patterns = {**self.sub_variants.get(entry, {}), **self.sub_variants.get("", {})}
        for pattern, text in patterns.items():
            if match := re.fullmatch(pattern, sub_variant):
                return text.format(*match.groups())
        return f"({self.models.get(sub_variant, sub_variant)})" if sub_variant else ""


UNLABELED = Labels()
"""Labels every entry by its key, for callers without a configuration."""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun in singular or plural, such as ``1 metric``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def label_of(name: str, configured: str | None, record: Any = None) -> str:
    """Return the label of an entry.

    Args:
        name: name of the entry.
        configured: its key ``label``, if it has one.
        record: registry record of the object that it configures, whose label is the default under the same name.
    """
    if configured:
        return configured
    if record and record.name == name:
        return str(record.label)
    text = name.replace("_", " ").strip()
    return text[:1].upper() + text[1:]


def score_labels(scores: Mapping[str, str], label: str, registered_label: str) -> dict[str, str]:
    """Return the labels of the scores of a metric.

    A single score has the label of the metric. Several scores have their registered labels, extended by the words in
    parentheses of the metric's label: ``AOPC (mean fill)`` and ``AOPC (MoRF)`` become ``AOPC (MoRF, mean fill)``.

    Args:
        scores: registered label of each score.
        label: label of the metric, or of its entry in the configuration.
        registered_label: registered label of the metric; empty for a custom metric.
    """
    if len(scores) == 1:
        return dict.fromkeys(scores, label)
    if label.startswith(f"{registered_label} ("):
        addition = label.removeprefix(registered_label)
        return {score: f"{text}{addition}".replace(") (", ", ") for score, text in scores.items()}
    prefix = "" if label == registered_label else f"{label}: "
    return {score: f"{prefix}{text}" for score, text in scores.items()}


def method_places(entries: Mapping[str, tuple[str, bool]], registered: Mapping[str, bool]) -> dict[str, int]:
    """Return ``Labels.places`` of methods.

    A method with the name of its record has the place of the record, so that its look is the same in every figure.
    Others follow, sorted by name.

    Args:
        entries: for each method the name of its record, and whether it uses the model.
        registered: all registered methods, and whether they use the model.
    """
    own_names = {name for name, (method, _) in entries.items() if name == method}
    places = {}
    for uses_model in (True, False):
        names = [
            name for name in dict.fromkeys([*FIRST_METHODS, *registered]) if registered[name] == uses_model
        ]
        other_names = sorted(entries.keys() - own_names)
        names += [name for name in other_names if entries[name][1] == uses_model]
        for index, name in enumerate(names):
            places[name] = index if uses_model else -1 - index
    return {name: place for name, place in sorted(places.items()) if name in entries}
