"""Networks against torchvision's, the classifier around them, and logits by batches."""

import numpy as np
import pytest
import torch
from torch import nn
from torchvision import models as torchvision_models

from saliency_assay.models.classifier import Blueprint, Classifier, build, digest
from saliency_assay.models.inference import evaluating, exact_float32, logits, to_pixels
from saliency_assay.models.resnet import initialise, resnet8, resnet18, resnet50

RESNET8 = Blueprint(
    architecture="resnet8",
    function="saliency_assay.models.resnet:resnet8",
    parameters={"width": 4, "stem_stride": 1},
    cam_layer="layer3",
    concept_layers=["layer1", "layer2"],
)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def small() -> Classifier:
    mean, std = [0.1, 0.5, 0.9], [0.2, 0.3, 0.4]
    return build(RESNET8, classes=3, mean=mean, std=std, generator=generator())


def stored_images(count: int) -> torch.Tensor:
    return torch.randint(0, 256, (count, 3, 8, 8), generator=generator(5), dtype=torch.uint8)


def randomise(network: nn.Module) -> None:
    """Give BatchNorm statistics and affine values that matter."""
    for name, tensor in network.state_dict().items():
        if "bn" in name or "downsample.1" in name:
            if tensor.is_floating_point():
                tensor.uniform_(0.5, 1.5, generator=generator(len(name)))


# --- networks -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "builder"), [("resnet18", resnet18), ("resnet50", resnet50)])
@pytest.mark.parametrize("training", [False, True])
def test_equals_torchvision(name: str, builder: type, training: bool) -> None:
    theirs = getattr(torchvision_models, name)(num_classes=7)
    randomise(theirs)
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


def test_initialise_refuses_layers_it_does_not_know() -> None:
    with pytest.raises(TypeError, match=r"no initialisation for Conv1d\(1, 2, .*known: Conv2d without bias"):
        initialise(nn.Sequential(nn.Conv1d(1, 2, 3)), generator())


# --- classifier ---------------------------------------------------------------------------------------------


def test_classifier_normalises_pixels() -> None:
    classifier = small().eval()
    pixels = torch.rand(4, 3, 8, 8, generator=generator(2))
    expected = torch.stack(
        [(pixels[:, c] - (0.1, 0.5, 0.9)[c]) / (0.2, 0.3, 0.4)[c] for c in range(3)], dim=1
    )
    torch.testing.assert_close(classifier(pixels), classifier.network(expected))


def test_classifier_runs_in_float64() -> None:
    assert small().double()(torch.rand(2, 3, 8, 8, dtype=torch.float64)).dtype == torch.float64


def test_classifier_refuses_other_images() -> None:
    classifier = small()
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
    classifier = small()
    assert classifier.layer("layer2.0.relu1") is classifier.network.layer2[0].relu1
    with pytest.raises(
        ValueError, match=r"unknown layer 'layer4'; did you mean 'layer\d'\? valid: avgpool, bn1"
    ):
        classifier.layer("layer4")


@pytest.mark.parametrize(("mean", "std"), [([0.5], [0.2, 0.2]), ([0.5], [0.0])])
def test_normalisation_that_cannot_be(mean: list[float], std: list[float]) -> None:
    with pytest.raises(ValueError, match=r"expected one value a channel, std above 0") as caught:
        build(RESNET8, classes=2, mean=mean, std=std, generator=generator())
    assert str(caught.value).startswith(f"mean {mean}, std {std}")


def no_module(*, classes: int, channels: int, generator: torch.Generator) -> int:
    return classes


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
    classifier, images = small(), stored_images(11)
    with torch.no_grad(), evaluating(classifier):
        expected = classifier(images.float() / 255)
    found = logits(classifier, kind(images), batch_size=4)
    torch.testing.assert_close(found, expected)
    assert classifier.training


def test_logits_of_chosen_images() -> None:
    classifier, images = small(), stored_images(11)
    indices = torch.tensor([7, 0, 3, 10, 9])
    found = logits(classifier, images, batch_size=2, indices=indices)
    torch.testing.assert_close(found, logits(classifier, images, batch_size=11)[indices])


def test_logits_decode_one_batch_at_a_time() -> None:
    classifier, sizes = small(), []
    classifier.register_forward_pre_hook(lambda module, given: sizes.append(len(given[0])))
    logits(classifier, stored_images(11), batch_size=4)
    assert sizes == [4, 4, 3]


def test_logits_accept_read_only_arrays() -> None:
    images = stored_images(3).numpy()
    images.flags.writeable = False
    assert logits(small(), images, batch_size=2).shape == (3, 3)


def test_logits_refuse_other_images() -> None:
    with pytest.raises(ValueError, match=r"images of torch.float32: expected torch.uint8"):
        logits(small(), torch.rand(3, 3, 8, 8), batch_size=2)
    with pytest.raises(ValueError, match=r"batch_size: found 0, expected at least 1"):
        logits(small(), stored_images(3), batch_size=0)


def test_to_pixels_spans_zero_to_one() -> None:
    pixels = to_pixels(torch.tensor([0, 51, 255], dtype=torch.uint8).reshape(1, 1, 1, 3))
    assert pixels.flatten().tolist() == pytest.approx([0.0, 0.2, 1.0])
    assert pixels.dtype == torch.float32


def test_modes_come_back_part_by_part() -> None:
    classifier = small().train()
    classifier.layer("bn1").eval()
    with evaluating(classifier):
        assert not classifier.layer("layer1").training
    assert classifier.layer("layer1").training
    assert not classifier.layer("bn1").training


def test_tf32_is_off_inside_and_as_before_outside() -> None:
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    before = cudnn.allow_tf32, matmul.allow_tf32
    cudnn.allow_tf32 = matmul.allow_tf32 = True
    try:
        with exact_float32():
            assert (cudnn.allow_tf32, matmul.allow_tf32) == (False, False)
        assert (cudnn.allow_tf32, matmul.allow_tf32) == (True, True)
    finally:
        cudnn.allow_tf32, matmul.allow_tf32 = before
