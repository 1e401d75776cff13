"""How far scores can be trusted: reliability, agreement of raters, order of methods, consistency and variance."""

from pathlib import Path

from saliency_assay.registry.records import resolve
from saliency_assay.reliability.agreement import agreement_table
from saliency_assay.reliability.rated_scores import CLUSTERS
from saliency_assay.reliability.tables import (
    consistency_table,
    order_table,
    rankings_table,
    reliability_table,
    variance_table,
)
from saliency_assay.runtime.job import job
from saliency_assay.storage import zarr_store

with job("tabulate_reliability", snakemake.log[0], snakemake.params.settings):
    settings, paths, output = snakemake.params.settings, snakemake.input, snakemake.output
    read = resolve(settings["rated_scores"])
    rated = read(list(map(Path, paths.scores)), data=settings["data"], models=settings["models"])
    variant, method = ("metric", "variant"), ("seed", "method")
    with zarr_store.open_store(Path(paths.data), kind="data") as data:
        labels = data[f"label_{settings['label']}"][:]
        clusters = {name: data[array][:] for name, array in CLUSTERS.items() if array in data}
    directions, controls = settings["directions"], settings["controls"]
    alphas, correlations = settings["printed_alpha"], settings["printed_correlation"]
    found = {
        "reliability": reliability_table(
            rated.parts(*variant, "seed"),
            directions,
            controls,
            resamples=settings["resamples"],
            level=settings["level"],
            clusters=clusters,
            printed=alphas,
        ),
        "agreement": agreement_table(
            rated.parts(*variant), directions, labels, variants=settings["variants"]
        ),
        "order": order_table(rated.parts(*variant), directions, controls, clusters=clusters),
        "consistency": consistency_table(rated.parts(*method), directions, correlations),
        "rankings": rankings_table(rated.parts(*variant), directions, controls),
        "variance": variance_table(rated.parts(*variant)),
    }
    for name, made in found.items():
        made.to_csv(output[name], index=False)
