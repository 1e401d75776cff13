"""Checks of rules, their scripts, environments, captions and profiles, and of names shared by rules and functions."""

import inspect
import os
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unittest.mock import patch

import yte

from saliency_assay.pipeline.params import Params
from saliency_assay.pipeline.paths import Paths
from saliency_assay.pipeline.site import SITE
from saliency_assay.pipeline.snakemake_internals import ATTRIBUTES
from saliency_assay.pipeline.studies import RATED_FIGURES, RATED_TABLES, SWEEP_FIGURE, SWEEP_TABLES
from saliency_assay.registry.records import resolve
from saliency_assay.studies import STUDY_KINDS
from tools.source_tree import PACKAGE, ROOT, SCRIPTS, Problem, line_of, project_imports

RULE_FILES = [ROOT / "workflow/Snakefile", *sorted((ROOT / "workflow/rules").rglob("*.smk"))]
TEXT = "\n".join(path.read_text() for path in RULE_FILES)
PROFILES = sorted(ROOT.glob("profiles/*/config.yaml"))
RERUN_TRIGGERS = ["mtime", "params", "input", "software-env"]
EXTRA_FIGURES = {"study.html", "gallery.html"}
"""Pages of every study that no record of a kind of study lists."""
FORBIDDEN = {
    r"\blambda\b": "a lambda; functions of inputs and parameters are in saliency_assay.pipeline",
    r"^checkpoint ": "a checkpoint",
    r"^ +(?:run|shell):": "a rule without a script",
    r"^ +container:": "a container in a rule; the Snakefile declares the one for all rules",
}
MODEL_JOBS = {"models.jobs", "training.jobs"}
"""Modules that load a classifier onto the device of a job."""


class Rule(NamedTuple):
    """Rule as written in its file."""

    path: Path
    line: int
    name: str
    base: str
    """Rule whose script it uses; empty for a rule with its own script."""
    body: str

    def value(self, directive: str) -> str:
        """Return the first string of a directive, or an empty string if it has none."""
        match = re.search(rf'^    {directive}:\s+f?"([^"]+)"', self.body, re.MULTILINE)
        return match[1] if match else ""


def rules() -> Iterator[Rule]:
    """Yield all rules except ``all``, which only lists the targets."""
    for path in RULE_FILES:
        text = path.read_text()
        for match in re.finditer(
            r"^(?:use rule (\w+) as|rule) (\w+)(?: with)?:\n((?: .*\n|\n)*)", text, re.MULTILINE
        ):
            if match[2] != "all":
                yield Rule(path, line_of(text, match.start()), match[2], match[1] or "", match[3])


RULES = {rule.name: rule for rule in rules()}


def check_workflow() -> Iterator[Problem]:
    """Check rules, scripts, captions and profiles."""
    for rule in RULES.values():
        yield from (
            Problem(rule.path, rule.line, f"rule {rule.name}: {message}") for message in _faults(rule)
        )
    scripts = {rule.name for rule in RULES.values() if not rule.base} | {"combined"}
    yield from (Problem(path, 1, f"no rule {path.stem}") for path in SCRIPTS if path.stem not in scripts)
    for path in RULE_FILES:
        for pattern, message in FORBIDDEN.items():
            text = path.read_text()
            for match in re.finditer(pattern, text, re.MULTILINE):
                yield Problem(path, line_of(text, match.start()), message)
    yield from check_written_files()
    yield from check_captions()
    yield from check_profiles()
    yield from check_internals()


def _faults(rule: Rule) -> Iterator[str]:
    """Yield faults of a rule: its docstring, and the names of its script, log, benchmark and settings."""
    if not re.match(r'    """[A-Z][^\n]+\."""\n', rule.body):
        yield "expected one sentence as its docstring, which snakemake --list prints"
    if not rule.base:
        if (
            _file(rule, "script").resolve() != ROOT / f"workflow/scripts/{rule.name}.py"
            or not _file(rule, "script").is_file()
        ):
            yield "expected the script of its name"
        if not _file(rule, "conda").is_file():
            yield f"no environment {rule.value('conda')!r}"
    log = re.fullmatch(rf"<logs>/{rule.name}(/.+)?\.log", rule.value("log"))
    if not log:
        yield f"log {rule.value('log')!r}, expected <logs>/{rule.name}….log"
    elif rule.value("benchmark") != f"<benchmarks>/{rule.name}{log[1] or ''}.tsv":
        yield f"benchmark {rule.value('benchmark')!r}, expected the name of its log"
    line = rf"    params:\n        settings=(?:([A-Z]+)_)?PARAMS\.{rule.name},(?:  # .*)?\n"
    settings = re.search(line, rule.body)
    if not settings:
        yield f"expected the parameters settings=PARAMS.{rule.name}, or those of its kind of study, and no others"
    # A job reruns if the code of its script changes, so its settings must digest that script.
    elif f'self.settings("{rule.base or rule.name}"' not in re.sub(
        r"\(\s+", "(", inspect.getsource(getattr(_params(settings[1]), rule.name))
    ):
        yield f"the settings of {rule.name} do not digest the code of {rule.base or rule.name}"
    for name in re.findall(r"\b(?:[A-Z]+_)?INPUTS\.(\w+)", rule.body):
        if name in RULES and name != rule.name:
            yield f"has inputs of the rule {name}"


def _params(kind: str | None) -> Any:
    """Return the class of the settings of rules: of one kind of study, or those common to all."""
    return resolve(STUDY_KINDS[kind.lower()].params) if kind else Params


def _file(rule: Rule, directive: str) -> Path:
    return rule.path.parent / (rule.value(directive) or "none")


def check_written_files() -> Iterator[Problem]:
    """Check that rules write all files that ``Paths`` names, and exactly the recorded figures and tables of studies."""
    paths, rule_text = Paths("<results>"), TEXT.replace("<arm>", Paths("").arm)
    for name, pattern in vars(paths).items():
        is_file = "." in Path(pattern).name.replace("<results>", "") and name != "state"
        if is_file and f'"{pattern}"' not in rule_text:
            yield Problem(PACKAGE / "pipeline/paths.py", 1, f"no rule writes {name}, {pattern}")
    outputs = [each for kind in STUDY_KINDS.values() for each in kind.outputs]
    figures = {
        *RATED_FIGURES,
        SWEEP_FIGURE,
        *EXTRA_FIGURES,
        *(name for each in outputs for name in each.figures),
    }
    tables = {
        *RATED_TABLES,
        *SWEEP_TABLES,
        "not_computed",
        *(name for each in outputs for name in each.tables),
    }
    for written_names, recorded, output_type in (
        (set(re.findall(r'report\(\s*"<results>/figures/{study}/([^"]+)"', TEXT)), figures, "figure"),
        (set(re.findall(r'"<results>/tables/{study}/(\w+)\.csv"', TEXT)), tables, "table"),
    ):
        for name in sorted(written_names - recorded):
            yield Problem(
                PACKAGE / "studies/__init__.py", 1, f"no kind of study has the {output_type} {name} of a rule"
            )
        for name in sorted(recorded - written_names):
            yield Problem(
                PACKAGE / "studies/__init__.py",
                1,
                f"no rule writes the {output_type} {name} of a kind of study",
            )


def check_captions() -> Iterator[Problem]:
    """Check that every file of the report has a caption and every caption is used."""
    folder = ROOT / "workflow/report"
    used = set()
    for path in RULE_FILES:
        text = path.read_text()
        for match in re.finditer(r"\breport\(\n(?:.*\n)*?\s+\),", text):
            caption = re.search(r'caption="(?:\.\./)+report/(\w+)\.rst"', match[0])
            name = caption[1] if caption else ""
            used.add(name)
            if not (folder / f"{name}.rst").is_file():
                yield Problem(path, line_of(text, match.start()), f"report file without a caption: {name!r}")
    for path in sorted(folder.glob("*.rst")):
        if path.stem not in used:
            yield Problem(path, 1, "no rule shows this caption")


def check_profiles() -> Iterator[Problem]:
    """Check that profiles name existing rules, give GPUs to jobs with a model, and have the same rerun triggers."""
    for link in ("profiles/slurm", "workflow/rules", "workflow/envs"):
        path = ROOT / Path(link).name
        if not path.is_symlink() or path.readlink() != Path(link):
            yield Problem(path, 1, f"expected a link to {link}")
    if (ROOT / "profiles/default").exists():
        yield Problem(ROOT / "profiles/default", 1, "would override --profile key by key")
    with_model = {path.stem for path in SCRIPTS if MODEL_JOBS & {name for _, name in project_imports(path)}}
    with_model |= {rule.name for rule in RULES.values() if rule.base in with_model}
    for path in PROFILES:
        content = _profile(path)
        resources = content["set-resources"]
        if content["rerun-triggers"] != RERUN_TRIGGERS:
            yield Problem(path, 1, f"rerun-triggers: expected {RERUN_TRIGGERS}")
        if "resources" in content:
            yield Problem(path, 1, "resources would cap the GPUs of a whole cluster")
        for name in sorted({*resources, *content.get("set-threads", {})} - {*RULES, "<"}):
            yield Problem(path, 1, f"no rule {name}")
        with_gpu = {name for name, values in resources.items() if "gpu" in values}
        for name in sorted(with_gpu ^ with_model):
            verb = "has a GPU but runs no model" if name in with_gpu else "runs a model but has no GPU"
            yield Problem(path, 1, f"{name} {verb}")


def _profile(path: Path) -> dict[str, Any]:
    """Return a profile without settings of a site; that of a batch system is the one for PBS."""
    with TemporaryDirectory() as folder, path.open(encoding="utf-8") as file:
        site = Path(folder, "site.yaml")
        site.write_text("batch-system: pbs\n", encoding="utf-8")
        with patch.dict(os.environ, {SITE: str(site)}):
            content: dict[str, Any] = yte.process_yaml(file)
    return content


def check_internals() -> Iterator[Problem]:
    """Check that all attributes of Snakemake's workflow that the project uses are listed, and no others."""
    used = set()
    paths = [ROOT / "Snakefile", *RULE_FILES, *sorted((PACKAGE / "pipeline").glob("*.py"))]
    for path in paths:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for match in re.finditer(r"(?<![\w.\"/])(?:workflow|dag)(?:\.\w+)+", line):
                name = match[0] if match[0].startswith("workflow.") else f"workflow.{match[0]}"
                known = {each for each in ATTRIBUTES if f"{name}.".startswith(f"{each}.")}
                used |= known
                if not known and not any(each.startswith(f"{name}.") for each in ATTRIBUTES):
                    if name != "workflow.scheduler" and not name.startswith("workflow.smk"):
                        yield Problem(
                            path, number, f"uses {name}, which snakemake_internals.ATTRIBUTES lacks"
                        )
    for name in sorted(ATTRIBUTES.keys() - used):
        if not any(each.startswith(f"{name}.") for each in used) and not name.startswith("workflow.dag_"):
            yield Problem(PACKAGE / "pipeline/snakemake_internals.py", 1, f"nothing uses {name}")
