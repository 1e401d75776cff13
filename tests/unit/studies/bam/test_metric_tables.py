"""Tables of BAM's premise and metrics against numbers worked out by hand or in plain NumPy."""

import numpy as np
import pandas as pd
import pytest

from saliency_assay.runtime.provenance import seed_of
from saliency_assay.studies.bam.metric_tables import metrics_table, premise, spread

NAN = float("nan")

# --- the premise --------------------------------------------------------------------------------------------


def predictions_of(
    model: str, data: str, right: str, probability: list[float], seed: int = 0, split: str = "test"
) -> pd.DataFrame:
    """Predictions of images 10, 11, …: ``right`` has a 1 where the prediction is right."""
    wrong = [int(digit == "0") for digit in right]
    return pd.DataFrame(
        {
            "model": model,
            "seed": seed,
            "data": data,
            "image": range(10, 10 + len(right)),
            "split": split,
            "label": 3,
            "predicted": [3 + change for change in wrong],
            "probability": probability,
        }
    )


def all_predictions(seed: int = 0) -> pd.DataFrame:
    tables = [
        # Of the three that f_o has right, the first rises, the second is equal and the third falls.
        predictions_of("f_o", "d_os", "1110", [0.6, 0.7, 0.8, 0.1], seed),
        predictions_of("f_o", "d_og", "1111", [0.61, 0.7, 0.79, 0.9], seed),
        predictions_of("f_o", "d_0s", "0001", [0.1, 0.1, 0.1, 0.5], seed),
        predictions_of("f_s", "d_os", "1001", [0.6, 0.2, 0.3, 0.5], seed),
        predictions_of("f_s", "d_0s", "1101", [0.9, 0.6, 0.3, 0.9], seed),
        predictions_of("f_s", "d_og", "0000", [0.2, 0.2, 0.2, 0.2], seed),
        # None of these may count.
        predictions_of("f_o", "d_os", "0000", [0.0] * 4, seed, split="train").assign(image=range(4)),
        predictions_of("f_o", "other_os", "0000", [0.0] * 4, seed),
        predictions_of("other", "d_os", "0000", [0.0] * 4, seed),
    ]
    # Rows of the sets in different orders: images are matched by their number.
    return pd.concat([tables[0].iloc[::-1], *tables[1:]], ignore_index=True)


def premise_of(predictions: pd.DataFrame) -> pd.DataFrame:
    return premise(predictions, data="d", object_model="f_o", scene_model="f_s")


def test_premise_by_hand_and_as_printed() -> None:
    table = premise_of(all_predictions())
    assert list(table.columns) == ["model", "seed", "set", "check", "percent", "images", "printed"]
    expected = [  # percentages of four images or of those right; printed: Yang & Kim 2019, Fig. 2
        ("f_o", "d_os", "accuracy", 75.0, 4, 91.1),
        ("f_o", "d_og", "accuracy", 100.0, 4, 93.1),
        ("f_o", "d_0s", "accuracy", 25.0, 4, 9.7),
        ("f_o", "d_os → d_og", "confidence rises when the scene is removed", 100 / 3, 3, 86.7),
        ("f_s", "d_os", "accuracy", 50.0, 4, 94.0),
        ("f_s", "d_0s", "accuracy", 75.0, 4, 95.5),
        ("f_s", "d_og", "accuracy", 0.0, 4, 9.8),
        ("f_s", "d_os → d_0s", "confidence rises when the object is removed", 100.0, 2, 79.5),
    ]
    shown = table.drop(columns="seed").assign(check=table["check"].str.replace(r",.*", "", regex=True))
    pd.testing.assert_frame_equal(
        shown, pd.DataFrame(expected, columns=list(shown.columns)), check_dtype=False
    )
    assert table["seed"].tolist() == [0] * 8
    assert table["check"][0] == "accuracy, object on scene, as in training"


def test_premise_of_each_seed() -> None:
    second = all_predictions(seed=7)
    second.loc[second["data"] == "d_og", "predicted"] = 4
    table = premise_of(pd.concat([all_predictions(), second], ignore_index=True))
    assert table.groupby("seed").size().to_dict() == {0: 8, 7: 8}
    on_gray = table[(table["model"] == "f_o") & (table["set"] == "d_og")]
    assert dict(zip(on_gray["seed"], on_gray["percent"], strict=True)) == {0: 100.0, 7: 0.0}


def test_confidence_without_a_right_image_is_undefined() -> None:
    predictions = all_predictions()
    predictions.loc[(predictions["model"] == "f_s") & (predictions["data"] == "d_os"), "predicted"] = 4
    last = premise_of(predictions).iloc[-1]
    assert np.isnan(last["percent"])
    assert last["images"] == 0


# --- MCS and IDR --------------------------------------------------------------------------------------------

SCORED = (("mcs", "object"), ("mcs", "random"), ("idr", "object"), ("idr", "outside"))
PARAMETERS = {"mcs": {"samples": 4, "sample_size": 7}, "idr": {"samples": 9, "sample_size": 5}}
IMAGES = 24


def scores(
    seeds: tuple[int, ...] = (0,),
    methods: tuple[str, ...] = ("edge", "gradcam"),
    data: str = "d_os",
    draw: int = 8,
) -> pd.DataFrame:
    """A score table with some of everything undefined."""
    generator = np.random.default_rng(draw)
    tables = []
    for seed in seeds:
        for method in methods:
            for metric, variant in SCORED:
                sampled = (
                    generator.normal(size=IMAGES) if metric == "mcs" else generator.integers(0, 2, IMAGES)
                )
                values = sampled.astype(float)
                values[[3, 5, 11 + seed]] = NAN
                rows = {"seed": seed, "method": method, "metric": metric, "variant": variant}
                tables.append(pd.DataFrame({**rows, "image": range(IMAGES), "score": values}))
            for model, variant, count in (("f_o", "object", 1), ("f_s", "object", 2), ("f_o", "random", 9)):
                values = np.where(np.arange(IMAGES) < count + seed, NAN, 0.5)
                rows = {"seed": seed, "method": method, "metric": "concept_attribution", "variant": variant}
                tables.append(pd.DataFrame({**rows, "image": range(IMAGES), "score": values, "model": model}))
    return pd.concat(tables, ignore_index=True).assign(data=data)


def plain_spread(values: np.ndarray, seed: int, samples: int, sample_size: int) -> float:
    """The sample deviation of means over samples without replacement, written out."""
    generator = np.random.default_rng(seed)
    means = []
    for _ in range(samples):
        shuffled = [values[position] for position in generator.permutation(len(values))]
        means.append(sum([value for value in shuffled if value == value][:sample_size]) / sample_size)
    center = sum(means) / samples
    return float((sum((mean - center) ** 2 for mean in means) / (samples - 1)) ** 0.5)


BASELINE = {"mcs": "random", "idr": "outside"}
MEASURED = ["score", "spread", "baseline", "baseline_spread", "images", "undefined"]


def test_metrics_equal_numpys() -> None:
    table = scores(seeds=(0, 4))
    result = metrics_table(table, PARAMETERS)
    assert len(result) == 8  # two metrics, methods and seeds
    for row in result.to_dict("records"):
        of_row = table.query("metric == @row['metric'] and method == @row['method'] and seed == @row['seed']")
        shown = (("object", "score", "spread"), (BASELINE[row["metric"]], "baseline", "baseline_spread"))
        for variant, mean, deviation in shown:
            values = of_row.loc[of_row["variant"] == variant, "score"].to_numpy()
            assert row[mean] == pytest.approx(np.nanmean(values), rel=1e-12)
            parameters, seed = PARAMETERS[row["metric"]], seed_of(row["seed"], "spread", row["metric"])
            assert row[deviation] == spread(values, generator=np.random.default_rng(seed), **parameters)
            assert row[deviation] == pytest.approx(plain_spread(values, seed, **parameters), rel=1e-9)
        assert row["images"] == IMAGES - 3
        assert row["undefined"] == 3  # of this metric alone, though more maps are
    assert result[["spread", "baseline_spread"]].min(axis=None) > 0.01


def test_a_method_without_a_score_is_shown_as_such() -> None:
    table = scores()
    table.loc[(table["method"] == "edge") & (table["variant"] == "object"), "score"] = NAN
    result = metrics_table(table, PARAMETERS).set_index(["metric", "method"])
    for metric in PARAMETERS:
        row = result.loc[(metric, "edge")]
        assert row["data"] == "d_os"
        assert np.isnan(row[["score", "spread"]].to_numpy(dtype=float)).all()
        assert row["undefined"] == IMAGES
        assert not np.isnan(row["baseline"])
        assert result.loc[(metric, "gradcam"), "undefined"] == 3


def test_each_set_has_its_own_rows() -> None:
    """Of the same images and samples: the table of one is what it is without the others."""
    one, other = scores(seeds=(0, 4)), scores(seeds=(0, 4), data="d_os_scale", draw=9)
    result = metrics_table(pd.concat([one, other], ignore_index=True), PARAMETERS)
    columns = ["metric", "data", "method", "seed", *MEASURED]
    assert list(result.columns) == columns
    assert result["data"].tolist() == (["d_os"] * 4 + ["d_os_scale"] * 4) * 2
    for data, table in (("d_os", one), ("d_os_scale", other)):
        of_data = result[result["data"] == data].reset_index(drop=True)
        pd.testing.assert_frame_equal(of_data, metrics_table(table, PARAMETERS))
    assert (result["score"][:4].to_numpy() != result["score"][4:8].to_numpy()).all()


def test_configured_sets_are_shown_without_an_image() -> None:
    table = scores(methods=("edge",))
    result = metrics_table(table, PARAMETERS, sets=["d_os", "d_os_location"])
    assert result["data"].tolist() == ["d_os", "d_os_location"] * 2
    assert np.isnan(result.loc[result["data"] == "d_os_location", MEASURED[:4]].to_numpy(dtype=float)).all()
    nothing = table[table["metric"] == "concept_attribution"]
    empty = metrics_table(nothing, PARAMETERS, sets=["d_os"])
    assert empty[["metric", "data", "method", "images"]].to_numpy().tolist() == [
        ["mcs", "d_os", "edge", 0],
        ["idr", "d_os", "edge", 0],
    ]
    assert len(metrics_table(nothing, PARAMETERS)) == 0  # nobody knows of which set
