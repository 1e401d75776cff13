"""RISE: the mean of random masks, weighted by the model's output for the masked images."""

from typing import Annotated

import torch
from torch import Tensor, nn

from saliency_assay.methods.baselines import baseline as baseline_color
from saliency_assay.methods.differentiate import check_inputs, target_outputs
from saliency_assay.methods.passes import passes_of
from saliency_assay.methods.sampling import sample_seeds
from saliency_assay.registry.limits import Baseline, Limits, Output, PositiveInt
from saliency_assay.runtime.transfer import to_device


def rise(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    generator: torch.Generator,
    samples: PositiveInt = 2000,
    cells: Annotated[int, Limits(minimum=2)] = 7,
    probability: Annotated[float, Limits(minimum=0.001, maximum=1)] = 0.5,
    baseline: Baseline = "black",
    output: Output = "probability",
) -> Tensor:
    """Compute Σ_i f_t(x ⊙ M_i + x′ ⊙ (1 − M_i)) M_i / (p n), x′ the baseline, ``[N, 1, H, W]``.

    f_t is the target's ``output``, its probability or its logit; n is ``samples``, p is ``probability``. A mask is a
    grid of ``cells`` × ``cells`` cells, each 1 with probability p and otherwise 0, upsampled and cropped (see
    ``interpolation``). Petsiuk et al. (2018), equation 6 and section 3.2. One pass for each mask; the paper takes 4,000
    for VGG16 and 8,000 for ResNet50. It has the same masks for all images; here, each image has its own, so that the
    errors of different images are independent. The authors' code masks normalized images, so that hidden pixels have
    the ``mean`` color.

    Raises:
        ValueError: as ``baselines.baseline`` and ``differentiate.target_outputs``.
    """
    check_inputs(images, targets)
    images = images.detach()
    color = baseline_color(model, images, baseline)
    down, across = (
        to_device(interpolation(side, cells), images.device, images.dtype) for side in images.shape[2:]
    )
    # All at once, a byte for each cell: 0.1 MB for each image and 2,000 samples of 7 × 7 cells.
    grids = torch.empty(samples, len(images), cells, cells, dtype=torch.bool)
    shifts = torch.empty(2, samples, len(images), dtype=torch.int64)
    for i, seed in enumerate(sample_seeds(len(images), 1, generator)):
        grids[:, i], shifts[0, :, i], shifts[1, :, i] = sample_grids(
            seed, samples, cells, probability, len(down), len(across)
        )
    grids, (tops, lefts) = to_device(grids, images.device), to_device(shifts, images.device)
    total = torch.zeros_like(images[:, 0])
    for sample in passes_of(images, samples):
        factors = down[tops[sample]], grids[sample].to(images.dtype), across[lefts[sample]]
        masks = torch.einsum("nhi,nij,nwj->nhw", *factors)
        masked = torch.lerp(color, images, masks[:, None])
        values = target_outputs(model, masked, targets, output)
        total.addcmul_(values[:, None, None].to(images.dtype), masks)
    return total[:, None] / (probability * samples)


def sample_grids(
    seed: int, samples: int, cells: int, probability: float, tops: int, lefts: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Sample the grids of an image, bool ``[samples, cells, cells]``, and their shifts down and across, ``[samples]``.

    Shifts are uniform in 0 … ``tops`` − 1 and 0 … ``lefts`` − 1. Sampled on the CPU, so that a GPU has the same masks.
    """
    child = torch.Generator().manual_seed(seed)
    grids = torch.rand(samples, cells, cells, generator=child, dtype=torch.float32) < probability
    down, across = (torch.randint(shifts, (samples,), generator=child) for shifts in (tops, lefts))
    return grids, down, across


def interpolation(side: int, cells: int) -> Tensor:
    """Return the weight of each cell at each pixel of a side, float64 ``[shifts, side, cells]``, for each shift.

    A cell has c = ⌈side / cells⌉ pixels. A line of cells is linearly upsampled to (cells + 1) · c pixels, mirrored at
    its ends, and cropped at one of c shifts. The paper has ⌊side / cells⌋, with which the upsampled line may be too
    short; mirroring and rounding up are those of the authors' code.
    """
    size = -(-side // cells)
    upsampled = (cells + 1) * size
    # Positions of the pixels' centers in units of cells, from −1/2 to cells − 1/2.
    positions = (torch.arange(upsampled, dtype=torch.float64) + 0.5) * cells / upsampled - 0.5
    mirrored = cells - 1 - (cells - 1 - positions.abs()).abs()
    weights = (1 - (mirrored[:, None] - torch.arange(cells)).abs()).clamp(min=0)
    return weights.unfold(0, side, 1)[:size].mT
