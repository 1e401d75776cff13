"""Training in several processes, as far as one process can test it; see test_distributed for the rest."""

from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn

from saliency_assay.training import replica
from saliency_assay.training.replica import match_modes


class KeepsFrozen(nn.Module):
    """Freezes its BatchNorms by their type, which a conversion for several GPUs changes."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout())

    def train(self, mode: bool = True) -> "KeepsFrozen":
        super().train(mode)
        for layer in self.modules():
            if isinstance(layer, nn.BatchNorm2d):
                layer.eval()
        return self


def test_layers_frozen_by_their_type_stay_frozen_on_gpus() -> None:
    network = KeepsFrozen().train()
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(deepcopy(network)).train()
    assert converted.features[1].training  # its own train() does not know the converted layer
    match_modes(network, converted)
    assert [layer.training for layer in converted.features] == [True, False, True]


class NormAndReLU(nn.BatchNorm2d):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).relu()


@pytest.mark.parametrize(("norm", "refused"), [(NormAndReLU, True), (nn.BatchNorm2d, False)])
def test_a_batch_norm_with_a_forward_of_its_own_is_refused(norm: type[nn.BatchNorm2d], refused: bool) -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 3), norm(4))
    if not refused:
        return replica._check_batch_norms(network)
    assert bool((network(torch.rand(2, 3, 8, 8)) >= 0).all())
    with pytest.raises(ValueError, match=r"^1: found NormAndReLU, .*valid: one process$"):
        replica._check_batch_norms(network)
    return None
