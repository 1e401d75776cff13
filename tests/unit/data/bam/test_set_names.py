import pytest

from saliency_assay.data.bam.set_names import classes_of, set_names


def test_names_have_the_number_of_scene_classes_in_the_order_of_the_commonality() -> None:
    assert set_names([1, 0.1 + 0.2, 0.5], 10) == ("os_k10", "os_k03", "os_k05", "0s_k")
    assert set_names([0.1, 1], 120) == ("os_k12", "os_k120", "0s_k")
    assert set_names([0.333, 0.6667, 1], 3) == ("os_k01", "os_k02", "os_k03", "0s_k")  # rounded thirds
    assert set_names([], 10) == ()


@pytest.mark.parametrize(
    ("commonality", "scenes", "message"),
    [
        ([0.1, 1.2], 10, "found 1.2, expected more than 0 and at most 1"),
        ([0], 10, "found 0, expected more than 0 and at most 1"),
        ([float("nan")], 10, "found nan, expected more than 0 and at most 1"),
        ([0.25], 10, "found 0.25, which is 2.5 of 10 scene classes; expected a multiple of 0.1 up to 1"),
        ([0.1], 8, "found 0.1, which is 0.8 of 8 scene classes; expected a multiple of 0.125 up to 1"),
        ([0.33], 3, "found 0.33, which is 0.99 of 3 scene classes; expected a multiple of 0.3333 up to 1"),
        ([0.0005], 10, "found 0.0005, which is 0.005 of 10 scene classes"),
        ([0.3, 0.1, 0.1 + 0.2], 10, "found 0.3 twice, expected each k once"),
    ],
)
def test_a_commonality_that_is_none(commonality: list[float], scenes: int, message: str) -> None:
    with pytest.raises(ValueError, match=f"^commonality: {message}"):
        set_names(commonality, scenes)


def test_classes_of_a_set() -> None:
    assert [classes_of(name) for name in ("0s_k", "os_k01", "os_k10", "os_k120")] == [0, 1, 10, 120]


@pytest.mark.parametrize("name", ["0s", "os_scale", "os_k1", "bam_os_k01", "os_k01_"])
def test_another_set_has_no_classes(name: str) -> None:
    with pytest.raises(ValueError, match=f"^set '{name}': expected os_kNN"):
        classes_of(name)
