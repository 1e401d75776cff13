"""MCS over a commonality series against plain loops, and the job that scores it against its own inputs."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from jobs import run_script
from test_mcs_and_idr import in_blocks, plain_concept, seeded

from saliency_assay.runtime.provenance import seed_of
from saliency_assay.storage import score_tables, zarr_store
from saliency_assay.studies.bam.mcs_and_idr import random_masks
from saliency_assay.studies.bam.series import REGIONS, score_series

pytestmark = pytest.mark.usefixtures("one_thread")

NAN = float("nan")
MODELS = ("f_k01", "f_k05", "f_k10")
COUNT = 19


def some_series() -> tuple[dict[str, np.ndarray], np.ndarray, dict[str, np.ndarray]]:
    """Maps with a constant one, one with a NaN and one with an infinity; an image without a region."""
    rng = np.random.default_rng(0)
    maps = {
        model: rng.normal(size=(COUNT, channels, 12, 10))
        for model, channels in zip(MODELS, (3, 1, 3), strict=True)
    }
    maps["f_k01"][2] = -1  # no positive value: constant once reduced
    maps["f_k05"][3, 0, 0, 0] = np.nan
    maps["f_k10"][4, 0, 5, 5] = np.inf
    masks = rng.random((COUNT, 12, 10)) < 0.3
    masks[5] = False
    correct = {model: rng.random(COUNT) < 0.7 for model in MODELS}
    for model in MODELS:
        correct[model][:6] = True
    return maps, masks, correct


def expected_concepts(masks: np.ndarray, maps: dict[str, np.ndarray]) -> dict[str, list[float]]:
    return {
        model: [plain_concept(raw, mask) for raw, mask in zip(maps[model], masks, strict=True)]
        for model in MODELS
    }


def test_every_score_equals_plain_loops() -> None:
    maps, masks, correct = some_series()
    blocks = {model: iter(in_blocks(maps[model], 4)) for model in MODELS}
    scores = score_series(blocks, in_blocks(masks, 4), correct, generator=seeded())
    random = random_masks(torch.tensor(masks), seeded()).numpy()
    assert set(scores) == {f"{key}_{region}" for key in ("concept", "mcs") for region in REGIONS}
    for region, inside in (("object", masks), ("random", random)):
        concept = expected_concepts(inside, maps)
        for model in MODELS:
            mcs = [
                here - last if right and last_right else NAN
                for here, last, right, last_right in zip(
                    concept[model], concept["f_k10"], correct[model], correct["f_k10"], strict=True
                )
            ]
            np.testing.assert_allclose(scores[f"concept_{region}"][model], concept[model], rtol=1e-12)
            np.testing.assert_allclose(scores[f"mcs_{region}"][model], mcs, rtol=1e-10, atol=1e-14)
    # Where only one of the two maps has no score, the difference has none.
    assert np.isnan(scores["mcs_object"]["f_k01"][[2, 4, 5]]).all()
    assert np.isnan(scores["mcs_object"]["f_k05"][[3, 4, 5]]).all()
    assert np.isfinite(scores["mcs_object"]["f_k01"][[0, 1, 3]]).all()


def test_blocks_that_do_not_fit_are_refused() -> None:
    maps, masks, correct = some_series()
    blocks = {model: in_blocks(maps[model], 4) for model in MODELS}

    def message(masks: list[np.ndarray], correct: dict[str, np.ndarray] = correct, **changed: Any) -> str:
        with pytest.raises(ValueError, match=r"found") as error:
            score_series({**blocks, **changed}, masks, correct, generator=seeded())
        return str(error.value)

    parts = in_blocks(masks, 4)
    assert message(parts, f_k05=in_blocks(maps["f_k05"][:18], 4)).startswith(
        "block 4: found 2 maps of f_k05 and 3 masks"
    )
    assert message(parts[:4]).startswith("maps: f_k01: found a block of 3")
    wrong = correct | {"f_k05": correct["f_k05"][:10]}
    assert message(parts, wrong).startswith("correct: f_k05: found bool [10]")
    assert message([]).startswith("masks: found none")
    swapped = {model: correct[model] for model in ("f_k05", "f_k01", "f_k10")}
    assert message(parts, swapped).startswith(
        "series: found maps of f_k01, f_k05, f_k10 and correct of f_k05"
    )
    with pytest.raises(ValueError, match=r"^series: found maps of f_k10 and correct of f_k10"):
        score_series({"f_k10": blocks["f_k10"]}, parts, {"f_k10": correct["f_k10"]}, generator=seeded())


# ------------------------------------------------------------------------------------------- the job

SETS = {"f_k01": "bam_os_k01", "f_k05": "bam_os_k05", "f_k10": "bam_os_k10"}
IMAGES = np.array([40, 3, 21, 8, 30])  # not in order
SIZE = 50


def written(folder: Path) -> dict[str, np.ndarray]:
    """Stores and predictions of three models; the maps, and the last set's masks, as they are."""
    rng = np.random.default_rng(4)
    masks = rng.random((SIZE, 8, 8)) < 0.4
    scene = np.ones(SIZE, dtype=np.int64)
    scene[IMAGES] = 0
    data = folder / "data.zarr.zip"
    zarr_store.write(data, [{"mask": masks, "label_scene": scene}], kind="data", attributes={})
    with zarr_store.open_store(data, kind="data") as opened:
        digest = opened.attributes["digest"]
    kept: dict[str, np.ndarray] = {"mask": masks}
    for place, (model, name) in enumerate(SETS.items()):
        kept[model] = rng.random((len(IMAGES), 3, 8, 8), dtype=np.float32)
        attributes = {"data": digest if model == "f_k10" else "another"}
        block = {"map": kept[model], "image": IMAGES}
        zarr_store.write(folder / f"{model}.zarr.zip", [block], kind="maps", attributes=attributes)
        table = pd.DataFrame({"image": np.arange(SIZE), "label": scene, "predicted": scene})
        table.loc[IMAGES[place], "predicted"] = 5  # each is wrong once, on an image of its own
        other = table.assign(predicted=5, data="bam_0s_k")  # of no concern
        pd.concat([other, table.assign(data=name)]).assign(model=model, seed=3).to_parquet(
            folder / f"{model}.parquet"
        )
    return kept


def run(folder: Path) -> pd.DataFrame:
    settings = {"study": "bam", "method": "gradient", "seed": 3, "reduction": "visual"}
    settings |= {"models": list(SETS), "sets": list(SETS.values()), "k": [0.1, 0.5, 1.0]}  # type: ignore[dict-item]
    files = {
        "data": folder / "data.zarr.zip",
        "maps": [folder / f"{model}.zarr.zip" for model in SETS],
        "predictions": [folder / f"{model}.parquet" for model in SETS],
    }
    run_script("score_series", folder, settings, files, [folder / "scores.parquet"])
    return score_tables.read([folder / "scores.parquet"])


def test_the_job_writes_every_score_of_every_image(tmp_path: Path) -> None:
    kept = written(tmp_path)
    table = run(tmp_path)
    assert set(table["study"]) == {"bam"}
    assert set(table["method"]) == {"gradient"}
    assert set(table["seed"]) == {3}
    generator = seeded(seed_of(3, "score_series"))
    inside = {"object": kept["mask"][IMAGES]}
    inside["random"] = random_masks(torch.tensor(inside["object"]), generator).numpy()
    expected = {}
    for region, masks in inside.items():
        concept = expected_concepts(masks, kept)
        for place, (model, name) in enumerate(SETS.items()):
            for item, image in enumerate(IMAGES):
                here, last = concept[model][item], concept["f_k10"][item]
                expected[name, model, "concept_attribution", region, image] = here
                if item not in (place, 2):  # the last model is wrong on the third
                    expected[name, f"{model}-f_k10", "mcs", region, image] = here - last
    keys = ["data", "model", "metric", "variant", "image"]
    scores = table.set_index(keys)["score"].to_dict()
    assert set(scores) == set(expected)
    np.testing.assert_allclose([scores[key] for key in expected], list(expected.values()), atol=1e-6)
    assert len(table) == 3 * 2 * 5 + 2 * (3 + 3 + 4)


def test_the_job_refuses_stores_that_do_not_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = written(tmp_path)
    others = {"map": kept["f_k05"], "image": IMAGES[::-1]}
    zarr_store.write(tmp_path / "f_k05.zarr.zip", [others], kind="maps", attributes={})
    with pytest.raises(SystemExit):
        run(tmp_path)
    assert f"{tmp_path}/f_k05.zarr.zip: 'image' differs from" in capsys.readouterr().err
    written(tmp_path)
    of_last = {"map": kept["f_k10"], "image": IMAGES}
    zarr_store.write(tmp_path / "f_k10.zarr.zip", [of_last], kind="maps", attributes={"data": "old"})
    with pytest.raises(SystemExit):
        run(tmp_path)
    assert f"{tmp_path}/f_k10.zarr.zip: data is 'old', expected '" in capsys.readouterr().err
    written(tmp_path)
    for model in SETS:
        elsewhere = {"map": kept[model], "image": IMAGES + 1}
        with zarr_store.open_store(tmp_path / f"{model}.zarr.zip", kind="maps") as opened:
            attributes = {"data": opened.attributes["data"]}
        zarr_store.write(tmp_path / f"{model}.zarr.zip", [elsewhere], kind="maps", attributes=attributes)
    with pytest.raises(SystemExit):
        run(tmp_path)
    assert "series: found maps of image 41 of class 1" in capsys.readouterr().err
