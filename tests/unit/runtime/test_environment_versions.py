import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from saliency_assay.runtime import environment
from saliency_assay.runtime.environment import (
    announce,
    check_environment,
    counting,
    loaded_versions,
    versions_of,
)


def forget() -> None:
    environment.installed_version.cache_clear()
    environment._distribution.cache_clear()


def test_versions_are_those_of_distributions() -> None:
    assert versions_of(["torch", "PIL", "sklearn"]) == {
        "pillow": version("pillow"),
        "scikit-learn": version("scikit-learn"),
        "torch": version("torch"),
    }
    # Modules of no distribution, and those without an effect on results.
    assert versions_of(["no_such_module", "tqdm", "yaml"]) == {}


def test_a_module_named_unlike_its_distribution_has_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "lab_tools-3.1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: lab-tools\nVersion: 3.1\n")
    (folder / "top_level.txt").write_text("labkit\n")
    (folder / "RECORD").write_text("labkit/__init__.py,,\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    forget()
    assert versions_of(["labkit"]) == {"lab-tools": "3.1"}
    forget()


def test_loaded_versions_are_those_of_loaded_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "timm", raising=False)
    monkeypatch.setitem(sys.modules, "numpy", sys)
    versions = loaded_versions()
    assert versions["numpy"] == version("numpy")
    assert "timm" not in versions


def test_a_job_refuses_another_environment_than_the_planned_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(environment.PLANNED, raising=False)
    numpy = version("numpy")
    check_environment({"numpy": numpy})
    with pytest.raises(ValueError, match=rf"found numpy {numpy}, expected 0\.1,"):
        check_environment({"torch": version("torch"), "numpy": "0.1"})
    with pytest.raises(ValueError, match=r"found no-such-package missing, expected 2,"):
        check_environment({"no-such-package": "2"})


def test_a_job_records_only_packages_that_count_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", sys)
    monkeypatch.setitem(sys.modules, "torch", sys)
    both = {"numpy": version("numpy"), "torch": version("torch")}
    assert loaded_versions().items() >= both.items()
    with counting({"numpy": "", "pandas": ""}):
        assert loaded_versions() == {"numpy": version("numpy")}
    with counting({}):
        assert loaded_versions().items() >= both.items()


def test_a_job_on_a_cluster_is_held_to_what_its_run_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    numpy = version("numpy")
    monkeypatch.setenv(environment.PLANNED, "")  # restored after the test
    announce({"numpy": "0.1"})
    check_environment({"torch": version("torch")})
    with pytest.raises(ValueError, match=rf"found numpy {numpy}, expected 0\.1,"):
        check_environment({"numpy": numpy})
