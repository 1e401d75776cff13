"""What every registered metric promises."""

import inspect
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import saliency_assay
from saliency_assay.metrics import METRICS, Metric
from saliency_assay.metrics.reductions import REDUCTIONS
from saliency_assay.metrics.spread import spread
from saliency_assay.registry import module_of, resolve

EVERY_METRIC = pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)


def test_names_are_unique() -> None:
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names) >= 2


def test_reading_the_registry_imports_nothing_heavy() -> None:
    code = "import sys, saliency_assay.metrics; print('torch' in sys.modules, 'numpy' in sys.modules)"
    path = {"PYTHONPATH": str(Path(saliency_assay.__file__).parents[1])}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=path)
    assert run.stdout.split() == ["False", "False"]


@EVERY_METRIC
def test_record_is_sound(metric: Metric) -> None:
    assert module_of(metric.function).startswith("saliency_assay.metrics.")
    assert callable(resolve(metric.function))
    assert metric.direction in ("higher", "lower")
    assert metric.range[0] < metric.range[1]
    assert metric.reduction in REDUCTIONS
    defaults = {name: parameter.default for name, parameter in metric.parameters.items()}
    assert json.loads(json.dumps(defaults)) == defaults
    assert [p.problem(p.default) for p in metric.parameters.values()] == [None] * len(defaults)


@EVERY_METRIC
def test_spread_has_the_registered_defaults(metric: Metric) -> None:
    keywords = inspect.signature(spread).parameters.values()
    defaults = {keyword.name: keyword.default for keyword in keywords if keyword.default is not keyword.empty}
    assert {name: parameter.default for name, parameter in metric.parameters.items()} == defaults


@EVERY_METRIC
def test_has_its_page(metric: Metric) -> None:
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
    assert f"\n## {metric.name}\n" in page


@EVERY_METRIC
def test_scores_are_in_range_and_nan_where_undefined(metric: Metric) -> None:
    """All pairs of attributions in [0, 1], its ends and NaN among them, right and wrong."""
    values = torch.tensor([0.0, 0.25, 1.0, torch.nan])
    first, second, correct = torch.cartesian_prod(values, values, torch.tensor([0.0, 1.0])).unbind(1)
    scores = resolve(metric.function)(first, second, correct.bool())
    assert scores.shape == first.shape
    defined = correct.bool() & first.isfinite() & second.isfinite()
    np.testing.assert_array_equal(scores.isfinite(), defined)
    least, greatest = metric.range
    assert scores[defined].min() == least
    assert scores[defined].max() == greatest


@EVERY_METRIC
def test_score_of_an_image_does_not_depend_on_the_others(metric: Metric) -> None:
    first, second = torch.rand(2, 7, generator=torch.Generator().manual_seed(0))
    correct = torch.tensor([True, False, True, True, True, False, True])
    function = resolve(metric.function)
    parts = [function(*part) for part in zip(first.split(3), second.split(3), correct.split(3), strict=True)]
    np.testing.assert_array_equal(torch.cat(parts), function(first, second, correct))
