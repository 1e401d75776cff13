"""Saliency Assay: benchmarks of saliency methods, and of the metrics that evaluate them.

The functions for notebooks are imported on first use, because the Snakefile imports this package too and must not
import PyTorch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from saliency_assay.runtime.project import ROOT

if TYPE_CHECKING:
    from saliency_assay import plot as plot
    from saliency_assay.api.across import AcrossTasks as AcrossTasks
    from saliency_assay.api.across import across as across
    from saliency_assay.api.agreement import Assessment as Assessment
    from saliency_assay.api.agreement import assess as assess
    from saliency_assay.api.benchmark import benchmark as benchmark
    from saliency_assay.api.choices import workflow_seed as workflow_seed
    from saliency_assay.api.derived import finetune as finetune
    from saliency_assay.api.derived import randomize as randomize
    from saliency_assay.api.maps import attribute as attribute
    from saliency_assay.api.networks import load_model as load_model
    from saliency_assay.api.networks import wrap as wrap
    from saliency_assay.api.results import Benchmark as Benchmark
    from saliency_assay.api.scores import Scores as Scores
    from saliency_assay.api.scores import score as score
    from saliency_assay.api.tables import methods as methods
    from saliency_assay.api.tables import metrics as metrics

__version__ = "0.2.0"

SNAKEFILE = str(ROOT / "workflow/Snakefile")
"""Path of the workflow's Snakefile, which other Snakefiles import as a module."""

_MODULES = {
    "AcrossTasks": "api.across",
    "Assessment": "api.agreement",
    "Benchmark": "api.results",
    "Scores": "api.scores",
    "across": "api.across",
    "assess": "api.agreement",
    "attribute": "api.maps",
    "benchmark": "api.benchmark",
    "finetune": "api.derived",
    "load_model": "api.networks",
    "randomize": "api.derived",
    "score": "api.scores",
    "workflow_seed": "api.choices",
    "wrap": "api.networks",
}
_SUBMODULES = ("methods", "metrics", "plot")
"""Modules that are imported on use; ``methods`` and ``metrics`` can also be called (``registry.callable``)."""


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"saliency_assay.{name}")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"saliency_assay.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_SUBMODULES})
