"""Other names of methods and metrics, such as those of classes of captum, Quantus and pytorch-grad-cam.

The Python API accepts aliases; in a configuration, error messages suggest the registered name.
"""

from collections.abc import Iterable, Mapping

METHOD_ALIASES = {
    "deep_lift_shap": "deep_shap",
    "gbp": "guided_backprop",
    "grad": "gradient",
    "guided_backprop_relu_model": "guided_backprop",
    "guided_backpropagation": "guided_backprop",
    "gxi": "gradient_x_input",
    "ig": "integrated_gradients",
    "input_x_gradient": "gradient_x_input",
    "ixg": "gradient_x_input",
    "lrp": "lrp_epsilon",
    "sg": "smoothgrad",
    "vanilla_gradient": "gradient",
}
"""Other names of methods; ``shap`` is missing, because several methods could have it."""

METRIC_ALIASES = {
    "auc": "mask_ranking",
    "deletion_auc": "deletion",
    "efficient_mprt": "emprt",
    "faithfulness_estimate": "faithfulness",
    "gini_index": "sparseness",
    "insertion_auc": "insertion",
    "iterative_removal_of_features": "irof",
    "local_lipschitz_estimate": "local_lipschitz",
    "max_sensitivity": "sensitivity_max",
    "remove_and_debias": "road",
    "salience_guided_faithfulness_coefficient": "saco",
    "smooth_mprt": "smprt",
}
"""Other names of metrics."""

_INFIDELITY = ("infidelity_square", "infidelity_noisy_baseline", "infidelity_subset")
SIMILAR = {
    "attribution_localisation": ("mask_attribution",),
    "average_precision": ("mask_ranking",),
    "average_sensitivity": ("sensitivity_max",),
    "avg_sensitivity": ("sensitivity_max",),
    "cam_mult_image_confidence_change": ("average_drop",),
    "drop_in_confidence": ("average_drop",),
    "eigen_grad_cam": ("eigencam",),
    "energy_based_pointing_game": ("mask_attribution",),
    "energy_pg": ("mask_attribution",),
    "energy_pointing_game": ("mask_attribution",),
    "feature_ablation": ("occlusion",),
    "grad_cam_element_wise": ("layercam", "hirescam"),
    "infidelity": _INFIDELITY,
    "layer_grad_cam": ("gradcam",),
    "mask_auc": ("mask_ranking",),
    "model_parameter_randomisation": ("randomization",),
    "mprt": ("randomization", "smprt", "emprt"),
    "mu_fidelity": ("faithfulness_correlation",),
    "noise_tunnel": ("smoothgrad", "smoothgrad_squared", "vargrad"),
    "pixel_flipping": ("deletion", "aopc"),
    "relative_input_stability": ("relative_stability",),
    "relative_output_stability": ("relative_stability",),
    "relative_representation_stability": ("relative_stability",),
    "road_combined": ("road",),
    "road_least_relevant_first": ("road",),
    "road_most_relevant_first": ("road",),
    "saliency": ("gradient", "sensitivity"),
    "selectivity": ("region_perturbation",),
    "shap": ("deep_shap", "gradient_shap", "kernel_shap"),
    "shapley_value_sampling": ("kernel_shap",),
}
"""Names of what is not registered, with what is similar but not the same, for error messages."""

ALIASES = {**METHOD_ALIASES, **METRIC_ALIASES}


def plain(name: object) -> str:
    """Return a name in lower case, without spaces, hyphens and underscores: ``Grad-CAM++`` is ``gradcamplusplus``."""
    lower = str(name).lower().replace("+", "plus").replace("×", "x")
    return "".join(letter for letter in lower if letter not in "-_ ")


def registered_name(name: object, names: Iterable[str]) -> str:
    """Return the one of ``names`` that ``name`` is, or is an alias of; empty if there is none.

    Case, spaces, hyphens and underscores do not matter, unless ``names`` differ only in these.
    """
    valid = set(names)
    if name in valid:
        return str(name)
    spelled = {each for each in valid if plain(each) == plain(name)}
    spelled = spelled or {ALIASES[alias] for alias in ALIASES if plain(alias) == plain(name)} & valid
    return spelled.pop() if len(spelled) == 1 else ""


def similar_names(name: object, names: Iterable[str]) -> list[str]:
    """Return those of ``names`` that mean something similar, from ``SIMILAR``."""
    valid = set(names)
    return [each for key in SIMILAR if plain(key) == plain(name) for each in SIMILAR[key] if each in valid]


def aliases_of(name: str, aliases: Mapping[str, str]) -> list[str]:
    """Return the aliases of a method or metric."""
    return [alias for alias, stands_for in aliases.items() if stands_for == name]
