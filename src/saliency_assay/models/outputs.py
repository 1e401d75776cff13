"""Networks whose output is not one logit for each of several exclusive classes.

A binary network returns one logit z, or its sigmoid; a network may also end with a softmax. ``ToLogits`` wraps such a
network, so that all methods and metrics explain logits. A multi-label network has one logit per class, each with a
probability of its own; its ``Classifier`` is marked as ``multi_label``. ``ToScalar`` explains any number that is a
function of a network's output, such as the prediction of a regression.
"""

from collections.abc import Callable
from contextlib import ExitStack, suppress
from itertools import chain
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from saliency_assay.models.classifier import main_output, unwrapped

ACTIVATIONS: dict[str, set[Any]] = {
    "sigmoid": {
        *(torch.sigmoid, torch.sigmoid_, torch.special.expit, Tensor.sigmoid, Tensor.sigmoid_),
        functional.sigmoid,
    },
    "softmax": {torch.softmax, torch.special.softmax, Tensor.softmax, functional.softmax},
}
"""Functions and methods that compute each activation."""


class ToLogits(nn.Module):
    """A network from normalized images to the logits that methods and metrics explain, ``[N, K]``.

    ``output`` is what the network returns: ``logit`` or ``sigmoid``, the logit z or the probability of the second of
    two classes, or ``softmax``, probabilities of all classes. With ``multi_label``, ``sigmoid`` is a probability for
    each class. The final activation is left out: its input is returned, which is exact, while a logit computed from a
    probability near 1 would be rounded. A single z becomes the logits (−z/2, z/2), whose softmax is the sigmoid of z.
    """

    pair: Tensor

    def __init__(self, network: nn.Module, output: str, *, multi_label: bool = False) -> None:
        super().__init__()
        # The name is that of other wrappers, so that paths of layers may leave it out (``Classifier.layer``).
        self.module = unwrapped(network)
        self.output = output
        self.activation = output if output in ACTIVATIONS else ""
        self.is_binary = output in ("logit", "sigmoid") and not multi_label
        tensors = chain(network.parameters(), network.buffers())
        device = next((tensor.device for tensor in tensors), None)
        self.register_buffer("pair", torch.tensor([[-0.5], [0.5]], device=device), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """Return logits ``[N, K]`` of normalized images ``[N, C, H, W]``.

        Raises:
            ValueError: the network's output is not the result of the activation, or not one value per image.
        """
        if self.activation:
            with _Inputs(self.activation) as inputs:
                logits = inputs.of(main_output(self.module(images)))
        else:
            logits = main_output(self.module(images))
        if not self.is_binary:
            return cast(Tensor, logits)
        if isinstance(logits, Tensor) and (logits.numel() != len(images) or logits.ndim > 2):
            hint = "; several independent outputs need multi_label" if logits.ndim == 2 else ""
            raise ValueError(
                f"output: found {list(logits.shape)} for a batch of {len(images)}, expected [{len(images)}, 1] for "
                f"{self.output!r}{hint}"
            )
        return functional.linear(logits.reshape(-1, 1), self.pair)


class ToScalar(nn.Module):
    """A network from normalized images to one number per image ``[N, 1]``, which ``function`` computes from its output.

    The number is explained as the logit of the only class.
    """

    is_binary = False  # as in ``ToLogits``

    def __init__(self, network: nn.Module, function: Callable[[Any], Tensor]) -> None:
        super().__init__()
        self.module = unwrapped(network)  # named as in ``ToLogits``
        self.function = function

    def forward(self, images: Tensor) -> Tensor:
        """Return one number per image, ``[N, 1]``, of normalized images ``[N, C, H, W]``.

        Raises:
            ValueError: the function returns anything else.
        """
        values = self.function(self.module(images))
        if not isinstance(values, Tensor) or list(values.shape) not in ([len(images)], [len(images), 1]):
            returned = list(values.shape) if isinstance(values, Tensor) else type(values).__name__
            raise ValueError(
                f"output: the function returned {returned} for a batch of {len(images)}, expected a tensor "
                f"[{len(images)}]"
            )
        return values.reshape(-1, 1)


def final_activation(network: nn.Module, images: Tensor) -> str:
    """Return the activation, a key of ``ACTIVATIONS``, whose result a network returns for normalized images.

    It is empty if the network returns anything else, such as logits.
    """
    with ExitStack() as stack:
        inputs = {name: stack.enter_context(_Inputs(name)) for name in ACTIVATIONS}
        output = main_output(unwrapped(network)(images))
    for name, each in inputs.items():
        with suppress(ValueError):
            each.of(output)
            return name
    return ""


class _Inputs(TorchFunctionMode):
    """Records results and inputs of an activation within the context."""

    def __init__(self, activation: str) -> None:
        super().__init__()
        self.activation = activation
        self._calls: list[tuple[Any, Any, int | None]] = []

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        keywords = kwargs or {}
        if func not in ACTIVATIONS[self.activation]:
            return func(*args, **keywords)
        values = args[0] if args else keywords["input"]
        if isinstance(values, Tensor) and func in (torch.sigmoid_, Tensor.sigmoid_):
            values = values.clone()  # overwritten by the call
        result = func(*args, **keywords)
        dimension = keywords.get("dim", args[1] if len(args) > 1 else None)
        if self.activation == "sigmoid" or dimension in (1, -1):
            self._calls.append((result, values, _version(result)))
        return result

    def of(self, output: Any) -> Any:
        """Return the input of the activation whose result is ``output``, up to its shape.

        Raises:
            ValueError: ``output`` is not the result of the activation.
        """
        for result, values, version in reversed(self._calls):
            if isinstance(output, Tensor) and _same_values(output, result) and _version(result) == version:
                logits = values.reshape(output.shape)
                if version is not None or self._is_activation_of(logits, output):
                    return logits
        raise ValueError(
            f"output: found {self.activation!r}, but the network does not return the result of torch.{self.activation} "
            f"or nn.{self.activation.title()}; expected that, or a network that returns logits"
        )

    def _is_activation_of(self, logits: Tensor, output: Tensor) -> bool:
        """Return True if ``output`` has not been overwritten after the activation."""
        values = logits.sigmoid() if self.activation == "sigmoid" else logits.softmax(1)
        return output.is_meta or torch.equal(values, output)


def _version(tensor: object) -> int | None:
    """Return the number of writes to a tensor; None in inference mode, which does not count them."""
    return tensor._version if isinstance(tensor, Tensor) and not tensor.is_inference() else None


def _same_values(output: Tensor, result: Tensor) -> bool:
    """Return True if ``output`` is ``result`` or a contiguous view of all of it."""
    if output is result:
        return True
    is_whole = output.numel() == result.numel() and output.is_contiguous() and result.is_contiguous()
    has_address = not output.is_meta and not isinstance(output, FakeTensor)
    shares = output.data_ptr() == result.data_ptr() if has_address else output._base is result
    return is_whole and shares
