"""Any change to a configuration: it is taken, or refused in one line that names the place."""

from copy import deepcopy
from typing import Any

import pytest
import yaml
from configurations import BASE, CATALOG, FILE, FOLDER
from hypothesis import given
from hypothesis import strategies as st

from saliency_assay.catalog import CATALOG as REGISTERED
from saliency_assay.config.checks import Catalog
from saliency_assay.config.configuration import read
from saliency_assay.config.errors import ConfigError

SMALL = yaml.safe_load(BASE)
DEMO = yaml.safe_load((FOLDER / "config.yaml").read_text())

NUMBERS = st.one_of(st.integers(-3, 3), st.integers(), st.just(10**400), st.floats())
SCALARS = st.one_of(
    st.none(), st.booleans(), NUMBERS, st.text(max_size=20), st.dates(), st.binary(max_size=4)
)
NAMES = st.sampled_from(
    ["bam", "f_o", "gradient", "digits", "function", "a:b", "../x", "nowhere", "auto", "cuda"]
)
VALUES = st.recursive(
    SCALARS | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SCALARS | NAMES, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    here = [(*path, key) for key, _ in inner]
    return here + [place for key, value in inner for place in places(value, (*path, key))]


def taken(raw: Any, catalog: Catalog) -> str:
    """The line with which ``raw`` is refused; "" if it is taken. Any other exception is the test's end."""
    try:
        config = read(raw, catalog=catalog, source=FILE)
    except ConfigError as error:
        line = str(error)
        assert len(line.splitlines()) == 1
        assert line.startswith(f"{FILE}: ")
        return line
    assert config.data
    assert config.studies or "studies" not in raw  # data and models alone are a configuration
    return ""


@pytest.mark.parametrize(("raw", "catalog"), [(SMALL, CATALOG), (DEMO, REGISTERED)], ids=["small", "demo"])
@given(data=st.data())
def test_a_value_is_taken_or_named(raw: Any, catalog: Catalog, data: st.DataObject) -> None:
    changed = deepcopy(raw)
    *parents, last = data.draw(st.sampled_from(places(raw)))
    holder = changed
    for key in parents:
        holder = holder[key]
    kind = data.draw(st.sampled_from(["replace", "replace", "delete", "rename", "add"]))
    named = [*parents, last]
    if kind == "replace":
        holder[last] = data.draw(VALUES)
    elif kind == "delete":
        del holder[last]
    elif kind == "add" and isinstance(holder, dict):
        added = data.draw(SCALARS.filter(lambda key: key not in holder))
        holder[added] = data.draw(VALUES)
    elif isinstance(holder, dict):
        holder[data.draw(SCALARS | NAMES)] = holder.pop(last)
    line = taken(changed, catalog)
    # What refers to the place may be at fault as well as the place itself, but then it says to what it refers.
    assert not line or "top level" in line or any(str(key) in line for key in named), (named, line)


@given(raw=VALUES | st.dictionaries(st.sampled_from([*SMALL, "results"]), VALUES))
def test_anything_at_all_is_taken_or_refused(raw: Any) -> None:
    assert taken(raw, CATALOG) if not isinstance(raw, dict) or len(raw) < 4 else True
