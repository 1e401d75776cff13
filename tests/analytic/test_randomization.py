"""The randomization check against SciPy, linear models and models changed by hand."""

from collections.abc import Callable, Sequence
from copy import deepcopy

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from skimage.metrics import structural_similarity
from support import (
    CLASSES,
    conv_classifier,
    cyclic_targets,
    generator,
    random_images,
    with_random_state,
)
from torch import Tensor, nn
from torch.nn import functional

from saliency_assay.methods.differentiate import input_gradient
from saliency_assay.metrics import METRICS
from saliency_assay.metrics.randomization import (
    Stage,
    called_modules,
    likeness,
    randomization,
    staged,
    weight_layers,
)
from saliency_assay.metrics.scored import Scored
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.cnn import mnist_cnn, reliability_cnn, vgg16, vgg16_bn
from saliency_assay.models.resnet import resnet8
from saliency_assay.models.state import copy_of
from saliency_assay.registry.directions import Direction

NAN = float("nan")
MEASURES = ("spearman", "spearman_absolute", "ssim")


def gradients(model: nn.Module) -> Callable[..., Tensor]:
    """``max_explained_images`` of the gradient."""

    def explain(images: Tensor, targets: Tensor, model: nn.Module = model) -> Tensor:
        return input_gradient(model, images, targets)

    return explain


def check(
    model: nn.Module,
    randomized_model: nn.Module,
    images: Tensor,
    *,
    explain: Callable[..., Tensor] | None = None,
    stages: int = 8,
) -> Scored:
    explain, targets = explain or gradients(model), cyclic_targets(len(images))
    maps = explain(images, targets)
    return randomization(
        model,
        images,
        targets,
        maps,
        generator=generator(),
        explain=explain,
        randomized_model=randomized_model,
        stages=stages,
    )


# ---------------------------------------------------------------------------------------------- measures


def some_maps(size: int = 9, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """Pairs of maps: random; with ties; one constant; one NaN; one ±1; one both; equal; one zero."""
    first, second = torch.randn(2, 8, size, size + 2, generator=generator(4), dtype=dtype)
    first[1], second[1] = first[1].round(), second[1].round()
    first[2] = 0.3
    second[3, 1, 1] = NAN
    first[4] = first[4].sign()
    second[5] = first[5] ** 2
    second[6] = first[6]
    second[7] = 0
    return first, second


def plain_likeness(first: np.ndarray, second: np.ndarray, window: int = 7) -> list[float]:
    def order(one: np.ndarray, other: np.ndarray) -> float:
        if any(np.isnan(each).any() or each.max() == each.min() for each in (one, other)):
            return NAN
        return float(spearmanr(one.ravel(), other.ravel()).statistic)

    signed = order(first, second)
    if np.isnan(signed):
        return [signed, order(abs(first), abs(second)), NAN]
    scaled = first / abs(first).max(), second / abs(second).max()
    return [
        signed,
        order(abs(first), abs(second)),
        float(structural_similarity(*scaled, win_size=window, data_range=2)),
    ]


@pytest.mark.parametrize(("size", "window"), [(9, 7), (6, 5), (3, 3)])
def test_likeness_is_scipys_and_scikit_images(size: int, window: int) -> None:
    first, second = some_maps(size)
    scores = likeness(first, second)
    assert scores.dtype == torch.float64
    expected = [plain_likeness(*pair, window) for pair in zip(first.numpy(), second.numpy(), strict=True)]
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)
    undefined = [(False,) * 3] * 8
    undefined[2] = undefined[3] = undefined[7] = (True,) * 3
    undefined[4] = (False, True, False)  # of ±1 the sizes are constant
    assert [tuple(row) for row in scores.isnan().tolist()] == undefined


@pytest.mark.parametrize("measure", MEASURES)
def test_an_unrelated_map_is_better_than_the_same_one_and_than_its_reverse(measure: str) -> None:
    """A reversed map has the negative likeness of one that the model decides as much as before."""
    first, second = torch.rand(2, 50, 24, 24, generator=generator(3))
    index = MEASURES.index(measure)
    (direction,) = (
        score.direction
        for metric in METRICS
        for score in metric.scores
        if score.name == f"randomization_{measure}"
    )
    same, reverse, unrelated = (
        Direction(direction).oriented(likeness(first, other)[:, index].numpy())
        for other in (first, 1 - first, second)
    )
    assert (likeness(first, 1 - first)[:, index] < -0.4).all()
    assert (unrelated > same).all()
    assert (unrelated > reverse).all()


def test_ssim_needs_three_pixels_and_spearman_does_not() -> None:
    scores = likeness(*some_maps(2))
    assert scores[:, 2].isnan().all()
    assert scores[[0, 1, 6], :2].isfinite().all()


# ------------------------------------------------------------------------------------------------ stages


def image(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return random_images(1, size=32, dtype=dtype)


def owners(stage: Stage) -> list[str]:
    """The modules whose tensors a stage has, in order."""
    return list(dict.fromkeys(name.rpartition(".")[0] for name in stage.tensors))


def test_a_resnet_is_grouped_from_its_head() -> None:
    model = resnet8(classes=CLASSES, channels=3, generator=generator(), width=4)
    parts = staged(model, image(), 4)
    heads = ["layer3.0.downsample.0", "layer2.0.downsample.0", "layer1.0.conv2"]
    assert [part.layer for part in parts] == ["fc", *heads]
    layers = [f"layer1.0.{name}" for name in ("conv2", "bn2", "conv1", "bn1")]
    assert owners(parts[0]) == ["fc"]
    assert owners(parts[3]) == [*layers, "conv1", "bn1"]
    assert {"layer1.0.bn2.running_var", "layer1.0.bn2.num_batches_tracked"} < {*parts[3].tensors}


@pytest.mark.parametrize("stages", [1, 2, 8, 50])
@pytest.mark.parametrize("build", [resnet8, vgg16, vgg16_bn, mnist_cnn, reliability_cnn])
def test_groups_are_even_and_hold_every_tensor_once(build: Callable[..., nn.Module], stages: int) -> None:
    few = {"hidden": 8, "pooled": 1} if build in (vgg16, vgg16_bn) else {}
    few |= {"hidden": 8} if build is mnist_cnn else {}
    model = build(classes=CLASSES, channels=3, generator=generator(), width=4, **few)
    layers = weight_layers(called_modules(model, model, image()))
    parts = staged(model, image(), stages)
    weighted = [name for name, own in model.named_parameters() if own.ndim >= 2]
    assert [path for path, _ in layers] == [name.rpartition(".")[0] for name in weighted]
    assert len(parts) == min(stages, len(layers))
    assert parts[0].layer == layers[-1][0]
    sizes = [sum(name in weighted for name in part.tensors) for part in parts]
    assert sizes[0] == 1
    if stages > 1:
        names = [name for part in parts for name in part.tensors]
        assert sorted(names) == sorted(model.state_dict())
        assert max(sizes[1:]) - min(sizes[1:]) <= 1
        assert sizes[1:] == sorted(sizes[1:], reverse=True)


def test_a_norm_ahead_of_all_weights_goes_with_the_first_and_a_bare_buffer_stays() -> None:
    model = nn.Sequential(
        nn.BatchNorm2d(3, affine=False), nn.BatchNorm2d(3), nn.Conv2d(3, 4, 1), nn.Linear(32, 2)
    )
    parts = staged(model, image(), 2)
    assert [owners(part) for part in parts] == [["3"], ["1", "2"]]
    follows = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4, affine=False))
    assert [owners(part) for part in staged(follows, image(), 2)] == [["0", "1"]]


def test_buffers_that_are_not_saved_are_left_out() -> None:
    model = nn.Linear(32, 2)
    model.register_buffer("scratch", torch.zeros(1), persistent=False)
    assert staged(model, image(), 1) == [Stage("", ("weight", "bias"))]


def test_of_a_classifier_the_normalization_of_pixels_stays() -> None:
    model = conv_classifier()
    parts = staged(model, image(torch.float64), 8)
    assert [part.layer for part in parts] == ["body.10", "body.4", "body.0"]
    names = {name for part in parts for name in part.tensors}
    assert {*model.state_dict()} - names == {"mean", "std"}


# --------------------------------------------------------------------------------------------- the check


def replaced_by_hand(model: nn.Module, randomized_model: nn.Module, prefixes: Sequence[str]) -> nn.Module:
    changed = deepcopy(model)
    new = randomized_model.state_dict()
    for name, tensor in changed.state_dict().items():
        if name.startswith(tuple(prefixes)):
            tensor.copy_(new[name])
    return changed


LAYERS = {  # of ``conv_classifier``, from the output down, BatchNorm with its convolution
    "body.10": ["network.body.10."],
    "body.4": ["network.body.4.", "network.body.5."],
    "body.0": ["network.body.0.", "network.body.1."],
}


def test_every_stage_is_the_model_changed_by_hand() -> None:
    model, randomized_model, images = conv_classifier(), conv_classifier(seed=2), random_images(5)
    scored = check(model, randomized_model, images)
    targets, names = cyclic_targets(5), list(LAYERS)
    before = input_gradient(model, images, targets).sum(1).numpy()
    variants = []
    for order in ("cascading", "independent"):
        rows = {measure: [[1.0] * 5] for measure in MEASURES}
        for number, layer in enumerate(names, start=1):
            chosen = names[:number] if order == "cascading" else [layer]
            changed = replaced_by_hand(
                model, randomized_model, [prefix for name in chosen for prefix in LAYERS[name]]
            )
            after = input_gradient(changed, images, targets).sum(1).numpy()
            likenesses = [plain_likeness(*pair) for pair in zip(before, after, strict=True)]
            variant = f"{order} {number} {layer}"
            variants.append(variant)
            for index, measure in enumerate(MEASURES):
                values = [each[index] for each in likenesses]
                rows[measure].append(values)
                score = scored.scores[f"randomization_{measure}", variant]
                np.testing.assert_allclose(score, values, rtol=1e-10, atol=1e-12)
        for measure, columns in rows.items():
            curve = scored.curves[f"{order}_{measure}"]
            np.testing.assert_allclose(curve, np.transpose(columns), rtol=1e-10, atol=1e-12)
    assert set(scored.scores) == {
        (f"randomization_{measure}", variant) for measure in MEASURES for variant in variants
    }
    assert len(scored.curves) == 6
    ends = [scored.curves[f"{order}_spearman"][:, -1] for order in ("cascading", "independent")]
    assert not np.allclose(*ends)


def test_a_method_that_ignores_the_model_gives_one() -> None:
    def edges(images: Tensor, targets: Tensor, model: nn.Module | None = None) -> Tensor:
        return images - images.roll(1, dims=3)

    scored = check(conv_classifier(), conv_classifier(seed=2), random_images(4), explain=edges)
    for score in scored.scores.values():
        np.testing.assert_allclose(score, [1] * 4, rtol=1e-12)


def test_undefined_maps_are_nan_and_only_they() -> None:
    """Of the model as it is the first map is NaN, the second constant; of a random one the third is zero."""
    model = conv_classifier()

    def explain(images: Tensor, targets: Tensor, model: nn.Module = model) -> Tensor:
        maps = input_gradient(model, images, targets)
        if model is trained:
            maps[0, 1, 2, 3], maps[1] = NAN, 0.5
        else:
            maps[2] = 0
        return maps

    trained = model
    scored = check(model, conv_classifier(seed=2), random_images(5), explain=explain)
    for score in scored.scores.values():
        assert score.isnan().tolist() == [True, True, True, False, False]
    for curve in scored.curves.values():
        assert curve[:, 0].isnan().tolist() == [True, True, False, False, False]


def test_a_predict_without_weights_to_replace_is_refused() -> None:
    model, images = conv_classifier(), random_images(2)
    maps = gradients(model)(images, cyclic_targets(2))

    def run(predict: Callable[[Tensor], Tensor], randomized_model: nn.Module) -> None:
        randomization(
            predict,
            images,
            cyclic_targets(2),
            maps,
            generator=generator(),
            explain=gradients(model),
            randomized_model=randomized_model,
        )

    with pytest.raises(ValueError, match=r"^predict: found function, expected a torch\.nn\.Module\b"):
        run(lambda batch: batch, model)
    with pytest.raises(ValueError, match=r"^predict: found no parameter of two axes or more\b"):
        run(nn.Identity(), nn.Identity())


def test_a_randomized_model_of_another_architecture_is_refused() -> None:
    model, images = conv_classifier(), random_images(2)
    with pytest.raises(
        ValueError, match=r"^randomized_model: found \[1, 1, 1, 1\] for mean, expected \[1, 3"
    ):
        check(model, conv_classifier(channels=1), images)
    with pytest.raises(
        ValueError, match=r"^randomized_model: found \[5\] for body\.0\.bias, expected none\b"
    ):
        check(model, model.network, images)


class Cosine(nn.Module):
    """The weights of the head are used, but the head is not called; the auxiliary layer is not used."""

    def __init__(self) -> None:
        super().__init__()
        self.head, self.auxiliary = nn.Linear(4, CLASSES, bias=False), nn.Linear(4, CLASSES)
        self.second, self.first = nn.Conv2d(4, 4, 1), nn.Conv2d(3, 4, 1)

    def forward(self, images: Tensor) -> Tensor:
        features = self.second(self.first(images).relu()).mean((2, 3))
        return functional.linear(features, functional.normalize(self.head.weight))


@pytest.mark.parametrize("is_scripted", [False, True])
@pytest.mark.filterwarnings("ignore:`torch.jit.script")
def test_the_order_is_that_in_which_weights_are_used(is_scripted: bool) -> None:
    model = Cosine().eval()
    model = torch.jit.script(model) if is_scripted else model
    stages = staged(model, random_images(1, size=4, dtype=torch.float32), 50)
    assert [stage.layer for stage in stages][:3] == ["head", "second", "first"]
    assert {parameter.requires_grad for parameter in model.parameters()} == {True}


class Extras(nn.Module):
    """A second name of the first layers, tied weights, a head that the logits do not read, and an unused layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 4, 1), nn.Conv2d(4, 4, 1), nn.Conv2d(4, 4, 1))
        self.head, self.auxiliary, self.unused = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
        self.first, self.layers[1].weight = self.layers[0], self.layers[2].weight

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        features = self.layers(images).mean((2, 3))
        return self.head(features), self.auxiliary(features)


def test_every_name_of_a_tensor_is_replaced_and_what_the_logits_do_not_read_is_not() -> None:
    model = Classifier(Extras(), classes=4, mean=[0.0] * 3, std=[1.0] * 3, cam_layer="", concept_layers=[])
    stages = staged(model, random_images(1, size=4, dtype=torch.float32), 50)
    assert [stage.layer for stage in stages] == ["head", "layers.2", "layers.0"]
    of_layer = {stage.layer: {name.removeprefix("network.") for name in stage.tensors} for stage in stages}
    assert {"layers.1.weight", "layers.2.weight"} < of_layer["layers.2"]
    assert {"layers.0.weight", "first.weight", "layers.0.bias", "first.bias"} < of_layer["layers.0"]
    assert not any("auxiliary" in name or "unused" in name for name in set().union(*of_layer.values()))


@pytest.mark.parametrize("kind", ["orthogonal", "spectral_norm", "weight_norm"])
def test_parametrizations_are_randomized_with_their_layer(kind: str) -> None:
    def network(seed: int) -> nn.Sequential:
        layers = nn.Sequential(nn.Conv2d(3, 4, 1), nn.Tanh(), nn.Flatten(), nn.Linear(64, CLASSES))
        with_random_state(layers, seed, torch.float32)
        getattr(nn.utils.parametrizations, kind)(layers[3])
        return layers.eval()

    trained, randomized, images = network(1), network(2), random_images(3, size=4, dtype=torch.float32)
    expected = deepcopy(trained)
    expected[3].load_state_dict(randomized[3].state_dict())
    head, first = staged(trained, images, 2)
    assert set(owners(head)) | set(owners(first)) >= {"0", "3.parametrizations.weight"}
    changed = deepcopy(trained)
    changed.load_state_dict(
        {**trained.state_dict(), **{name: randomized.state_dict()[name] for name in head.tensors}}
    )
    torch.testing.assert_close(changed(images), expected(images))


@pytest.mark.filterwarnings("ignore")
def test_a_network_that_keeps_results_of_its_last_pass_is_copied() -> None:
    model = nn.utils.weight_norm(nn.Linear(12, CLASSES))
    network = nn.Sequential(nn.Flatten(), model)
    network.kept = {"last": [network(torch.rand(2, 3, 2, 2))]}
    copied = copy_of(network)
    images = torch.rand(2, 3, 2, 2)
    assert torch.equal(copied(images), network(images))
    assert not copied.kept["last"][0].requires_grad
