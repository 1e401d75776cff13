"""The records of the kinds of study."""

import pytest

from saliency_assay.registry.directions import target_of
from saliency_assay.registry.records import resolve
from saliency_assay.studies import STUDY_KINDS
from saliency_assay.studies.kind import StudyKind

each_kind = pytest.mark.parametrize("kind", STUDY_KINDS.values(), ids=lambda kind: kind.name)


@each_kind
def test_all_that_a_record_names_exists(kind: StudyKind) -> None:
    references = [name for name in (kind.rated_scores, kind.latex, kind.cautions) if name]
    assert all(name.startswith(f"saliency_assay.studies.{kind.name}.") for name in references)
    assert all(callable(resolve(name)) for name in references)
    assert kind.variants in ("variants", "models")
    assert all(target_of(score.direction) is None for score in kind.scores)


def test_only_galleries_have_no_ranks() -> None:
    assert [kind.name for kind in STUDY_KINDS.values() if not kind.is_rated] == ["gallery"]


def test_a_study_asks_about_the_object_where_all_its_metrics_take_the_mask() -> None:
    kind = StudyKind("k", "fidelity?", mask_question="localization?")
    assert kind.question_for([("mask",), ("mean", "mask")]) == "localization?"
    assert kind.question_for([("mask",), ("mean",)]) == "fidelity?"
    assert StudyKind("k", "fidelity?").question_for([("mask",)]) == "fidelity?"
