"""The archive of results for a release."""

from pathlib import Path
from zipfile import ZipFile

import pytest

from tools.result_set import write_archive

EXPORTED = ("configuration.yaml", "export/results.csv", "export/s/order.csv", "report.html")


@pytest.fixture
def configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in (*EXPORTED, "maps/m.zip"):
        Path("out", name).parent.mkdir(parents=True, exist_ok=True)
        Path("out", name).write_text(name)
    Path("study.yaml").write_text("results: out\n")
    return Path("study.yaml")


def test_the_archive_has_report_and_export_alone(configuration: Path) -> None:
    write_archive(Path("build/a.zip"), [configuration])
    write_archive(Path("build/b.zip"), [configuration])
    with ZipFile("build/a.zip") as opened:
        assert sorted(opened.namelist()) == [f"study/{name}" for name in EXPORTED]
        assert opened.read("study/export/s/order.csv") == b"export/s/order.csv"
    assert Path("build/a.zip").read_bytes() == Path("build/b.zip").read_bytes()


def test_results_without_a_report_are_refused(configuration: Path) -> None:
    Path("out/report.html").unlink()
    with pytest.raises(SystemExit, match=r"out/report\.html: missing"):
        write_archive(Path("a.zip"), [configuration])
