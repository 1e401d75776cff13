"""Captions of the report's files, which are templates that read the settings of their rules."""

import re

import jinja2
import pytest
from display_names import keys_in, keys_of
from pipelines import ROOT, TINY, params

from saliency_assay.studies import STUDY_KINDS
from tools.check_workflow import RULES, Rule

CAPTION = re.compile(r'caption="[./]+report/(\w+)\.rst"')
CAPTIONS = [(rule, name) for rule in RULES.values() for name in dict.fromkeys(CAPTION.findall(rule.body))]
METHODS = {**TINY["methods"], "swept": {"method": "smoothgrad", "sweep": {"noise": [1, 2]}}}
FIDELITY = {**TINY["studies"]["digits"], "methods": ["gradient", "swept"]}
STUDIES = {
    **TINY["studies"],
    "digits": FIDELITY,
    "trust": {"kind": "validity", "model": "digits", "metrics": ["faithfulness"]},
    "grids": {"kind": "grid", "model": "digits"},
}
WILDCARDS = {"metric": "faithfulness", "figure": "scores", "protocol": "iteroar", "fill": "zero"}
WILDCARDS |= {"section": "methods", "family": "swept", "setting": "gridpg"}


@pytest.mark.parametrize(("rule", "name"), CAPTIONS, ids=lambda value: getattr(value, "name", value))
def test_a_caption_reads_settings_that_its_rule_has(rule: Rule, name: str) -> None:
    kind = next((kind for kind in STUDY_KINDS if f"{kind.upper()}_PARAMS" in rule.body), "")
    of = params({**TINY, "methods": METHODS, "studies": STUDIES})
    (study,) = of.studies.of_kind(kind or "fidelity")
    wildcards = {**WILDCARDS, "study": study}
    settings = getattr(of.of_kind(kind) if kind else of, rule.name)(wildcards)
    snakemake = {"params": {"settings": settings}, "wildcards": wildcards, "config": of.configuration}
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined)
    text = (ROOT / f"workflow/report/{name}.rst").read_text(encoding="utf-8")
    shown = environment.from_string(text).render(snakemake=snakemake)
    assert "{{" not in shown
    assert len(shown) > 40
    assert list(keys_in([("p", shown)], keys_of(TINY))) == []
