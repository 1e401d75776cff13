"""Speed, agreement and memory beside other libraries and bare passes, on the same model, images and maps.

    build/peers/bin/python benchmarks/peers.py --threads 1
    build/peers/bin/python benchmarks/peers.py --threads 1 --only methods --names xrai lrp_epsilon --networks resnet18

``docs/comparison.md`` has the commands that install the libraries into ``build/peers``.

Each row runs the same work with this project and with a peer, in turns, and prints the median times, the median and
range of the ratios of the rounds (above 1, this project is faster), and the agreement of the results: their correlation
and their largest difference relative to the peer's largest value. Tests compare the methods of captum in
float64, where they are equal; in float32, maps of deep networks differ where the input of a ReLU is near 0.
Metrics run on gray images of 28 pixels and a small ResNet, since Quantus treats the channels of a pixel as features;
methods run on a ResNet-18 and a VGG16 (``--networks``) at 224 pixels, AttnLRP on a ViT-S/16. XRAI, extremal
perturbations and Score-CAM explain one image, Score-CAM on a layer of 64 channels. Rows of a peer that is not installed
are left out, with a line that says how to install it; of a peer that fails, the error is printed.

The peer "bare passes" is as many forward passes of the same batch, with backward passes to the pixels for all methods
but Score-CAM, without decoding, rules, checks or maps.

With ``--only memory``, the peak memory of the process is compared for growing numbers of images.
"""

import argparse
import json
import platform
import re
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import common  # puts the source folder first on the import path
import numpy as np
import torch
from torch import Tensor, nn

import saliency_assay
from saliency_assay.methods import METHODS
from saliency_assay.methods.canonical import normalized
from saliency_assay.methods.differentiate import input_gradient, target_logits
from saliency_assay.methods.gradient import gradient
from saliency_assay.methods.segments import segment
from saliency_assay.models import ARCHITECTURES
from saliency_assay.models.classifier import Blueprint, Classifier, build
from saliency_assay.models.inference import exact_float32, to_pixels
from saliency_assay.registry.records import record_of

CLASSES, SEED = 10, 0
SAMPLES, COALITIONS, WINDOW, STEPS = 10, 40, 56, 5
LAYERS_OF_64 = {"resnet18": "layer1", "vgg16": "features.4", "resnet50": "conv1"}
PEERS = {
    "Quantus": ("quantus", "quantus==0.6.0"),
    "captum": ("captum", "captum==0.9.0"),
    "pytorch-grad-cam": ("pytorch_grad_cam", "grad-cam==1.5.7"),
    "Xplique": ("xplique", "xplique==2.0.2 tensorflow-cpu==2.21.0"),
    "zennit": ("torchvision", "zennit==0.5.1 torchvision"),
    "lxt": ("lxt", "lxt==2.1"),
    "PAIR saliency": ("saliency", "saliency==0.2.1"),
    "TorchRay": ("torchray", "--no-deps torchray==1.0.0.2"),
}
"""The module of each peer, and the packages that install it."""
BARE = "bare passes"
COUNTS = (500, 4000)
Arrays = np.ndarray


@dataclass(frozen=True)
class Comparison:
    """The same work, with this project and with a peer; ``why`` says why results are not equal."""

    name: str
    peer: str
    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    why: str = ""
    convert: Callable[[Any], Any] = lambda result: result
    """Our result in the form of the peer's."""
    network: str = ""


def classifier(architecture: str, channels: int, **parameters: Any) -> Classifier:
    record = record_of(ARCHITECTURES, architecture, "architecture")
    known = {name: value for name, value in parameters.items() if name in record.parameters}
    blueprint = Blueprint(record.name, record.function, known, record.cam_layer, record.concept_layers)
    generator = torch.Generator().manual_seed(SEED)
    model = build(
        blueprint, classes=CLASSES, mean=[0.5] * channels, std=[0.25] * channels, generator=generator
    )
    return model.eval().requires_grad_(False)


def inputs(count: int, channels: int, size: int) -> tuple[Tensor, Tensor]:
    """Return smooth images, whose neighboring pixels are alike, and targets."""
    generator = torch.Generator().manual_seed(SEED)
    coarse = torch.rand(count, channels, max(2, size // 8), max(2, size // 8), generator=generator)
    images = nn.functional.interpolate(coarse, size=(size, size), mode="bilinear")
    return images.contiguous(), torch.arange(count) % CLASSES


# --------------------------------------------------------------------------------------------- metrics


def metrics(options: argparse.Namespace) -> Iterator[Comparison]:
    """Yield the metrics, with Quantus and captum."""
    model = classifier(options.architecture, 1, width=16)
    images, targets = inputs(options.images, 1, 28)
    maps = saliency_assay.attribute("gradient", model, images, targets)
    arrays = {"x_batch": images.numpy(), "y_batch": targets.numpy(), "a_batch": maps.numpy()}
    score = partial(
        saliency_assay.score, model=model, images=images, targets=targets, maps=maps, batch_size=64
    )

    def quantus(name: str, explain: bool = False, **settings: Any) -> Any:
        import quantus as peer

        settings = {
            "normalise": False,  # codespell:ignore
            "disable_warnings": True,
            "return_aggregate": False,
            **settings,
        }
        metric = getattr(peer, name)(**settings)
        call = {"explain_func": explained} if explain else {}
        copies = {
            key: values.copy() for key, values in arrays.items()
        }  # some of its metrics change the arrays
        return metric(model, **copies, channel_first=True, batch_size=64, softmax=True, **call)

    def explained(model: nn.Module, inputs: Arrays, targets: Arrays) -> Arrays:
        pixels, classes = torch.from_numpy(inputs), torch.from_numpy(targets)
        return gradient(model, pixels, classes, generator=torch.Generator()).numpy()

    def deletion() -> Arrays:
        [curve] = score("deletion", steps=56, fill="black").curves.values()
        return np.asarray(curve)[:, 1:]  # Quantus begins after the first step

    def regions(order: str) -> Arrays:
        return np.asarray(
            quantus(
                "RegionPerturbation",
                patch_size=1,
                regions_evaluation=100,
                order=order,
                perturb_baseline=0.0,
            )
        )

    yield Comparison(
        "AOPC: two curves of 100 pixels", "Quantus",
        lambda: score("aopc", steps=100, every=100, fill="black"),
        lambda: np.stack([regions("morf"), regions("lerf")]),
        "Quantus returns drops of neighboring patches",
    )  # fmt: skip
    yield Comparison(
        "deletion: 56 steps of 14 pixels", "Quantus",
        deletion,
        lambda: np.asarray(quantus("PixelFlipping", features_in_step=14, perturb_baseline=0.0)),
    )  # fmt: skip
    yield Comparison(
        "faithfulness: all 784 pixels", "Quantus",
        lambda: score("faithfulness", pixels=784, fill="black"),
        lambda: np.asarray(
            quantus("FaithfulnessEstimate", features_in_step=1, perturb_baseline=0.0, similarity_func=pearson)
        ),
    )  # fmt: skip
    yield Comparison(
        "max-sensitivity: 20 samples", "Quantus",
        lambda: score("sensitivity_max", samples=20, method="gradient"),
        lambda: np.asarray(quantus("MaxSensitivity", explain=True, nr_samples=20, lower_bound=0.1)),
        "both sample their neighbors",
    )  # fmt: skip


def infidelity(options: argparse.Namespace) -> dict[str, Any]:
    """Return the row of infidelity with captum, as ``perturbation.py`` measures it."""
    from perturbation import measure_captum

    settings = vars(common.parser_of("").parse_args([]))
    settings |= {"rounds": options.rounds, "threads": options.threads, "batch_size": 64, "squares": 200}
    found = measure_captum(argparse.Namespace(**settings))
    times = {"ours": found["captum_ours_s"], "theirs": found["captum_s"], "ratio": found["captum_ratio"]}
    why = f"scores differ by at most {found['captum_difference']:.0e} of their value"
    return {"name": "infidelity: 200 squares", "peer": "captum", "why": why, **times}


def pearson(a: Arrays, b: Arrays, **_: Any) -> Arrays:
    """Return the correlation of each row."""
    a, b = a - a.mean(-1, keepdims=True), b - b.mean(-1, keepdims=True)
    return (a * b).sum(-1) / np.sqrt((a**2).sum(-1) * (b**2).sum(-1))


# --------------------------------------------------------------------------------------------- methods


def methods(options: argparse.Namespace) -> Iterator[Comparison]:
    """Yield the methods, with the other libraries and with bare passes."""
    images, targets = inputs(options.batch_size, 3, options.size)
    for name in options.networks:
        model = classifier(name, 3)
        for comparisons in (
            bare_methods(name, model, images, targets),
            captum_methods(model, images, targets),
            cam_methods(model, images, targets),
            xplique_methods(model, images, targets),
            zennit_methods(name, model, images, targets),
            single_image_methods(model, images[:1], targets[:1]),
        ):
            yield from (replace(comparison, network=name) for comparison in comparisons)
    model = classifier("vit", 3, image_size=options.size, patch=16, width=384, depth=12, heads=6)
    for comparisons in (
        bare_methods("vit", model, images, targets, names=("attnlrp",)),
        lxt_methods(model, images, targets),
    ):
        yield from (replace(comparison, network="vit") for comparison in comparisons)


def ours(
    name: str, model: Classifier, images: Tensor, targets: Tensor, **parameters: Any
) -> Callable[[], Tensor]:
    return lambda: saliency_assay.attribute(
        name, model, images, targets, batch_size=len(images), **parameters
    )


def captum_methods(model: Classifier, images: Tensor, targets: Tensor) -> Iterator[Comparison]:
    here = partial(ours, model=model, images=images, targets=targets)
    window, stride = WINDOW / images.shape[-1], WINDOW / images.shape[-1]
    grid = segment(images[:1], "grid", 16)[None]
    layer = model.network.get_submodule(model.cam_layer)

    def captum(name: str, call: dict[str, Any] | None = None, **settings: Any) -> Callable[[], Tensor]:
        own = deepcopy(model) if name in COPIED else model  # some of its methods change the model

        def run() -> Tensor:
            from captum import attr as peer

            explainer = getattr(peer, name)(own, **settings)
            with exact_float32():
                found: Tensor = explainer.attribute(images, target=targets, **(call or {}))
            return found.detach()

        return run

    def noise_tunnel() -> Tensor:
        from captum import attr as peer

        with exact_float32():
            tunnel = peer.NoiseTunnel(peer.Saliency(model))
            return tunnel.attribute(
                images, target=targets, abs=False, nt_samples=SAMPLES, nt_samples_batch_size=1, stdevs=0.15
            )

    def gradcam() -> Tensor:
        from captum import attr as peer

        with exact_float32():
            maps = peer.LayerGradCam(model, layer).attribute(images, target=targets, relu_attributions=True)
        return (
            nn.functional.interpolate(maps, size=images.shape[2:], mode="bilinear").detach().expand_as(images)
        )

    background = images.flip(0)
    sampled = "different samples"
    for name, theirs, parameters, why in (
        ("gradient", captum("Saliency", {"abs": False}), {}, ""),
        ("gradient_x_input", captum("InputXGradient"), {}, ""),
        (
            "integrated_gradients",
            captum("IntegratedGradients", {"n_steps": SAMPLES, "internal_batch_size": len(images)}),
            {"steps": SAMPLES, "rule": "gauss_legendre"},
            "",
        ),
        ("guided_backprop", captum("GuidedBackprop"), {}, ""),
        ("gradcam", gradcam, {}, ""),
        ("smoothgrad", noise_tunnel, {"samples": SAMPLES}, sampled),
        ("deeplift", captum("DeepLift"), {"rule": "rescale"}, RESCALE),
        ("deep_shap", captum("DeepLiftShap", {"baselines": background}), {"background": background}, RESCALE),
        ("lrp_epsilon", captum("LRP"), {}, "other rules and stabilizers"),
        (
            "expected_gradients",
            captum("GradientShap", {"baselines": background, "n_samples": SAMPLES}),
            {"background": background, "samples": SAMPLES},
            sampled,
        ),
        (
            "occlusion",
            captum(
                "Occlusion", {"sliding_window_shapes": (3, WINDOW, WINDOW), "strides": (3, WINDOW, WINDOW)}
            ),
            {"window": window, "stride": stride, "fill": "black"},
            "",
        ),
        (
            "kernel_shap",
            each_image(lambda one: captum_surrogate("KernelShap", model, one, images, targets, grid), images),
            {"segments": 16, "samples": COALITIONS, "features": "grid"},
            sampled,
        ),
        (
            "lime",
            each_image(lambda one: captum_surrogate("Lime", model, one, images, targets, grid), images),
            {"segments": 16, "samples": COALITIONS, "features": "grid"},
            sampled,
        ),
    ):
        yield Comparison(
            name, "captum", here(name, **parameters), theirs, why, lambda maps: maps.expand_as(images)
        )


RESCALE = (
    "captum's maps do not sum to the difference of the outputs on this network (docs/methods/propagation.md)"
)
COPIED = ("GuidedBackprop", "DeepLift", "DeepLiftShap", "LRP")


def captum_surrogate(
    name: str, model: Classifier, one: slice, images: Tensor, targets: Tensor, grid: Tensor
) -> Tensor:
    from captum import attr as peer

    with exact_float32():
        found: Tensor = getattr(peer, name)(model).attribute(
            images[one],
            target=targets[one],
            feature_mask=grid,
            n_samples=COALITIONS,
            perturbations_per_eval=4,
        )
    return found


def each_image(explain: Callable[[slice], Tensor], images: Tensor) -> Callable[[], Tensor]:
    """Explain one image at a time, as captum requires."""
    return lambda: torch.cat([explain(slice(number, number + 1)) for number in range(len(images))])


def cam_methods(model: Classifier, images: Tensor, targets: Tensor) -> Iterator[Comparison]:
    here = partial(ours, model=model, images=images, targets=targets)

    trainable = deepcopy(model).requires_grad_(True)
    layer = trainable.network.get_submodule(model.cam_layer)

    def cam(
        name: str,
        explained: nn.Module = trainable,
        layers: Sequence[nn.Module] = (layer,),
        batch: Tensor = images,
    ) -> Callable[[], Arrays]:
        def run() -> Arrays:
            import pytorch_grad_cam as peer
            from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

            with (
                exact_float32(),
                getattr(peer, name)(model=explained, target_layers=list(layers)) as explainer,
            ):
                explainer.batch_size = len(batch)
                maps: Arrays = explainer(batch, [ClassifierOutputTarget(int(target)) for target in targets])
            return maps[:, None]

        return run

    scaled = "compared after scaling to [0, 1]"
    for name, peer in (
        ("gradcam", "GradCAM"),
        ("gradcam_plus_plus", "GradCAMPlusPlus"),
        ("layercam", "LayerCAM"),
    ):
        yield Comparison(name, "pytorch-grad-cam", here(name), cam(peer), scaled, unit_range)

    # FullGrad is about biases, so the layers get some. Both sides multiply the gradient by the normalized image.
    biased = deepcopy(model)
    generator = torch.Generator().manual_seed(SEED)
    for module in biased.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.bias, std=0.1, generator=generator)
    theirs = cam("FullGrad", deepcopy(biased.network).requires_grad_(True), (), normalized(biased, images))
    mine = here("fullgrad", model=biased, rescale="channel")
    yield Comparison("fullgrad", "pytorch-grad-cam", mine, theirs, scaled, unit_range)


def unit_range(maps: Tensor) -> Tensor:
    """Return each map scaled to [0, 1]."""
    low, high = maps.amin((1, 2, 3), keepdim=True), maps.amax((1, 2, 3), keepdim=True)
    return (maps - low) / (high - low).clamp(min=1e-7)


def xplique_methods(model: Classifier, images: Tensor, targets: Tensor) -> Iterator[Comparison]:
    here = partial(ours, model=model, images=images, targets=targets)

    def xplique(name: str, **settings: Any) -> Callable[[], Arrays]:
        def run() -> Arrays:
            import tensorflow
            from xplique import attributions as peer
            from xplique.wrappers import TorchWrapper

            wrapped = TorchWrapper(model, "cpu", is_channel_first=True)
            one_hot = tensorflow.one_hot(targets.numpy(), CLASSES)
            explainer = getattr(peer, name)(wrapped, batch_size=len(images), **settings)
            found: Arrays = np.asarray(explainer(images.permute(0, 2, 3, 1).numpy(), one_hot))
            return found[..., 0][:, None] if found.ndim == 4 else found[:, None]

        return run

    one = "compared as one channel"
    yield Comparison(
        "gradient",
        "Xplique",
        here("gradient"),
        xplique("Saliency"),
        one,
        lambda maps: maps.abs().amax(1, keepdim=True),
    )
    yield Comparison(
        "integrated_gradients", "Xplique", here("integrated_gradients", steps=SAMPLES),
        xplique("IntegratedGradients", steps=SAMPLES), one, lambda maps: maps.mean(1, keepdim=True),
    )  # fmt: skip
    yield Comparison(
        "occlusion", "Xplique", here("occlusion", window=0.25, stride=0.25, fill="black"),
        xplique("Occlusion", patch_size=WINDOW, patch_stride=WINDOW), "",
    )  # fmt: skip


BARE_METHODS: dict[str, dict[str, Any]] = {
    "gradient": {},
    "lrp_alpha_beta": {},
    "lrp_epsilon": {},
    "deep_taylor": {},
    "deeplift": {"rule": "rescale"},
    "deeplift ": {"rule": "reveal_cancel"},
    "fullgrad": {},
}


def bare_methods(
    network: str, model: Classifier, images: Tensor, targets: Tensor, names: Sequence[str] = ()
) -> Iterator[Comparison]:
    """Yield methods beside their passes alone."""
    pixels = to_pixels(images)

    def bare(passes: int = 1, *, gradients: bool = True, count: int = len(images)) -> Tensor:
        run = input_gradient if gradients else target_logits
        with exact_float32():
            for _ in range(passes):
                found = run(model, pixels[:count], targets[:count])
        return found[:0]

    settings = {name: {} for name in names} or BARE_METHODS
    for name, parameters in settings.items():
        mine = ours(name.strip(), model, images, targets, **parameters)
        yield Comparison(name.strip(), BARE, mine, bare, parameters.get("rule", ""))
    if network in LAYERS_OF_64:
        early = deepcopy(model)
        early.cam_layer = LAYERS_OF_64[network]
        mine = ours("scorecam", early, images[:1], targets[:1])
        theirs = partial(bare, 65, gradients=False, count=1)
        yield Comparison("scorecam", BARE, mine, theirs, f"one image, {early.cam_layer}")


def zennit_methods(network: str, model: Classifier, images: Tensor, targets: Tensor) -> Iterator[Comparison]:
    """Yield methods of relevance, on torchvision's network with the same weights, which zennit's canonizers need."""
    pixels, start = normalized(model, images), nn.functional.one_hot(targets, CLASSES).float()

    @cache
    def attributor(name: str) -> Any:
        import torchvision
        from zennit import attribution, composites, rules, types
        from zennit.torchvision import ResNetCanonizer, VGGCanonizer

        theirs = (
            torchvision.models.get_model(network, num_classes=CLASSES, init_weights=False)
            if (network.startswith("vgg"))
            else torchvision.models.get_model(network, num_classes=CLASSES)
        )
        theirs.load_state_dict(model.network.state_dict())
        theirs.eval().requires_grad_(False)
        canonizers = [VGGCanonizer() if network.startswith("vgg") else ResNetCanonizer()]
        layers = (types.Convolution, types.Linear)
        rule = {
            "lrp_epsilon": lambda: rules.Epsilon(1e-6),
            "lrp_alpha_beta": lambda: rules.AlphaBeta(2, 1, zero_params="bias"),
            "deep_taylor": lambda: rules.ZPlus(zero_params="bias"),
        }
        if name == "guided_backprop":
            composite = composites.GuidedBackprop(canonizers=canonizers)
        elif name == "gradient":
            composite = None
        else:
            sums = (
                (types.Activation, rules.Pass()),
                (composites.Sum, rules.Norm()),
                (types.AvgPool, rules.Norm()),
            )
            low, high = (normalized(model, torch.full_like(images[:1], value)) for value in (0.0, 1.0))
            first = [] if name == "lrp_epsilon" else [(types.Convolution, rules.ZBox(low, high))]
            composite = composites.SpecialFirstLayerMapComposite(
                [*sums, (layers, rule[name]())], first, canonizers=canonizers
            )
        registered = attribution.Gradient(theirs, composite)
        registered.__enter__()  # once: not in the time
        return registered

    def relevance(name: str) -> Tensor:
        with exact_float32():
            found = attributor(name)(pixels, lambda logits: logits * start if name in STARTED else start)[1]
        if name in ("gradient", "guided_backprop"):
            found = found / model.std
        return found.detach()

    for name in ("gradient", "guided_backprop", "lrp_epsilon", "lrp_alpha_beta", "deep_taylor"):
        yield Comparison(name, "zennit", ours(name, model, images, targets), partial(relevance, name))


STARTED = ("lrp_epsilon", "lrp_alpha_beta", "deep_taylor")
"""Methods whose relevance starts as the logit."""


def lxt_methods(model: Classifier, images: Tensor, targets: Tensor) -> Iterator[Comparison]:
    def attnlrp() -> Tensor:
        from lxt_network import lxt_logits

        pixels = normalized(model, images).requires_grad_()
        with exact_float32():
            logits = lxt_logits(model.network, pixels, 1e-6)
            start = nn.functional.one_hot(targets, CLASSES) * logits.detach()
            return torch.autograd.grad(logits, pixels, start)[0]

    mine = ours("attnlrp", model, images, targets, epsilon=1e-6, gamma_linear=0.0, gamma_convolution=0.0)
    yield Comparison("attnlrp", "lxt", mine, attnlrp, "rule ε")


def single_image_methods(model: Classifier, images: Tensor, targets: Tensor) -> Iterator[Comparison]:
    """Yield methods whose peers explain one image."""
    pixels = images[0].permute(1, 2, 0).numpy()
    target = int(targets)

    def gradients(batch: Arrays, call_model_args: Any = None, expected_keys: Any = None) -> dict[str, Arrays]:
        rows = torch.from_numpy(batch).float().permute(0, 3, 1, 2)
        with exact_float32():
            slopes = input_gradient(model, rows, targets.expand(len(rows)))
        return {"INPUT_OUTPUT_GRADIENTS": slopes.permute(0, 2, 3, 1).numpy()}

    def xrai(steps: int) -> Arrays:
        from saliency import core

        baselines = [np.zeros_like(pixels), np.ones_like(pixels)]
        parameters = core.XRAIParameters(steps=steps)
        return core.XRAI().GetMask(pixels, gradients, baselines=baselines, extra_parameters=parameters)  # type: ignore[no-any-return]

    def extremal() -> Tensor:
        from torchray.attribution.extremal_perturbation import extremal_perturbation

        with exact_float32():
            found: Tensor = extremal_perturbation(model, images, target, max_iter=STEPS, jitter=False)[0]
        return found.detach()

    for steps in (1, STEPS, 25):
        mine = ours("xrai", model, images, targets, steps=steps, channels="max")
        why = f"one image, {steps} step{'s' * (steps > 1)}; PAIR's steps include the ends of the path"
        yield Comparison("xrai", "PAIR saliency", mine, partial(xrai, steps), why)
    mine = ours("extremal_perturbation", model, images, targets, steps=STEPS)
    yield Comparison("extremal_perturbation", "TorchRay", mine, extremal, f"one image, {STEPS} steps")


# ---------------------------------------------------------------------------------------------- measuring


def compare(comparison: Comparison, rounds: int) -> dict[str, Any]:
    """Run both in turns, and return the seconds, the ratio and the difference, or the error of the peer."""
    row: dict[str, Any] = {key: getattr(comparison, key) for key in ("name", "network", "peer", "why")}
    seconds: dict[str, list[float]] = {"ours": [], "theirs": []}
    results: dict[str, Any] = {}
    for turn in range(rounds + 1):
        for side in ("theirs", "ours"):
            start = time.perf_counter()
            try:
                results[side] = getattr(comparison, side)()
            except Exception as error:
                if side == "ours":
                    raise
                return {**row, "error": f"{type(error).__name__}: {str(error).partition(chr(10))[0][:100]}"}
            if turn:  # the first round imports and warms up
                seconds[side].append(time.perf_counter() - start)
    ratios = [b / a for a, b in zip(seconds["ours"], seconds["theirs"], strict=True)]
    row |= {side: statistics.median(values) for side, values in seconds.items()}
    row |= {"ratio": statistics.median(ratios), "slowest": min(ratios), "fastest": max(ratios)}
    mine, others = as_array(comparison.convert(results["ours"])), as_array(results["theirs"])
    if mine.size == others.size > 0:
        row["correlation"] = float(np.corrcoef(mine.ravel(), others.ravel())[0, 1])
        row["difference"] = float(np.abs(mine.ravel() - others.ravel()).max() / np.abs(others).max())
    return row


def as_array(result: Any) -> Arrays:
    """Return a result of either side as one array, of several scores all in order."""
    return np.asarray(list(result.values()) if isinstance(result, dict) else result, dtype=float)


class Generated:
    """Images or maps that are generated slice by slice, as a store on disk is read."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, rows: slice) -> Arrays:
        generator = np.random.default_rng(rows.start)
        return generator.random((len(range(*rows.indices(self.count))), 3, 64, 64), dtype=np.float32)


def peak(side: str, count: int) -> float:
    """Return the peak memory of this process in MB after scoring ``count`` maps by their sparseness."""
    model, data = classifier("resnet8", 3, width=4), Generated(count)
    if side == "ours":
        from saliency_assay.metrics.concentration import sparseness
        from saliency_assay.metrics.engine import MetricInputs, score

        targets = np.zeros(count, dtype=np.int64)
        blocks = score(
            sparseness, {}, model, data, targets, data,
            names=["sparseness"], seed=0, batch_size=64, inputs=MetricInputs(),
        )  # fmt: skip
        assert sum(len(block.scores["sparseness", ""]) for block in blocks) == count
    else:
        import quantus

        everything = data[:count]
        quantus.Sparseness(normalise=False, disable_warnings=True)(  # codespell:ignore
            model, everything, np.zeros(count, dtype=np.int64), everything, channel_first=True, batch_size=64
        )
    return common.megabytes()


def memory() -> dict[str, list[float]]:
    """Return the peaks in MB of this project and of Quantus for each of ``COUNTS``, each in a process of its own."""
    peaks: dict[str, list[float]] = {"ours": [], "Quantus": []}
    for side, values in peaks.items():
        for count in COUNTS:
            command = [sys.executable, __file__, "--peak", side, str(count)]
            printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            values.append(float(re.findall(r"peak ([\d.]+)", printed)[-1]))
    return peaks


def shown(row: dict[str, Any]) -> str:
    name = {record.name: record.label for record in METHODS}.get(row["name"], row["name"])
    if "error" in row:
        return f"| {name} | {row.get('network', '')} | {row['peer']} | | | | | | {row['error']} |"
    agreement = f"{row['correlation']:.4f} | {row['difference']:.0e}" if "correlation" in row else "|"
    ratio = f"**{row['ratio']:.2f}**"
    if "slowest" in row:
        ratio += f" ({row['slowest']:.2f} to {row['fastest']:.2f})"
    times = f"{row['ours']:.2f} | {row['theirs']:.2f} | {ratio}"
    return f"| {name} | {row.get('network', '')} | {row['peer']} | {times} | {agreement} | {row['why']} |"


def processor() -> str:
    """Return the name of the machine's processor."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else ""
    names = re.findall(r"model name\s*: (.+)", lines)
    return names[0] if names else platform.processor() or platform.machine()


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table, and log peers that are not installed."""
    missing = {peer: packages for peer, (module, packages) in PEERS.items() if find_spec(module) is None}
    for peer, packages in missing.items():
        print(f"{peer} is not installed and left out: uv pip install {packages}", file=sys.stderr)
    for kind, comparisons in {"metrics": metrics, "methods": methods}.items():
        if options.only in (None, kind):
            for comparison in comparisons(options):
                if comparison.peer in missing or (options.names and comparison.name not in options.names):
                    continue
                yield compare(comparison, options.rounds)
    if options.only in (None, "metrics") and not options.names and "captum" not in missing:
        yield infidelity(options)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--images", type=int, default=64, help="of the metrics")
    parser.add_argument("--architecture", default="resnet8", help="of the metrics, such as lenet")
    parser.add_argument("--batch-size", type=int, default=4, help="of the methods")
    parser.add_argument("--networks", nargs="+", default=["resnet18", "vgg16"], help="of the methods")
    parser.add_argument("--size", type=int, default=224, help="pixels a side, of the methods")
    parser.add_argument("--only", choices=("metrics", "methods", "memory"))
    parser.add_argument("--names", nargs="+", help="only these rows")
    parser.add_argument("--json", action="store_true", help="print JSON in place of the table")
    parser.add_argument("--peak", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    warnings.simplefilter("ignore")
    if options.peak:
        print("peak", peak(options.peak[0], int(options.peak[1])))
        return
    titles = ("", "network", "peer", "s, here", "s, peer", "ratio (range)", "correlation", "difference", "")
    if not options.json:
        print(f"{processor()}, threads: {options.threads}, torch {torch.__version__}\n")
        print(f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}", flush=True)
    rows = []
    for row in measured(options):
        rows.append(row)
        if not options.json:
            print(shown(row), flush=True)
    results = {"rows": rows, "memory": memory() if options.only in (None, "memory") else {}}
    if options.json:
        print(json.dumps(results))
        return
    for side, (few, many) in results["memory"].items():
        print(f"{side}: peak {few:.0f} MB for {COUNTS[0]:,} images, {many:.0f} MB for {COUNTS[1]:,}")


if __name__ == "__main__":
    main()
