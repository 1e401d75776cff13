"""Methods whose maps another program computed: paths of their files, and studies that may use them."""

from pathlib import Path
from typing import Any

import pytest
from configurations import FILE, agrees, base, cases, fault, reading, replaced

from saliency_assay.catalog import CATALOG as REGISTERED
from saliency_assay.config.configuration import read
from saliency_assay.methods.stored_maps import recompute
from saliency_assay.registry.records import resolve


def with_maps(maps: object, **changes: object) -> Any:
    """BASE with such a method in its gallery of the model d."""
    raw = replaced(base(), "methods.theirs", {"maps": maps})
    raw = replaced(raw, "studies.bam.methods", ["gradient"])
    raw = replaced(raw, "studies.digits.methods", ["gradient", "theirs"])
    for place, value in changes.items():
        raw = replaced(raw, place.replace("__", "."), value)
    return raw


def test_a_file_is_named_by_model_set_and_seed(tmp_path: Path) -> None:
    (tmp_path / "d/digits.zarr").mkdir(parents=True)
    raw = with_maps(f"{tmp_path}/{{model}}/{{data}}.zarr", methods__theirs__label="Their SHAP")
    method = reading(raw).methods["theirs"]
    assert (method.label, method.method, method.registered) == ("Their SHAP", "", False)
    assert method.maps == f"{tmp_path}/{{model}}/{{data}}.zarr"
    assert resolve(method.function) is recompute
    pattern = f"{tmp_path}/{{data}}_{{seed}}.npz"
    for seed in (0, 3):
        (tmp_path / f"digits_{seed}.npz").touch()
    assert reading(with_maps(pattern, seeds=[0, 3])).methods["theirs"].maps == pattern
    (missing,) = reading(with_maps(pattern, seeds=[0, 5])).files.gone
    message = f"methods.theirs.maps: found '{tmp_path}/digits_5.npz', expected a file that exists"
    assert missing.problem == message


def test_a_file_has_the_maps_of_one_model_set_and_seed(tmp_path: Path) -> None:
    path = tmp_path / "maps.npz"
    path.touch()
    place = f"methods.theirs.maps: found '{path}' for"
    assert agrees(fault(with_maps(str(path), seeds=[0, 3])), f"{place} seed 0 and seed 3; expected {{seed}}")
    second = {"kind": "gallery", "model": "e", "methods": ["theirs"]}
    changes = {"models__e": base()["models"]["d"], "studies__second": second}
    assert agrees(fault(with_maps(str(path), **changes)), f"{place} model d and model e; expected {{model}}")
    other_data = {**changes, "models__e": {**base()["models"]["d"], "data": "more"}}
    message = fault(with_maps(str(path), **other_data, data__more={"kind": "digits", "label": "More"}))
    assert agrees(message, f"{place} model d and model e")


def test_maps_of_a_model_that_is_not_trained_are_those_of_every_seed(tmp_path: Path) -> None:
    path = tmp_path / "maps.npz"
    path.touch()
    content: dict[str, Any] = {
        "seeds": [0, 3],
        "data": {"digits": {"kind": "digits"}},
        "models": {
            "d": {"architecture": "lenet", "data": "digits", "trained_on": "class", "weights": str(path)}
        },
        "methods": {"theirs": {"maps": str(path)}},
        "studies": {"gallery": {"kind": "gallery", "model": "d"}},
    }
    assert agrees(
        str(fault(content, REGISTERED)), f"methods.theirs.maps: found '{path}' for seed 0 and seed 3"
    )
    content["models"]["d"]["training"] = {"epochs": 0}
    assert read(content, catalog=REGISTERED, source=FILE).methods["theirs"].maps == str(path)


@pytest.mark.parametrize(
    ("maps", "message"),
    cases(
        """
{model}.pt => methods.theirs.maps: found '{model}.pt', expected a path that ends with .npz or … valid … {model}
{method}.npz => methods.theirs.maps: found '{method}.npz' … valid in braces: {model}, {data}, {seed}
{seed!r}{seed:02}.npz => methods.theirs.maps: found … valid in braces
{}.npz => methods.theirs.maps: found '{}.npz' … valid in braces
a{.npz => methods.theirs.maps: found 'a{.npz' … valid in braces
        """
    ),
)
def test_a_path_has_a_known_suffix_and_known_wildcards(maps: str, message: str) -> None:
    assert agrees(fault(with_maps(maps)), message)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("methods__theirs__samples", 3, "methods.theirs: unknown key 'samples'; valid: label, maps"),
        ("methods__theirs__base", "gradient", "methods.theirs: unknown key 'base'; valid: label, maps"),
        ("methods__theirs__method", "gradient", "methods.theirs: unknown key 'method'"),
        (
            "methods__smooth__base",
            "theirs",
            "methods.smooth.base: found theirs … expected a method that computes maps",
        ),
        (
            "studies__bam__methods",
            ["theirs"],
            "studies.bam.methods: found theirs … kind bam … valid: studies of kinds fidelity, gallery",
        ),
    ],
)
def test_only_studies_of_these_maps_alone_take_them(
    place: str, value: object, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "maps.npy"
    path.touch()
    assert agrees(fault(with_maps(str(path), **{place: value})), message)
