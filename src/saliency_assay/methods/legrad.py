"""LeGrad: gradients of layer-wise scores for the attention weights of vision transformers."""

from typing import Annotated, Any

import torch
from torch import Tensor, fx, nn

from saliency_assay.methods.attention import attention_sequence, check_weights, on_grid
from saliency_assay.methods.canonical import check_form, network_of, normalized
from saliency_assay.methods.differentiate import check_inputs, check_logits
from saliency_assay.methods.feature_maps import rescaled
from saliency_assay.methods.residual_stream import block_outputs
from saliency_assay.models.classifier import kind_of
from saliency_assay.registry.limits import Limits, Upsampling


def legrad(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    pooling: Annotated[str, Limits(choices=("mean", "network"))] = "mean",
    upsampling: Upsampling = "bilinear",
) -> Tensor:
    """Compute Σ_l mean_h,i max(∂s_l / ∂A_l, 0), upsampled to ``[N, 1, H, W]`` and rescaled to [0, 1] for each image.

    A_l ``[heads, T, T]`` are the attention weights of layer l, and the means are over heads and queries. s_l is the
    target's logit that the layers after the last block compute from the output of block l. ``pooling`` is ``mean`` if
    they read the mean of all tokens of that output, or ``network`` if they read the tokens that they read in the
    network, such as the class token. A constant map is 0. Bousselham et al. (2025).

    Raises:
        ValueError: as ``raw_attention``, or a block has no residual connection.
    """
    check_inputs(images, targets)
    network, calls = attention_sequence("legrad", model, images)
    softmaxes = [softmax for softmax, _ in calls]
    outputs = [node for node in block_outputs(network, softmaxes) if node]
    if len(outputs) < len(softmaxes):
        raise ValueError(
            f"legrad: found attention without a residual connection after it in {kind_of(network_of(model))}; "
            "expected blocks whose output is a sum; or use gradient_weighted_attention"
        )
    run = _Blockwise(network, softmaxes, outputs)
    with torch.enable_grad():
        logits = run.run(normalized(model, images.detach()))
        check_logits(logits, images)
        check_form("legrad", model, images, logits)
        size = run.weights[-1].shape[-1]
        for softmax, weights in zip(softmaxes, run.weights, strict=True):
            check_weights("legrad", model, str(softmax.target), weights, tokens=size, images=len(images))
        scores = [
            run.logits(tokens.mean(1, keepdim=True).expand_as(tokens) if pooling == "mean" else tokens)
            .gather(1, targets[:, None])
            .sum()
            for tokens in run.tokens
        ]
        gradients = torch.autograd.grad(torch.stack(scores).sum(), run.weights)
    rows = torch.stack([gradient.clamp(min=0).mean((1, 2)) for gradient in gradients]).sum(0)
    return rescaled(on_grid(model, rows[:, None], images, upsampling), (1, 2, 3))


class _Blockwise(fx.Interpreter):
    """Runs a network block by block, so that the score of a block has gradients for its attention weights alone."""

    def __init__(self, network: fx.GraphModule, softmaxes: list[fx.Node], outputs: list[fx.Node]) -> None:
        super().__init__(network, garbage_collect_values=False)
        self.softmaxes, self.outputs = softmaxes, outputs
        self.weights: list[Tensor] = []
        self.tokens: list[Tensor] = []

    def run_node(self, node: fx.Node) -> Any:
        """Return the value of a node, and keep attention weights and outputs of blocks."""
        value = super().run_node(node)
        if node in self.softmaxes:
            value = value.detach().requires_grad_()
            self.weights.append(value)
        elif node in self.outputs:
            self.tokens.append(value)
            value = value.detach()
        return value

    def logits(self, tokens: Tensor) -> Tensor:
        """Return the logits if the output of the last block is ``tokens``."""
        node = self.outputs[-1]
        self.env[node] = tokens
        while node.op != "output":
            node = node.next
            self.env[node] = super().run_node(node)
        logits: Tensor = self.env[node]
        return logits
