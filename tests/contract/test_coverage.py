"""Methods on the networks of ``benchmarks/coverage.py``: refusals as stated there, sums, and maps of other programs."""

import pytest
from benchmarks import coverage

IN_CI = {
    *("timm/tf_efficientnet_b0", "timm/mobilevit_xxs", "timm/levit_128s", "timm/beit_base_patch16_224"),
    *("torchvision/swin_t", "torchvision/vit_b_16", "torchvision/googlenet"),
}


def test_the_page_has_the_expected_refusals() -> None:
    assert coverage.PAGE.read_text(encoding="utf-8") == coverage.page()


def marked(network: coverage.Network) -> object:
    is_quick = network.name in IN_CI or network.library == "hand-written"
    marks = [pytest.mark.slow] if is_quick else [pytest.mark.slow, pytest.mark.exhaustive]
    return pytest.param(network, id=network.name, marks=marks)


@pytest.mark.parametrize("network", [marked(network) for network in coverage.NETWORKS])
def test_methods_run_or_refuse_as_stated(network: coverage.Network) -> None:
    if not coverage.is_installed(network):
        pytest.skip(f"{network.library} is not installed")
    assert coverage.problems(network, coverage.run(network)) == []
