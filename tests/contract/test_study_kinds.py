"""The records of the kinds of study."""

import pytest

from saliency_assay.registry.records import resolve
from saliency_assay.registry.study_kind import Outputs, StudyKind
from saliency_assay.studies import STUDY_KINDS

each_kind = pytest.mark.parametrize("kind", STUDY_KINDS.values(), ids=lambda kind: kind.name)


@each_kind
def test_all_that_a_record_names_exists(kind: StudyKind) -> None:
    references = [
        name
        for name in (kind.settings, kind.rated_scores, kind.latex, kind.answer, kind.cautions, kind.notes)
        if name
    ]
    assert all(name.startswith("saliency_assay.studies.") for name in references)
    assert all(callable(resolve(name)) for name in (*references, kind.inputs, kind.params))
    assert kind.variants in ("variants", "models")
    assert all(score.direction.target is None for score in kind.scores)


def test_a_study_asks_about_the_object_where_all_its_metrics_take_the_mask() -> None:
    kind = StudyKind("k", "K", "fidelity?", "", "", mask_question="localization?", mixed_question="both?")
    assert kind.question_for([("mask",), ("mean", "mask")]) == "localization?"
    assert kind.question_for([("mask",), ("mean",)]) == "both?"
    assert kind.question_for([("mean",)]) == "fidelity?"
    assert StudyKind("k", "K", "fidelity?", "", "").question_for([("mask",)]) == "fidelity?"


def test_options_add_tables_and_figures_in_the_order_of_the_record() -> None:
    first, second = Outputs(("a",), ("a.svg",)), Outputs(("b",), ("b.svg", "b.html"), option="more")
    kind = StudyKind("k", "K", "?", "", "", outputs=(first, second, Outputs(figures=("c.svg",))))
    assert kind.tables(()) == ["a"]
    assert kind.figures(()) == ["a.svg", "c.svg"]
    assert kind.tables(["more", "other"]) == ["a", "b"]
    assert kind.figures(["more"]) == ["a.svg", "b.svg", "b.html", "c.svg"]


@each_kind
def test_cautions_read_tables_of_their_study(kind: StudyKind) -> None:
    options = {outputs.option for outputs in kind.outputs}
    assert set(kind.summary_tables) <= set(kind.tables(options))
    assert bool(kind.summary_tables) == bool(kind.answer or kind.cautions or kind.notes)
