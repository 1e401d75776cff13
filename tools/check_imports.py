"""Order of imports between packages, registries, homes of libraries and kinds of study, and names in docstrings."""

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
    "plotting", "reliability", "studies", "catalogue", "report", "api",
)  # fmt: skip
"""A package imports from itself and from packages before it."""
HOMES = {
    "zarr": {"storage"},
    "captum": {"methods"},
    "zennit": {"methods"},
    "skimage": {"methods", "metrics", "studies"},
    "snakemake": set(),
    "jinja2": {"plotting"},
    "pycocotools": {"data"},
}
"""Packages that may import a library."""
NETWORK, FETCH = {"urllib", "http", "requests", "ftplib"}, PACKAGE / "data/download/fetch.py"
"""Libraries that open the network, and the only module that does."""
HEAVY = {"torch", "pandas", "captum", "zarr", "numpy", "scipy", "sklearn", "matplotlib", "PIL"}
"""What no module does that the Snakefile imports: it is read anew in every job."""
PARSED = ("check", "settings", "read", "inputs", "params")
"""Fields of records whose functions and classes are used when the Snakefile is parsed."""
KINDS = sorted(PACKAGE.glob("studies/*/__init__.py"))
REGISTRIES = {
    **{
        PACKAGE / name / "__init__.py": {"registry.records", "registry.signatures"}
        for name in ("data", "models", "methods", "metrics")
    },
    **{path: {"registry.study_kind"} for path in KINDS},
    PACKAGE / "studies/__init__.py": {module_name(path) for path in KINDS},
}
"""Modules of records, and all of the project that they import."""
NAMESAKES = {PACKAGE / name for name in ("config/settings.py", "data/__init__.py", "data/caption.py")}
"""Modules that name the kinds of data ``bam`` and ``caption``."""
READERS = {
    *(PACKAGE / "api").glob("*.py"),
    PACKAGE / "catalogue.py",
    PACKAGE / "config/settings.py",
    PACKAGE / "studies/__init__.py",
}
"""Modules that may import a registry: no job's digest of code holds them."""


def check_imports() -> Iterator[Problem]:
    """Check what modules and scripts import."""
    for path in MODULES:
        package = module_name(path).partition(".")[0]
        if path != PACKAGE / "__init__.py":  # it offers functions of ``api`` by name
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
    """Registries import next to nothing, and no implementation imports a registry.

    Otherwise every method's digest would hold the whole registry, and one line there would run everything again.
    """
    for path, modules in REGISTRIES.items():
        for line, name in project_imports(path):
            if name not in modules:
                yield Problem(path, line, f"imports {name}, but a registry imports only {sorted(modules)}")
        for line, name in imports(path):
            if name.partition(".")[0] not in {"saliency_assay", *sys.stdlib_module_names}:
                yield Problem(path, line, f"imports {name}, but a registry needs no installed package")
    records = {"catalogue", *map(module_name, REGISTRIES)}
    for path in (*MODULES, *SCRIPTS):
        if path not in READERS:
            for line, name in project_imports(path):
                if name in records:
                    yield Problem(
                        path, line, f"imports the registry {name}; only the configuration reads records"
                    )
                if name.startswith("api.") and path.parent not in (PACKAGE, PACKAGE / "api"):
                    yield Problem(path, line, f"imports {name}, which is for notebooks")


def check_snakefile_imports() -> Iterator[Problem]:
    """Check that imports of the Snakefile, of the rules and of records for them load no heavy package."""
    for module, (path, line) in _parsed_modules().items():
        code = f"import sys, {module}; print(*sorted({HEAVY!r} & set(sys.modules)))"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, cwd=PACKAGE.parent
        )
        if loaded := done.stdout.strip() or done.stderr.strip():
            yield Problem(path, line, f"importing {module} loads {loaded}")


def _parsed_modules() -> dict[str, tuple[Path, int]]:
    """Modules that are imported when the Snakefile is parsed, each with a place that names it."""
    modules = {}
    for path in (ROOT / "Snakefile", *sorted((ROOT / "rules").rglob("*.smk"))):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if match := re.match(r"from (saliency_assay\.[\w.]+) import", line):
                modules[match[1]] = path, number
    for path in REGISTRIES:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if match := re.match(rf' +({"|".join(PARSED)})="(saliency_assay\.[\w.]+):', line):
                modules[match[2]] = path, number
    return modules


def check_kinds() -> Iterator[Problem]:
    """No module names a kind of study outside its folder: records say what distinguishes it."""
    names = {path.parent.name for path in KINDS}
    for path in (*MODULES, *SCRIPTS):
        own = path.parent.name if path.is_relative_to(PACKAGE / "studies") else ""
        for node in ast.walk(syntax(path)):
            if isinstance(node, ast.Constant) and node.value in names - {own} and path not in NAMESAKES:
                yield Problem(path, node.lineno, f"names the kind of study {node.value!r}")


def check_references() -> Iterator[Problem]:
    """Modules that a docstring names, as ``package.module`` or ``package.module.name``, exist."""
    modules = {module_name(path): path for path in MODULES}
    for path in (*MODULES, *SCRIPTS):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for name in re.findall(r"``([a-z_]+(?:\.\w+)+)", line):
                module, _, member = name.rpartition(".")
                known = name in modules or (
                    module in modules and re.search(rf"\b{member}\b", modules[module].read_text())
                )
                if name.partition(".")[0] in ORDER and not known and member not in ("csv", "json"):
                    yield Problem(path, number, f"no {name}")
