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
    run = Run(clock)
    run.begin({"train": 2, "attribute": 3, "all": 1, "total": 6})
    return run


def start(run: Run, number: int, rule: str = "train", log: str = "", benchmark: str | None = None) -> None:
    run.start_job(number, rule, {}, [log] if log else [], benchmark)


def test_jobs_are_left_then_running_then_done_or_failed(run: Run) -> None:
    assert (run.left, len(run.running), len(run.done), len(run.failed)) == (6, 0, 0, 0)
    start(run, 1)
    start(run, 2)
    run.finish_job(1)
    run.fail_job(2)
    assert (run.left, len(run.running), len(run.done), len(run.failed)) == (4, 0, 1, 1)
    assert run.waiting == {"train": 0, "attribute": 3, "all": 1}


def test_a_job_that_is_tried_again_has_not_failed_and_counts_once(run: Run) -> None:
    start(run, 1)
    run.fail_job(1)
    start(run, 1)
    assert (run.left, len(run.running), len(run.failed), run.waiting["train"]) == (5, 1, 0, 1)


def test_time_left_is_that_of_finished_jobs_of_the_rule_by_jobs_at_once(run: Run, clock: Clock) -> None:
    run.waiting["all"] = 0
    assert run.seconds_left() is None
    start(run, 1)
    start(run, 2)
    clock.now += 20
    run.finish_job(1)
    run.finish_job(2)  # two jobs at once
    assert run.seconds_left() is None  # nothing is known of the jobs that wait
    start(run, 3, "attribute")
    start(run, 4, "attribute")
    clock.now += 4
    run.finish_job(3)
    # 1 s after its start the other needs none; one more waits, which takes 4 s; 48 s of work in 24 s.
    assert run.seconds_left() == pytest.approx(4 / 2)


def test_time_left_of_rules_that_have_not_run_is_that_of_their_benchmarks(
    run: Run, clock: Clock, tmp_path: Path
) -> None:
    folder = tmp_path / "results" / "benchmarks"
    (folder / "attribute/f_o/seed0").mkdir(parents=True)
    (folder / "train").mkdir()
    for file, seconds in {
        "attribute/f_o/seed0/a": "2.0",
        "attribute/f_o/seed0/b": "4.0",
        "train/c": "NA",
    }.items():
        (folder / f"{file}.tsv").write_text(f"s\th:m:s\n{seconds}\t0:00:02\n")
    (folder / "all.tsv").write_text("s\th:m:s\n1.0\t0:00:01\n")
    start(run, 1, benchmark=f"{folder}/train/c.tsv")
    assert run.benchmarks == {"attribute": 3.0, "all": 1.0}
    # The trainings, whose benchmark has no seconds, are expected to take as long as the mean of the others.
    assert run.seconds_left() == pytest.approx(2 * 2 + 3 * 3 + 1)


def test_a_combined_job_takes_as_long_as_others_of_its_base_rule(clock: Clock) -> None:
    run = Run(clock)
    run.begin({"attribute__f_o": 1, "attribute__f_s": 1, "total": 2})
    start(run, 1, "attribute__f_o")
    clock.now += 7
    run.finish_job(1)
    assert run.seconds_left() == pytest.approx(7)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("2026-11-23 15:28:03 device cpu\n", ""),
        ("2026-11-23 15:28:03 epoch 6/20\n 30%|##  | 3/10\r2026-11-23 15:28:04 epoch 7/20\n", "epoch 7/20"),
        (
            "captum:ig: maps 64/512\ncaptum:ig: maps 320/512\n1280 of 5120 passes of 64 images\n",
            "maps 320/512",
        ),
        ("3 of 8 batches of images: insertion\n", "batches 3/8"),
        ("part 2 of 7: a\npart 3 of 7: results/maps/…\ncaptum:ig: maps 3/9\n", "3 of 7 parts"),
        ("2026-11-23 15:28:03 part x of 7: a\n\x00\xff", ""),
    ],
)
def test_progress_is_the_last_in_the_log(run: Run, tmp_path: Path, text: str, shown: str) -> None:
    log = tmp_path / "log"
    start(run, 1, log=str(log))
    assert run.running[1].progress() == ""  # no file yet
    log.write_text("0 " * 10**5 + text)
    assert run.running[1].progress() == shown


def test_a_job_is_named_by_rule_and_wildcards(run: Run) -> None:
    wildcards = {"model": "f_o", "seed": "0", "data": "bam", "method": "gradcam", "shard": ".shard1of4"}
    run.start_job(1, "attribute", wildcards, [], None)
    run.start_job(2, "attribute__digits__seed0__digits", {}, [], None)
    run.start_job(3, "plot_training", {"shard": ""}, [], None)
    names = [job.name for job in run.running.values()]
    assert names == [
        "attribute f_o seed0 bam gradcam shard1of4",
        "attribute digits seed0 digits",
        "plot_training",
    ]


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
