"""A configuration without studies builds its data sets, trains its models, and reports both."""

from pathlib import Path

import pytest
import yaml
from checkout import Checkout

DATA = {"digits": {"kind": "digits", "size": 8}, "large": {"kind": "digits", "size": 12}}
MODEL = {
    "architecture": "resnet8",
    "width": 4,
    "data": "digits",
    "trained_on": "class",
    "training": {"epochs": 1},
}
REPORT = {"overview", "provenance", "report"}


def test_data_alone_are_planned(fresh: Checkout) -> None:
    (fresh.root / fresh.configuration).write_text(yaml.safe_dump({"data": DATA}))
    assert fresh.planned() == {"all", "build_data digits", "build_data large", *REPORT}


@pytest.mark.slow
def test_data_alone_and_then_a_model(fresh: Checkout) -> None:
    configuration = fresh.root / fresh.configuration
    configuration.write_text(yaml.safe_dump({"data": DATA}))
    fresh.make()
    assert {f"data/{name}.zarr.zip" for name in DATA} | {"report.html"} <= set(fresh.files())
    page = Path(fresh.root / "results/figures/overview.html").read_text()
    assert "<h1>Data sets</h1>" in page
    assert all(f">{label}<" in page for label in ("Digits", "Large"))
    assert fresh.planned() == set()
    configuration.write_text(yaml.safe_dump({"data": DATA, "models": {"m": MODEL}}))
    models = {"train m 0", "evaluate m 0", "plot_training"}
    assert fresh.planned() == {"all", *models, *REPORT}
