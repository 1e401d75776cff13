"""The tables of parameters on the pages of methods have the defaults of the code."""

import re
from typing import Any

import yaml

from saliency_assay.catalog import CATALOG
from tools.pages import DOCS

TABLE = re.compile(r"^\| parameter \| default .*\n\|[-|]+\n((?:\|.*\n?)+)", re.MULTILINE)
ROW = re.compile(r"^\| `(\w+)` \| `?([^`|]*?)`? \|", re.MULTILINE)
DESCRIBED_IN_WORDS = {
    **dict.fromkeys(("cam", "gradcam_plus_plus", "layercam", "hirescam", "xgradcam"), "gradcam"),
    **dict.fromkeys(("eigencam", "scorecam", "guided_gradcam"), "gradcam"),
    **dict.fromkeys(("smoothgrad_squared", "vargrad"), "smoothgrad"),
    **dict.fromkeys(("attention_rollout", "gradient_weighted_attention"), "raw_attention"),
    **dict.fromkeys(("transformer_attribution", "libragrad"), "raw_attention"),
}
"""Methods whose sections name another method with the same parameters; the tables of their own have the others."""
IN_PARTS = "integrated_gradients_smoothgrad"
"""Method with the parameters of two others."""
SECTION = re.compile(r"^## (\w+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def test_tables_of_methods_have_the_defaults_of_the_code() -> None:
    text = "\n".join(page.read_text() for page in sorted((DOCS / "methods").glob("*.md")))
    documented = {
        (method, parameter): default
        for method, section in SECTION.findall(text)
        for table in TABLE.findall(section)
        for parameter, default in ROW.findall(table)
        if parameter not in ("base", "background")  # not a plain value
    }
    defaults: dict[tuple[str, str], Any] = {
        (name, parameter): settings.default
        for name, method in CATALOG.methods.items()
        for parameter, settings in method.parameters.items()
        if name != IN_PARTS
    }
    for name, other in DESCRIBED_IN_WORDS.items():
        for parameter in CATALOG.methods[name].parameters:
            if (name, parameter) not in documented and (other, parameter) in documented:
                documented[name, parameter] = documented[other, parameter]
    assert documented.keys() == defaults.keys()
    for key, default in defaults.items():
        value = yaml.safe_load(documented[key])
        assert (float(value) if isinstance(default, float) else value) == default, key


def test_integrated_gradients_smoothgrad_has_the_defaults_of_its_parts() -> None:
    smoothgrad, path = (CATALOG.methods[name].parameters for name in ("smoothgrad", "integrated_gradients"))
    combined = CATALOG.methods["integrated_gradients_smoothgrad"].parameters
    expected = {**smoothgrad, **path}
    assert {name: parameter.default for name, parameter in combined.items()} == {
        name: parameter.default for name, parameter in expected.items() if name != "base"
    }
