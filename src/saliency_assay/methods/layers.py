"""Layers of a canonical network in place of operators, and layers with given weights.

A rule of LRP or DeepLIFT belongs to a type of layer, so sums, products and means are modules, too.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

from torch import Tensor, nn


class Add(nn.Module):
    """a + b, as at the end of a residual connection, or the addition of a constant such as a position embedding."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """Add two tensors of shapes that can be broadcast."""
        return a + b


class Multiply(nn.Module):
    """a ⊙ b, of two activations."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """Multiply two tensors of shapes that can be broadcast."""
        return a * b


class Scale(nn.Module):
    """a ⊙ c with a constant c, a number or a tensor."""

    factor: Any

    def __init__(self, factor: Tensor | float) -> None:
        super().__init__()
        if isinstance(factor, Tensor):
            self.register_buffer("factor", factor)
        else:
            self.factor = factor

    def forward(self, values: Tensor) -> Tensor:
        """Multiply values by the constant, whose shape can be broadcast."""
        output: Tensor = values * self.factor
        return output


class MatMul(nn.Module):
    """The matrix product of two activations."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """Multiply ``[..., n, k]`` by ``[..., k, m]``."""
        return a @ b


class Mean(nn.Module):
    """The mean over some dimensions, such as all tokens."""

    def __init__(self, dimensions: Sequence[int], keepdim: bool = False) -> None:
        super().__init__()
        self.dimensions, self.keepdim = tuple(dimensions), keepdim

    def forward(self, values: Tensor) -> Tensor:
        """Average over the dimensions."""
        return values.mean(self.dimensions, self.keepdim)


class Affine(nn.Module):
    """Each channel of ``[N, C, ...]`` scaled and shifted, as by BatchNorm."""

    scale: Tensor
    shift: Tensor

    def __init__(self, scale: Tensor, shift: Tensor, dimensions: int) -> None:
        super().__init__()
        self.dimensions = dimensions
        self.register_buffer("scale", scale)
        self.register_buffer("shift", shift)

    def forward(self, values: Tensor) -> Tensor:
        """Scale and shift values of the given number of dimensions."""
        shape = (-1, *[1] * (self.dimensions - 2))
        return values * self.scale.reshape(shape) + self.shift.reshape(shape)


class SquareRoot(nn.Module):
    """√x, as in a standard deviation."""

    def forward(self, values: Tensor) -> Tensor:
        """Return the square root of each value."""
        return values.sqrt()


class Reciprocal(nn.Module):
    """1 / x, so that a division is a product."""

    def forward(self, values: Tensor) -> Tensor:
        """Return the reciprocal of each value."""
        return values.reciprocal()


def convolution(
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int] | str,
    dilation: Sequence[int],
    groups: int,
) -> nn.Conv2d:
    """Return the convolution with these weights, which it shares."""
    channels, inputs, *size = weight.shape
    options: dict[str, Any] = {"stride": stride, "padding": padding, "dilation": dilation}
    options = {name: each if isinstance(each, str) else pair(each) for name, each in options.items()}
    layer = nn.Conv2d(
        inputs * groups, channels, pair(size), groups=groups, bias=bias is not None, device="meta", **options
    )
    return with_weights(layer, weight, bias)


def pair(sizes: Sequence[int]) -> tuple[int, int]:
    """Return the sizes for height and width, of which one may stand for both."""
    return (sizes[0], sizes[-1])


def layer_norm(shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float) -> nn.LayerNorm:
    """Return the layer normalization with these weights, which it shares."""
    return with_weights(nn.LayerNorm(list(shape), eps, elementwise_affine=False), weight, bias)


def linear(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    """Return the linear layer with these weights, which it shares."""
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, device="meta")
    return with_weights(layer, weight, bias)


Layer = TypeVar("Layer", bound=nn.Module)


def with_weights(layer: Layer, weight: Tensor | None, bias: Tensor | None) -> Layer:
    """Return ``layer`` with these weights, which are constant."""
    for name, value in (("weight", weight), ("bias", bias)):
        constant = None if value is None else nn.Parameter(value.detach(), requires_grad=False)
        setattr(layer, name, constant)
    return layer
