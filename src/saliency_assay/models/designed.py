"""Networks with weights set by hand, for which the exact importance of every pixel is known.

All detect colors by a 1×1 convolution and a ReLU, such as red by max(r − g − b, 0), which is 1 for red, and 0 for black
and for gray of any brightness. The evidence e is a function of these responses, and the logits are e and −e.

The importance of a pixel is its Shapley value in the game v(S) = logit of the image whose pixels outside S are black.
The idea of networks designed for this purpose is that of AttributionLab (Zhang et al., 2023).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from saliency_assay.models.classifier import Classifier, unwrapped
from saliency_assay.registry.limits import PositiveInt

IDENTITY = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
RED, GREEN, BLUE = (1.0, -1.0, -1.0), (-1.0, 1.0, -1.0), (-1.0, -1.0, 1.0)
"""Weights of the color detectors, for the channels r, g, b."""
LINEAR = (1.0, -0.5, -0.5)
"""Weights of the channels in ``additive``, whose sum is 0 for gray."""
GAIN = 32.0
"""Evidence of an image whose pixels all have the response 1, in ``additive``, ``counting`` and ``half``."""
LESS = 0.5
"""Weight of the evidence against the first class, relative to that for it, in ``saturated`` and ``conjunction``."""


class Designed(nn.Module, ABC):
    """A network that knows the exact importance of the pixels of its input."""

    @abstractmethod
    def importance(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Return the Shapley value of each pixel for the target's logit, ``[N, 1, H, W]``.

        ``inputs`` are images ``[N, C, H, W]`` as the network receives them, ``targets`` int64 ``[N]``. A removed pixel
        is 0, which is black without a normalization.

        Raises:
            ValueError: the importance of the pixels of these images is not known.
        """


class _ColorNetwork(nn.Sequential, Designed):
    """Color detectors and a head that computes e and −e from their responses."""

    def __init__(self, colors: Sequence[Sequence[float]], *head: nn.Module) -> None:
        super().__init__(_convolution(colors), nn.ReLU(), *head)
        self._by_hand = [parameter.detach().clone() for parameter in self.parameters()]

    def importance(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Return the Shapley value of each pixel for the target's logit, see ``Designed``."""
        for parameter, weights in zip(self.parameters(), self._by_hand, strict=True):
            if not torch.equal(parameter.detach().to(weights), weights):
                raise ValueError(
                    "truth: found a designed network with changed weights, expected those set by hand"
                )
        with torch.no_grad():
            responses = self[1](self[0](inputs)).double()
            values = self.shapley(responses) * (1 - 2 * targets)[:, None, None]
        return values[:, None].to(inputs.dtype)

    @abstractmethod
    def shapley(self, responses: Tensor) -> Tensor:
        """Return the Shapley values ``[N, H, W]`` for the evidence, from responses float64 ``[N, K, H, W]``."""


class _Additive(_ColorNetwork):
    def __init__(self, colors: Sequence[Sequence[float]], weights: Sequence[float]) -> None:
        head = _linear([[GAIN * weight for weight in weights]])
        super().__init__(colors, nn.AdaptiveAvgPool2d(1), nn.Flatten(), head)
        self.weights = tuple(weights)

    def shapley(self, responses: Tensor) -> Tensor:
        weights = responses.new_tensor(self.weights)
        return torch.einsum("k,nkhw->nhw", weights, responses) * GAIN / responses[0, 0].numel()


class _Half(_ColorNetwork):
    def __init__(self) -> None:
        # Flattened, the means are those of red left and right, and of blue left and right.
        head = _linear([[GAIN / 2, 0, -GAIN / 2, 0]])
        super().__init__((RED, BLUE), nn.AdaptiveAvgPool2d((1, 2)), nn.Flatten(), head)

    def shapley(self, responses: Tensor) -> Tensor:
        height, width = responses.shape[2:]
        if width % 2:
            raise ValueError(f"half: found images of {width} columns, expected an even number")
        values = (responses[:, 0] - responses[:, 1]) * GAIN / (height * width)
        values[..., width // 2 :] = 0
        return values


class _Saturated(_ColorNetwork):
    def __init__(self, size: int) -> None:
        missing = nn.Conv2d(2, 2, size)  # 1 − count of each color
        with torch.no_grad():
            missing.weight.copy_(-torch.eye(2)[:, :, None, None].expand_as(missing.weight))
            missing.bias.fill_(1)  # type: ignore[union-attr]  # it has a bias
        # min(1, n) = 1 − max(1 − n, 0)
        head = _linear([[-1, LESS]], [1 - LESS])
        super().__init__((RED, BLUE), missing, nn.ReLU(), nn.Flatten(), head)

    def shapley(self, responses: Tensor) -> Tensor:
        red, blue = saturated_shares(responses.flatten(2)).reshape(responses.shape).unbind(1)
        return red - LESS * blue


class _Conjunction(_ColorNetwork):
    def __init__(self) -> None:
        both = nn.Linear(3, 2)
        with torch.no_grad():
            both.weight.copy_(torch.tensor([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
            both.bias.copy_(torch.tensor([-1.0, 0.0]))
        pooled = (nn.AdaptiveMaxPool2d(1), nn.Flatten(), both, nn.ReLU())
        super().__init__((RED, GREEN, BLUE), *pooled, _linear([[1, -LESS]]))

    def shapley(self, responses: Tensor) -> Tensor:
        red, green, blue = responses.flatten(2).unbind(1)
        values = maximum_shares(red, green) + maximum_shares(green, red) - LESS * maximum_shares(blue)
        return values.reshape(responses[:, 0].shape)


def additive(*, classes: int, channels: int, generator: torch.Generator) -> nn.Module:
    """Return e = 32/P Σ_p (r_p − g_p/2 − b_p/2) over P pixels: each adds to e on its own.

    Gray pixels add 0. The ReLU has no effect, because pixels are not negative.

    Raises:
        ValueError: not two classes and three channels.
    """
    _check(classes, channels)
    return _Additive(IDENTITY, LINEAR)


def counting(*, classes: int, channels: int, generator: torch.Generator) -> nn.Module:
    """Return e = 32/P Σ_p (red_p − blue_p) of detected colors: green and gray pixels are ignored.

    Raises:
        ValueError: not two classes and three channels.
    """
    _check(classes, channels)
    return _Additive((RED, BLUE), (1, -1))


def half(*, classes: int, channels: int, generator: torch.Generator) -> nn.Module:
    """Return e = 32/P Σ_p (red_p − blue_p) over the pixels of the left half; the right half is ignored.

    Raises:
        ValueError: not two classes and three channels.
    """
    _check(classes, channels)
    return _Half()


def saturated(
    *, classes: int, channels: int, generator: torch.Generator, size: PositiveInt = 32
) -> nn.Module:
    """Return e = min(1, Σ_p red_p) − min(1, Σ_p blue_p)/2 for images of ``size`` × ``size`` pixels.

    Any pixel of an object replaces all the others, so that gradients and effects of single pixels are 0.

    Raises:
        ValueError: not two classes and three channels.
    """
    _check(classes, channels)
    return _Saturated(size)


def conjunction(*, classes: int, channels: int, generator: torch.Generator) -> nn.Module:
    """Return e = max(R + G − 1, 0) − B/2 with the maxima R, G, B of the detected colors.

    A red and a green pixel together are evidence, neither of them alone.

    Raises:
        ValueError: not two classes and three channels.
    """
    _check(classes, channels)
    return _Conjunction()


def truth_of(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """Return the exact importance of the pixels of ``images [N, C, H, W]`` for the targets' logits, ``[N, 1, H, W]``.

    Raises:
        ValueError: the network is not a designed one, or as ``Designed.importance``.
    """
    network = unwrapped(model.network if isinstance(model, Classifier) else model)
    if not isinstance(network, Designed):
        raise ValueError(
            f"truth: found {type(network).__name__}, expected a designed network, whose importance is known by "
            "construction: architecture designed/NAME"
        )
    images = images.detach()
    return network.importance(
        model.network_input(images) if isinstance(model, Classifier) else images, targets
    )


def saturated_shares(responses: Tensor) -> Tensor:
    """Return the Shapley values of the game v(S) = min(1, Σ_{i ∈ S} a_i), ``[..., P]``.

    If a_i is at least 1/2 for n players and 0 for the others, two players reach 1. A player who comes first adds b_i =
    min(1, a_i), and one who comes second, behind j, adds 1 − b_j: φ_i = b_i/n + Σ_{j ≠ i} (1 − b_j) / (n (n − 1)).

    Args:
        responses: a, ``[..., P]``.

    Raises:
        ValueError: a response is between 0 and 1/2, for which there is no such formula.
    """
    if bool(((responses > 0) & (responses < 0.5)).any()):
        value = responses[(responses > 0) & (responses < 0.5)].max().item()
        raise ValueError(
            f"saturated: found a color detector with the response {value:.3g}, expected 0 or at least 0.5"
        )
    count, responses = (responses > 0).sum(-1, keepdim=True).double(), responses.clamp(max=1)
    gaps = (1 - responses) * (responses > 0)
    second = (gaps.sum(-1, keepdim=True) - gaps) / (count * (count - 1)).clamp(min=1)
    return (responses / count.clamp(min=1) + second) * (responses > 0)


def maximum_shares(own: Tensor, other: Tensor | None = None) -> Tensor:
    """Return the Shapley values of the players ``own`` in a game of maxima of responses of at least 0, ``[N, P]``.

    Without ``other``, the game is v(S) = max_S a (Littlechild and Owen, 1973); with the responses b of other players,
    v(S) = max(max_S a + max_S b − 1, 0). Both are integrals over t of simple games: some player of S has a > t and,
    with ``other`` and t < 1, some has b > 1 − t. With n(t) and m(t) such players, the first of the n(t) is decisive if
    one of the m(t) comes before: φ_i = ∫_0^{a_i} m(t) / (n(t) (n(t) + m(t))) dt, and that of 1 / n(t) for t > 1 and
    without ``other``.
    """
    ends = [own.new_zeros(len(own), 1), own.new_ones(len(own), 1), own]
    cuts = torch.cat([*ends, *([] if other is None else [(1 - other).clamp(min=0)])], 1).sort(1).values
    middles = (cuts[:, 1:] + cuts[:, :-1]) / 2
    count = _number_above(own, middles)
    weights = 1 / count.clamp(min=1)
    if other is not None:
        others = _number_above(other, 1 - middles)
        behind = weights * others / (count + others).clamp(min=1)
        weights = torch.where(middles > 1, weights, behind)
    areas = torch.nn.functional.pad((weights * cuts.diff(dim=1)).cumsum(1), (1, 0))
    return areas.gather(1, torch.searchsorted(cuts, own.contiguous()))


def _number_above(values: Tensor, thresholds: Tensor) -> Tensor:
    """Return the number of ``values [N, P]`` above each of ``thresholds [N, T]``, float64 ``[N, T]``."""
    below = torch.searchsorted(values.sort(1).values, thresholds.contiguous(), right=True)
    return (values.shape[1] - below).double()


def _convolution(weights: Sequence[Sequence[float]]) -> nn.Conv2d:
    """Return a 1×1 convolution of three channels without bias."""
    layer = nn.Conv2d(3, len(weights), 1, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(weights)[:, :, None, None])
    return layer


def _linear(evidence: Sequence[Sequence[float]], bias: Sequence[float] = ()) -> nn.Linear:
    """Return the layer from responses to the evidence e and −e."""
    layer = nn.Linear(len(evidence[0]), 2, bias=bool(bias))
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([*evidence, *([-weight for weight in row] for row in evidence)]))
        if bias:
            layer.bias.copy_(torch.tensor([*bias, *(-value for value in bias)]))
    return layer


def _check(classes: int, channels: int) -> None:
    if (classes, channels) != (2, 3):
        raise ValueError(
            f"found {classes} classes and {channels} channels, expected 2 and 3 (data kind designed)"
        )
