"""What records of a run make of its state, its time left and its errors."""

from pathlib import Path

import pytest

from snakemake_logger_plugin_saliency_assay.state import Run, error_lines


class Clock:
    """A clock that tests move."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def run(clock: Clock) -> Run:
    return Run({"train": 2, "attribute__f_o": 2, "attribute__f_s": 2, "total": 6}, clock)


def test_jobs_are_left_then_running_then_done_or_failed(run: Run) -> None:
    assert str(run) == "0 of 6 jobs done, 0 running, 6 left; 0:00:00 elapsed"
    run.start_job(1, "train")
    run.start_job(2, "train")
    run.finish_job(1)
    run.fail_job(2)
    assert str(run) == "1 of 6 jobs done, 0 running, 4 left, 1 failed; 0:00:00 elapsed"
    run.start_job(2, "train")  # tried again
    assert str(run) == "1 of 6 jobs done, 1 running, 4 left; 0:00:00 elapsed"


def test_time_left_is_that_of_the_jobs_of_each_rule_at_the_speed_so_far(run: Run, clock: Clock) -> None:
    run.start_job(1, "train")
    run.start_job(2, "train")
    clock.now += 60
    run.finish_job(1)
    assert run.seconds_left() is None  # four of five jobs are of a rule that has not run
    run.finish_job(2)
    run.start_job(3, "attribute__f_o")
    run.start_job(4, "attribute__f_s")
    clock.now += 12
    run.finish_job(3)
    run.finish_job(4)
    # 144 s of work in 72 s; two jobs of 12 s remain.
    assert run.seconds_left() == pytest.approx(12)
    assert str(run) == "4 of 6 jobs done, 0 running, 2 left; 0:01:12 elapsed, about 0:00:10 left"


@pytest.mark.parametrize(
    ("rule", "text", "lines"),
    [
        ("train", "Traceback\nValueError: b\ntrain: models.a: b\n", ["train: models.a: b"]),
        ("train", "train: a\nsrun: error: task 0: Exited\n", ["train: a"]),  # Slurm's own log
        ("score__f_o", "ValueError: b\nscore: b\n", ["score: b"]),
        ("pages", "part 1 of 2: a\noverview: b\n", ["overview: b"]),
        (
            "score__f_o",
            "part 2 of 2: b\nfailed, see b.log\nscore: metrics.a: x\nscore: metrics.b: y\n",
            ["score: metrics.a: x", "score: metrics.b: y"],
        ),
        ("train", "ValueError: b\n", []),
        ("train", "2026-11-23 15:28:03 train: b\n", []),
        ("train", "", []),
    ],
)
def test_the_error_lines_of_a_job_are_at_the_end_of_its_log(
    tmp_path: Path, rule: str, text: str, lines: list[str]
) -> None:
    (tmp_path / "log").write_text(text)
    assert error_lines(rule, [str(tmp_path / "missing"), str(tmp_path / "log")]) == lines
