"""Combined jobs under Snakemake's options, and what of them runs."""

import pytest
from checkout import Checkout

pytestmark = pytest.mark.slow

TABLES = "results/logs/tabulate_scores/digits.log"
OTHER_TABLES = "results/logs/tabulate_reliability/digits.log"


def test_options_that_name_a_rule_apply_to_its_combined_jobs(finished: Checkout) -> None:
    forced = finished.planned("--forcerun=tabulate_scores")
    assert {"tabulate__digits", "plot__digits", "overview", "report"} <= forced
    assert not any(job.startswith(("attribute", "score", "train")) for job in forced)
    assert finished.planned("--forcerun=tabulate_scores", "--until=tabulate_scores") == {"tabulate__digits"}
    planned = finished.planned("--forcerun=tabulate_scores", "--omit-from=plot_scores")
    assert planned == {"tabulate__digits", "document_methods"}
    options = ["--forcerun=attribute", "--set-resources=attribute:mem_mb=77", "--set-threads=attribute=2"]
    status, printed = finished.snakemake("--dry-run", *options, "--until=attribute")
    assert status == 0, printed
    blocks = [block for block in printed.split("\n[") if "rule attribute__" in block]
    assert len(blocks) > 5
    assert all("threads: 2" in block and "mem_mb=77" in block for block in blocks)


def test_a_forced_rule_recomputes_its_parts_and_no_others(finished: Checkout) -> None:
    before = {name: (finished.root / name).stat().st_mtime_ns for name in (TABLES, OTHER_TABLES)}
    files = finished.files("results/tables")
    finished.make("--forcerun=tabulate_scores", "--until=tabulate_scores")
    after = {name: (finished.root / name).stat().st_mtime_ns for name in before}
    assert after[TABLES] > before[TABLES]
    assert after[OTHER_TABLES] == before[OTHER_TABLES]
    assert finished.files("results/tables") == files
    log = finished.log("combined/tabulate__digits.log").splitlines()
    assert log[log.index("part 2 of 2: tabulate_reliability digits") + 1] == "unchanged"


def test_a_deleted_result_is_restored(finished: Checkout) -> None:
    path = finished.root / "results/maps/digits/seed0/digits/gradient.zarr.zip"
    content = path.read_bytes()
    path.unlink()
    finished.make("results/maps/digits/seed0/digits/gradient.zarr.zip")
    assert path.read_bytes() == content
    assert "s\n" not in finished.log("combined/attribute__digits__seed0__digits.log").replace(
        "unchanged\n", ""
    )
