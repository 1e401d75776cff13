"""Conversion of ATen operations to the layers and rearrangements of a canonical network.

A conversion takes a ``Form``, to which it adds layers, and the arguments of one operation by their names in ATen's
schema: a node for what depends on the images, a tensor for a constant, or a plain value. It returns the node of the
result, or None if the operation has no layers for these arguments.
"""

import math
import operator
import re
from collections import Counter
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, TypeAlias

import torch
from torch import Tensor, fx, nn
from torch.nn import functional

from saliency_assay.methods.exported import PATH, Exported, arguments_of, short_name
from saliency_assay.methods.layers import (
    Add,
    Affine,
    MatMul,
    Mean,
    Multiply,
    Reciprocal,
    Scale,
    SquareRoot,
    convolution,
    layer_norm,
    linear,
    pair,
)

Conversion: TypeAlias = "Callable[[Form, Any], Any]"


broadcast: Callable[..., torch.Size] = torch.broadcast_shapes
"""Function that returns the shape to which shapes can be broadcast."""


def with_rows(constant: Tensor, images: Tensor, dimension: int) -> Tensor:
    """Repeat a constant for one image along a dimension for each of ``images [N, ...]``."""
    sizes = [1] * constant.ndim
    sizes[dimension] = len(images)
    return constant.repeat(sizes)


REARRANGEMENTS: set[Any] = {
    *(torch.reshape, torch.permute, torch.broadcast_to, torch.tile, operator.getitem),
    *(torch.cat, torch.roll, torch.flip, functional.pad),
    *(functional.pixel_shuffle, functional.pixel_unshuffle),
}
"""Functions that only move values within an image, join them, or pad them with zeros or with each other."""


_GATED: dict[type[nn.Module], type[nn.Module]] = {nn.Sigmoid: nn.SiLU, nn.Hardsigmoid: nn.Hardswish}
"""For each gate g, the activation x · g(x)."""


class Unknown(ValueError):
    """An operation without layers."""


class Form:
    """A canonical network that is built from exported operations, each by its conversion.

    Raises:
        Unknown: an operation has no conversion, or mixes images.
    """

    def __init__(self, exported: Exported) -> None:
        self.root = nn.Module()
        self.graph = fx.Graph()
        self.merges_rows = False
        """True if images share a dimension with other values anywhere, such as the windows of an image."""
        self.adds_images = True
        """True if the first dimension of every sum of two activations is that of the images."""
        self._rows = exported.rows
        self._shapes: dict[fx.Node, tuple[int, ...]] = {}
        self.operation = ""
        """Name of the operation that is converted."""
        self._path = ""
        self._counts: Counter[str] = Counter()
        self._row_axes: dict[int, int | None] = {}
        self._constants: dict[int, fx.Node] = {}
        images, *operations = exported.nodes
        # A layer has the path of the module that computes it, or a path inside of a module that calls others.
        self._containers = {""} | {
            _path_of(node)[: match.start()]
            for node in operations
            for match in re.finditer(r"\.", _path_of(node))
        }
        self._images = self.graph.placeholder("images")
        self._shapes[self._images] = tuple(images.meta["val"].shape)
        self.dtype, self.device = images.meta["val"].dtype, images.meta["val"].device
        results: dict[fx.Node, Any] = {images: self._images}
        for node, constant in exported.constants.items():
            is_number = constant.value.is_floating_point()
            value = constant.value.to(self.dtype) if is_number else constant.value
            results[node] = value
            self._row_axes[id(value)] = constant.dimension
        for node in operations:
            results[node] = self._converted(node, results)
        self.graph.output(results[exported.output])

    # ---- shapes

    def shape(self, node: fx.Node) -> tuple[int, ...]:
        """Return the shape of a result, in which the number of images is a large prime."""
        return self._shapes[node]

    def axis(self, node: fx.Node) -> int:
        """Return the dimension of the images."""
        return next(axis for axis, size in enumerate(self.shape(node)) if self.is_rows(size))

    def is_rows(self, size: int) -> bool:
        """Return True if a size depends on the number of images."""
        return size > 0 and size % self._rows == 0

    # ---- additions to the graph

    def call(self, layer: nn.Module, *arguments: Any, shape: Sequence[int] | None = None) -> fx.Node:
        """Add a layer; its result has the shape of its first argument by default."""
        parent, path = self.root, self._path.split(".") if self._path else []
        if self._path in self._containers:
            path.append(type(layer).__name__.lower())
        self._counts[".".join(path)] += 1
        if (count := self._counts[".".join(path)]) > 1:
            path[-1] += f"_{count}"
        for name in path[:-1]:
            if name not in parent._modules:
                parent.add_module(name, nn.Module())
            parent = parent.get_submodule(name)
        parent.add_module(path[-1], layer.eval())
        node = self.graph.call_module(".".join(path), arguments)
        self._shapes[node] = self.shape(arguments[0]) if shape is None else tuple(shape)
        return node

    def rearrange(self, function: Callable[..., Any], *arguments: Any, shape: Sequence[int]) -> fx.Node:
        """Add a function of ``REARRANGEMENTS``."""
        node = self.graph.call_function(function, arguments)
        self._shapes[node] = tuple(shape)
        return node

    def constant(self, value: Tensor, *, for_all_images: bool = False) -> fx.Node:
        """Add a constant, repeated ``for_all_images`` if its shape depends on their number."""
        if id(value) not in self._constants:
            name = f"constant_{len(self._constants)}"
            self.root.register_buffer(name, value)
            self._constants[id(value)] = self.graph.create_node("get_attr", name)
            self._shapes[self._constants[id(value)]] = tuple(value.shape)
        node, axis = self._constants[id(value)], self._row_axes.get(id(value))
        if axis is None or (value.shape[axis] == 1 and not for_all_images):
            return node
        shape = [size * self._rows if at == axis else size for at, size in enumerate(value.shape)]
        return self.rearrange(with_rows, node, self._images, axis, shape=shape)

    def reshape(self, node: fx.Node, shape: Sequence[int]) -> fx.Node:
        """Reshape a result."""
        if self.shape(node) == tuple(shape):
            return node
        sizes = tuple(-1 if self.is_rows(size) else size for size in shape)
        return self.rearrange(torch.reshape, node, sizes, shape=shape)

    def permute(self, node: fx.Node, order: Sequence[int]) -> fx.Node:
        """Permute the dimensions of a result."""
        shape = self.shape(node)
        order = [axis % len(shape) for axis in order]
        if order == list(range(len(shape))):
            return node
        return self.rearrange(torch.permute, node, tuple(order), shape=[shape[axis] for axis in order])

    def swap(self, node: fx.Node, a: int, b: int) -> fx.Node:
        """Transpose two dimensions of a result."""
        order = list(range(len(self.shape(node))))
        order[a], order[b] = order[b], order[a]
        return self.permute(node, order)

    def item(self, node: fx.Node, axis: int, index: int | slice) -> fx.Node:
        """Read a position or a slice of one dimension other than that of the images."""
        shape = list(self.shape(node))
        axis %= len(shape)
        if isinstance(index, slice):
            shape[axis] = len(range(*index.indices(shape[axis])))
            if tuple(shape) == self.shape(node) and index.step in (None, 1):
                return node
        else:
            del shape[axis]
        if axis == self.axis(node):
            raise Unknown
        return self.rearrange(operator.getitem, node, (*[slice(None)] * axis, index), shape=shape)

    def sum(self, a: Any, b: Any) -> fx.Node:
        """Add a + b, of which one at least depends on the images; the other one may be a tensor or a number."""
        if not isinstance(a, fx.Node):
            a, b = b, a
        if not isinstance(b, fx.Node | Tensor):
            b = torch.tensor(float(b), dtype=self.dtype, device=self.device)
        if isinstance(b, Tensor):
            b = self.constant(b)
        shape = self._broadcast(a, b)
        self.adds_images &= shape[0] == self._rows
        return self.call(Add(), a, b, shape=shape)

    def product(self, a: Any, b: Any) -> fx.Node:
        """Multiply two factors, which are as in ``sum``."""
        if not isinstance(a, fx.Node):
            a, b = b, a
        if activation := self._activation_written_out(a, b):
            return activation
        if not isinstance(b, fx.Node | Tensor):
            return a if b == 1 else self.call(Scale(float(b)), a)
        if isinstance(b, Tensor):
            constant = self.constant(b)
            if constant.op == "get_attr":
                return self.call(Scale(b), a, shape=self._broadcast(a, constant))
            b = constant
        return self.call(Multiply(), a, b, shape=self._broadcast(a, b))

    def _activation_written_out(self, a: fx.Node, b: Any) -> fx.Node | None:
        """Return the activation that a product is: SiLU, Hardsigmoid, Hardswish; None for other products.

        SiLU is x · sigmoid(x), Hardsigmoid is ReLU6(x + 3) / 6, and Hardswish is its product with x.
        """
        if isinstance(b, fx.Node):
            pairs = ((a, b), (b, a))
            gated = {each: x for x, gate in pairs for each in _GATED if self._is_call(gate, each, x)}
            return next((self.call(_GATED[gate](), x) for gate, x in gated.items()), None)
        if not isinstance(b, float) or not math.isclose(b, 1 / 6):
            return None
        factors: Any = a.args if self._is_call(a, Multiply) else (a,)
        for clipped in factors:
            shifted = clipped.args[0] if self._is_call(clipped, nn.ReLU6) else None
            if shifted is not None and self._is_call(shifted, Add) and self._is_constant(shifted.args[1], 3):
                x = shifted.args[0]
                if self.shape(x) != self.shape(a):
                    return None
                if len(factors) == 1:
                    return self.call(nn.Hardsigmoid(), x)
                if x in factors:
                    return self.call(nn.Hardswish(), x)
        return None

    def _is_call(self, node: fx.Node, kind: type[nn.Module], argument: fx.Node | None = None) -> bool:
        """Return True if a node calls a layer of a kind, with an argument."""
        is_kind = node.op == "call_module" and type(self.root.get_submodule(str(node.target))) is kind
        return is_kind and argument in (None, node.args[0])

    def _is_constant(self, node: fx.Node, value: float) -> bool:
        is_constant = node.op == "get_attr"
        return is_constant and bool((self.root.get_buffer(str(node.target)) == value).all())

    def quotient(self, a: Any, b: Any) -> fx.Node:
        """Divide two factors, which are as in ``sum``."""
        if not isinstance(b, fx.Node):
            return self.product(a, 1 / (b.to(self.dtype) if isinstance(b, Tensor) else b))
        return self.product(self.call(Reciprocal(), b), a)

    def mean(self, node: fx.Node, axes: Sequence[int] | None, keepdim: bool) -> fx.Node:
        """Average over dimensions other than that of the images."""
        shape = list(self.shape(node))
        axes = sorted(axis % len(shape) for axis in axes or range(len(shape)))
        if self.axis(node) in axes:
            raise Unknown
        kept = [1 if axis in axes else size for axis, size in enumerate(shape)]
        dropped = kept if keepdim else [size for axis, size in enumerate(shape) if axis not in axes]
        if len(shape) == 4 and axes == [2, 3]:
            return self.reshape(self.call(nn.AdaptiveAvgPool2d(1), node, shape=kept), dropped)
        return self.call(Mean(axes, keepdim), node, shape=dropped)

    def matrix_product(self, a: Any, b: Any) -> fx.Node:
        """Multiply two matrices or batches of them, which are as in ``sum``."""
        if isinstance(a, fx.Node) and isinstance(b, Tensor) and b.ndim == 2:
            shape = self.shape(a)
            return self.call(linear(b.T, None), a, shape=(*shape[:-1], b.shape[1]))
        a, b = (self.constant(each) if isinstance(each, Tensor) else each for each in (a, b))
        first, second = self.shape(a), self.shape(b)
        if min(len(first), len(second)) < 2:
            raise Unknown
        return self.call(MatMul(), a, b, shape=(*broadcast(first[:-2], second[:-2]), first[-2], second[-1]))

    def _broadcast(self, a: fx.Node, b: fx.Node) -> Sequence[int]:
        return broadcast(self.shape(a), self.shape(b))

    # ---- conversion of a node

    def _converted(self, node: fx.Node, results: dict[fx.Node, Any]) -> Any:
        """Return the result of an operation: a node, or a list of nodes for an operation with several results."""
        if node.target is operator.getitem:
            source, index = node.args
            return results[source][index]  # type: ignore[index]
        self._path = _path_of(node)
        self.operation = name = short_name(node.target)
        arguments = SimpleNamespace(
            **{
                key: fx.node.map_arg(value, results.__getitem__)
                for key, value in vars(arguments_of(node)).items()
            },
            out=node.meta["val"],
        )
        convert: Conversion = CONVERSIONS.get(name, _unknown)
        try:
            result = convert(self, arguments)
        # Arguments may be other than a conversion expects, such as constants with a row for each image.
        except Exception:
            result = None
        outputs = [] if result is None else zip(_as_list(node.meta["val"]), _as_list(result), strict=True)
        pairs = [(tuple(value.shape), each) for value, each in outputs if isinstance(each, fx.Node)]
        shapes = [shape for shape, each in pairs if self.shape(each) == shape]
        if len(shapes) < len(pairs) or {sum(map(self.is_rows, shape)) for shape in shapes} != {1}:
            at = f" ({self._path!r})" if self._path else ""
            raise Unknown(f"found the operation {name.partition('.')[0]!r}{at}")
        self.merges_rows |= any(
            size > self._rows and self.is_rows(size) for shape in shapes for size in shape
        )
        return result


def _path_of(node: fx.Node) -> str:
    """Return the path of the module in which an operation was called."""
    path: str = next(iter(node.meta.get(PATH, ("",))))
    return path


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _unknown(form: Form, a: Any) -> None:
    raise Unknown


CONVERSIONS: dict[str, Conversion] = {}
"""Conversion of each operation by its name, such as ``relu.default``."""


def _of(*names: str) -> Callable[[Conversion], Conversion]:
    """Register a conversion under the names of operations; ``.default`` may be left out."""

    def register(conversion: Conversion) -> Conversion:
        CONVERSIONS.update({name if "." in name else f"{name}.default": conversion for name in names})
        return conversion

    return register


# ---- layers with weights


@_of("conv2d", "conv2d.padding", "conv1d", "conv1d.padding", "convolution")
def _convolve(form: Form, a: Any) -> fx.Node | None:
    x, is_1d = a.input, a.weight.ndim == 3 if isinstance(a.weight, Tensor) else False
    is_plain = isinstance(a.weight, Tensor) and not isinstance(a.bias, fx.Node)
    is_plain &= not getattr(a, "transposed", False)
    if not is_plain or not isinstance(x, fx.Node) or form.axis(x) != 0 or len(form.shape(x)) > 4:
        return None
    sizes: list[Any] = [a.stride, a.padding, a.dilation]
    weight = a.weight
    if is_1d:  # a convolution over an image with one row
        weight = weight[:, :, None]
        sizes = [
            [one, *size] if not isinstance(size, str) else size
            for one, size in zip((1, 0, 1), sizes, strict=True)
        ]
        shape = form.shape(x)
        x = form.reshape(x, [*shape[:2], 1, shape[2]])
    stride, padding, dilation = sizes
    layer = convolution(weight, a.bias, stride, padding, dilation, a.groups)
    out = a.out.shape
    result = form.call(layer, x, shape=[*out[:2], 1, out[2]] if is_1d else out)
    return form.reshape(result, out)


for _name in ("conv3d", "conv_transpose1d", "conv_transpose2d.input", "conv_transpose3d.input"):
    _of(_name)(_unknown)  # not decomposed, so that messages have this name


@_of("linear")
def _linear(form: Form, a: Any) -> fx.Node | None:
    if isinstance(a.weight, Tensor) and not isinstance(a.bias, fx.Node):
        return form.call(linear(a.weight, a.bias), a.input, shape=a.out.shape)
    product = form.matrix_product(a.input, form.swap(a.weight, -1, -2))
    return product if a.bias is None else form.sum(product, a.bias)


@_of("batch_norm", "_native_batch_norm_legit_no_training")
def _batch_norm(form: Form, a: Any) -> Any:
    tensors = (a.weight, a.bias, a.running_mean, a.running_var)
    if (
        getattr(a, "training", False)
        or form.axis(a.input) != 0
        or any(isinstance(each, fx.Node) for each in tensors)
    ):
        return None
    scale = (a.running_var + a.eps).rsqrt()
    scale = scale if a.weight is None else scale * a.weight
    shift = (0 if a.bias is None else a.bias) - a.running_mean * scale
    result = form.call(Affine(scale, shift, len(form.shape(a.input))), a.input)
    return [result, None, None] if isinstance(a.out, tuple | list) else result


@_of("layer_norm", "native_layer_norm")
def _layer_norm(form: Form, a: Any) -> Any:
    first = len(form.shape(a.input)) - len(a.normalized_shape)
    if isinstance(a.weight, fx.Node) or isinstance(a.bias, fx.Node) or form.axis(a.input) >= first:
        return None
    result = form.call(layer_norm(a.normalized_shape, a.weight, a.bias, a.eps), a.input)
    return [result, None, None] if isinstance(a.out, tuple | list) else result


@_of("group_norm", "instance_norm")
def _group_norm(form: Form, a: Any) -> fx.Node | None:
    """Normalize each group as a row, then scale each channel."""
    shape = form.shape(a.input)
    groups = getattr(a, "num_groups", shape[1])
    is_constant = not isinstance(a.weight, fx.Node) and not isinstance(a.bias, fx.Node)
    if not is_constant or form.axis(a.input) != 0 or not getattr(a, "use_input_stats", True):
        return None
    size = math.prod(shape[1:]) // groups
    rows = form.reshape(a.input, (shape[0], groups, size))
    result = form.reshape(form.call(layer_norm([size], None, None, a.eps), rows), shape)
    if a.weight is None and a.bias is None:
        return result
    scale = torch.ones_like(a.bias) if a.weight is None else a.weight
    shift = torch.zeros_like(scale) if a.bias is None else a.bias
    return form.call(Affine(scale, shift, len(shape)), result)


@_of("rms_norm")
def _rms_norm(form: Form, a: Any) -> fx.Node:
    axes = [-1 - axis for axis in range(len(a.normalized_shape))]
    eps = torch.finfo(a.out.dtype).eps if a.eps is None else a.eps
    squares = form.mean(form.product(a.input, a.input), axes, keepdim=True)
    result = form.product(a.input, form.call(Reciprocal(), form.call(SquareRoot(), form.sum(squares, eps))))
    return result if a.weight is None else form.product(result, a.weight)


# ---- activations


def _activation(layer: type[nn.Module], *names: str) -> Conversion:
    """Return the conversion to an elementwise layer whose arguments are those of the operation with these names."""
    return lambda form, a: form.call(layer(**{name: getattr(a, name) for name in names}), _input(a))


def _input(a: Any) -> fx.Node:
    node: fx.Node = a.self if hasattr(a, "self") else a.input
    return node


for _name, _layer, *_options in (
    ("relu", nn.ReLU),
    ("relu6", nn.ReLU6),
    ("sigmoid", nn.Sigmoid),
    ("tanh", nn.Tanh),
    ("silu", nn.SiLU),
    ("mish", nn.Mish),
    ("hardswish", nn.Hardswish),
    ("hardsigmoid", nn.Hardsigmoid),
    ("selu", nn.SELU),
    ("leaky_relu", nn.LeakyReLU, "negative_slope"),
    ("gelu", nn.GELU, "approximate"),
    ("softplus", nn.Softplus, "beta", "threshold"),
    ("celu", nn.CELU, "alpha"),
    ("sqrt", SquareRoot),
    ("reciprocal", Reciprocal),
):
    _of(_name)(_activation(_layer, *_options))


@_of("elu")
def _elu(form: Form, a: Any) -> fx.Node | None:
    return form.call(nn.ELU(a.alpha), a.self) if a.scale == a.input_scale == 1 else None


@_of("prelu", "_prelu_kernel")
def _prelu(form: Form, a: Any) -> fx.Node | None:
    if isinstance(a.weight, fx.Node):
        return None
    layer = nn.PReLU(a.weight.numel(), device="meta")
    layer.weight = nn.Parameter(a.weight.reshape(-1), requires_grad=False)
    return form.call(layer, a.self)


@_of("clamp", "clamp_min", "hardtanh", "threshold")
def _clamp(form: Form, a: Any) -> fx.Node | None:
    low = getattr(a, "min", getattr(a, "min_val", getattr(a, "threshold", None)))
    high = getattr(a, "max", getattr(a, "max_val", None))
    low, high = (-math.inf if low is None else low), (math.inf if high is None else high)
    if getattr(a, "value", low) != low:
        return None
    if low == 0 and high == math.inf:
        return form.call(nn.ReLU(), a.self)
    return form.call(nn.ReLU6() if (low, high) == (0, 6) else nn.Hardtanh(low, high), a.self)


@_of("maximum")
def _maximum_with(form: Form, a: Any) -> fx.Node | None:
    """Compute max(x, 0)."""
    x, other = (a.self, a.other) if isinstance(a.self, fx.Node) else (a.other, a.self)
    is_zero = isinstance(other, Tensor) and not other.any() and form.shape(x) == tuple(a.out.shape)
    return form.call(nn.ReLU(), x) if is_zero else None


@_of("softmax.int", "_softmax")
def _softmax(form: Form, a: Any) -> fx.Node | None:
    if a.dim % len(form.shape(a.self)) == form.axis(a.self):
        return None
    return form.call(nn.Softmax(a.dim), a.self)


@_of("glu")
def _glu(form: Form, a: Any) -> fx.Node:
    half = form.shape(a.self)[a.dim] // 2
    values, gate = form.item(a.self, a.dim, slice(0, half)), form.item(a.self, a.dim, slice(half, 2 * half))
    return form.product(values, form.call(nn.Sigmoid(), gate))


# ---- arithmetic


@_of("add.Tensor", "add.Scalar")
def _add(form: Form, a: Any) -> fx.Node:
    return form.sum(a.self, _scaled(form, a.other, a.alpha))


@_of("sub.Tensor", "sub.Scalar")
def _subtract(form: Form, a: Any) -> fx.Node:
    return form.sum(a.self, _scaled(form, a.other, -a.alpha))


@_of("rsub.Scalar", "rsub.Tensor")
def _subtract_from(form: Form, a: Any) -> fx.Node:
    return form.sum(_scaled(form, a.self, -a.alpha), a.other)


def _scaled(form: Form, value: Any, factor: float) -> Any:
    if isinstance(value, fx.Node):
        return form.product(value, factor)
    return value if factor == 1 else value * factor


@_of("neg")
def _negative(form: Form, a: Any) -> fx.Node:
    return form.product(a.self, -1)


@_of("mul.Tensor", "mul.Scalar")
def _multiply(form: Form, a: Any) -> fx.Node:
    return form.product(a.self, a.other)


@_of("div.Tensor", "div.Scalar")
def _divide(form: Form, a: Any) -> fx.Node:
    return form.quotient(a.self, a.other)


@_of("abs")
def _absolute(form: Form, a: Any) -> fx.Node:
    """Compute max(x, 0) + max(−x, 0)."""
    return form.sum(form.call(nn.ReLU(), a.self), form.call(nn.ReLU(), form.product(a.self, -1)))


@_of("rsqrt")
def _reciprocal_root(form: Form, a: Any) -> fx.Node:
    return form.call(Reciprocal(), form.call(SquareRoot(), a.self))


@_of("square")
def _square(form: Form, a: Any) -> fx.Node:
    return form.product(a.self, a.self)


@_of("pow.Tensor_Scalar")
def _power(form: Form, a: Any) -> fx.Node | None:
    if a.exponent == 2:
        return form.product(a.self, a.self)
    if a.exponent == 0.5:
        return form.call(SquareRoot(), a.self)
    return _reciprocal_root(form, a) if a.exponent == -0.5 else None


@_of("addcmul")
def _add_product(form: Form, a: Any) -> fx.Node:
    is_constant = not isinstance(a.tensor1, fx.Node) and not isinstance(a.tensor2, fx.Node)
    product = a.tensor1 * a.tensor2 if is_constant else form.product(a.tensor1, a.tensor2)
    return form.sum(a.self, _scaled(form, product, a.value))


@_of("where.self", "where.ScalarOther", "where.ScalarSelf")
def _select(form: Form, a: Any) -> fx.Node | None:
    """Replace values where a constant mask is False, or True."""
    if isinstance(a.condition, fx.Node):
        return None
    if isinstance(a.self, fx.Node):
        return None if isinstance(a.other, fx.Node) else _masked(form, a.self, ~a.condition, a.other)
    return _masked(form, a.other, a.condition, a.self)


@_of("masked_fill.Scalar", "masked_fill.Tensor")
def _masked_fill(form: Form, a: Any) -> fx.Node | None:
    if isinstance(a.mask, fx.Node) or isinstance(a.value, fx.Node):
        return None
    return _masked(form, a.self, a.mask, a.value)


def _masked(form: Form, x: fx.Node, mask: Tensor, value: Any) -> fx.Node:
    """Set x to ``value`` where a constant mask is True: x ⊙ (1 − mask) + value ⊙ mask."""
    kept = (~mask).to(form.dtype)
    return form.sum(form.product(x, kept), torch.where(mask, value, torch.zeros_like(kept)))


@_of("mean.dim", "mean")
def _mean(form: Form, a: Any) -> fx.Node:
    return form.mean(a.self, getattr(a, "dim", None), getattr(a, "keepdim", False))


@_of("sum.dim_IntList", "sum")
def _sum(form: Form, a: Any) -> fx.Node:
    axes, shape = getattr(a, "dim", None), form.shape(a.self)
    return form.product(_mean(form, a), math.prod(shape[axis] for axis in axes or range(len(shape))))


@_of("var.correction", "var_mean.correction")
def _variance(form: Form, a: Any) -> Any:
    shape = form.shape(a.self)
    axes = [axis % len(shape) for axis in a.dim or range(len(shape))]
    mean = form.mean(a.self, axes, keepdim=True)
    centered = form.sum(a.self, form.product(mean, -1))
    count = math.prod(shape[axis] for axis in axes)
    correction = 1 if a.correction is None else a.correction
    squares = form.mean(form.product(centered, centered), axes, a.keepdim)
    variance = form.product(squares, count / (count - correction))
    if isinstance(a.out, tuple | list):
        return [variance, form.reshape(mean, form.shape(variance))]
    return variance


@_of("std.correction")
def _deviation(form: Form, a: Any) -> fx.Node:
    return form.call(SquareRoot(), _variance(form, a))


@_of("linalg_vector_norm", "norm.ScalarOpt_dim", "frobenius_norm.dim")
def _norm(form: Form, a: Any) -> fx.Node | None:
    order = getattr(a, "ord", getattr(a, "p", 2))
    if order not in (None, 2):
        return None
    shape = form.shape(a.self)
    axes = [a.dim] if isinstance(a.dim, int) else a.dim or range(len(shape))
    squares = form.mean(form.product(a.self, a.self), axes, a.keepdim)
    return form.call(SquareRoot(), form.product(squares, math.prod(shape[axis] for axis in axes)))


# ---- matrix products and attention


@_of("matmul", "mm", "bmm")
def _matrix_product(form: Form, a: Any) -> fx.Node:
    return form.matrix_product(a.self, getattr(a, "other", getattr(a, "mat2", None)))


@_of("einsum")
def _einstein_sum(form: Form, a: Any) -> fx.Node | None:
    """Compute a sum of products of two tensors as a product of two batches of matrices."""
    *inputs, output = re.split(",|->", a.equation.replace(" ", ""))
    if len(inputs) != 2 or "." in a.equation or any(len(set(each)) < len(each) for each in (*inputs, output)):
        return None
    first, second = inputs
    both = [letter for letter in first if letter in second]
    rows, summed = ([letter for letter in both if (letter in output) == kept] for kept in (True, False))
    left, right = ([letter for letter in each if letter not in both] for each in inputs)
    if not set(left + right) <= set(output):
        return None
    sizes = {
        letter: size
        for letters, each in zip(inputs, a.tensors, strict=True)
        for letter, size in zip(
            letters, form.shape(each) if isinstance(each, fx.Node) else each.shape, strict=True
        )
    }
    if any(form.is_rows(sizes[letter]) for letter in summed):
        return None
    factors = []
    for letters, each, groups in zip(inputs, a.tensors, ((left, summed), (summed, right)), strict=True):
        order = [letters.index(letter) for letter in [*rows, *groups[0], *groups[1]]]
        shape = [sizes[letter] for letter in rows] + [
            math.prod(sizes[letter] for letter in group) for group in groups
        ]
        if isinstance(each, fx.Node):
            factors.append(form.reshape(form.permute(each, order), shape))
        else:
            factors.append(each.permute(order).reshape(shape))
    product = form.matrix_product(*factors)
    found = [*rows, *left, *right]
    result = form.reshape(product, [sizes[letter] for letter in found])
    return form.permute(result, [found.index(letter) for letter in output])


@_of("addmm")
def _affine_product(form: Form, a: Any) -> fx.Node | None:
    return form.sum(form.matrix_product(a.mat1, a.mat2), a.self) if a.beta == a.alpha == 1 else None


@_of("scaled_dot_product_attention")
def _attention(form: Form, a: Any) -> fx.Node | None:
    """Compute softmax(scale · Q Kᵀ + mask) V for Q, K and V ``[..., tokens, d]``."""
    if a.dropout_p or getattr(a, "enable_gqa", False):
        return None
    query, key, value = (
        form.constant(each) if isinstance(each, Tensor) else each for each in (a.query, a.key, a.value)
    )
    scale = form.shape(query)[-1] ** -0.5 if a.scale is None else a.scale
    swapped = form.swap(key, -2, -1) if isinstance(a.key, fx.Node) else form.constant(a.key.mT)
    scores = form.product(form.matrix_product(query, swapped), scale)
    if a.is_causal:
        visible = torch.ones(form.shape(scores)[-2:], dtype=torch.bool, device=a.out.device).tril()
        scores = _masked(form, scores, ~visible, -math.inf)
    mask = a.attn_mask
    if isinstance(mask, Tensor) and mask.dtype == torch.bool:
        scores = _masked(form, scores, ~mask, -math.inf)
    elif mask is not None:
        scores = form.sum(scores, mask)
    return form.matrix_product(form.call(nn.Softmax(-1), scores), value)


# ---- pooling and resizing


@_of("max_pool2d", "max_pool2d_with_indices")
def _max_pool(form: Form, a: Any) -> Any:
    padding, dilation = pair(a.padding), pair(a.dilation)
    kernel, stride = pair(a.kernel_size), pair(a.stride or a.kernel_size)
    return _pooled(form, nn.MaxPool2d(kernel, stride, padding, dilation, ceil_mode=a.ceil_mode), a)


@_of("avg_pool2d")
def _average_pool(form: Form, a: Any) -> fx.Node:
    options = a.ceil_mode, a.count_include_pad, a.divisor_override
    _check_pooled(form, a)
    layer = nn.AvgPool2d(pair(a.kernel_size), pair(a.stride or a.kernel_size), pair(a.padding), *options)
    return form.call(layer, a.self, shape=a.out.shape)


@_of("adaptive_avg_pool2d")
def _adaptive_average_pool(form: Form, a: Any) -> fx.Node:
    _check_pooled(form, a)
    return form.call(nn.AdaptiveAvgPool2d(tuple(a.output_size)), a.self, shape=a.out.shape)


@_of("adaptive_avg_pool1d")
def _adaptive_average_pool_1d(form: Form, a: Any) -> fx.Node | None:
    return form.mean(a.self, [-1], keepdim=True) if list(a.output_size) == [1] else None


@_of("adaptive_max_pool2d")
def _adaptive_max_pool(form: Form, a: Any) -> Any:
    """Pool windows whose sizes may differ; in smaller ones, the last position is repeated."""
    shape, parts = form.shape(a.self), list(a.output_size)
    if len(shape) != 4:
        return None
    sizes = list(zip(shape[2:], parts, strict=True))
    if not any(size % count for size, count in sizes):
        kernel = tuple(size // count for size, count in sizes)
        return _pooled(form, nn.MaxPool2d(kernel, kernel), a)
    windows, values, shape = [], a.self, shape[:2]
    for axis, (size, count) in zip((2, 4), sizes, strict=True):
        index = torch.arange(count, device=a.out[0].device)[:, None]
        start, end = index * size // count, -(-(index + 1) * size // count)
        width = int((end - start).max())
        positions = form.constant(torch.minimum(start + torch.arange(width, device=start.device), end - 1))
        windows.append(width)
        shape = (*shape, count, width)
        rest = () if axis == 4 else (sizes[1][0],)
        at = (*[slice(None)] * axis, positions)
        values = form.rearrange(operator.getitem, values, at, shape=(*shape, *rest))
    grid = form.reshape(
        form.permute(values, (0, 1, 2, 4, 3, 5)), (*shape[:2], math.prod(parts), math.prod(windows))
    )
    pooled = form.call(nn.MaxPool2d((1, math.prod(windows))), grid, shape=(*form.shape(grid)[:3], 1))
    return [form.reshape(pooled, a.out[0].shape), None]


def _check_pooled(form: Form, a: Any) -> None:
    """Check that pooling is not over images."""
    if form.axis(a.self) >= len(form.shape(a.self)) - 2:
        raise Unknown


def _pooled(form: Form, layer: nn.Module, a: Any) -> Any:
    """Return the result of pooling, and None for the indices of an operation that returns them."""
    _check_pooled(form, a)
    has_indices = isinstance(a.out, tuple | list)
    pooled = form.call(layer, a.self, shape=(a.out[0] if has_indices else a.out).shape)
    return [pooled, None] if has_indices else pooled


@_of("amax", "max.dim")
def _maximum(form: Form, a: Any) -> Any:
    """Pool over all positions of some dimensions."""
    shape = form.shape(a.self)
    axes = {axis % len(shape) for axis in ([a.dim] if isinstance(a.dim, int) else a.dim)}
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    if not axes or kept[:1] != [form.axis(a.self)]:
        return None
    values = form.permute(a.self, [*kept, *sorted(axes)])
    size = math.prod(shape[axis] for axis in axes)
    channels = math.prod(shape[axis] for axis in kept[1:])
    grid = form.reshape(values, (shape[kept[0]], channels, size, 1))
    pooled = form.call(nn.MaxPool2d((size, 1)), grid, shape=(shape[kept[0]], channels, 1, 1))
    has_indices = isinstance(a.out, tuple | list)
    result = form.reshape(pooled, (a.out[0] if has_indices else a.out).shape)
    return [result, None] if has_indices else result


def _resize(mode: str) -> Conversion:
    def convert(form: Form, a: Any) -> fx.Node | None:
        x = _input(a)
        options = {"align_corners": a.align_corners} if hasattr(a, "align_corners") else {}
        scales = getattr(a, "scale_factors", None) or (
            getattr(a, "scales_h", None),
            getattr(a, "scales_w", None),
        )
        sizes = zip(form.shape(x)[2:], a.out.shape[2:], scales, strict=True)
        # With a factor that does not give a whole number of pixels, PyTorch samples at other positions.
        if form.axis(x) != 0 or any(scale and size * scale != new for size, new, scale in sizes):
            return None
        layer = nn.Upsample(size=tuple(a.out.shape[2:]), mode=mode, **options)
        return form.call(layer, x, shape=a.out.shape)

    return convert


for _mode, _name in (
    ("nearest", "upsample_nearest2d"),
    ("bilinear", "upsample_bilinear2d"),
):
    _of(_name, f"{_name}.vec")(_resize(_mode))


# ---- rearrangements


@_of(
    *("reshape", "view", "_unsafe_view", "flatten.using_ints", "unflatten.int", "view_as", "reshape_as"),
    *("squeeze", "squeeze.dim", "squeeze.dims", "unsqueeze"),
)
def _reshape(form: Form, a: Any) -> fx.Node:
    return form.reshape(_input(a), a.out.shape)


@_of(
    *(
        "contiguous",
        "clone",
        "detach",
        "alias",
        "lift_fresh",
        "lift_fresh_copy",
        "dropout",
        "feature_dropout",
    ),
    *("alpha_dropout", "to.dtype", "to.dtype_layout", "to.device", "to.other", "_to_copy", "type_as"),
    *("native_dropout", "positive"),
)
def _unchanged(form: Form, a: Any) -> Any:
    if getattr(a, "train", False) and getattr(a, "p", 1):
        return None
    if isinstance(a.out, tuple | list):
        return [_input(a), None]
    # A conversion to a type of more digits changes no value.
    is_wide = a.out.dtype.is_floating_point and torch.finfo(a.out.dtype).eps <= torch.finfo(form.dtype).eps
    return _input(a) if is_wide else None


@_of("copy")
def _copy(form: Form, a: Any) -> fx.Node | None:
    is_whole = isinstance(a.src, fx.Node) and form.shape(a.src) == tuple(a.out.shape)
    return a.src if is_whole else None


@_of("permute")
def _permute(form: Form, a: Any) -> fx.Node:
    return form.permute(a.self, a.dims)


@_of("transpose.int", "swapaxes", "swapdims")
def _transpose(form: Form, a: Any) -> fx.Node:
    axes = [getattr(a, name) for name in ("dim0", "dim1", "axis0", "axis1") if hasattr(a, name)]
    return form.swap(a.self, *axes)


@_of("t", "numpy_T", "mT")
def _transpose_matrix(form: Form, a: Any) -> fx.Node:
    return form.swap(a.self, -2, -1)


@_of("movedim.int", "movedim.intlist")
def _move(form: Form, a: Any) -> fx.Node:
    count = len(form.shape(a.self))
    source, destination = (
        [axis % count for axis in ([each] if isinstance(each, int) else each)]
        for each in (a.source, a.destination)
    )
    order = [axis for axis in range(count) if axis not in source]
    for target, axis in sorted(zip(destination, source, strict=True)):
        order.insert(target, axis)
    return form.permute(a.self, order)


@_of("expand", "expand_as", "broadcast_to")
def _expand(form: Form, a: Any) -> fx.Node | None:
    shape = tuple(a.out.shape)
    if form.shape(a.self) == shape:
        return a.self  # type: ignore[no-any-return]
    sizes = tuple(-1 if form.is_rows(size) else size for size in shape)
    return form.rearrange(torch.broadcast_to, a.self, sizes, shape=shape)


@_of("repeat", "tile")
def _repeat(form: Form, a: Any) -> fx.Node | None:
    repeats = list(a.repeats if hasattr(a, "repeats") else a.dims)
    offset = len(repeats) - len(form.shape(a.self))
    if offset < 0 or repeats[offset + form.axis(a.self)] != 1:
        return None
    return form.rearrange(torch.tile, a.self, tuple(repeats), shape=a.out.shape)


@_of("repeat_interleave.self_int")
def _repeat_each(form: Form, a: Any) -> fx.Node | None:
    if a.dim is None:
        return None
    shape, axis = list(form.shape(a.self)), a.dim % len(a.out.shape)
    split = [*shape[: axis + 1], 1, *shape[axis + 1 :]]
    tiles = [1] * len(split)
    tiles[axis + 1] = a.repeats
    repeated = [*shape[: axis + 1], a.repeats, *shape[axis + 1 :]]
    tiled = form.rearrange(torch.tile, form.reshape(a.self, split), tuple(tiles), shape=repeated)
    return form.reshape(tiled, a.out.shape)


@_of("unfold")
def _windows(form: Form, a: Any) -> fx.Node | None:
    """Read overlapping windows of one dimension."""
    axis, count = a.dimension % len(form.shape(a.self)), len(form.shape(a.self))
    if axis == form.axis(a.self):
        return None
    steps = torch.arange(a.out.shape[axis], device=a.out.device)[:, None] * a.step
    positions = form.constant(steps + torch.arange(a.size, device=a.out.device))
    shape = [*a.out.shape[: axis + 1], a.size, *a.out.shape[axis + 1 : -1]]
    windows = form.rearrange(operator.getitem, a.self, (*[slice(None)] * axis, positions), shape=shape)
    return form.permute(windows, [*range(axis + 1), *range(axis + 2, count + 1), axis + 1])


@_of("select.int")
def _item(form: Form, a: Any) -> fx.Node:
    return form.item(a.self, a.dim, a.index)


@_of("slice.Tensor")
def _slice(form: Form, a: Any) -> fx.Node:
    return form.item(a.self, a.dim, slice(a.start, a.end, a.step))


@_of("narrow")
def _narrow(form: Form, a: Any) -> fx.Node:
    return form.item(a.self, a.dim, slice(a.start, a.start + a.length))


@_of("unbind.int")
def _unbind(form: Form, a: Any) -> list[fx.Node]:
    return [form.item(a.self, a.dim, index) for index in range(len(a.out))]


@_of("chunk", "split.Tensor", "split.sizes", "split_with_sizes", "tensor_split.sections")
def _split(form: Form, a: Any) -> list[fx.Node]:
    parts, start = [], 0
    for part in a.out:
        stop = start + part.shape[a.dim]
        parts.append(form.item(a.self, a.dim, slice(start, stop)))
        start = stop
    return parts


@_of("cat", "concat", "concatenate")
def _join(form: Form, a: Any) -> fx.Node | None:
    nodes = [
        form.constant(each, for_all_images=True) if isinstance(each, Tensor) else each for each in a.tensors
    ]
    first = next(each for each in a.tensors if isinstance(each, fx.Node))
    if a.dim % len(a.out.shape) == form.axis(first):
        return None
    return nodes[0] if len(nodes) == 1 else form.rearrange(torch.cat, nodes, a.dim, shape=a.out.shape)


@_of("stack")
def _stack(form: Form, a: Any) -> fx.Node | None:
    axis = a.dim % len(a.out.shape)
    shape = [*a.out.shape[:axis], 1, *a.out.shape[axis + 1 :]]
    if not all(isinstance(each, fx.Node) for each in a.tensors):
        return None
    return form.rearrange(
        torch.cat, [form.reshape(each, shape) for each in a.tensors], axis, shape=a.out.shape
    )


@_of("roll")
def _roll(form: Form, a: Any) -> fx.Node | None:
    if not a.dims or form.axis(a.self) in {axis % len(a.out.shape) for axis in a.dims}:
        return None
    return form.rearrange(torch.roll, a.self, tuple(a.shifts), tuple(a.dims), shape=a.out.shape)


@_of("flip")
def _flip(form: Form, a: Any) -> fx.Node | None:
    if form.axis(a.self) in {axis % len(a.out.shape) for axis in a.dims}:
        return None
    return form.rearrange(torch.flip, a.self, tuple(a.dims), shape=a.out.shape)


@_of("pad", "constant_pad_nd")
def _pad(form: Form, a: Any) -> fx.Node | None:
    mode = getattr(a, "mode", "constant")
    padded = range(len(a.out.shape) - len(a.pad) // 2, len(a.out.shape))
    if (mode == "constant" and a.value) or form.axis(a.self) in padded:
        return None
    return form.rearrange(functional.pad, a.self, tuple(a.pad), mode, shape=a.out.shape)


@_of("reflection_pad2d", "replication_pad2d")
def _pad_with_values(form: Form, a: Any) -> fx.Node:
    mode = "reflect" if form.operation.startswith("reflection") else "replicate"
    return form.rearrange(functional.pad, a.self, tuple(a.padding), mode, shape=a.out.shape)


@_of("index.Tensor", "index_select")
def _index(form: Form, a: Any) -> fx.Node | None:
    """Read positions that do not depend on the images."""
    indices = [None] * (a.dim % len(a.out.shape)) + [a.index] if hasattr(a, "index") else list(a.indices)
    is_constant = not any(isinstance(each, fx.Node) for each in indices)
    at_rows = indices[form.axis(a.self)] if form.axis(a.self) < len(indices) else None
    if (
        not is_constant
        or at_rows is not None
        or any(each is not None and each.dtype == torch.bool for each in indices)
    ):
        return None
    index = tuple(slice(None) if each is None else form.constant(each) for each in indices)
    return form.rearrange(operator.getitem, a.self, index, shape=a.out.shape)


@_of("pixel_shuffle", "pixel_unshuffle")
def _shuffle(form: Form, a: Any) -> fx.Node:
    name = form.operation.partition(".")[0]
    factor = a.upscale_factor if name == "pixel_shuffle" else a.downscale_factor
    return form.rearrange(getattr(functional, name), a.self, factor, shape=a.out.shape)
