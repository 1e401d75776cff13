"""A program that trains in several processes, for tests to start: ``python parallel.py TASK FOLDER PROCESSES``.

What a task finds, every process writes to the folder, as ``TASK.process0.pt`` and so on.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from jobs import snakemake_of
from networks import train_networks
from torch import Tensor, nn

from saliency_assay.models.classifier import Blueprint, Classifier, build
from saliency_assay.models.normalization import channel_statistics
from saliency_assay.runtime.distributed import gathered, joined, processes
from saliency_assay.runtime.job import run_job
from saliency_assay.runtime.launch import rank
from saliency_assay.runtime.provenance import SOURCE
from saliency_assay.training.hyperparameters import Training, training_from
from saliency_assay.training.loop import train
from saliency_assay.training.replica import whole_batch_norm, whole_dropout

COUNT, CLASSES, SIZE = 160, 3, 16
SETTINGS = training_from(
    {"epochs": 3, "batch_size": 32, "augment_flip": True, "augment_shift": 2, "label_smoothing": 0.1}
)
# Only in float64: max pooling over neighbors that are both removed has kinks, as ReLUs do.
REMOVING = replace(SETTINGS, augment_removal=0.1, epochs=2)
STEPS = 3 * 4  # of SETTINGS: 130 training images
CPU = torch.device("cpu")


def blueprint(name: str, module: str, layer: str, **parameters: Any) -> Blueprint:
    return Blueprint(name, f"saliency_assay.models.{module}:{name}", parameters, layer, [])


BLUEPRINTS = {
    "resnet": blueprint("resnet8", "resnet", "layer3", width=4),
    "dropout": blueprint("reliability_cnn", "cnn", "block3", width=8, pooled=1, dropout=0.3),
    "unshifted": blueprint("reliability_cnn", "cnn", "block3", width=8, pooled=1, dropout=0.3, center=False),
    "vgg": blueprint("vgg16_bn", "cnn", "features.42", width=4, hidden=16, pooled=1),
}


SMOOTHED = ("resnet", "dropout", "unshifted")


def data(size: int = SIZE) -> dict[str, Tensor]:
    """Images whose class is their brightest channel, more or less: 130 to train on, 13 and 17 held out."""
    generator = torch.Generator().manual_seed(1)
    labels = torch.randint(0, CLASSES, (COUNT,), generator=generator)
    images = torch.randint(0, 180, (COUNT, 3, size, size), generator=generator, dtype=torch.uint8)
    images[torch.arange(COUNT), labels] += 20
    order = torch.randperm(COUNT, generator=generator)
    parts = {"train_indices": order[:130], "validation_indices": order[130:143], "test_indices": order[143:]}
    return {"images": images, "labels": labels, **parts}


def smoothed(model: Classifier) -> Classifier:
    """The same without the kinks of ReLUs."""
    for name in [name for name, layer in model.named_modules() if isinstance(layer, nn.ReLU)]:
        model.set_submodule(name, nn.Softplus())
    return model


def exact(model: Classifier) -> Classifier:
    """The same in float64."""
    model.double().register_forward_pre_hook(lambda model, inputs: (inputs[0].double(),))
    return model


def trained(
    name: str,
    folder: Path,
    settings: Training = SETTINGS,
    *,
    change: Callable[[Classifier], Classifier] = lambda model: model,
    on_step: Any = None,
    **inputs: Any,
) -> dict[str, Any]:
    """State dict and curve after training one of ``BLUEPRINTS``, and the kinds of its layers."""
    generator = torch.Generator().manual_seed(0)
    made = build(BLUEPRINTS[name], classes=CLASSES, mean=[0.5] * 3, std=[0.25] * 3, generator=generator)
    model = change(made)
    if on_step:
        model.register_forward_pre_hook(on_step)
    path, learn = folder / f"{name}.state", data(32 if name == "vgg" else SIZE)
    rows = train(model, **learn, settings=settings, seed=3, state_path=path, fingerprint="one", **inputs)
    return {"state": model.state_dict(), "rows": rows, "kinds": [type(m).__name__ for m in model.modules()]}


def train_all(folder: Path) -> dict[str, Any]:
    once = replace(SETTINGS, epochs=1)
    early = replace(SETTINGS, epochs=12, patience=2, evaluate="end")
    return {
        **{f"{name} exact": trained(name, folder, REMOVING, change=exact) for name in BLUEPRINTS},
        **{f"{name} smooth": trained(name, folder, change=smoothed) for name in SMOOTHED},
        "streamed": trained("dropout", folder, change=smoothed, resident_limit=0),
        "early": trained("resnet", folder, early),
        "float32": trained("resnet", folder, once),
        "bf16": trained("resnet", folder, replace(once, precision="bf16")),
        "normalization": channel_statistics(data()["images"], data()["train_indices"]),
        "layers": layers(folder),
    }


def stop_after(folder: Path, step: int) -> dict[str, Any]:
    """SIGTERM to the last process alone, in that ``step`` (from 1; 0 for none)."""
    steps = 0

    def note(model: Classifier, inputs: tuple[Tensor]) -> None:
        nonlocal steps
        steps += model.training
        if steps == step and rank() == processes() - 1:
            os.kill(os.getpid(), signal.SIGTERM)

    results = trained("dropout", folder, change=smoothed, on_step=note)
    return {**results, "steps": steps}


def stopped(folder: Path) -> dict[str, Any]:
    return stop_after(folder, 9)


def resumed(folder: Path) -> dict[str, Any]:
    return stop_after(folder, 0)


def evaluated(folder: Path) -> dict[str, Any]:
    """SIGTERM to the second process while test images are evaluated, of which it has fewer batches than the first."""
    settings, passes, steps = replace(SETTINGS, batch_size=8, epochs=2), 0, 0
    whole = trained("resnet", folder, settings)

    def note(model: Classifier, inputs: tuple[Tensor]) -> None:
        nonlocal passes, steps
        passes, steps = passes + (not model.training), steps + model.training
        if passes == 2 and rank() == 1:
            os.kill(os.getpid(), signal.SIGTERM)

    status: object = None
    try:
        trained("resnet", folder, settings, on_step=note)
    except SystemExit as stopped:
        status = stopped.code
    before, passes = steps, 3
    return {
        "whole": whole,
        "status": status,
        "before": before,
        **trained("resnet", folder, settings, on_step=note),
        "steps": steps,
    }


def terminated(folder: Path) -> dict[str, Any]:
    """SIGTERM to the process that has started the others, as Snakemake and clusters send it."""

    def note(model: Classifier, inputs: tuple[Tensor]) -> None:
        if model.training and rank() == 0 and not (folder / "sent").exists():
            (folder / "sent").touch()
            os.kill(os.getppid(), signal.SIGTERM)

    # Far more epochs than pass until the signal has come.
    return trained("dropout", folder, replace(SETTINGS, epochs=2000), on_step=note)


def faulty(folder: Path) -> dict[str, Any]:
    """A fault in one process alone, and not the first."""

    def note(model: Classifier, inputs: tuple[Tensor]) -> None:
        if rank() == 1:
            raise OSError("images: truncated")

    return trained("resnet", folder, on_step=note)


def killed(folder: Path) -> dict[str, Any]:
    """The end that comes without a word: as when memory is short."""

    def note(model: Classifier, inputs: tuple[Tensor]) -> None:
        if rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    return trained("resnet", folder, on_step=note)


NORMS: dict[str, Callable[[], nn.Module]] = {
    "plain": lambda: nn.BatchNorm2d(3),
    "cumulative": lambda: nn.BatchNorm2d(3, momentum=None),
    "bare": lambda: nn.BatchNorm2d(3, affine=False, track_running_stats=False),
    "unshifted": lambda: _without_bias(nn.BatchNorm2d(3)),
    "frozen": lambda: _met(nn.BatchNorm2d(3)).eval(),
    "bare in evaluation": lambda: nn.BatchNorm2d(3, affine=False, track_running_stats=False).eval(),
    "still": lambda: _met(nn.BatchNorm2d(3, momentum=0.0)),
    "untracked": lambda: _untracked(_met(nn.BatchNorm2d(3))),
    "untracked in evaluation": lambda: _untracked(_met(nn.BatchNorm2d(3))).eval(),
    "fixed": lambda: nn.BatchNorm2d(3).requires_grad_(False),
    "without scale": lambda: nn.BatchNorm2d(3, affine=False),
}


def _met(norm: nn.BatchNorm2d) -> nn.BatchNorm2d:
    """With statistics of images that it has met before, and weights."""
    for number, tensor in enumerate(norm.state_dict().values()):
        tensor.copy_(torch.arange(1, 1 + tensor.numel()).reshape(tensor.shape) + number)
    return norm


def _untracked(norm: nn.BatchNorm2d) -> nn.BatchNorm2d:
    norm.track_running_stats = False
    return norm


def _without_bias(norm: nn.BatchNorm2d) -> nn.BatchNorm2d:
    norm.register_parameter("bias", None)
    return norm


def gather() -> dict[str, Any]:
    """Rows of all, this process's among them (``mine``), and the gradient of the sum over r of (r + 1) · Σ rows²."""
    mine = (torch.arange(3.0) + 10 * rank()).requires_grad_()
    rows = gathered(mine)
    ((rank() + 1) * rows.square().sum()).backward()
    return {"rows": rows.detach(), "gradient": mine.grad, "mine": mine.detach()}


def layers(folder: Path) -> dict[str, Any]:
    """Two passes through each norm, and one through dropout, of this process's rows; gradients of Σ out·w."""
    results: dict[str, Any] = {"gathered": gather()}
    for name, make in NORMS.items():
        norm, outs, gradients = make().double(), [], []
        for turn in range(2):
            x, w = (part.tensor_split(processes())[rank()] for part in batch(turn))
            x.requires_grad_()
            out = whole_batch_norm(norm, x) if processes() > 1 else norm(x)
            (out * w).sum().backward()
            outs.append(out.detach())
            gradients.append(x.grad)
        weights = {key: p.grad for key, p in norm.named_parameters() if p.grad is not None}
        results[name] = {"out": outs, "x": gradients, "weights": weights, "state": norm.state_dict()}
    for name, drop in {"dropout": nn.Dropout(0.3), "channels": nn.Dropout2d(0.3)}.items():
        for kind, to in {"float32": torch.float32, "bf16": torch.bfloat16}.items():
            x = batch(0)[0].to(to, memory_format=torch.channels_last)
            part = x.tensor_split(processes())[rank()].requires_grad_()
            torch.manual_seed(5)
            out = whole_dropout(drop, part) if processes() > 1 else drop(part)
            out.sum().backward()
            results[f"{name} {kind}"] = {"out": out.detach(), "x": part.grad}
    return results


def batch(turn: int) -> tuple[Tensor, Tensor]:
    """Images far from 0, where E[x²] − E[x]² would cancel, each further than the one before; and weights."""
    generator = torch.Generator().manual_seed(turn)
    x = torch.randn(8, 3, 4, 5, generator=generator, dtype=torch.float64)
    far = 1000 * torch.arange(8, dtype=torch.float64)[:, None, None, None] + x
    return far, torch.randn(8, 3, 4, 5, generator=generator, dtype=torch.float64)


TASKS = (
    train_all,
    train_networks,
    stopped,
    resumed,
    evaluated,
    terminated,
    faulty,
    killed,
    layers,
)


@dataclass(frozen=True)
class Ended:
    """A program that has ended: status, output on the terminal, result of each process."""

    status: int
    output: str
    results: list[Any]


def run(task: Callable[[Path], Any], folder: Path, count: int) -> Ended:
    """Run a task in so many processes, and wait for them."""
    here, name = Path(__file__), task.__name__
    environment = {**os.environ, "PYTHONPATH": f"{SOURCE}{os.pathsep}{here.parent}", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(here), name, str(folder), str(count)]
    ended = subprocess.run(
        command, env=environment, stderr=subprocess.PIPE, text=True, timeout=300, check=False
    )
    paths = [folder / f"{name}.process{process}.pt" for process in range(count)]
    results = [torch.load(path, weights_only=True) for path in paths if path.exists()]
    return Ended(ended.returncode, ended.stderr, results)


def main(name: str, folder: Path, count: int) -> None:
    torch.set_num_threads(1)
    (task,) = (task for task in TASKS if task.__name__ == name)
    with run_job(snakemake_of(name, folder / f"{name}.log", {})), joined(CPU, count, {"processes": count}):
        torch.save(task(folder), folder / f"{name}.process{rank()}.pt")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
