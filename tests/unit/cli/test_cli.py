"""The command ``saliency-assay``, without a run."""

from pathlib import Path

import pytest
from checkout import PROJECT

from saliency_assay import SNAKEFILE
from saliency_assay.cli import main, snakemake_arguments


def test_configurations_are_listed_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names == [file.stem for file in sorted(PROJECT.glob("config/*.yaml")) if file.stem != "schema"]
    for name, path in (("metrics", "config/metrics.yaml"), ("profiles/slurm", "profiles/slurm/config.yaml")):
        assert main(["config", name]) == 0
        assert capsys.readouterr().out == (PROJECT / path).read_text()


def test_a_file_comes_before_a_configuration_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("metrics").write_text("seeds: [1]\n")
    assert main(["config", "metrics"]) == 0
    assert capsys.readouterr().out == "seeds: [1]\n"


@pytest.mark.parametrize("command", ["run", "report", "table", "plan", "dry"])
def test_an_unknown_configuration(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "nothing.yaml"]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("CONFIG: nothing.yaml: ")
    assert "bam_small" in line


@pytest.mark.parametrize(
    ("options", "profiles", "others"),
    [
        ([], [PROJECT / "profiles/local"], []),
        (["--cores", "4"], [PROJECT / "profiles/local"], ["--cores", "4"]),
        (["target", "--profile", "slurm", "-n"], [PROJECT / "profiles/slurm"], ["target", "-n"]),
        (["--profile=slurm"], [PROJECT / "profiles/slurm"], []),
        (["--profile", "my_cluster", "--profile", "slurm"], ["my_cluster", PROJECT / "profiles/slurm"], []),
    ],
)
def test_the_profile_is_that_of_one_machine_by_default(
    options: list[str],
    profiles: list[Path | str],
    others: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    profile_options = [word for profile in profiles for word in ("--profile", str(profile))]
    start = ["--configfile", "a.yaml", "--snakefile", SNAKEFILE]
    assert snakemake_arguments(Path("a.yaml"), options) == [*start, *profile_options, *others]
    assert snakemake_arguments(Path("a.yaml"), options, "table") == [
        *start,
        *profile_options,
        "table",
        *others,
    ]


@pytest.mark.parametrize("place", ["slurm", "home/snakemake/slurm"])
def test_a_profile_of_the_user_comes_before_one_of_the_package(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    Path(place).mkdir(parents=True)
    assert "slurm" in snakemake_arguments(Path("a.yaml"), ["--profile", "slurm"])


@pytest.mark.parametrize("command", ["run", "table"])
def test_a_configuration_after_options_is_not_a_target_of_the_demo(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "study.yaml"
    file.touch()
    assert main([command, "--cores", "1", str(file)]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"CONFIG: found {file} after options")
