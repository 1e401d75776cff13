"""What a study's part of the report is made of, and what it takes to make it."""

FIGURES = f"{RESULTS}/figures"
# Relative to where Snakemake runs, as all inputs are: a checkout that was moved or copied runs nothing again.
CAPTIONS = os.path.relpath(f"{workflow.basedir}/workflow/report")


def options_of(study):
    """What a study asks for beside what all of its kind have."""
    asked = {
        "series": SERIES_STUDIES,
        "concepts": CONCEPT_STUDIES,
        "independence": DELTA_STUDIES,
        "leakage": LEAK_STUDIES,
        "pairs": [name for name in FIDELITY_STUDIES if pairs_of(name)],
    }
    return [option for option, studies in asked.items() if study in studies]


def reported_of(study):
    """The figures that a study has in the report."""
    retraining, own = CONFIG.studies[study].retraining, KIND_OF[study].figures(options_of(study))
    varied = [{"metric": metric, "figure": figure} for metric, figure in figures_of(study)]
    if retraining:
        varied = [
            {"protocol": protocol, "fill": fill}
            for protocol in retraining.protocols
            for fill in retraining.fills
        ]
    names = dict.fromkeys(name.format(**at) for name in own for at in varied or [{}])
    files = expand([rules.summarise.output[0], rules.plot_gallery.output.page], study=study)
    files += [f"{FIGURES}/{study}/{name}" for name in names]
    return files + (expand(rules.plot_reliability.output, study=study) if study in RATED_STUDIES else [])


def rated_input(wildcards):
    """The scores that rate a study's methods, and its images' classes."""
    study, seeds = CONFIG.studies[wildcards.study], {"seed": CONFIG.seeds}
    scores, data = expand(f"{TABLES}/scores.parquet", study=study.name), study.data
    if study.name in BAM_STUDIES:
        kept = [BAM_SCORES, *([DELTA_SCORES] if study.name in DELTA_STUDIES else [])]
        scores, data = expand(kept, study=study.name, method=study.methods, **seeds), f"{study.data}_os"
    elif study.name in CAPTION_STUDIES:
        scores = of_study(SCORES, study.name, ["infidelity_halves"])
    return {"scores": scores, "data": DATA.format(data=data)}


def tabulate_reliability_settings(wildcards):
    """Classes are those of the study's model; of BAM scenes, which the model of MCS, IDR and IIR alike was told."""
    study = CONFIG.studies[wildcards.study]
    kind = KIND_OF[study.name]
    return settings(
        "tabulate_reliability.py",
        kind.rated_scores,
        rated_scores=kind.rated_scores,
        variants=kind.variants,
        data=study.data,
        models=study.models,
        label=kind.label or CONFIG.models[study.models[0]].label,
        controls=controls_of(study.name),
        directions=directions_of(study.name),
        resamples=CONFIG.reliability.resamples,
        level=CONFIG.reliability.level,
        printed_alpha=study.printed_alpha,
        printed_correlation=study.printed_correlation,
    )


def plan_settings():
    """What ``snakemake plan`` asks of each study."""
    return settings(
        "plan.py",
        studies=[plan_of(name) for name in CONFIG.studies],
        on_device=ON_DEVICE,
        benchmarks=BENCHMARKS,
        configuration=config,
    )


def plan_of(study):
    """The files to plan for; what stands for rules that have not run; the arrays that will be stored, by their shape."""
    entry, model = CONFIG.studies[study], CONFIG.studies[study].models[0]
    once = [[f"train/{model}", 1], [f"trial/{model}", 1]]
    data = CONFIG.sets[gallery_set(study)]
    plan = {
        "name": study,
        "targets": reported_of(study),
        "data": DATA.format(data=gallery_set(study)),
        "map_images": data.explain / data.shards,
        "mask_stores": [],
        "weights": f"{MODEL}/weights.pt".format(model=model, seed=CONFIG.seeds[0]),
        "like": {
            "train": once,
            "trial": once[::-1],
            "retrain": [[f"retrain/{study}", 1], *once],
            "remask": [[f"remask/{study}", 1 / (entry.retraining.shards if entry.retraining else 1)]],
            "evaluate": [[f"evaluate/{model}", 1]],
            "attribute": [[f"attribute/{model}", 1 / data.shards]],
            "probe": [["probe", 1 / data.shards]],
            "score": [["score", 1 / data.shards]],
        },
        "models_each": {"train": 1, "trial": 1, "retrain": 1},
    }
    if study not in RETRAIN_STUDIES:
        return plan
    retraining, arms = entry.retraining, len(entry.methods) * len(CONFIG.seeds)
    plan["models_each"]["leak"] = 2 * retraining.repeats
    classifiers = 2 * retraining.repeats
    plan["like"]["leak"] = [[f"leak/{study}", 1], *([folder, classifiers] for folder, _ in once)]
    if "roar" in retraining.protocols:
        plan["mask_stores"].append([arms, retraining.iterations])
    if "iteroar" in retraining.protocols:
        later = arms * len(retraining.fills) * (retraining.iterations - 1)
        plan["mask_stores"].append([arms + later, 1])
    return plan
