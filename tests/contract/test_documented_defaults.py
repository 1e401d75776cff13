"""The tables of parameters on the page of methods have the defaults of the code."""

import re
from typing import Any

import yaml

from saliency_assay.catalog import CATALOG
from tools.pages import DOCS

ROW = re.compile(r"^\| `(\w+)` \| `([^`]*)` \|", re.MULTILINE)
SECTION = re.compile(r"^## (\w+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def test_tables_of_methods_have_the_defaults_of_the_code() -> None:
    documented: dict[tuple[str, str], Any] = {
        (method, parameter): yaml.safe_load(default)
        for method, text in SECTION.findall((DOCS / "methods.md").read_text())
        for parameter, default in ROW.findall(text)
        if parameter != "base"  # a method, not a plain value
    }
    assert len(documented) > 20
    assert documented == {
        (method, parameter): CATALOG.methods[method].parameters[parameter].default
        for method, parameter in documented
    }


def test_integrated_gradients_smoothgrad_has_the_defaults_of_its_parts() -> None:
    smoothgrad, path = (CATALOG.methods[name].parameters for name in ("smoothgrad", "integrated_gradients"))
    combined = CATALOG.methods["integrated_gradients_smoothgrad"].parameters
    expected = {**smoothgrad, **path}
    assert {name: parameter.default for name, parameter in combined.items()} == {
        name: parameter.default for name, parameter in expected.items() if name != "base"
    }
