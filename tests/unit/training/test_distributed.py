"""Training in several processes against training in one, and what is heard when one of them fails."""

import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import parallel
import pytest
import torch
from torch import Tensor

from saliency_assay.models.classifier import digest
from saliency_assay.runtime.distributed import joined

Result = dict[str, Any]


def results(task: Callable[[Path], Any], folder: Path, processes: int) -> list[Result]:
    """Return the result of each process; all must succeed without output."""
    ended = parallel.run(task, folder, processes)
    assert (ended.status, ended.output) == (0, "")
    assert len(ended.results) == processes
    return ended.results


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return parallel.train_all(tmp_path_factory.mktemp("alone"))


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> list[Result]:
    return results(parallel.train_all, tmp_path_factory.mktemp("together"), 2)


def distance(result: Result, expected: Result, part: str) -> float:
    """Of all values of a state dict whose names have ``part``, relative to the expected ones' norm."""
    assert result.keys() == expected.keys()
    names = [name for name in expected if part in name and expected[name].is_floating_point()]
    one, two = (torch.cat([state[name].double().flatten() for name in names]) for state in (result, expected))
    return float((one - two).norm() / two.norm())


def assert_alike(result: Result, expected: Result, tolerance: float) -> None:
    """Weights, running statistics and the curve; counts of batches and of right answers exactly."""
    for part in ("weight", "bias", "running"):
        if any(part in name for name in expected["state"]):
            assert distance(result["state"], expected["state"], part) < tolerance, part
    for name, value in expected["state"].items():
        if not value.is_floating_point():
            assert torch.equal(result["state"][name], value)
    for row, one in zip(result["rows"], expected["rows"], strict=True):
        assert row.keys() == one.keys()
        assert row["train_loss"] == pytest.approx(one["train_loss"], rel=max(tolerance, 1e-6))
        for name in one.keys() - {"train_loss"}:
            assert row[name] == one[name] or (math.isnan(row[name]) and math.isnan(one[name])), name


# --- the same training --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", parallel.BLUEPRINTS)
def test_two_processes_train_as_one(name: str, alone: Result, together: list[Result]) -> None:
    """Eight steps in float64: what remains is the order of sums."""
    for result in together:
        # The loss is taken in float32 whatever the network's precision.
        state, expected = result[f"{name} exact"]["state"], alone[f"{name} exact"]["state"]
        assert distance(state, expected, "network") < 1e-12
        assert_alike({**result[f"{name} exact"], "state": {}}, {**alone[f"{name} exact"], "state": {}}, 1e-6)


@pytest.mark.parametrize("name", parallel.SMOOTHED)
def test_two_processes_train_as_one_in_float32(name: str, alone: Result, together: list[Result]) -> None:
    """Twelve steps, without the kinks of ReLUs, at which a last bit may turn a gradient on or off."""
    for result in together:
        assert_alike(result[f"{name} smooth"], alone[f"{name} smooth"], 1e-5)


def test_processes_end_with_the_same_bits(together: list[Result]) -> None:
    first, second = together
    for name in first.keys() - {"normalization", "layers"}:
        assert digest(first[name]["state"]) == digest(second[name]["state"]), name
        assert repr(first[name]["rows"]) == repr(second[name]["rows"])


def test_streamed_images_give_the_same_bits(together: list[Result]) -> None:
    for result in together:
        assert digest(result["streamed"]["state"]) == digest(result["dropout smooth"]["state"])


def test_early_stopping_ends_after_the_same_epoch(alone: Result, together: list[Result]) -> None:
    rows = alone["early"]["rows"]
    assert 2 < len(rows) < 12
    accuracies = [row["validation_accuracy"] for row in rows]
    for result in together:
        assert [row["validation_accuracy"] for row in result["early"]["rows"]] == accuracies


def test_bf16_trains_as_one_to_its_precision(alone: Result, together: list[Result]) -> None:
    for result in together:
        assert distance(result["bf16"]["state"], alone["bf16"]["state"], "weight") < 1e-2
        assert distance(result["float32"]["state"], alone["float32"]["state"], "weight") < 1e-5
        assert distance(result["bf16"]["state"], alone["float32"]["state"], "weight") > 1e-4


def test_statistics_of_the_images_are_the_same_bits(alone: Result, together: list[Result]) -> None:
    assert [result["normalization"] for result in together] == [alone["normalization"]] * 2


# --- layers -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[2, pytest.param(4, marks=pytest.mark.exhaustive)])
def divided(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Result]:
    """Layers of two processes, and of four, which shows what holds for two alone."""
    if request.param == 2:
        return [result["layers"] for result in request.getfixturevalue("together")]
    return results(parallel.layers, tmp_path_factory.mktemp("four"), 4)


def close(result: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(result, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", parallel.NORMS)
def test_batch_norm_of_the_whole_batch(name: str, alone: Result, divided: list[Result]) -> None:
    """In float64 against torch's own, on images far from 0 and from each other."""
    expected, parts = alone["layers"][name], [result[name] for result in divided]
    for turn in range(2):
        close(torch.cat([part["out"][turn] for part in parts]), expected["out"][turn])
        close(torch.cat([part["x"][turn] for part in parts]), expected["x"][turn])
    for key, gradient in expected["weights"].items():
        close(sum(part["weights"][key] for part in parts), gradient)
    for part in parts:
        assert part["state"].keys() == expected["state"].keys()
        for key, value in expected["state"].items():
            close(part["state"][key], value)
    assert ("running_var" in expected["state"]) == (not name.startswith("bare"))


@pytest.mark.parametrize("kind", ["float32", "bf16"])
@pytest.mark.parametrize("name", ["dropout", "channels"])
def test_dropout_of_the_whole_batch(name: str, kind: str, alone: Result, divided: list[Result]) -> None:
    expected, *parts = (result[f"{name} {kind}"] for result in (alone["layers"], *divided))
    for key in ("out", "x"):
        assert torch.equal(torch.cat([part[key] for part in parts]), expected[key])
    assert 0 < (expected["x"] == 0).double().mean() < 0.6


def test_gradients_of_what_is_gathered(divided: list[Result]) -> None:
    parts = [result["gathered"] for result in divided]
    for part in parts:
        assert torch.equal(part["rows"], torch.stack([part["mine"] for part in parts]))
        assert torch.equal(part["gradient"], sum(range(1, len(parts) + 1)) * 2 * part["mine"])


# --- kill and resume ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a training whose second process got SIGTERM in step 9 of 12."""
    folder = tmp_path_factory.mktemp("stopped")
    ended = parallel.run(parallel.stopped, folder, 2)
    assert (ended.status, ended.output, ended.results) == (143, "", [])
    reached = torch.load(folder / "dropout.state", weights_only=True)["progress"]
    assert (reached["epoch"], reached["step"]) == (2, 1)
    for log in ("stopped.log", "stopped.log.process1"):
        assert "SIGTERM after step 1 of epoch 3: state saved" in (folder / log).read_text()
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 1])
def test_a_training_goes_on_in_as_many_processes_or_fewer(
    processes: int, interrupted: Path, tmp_path: Path, alone: Result, together: list[Result]
) -> None:
    shutil.copy2(interrupted / "dropout.state", tmp_path)
    for result in results(parallel.resumed, tmp_path, processes):
        assert result["steps"] == parallel.STEPS - 9
        assert_alike(result, alone["dropout smooth"], 1e-5)
        same = digest(result["state"]) == digest(together[0]["dropout smooth"]["state"])
        assert same == (processes == 2)


@pytest.mark.exhaustive
def test_sigterm_while_processes_evaluate(tmp_path: Path) -> None:
    for result in results(parallel.evaluated, tmp_path, 2):
        assert (result["status"], result["before"], result["steps"]) == (143, 16, 32)
        assert digest(result["state"]) == digest(result["whole"]["state"])
        assert repr(result["rows"]) == repr(result["whole"]["rows"])


@pytest.mark.exhaustive
def test_sigterm_to_the_process_that_started_the_others(tmp_path: Path) -> None:
    ended = parallel.run(parallel.terminated, tmp_path, 2)
    assert (ended.status, ended.output, ended.results) == (143, "", [])
    assert (tmp_path / "dropout.state").exists()
    assert "state saved" in (tmp_path / "terminated.log").read_text()


# --- faults -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_fault_of_one_is_reported_without_its_consequences(tmp_path: Path) -> None:
    ended = parallel.run(parallel.faulty, tmp_path, 2)
    assert (ended.status, ended.output, ended.results) == (1, "faulty: images: truncated\n", [])
    assert "images: truncated" not in (tmp_path / "faulty.log").read_text()
    assert "OSError: images: truncated" in (tmp_path / "faulty.log.process1").read_text()


@pytest.mark.exhaustive
def test_a_process_that_is_killed_is_named(tmp_path: Path) -> None:
    ended = parallel.run(parallel.killed, tmp_path, 2)
    message = "parallel: process 1 was killed by SIGKILL\n"
    assert (ended.status, ended.output, ended.results) == (137, message, [])


# --- how many -----------------------------------------------------------------------------------------------


class Launched(Exception):
    """In place of a process that would be replaced."""


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with two."""

    def launch(processes: int) -> None:
        raise Launched(processes)

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr("saliency_assay.runtime.distributed.launch", launch)


@pytest.mark.parametrize(
    ("device", "resources", "expected"),
    [
        ("cpu", {"processes": 2, "gpu": 1}, 2),
        ("cuda", {"gpu": 2}, 2),
        ("cuda", {"gpu": 1, "processes": 2}, 2),
    ],
)
@pytest.mark.usefixtures("gpus")
def test_several_processes_are_launched(device: str, resources: dict[str, int], expected: int) -> None:
    with pytest.raises(Launched) as launched, joined(torch.device(device), 4, resources):
        pass
    assert launched.value.args == (expected,)


@pytest.mark.parametrize(
    ("device", "resources"),
    [
        ("cpu", {"gpu": 4}),
        ("cuda", {}),
        ("cuda", {"gpu": 0}),
        ("cuda", {"gpu": 2, "processes": 1}),
    ],
)
@pytest.mark.usefixtures("gpus")
def test_one_process_is_this_one(device: str, resources: dict[str, int]) -> None:
    threads = torch.get_num_threads()
    with joined(torch.device(device), 7, resources) as own:
        assert own == torch.device(device)
        assert torch.get_num_threads() == threads


@pytest.mark.parametrize(
    ("device", "resources", "message"),
    [
        ("cuda", {"gpu": 3}, "resource gpu: found 3, expected at most 2"),
        ("cuda", {"processes": 4}, "resource processes: found 4, expected"),
        ("cpu", {"processes": 0}, "resource processes: found 0, expected at least 1"),
    ],
)
@pytest.mark.usefixtures("gpus")
def test_numbers_that_cannot_be(device: str, resources: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"), joined(torch.device(device), 1, resources):
        pass
