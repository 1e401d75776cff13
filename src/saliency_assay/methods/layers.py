"""Layers of a canonical network in place of operators, and attention expanded into them.

A rule of LRP or DeepLIFT belongs to a type of layer, so sums, products and means are modules, too. Attention is not a
single layer: it becomes linear layers, products, a softmax and rearrangements.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn


class Sum(nn.Module):
    """The sum over the last dimension, as a layer, so that relevance can be distributed among its terms."""

    def forward(self, terms: Tensor) -> Tensor:
        """Sum ``[..., n]`` to ``[...]``."""
        return terms.sum(-1)


class Add(nn.Module):
    """a + b, as at the end of a residual connection, or the addition of a constant such as a position embedding."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """Add two tensors of shapes that can be broadcast."""
        return a + b


class Multiply(nn.Module):
    """a ⊙ b, of two activations or of an activation and a constant."""

    def forward(self, a: Tensor, b: Tensor | float) -> Tensor:
        """Multiply two tensors of shapes that can be broadcast, or a tensor and a number."""
        return a * b


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


Call = Callable[..., fx.Node]
"""Function that inserts the call of a layer: ``call(layer, *arguments)`` returns its node."""


def expand_attention(graph: fx.Graph, call: Call, node: fx.Node) -> fx.Node:
    """Insert ``scaled_dot_product_attention`` in terms of layers before ``node``, and return the node of its result.

    Raises:
        ValueError: dropout, a causal mask or grouped heads; the message starts with the option.
    """
    names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")
    options: dict[str, Any] = dict(zip(names, node.args, strict=False)) | node.kwargs
    for name in ("dropout_p", "is_causal", "enable_gqa"):
        if options.get(name):
            raise ValueError(f"{name}: found {options[name]!r}, expected {name} 0 or False")
    query, key, value = (options[name] for name in names[:3])
    scale: Any = options.get("scale")
    if scale is None:
        shape = graph.call_function(getattr, (query, "shape"))
        scale = graph.call_function(operator.pow, (graph.call_function(operator.getitem, (shape, -1)), -0.5))
    return _attention(graph, call, query, key, value, scale, options.get("attn_mask"))


def expand_multihead(graph: fx.Graph, call: Call, node: fx.Node, attention: nn.MultiheadAttention) -> fx.Node:
    """Insert a call of ``nn.MultiheadAttention`` in terms of layers, and return the node of its first result.

    Raises:
        ValueError: a mask, or an option that adds keys; the message starts with it.
    """
    names = ("query", "key", "value", "key_padding_mask", "need_weights", "attn_mask")
    options: dict[str, Any] = dict(zip(names, node.args, strict=False)) | node.kwargs
    for name in ("key_padding_mask", "attn_mask", "is_causal"):
        if options.get(name) not in (None, False):
            raise ValueError(f"{name}: found a value, expected none")
    if attention.bias_k is not None or attention.add_zero_attn:
        raise ValueError("add_bias_kv, add_zero_attn: found True, expected False")
    if any(user.target is not operator.getitem or (user.args[1] != 0 and user.users) for user in node.users):
        raise ValueError("attention weights: found a use of the second output, expected of the first alone")
    heads, first = attention.num_heads, attention.batch_first
    split = []
    for source, projection in zip(
        (options[name] for name in names[:3]), _projections(attention), strict=True
    ):
        rows = source if first else graph.call_function(torch.transpose, (source, 0, 1))
        tokens = call(projection, rows)
        tokens = graph.call_function(torch.unflatten, (tokens, -1, (heads, attention.head_dim)))
        split.append(graph.call_function(torch.transpose, (tokens, 1, 2)))
    query, key, value = split
    mixed = _attention(graph, call, query, key, value, attention.head_dim**-0.5)
    mixed = graph.call_function(torch.flatten, (graph.call_function(torch.transpose, (mixed, 1, 2)), 2))
    result = call(linear(attention.out_proj.weight, attention.out_proj.bias), mixed)
    return result if first else graph.call_function(torch.transpose, (result, 0, 1))


def _attention(
    graph: fx.Graph,
    call: Call,
    query: fx.Node,
    key: fx.Node,
    value: fx.Node,
    scale: Any,
    mask: fx.Node | None = None,
) -> fx.Node:
    """Insert softmax(scale · Q Kᵀ + mask) V for Q, K and V ``[..., tokens, d]``."""
    scores = call(MatMul(), query, graph.call_function(torch.transpose, (key, -2, -1)))
    scores = call(Multiply(), scores, scale)
    if mask is not None:
        scores = call(Add(), scores, mask)
    return call(MatMul(), call(nn.Softmax(-1), scores), value)


def _projections(attention: nn.MultiheadAttention) -> list[nn.Linear]:
    """Return the linear layers of queries, keys and values."""
    weights = (
        (attention.q_proj_weight, attention.k_proj_weight, attention.v_proj_weight)
        if attention.in_proj_weight is None
        else attention.in_proj_weight.chunk(3)
    )
    biases = [None] * 3 if attention.in_proj_bias is None else attention.in_proj_bias.chunk(3)
    return [linear(*pair) for pair in zip(weights, biases, strict=True)]


def linear(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    """Return the linear layer with these weights, which it shares."""
    with torch.device("meta"):
        layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    layer.weight = nn.Parameter(weight.detach(), requires_grad=False)
    if bias is not None:
        layer.bias = nn.Parameter(bias.detach(), requires_grad=False)
    return layer
