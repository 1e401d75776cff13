import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from saliency_assay.pipeline import code_analysis
from saliency_assay.pipeline.code_analysis import Analysis, analysis_of

SOURCE = '''"""Docstring."""
from typing import TYPE_CHECKING

import numpy.linalg
from . import beside as other

if TYPE_CHECKING:
    import torch
else:
    import runs_always

PAGES = Path(__file__).parent.with_name("pages")
'''


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """File of an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    code_analysis._cached.cache_clear()
    yield tmp_path / "cache/saliency-assay/code.json"
    code_analysis._cached.cache_clear()


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "module.py"
    path.write_text(SOURCE)
    return path


def next_process(file: Path, monkeypatch: pytest.MonkeyPatch) -> Analysis:
    """Write the cache and return the analysis of ``file`` from the cache alone."""
    code_analysis._write_cache()
    code_analysis._cached.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr(code_analysis, "analyze", None)
        return analysis_of(file)


def test_an_unchanged_file_is_read_from_the_cache(
    cache: Path, module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    analysis = analysis_of(module)
    assert analysis.imports == [
        *((0, "typing", "TYPE_CHECKING"), (0, "numpy.linalg", ""), (1, "", "beside"), (0, "runs_always", "")),
    ]
    assert analysis.companions == [(1, "pages")]
    cached = next_process(module, monkeypatch)
    assert (cached.digest, list(map(tuple, cached.imports)), list(map(tuple, cached.companions))) == analysis


def test_another_content_with_the_same_size_and_date_is_analyzed_again(cache: Path, module: Path) -> None:
    analysis = analysis_of(module)
    code_analysis._write_cache()
    code_analysis._cached.cache_clear()
    module.write_text(SOURCE.replace("pages", "sites"))
    assert analysis_of(module).companions == [(1, "sites")]
    assert analysis_of(module).digest != analysis.digest


@pytest.mark.parametrize(
    "change",
    [
        lambda _: "",
        lambda _: "[]",
        lambda text: text[:-5],
        lambda text: json.dumps(json.loads(text) | {"analyzer": "another version"}),
    ],
    ids=["empty", "list", "truncated", "other version"],
)
def test_a_cache_that_cannot_be_used_is_replaced(
    change: Callable[[str], str], cache: Path, module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    analysis = analysis_of(module)
    code_analysis._write_cache()
    cache.write_text(change(cache.read_text()))
    code_analysis._cached.cache_clear()
    assert analysis_of(module) == analysis
    assert next_process(module, monkeypatch).digest == analysis.digest


def test_the_cache_does_not_grow_forever(cache: Path, module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_analysis, "CAPACITY", 3)
    for number in range(5):
        module.write_text(f"x = {number}")
        analysis_of(module)
    code_analysis._write_cache()
    assert len(json.loads(cache.read_text())["analyses"]) == 3
    assert next_process(module, monkeypatch).digest == code_analysis.analyze(b"x = 4", "").digest


def test_no_cache_can_be_written(cache: Path, module: Path) -> None:
    cache.parent.parent.write_text("a file")
    analysis = analysis_of(module)
    code_analysis._write_cache()
    code_analysis._cached.cache_clear()
    assert analysis_of(module) == analysis
