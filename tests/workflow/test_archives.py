"""Runs that are pruned, exported and imported."""

import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path

import pytest
from checkout import Checkout

from saliency_assay.runs.archive import MANIFEST, export, import_run
from saliency_assay.runs.compare import compare
from saliency_assay.runs.prune import prune, usage
from saliency_assay.runs.results_folder import RunError

pytestmark = pytest.mark.slow

METHOD = "src/saliency_assay/methods/smoothing.py"


@pytest.fixture
def here(smallest: Checkout, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    """A finished run in the working directory."""
    monkeypatch.chdir(smallest.root)
    return smallest


def test_an_imported_run_has_its_report_and_tables_and_continues(here: Checkout, tmp_path: Path) -> None:
    archive = tmp_path / "run.tar"
    export(Path("tiny.yaml"), archive)
    there = Checkout.fresh(tmp_path / "there/project")
    (there.root / there.configuration).unlink()
    line = import_run(archive, there.root)
    assert line.endswith("saliency-assay report tiny.yaml")
    assert compare(here.root / "results", there.root / "results").is_equal
    assert there.planned() == set()
    assert there.assay("report", "--cores=2").returncode == 0
    assert there.assay("table", "--cores=2").returncode == 0
    assert (there.root / "results/export/results.csv").is_file()
    # Its records came along, so an edit reruns what follows from it and no more.
    there.edit(
        METHOD, lambda code: code.replace("times_input else mean\n", "times_input else mean.square()\n")
    )
    rerun = there.planned("results/tables/digits/order.csv")
    assert any("attribute" in job for job in rerun)
    assert not any(job.startswith(("train", "build_data")) for job in rerun)


def test_nothing_is_written_over(here: Checkout, tmp_path: Path) -> None:
    archive = tmp_path / "run.tar"
    export(Path("tiny.yaml"), archive, ["maps", "weights"])
    with tarfile.open(archive) as tar:
        names = tar.getnames()
    assert names[0] == MANIFEST
    assert not any("/maps/" in name or name.endswith(".pt") for name in names)
    with pytest.raises(RunError, match="exists"):
        export(Path("tiny.yaml"), archive)
    # Nor does it have the hard links to them that combined jobs keep.
    export(Path("tiny.yaml"), tmp_path / "whole.tar")
    maps = sum(map(len, here.files("results/maps").values()))
    assert (tmp_path / "whole.tar").stat().st_size - archive.stat().st_size > maps
    before = here.files(".")
    with pytest.raises(RunError, match="results exists"):
        import_run(archive, here.root)
    assert here.files(".") == before
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "tiny.yaml").write_text("results: elsewhere\n")
    with pytest.raises(RunError, match=r"tiny\.yaml exists and differs"):
        import_run(archive, folder)
    assert [path.name for path in folder.iterdir()] == ["tiny.yaml"]


def test_archives_that_are_cut_off_or_reach_outside_are_refused(here: Checkout, tmp_path: Path) -> None:
    archive, cut = tmp_path / "run.tar", tmp_path / "cut.tar"
    export(Path("tiny.yaml"), archive)
    cut.write_bytes(archive.read_bytes()[: archive.stat().st_size // 2])
    outside = tmp_path / "outside.tar"
    with tarfile.open(outside, "w") as tar:
        member = tarfile.TarInfo("../../evil")
        member.size = 1
        tar.addfile(member, BytesIO(b"x"))
    for file in (cut, outside, here.root / "tiny.yaml"):
        folder = tmp_path / f"from_{file.stem}"
        with pytest.raises(RunError, match="not an archive of a run"):
            import_run(file, folder)
        assert list(folder.iterdir()) == []
    assert not (tmp_path.parent / "evil").exists()


def test_deleted_maps_are_computed_again_only_when_they_are_needed(here: Checkout) -> None:
    before, maps = here.files(), set(here.files("results/maps"))
    used = usage(Path("results"))
    assert {file.relative_to("results/maps").as_posix() for file in used["maps"].files} == maps
    assert used["maps"].seconds > 0
    assert prune(Path("results"), ["maps"], delete=False).startswith("would delete")
    assert here.files() == before
    prune(Path("results"), ["maps", "weights"], delete=True)
    assert not (here.root / "results/maps").exists()
    assert not list((here.root / "results").rglob("*.pt"))
    # Nor does a combined job restore them from its own links.
    sizes = {file.stat().st_ino for file in (here.root / "results/.state/parts").rglob("*") if file.is_file()}
    assert len(usage(Path("results"))) < len(used)
    assert sizes
    assert here.planned() == set()
    here.configure(
        studies__digits__printed=None,
        metrics__again={"metric": "complexity"},
        studies__digits__metrics=["faithfulness", "again"],
    )
    assert any("attribute" in job for job in here.planned())
    with pytest.raises(RunError, match="valid: maps, "):
        prune(Path("results"), ["scores"], delete=True)


def test_the_command_lists_sizes_and_deletes_nothing_by_default(here: Checkout) -> None:
    before = here.files()
    command = [sys.executable, "-m", "saliency_assay.cli", "prune"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    kinds = [line.split()[0] for line in done.stdout.splitlines()]
    assert {"maps", "weights", "data", "other"} <= set(kinds)
    done = subprocess.run([*command, "maps"], capture_output=True, text=True, check=True)
    assert "nothing was deleted" in done.stdout
    assert here.files() == before
