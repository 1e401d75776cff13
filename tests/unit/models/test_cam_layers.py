"""Layers for CAM and Grad-CAM that error messages suggest."""

import pytest
import torch
from torch import nn

import saliency_assay
from saliency_assay.models.cam_layers import likely_cam_layer

TORCHVISION = {
    "resnet18": "layer4",
    "vgg11": "features",
    "convnext_tiny": "features",
    "vit_b_16": "encoder.layers.encoder_layer_11.ln_1",
    "maxvit_t": "blocks.3",
}
TIMM = {
    "resnetv2_50": "stages",  # a convolution behind the pooling is no map
    "mobilenetv3_small_100": "blocks",
    "vit_tiny_patch16_224": "blocks.11.norm1",
    "vit_base_patch16_siglip_224": "norm",  # before the attention that pools
}


@pytest.mark.parametrize(
    ("library", "name", "layer"),
    [("torchvision", *each) for each in TORCHVISION.items()] + [("timm", *each) for each in TIMM.items()],
)
def test_the_last_layer_with_maps_is_found(library: str, name: str, layer: str) -> None:
    module = pytest.importorskip("torchvision.models" if library == "torchvision" else "timm")
    create = module.get_model if library == "torchvision" else module.create_model
    with torch.device("meta"):
        assert likely_cam_layer(create(name)) == layer


class Block(nn.Module):
    """A block whose normalization is registered after its attention, as in Hugging Face's networks."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.Sequential(nn.MultiheadAttention(4, 1))
        self.before = nn.LayerNorm(4)
        self.after = nn.LayerNorm(4)


def test_the_order_in_a_block_may_differ() -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 2), nn.ModuleList([Block(), Block()]), nn.LayerNorm(4))
    assert likely_cam_layer(network) == "1.1.before"
    assert likely_cam_layer(nn.Linear(2, 2)) == ""


def test_messages_suggest_the_layer() -> None:
    network = nn.Sequential(
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)
    )
    with pytest.raises(ValueError, match=r"cam_layer: unknown layer 'layer4'.* Grad-CAM: '0'"):
        saliency_assay.wrap(network, classes=2, mean=[0.5] * 3, std=[0.5] * 3, cam_layer="layer4")
    with pytest.raises(ValueError, match=r"cam_layer=…\), the path of a layer, such as '0'"):
        saliency_assay.attribute("gradcam", network, torch.rand(2, 3, 8, 8), 0)
