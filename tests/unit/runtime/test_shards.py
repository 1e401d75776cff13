"""Blocks and parts of the explained images: which images a job has, and which batches they come in."""

import pytest

from saliency_assay.runtime import shards
from saliency_assay.runtime.shards import (
    WHOLE,
    Shard,
    batches,
    blocks,
    blocks_in,
    shard_of,
    shard_suffixes,
    too_many,
)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of ten."""
    monkeypatch.setattr(shards, "BLOCK", 10)


def test_a_block_is_256_images() -> None:
    """Another number would change all noise beyond the first block."""
    assert [blocks_in(images) for images in (0, 1, 256, 257, 50_000)] == [1, 1, 1, 2, 196]


def test_shards_are_named_in_their_order() -> None:
    assert shard_suffixes(1) == [""]
    assert shard_suffixes(3) == [".shard1of3", ".shard2of3", ".shard3of3"]
    assert [shard_of(name) for name in shard_suffixes(12)] == [Shard(number, 12) for number in range(1, 13)]
    assert shard_of("") == WHOLE == (1, 1)


@pytest.mark.parametrize("name", ["shard1of4", ".shard1of4.", ".shard1of", " "])
def test_another_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=rf"^shard: found {name!r}, expected .*'.shard1of4'"):
        shard_of(name)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("images", [1, 10, 11, 95, 100])
def test_shards_are_whole_blocks_one_after_another_and_as_even_as_can_be(images: int) -> None:
    for of in range(1, blocks_in(images) + 1):
        stretches = [Shard(number, of).slice_of(images) for number in range(1, of + 1)]
        assert [stretch.start for stretch in stretches] == [0, *(stretch.stop for stretch in stretches[:-1])]
        assert stretches[-1].stop == images
        sizes = [blocks_in(stretch.stop - stretch.start) for stretch in stretches]
        assert all(stretch.start % 10 == 0 for stretch in stretches)
        assert max(sizes) - min(sizes) <= 1


def test_more_parts_than_blocks_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^shards: found 4, expected at most 2"):
        Shard(1, 4).slice_of(400)
    assert too_many(2, 1).startswith("found 2, expected at most 1")
    assert too_many(2, 257) == too_many(1, 0) == ""


@pytest.mark.usefixtures("few")
def test_no_batch_reaches_into_the_next_block() -> None:
    assert list(blocks(25)) == [(0, slice(0, 10)), (1, slice(10, 20)), (2, slice(20, 25))]
    assert [(block, part.start, part.stop) for block, part in batches(25, 4)] == [
        *((0, 0, 4), (0, 4, 8), (0, 8, 10)),
        *((1, 10, 14), (1, 14, 18), (1, 18, 20)),
        *((2, 20, 24), (2, 24, 25)),
    ]
    even = [part.stop - part.start for _, part in batches(25, 6, even=True)]
    assert even == [5, 5, 5, 5, 5]
    assert [part for _, part in batches(25, 100)] == [part for _, part in blocks(25)]


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("even", [False, True])
def test_a_part_has_the_batches_of_the_whole(even: bool) -> None:
    images, of = 57, 3
    whole = [(block, part.start, part.stop) for block, part in batches(images, 4, even=even)]
    joined = []
    for number in range(1, of + 1):
        stretch = Shard(number, of).slice_of(images)
        count, offset = stretch.stop - stretch.start, stretch.start
        joined += [
            (block, offset + part.start, offset + part.stop)
            for block, part in batches(count, 4, offset=offset, even=even)
        ]
    assert joined == whole


def test_wrong_batches_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^batch_size: found 0, expected at least 1"):
        list(batches(5, 0))
    with pytest.raises(ValueError, match=r"^offset: found 100, expected a multiple of 256"):
        list(batches(5, 4, offset=100))
