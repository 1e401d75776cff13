"""The table of raters that are not images, and what rates methods in each kind of study."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from jobs import run_script

from saliency_assay.registry.records import resolve
from saliency_assay.reliability.agreement import COLUMNS, agreement_table
from saliency_assay.reliability.order_tables import order_tables
from saliency_assay.reliability.raters import agreement, halves
from saliency_assay.reliability.reliability_tables import (
    consistency_table,
    rankings_table,
    reliability_table,
    variance_table,
)
from saliency_assay.storage import WHOLE_SET, zarr_store
from saliency_assay.storage import score_tables as scores
from saliency_assay.studies import STUDY_KINDS

METHODS = ("smooth", "gradcam", "edge", "random")
LABELS = np.arange(30) % 3
SPLITS = 30
HIGHER = {"aopc": "higher"}


def row(**changes: Any) -> dict[str, Any]:
    known = {"study": "s", "data": "d", "model": "m", "seed": 0, "method": "edge", "metric": "aopc"}
    return {**known, "variant": "aopc", "image": 0, "score": 0.0, **changes}


def score_table(
    variants: tuple[str, ...] = ("a L=1", "a L=2"), seeds: tuple[int, ...] = (0, 1)
) -> pd.DataFrame:
    generator = np.random.default_rng(0)
    named = [(variant, seed, method) for variant in variants for seed in seeds for method in METHODS]
    rows = [
        row(variant=variant, seed=seed, method=method, image=image, score=generator.normal())
        for variant, seed, method in named
        for image in range(0, 30, 2)
    ]
    return pd.DataFrame(rows)


def paired_means(table: pd.DataFrame, *by: str) -> list[list[float]]:
    """Least squares of score = image + method, on means over seeds, for each level of ``by``."""
    means = []
    for _, part in table.groupby(list(by)):
        scores = part.groupby(["image", "method"])["score"].mean().dropna().reset_index()
        design = pd.get_dummies(scores["method"])[list(METHODS)]
        design = pd.concat([design, pd.get_dummies(scores["image"])], axis=1).to_numpy(float)
        solution = np.linalg.lstsq(design, scores["score"].to_numpy(), rcond=None)[0]
        means.append(list(solution[: len(METHODS)]))
    return means


def test_every_kind_of_rater_has_a_row_by_its_means() -> None:
    table = score_table()
    table.loc[(table["image"] == 4) & (table["method"] == "smooth"), "score"] = np.nan
    rows = agreement_table(table, HIGHER, LABELS, splits=SPLITS)
    assert list(rows.columns) == COLUMNS
    assert list(rows[["variant", "between", "raters", "methods"]].itertuples(index=False, name=None)) == [
        *(
            (variant, *kind)
            for variant in ("a L=1", "a L=2")
            for kind in (("seeds", 2, 4), ("classes", 3, 4), ("halves", 2, 4))
        ),
        ("", "variants", 2, 4),
    ]
    second = table.assign(label=LABELS[table["image"]])
    second = second[second["variant"] == "a L=2"]
    expected_means = {
        3: paired_means(second, "seed"),
        4: paired_means(second, "label"),
        6: paired_means(table, "variant"),
    }
    for place, means in expected_means.items():
        expected = agreement(np.array(means))
        names = ["alpha", "correlation", "low", "high"]
        assert rows.loc[place, names].to_list() == pytest.approx([*vars(expected).values()], abs=1e-12)
    wide = second.groupby(["image", "method"])["score"].mean().unstack()[list(METHODS)]
    of_halves = halves(wide.to_numpy(), splits=SPLITS)
    assert rows.loc[5, "correlation"] == of_halves.correlation
    assert np.isnan(rows.loc[5, "alpha"])


def by_level(levels: dict[str, float], **names: Any) -> pd.DataFrame:
    """Scores on 20 images, of which the last 10 are hard: a level of each method and noise."""
    noise = 0.1 * np.random.default_rng(names.get("seed", 0)).normal(size=(len(levels), 20))
    return pd.DataFrame(
        [
            row(method=method, image=image, score=level - 10 * (image >= 10) + noise[place, image], **names)
            for place, (method, level) in enumerate(levels.items())
            for image in range(20)
        ]
    )


def test_raters_agree_on_the_distance_from_a_target() -> None:
    """The scores of one seed have the other sign."""
    levels = dict(zip(METHODS, (30.0, 40.0, 50.0, 60.0), strict=True))
    opposite = {method: -level for method, level in levels.items()}
    table = pd.concat([by_level(levels, seed=0), by_level(opposite, seed=1)])
    labels = np.arange(20) % 2
    near = agreement_table(table, {"aopc": "target 0"}, labels, splits=SPLITS)
    assert list(near["between"]) == ["seeds", "classes", "halves"]
    assert (near["correlation"] == 1).all()
    for direction in ("higher", "lower"):
        rows = agreement_table(table, {"aopc": direction}, labels, splits=SPLITS).set_index("between")
        assert rows.loc["seeds", "correlation"] == -1


def test_one_rater_alone_has_no_row() -> None:
    table = score_table(("a",), (0,))
    rows = agreement_table(table[table["image"] % 3 == 0], HIGHER, LABELS, splits=SPLITS)
    assert list(rows["between"]) == ["halves"]
    whole = table.assign(image=WHOLE_SET).drop_duplicates("method")
    assert list(agreement_table(whole, HIGHER, LABELS).columns) == COLUMNS
    assert agreement_table(whole, HIGHER, LABELS).empty


# --- what rates methods -------------------------------------------------------------------------------------


def written(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / f"{len(list(folder.iterdir()))}.parquet"
    scores.write(path, pd.DataFrame(rows))
    return path


def rated(kind: str, paths: list[Path], data: str = "d", models: Sequence[str] = ("m",)) -> pd.DataFrame:
    """Return the scores that rate the methods of a kind of study, as one chunk."""
    chunks = list(resolve(STUDY_KINDS[kind].rated_scores)(paths, data=data, models=models).chunks("metric"))
    assert len(chunks) <= 1
    return chunks[0] if chunks else pd.DataFrame()


def keys(table: pd.DataFrame) -> list[tuple[object, ...]]:
    names = ["data", "model", "metric", "variant", "image", "score"]
    return list(table[names].itertuples(index=False, name=None))


def test_bam_rates_in_the_objects_mask_on_all_sets(tmp_path: Path) -> None:
    pair = written(
        tmp_path,
        row(metric="mcs", variant="object", data="b_os", model="f_o-f_s", image=3, score=0.5),
        row(metric="mcs", variant="random", data="b_os", model="f_o-f_s", image=3),
        row(metric="mcs", variant="object", data="b_os_scale", model="f_o-f_s", image=3, score=0.25),
        row(metric="idr", variant="object", data="b_os", model="f_s", image=3, score=1),
        row(metric="concept_attribution", variant="object", data="b_os", model="f_s", image=3),
    )
    change = written(
        tmp_path,
        row(metric="iir", variant="object", data="b_0s", model="f_0s", image=4, score=1),
        row(metric="iir_difference", variant="object", data="b_0s", model="f_0s", image=4, score=0.1),
        row(metric="iir_difference", variant="outside", data="b_0s", model="f_0s", image=4),
    )
    rating = rated("bam", [pair, change], "b", ["f_o", "f_s"])
    assert keys(rating) == [
        ("b", "f_o, f_s", "mcs", "mcs", 3, 0.5),
        ("b", "f_o, f_s", "mcs", "mcs scale", 3, 0.25),
        ("b", "f_o, f_s", "idr", "idr", 3, 1.0),
        ("b", "f_o, f_s", "iir", "iir", 4, 1.0),
        ("b", "f_o, f_s", "iir_difference", "iir_difference", 4, 0.1),
    ]


def test_a_caption_study_rates_under_both_models(tmp_path: Path) -> None:
    paths = [
        written(tmp_path, row(metric="infidelity", variant="infidelity_halves", model=model, score=score))
        for model, score in (("f_picture", 0.5), ("f_caption", 0.25))
    ]
    rating = rated("caption", paths, "d", ["f_picture", "f_caption"])
    assert keys(rating) == [
        ("d", "f_picture, f_caption", "infidelity", f"infidelity_halves {model}", 0, score)
        for model, score in (("f_picture", 0.5), ("f_caption", 0.25))
    ]


def test_retraining_rates_by_accuracy_on_what_is_left(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        *(row(metric="accuracy", variant=f"roar/mean/{step}", score=step / 16) for step in (0, 1, 10)),
        row(metric="accuracy", variant="iteroar/zero/1", score=1),
        row(metric="accuracy_train", variant="roar/mean/1", image=-1),
        row(metric="cma", variant="roar/mean/1"),
    )
    rating = rated("retrain", [path], "d", ["m"])
    assert keys(rating) == [
        ("d", "m", "accuracy", "roar/mean iteration 1", 0, 1 / 16),
        ("d", "m", "accuracy", "roar/mean iteration 10", 0, 10 / 16),
        ("d", "m", "accuracy", "iteroar/zero iteration 1", 0, 1.0),
    ]


def retrained(path: Path) -> None:
    """Two seeds of six arms, in the order in which they are tabulated, f_0 and other scores among them."""
    generator = np.random.default_rng(0)
    with scores.writer(path) as append:
        for fill in ("zero", "mean"):
            for place, method in enumerate(METHODS[:3]):
                rows = [
                    row(metric=metric, variant=f"iteroar/{fill}/{step}", seed=seed, method=method)
                    | {"image": image, "score": float(generator.random() < 0.3 + 0.1 * place + 0.02 * step)}
                    for seed in (1, 0)
                    for metric in ("accuracy", "cma")
                    for step in range(2)
                    for image in range(12)
                ]
                append(pd.DataFrame(rows))


def test_accuracy_without_the_least_important_pixels_is_better_if_higher(tmp_path: Path) -> None:
    rows = [
        row(metric="accuracy", variant=f"{protocol}/zero/{step}", method="a") | {"image": image, "score": 1.0}
        for protocol in ("roar", "roar_lerf")
        for step in range(2)
        for image in range(3)
    ]
    with scores.writer(tmp_path / "scores.parquet") as append:
        append(pd.DataFrame(rows))
    kind = STUDY_KINDS["retrain"]
    table = resolve(kind.rated_scores)([tmp_path / "scores.parquet"], data="d", models=["m"])
    expected = [("accuracy", "roar/zero iteration 1"), ("accuracy_lerf", "roar_lerf/zero iteration 1")]
    for keys in (("metric",), ("metric", "variant")):
        names = [part[["metric", "variant"]].drop_duplicates() for part in table.chunks(*keys)]
        assert [tuple(name) for part in names for name in part.itertuples(index=False)] == expected
    directions = {score.name: score.direction for score in kind.scores}
    assert directions == {"accuracy": "lower", "accuracy_lerf": "higher"}


def test_tables_of_retraining_are_the_same_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores, "ROW_GROUP", 40)
    retrained(path := tmp_path / "scores.parquet")
    scores_in_parts = resolve(STUDY_KINDS["retrain"].rated_scores)([path], data="d", models=["m"])
    of_seed = list(scores_in_parts.chunks("metric", "variant", "seed"))
    assert [len(part) for part in of_seed] == [3 * 12] * 4
    directions, whole = {"accuracy": "lower"}, rated("retrain", [path])
    options = {"resamples": 5, "level": 0.9}
    tables: list[tuple[Any, tuple[str, ...]]] = [
        (lambda of: reliability_table(of, directions, ["edge"], **options), ("metric", "variant", "seed")),
        (lambda of: agreement_table(of, directions, LABELS, splits=3), ("metric", "variant")),
        (lambda of: pd.concat(order_tables(of, directions, ["edge"])), ("metric", "variant")),
        (lambda of: consistency_table(of, directions), ("seed", "method")),
        (lambda of: rankings_table(of, directions), ("metric", "variant")),
        (variance_table, ("metric", "variant")),
    ]
    for tabulated, keys in tables:
        in_parts = tabulated(scores_in_parts.chunks(*keys))
        assert not in_parts.empty
        assert in_parts.to_csv() == tabulated(whole).to_csv()


@pytest.mark.parametrize("kind", [kind.name for kind in STUDY_KINDS.values() if kind.is_rated])
def test_scores_of_some_images_are_those_rows_of_all(kind: str, tmp_path: Path) -> None:
    metric, variant = {
        "bam": ("mcs", "object"),
        "caption": ("infidelity", "infidelity"),
        "retrain": ("accuracy", "roar/mean/1"),
    }.get(kind, ("aopc", "aopc"))
    path = written(
        tmp_path, *(row(metric=metric, variant=variant, image=image, score=image / 4) for image in range(4))
    )
    everything, read = rated(kind, [path]), resolve(STUDY_KINDS[kind].rated_scores)
    assert len(everything) == 4
    for images in (np.array([3, 1]), [2], []):
        tables = list(read([path], data="d", models=["m"], images=images).chunks("metric", "variant"))
        selected = [score for table in tables for score in table["score"]]
        assert selected == sorted(image / 4 for image in images)


def test_the_job_knows_the_cut_outs_and_scenes_of_bam(tmp_path: Path) -> None:
    """Equal methods on 20 cut-outs and 20 scenes, which account for most of their differences."""
    generator = np.random.default_rng(0)
    cutout, scene = np.divmod(np.arange(400), 20)
    table = pd.concat(
        pd.DataFrame(
            row(method=method, metric="mcs", variant="object", data="b_os", model="f_o-f_s")
            | {"image": np.arange(400), "score": values}
        )
        for method, values in {
            name: generator.normal(size=20)[cutout] + generator.normal(size=20)[scene] for name in "abc"
        }.items()
    )
    scores.write(tmp_path / "scores.parquet", table)
    arrays = {"label_scene": scene, "cutout": cutout, "scene": scene}
    zarr_store.write(tmp_path / "data.zarr.zip", [arrays], kind="data", attributes={})
    settings = {"rated_scores": STUDY_KINDS["bam"].rated_scores, "variants": "variants", "data": "b"}
    settings |= {"models": ["f_o", "f_s"], "label": "scene", "baselines": []}
    settings |= {"directions": {"mcs": "higher"}, "resamples": 50, "level": 0.9}
    settings |= {"printed_alpha": {}, "printed_correlation": {}}
    settings |= {"ranges": {"mcs": [-1.0, None]}, "rule": {"by": "wins", "margin": None, "margin_unit": "sd"}}
    settings |= {"retrained": False, "families": [], "controls": {}}
    names = ("reliability", "agreement", "order", "pairs", "consistency", "rankings", "variance", "controls")
    output = {name: tmp_path / f"{name}.csv" for name in names}
    files = {"scores": [tmp_path / "scores.parquet"], "data": tmp_path / "data.zarr.zip"}
    run_script("tabulate_reliability", tmp_path, settings, files, output)
    order = pd.read_csv(output["order"])
    assert set(order["over"]) == {"cut-outs × scenes"}
    assert (order[["rank_low", "rank_high"]] == [1, 3]).all(axis=None)
    alone, _ = order_tables(table, {"mcs": "higher"})
    assert (order["high"] - order["low"] > 2 * (alone["high"] - alone["low"])).all()
    [alpha] = pd.read_csv(output["reliability"]).to_dict("records")
    [without] = reliability_table(table, {"mcs": "higher"}, (), resamples=50, level=0.9).to_dict("records")
    assert alpha["alpha_high"] - alpha["alpha_low"] > without["alpha_high"] - without["alpha_low"]
    assert all(path.exists() for path in output.values())


@pytest.mark.parametrize("kind", [kind.name for kind in STUDY_KINDS.values() if kind.is_rated])
def test_a_study_without_a_score_that_rates_has_empty_tables(kind: str, tmp_path: Path) -> None:
    rows = [] if kind in ("fidelity", "grid", "parts", "validity") else [row(metric="other")]
    path = tmp_path / "0.parquet"
    scores.write(path, pd.DataFrame(rows, columns=list(scores.COLUMNS)))
    assert rated(kind, [path]).empty
