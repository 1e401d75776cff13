"""Weights on disk: written byte for byte alike for equal weights, read without running what a file holds."""

import logging
import pickletools
import re
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from saliency_assay.models.classifier import Blueprint, Classifier, build, digest
from saliency_assay.models.normalisation import IMAGENET
from saliency_assay.registry.records import shown
from saliency_assay.runtime.atomic import replacing
from saliency_assay.runtime.environment import loaded_versions

logger = logging.getLogger(__name__)

VALID = "a state dict of tensors, written by torch.save"
KEYS = ("state_dict", "model_state_dict", "model")
"""Under one of which training programs keep a state dict beside an optimiser's and the like."""
WRAPPERS = re.compile(r"^(module\.)?(_orig_mod\.)?(?(1)|(module\.)?)")
"""Prefixes of names from data parallelism (``module``) and ``torch.compile`` (``_orig_mod``), in either order."""
# Opcodes by which a pickle imports or calls something.
PROTOCOL = b"\x80"  # the opcode that pickles begin with
CALLS = {"GLOBAL", "STACK_GLOBAL", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "REDUCE", "BUILD"}


def write(path: Path, content: object) -> None:
    """Write ``content`` with torch.save under a temporary name, then rename: a kill leaves the old file or none."""
    # Given a path, torch.save would write the name into the file.
    with replacing(path) as temporary, temporary.open("wb") as file:
        torch.save(content, file)


def read(path: Path) -> Any:
    """What ``torch.save`` wrote to ``path``, on the CPU; tensors and plain values only, no code is run.

    Raises:
        FileNotFoundError: no file at ``path``.
        ValueError: a file that holds code, is truncated or was not written by ``torch.save``.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file; expected {VALID}")
    _check_members(path)
    try:
        with warnings.catch_warnings():  # of formats that are refused anyway
            warnings.simplefilter("ignore")
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # damage shows as OSError, RuntimeError, KeyError, UnpicklingError, …
        code = _code_in(path, str(error))
        if code:
            raise ValueError(f"{path}: holds code ({code[:80]}), which is not run; valid: {VALID}") from None
        raise ValueError(f"{path}: truncated, or not written by torch.save; valid: {VALID}") from error


def _check_members(path: Path) -> None:
    """That a zip, which ``torch.save`` writes, holds no more than its own length: as torch writes it, uncompressed."""
    if not zipfile.is_zipfile(path):
        return  # torch's older format, or something that torch will refuse
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except Exception as error:  # a damaged directory
        raise ValueError(f"{path}: truncated, or not written by torch.save; valid: {VALID}") from error
    size, claimed = path.stat().st_size, sum(member.file_size for member in members)
    if claimed > size or any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise ValueError(f"{path}: found {size} bytes that unpack to {claimed}; valid: {VALID}, uncompressed")


def read_state(path: Path) -> dict[str, Tensor]:
    """The state dict in ``path``: bare or under one of ``KEYS``, without the prefixes of ``WRAPPERS``.

    Raises:
        FileNotFoundError: no file at ``path``.
        ValueError: as ``read``, or the file holds something else.
    """
    return _state_in(path, read(path))


def save(path: Path, classifier: Classifier, blueprint: Blueprint) -> None:
    """Write the network's weights and what is needed to rebuild the classifier around them.

    The file is ``{"state_dict": …, "classifier": …}``; the second entry is plain JSON, with the state's digest and the
    versions of the packages that made it. Equal weights give equal bytes.
    """
    state = {
        # Values alone: memory layout and shared storage would show in the bytes.
        name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
        for name, tensor in classifier.network.state_dict().items()
    }
    description = {
        "architecture": blueprint.architecture,
        "parameters": dict(blueprint.parameters),
        "classes": classifier.classes,
        "mean": classifier.mean.flatten().tolist(),
        "std": classifier.std.flatten().tolist(),
        "digest": digest(state),
        "libraries": loaded_versions(),
    }
    write(path, {"state_dict": state, "classifier": description})


def libraries_in(path: Path) -> dict[str, str]:
    """Return the versions of the packages that made the weights in ``path``; none where ``save`` did not write them."""
    content = read(path)
    if not isinstance(content, Mapping) or "classifier" not in content:
        return {}
    found: dict[str, str] = _description(path, content).get("libraries", {})
    return found


def load_classifier(path: Path, blueprint: Blueprint) -> Classifier:
    """The classifier that ``save`` wrote, on the CPU, in evaluation mode.

    What is built and called is the blueprint's; the file is only checked against it.

    Raises:
        FileNotFoundError: no file at ``path``.
        ValueError: as ``read_state``; no description of a classifier; another architecture, other parameters
            or another digest than the file's weights have.
    """
    content = read(path)
    state, described = _state_in(path, content), _description(path, content)
    for key in ("architecture", "parameters"):
        if described[key] != getattr(blueprint, key):
            raise ValueError(
                f"{path}: {key} {described[key]!r} in the file; expected {getattr(blueprint, key)!r}"
            )
    classes = described["classes"]
    if all(classes != length for tensor in state.values() for length in tensor.shape[:1]):
        raise ValueError(
            f"{path}: {shown(classes)} classes, but no weights of so many; expected a file from save"
        )
    classifier = build(
        blueprint, classes=classes, mean=described["mean"], std=described["std"], generator=torch.Generator()
    )
    _fill(classifier.network, state, f"{path}: not weights of {blueprint.architecture}")
    if digest(state) != described["digest"]:
        raise ValueError(f"{path}: damaged, its weights' digest is not the {described['digest']} it names")
    return classifier.eval()


def normalisation_of(path: Path, channels: int) -> tuple[Sequence[float], Sequence[float]] | None:
    """Mean and deviation that the weights in ``path`` expect: their own if ``save`` wrote them, else ImageNet's.

    None if those are not of ``channels`` channels, as ImageNet's are not for grey images.

    Raises:
        FileNotFoundError, ValueError: as ``read``.
    """
    content, known = read(path), IMAGENET
    if isinstance(content, Mapping) and "classifier" in content:
        described = _description(path, content)
        known = described["mean"], described["std"]
    return known if len(known[0]) == channels else None


def load_initial(
    classifier: Classifier, path: Path, architecture: str, *, head_may_start_anew: bool = True
) -> None:
    """Start from the weights in ``path``, such as torchvision's.

    The head, which is the network's last linear layer, keeps its own where shapes differ, with a line in the log;
    where it may not, such weights are refused.

    Raises:
        FileNotFoundError: no file at ``path``.
        ValueError: as ``read_state``, or weights of another architecture than ``architecture``.
    """
    state, problem = read_state(path), f"{path}: not weights of {architecture}"
    own = classifier.network.state_dict()
    linear = [name for name, module in classifier.network.named_modules() if isinstance(module, nn.Linear)]
    head = linear[-1] if linear else None
    parts = [name for name in own if name.rpartition(".")[0] == head]
    replaced = [name for name in parts if name in state and state[name].shape != own[name].shape]
    if replaced and head_may_start_anew:
        name = replaced[0]
        shapes = list(state[name].shape), list(own[name].shape)
        logger.warning("%s: %s is %s, here %s; %s starts anew", path, name, *shapes, head)
        state |= {name: own[name] for name in parts}
    elif replaced:
        problem += f" with {classifier.classes} classes, and without training {head} cannot start anew"
    _fill(classifier.network, state, problem)
    logger.info("%s: %d tensors loaded", path, len(state))


def _state_in(path: Path, content: Any) -> dict[str, Tensor]:
    if isinstance(content, Mapping):
        key = next((key for key in KEYS if isinstance(content.get(key), Mapping)), None)
        content = content[key] if key else content
    if not isinstance(content, Mapping) or not content:
        raise ValueError(f"{path}: holds {_kind(content)}; valid: {VALID}")
    for name, value in content.items():
        if not isinstance(name, str) or not isinstance(value, Tensor):
            raise ValueError(f"{path}: {shown(name)} is {_kind(value)}; valid: {VALID}")
        # torch would take a complex number's real part, and has no values at all for a tensor on "meta".
        if value.layout != torch.strided or value.is_quantized or value.is_complex() or value.is_meta:
            raise ValueError(f"{path}: {shown(name)} is {value.type()}; valid: dense tensors of real numbers")
    return {WRAPPERS.sub("", name): value for name, value in content.items()}


def _fill(network: nn.Module, state: Mapping[str, Tensor], problem: str) -> None:
    """Load ``state`` whole; only BatchNorm's count of batches, which old files lack, may be absent."""
    own = network.state_dict()
    missing = [name for name in own if name not in state and not name.endswith("num_batches_tracked")]
    unexpected = [name for name in state if name not in own]
    reshaped = [
        f"{name} {list(state[name].shape)} for {list(own[name].shape)}"
        for name in own
        if name in state and state[name].shape != own[name].shape
    ]
    kinds = {"missing": missing, "unexpected": unexpected, "of another shape": reshaped}
    found = [f"{len(names)} {kind} ({_first(names)})" for kind, names in kinds.items() if names]
    if found:
        raise ValueError(f"{problem}: {', '.join(found)}")
    network.load_state_dict(state, strict=False)


def _description(path: Path, content: Mapping[str, Any]) -> dict[str, Any]:
    """The entry ``classifier`` of a file that ``save`` wrote, each value of the type that it is written with."""
    entry = content.get("classifier")
    found: dict[str, Any] = entry if isinstance(entry, dict) else {}
    kinds = {
        "architecture": str,
        "parameters": dict,
        "classes": int,
        "mean": list,
        "std": list,
        "digest": str,
    }
    whole = all(isinstance(found.get(key), kinds[key]) for key in kinds)
    if not whole or not all(isinstance(value, float) for value in [*found["mean"], *found["std"]]):
        raise ValueError(f"{path}: no entry 'classifier' with {', '.join(kinds)}; valid: a file from save")
    return found


def _code_in(path: Path, message: str) -> str:
    """What a refused file would import or call, or an empty string."""
    named = re.search(r"GLOBAL ([\w.]+)", message)
    if named:
        return named.group(1)
    if "TorchScript" in message:
        return "TorchScript"
    with path.open("rb") as file:
        if file.read(1) != PROTOCOL:
            return ""
        file.seek(0)
        try:  # plain pickles of newer protocols are refused before their code is met
            names = (operation.name for operation, _, _ in pickletools.genops(file))
            call = next((name for name in names if name in CALLS), "")
        except Exception:  # damaged before it calls anything
            return ""
    return f"a pickle with {call}" if call else ""


def _first(names: list[str]) -> str:
    return ", ".join(names[:2]) + (", …" if len(names) > 2 else "")


def _kind(value: object) -> str:
    name = type(value).__name__
    return f"an empty {name}" if value == {} else f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"
