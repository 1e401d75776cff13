"""Fine-tuned models of metrics that evaluate one: settings, files and mistakes in the configuration."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from configurations import agrees, fault
from pipelines import TINY, inputs, params

from saliency_assay.catalog import CATALOG

AT = {"model": "digits", "seed": "0", "data": "digits", "method": "gradient", "shard": ""}


def with_metric(entry: dict[str, Any] | None = None, **training: Any) -> dict[str, Any]:
    """The tiny configuration with F-Fidelity as another metric of its fidelity study, and a validity study."""
    configuration = deepcopy(TINY)
    configuration["metrics"]["ffid"] = {"metric": "f_fidelity", **(entry or {})}
    configuration["models"]["digits"]["training"] |= training
    configuration["studies"]["digits"]["metrics"] += ["ffid"]
    configuration["studies"]["valid"] = {
        "kind": "validity",
        "model": "digits",
        "metrics": ["ffid", "faithfulness"],
    }
    return configuration


def test_the_model_is_trained_further_with_its_own_settings() -> None:
    configuration = with_metric(learning_rate=0.2, augment_shift=1)
    of = params(configuration)
    trained, finetuned = of.train(AT), of.finetune({**AT, "metric": "ffid"})
    changes = {"learning_rate": 0.02, "augment_removal": 0.1, "augment_fill": "mean"}
    assert finetuned == {
        **trained,
        "training": {**trained["training"], **changes},
        "state": "results/.state/finetune/ffid/digits/seed0.pt",
    }


def test_a_metric_changes_the_training_of_its_model() -> None:
    entry = {
        "beta": 0.3,
        "fill": "black",
        "training": {"epochs": 4, "optimizer": "adamw", "learning_rate": 0.001},
    }
    training = params(with_metric(entry)).finetune({**AT, "metric": "ffid"})["training"]
    assert (training["augment_removal"], training["augment_fill"]) == (0.3, "black")
    assert (training["epochs"], training["optimizer"], training["learning_rate"]) == (4, "adamw", 0.001)


def test_initial_weights_of_the_model_do_not_count(tmp_path: Path) -> None:
    configuration, weights = with_metric(epochs=0), tmp_path / "weights.pt"
    weights.write_bytes(b"1")
    configuration["models"]["digits"]["weights"] = str(weights)
    of = params(configuration, tmp_path / "results")
    settings = of.finetune({**AT, "metric": "ffid"})
    assert "files" in of.train(AT)
    assert "files" not in settings
    assert settings["training"]["epochs"] == 1


def test_only_these_metrics_read_the_fine_tuned_model() -> None:
    of = inputs(with_metric())
    weights = "results/finetuned/ffid/digits/seed0/weights.pt"
    assert of.finetuned({**AT, "metric": "ffid"}) == weights
    assert of.finetuned({**AT, "metric": "faithfulness"}) == []
    validity = of.of_kind("validity")
    for metric, expected in (("ffid", weights), ("faithfulness", [])):
        files = validity.score_validity(
            {"study": "valid", "metric": metric, "seed": "0", "method": "gradient"}
        )
        assert files["finetuned"] == expected


def test_scores_do_not_depend_on_the_training() -> None:
    """The weights are an input, so only their change reruns the scores."""
    first, second = (
        params(with_metric({"training": {"epochs": epochs}})).score({**AT, "metric": "ffid"})
        for epochs in (1, 2)
    )
    assert first == second
    assert first["takes"] == ["mean", "finetuned_model"]


@pytest.mark.parametrize(
    ("metric", "entry", "expected"),
    [
        ("ffid", {"training": {"epoch": 1}}, ".training: unknown key 'epoch' … 'epochs'"),
        ("ffid", {"training": {"epochs": -1}}, ".training.epochs: found -1 … at least 0"),
        ("ffid", {"training": {"augment_removal": 0.2}}, ".training.augment_removal: … metrics.ffid.beta"),
        ("ffid", {"training": {"patience": 2}}, ".training.patience: found 2 … (models.digits)"),
        ("faithfulness", {"training": {"epochs": 1}}, ".training: found with faithfulness … f_fidelity"),
        ("faithfulness", {"epochs": 1}, ": unknown key 'epochs' … valid: fill, label, metric"),
    ],
)
def test_faults_are_one_line(metric: str, entry: dict[str, Any], expected: str) -> None:
    configuration = with_metric()
    configuration["metrics"][metric] |= entry
    assert agrees(fault(configuration, CATALOG), f"metrics.{metric}{expected}")
