"""Registry of attribution methods; the Snakefile reads it, so this module must not import torch.

To add a method, write its function in a module of this package and its record in ``METHODS``.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from saliency_assay.registry.callable import CallableRegistry
from saliency_assay.registry.controls import EQUAL, LOWER_CONTROL, UPPER_CONTROL
from saliency_assay.registry.properties import FAITHFULNESS, GROUND_TRUTH
from saliency_assay.registry.records import Parameter
from saliency_assay.registry.signatures import parameters_of

sys.modules[__name__].__class__ = CallableRegistry


@dataclass(frozen=True)
class Method:
    """An attribution method ``(model, images, targets, *, generator, **parameters) -> maps [N, C or 1, H, W]``."""

    name: str
    label: str
    """Name in figures, tables and pages, as papers write it."""
    function: str
    """``package.module:name`` of the callable."""
    reference: str
    summary: str
    signed: bool = True
    """True if maps with the default parameters have negative values."""
    passes: float | str | None = 1
    """Passes through the model per image: a number, ``package.module:name`` of a function (``methods.cost``), or None
    if it depends on the layers of the model, so that it is known only from a run."""
    needs: tuple[str, ...] = ()
    """Requirements on the model: ``gradients``, ``relu`` (at least one between pixels and logits), ``layers`` (a
    forward that can be traced layer by layer), ``attention`` (every attention is over all tokens of an image),
    ``cam_layer``, ``pool_linear_head`` (logits are one linear layer over the spatial mean of the CAM layer),
    ``exact_importance`` (that of the pixels is known, see ``models.designed``)."""
    checked_as: str = ""
    """Method with a number of ``passes`` that is tried on models in its place before any training; empty for a method
    that has such a number itself, or that needs nothing but predictions."""
    takes: tuple[str, ...] = ()
    """Arguments in addition to its parameters: ``base``, the method to smooth; ``background``, training images;
    ``mask``, the object's pixels, bool ``[N, H, W]``."""
    stochastic: bool = False
    noise_group: str = ""
    """Name of the method whose random samples this one reuses for the same seed; empty for independent samples."""
    uses_model: bool = True
    check: str = ""
    """``package.module:name`` of a function that returns why parameters are inconsistent; it must not import torch."""
    one_channel: bool = False
    """True if maps have one channel; by default they have as many as the images."""
    control: str = ""
    """``LOWER_CONTROL``, ``UPPER_CONTROL``, or empty."""
    best_for: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)
    """For an upper control, the metrics, or the properties (``registry.properties``) of metrics, under which no map has
    a better score (under a noisy baseline: in expectation) or, for ``truth`` and faithfulness, none should have: for
    each the values that parameters of method and metric must have, or ``EQUAL``."""

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """Return the keyword-only parameters of its function, by name."""
        return parameters_of(
            self.function,
            apart=self.takes,
        )

    @property
    def is_baseline(self) -> bool:
        """True if it does not use the model and is no upper control."""
        return not self.uses_model and self.control != UPPER_CONTROL

    @property
    def unsmoothable(self) -> str:
        """Return the reason why no smoothing method can take it as its base; empty if one can."""
        if "background" in self.takes:
            return "takes a background"
        return "" if self.uses_model and not self.stochastic else "is stochastic or does not use the model"

    def is_best(
        self,
        parameters: Mapping[str, Any],
        metric: str,
        measures: str,
        metric_parameters: Mapping[str, Any],
    ) -> bool:
        """Return True if no map has a better score than that of this upper control.

        Args:
            parameters: all parameters of the method.
            metric: registered name of the metric; empty for a custom metric.
            measures: property that the metric measures.
            metric_parameters: all parameters of the metric.
        """
        required = self.best_for.get(metric, self.best_for.get(measures))
        if self.control != UPPER_CONTROL or required is None:
            return False
        both = (parameters, metric_parameters)
        return all(
            len({values[key] for values in both if key in values} | ({value} - {EQUAL})) == 1
            for key, value in required.items()
        )


_ATTENTION = ("gradients", "layers", "attention")

METHODS: tuple[Method, ...] = (
    Method(
        "gradient",
        "Gradient",
        "saliency_assay.methods.gradient:gradient",
        "Simonyan et al., 2013",
        "gradient of the logit with respect to the pixels",
        needs=("gradients",),
    ),
    Method(
        "sensitivity",
        "Sensitivity",
        "saliency_assay.methods.gradient:sensitivity",
        "Simonyan et al., 2013",
        "largest absolute gradient over the channels",
        signed=False,
        one_channel=True,
        needs=("gradients",),
    ),
    Method(
        "gradient_x_input",
        "Gradient × Input",
        "saliency_assay.methods.gradient:gradient_x_input",
        "Shrikumar et al., 2016",
        "gradient ⊙ (image − reference image)",
        needs=("gradients",),
    ),
    Method(
        "guided_backprop",
        "Guided Backpropagation",
        "saliency_assay.methods.guided:guided_backprop",
        "Springenberg et al., 2014",
        "gradient, with negative gradients set to 0 at each ReLU",
        needs=("gradients", "relu"),
    ),
    Method(
        "cam",
        "CAM",
        "saliency_assay.methods.cam:cam",
        "Zhou et al., 2016",
        "sum of the CAM layer's channels, weighted by the last linear layer",
        one_channel=True,
        needs=("cam_layer", "pool_linear_head"),
    ),
    Method(
        "gradcam",
        "Grad-CAM",
        "saliency_assay.methods.cam:gradcam",
        "Selvaraju et al., 2017",
        "sum of the channels, weighted by their mean gradients",
        signed=False,
        one_channel=True,
        needs=("gradients", "cam_layer"),
    ),
    Method(
        "gradcam_plus_plus",
        "Grad-CAM++",
        "saliency_assay.methods.cam:gradcam_plus_plus",
        "Chattopadhay et al., 2018",
        "sum of the channels, weighted by their positive gradients",
        signed=False,
        one_channel=True,
        needs=("gradients", "cam_layer"),
    ),
    Method(
        "layercam",
        "LayerCAM",
        "saliency_assay.methods.cam:layercam",
        "Jiang et al., 2021",
        "sum of the channels ⊙ their positive gradients",
        signed=False,
        one_channel=True,
        needs=("gradients", "cam_layer"),
    ),
    Method(
        "hirescam",
        "HiResCAM",
        "saliency_assay.methods.cam:hirescam",
        "Draelos and Carin, 2020",
        "sum of the channels ⊙ their gradients",
        signed=False,
        one_channel=True,
        needs=("gradients", "cam_layer"),
    ),
    Method(
        "xgradcam",
        "XGrad-CAM",
        "saliency_assay.methods.cam:xgradcam",
        "Fu et al., 2020",
        "as Grad-CAM, with mean gradients weighted by the activations",
        signed=False,
        one_channel=True,
        needs=("gradients", "cam_layer"),
    ),
    Method(
        "eigencam",
        "Eigen-CAM",
        "saliency_assay.methods.cam:eigencam",
        "Muhammad and Yeasin, 2020",
        "projection of the channels on their first singular vector, for any class",
        signed=False,
        one_channel=True,
        needs=("cam_layer",),
    ),
    Method(
        "scorecam",
        "Score-CAM",
        "saliency_assay.methods.cam:scorecam",
        "Wang et al., 2020",
        "sum of the channels, weighted by the logits of images that they mask",
        signed=False,
        one_channel=True,
        passes=None,  # one for each channel of the layer
        needs=("cam_layer",),
        checked_as="gradcam",
    ),
    Method(
        "guided_gradcam",
        "Guided Grad-CAM",
        "saliency_assay.methods.guided:guided_gradcam",
        "Selvaraju et al., 2017",
        "guided backpropagation ⊙ Grad-CAM",
        passes=2,
        needs=("gradients", "relu", "cam_layer"),
    ),
    Method(
        "smoothgrad",
        "SmoothGrad",
        "saliency_assay.methods.smoothing:smoothgrad",
        "Smilkov et al., 2017",
        "mean of a method's maps over noisy copies of the image",
        passes="saliency_assay.methods.cost:samples_of_base",
        needs=("gradients",),
        checked_as="gradient",
        takes=("base",),
        stochastic=True,
    ),
    Method(
        "smoothgrad_squared",
        "SmoothGrad²",
        "saliency_assay.methods.smoothing:smoothgrad_squared",
        "Hooker et al., 2019",
        "mean of a method's squared maps over noisy copies of the image",
        signed=False,
        passes="saliency_assay.methods.cost:samples_of_base",
        needs=("gradients",),
        checked_as="gradient",
        takes=("base",),
        stochastic=True,
        noise_group="smoothgrad",
    ),
    Method(
        "vargrad",
        "VarGrad",
        "saliency_assay.methods.smoothing:vargrad",
        "Adebayo et al., 2018",
        "variance of a method's maps over noisy copies of the image",
        signed=False,
        passes="saliency_assay.methods.cost:samples_of_base",
        needs=("gradients",),
        checked_as="gradient",
        takes=("base",),
        stochastic=True,
        noise_group="smoothgrad",
    ),
    Method(
        "integrated_gradients",
        "Integrated Gradients",
        "saliency_assay.methods.path:integrated_gradients",
        "Sundararajan et al., 2017",
        "(image − reference image) ⊙ mean gradient on the straight path between them",
        passes="saliency_assay.methods.cost:steps",
        needs=("gradients",),
        checked_as="gradient",
        check="saliency_assay.methods.checks:steps",
    ),
    Method(
        "integrated_gradients_smoothgrad",
        "Integrated Gradients (SmoothGrad)",
        "saliency_assay.methods.path:integrated_gradients_smoothgrad",
        "Smilkov et al., 2017",
        "mean of Integrated Gradients over noisy copies of the image",
        passes="saliency_assay.methods.cost:steps_of_samples",
        needs=("gradients",),
        checked_as="gradient",
        stochastic=True,
        check="saliency_assay.methods.checks:steps",
    ),
    Method(
        "expected_gradients",
        "Expected Gradients",
        "saliency_assay.methods.expected_gradients:expected_gradients",
        "Erion et al., 2021",
        "Integrated Gradients, averaged over training images as reference images",
        passes="saliency_assay.methods.cost:samples",
        needs=("gradients",),
        checked_as="gradient",
        takes=("background",),
        stochastic=True,
    ),
    Method(
        "gradient_shap",
        "GradientSHAP",
        "saliency_assay.methods.expected_gradients:gradient_shap",
        "Lundberg and Lee, 2017",
        "Expected Gradients of noisy copies of the image",
        passes="saliency_assay.methods.cost:samples",
        needs=("gradients",),
        checked_as="gradient",
        takes=("background",),
        stochastic=True,
        noise_group="expected_gradients",
    ),
    Method(
        "guided_ig",
        "Guided IG",
        "saliency_assay.methods.guided_ig:guided_ig",
        "Kapishnikov et al., 2021",
        "Integrated Gradients on a path that changes pixels with small gradients first",
        passes="saliency_assay.methods.cost:steps",
        needs=("gradients",),
        checked_as="gradient",
    ),
    Method(
        "blur_ig",
        "Blur IG",
        "saliency_assay.methods.blur_ig:blur_ig",
        "Xu et al., 2020",
        "Integrated Gradients on the path from a blurred image",
        passes="saliency_assay.methods.cost:steps",
        needs=("gradients",),
        checked_as="gradient",
    ),
    Method(
        "xrai",
        "XRAI",
        "saliency_assay.methods.xrai:xrai",
        "Kapishnikov et al., 2019",
        "Integrated Gradients, averaged over image segments",
        one_channel=True,
        passes="saliency_assay.methods.cost:steps_from_two_baselines",
        needs=("gradients",),
        checked_as="gradient",
    ),
    Method(
        "occlusion",
        "Occlusion",
        "saliency_assay.methods.occlusion:occlusion",
        "Zeiler and Fergus, 2014",
        "decrease of the logit when a sliding window covers part of the image",
        one_channel=True,
        passes="saliency_assay.methods.cost:windows",
        check="saliency_assay.methods.checks:window",
    ),
    Method(
        "lrp_alpha_beta",
        "LRP-αβ",
        "saliency_assay.methods.relevance:lrp_alpha_beta",
        "Bach et al., 2015; Montavon et al., 2018",
        "relevance propagation with positive contributions weighted by α and negative ones by β",
        needs=("gradients", "relu", "layers"),
        check="saliency_assay.methods.checks:alpha_beta",
    ),
    Method(
        "lrp_epsilon",
        "LRP-ε",
        "saliency_assay.methods.relevance:lrp_epsilon",
        "Bach et al., 2015",
        "relevance propagation in proportion to the contributions, stabilized by ε",
        needs=("gradients", "layers"),
    ),
    Method(
        "deep_taylor",
        "Deep Taylor Decomposition",
        "saliency_assay.methods.relevance:deep_taylor",
        "Montavon et al., 2017",
        "relevance propagation in proportion to the positive contributions",
        needs=("gradients", "relu", "layers"),
    ),
    Method(
        "fullgrad",
        "FullGrad",
        "saliency_assay.methods.fullgrad:fullgrad",
        "Srinivas and Fleuret, 2019",
        "sum of gradient ⊙ image and gradient ⊙ bias of every layer, rescaled",
        signed=False,
        one_channel=True,
        needs=("gradients", "relu", "layers"),
    ),
    Method(
        "deeplift",
        "DeepLIFT",
        "saliency_assay.methods.deeplift:deeplift",
        "Shrikumar et al., 2017",
        "contribution to the difference of the logit from that of a reference image",
        needs=("gradients", "layers"),
    ),
    Method(
        "deep_shap",
        "Deep SHAP",
        "saliency_assay.methods.deeplift:deep_shap",
        "Lundberg and Lee, 2017",
        "DeepLIFT, averaged over training images as reference images",
        passes="saliency_assay.methods.cost:background_images",
        needs=("gradients", "layers"),
        checked_as="deeplift",
        takes=("background",),
    ),
    Method(
        "raw_attention",
        "Raw attention",
        "saliency_assay.methods.attention:raw_attention",
        "Abnar and Zuidema, 2020",
        "mean attention weights of the last layer",
        signed=False,
        one_channel=True,
        needs=_ATTENTION,
    ),
    Method(
        "attention_rollout",
        "Attention rollout",
        "saliency_assay.methods.attention:attention_rollout",
        "Abnar and Zuidema, 2020",
        "product of the mean attention weights of all layers",
        signed=False,
        one_channel=True,
        needs=_ATTENTION,
    ),
    Method(
        "gradient_weighted_attention",
        "Gradient-weighted attention",
        "saliency_assay.methods.attention:gradient_weighted_attention",
        "Chefer et al., ICCV 2021",
        "attention rollout of the positive part of attention weights ⊙ their gradients",
        signed=False,
        one_channel=True,
        needs=_ATTENTION,
    ),
    Method(
        "transformer_attribution",
        "Transformer attribution",
        "saliency_assay.methods.attention:transformer_attribution",
        "Chefer et al., CVPR 2021",
        "attention rollout of the positive part of the attention's relevance ⊙ gradients",
        signed=False,
        one_channel=True,
        passes=3,  # the gradient, and relevance by the rule z⁺, which needs a second product in each layer
        needs=_ATTENTION,
    ),
    Method(
        "legrad",
        "LeGrad",
        "saliency_assay.methods.legrad:legrad",
        "Bousselham et al., 2025",
        "sum over the layers of positive gradients for attention weights",
        signed=False,
        one_channel=True,
        needs=_ATTENTION,
    ),
    Method(
        "libragrad",
        "LibraGrad (Input × Grad)",
        "saliency_assay.methods.libragrad:libragrad",
        "Mehri et al., 2025",
        "embedded patch · gradient, with attention weights and gates as constants",
        one_channel=True,
        needs=_ATTENTION,
    ),
    Method(
        "attnlrp",
        "AttnLRP",
        "saliency_assay.methods.relevance:attnlrp",
        "Achtibat et al., 2024",
        "relevance propagation, also through attention weights",
        passes=2,  # the rule γ needs a second product in each layer
        needs=("gradients", "layers"),
    ),
    Method(
        "kernel_shap",
        "Kernel SHAP",
        "saliency_assay.methods.kernel_shap:kernel_shap",
        "Lundberg and Lee, 2017",
        "Shapley values of image segments, estimated by weighted least squares",
        one_channel=True,
        passes="saliency_assay.methods.cost:coalitions",
        stochastic=True,
        check="saliency_assay.methods.checks:coalitions",
    ),
    Method(
        "lime",
        "LIME",
        "saliency_assay.methods.lime:lime",
        "Ribeiro et al., 2016",
        "coefficients of a linear model, fitted to images with hidden segments",
        one_channel=True,
        passes="saliency_assay.methods.cost:samples",
        stochastic=True,
    ),
    Method(
        "rise",
        "RISE",
        "saliency_assay.methods.rise:rise",
        "Petsiuk et al., 2018",
        "mean of random masks, weighted by the probability of the masked images",
        signed=False,
        one_channel=True,
        passes="saliency_assay.methods.cost:samples",
        stochastic=True,
    ),
    Method(
        "extremal_perturbation",
        "Extremal perturbation",
        "saliency_assay.methods.extremal:extremal_perturbation",
        "Fong et al., 2019",
        "smooth mask of a given area that keeps, or removes, most of the logit",
        signed=False,
        one_channel=True,
        passes="saliency_assay.methods.cost:steps",
        needs=("gradients",),
        checked_as="gradient",
        check="saliency_assay.methods.checks:cell_and_sigma",
    ),
    Method(
        "optimal_square",
        "Optimal (squares)",
        "saliency_assay.methods.optimal:optimal_square",
        "Yeh et al., 2019",
        "map with the lowest infidelity when squares are removed",
        one_channel=True,
        passes="saliency_assay.methods.cost:squares",
        check="saliency_assay.methods.checks:sides",
        noise_group="square",  # its name in version 0.1, so that samples stay the same
        control=UPPER_CONTROL,
        best_for={
            "infidelity_square": {
                "smallest": EQUAL,
                "largest": EQUAL,
                "squares": 0,  # samples of squares differ
                "ridge": 0,
                "explanation": "global",
            }
        },
    ),
    Method(
        "optimal_halves",
        "Optimal (halves)",
        "saliency_assay.methods.optimal:optimal_halves",
        "Yeh et al., 2019",
        "map with the lowest infidelity when an image half is removed",
        one_channel=True,
        passes=3,
        control=UPPER_CONTROL,
        best_for={"infidelity_halves": {"explanation": "global"}},
    ),
    Method(
        "optimal_noisy_baseline",
        "Optimal (noisy baseline)",
        "saliency_assay.methods.optimal:optimal_noisy_baseline",
        "Yeh et al., 2019",
        "map with the lowest infidelity when noise replaces the image",
        passes="saliency_assay.methods.cost:shared_samples",
        stochastic=True,
        noise_group="noisy_baseline",  # as for "optimal_square"
        control=UPPER_CONTROL,
        best_for={"infidelity_noisy_baseline": {"noise": EQUAL, "protocol": EQUAL}},
    ),
    Method(
        "truth",
        "Truth",
        "saliency_assay.methods.truth:truth",
        "this project; Shapley, 1953",
        "exact Shapley values of the pixels",
        one_channel=True,
        passes=0,
        needs=("exact_importance",),
        control=UPPER_CONTROL,
        best_for={GROUND_TRUTH: {}, FAITHFULNESS: {}},
    ),
    Method(
        "random",
        "Random",
        "saliency_assay.methods.model_free:random",
        "baseline",
        "a uniform random value for each pixel",
        signed=False,
        one_channel=True,
        passes=0,
        stochastic=True,
        uses_model=False,
        control=LOWER_CONTROL,
    ),
    Method(
        "edge",
        "Edge detection",
        "saliency_assay.methods.model_free:edge",
        "baseline; Adebayo et al., 2018",
        "Sobel gradient magnitude of the image",
        signed=False,
        passes=0,
        uses_model=False,
    ),
    Method(
        "constant",
        "Constant",
        "saliency_assay.methods.model_free:constant",
        "baseline; Yeh et al., 2019",
        "1 for every pixel",
        signed=False,
        one_channel=True,
        passes=0,
        uses_model=False,
    ),
    Method(
        "object_mask",
        "Object mask",
        "saliency_assay.methods.model_free:object_mask",
        "control",
        "1 on the object, 0 elsewhere",
        signed=False,
        one_channel=True,
        passes=0,
        takes=("mask",),
        uses_model=False,
        control=UPPER_CONTROL,
        best_for={
            metric: {}
            for metric in (
                *("block_attribution", "mask_attribution", "mask_overlap"),
                *("mask_ranking", "pointing_game"),
            )
        },
    ),
)
