"""Models that continue the training of another model: settings, files and mistakes in the configuration."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from configurations import agrees, fault
from pipelines import TINY, inputs, params

from saliency_assay.catalog import CATALOG
from saliency_assay.config.configuration import read

AT = {"model": "deletion", "seed": "3", "data": "digits", "method": "gradient", "shard": ""}


def with_finetuned(entry: dict[str, Any] | None = None, **model: Any) -> dict[str, Any]:
    """The tiny configuration with a model that is fine-tuned on deletions, and a study that scores its maps."""
    configuration = deepcopy(TINY)
    training = {"augment_deletion": 4, "epochs": 2}
    configuration["models"]["digits"] |= model
    configuration["models"]["deletion"] = {"finetuned_from": "digits", "training": training, **(entry or {})}
    configuration["metrics"]["cells"] = {"metric": "single_deletion", "grid": 4}
    study = {"kind": "fidelity", "model": "deletion", "methods": ["gradient"], "metrics": ["cells"]}
    configuration["studies"]["deletion"] = study
    return configuration


def test_the_model_differs_in_training_alone() -> None:
    of = params(with_finetuned(batch_size=32))
    first, second = of.train({**AT, "model": "digits"}), of.train(AT)
    changes = {"learning_rate": first["training"]["learning_rate"] / 10, "epochs": 2, "augment_deletion": 4}
    assert second == {
        **first,
        "training": {**first["training"], **changes},
        "state": "results/.state/train/deletion/seed3.pt",
    }
    assert of.evaluate(AT)["batch_size"] == 32


def test_initial_weights_are_those_of_the_same_seed(tmp_path: Path) -> None:
    weights = tmp_path / "weights.pt"
    weights.write_bytes(b"1")
    configuration = with_finetuned(weights=str(weights))
    of = inputs(configuration)
    assert of.initial_weights(AT) == {"weights": "results/models/digits/seed3/weights.pt"}
    assert of.hyperparameters(AT) == {}
    settings = params(configuration)
    assert "files" in settings.train({**AT, "model": "digits"})
    assert not {"files", "weights"} & settings.train(AT).keys()


def test_a_search_is_not_repeated() -> None:
    configuration = with_finetuned({"finetuned_from": "searched"})
    model = read(configuration, catalog=CATALOG, source="some.yaml").models["deletion"]
    assert (model.search, model.trials, model.finetuned_from) == ({}, (), "searched")
    assert inputs(configuration).hyperparameters(AT) == {}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"finetuned_from": "digit"}, "models.deletion.finetuned_from: unknown model 'digit' … 'digits'"),
        ({"finetuned_from": "deletion"}, "models.deletion.finetuned_from: unknown model 'deletion'"),
        ({"width": 8}, "models.deletion: unknown key 'width' … valid: finetuned_from"),
        ({"training": {"epoch": 1}}, "models.deletion.training: unknown key 'epoch' … 'epochs'"),
        ({"training": {"augment_deletion": 1}}, "models.deletion.training.augment_deletion: found 1"),
        (
            {"training": {"augment_deletion": 3}},
            "studies.deletion.metrics: found cells with grid 4, expected 3 … models.deletion",
        ),
        (
            {"training": {"augment_deletion": 4, "augment_fill": "black"}},
            "studies.deletion.metrics: found cells with fill mean, expected black … models.deletion",
        ),
    ],
    ids=str,
)
def test_faults_are_one_line(entry: dict[str, Any], expected: str) -> None:
    assert agrees(fault(with_finetuned(entry), CATALOG), expected)


def test_models_without_deletions_have_any_grid() -> None:
    configuration = with_finetuned({"training": {}})
    assert read(configuration, catalog=CATALOG, source="some.yaml").metrics["cells"].parameters["grid"] == 4


def test_several_labels_are_not_trained(tmp_path: Path) -> None:
    weights = tmp_path / "weights.pt"
    weights.write_bytes(b"1")
    multi: dict[str, Any] = {"multi_label": True, "weights": str(weights), "training": {"epochs": 0}}
    expected = "models.deletion.finetuned_from: found digits, which has models.digits.multi_label"
    assert agrees(fault(with_finetuned(**multi), CATALOG), expected)


def test_a_study_that_retrains_needs_a_model_that_it_can_repeat() -> None:
    configuration = with_finetuned()
    configuration["studies"]["retrain"]["model"] = "deletion"
    expected = "studies.retrain.model: found deletion, which is trained from the weights of digits"
    assert agrees(fault(configuration, CATALOG), expected)
