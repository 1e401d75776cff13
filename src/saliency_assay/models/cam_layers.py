"""Choice of a layer for CAM and Grad-CAM from the structure of a network, for error messages."""

from collections.abc import Iterator

from torch import nn

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
TOKEN_NORMS = ("LayerNorm", "RMSNorm")
POOLS = ("AdaptiveAvgPool", "AdaptiveMaxPool", "AdaptivePool", "GlobalPool", "Flatten")


def likely_cam_layer(network: nn.Module) -> str:
    """Return the path of a layer for CAM and Grad-CAM; empty if the network has neither convolutions nor attention.

    If all attention is behind the convolutions, this is the last normalization before the last attention, behind which
    the logits no longer depend on all tokens. Otherwise it is the largest module that ends with the last convolution,
    without the pooling and the linear layers behind it. The order is that in which modules were registered.
    """
    modules = dict(network.named_modules())
    names = list(modules)
    attention = [name for name in names if name and _is_attention(modules[name])]
    convolutions = [name for name in names if isinstance(modules[name], CONVOLUTIONS)]
    if attention and (not convolutions or names.index(attention[0]) > names.index(convolutions[-1])):
        for norm in _norms_beside(network, attention[-1]):
            return norm
    of_maps = [name for name in convolutions if not any(map(_is_pool, _siblings(network, name)[0]))]
    return _feature_maps(network, of_maps[-1]) if of_maps else ""


def _is_attention(module: nn.Module) -> bool:
    kind = type(module).__name__.lower()
    return "attention" in kind or "attn" in kind


def _norms_beside(network: nn.Module, attention: str) -> Iterator[str]:
    """Yield the normalizations of tokens in the block of an attention layer, the last one before it first."""
    child = attention
    while child:
        block, _, _ = child.rpartition(".")
        children = [name for name, _ in network.get_submodule(block).named_children()]
        norms = [
            name
            for name in children
            if any(kind in type(network.get_submodule(_path(block, name))).__name__ for kind in TOKEN_NORMS)
        ]
        place = children.index(child.rpartition(".")[2])
        before = [name for name in norms if children.index(name) < place]
        for name in (*reversed(before), *norms):
            yield _path(block, name)
        child = block


def _feature_maps(network: nn.Module, convolution: str) -> str:
    """Return the path of the largest module that ends with a convolution; see ``likely_cam_layer``."""
    linear = [name for name, each in network.named_modules() if isinstance(each, nn.Linear)]
    layer = child = convolution
    while parent := child.rpartition(".")[0]:
        _, after = _siblings(network, child)
        if any(map(_is_pool, after)) or (linear and linear[-1].startswith(f"{parent}.")):
            break
        child = parent
        if not isinstance(network.get_submodule(child), nn.ModuleList | nn.ModuleDict):  # never called
            layer = child
    return layer


def _siblings(network: nn.Module, path: str) -> tuple[list[nn.Module], list[nn.Module]]:
    """Return the modules before and after a module in its parent."""
    parent, _, name = path.rpartition(".")
    children = dict(network.get_submodule(parent).named_children())
    place = list(children).index(name)
    return list(children.values())[:place], list(children.values())[place + 1 :]


def _is_pool(module: nn.Module) -> bool:
    return any(pool in type(module).__name__ for pool in POOLS)


def _path(block: str, name: str) -> str:
    return f"{block}.{name}" if block else name
