"""Predictions and accuracies against plain NumPy, with fewer images a batch than there are."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from support import seen_batches
from torch import Tensor, nn

from saliency_assay.data.splits import TEST, TRAIN, VALIDATION
from saliency_assay.models.classifier import Classifier
from saliency_assay.training.evaluation import accuracies, predict

COUNT, SIDE, CLASSES = 23, 3, 4


class Linear(nn.Module):
    """Logits that plain NumPy can repeat, spread over a range where float32's softmax would reach 1."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(2)
        self.weight = nn.Parameter(12 * torch.randn(SIDE * SIDE, CLASSES, generator=generator))

    def forward(self, images: Tensor) -> Tensor:
        return images.flatten(1) @ self.weight


def linear() -> Classifier:
    return Classifier(
        Linear(), classes=CLASSES, mean=[0.5], std=[0.25], cam_layer="", concept_layers=[]
    ).eval()  # fmt: skip


def data_set() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(1)
    images = generator.integers(0, 256, (COUNT, 1, SIDE, SIDE), dtype=np.uint8)
    split = generator.permutation(np.repeat([TEST, VALIDATION, TRAIN], [9, 4, COUNT - 13])).astype(np.uint8)
    return images, generator.integers(0, CLASSES, COUNT), split


def plain_logits(classifier: Classifier, images: np.ndarray) -> np.ndarray:
    weight = classifier.network.weight.detach().numpy().astype(np.float64)
    return ((images.reshape(COUNT, -1) / 255 - 0.5) / 0.25) @ weight


@pytest.mark.parametrize("batch_size", [1, 5, 100])
def test_predictions_equal_numpys(batch_size: int) -> None:
    classifier = linear()
    images, labels, split = data_set()
    with seen_batches(classifier) as batches:
        result = predict(classifier, images, labels, split, batch_size=batch_size)
    sizes = [min(batch_size, COUNT - start) for start in range(0, COUNT, batch_size)]
    assert [len(batch) for batch in batches] == sizes
    logits = plain_logits(classifier, images)
    exponent = np.exp(logits - logits.max(1, keepdims=True))
    probability = (exponent / exponent.sum(1, keepdims=True))[np.arange(COUNT), labels]
    assert list(result.columns) == ["image", "split", "label", "predicted", "probability"]
    assert result["image"].tolist() == list(range(COUNT))
    names = {TRAIN: "train", VALIDATION: "validation", TEST: "test"}
    assert result["split"].tolist() == [names[part] for part in split.tolist()]
    assert result["label"].tolist() == labels.tolist()
    assert result["predicted"].tolist() == logits.argmax(1).tolist()
    np.testing.assert_allclose(result["probability"], probability, rtol=1e-4)
    assert result["probability"].dtype == np.float64


def test_confident_predictions_can_still_be_compared() -> None:
    """Softmax in float32 would give 1 for both, and a rise in confidence would be no rise."""
    classifier = Classifier(
        nn.Sequential(nn.Flatten(), nn.Linear(1, 2, bias=False)), classes=2, mean=[0.0], std=[1.0],
        cam_layer="", concept_layers=[],
    ).eval()  # fmt: skip
    with torch.no_grad():
        classifier.network[1].weight.copy_(torch.tensor([[30.0], [0.0]]))
    images = np.array([200, 255], dtype=np.uint8).reshape(2, 1, 1, 1)
    zero = np.zeros(2, dtype=np.int64)
    lower, higher = predict(classifier, images, zero, zero.astype(np.uint8), batch_size=1)["probability"]
    assert np.float32(lower) == np.float32(higher) == 1
    assert lower < higher < 1


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_logits_that_are_not_finite_are_counted(value: float) -> None:
    class Broken(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            logits = images.flatten(1)[:, :CLASSES].clone()
            logits[images[:, 0, 0, 0] > 0.5, 1:3] = value
            return logits

    classifier = Classifier(
        Broken(), classes=CLASSES, mean=[0.0], std=[1.0], cam_layer="", concept_layers=[]
    ).eval()  # fmt: skip
    images, labels, split = data_set()
    broken = int((images[:, 0, 0, 0] / 255 > 0.5).sum())
    assert 5 < broken < COUNT
    with pytest.raises(ValueError, match=f"^logits of {broken} of {COUNT} images are not finite"):
        predict(classifier, images, labels, split, batch_size=5)


def predictions() -> pd.DataFrame:
    generator = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "data": generator.choice(["os", "og"], 60),
            "split": generator.choice(["train", "test"], 60),
            "label": generator.integers(0, 3, 60),
            "predicted": generator.integers(0, 3, 60),
        }
    )


def test_accuracies_equal_numpys() -> None:
    table, classes = predictions(), ["dog", "cat", "kite"]
    result = accuracies(table, classes)
    data, split, label, predicted = (
        table[name].to_numpy() for name in ("data", "split", "label", "predicted")
    )
    assert set(result) == {"os", "og"}
    for name, splits in result.items():
        assert set(splits) == {"train", "test"}
        for part, entry in splits.items():
            chosen = (data == name) & (split == part)
            right = (label == predicted)[chosen]
            assert entry["images"] == chosen.sum()
            assert entry["accuracy"] == pytest.approx(right.sum() / chosen.sum())
            assert entry["largest_class"] == pytest.approx(np.bincount(label[chosen]).max() / chosen.sum())
            by_class = [right[label[chosen] == index] for index in range(3)]
            assert entry["balanced_accuracy"] == pytest.approx(np.mean([part.mean() for part in by_class]))
            assert entry["per_class"] == {
                name: pytest.approx(part.mean()) for name, part in zip(classes, by_class, strict=True)
            }
            assert entry["counts"] == {
                name: {"correct": part.sum(), "images": len(part)}
                for name, part in zip(classes, by_class, strict=True)
            }
    assert json.loads(json.dumps(result)) == result


def test_only_splits_and_classes_that_a_set_has_are_reported() -> None:
    table = predictions()
    table = table[~((table["data"] == "og") & (table["split"] == "train")) & (table["label"] != 1)]
    result = accuracies(table, ["dog", "cat", "kite"])
    assert set(result["og"]) == {"test"}
    assert set(result["os"]) == {"train", "test"}
    test = result["os"]["test"]
    assert set(test["per_class"]) == set(test["counts"]) == {"dog", "kite"}
    assert test["balanced_accuracy"] == pytest.approx(sum(test["per_class"].values()) / 2)
