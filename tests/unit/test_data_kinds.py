import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from saliency_assay.data import DATA_KINDS, DataKind
from saliency_assay.data.bam import SETS
from saliency_assay.data.classes import OBJECTS, SCENES
from saliency_assay.data.digits import digits
from saliency_assay.data.embedded import write_sources
from saliency_assay.data.plan import plan
from saliency_assay.data.silhouettes import SILHOUETTES
from saliency_assay.data.textures import TEXTURES
from saliency_assay.registry import record_of, resolve


@pytest.mark.parametrize("kind", DATA_KINDS, ids=lambda kind: kind.name)
def test_records_are_sound(kind: DataKind) -> None:
    assert callable(resolve(kind.function))
    assert kind.labels
    assert kind.channels in (1, 3)
    for name, parameter in kind.parameters.items():
        assert parameter.problem(parameter.default) is None, name


def test_the_sets_are_those_that_can_be_composed() -> None:
    for name in ("bam", "embedded"):
        assert record_of(DATA_KINDS, name, "data").sets == SETS


def test_parameters_are_those_of_the_functions() -> None:
    """A parameter that no function takes would be a setting without effect."""

    def names(function: object) -> set[str]:
        return set(inspect.signature(function).parameters)  # type: ignore[arg-type]

    for kind in DATA_KINDS:
        taken = (
            names(digits)
            if kind.name == "digits"
            else names(plan) | names(write_sources) | {"min_object_area"}
        )
        assert set(kind.parameters) - {"seed"} <= taken
    planned = names(plan) - {"collection", "generator"}
    assert planned <= set(record_of(DATA_KINDS, "bam", "data").parameters)


def test_every_class_of_bam_can_be_drawn() -> None:
    assert set(SILHOUETTES) == set(OBJECTS)
    assert set(TEXTURES) == set(SCENES)
    assert len(OBJECTS) == len(SCENES) == 10


def test_the_registry_imports_nothing_heavy() -> None:
    source = Path(__file__).parents[2] / "src"
    program = "import sys; sys.path.insert(0, sys.argv[1]); import saliency_assay.data; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", program, str(source)], capture_output=True, text=True, check=True
    )
    assert not {"numpy", "PIL", "pycocotools", "sklearn", "torch"} & set(run.stdout.split())
