"""TCAV against worked examples, plain loops, finite differences and scipy."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.linear_model import SGDClassifier
from support import CLASSES, classifier, conv_classifier, exact, random_images, state_of
from torch import Tensor, nn

from saliency_assay.data.splits import TEST, TRAIN
from saliency_assay.models.classifier import Classifier
from saliency_assay.studies.bam.tcav import (
    KINDS,
    LOGITS,
    Examples,
    activation_vector,
    directional_derivatives,
    examples_of,
    images_under_test,
    layer_test,
    tcav,
)

NAN = float("nan")
SIZE = 4
PIXELS = 3 * SIZE * SIZE


def seeded(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def stored(count: int, seed: int = 0, size: int = SIZE) -> np.ndarray:
    return seeded(seed).integers(0, 256, size=(count, 3, size, size), dtype=np.uint8)


def with_layers(model: Classifier, *layers: str) -> Classifier:
    """The same model, with concept layers; in float32, as stored images are read."""
    model.concept_layers = layers
    return model.float()


def linear_classifier(weight: Tensor) -> Classifier:
    """Logits that are ``weight [K, 48]`` times the normalized pixels, which the first layer hands on."""
    head = nn.Linear(PIXELS, CLASSES, bias=False)
    head.weight.data.copy_(weight)
    return with_layers(classifier(nn.Sequential(nn.Flatten(), head), "0"), "0")


def pooled(having: np.ndarray, lacking: np.ndarray, each_its_scene: bool = True) -> Examples:
    count = len(having)
    scene = np.arange(count) if each_its_scene else np.arange(count) // 2
    everything, split = np.ones(count, dtype=bool), np.full(count, TRAIN)
    return examples_of("dog", having, lacking, has_concept=everything, split=split, scene=scene)


def bright_pixel(count: int = 40) -> Examples:
    """The concept is that the very first value is bright; all else is noise, the same with and without."""
    lacking = stored(count)
    lacking[:, 0, 0, 0] = 0
    having = lacking.copy()
    having[:, 0, 0, 0] = 255
    return pooled(having, lacking)


# ------------------------------------------------------------------------------------------- the CAV


def two_clouds(direction: Tensor, count: int = 60, shift: float = 3) -> tuple[Tensor, np.ndarray]:
    """Examples ``[2 · count, F]`` around ±``direction``, the first half towards it."""
    noise = torch.randn(2 * count, len(direction), generator=torch.Generator().manual_seed(0))
    has = np.arange(2 * count) < count
    return noise.double() + shift * torch.tensor(np.where(has, 1, -1))[:, None] * direction, has


@pytest.mark.parametrize("features", [7, 300])
def test_the_cav_is_that_of_scikit_learn_on_all_features(features: int) -> None:
    """Fewer features than examples, and more; the classifier is trained in another basis. It points to the concept."""
    activations, has = two_clouds(torch.eye(features).double()[0], shift=0.5)
    machine = SGDClassifier(loss="hinge", alpha=0.1, random_state=3).fit(activations.numpy(), has)
    expected = machine.coef_[0] / np.linalg.norm(machine.coef_[0])
    exact(activation_vector(activations, has, alpha=0.1, seed=3), expected, 1e-6, floor=1e-9)


def test_examples_that_are_all_alike_have_no_direction() -> None:
    alike = torch.full((20, 6), 0.3)
    assert activation_vector(alike, np.arange(20) < 10, alpha=0.1, seed=0).isnan().all()
    alike[3, 2] = 0.4
    assert activation_vector(alike, np.arange(20) < 10, alpha=0.1, seed=0).isfinite().all()


# --------------------------------------------------------------------------- directional derivatives


def smooth_classifier() -> Classifier:
    """Two layers with a curved response behind each, in float64."""
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(3, 5, 3), nn.Tanh(), nn.Conv2d(5, 4, 2), nn.Softplus(), nn.Flatten(), nn.Linear(4, CLASSES)
    )
    model = classifier(network, "0")
    model.concept_layers = ("1", "2", "5")
    return model


def from_layer(model: Classifier, layer: int, activations: Tensor) -> Tensor:
    """h_l: the logits of what a layer gave."""
    for part in list(model.network)[layer + 1 :]:
        activations = part(activations)
    return activations


def test_derivatives_are_finite_differences_along_the_vector() -> None:
    model, pixels, targets = smooth_classifier(), random_images(5, size=SIZE), torch.tensor([0, 1, 2, 3, 1])
    generator, vectors, expected = torch.Generator().manual_seed(1), {}, {}
    for name in model.concept_layers:
        layer = int(name)
        activations = model.network[: layer + 1]((pixels - model.mean) / model.std).detach()
        vectors[name] = torch.randn(3, activations[0].numel(), generator=generator, dtype=torch.float64)
        step = 1e-5 * vectors[name].reshape(3, 1, *activations.shape[1:])
        ahead, behind = (
            from_layer(model, layer, (activations + sign * step).flatten(0, 1)) for sign in (1, -1)
        )
        slope = ((ahead - behind) / 2e-5).reshape(3, 5, CLASSES)
        expected[name] = slope[:, torch.arange(5), targets].T.detach()
    slopes = directional_derivatives(model, pixels, targets, vectors)
    assert list(slopes) == list(vectors)
    for name, values in expected.items():
        assert slopes[name].shape == (5, 3)
        exact(slopes[name], values, 1e-6, floor=1e-8)


class InPlaceNet(nn.Module):
    """A layer whose output the next step overwrites."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.relu = nn.ReLU(inplace=True)
        self.head = nn.Linear(4, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.relu(self.conv(images)).mean((2, 3)))


def test_a_layer_that_is_overwritten_is_read_before() -> None:
    """The ReLU passes no negative value of the convolution on."""
    model = classifier(InPlaceNet(), "conv")
    model.concept_layers = ("conv",)
    pixels, targets = random_images(4, size=SIZE), torch.tensor([0, 1, 2, 3])
    activations = model.network.conv((pixels - model.mean) / model.std).detach()
    assert bool((activations < 0).any())
    weight = model.network.head.weight.detach()[targets] / activations[0, 0].numel()
    expected = (weight[:, :, None, None] * (activations > 0)).flatten(1)
    every = torch.eye(activations[0].numel(), dtype=torch.float64)
    exact(directional_derivatives(model, pixels, targets, {"conv": every})["conv"], expected)


# ------------------------------------------------------------------------------------------ the score


@pytest.mark.parametrize(("sign", "share"), [(1.0, 1.0), (-1.0, 0.0), (0.0, 0.0)])
def test_a_linear_model_that_reads_the_concept_alone(sign: float, share: float) -> None:
    """The logit of class 1 rises with the concept's pixel, falls with it, or does not know it: not strictly above."""
    weight = torch.zeros(CLASSES, PIXELS)
    weight[1, 0] = sign
    scores = tcav(
        linear_classifier(weight), bright_pixel(), stored(9), np.full(9, 1), 4, images=12, generator=seeded()
    )
    assert list(scores) == ["0", LOGITS]
    assert scores["0"]["concept"].tolist() == [share] * 20
    if not sign:
        assert scores["0"]["random"].tolist() == [0] * 20


def plain_tcav(model: Classifier, examples: Examples, tested: np.ndarray, targets: np.ndarray) -> Any:
    """The scores of three experiments with six images, one image and one derivative at a time."""
    shares: dict[str, dict[str, list[float]]] = {}
    pixels = torch.tensor(tested).float() / 255
    for kind, parent in zip(KINDS, seeded(7).spawn(2), strict=True):
        for child in parent.spawn(3):
            if kind == "concept":
                positive = child.choice(examples.with_concept, 6, replace=False)
                scenes = set(examples.scene[positive].tolist())
                others = [index for index in examples.without if examples.scene[index] not in scenes]
                negative = child.choice(others, 6, replace=False)
                sampled = np.concatenate([examples.having[positive], examples.lacking[negative]])
            else:
                sampled = examples.lacking[child.choice(examples.without, (2, 6), replace=False).ravel()]
            seed = int(child.integers(2**31))
            shown = torch.tensor(sampled).float() / 255
            for layer, depth in (("body.2", 3), ("body.6", 7), (LOGITS, 11)):
                activations = model.network.body[:depth]((shown - model.mean) / model.std).flatten(1)
                machine = SGDClassifier(alpha=0.05, random_state=seed)
                machine.fit(activations.detach().double().numpy(), [1] * 6 + [0] * 6)
                rises = 0
                for image, target in zip(pixels, targets, strict=True):
                    here = model.network.body[:depth]((image[None] - model.mean) / model.std)
                    here = here.detach().requires_grad_()
                    logits = model.network.body[depth:](here) if depth < 11 else here
                    slope = torch.autograd.grad(logits[0, target], here)[0].flatten().double().numpy()
                    rises += slope @ machine.coef_[0] > 0
                shares.setdefault(layer, {}).setdefault(kind, []).append(rises / len(targets))
    return shares


def test_scores_equal_plain_loops_for_any_batch() -> None:
    model = with_layers(conv_classifier(), "body.2", "body.6")
    having, lacking, tested = stored(30, 1, 8), stored(30, 2, 8), stored(11, 3, 8)
    examples, targets = pooled(having, lacking, each_its_scene=False), np.arange(11) % CLASSES
    expected = plain_tcav(model, examples, tested, targets)
    parameters = {"images": 6, "experiments": 3, "alpha": 0.05}
    for batch_size in (1, 4, 50):
        outcome = tcav(model, examples, tested, targets, batch_size, **parameters, generator=seeded(7))
        assert list(outcome) == ["body.2", "body.6", LOGITS]
        for layer, kinds in outcome.items():
            for kind in KINDS:
                exact(kinds[kind], np.array(expected[layer][kind]))
    spread = {score for kinds in expected.values() for scores in kinds.values() for score in scores}
    assert len(spread) > 4


def test_a_layer_that_gives_the_logits_is_not_counted_twice() -> None:
    model, examples = with_layers(conv_classifier(), "body.2", "body.10"), bright_pixel()
    scores = tcav(model, examples, stored(3), np.arange(3), 2, images=5, experiments=2, generator=seeded())
    assert list(scores) == ["body.2", "body.10"]


def test_the_model_is_left_as_it_was() -> None:
    model = with_layers(conv_classifier(), "body.2", "body.6")
    model.train()
    model.network.body[4].eval()
    before = state_of(model)
    targets = np.arange(5) % CLASSES
    tcav(model, bright_pixel(), stored(5), targets, 2, images=4, experiments=2, generator=seeded())
    assert state_of(model) == before
    assert model.concept_layers == ("body.2", "body.6")


def test_without_images_under_test_there_are_no_scores() -> None:
    model = with_layers(conv_classifier(), "body.2")
    none = np.empty(0, dtype=np.int64)
    scores = tcav(model, bright_pixel(), stored(0), none, 4, images=5, experiments=3, generator=seeded())
    assert list(scores) == ["body.2", LOGITS]
    for kinds in scores.values():
        for kind in KINDS:
            exact(kinds[kind], np.full(3, NAN))


def test_a_layer_with_equal_activations_has_no_score() -> None:
    """Its ReLU is never above 0; the logits are then the same for all images, too."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(PIXELS, 5), nn.ReLU(), nn.Linear(5, CLASSES))
    network[1].weight.data.zero_()
    network[1].bias.data.fill_(-1)
    model = with_layers(classifier(network, "0"), "0", "2")
    scores = tcav(
        model, bright_pixel(), stored(3), np.arange(3), 2, images=5, experiments=2, generator=seeded()
    )
    exact(scores["2"]["concept"], [NAN, NAN])
    exact(scores[LOGITS]["random"], [NAN, NAN])
    assert scores["0"]["concept"].tolist() == [0, 0]  # no logit depends on it: no derivative is above 0


# ------------------------------------------------------------------------------- examples and images


def test_examples_are_training_images_one_of_each_scene() -> None:
    split = np.array([TRAIN, TEST, TRAIN, TRAIN, TRAIN, TEST, TRAIN])
    scene = np.array([4, 4, 9, 4, 2, 7, 9])
    has = np.array([1, 1, 0, 1, 0, 1, 1], dtype=bool)
    examples = examples_of("dog", stored(7), stored(7), has_concept=has, split=split, scene=scene)
    assert examples.with_concept.tolist() == [0, 3, 6]
    assert examples.without.tolist() == [0, 2, 4]


class Watched:
    """Images that remember the indices that were read."""

    def __init__(self, images: np.ndarray) -> None:
        self.images, self.read = images, list[list[int]]()

    def __getitem__(self, indices: np.ndarray) -> np.ndarray:
        self.read.append(indices.tolist())
        return self.images[indices]


def test_the_two_sides_of_a_cav_are_of_other_scenes() -> None:
    having, lacking = Watched(stored(60, 1)), Watched(stored(60, 2))
    scene = np.tile(np.arange(20), 3)
    split, has = np.full(60, TRAIN), np.arange(60) < 40
    examples = examples_of("dog", having, lacking, has_concept=has, split=split, scene=scene)
    model, targets = linear_classifier(torch.ones(CLASSES, PIXELS)), np.zeros(2, dtype=np.int64)
    tcav(model, examples, stored(2), targets, 2, images=10, experiments=5, generator=seeded())
    lacking.read.pop(0)  # the image that layers are listed with
    assert len(having.read) == 5
    assert len(lacking.read) == 15
    assert len({tuple(indices) for indices in [*having.read, *lacking.read]}) == 20  # new samples each time
    for concept, without in zip(having.read, lacking.read[:5], strict=True):
        assert len(set(concept)) == len(set(without)) == 10
        assert not set(scene[concept]) & set(scene[without])
        assert max(concept) < 40
    for first, second in zip(lacking.read[5::2], lacking.read[6::2], strict=True):
        assert len({*scene[first], *scene[second]}) == 20


def test_a_concept_with_too_few_images_is_refused() -> None:
    model, few = linear_classifier(torch.ones(CLASSES, PIXELS)), pooled(stored(11), stored(11))
    targets = np.zeros(2, dtype=np.int64)
    for images, kind in ((12, "images with it"), (6, "scenes")):
        with pytest.raises(ValueError, match=rf"^concept 'dog': found 11 {kind}.* at least 12$"):
            tcav(model, few, stored(2), targets, 2, images=images, generator=seeded())
    tcav(model, few, stored(2), targets, 2, images=5, experiments=2, generator=seeded())


def test_targets_that_do_not_fit_are_refused() -> None:
    model = linear_classifier(torch.ones(CLASSES, PIXELS))
    with pytest.raises(ValueError, match=r"^targets: found class 4, expected 0 to 3$"):
        tcav(model, bright_pixel(), stored(2), np.array([0, 4]), 2, images=5, generator=seeded())
    with pytest.raises(ValueError, match=r"^targets: found int64 \[3\] for 2 images, expected int64 \[N\]"):
        tcav(model, bright_pixel(), stored(2), np.arange(3), 2, images=5, generator=seeded())


class Twice(nn.Module):
    """A ReLU that is called twice, and a part that gives two tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.relu, self.parted, self.head = nn.ReLU(), Parted(), nn.Linear(PIXELS, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        first, second = self.parted(self.relu(images).flatten(1))
        return self.head(self.relu(first + second))


class Parted(nn.Module):
    def forward(self, values: Tensor) -> tuple[Tensor, Tensor]:
        return values, 2 * values


@pytest.mark.parametrize(
    ("layer", "output"), [("relu", "2 outputs"), ("parted", r"\(tensor"), ("unused", "0 outputs")]
)
def test_a_layer_without_one_output_is_refused(layer: str, output: str) -> None:
    network = Twice()
    network.unused = nn.ReLU()
    model = with_layers(classifier(network, "relu"), layer)
    with pytest.raises(ValueError, match=rf"^concept_layers: '{layer}': found {output}"):
        tcav(model, bright_pixel(), stored(2), np.arange(2), 2, images=5, generator=seeded())


def test_activations_that_are_not_finite_are_refused() -> None:
    model = linear_classifier(torch.ones(CLASSES, PIXELS))
    model.mean[0, 1] = NAN
    message = r"^concept_layers: '0': found NaN or infinity, expected finite activations$"
    with pytest.raises(ValueError, match=message):
        tcav(model, bright_pixel(), stored(2), np.arange(2), 2, images=5, generator=seeded())


def test_images_under_test_have_all_labels_and_correct_predictions() -> None:
    split = np.array([TEST, TEST, TRAIN, TEST, TEST, TEST, TEST])
    labels = {"label_object": np.array([2, 2, 2, 1, 2, 2, 2]), "label_scene": np.array([0, 0, 0, 0, 1, 0, 0])}
    right = np.array([1, 0, 1, 1, 1, 1, 1], dtype=bool)
    where = {"label_object": 2, "label_scene": 0}
    assert images_under_test(split, labels, where, right, limit=9, seed=0).tolist() == [0, 5, 6]
    assert images_under_test(split, labels, {}, right, limit=9, seed=0).tolist() == [0, 3, 4, 5, 6]
    assert split.tolist()[2] == TRAIN


def test_models_share_the_images_under_test_that_both_are_right_about() -> None:
    split, count = np.full(400, TEST), 100
    first, second = (seeded(seed).random(400) < 0.9 for seed in (1, 2))
    one, two = (images_under_test(split, {}, {}, right, limit=count, seed=3) for right in (first, second))
    assert len(one) == len(two) == count
    assert first[one].all()
    assert second[two].all()
    assert (np.diff(one) > 0).all()
    assert len(set(one) & set(two)) > 75  # about 100 · 0.9; two independent samples would share 25
    assert one.max() > 300  # not the first of the set


# ------------------------------------------------------------------------------------------ the test


def test_p_is_that_of_scipy() -> None:
    rng = seeded()
    for size in (2, 5, 30):
        concept, random = rng.random(size), rng.random(10)
        p, _ = layer_test(concept, random)
        assert p == pytest.approx(float(stats.ttest_ind(concept, random).pvalue), rel=1e-10)
    assert layer_test(random, concept)[0] == layer_test(concept, random)[0]  # two-sided


@pytest.mark.parametrize(
    ("concept", "random", "p", "counts"),
    [
        ([1, 1, 1], [0, 0, 0], 0, True),
        ([0.1, 0.1, 0.1], [0.3, 0.3, 0.3], 0, True),
        ([0.1, 0.1, 0.1], [0.1, 0.1], 1, False),  # whose means differ by rounding
        ([NAN, 1, 1], [0, 0, 0], NAN, False),
        ([1, 1, 1], [0, NAN, 0], NAN, False),
        ([1], [0, 0, 0], NAN, False),
        ([1, 1], [0], NAN, False),
        ([], [], NAN, False),
    ],
)
def test_scores_that_do_not_vary_or_are_none(
    concept: list[float], random: list[float], p: float, counts: bool
) -> None:
    result = layer_test(np.array(concept, dtype=float), np.array(random, dtype=float))
    assert result == (pytest.approx(p, nan_ok=True), counts)


def test_one_set_may_be_constant() -> None:
    """As it is at the last layers, where all images of one class have the same derivative."""
    random = np.array([0, 1, 1, 0, 0, 1, 0, 1, 0, 0], dtype=float)
    p, counts = layer_test(np.ones(10), random)
    with pytest.warns(RuntimeWarning, match="Precision loss"):
        expected = float(stats.ttest_ind(np.ones(10), random).pvalue)
    assert p == pytest.approx(expected, rel=1e-10)
    assert counts


def test_a_p_on_the_level_counts() -> None:
    concept, random = np.array([0.6, 0.7, 0.8]), np.array([0.4, 0.5, 0.6])
    p, _ = layer_test(concept, random)
    assert layer_test(concept, random, significance=p)[1]
    assert not layer_test(concept, random, significance=np.nextafter(p, 0))[1]
