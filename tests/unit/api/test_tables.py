"""Tables of the registries, and the passes of metrics in them."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import saliency_assay
from saliency_assay.api.scores import SINGLE
from saliency_assay.api.tables import NEEDS
from saliency_assay.methods import METHODS
from saliency_assay.methods.cost import Map, counted_rows, passes
from saliency_assay.metrics import Metric

HEIGHT, WIDTH, COUNT = 12, 15, 4
UNKNOWN = {"necessity_sufficiency", "irof", "randomization", "smprt"}
"""Metrics whose passes depend on the map, the superpixels or the layers."""


def test_a_row_for_each_record() -> None:
    methods, metrics = saliency_assay.methods(), saliency_assay.metrics()
    assert list(methods.index) == [record.name for record in METHODS]
    assert list(metrics.index) == [record.name for record in SINGLE]
    assert (methods.index.name, metrics.index.name) == ("method", "metric")
    assert methods.loc["integrated_gradients", "aliases"] == "ig"
    assert "max_sensitivity" in metrics.loc["sensitivity_max", "aliases"]
    for table in (methods, metrics):
        assert table.dtypes["passes"] == np.float64
        assert not (table.drop(columns=["needs", "passes", "aliases"]) == "").any(axis=None)
    without_model = methods.index[~methods["uses_model"].astype(bool)]
    assert set(without_model) == {"random", "edge", "constant", "object_mask"}
    assert set(metrics.index[metrics["passes"].isna()]) == UNKNOWN
    assert set(methods.index[methods["passes"].isna()]) == {"scorecam", "deep_shap"}


def test_every_need_has_words() -> None:
    needs = {need for record in METHODS for need in (*record.needs, *record.takes)}
    needs |= {need for record in SINGLE for need in record.takes} - {"responses"}
    assert needs == set(NEEDS)
    methods, metrics = saliency_assay.methods(), saliency_assay.metrics()
    assert methods.loc["gradcam", "needs"] == "gradients, CAM layer"
    assert methods.loc["deep_shap", "needs"] == "gradients, traceable layers, background"
    assert metrics.loc["f_fidelity", "needs"] == "mean, fine-tuned model"
    assert metrics.loc[["deletion", "randomization"], "needs"].tolist() == ["", "method, randomized model"]


@pytest.mark.parametrize("code", ["import saliency_assay", "from saliency_assay import methods, metrics"])
def test_a_package_stays_a_package(code: str) -> None:
    """And its import stays light, because every job parses the Snakefile, which reads the registries."""
    program = f"""
{code}
import sys
import saliency_assay.methods, saliency_assay.metrics
assert not {{"torch", "numpy", "pandas"}} & set(sys.modules)
from saliency_assay.methods import METHODS
import saliency_assay.methods.engine
assert saliency_assay.methods.METHODS is METHODS and saliency_assay.methods.engine.attribute
assert len(saliency_assay.methods()) == len(METHODS)
assert len(saliency_assay.metrics()) > 30
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    "metric",
    [metric for metric in SINGLE if "exact_importance" not in metric.needs],
    ids=lambda metric: metric.name,
)
def test_passes_are_counted(metric: Metric) -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(3 * HEIGHT * WIDTH, 3))
    model = saliency_assay.wrap(network, classes=3, mean=[0.5] * 3, std=[0.25] * 3)
    random = np.random.default_rng(0)
    images, maps = random.random((COUNT, 3, HEIGHT, WIDTH)), random.normal(size=(COUNT, 3, HEIGHT, WIDTH))
    inputs: dict[str, Any] = {
        "mask": {"mask": random.random((COUNT, HEIGHT, WIDTH)) < 0.5},
        "explain": {"method": "gradient"},
    }
    with counted_rows(model) as rows:  # copies of the model count, too
        inputs |= {
            key: {key: saliency_assay.randomize(model, seed=1)}
            for key in ("randomized_model", "finetuned_model")
        }
        options = {key: value for need in metric.takes for key, value in inputs.get(need, {}).items()}
        saliency_assay.score("sparseness", model, images, [0] * COUNT, maps)  # which tries the model
        rows.clear()
        saliency_assay.score(metric.name, model, images, [0] * COUNT, maps, **options)
    if metric.name in UNKNOWN:
        assert metric.passes is None
        return
    assert metric.passes is not None
    defaults = {name: parameter.default for name, parameter in metric.parameters.items()}
    counted = passes(metric.passes, Map(defaults, (HEIGHT, WIDTH), COUNT))
    alone = sum(row for row in rows if row == 1)  # a pass of one image of the batch
    assert sum(rows) - alone == counted * COUNT
    assert alone <= 1


def test_passes_that_depend_on_the_image_size() -> None:
    records = {metric.name: metric for metric in SINGLE}

    def cost(name: str, size: tuple[int, int], **parameters: Any) -> float:
        record = records[name]
        defaults = {key: parameter.default for key, parameter in record.parameters.items()}
        assert record.passes is not None
        return passes(record.passes, Map({**defaults, **parameters}, size, 1, base=3))

    assert cost("deletion", (4, 5)) == cost("deletion", (4, 5), steps="exact") == 21
    assert cost("aopc", (4, 5), steps=20) == 40  # both orders end with the same image
    assert cost("region_perturbation", (18, 10)) == 8  # four regions, of which two are cut off at the border
    assert cost("sensitivity_n", (2, 2)) == 1 + 3 * 100  # sizes 1, 2 and 3
    assert cost("sensitivity_max", (4, 5), samples=2) == 6
    assert cost("relative_stability", (4, 5), samples=2) == 1 + 2 + 6
