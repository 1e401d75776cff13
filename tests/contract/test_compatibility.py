"""Every method on every architecture: it works, or the configuration and the method itself say why not."""

import pytest
from compatibility import PAGE, TABLES, bounds, outcome

from saliency_assay.config.methods import unsupported
from saliency_assay.methods import METHODS, Method
from saliency_assay.models import ARCHITECTURES, Architecture


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=lambda record: record.name)
@pytest.mark.parametrize("method", METHODS, ids=lambda record: record.name)
def test_a_method_works_where_its_needs_are_met_and_refuses_elsewhere(
    method: Method, architecture: Architecture
) -> None:
    refusal = outcome(method.name, architecture.name)
    assert bool(refusal) == bool(unsupported(method.needs, architecture)), refusal
    if refusal:
        assert "\n" not in refusal


def test_some_pairs_are_refused() -> None:
    refused = {name for name in ("resnet20", "vgg16", "vgg16_bn", "mnist_cnn") if outcome("cam", name)}
    assert refused == {"vgg16", "vgg16_bn", "mnist_cnn"}
    assert "use gradcam" in outcome("cam", "vgg16")


@pytest.mark.parametrize("name", TABLES)
def test_the_page_shows_what_was_found(name: str) -> None:
    begin, end = bounds(name)
    shown = PAGE.read_text().partition(begin)[2].partition(end)[0]
    assert shown == TABLES[name](), "run: PYTHONPATH=tests .venv/bin/python tests/contract/compatibility.py"
