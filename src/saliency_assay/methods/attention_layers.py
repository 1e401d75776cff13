"""Attention in a canonical network: the softmax of each layer and the product of its weights with the values."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from torch import Tensor, fx, nn

from saliency_assay.methods.layers import MatMul


def attention_layers(network: fx.GraphModule) -> list[tuple[fx.Node, fx.Node]]:
    """Return the calls of the softmax and of the product of weights and values, for each attention in order."""
    layers = {
        node: network.get_submodule(str(node.target))
        for node in network.graph.nodes
        if node.op == "call_module"
    }
    return [
        (node, user)
        for node, layer in layers.items()
        if isinstance(layer, nn.Softmax)
        for user in node.users
        if isinstance(layers.get(user), MatMul) and user.args[0] is node
    ]


def depends(node: fx.Node, source: fx.Node) -> bool:
    """Return True if the value of a node depends on that of another one."""
    visited, pending = {node}, [node]
    while pending and source not in visited:
        new = set(pending.pop().all_input_nodes) - visited
        visited |= new
        pending += new
    return source in visited


def head_layers(network: fx.GraphModule) -> list[nn.Module]:
    """Return the last linear layers before the logits."""
    (output,) = (node for node in network.graph.nodes if node.op == "output")
    layers: list[nn.Module] = []
    pending = list(output.all_input_nodes)
    while pending:
        node = pending.pop()
        layer = network.get_submodule(str(node.target)) if node.op == "call_module" else None
        if isinstance(layer, nn.Linear):
            layers.append(layer)
        else:
            pending += node.all_input_nodes
    return layers


@contextmanager
def outputs_of(layers: Sequence[nn.Module]) -> Iterator[list[Tensor]]:
    """Collect the outputs of layers while a network runs, in the order of the calls."""
    outputs: list[Tensor] = []
    with ExitStack() as handles:
        for layer in layers:
            handle = layer.register_forward_hook(lambda layer, inputs, output: outputs.append(output))
            handles.enter_context(handle)
        yield outputs


@contextmanager
def inputs_of(layers: Sequence[nn.Module]) -> Iterator[list[Tensor]]:
    """Collect the first inputs of layers while a network runs, in the order of the calls."""
    values: list[Tensor] = []
    with ExitStack() as handles:
        for layer in layers:
            handle = layer.register_forward_pre_hook(lambda layer, inputs: values.append(inputs[0]))
            handles.enter_context(handle)
        yield values
