"""Contract of every registered metric."""

import inspect
import json
import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from math import inf
from typing import Any

import numpy as np
import pytest
import torch
from support import (
    CLASSES,
    classifier,
    cyclic_targets,
    random_images,
    seen_batches,
    state_of,
    with_random_state,
)
from torch import Tensor, nn

from saliency_assay.methods.sampling import BlockGenerator
from saliency_assay.methods.smoothing import smoothgrad
from saliency_assay.metrics import METRICS, Metric
from saliency_assay.metrics.engine import Explainer, MetricInputs, model_responses, score
from saliency_assay.metrics.perturbation import LEAST_ROWS
from saliency_assay.metrics.reductions import REDUCTIONS, reduce
from saliency_assay.metrics.scored import Scored
from saliency_assay.models.classifier import Classifier
from saliency_assay.models.designed import Designed
from saliency_assay.registry.records import Parameter, module_of, resolve
from saliency_assay.registry.signatures import declared
from saliency_assay.studies.bam.metric_tables import spread
from saliency_assay.training.hyperparameters import PARAMETERS as TRAINING

OF_A_SET = ["tcav"]
"""Those that have no score of an image: tests of their own hold them to what the page says."""
ON_PAIRS = [metric for metric in METRICS if not metric.scores_single_maps and metric.name not in OF_A_SET]
ON_MAPS = [metric for metric in METRICS if metric.scores_single_maps]
EVERY_METRIC = pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
EVERY_ON_PAIRS = pytest.mark.parametrize("metric", ON_PAIRS, ids=lambda metric: metric.name)
EVERY_ON_MAPS = pytest.mark.parametrize("metric", ON_MAPS, ids=lambda metric: metric.name)

ARGUMENTS = ("predict", "images", "targets")
TAKES = {"mean", "mask", "responses", "explain", "randomized_model", "finetuned_model"}

CHEAP: dict[str, dict[str, Any]] = {
    "aopc": {"steps": 6, "every": 4, "random_orders": 2},
    "faithfulness": {"pixels": 12},
    "necessity_sufficiency": {"steps": 6},
    "deletion": {"steps": 5},
    "insertion": {"steps": 5},
    "road": {"points": 3},
    "sensitivity_n": {"points": 3, "subsets": 10},
    "infidelity_square": {"largest": 2},
    "infidelity_noisy_baseline": {"samples": 40},
    "infidelity_subset": {"samples": 20},
    "infidelity_shap": {"samples": 20},
    "sensitivity_max": {"samples": 3},
    "randomization": {"stages": 2},
    "faithfulness_correlation": {"subsets": 10, "grid": 3},
    # At smaller thresholds, reductions have the same zeros.
    "non_sensitivity": {"pixels": 120, "threshold": 0.1},
    "effective_complexity": {"threshold": 0.1},
    # Five images are too few for accuracy.
    "f_fidelity": {"points": 9, "samples": 2, "output": "probability"},
    "region_perturbation": {"side": 5, "regions": 3},
    "irof": {"segments": 36},
    "monotonicity": {"steps": 50},
    "local_lipschitz": {"samples": 2},
    "relative_stability": {"samples": 2},
    "smprt": {"samples": 2, "stages": 2},
}
"""Parameters that keep the tests fast; a metric without an entry has its defaults."""

ROUNDING = {"relative_stability": 1e-4, "faithfulness": 2e-5}
"""Relative tolerance if not 1e-6: differences of nearly equal representations or logits lose digits of float32."""

ONE_SIDED = {"average_gain", "increase_in_confidence"}
"""Scores that are 0 for every image whose explanation has a lower probability than the image, as those here have."""

COUNT, SIZE = 5, 12
IMAGES = (random_images(COUNT, size=SIZE, dtype=torch.float32) * 255).to(torch.uint8).numpy()
TARGETS = cyclic_targets(COUNT).numpy()
MASK = np.zeros((COUNT, SIZE, SIZE), bool)
MASK[:, 3:7, 4:9] = True
INSIDE, OUTSIDE = (5, 6), (9, 2)
MEAN = torch.tensor([0.3, 0.4, 0.5])
NORMAL, CONSTANT, BROKEN, TIED, NEGATIVE = range(COUNT)
SEED = 7
SAMPLES = {"samples": 2}
USUAL: dict[str, "Outcome"] = {}
Outcome = Mapping[Any, np.ndarray]


def some_maps(channels: int) -> np.ndarray:
    """One map of each kind that metrics meet."""
    maps = np.random.default_rng(4).normal(size=(COUNT, channels, SIZE, SIZE)).astype(np.float32)
    # Two extremes, of which one is on the object: it has the greater sum, and the less under every other reduction.
    maps[NORMAL, :, *INSIDE] = 4
    maps[NORMAL, :, *OUTSIDE] = [9, -9, 9] if channels == 3 else 3
    maps[CONSTANT] = 0.25
    maps[BROKEN, 0, 2, 3] = np.nan
    maps[TIED] = np.round(maps[TIED])
    maps[NEGATIVE] = -np.abs(maps[NEGATIVE])
    return maps


MAPS = some_maps(3)


class Network(Designed):
    """Without pooling, so that a single pixel moves the output by more than rounding does."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 4, 3, stride=2, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(4 * (SIZE // 2) ** 2, 8),
            nn.Tanh(),
            nn.Linear(8, CLASSES),
        )

    def forward(self, images: Tensor) -> Tensor:
        return self.body(images)

    def importance(self, inputs: Tensor, targets: Tensor) -> Tensor:
        relevant = torch.arange(inputs.shape[-1], device=inputs.device) < inputs.shape[-1] // 2
        return inputs.sum(1, keepdim=True) * relevant


def small_classifier(seed: int = 1, dtype: torch.dtype = torch.float32) -> Classifier:
    return classifier(with_random_state(Network(), seed), "body.2", dtype=dtype)


@cache
def model() -> Classifier:
    return small_classifier().requires_grad_(False)


@cache
def other_model() -> Classifier:
    return small_classifier(seed=5).requires_grad_(False)


def read_by(reference: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that a function declares, as rules hand them out."""
    return {name: value for name, value in parameters.items() if name in declared(reference)}


def cheap(metric: Metric) -> dict[str, Any]:
    """Parameters that keep the tests fast."""
    return CHEAP.get(metric.name, {})


def others(metric: Metric) -> dict[str, Any]:
    """Another valid value of each parameter that is no choice."""
    return {
        name: another(parameter, cheap(metric).get(name, parameter.default))
        for name, parameter in metric.parameters.items()
        if not parameter.choices
    }


def another(parameter: Parameter, value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if parameter.maximum is not None and value < parameter.maximum:
        return type(value)((value + parameter.maximum) / 2)
    return value + 1 if isinstance(value, int) else value / 2 or 1.0


def responses_by(metric: Metric, parameters: Mapping[str, Any], batch_size: int) -> dict[str, np.ndarray]:
    """The metric's model responses, empty if it has none."""
    if not metric.responses:
        return {}
    blocks = list(
        model_responses(
            resolve(metric.responses), read_by(metric.responses, parameters), model(), IMAGES, TARGETS,
            seed=SEED, batch_size=batch_size, inputs=MetricInputs(whole={"mean": MEAN}),
        )
    )  # fmt: skip
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def scored_by(metric: Metric, batch_size: int = COUNT, maps: np.ndarray = MAPS, **changes: Any) -> Outcome:
    """All results of a metric and its model responses for the images: scores by name and variant, the rest by name."""
    parameters = {**cheap(metric), **changes}
    responses = responses_by(metric, parameters, batch_size)
    offered: dict[str, Any] = {"mask": MASK, "responses": responses}
    blocks = list(
        score(
            resolve(metric.function), read_by(metric.function, parameters), model(), IMAGES, TARGETS, maps,
            names=[score.name for score in metric.scores], seed=SEED, batch_size=batch_size,
            inputs=MetricInputs(
                {key: values for key, values in offered.items() if key in metric.takes},
                {"mean": MEAN, "randomized_model": other_model(), "finetuned_model": other_model()},
                Explainer(smoothgrad, SAMPLES, seed=1) if "explain" in metric.takes else None,
            ),
        )
    )  # fmt: skip
    scores = {key: torch.cat([block.scores[key] for block in blocks]).numpy() for key in blocks[0].scores}
    curves = {key: torch.cat([block.curves[key] for block in blocks]).numpy() for key in blocks[0].curves}
    assert not set(curves) & set(responses)
    return {**scores, **curves, **responses}


def usual(metric: Metric) -> Outcome:
    """All results of a metric for the images in one batch, computed once."""
    if metric.name not in USUAL:
        USUAL[metric.name] = scored_by(metric)
    return USUAL[metric.name]


def scores_of(outcome: Outcome) -> dict[tuple[str, str], np.ndarray]:
    return {key: values for key, values in outcome.items() if isinstance(key, tuple)}


def same(first: Outcome, second: Outcome) -> bool:
    """Return True if two outcomes are equal; NaN equals NaN."""
    return first.keys() == second.keys() and all(
        values.shape == second[key].shape and np.array_equal(values, second[key], equal_nan=True)
        for key, values in first.items()
    )


def direct(metric: Metric, dtype: torch.dtype, predict: Callable[[Tensor], Tensor]) -> Scored:
    """The metric called as from a notebook; its tensors are unchanged."""
    images = torch.tensor(IMAGES).to(dtype) / 255
    targets, maps = torch.tensor(TARGETS), torch.tensor(MAPS).to(dtype)
    parameters, inputs = cheap(metric), list[Any]([images, targets, maps])
    mean = MEAN.to(dtype)
    responses: dict[str, Tensor] = {}
    if metric.responses:
        beside: dict[str, Any] = {"mean": mean} if "mean" in declared(metric.responses) else {}
        beside |= read_by(metric.responses, parameters)
        responses = resolve(metric.responses)(
            predict, images, targets, generator=BlockGenerator(SEED, "metric"), **beside
        )
    other = small_classifier(5, dtype)

    def explain(images: Tensor, targets: Tensor, model: Any = predict) -> Tensor:
        return smoothgrad(model, images, targets, generator=BlockGenerator(1, "method"), **SAMPLES)

    offered = {"mean": mean, "mask": torch.tensor(MASK), "responses": responses, "explain": explain}
    offered |= {"randomized_model": other, "finetuned_model": other}
    keywords = {name: value for name, value in offered.items() if name in declared(metric.function)}
    inputs += [value for value in (*keywords.values(), *responses.values()) if isinstance(value, Tensor)]
    before = [tensor.clone() for tensor in inputs]
    state, noise = state_of(other), torch.get_rng_state()
    result = resolve(metric.function)(
        predict, images, targets, maps, generator=BlockGenerator(SEED, "metric"), **keywords,
        **read_by(metric.function, parameters),
    )  # fmt: skip
    for tensor, old in zip(inputs, before, strict=True):
        np.testing.assert_array_equal(tensor, old)
    assert state_of(other) == state
    assert torch.equal(torch.get_rng_state(), noise)
    return result


def assert_alike(metric: Metric, result: Outcome, expected: Outcome) -> None:
    """Assert that two outcomes differ by rounding only."""
    assert result.keys() == expected.keys()
    for key, values in expected.items():
        assert len(values) == COUNT, key
        assert_close(metric, result[key], values, str(key))


def assert_close(metric: Metric, result: Any, expected: Any, message: str) -> None:
    rtol = ROUNDING.get(metric.name, 1e-6)
    np.testing.assert_allclose(result, expected, rtol=rtol, atol=1e-6, err_msg=message)


# --- records ------------------------------------------------------------------------------------------------


@EVERY_METRIC
def test_record_is_sound(metric: Metric) -> None:
    assert module_of(metric.function).startswith(("saliency_assay.metrics.", "saliency_assay.studies.bam."))
    assert re.fullmatch(r"[a-z][a-z0-9_]*", metric.name)
    assert [other.name for other in METRICS].count(metric.name) == 1
    assert metric.reduction in REDUCTIONS or (metric.reduction == "" and metric not in ON_PAIRS)
    defaults = {name: parameter.default for name, parameter in metric.parameters.items()}
    assert json.loads(json.dumps(defaults)) == defaults
    assert [p.problem(p.default) for p in metric.parameters.values()] == [None] * len(defaults)
    assert not metric.check or resolve(metric.check)(defaults) == ""


@EVERY_METRIC
def test_scores_are_described(metric: Metric) -> None:
    names = [registered.name for registered in metric.scores]
    assert len(set(names)) == len(names) >= 1
    for registered in metric.scores:
        target = registered.direction.target
        assert (
            target is None or registered.range[0] < target < registered.range[1]
        )  # an end is higher or lower
        assert registered.range[0] < registered.range[1]
        assert re.fullmatch(r"[a-z][a-z0-9_]*", registered.name)
    # A registered that several metrics give is one registered: the report shows them side by side.
    shared = [registered for other in METRICS for registered in other.scores if registered.name in names]
    assert set(shared) == set(metric.scores)


@EVERY_METRIC
def test_figures_exist(metric: Metric) -> None:
    assert bool(metric.figures) == metric.scores_single_maps
    for name, figure in metric.figures.items():
        assert re.fullmatch(r"[a-z][a-z0-9_]*", name)  # it is part of a path
        assert module_of(figure.function).startswith("saliency_assay.studies.")
        assert callable(resolve(figure.function))
        assert set(figure.reads) <= {"curves", *(("responses",) if metric.responses else ())}


@EVERY_METRIC
def test_fine_tuning_takes_its_parameters(metric: Metric) -> None:
    assert bool(metric.finetuning) == ("finetuned_model" in metric.takes)
    for training, name in metric.finetuning.items():
        assert TRAINING[training].problem(metric.parameters[name].default) is None
        assert TRAINING[training].choices == metric.parameters[name].choices


@EVERY_METRIC
def test_models_can_be_trained_on_what_it_evaluates(metric: Metric) -> None:
    for training, name in metric.in_domain.items():
        assert TRAINING[training].problem(metric.parameters[name].default) is None
        assert TRAINING[training].choices == metric.parameters[name].choices
    assert all(TRAINING[training].default == 0 for training in list(metric.in_domain)[:1])


@EVERY_ON_MAPS
def test_what_the_source_declares_is_what_python_sees(metric: Metric) -> None:
    for reference in filter(None, (metric.function, metric.responses)):
        assert declared(reference) == set(inspect.signature(resolve(reference)).parameters)


@EVERY_ON_MAPS
def test_record_fits_the_functions(metric: Metric) -> None:
    references = {
        metric.function: (*ARGUMENTS, "maps"),
        **({metric.responses: ARGUMENTS} if metric.responses else {}),
    }
    defaults = {name: parameter.default for name, parameter in metric.parameters.items()}
    keywords: dict[str, set[str]] = {}
    for reference, positional in references.items():
        assert module_of(reference).startswith("saliency_assay.metrics.")
        signature = inspect.signature(resolve(reference)).parameters
        assert tuple(signature)[: len(positional)] == positional
        rest = {name: signature[name] for name in signature if name not in positional}
        assert {argument.kind for argument in rest.values()} == {inspect.Parameter.KEYWORD_ONLY}
        assert rest.pop("generator").default is inspect.Parameter.empty
        keywords[reference] = set(rest)
        own = {name: argument.default for name, argument in rest.items() if name not in TAKES}
        assert own == {name: defaults[name] for name in own}  # none that the record does not have
    together = set[str]().union(*keywords.values())
    assert together - TAKES == set(defaults)  # each is read
    assert together & TAKES == set(metric.takes)
    assert len(set(metric.takes)) == len(metric.takes)
    # Model responses are shared by all methods, so they depend on neither maps nor masks.
    assert keywords.get(metric.responses, set()) & TAKES <= {"mean"}
    assert set(metric.takes) - {"mean"} == keywords[metric.function] & (TAKES - {"mean"})
    if "responses" in metric.takes:
        assert metric.responses  # the reverse need not hold: responses may be for a figure


# --- metrics of single maps ---------------------------------------------------------------------------------


@EVERY_ON_MAPS
@pytest.mark.parametrize("channels", [1, 3])
def test_scores_are_those_registered_and_in_range(metric: Metric, channels: int) -> None:
    if "explain" in metric.takes and not metric.reduction and channels == 1:
        pytest.skip("raw maps are compared with those of the method, which have three channels")
    result = scores_of(scored_by(metric, maps=some_maps(channels)))
    assert {name for name, _ in result} == {registered.name for registered in metric.scores}
    ranges = {registered.name: registered.range for registered in metric.scores}
    constant = {registered.name for registered in metric.scores if registered.rates_constant_maps}
    for (name, variant), values in result.items():
        assert (values.dtype, values.shape) == (np.float64, (COUNT,))
        assert variant == variant.strip()
        least, greatest = ranges[name]
        defined = values[~np.isnan(values)]
        assert ((defined >= least) & (defined <= greatest) & (np.abs(defined) < inf)).all()
        assert not np.isnan(values[[NORMAL, TIED]]).any()
        assert np.isnan(values[BROKEN])
        assert np.isnan(values[CONSTANT]) == (name not in constant)
    # Scores differ between images, or the metric looks at something else.
    for name in set(ranges) - ONE_SIDED:
        columns = np.stack([values for key, values in result.items() if key[0] == name])
        assert not np.array_equal(columns[:, NORMAL], columns[:, TIED])


@EVERY_ON_MAPS
def test_batches_change_nothing(metric: Metric) -> None:
    assert_alike(metric, scored_by(metric, 1), usual(metric))
    assert_alike(metric, scored_by(metric, 3), usual(metric))
    assert same(scored_by(metric, 3), scored_by(metric, 3))
    with_noise = "random" in getattr(metric.parameters.get("fill"), "choices", ())
    for changes in (others(metric), {"fill": "random"} if with_noise else {}):
        if changes:
            assert_alike(metric, scored_by(metric, 2, **changes), scored_by(metric, **changes))


@EVERY_ON_MAPS
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_changes_nothing_and_needs_no_runner(metric: Metric, dtype: torch.dtype) -> None:
    predict = small_classifier(dtype=dtype)
    before = state_of(predict)
    result = direct(metric, dtype, predict)
    assert state_of(predict) == before
    whole = usual(metric)
    for key, values in result.scores.items():
        assert values.dtype == torch.float64
        assert not values.requires_grad
        if dtype is torch.float32:  # noise of another type is other noise
            assert_close(metric, values, whole[key], str(key))
    for name, values in result.curves.items():
        assert values.dtype == torch.float64
        assert len(values) == COUNT
        assert whole[name].shape == values.shape


@EVERY_ON_MAPS
def test_anything_that_predicts_can_be_scored(metric: Metric) -> None:
    """No gradients, no layers: a function of images, and of no more of them at once than need be."""
    if metric.needs or {"explain", "randomized_model"} & set(metric.takes):
        pytest.skip("the metric needs the model itself, for the method, its weights or its importance")
    network = small_classifier(dtype=torch.float64)
    with seen_batches(network) as seen:
        result = direct(metric, torch.float64, lambda images: network(images))
    assert set(map(len, seen)) <= set(range(1, LEAST_ROWS + 1))
    assert not any(batch.requires_grad for batch in seen)
    expected = direct(metric, torch.float64, network)
    for key, values in expected.scores.items():
        np.testing.assert_array_equal(result.scores[key], values)


@EVERY_ON_MAPS
def test_the_reduction_is_the_registered_one(metric: Metric) -> None:
    """A map reduced before it is handed over has the same score, under no other reduction."""
    if not metric.reduction or metric.name == "smprt":
        pytest.skip("the metric is of raw maps, or of other maps of the method")

    def evaluate_masks(reduction: str) -> Outcome:
        return scored_by(metric, maps=reduce(torch.tensor(MAPS), reduction)[:, None].numpy())

    assert same(evaluate_masks(metric.reduction), usual(metric))
    for other in set(REDUCTIONS) - {metric.reduction}:
        assert not same(evaluate_masks(other), usual(metric))


@EVERY_ON_MAPS
def test_maps_are_explained_whole_batches_at_a_time(metric: Metric) -> None:
    """The method's noise goes on from batch to batch only if each call is for all images of the batch."""
    if "explain" not in metric.takes:
        assert "randomized_model" not in metric.takes
        return
    sizes: list[int] = []

    def watched(*arguments: Any, **keywords: Any) -> Tensor:
        sizes.append(len(arguments[1]))
        if metric.name == "random_logit":
            assert (arguments[2] != torch.tensor(TARGETS)).all()
        else:
            assert torch.equal(arguments[2], torch.tensor(TARGETS))
        return smoothgrad(*arguments, **keywords)

    inputs = MetricInputs(
        whole={"randomized_model": other_model()} if "randomized_model" in metric.takes else {},
        explainer=Explainer(watched, SAMPLES, seed=1),
    )
    blocks = score(
        resolve(metric.function), cheap(metric), model(), IMAGES, TARGETS, MAPS,
        names=[score.name for score in metric.scores], seed=SEED, batch_size=COUNT, inputs=inputs,
    )  # fmt: skip
    list(blocks)
    assert set(sizes) == {COUNT}


CHOICES = [
    (metric, name) for metric in ON_MAPS for name, parameter in metric.parameters.items() if parameter.choices
]
WORDS = [
    (metric, name, word)
    for metric in ON_MAPS
    for name, parameter in metric.parameters.items()
    for word in parameter.words
]


def label(value: object) -> str:
    return str(getattr(value, "name", value))


@pytest.mark.parametrize(("metric", "name"), CHOICES, ids=label)
def test_choices_give_different_scores_in_batches_of_any_size(metric: Metric, name: str) -> None:
    choices = metric.parameters[name].choices
    results = [scored_by(metric, **{name: choice}) for choice in choices]
    for number, (choice, result) in enumerate(zip(choices, results, strict=True)):
        assert not any(same(result, other) for other in results[:number])
        assert_alike(metric, scored_by(metric, 2, **{name: choice}), result)


@pytest.mark.parametrize(("metric", "name", "word"), WORDS, ids=label)
def test_words_are_understood(metric: Metric, name: str, word: str) -> None:
    assert not same(scored_by(metric, **{name: word}), usual(metric))


@EVERY_ON_MAPS
def test_every_parameter_matters(metric: Metric) -> None:
    for name, value in others(metric).items():
        assert metric.parameters[name].problem(value) is None
        assert not same(scored_by(metric, **{name: value}), usual(metric)), name


BELOW = [
    (metric, name)
    for metric in ON_MAPS
    for name, parameter in metric.parameters.items()
    if parameter.minimum is not None
]


@pytest.mark.parametrize(("metric", "name"), BELOW, ids=label)
def test_least_values_work(metric: Metric, name: str) -> None:
    """Minimum values of the registry work; maximum values depend on the image."""
    least = metric.parameters[name].minimum
    assert least is not None
    value = type(metric.parameters[name].default)(least)
    result = scores_of(scored_by(metric, **{name: value}))
    assert {key[0] for key in result} == {registered.name for registered in metric.scores}
    assert not any(np.isinf(values).any() for values in result.values())


# --- metrics of pairs ---------------------------------------------------------------------------------------


@EVERY_ON_PAIRS
def test_pairs_have_a_score_of_their_name_and_no_model_responses(metric: Metric) -> None:
    assert metric.scores[0].name == metric.name
    assert (metric.takes, metric.responses) == ((), "")


def on_pairs(metric: Metric) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """The metric of two attributions and whether they count, with its other arguments at their defaults."""
    function = resolve(metric.function)
    names = [name for name in inspect.signature(function).parameters if name in metric.parameters]
    return partial(function, **{name: metric.parameters[name].default for name in names})


@EVERY_ON_PAIRS
def test_spread_has_the_registered_defaults(metric: Metric) -> None:
    keywords = inspect.signature(spread).parameters.values()
    defaults = {keyword.name: keyword.default for keyword in keywords if keyword.default is not keyword.empty}
    assert {name: metric.parameters[name].default for name in defaults} == defaults


@EVERY_ON_PAIRS
def test_scores_of_pairs_are_in_range_and_nan_where_undefined(metric: Metric) -> None:
    """All pairs of attributions in [0, 1], its ends and NaN among them, right and wrong."""
    values = torch.tensor([0.0, 0.25, 1.0, torch.nan])
    first, second, correct = torch.cartesian_prod(values, values, torch.tensor([0.0, 1.0])).unbind(1)
    scores = on_pairs(metric)(first, second, correct.bool())
    assert scores.shape == first.shape
    defined = correct.bool() & first.isfinite() & second.isfinite()
    if metric.name == "iir":  # 0/0 is no change, while a positive number over 0 is an infinite one
        defined &= (first > 0) | (second > 0)
    np.testing.assert_array_equal(scores.isfinite(), defined)
    least, greatest = metric.scores[0].range
    assert scores[defined].min() == least
    assert scores[defined].max() == greatest


@EVERY_ON_PAIRS
def test_score_of_a_pair_does_not_depend_on_the_others(metric: Metric) -> None:
    first, second = torch.rand(2, 7, generator=torch.Generator().manual_seed(0))
    correct = torch.tensor([True, False, True, True, True, False, True])
    function = on_pairs(metric)
    parts = [function(*part) for part in zip(first.split(3), second.split(3), correct.split(3), strict=True)]
    np.testing.assert_array_equal(torch.cat(parts), function(first, second, correct))
