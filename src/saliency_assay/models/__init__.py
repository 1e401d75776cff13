"""The architectures the configuration can name.

To add one, write its builder in a module of this package and one line here. A builder is
``builder(*, classes, channels, generator, **parameters) -> torch.nn.Module``: it takes normalised images
``[N, channels, H, W]`` to logits ``[N, classes]``, draws every weight from ``generator`` and gives each ReLU a
module of its own that works out of place. ``models/classifier.py`` wraps what it returns.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from saliency_assay.registry import Parameter


@dataclass(frozen=True)
class Architecture:
    """One architecture as the configuration sees it.

    ``cam_layer`` is the layer whose channels CAM and GradCAM weigh; ``concept_layers`` are the layers at which
    concepts are tested, first to last. Both are paths inside the network, as ``get_submodule`` takes them.
    ``head_is_pool_linear`` tells that logits are one linear layer over the spatial mean of ``cam_layer``, which
    CAM needs.
    """

    name: str
    function: str
    reference: str
    summary: str
    cam_layer: str
    concept_layers: tuple[str, ...]
    head_is_pool_linear: bool
    parameters: Mapping[str, Parameter] = field(default_factory=dict)


_HE = "He et al. 2016, Deep Residual Learning for Image Recognition"
_FOUR_BLOCKS = ("layer1", "layer2", "layer3", "layer4", "fc")

ARCHITECTURES = (
    Architecture(
        name="resnet8",
        function="saliency_assay.models.resnet:resnet8",
        reference=f"{_HE}, section 4.2 with n = 1",
        summary="three stages of one basic block, for images of 8 to 64 pixels",
        cam_layer="layer3",
        concept_layers=("layer1", "layer2", "layer3", "fc"),
        head_is_pool_linear=True,
        parameters={
            "width": Parameter(16, minimum=1, maximum=512),
            "stem_stride": Parameter(1, minimum=1, maximum=4),
        },
    ),
    Architecture(
        name="resnet18",
        function="saliency_assay.models.resnet:resnet18",
        reference=f"{_HE}, table 1",
        summary="torchvision's layout and state-dict names, for images of 64 pixels and more",
        cam_layer="layer4",
        concept_layers=_FOUR_BLOCKS,
        head_is_pool_linear=True,
    ),
    Architecture(
        name="resnet50",
        function="saliency_assay.models.resnet:resnet50",
        reference=f"{_HE}, table 1; stride on the 3×3 convolution as in torchvision",
        summary="torchvision's layout and state-dict names, for images of 64 pixels and more",
        cam_layer="layer4",
        concept_layers=_FOUR_BLOCKS,
        head_is_pool_linear=True,
    ),
)
