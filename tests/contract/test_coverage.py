"""Methods on the networks of ``benchmarks/coverage.py``: refusals as stated there, sums, and maps of other programs."""

import pytest
from benchmarks import coverage


@pytest.mark.slow
@pytest.mark.parametrize("network", coverage.NETWORKS, ids=lambda network: network.name)
def test_methods_run_or_refuse_as_stated(network: coverage.Network) -> None:
    if not coverage.is_installed(network):
        pytest.skip(f"{network.library} is not installed")
    assert coverage.problems(network, coverage.run(network)) == []
