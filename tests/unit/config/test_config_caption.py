"""Pictures with captions in the configuration: data, study, and the line that each mistake gets."""

import pytest
import yaml
from configurations import FILE, agrees, cases, fault, replaced

from saliency_assay.catalog import CATALOG
from saliency_assay.config.configuration import read

WHOLE = """
data:
  digits: {kind: digits}
  one: {kind: caption, source: digits, classes: ["3", "8"], captions: [three, eight]}
  two: {kind: caption, source: digits, classes: ["3", "8"], captions: [three, eight], image_noise: 0.6}
  words: {kind: caption, source: digits, classes: ["3", "8"], captions: [drei, acht]}
  other: {kind: caption, source: digits, classes: ["1", "8"]}
models:
  d: &model {architecture: resnet8, data: digits, trained_on: class}
  f_image: {<<: *model, data: one_both}
  f_caption: {<<: *model, data: two_both}
  f_words: {<<: *model, data: words_both}
  f_other: {<<: *model, data: other_both}
methods: {gradient: {}, optimal_halves: {}}
metrics: {infidelity_halves: {rescale: true}}
studies: {s: {kind: caption, image_model: f_image, caption_model: f_caption}}
"""

WRONG = """
data.one.source: digit => data.one.source: unknown set with classes 'digit' … 'digits'
data.one.source: two_both => data.one.source: unknown set with classes 'two_both' … valid: digits
data.one.classes: ["3", "8", "9"] => data.one.classes: found ['3', '8', '9'] … 2 or fewer entries
data.one.image_noise: 1.5 => data.one.image_noise: found 1.5 … at most 1
data.digits.classes: ["3", "8"] => data.digits: unknown key 'classes' … valid: explained_classes
studies.s.image_model: d
    => studies.s.image_model: d: data: unknown set with images and captions 'digits' … valid: one_both
studies.s.caption_model: f_image => studies.s.caption_model: found f_image again … another model
studies.s.caption_model: f_other
    => studies.s.caption_model: f_other has the classes 1 and 8 of digits … 3 and 8 of digits … f_image
studies.s.caption_model: f_words
    => studies.s.caption_model: f_words has the classes … drei and acht … three and eight, as f_image
metrics.block_attribution: {metric: pointing_game}
    => metrics.block_attribution: is the name of a registered metric of caption studies, expected another name
"""


def test_both_models_are_explained_on_the_images_of_the_first() -> None:
    configuration = read(yaml.safe_load(WHOLE), catalog=CATALOG, source=FILE)
    study = configuration.studies["s"]
    assert (study.models, study.data) == (("f_image", "f_caption"), "one_both")
    assert study.metrics == ("infidelity_halves", "block_attribution")
    assert configuration.metrics["infidelity_halves"].parameters["rescale"] is True
    assert configuration.metrics["block_attribution"].parameters == {}
    one, two = configuration.data["one"], configuration.data["two"]
    assert one.sets == ("one_both", "one_image", "one_caption")
    assert (one.classes, one.captions, two.captions) == (("3", "8"), ("three", "eight"), ("three", "eight"))
    assert (one.has_masks, configuration.data["digits"].has_masks) == (True, False)


@pytest.mark.parametrize(("change", "expected"), cases(WRONG))
def test_what_is_wrong(change: str, expected: str) -> None:
    place, _, value = change.partition(": ")
    raw = replaced(yaml.safe_load(WHOLE), place, yaml.safe_load(value))
    assert agrees(fault(raw, CATALOG), expected)
