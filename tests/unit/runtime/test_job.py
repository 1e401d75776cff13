"""A job's log, and its faults on the terminal and in the exit status."""

import logging
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from jobs import snakemake_of

from saliency_assay.runtime.job import LONGEST, run_job


def test_a_job_that_works_prints_nothing_on_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "logs" / "train" / "seed0.log"  # no such folder yet
    with run_job(snakemake_of("train", log, {})):
        print("progress", file=sys.stderr)
        logging.info("epoch %d of %d", 3, 8)
        logging.getLogger("somewhere.else").warning("slow")
        logging.debug("of no interest")
    assert capsys.readouterr() == ("", "")
    lines = log.read_text().splitlines()
    assert lines[0] == "progress"
    assert [line.split(" ", 2)[2] for line in lines[1:]] == ["epoch 3 of 8", "slow"]  # after date and time


def test_a_fault_is_one_line_on_the_terminal_and_a_traceback_in_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "collect.log"
    with pytest.raises(SystemExit) as stopped, run_job(snakemake_of("collect_bam", log, {})):
        raise ValueError("instances.json: no category 'dgo'\nand more")
    assert stopped.value.code == 1
    assert stopped.value.__suppress_context__  # no second traceback on the terminal
    assert capsys.readouterr() == ("", "collect_bam: instances.json: no category 'dgo'\n")
    text = log.read_text()
    assert text.startswith("Traceback (most recent call last):\n")
    assert 'raise ValueError("instances.json' in text
    assert "\nValueError: instances.json: no category 'dgo'\nand more\n" in text
    assert text.splitlines()[-1] == "collect_bam: instances.json: no category 'dgo'"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (RuntimeError("  \n "), "RuntimeError (test_job.py, line LINE)"),
        (KeyError("a"), "KeyError: 'a' (test_job.py, line LINE)"),
        (RuntimeError("one\ntwo"), "RuntimeError: one (test_job.py, line LINE)"),
        (OSError(28, "No space left on device"), "[Errno 28] No space left on device"),
    ],
)
def test_a_fault_of_few_words_has_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], error: Exception, line: str
) -> None:
    with pytest.raises(SystemExit) as stopped, run_job(snakemake_of("train", tmp_path / "log", {})):
        raise error
    assert stopped.value.code == 1
    printed = re.sub(r"line \d+", "line LINE", capsys.readouterr().err)
    assert printed == f"train: {line}\n"


def test_a_full_disk_of_the_log_hides_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    full = "[Errno 28] No space left on device"
    with pytest.raises(SystemExit) as stopped, run_job(snakemake_of("train", Path("/dev/full"), {})):
        raise ValueError("broken")
    assert (stopped.value.code, capsys.readouterr().err) == (1, f"train: broken\ntrain: /dev/full: {full}\n")
    with pytest.raises(SystemExit), run_job(snakemake_of("train", Path("/dev/full"), {})):
        print("epoch 1", file=sys.stderr)
    assert f"train: {full}" in capsys.readouterr().err


@pytest.mark.parametrize("error", [SystemExit(143), KeyboardInterrupt()])
def test_a_signal_stops_a_job_with_its_own_exception(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], error: BaseException
) -> None:
    log = tmp_path / "train.log"

    def run() -> None:
        with run_job(snakemake_of("train", log, {})):
            print("state saved", file=sys.stderr)
            raise error

    with pytest.raises(type(error)) as stopped:
        run()
    assert stopped.value is error
    assert capsys.readouterr() == ("", "")
    assert log.read_text() == "state saved\n"


def test_warnings_are_logged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with run_job(snakemake_of("train", log, {})):
            warnings.warn("this will change", FutureWarning, stacklevel=1)
    assert capsys.readouterr() == ("", "")
    assert "FutureWarning: this will change" in log.read_text()


@pytest.mark.parametrize("fault", [None, ValueError("broken"), SystemExit(143)])
def test_nothing_stays_redirected(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, fault: BaseException | None
) -> None:
    caplog.set_level(logging.WARNING)  # gives the level back after the test
    root = logging.getLogger()

    def state() -> tuple[object, ...]:
        return sys.stderr, warnings.showwarning, root.level, list(root.handlers)

    root.setLevel(logging.ERROR)
    before = state()
    log = tmp_path / "log"
    try:
        with run_job(snakemake_of("train", log, {})):
            assert state() != before
            if fault:
                raise fault
    except SystemExit:
        pass
    assert state() == before
    logging.warning("after the job")
    assert "after the job" not in log.read_text()


def test_a_log_is_written_anew_in_utf8_and_line_by_line(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("of the run before\n")
    with run_job(snakemake_of("train", log, {})):
        print("Δ → 0", file=sys.stderr)
        assert log.read_bytes() == "Δ → 0\n".encode()  # readable while the job runs


def test_text_of_a_data_file_does_not_control_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Escape sequences, and half of a character, which no encoding can write."""
    log = tmp_path / "collect.log"
    with pytest.raises(SystemExit), run_job(snakemake_of("collect_bam", log, {})):
        raise ValueError("photo.jpg: found '\x1b[2J\ud800\x07é×'")
    assert capsys.readouterr() == ("", "collect_bam: photo.jpg: found '\\x1b[2J\\ud800\\x07é×'\n")
    assert "\\ud800" in log.read_text(encoding="utf-8")


def test_a_line_of_a_million_characters_is_cut_in_its_middle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit), run_job(snakemake_of("collect_bam", tmp_path / "collect.log", {})):
        raise ValueError(f"lists.txt: found {'x' * 10**6}, expected a path")
    line = capsys.readouterr().err
    assert len(line) == len("collect_bam: \n") + LONGEST + len(" … ")
    assert line.startswith("collect_bam: lists.txt: found xxx")
    assert line.endswith("xxx, expected a path\n")


def test_a_function_that_exits_does_not_pass_for_work_that_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "attribute.log"
    with pytest.raises(SystemExit) as stopped, run_job(snakemake_of("attribute", log, {})):
        sys.exit()
    assert stopped.value.code == 1
    assert capsys.readouterr().err.startswith("attribute: exited before its work was done")
    assert "sys.exit()" in log.read_text()


# ---- what a script has of its job


def test_files_are_paths_by_name_by_place_and_in_order(tmp_path: Path) -> None:
    files = {"data": "d.zarr.zip", "maps": ["a.zarr.zip", "b.zarr.zip"], "concepts": []}
    with run_job(snakemake_of("score", tmp_path / "log", {}, files, ["made.csv"])) as job:
        assert job.input.data == Path("d.zarr.zip")
        assert job.input.maps == [Path("a.zarr.zip"), Path("b.zarr.zip")]
        assert job.input.concepts == []
        assert job.input["data"] == job.input.data
        assert job.input.get("maps") == job.input.maps
        assert job.input.get("weights") is None
        assert job.input.get("weights", []) == []
        assert list(job.input) == [job.input.data, *job.input.maps]
        assert list(job.input.items()) == [(name, getattr(job.input, name)) for name in files]
        assert job.output[0] == Path("made.csv")
        assert not hasattr(job.input, "weights")


def test_what_a_job_opens_is_closed_when_it_ends_also_by_a_fault(tmp_path: Path) -> None:
    events: list[str] = []

    @contextmanager
    def store() -> Iterator[int]:
        events.append("opened")
        try:
            yield 3
        finally:
            events.append("closed")
            print("closed", file=sys.stderr)

    log = tmp_path / "log"
    with run_job(snakemake_of("score", log, {"seed": 1}, seed="1")) as job:
        assert job.open(store()) == 3
        assert (job.settings, job.wildcards.seed, job.threads) == ({"seed": 1}, "1", 1)
        assert events == ["opened"]
    assert events == ["opened", "closed"]
    assert log.read_text() == "closed\n"
    with pytest.raises(SystemExit), run_job(snakemake_of("score", log, {})) as job:
        assert job.open(store()) == "another"
    assert events == ["opened", "closed"] * 2


def test_a_fault_names_the_key_that_the_job_is_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit), run_job(snakemake_of("score", tmp_path / "log", {}), "metrics.aopc"):
        raise ValueError("steps: found 0")
    assert capsys.readouterr().err == "score: metrics.aopc: steps: found 0\n"
