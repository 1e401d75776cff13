"""The one line that each mistake in a configuration gets: place, value, and what is valid."""

from datetime import date
from pathlib import Path

import pytest
import yaml
from configurations import agrees, base, cases, changed, fault, reading, without

from saliency_assay.config.checks import custom_parameters
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.yaml_text import check_text

# Each line is a change to configurations.BASE and what its message says.

MISSPELT = """
methds: {} => top level: unknown key 'methds' … 'methods'
report.gallery_image: 3 => report: unknown key 'gallery_image' … 'gallery_images'
data.digits.explain: 8
    => data.digits: unknown key 'explain'; it is called 'max_explained_images' … valid: explained_classes
data.digits.sice: 8 => data.digits: unknown key 'sice' … 'size'
models.f_o.widht: 8 => models.f_o: unknown key 'widht' … 'width'
models.f_o.training.epoch: 2 => models.f_o.training: unknown key 'epoch' … 'epochs'
methods.smooth.sample: 2 => methods.smooth: unknown key 'sample' … 'samples'
methods.smooth: {metod: smoothgrad} => methods.smooth: unknown method 'smooth' … 'smoothgrad'
metrics.mcs.sample: 2 => metrics.mcs: unknown key 'sample' … 'samples'
studies.bam.mehtods: [gradient] => studies.bam: unknown key 'mehtods' … 'methods'
"""

MISSING = """
data => top level: key 'data' is missing
models => models: found none … at least one
methods => methods: found none … at least one
data.digits.kind => data.digits: key 'kind' is missing
models.d.trained_on => models.d: key 'trained_on' is missing
studies.bam.kind => studies.bam: key 'kind' is missing
studies.bam.object_model => studies.bam: key 'object_model' is missing
studies.digits.model => studies.digits: key 'model' is missing
"""

WRONG_VALUES = """
results: '' => results: found '' … 1 or more characters
device: gpu => device: found 'gpu' … valid: auto
seeds: [] => seeds: found [] … 1 or more entries
seeds: [0, 1, 0] => seeds: found [0, 1, 0] … no duplicate entries
seeds: [0, -1] => seeds.1: found -1 … at least 0
data: {} => data: found {} … 1 or more entries
data.digits: null => data.digits: found null … a mapping
data.digits.max_explained_images: 0 => data.digits.max_explained_images: found 0 … at least 1
data.digits.explanation_order: random => data.digits.explanation_order: found 'random' … valid: balanced
data.digits.shards: 0 => data.digits.shards: found 0 … at least 1
data.digits.shards: 5 => data.digits.shards: found 5 … at most 4
data.digits: {kind: digits, max_explained_images: 20, shards: 2} => data.digits.shards: found 2 … at most 1
data.digits.resident_limit: 0 => data.digits.resident_limit: found 0 … above 0
data.digits.size: 10.0 => data.digits.size: found 10.0 … an integer
data.digits.size: 7 => data.digits.size: found 7 … at least 8
data.bam.smallest: 0.5 => data.bam.smallest: found 0.5 … less than largest
data.bam.largest: 0.2 => data.bam.smallest: found 0.25 … less than largest
models.d.batch_size: 0 => models.d.batch_size: found 0 … at least 1
models.d.target: labels => models.d.target: found 'labels' … valid: label
models.d.training.learning_rate: 1e-3 => models.d.training.learning_rate: found '1e-3' … a number
data.digits: {kind: mnist, path: nowhere} => data.digits.path: found 'nowhere' … a folder that exists
data.digits: {kind: mnist} => data.digits: key 'path' is missing
models.d.training.epochs: 0 => models.d.training.epochs: found 0 … at least 1, or weights
methods.gradcam.relu: 1 => methods.gradcam.relu: found 1 … true or false
methods.smooth.statistic: median => methods.smooth.statistic: found 'median' … valid: mean
methods.smooth.base: gradcm => methods.smooth.base: unknown method 'gradcm' … 'gradcam'
methods.smooth.base: noise
    => methods.smooth.base: found noise, which is stochastic … such as gradient
methods.smooth.base: shap
    => methods.smooth.base: found shap, which takes a background … such as gradient
methods.smooth.base: smooth => methods.smooth.base: unknown method 'smooth' … valid: gradcam
methods.gradient.base: gradcam => methods.gradient: unknown key 'base' … valid: label
methods.shap: {background: 0} => methods.shap.background: found 0 … at least 1
methods.mine: {function: nowhere} => methods.mine.function: found 'nowhere' … package.module
methods.mine: {function: 'nowhere:f', method: gradient}
    => methods.mine: found both function and method … one of them
metrics.mcs.samples: 1 => metrics.mcs.samples: found 1 … at least 2
studies.bam.methods: [] => studies.bam.methods: found [] … 1 or more entries
report.gallery_images: 21 => report.gallery_images: found 21 … at most 20
reliability.resamples: 10 => reliability.resamples: found 10 … at least 100
reliability.level: 1 => reliability.level: found 1 … below 1
"""

WRONG_NAMES = """
data.digits.kind: digit => data.digits.kind: unknown kind of data 'digit' … 'digits'
data.digits: {coco: [{annotations: a.json, images: a}], kind: bamm}
    => data.digits.kind: unknown kind of data 'bamm' … 'bam'
models.d.architecture: resent => models.d.architecture: unknown architecture 'resent' … 'resnet'
models.d.data: bam => models.d.data: unknown set 'bam' … 'bam_os'
models.d.trained_on: object => models.d.trained_on: unknown label 'object' … valid: class
methods.smooth.method: smothgrad => methods.smooth: unknown method 'smothgrad' … 'smoothgrad'
methods.gradeint: {} => methods.gradeint: unknown method 'gradeint' … 'gradient'
metrics.mc: {} => metrics.mc: unknown metric 'mc' … 'mcs'
studies.bam.kind: bamm => studies.bam.kind: found 'bamm' … valid: bam
studies.bam.data: digits => studies.bam.data: unknown BAM data 'digits' … valid: bam
studies.bam.object_model: fo => studies.bam.object_model: unknown model 'fo' … 'f_o'
studies.bam.methods: [grad_cam] => studies.bam.methods: unknown method 'grad_cam' … 'gradcam'
studies.digits.model: digits => studies.digits.model: unknown model 'digits' … valid: d
studies.bam.object_model: f_s
    => studies.bam.object_model: f_s is trained on bam_os with the scene label, expected bam_os and object
models.f_s.data: bam_0s
    => studies.bam.scene_model: f_s is trained on bam_0s with the scene label, expected bam_os and scene
"""


@pytest.mark.parametrize(
    ("change", "expected"), [*cases(MISSPELT), *cases(WRONG_VALUES), *cases(WRONG_NAMES)]
)
def test_what_is_wrong(change: str, expected: str) -> None:
    place, _, value = change.partition(": ")
    assert agrees(fault(changed(place, yaml.safe_load(value))), expected)


@pytest.mark.parametrize(("place", "expected"), cases(MISSING))
def test_what_is_missing(place: str, expected: str) -> None:
    assert agrees(fault(without(place)), expected)


NAMES = {
    **{name: repr(name) for name in ("a-b", "7up", "", "a b", "é", "_a", "a\n")},
    **{3: "3", True: "true"},
}


@pytest.mark.parametrize("name", NAMES, ids=repr)
@pytest.mark.parametrize("section", ["data", "models", "methods", "metrics", "studies"])
def test_names_that_cannot_be_parts_of_paths(section: str, name: object) -> None:
    raw = base()
    raw.setdefault(section, {})[name] = {}
    assert agrees(fault(raw), f"{section}: found {NAMES[name]} … letters, digits and underscores")


@pytest.mark.parametrize(("key", "text"), [(1, "1"), (None, "null"), (True, "true"), (1.5, "1.5")])
def test_keys_that_are_no_strings(key: object, text: str) -> None:
    raw = base()
    raw[key] = {}
    assert agrees(fault(raw), f"top level: unknown key {text} … valid: data, device, methods")
    raw = base()
    raw["methods"]["gradcam"][key] = 3
    assert agrees(fault(raw), f"methods.gradcam: unknown key {text} … valid: label, method, relu")


def test_two_entries_cannot_make_the_same_set() -> None:
    raw = changed("data.bam_os", {"kind": "digits"})
    assert agrees(fault(raw), "data.bam_os: … 'bam_os' … data.bam")


def test_a_method_that_an_architecture_cannot_serve() -> None:
    raw = changed("studies.digits.methods", ["gradient", "gradcam"])
    expected = "studies.digits.methods: gradcam needs a layer … mlp (models.d) … valid: resnet, vgg"
    assert agrees(fault(raw), expected)
    assert agrees(fault(without("studies.digits.methods")), expected)  # by default, all methods
    raw = changed("methods.cam", {})
    raw["models"]["d"]["architecture"] = "vgg"
    raw["studies"]["digits"]["methods"] = ["cam"]
    assert agrees(fault(raw), "studies.digits.methods: cam needs a head … vgg (models.d) … valid: resnet")


def test_of_several_faults_the_one_nearest_to_the_top_is_reported() -> None:
    raw = changed("data.digits.max_explained_images", 0)
    raw["seed"] = 1
    assert agrees(fault(raw), "top level: unknown key 'seed' … 'seeds'")


def test_parameters_of_custom_functions_are_plain_and_their_order_does_not_count() -> None:
    entries = [
        {"function": "support:ConvNet", **parameters}
        for parameters in ({"depth": 3, "a": {"y": 1, "x": [2]}}, {"a": {"x": [2], "y": 1}, "depth": 3})
    ]
    one, other = (custom_parameters("models.net", entry) for entry in entries)
    assert repr(one) == repr(other)
    with pytest.raises(
        ConfigError, match=r"^methods\.mine\.since: found datetime\.date\(2024, 1, 1\) \(date\), expected"
    ):
        custom_parameters("methods.mine", {"since": date(2024, 1, 1)})
    for number in (float("nan"), float("inf"), 10**30, -(2**63)):
        with pytest.raises(ConfigError, match=r"^methods\.mine\.a\.b\[0\]: found "):
            custom_parameters("methods.mine", {"a": {"b": [number]}})


@pytest.mark.parametrize("content", ["", "[]", "text", "3"])
def test_a_configuration_is_a_mapping(content: str, tmp_path: Path) -> None:
    file = tmp_path / "my.yaml"
    file.write_text(content)
    with pytest.raises(ConfigError, match=r"^my\.yaml: found \w+, expected a mapping with the keys data, "):
        check_text(file, "my.yaml")


@pytest.mark.parametrize(
    "path", ["results_{model}", "a}", "<a", "~/a", "$HOME/a", "/", " ", "-n", "a\nb", "a\tb", "a\0b"]
)
def test_results_are_a_path_that_snakemake_takes(path: str) -> None:
    assert agrees(fault(changed("results", path)), f"results: found {path!r}, expected a folder's path")


def test_paths_of_results_are_normalized() -> None:
    assert reading(changed("results", "/Größe (neu)/a b/")).results == "/Größe (neu)/a b"
    assert reading(changed("results", "./a//b/../c/")).results == "a/c"


def test_weights_are_a_file_that_exists(tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    expected = f"models.d.weights: found '{path}' … a file that exists"
    assert agrees(fault(changed("models.d.weights", str(path))), expected)
    path.write_bytes(b"")
    assert reading(changed("models.d.weights", str(path))).models["d"].weights == str(path)


def test_a_configuration_that_can_be_read_passes(tmp_path: Path) -> None:
    path = tmp_path / "my.yaml"
    for text in ("a: &a {b: 1, c: 2}\nd: {<<: *a, b: 3}\n", '{"a":\t{"b": [1]}}'):
        path.write_text(text)
        check_text(path, "my.yaml")  # keys that a merge brings may be replaced


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("seeds: [0]\nresults: a\nseeds: [1]\n", "line 3: found the key 'seeds' twice"),
        ("models:\n  f:\n    a: {b: 1, c: 2, b: 3}\n", "line 3: found the key 'b' twice"),
        ('{"seeds": [0], "seeds": [1]}', "found the key 'seeds' twice"),
        ("a: &a\n  b: [*a]\n", "line 2: found *a within &a"),
        ("a: " + "[" * 5000 + "]" * 5000, "line 1: … 50 levels"),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "… 50 levels"),
        ("a: 1\n? [b, c]\n: d\n", "line 2: found a list or mapping as a key"),
        ("a:\n\tb: 1\n", "line 2, column 1: not YAML"),
        ("a: b\0\n", "not YAML: … control characters"),
        ("a: 2020-99-99\n", "not YAML: … month"),
        (b"a: \xff\n", "… UTF-8 … byte 3"),
        ("seeds: !!python/object/apply:os.system [touch it_ran]\n", "line 1, column 8: not YAML … os.system"),
    ],
    ids=lambda value: "" if len(value) > 40 else str(value),
)
def test_what_cannot_be_read_is_one_line(text: str | bytes, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "my.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as caught:
        check_text(path, "my.yaml")
    message = str(caught.value)
    assert agrees(message, f"my.yaml: {expected}")
    assert len(message.splitlines()) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["my.yaml"]


def test_what_is_no_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^my.yaml: Is a directory$"):
        check_text(tmp_path, "my.yaml")


def test_numbers_beyond_64_bits_are_named() -> None:
    huge = 10**400
    assert fault(changed("seeds", [huge])).endswith(f"{str(huge)[:79]}…, expected an integer of 64 bits")
    for place in ("reliability.level", "models.f_o.width"):
        message = fault(changed(place, huge))
        assert message.startswith(f"{place}: found 1000")
        assert message.endswith("…, expected a finite number")
    assert agrees(fault(changed("reliability.level", float("inf"))), "reliability.level: found inf … finite")
