"""Settings of a site, as the profiles apply them."""

from pathlib import Path
from typing import Any

import pytest
import yaml
import yte
from checkout import PROJECT

from saliency_assay.pipeline.site import SITE

SETTINGS = {
    "default-resources": {"slurm_account": "group", "slurm_partition": "cpu", "queue": "short"},
    "gpu": {
        "slurm_partition": "gpu",
        "gpu_model": "a100",
        "slurm_extra": "--constraint=ib",
        "queue": "devices",
    },
    "set-resources": {"score": {"runtime": 77}, "plot_scores": {"mem_mb": 5}},
    "slurm-qos": "normal",
    "jobs": 12,
    "batch-system": "lsf",
}


def profile(name: str) -> dict[str, Any]:
    with (PROJECT / f"profiles/{name}/config.yaml").open() as file:
        content: dict[str, Any] = yte.process_yaml(file)
    return content


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a site."""
    file = tmp_path / "settings.yaml"
    file.write_text(yaml.safe_dump(SETTINGS))
    monkeypatch.setenv(SITE, str(file))
    return file


def test_a_site_changes_all_jobs_those_with_a_gpu_and_single_rules(
    site: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    slurm = profile("slurm")
    rules = slurm["set-resources"]
    assert slurm["default-resources"] | SETTINGS["default-resources"] == slurm["default-resources"]
    assert (slurm["jobs"], slurm["slurm-qos"]) == (12, "normal")
    assert rules["attribute"]["slurm_partition"] == rules["train"]["slurm_partition"] == "gpu"
    assert rules["score"] | {"runtime": 77, "gpu": 1, "gpu_model": "a100"} == rules["score"]
    assert rules["plot_scores"] == {"mem_mb": 5}
    # Rules that resume keep their signal; the string is quoted, because Snakemake evaluates it.
    assert rules["train"]["slurm_extra"] == "'--signal=TERM@120 --constraint=ib'"
    assert "slurm_partition" not in rules["build_data"]
    monkeypatch.delenv(SITE)
    monkeypatch.chdir(tmp_path)
    plain = profile("slurm")
    assert plain["set-resources"].keys() | {"plot_scores"} == rules.keys()
    assert plain["set-resources"]["train"] == {"gpu": 1, "slurm_extra": "'--signal=TERM@120'"}
    # The same file in the working directory needs no variable.
    site.rename(tmp_path / "site.yaml")
    assert profile("slurm") == slurm


def test_other_schedulers_get_the_requests_without_what_only_slurm_knows(site: Path) -> None:
    slurm, generic = profile("slurm"), profile("generic")
    assert generic["executor"] == "cluster-generic"
    assert not [name for name in generic if name.startswith("slurm")]
    assert generic["set-threads"] == slurm["set-threads"]
    assert generic["jobs"] == 12
    train = generic["set-resources"]["train"]
    assert train == {"gpu": 1, "queue": "devices"}
    assert generic["default-resources"]["queue"] == "short"
    assert generic["cluster-generic-submit-cmd"].endswith("-m saliency_assay.runtime.batch submit lsf")
    assert generic["cluster-generic-cancel-cmd"] == "bkill"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gpu: 3", "gpu: found 3, expected a mapping"),
        ("set-resources: {train: 16}", "set-resources.train: found 16, expected a mapping"),
        ("jobs: 1\njobs: 2", "line 2: found the key 'jobs' twice, expected unique keys"),
        (None, "No such file or directory"),
        ("batch-system: torque", "batch-system: found 'torque'; valid: pbs, sge, lsf, htcondor"),
    ],
)
def test_a_mistake_is_one_line_with_the_file_and_the_place(
    text: str | None, message: str, site: Path
) -> None:
    if text is None:
        site.unlink()
    else:
        site.write_text(text)
    with pytest.raises(SystemExit) as error:
        profile("generic")
    line = str(error.value)
    assert "\n" not in line
    assert str(site) in line
    assert line.endswith(message)
