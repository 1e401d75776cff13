"""Weights of Python packages, whose names are others than those of timm's networks."""

from collections import OrderedDict
from pathlib import Path

import pytest
import torch

from saliency_assay.models.classifier import Blueprint, Classifier, build
from saliency_assay.models.families import BUILDERS, IMAGENET_NETWORKS, family_of
from saliency_assay.models.weights import load_initial

pytest.importorskip("timm")
NAME = "imagenet/efficientnet_lite0"


@pytest.fixture(scope="module")
def model() -> Classifier:
    blueprint = Blueprint(NAME, BUILDERS["imagenet"], {"name": "efficientnet_lite0"}, "bn2")
    return build(blueprint, classes=1000, mean=[0.5] * 3, std=[0.5] * 3, generator=torch.Generator())


def test_weights_are_those_of_the_same_place_under_timms_names(model: Classifier, tmp_path: Path) -> None:
    state = model.network.state_dict()
    packaged = OrderedDict((f"_package.{number}", tensor + 1) for number, tensor in enumerate(state.values()))
    expected = {name: tensor + 1 for name, tensor in state.items()}
    torch.save(packaged, tmp_path / "packaged.pth")
    load_initial(model, tmp_path / "packaged.pth", NAME, head_may_start_anew=False)
    assert all(torch.equal(tensor, expected[name]) for name, tensor in model.network.state_dict().items())


def test_weights_of_another_network_are_refused(model: Classifier, tmp_path: Path) -> None:
    tensors = list(model.network.state_dict().values())
    for number, content in enumerate((tensors[:-1], [*tensors[1:], tensors[0]])):
        path = tmp_path / f"{number}.pth"
        torch.save({f"_package.{place}": tensor for place, tensor in enumerate(content)}, path)
        with pytest.raises(
            ValueError, match=r"not weights of imagenet/efficientnet_lite0: found 29\d tensors"
        ):
            load_initial(model, path, NAME, head_may_start_anew=False)


def test_all_networks_have_the_layers_of_their_family(model: Classifier) -> None:
    for name in IMAGENET_NETWORKS:
        family = family_of("imagenet", name)
        assert family is not None
        assert family.has_relu
        assert family.head_is_pool_linear
    for layer in ("bn2", "blocks.1", "blocks.3", "blocks.-1"):
        model.layer(layer)
