"""Display names: the labels by which figures, tables and pages name entries of the configuration and their scores.

A sub-variant of a score, such as ``L=20`` of AOPC, is labeled by a pattern: a regular expression, and a format string
for its groups. A label in parentheses joins those of the score: ``AOPC (MoRF)`` and ``(L = 20)`` become
``AOPC (MoRF, L = 20)``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field


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
