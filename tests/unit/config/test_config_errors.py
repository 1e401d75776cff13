"""The one line that each mistake in a configuration gets: where, what was found, what is valid."""

from datetime import date
from pathlib import Path

import pytest
import yaml
from configurations import base, cases, changed, fault, reading, without

from saliency_assay.config.checks import custom_parameters
from saliency_assay.config.errors import ConfigError
from saliency_assay.config.yaml_text import check_text

# Each mistake is a change to configurations.BASE, and below it the message.

MISSPELT = """
methds: {}
    top level: unknown key 'methds'; did you mean 'methods'? valid: data, device, methods, metrics,
    models, reliability, report, results, seeds, studies

report.gallery_image: 3
    report: unknown key 'gallery_image'; did you mean 'gallery_images'? valid: gallery_images

data.digits.explain: 8
    data.digits: unknown key 'explain'; it is called 'max_explained_images' since version 0.2; valid: explanation_order,
    kind, label, max_explained_images, resident_limit, shards, size

data.digits.sice: 8
    data.digits: unknown key 'sice'; did you mean 'size'? valid: explanation_order, kind, label, max_explained_images,
    resident_limit, shards, size

models.f_o.widht: 8
    models.f_o: unknown key 'widht'; did you mean 'width'? valid: architecture, batch_size, cam_layer,
    concept_layers, data, label, normalization, search, target, token_grid, trained_on, training, weights, width

models.f_o.training.epoch: 2
    models.f_o.training: unknown key 'epoch'; did you mean 'epochs'? valid: epochs, learning_rate,
    validation_share

methods.smooth.sample: 2
    methods.smooth: unknown key 'sample'; did you mean 'samples'? valid: base, label, method, noise, samples,
    statistic

methods.smooth: {metod: smoothgrad}
    methods.smooth: unknown method 'smooth'; did you mean 'smoothgrad'? valid: cam, gradcam, gradient,
    noise, shap, smoothgrad

metrics.mcs.sample: 2
    metrics.mcs: unknown key 'sample'; did you mean 'samples'? valid: label, metric, samples

studies.bam.mehtods: [gradient]
    studies.bam: unknown key 'mehtods'; did you mean 'methods'? valid: concepts, data, independence,
    kind, label, methods, object_model, robustness, scene_model, series
"""

MISSING = """
data
    top level: key 'data' is missing; required: data

models
    models: found none, expected at least one, because there are studies

methods
    methods: found none, expected at least one, because there are studies

data.digits.kind
    data.digits: key 'kind' is missing; required: kind

models.d.trained_on
    models.d: key 'trained_on' is missing; required: architecture, data, trained_on

studies.bam.kind
    studies.bam: key 'kind' is missing; required: kind

studies.bam.object_model
    studies.bam: key 'object_model' is missing; required: data, kind, object_model, scene_model

studies.digits.model
    studies.digits: key 'model' is missing; required: kind, model
"""

WRONG_VALUES = """
results: 3
    results: found 3, expected a string

results: ''
    results: found '', expected 1 or more characters

device: gpu
    device: found 'gpu'; valid: auto, cpu, cuda

seeds: 0
    seeds: found 0, expected a list

seeds: []
    seeds: found [], expected 1 or more entries

seeds: [0, 1, 0]
    seeds: found [0, 1, 0], expected no duplicate entries

seeds: [0, -1]
    seeds.1: found -1, expected at least 0

data: {}
    data: found {}, expected 1 or more entries

data.digits: null
    data.digits: found null, expected a mapping

data.digits.kind: [digits]
    data.digits.kind: found ['digits'], expected a string

data.digits.max_explained_images: 0
    data.digits.max_explained_images: found 0, expected at least 1

data.digits.explanation_order: random
    data.digits.explanation_order: found 'random'; valid: balanced, first

data.digits.shards: 0
    data.digits.shards: found 0, expected at least 1

data.digits.shards: 5
    data.digits.shards: found 5, expected at most 4: 1000 explained images are 4 blocks of 256

data.digits: {kind: digits, max_explained_images: 20, shards: 2}
    data.digits.shards: found 2, expected at most 1: 20 explained images are 1 block of 256

data.digits.resident_limit: 0
    data.digits.resident_limit: found 0, expected above 0

data.digits.resident_limit: .inf
    data.digits.resident_limit: found inf, expected a finite number

data.digits.size: 10.0
    data.digits.size: found 10.0, expected an integer

data.digits.size: 7
    data.digits.size: found 7, expected at least 8

data.bam.smallest: 0.5
    data.bam.smallest: found 0.5, expected less than largest (0.5)

data.bam.largest: 0.2
    data.bam.smallest: found 0.25, expected less than largest (0.2)

models.d.batch_size: 0
    models.d.batch_size: found 0, expected at least 1

models.d.target: labels
    models.d.target: found 'labels'; valid: label, predicted

models.d.training.epochs: null
    models.d.training.epochs: found null, expected an integer

models.d.training.learning_rate: 1e-3
    models.d.training.learning_rate: found '1e-3', expected a number (YAML reads 1e-3 as text, 1.0e-3 as a
    number)

models.d.training.learning_rate: .nan
    models.d.training.learning_rate: found nan, expected a finite number

data.digits: {kind: mnist, path: nowhere}
    data.digits.path: found 'nowhere', expected a folder that exists

data.digits: {kind: mnist}
    data.digits: key 'path' is missing; required: kind, path

models.d.training.epochs: 0
    models.d.training.epochs: found 0, expected at least 1, or weights to be used as they are

methods.gradcam.relu: 1
    methods.gradcam.relu: found 1, expected true or false

methods.smooth.statistic: median
    methods.smooth.statistic: found 'median', valid: mean, squared

methods.smooth.samples: {n: 3}
    methods.smooth.samples: found {'n': 3}, expected an integer

methods.smooth.base: gradcm
    methods.smooth.base: unknown method 'gradcm'; did you mean 'gradcam'? valid: gradcam, gradient

methods.smooth.base: noise
    methods.smooth.base: found noise, which is stochastic or does not use the model; expected a method that
    does not, such as gradient

methods.smooth.base: shap
    methods.smooth.base: found shap, which takes a background; expected a method that does not, such as
    gradient

methods.smooth.base: smooth
    methods.smooth.base: unknown method 'smooth'; valid: gradcam, gradient

methods.gradient.base: gradcam
    methods.gradient: unknown key 'base'; valid: label, method

methods.shap: {background: 0}
    methods.shap.background: found 0, expected at least 1

methods.mine: {function: nowhere}
    methods.mine.function: found 'nowhere', expected package.module:name

methods.mine: {function: 'nowhere:f', method: gradient}
    methods.mine: found both function and method, expected one of them

metrics.mcs.samples: 1
    metrics.mcs.samples: found 1, expected at least 2

studies.bam.methods: []
    studies.bam.methods: found [], expected 1 or more entries

report.gallery_images: 21
    report.gallery_images: found 21, expected at most 20

reliability.resamples: 10
    reliability.resamples: found 10, expected at least 100

reliability.level: 1
    reliability.level: found 1, expected below 1
"""

WRONG_NAMES = """
data.digits.kind: digit
    data.digits.kind: unknown kind of data 'digit'; did you mean 'digits'? valid: bam, digits, mnist,
    synthetic

data.digits: {coco: [{annotations: a.json, images: a}], kind: bamm}
    data.digits.kind: unknown kind of data 'bamm'; did you mean 'bam'? valid: bam, digits, mnist,
    synthetic

models.d.architecture: resent
    models.d.architecture: unknown architecture 'resent'; did you mean 'resnet'? valid: mlp, resnet,
    timm/NAME, torchvision/NAME, vgg

models.d.data: bam
    models.d.data: unknown set 'bam'; did you mean 'bam_os'? valid: bam_0s, bam_og, bam_os, digits

models.d.trained_on: object
    models.d.trained_on: unknown label 'object'; valid: class

methods.smooth.method: smothgrad
    methods.smooth: unknown method 'smothgrad'; did you mean 'smoothgrad'? valid: cam, gradcam, gradient,
    noise, shap, smoothgrad

methods.gradeint: {}
    methods.gradeint: unknown method 'gradeint'; did you mean 'gradient'? valid: cam, gradcam, gradient,
    noise, shap, smoothgrad

metrics.mc: {}
    metrics.mc: unknown metric 'mc'; did you mean 'mcs'? valid: deletion, idr, mcs, pointing_game

studies.bam.kind: bamm
    studies.bam.kind: found 'bamm'; valid: bam, caption, fidelity, gallery, retrain, validity

studies.bam.data: digits
    studies.bam.data: unknown BAM data 'digits'; valid: bam

studies.bam.object_model: fo
    studies.bam.object_model: unknown model 'fo'; did you mean 'f_o'? valid: d, f_o, f_s

studies.bam.methods: [grad_cam]
    studies.bam.methods: unknown method 'grad_cam'; did you mean 'gradcam'? valid: gradcam, gradient,
    smooth

studies.digits.model: digits
    studies.digits.model: unknown model 'digits'; valid: d, f_o, f_s

studies.bam.object_model: f_s
    studies.bam.object_model: f_s is trained on bam_os with the scene label, expected bam_os and object

models.f_s.data: bam_0s
    studies.bam.scene_model: f_s is trained on bam_0s with the scene label, expected bam_os and scene
"""


@pytest.mark.parametrize(("change", "message"), [*cases(MISSPELT), *cases(WRONG_VALUES), *cases(WRONG_NAMES)])
def test_what_is_wrong(change: str, message: str) -> None:
    place, _, value = change.partition(": ")
    assert fault(changed(place, yaml.safe_load(value))) == message


@pytest.mark.parametrize(("place", "message"), cases(MISSING))
def test_what_is_missing(place: str, message: str) -> None:
    assert fault(without(place)) == message


def test_a_required_key_that_is_misspelt() -> None:
    raw = changed("models.d", {"architecure": "mlp", "data": "digits", "trained_on": "class"})
    assert fault(raw) == (
        "models.d: key 'architecture' is missing; is 'architecure' a misspelling of it? "
        "required: architecture, data, trained_on"
    )


SECTIONS = "data, device, methods, metrics, models, reliability, report, results, seeds, studies"
NAME = "expected a name of letters, digits and underscores that starts with a letter"


@pytest.mark.parametrize("section", ["data", "models", "methods", "metrics", "studies"])
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a-b", "'a-b'"),
        ("7up", "'7up'"),
        ("", "''"),
        ("a b", "'a b'"),
        ("é", "'é'"),
        ("_a", "'_a'"),
        ("a\n", r"'a\n'"),
        (3, "3"),
        (True, "true"),
    ],
)
def test_names_that_cannot_be_parts_of_paths(section: str, name: object, shown: str) -> None:
    raw = base()
    raw.setdefault(section, {})[name] = {}
    assert fault(raw) == f"{section}: found {shown}, {NAME}"


@pytest.mark.parametrize(("key", "shown"), [(1, "1"), (None, "null"), (True, "true"), (1.5, "1.5")])
def test_keys_that_are_no_strings(key: object, shown: str) -> None:
    raw = base()
    raw[key] = {}
    assert fault(raw) == f"top level: unknown key {shown}; valid: {SECTIONS}"
    raw = base()
    raw["methods"]["gradcam"][key] = 3
    assert fault(raw) == f"methods.gradcam: unknown key {shown}; valid: label, method, relu"


@pytest.mark.parametrize(
    ("text", "found"),
    [("", "null"), ("# a comment\n", "null"), ("- data", "['data']"), ("data", "'data'"), ("3", "3")],
)
def test_a_file_that_is_no_mapping(text: str, found: str) -> None:
    assert fault(yaml.safe_load(text)) == f"top level: found {found}, expected a mapping"


def test_two_entries_cannot_make_the_same_set() -> None:
    raw = changed("data.bam_os", {"kind": "digits"})
    assert fault(raw) == "data.bam_os: makes the set 'bam_os', which data.bam makes too; rename one"


def test_a_method_that_an_architecture_cannot_serve() -> None:
    assert fault(changed("studies.digits.methods", ["gradient", "gradcam"])) == (
        "studies.digits.methods: gradcam needs a layer for class activation maps, which mlp (models.d) does not "
        "have; valid: resnet, vgg"
    )
    raw = changed("methods.cam", {})
    raw["models"]["d"]["architecture"] = "vgg"
    raw["studies"]["digits"]["methods"] = ["cam"]
    assert fault(raw) == (
        "studies.digits.methods: cam needs a head of average pooling and one linear layer, which vgg (models.d) "
        "does not have; valid: resnet"
    )
    assert "gradcam needs a layer" in fault(without("studies.digits.methods"))  # by default, all methods


def test_of_several_faults_the_one_nearest_to_the_top_is_told() -> None:
    raw = changed("data.digits.max_explained_images", 0)
    raw["seed"] = 1
    assert fault(raw).startswith("top level: unknown key 'seed'; did you mean 'seeds'?")


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
    for number in (float("nan"), float("inf"), 10**30):
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
    expected = "a folder's path without ~ at its beginning, braces, $, <, >, line breaks and other control characters"
    assert fault(changed("results", path)) == f"results: found {path!r}, expected {expected}"
    assert reading(changed("results", "/Größe (neu)/a b/")).results == "/Größe (neu)/a b"
    assert reading(changed("results", "./a//b/../c/")).results == "a/c"


def test_weights_are_a_file_that_exists(tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    expected = f"models.d.weights: found '{path}', expected a file that exists"
    assert fault(changed("models.d.weights", str(path))) == expected
    path.write_bytes(b"")
    assert reading(changed("models.d.weights", str(path))).models["d"].weights == str(path)


def test_a_configuration_that_can_be_read_passes(tmp_path: Path) -> None:
    path = tmp_path / "my.yaml"
    for text in ("a: &a {b: 1, c: 2}\nd: {<<: *a, b: 3}\n", '{"a":\t{"b": [1]}}'):
        path.write_text(text)
        check_text(path, "my.yaml")  # keys that a merge brings may be replaced


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seeds: [0]\nresults: a\nseeds: [1]\n", "line 3: found the key 'seeds' twice, expected unique keys"),
        (
            "models:\n  f:\n    a: {b: 1, c: 2, b: 3}\n",
            "line 3: found the key 'b' twice, expected unique keys",
        ),
        ('{"seeds": [0], "seeds": [1]}', "found the key 'seeds' twice, expected unique keys"),
        ("a: &a\n  b: [*a]\n", "line 2: found *a within &a, expected no recursion"),
        (
            "a: " + "[" * 5000 + "]" * 5000,
            "line 1: lists and mappings in each other, expected 50 levels at most",
        ),
        (
            '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}",
            "lists and mappings in each other, expected 50 levels at most",
        ),
        ("a: 1\n? [b, c]\n: d\n", "line 2: found a list or mapping as a key, expected text"),
        ("a:\n\tb: 1\n", "line 2, column 1: not YAML: found character that cannot start any token"),
        ("a: b\0\n", "not YAML: control characters are not allowed"),
        ("a: 2020-99-99\n", "not YAML: month must be in 1..12"),
        (b"a: \xff\n", "expected text in UTF-8; invalid start byte at byte 3"),
        (
            "seeds: !!python/object/apply:os.system [touch it_ran]\n",
            "line 1, column 8: not YAML: could not determine a constructor for the tag "
            "'tag:yaml.org,2002:python/object/apply:os.system'",
        ),
    ],
    ids=lambda value: "" if len(value) > 40 else str(value),
)
def test_what_cannot_be_read_is_one_line(text: str | bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "my.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as caught:
        check_text(path, "my.yaml")
    assert str(caught.value) == f"my.yaml: {message}"
    assert [file.name for file in tmp_path.iterdir()] == ["my.yaml"]


def test_what_is_no_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^my.yaml: Is a directory$"):
        check_text(tmp_path, "my.yaml")


def test_numbers_beyond_64_bits_are_named() -> None:
    huge = 10**400
    assert (
        fault(changed("seeds", [huge])) == f"seeds.0: found {str(huge)[:79]}…, expected an integer of 64 bits"
    )
    assert fault(changed("reliability.level", huge)).endswith("…, expected a finite number")
    assert fault(changed("models.f_o.width", huge)).endswith("…, expected a finite number")
    assert fault(changed("reliability.level", float("inf"))) == (
        "reliability.level: found inf, expected a finite number"
    )
