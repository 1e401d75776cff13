"""Networks against torchvision's, the classifier around them, and logits by batches."""

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from support import RESNET8, generator, small_resnet8
from torch import Tensor, nn
from torch.nn import functional
from torchvision import models as torchvision_models

from saliency_assay.methods.canonical import canonical
from saliency_assay.models import initialization, resnet
from saliency_assay.models.classifier import Blueprint, Classifier, build, digest
from saliency_assay.models.cnn import ScaleNorm, mnist_cnn, reliability_cnn, vgg16, vgg16_bn
from saliency_assay.models.inference import evaluating, logits
from saliency_assay.models.initialization import initialize
from saliency_assay.models.resnet import resnet8, resnet18, resnet20, resnet50
from saliency_assay.runtime.provenance import SOURCE


def stored_images(count: int) -> torch.Tensor:
    return torch.randint(0, 256, (count, 3, 8, 8), generator=generator(5), dtype=torch.uint8)


def randomize(network: nn.Module) -> None:
    """Give BatchNorm statistics and affine values that matter."""
    norms = (module for module in network.modules() if isinstance(module, nn.BatchNorm2d))
    for index, norm in enumerate(norms):
        for tensor in norm.state_dict().values():
            if tensor.is_floating_point():
                tensor.uniform_(0.5, 1.5, generator=generator(index))


# --- networks -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "builder", "training"), [("resnet18", resnet18, True), ("resnet50", resnet50, False)]
)
def test_equals_torchvision(name: str, builder: type, training: bool) -> None:
    theirs = getattr(torchvision_models, name)(num_classes=7)
    randomize(theirs)
    ours = builder(classes=7, channels=3, generator=generator())
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict(theirs.state_dict())
    images = torch.randn(2, 3, 96, 96, generator=generator(1))
    with torch.no_grad():
        torch.testing.assert_close(
            ours.train(training)(images), theirs.train(training)(images), atol=1e-5, rtol=1e-5
        )


@pytest.mark.parametrize(("stem_stride", "resolution"), [(1, 8), (2, 4)])
def test_resnet8_halves_the_resolution_twice(stem_stride: int, resolution: int) -> None:
    network = resnet8(classes=10, channels=3, generator=generator(), width=16, stem_stride=stem_stride)
    features = network[:-3](torch.rand(1, 3, 32, 32))
    assert features.shape == (1, 64, resolution, resolution)
    stem, first, head = 9 * 3 * 16 + 32, 2 * 9 * 16**2 + 64, 64 * 10 + 10
    second, third = (9 * w * 2 * w + 9 * (2 * w) ** 2 + w * 2 * w + 3 * 2 * 2 * w for w in (16, 32))
    assert sum(p.numel() for p in network.parameters()) == stem + first + second + third + head


def plain_resnet20(state: dict[str, Tensor], x: Tensor) -> Tensor:
    """He et al. 2016, section 4.2 with n = 3, in functions; shortcuts put their input into the middle channels."""

    def normalize(name: str, x: Tensor) -> Tensor:
        mean, var, weight, bias = (
            state[f"{name}.{part}"][:, None, None]
            for part in ("running_mean", "running_var", "weight", "bias")
        )
        return (x - mean) / (var + 1e-5).sqrt() * weight + bias

    x = normalize("bn1", functional.conv2d(x, state["conv1.weight"], padding=1)).relu()
    for stage in (1, 2, 3):
        for block in range(3):
            at, stride = f"layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1
            out = functional.conv2d(x, state[f"{at}.conv1.weight"], stride=stride, padding=1)
            out = normalize(f"{at}.bn1", out).relu()
            out = normalize(f"{at}.bn2", functional.conv2d(out, state[f"{at}.conv2.weight"], padding=1))
            if stride == 2:
                quarter, shortcut = out.shape[1] // 4, torch.zeros_like(out)
                shortcut[:, quarter:-quarter] = x[:, :, ::2, ::2]
                x = shortcut
            x = (out + x).relu()
    return x.mean((2, 3)) @ state["linear.weight"].T + state["linear.bias"]


def test_resnet20_equals_a_plain_one() -> None:
    network = resnet20(classes=4, channels=3, generator=generator(), width=4).double().eval()
    randomize(network)
    images = torch.randn(2, 3, 16, 16, generator=generator(1), dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(network(images), plain_resnet20(network.state_dict(), images))


def test_resnet20_has_the_size_of_the_paper() -> None:
    network = resnet20(classes=10, channels=3, generator=generator())
    assert sum(p.numel() for p in network.parameters()) == 269_722  # table 6: 0.27 million
    convolutions = [module for module in network.modules() if isinstance(module, nn.Conv2d | nn.Linear)]
    assert len(convolutions) == 20


def test_a_network_is_built_without_torchs_compiler() -> None:
    """Importing that, or SymPy, takes a job longer than most of its work."""
    code = """
import sys, torch
from saliency_assay.models.resnet import resnet8
resnet8(classes=3, channels=3, width=4, stem_stride=1, generator=torch.Generator())
print(*{"sympy", "torch._dynamo"} & set(sys.modules))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "\n"


def test_shortcut_of_an_odd_number_of_channels_loses_none() -> None:
    images = torch.rand(1, 3, 5, 5)
    shortcut = resnet.Subsample(3, 6, 2)(images)
    assert shortcut.shape == (1, 6, 3, 3)
    assert torch.equal(shortcut[:, 1:4], images[:, :, ::2, ::2])
    assert not shortcut[:, [0, 4, 5]].any()


@pytest.mark.parametrize(("name", "builder"), [("vgg16", vgg16), ("vgg16_bn", vgg16_bn)])
def test_vgg_has_torchvisions_names_and_shapes(
    name: str, builder: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(initialization, "initialize", lambda network, generator: None)  # 138 million values
    ours = builder(classes=1000, channels=3, generator=generator())
    with torch.device("meta"):
        theirs = getattr(torchvision_models, name)()
    assert shapes(ours) == shapes(theirs)
    assert layers(ours) == layers(theirs)


def shapes(network: nn.Module) -> list[tuple[str, torch.Size]]:
    return [(name, tensor.shape) for name, tensor in network.state_dict().items()]


def layers(network: nn.Module) -> list[str]:
    """All layers with their settings, in order, written alike; an in-place ReLU is still a ReLU."""
    leaves = [str(part) for part in network.modules() if not list(part.children())]
    alike = [leaf.replace("inplace=True", "").replace("(7, 7)", "7") for leaf in leaves]
    return [leaf for leaf in alike if not leaf.startswith("Flatten")]


def torchvisions_small_vgg(name: str) -> nn.Module:
    """Its own network, of a sixteenth of the width, 32 hidden units and 2 × 2 pooling."""
    widths = (4, 4, "M", 8, 8, "M", *(16, 16, 16, "M"), *(32, 32, 32, "M") * 2)
    with torch.device("meta"):
        theirs = torchvision_models.VGG(nn.Identity(), init_weights=False)
    theirs.features = torchvision_models.vgg.make_layers(list(widths), batch_norm=name == "vgg16_bn")
    theirs.avgpool = nn.AdaptiveAvgPool2d(2)
    for index, (inputs, outputs) in {0: (128, 32), 3: (32, 32), 6: (32, 7)}.items():
        theirs.classifier[index] = nn.Linear(inputs, outputs)
    return theirs


@pytest.mark.parametrize(
    ("name", "builder", "training"), [("vgg16", vgg16, True), ("vgg16_bn", vgg16_bn, True)]
)
def test_vgg_equals_torchvision(name: str, builder: type, training: bool) -> None:
    theirs = torchvisions_small_vgg(name)
    randomize(theirs)
    ours = builder(classes=7, channels=3, generator=generator(), width=4, hidden=32, pooled=2)
    assert shapes(ours) == shapes(theirs)
    ours.load_state_dict(theirs.state_dict())
    images, outputs = torch.randn(4, 3, 96, 64, generator=generator(1)), []
    for network in (ours, theirs):
        with torch.random.fork_rng(), torch.no_grad():
            torch.manual_seed(3)  # for dropout
            outputs.append(network.train(training)(images))
    assert outputs[1].std() > 0.01
    torch.testing.assert_close(*outputs, atol=1e-6, rtol=1e-5)


def reliability(**parameters: object) -> nn.Sequential:
    return reliability_cnn(classes=10, channels=3, generator=generator(), **parameters)


def test_reliability_cnn_is_the_papers() -> None:
    network = reliability(dropout=0.4)
    assert {part.p for part in network.modules() if isinstance(part, nn.Dropout)} == {0.4}
    linear = [module for module in network.modules() if isinstance(module, nn.Conv2d | nn.Linear)]
    assert [tuple(module.weight.shape) for module in linear] == [
        *((32, 3, 3, 3), (32, 32, 3, 3)),
        *((64, 32, 3, 3), (64, 64, 3, 3)),
        *((128, 64, 3, 3), (128, 128, 3, 3)),
        (10, 128 * 4 * 4),
    ]
    block = ["Conv2d", "BatchNorm2d", "ReLU"] * 2 + ["MaxPool2d", "Dropout"]
    kinds = [type(part).__name__ for part in network.modules() if not list(part.children())]
    assert kinds == block * 3 + ["AdaptiveAvgPool2d", "Flatten", "Linear"]


@pytest.mark.parametrize(("builder", "size"), [(reliability_cnn, 32), (mnist_cnn, 28)])
def test_pooling_leaves_the_papers_images_as_they_are(builder: type, size: int) -> None:
    network = builder(classes=10, channels=3, generator=generator(), width=4).eval()
    seen = []
    network.avgpool.register_forward_hook(lambda layer, inputs, output: seen.extend([*inputs, output]))
    network(torch.rand(2, 3, size, size))
    assert torch.equal(*seen)


def with_running_statistics(network: nn.Module) -> nn.Module:
    """In evaluation mode, after three batches of training."""
    with torch.no_grad(), torch.random.fork_rng():
        for seed in range(3):
            network.train()(
                1 + 2 * torch.randn(8, 3, 16, 16, generator=generator(seed)).to(network.fc.weight)
            )
    return network.eval()


@pytest.mark.parametrize("center", [True, False])
def test_reliability_cnn_without_center_is_homogeneous(center: bool) -> None:
    network = with_running_statistics(reliability(width=4, center=center).double())
    assert {name.rpartition(".")[2] for name, _ in network.named_parameters()} == {"weight"}
    images = torch.randn(2, 3, 16, 16, generator=generator(9), dtype=torch.float64)
    with torch.no_grad():
        ratio = network(7 * images) / network(images)
        at_zero = network(torch.zeros_like(images))
    biases = [part.bias for part in canonical(network, images).modules() if isinstance(part, nn.Conv2d)]
    assert len(biases) == 6
    if center:
        assert (ratio - 7).abs().max() > 0.1
        assert at_zero.abs().max() > 1e-3
        assert all(bias.any() for bias in biases)
    else:
        torch.testing.assert_close(ratio, torch.full_like(ratio, 7), rtol=1e-9, atol=0)
        assert not at_zero.any()
        assert not any(bias.any() for bias in biases)


def test_scale_norm_divides_by_the_root_mean_square() -> None:
    norm = ScaleNorm(3).double()
    for buffer in norm.norm.buffers():
        buffer.zero_()
    norm.norm.running_var.fill_(1)
    weight = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    norm.norm.weight.data.copy_(weight)
    images = 3 + torch.randn(4, 3, 5, 6, generator=generator(), dtype=torch.float64)
    expected, running = images.clone(), torch.ones(3, dtype=torch.float64)
    for channel in range(3):
        square = (images[:, channel] ** 2).mean()
        expected[:, channel] *= weight[channel] / (square + 1e-5).sqrt()
        running[channel] = 0.9 + 0.1 * square
    torch.testing.assert_close(norm.train()(images), expected)
    torch.testing.assert_close(norm.norm.running_var, running)
    assert not norm.norm.running_mean.any()
    scale = weight / (running + 1e-5).sqrt()
    torch.testing.assert_close(norm.eval()(images), images * scale[:, None, None])


def test_mnist_cnn_is_the_released_one() -> None:
    network = mnist_cnn(classes=10, channels=1, generator=generator())
    shapes = [tuple(parameter.shape) for parameter in network.parameters() if parameter.ndim > 1]
    assert shapes == [(32, 1, 5, 5), (64, 32, 5, 5), (1024, 64 * 7 * 7), (10, 1024)]
    state = network.state_dict()
    images = torch.randn(2, 1, 28, 28, generator=generator(1))
    x = images
    for conv in ("conv1", "conv2"):
        x = functional.conv2d(x, state[f"{conv}.weight"], state[f"{conv}.bias"], padding=2).relu()
        x = functional.max_pool2d(x, 2)
    hidden = (x.flatten(1) @ state["fc1.weight"].T + state["fc1.bias"]).relu()
    expected = hidden @ state["fc2.weight"].T + state["fc2.bias"]
    with torch.no_grad():
        torch.testing.assert_close(network(images), expected)


def test_initialize_refuses_layers_it_does_not_know() -> None:
    with pytest.raises(TypeError, match=r"no initialization for Conv1d\(1, 2, .*valid: Conv2d, Linear,"):
        initialize(nn.Sequential(nn.Conv1d(1, 2, 3)), generator())


# --- classifier ---------------------------------------------------------------------------------------------


def test_classifier_normalizes_pixels() -> None:
    classifier = small_resnet8().eval()
    pixels = torch.rand(4, 3, 8, 8, generator=generator(2))
    expected = torch.stack(
        [(pixels[:, c] - (0.1, 0.5, 0.9)[c]) / (0.2, 0.3, 0.4)[c] for c in range(3)], dim=1
    )
    torch.testing.assert_close(classifier(pixels), classifier.network(expected))


def test_classifier_refuses_other_images() -> None:
    classifier = small_resnet8()
    with pytest.raises(ValueError, match=r"images \[2, 1, 8, 8\]: expected \[N, 3, H, W\]"):
        classifier(torch.rand(2, 1, 8, 8))
    with pytest.raises(ValueError, match=r"images \[3, 8, 8\]: expected \[N, 3, H, W\]"):
        classifier(torch.rand(3, 8, 8))
    with pytest.raises(ValueError, match=r"images of torch.uint8: expected torch.float32 in \[0, 1\]"):
        classifier(stored_images(2))


def test_classifier_refuses_logits_of_another_shape() -> None:
    classifier = Classifier(nn.Flatten(), classes=7, mean=[0.5], std=[1.0], cam_layer="", concept_layers=[])
    with pytest.raises(ValueError, match=r"logits \[2, 16\] of 2 images: expected \[N, 7\]"):
        classifier(torch.rand(2, 1, 4, 4))


def test_layers_by_name() -> None:
    classifier = small_resnet8()
    assert classifier.layer("layer2.0.relu1") is classifier.network.layer2[0].relu1
    with pytest.raises(ValueError, match="unknown layer 'layer4'"):
        classifier.layer("layer4")


@pytest.mark.parametrize(
    ("mean", "std"),
    [
        ([0.5], [0.2, 0.2]),
        ([0.5], [0.0]),
        ([123.675], [0.2]),
        ([-0.1], [0.2]),
        ([0], [255]),
        ([np.nan], [0.2]),
    ],
)
def test_normalization_that_cannot_be(mean: list[float], std: list[float]) -> None:
    with pytest.raises(ValueError, match=r"^normalization: found .*mean .*std"):
        build(RESNET8, classes=2, mean=mean, std=std, generator=generator())


def no_module(*, classes: int, channels: int, generator: torch.Generator) -> int:
    return classes


class Flat(nn.Module):
    """A network whose constructor takes no arguments."""


flat = Flat()


@pytest.mark.parametrize("name", ["Flat", "flat"])
def test_a_network_in_place_of_its_builder(name: str) -> None:
    function = f"{__name__}:{name}"
    with pytest.raises(
        ValueError, match=rf"^'{function}': .* expected a function of \(\*, classes, channels"
    ):
        build(Blueprint("mine", function, {}), classes=2, mean=[0.5], std=[0.5], generator=generator())


def test_builder_must_return_a_module() -> None:
    function = f"{__name__}:no_module"
    blueprint = Blueprint("mine", function, {}, cam_layer="a", concept_layers=[])
    with pytest.raises(ValueError, match=f"'{function}' returned int; expected a torch.nn.Module"):
        build(blueprint, classes=3, mean=[0.5], std=[1], generator=generator())


def test_digest_sees_values_names_types_and_shapes_only() -> None:
    state = {"a": torch.arange(24.0).reshape(1, 2, 3, 4), "b": torch.tensor(3), "c": torch.ones(2).bfloat16()}
    same = {name: state[name] for name in reversed(state)}
    same["a"] = state["a"].to(memory_format=torch.channels_last)
    assert same["a"].stride() != state["a"].stride()
    assert digest(same) == digest(state)
    others = [
        {**state, "a": state["a"].reshape(2, 1, 3, 4)},
        {**state, "a": state["a"] + torch.eye(4)[2] * 1e-6},
        {**state, "b": torch.tensor(3, dtype=torch.int32)},
        {"a": state["a"], "b": state["b"], "d": state["c"]},
    ]
    assert len({digest(other) for other in [state, *others]}) == 5


# --- inference ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [torch.as_tensor, np.asarray], ids=["tensor", "array"])
def test_logits_by_batches_equal_those_at_once(kind: type) -> None:
    classifier, images = small_resnet8(), stored_images(11)
    with torch.no_grad(), evaluating(classifier):
        expected = classifier(images.float() / 255)
    stored, sizes = kind(images), []
    if kind is np.asarray:
        stored.flags.writeable = False
    classifier.register_forward_pre_hook(lambda module, inputs: sizes.append(len(inputs[0])))
    torch.testing.assert_close(logits(classifier, stored, batch_size=4), expected)
    assert sizes == [4, 4, 3]
    assert classifier.training


def test_logits_of_chosen_images() -> None:
    classifier, images = small_resnet8(), stored_images(11)
    indices = torch.tensor([7, 0, 3, 10, 9])
    chosen = logits(classifier, images, batch_size=2, indices=indices)
    torch.testing.assert_close(chosen, logits(classifier, images, batch_size=11)[indices])


def test_logits_refuse_other_images() -> None:
    with pytest.raises(ValueError, match=r"images of torch.int32: expected torch.uint8"):
        logits(small_resnet8(), torch.ones(3, 3, 8, 8, dtype=torch.int32), batch_size=2)
    with pytest.raises(ValueError, match=r"batch_size: found 0, expected at least 1"):
        logits(small_resnet8(), stored_images(3), batch_size=0)


def test_modes_come_back_part_by_part() -> None:
    classifier = small_resnet8().train()
    classifier.layer("bn1").eval()
    with evaluating(classifier):
        assert not classifier.layer("layer1").training
    assert classifier.layer("layer1").training
    assert not classifier.layer("bn1").training


PRECISIONS = {
    "default": "",
    "generic tf32": "torch.backends.fp32_precision = 'tf32'",
    "generic bf16": "torch.backends.fp32_precision = 'bf16'",
    "generic ieee": "torch.backends.fp32_precision = 'ieee'",
    "medium": "torch.set_float32_matmul_precision('medium')",
    "matmul": "torch.backends.cuda.matmul.fp32_precision = 'tf32'",
    "conv": "torch.backends.cudnn.conv.fp32_precision = 'tf32'",
    "conv none": "torch.backends.cudnn.conv.fp32_precision = 'none'",
    "rnn": "torch.backends.cudnn.rnn.fp32_precision = 'tf32'",
    "oneDNN conv": "torch.backends.mkldnn.conv.fp32_precision = 'bf16'",
    "oneDNN": "torch.backends.mkldnn.set_flags(_fp32_precision='bf16')",
    "legacy on": "torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = True",
    "legacy off": "torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False",
}
EXACT = """
import json, multiprocessing, sys, torch
from saliency_assay.models.inference import exact_float32

SETTINGS = [("generic", "all")] + [(b, o) for b in ("cuda", "mkldnn") for o in ("all", "matmul", "conv", "rnn")]

def attempt(read):
    try:
        return read()
    except RuntimeError:
        return "mixed"

def settings():
    values = {" ".join(key): torch._C._get_fp32_precision_getter(*key) for key in SETTINGS}
    values["legacy matmul"] = attempt(torch.get_float32_matmul_precision)
    values["legacy cuBLAS"] = attempt(lambda: torch.backends.cuda.matmul.allow_tf32)
    values["legacy cuDNN"] = attempt(lambda: torch.backends.cudnn.allow_tf32)
    return values

def everything():
    # Also how the settings answer to the general one, which tells those that are set from those that follow it.
    values = [settings()]
    general = torch.backends.fp32_precision
    for value in ("ieee", "tf32"):
        torch.backends.fp32_precision = value
        values.append(settings())
    torch.backends.fp32_precision = general
    return values

def products():
    generator = torch.Generator().manual_seed(0)
    x, w = torch.randn(2, 64, 64, generator=generator)
    image, kernel = torch.randn(2, 16, 8, 8, generator=generator), torch.randn(16, 16, 3, 3, generator=generator)
    return [(x @ w).tolist(), torch.nn.functional.conv2d(image, kernel).tolist()]

def report(codes):
    exact = products()
    for code in codes:
        exec(code)
    before = everything()
    for turn in range(2):
        with exact_float32():
            inside, equal = settings(), products() == exact
            with exact_float32():
                nested = settings() == inside
    return {"inside": inside, "equal": equal, "nested": nested, "before": before, "after": everything()}

# A process for each case, because torch's initial precision cannot be set again.
with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
    print(json.dumps(pool.map(report, json.loads(sys.argv[1]), chunksize=1)))
"""
CASES = [
    *((name,) for name in PRECISIONS),
    ("medium", "generic ieee"),
    ("generic tf32", "conv none", "legacy off"),
    ("legacy on", "generic bf16", "oneDNN conv"),
]


@pytest.fixture(scope="module")
def around() -> dict[tuple[str, ...], dict[str, Any]]:
    """Torch's settings before, in and after ``exact_float32``, for each of ``CASES``."""
    codes = json.dumps([[PRECISIONS[name] for name in names] for names in CASES])
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-c", EXACT, codes]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return dict(zip(CASES, json.loads(ended.stdout), strict=True))


@pytest.mark.parametrize("names", CASES, ids=" + ".join)
def test_float32_is_exact_whatever_set_its_precision(
    names: tuple[str, ...], around: dict[tuple[str, ...], dict[str, Any]]
) -> None:
    report = around[names]
    inside = report["inside"]
    assert {inside[key] for key in inside if not key.startswith("legacy")} == {"ieee"}
    assert (inside["legacy matmul"], inside["legacy cuBLAS"]) == ("highest", False)
    assert report["equal"]
    assert report["nested"]
    assert report["after"] == report["before"]
