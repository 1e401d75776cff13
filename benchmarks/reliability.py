"""How long reliability takes for so many images and methods, and what counts of ranks gain over the package.

The package is given each of the same resamples as the ratings that it takes; α of both must agree to 1e-9. Its time is
that of ``--compared`` resamples, scaled to all.

    python benchmarks/reliability.py --images 10000 --methods 5 --resamples 10000
"""

import argparse
import json
import time

import krippendorff
import numpy as np

from saliency_assay import reliability

AGREEMENT = 1e-9


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--methods", type=int, default=5)
    parser.add_argument("--resamples", type=int, default=10_000)
    parser.add_argument("--compared", type=int, default=50)
    asked = parser.parse_args()
    scores = np.random.default_rng(0).normal(size=(asked.images, asked.methods))
    scores += 0.3 * np.arange(asked.methods) + np.random.default_rng(1).normal(size=(asked.images, 1))
    found = {**vars(asked)}
    for name in ("alpha", "mean_correlation", "order"):
        start = time.perf_counter()
        getattr(reliability, name)(scores, resamples=asked.resamples)
        found[f"{name}_s"] = time.perf_counter() - start
    rated = reliability.ranks(scores)
    weights = next(reliability.resampled(asked.images, asked.compared, 0))
    start = time.perf_counter()
    of_package = [
        krippendorff.alpha(np.repeat(rated, row.astype(int), axis=0), level_of_measurement="ordinal")
        for row in weights
    ]
    package = (time.perf_counter() - start) * asked.resamples / len(weights)
    values = 2 * asked.methods - 1
    cells = (2 * rated - 2).astype(int) + values * np.arange(asked.methods)
    counts = np.array(
        [
            np.bincount(np.repeat(cells, row.astype(int), axis=0).ravel(), minlength=values * asked.methods)
            for row in weights
        ]
    ).reshape(-1, asked.methods, values)
    difference = np.abs(reliability.alpha_of(counts.astype(float)) - of_package).max()
    if difference > AGREEMENT:
        raise SystemExit(
            f"α differs from the package's by {difference:.1e}, expected at most {AGREEMENT:.0e}"
        )
    found |= {"package_s": package, "alpha_ratio": package / found["alpha_s"]}
    print(json.dumps({name: round(value, 2) for name, value in found.items()}))


if __name__ == "__main__":
    main()
