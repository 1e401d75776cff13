"""Every module can be imported on its own, without an error or a warning."""

from importlib import import_module
from pkgutil import walk_packages

import pytest

import saliency_assay

MODULES = [module.name for module in walk_packages(saliency_assay.__path__, "saliency_assay.")]


@pytest.mark.parametrize("name", MODULES)
def test_modules_can_be_imported(name: str) -> None:
    assert import_module(name).__doc__
