"""Checks of imports between packages, registries, third-party libraries, kinds of study and names in docstrings."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.source_tree import (
    MODULES,
    PACKAGE,
    ROOT,
    SCRIPTS,
    Problem,
    imports,
    module_name,
    project_imports,
    syntax,
)

ORDER = (
    "registry", "runtime", "storage", "data", "models", "training", "methods", "metrics", "config", "pipeline",
    "plotting", "reliability", "studies", "catalog", "report", "runs", "api", "plot", "adapters", "suite", "cli",
)  # fmt: skip
"""Order of packages; each imports only from itself and from earlier ones."""
HOMES = {
    "zarr": {"storage"},
    "skimage": {"methods", "metrics", "studies"},
    "snakemake": {"pipeline"},
    "jinja2": {"plotting"},
    "vl_convert": {"plotting"},
    "pycocotools": {"data"},
}
"""Packages of the project that may import a library."""
NETWORK, FETCH = {"urllib", "http", "requests", "ftplib"}, PACKAGE / "data/download/fetch.py"
"""Libraries that access the network, and the only module that may import them."""
HEAVY = {"torch", "pandas", "zarr", "numpy", "scipy", "sklearn", "matplotlib", "PIL", "vl_convert"}
"""Libraries that no module imported by the Snakefile may load, because every job parses the Snakefile."""
PARSED = ("check", "settings", "inputs", "params")
"""Fields of records whose functions and classes are used when the Snakefile is parsed."""
KINDS = sorted(PACKAGE.glob("studies/*/__init__.py"))
REGISTRIES = {
    **{
        PACKAGE / name / "__init__.py": {
            *("registry.callable", "registry.controls", "registry.directions", "registry.properties"),
            *("registry.records", "registry.signatures"),
        }
        for name in ("data", "models", "methods", "metrics")
    },
    **{path: {"registry.directions", "registry.properties", "registry.study_kind"} for path in KINDS},
    PACKAGE / "studies/__init__.py": {module_name(path) for path in KINDS},
}
"""Modules of records, with the project's modules that they may import."""
NAMESAKES = {
    PACKAGE / name
    for name in (
        *("config/data.py", "data/__init__.py", "data/caption.py", "registry/limits.py", "methods/checks.py"),
        *("methods/kernel_shap.py", "methods/segments.py", "plotting/charts.py", "pipeline/combined.py"),
        *("metrics/__init__.py", "metrics/cost.py", "pipeline/model_checks.py"),
        *("pipeline/dry_run.py", "pipeline/sources.py", "runs/code_used.py", "runtime/parts.py"),
    )
}
"""Modules that may name ``bam``, ``caption``, ``designed``, ``grid`` or ``parts`` without meaning a kind of study."""
READERS = {
    *(PACKAGE / "api").glob("*.py"),
    *(PACKAGE / "suite").glob("*.py"),
    PACKAGE / "catalog.py",
    PACKAGE / "plot.py",
    PACKAGE / "config/data.py",
    PACKAGE / "config/metrics.py",
    PACKAGE / "studies/__init__.py",
}
"""Modules that may import a registry, because they are in no job's digest of code."""


def check_imports() -> Iterator[Problem]:
    """Check the imports of modules and scripts."""
    for path in MODULES:
        package = module_name(path).partition(".")[0]
        if path != PACKAGE / "__init__.py":  # it exports functions of ``api``
            later = ORDER[ORDER.index(package) + 1 :]
            for line, name in project_imports(path):
                if name.partition(".")[0] in later:
                    yield Problem(path, line, f"imports {name}, but {package} comes before it")
        for line, name in imports(path):
            library = name.partition(".")[0]
            if not library:
                yield Problem(path, line, "relative import")
            elif package not in HOMES.get(library, {package}):
                yield Problem(path, line, f"imports {library}, which belongs to {sorted(HOMES[library])}")
    for path in (*MODULES, *SCRIPTS):
        for line, name in imports(path):
            if name.partition(".")[0] in NETWORK and path != FETCH:
                yield Problem(
                    path, line, f"imports {name}, but only data/download/fetch.py opens the network"
                )
    yield from check_registries()
    yield from check_snakefile_imports()
    yield from check_kinds()
    yield from check_references()


def check_registries() -> Iterator[Problem]:
    """Check that registries import almost nothing and that no implementation imports a registry.

    Otherwise the digest of every method would include the whole registry, and any change there would rerun all jobs.
    """
    for path, modules in REGISTRIES.items():
        for line, name in project_imports(path):
            if name not in modules:
                yield Problem(path, line, f"imports {name}, but a registry imports only {sorted(modules)}")
        for line, name in imports(path):
            if name.partition(".")[0] not in {"saliency_assay", *sys.stdlib_module_names}:
                yield Problem(path, line, f"imports {name}, but a registry needs no installed package")
    records = {"catalog", *map(module_name, REGISTRIES)}
    for path in (*MODULES, *SCRIPTS):
        if path not in READERS:
            for line, name in project_imports(path):
                if name in records:
                    yield Problem(
                        path, line, f"imports the registry {name}; only the configuration reads records"
                    )
                if name.startswith("api.") and path.parent not in (
                    PACKAGE,
                    PACKAGE / "api",
                    PACKAGE / "adapters",
                    PACKAGE / "suite",
                ):
                    yield Problem(path, line, f"imports {name}, which is for notebooks")


def check_snakefile_imports() -> Iterator[Problem]:
    """Check that the modules needed to parse the Snakefile load no heavy package."""
    for module, (path, line) in _parsed_modules().items():
        code = f"import sys, {module}; print(*sorted({HEAVY!r} & set(sys.modules)))"
        completed = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, cwd=PACKAGE.parent
        )
        if loaded := completed.stdout.strip() or completed.stderr.strip():
            yield Problem(path, line, f"importing {module} loads {loaded}")


def _parsed_modules() -> dict[str, tuple[Path, int]]:
    """Return the modules imported when the Snakefile is parsed, each with a file and line that names it."""
    modules = {}
    for path in (ROOT / "workflow/Snakefile", *sorted((ROOT / "workflow/rules").rglob("*.smk"))):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if match := re.match(r"from (saliency_assay\.[\w.]+) import", line):
                modules[match[1]] = path, number
    for path in REGISTRIES:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if match := re.match(rf' +({"|".join(PARSED)})="(saliency_assay\.[\w.]+):', line):
                modules[match[2]] = path, number
    return modules


def check_kinds() -> Iterator[Problem]:
    """Check that no module names a kind of study outside its folder; its properties are in its record."""
    names = {path.parent.name for path in KINDS}
    for path in (*MODULES, *SCRIPTS):
        own_kind = path.parent.name if path.is_relative_to(PACKAGE / "studies") else ""
        for node in ast.walk(syntax(path)):
            if isinstance(node, ast.Constant) and node.value in names - {own_kind} and path not in NAMESAKES:
                yield Problem(path, node.lineno, f"names the kind of study {node.value!r}")


def check_references() -> Iterator[Problem]:
    """Check that modules named in docstrings as ``package.module`` or ``package.module.name`` exist."""
    modules = {module_name(path): path for path in MODULES}
    for path in (*MODULES, *SCRIPTS):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for name in re.findall(r"``([a-z_]+(?:\.\w+)+)", line):
                module, _, member = name.rpartition(".")
                exists = name in modules or (
                    module in modules and re.search(rf"\b{member}\b", modules[module].read_text())
                )
                if name.partition(".")[0] in ORDER and not exists and member not in ("csv", "json"):
                    yield Problem(path, number, f"no {name}")
