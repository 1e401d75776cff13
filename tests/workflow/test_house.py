"""The house as DESIGN draws it: who may import whom, and what belongs to every rule, record, key and caption."""

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from saliency_assay.config.catalogue import CATALOGUE
from saliency_assay.data.bam.members import plan_common, rescaled
from saliency_assay.data.bam.placement import plan
from saliency_assay.pipeline.params import Params
from saliency_assay.pipeline.paths import Paths
from saliency_assay.pipeline.studies import RATED_FIGURES, RATED_TABLES
from saliency_assay.runtime.provenance import SOURCE
from saliency_assay.studies import STUDY_KINDS
from saliency_assay.training import settings

ROOT = SOURCE.parent
PACKAGE = SOURCE / "saliency_assay"
MODULES = sorted(PACKAGE.rglob("*.py"))
SCRIPTS = sorted((ROOT / "workflow/scripts").glob("*.py"))
RULE_FILES = [ROOT / "Snakefile", *sorted((ROOT / "rules").glob("*.smk"))]
CONFIGURATIONS = sorted(path for path in (ROOT / "config").glob("*.yaml") if path.name != "schema.yaml")
PROFILES = [ROOT / f"profiles/{name}/config.yaml" for name in ("local", "slurm")]

# A package imports from itself and from packages before it, never from one after it.
ORDER = (
    "registry",
    "runtime",
    "storage",
    "data",
    "models",
    "training",
    "methods",
    "metrics",
    "plotting",
    "reliability",
    "studies",
    "config",
    "report",
    "api",
    "pipeline",
)
REGISTRIES = ("data", "models", "methods", "metrics")


def name_of(path: Path) -> str:
    """``data.bam`` for ``data/bam.py``; a package is called as its folder is."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


def imported(path: Path) -> Iterator[str]:
    """Dotted names of all that a file imports, a name taken from a module as one of its parts."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def project_imports(path: Path) -> set[str]:
    """The project's modules that a file imports, as ``name_of`` calls them."""
    modules = {name_of(module) for module in MODULES}
    names = (
        name.removeprefix("saliency_assay.") for name in imported(path) if name.startswith("saliency_assay.")
    )
    return {name if name in modules else name.rpartition(".")[0] for name in names} - {""}


def test_test_files_have_names_of_their_own() -> None:
    """Pytest imports them by name alone, and finds out only when it collects all of them."""
    names = [path.name for path in (ROOT / "tests").rglob("*.py") if path.name != "conftest.py"]
    assert len(names) == len(set(names))


# ---- imports


def test_imports_follow_the_one_way_order() -> None:
    edges = [
        (name_of(path), target)
        for path in MODULES
        for target in project_imports(path)
        if path != PACKAGE / "__init__.py"  # it offers functions of ``api`` by name
    ]
    assert len(edges) > 50
    places = [
        (name, target, *(ORDER.index(part.partition(".")[0]) for part in (name, target)))
        for name, target in edges
    ]
    assert [(name, target) for name, target, place, of_target in places if of_target > place] == []


def test_the_catalogue_imports_records_only_and_nothing_imports_it() -> None:
    assert project_imports(PACKAGE / "config/catalogue.py") == {
        "config.records",
        "training.settings",
        *REGISTRIES,
    }
    assert [name_of(path) for path in MODULES if "config.catalogue" in project_imports(path)] == []


@pytest.mark.parametrize("package", REGISTRIES)
def test_registries_import_nothing_but_what_records_are_made_of(package: str) -> None:
    path = PACKAGE / package / "__init__.py"
    assert project_imports(path) == {"registry.records", "registry.signatures"}
    others = {name.partition(".")[0] for name in imported(path)} - {"saliency_assay"}
    assert others <= sys.stdlib_module_names


def test_the_records_of_study_kinds_import_nothing_else() -> None:
    kinds = {path.parent.name: path for path in PACKAGE.glob("studies/*/__init__.py")}
    assert project_imports(PACKAGE / "studies/__init__.py") == {f"studies.{name}" for name in kinds}
    assert {target for path in kinds.values() for target in project_imports(path)} == {"studies.kind"}


def test_no_implementation_imports_a_registry() -> None:
    """Else every method's digest would hold the whole registry, and one line there would run everything again."""
    kinds = {f"studies.{path.parent.name}" for path in PACKAGE.glob("studies/*/__init__.py")}
    registries = {*REGISTRIES, "studies", *kinds}
    apart = (PACKAGE / "config/catalogue.py", *(PACKAGE / "api").glob("*.py"))  # no job runs them
    apart += tuple(
        PACKAGE / name for name in ("config/settings.py", "studies/__init__.py", "pipeline/studies.py")
    )
    files = [path for path in MODULES if path not in apart]
    assert [path.name for path in (*files, *SCRIPTS) if project_imports(path) & registries] == []


def test_nothing_imports_what_notebooks_call() -> None:
    reading = [path for path in (*MODULES, *SCRIPTS) if path.parent not in (PACKAGE, PACKAGE / "api")]
    imports = {
        path.name: {name for name in project_imports(path) if name.startswith("api")} for path in reading
    }
    assert {name: found for name, found in imports.items() if found} == {}


@pytest.mark.parametrize(
    ("library", "homes"),
    [
        ("zarr", {"storage"}),
        ("captum", {"methods"}),
        ("zennit", {"methods"}),
        ("skimage", {"methods", "metrics", "studies"}),
        ("snakemake", set()),
        ("jinja2", {"plotting"}),
        ("pycocotools", {"data"}),
    ],
)
def test_a_library_is_imported_in_its_home_only(library: str, homes: set[str]) -> None:
    found = {
        name_of(path).partition(".")[0]
        for path in MODULES
        if library in {name.partition(".")[0] for name in imported(path)}
    }
    assert found == homes


def test_what_the_snakefile_reads_imports_nothing_heavy() -> None:
    read = sorted(set(re.findall(r"^from (saliency_assay\.[\w.]+) import", rules_text(), re.MULTILINE)))
    assert "saliency_assay.config.catalogue" in read
    heavy = {"torch", "pandas", "captum", "zarr", "numpy", "scipy", "sklearn", "matplotlib", "PIL"}
    code = f"import sys, {', '.join(read)}; print(*sorted({heavy!r} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=SOURCE, check=True)
    assert run.stdout == "\n"


# ---- rules


def rules_text() -> str:
    return "\n".join(path.read_text() for path in RULE_FILES)


def rules(begin: str) -> dict[str, str]:
    """The text of every rule whose first line is ``begin``, by name; ``all`` only names the target."""
    parts = re.split(rf"^{begin}:\n", rules_text(), flags=re.MULTILINE)[1:]
    # A rule ends where a line begins at the margin again.
    return {
        name: re.split(r"^\S", body, maxsplit=1, flags=re.MULTILINE)[0]
        for name, body in zip(parts[::2], parts[1::2], strict=True)
        if name != "all"
    }


SCRIPTED = rules(r"rule (\w+)")
# These are another rule with other files and parameters.
BORROWED = rules(r"use rule \w+ as (\w+) with")
RULES = {**SCRIPTED, **BORROWED}
# It prints, each time that it is asked to; a benchmark would be an output, and once that was there it would not run.
WITHOUT_OUTPUT = {"plan"}


def directive(rule: str, name: str) -> str:
    """The first string of a directive."""
    found = re.search(rf'^    {name}:\s+f?"([^"]+)"', RULES[rule], re.MULTILINE)
    assert found, f"{rule} has no {name}"
    return found[1]


def test_every_script_has_its_rule() -> None:
    assert sorted(SCRIPTED) == [path.stem for path in SCRIPTS]


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_has_a_script_a_log_and_a_benchmark_of_its_name(rule: str) -> None:
    assert rule in BORROWED or directive(rule, "script") == f"../workflow/scripts/{rule}.py"
    wildcards = directive(rule, "log").removeprefix(f"<logs>/{rule}").removesuffix(".log")
    assert wildcards == "" or wildcards.startswith("/")
    assert directive(rule, "log") == f"<logs>/{rule}{wildcards}.log"
    if rule in WITHOUT_OUTPUT:
        assert re.findall(r"^    (?:output|benchmark):", RULES[rule], re.MULTILINE) == []
    else:
        assert directive(rule, "benchmark") == f"<benchmarks>/{rule}{wildcards}.tsv"


def test_logs_and_benchmarks_lie_in_the_results() -> None:
    assert 'logs=f"{CONFIG.results}/logs",\n' in rules_text()
    assert 'benchmarks=f"{CONFIG.results}/benchmarks",\n' in rules_text()


@pytest.mark.parametrize("rule", SCRIPTED)
def test_a_rule_has_an_environment(rule: str) -> None:
    assert (ROOT / "rules" / directive(rule, "conda")).is_file()


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_has_the_settings_of_its_name_with_the_digest_of_its_own_code(rule: str) -> None:
    assert re.findall(r"^    params:\n((?:        .*\n)+)", RULES[rule], re.MULTILINE) == [
        f"        settings=PARAMS.{rule},\n"
    ]
    script = "train" if rule == "trial" else rule
    assert f'self._settings("{script}"' in re.sub(r"\(\s+", "(", inspect.getsource(getattr(Params, rule)))


@pytest.mark.parametrize("rule", RULES)
def test_functions_that_compute_the_inputs_of_one_rule_have_its_name(rule: str) -> None:
    named = set(re.findall(r"\bINPUTS\.(\w+)", RULES[rule])) & set(RULES)
    assert named <= {rule}


def test_files_that_functions_name_are_written_by_a_rule() -> None:
    """Rules spell out what they write; the patterns of ``Paths`` are the same."""
    paths = Paths("<results>")
    folders = {"results", "state", "benchmarks", "figures", "tables", "export", "arm", "model", "retrained"}
    written = rules_text().replace("<arm>", paths.arm)
    assert [
        name for name, path in vars(paths).items() if name not in folders and f'"{path}"' not in written
    ] == []


def test_every_figure_and_table_of_a_study_is_written_by_a_rule() -> None:
    """And every figure that a rule writes for a study is in the report, every table in the export."""
    figures = set(re.findall(r'report\(\s*"<results>/figures/{study}/([^"]+)"', rules_text()))
    tables = set(re.findall(r'"<results>/tables/{study}/(\w+)\.csv"', rules_text()))
    outputs = [each for kind in STUDY_KINDS.values() for each in kind.outputs]
    of_kinds = {name for each in outputs for name in each.figures}
    assert {*of_kinds, *RATED_FIGURES, "study.html", "gallery.html"} == figures
    assert {*RATED_TABLES, *(name for each in outputs for name in each.tables)} == tables


def test_rules_hold_little_python() -> None:
    """Functions that compute inputs and parameters are in ``saliency_assay.pipeline``, typed and tested."""
    assert re.findall(r"\blambda\b", rules_text()) == []
    names = {path.name for path in RULE_FILES if re.search(r"^def ", path.read_text(), re.MULTILINE)}
    assert names == {"cluster.smk"}  # which looks at the jobs of Snakemake


def test_no_checkpoints_and_no_python_in_rules() -> None:
    assert re.findall(r"^checkpoint .*|^ +(?:run|shell):", rules_text(), re.MULTILINE) == []


def test_every_caption_is_shown_and_exists() -> None:
    shown = re.findall(r'caption="\.\./workflow/report/(\w+)\.rst"', rules_text())
    assert len(shown) == rules_text().count("report(\n")
    assert sorted(set(shown)) == sorted(path.stem for path in (ROOT / "workflow/report").glob("*.rst"))


# ---- profiles


def test_slurm_is_a_link_to_its_profile() -> None:
    assert (ROOT / "slurm").is_symlink()
    assert (ROOT / "slurm").readlink() == Path("profiles/slurm")
    assert not (ROOT / "profiles/default").exists()  # it would override --profile key by key


@pytest.mark.parametrize("profile", PROFILES, ids=lambda path: path.parent.name)
def test_every_rule_that_runs_a_model_has_a_gpu(profile: Path) -> None:
    """Where a script puts a classifier on a device, the profile gives it one, and nobody else."""
    resources = yaml.safe_load(profile.read_text())["set-resources"]
    given = {rule for rule, of in resources.items() if "gpu" in of}
    runs_a_model = {path.stem for path in SCRIPTS if project_imports(path) & {"models.jobs", "training.jobs"}}
    assert given == runs_a_model | {"trial"}


@pytest.mark.parametrize("profile", PROFILES, ids=lambda path: path.parent.name)
def test_profiles_name_what_exists_and_rerun_alike(profile: Path) -> None:
    content = yaml.safe_load(profile.read_text())
    assert content["rerun-triggers"] == ["mtime", "params", "input", "software-env"]
    assert "resources" not in content  # would cap the GPUs of a whole cluster
    named = {*content.get("set-resources", {}), *content.get("set-threads", {})}
    assert "train" in named
    assert named <= set(RULES)


# ---- records, their pages, and what reads their parameters


PAGES = {
    "data": CATALOGUE.data_kinds,
    "models": CATALOGUE.architectures,
    "methods": CATALOGUE.methods,
    "metrics": CATALOGUE.metrics,
}


@pytest.mark.parametrize("page", PAGES)
def test_every_record_has_its_heading(page: str) -> None:
    lines = (ROOT / f"docs/{page}.md").read_text().splitlines()
    assert [name for name in PAGES[page] if f"## {name}" not in lines] == []


def keywords(function: Any) -> set[str]:
    """Return the names of a function's keyword-only arguments."""
    parameters = inspect.signature(function).parameters.values()
    return {parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY}


def strings(*paths: Path) -> set[str]:
    """All text constants in Python files."""
    nodes = (node for path in paths for node in ast.walk(ast.parse(path.read_text())))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def attributes(*paths: Path) -> set[str]:
    """Return the names of all attributes that Python files read."""
    nodes = (node for path in paths for node in ast.walk(ast.parse(path.read_text())))
    return {node.attr for node in nodes if isinstance(node, ast.Attribute)}


@pytest.mark.parametrize("name", ["bam", "embedded"])
def test_data_kinds_built_in_steps_read_their_parameters(name: str) -> None:
    """Rules hand a job the parameters that it reads, and no others."""
    handed = strings(PACKAGE / "pipeline/params.py")
    steps = [ROOT / f"workflow/scripts/{step}.py" for step in ("write_sources", "collect_bam", "compose_bam")]
    read = strings(*steps) | keywords(plan) | keywords(plan_common) | keywords(rescaled)
    assert set(CATALOGUE.data_kinds[name].parameters) <= handed & read


def test_training_reads_its_parameters() -> None:
    trees = [ast.parse((PACKAGE / f"training/{name}.py").read_text()) for name in ("loop", "task")]
    read = {
        node.attr
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "settings"
    }
    assert read == set(settings.PARAMETERS)


def schema_keys(node: Any) -> Iterator[str]:
    """Keys that the schema names, at any depth."""
    if isinstance(node, dict):
        yield from node.get("properties", {})
        for value in node.values():
            yield from schema_keys(value)
    elif isinstance(node, list):
        for value in node:
            yield from schema_keys(value)


SCHEMA_KEYS = set(schema_keys(yaml.safe_load((ROOT / "config/schema.yaml").read_text())))


def test_the_configuration_reads_every_key_of_the_schema() -> None:
    assert len(SCHEMA_KEYS) > 20
    readers = (*(PACKAGE / "config").glob("*.py"), *(PACKAGE / "studies").glob("*/settings.py"))
    sources = {key for record in CATALOGUE.data_kinds.values() for key in record.sources}
    assert strings(*readers) | attributes(*readers) | sources >= SCHEMA_KEYS


@pytest.mark.parametrize("path", CONFIGURATIONS, ids=lambda path: path.stem)
def test_configurations_hold_only_keys_that_something_reads(path: Path) -> None:
    content = yaml.safe_load(path.read_text())
    kinds = {"data": "kind", "models": "architecture", "methods": "method", "metrics": "metric"}
    assert set(content) <= SCHEMA_KEYS
    for section, kind in kinds.items():
        for name, entry in content.get(section, {}).items():
            record = PAGES[section][entry.get(kind, name)]
            assert set(entry) <= SCHEMA_KEYS | set(record.parameters), f"{section}.{name}"
            training = {*entry.get("training", {}), *entry.get("search", {})}
            assert training <= set(settings.PARAMETERS), f"{section}.{name}"
    for name, entry in content["studies"].items():
        assert set(entry) <= SCHEMA_KEYS, name
