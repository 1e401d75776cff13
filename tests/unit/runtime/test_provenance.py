from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np
import pytest

from saliency_assay.runtime.provenance import fingerprint, plain, seed_of


class Color(Enum):
    RED = "red"


@dataclass
class Point:
    x: int


def test_plain_gives_what_json_knows() -> None:
    given = {1: (np.float64(0.5), np.int64(3)), "path": Path("a/b"), "color": Color.RED, "point": Point(2)}
    found = plain(given)
    assert found == {"1": [0.5, 3], "path": "a/b", "color": "red", "point": {"x": 2}}
    assert [type(value) for value in found["1"]] == [float, int]


def test_plain_refuses_what_has_no_plain_form() -> None:
    with pytest.raises(TypeError, match="no plain JSON form for set"):
        plain({"a": {1, 2}})


def test_fingerprint_ignores_order_of_keys_only() -> None:
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    assert fingerprint([1, 2]) != fingerprint([2, 1])


def test_seeds_differ_by_every_part_and_fit_63_bits() -> None:
    seeds = {seed_of(0), seed_of(1), seed_of(0, "train"), seed_of(0, "train", "f_o"), seed_of(0, "trainf_o")}
    assert len(seeds) == 5
    assert all(0 <= seed < 2**63 for seed in seeds)
