import ast
import hashlib
import importlib
import os
import sys
from pathlib import Path

import pytest

from saliency_assay.pipeline import code_digest
from saliency_assay.pipeline.code_analysis import canonical
from saliency_assay.pipeline.code_digest import code_of, run_this_source


def forget() -> None:
    """Read files and find modules anew, as another process does."""
    importlib.invalidate_caches()
    code_digest._read.cache_clear()
    code_digest._find.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "outer"]:
        del sys.modules[name]  # to find a module imports the packages around it


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A little project: a registry that lists two methods, one of which imports a helper."""
    root = tmp_path / "saliency_assay"
    methods = root / "methods"
    methods.mkdir(parents=True)
    (root / "__init__.py").write_text("")
    (methods / "__init__.py").write_text("NAMES = ('one', 'two')\n")
    (methods / "one.py").write_text(
        '"""One."""\nfrom saliency_assay.methods.shared import help\n\n\ndef one():\n    return help()\n'
    )
    (methods / "two.py").write_text("def two():\n    return 2\n")
    (methods / "shared.py").write_text("def help():\n    return 1\n")
    (tmp_path / "script.py").write_text("import saliency_assay.methods.two\n")
    monkeypatch.setattr(code_digest, "SOURCE", tmp_path)
    forget()
    return tmp_path


def digest_after(edit: Path, text: str, *roots: str) -> str:
    edit.write_text(text)
    forget()
    return code_of(*roots).digest


ONE = "saliency_assay.methods.one"


def test_comments_docstrings_and_layout_are_not_code(package: Path) -> None:
    before = code_of(ONE).digest
    text = (
        '"""Another docstring."""\n\n# A comment.\nfrom saliency_assay.methods.shared import help\n'
        'def one():\n    "Says what it does."\n    return  help( )\n'
    )
    assert digest_after(package / "saliency_assay/methods/one.py", text, ONE) == before


@pytest.mark.parametrize(
    ("module", "counts"), [("one", True), ("shared", True), ("two", False), ("__init__", False)]
)
def test_a_module_and_what_it_imports_count(package: Path, module: str, counts: bool) -> None:
    """Another method and the registry do not."""
    before = code_of(ONE).digest
    after = digest_after(package / f"saliency_assay/methods/{module}.py", "changed = 1\n", ONE)
    assert (after != before) == counts


def test_the_registry_counts_where_a_name_is_imported_from_it(package: Path) -> None:
    script = package / "script.py"
    script.write_text("from saliency_assay.methods import NAMES\n")
    before = code_of(str(script)).digest
    registry = package / "saliency_assay/methods/__init__.py"
    assert digest_after(registry, "NAMES = ('one', 'two', 'three')\n", str(script)) != before


def test_what_a_script_imports_counts(package: Path) -> None:
    script, edited = str(package / "script.py"), package / "saliency_assay/methods/two.py"
    before = code_of(script).digest
    assert digest_after(edited, "import numpy\n", script) != before
    assert code_of(script).packages == ("numpy",)


def test_a_root_that_does_not_exist_is_named() -> None:
    with pytest.raises(ValueError, match=r"'saliency_assay\.nowhere': expected a Python module"):
        code_of("saliency_assay.nowhere")


@pytest.mark.parametrize("packages", [True, False], ids=["with __init__.py", "without"])
@pytest.mark.parametrize(
    "line",
    [
        "from . import near",
        "from ..inner.near import help",
        "from outer.inner import near",
        "import outer.inner.near",
        "from beside import help",
        "def later():\n    from outer.inner.near import help\n    return help",
    ],
)
def test_modules_that_a_users_module_imports_count(
    line: str, packages: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "outer/inner"
    inner.mkdir(parents=True)
    for package in (tmp_path / "outer", inner) if packages else ():
        (package / "__init__.py").write_text("")
    (inner / "mine.py").write_text(f"{line}\n")
    target = tmp_path / "beside.py" if "beside" in line else inner / "near.py"
    other = tmp_path / "other.py"
    for file in (inner / "near.py", tmp_path / "beside.py", other):
        file.write_text("def help():\n    return 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    forget()
    before = code_of("outer.inner.mine").digest
    assert digest_after(other, "CHANGED = 1\n", "outer.inner.mine") == before
    assert digest_after(target, "CHANGED = 1\n", "outer.inner.mine") != before


def test_packages_that_contain_a_users_module_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("outermost/__init__.py", "outermost/middle/__init__.py", "outermost/middle/mine.py"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("LEVEL = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    forget()
    before = code_of("outermost.middle.mine").digest
    for package in ("outermost", "outermost/middle"):
        changed = digest_after(tmp_path / package / "__init__.py", "LEVEL = 2\n", "outermost.middle.mine")
        assert changed != before


def test_a_configurations_folder_may_be_on_the_path_by_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "fine_and_unheard_of_too.py").touch()
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.syspath_prepend(str(tmp_path / "link"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "link"))
    run_this_source(folder)


def test_a_library_elsewhere_on_the_path_counts_by_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as one that is installed in place, with ``pip install --editable``."""
    study, library = tmp_path / "study", tmp_path / "library"
    for folder in (study, library / "lab"):
        folder.mkdir(parents=True)
    (study / "mine.py").write_text("from lab.maps import smooth\n")
    (library / "lab/maps.py").write_text("from lab.filters import SIZE\n")
    (library / "lab/filters.py").write_text("SIZE = 3\n")
    for folder in (study, library):
        monkeypatch.syspath_prepend(str(folder))
    forget()
    before = code_of("mine")
    assert before.packages == ()
    assert digest_after(library / "lab/filters.py", "SIZE = 5\n", "mine") != before.digest


def test_installed_packages_count_by_name_and_not_by_their_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(
        "import json\nimport not_there\nimport scipy.ndimage\nfrom PIL import Image\nfrom torch.nn import functional\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    forget()
    assert code_of("mine").packages == ("PIL", "scipy", "torch")


def test_of_an_installed_module_its_own_content_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "labkit.py").write_text("import beside\nSIZE = 3\n")
    (folder / "beside.py").write_text("")
    monkeypatch.syspath_prepend(str(folder))
    forget()
    before = code_of("labkit")
    assert before.packages == ("beside",)
    assert digest_after(folder / "beside.py", "SIZE = 4\n", "labkit") == before.digest
    assert digest_after(folder / "labkit.py", "import beside\nSIZE = 4\n", "labkit") != before.digest


SNIPPET = """
import ast

async def f(x, /, *y, z: int = 1, **rest) -> None:
    with open(x) as a, open(y) as b:
        return f"{x!r:>{z}} and {y=}" "text" f"{z}ü" + "ü" + b"\\xff".decode() + str(1e300 * 1j)
"""


def test_a_digest_is_the_same_under_every_python() -> None:
    """The expected digest was computed under Python 3.11, 3.12, and 3.13."""
    tree = ast.parse(SNIPPET)
    digest = hashlib.sha256(canonical(tree).encode()).hexdigest()
    assert digest == "d754d570d3c8cb0306539472ecace2f32bd75552c6d53589e61e0a15dd4cf075"


@pytest.mark.parametrize("name", ["random", "torch"])
def test_a_file_beside_the_configuration_that_hides_a_module_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "fine_and_unheard_of.py").touch()
    (tmp_path / f"{name}.py").touch()
    before = list(sys.path), os.environ.get("PYTHONPATH")
    with pytest.raises(SystemExit) as stopped:
        run_this_source(tmp_path)
    assert str(stopped.value.code).startswith(f"{tmp_path / name}.py: has the name of another module, {name}")
    assert (list(sys.path), os.environ.get("PYTHONPATH")) == before


@pytest.mark.parametrize(
    ("expression", "folder"),
    [
        ('Path(__file__).with_name("templates")', "methods/templates"),
        ("Path(__file__).parent.with_name('templates') / 'page.html'", "templates"),
    ],
)
def test_files_that_a_module_reads_beside_itself_count(expression: str, folder: str, package: Path) -> None:
    shared = package / "saliency_assay/methods/shared.py"
    shared.write_text(f"from pathlib import Path\nHERE = {expression}\n")
    templates = package / "saliency_assay" / folder
    (templates / "inner").mkdir(parents=True)
    (templates / "page.html").write_text("<p>")
    (templates / "inner/page.css").write_text("p {}")
    (package / "saliency_assay/methods/other.css").write_text("p {}")
    forget()
    before = code_of(ONE)
    assert before.packages == ()
    assert digest_after(package / "saliency_assay/methods/other.css", "changed", ONE) == before.digest
    changed = digest_after(templates / "page.html", "<p> ", ONE)
    assert changed != before.digest
    assert digest_after(templates / "inner/page.css", "changed", ONE) != changed
