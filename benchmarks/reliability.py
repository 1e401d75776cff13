"""Time and memory of all reliability tables of a study, on one core.

The scores are simulated for the requested numbers of images, methods (two of them baselines) and metrics, optionally
with missing ones. Prints seconds for each table and the increase in peak memory of the process.

    OMP_NUM_THREADS=1 python benchmarks/reliability.py --images 10000 --methods 10 --metrics 5 --missing 0
"""

import argparse
import json
import resource
import time
from collections.abc import Callable

import numpy as np
import pandas as pd

from saliency_assay.reliability.agreement import agreement_table
from saliency_assay.reliability.order_tables import order_tables
from saliency_assay.reliability.reliability_tables import (
    consistency_table,
    rankings_table,
    reliability_table,
    variance_table,
)
from saliency_assay.storage import score_tables


def score_table(images: int, methods: int, metrics: int, missing: float) -> pd.DataFrame:
    """Return a simulated score table of one study in the form that the rules read."""
    source = np.random.default_rng(0)
    names = [f"method{number}" for number in range(methods)]
    tables = []
    for metric in range(metrics):
        values = (
            source.normal(size=(images, 1)) + 0.3 * np.arange(methods) + source.normal(size=(images, methods))
        )
        values[source.random(values.shape) < missing] = np.nan
        columns = {"image": np.tile(np.arange(images), methods), "score": values.T.ravel()}
        table = pd.DataFrame(columns).assign(method=np.repeat(names, images), metric=f"metric{metric}")
        tables.append(table.assign(variant=f"metric{metric}", study="s", data="d", model="m", seed=0))
    return score_tables.check(pd.concat(tables, ignore_index=True), "simulated scores", compact=True)


def memory() -> float:
    """Return the peak resident memory of the process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--methods", type=int, default=10)
    parser.add_argument("--metrics", type=int, default=5)
    parser.add_argument("--missing", type=float, default=0.0)
    parser.add_argument("--resamples", type=int, default=10_000)
    arguments = parser.parse_args()
    shape = arguments.images, arguments.methods, arguments.metrics
    table = score_table(*shape, arguments.missing)
    directions = {f"metric{number}": "higher" for number in range(arguments.metrics)}
    baselines, labels = ["method0", "method1"], np.arange(arguments.images) % 10
    tables: dict[str, Callable[[], pd.DataFrame]] = {
        "reliability": lambda: reliability_table(
            table, directions, baselines, resamples=arguments.resamples, level=0.999
        ),
        "agreement": lambda: agreement_table(table, directions, labels),
        "order and pairs": lambda: pd.concat(order_tables(table, directions, baselines)),
        "consistency": lambda: consistency_table(table, directions),
        "rankings": lambda: rankings_table(table, directions, baselines),
        "variance": lambda: variance_table(table),
    }
    before, seconds = memory(), {}
    for name, build in tables.items():
        start = time.perf_counter()
        build()
        seconds[name] = round(time.perf_counter() - start, 1)
    total = round(sum(seconds.values()), 1)
    print(
        json.dumps(
            {**vars(arguments), "s": {**seconds, "total": total}, "added_MB": round(memory() - before)}
        )
    )


if __name__ == "__main__":
    main()
