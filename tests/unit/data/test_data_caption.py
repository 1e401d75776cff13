"""Pictures beside captions: where everything lies, what the noise replaces, and what is drawn alike."""

from typing import Any

import numpy as np
import pytest

from saliency_assay.data.caption import JITTER, SETS, WIDEST, compose, plan, render_words
from saliency_assay.data.splits import TEST, TRAIN

NAMES = ("cat", "bird", "frog")
HEIGHT, WIDTH = 20, 25
COUNT = 240
ALL_EQUAL = ("mask", "split", "label_class", "aligned", "source")


def a_source(channels: int = 3, count: int = COUNT) -> dict[str, np.ndarray]:
    """Pictures without a black pixel, the classes mixed, a third of them to test."""
    generator = np.random.default_rng(0)
    return {
        "image": generator.integers(1, 256, (count, channels, HEIGHT, WIDTH), dtype=np.uint8),
        "split": np.where(np.arange(count) % 3 == 1, TEST, TRAIN).astype(np.uint8),
        "label_class": generator.integers(0, 3, count),
    }


def made(
    source: dict[str, np.ndarray], member: str, block: int = 1000, **changes: Any
) -> dict[str, np.ndarray]:
    arguments: dict[str, Any] = {
        "classes": ["frog", "bird"],
        "image_noise": 0,
        "caption_noise": 0,
        "images_per_class": 0,
        "generator": np.random.default_rng(changes.pop("seed", 1)),
        **changes,
    }
    classes, blocks = compose(source, NAMES, member, block=block, **arguments)
    assert classes == {"class": tuple(arguments["classes"])}
    parts = list(blocks)
    assert max(len(part["image"]) for part in parts) <= block
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def words_read(images: np.ndarray, words: tuple[str, str] = ("frog", "bird")) -> list[int]:
    """Return the index of the word in each caption's half, by comparison of the cropped ink."""
    stamps = render_words(words, HEIGHT, WIDTH)
    words_of_images = []
    for half in images[:, 0, :, WIDTH:]:
        rows, columns = np.flatnonzero(half.any(1)), np.flatnonzero(half.any(0))
        ink = half[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        words_of_images.append([np.array_equal(ink, stamp) for stamp in stamps].index(True))
    return words_of_images


@pytest.mark.parametrize("channels", [1, 3])
def test_the_picture_is_on_the_left_and_the_word_on_the_right(channels: int) -> None:
    source = a_source(channels)
    arrays = made(source, "both")
    kept = np.flatnonzero(source["label_class"] != NAMES.index("cat"))
    assert arrays["image"].shape == (len(kept), channels, HEIGHT, 2 * WIDTH)
    assert arrays["image"].dtype == np.uint8
    assert (arrays["source"] == kept).all()
    assert (arrays["image"][..., :WIDTH] == source["image"][kept]).all()
    assert (arrays["label_class"] == (source["label_class"][kept] == NAMES.index("bird"))).all()
    assert (arrays["split"] == source["split"][kept]).all()
    assert words_read(arrays["image"]) == arrays["label_class"].tolist()
    other_words = made(source, "both", captions=["yes", "no"])["image"]
    assert words_read(other_words, ("yes", "no")) == arrays["label_class"].tolist()
    captions = arrays["image"][..., WIDTH:]
    assert (captions[:, :1] == captions).all()  # white or gray, never colored
    assert arrays["aligned"].all()
    assert not arrays["mask"][..., :WIDTH].any()
    assert arrays["mask"][..., WIDTH:].all()
    assert [arrays[name].dtype for name in ALL_EQUAL] == [np.bool_, np.uint8, np.int64, np.bool_, np.int64]


def test_the_sets_are_aligned_and_either_half_is_black() -> None:
    source = a_source()
    both, image, caption = (made(source, name, image_noise=0.6, caption_noise=0.3) for name in SETS)
    for name in ALL_EQUAL:
        assert (both[name] == image[name]).all()
        assert (both[name] == caption[name]).all()
    picture = ~both["mask"][:, None]
    assert (image["image"] == np.where(picture, both["image"], 0)).all()
    assert (caption["image"] == np.where(picture, 0, both["image"])).all()


def test_groups_are_those_of_the_pictures() -> None:
    source = a_source()
    assert "group" not in made(source, "both")
    source["group"] = np.arange(COUNT, dtype=np.uint8)[:, None] // 5
    arrays = made(source, "both", block=7, image_noise=0.6)
    np.testing.assert_array_equal(arrays["group"], source["group"][arrays["source"]])


def test_blocks_do_not_change_anything() -> None:
    source = a_source()
    whole, parts = (made(source, "both", block, image_noise=0.6) for block in (1000, 7))
    assert all((whole[name] == parts[name]).all() for name in whole)


def test_image_noise_shows_a_picture_of_the_other_class_of_the_same_half() -> None:
    source = a_source(count=3000)
    arrays = made(source, "both", image_noise=0.6)
    shown = source["label_class"][arrays["source"]] == NAMES.index("bird")
    other = shown != arrays["label_class"]
    assert (arrays["aligned"] == ~other).all()
    assert (arrays["image"][..., :WIDTH] == source["image"][arrays["source"]]).all()
    assert words_read(arrays["image"][:300]) == arrays["label_class"][:300].tolist()
    assert (source["split"][arrays["source"]] == arrays["split"]).all()
    assert abs(other.mean() - 0.6) < 4 * np.sqrt(0.24 / len(other))
    # Drawn from all of them, not one after the other or one alone.
    for part in (TRAIN, TEST):
        for label in (0, 1):
            replaced = arrays["source"][other & (arrays["split"] == part) & (arrays["label_class"] == label)]
            pool = np.flatnonzero(
                (source["label_class"] == NAMES.index(("frog", "bird")[1 - label]))
                & (source["split"] == part)
            )
            assert set(replaced) <= set(pool)
            assert len(set(replaced)) > 0.35 * len(pool)
            assert (np.diff(replaced) < 0).any()


def test_both_noises_at_once_are_independent_and_none_is_aligned() -> None:
    source = a_source(count=900)
    arrays = made(source, "both", image_noise=0.5, caption_noise=0.5)
    shown = (source["label_class"][arrays["source"]] == NAMES.index("bird")).astype(int)
    named = np.array(words_read(arrays["image"]))
    truth = arrays["label_class"]
    assert (((shown == truth) & (named == truth)) == arrays["aligned"]).all()
    both_wrong = (shown != arrays["label_class"]) & (named != arrays["label_class"])
    assert abs(both_wrong.mean() - 1 / 4) < 4 * np.sqrt(3 / 16 / len(named))  # independent of each other
    assert abs(arrays["aligned"].mean() - 1 / 4) < 4 * np.sqrt(3 / 16 / len(named))


def test_entries_of_one_seed_differ_in_their_noise_alone() -> None:
    source = a_source()
    clean, pictures, captions = (
        made(source, "both", image_noise=p, caption_noise=q, images_per_class=30)
        for p, q in ((0, 0), (0.6, 0), (0, 0.6))
    )
    for noisy in (pictures, captions):
        assert (clean["label_class"] == noisy["label_class"]).all()
        assert (clean["image"][noisy["aligned"]] == noisy["image"][noisy["aligned"]]).all()
        differ = (clean["image"] != noisy["image"]).any((1, 2, 3))
        assert (differ == ~noisy["aligned"]).all()
    assert (clean["image"][..., WIDTH:] == pictures["image"][..., WIDTH:]).all()
    assert (clean["image"][..., :WIDTH] == captions["image"][..., :WIDTH]).all()
    # Of two noises, the lesser replaces a part of what the greater does.
    lesser = made(source, "both", image_noise=0.3, images_per_class=30)
    assert (lesser["aligned"] | ~pictures["aligned"]).all()
    for noise in ("image_noise", "caption_noise"):
        assert not made(source, "both", **{noise: 1})["aligned"].any()
    other = made(source, "both", image_noise=0.6, images_per_class=30, seed=2)
    assert (other["aligned"] != pictures["aligned"]).any()
    assert (other["image"][..., WIDTH:] != pictures["image"][..., WIDTH:]).any()


def test_captions_lie_near_the_center_and_move() -> None:
    arrays = made(a_source(count=900), "caption")["image"][:, 0, :, WIDTH:]
    stamps = render_words(("frog", "bird"), HEIGHT, WIDTH)
    tops, lefts = (np.array([np.flatnonzero(half.any(axis))[0] for half in arrays]) for axis in (1, 0))
    label = np.array(words_read(made(a_source(count=900), "caption")["image"]))
    for which, stamp in enumerate(stamps):
        for places, side, taken in zip((tops, lefts), (HEIGHT, WIDTH), stamp.shape, strict=True):
            middle = (side - taken) // 2
            reach = min(round(JITTER * side), middle)
            assert reach > 0
            assert set(places[label == which]) == set(range(middle - reach, middle + reach + 1))


def test_words_have_one_size_and_fill_what_they_may() -> None:
    for words in (("bird", "frog"), ("3", "8"), ("hippopotamus", "i")):
        stamps = render_words(words, 40, 60)
        larger = [render_words([word], 40, 60)[0] for word in words]
        for stamp, alone in zip(stamps, larger, strict=True):
            assert stamp.shape[0] <= WIDEST * 40
            assert stamp.shape[1] <= WIDEST * 60
            assert stamp.shape[0] <= alone.shape[0]
            assert stamp.dtype == np.uint8
            assert stamp.max() > 150  # small letters are gray
            for edge in (stamp[0], stamp[-1], stamp[:, 0], stamp[:, -1]):
                assert edge.any()
        assert any(stamp.shape == alone.shape for stamp, alone in zip(stamps, larger, strict=True))
    short = render_words(("hippopotamus", "i"), 40, 60)[1]
    assert short.shape[0] < render_words(("i", "j"), 40, 60)[0].shape[0]


def test_a_limit_holds_for_each_class_in_each_half_of_the_split() -> None:
    source = a_source()
    arrays = made(source, "both", images_per_class=5)
    for part in (TRAIN, TEST):
        assert np.bincount(arrays["label_class"][arrays["split"] == part]).tolist() == [5, 5]
    noisy = made(source, "both", images_per_class=5, image_noise=1)
    assert set(noisy["source"]) <= set(arrays["source"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"classes": ["frgo", "bird"]}, "classes: unknown class 'frgo'"),
        ({"classes": ["bird", "bird"]}, "classes: found bird, bird, expected two"),
        ({"captions": ["a", "b", "c"]}, "captions: found a, b, c, expected two"),
        ({"captions": ["a", " "]}, "captions: found ' ', expected a word"),
        ({"captions": ["кот", "пёс"]}, "captions: found 'кот'"),
        ({"captions": ["cat", "cat "]}, "captions: found 'cat', 'cat ', which look the same"),
        ({"captions": ["a", "x" * 30]}, f"captions: found '{'x' * 30}', expected words that fit 20 × 25"),
    ],
)
def test_bad_settings_are_reported_in_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}.*$"):
        made(a_source(), "both", **changes)


@pytest.mark.parametrize(("part", "called"), [(TRAIN, "training"), (TEST, "test")])
def test_a_class_without_images_in_a_half_is_refused(part: int, called: str) -> None:
    source = a_source()
    source["split"][source["label_class"] == NAMES.index("bird")] = TEST if part == TRAIN else TRAIN
    with pytest.raises(ValueError, match=f"^classes: found no {called} image of 'bird', expected"):
        made(source, "both")


def test_another_set_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^set 'os': expected one of both, image, caption$"):
        made(a_source(), "os")


def test_places_of_captions_are_independent_of_the_pictures() -> None:
    count = 4000
    sampled = plan(
        np.arange(count) % 2,
        np.repeat([TRAIN, TEST], count // 2).astype(np.uint8),
        [0, 1],
        classes=("cat", "bird"),
        image_noise=1.0,
        caption_noise=0.0,
        images_per_class=0,
        generator=np.random.default_rng(1),
    )
    of_test = sampled.split == TEST
    correlations = np.corrcoef(np.column_stack([sampled.place, sampled.source])[of_test], rowvar=False)
    assert np.abs(correlations[~np.eye(3, dtype=bool)]).max() < 0.1
    assert ((sampled.place >= 0) & (sampled.place < 1)).all()


def test_images_have_the_group_of_their_picture() -> None:
    source = a_source() | {"group": np.arange(COUNT)[:, None].repeat(2, 1).astype(np.uint8)}
    arrays = made(source, "both", block=50, image_noise=0.5)
    np.testing.assert_array_equal(arrays["group"], source["group"][arrays["source"]])
    assert "group" not in made(a_source(), "both")
