"""Values of a canonical transformer through which everything passes: its embedded patches and outputs of blocks."""

from typing import Any

from torch import fx

from saliency_assay.methods.attention_layers import depends
from saliency_assay.methods.canonical import signals
from saliency_assay.methods.layers import Add


def bottlenecks(graph: fx.Graph) -> set[fx.Node]:
    """Return the nodes through which every path from the images to the logits passes."""
    varying = signals(graph)
    positions = {node: position for position, node in enumerate(graph.nodes)}
    nodes, last_use = set(), 0
    for node in graph.nodes:
        if node in varying:
            if last_use <= positions[node]:  # no value before the node is used after it
                nodes.add(node)
            last_use = max([last_use, *(positions[user] for user in node.users if user in varying)])
    return nodes


def embedded_patches(network: fx.GraphModule, softmax: fx.Node) -> fx.Node:
    """Return the input of the first block: the last bottleneck before the ``softmax`` of the first attention."""
    passed = bottlenecks(network.graph)
    node = softmax
    while node not in passed:
        node = node.prev
    return node


def block_outputs(network: fx.GraphModule, softmaxes: list[fx.Node]) -> list[fx.Node | None]:
    """Return the output of the block of each attention, whose softmax is given, in order.

    It is the last addition x + g(x) that is a bottleneck, before the next attention or the logits; None if there is
    none, as without a residual connection.
    """
    passed = bottlenecks(network.graph)
    outputs: list[fx.Node | None] = []
    output: fx.Node | None = None
    for node in network.graph.nodes:
        if node in softmaxes or node.op == "output":
            outputs.append(output)
            output = None
        elif node in passed and node.op == "call_module":
            layer = network.get_submodule(str(node.target))
            if isinstance(layer, Add) and _is_residual(*node.args):
                output = node
    return outputs[1:]


def _is_residual(a: Any, b: Any) -> bool:
    """Return True for the terms of a residual connection; the two logits of a distilled network are none."""
    return depends(a, b) or depends(b, a)
