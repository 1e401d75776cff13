"""The tables of records in the documentation are those of the registries."""

import pytest
from pages import DOCS
from record_tables import TABLES, with_table


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_written_from_the_records(name: str) -> None:
    page = (DOCS / f"{name}.md").read_text()
    assert with_table(page, TABLES[name]()) == page, "run python tools/record_tables.py"
