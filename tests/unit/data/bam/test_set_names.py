import pytest

from saliency_assay.data.bam.set_names import classes_of, set_names


@pytest.mark.parametrize("scenes", [10, 20, 120])
def test_ten_sets_and_the_one_without(scenes: int) -> None:
    names = set_names([tenth / 10 for tenth in range(1, 11)], scenes)
    assert [classes_of(name) for name in names] == [*(scenes * tenth // 10 for tenth in range(1, 11)), 0]
    assert names[-1] == "0s_k"
    assert names[0] == {10: "os_k01", 20: "os_k02", 120: "os_k12"}[scenes]
    assert names[9] == {10: "os_k10", 20: "os_k20", 120: "os_k120"}[scenes]


def test_names_follow_the_order_given() -> None:
    assert set_names([1, 0.1 + 0.2, 0.5], 10) == ("os_k10", "os_k03", "os_k05", "0s_k")


def test_no_commonality_no_sets() -> None:
    assert set_names([], 10) == ()


def test_thirds_may_be_written_with_three_decimals() -> None:
    assert set_names([0.333, 0.6667, 1], 3) == ("os_k01", "os_k02", "os_k03", "0s_k")


@pytest.mark.parametrize(
    ("commonality", "scenes", "message"),
    [
        ([0.1, 1.2], 10, "found 1.2, expected more than 0 and at most 1"),
        ([0], 10, "found 0, expected more than 0 and at most 1"),
        ([-0.1], 10, "found -0.1, expected more than 0 and at most 1"),
        ([float("nan")], 10, "found nan, expected more than 0 and at most 1"),
        ([0.25], 10, "found 0.25, which is 2.5 of 10 scene classes; expected a multiple of 0.1 up to 1"),
        ([0.1], 8, "found 0.1, which is 0.8 of 8 scene classes; expected a multiple of 0.125 up to 1"),
        ([0.33], 3, "found 0.33, which is 0.99 of 3 scene classes; expected a multiple of 0.3333 up to 1"),
        (
            [0.0005],
            10,
            "found 0.0005, which is 0.005 of 10 scene classes; expected a multiple of 0.1 up to 1",
        ),
        ([0.3, 0.1, 0.1 + 0.2], 10, "found 0.3 twice, expected each k once"),
    ],
)
def test_a_commonality_that_is_none(commonality: list[float], scenes: int, message: str) -> None:
    with pytest.raises(ValueError, match=r"^commonality") as error:
        set_names(commonality, scenes)
    assert str(error.value) == f"commonality: {message}"


def test_classes_of_a_set() -> None:
    assert [classes_of(name) for name in ("0s_k", "os_k01", "os_k10", "os_k120")] == [0, 1, 10, 120]


@pytest.mark.parametrize("name", ["os", "0s", "os_scale", "os_k1", "os_k", "bam_os_k01", "os_k01_", "og_k01"])
def test_another_set_has_no_classes(name: str) -> None:
    with pytest.raises(ValueError, match=r"^set") as error:
        classes_of(name)
    assert str(error.value) == f"set {name!r}: expected os_kNN, NN the number of scene classes, or 0s_k"
