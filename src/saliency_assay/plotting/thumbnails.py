"""Images and maps as small PNG files within pages, and the gallery page."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

import numpy as np
from matplotlib.colors import to_rgba
from numpy import ndarray as Array
from PIL import Image
from scipy.ndimage import binary_erosion

from saliency_assay.plotting.gallery import COLORS, displayed
from saliency_assay.plotting.page import page_templates
from saliency_assay.plotting.palette import SKY
from saliency_assay.registry.labels import UNLABELED, Labels

OUTLINE_SIDE, OUTLINE_WIDTH = 240, 2  # pixels of the image of an outline, at least, and of its line


def thumbnails(
    images: Array,
    maps: Mapping[str, Mapping[str, Array]],
    *,
    titles: Sequence[str],
    masks: Array | None = None,
    labels: Labels = UNLABELED,
) -> dict[str, Any]:
    """Return images and maps as small files for pages: PNG with one pixel per pixel, encoded in base64.

    Args:
        images, maps, titles, masks, labels: as in ``plotting.gallery.gallery``.

    Returns:
        ``titles``, ``images`` and ``outlines``, a list of ``N`` each, and ``maps``: for each label of a model and of a
        method a list of ``N``. An undefined map is an empty string, and so is the outline of an image without a mask.
    """
    return {
        "titles": list(titles),
        "images": [_encoded(displayed(image).transpose(1, 2, 0)) for image in images],
        "outlines": [""] * len(images) if masks is None else list(map(_encoded_outline, masks)),
        "maps": {
            labels.model(model): {
                labels.method(method): [
                    "" if np.isnan(saliency).any() else _encoded(COLORS(saliency, bytes=True)[..., :3])
                    for saliency in of_method
                ]
                for method, of_method in of_model.items()
            }
            for model, of_model in maps.items()
        },
    }


def gallery_page(content: Mapping[str, Any], details: Mapping[str, Any], *, title: str) -> str:
    """Return ``thumbnails`` as an HTML page: images below each other, each with its maps by model and method.

    Args:
        content: result of ``thumbnails``, with ``failures`` from ``report.pages.failures.failures_content`` if the
            study has some.
        details: texts beside an enlarged map: ``images``, a list of ``{id, classes: {label: name}}``, where ``id`` is
            the number of an image, or the name of its file, which the gallery shows, too; ``explained``,
            for each label of a model a list of the class that the maps explain; ``predictions``, for each label of a
            model a list of the predicted class, True if it is right, and the probability of the true class, or None;
            and ``scores``, the result of ``report.pages.image_details.image_scores``.
        title: title of the page.
    """
    classes: dict[str, set[str]] = {}
    for image in details["images"]:
        for label, name in image["classes"].items():
            classes.setdefault(label, set()).add(name)
    names = {label: sorted(of_label) for label, of_label in classes.items()}
    template = page_templates().get_template("gallery.html.j2")
    return template.render(title=title, content=content, details=details, classes=names)


def _encoded_outline(mask: Array) -> str:
    """Return the outline of a mask as a transparent image of a finer grid; empty if there is no border."""
    if not mask.any() or mask.all():
        return ""
    scale = -(-OUTLINE_SIDE // max(mask.shape))
    fine = np.kron(mask, np.ones((scale, scale), dtype=bool))
    line = fine & ~binary_erosion(fine, border_value=1, iterations=OUTLINE_WIDTH)
    return _encoded((line[..., None] * np.array(to_rgba(SKY)) * 255).astype(np.uint8))


def _encoded(pixels: Array) -> str:
    """Return uint8 ``[H, W, C]`` as a PNG in base64."""
    file = BytesIO()
    Image.fromarray(pixels.squeeze(-1) if pixels.shape[-1] == 1 else pixels).save(file, "png", optimize=True)
    return b64encode(file.getvalue()).decode("ascii")
