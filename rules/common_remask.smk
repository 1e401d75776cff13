"""Arms of retrain studies: where their files are, and the parameters that decide what of them runs again."""

# One arm: f_i and D_i for i = 0, 1, … The masks of f_0 serve every fill, so theirs is SHARED.
ARM = "{study}/{protocol}/{method}/{fill}/seed{seed}"
RETRAINED = f"{RESULTS}/remask/{ARM}/iteration{{iteration}}"
MASKS = f"{RETRAINED}/masks{{part}}.zarr.zip"
SHARED = "shared"
RETRAIN_SCORES = f"{RESULTS}/scores/retrain/{ARM}.parquet"

RETRAIN_STUDIES = [name for name, kind in KIND_OF.items() if kind is RETRAIN]
LEAK_STUDIES = [name for name in RETRAIN_STUDIES if CONFIG.studies[name].retraining.leak_iterations]
RETRAININGS = [CONFIG.studies[name].retraining for name in RETRAIN_STUDIES]
PROTOCOLS = list(dict.fromkeys(name for retraining in RETRAININGS for name in retraining.protocols))
MASK_PARTS = list(dict.fromkeys(part for each in RETRAININGS for part in part_names(each.shards) if part))
FILLS = list(dict.fromkeys(name for retraining in RETRAININGS for name in retraining.fills))


wildcard_constraints:
    protocol=one_of(PROTOCOLS),
    fill=one_of(FILLS),
    iteration="[0-9]+",


def retraining_of(wildcards):
    return CONFIG.studies[wildcards.study].retraining


def studied(wildcards):
    """The model of a study."""
    return CONFIG.models[CONFIG.studies[wildcards.study].models[0]]


def masks_of(wildcards, iteration, **others):
    """The parts of the masks of f_i on D_i, in their order."""
    arm = {**wildcards, **others, "iteration": iteration, "fill": wildcards.fill if iteration else SHARED}
    return [MASKS.format(**{**arm, "part": part}) for part in part_names(retraining_of(wildcards).shards)]


def masks_before(wildcards, iteration=None, **others):
    """The stores of masks behind D_i: ROAR's are all in the first, IteROAR has one an iteration."""
    iteration = int(iteration or wildcards.iteration)
    steps = range(min(iteration, 1) if wildcards.protocol == "roar" else iteration)
    return [path for step in steps for path in masks_of(wildcards, step, **others)]


def retrained(wildcards, name, iteration):
    """A file of f_i; of f_0 that of the study's ordinary model."""
    if iteration:
        return f"{RETRAINED}/{name}".format(**{**wildcards, "iteration": iteration})
    return f"{MODEL}/{name}".format(model=studied(wildcards).name, seed=wildcards.seed)


def remask_input(wildcards):
    return {
        "weights": retrained(wildcards, "weights.pt", int(wildcards.iteration)),
        "data": DATA.format(data=studied(wildcards).data),
        "masks": masks_before(wildcards),
    }


def remask_settings(wildcards):
    """Apart from the state, independent of the study: equal masks of two studies have equal noise."""
    model, method, retraining = studied(wildcards), CONFIG.methods[wildcards.method], retraining_of(wildcards)
    roar = wildcards.protocol == "roar"
    return settings(
        "remask.py",
        model.function,
        *method_functions(method.name),
        model=explaining_model(model.name, method.name),
        name=model.name,
        data=model.data,
        label=model.label,
        target=model.target,
        batch_size=model.batch_size,
        method=method.method,
        registered=method.registered,
        **method_settings(method.name),
        fill=wildcards.fill,
        percentile=retraining.percentile,
        masks=retraining.iterations if roar else 1,
        reduction=retraining.reduction_of(method.name),
        transform=retraining.transform,
        keep_maps=retraining.keep_maps,
        iteration=int(wildcards.iteration),
        seed=int(wildcards.seed),
        device=CONFIG.device,
        state=f"{RESULTS}/.state/remask/{ARM}/iteration{{iteration}}{{part}}".format(**wildcards),
    )


def retrain_input(wildcards):
    """As ``train``; and f_0, whose normalisation all f_i share."""
    model = studied(wildcards)
    return {
        **initial_weights(model),
        **chosen_settings(model),
        "data": DATA.format(data=model.data),
        "first": f"{MODEL}/weights.pt".format(model=model.name, seed=wildcards.seed),
        "masks": masks_before(wildcards),
    }


def retrain_settings(wildcards):
    model = studied(wildcards)
    return settings(
        "retrain.py",
        model.function,
        model=model_settings(model.name),
        name=model.name,
        data=model.data,
        label=model.label,
        training=model.training,
        **initial_settings(model),
        fill=wildcards.fill,
        iteration=int(wildcards.iteration),
        seed=int(wildcards.seed),
        device=CONFIG.device,
        state=f"{RESULTS}/.state/retrain/{ARM}/iteration{{iteration}}.pt".format(**wildcards),
    )


def leak_input(wildcards):
    """As ``retrain``, but for the weights that a training starts from: those have not learnt masks."""
    inputs = retrain_input(wildcards)
    return {name: inputs[name] for name in ("data", "masks", "chosen") if name in inputs}


def leak_settings(wildcards):
    model = studied(wildcards)
    return settings(
        "leak.py",
        model.function,
        model=model_settings(model.name),
        label=model.label,
        training=model.training,
        repeats=retraining_of(wildcards).repeats,
        iteration=int(wildcards.iteration),
        seed=int(wildcards.seed),
        device=CONFIG.device,
        state=f"{RESULTS}/.state/leak/{ARM}/iteration{{iteration}}".format(**wildcards),
    )


def score_retrain_input(wildcards):
    """All of an arm: the masks behind D_I, what each f_i predicts, and how far masks leak where that is measured."""
    retraining, arm = retraining_of(wildcards), {**wildcards}
    steps = range(retraining.iterations + 1)
    return {
        "data": DATA.format(data=studied(wildcards).data),
        "masks": masks_before(wildcards, retraining.iterations),
        "predictions": [retrained(wildcards, "predictions.parquet", step) for step in steps],
        "leakage": expand(f"{RETRAINED}/leakage.csv", **arm, iteration=retraining.leak_iterations),
    }


def score_retrain_settings(wildcards):
    model, retraining = studied(wildcards), retraining_of(wildcards)
    return settings(
        "score_retrain.py",
        model=model.name,
        data=model.data,
        iterations=retraining.iterations,
        leak_iterations=retraining.leak_iterations,
    )


def arms_of(study, path, **at):
    """A file of every arm of a retrain study, or of what arms share; methods in their order, their seeds together."""
    entry = CONFIG.studies[study]
    arms = {"protocol": entry.retraining.protocols, "fill": entry.retraining.fills, "method": entry.methods}
    return list(dict.fromkeys(expand(path, study=study, **arms, **at, seed=CONFIG.seeds)))


def shown_settings(wildcards):
    """What the numbers of a retrain study are shares of."""
    retraining = retraining_of(wildcards)
    return {
        "label": studied(wildcards).label,
        "percentile": retraining.percentile,
        "iterations": retraining.iterations,
    }


def plot_arm_input(wildcards):
    """The masks of all methods with the first seed, each method's in their order."""
    last, methods = retraining_of(wildcards).iterations, CONFIG.studies[wildcards.study].methods
    arms = [masks_before(wildcards, last, method=method, seed=CONFIG.seeds[0]) for method in methods]
    return {
        "data": DATA.format(data=studied(wildcards).data),
        "masks": [path for arm in arms for path in arm],
    }


def plot_arm_settings(wildcards):
    model = studied(wildcards)
    return settings(
        "plot_arm.py",
        **shown_settings(wildcards),
        methods=CONFIG.studies[wildcards.study].methods,
        images=min(CONFIG.gallery_images, CONFIG.sets[model.data].explain),
        order=CONFIG.sets[model.data].explain_order,
        seed=CONFIG.seeds[0],
    )
