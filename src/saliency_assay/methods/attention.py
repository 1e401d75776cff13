"""Maps from the attention of vision transformers: raw attention, rollout, and two methods that weight it by gradients.

A_l ``[N, heads, T, T]`` are the attention weights of layer l: row i is the distribution of token i over all tokens. The
network runs in canonical form (``canonical``), in which attention of any library is a softmax and two products.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise

import torch
from torch import Tensor, fx, nn

from saliency_assay.methods.attention_layers import (
    attention_layers,
    depends,
    head_layers,
    inputs_of,
    outputs_of,
)
from saliency_assay.methods.canonical import canonical_for, check_form, network_of, normalized
from saliency_assay.methods.differentiate import check_inputs, check_logits
from saliency_assay.methods.feature_maps import token_grid, upsampled
from saliency_assay.methods.relevance import attention_relevance
from saliency_assay.models.classifier import kind_of
from saliency_assay.registry.limits import Upsampling


def raw_attention(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    upsampling: Upsampling = "bilinear",
) -> Tensor:
    """Compute the mean over the heads of the last layer's attention weights, upsampled to ``[N, 1, H, W]``.

    The map has the weights with which the class token attends to the patches, or their mean over all tokens that the
    logits read. It does not depend on the target.

    Raises:
        ValueError: the network has no attention, or attention over other than all tokens of an image.
    """
    weights, _, rows = _attention("raw_attention", model, images, targets, upsampling)
    return on_grid(model, rows @ weights[-1].mean(1), images, upsampling)


def attention_rollout(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    upsampling: Upsampling = "bilinear",
) -> Tensor:
    """Compute attention rollout, Ã_L ⋯ Ã_1 with Ã_l = ½ mean_h A_l + ½ I, upsampled to ``[N, 1, H, W]``.

    The map has the patches of the class token's row, or of the mean row of all tokens that the logits read. It does not
    depend on the target. Abnar & Zuidema (2020), section 3.

    Raises:
        ValueError: as ``raw_attention``.
    """
    weights, _, rows = _attention("attention_rollout", model, images, targets, upsampling)
    rolled = _rolled(rows, (matrices.mean(1) for matrices in reversed(weights)))
    return on_grid(model, rolled / 2 ** len(weights), images, upsampling)


def gradient_weighted_attention(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    upsampling: Upsampling = "bilinear",
) -> Tensor:
    """Compute (I + Ā_L) ⋯ (I + Ā_1) with Ā_l = mean_h max(A_l ⊙ ∂f_t / ∂A_l, 0), upsampled to ``[N, 1, H, W]``.

    The map has the patches of the class token's row, or of the mean row of all tokens that the logits read. Chefer et
    al. (ICCV 2021), equations 5 and 6.

    Raises:
        ValueError: as ``raw_attention``.
    """
    weights, gradients, rows = _attention(
        "gradient_weighted_attention", model, images, targets, upsampling, with_gradients=True
    )
    rolled = _rolled(rows, _positive(zip(weights, gradients, strict=True)))
    return on_grid(model, rolled, images, upsampling)


def transformer_attribution(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    upsampling: Upsampling = "bilinear",
) -> Tensor:
    """Compute (I + Ā_L) ⋯ (I + Ā_1) with Ā_l = mean_h max(R_l ⊙ ∂f_t / ∂A_l, 0), upsampled to ``[N, 1, H, W]``.

    R_l is the relevance of the attention weights (``attention_relevance``). The map has the patches of the class
    token's row, or of the mean row of all tokens that the logits read. Chefer et al. (CVPR 2021), equations 13 and 14.

    Raises:
        ValueError: as ``raw_attention``, or the network has a layer without a rule.
    """
    method = "transformer_attribution"
    _, gradients, rows = _attention(method, model, images, targets, upsampling, with_gradients=True)
    relevances = attention_relevance(method, model, images, targets)
    rolled = _rolled(rows, _positive(zip(relevances, gradients, strict=True)))
    return on_grid(model, rolled, images, upsampling)


def _rolled(rows: Tensor, matrices: Iterable[Tensor]) -> Tensor:
    """Multiply row vectors ``[N, 1, T]`` by I + Ā for each ``Ā [N, T, T]``, the last layer first."""
    for matrix in matrices:
        rows = rows + rows @ matrix
    return rows


def _positive(pairs: Iterable[tuple[Tensor, Tensor]]) -> Iterator[Tensor]:
    """Yield the mean over the heads of the positive part of each product, the last layer first."""
    for values, gradients in reversed(list(pairs)):
        yield (values * gradients).clamp(min=0).mean(1)


def network_with_attention(
    method: str, model: nn.Module, images: Tensor
) -> tuple[fx.GraphModule, list[tuple[fx.Node, fx.Node]]]:
    """Return the canonical network and its ``attention_layers``.

    Raises:
        ValueError: as ``canonical_for``, or the network has no attention.
    """
    network = canonical_for(method, model, images)
    calls = attention_layers(network)
    if not calls:
        raise ValueError(
            f"{method}: found no attention in {kind_of(network_of(model))}; expected a vision transformer, or use "
            "gradcam"
        )
    return network, calls


def attention_sequence(
    method: str, model: nn.Module, images: Tensor
) -> tuple[fx.GraphModule, list[tuple[fx.Node, fx.Node]]]:
    """Return the canonical network and its ``attention_layers``, each of which follows the one before.

    Raises:
        ValueError: as ``network_with_attention``, or two of the attentions are side by side.
    """
    network, calls = network_with_attention(method, model, images)
    for (_, previous), (softmax, _) in pairwise(calls):
        if not depends(softmax, previous):
            raise ValueError(
                f"{method}: found attention {softmax.target!r} in {kind_of(network_of(model))}, which does not follow "
                f"{previous.target!r}; expected one attention after the other, or use attnlrp"
            )
    return network, calls


def check_weights(
    method: str, model: nn.Module, name: str, weights: Tensor, *, tokens: int, images: int
) -> None:
    """Check that the attention weights of a layer are ``[images, heads, tokens, tokens]``.

    Raises:
        ValueError: they are not.
    """
    if weights.ndim != 4 or len(weights) != images or weights.shape[2:] != (tokens, tokens):
        raise ValueError(
            f"{method}: found attention {list(weights.shape)} ({name!r}) in {kind_of(network_of(model))}, expected "
            f"[{images}, heads, tokens, tokens] with the same tokens in each layer; or use attnlrp"
        )


def _attention(
    method: str,
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    upsampling: str,
    *,
    with_gradients: bool = False,
) -> tuple[list[Tensor], list[Tensor], Tensor]:
    """Return the attention weights of all layers, the target logit's gradients for them, and the rows of the map.

    Without ``with_gradients``, there are none. The rows ``[N, 1, T]`` are the share of each token among those that the
    logits read: 1 for the class token, or equal shares of all tokens if the logits depend on their mean.
    """
    check_inputs(images, targets)
    network, calls = attention_sequence(method, model, images)
    softmaxes = [network.get_submodule(str(softmax.target)) for softmax, _ in calls]
    product = network.get_submodule(str(calls[-1][1].target))
    # The graph starts as late as possible: at the first layer's weights, or at the last layer's tokens.
    start = softmaxes[0] if with_gradients else product
    with (
        torch.enable_grad(),
        start.register_forward_hook(lambda layer, inputs, output: output.detach().requires_grad_()),
        outputs_of([*softmaxes, product]) as outputs,
        inputs_of(head_layers(network)) as features,
    ):
        logits = network(normalized(model, images.detach()))
    check_logits(logits, images)
    check_form(method, model, images, logits)
    *weights, tokens = outputs
    for (softmax, _), matrices in zip(calls, weights, strict=True):
        check_weights(
            method, model, str(softmax.target), matrices, tokens=tokens.shape[2], images=len(images)
        )
    score = logits.gather(1, targets[:, None]).sum()
    inputs = [*(weights if with_gradients else []), tokens]
    *gradients, at_tokens = torch.autograd.grad(score, inputs, retain_graph=True)
    is_read = _is_read(at_tokens)
    # No token is read behind a head of zeros, as torchvision initializes it.
    if not tokens.is_meta and not is_read.any(1).all():
        is_read |= ~is_read.any(1, keepdim=True) & _is_read(*torch.autograd.grad(_mixture(features), tokens))
    rows = is_read / is_read.sum(1, keepdim=True).clamp(min=1)
    return [matrices.detach() for matrices in weights], gradients, rows.to(images.dtype)[:, None]


def _is_read(gradient: Tensor) -> Tensor:
    """Return the tokens ``[N, T]`` with a gradient, from the gradient ``[N, heads, T, d]`` for all of them."""
    return gradient.abs().sum((1, 3)) > 0


def _mixture(features: list[Tensor]) -> Tensor:
    """Return a sum of features with different weights, since the plain sum of normalized features is constant."""
    terms = (values * torch.arange(values.shape[-1]).to(values).cos() for values in features)
    return torch.stack([term.sum() for term in terms]).sum()


def on_grid(model: nn.Module, rows: Tensor, images: Tensor, upsampling: str, *, relu: bool = True) -> Tensor:
    """Arrange values ``[N, 1, T]`` of tokens on the grid of patches, without the class token, and upsample them."""
    height, width = token_grid(model, rows.shape[2], images)
    maps = rows[:, :, rows.shape[2] - height * width :].reshape(len(rows), 1, height, width)
    return upsampled(maps, images, upsampling, relu=relu)
