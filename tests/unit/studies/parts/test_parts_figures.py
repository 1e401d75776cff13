"""Figure of a parts study."""

import pandas as pd

from saliency_assay.registry.labels import Labels
from saliency_assay.studies.parts.figures import protocols_figure
from saliency_assay.studies.parts.parts_tables import SCORES


def test_each_score_has_a_panel_with_methods_in_the_order_of_completeness() -> None:
    rows = [
        {"metric": score, "method": method, "mean": mean, "low": mean - 0.1, "high": mean + 0.1}
        for score in SCORES
        for method, mean in (("a", 0.3), ("b", 0.6))
    ]
    figure = protocols_figure(pd.DataFrame(rows), ["a"], 0.95, Labels(methods={"a": "First", "b": "Second"}))
    assert len(figure.axes) == len(SCORES)
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["Second", "First"]
    dots = [line for line in figure.axes[0].lines if line.get_marker() in ("o", "s")]
    assert [(dot.get_xdata()[0], dot.get_marker()) for dot in dots] == [(0.6, "o"), (0.3, "s")]
