"""How far scores can be trusted: reliability, agreement of raters, order of methods, consistency and variance."""

from pathlib import Path

from saliency_assay import store
from saliency_assay.job import job
from saliency_assay.report.agreement import agreement_table
from saliency_assay.report.rated import BETWEEN, Rated
from saliency_assay.report.reliability import (
    consistency_table,
    order_table,
    reliability_table,
    variance_table,
)

with job("tabulate_reliability", snakemake.log[0], snakemake.params.settings):
    settings, paths, output = snakemake.params.settings, snakemake.input, snakemake.output
    kind, models = settings["kind"], settings["models"]
    rated = Rated(list(map(Path, paths.scores)), kind, settings["data"], models)
    variant, method = ("metric", "variant"), ("seed", "method")
    with store.open_store(Path(paths.data), kind="data") as data:
        labels = data[f"label_{settings['label']}"][:]
    resamples, directions, controls = (settings[name] for name in ("resamples", "directions", "controls"))
    alphas, correlations = settings["printed_alpha"], settings["printed_correlation"]
    found = {
        "reliability": reliability_table(
            rated.parts(*variant, "seed"),
            controls,
            resamples=resamples,
            level=settings["level"],
            printed=alphas,
        ),
        "agreement": agreement_table(rated.parts(*variant), labels, variants=BETWEEN.get(kind, "variants")),
        "order": order_table(rated.parts(*variant), directions, controls, resamples=resamples),
        "consistency": consistency_table(rated.parts(*method), directions, correlations),
        "variance": variance_table(rated.parts(*variant)),
    }
    for name, made in found.items():
        made.to_csv(output[name], index=False)
