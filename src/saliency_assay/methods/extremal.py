"""Extremal perturbations: the smooth mask of a given area that keeps, or removes, most of the target's logit."""

from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil
from typing import Annotated, Any

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag

from saliency_assay.methods.baselines import baseline as baseline_color
from saliency_assay.methods.blur_ig import blur_matrix
from saliency_assay.methods.differentiate import NO_GRADIENT, check_inputs, check_logits, gradient_of
from saliency_assay.methods.passes import reported
from saliency_assay.registry.limits import Limits, PositiveInt
from saliency_assay.runtime.transfer import to_device

# Constants of the authors' code, TorchRay.
LEVELS = 8  # of blur
BLUR = 20 / 224  # standard deviation of the strongest blur, as a share of the image's shorter side
SHARPNESS = 20.0  # of the smooth maximum, 1 / T
RATE, MOMENTUM = 0.01, 0.9  # of gradient descent
WEIGHT, GROWTH = 300.0, 1.0035  # of the area constraint at the first step, and its factor from step to step


def extremal_perturbation(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    area: Annotated[float, Limits(minimum=0.001, maximum=1)] = 0.1,
    steps: PositiveInt = 800,
    variant: Annotated[str, Limits(choices=("preserve", "delete"))] = "preserve",
    perturbation: Annotated[str, Limits(choices=("blur", "black", "gray", "mean"))] = "blur",
    cell: Annotated[float, Limits(minimum=0.001, maximum=1)] = 0.03125,
    sigma: Annotated[float, Limits(minimum=0.001, maximum=1)] = 0.09375,
) -> Tensor:
    """Compute the mask m that maximizes f_t(x ⊗ m) − λ ‖sort(m) − r_a‖² / P, ``[N, 1, H, W]`` in [0, 1].

    x ⊗ m is the image where m is 1, and blurred the more the smaller m is, or mixed with a color of ``baselines``
    (``perturbation``). m is the smooth max-convolution of a grid of parameters in [0, 1] (see ``max_convolution``),
    with a grid cell of ``cell`` and a kernel of ``sigma``, both as shares of the image's shorter side. r_a has ones at
    the largest ``area`` · HW of the P pixels of m and zeros elsewhere; P includes a margin beyond the border of the
    image, so that a mask at the border costs as much area as the same mask inside. ``variant`` delete maximizes
    −f_t(x ⊗ (1 − m)). Fong et al. (2019), sections 3.1 to 3.3; one pass for each step of gradient descent.

    The constants and the defaults are those of the authors' code, TorchRay, for images of 224 pixels, with cells of 7
    pixels and a sigma of 21. Its margin is narrower at the bottom and on the right, its r_a has ``area`` · P ones, and
    it flips the image at every other step, which only a model of natural images tolerates; here, there are no flips.
    Nor are masks of several areas added up, as in the paper's pointing game.

    Raises:
        ValueError: as ``baselines.baseline``.
    """
    check_inputs(images, targets)
    images = images.detach()
    count, _, height, width = images.shape
    side = min(height, width)
    levels = perturbed(model, images, perturbation)
    convolution = max_convolution(height, width, max(1, round(cell * side)), sigma * side).to(images)
    start = images.new_ones(count, convolution.cells)
    parameters = optimized(
        model, targets, levels, convolution, start, area=area, steps=steps, variant=variant
    )
    return convolution.crop(smooth(parameters, convolution))


def optimized(
    model: nn.Module,
    targets: Tensor,
    levels: Tensor,
    convolution: "MaxConvolution",
    parameters: Tensor,
    *,
    area: float,
    steps: int,
    variant: str,
) -> Tensor:
    """Return the parameters of the masks ``[N, cells]`` after ``steps`` steps of gradient descent.

    Args:
        levels: the images from the strongest perturbation to none, as ``perturbed``.
        parameters: the first parameters; not changed in place.
    """
    count, (height, width) = len(parameters), levels.shape[3:]
    largest = max(1, round(area * height * width))
    velocity: Tensor | None = None
    for step in reported(steps, 1, f"passes of {count} images"):
        with torch.enable_grad():
            leaf = parameters.detach().requires_grad_()
            masks = smooth(leaf, convolution)
            inside = convolution.crop(masks)
            logits = model(mixed(levels, inside if variant == "preserve" else 1 - inside))
            check_logits(logits, levels)
            if not logits.requires_grad:
                raise ValueError(NO_GRADIENT)
            rewards = logits.gather(1, targets[:, None])[:, 0]
            rewards = rewards if variant == "preserve" else -rewards
            excess = (masks - area_reference(masks.detach(), largest)).square().mean(1)
            loss = (WEIGHT * GROWTH**step * excess - rewards).sum()
        gradient = gradient_of(loss, leaf)
        # The first gradient is the first velocity, as in torch.optim.SGD with a dampening of MOMENTUM.
        velocity = gradient if velocity is None else torch.lerp(gradient, velocity, MOMENTUM)
        parameters = (parameters - RATE * velocity).clamp(0, 1)
    return parameters


def perturbed(model: nn.Module, images: Tensor, perturbation: str) -> Tensor:
    """Return the images from the strongest perturbation to none, ``[N, L, C, H, W]``, with channels last in memory.

    These are 8 levels of Gaussian blur, or a color and the image. Blurred pixels are weighted means of pixels inside of
    the image; in TorchRay, normalized images continue with 0 beyond their border, a color that not all models have.

    Raises:
        ValueError: as ``baselines.baseline``.
    """
    if perturbation != "blur":
        color = baseline_color(model, images, perturbation).expand_as(images)
        return torch.stack([color.movedim(1, -1), images.movedim(1, -1)], 1).movedim(-1, 2)
    height, width = images.shape[2:]
    sigmas = [BLUR * min(height, width) * (1 - level / (LEVELS - 1)) for level in range(LEVELS - 1)]
    rows, columns = (
        to_device(torch.stack([blur(side, sigma) for sigma in sigmas]), images.device, images.dtype)
        for side in (height, width)
    )
    blurred = torch.einsum("lyh,nchw,lxw->nlyxc", rows, images, columns)
    return torch.cat([blurred, images[:, None].movedim(2, -1)], 1).movedim(-1, 2)


def blur(side: int, sigma: float) -> Tensor:
    """Return the blur of a line of pixels as a matrix ``[side, side]`` whose rows sum to 1."""
    weights = blur_matrix(side, sigma)
    return weights / weights.sum(1, keepdim=True)


def mixed(levels: Tensor, masks: Tensor) -> Tensor:
    """Interpolate linearly between ``levels [N, L, C, H, W]``: the first where a mask ``[N, 1, H, W]`` is 0.

    The result has its channels last in memory, as the images of ``to_pixels``.
    """
    count, number, channels, height, width = levels.shape
    rows = levels.movedim(2, -1).reshape(-1, channels)  # a row for each image, level and pixel
    positions = masks.reshape(count, -1) * (number - 1)
    # NaN, of a model that returns it, is no index; it stays in ``positions``.
    lower = positions.detach().nan_to_num(0).floor().clamp(0, number - 2)
    first = torch.arange(count, device=levels.device)[:, None] * number + lower.long()
    pixels = torch.arange(height * width, device=levels.device)
    index = (first * height * width + pixels).flatten()
    ends = rows.index_select(0, index), rows.index_select(0, index + height * width)
    mixture = torch.lerp(*ends, (positions - lower).reshape(-1, 1))
    return mixture.reshape(count, height, width, channels).movedim(-1, 1)


def area_reference(masks: Tensor, largest: int) -> Tensor:
    """Return r_a in the order of the pixels: 1 at the ``largest`` largest of each mask ``[N, P]``, otherwise 0.

    Where only some of several equal pixels can be 1, all of them have the same share. Most pixels of the first mask are
    equal: if the order of the pixels decided, its last rows would be kept, whatever the model is.
    """
    threshold = masks.kthvalue(masks.shape[1] - largest + 1, 1, keepdim=True).values
    tolerance = 16 * torch.finfo(masks.dtype).eps  # equal up to rounding, which may depend on the batch
    above, tied = masks > threshold + tolerance, (masks - threshold).abs() <= tolerance
    shared = (largest - above.sum(1, keepdim=True)).to(masks.dtype)
    return above + tied * (shared / tied.sum(1, keepdim=True))


@dataclass(frozen=True)
class MaxConvolution:
    """Which cells are how far from which pixel.

    Cells at the same distance of a pixel have the same kernel value k, so that exp(k m̄ / T) is computed once for all
    pixels at this distance. A *term* is a pair of a kernel value and a cell. The last cell is 0; it stands for all
    cells outside of the grid.
    """

    image: tuple[slice, slice]
    """Rows and columns of the image in a mask with its margin."""
    shape: tuple[int, int]
    """Height and width of a mask with its margin, P pixels."""
    kernel: Tensor
    """Kernel values ``[K]``."""
    cells: int
    """Cells of the grid, without the last one."""
    terms: tuple[Tensor, Tensor]
    """Terms of each pixel, as indices and offsets of ``embedding_bag``."""
    pixels: tuple[Tensor, Tensor]
    """Pixels of each term, in the same form."""

    def to(self, images: Tensor) -> "MaxConvolution":
        """Return itself on the device of the images, and of their type."""
        terms, pixels = (
            (to_device(rows, images.device), to_device(firsts, images.device))
            for rows, firsts in (self.terms, self.pixels)
        )
        return replace(
            self, kernel=to_device(self.kernel, images.device, images.dtype), terms=terms, pixels=pixels
        )

    def crop(self, masks: Tensor) -> Tensor:
        """Return masks ``[N, P]`` without their margin, as ``[N, 1, H, W]``."""
        return masks.reshape(-1, 1, *self.shape)[:, :, *self.image]


@lru_cache(maxsize=4)  # for all batches of a data set
def max_convolution(height: int, width: int, step: int, sigma: float) -> MaxConvolution:
    """Return the smooth max-convolution with cells of ``step`` pixels and a kernel of ``sigma`` pixels.

    m(u) = Σ_v y_v exp(y_v / T) / Σ_v exp(y_v / T) with y_v = k(|u − step · v| / σ) m̄(v) and
    k(z) = exp(−2 max(z − 1/2, 0)²), over the cells v in a window of 1 + ⌈σ / step⌉ cells on each side of the one that
    contains u. Outside of the grid, m̄ is 0. Fong et al. (2019), section 3.3; k and the window are TorchRay's.

    The margin holds every pixel whose window reaches a cell of the grid: 1 + ⌈σ / step⌉ cells on each side.
    """
    reach = 1 + ceil(sigma / step)
    margin = reach * step
    rows, columns = ceil(height / step), ceil(width / step)
    outside = rows * columns

    def axis(count: int, stride: int) -> tuple[Tensor, Tensor]:
        """Return the window's cells times ``stride``, or ``outside``, and squared distances, ``[pixels, window]``."""
        pixels = torch.arange(-margin, count * step + margin)[:, None]
        cells = pixels.div(step, rounding_mode="floor") + torch.arange(-reach, reach + 1)
        numbers = (stride * cells).where((cells >= 0) & (cells < count), outside)
        return numbers, (pixels - step * cells).square()

    def pairs(down: Tensor, across: Tensor) -> Tensor:
        """Return the sums for every pair of a row and a column, and of the cells in their windows."""
        return (down[:, None, :, None] + across[None, :, None, :]).flatten()

    (down, dy), (across, dx) = axis(rows, columns), axis(columns, 1)
    distances = pairs(dy, dx).double().sqrt() / sigma
    kernel, number = torch.unique(
        torch.exp(-2 * (distances - 0.5).clamp(min=0).square()), return_inverse=True
    )
    terms = number * (outside + 1) + pairs(down, across).clamp(max=outside)
    window = (2 * reach + 1) ** 2
    pixels = terms.argsort(stable=True) // window
    firsts = torch.arange(0, len(terms) + 1, window)
    counts = terms.bincount(minlength=len(kernel) * (outside + 1))
    return MaxConvolution(
        image=(slice(margin, margin + height), slice(margin, margin + width)),
        shape=(len(down), len(across)),
        kernel=kernel,
        cells=outside,
        terms=(terms.int(), firsts.int()),
        pixels=(pixels.int(), nn.functional.pad(counts.cumsum(0), (1, 0)).int()),
    )


def smooth(parameters: Tensor, convolution: MaxConvolution) -> Tensor:
    """Return the masks ``[N, P]`` of parameters m̄ ``[N, cells]``, see ``max_convolution``."""
    masks: Tensor = _SmoothMaximum.apply(parameters, convolution)
    return masks


class _SmoothMaximum(torch.autograd.Function):
    """m = Σ y e^(y/T) / Σ e^(y/T), and with it ∂m / ∂y = e^(y/T) (1 + (y − m) / T) / Σ e^(y/T)."""

    @staticmethod
    def forward(ctx: Any, parameters: Tensor, convolution: MaxConvolution) -> Tensor:
        # y / T, [kernel values, cells, N]: images come last, because ``_sum`` is fast for long rows.
        cells = nn.functional.pad(parameters.T, (0, 0, 0, 1))
        scaled = SHARPNESS * convolution.kernel[:, None, None] * cells
        exponentials = scaled.exp()
        products = scaled.mul_(exponentials)  # in place, as below: new memory would take longer than it
        total = _sum(exponentials.flatten(0, 1), convolution.terms)
        maximum = _sum(products.flatten(0, 1), convolution.terms) / total
        ctx.convolution = convolution
        ctx.save_for_backward(exponentials, products, total, maximum)
        return (maximum / SHARPNESS).T.contiguous()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        exponentials, products, total, maximum = ctx.saved_tensors
        share = gradients[0].T.contiguous() / total
        terms = exponentials.mul_(_sum(share * (1 - maximum), ctx.convolution.pixels).view_as(products))
        terms.addcmul_(_sum(share, ctx.convolution.pixels).view_as(products), products)
        return (ctx.convolution.kernel @ terms.flatten(1)).reshape_as(terms[0])[:-1].T.contiguous(), None


def _sum(values: Tensor, rows: tuple[Tensor, Tensor]) -> Tensor:
    """Return sums of rows of ``values [rows, N]``, without a copy of the rows."""
    indices, offsets = rows
    return embedding_bag(indices, values, offsets, mode="sum", include_last_offset=True)
