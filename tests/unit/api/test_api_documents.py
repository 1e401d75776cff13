"""The page and the notebook on the Python API run as they stand."""

import os
import re
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
import torch
from nbclient import NotebookClient
from torch import nn

import saliency_assay
from saliency_assay.runtime.provenance import SOURCE

ROOT = SOURCE.parent
PAGE = (ROOT / "docs/api.md").read_text()
NOTEBOOK = ROOT / "docs/notebooks/your_own_maps.ipynb"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
OF_RESULTS = "results = Path("
"""Reads what a run has made: tests/workflow/test_results.py runs that block."""


def test_the_pages_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 8 * 8, 3))
    images = np.random.default_rng(0).random((6, 1, 10, 10), dtype=np.float32)
    names: dict[str, Any] = {"network": network, "images": images, "targets": np.arange(6) % 3}
    run = [block for block in BLOCKS if OF_RESULTS not in block]
    assert len(run) == len(BLOCKS) - 1
    for number, block in enumerate(run):
        exec(compile(block, f"docs/api.md, block {number}", "exec"), names)
    assert list(names["assessed"].order.index) == ["gradient", "occlusion", "random"]
    assert [text.get_text() for text in names["left"].get_legend().get_texts()] == [
        "Grad-CAM",
        "Integrated Gradients",
        "Random",
    ]
    assert len(names["gallery"].child_axes) == 3 * 4
    plt.close("all")
    assert list(names["aopc"]) == [
        f"aopc_{kind} L={steps}" for kind in ("morf", "lerf") for steps in (20, 40)
    ]


def test_the_page_names_every_argument() -> None:
    from inspect import signature

    for function in (
        saliency_assay.benchmark,
        saliency_assay.attribute,
        saliency_assay.score,
        saliency_assay.assess,
    ):
        [shown] = re.findall(rf"`\w+\.{function.__name__}\((.*?)\)` (?:gives|takes)", PAGE, re.DOTALL)
        named = [part.partition("=")[0].strip().lstrip("*") for part in shown.split(",")]
        assert [name for name in named if name] == list(signature(function).parameters)


def test_the_notebook_is_committed_without_outputs() -> None:
    cells = [cell for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.cell_type == "code"]
    assert len(cells) >= 7
    assert [cell for cell in cells if cell.outputs or cell.execution_count] == []


# What jupyter-client says of its own folders and of its event loop is not ours to mend.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning", "ignore:.*:ResourceWarning")
def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    paths = [str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    for name in (
        "IPYTHONDIR",
        "JUPYTER_CONFIG_DIR",
        "JUPYTER_DATA_DIR",
        "JUPYTER_RUNTIME_DIR",
        "MPLCONFIGDIR",
    ):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert sum("image/png" in output.get("data", {}) for output in shown) == 2
    assert [output for output in shown if output.get("name") == "stderr"] == []
    [printed] = [output["text"] for output in shown if output.get("text", "").startswith("alpha")]
    assert 0.3 < float(re.match(r"alpha ([0-9.]+),", printed)[1]) <= 1
