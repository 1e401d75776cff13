import numpy as np
import pytest

from saliency_assay.data.selection import background_images, explained_images
from saliency_assay.data.splits import (
    TEST,
    TRAIN,
    VALIDATION,
    ClassError,
    grouped_split,
    random_split,
    with_validation,
)


@pytest.mark.parametrize(("count", "share", "tests"), [(1797, 0.1, 180), (7, 0.1, 1), (3, 0.01, 1)])
def test_random_split_has_the_exact_share(count: int, share: float, tests: int) -> None:
    split = random_split(count, share, np.random.default_rng(0))
    assert split.dtype == np.uint8
    assert (split == TEST).sum() == tests
    assert (split == TRAIN).sum() == count - tests


def test_random_split_follows_the_generator() -> None:
    one, same, other = (random_split(200, 0.1, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert (one == same).all()
    assert (one != other).any()


@pytest.mark.parametrize(
    ("count", "share", "held_out"),
    [(1000, 0.15, 135), (57, 0.5, 26), (20, 0.01, 1), (20, 0.0, 0), (1, 0.15, 0)],
)
def test_validation_has_its_share_of_the_training_images(count: int, share: float, held_out: int) -> None:
    split = random_split(count, 0.1, np.random.default_rng(0))
    before = split.copy()
    validated = with_validation(split, share, 3)
    assert validated.dtype == np.uint8
    assert (validated == VALIDATION).sum() == held_out
    assert ((validated == TEST) == (before == TEST)).all()
    assert (before[validated == VALIDATION] == TRAIN).all()
    assert (split == before).all()


def test_validation_follows_the_seed() -> None:
    split = random_split(200, 0.1, np.random.default_rng(0))
    one, same, other = (with_validation(split, 0.15, seed) for seed in (1, 1, 2))
    assert (one == same).all()
    assert ((one == VALIDATION) & (other == VALIDATION)).sum() < 27


def test_a_larger_share_only_adds() -> None:
    split = random_split(200, 0.1, np.random.default_rng(0))
    few, many = (with_validation(split, share, 1) == VALIDATION for share in (0.1, 0.3))
    assert (few <= many).all()


def sides(split: np.ndarray, groups: np.ndarray) -> list[set[int]]:
    """The splits of each group's members."""
    return [set(split[groups == group].tolist()) for group in np.unique(groups)]


@pytest.mark.parametrize("seed", range(4))
def test_a_group_is_never_separated_and_classes_keep_their_shares(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = np.unique(rng.integers(0, 80, 400), return_inverse=True)[1]
    labels = rng.choice(3, size=400, p=[0.6, 0.3, 0.1])
    split = grouped_split(labels, groups, 0.2, np.random.default_rng(seed))
    assert split.dtype == np.uint8
    assert all(len(of_group) == 1 for of_group in sides(split, groups))
    for label in range(3):
        members = labels == label
        assert abs((split[members] == TEST).mean() - 0.2) < 0.06
    again = grouped_split(labels, groups, 0.2, np.random.default_rng(seed))
    assert (again == split).all()
    validated = with_validation(split, 0.25, seed, groups)
    assert all(len(of_group) == 1 for of_group in sides(validated, groups))
    assert ((validated == TEST) == (split == TEST)).all()
    assert abs((validated == VALIDATION).sum() / (split == TRAIN).sum() - 0.25) < 0.02
    few = with_validation(split, 0.1, seed, groups) == VALIDATION
    assert (few <= (validated == VALIDATION)).all()


def test_groups_of_one_member_are_split_as_near_as_single_images() -> None:
    labels = np.repeat([0, 1], [57, 13])
    split = grouped_split(labels, np.arange(70), 0.1, np.random.default_rng(0))
    assert [(split[labels == label] == TEST).sum() for label in (0, 1)] == [6, 1]


def test_every_class_has_training_and_test_members_where_groups_allow() -> None:
    labels, groups = np.array([0, 0, 0, 0, 1, 1, 1, 1]), np.array([0, 0, 0, 1, 2, 2, 2, 3])
    for seed in range(5):
        split = grouped_split(labels, groups, 0.25, np.random.default_rng(seed))
        assert split.tolist() == [TRAIN] * 3 + [TEST] + [TRAIN] * 3 + [TEST]
    with pytest.raises(ClassError) as error:
        grouped_split(labels, np.array([0, 0, 1, 1, 2, 2, 2, 2]), 0.25, np.random.default_rng(0))
    assert error.value.label == 1
    with pytest.raises(ValueError, match="validation_share: found training images of one group"):
        with_validation(np.full(4, TRAIN, np.uint8), 0.2, 0, np.zeros(4, np.int64))


def _table(each: int, tested: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All pairs of 4 × 4 classes, ``each`` times, the first ``tested`` of each pair for testing."""
    first, second, number = (
        axis.ravel() for axis in np.meshgrid(range(4), range(4), range(each), indexing="ij")
    )
    return np.where(number < tested, TEST, TRAIN).astype(np.uint8), first, second


@pytest.mark.parametrize("limit", [1, 3, 4, 17, 48])
def test_any_limit_is_balanced_over_both_labels(limit: int) -> None:
    split, first, second = _table(each=10, tested=3)
    chosen = explained_images(split, [first, second], limit)
    assert len(set(chosen.tolist())) == limit
    assert (split[chosen] == TEST).all()
    for label in (first, second):
        counts = np.bincount(label[chosen], minlength=4)
        assert counts.max() - counts.min() <= 1
    pairs = np.bincount(4 * first[chosen] + second[chosen], minlength=16)
    assert pairs.max() - pairs.min() <= 1


@pytest.mark.parametrize("count", [0, 17, 1000])
def test_a_background_is_of_training_images_in_order_and_balanced(count: int) -> None:
    split, first, second = _table(each=10, tested=3)
    chosen = background_images(split, [first, second], count)
    assert len(chosen) == min(count, 16 * 7)
    assert (split[chosen] == TRAIN).all()
    assert (np.diff(chosen) > 0).all()
    pairs = np.bincount(4 * first[chosen] + second[chosen], minlength=16)
    assert pairs.max() - pairs.min() <= 1


def test_a_larger_limit_only_adds() -> None:
    generator = np.random.default_rng(3)
    split = random_split(500, 0.3, generator)
    labels = [generator.integers(0, 4, 500), generator.integers(0, 3, 500)]
    everything = explained_images(split, labels)
    assert sorted(everything.tolist()) == np.flatnonzero(split == TEST).tolist()
    for limit in (1, 20, 99):
        assert explained_images(split, labels, limit).tolist() == everything[:limit].tolist()


def test_each_turn_visits_every_stratum_that_has_images_left() -> None:
    generator = np.random.default_rng(4)
    split = random_split(300, 0.4, generator)
    labels = [generator.integers(0, 3, 300), generator.integers(0, 3, 300)]
    left: dict[tuple[int, int], list[int]] = {}
    for index in np.flatnonzero(split == TEST).tolist():
        left.setdefault((int(labels[0][index]), int(labels[1][index])), []).append(index)
    chosen = iter(explained_images(split, labels).tolist())
    while left:
        turn = {next(chosen) for _ in left}
        assert turn == {members.pop(0) for members in left.values()}
        left = {pair: members for pair, members in left.items() if members}
    assert next(chosen, None) is None


def test_nothing_to_test_on_explains_nothing() -> None:
    assert explained_images(np.zeros(5, np.uint8), [np.zeros(5, np.int64)]).tolist() == []
