"""Galleries of maps, and files of figures, which are equal whenever plotted."""

import json
import struct
import xml.etree.ElementTree as ET
from base64 import b64decode
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from parsed_pages import Page
from PIL import Image
from spaced import SPACED

from saliency_assay.metrics.reductions import reduce
from saliency_assay.plotting.gallery import class_names, gallery, titles
from saliency_assay.plotting.style import save, styled
from saliency_assay.plotting.thumbnails import gallery_page, thumbnails

SIDE = 6


def pictures(count: int = 2, channels: int = 3) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (count, channels, SIDE, SIDE), dtype=np.uint8)


def raw_maps(count: int = 2) -> torch.Tensor:
    return torch.rand(count, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(3))


def visual(maps: torch.Tensor) -> np.ndarray:
    return reduce(maps, "visual").numpy()


def grid(figure: Figure, columns: int) -> np.ndarray:
    return np.array(figure.axes, dtype=object).reshape(-1, columns)


def test_gallery_puts_images_in_rows_and_methods_in_columns() -> None:
    images, edge, gradient = pictures(), visual(raw_maps()), visual(raw_maps().flip(0)) / 2
    maps = {"f_o": {"edge": edge, "guided_backprop": gradient}}
    shown = grid(gallery(images, maps, titles=["dog", "cat"], labels=SPACED), 3)
    assert shown.shape == (2, 3)
    for item in range(2):
        image, first, second = (axes.images[0] for axes in shown[item])
        np.testing.assert_array_equal(image.get_array(), images[item].transpose(1, 2, 0))
        np.testing.assert_array_equal(first.get_array(), edge[item])
        np.testing.assert_array_equal(second.get_array(), gradient[item])
        assert first.get_clim() == second.get_clim() == (0, 1)  # one scale for all maps
    assert [axes.get_title() for axes in shown[0]] == ["dog", "edge", "guided\nbackprop"]
    assert [axes.get_title() for axes in shown[1]] == ["cat", "", ""]
    assert [axes.get_ylabel() for axes in shown[:, 0]] == ["f o", "f o"]


def test_gallery_of_two_models_has_two_rows_an_image() -> None:
    maps = {"f_o": {"edge": visual(raw_maps())}, "f_s": {"edge": visual(raw_maps().flip(0))}}
    shown = grid(gallery(pictures(), maps, titles=["dog", "cat"]), 2)
    assert [axes.get_ylabel() for axes in shown[:, 0]] == ["f_o", "f_s", "f_o", "f_s"]
    assert [axes.get_title() for axes in shown[:, 0]] == ["dog", "", "cat", ""]
    for row, (item, model) in enumerate(((0, "f_o"), (0, "f_s"), (1, "f_o"), (1, "f_s"))):
        np.testing.assert_array_equal(shown[row, 1].images[0].get_array(), maps[model]["edge"][item])


def test_gallery_of_many_methods_has_them_in_rows() -> None:
    maps = {f"method_{i}": visual(raw_maps()) * (i + 1) / 13 for i in range(13)}
    shown = grid(gallery(pictures(), {"f_o": maps}, titles=["dog, track", "cat"], labels=SPACED), 2)
    assert [axes.get_ylabel() for axes in shown[:, 0]] == ["image", *(f"method {i}" for i in range(13))]
    assert [axes.get_title() for axes in shown[0]] == ["dog,\ntrack", "cat"]
    for row, of_method in enumerate(maps.values(), start=1):
        for item in range(2):
            np.testing.assert_array_equal(shown[row, item].images[0].get_array(), of_method[item])


def test_gallery_of_digits_is_gray_from_black_to_white() -> None:
    images = pictures(1, channels=1)
    shown = grid(gallery(images, {"d": {"edge": visual(raw_maps(1))}}, titles=["7"]), 2)
    image = shown[0, 0].images[0]
    np.testing.assert_array_equal(image.get_array(), images[0, 0])
    assert (image.get_clim(), image.get_cmap().name) == ((0, 255), "gray")


@pytest.mark.parametrize(
    "broken",
    [
        lambda maps: torch.full_like(maps, 0.25),
        lambda maps: -maps,
        lambda maps: torch.where(maps == maps.max(), torch.nan, maps),
        lambda maps: torch.where(maps == maps.max(), torch.inf, maps),
    ],
    ids=["constant", "nowhere positive", "one NaN", "one infinity"],
)
def test_a_map_that_cannot_be_shown_is_a_cross(broken: Callable[[torch.Tensor], torch.Tensor]) -> None:
    maps = torch.cat([broken(raw_maps(1)), raw_maps(1)])
    masks = np.zeros((2, SIDE, SIDE), dtype=bool)
    masks[:, 2:4, 2:4] = True
    figure = gallery(pictures(), {"d": {"edge": visual(maps)}}, titles=["7", "8"], masks=masks)
    cross, defined = grid(figure, 2)[:, 1]
    assert ([text.get_text() for text in cross.texts], len(cross.images)) == (["×"], 0)
    assert ([text.get_text() for text in defined.texts], len(defined.images)) == ([], 1)


def test_masks_are_outlined() -> None:
    masks = np.zeros((2, SIDE, SIDE), dtype=bool)
    masks[0, 1:3, 2:5] = True
    shown = grid(gallery(pictures(), {"d": {"edge": visual(raw_maps())}}, titles=["7", "8"], masks=masks), 2)
    for axes in shown[0]:
        corners = np.concatenate([path.vertices for path in axes.collections[0].get_paths()])
        assert (corners.min(0).tolist(), corners.max(0).tolist()) == ([1.5, 0.5], [4.5, 2.5])  # x, y
    assert [len(axes.collections) for axes in shown[1]] == [0, 0]  # an empty mask has no outline


# --- pages --------------------------------------------------------------------------------------------------


def pixels_of(encoded: str) -> np.ndarray:
    return np.asarray(Image.open(BytesIO(b64decode(encoded))))


def test_thumbnails_are_the_images_and_maps_pixel_by_pixel() -> None:
    maps = visual(torch.cat([raw_maps(1), -raw_maps(1)]))  # the second is positive nowhere
    masks = np.zeros((2, SIDE, SIDE), dtype=bool)
    masks[0, 1:4, 2:5] = True
    content = thumbnails(
        pictures(), {"f_o": {"my_method": maps}}, titles=["7", "8"], masks=masks, labels=SPACED
    )
    for encoded, image in zip(content["images"], pictures(), strict=True):
        np.testing.assert_array_equal(pixels_of(encoded), image.transpose(1, 2, 0))
    shown, undefined = content["maps"]["f o"]["my method"]
    expected = mpl.colormaps["inferno"](maps[0], bytes=True)[..., :3]
    np.testing.assert_array_equal(pixels_of(shown), expected)
    outline, none = content["outlines"]
    opaque = pixels_of(outline)[..., 3] > 0
    scale = 240 // SIDE
    inside = np.kron(masks[0], np.ones((scale, scale), dtype=bool))
    assert opaque.shape == inside.shape == (240, 240)
    side = 3 * scale
    assert (opaque.sum(), (opaque & ~inside).sum()) == (side**2 - (side - 4) ** 2, 0)  # a line of two pixels
    assert undefined == none == ""
    gray = thumbnails(pictures(channels=1), {"d": {"edge": maps}}, titles=["7", "8"])
    np.testing.assert_array_equal(pixels_of(gray["images"][0]), pictures(channels=1)[0, 0])
    assert gray["outlines"] == ["", ""]


def details_of(*names: str) -> dict[str, Any]:
    """Details of a gallery of images of these classes, without predictions and scores."""
    images = [{"id": place, "classes": {"class": name}} for place, name in enumerate(names)]
    return {"images": images, "explained": {}, "predictions": {}, "scores": []}


def test_the_gallery_page_has_a_button_for_each_map_and_each_file_once() -> None:
    maps = visual(torch.cat([raw_maps(1), -raw_maps(1)]))
    masks = np.ones((2, SIDE, SIDE), dtype=bool)
    masks[0, 0] = False
    of_model = {"edge": maps, "gradient": maps[::-1]}
    content = thumbnails(
        pictures(),
        {"f": of_model, "g": {name: of[::-1] for name, of in of_model.items()}},
        titles=["<7>", "8"],
        masks=masks,
    )
    text = gallery_page(content, details_of("<7>", "8"), title="Maps")
    page = Page(text)
    names = [value for name, value in page.attributes if name == "aria-label" and "image" in str(value)]
    assert names == [
        f"{method}, {model}, image {place} ({name}){'' if content['maps'][model][method][place] else ', undefined map'}"
        for place, name in enumerate(("<7>", "8"))
        for model in "fg"
        for method in ("edge", "gradient")
    ]
    assert [text.count(f"base64,{file}") for file in content["images"] + content["outlines"][:1]] == [1, 1, 1]
    assert text.count("base64,") == 2 + 1 + 4
    assert page.text.count("×") == 4  # maps that cannot be shown


def test_details_of_a_gallery_are_data_that_ends_no_script() -> None:
    content = thumbnails(pictures(), {"f": {"edge": visual(raw_maps())}}, titles=["a", "b"])
    details = details_of("</script><b>", "8") | {"predictions": {"f": [("8", True, "99 %"), None]}}
    text = gallery_page(content, details, title="Maps")
    start = text.index('<script type="application/json">')
    script = text[start : text.index("</script>", start)].partition(">")[2]
    assert json.loads(script) == json.loads(json.dumps(details))


def test_titles_name_the_classes() -> None:
    labels = {"label_object": np.array([1, 0]), "label_scene": np.array([0, 1])}
    classes = {"object": ["dog", "stop sign"], "scene": ["corn_field", "track"]}
    assert titles(labels, classes) == ["stop sign, corn field", "dog, track"]
    first, second = class_names(labels, classes)
    assert first == {"object": "stop sign", "scene": "corn field"}
    assert second == {"object": "dog", "scene": "track"}


# --- files --------------------------------------------------------------------------------------------------


def some_gallery() -> Figure:
    maps = visual(torch.cat([raw_maps(1), -raw_maps(1)]))
    masks = np.tri(SIDE, dtype=bool)[None].repeat(2, axis=0)
    return gallery(pictures(), {"d": {"edge": maps}}, titles=["7", "8"], masks=masks)


def test_equal_figures_give_equal_files_without_a_date(tmp_path: Path) -> None:
    before = dict(mpl.rcParams)
    with styled():
        for ending in ("svg", "png", "pdf"):
            for name in ("a", "b"):
                save(some_gallery(), tmp_path / f"{name}.{ending}")
            assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()
    assert dict(mpl.rcParams) == before
    svg = ET.parse(tmp_path / "a.svg")
    assert not [element.tag for element in svg.iter() if element.tag.endswith("}date")]
    links = [value for element in svg.iter() for key, value in element.items() if key.endswith("}href")]
    assert all(value.startswith(("#", "data:")) for value in links)  # all within the file
    pdf = (tmp_path / "a.pdf").read_bytes()
    assert b"CreationDate" not in pdf
    assert b"TrueType" in pdf or b"CIDFontType2" in pdf
    assert b"/Type3" not in pdf
    assert "IHDR" in chunks(tmp_path / "a.png")
    assert not {"tIME", "tEXt", "iTXt"} & set(chunks(tmp_path / "a.png"))


def chunks(path: Path) -> list[str]:
    """Types of a PNG's chunks."""
    content, at, types = path.read_bytes(), 8, []
    while at < len(content):
        (length,) = struct.unpack(">I", content[at : at + 4])
        types.append(content[at + 4 : at + 8].decode())
        at += 12 + length
    return types


@pytest.mark.parametrize("name", ["$1%-$5%", "$x_{1$", r"\$a\alpha$", "a\udcff"], ids=ascii)
def test_names_of_classes_are_text(name: str, tmp_path: Path) -> None:
    captions = titles({"label_class": np.array([0, 1])}, {"class": [name, "b"]})
    with styled():
        figure = gallery(pictures(), {"m": {"edge": visual(raw_maps())}}, titles=captions)
        save(figure, tmp_path / "gallery.svg")
    shown = figure.axes[0].title
    assert not shown.get_parse_math()
    assert shown.get_text() == name.replace("_", " ").replace("\udcff", r"\udcff")
    assert captions[0].encode("utf-8")  # the encoding of pages and tables
