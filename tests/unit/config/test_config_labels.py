"""Labels of entries: defaults, configured labels, and labels that are not valid."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from configurations import agrees, base, changed, fault, reading
from pipelines import TINY

from saliency_assay.catalog import CATALOG
from saliency_assay.config.configuration import Configuration, read
from saliency_assay.config.labels import labels_of


def tiny(**changes: Mapping[str, Any]) -> Configuration:
    """The configuration ``TINY`` with changed entries of its sections."""
    raw = {**TINY, **{section: {**TINY[section], **entries} for section, entries in changes.items()}}
    return read(raw, catalog=CATALOG, source="some.yaml")


def test_an_entry_of_a_registered_name_has_its_label() -> None:
    config = tiny()
    assert (config.methods["gradcam"].label, config.methods["edge"].label) == ("Grad-CAM", "Edge detection")
    assert config.metrics["faithfulness"].label == "Faithfulness correlation estimate"
    assert config.data["digits"].label == "Digits"
    assert (config.studies["bam"].label, config.studies["retrain"].label) == ("BAM", "Retraining")


def test_an_entry_of_another_name_has_its_name_with_spaces() -> None:
    config = tiny(
        methods={"my_gradient_2": {"method": "gradient"}, "vargrad": {"method": "smoothgrad"}},
        metrics={"square_removal": {"metric": "infidelity_square"}},
    )
    assert config.methods["my_gradient_2"].label == "My gradient 2"
    assert config.methods["vargrad"].label == "Vargrad"  # not the label of what it does not configure
    assert config.metrics["square_removal"].label == "Square removal"
    assert config.models["f_o"].label == "F o"


def test_labels_of_custom_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_label.py").write_text("def f(model, images, targets, *, generator): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    own = {"function": "own_label:f"}
    methods = tiny(methods={"my_own": own, "other": {**own, "label": "Another"}}).methods
    assert (methods["my_own"].label, methods["other"].label) == ("My own", "Another")


def test_configured_labels() -> None:
    config = tiny(
        data={"bam": {**TINY["data"]["bam"], "label": "Toys"}},
        models={"f_o": {**TINY["models"]["f_o"], "label": "Object model"}},
        methods={"gradient": {"label": "Vanilla"}},
        metrics={
            "mcs": {"label": "Contrast"},
            "infidelity": {**TINY["metrics"]["infidelity"], "label": "Squares"},
        },
        studies={"digits": {**TINY["studies"]["digits"], "label": "Digits, three metrics"}},
    )
    labels = labels_of(config)
    assert (labels.data["bam"], labels.data["bam_os"]) == ("Toys", "Toys (objects on scenes)")
    assert labels.data["bam_os_k01"] == "Toys (dog in 1 of 10 scene classes)"
    assert labels.models["f_o"] == "Object model"
    assert labels.methods["gradient"] == "Vanilla"
    assert labels.studies["digits"] == "Digits, three metrics"
    assert labels.score("mcs", "mcs scale") == "Contrast (other object sizes)"
    assert labels.score("infidelity", "infidelity") == "Squares"
    assert labels.methods["tcav"] == "TCAV"


@pytest.mark.parametrize(
    ("label", "morf"),
    [
        ("AOPC", "AOPC (MoRF)"),
        ("AOPC (mean fill)", "AOPC (MoRF, mean fill)"),
        ("Removal", "Removal: AOPC (MoRF)"),
    ],
)
def test_several_scores_of_an_entry(label: str, morf: str) -> None:
    config = tiny(metrics={"mine": {"metric": "aopc", "label": label}})
    assert labels_of(config).entry_scores["mine"]["aopc_morf"] == morf


def test_a_study_has_the_labels_of_its_entries() -> None:
    labels = labels_of(tiny(), ["digits"])
    assert list(labels.methods) == ["gradient", "smooth"]
    assert list(labels.metrics) == ["faithfulness", "infidelity", "sensitivity"]
    assert (list(labels.models), list(labels.data), list(labels.studies)) == (["digits"],) * 3


@pytest.mark.parametrize(
    ("section", "one", "other"),
    [
        ("data", "bam", "digits"),
        ("models", "f_o", "d"),
        ("methods", "gradient", "smooth"),
        ("metrics", "mine", "mcs"),
        ("studies", "bam", "digits"),
    ],
)
def test_no_two_entries_have_one_label(section: str, one: str, other: str) -> None:
    raw = base()
    if section == "metrics":
        raw["metrics"] = {"mine": {"metric": "deletion"}, "mcs": {}}
    for name in (one, other):
        raw[section][name]["label"] = "Same"
    assert agrees(fault(raw), f"{section}.{other}.label: found 'Same', the label of {section}.{one}")


def test_a_label_may_not_be_the_default_of_another_entry() -> None:
    message = fault(changed("methods.smooth.label", "the method gradient"))
    assert agrees(message, "methods.smooth.label: found 'the method gradient' … methods.gradient")
    # The other metric is in every configuration, under its registered name.
    message = fault(changed("metrics", {"mine": {"metric": "deletion", "label": "the metric mcs"}}))
    assert agrees(message, "metrics.mine.label: found 'the metric mcs' … metrics.mcs")


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        *((text, "one line of text") for text in ("", " ", "two\nlines", "tab\x07")),
        # Figures would read a dollar sign as a formula, and Snakemake braces as a wildcard.
        *((f"α{sign}", f"a text without {sign} (") for sign in "${}"),
        (3, "a string"),
    ],
)
@pytest.mark.parametrize("place", ["data.bam", "studies.digits"])
def test_a_label_is_one_line_without_markup(place: str, label: object, expected: str) -> None:
    assert fault(changed(f"{place}.label", label)).startswith(
        f"{place}.label: found {label!r}, expected {expected}"
    )


def test_labels_may_have_any_letters() -> None:
    label = "∂f / ∂x, é"
    assert reading(changed("methods.gradient.label", label)).methods["gradient"].label == label


def test_the_old_key_of_a_models_training_label_is_named() -> None:
    raw = changed("models.d", {"architecture": "mlp", "data": "digits", "label": "class"})
    assert agrees(fault(raw), "models.d: key 'trained_on' is missing; 'label' is called 'trained_on'")
