"""Registry of attribution methods: one line each, read by the Snakefile, so nothing heavy is imported here."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from saliency_assay.registry import Parameter


@dataclass(frozen=True)
class Method:
    """An attribution method ``(model, images, targets, *, generator, **parameters) -> maps [N, C or 1, H, W]``."""

    name: str
    function: str
    """``package.module:name`` of the callable."""
    reference: str
    summary: str
    signed: bool
    """Whether maps with the default parameters have negative values."""
    needs: tuple[str, ...] = ()
    """Of the model: ``gradients``, ``relu`` (at least one on the way to the logits), ``cam_layer``."""
    stochastic: bool = False
    uses_model: bool = True
    parameters: Mapping[str, Parameter] = field(default_factory=dict)


_SMOOTHING = {
    "samples": Parameter(25, minimum=1),
    "noise": Parameter(0.15, minimum=0),
    "statistic": Parameter("mean", choices=("mean", "squared", "variance")),
}
_PATH = {
    "steps": Parameter(25, minimum=1),
    "rule": Parameter("trapezoid", choices=("trapezoid", "left", "right", "middle", "gauss_legendre")),
}
_UPSAMPLING = {"upsampling": Parameter("bilinear", choices=("bilinear", "bicubic", "nearest"))}

METHODS: tuple[Method, ...] = (
    Method(
        "gradient",
        "saliency_assay.methods.gradient:gradient",
        "Simonyan et al., 2013",
        "gradient of the target's logit",
        signed=True,
        needs=("gradients",),
    ),
    Method(
        "gradient_x_input",
        "saliency_assay.methods.gradient:gradient_x_input",
        "Shrikumar et al., 2016",
        "gradient ⊙ input",
        signed=True,
        needs=("gradients",),
    ),
    Method(
        "guided_backprop",
        "saliency_assay.methods.backprop:guided_backprop",
        "Springenberg et al., 2014",
        "gradient without its negative part at every ReLU",
        signed=True,
        needs=("gradients", "relu"),
    ),
    Method(
        "gradcam",
        "saliency_assay.methods.cam:gradcam",
        "Selvaraju et al., 2017",
        "last block's activations weighted by their mean gradients",
        signed=False,
        needs=("gradients", "cam_layer"),
        parameters={"relu": Parameter(True), **_UPSAMPLING},
    ),
    Method(
        "guided_gradcam",
        "saliency_assay.methods.guided_cam:guided_gradcam",
        "Selvaraju et al., 2017",
        "guided backpropagation ⊙ GradCAM",
        signed=True,
        needs=("gradients", "relu", "cam_layer"),
        parameters=_UPSAMPLING,
    ),
    Method(
        "smoothgrad",
        "saliency_assay.methods.smoothing:smoothgrad",
        "Smilkov et al., 2017",
        "gradient averaged over noisy copies of the image",
        signed=True,
        needs=("gradients",),
        stochastic=True,
        parameters=_SMOOTHING,
    ),
    Method(
        "integrated_gradients",
        "saliency_assay.methods.path:integrated_gradients",
        "Sundararajan et al., 2017",
        "gradient integrated from a black image to the image",
        signed=True,
        needs=("gradients",),
        parameters=_PATH,
    ),
    Method(
        "integrated_gradients_smoothgrad",
        "saliency_assay.methods.smoothed_path:integrated_gradients_smoothgrad",
        "Smilkov et al., 2017",
        "IG-SG: integrated gradients averaged over noisy copies of the image",
        signed=True,
        needs=("gradients",),
        stochastic=True,
        parameters={**_PATH, **_SMOOTHING},
    ),
    Method(
        "random",
        "saliency_assay.methods.controls:random",
        "control",
        "independent uniform values",
        signed=False,
        stochastic=True,
        uses_model=False,
    ),
    Method(
        "edge",
        "saliency_assay.methods.controls:edge",
        "control; Adebayo et al., 2018",
        "Sobel magnitude of the image",
        signed=False,
        uses_model=False,
    ),
)
