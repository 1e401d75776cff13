from pathlib import Path

from checkout import Checkout

from saliency_assay.storage.zarr_store import open_store


def test_scripts_run_the_library_of_their_own_checkout(fresh: Checkout) -> None:
    """Another checkout may be installed in the environment: what is digested must be what runs."""
    fresh.edit(
        "src/saliency_assay/data/readers/digits.py",
        lambda text: text.replace("str(digit) for", '"d" + str(digit) for'),
    )
    fresh.make("results/data/digits.zarr.zip")
    with open_store(Path(fresh.root, "results/data/digits.zarr.zip"), kind="data") as digits:
        assert digits.attributes["classes"]["class"][:2] == ["d0", "d1"]
