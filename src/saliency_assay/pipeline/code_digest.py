"""Digest of the code behind a rule, and the installed packages that this code imports.

Snakemake tracks the script of a rule but not the modules that the script imports. Each rule therefore has this digest,
and the versions of those packages, as a parameter: an edit or an update reruns exactly the affected jobs. Files that a
module of the package reads from its own folder, such as page templates, count as its code.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

from saliency_assay.pipeline.code_analysis import analysis_of
from saliency_assay.registry.signatures import source_of
from saliency_assay.runtime.provenance import SOURCE, digest_of_file, fingerprint

PACKAGE = "saliency_assay"
INSTALLED = {"site-packages", "dist-packages"}
"""Folders of installed packages, which are identified by version; all other modules are identified by content."""


@dataclass(frozen=True)
class Code:
    """The code behind a rule: SHA-256 of the modules, and the top-level names of the installed packages they import."""

    digest: str
    packages: tuple[str, ...]
    files: Mapping[Path, str]
    """Digest of the code of each module."""


def run_this_source(*folders: Path) -> None:
    """Put the source folder of this package first on the import path of all jobs, before an installed version.

    Otherwise a job could run other code than that of the digest. ``folders``, those of the configuration files, follow
    on the path, so that jobs can import custom functions from them.

    Raises:
        SystemExit: a file in one of ``folders`` has the name of another module, which it would replace in jobs.
    """
    for folder in folders:
        for file in sorted(folder.resolve().glob("*.py")):
            existing = find_spec(file.stem) if file.stem.isidentifier() and file.stem != "__main__" else None
            if existing is not None and Path(existing.origin or "").resolve() != file:
                message = f"has the name of another module, {file.stem}, and jobs would import it instead"
                raise SystemExit(f"{file}: {message}; rename it")
    # An installed package is on the path already, together with all others, which must not precede those of other jobs.
    own = [] if INSTALLED & set(SOURCE.parts) else [str(SOURCE)]
    paths = [*own, *(str(folder.resolve()) for folder in folders)]
    others = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(filter(None, [*paths, *others])))
    sys.path.extend(path for path in paths if path not in sys.path)


def code_of(*roots: str) -> Code:
    """Return the code of ``roots`` and of all modules that they import, directly or not, outside of installed packages.

    A root is a dotted module name or the path of a script. Docstrings, comments, layout and statements under
    ``if TYPE_CHECKING:`` are ignored. The ``__init__`` of a package is included only if a name is imported from it:
    registries list every method, and a rule for one method must not depend on all of them. A file or folder that a
    module of the package refers to as ``Path(__file__).with_name("templates")`` is included with its whole content. The
    digest is the same in every checkout and under every version of Python that parses the code.

    Raises:
        ValueError: a root is neither a file nor a module that can be found.
    """
    pending, packages = list(map(_file_of_root, roots)), set[str]()
    digests: dict[Path, str] = {}
    while pending:
        path = pending.pop()
        if path not in digests:
            digests[path], files, imported = _read(path)
            packages.update(imported)
            # The content of an installed root counts too: a package may be edited without a new version.
            if not _is_installed(path):
                pending.extend(files)
    # File names instead of absolute paths, so that the digest does not depend on the location of the checkout.
    digest = fingerprint(sorted([path.stem, digest] for path, digest in digests.items()))
    return Code(digest, tuple(sorted(packages)), digests)


def _file_of_root(root: str) -> Path:
    """Return the file of a script or module."""
    if root.endswith(".py"):
        path = Path(root)
    elif root.partition(".")[0] == PACKAGE:
        path = _file_in(SOURCE, root) or Path()
    else:
        path = source_of(root) or Path()
    if not path.is_file():
        raise ValueError(f"{root!r}: expected a Python module or the path of a script")
    return path.resolve()


@cache
def _read(path: Path) -> tuple[str, tuple[Path, ...], tuple[str, ...]]:
    """Return the digest of the code of a file, the files that it imports or reads, and the packages that it imports."""
    if path.suffix != ".py":
        return digest_of_file(path), (), ()
    analysis = analysis_of(path)
    files, packages = dict[Path, None](), dict[str, None]()
    for folders, modules in _sources_of(path, analysis.imports):
        is_own = any(name.startswith(f"{PACKAGE}.") for name in modules)
        sources = [folder for folder in folders if is_own or not _is_installed(folder)]
        candidates = (_file_in(folder, name) for name in modules for folder in sources)
        if file := next(filter(None, candidates), None):
            files[file] = None
        elif modules and len(sources) < len(folders):
            packages[modules[0].partition(".")[0]] = None
    if path.is_relative_to(SOURCE / PACKAGE):
        files |= dict.fromkeys(_companion_files(path, analysis.companions))
    else:
        files |= dict.fromkeys(_initializers(path))
    return analysis.digest, tuple(files), tuple(packages)


def _initializers(path: Path) -> Iterator[Path]:
    """Yield the ``__init__.py`` of the packages that contain a module, which are run before it."""
    folder = path.parent.parent if path.name == "__init__.py" else path.parent
    while (file := folder / "__init__.py").is_file():
        yield file
        folder = folder.parent


def _is_installed(path: Path) -> bool:
    """Return True if a module belongs to an installed package other than this one."""
    return bool(INSTALLED & set(path.parts)) and not path.is_relative_to(SOURCE / PACKAGE)


def _companion_files(path: Path, companions: Iterable[tuple[int, str]]) -> Iterator[Path]:
    """Yield the files that a module refers to relative to its own path, and all files of such folders."""
    for height, name in companions:
        companion = path.parents[height] / name
        yield from (
            [companion] if companion.is_file() else sorted(filter(Path.is_file, companion.rglob("*")))
        )


def _sources_of(
    path: Path, imports: Iterable[tuple[int, str, str]]
) -> Iterator[tuple[list[Path], list[str]]]:
    """Yield for each import the folders of its top-level module, and the candidate module names in order of search."""
    for level, module, name in imports:
        # ``from module import name`` reads the submodule ``module.name`` if there is one, else ``module``.
        names = [module] if not name else [f"{module}.{name}" if module else name, module]
        if level:
            yield [path.parents[level - 1]], names
        else:
            yield from _absolute_import(names)


def _absolute_import(names: list[str]) -> Iterator[tuple[list[Path], list[str]]]:
    """Yield the folders and names of an absolute import; nothing for the standard library."""
    top = names[0].partition(".")[0]
    if top == PACKAGE:
        # The package's __init__ is left out: it contains the version, and a new version alone changes no result.
        yield [SOURCE], [name for name in names if name != PACKAGE]
    elif top not in sys.stdlib_module_names and (spec := _find(top)):
        locations = map(Path, spec.submodule_search_locations or filter(None, [spec.origin]))
        yield [location.resolve().parent for location in locations], names


@cache
def _find(top: str) -> ModuleSpec | None:
    """Return the spec of a top-level module without importing it; None if it is not found."""
    try:
        return find_spec(top)
    except (ImportError, ValueError):
        return None


def _file_in(folder: Path, module: str) -> Path | None:
    """Return the file of a dotted module below ``folder``; for an empty name the ``__init__.py`` of ``folder``."""
    path = folder.joinpath(*module.split(".")) if module else folder
    for candidate in (path.with_name(f"{path.name}.py"), path / "__init__.py"):
        if candidate.is_file() and (module or candidate.name == "__init__.py"):
            return candidate.resolve()
    return None
