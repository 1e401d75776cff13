"""Run every method on networks of torchvision and timm, and write the table to docs/methods.md.

``python -m tools.support_table`` takes about two minutes. The networks have random weights: only their layers matter.
Score-CAM, which needs a pass for each channel, is checked as Grad-CAM, which needs the same layer.
"""

import re
import sys
from collections.abc import Mapping
from typing import Any

import torch

from saliency_assay.methods import METHODS, Method
from saliency_assay.methods.engine import frozen
from saliency_assay.models.classifier import Blueprint, Classifier, build
from saliency_assay.models.families import BUILDERS, family_of
from saliency_assay.registry.records import record_of, resolve
from tools.pages import DOCS, link_of

PAGE = DOCS / "methods.md"
BEGIN, END = "<!-- libraries, written by tools/support_table.py -->\n", "<!-- end of libraries -->\n"
SIZE, CLASSES = 32, 5
NETWORKS: Mapping[str, dict[str, Any]] = {
    "torchvision/resnet18": {},
    "torchvision/resnet50": {},
    "torchvision/densenet121": {},
    "torchvision/vgg16": {},
    "torchvision/efficientnet_b0": {},
    "torchvision/mobilenet_v3_small": {},
    "torchvision/convnext_tiny": {},
    "torchvision/swin_t": {},
    "torchvision/vit_b_16": {"image_size": SIZE},
    "timm/resnet18": {},
    "timm/efficientnet_b0": {},
    "timm/convnext_atto": {},
    "timm/swin_tiny_patch4_window7_224": {"img_size": SIZE, "window_size": 4},
    "timm/vit_tiny_patch16_224": {"img_size": SIZE},
    "timm/deit_tiny_distilled_patch16_224": {"img_size": SIZE},
}
"""Networks and the options with which they take images of ``SIZE`` pixels."""
FEW: Mapping[str, Any] = {"samples": 2, "steps": 2}
FEW_OF: Mapping[str, dict[str, Any]] = {
    "kernel_shap": {"segments": 4, "samples": 12},
    "optimal_noisy_baseline": {"samples": 4},
    "occlusion": {"window": 0.5, "stride": 0.5},
    "optimal_square": {"smallest": 32, "largest": 32, "squares": 1},
    "lime": {"segments": 4},
    "xrai": {"resolution": 32},
}
"""Parameters that need few passes."""


def support() -> dict[str, dict[str, str]]:
    """Return for each method and network the line with which the method refuses it; empty if it returns maps."""
    refusals: dict[str, dict[str, str]] = {method.name: {} for method in METHODS}
    for name in NETWORKS:
        model = _model(name)
        for method in METHODS:
            refusals[method.name][name] = _refusal(method, model)
    return refusals


def table(support: Mapping[str, Mapping[str, str]]) -> str:
    """Return the table in Markdown, with numbered refusals below it."""
    numbers: dict[str, int] = {}
    lines = [
        f"| method | {' | '.join(f'`{name}`' for name in NETWORKS)} |\n",
        "|---" * (len(NETWORKS) + 1) + "|\n",
    ]
    for method, refusals in support.items():
        cells = (
            "✓" if not refusal else f"{numbers.setdefault(_reason(method, refusal), len(numbers) + 1)}"
            for refusal in refusals.values()
        )
        lines.append(f"| {link_of(method, PAGE)} | {' | '.join(cells)} |\n")
    reasons = [f"{number}. {reason}\n" for reason, number in numbers.items()]
    return "".join([*lines, "\n", *reasons])


def page(support: Mapping[str, Mapping[str, str]]) -> str:
    """Return the text of docs/methods.md with the table up to date."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    return before + BEGIN + table(support) + END + rest.partition(END)[2]


def _model(name: str) -> Classifier:
    library, _, network = name.partition("/")
    family = family_of(library, network)
    assert family is not None
    blueprint = Blueprint(name, BUILDERS[library], {"name": network, **NETWORKS[name]}, family.cam_layer)
    generator = torch.Generator().manual_seed(0)
    return build(blueprint, classes=CLASSES, mean=[0.5] * 3, std=[0.25] * 3, generator=generator).eval()


def _refusal(method: Method, model: Classifier) -> str:
    images = torch.rand(1, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(1))
    few = {name: value for name, value in FEW.items() if name in method.parameters} | FEW_OF.get(
        method.name, {}
    )
    more: dict[str, Any] = {"background": images} if "background" in method.takes else {}
    if "mask" in method.takes:
        more["mask"] = torch.ones(len(images), *images.shape[2:], dtype=torch.bool)
    target, generator = torch.tensor([0]), torch.Generator().manual_seed(0)
    if method.passes is None:  # thousands of passes, for Score-CAM
        method = record_of(METHODS, method.checked_as, "method")
    try:
        with frozen(model):
            maps = resolve(method.function)(model, images, target, generator=generator, **few, **more)
    except ValueError as error:
        return str(error)
    assert maps.shape[2:] == images.shape[2:], method.name
    assert bool(maps.isfinite().all()), method.name
    return ""


def _reason(method: str, refusal: str) -> str:
    """Return a refusal without the names of the method, the network and its layers, which the table shows."""
    reason = refusal.removeprefix(f"{method}: ").removeprefix("cam: ")
    reason = re.sub(r" \('[^']*'\)| \(\w+\)", "", re.sub(r"^\w+: ", "", reason))
    reason = re.sub(r" in [A-Z]\w+(?=[;,])| of [A-Z]\w+(?= is)| '[\w.-]+'(?=; expected)", "", reason)
    return re.sub(r"; valid: .*?(?=; or use |$)", "", reason)


if __name__ == "__main__":
    PAGE.write_text(page(support()))
    sys.stdout.write(f"{PAGE}\n")
