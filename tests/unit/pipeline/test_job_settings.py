"""The digest of code and the versions of packages among the settings of a job."""

from collections.abc import Callable
from pathlib import Path

import pytest

from saliency_assay.pipeline.job_settings import JobSettings


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., Path]:
    """Write the script of a rule."""

    def write(rule: str, text: str) -> Path:
        (tmp_path / f"{rule}.py").write_text(text)
        return tmp_path

    return write


def test_values_are_plain_and_stand_beside_code_and_environment(script: Callable[..., Path]) -> None:
    settings = JobSettings(script("plot", "import numpy\n"))("plot", size=(1, 2), path=Path("a"))
    assert list(settings) == ["size", "path", "code", "environment"]
    assert (settings["size"], settings["path"]) == ([1, 2], "a")
    assert list(settings["environment"]) == ["numpy"]


def test_code_of_functions_counts_with_that_of_the_script(script: Callable[..., Path]) -> None:
    settings = JobSettings(script("attribute", "x = 1\n"))
    gradient = "saliency_assay.methods.gradient:gradient"
    assert settings("attribute")["code"] != settings("attribute", [gradient])["code"]
    assert "torch" in settings("attribute", [gradient])["environment"]


def test_packages_that_only_write_tables_run_no_model_again(script: Callable[..., Path]) -> None:
    text = "import numpy, pandas, pyarrow\n"
    assert list(JobSettings(script("train", text))("train")["environment"]) == ["numpy"]
    assert list(JobSettings(script("plot", text))("plot")["environment"]) == ["numpy", "pandas", "pyarrow"]


def test_all_packages_of_a_custom_function_count(
    script: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = script("attribute", "x = 1\n")
    (folder / "a_custom_function.py").write_text("import pandas\n")
    monkeypatch.syspath_prepend(folder)
    settings = JobSettings(folder)("attribute", ["a_custom_function:f"])
    assert list(settings["environment"]) == ["pandas"]


def test_versions_are_left_out_where_snakemake_compares_environments(script: Callable[..., Path]) -> None:
    settings = JobSettings(script("plot", "import numpy\n"), with_versions=False)
    assert settings("plot")["environment"] == {}
    assert settings.packages == {}


def test_packages_of_all_jobs_are_collected(script: Callable[..., Path]) -> None:
    script("plot", "import numpy\n")
    settings = JobSettings(script("table", "import pandas\n"))
    settings("plot")
    settings("table")
    assert set(settings.packages) == {"numpy", "pandas"}
