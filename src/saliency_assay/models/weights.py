"""Reading and writing of weights files, without running code from them; equal weights give equal bytes."""

import logging
import pickletools
import re
import tempfile
import warnings
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from saliency_assay.models.checks import LOGITS
from saliency_assay.models.classifier import Blueprint, Classifier, build, digest, unwrapped, without_logits
from saliency_assay.models.families import PACKAGED_NAMES
from saliency_assay.models.independence import differ
from saliency_assay.models.inference import evaluating, exact_float32, to_evaluation
from saliency_assay.models.layout import in_layout_of, restored_buffers
from saliency_assay.models.normalization import IMAGENET
from saliency_assay.registry.records import resolve, short_repr
from saliency_assay.runtime.atomic import replacing
from saliency_assay.runtime.environment import loaded_versions

logger = logging.getLogger(__name__)

VALID = "a state dict of tensors, written by torch.save"
KEYS = ("state_dict", "model_state_dict", "model")
"""Keys of the state dict in files that also contain other training state, such as that of the optimizer."""
EXTRA = "_extra_state"
"""PyTorch's name of an entry of a state dict from ``Module.get_extra_state``, which need not be a tensor."""
AVERAGED = "n_averaged"
"""Entry of ``torch.optim.swa_utils.AveragedModel`` beside the weights."""
AVERAGES = re.compile(r"(?<![a-z])(ema|swa|shadow|polyak|(exponential_?moving_?)?averaged?|avg)(?![a-z])")
"""Keys of averaged weights in lower case, which some packages store under other names than those of the network."""
OPTIMIZER = re.compile(r"optim|scheduler|scaler")
"""Keys of training state, which contains averages of gradients."""
DEFAULT_OUTPUTS = {"output": LOGITS, "multi_label": False}
"""Fields of a ``Blueprint`` that a file of ``save`` contains only if they have other values."""
PROTOCOL = b"\x80"  # the first opcode of a pickle
# Opcodes by which a pickle imports or calls code.
CALLS = {"GLOBAL", "STACK_GLOBAL", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "REDUCE", "BUILD"}


def write(path: Path, content: object) -> None:
    """Write ``content`` with ``torch.save``, atomically: after an interruption, the old file or none exists."""
    # Passed as a file object, because ``torch.save`` would write the temporary path's name into the file.
    with replacing(path) as temporary, temporary.open("wb") as file:
        torch.save(content, file)


def read(path: Path) -> Any:
    """Load a file of ``torch.save``, or of safetensors by its suffix, to the CPU.

    Only tensors and plain values are read, and no code is run.

    Raises:
        FileNotFoundError: there is no file at ``path``.
        ValueError: the file contains code, is truncated or was not written by ``torch.save``.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file; expected {VALID}")
    if path.suffix == ".safetensors":
        return _read_safetensors(path)
    _check_members(path)
    try:
        with warnings.catch_warnings():  # on formats that are rejected anyway
            warnings.simplefilter("ignore")
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # damage shows as OSError, RuntimeError, KeyError, UnpicklingError, …
        executable = _code_in(path, str(error))
        if executable:
            raise ValueError(
                f"{path}: contains code ({executable[:80]}), which is not run; valid: {VALID}"
            ) from None
        raise ValueError(f"{path}: truncated, or not written by torch.save; valid: {VALID}") from error


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a file of safetensors, the format of weights from timm and Hugging Face.

    Raises:
        ValueError: safetensors is not installed, or the file is damaged.
    """
    try:
        from safetensors import SafetensorError
        from safetensors.torch import load_file
    except ImportError:
        raise ValueError(
            f"{path}: safetensors is not installed; run .venv/bin/pip install safetensors"
        ) from None
    try:
        tensors: dict[str, Tensor] = load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path}: truncated, or not a file of safetensors ({error})") from error
    return tensors


def _check_members(path: Path) -> None:
    """Check that the members of a zip file are uncompressed, as torch writes them, and not larger than the file.

    Otherwise a small compressed file could fill the memory.

    Raises:
        ValueError: the file is damaged, or its members are compressed or too large.
    """
    if not zipfile.is_zipfile(path):
        return  # torch's older format, or a file that ``torch.load`` rejects
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except Exception as error:  # a damaged central directory of the zip file
        raise ValueError(f"{path}: truncated, or not written by torch.save; valid: {VALID}") from error
    size, claimed = path.stat().st_size, sum(member.file_size for member in members)
    if claimed > size or any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise ValueError(f"{path}: found {size} bytes that unpack to {claimed}; valid: {VALID}, uncompressed")


def read_state(path: Path, expected: Collection[str] = ()) -> dict[str, Tensor]:
    """Return the state dict in ``path``: the content of the file, or the only state dict in it.

    It is the part with any of the ``expected`` names, possibly after a prefix that all names share. If there is no such
    part, it is the only entry that is a state dict.

    Raises:
        FileNotFoundError: there is no file at ``path``.
        ValueError: as ``read``, or the file contains no state dict, several, or averaged weights beside the state dict.
    """
    content = read(path)
    found = dict(_parts(content))
    states = {place: part for place, part in found.items() if _is_state(part)}
    fitting = {
        place: part for place, part in states.items() if _without_prefix(part, expected).keys() & {*expected}
    }
    states = fitting or {place: part for place, part in states.items() if len(place) < 2}
    # Without their lists' indices, so that a list of tensors counts once.
    averages = dict.fromkeys(
        tuple(key for key in place if isinstance(key, str))
        for place in found
        if place not in states and _has_key(place, AVERAGES) and not _has_key(place, OPTIMIZER)
    )
    if len(places := [*states, *averages]) > 1:
        keys = "".join(f"[{key!r}]" for key in places[0])
        raise ValueError(
            f"{path}: found the weights of several networks ({', '.join(map(_place, places))}), expected one; "
            f"save those to use, such as torch.save(torch.load(FILE){keys}, OTHER_FILE)"
        )
    if states:
        content = next(iter(states.values()))
    elif isinstance(content, Mapping):
        content = next((content[key] for key in KEYS if isinstance(content.get(key), Mapping)), content)
    return _checked(path, content)


def save(path: Path, classifier: Classifier, blueprint: Blueprint) -> None:
    """Write the weights of a classifier and the values from which it can be rebuilt.

    The file is ``{"state_dict": …, "classifier": …}``. The second entry is plain JSON and also contains the digest of
    the weights and the versions of the loaded packages. Equal weights give equal bytes.
    """
    state = {
        # Contiguous copies, because memory layout and shared storage would change the bytes.
        name: value.detach().cpu().clone(memory_format=torch.contiguous_format)
        if isinstance(value, Tensor)
        else value
        for name, value in classifier.network.state_dict().items()
    }
    description = {
        "architecture": blueprint.architecture,
        "parameters": dict(blueprint.parameters),
        "classes": classifier.classes,
        "mean": classifier.mean.flatten().tolist(),
        "std": classifier.std.flatten().tolist(),
        **_outputs(blueprint),
        "digest": digest(state),
        "libraries": loaded_versions(),
    }
    write(path, {"state_dict": state, "classifier": description})


def _outputs(blueprint: Blueprint) -> dict[str, Any]:
    """Return the fields of a blueprint on its outputs that differ from ``DEFAULT_OUTPUTS``."""
    return {
        key: getattr(blueprint, key)
        for key, default in DEFAULT_OUTPUTS.items()
        if getattr(blueprint, key) != default
    }


def check_reloading(classifier: Classifier, blueprint: Blueprint, images: Tensor) -> None:
    """Check, before hours of training, that a classifier is the same after its weights are saved and read again.

    The classifier is on the device of the ``images [N, C, H, W]``.

    Raises:
        ValueError: the weights cannot be read again, or the network that the blueprint builds with them returns other
            logits.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "weights.pt")
        try:
            save(path, classifier, blueprint)
            loaded = load_classifier(path, blueprint)
        except (AttributeError, RuntimeError, TypeError, ValueError) as error:
            reason = str(error).replace(f"{path}: ", "")
            raise ValueError(
                f"{blueprint.architecture}: its weights cannot be saved and read again: {reason}"
            ) from error
    with evaluating(classifier), restored_buffers(classifier), exact_float32(), torch.no_grad():
        logits, again = (each(images) for each in (classifier, in_layout_of(loaded, classifier)))
    if differ(logits, again):
        raise ValueError(
            f"{blueprint.architecture}: its weights cannot be saved and read again: a new network with these weights "
            "returns other logits; expected that all random values are in its state dict, such as in buffers with "
            "persistent=True"
        )


def libraries_in(path: Path) -> dict[str, str]:
    """Return the versions of the packages that produced the weights; empty if the file was not written by ``save``."""
    content = read(path)
    if not isinstance(content, Mapping) or "classifier" not in content:
        return {}
    versions: dict[str, str] = _description(path, content).get("libraries", {})
    return versions


def description_in(path: Path) -> dict[str, Any]:
    """Return ``architecture``, ``parameters``, ``classes``, ``mean``, ``std`` and ``digest`` in a file of ``save``.

    Raises:
        FileNotFoundError, ValueError: as ``read``; or the file has no description of a classifier.
    """
    content = read(path)
    return _description(path, content if isinstance(content, Mapping) else {})


def load_classifier(path: Path, blueprint: Blueprint) -> Classifier:
    """Load a classifier that ``save`` wrote to the CPU, in evaluation mode.

    The network is built from the blueprint alone; the description in the file is only compared with it.

    Raises:
        FileNotFoundError: there is no file at ``path``.
        ValueError: as ``read_state``; the file has no description of a classifier, or its architecture, parameters or
            digest differ from those of the blueprint or of the weights.
    """
    content = read(path)
    description = _description(path, content if isinstance(content, Mapping) else {})
    # Names are those of the network, even if they look like the prefix of a wrapper.
    state = _checked(path, content.get("state_dict"))
    for key in ("architecture", "parameters", *DEFAULT_OUTPUTS):
        if (value := description.get(key, DEFAULT_OUTPUTS.get(key))) != getattr(blueprint, key):
            raise ValueError(f"{path}: {key}: found {value!r}, expected {getattr(blueprint, key)!r}")
    classes = description["classes"]
    if not 0 < classes <= path.stat().st_size:  # each class has a value at least
        raise ValueError(f"{path}: found {short_repr(classes)} classes, expected a file of save")
    classifier = build(
        blueprint,
        classes=classes,
        mean=description["mean"],
        std=description["std"],
        generator=torch.Generator(),
    )
    _load_state(classifier.network, state, f"{path}: not weights of {blueprint.architecture}")
    if digest(state) != description["digest"]:
        raise ValueError(
            f"{path}: damaged: the digest of its weights is not {description['digest']}, as stated in it"
        )
    to_evaluation(classifier)
    return classifier


def normalization_of(
    path: Path, channels: int, published: tuple[Sequence[float], Sequence[float]] = IMAGENET
) -> tuple[Sequence[float], Sequence[float]] | None:
    """Return mean and standard deviation that the weights in ``path`` expect; None if not for ``channels`` channels.

    They are those in a file of ``save``, and ``published`` for any other file.

    Raises:
        FileNotFoundError, ValueError: as ``read``.
    """
    content, statistics = read(path), published
    if isinstance(content, Mapping) and "classifier" in content:
        description = _description(path, content)
        statistics = description["mean"], description["std"]
    return statistics if len(statistics[0]) == channels else None


def load_initial(
    classifier: Classifier, path: Path, architecture: str, *, head_may_start_anew: bool = True
) -> None:
    """Load initial weights from ``path``, such as torchvision's.

    If the head (the last linear layer with an output per class) has another shape in the file, it keeps its random
    weights, and a warning is logged; without ``head_may_start_anew``, such a file is rejected.

    Raises:
        FileNotFoundError: there is no file at ``path``.
        ValueError: as ``read_state``, or the weights are not those of ``architecture``.
    """
    network = unwrapped(without_logits(classifier.network))
    is_binary = getattr(classifier.network, "is_binary", False)
    outputs = 1 if is_binary else classifier.classes
    initial_state, problem = network.state_dict(), f"{path}: not weights of {architecture}"
    state = _without_prefix(read_state(path, initial_state), initial_state)
    if architecture.partition("/")[0] == "imagenet":
        try:
            # By reference, so that only jobs of such networks depend on the module and on timm.
            state = dict(resolve(PACKAGED_NAMES)(state, initial_state))
        except ValueError as error:
            raise ValueError(f"{problem}: {error}") from None
    linear = [
        name
        for name, module in network.named_modules()
        if isinstance(module, nn.Linear) and module.out_features == outputs
    ]
    head = linear[-1] if linear else None
    head_names = [name for name in initial_state if name.rpartition(".")[0] == head]
    replaced = [
        name for name in head_names if name in state and _shape(state[name]) != _shape(initial_state[name])
    ]
    if replaced and head_may_start_anew:
        name = replaced[0]
        shapes = list(state[name].shape), list(initial_state[name].shape)
        logger.warning("%s: %s is %s, expected %s; %s keeps its random weights", path, name, *shapes, head)
        state |= {name: initial_state[name] for name in head_names}
    elif replaced:
        problem += (
            f" with {outputs} outputs, but with {state[replaced[0]].shape[0]}; set classes to those of the weights, or "
            f"train it, since {head} would have random weights"
        )
    _load_state(network, state, problem)
    logger.info("%s: %d tensors loaded", path, len(state))


def _parts(content: object, place: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield each state dict and each other tensor in the content of a file, with the keys that lead to it."""
    if _is_state(content) or (isinstance(content, Tensor) and content.dim()):
        yield place, content
    # No checkpoint is nested deeper, and a hostile one could contain itself.
    elif isinstance(content, Mapping | list | tuple) and len(place) < 4:
        for key, part in content.items() if isinstance(content, Mapping) else enumerate(content):
            yield from _parts(part, (*place, key))


def _has_key(place: tuple[Any, ...], pattern: re.Pattern[str]) -> bool:
    """Return True if a key matches a pattern of lower-case words, also if it is spelled as ``emaParams``."""
    words = (re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", str(key)).lower() for key in place)
    return any(pattern.search(each) for each in words)


def _place(keys: tuple[Any, ...]) -> str:
    return ".".join(str(key) for key in keys)


def _is_state(value: object) -> bool:
    return (
        isinstance(value, Mapping)
        and any(isinstance(each, Tensor) for each in value.values())
        and all(
            isinstance(name, str) and (isinstance(each, Tensor) or name.endswith(EXTRA))
            for name, each in value.items()
        )
    )


def _checked(path: Path, content: object) -> dict[str, Any]:
    """Return the state dict in a file, after a check that it consists of dense tensors and plain extra state."""
    if not isinstance(content, Mapping) or not content:
        raise ValueError(f"{path}: contains {_kind(content)}; valid: {VALID}")
    for name, value in content.items():
        if isinstance(name, str) and name.endswith(EXTRA) and not isinstance(value, Tensor):
            continue
        if not isinstance(name, str) or not isinstance(value, Tensor):
            raise ValueError(f"{path}: {short_repr(name)} is {_kind(value)}; valid: {VALID}")
        if (
            value.layout != torch.strided or value.is_quantized or value.is_meta
        ):  # on "meta" there are no values
            raise ValueError(f"{path}: {short_repr(name)} is {value.type()}; valid: dense tensors")
    return dict(content)


def _without_prefix(state: Mapping[str, Any], expected: Collection[str]) -> dict[str, Any]:
    """Return ``state`` without a prefix that all names share, if more of them are then ``expected``.

    Such prefixes are from wrappers, such as ``module`` of data parallelism and ``_orig_mod`` of ``torch.compile``.
    """
    best = stripped = dict(state)
    while True:
        named = {name: value for name, value in stripped.items() if name != AVERAGED}
        prefixes = {name.partition(".")[0] for name in named}
        if len(prefixes) != 1 or not all("." in name for name in named):
            return best
        stripped = {name.partition(".")[2]: value for name, value in named.items()}
        if len(stripped.keys() & {*expected}) > len(best.keys() & {*expected}):
            best = stripped


def _shape(value: object) -> tuple[int, ...] | None:
    return tuple(value.shape) if isinstance(value, Tensor) else None


def _load_state(network: nn.Module, state: Mapping[str, Any], problem: str) -> None:
    """Load a complete ``state``; only BatchNorm's ``num_batches_tracked`` may be missing, as it is in old files.

    Raises:
        ValueError: names, shapes or types differ from those of the network; the message starts with ``problem``.
    """
    network_state = network.state_dict()
    shared = [name for name in network_state if name in state]
    missing = [
        name for name in network_state if name not in state and not name.endswith("num_batches_tracked")
    ]
    unexpected = [name for name in state if name not in network_state]
    reshaped = [
        f"{name} {list(_shape(state[name]) or ())} for {list(_shape(network_state[name]) or ())}"
        for name in shared
        if _shape(state[name]) != _shape(network_state[name])
    ]
    # PyTorch would convert them: integers of quantized weights to their levels, complex numbers to their real part.
    converted = [
        f"{name} {str(state[name].dtype).removeprefix('torch.')}"
        for name in shared
        if isinstance(state[name], Tensor) and _number_kind(state[name]) != _number_kind(network_state[name])
    ]
    kinds = {
        "missing": missing,
        "unexpected": unexpected,
        "of another shape": reshaped,
        "of another type": converted,
    }
    problems = [f"{len(names)} {kind} ({_first(names)})" for kind, names in kinds.items() if names]
    if problems:
        raise ValueError(f"{problem}: {', '.join(problems)}")
    network.load_state_dict(state, strict=False)


def _number_kind(tensor: Tensor) -> str:
    return "complex" if tensor.is_complex() else "real" if tensor.is_floating_point() else "integer"


def _description(path: Path, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the checked description of the classifier in the content of a file of ``save``."""
    entry = content.get("classifier")
    description: dict[str, Any] = entry if isinstance(entry, dict) else {}
    kinds = {
        "architecture": str,
        "parameters": dict,
        "classes": int,
        "mean": list,
        "std": list,
        "digest": str,
    }
    is_complete = all(isinstance(description.get(key), kinds[key]) for key in kinds)
    if not is_complete or not all(
        isinstance(value, float) for value in [*description["mean"], *description["std"]]
    ):
        raise ValueError(
            f"{path}: no entry 'classifier' with {', '.join(kinds)}; valid: a file written by save"
        )
    return description


def _code_in(path: Path, message: str) -> str:
    """Return the name of the code in a rejected file, from torch's error ``message`` or the pickle; empty if none."""
    match = re.search(r"GLOBAL ([\w.]+)", message)
    if match:
        return match.group(1)
    if "TorchScript" in message:
        return "TorchScript"
    with path.open("rb") as file:
        if file.read(1) != PROTOCOL:
            return ""
        file.seek(0)
        # torch rejects pickles of newer protocols before it reaches their code, which its message then does not name.
        try:
            names = (operation.name for operation, _, _ in pickletools.genops(file))
            call = next((name for name in names if name in CALLS), "")
        except Exception:  # damaged before the first call
            return ""
    return f"a pickle with {call}" if call else ""


def _first(names: list[str]) -> str:
    return ", ".join(names[:2]) + (", …" if len(names) > 2 else "")


def _kind(value: object) -> str:
    name = type(value).__name__
    return f"an empty {name}" if value == {} else f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"
