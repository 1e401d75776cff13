"""What a terminal shows of a run, in any width, and what a pipe gets."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator

import pytest

from snakemake_logger_plugin_saliency_assay.screen import RED, Capture, Screen, block_of, duration, rounded
from snakemake_logger_plugin_saliency_assay.state import Run


@pytest.fixture
def run() -> Run:
    """A run 72 s after its start: 5 of 20 jobs done, two running, one failed."""
    now = [0.0]
    run = Run(lambda: now[0])
    run.begin({"train": 20, "total": 20})
    for number in range(6):
        run.start_job(number, "train", {"model": "f_o", "seed": str(number)}, [], None)
    now[0] = 30.0
    for number in range(5):
        run.finish_job(number)
    run.fail_job(5)
    now[0] = 60.0
    run.start_job(6, "train", {"model": "a_model_with_quite_a_long_name", "seed": "6"}, [], None)
    run.start_job(7, "train", {"model": "模型", "seed": "7"}, [], None)
    now[0] = 72.0
    return run


def test_the_block_has_running_jobs_counts_and_times(run: Run) -> None:
    blank, *jobs, counts, bar = block_of(run, 80, 24)
    assert blank == ""
    assert [line.split() for line in jobs] == [
        ["train", "a_model_with_quite_a_long_name", "seed6", "12", "s"],
        ["train", "模型", "seed7", "12", "s"],
    ]
    assert counts == "5 of 20 jobs done, 2 running, 12 left, 1 failed"
    # 12 jobs of 30 s and the rest of two, 18 s each, as 174 s of work took 72 s.
    assert bar.endswith("  25 %  1 min 12 s elapsed, about 3 min left")
    assert bar.count("━") == pytest.approx((bar.count("━") + bar.count("╌")) / 4, abs=1)


@pytest.mark.parametrize("columns", [20, 40, 60, 80, 200])
@pytest.mark.parametrize("rows", [5, 8, 24])
def test_the_block_fits_the_terminal(run: Run, columns: int, rows: int) -> None:
    for number in range(10, 30):
        run.start_job(number, "train", {}, [], None)
    lines = block_of(run, columns, rows)
    assert max(map(len, lines)) < columns + (columns == 20)
    assert len(lines) <= max(rows - 3, 4)
    hidden = 22 - (len(lines) - 4)
    assert lines[-3] == f"  and {hidden} more"[: columns - 1]


@pytest.fixture
def written() -> Iterator[tuple[int, Callable[[], str]]]:
    """A descriptor, and what has been written to it."""
    with tempfile.TemporaryFile() as file:
        yield file.fileno(), lambda: os.pread(file.fileno(), 10**6, 0).decode()


def test_a_pipe_gets_lines_without_control_characters(written: tuple[int, Callable[[], str]]) -> None:
    screen = Screen(written[0], live=False, color=False)
    screen.update(["block"])
    screen.show(["\x1b[31mred\x1b[0m\tend\x07"], RED)
    assert written[1]() == "red     end�\n"


def test_lines_are_printed_above_the_block_which_replaces_itself(
    written: tuple[int, Callable[[], str]],
) -> None:
    screen = Screen(written[0], live=True, color=True)
    screen.update(["one", "two"])
    screen.show(["error"], RED)
    screen.update(["three"])
    screen.update([])
    assert written[1]() == (
        "\x1b[?7lone\ntwo\n\x1b[?7h"
        "\x1b[2A\r\x1b[J\x1b[31merror\x1b[0m\n\x1b[?7lone\ntwo\n\x1b[?7h"
        "\x1b[2A\r\x1b[J\x1b[?7lthree\n\x1b[?7h"
        "\x1b[1A\r\x1b[J"
    )


def test_no_color_where_none_is_wanted(written: tuple[int, Callable[[], str]]) -> None:
    Screen(written[0], live=True, color=False).show(["error"], RED)
    assert written[1]() == "error\n"


def test_a_reader_that_has_gone_stops_nothing() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    Screen(writer, live=False, color=False).show(["lost"])
    os.close(writer)


def test_what_jobs_print_is_captured_until_the_end(capfd: pytest.CaptureFixture[str]) -> None:
    capture = Capture(output=True)
    subprocess.run(["sh", "-c", "echo one >&2; echo two; printf 'ten %%\\rhalf' >&2"], check=True)
    assert capture.lines() == ["one", "two"]
    subprocess.run([sys.executable, "-c", "print(' a line')"], check=True)
    assert capture.lines() == ["half a line"]
    os.write(2, b"rest")
    assert capture.end() == ["rest"]
    os.write(2, b"after\n")
    assert capfd.readouterr() == ("", "after\n")


@pytest.mark.parametrize(
    ("seconds", "exact", "about"),
    [
        (0, "0 s", "10 s"),
        (42.9, "42 s", "40 s"),
        (59, "59 s", "1 min"),
        (72, "1 min 12 s", "1 min"),
        (3599, "59 min 59 s", "1 h 0 min"),
        (5000, "1 h 23 min", "1 h 23 min"),
    ],
)
def test_times_in_words(seconds: float, exact: str, about: str) -> None:
    assert (duration(seconds), rounded(seconds)) == (exact, about)
