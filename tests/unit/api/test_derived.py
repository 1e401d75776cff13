"""Copies of a network with random weights, and fine-tuned ones."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support import attention_classifier, conv_classifier, state_of
from torch import Tensor, nn
from torch.nn.utils import parametrizations

import saliency_assay
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.state import copy_of, tensors_of
from saliency_assay.runtime.provenance import seed_of
from saliency_assay.training.hyperparameters import training_from
from saliency_assay.training.loop import train

SIZE = 8
RANDOM = np.random.default_rng(0)
IMAGES = RANDOM.random((12, 3, SIZE, SIZE)).astype(np.float32)
TARGETS = np.arange(12) % 3
NORMALIZATION: dict[str, Any] = {"mean": [0.25, 0.5, 0.75], "std": [0.25] * 3}


class Net(nn.Module):
    """Layers of which some have no method to initialize them."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.token = nn.Parameter(3 + 0.5 * torch.randn(1, 1, 8))
        self.scale = nn.Parameter(torch.full((8,), 2.0))
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.body = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), parametrizations.weight_norm(nn.Linear(8, 8)))
        self.head = nn.Linear(8, 3)

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.norm(self.stem(images)).flatten(2).mT * self.scale
        tokens = torch.cat([self.token.expand(len(tokens), -1, -1), tokens], 1)
        return self.head(self.body(self.attention(tokens, tokens, tokens)[0]).mean(1))


@pytest.fixture
def network() -> nn.Module:
    torch.manual_seed(0)
    network = Net()
    network(torch.tensor(IMAGES))  # updates the running statistics
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.1)
    return network.eval()


def changed(before: nn.Module, after: nn.Module) -> set[str]:
    old, new = tensors_of(before), tensors_of(after)
    assert old.keys() == new.keys()
    return {name for name in old if not torch.equal(old[name], new[name])}


def test_all_weights_are_new_and_the_model_stays_as_it_is(network: nn.Module) -> None:
    before, generator = state_of(network), torch.get_rng_state()
    one, same, other = (saliency_assay.randomize(network, seed=seed) for seed in (1, 1, 2))
    assert state_of(network) == before
    assert torch.equal(torch.get_rng_state(), generator)
    assert changed(one, same) == set()
    assert changed(network, one) == set(tensors_of(network)) - {"scale"}
    constant = {"scale", *(name for name in tensors_of(network) if name.startswith("norm."))}
    constant |= {"attention.in_proj_bias"}  # 0 after PyTorch's initialization
    assert changed(one, other) == set(tensors_of(network)) - constant
    assert type(one) is Net
    assert not one.training
    assert (one.norm.running_mean.abs().max(), one.norm.running_var.min(), one.norm.num_batches_tracked) == (
        0,
        1,
        0,
    )


def test_layers_are_initialized_as_pytorch_does(network: nn.Module) -> None:
    randomized = saliency_assay.randomize(network, "head", seed=5)
    torch.manual_seed(5)
    fresh = nn.Linear(8, 3)
    assert torch.equal(randomized.head.weight, fresh.weight)
    assert torch.equal(randomized.head.bias, fresh.bias)
    wide = nn.ParameterDict({"token": torch.nn.Parameter(3 + 0.5 * torch.randn(20_000))})
    token = saliency_assay.randomize(wide)["token"]
    assert token.mean().item() == pytest.approx(3, abs=0.02)
    assert token.std().item() == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ("head", {"head.weight", "head.bias"}),
        (["head", "body.0"], {"head.weight", "head.bias", "body.0.weight", "body.0.bias"}),
        ("body.-3", {"body.0.weight", "body.0.bias"}),
    ],
)
def test_only_the_layers_at_the_paths_are_new(network: nn.Module, layers: Any, expected: set[str]) -> None:
    assert changed(network, saliency_assay.randomize(network, layers)) == expected
    model = saliency_assay.wrap(network, classes=3, **NORMALIZATION)
    wrapped = saliency_assay.randomize(model, layers)
    assert type(wrapped) is Classifier
    assert changed(model, wrapped) == {f"network.{name}" for name in expected}
    assert changed(network, saliency_assay.randomize(nn.DataParallel(network), layers).module) == expected


def test_a_randomized_model_is_one_for_the_metrics() -> None:
    for model, size in (
        (conv_classifier(dtype=torch.float32), SIZE),
        (attention_classifier(dtype=torch.float32), 12),
    ):
        images = RANDOM.random((3, 3, size, size)).astype(np.float32)
        maps = saliency_assay.attribute("gradient", model, images, 0)
        randomized = saliency_assay.randomize(model)
        score, same = (
            saliency_assay.score("emprt", model, images, 0, maps, method="gradient", randomized_model=each)[
                "emprt"
            ]
            for each in (randomized, saliency_assay.randomize(model))
        )
        np.testing.assert_array_equal(score, same)
        assert np.isfinite(score).all()
        assert score.all()


def test_weights_of_inference_mode_can_be_randomized() -> None:
    with torch.inference_mode():
        made = nn.Linear(4, 4)
        randomized = saliency_assay.randomize(made)
    assert changed(made, randomized) == {"weight", "bias"}
    assert not randomized.weight.is_inference()


@pytest.mark.parametrize(
    ("model", "layers", "message"),
    [
        (
            lambda images: images,
            None,
            "model: found function, which has no weights, expected a torch.nn.Module",
        ),
        (nn.ReLU(), None, "model: found no parameters in ReLU"),
        (nn.Sequential(nn.Linear(1, 1), nn.ReLU()), "1", "model: found no parameters in 1"),
        (conv_classifier(), "bodi", r"unknown layer 'bodi'; did you mean 'body'\? valid: "),
        (conv_classifier(), [3], "layers: found 3, expected paths of layers"),
        (conv_classifier(), "", "layers: found '', expected paths of layers"),
    ],
    ids=map(str, range(6)),  # a text of a function has its address
)
def test_what_cannot_be_randomized(model: Any, layers: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        saliency_assay.randomize(model, layers)


# ---- fine-tuning


def small(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3)
    ).eval()


def test_the_training_is_that_of_the_workflow(tmp_path: Path) -> None:
    model = saliency_assay.wrap(small(), classes=3, **NORMALIZATION)
    before, generator = state_of(model), torch.get_rng_state()
    options: dict[str, Any] = {"epochs": 3, "batch_size": 4, "learning_rate": 0.05, "augment_flip": True}
    tuned = saliency_assay.finetune(model, IMAGES, TARGETS, seed=7, beta=0.25, fill="black", **options)
    assert state_of(model) == before
    assert torch.equal(torch.get_rng_state(), generator)
    settings = training_from({**options, "augment_removal": 0.25, "augment_fill": "black"})
    expected = copy_of(model)
    assert isinstance(expected, Classifier)
    train(
        expected,
        torch.tensor(IMAGES),
        torch.tensor(TARGETS),
        torch.arange(12),
        torch.arange(0),
        settings,
        seed=seed_of(7, "train"),
        state_path=tmp_path / "state.pt",
        fingerprint="other",
    )
    assert changed(tuned, expected) == set()
    assert changed(model, tuned) == set(tensors_of(model)) - {"mean", "std"}
    assert not tuned.training


def test_a_network_can_be_fine_tuned_on_deletions() -> None:
    network = small()
    options: dict[str, Any] = {"epochs": 1, "batch_size": 6, "fill": "black", "beta": 0}
    tuned = saliency_assay.finetune(network, IMAGES, TARGETS, augment_deletion=4, **options)
    assert changed(tuned, saliency_assay.finetune(network, IMAGES, TARGETS, **options))
    maps = saliency_assay.attribute("gradient", tuned, IMAGES, TARGETS)
    scores = saliency_assay.score("single_deletion", tuned, IMAGES, TARGETS, maps, fill="black")
    assert (np.abs(scores["single_deletion"]) <= 1).all()


def test_a_fine_tuned_network_has_the_type_of_the_model() -> None:
    network = small()
    tuned = saliency_assay.finetune(network, IMAGES, TARGETS, epochs=1, batch_size=6, fill="black")
    assert type(tuned) is nn.Sequential
    assert "4.weight" in changed(network, tuned)
    maps = saliency_assay.attribute("gradient", network, IMAGES, TARGETS)
    scores = saliency_assay.score(
        "f_fidelity", network, IMAGES, TARGETS, maps, finetuned_model=tuned, fill="black", points=3, samples=2
    )
    assert np.isfinite(scores["f_fidelity_plus"]).all()


def test_frozen_parameters_stay_unless_all_are_frozen() -> None:
    network = small()
    network[0].requires_grad_(False)
    options: dict[str, Any] = {"epochs": 1, "batch_size": 6, "fill": "black"}
    names = changed(network, saliency_assay.finetune(network, IMAGES, TARGETS, **options))
    assert "4.weight" in names
    assert "0.weight" not in names
    network.requires_grad_(False)
    assert "0.weight" in changed(network, saliency_assay.finetune(network, IMAGES, TARGETS, **options))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, r"batch_size: found 64, expected at most 12, the number of training images"),
        (
            {"batch_size": 6, "fill": "mean"},
            r"fill: found 'mean', but the model stores no mean; pass saliency_assay",
        ),
        ({"batch_size": 6, "epochs": -1}, "epochs: found -1, expected at least 0"),
        ({"batch_size": 6, "optimizers": "sgd"}, "unknown parameter 'optimizers'; did you mean 'optimizer'"),
        (
            {"batch_size": 6, "augment_removal": 0.5},
            "augment_removal: found a value, expected the argument beta",
        ),
        ({"batch_size": 6, "patience": 2}, "patience: found a value, expected none"),
        ({"batch_size": 6, "learning_rate": 1e30}, "training diverged: "),
        ({"targets": 3}, "targets: found class 3, expected 0 to 2"),
    ],
    ids=str,
)
def test_errors_of_fine_tuning(changes: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"images": IMAGES, "targets": TARGETS, "fill": "black", **changes}
    with pytest.raises(ValueError, match=f"^{message}"):
        saliency_assay.finetune(small(), **arguments)


def test_only_networks_of_exclusive_classes_are_fine_tuned() -> None:
    networks = (
        saliency_assay.wrap(small(), classes=3, multi_label=True, **NORMALIZATION),
        saliency_assay.wrap(small(), output=lambda logits: logits[:, 0], **NORMALIZATION),
    )
    for network in networks:
        with pytest.raises(ValueError, match=r"^model: found no exclusive classes"):
            saliency_assay.finetune(network, IMAGES, 0, batch_size=6)
    with pytest.raises(ValueError, match=r"^model: found function, which has no weights"):
        saliency_assay.finetune(lambda images: images, IMAGES, 0)  # type: ignore[type-var]


def test_weights_of_an_untrained_network_are_sampled_again() -> None:
    torch.manual_seed(3)
    network = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    randomized = saliency_assay.randomize(network, seed=3)
    assert not torch.equal(randomized[0].weight, network[0].weight)
    assert torch.equal(randomized[0].weight, saliency_assay.randomize(network, seed=4)[0].weight)
