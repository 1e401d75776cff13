"""Image or caption in tables and figures: which half is used, what is counted there, and what holds of the paper."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from jobs import run_script
from matplotlib.figure import Figure

from saliency_assay.plotting.text import Answer
from saliency_assay.reliability.variance import mean_of
from saliency_assay.storage import score_tables as score_table
from saliency_assay.storage import zarr_store
from saliency_assay.studies.caption.caption_tables import (
    CHECKS,
    answer,
    caption_table,
    compare_with_printed,
    premise,
    statements,
    used_half,
)
from saliency_assay.studies.caption.figures import infidelity_bars, share_bars

NAN = float("nan")
MODELS = {"image_model": "looks", "caption_model": "reads"}
DATA = ["pictures", "words"]
METHODS = {
    "g": "gradient_x_input",
    "sg": "smoothgrad",
    "ig": "integrated_gradients",
    "opt": "optimal_halves",
    "e": "edge",
}
RIGHT = {("looks", "both"): 97, ("looks", "image"): 92, ("looks", "caption"): 48}
RIGHT |= {("reads", "both"): 99, ("reads", "image"): 52, ("reads", "caption"): 100}
INFIDELITY = {"g": (4.0, 1.0), "sg": (2.0, 1.0), "ig": (1.0, 0.5), "opt": (1e-13, 0), "e": (9.0, 7.0)}


def predictions(right: dict[tuple[str, str], int] = RIGHT, seeds: tuple[int, ...] = (0,)) -> pd.DataFrame:
    """A hundred test images a set, of which so many are right, and training images that are all wrong."""
    rows = []
    for (model, member), count in right.items():
        data = f"{DATA[model == 'reads']}_{member}"
        for seed in seeds:
            rows += [(model, seed, data, image, "test", 1, int(image < count)) for image in range(100)]
            rows += [(model, seed, data, image, "train", 1, 0) for image in range(100, 150)]
    columns = ["model", "seed", "data", "image", "split", "label", "predicted"]
    return pd.DataFrame(rows, columns=columns).assign(probability=0.5)


def checks(right: dict[tuple[str, str], int] = RIGHT, seeds: tuple[int, ...] = (0,)) -> pd.DataFrame:
    return premise(predictions(right, seeds), **MODELS, data=DATA)


def scored(seeds: tuple[int, ...] = (0,)) -> pd.DataFrame:
    """Three images a method; ``share`` is the caption's. One image of ``e`` has no score."""
    rows = []
    for method, levels in INFIDELITY.items():
        for model, level, shares in zip(
            ("looks", "reads"), levels, ((0.1, 0.3, 0.6), (0.5, 0.9, 1.0)), strict=True
        ):
            for seed in seeds:
                for image in range(3):
                    missing = method == "e" and image == 2
                    value = (
                        NAN if missing else level * (1 + 0.5 * (image - 1)) + (seed if level > 0.01 else 0)
                    )
                    at = ("s", "pictures_both", model, seed, method)
                    rows.append((*at, "infidelity", "infidelity_halves", image, value))
                    rows.append((*at, "infidelity", "infidelity_square", image, 77.0))
                    share = NAN if missing else shares[image]
                    rows.append((*at, "block_attribution", "block_attribution", image, share))
    return pd.DataFrame(rows, columns=list(score_table.COLUMNS))


def one(table: pd.DataFrame, **where: Any) -> pd.Series:
    for name, value in where.items():
        table = table[table[name] == value]
    assert len(table) == 1
    return table.iloc[0]


# ---- the premise


def test_the_premise_counts_test_images_of_each_model_s_own_sets() -> None:
    table = checks(seeds=(0, 3))
    assert list(table.columns) == ["model", "seed", "set", "check", "percent", "images", "printed"]
    assert len(table) == 12
    for (model, member), count in RIGHT.items():
        for seed in (0, 3):
            row = one(table, model=model, seed=seed, check=CHECKS[member])
            assert row["set"] == f"{DATA[model == 'reads']}_{member}"
            assert row["percent"] == count
            assert row["images"] == 100
    printed = table[table["seed"] == 0]["printed"].tolist()
    assert printed == [95, 90, 50, 95, 50, 98]


def test_a_set_without_predictions_has_no_accuracy() -> None:
    table = predictions()
    table = premise(table[table["data"] != "pictures_caption"], **MODELS, data=DATA)
    row = one(table, model="looks", check=CHECKS["caption"])
    assert np.isnan(row["percent"])
    assert row["images"] == 0
    assert used_half(table, "looks", 0) == ""
    assert used_half(table, "reads", 0) == "caption"


def test_the_used_half_is_the_one_that_a_model_is_right_on_alone() -> None:
    assert [used_half(checks(), model, 0) for model in ("looks", "reads")] == ["image", "caption"]
    for image, caption, expected in ((50, 51, "caption"), (50, 50, "")):
        table = checks({**RIGHT, ("looks", "image"): image, ("looks", "caption"): caption})
        assert used_half(table, "looks", 0) == expected
    assert used_half(checks(), "looks", 1) == ""  # a seed that was not measured


# ---- scores


def test_the_table_has_means_and_errors_of_what_is_defined() -> None:
    table = caption_table(scored(), checks())
    assert table["method"].tolist() == [name for name in INFIDELITY for _ in MODELS]
    row = one(table, model="looks", method="g")
    assert row["used"] == "image"
    values, shares = np.array([2.0, 4.0, 6.0]), np.array([0.9, 0.7, 0.4])
    assert row["infidelity"] == pytest.approx(values.mean())
    assert row["infidelity_error"] == pytest.approx(values.std(ddof=1) / np.sqrt(3))
    assert row["share"] == pytest.approx(shares.mean())
    assert row["share_error"] == pytest.approx(shares.std(ddof=1) / np.sqrt(3))
    assert row["above_half"] == pytest.approx(2 / 3)
    assert (row["images"], row["undefined"]) == (3, 0)
    row = one(table, model="reads", method="g")
    assert row["used"] == "caption"
    assert row["share"] == pytest.approx(0.8)
    assert row["above_half"] == pytest.approx(2 / 3)  # half and half is not more than half
    row = one(table, model="reads", method="e")
    assert row["infidelity"] == pytest.approx((3.5 + 7) / 2)
    assert row["share"] == pytest.approx(0.7)
    assert row["above_half"] == pytest.approx(1 / 2)
    assert (row["images"], row["undefined"]) == (2, 1)


def test_standard_errors_are_those_of_groups() -> None:
    """Two images of one patient and one of another; the third image of ``e`` has no score."""
    table = scored().assign(group=lambda rows: np.where(rows["image"] < 2, "p", "q"))
    grouped, alone = caption_table(table, checks()), caption_table(scored(), checks())
    row = one(grouped, model="looks", method="g")
    assert (row["images"], row["groups"]) == (3, 2)
    expected = mean_of(np.array([2.0, 4.0, 6.0]), {"groups": np.array([0, 0, 1])})
    assert row["infidelity_error"] == pytest.approx(expected.variance**0.5)
    assert row["infidelity_error"] > one(alone, model="looks", method="g")["infidelity_error"]
    row = one(grouped, model="looks", method="e")
    assert (row["images"], row["groups"]) == (2, 1)
    assert np.isnan(row["infidelity_error"])  # two images of one patient
    assert row["infidelity"] == one(alone, model="looks", method="e")["infidelity"]
    assert "2–3 images of 1–2 groups per model" in infidelity_bars(grouped).axes[0].get_xlabel()


def test_a_model_that_uses_neither_half_has_no_share() -> None:
    table = caption_table(scored(), checks({**RIGHT, ("looks", "image"): 50, ("looks", "caption"): 50}))
    of_model = table[table["model"] == "looks"]
    assert of_model[["share", "share_error", "above_half", "above_half_error"]].isna().all(axis=None)
    assert of_model["infidelity"].notna().all()
    assert table[table["model"] == "reads"]["share"].notna().all()


def test_a_method_without_any_score_has_none() -> None:
    table = scored()
    table.loc[table["method"] == "g", "score"] = NAN
    row = one(caption_table(table, checks()), model="looks", method="g")
    assert row[["infidelity", "infidelity_error", "share", "above_half"]].isna().all()
    assert (row["images"], row["undefined"]) == (0, 3)
    single = scored()
    row = one(caption_table(single[single["image"] == 1], checks()), model="looks", method="g")
    assert row["infidelity"] == 4
    assert np.isnan(row["infidelity_error"])


def test_seeds_are_apart_in_the_table_and_averaged_beside_the_paper_s() -> None:
    table = caption_table(scored(seeds=(0, 2)), checks(seeds=(0, 2)))
    assert len(table) == 20
    assert one(table, model="looks", method="g", seed=2)["infidelity"] == pytest.approx(6)
    table = compare_with_printed(table, METHODS)
    row = one(table, method="g")
    assert row["INFD, looks"] == pytest.approx(5)
    assert row["INFD, reads"] == pytest.approx(2)
    assert row["INFD, mean of both"] == pytest.approx(3.5)
    assert row["share on the used half, looks"] == pytest.approx(2 / 3)
    assert row["images with most attribution on the used half"] == pytest.approx(2 / 3)
    assert table["INFD, published"].tolist()[:4] == [0.55, 0.38, 0.35, 0]
    assert np.isnan(one(table, method="e")["INFD, published"])


# ---- statements


def verdicts(table: pd.DataFrame) -> list[str]:
    return list(table["verdict"])


def test_all_statements_hold_where_the_paper_s_result_is_found() -> None:
    table = statements(checks(), caption_table(scored(), checks()), METHODS)
    assert verdicts(table) == ["reproduced"] * 5
    assert table["measured"][0] == "lowest accuracy 97.0 %"
    assert ": 92.0 % and 48.0 %; " in table["measured"][1]
    assert ": 100.0 % and 52.0 %; " in table["measured"][2]
    assert table["measured"].tolist()[3:] == ["opt 5e-14", "g 2.5, sg 1.5, ig 0.75, opt 5e-14"]


@pytest.mark.parametrize(
    ("changed", "place"),
    [
        ({("reads", "both"): 95}, 0),
        ({("looks", "image"): 55}, 1),
        ({("looks", "caption"): 56}, 1),
        ({("reads", "caption"): 55}, 2),
    ],
)
def test_a_model_with_another_accuracy_is_not_reproduced(
    changed: dict[tuple[str, str], int], place: int
) -> None:
    measured = pd.concat([checks(), checks({**RIGHT, **changed}).assign(seed=1)])  # in one of two seeds
    result = verdicts(statements(measured, caption_table(scored(seeds=(0, 1)), measured), METHODS))
    assert [verdict == "reproduced" for verdict in result] == [at != place for at in range(5)]


@pytest.mark.parametrize(
    ("method", "infidelity", "expected"),
    [
        ("sg", 2.6, ["reproduced", "not reproduced"]),
        ("sg", 2.5, ["reproduced", "reproduced"]),
        ("sg", 0.7, ["reproduced", "not reproduced"]),
        ("opt", 1e-5, ["not reproduced", "reproduced"]),
        ("e", 0, ["reproduced", "reproduced"]),  # the paper does not have it
        ("ig", NAN, ["reproduced", "not tested"]),
        ("opt", NAN, ["not tested", "not tested"]),
    ],
)
def test_an_order_that_differs_is_not_reproduced(method: str, infidelity: float, expected: list[str]) -> None:
    table = caption_table(scored(), checks())
    table.loc[table["method"] == method, "infidelity"] = infidelity
    assert verdicts(statements(checks(), table, METHODS))[3:] == expected


def test_an_order_needs_two_methods_and_the_optimum_its_own() -> None:
    table = caption_table(scored(), checks())
    for methods, expected in ((["g", "e"], ["not tested"] * 2), (["g", "ig"], ["not tested", "reproduced"])):
        few = table[table["method"].isin(methods)]
        assert verdicts(statements(checks(), few, METHODS))[3:] == expected


def test_methods_that_the_paper_does_not_tell_apart_have_no_order() -> None:
    measured = checks()
    table = caption_table(scored(), measured)
    alike = {**METHODS, "e": "gradient"}  # local Grad beside global Grad, of 6 and 2.5
    table = statements(measured, table, alike)
    assert verdicts(table)[4] == "reproduced"
    assert table["measured"][4] == "g 2.5, e 6, sg 1.5, ig 0.75, opt 5e-14"


def test_the_answer_is_the_share_of_attribution_on_the_used_half() -> None:
    rows = [
        ("looks", 0, "g", "image", 0.9, 0.01),
        ("looks", 0, "e", "image", 0.5, 0.1),
        ("reads", 0, "g", "caption", 0.8, 0.05),
        ("reads", 0, "e", "caption", 0.6, 0.02),
        ("reads", 0, "optimal", "caption", 0.4, 0.02),
        ("both", 0, "g", "", NAN, NAN),
    ]
    table = pd.DataFrame(rows, columns=["model", "seed", "method", "used", "share", "share_error"])
    table["reference"] = table["method"] == "optimal"
    detail = "share of attribution, 50 % is no preference: "
    assert answer({"table": table}) == [
        Answer(
            "highlights the picture, which looks uses",
            "Only g",
            f"{detail}g 90 % [88, 92 %], e 50 % [30, 70 %]",
        ),
        Answer(
            "highlight the caption, which reads uses",
            "All methods",
            f"{detail}g 80 % [70, 90 %], e 60 % [56, 64 %]",
        ),
        Answer("both does not use one half in all seeds, so its maps are not judged."),
    ]


# ---- figures


def bars(figure: Figure) -> list[list[float]]:
    return [
        [patch.get_height() for patch in container.patches]
        for container in figure.axes[0].containers
        if hasattr(container, "patches")
    ]


def whiskers(figure: Figure) -> list[list[float]]:
    lengths = []
    for container in figure.axes[0].containers:
        if hasattr(container, "patches"):
            segments = container.errorbar.lines[2][0].get_segments()
            lengths.append([float(np.ptp(segment[:, 1])) / 2 for segment in segments if len(segment)])
    return lengths


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts if text.get_text()]


def test_bars_are_the_table_in_the_study_s_order() -> None:
    table = caption_table(scored(), checks())
    figure = infidelity_bars(table)
    assert bars(figure) == [
        pytest.approx(table.loc[table["model"] == model, "infidelity"].tolist())
        for model in ("looks", "reads")
    ]
    errors = table.loc[table["model"] == "looks", "infidelity_error"]
    assert whiskers(figure)[0] == pytest.approx((1.96 * errors).tolist())
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == list(INFIDELITY)
    assert texts(figure) == ["0", "0"]  # the optimal explanation, of both models
    shares = share_bars(table)
    assert bars(shares)[1] == pytest.approx((100 * table.loc[table["model"] == "reads", "share"]).tolist())
    assert whiskers(shares)[0][0] == pytest.approx(196 * table["share_error"][0])
    assert 50 in [line.get_ydata()[0] for line in shares.axes[0].lines if line.get_linestyle() == "--"]
    assert texts(shares) == []


# ---- the scripts


def test_the_script_writes_tables_a_page_and_figures(tmp_path: Path) -> None:
    score_table.write(tmp_path / "scores.parquet", scored())
    predictions().to_parquet(tmp_path / "predictions.parquet")
    names = {"premise": "premise.csv", "table": "table.csv", "page": "caption.html"}
    names |= {"infidelity": "infidelity.svg", "attribution": "attribution.svg"}
    output = {name: tmp_path / file for name, file in names.items()}
    files = {"scores": [tmp_path / "scores.parquet"], "predictions": [tmp_path / "predictions.parquet"]}
    tables = {name: output.pop(name) for name in ("premise", "table")}
    run_script("tabulate_caption", tmp_path, {**MODELS, "data": DATA, "references": ["g"]}, files, tables)
    run_script(
        "plot_caption",
        tmp_path,
        {"study": "c", "methods": METHODS, "labels": {}, "setting": ""},
        tables,
        output,
    )
    table = pd.read_csv(tables["table"])
    assert table["infidelity"].tolist() == pytest.approx(
        caption_table(scored(), checks())["infidelity"].tolist()
    )
    assert set(table.loc[table["reference"], "method"]) == {"g"}
    assert len(pd.read_csv(tables["premise"])) == 6
    page = output["page"].read_text(encoding="utf-8")
    assert page.count("<caption>") == 4
    assert "not reproduced" not in page
    for name in ("infidelity", "attribution"):
        assert output[name].read_text().startswith("<?xml")


def test_the_script_composes_aligned_sets(tmp_path: Path) -> None:
    count = 24
    image = np.random.default_rng(0).integers(1, 256, (count, 1, 16, 16), dtype=np.uint8)
    split, label = (np.arange(count) % 4 == 0).astype(np.uint8), np.arange(count) // 12
    block = {"image": image, "split": split, "label_class": label}
    zarr_store.write(
        tmp_path / "source.zarr.zip", [block], kind="data", attributes={"classes": {"class": ["3", "8"]}}
    )
    parameters = {"image_noise": 0.5, "caption_noise": 0.0, "images_per_class": 0, "seed": 4}
    made = {}
    for member in ("both", "image"):
        settings = {"classes": ["8", "3"], "captions": [], "parameters": parameters, "member": member}
        files, output = [tmp_path / "source.zarr.zip"], [tmp_path / f"{member}.zarr.zip"]
        run_script("compose_caption", tmp_path, settings, files, output)
        with zarr_store.open_store(tmp_path / f"{member}.zarr.zip", kind="data") as data:
            assert data.attributes["classes"] == {"class": ["8", "3"]}
            made[member] = {name: data[name][:] for name in data.names}
    assert sorted(made["both"]) == ["aligned", "image", "label_class", "mask", "source", "split"]
    assert (made["both"]["image"][..., :16] == image[made["both"]["source"]]).all()
    assert (made["both"]["label_class"] == 1 - label).all()
    assert (made["both"]["aligned"] == made["image"]["aligned"]).all()
    assert 0 < made["both"]["aligned"].sum() < count
