"""Grid studies in the configuration, and the line that each mistake gets."""

from typing import get_args

import pytest
import yaml
from configurations import FILE, agrees, cases, fault
from pipelines import params

from saliency_assay.catalog import CATALOG
from saliency_assay.config.configuration import read
from saliency_assay.models.grid_settings import SETTINGS
from saliency_assay.studies.grid.grid_study import Setting

WHOLE = """
data: {digits: {kind: digits}}
models:
  d: {architecture: resnet8, data: digits, trained_on: class}
  plain: {function: "saliency_assay.models.resnet:resnet8", data: digits, trained_on: class}
  many: {architecture: resnet8, data: digits, trained_on: class, multi_label: true, weights: FILE,
    training: {epochs: 0}}
methods: {gradient: {}, gradcam: {}}
studies: {s: {kind: grid, model: d}}
""".replace("FILE", __file__)

WRONG = """
model: e => studies.s.model: unknown model 'e' … valid: d
model: plain => studies.s.settings: found gridpg, difull, dipart with plain, which has no cam_layer; valid: difull
model: many => studies.s.model: found many … expected a model of exclusive classes
settings: [gridgp] => studies.s.settings.0: found 'gridgp' … valid: gridpg
cells: 1 => studies.s.cells: found 1 … 2
grids: 0 => studies.s.grids: found 0 … 2
confidence: 1 => studies.s.confidence: found 1, expected below 1
methods: [edge] => studies.s.methods: unknown method 'edge'
"""


def test_defaults() -> None:
    study = read(yaml.safe_load(WHOLE), catalog=CATALOG, source=FILE).studies["s"]
    assert study.settings == SETTINGS == get_args(Setting)
    assert (study.cells, study.grids, study.confidence) == (2, 100, 0.99)
    assert (study.data, study.models) == ("digits", ("d",))


@pytest.mark.parametrize(("change", "expected"), cases(WRONG))
def test_what_is_wrong(change: str, expected: str) -> None:
    raw = yaml.safe_load(WHOLE)
    raw["studies"]["s"] |= yaml.safe_load(change)
    assert agrees(fault(raw, CATALOG), expected)


def test_the_network_is_checked_for_each_setting_that_gives_it_a_grid() -> None:
    raw = yaml.safe_load(WHOLE)
    of_kind = params(raw).of_kind("grid")
    assert list(of_kind.model_uses("s")) == ["studies.s.settings.gridpg", "studies.s.settings.dipart"]
    raw["studies"]["s"]["settings"] = ["difull"]
    assert params(raw).of_kind("grid").model_uses("s") == {}


def test_jobs_rerun_for_what_they_depend_on() -> None:
    raw = yaml.safe_load(WHOLE)
    wildcards = {"study": "s", "setting": "gridpg", "seed": "0", "method": "gradcam"}
    of_kind = params(raw).of_kind("grid")
    scored, composed = of_kind.score_grid(wildcards), of_kind.compose_grid(wildcards)
    raw["studies"]["s"]["confidence"] = 0.9
    of_kind = params(raw).of_kind("grid")
    assert of_kind.score_grid(wildcards) == scored  # the grids are its input
    assert of_kind.compose_grid(wildcards) != composed
