"""Tabulate reliability, agreement of raters, order of methods, consistency and variance of a study's scores."""

from saliency_assay.registry.records import resolve
from saliency_assay.registry.sweeps import Family
from saliency_assay.reliability.agreement import agreement_table
from saliency_assay.reliability.controls import Controls, RankedScores, controls_table
from saliency_assay.reliability.order_tables import Rule, order_tables
from saliency_assay.reliability.rated_scores import clusters_of, ranges_of
from saliency_assay.reliability.reliability_tables import (
    consistency_table,
    rankings_table,
    reliability_table,
    variance_table,
)
from saliency_assay.reliability.sweeps import SelectedScores, select
from saliency_assay.runtime.job import run_job
from saliency_assay.storage import score_tables
from saliency_assay.storage.zarr_store import open_store

with run_job(snakemake) as job:
    settings, paths, output = job.settings, job.input, job.output
    read_scores = resolve(settings["rated_scores"])
    rated = read_scores(paths.scores, data=settings["data"], models=settings["models"])
    variant, method = ("metric", "variant"), ("seed", "method")
    data = job.open(open_store(paths.data, kind="data"))
    labels = data[f"label_{settings['label']}"][:]
    clusters = clusters_of(data)
    directions, baselines = settings["directions"], settings["baselines"]
    alphas, correlations = settings["printed_alpha"], settings["printed_correlation"]
    families = [Family(**family) for family in settings["families"]]
    rule = Rule(**settings["rule"])
    selection = select(rated.chunks(*variant), directions, families, clusters=clusters, by=rule.by)
    baselines = selection.baselines(baselines)
    selected, controls = SelectedScores(rated, selection), Controls(**settings["controls"])
    compared = RankedScores(selected, controls)
    failed = set()  # entries whose printed values are left out
    if alphas or correlations:
        failed = {*settings["metrics"]}.difference(*map(score_tables.entries, rated.chunks(*variant)))
    ranges = ranges_of(settings["ranges"])
    order, pairs = order_tables(
        compared.chunks(*variant),
        directions,
        baselines,
        clusters=clusters,
        ranges=ranges,
        rule=rule,
        retrained=settings["retrained"],
    )
    order, pairs = selection.annotated(order, pairs)
    results = {
        "reliability": reliability_table(
            compared.chunks(*variant, "seed"),
            directions,
            baselines,
            resamples=settings["resamples"],
            level=settings["level"],
            clusters=clusters,
            printed=alphas,
            failed=failed,
        ),
        "agreement": agreement_table(
            compared.chunks(*variant), directions, labels, variants=settings["variants"], clusters=clusters
        ),
        "order": order,
        "pairs": pairs,
        "consistency": consistency_table(rated.chunks(*method), directions, correlations, failed, clusters),
        "rankings": rankings_table(compared.chunks(*variant), directions, baselines, clusters),
        "variance": variance_table(compared.chunks(*variant), clusters),
        "controls": controls_table(
            selected.chunks(*variant),
            directions,
            controls,
            clusters=clusters,
            level=rule.level,
            retrained=settings["retrained"],
        ),
    }
    for name, result in results.items():
        result.to_csv(output[name], index=False)
