"""Compare the methods for transformers with their authors' code, on shared random weights in float64.

- Raw attention, attention rollout and transformer attribution: a clone of hila-chefer/Transformer-Explainability.
- Gradient-weighted attention: the functions of the notebook in hila-chefer/Transformer-MM-Explainability, on the
  network of the former.
- AttnLRP with the rule ε: the project's vision transformer in functions of lxt (PyPI package lxt).
- LeGrad: a clone of WalBouss/LeGrad, on a network of PyPI package open_clip_torch 2.23.0. Its text embeddings are the
  classes and, as in a classifier, features are not normalized.
- LibraGrad: clones of NightMachinery/pytorch-image-models-libragrad-v1, a copy of timm that is imported in a process of
  its own, and of NightMachinery/PyNight. Packages that they import and do not need here may be absent.

For each of these, the program prints the largest difference relative to the largest value of the map, and the time of
the authors' code divided by ours, for one image at a time, since the authors' code explains a single image. It exits
with status 1 if a difference is above 1e-5. The authors' networks need the PyPI packages einops, ftfy, regex and
opencv-python-headless.

    python benchmarks/parity_attention.py --chefer Transformer-Explainability --generic Transformer-MM-Explainability \
        --legrad LeGrad --libragrad pytorch-image-models-libragrad-v1 --pynight PyNight
"""

import argparse
import json
import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib import import_module
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from saliency_assay.methods import attention, relevance
from saliency_assay.methods.legrad import legrad
from saliency_assay.methods.libragrad import libragrad
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.vit import vit

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from lxt_network import lxt_logits

AGREEMENT = 1e-5
NORM_EPS = 1e-6
IMAGES, CLASSES = 4, 10
Maps = Callable[[Tensor, int], Tensor]
"""Function of an image ``[1, 3, S, S]`` and a class that returns values of the patches or pixels."""


def authors_network(path: Path, options: argparse.Namespace) -> tuple[nn.Module, nn.Module]:
    """Return the authors' networks with relevance propagation and with attention maps, of the same weights."""
    sys.path.insert(0, str(path))
    shape = timm_shape(options) | {"qkv_bias": True}
    torch.manual_seed(0)
    networks = []
    for module in ("ViT_LRP", "ViT_new"):
        network = import_module(f"baselines.ViT.{module}").VisionTransformer(**shape).double().eval()
        networks.append(with_eps(network))
    state = {
        name: torch.randn_like(value) * value[0].numel() ** -0.5
        for name, value in networks[0].state_dict().items()
    }
    for network in networks:
        network.load_state_dict(state)
    return networks[0], networks[1]


def with_eps(network: nn.Module) -> nn.Module:
    """Set the same ε in all normalizations, since the authors' two networks differ in it."""
    for norm in (module for module in network.modules() if isinstance(module, nn.LayerNorm)):
        norm.eps = NORM_EPS
    return network


def our_classifier(state: dict[str, Tensor], options: argparse.Namespace, **changes: Any) -> Classifier:
    """Return timm's network, whose parameters have the authors' names, with these weights."""
    network = (
        import_module("timm").create_model("vit_tiny_patch16_224", **timm_shape(options), **changes).double()
    )
    network.load_state_dict(state)
    model = Classifier(
        with_eps(network), classes=CLASSES, mean=[0.0] * 3, std=[1.0] * 3, cam_layer="", concept_layers=[]
    )
    return model.double().eval().requires_grad_(False)


def timm_shape(options: argparse.Namespace) -> dict[str, int]:
    return {
        "img_size": options.size,
        "patch_size": options.patch,
        "num_classes": CLASSES,
        "embed_dim": options.width,
        "depth": options.depth,
        "num_heads": options.heads,
    }


def chefer_methods(network: nn.Module, with_maps: nn.Module, generic: Path) -> dict[str, Maps]:
    """Return the methods of both papers of Chefer et al. and their baselines."""
    generator = import_module("baselines.ViT.ViT_explanation_generator")
    # In place of the authors' divisor z + 1e-9, which is not negligible for every z.
    import_module("modules.layers_ours").safe_divide = lambda a, b: a / torch.where(b == 0, torch.inf, b)

    def raw(image: Tensor, target: int) -> Tensor:
        with_maps(image)
        return with_maps.blocks[-1].attn.get_attention_map()[0].mean(0)[0, 1:]

    notebook = json.loads((generic / "Transformer_MM_explainability_ViT.ipynb").read_text())
    cells = ("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code")
    functions: dict[str, Any] = {"torch": torch, "np": np}
    exec(next(cell for cell in cells if "def generate_relevance" in cell), functions)
    lrp, baselines = generator.LRP(network), generator.Baselines(with_maps)
    return {
        "raw_attention": raw,
        "attention_rollout": lambda image, target: baselines.generate_rollout(image),
        "gradient_weighted_attention": partial(functions["generate_relevance"], with_maps),
        "transformer_attribution": lrp.generate_LRP,
    }


def attnlrp_by_lxt(model: Classifier, epsilon: float) -> Maps:
    """Return AttnLRP by the functions of lxt: relevance in place of gradients in the backward pass."""

    def maps(image: Tensor, target: int) -> Tensor:
        image = image.clone().requires_grad_()
        logits = lxt_logits(model.network, image, epsilon)
        start = torch.zeros_like(logits)
        start[0, target] = logits[0, target].detach()
        return torch.autograd.grad(logits, image, start)[0]

    return maps


def legrad_by_its_authors(path: Path, options: argparse.Namespace) -> tuple[Maps, Classifier]:
    """Return the authors' maps of all layers of CLIP's image encoder, and timm's network with the same weights."""
    sys.path.insert(0, str(path))
    wrapper = import_module("legrad.wrapper")
    # A classifier, other than CLIP, does not normalize the features that its last layer reads.
    wrapper.F = SimpleNamespace(**vars(functional) | {"normalize": lambda values, dim: values})
    encoder = wrapper.VisionTransformer(
        **{"image_size": options.size, "patch_size": options.patch, "width": options.width, "mlp_ratio": 4.0},
        **{"layers": options.depth, "heads": options.heads, "output_dim": CLASSES},
    )
    torch.manual_seed(0)
    state = {
        name: torch.randn_like(value) * value[0].numel() ** -0.5
        for name, value in encoder.state_dict().items()
    }
    encoder.load_state_dict(state)
    clip = nn.Module()
    clip.visual = with_eps(encoder.double().eval())
    clip.encode_image = clip.visual.forward
    explained = wrapper.LeWrapper(clip, layer_index=0)

    def maps(image: Tensor, target: int) -> Tensor:
        text = torch.eye(CLASSES)[target : target + 1]
        result: Tensor = explained.compute_legrad_clip(text, image)
        return result

    names = {
        "conv1": "patch_embed.proj",
        "class_embedding": "cls_token",
        "positional_embedding": "pos_embed",
        "ln_pre": "norm_pre",
        "ln_post": "norm",
        "transformer.resblocks": "blocks",
        "ln_": "norm",
        "in_proj_": "qkv.",
        "out_proj": "proj",
        "c_fc": "fc1",
        "c_proj": "fc2",
    }
    renamed = {"head.weight": state.pop("proj").T, "head.bias": torch.zeros(CLASSES)}
    for name, value in state.items():
        for theirs, ours in names.items():
            name = name.replace(theirs, ours)
        renamed[name] = value.reshape(1, -1, options.width) if name in ("cls_token", "pos_embed") else value
    return maps, our_classifier(renamed, options, pre_norm=True)


def libragrad_by_its_authors(
    paths: list[Path], state: dict[str, Tensor], options: argparse.Namespace
) -> ProcessPoolExecutor:
    """Return a process in which ``libragrad_map`` explains the authors' network with these weights."""
    return ProcessPoolExecutor(
        1, multiprocessing.get_context("spawn"), _load_libragrad, (paths, state, options)
    )


_LIBRAGRAD: list[Any] = []


def _load_libragrad(paths: list[Path], state: dict[str, Tensor], options: argparse.Namespace) -> None:
    torch.set_num_threads(options.threads)
    torch.set_default_dtype(torch.float64)
    sys.stdout = StringIO()  # the authors' layers print the mode of every call
    sys.path[:0] = map(str, paths)
    while True:
        try:
            timm = import_module("timm")
            break
        except ModuleNotFoundError as error:
            sys.modules[str(error.name)] = MagicMock()
            for name in [name for name in sys.modules if name.startswith(("timm", "pynight"))]:
                del sys.modules[name]
    network = timm.create_model("vit_tiny_patch16_224", **timm_shape(options)).double().eval()
    network.load_state_dict(state)
    # The gradient mode LX1 of the preset LibraGrad.
    modes = import_module("timm.night.decomposition").dynamic_obj
    modes.attention_gradient_mode = modes.layer_norm_gradient_mode = "LineX_1"
    modes.gelu_gradient_mode = "LineX_ZO"
    _LIBRAGRAD.append(with_eps(network))


def libragrad_map(image: Tensor, target: int) -> Tensor:
    """Return the authors' Input × Grad of the embedded patches, summed over their width."""
    (network,) = _LIBRAGRAD
    tokens = network.pixels2patches(image).detach().requires_grad_()
    (gradient,) = torch.autograd.grad(network.forward_patch_level(tokens)[0, target], tokens)
    maps: Tensor = (tokens * gradient).sum(2)[:, 1:].detach()
    return maps


def own_classifier(options: argparse.Namespace) -> Classifier:
    """Return the project's vision transformer with random weights."""
    size = {
        "image_size": options.size,
        **{name: getattr(options, name) for name in ("patch", "width", "depth", "heads")},
    }
    network = vit(classes=CLASSES, channels=3, generator=torch.Generator().manual_seed(0), **size)
    model = Classifier(
        network, classes=CLASSES, mean=[0.0] * 3, std=[1.0] * 3, cam_layer="", concept_layers=[]
    )
    return model.double().eval().requires_grad_(False)


def our_methods(on_authors_weights: Classifier, own: Classifier, epsilon: float) -> dict[str, Maps]:
    """Return our method for each of the authors'."""
    on_patches = {"upsampling": "nearest"}
    methods: dict[str, Maps] = {
        name: partial(_maps, getattr(attention, name), on_authors_weights, on_patches)
        for name in (
            "raw_attention",
            "attention_rollout",
            "gradient_weighted_attention",
            "transformer_attribution",
        )
    }
    rules = {"epsilon": epsilon, "gamma_linear": 0.0, "gamma_convolution": 0.0}
    return methods | {
        "attnlrp": partial(_maps, relevance.attnlrp, own, rules),
        "libragrad": partial(_maps, libragrad, on_authors_weights, on_patches),
    }


def _maps(method: Any, model: Classifier, parameters: dict[str, Any], image: Tensor, target: int) -> Tensor:
    maps: Tensor = method(model, image, torch.tensor([target]), generator=torch.Generator(), **parameters)
    return maps


def difference(expected: Tensor, maps: Tensor, patch: int) -> float:
    """Return the largest difference relative to the largest value; maps of patches are repeated on their pixels."""
    if expected.numel() != maps.numel():
        maps = maps[..., ::patch, ::patch]
    expected = expected.detach().reshape(maps.shape)
    return float((maps - expected).abs().max() / expected.abs().max())


def seconds_of(function: Maps, image: Tensor, rounds: int) -> float:
    times = []
    for turn in range(rounds + 1):
        start = time.perf_counter()
        function(image, 1)
        if turn:  # the first call warms up
            times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--chefer", type=Path, required=True, help="clone of Transformer-Explainability")
    parser.add_argument("--generic", type=Path, required=True, help="clone of Transformer-MM-Explainability")
    parser.add_argument("--legrad", type=Path, required=True, help="clone of LeGrad")
    parser.add_argument(
        "--libragrad", type=Path, required=True, help="clone of pytorch-image-models-libragrad-v1"
    )
    parser.add_argument("--pynight", type=Path, required=True, help="clone of PyNight")
    for name, value in (
        ("size", 64),
        ("patch", 8),
        ("width", 192),
        ("depth", 6),
        ("heads", 3),
        ("rounds", 5),
    ):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.set_default_dtype(torch.float64)
    torch.Tensor.cuda = lambda tensor: tensor  # type: ignore[method-assign]  # the authors' code needs a GPU
    epsilon = 1e-12
    network, with_maps = authors_network(options.chefer, options)
    state = network.state_dict()
    theirs = chefer_methods(network, with_maps, options.generic)
    own = own_classifier(options)
    theirs["attnlrp"] = attnlrp_by_lxt(own, epsilon)
    ours = our_methods(our_classifier(state, options), own, epsilon)
    theirs["legrad"], encoder = legrad_by_its_authors(options.legrad, options)
    ours["legrad"] = partial(_maps, legrad, encoder, {})
    libra = libragrad_by_its_authors([options.libragrad, options.pynight], state, options)
    theirs["libragrad"] = lambda image, target: libra.submit(libragrad_map, image, target).result()
    images = torch.rand(IMAGES, 3, options.size, options.size, generator=torch.Generator().manual_seed(1))
    worst = 0.0
    for name, method in theirs.items():
        pairs = [(image[None], index % CLASSES) for index, image in enumerate(images)]
        largest = max(difference(method(*pair), ours[name](*pair), options.patch) for pair in pairs)
        speed = seconds_of(method, images[:1], options.rounds) / seconds_of(
            ours[name], images[:1], options.rounds
        )
        print(f"{name:30} difference {largest:8.1e}   time of the authors' code / ours {speed:5.2f}")
        worst = max(worst, largest)
    sys.exit(worst > AGREEMENT)


if __name__ == "__main__":
    main()
