"""Launches and waits of every method and metric on a simulated device, beside those of its bare passes.

    python benchmarks/launches.py

No GPU is needed: the device counts what PyTorch asks of it (``tests/simulated_device.py``). A launch is an operation
that computes, a wait is one whose result the program needs before it can go on. Bare passes are as many forward and
backward passes of the model as the method or metric needs. Methods and metrics run with the parameters of the tests,
which have few passes; SmoothGrad and Integrated Gradients also with 25.
"""

from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from functools import partial

import common  # noqa: F401  # puts the source folder and the tests on the import path
import torch
from simulated_device import SimulatedTensor, simulated, to_simulated
from support import attention_classifier, bound, cyclic_targets, random_images
from test_methods_contract import small_resnet
from test_metrics_contract import MEAN, ON_MAPS, model, other_model
from test_simulated_device import scored
from torch import Tensor

from saliency_assay.methods import METHODS
from saliency_assay.methods.engine import frozen
from saliency_assay.methods.gradient import gradient
from saliency_assay.methods.path import integrated_gradients
from saliency_assay.methods.sampling import BlockGenerator
from saliency_assay.methods.smoothing import smoothgrad
from saliency_assay.models.classifier import Classifier

FORWARD, BACKWARD = "aten::convolution", "aten::convolution_backward"
BATCH, SIZE = 8, 12  # the size of the small transformer


def counts_of(run: Callable[[], object]) -> tuple[Counter[str], Counter[str]]:
    """Return the launches and the waits of a function."""
    with simulated() as counts:
        run()
    return counts.launches, counts.waits


def bare_launches(network: Classifier, images: Tensor, targets: Tensor) -> Callable[[Counter[str]], float]:
    """Return a function of launches that returns those of the forward and backward passes among them alone."""

    def forward() -> None:
        with torch.no_grad():
            network(images)

    def backward() -> None:
        gradient(network, images, targets, generator=torch.Generator())

    one, both = counts_of(forward)[0], counts_of(backward)[0]
    convolutions = one[FORWARD]

    def bare(launches: Counter[str]) -> float:
        back = launches[BACKWARD] / convolutions
        ahead = max(0.0, launches[FORWARD] / convolutions - back)
        return ahead * sum(one.values()) + back * sum(both.values())

    return bare


def row(name: str, launches: Counter[str], waits: Counter[str], bare: float) -> str:
    """Return a row of the table."""
    total = sum(launches.values())
    places = Counter(wait.split()[0] for wait in waits.elements())
    text = ", ".join(f"{count} in `{place}`" for place, count in sorted(places.items()))
    ratio = f"{total / bare:.2f}" if bare else ""
    return f"| `{name}` | {total:,} | {ratio} | {text} |"


def main() -> None:
    """Print the tables."""
    images, targets = random_images(BATCH, size=SIZE, dtype=torch.float32), cyclic_targets(BATCH)
    on_device = SimulatedTensor(images), SimulatedTensor(targets)
    networks = {
        "resnet8": to_simulated(small_resnet().float()),
        "vit": to_simulated(attention_classifier(dtype=torch.float32)),
    }
    bares = {name: bare_launches(network, *on_device) for name, network in networks.items()}
    print("| method | launches | of bare passes | waits within a batch |\n|---|---|---|---|")
    long = {
        "smoothgrad, 25 samples": partial(smoothgrad, samples=25),
        "integrated_gradients, 25 steps": partial(integrated_gradients, steps=25),
    }
    for name, call in {**{method.name: bound(method, images) for method in METHODS}, **long}.items():
        if "background" in call.keywords:
            call.keywords["background"] = SimulatedTensor(call.keywords["background"])
        for architecture, network in networks.items():
            run = partial(call, network, *on_device, generator=BlockGenerator(3, "method"))
            try:
                with frozen(network):
                    launches, waits = counts_of(run)
            except ValueError:  # a method of transformers
                continue
            print(row(name, launches, waits, bares[architecture](launches)))
            break
    print("\n| metric | launches | of bare passes | waits within a batch |\n|---|---|---|---|")
    moved = [to_simulated(deepcopy(network)) for network in (model(), other_model())]
    for metric in ON_MAPS:
        with simulated() as counts:
            _, waits = scored(metric, *moved, SimulatedTensor(MEAN), counts)
        print(row(metric.name, counts.launches, waits, 0))


if __name__ == "__main__":
    main()
