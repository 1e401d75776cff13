"""Accuracy of models without one cell of a grid of each image, and their single deletion scores.

For each model of the configuration, the program prints the accuracy on the test images and on copies of them without a
single cell (the mean over all cells), in percent, for each training seed. For each study that has the metric
``single_deletion``, it prints the mean score of each method and its rank set. It reads the results of a finished run.

    python benchmarks/deleted_cells.py --config config/idsds.yaml
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import torch
import yaml
from torch import Tensor

import saliency_assay
from saliency_assay.data.splits import TEST
from saliency_assay.models.classifier import Classifier
from saliency_assay.storage.zarr_store import open_store
from saliency_assay.training.deletion import delete_cells, grid_cells

BATCH = 256


def accuracies(model: Classifier, images: Tensor, labels: Tensor, grid: int) -> tuple[float, float]:
    """Return the accuracy on images ``[N, C, H, W]`` in [0, 1], and the mean of those without each cell."""
    cells, fill = grid_cells(images.shape[2:], grid), model.mean.flatten().cpu()
    deleted = [
        delete_cells(images, cells, torch.full((len(images),), cell), fill) for cell in range(grid * grid)
    ]
    intact, *without = (_accuracy(model, variant, labels) for variant in (images, *deleted))
    return intact, sum(without) / len(without)


@torch.no_grad()
def _accuracy(model: Classifier, images: Tensor, labels: Tensor) -> float:
    predicted = torch.cat([model(batch).argmax(1) for batch in images.split(BATCH)])
    return float((predicted == labels).double().mean())


def model_rows(config: Mapping[str, Any], grid: int) -> pd.DataFrame:
    """Return a row of accuracies for each model and seed."""
    results, rows = Path(config["results"]), []
    for name, entry in config["models"].items():
        trained = config["models"].get(entry.get("finetuned_from"), entry)
        with open_store(results / f"data/{trained['data']}.zarr.zip", kind="data") as data:
            test = (data["split"][:] == TEST).nonzero()[0]
            images = torch.from_numpy(data["image"].at(test)[:]).float() / 255
            labels = torch.from_numpy(data[f"label_{trained['trained_on']}"][:][test])
        for seed in config["seeds"]:
            model = saliency_assay.load_model(results / f"models/{name}/seed{seed}/weights.pt")
            intact, without = accuracies(model, images, labels, grid)
            rows.append(
                {"model": name, "seed": seed, "intact": 100 * intact, "without a cell": 100 * without}
            )
    return pd.DataFrame(rows)


def score_rows(config: Mapping[str, Any]) -> pd.DataFrame:
    """Return the scores, methods × studies: mean and rank set."""
    columns = {}
    for name in config["studies"]:
        table = pd.read_csv(Path(config["results"]) / f"tables/{name}/order.csv")
        table = table[table["metric"] == "single_deletion"].set_index("method")
        columns[name] = [
            f"{row['mean']:.2f} ({row['rank_low']:.0f}–{row['rank_high']:.0f})" for _, row in table.iterrows()
        ]
    return pd.DataFrame(columns, index=table.index)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--config", type=Path, default=Path("config/idsds.yaml"))
    parser.add_argument("--grid", type=int, default=4, help="rows and columns")
    options = parser.parse_args()
    config = yaml.safe_load(options.config.read_text(encoding="utf-8"))
    print(model_rows(config, options.grid).to_string(index=False, float_format="%.1f"))
    print(score_rows(config).to_string())


if __name__ == "__main__":
    main()
