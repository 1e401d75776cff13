"""Registry of architectures.

To add an architecture, write its builder in a module of this package and its record here. A builder is a function
``builder(*, classes, channels, generator, **parameters) -> torch.nn.Module``, which samples all weights from
``generator``. The network maps normalized images ``[N, channels, H, W]`` to logits ``[N, classes]`` and has a separate
module, not in place, for each ReLU. ``models/classifier.py`` wraps the network.
"""

from dataclasses import dataclass
from functools import cached_property

from saliency_assay.registry.records import Parameter
from saliency_assay.registry.signatures import parameters_of


@dataclass(frozen=True)
class Architecture:
    """Record of an architecture.

    Attributes:
        name: value of ``architecture`` in the configuration.
        label: name in figures, tables and pages.
        function: path of the builder, ``package.module:name``.
        reference: paper that describes the architecture.
        summary: one line for the documentation.
        cam_layer: layer whose channels CAM and Grad-CAM weight; a path inside the network, as for ``Classifier.layer``.
        concept_layers: paths of the layers for TCAV, from first to last.
        head_is_pool_linear: True if the logits are one linear layer over the spatial mean of ``cam_layer``, as CAM
            requires.
        has_relu: False for networks of other activations, through which some methods have no rule.
        has_attention: True if every attention is over all tokens of an image, as in a vision transformer.
        is_designed: True if the weights are set by hand and not trained, so that the exact importance of every pixel is
            known (``models.designed``); the builder samples nothing.
    """

    name: str
    label: str
    function: str
    reference: str
    summary: str
    cam_layer: str
    concept_layers: tuple[str, ...]
    head_is_pool_linear: bool = False
    has_relu: bool = True
    has_attention: bool = False
    is_designed: bool = False

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """Keyword-only parameters of the builder, by name."""
        return parameters_of(
            self.function,
            apart=("classes", "channels"),
        )


_HE = "He et al. 2016"
_FOUR_BLOCKS = ("layer1", "layer2", "layer3", "layer4", "fc")
_DESIGNED = "this project; Zhang et al. 2023, AttributionLab, for the idea"
_VGG = "Simonyan & Zisserman 2014, configuration D"

ARCHITECTURES = (
    Architecture(
        name="resnet8",
        label="ResNet-8",
        function="saliency_assay.models.resnet:resnet8",
        reference=f"{_HE}, section 4.2 with n = 1",
        summary="three stages with one basic block each, for images of 8 to 64 pixels",
        cam_layer="layer3",
        concept_layers=("layer1", "layer2", "layer3", "fc"),
        head_is_pool_linear=True,
    ),
    Architecture(
        name="resnet20",
        label="ResNet-20",
        function="saliency_assay.models.resnet:resnet20",
        reference=f"{_HE}, section 4.2 with n = 3, shortcuts of option A",
        summary="three stages of three basic blocks, for images of 8 to 64 pixels",
        cam_layer="layer3",
        concept_layers=("layer1", "layer2", "layer3", "linear"),
        head_is_pool_linear=True,
    ),
    Architecture(
        name="resnet18",
        label="ResNet-18",
        function="saliency_assay.models.resnet:resnet18",
        reference=f"{_HE}, table 1",
        summary="torchvision's layout and state-dict names, for images of 64 pixels and more",
        cam_layer="layer4",
        concept_layers=_FOUR_BLOCKS,
        head_is_pool_linear=True,
    ),
    Architecture(
        name="resnet50",
        label="ResNet-50",
        function="saliency_assay.models.resnet:resnet50",
        reference=f"{_HE}, table 1; stride on the 3×3 convolution",
        summary="torchvision's layout and state-dict names, for images of 64 pixels and more",
        cam_layer="layer4",
        concept_layers=_FOUR_BLOCKS,
        head_is_pool_linear=True,
    ),
    Architecture(
        name="vgg16",
        label="VGG-16",
        function="saliency_assay.models.cnn:vgg16",
        reference=_VGG,
        summary="torchvision's layout and state-dict names, for images of 32 pixels and more",
        cam_layer="features.29",
        concept_layers=(*(f"features.{pool}" for pool in (4, 9, 16, 23, 30)), "classifier.6"),
    ),
    Architecture(
        name="vgg16_bn",
        label="VGG-16 with BatchNorm",
        function="saliency_assay.models.cnn:vgg16_bn",
        reference=f"{_VGG}; Ioffe & Szegedy 2015",
        summary="vgg16 with BatchNorm after each convolution",
        cam_layer="features.42",
        concept_layers=(*(f"features.{pool}" for pool in (6, 13, 23, 33, 43)), "classifier.6"),
    ),
    Architecture(
        name="reliability_cnn",
        label="CNN of Tomsett et al.",
        function="saliency_assay.models.cnn:reliability_cnn",
        reference="Tomsett et al. 2020",
        summary="three blocks of two convolutions without biases, for images of 32 pixels",
        cam_layer="block3.relu2",
        concept_layers=("block1", "block2", "block3", "fc"),
    ),
    Architecture(
        name="mnist_cnn",
        label="CNN of Yeh et al.",
        function="saliency_assay.models.cnn:mnist_cnn",
        reference="Yeh et al. 2019, released code",
        summary="two 5×5 convolutions and a hidden layer, for images of 28 pixels",
        cam_layer="relu2",
        concept_layers=("pool1", "pool2", "relu3", "fc2"),
    ),
    Architecture(
        name="lenet",
        label="LeNet",
        function="saliency_assay.models.cnn:lenet",
        reference="LeCun et al. 1998",
        summary="LeNet-5 with ReLU and max pooling, for images of 28 pixels",
        cam_layer="relu2",
        concept_layers=("pool1", "pool2", "relu3", "fc3"),
    ),
    Architecture(
        name="vit",
        label="Vision transformer",
        function="saliency_assay.models.vit:vit",
        reference="Dosovitskiy et al. 2021",
        summary="a small vision transformer, for images of `image_size` pixels",
        # Behind the attention of the last block, the class token no longer depends on the other tokens.
        cam_layer="blocks.-1.norm1",
        concept_layers=("blocks.0", "blocks.-1", "head"),
        has_relu=False,
        has_attention=True,
    ),
    Architecture(
        name="convnext",
        label="ConvNeXt",
        function="saliency_assay.models.convnext:convnext",
        reference="Liu et al. 2022",
        summary="a small ConvNeXt of three stages, for images of 16 to 64 pixels",
        cam_layer="stages",
        concept_layers=("stages.0", "stages.1", "stages.2", "head"),
        has_relu=False,
    ),
    Architecture(
        name="designed/additive",
        label="Designed: additive",
        function="saliency_assay.models.designed:additive",
        reference=_DESIGNED,
        summary="weights set by hand: red adds to the evidence, green and blue subtract half, gray adds 0",
        cam_layer="1",
        concept_layers=("1", "4"),
        head_is_pool_linear=True,
        is_designed=True,
    ),
    Architecture(
        name="designed/counting",
        label="Designed: counting",
        function="saliency_assay.models.designed:counting",
        reference=_DESIGNED,
        summary="weights set by hand: the number of red less that of blue pixels; green and gray are ignored",
        cam_layer="1",
        concept_layers=("1", "4"),
        head_is_pool_linear=True,
        is_designed=True,
    ),
    Architecture(
        name="designed/saturated",
        label="Designed: saturated",
        function="saliency_assay.models.designed:saturated",
        reference=_DESIGNED,
        summary="weights set by hand: one red pixel is as good as many, and one blue pixel counts half against it",
        cam_layer="1",
        concept_layers=("1", "3", "5"),
        is_designed=True,
    ),
    Architecture(
        name="designed/conjunction",
        label="Designed: conjunction",
        function="saliency_assay.models.designed:conjunction",
        reference=_DESIGNED,
        summary="weights set by hand: red and green together, but neither alone, less half of blue",
        cam_layer="1",
        concept_layers=("1", "5", "6"),
        is_designed=True,
    ),
    Architecture(
        name="designed/half",
        label="Designed: half",
        function="saliency_assay.models.designed:half",
        reference=_DESIGNED,
        summary="weights set by hand: as `designed/counting`, but only in the left half of the image",
        cam_layer="1",
        concept_layers=("1", "4"),
        is_designed=True,
    ),
)
