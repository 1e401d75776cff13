"""Table of methods × networks of torchvision and timm: every method runs on every network, as the page says."""

import pytest

pytest.importorskip("timm")
from tools import support_table


@pytest.mark.exhaustive
def test_the_page_shows_what_runs() -> None:
    assert support_table.PAGE.read_text() == support_table.page(support_table.support())
