"""Mistakes with models, layers, sizes, builders, methods and weights, each of which is reported before any training."""

import pickle
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from mistaken_networks import probabilities

from saliency_assay.models.resnet import resnet8, resnet18

BASE: dict[str, Any] = {
    "results": "results",
    "device": "cpu",
    "data": {"digits": {"kind": "digits", "size": 8, "max_explained_images": 10}},
    "methods": {"gradient": {}, "random": {}},
    "studies": {"look": {"kind": "gallery", "model": "mine"}},
}
RESNET8 = {"architecture": "resnet8", "width": 4}


@dataclass(frozen=True)
class Mistake:
    """A mistake in a configuration, and its line on the terminal."""

    title: str
    """Name of the test."""
    line: str
    """Part of the line: its place and what is found."""
    model: dict[str, Any]
    methods: dict[str, Any] = field(default_factory=lambda: BASE["methods"])
    studies: dict[str, Any] = field(default_factory=lambda: BASE["studies"])

    @property
    def configuration(self) -> dict[str, Any]:
        """The configuration with the mistake, as in a file."""
        model = {"data": "digits", "trained_on": "class", "training": {"epochs": 1}, **self.model}
        return {**BASE, "models": {"mine": model}, "methods": self.methods, "studies": self.studies}


def custom(builder: str, **values: Any) -> dict[str, Any]:
    return {"function": f"mistaken_networks:{builder}", **values}


RETRAINED = {
    "retrain": {"kind": "retrain", "model": "mine", "percentile": 75, "leakage": {"repeats": 2}},
}

MISTAKES = (
    Mistake(
        "a parameter that the function of a custom model passes on to a class without it",
        "models.mine: cannot be built: TypeError: Plain.__init__() got an unexpected keyword argument 'depth'",
        custom("plain", depth=3),
    ),
    Mistake(
        "a parameter that the function of a custom model does not have",
        "models.mine.depth: unknown parameter 'depth'",
        custom("gelu", depth=3),
    ),
    Mistake(
        "a function that returns a state dict instead of a module",
        "models.mine: cannot be built: 'mistaken_networks:state_dict' returned OrderedDict; expected a torch.nn.Module",
        custom("state_dict"),
    ),
    Mistake(
        "a linear layer for another image size",
        "models.mine: with images [1, 8, 8]: RuntimeError: addmm: mat1 and mat2 shapes cannot be multiplied "
        "(2x256 and 4096x10) (mistaken_networks.py, line ",
        custom("without_pooling"),
    ),
    Mistake(
        "images that are too small for the architecture",
        "models.mine: with images [1, 8, 8]: RuntimeError: Given input size: (8x1x1). Calculated output size: (8x0x0). "
        "Output size is too small",
        {"architecture": "vgg16", "width": 1, "hidden": 4, "pooled": 1},
    ),
    Mistake(
        "a network for color images, and a data set of gray images",
        "models.mine: with images [1, 8, 8]: RuntimeError: Given groups=1, weight of size [4, 3, 3, 3], expected "
        "input[2, 1, 8, 8] to have 3 channels, but got 1 channels instead",
        custom("three_channels"),
    ),
    Mistake(
        "a function that ignores the number of classes",
        "models.mine: with images [1, 8, 8]: logits [2, 1000] of 2 images: expected [N, 10]",
        custom("thousand_classes"),
    ),
    Mistake(
        "a trained network that ends with a softmax",
        "models.mine.output: found logits, but the network returns the result of torch.softmax; expected softmax",
        custom("probabilities", end="softmax", weights="probabilities.pt", training={"epochs": 0}),
    ),
    Mistake(
        "a trained network that ends with a sigmoid for each class",
        "models.mine.output: found logits, but the network returns the result of torch.sigmoid; expected sigmoid and "
        "the key multi_label: true",
        custom("probabilities", end="sigmoid", weights="probabilities.pt", training={"epochs": 0}),
    ),
    Mistake(
        "a network without a head",
        "models.mine: with images [1, 8, 8]: logits [2, 10, 8, 8] of 2 images: expected [N, 10]",
        custom("feature_maps"),
    ),
    Mistake(
        "a network that returns something else in training mode",
        "models.mine: with images [1, 8, 8]: network: returned dict, expected logits [N, 10]",
        custom("in_training"),
    ),
    Mistake(
        "a misspelled `cam_layer`",
        "models.mine.cam_layer: unknown layer 'act3'; did you mean 'act2'? valid: conv2, act2, pool, …",
        custom("plain", cam_layer="act3"),
        {"gradcam": {}},
    ),
    Mistake(
        "a `cam_layer` without feature maps",
        "models.mine: gradcam: cam_layer: 'head' returns [2, 10], "
        "expected feature maps [N, K, h, w] or tokens [N, T, K]; layers with feature maps: ",
        custom("plain", cam_layer="head"),
        {"gradcam": {}},
    ),
    Mistake(
        "a `cam_layer` behind the last attention of a vision transformer",
        "models.mine: gradcam: cam_layer: of the output of 'blocks.-1', the logits depend only on tokens that are not "
        "in the grid, such as the class token; expected a layer before the last attention; layers with feature maps: "
        "blocks.0, blocks.1.norm1, blocks.1.attention.qkv; ",
        {
            **{"architecture": "vit", "image_size": 8, "patch": 2, "width": 8, "depth": 2, "heads": 2},
            "cam_layer": "blocks.-1",
        },
        {"gradcam": {}},
    ),
    Mistake(
        "a vision transformer of timm without the size of the images",
        "models.mine: with images [1, 8, 8]: AssertionError: Input height (8) doesn't match model (224)",
        {"architecture": "timm/vit_tiny_patch16_224"},
    ),
    Mistake(
        "a misspelled layer in `concept_layers`",
        "models.mine.concept_layers: unknown layer 'conv3'; did you mean 'conv2'? valid: conv1, act1, conv2, act2",
        custom("plain", concept_layers=["conv1", "conv3"]),
    ),
    Mistake(
        "Grad-CAM for a custom model without `cam_layer`",
        "studies.look.methods: gradcam needs a layer for class activation maps, which mistaken_networks:plain "
        "(models.mine) does not have; valid: models.mine.cam_layer set to one",
        custom("plain"),
        {"gradcam": {}},
    ),
    Mistake(
        "CAM for an architecture with hidden layers after its feature maps",
        "studies.look.methods: cam needs a head of average pooling and one linear layer, which mnist_cnn (models.mine) "
        "does not have; valid: ",
        {"architecture": "mnist_cnn"},
        {"cam": {}},
    ),
    Mistake(
        "LRP for a network with a layer that has no rule",
        "models.mine: lrp_epsilon: Plain: found the operation 'avg_pool3d' ('act2'), which has no rule; valid: ",
        custom("local_norm"),
        {"lrp_epsilon": {}},
    ),
    Mistake(
        "Guided Backpropagation for a network without ReLUs",
        "models.mine: guided_backprop: found no ReLU in Plain; without one the result is the gradient, so use "
        "gradient",
        custom("gelu"),
        {"guided_backprop": {}},
    ),
    Mistake(
        "DeepLIFT for a network with a layer that has no rule",
        "models.mine: shap: Plain: found the operation 'avg_pool3d' ('act2'), which has no rule; valid: ",
        custom("local_norm"),
        {"shap": {"method": "deep_shap", "background": 4}},
    ),
    Mistake(
        "SmoothGrad of Deep Taylor for a network whose layers cannot be traced",
        "models.mine: smooth: Branching: its layers cannot be traced",
        custom("branching"),
        {"smooth": {"method": "smoothgrad", "base": "deep_taylor"}},
    ),
    Mistake(
        "methods that need gradients for a network that passes none to its input",
        "models.mine: integrated_gradients: model: found no gradient of the logits, expected a network that autograd "
        "can follow",
        custom("detached"),
        {"integrated_gradients": {}},
    ),
    Mistake(
        "a network for color images only, with `leakage`, which trains it on masks of one channel",
        "studies.retrain.leakage: with images [1, 8, 8]: RuntimeError: ",
        custom("three_channels"),
        studies=RETRAINED,
    ),
    Mistake(
        "weights of another architecture",
        "models.mine.weights: resnet18.pt: not weights of resnet8: 66 unexpected (layer1.1.conv1.weight, ",
        {**RESNET8, "weights": "resnet18.pt"},
    ),
    Mistake(
        "weights for another number of classes, used as they are",
        "models.mine.weights: classes.pt: not weights of resnet8 with 10 outputs, but with 7; set classes to those of "
        "the weights, or train it",
        {**RESNET8, "weights": "classes.pt", "training": {"epochs": 0}},
    ),
    Mistake(
        "a file of weights that contains code",
        "models.mine.weights: code.pt: contains code (a pickle with STACK_GLOBAL), which is not run; valid: ",
        {**RESNET8, "weights": "code.pt"},
    ),
    Mistake(
        "a normalization for color images, and a data set of gray images",
        "models.mine.normalization: found 3 values of mean, expected 1, one per channel",
        {**RESNET8, "normalization": {"mean": [0.5] * 3, "std": [0.5] * 3}},
    ),
)


def write_weights(folder: Path) -> None:
    """Write the faulty weights files that the configurations name."""
    generator = torch.Generator()
    torch.save(resnet18(classes=10, channels=3, generator=generator).state_dict(), folder / "resnet18.pt")
    network = resnet8(classes=7, channels=1, generator=generator, width=4)
    torch.save(network.state_dict(), folder / "classes.pt")
    ending = probabilities(classes=10, channels=1, generator=generator, end="softmax")
    torch.save(ending.state_dict(), folder / "probabilities.pt")
    (folder / "code.pt").write_bytes(pickle.dumps(Counter("code")))
