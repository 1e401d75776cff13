"""Methods that take the object's mask: studies and data sets that have it."""

from copy import deepcopy
from typing import Any

import pytest
from pipelines import TINY, params

from saliency_assay.config.errors import ConfigError


def with_mask_in(study: str, **entry: Any) -> dict[str, Any]:
    """TINY with the object mask among the methods of a study."""
    raw = deepcopy(TINY)
    raw["methods"]["object_mask"] = {}
    raw["studies"][study] = {**raw["studies"].get(study, {}), **entry}
    raw["studies"][study]["methods"] = ["gradient", "object_mask"]
    return raw


@pytest.mark.parametrize(
    ("study", "message"),
    [
        (
            "digits",
            r"found object_mask, the object's mask, which the set digits does not have; valid: bam_os, .*",
        ),
        (
            "bam",
            r"found object_mask, .* in a study of kind bam, which computes further maps; valid: .*fidelity",
        ),
    ],
)
def test_a_study_without_masks_is_refused(study: str, message: str) -> None:
    with pytest.raises(ConfigError, match=rf"studies\.{study}\.methods: {message}"):
        params(with_mask_in(study))


def test_a_study_of_images_with_masks_passes_them_to_the_method() -> None:
    of = params(with_mask_in("objects", kind="gallery", model="f_o"))
    method = of.config.methods["object_mask"]
    assert (method.takes_mask, method.is_baseline, method.control) == (True, False, "upper")
    wildcards = {"model": "f_o", "seed": "0", "data": "bam_os", "method": "object_mask", "shard": ""}
    assert of.attribute(wildcards)["takes_mask"] is True
