"""The table of raters that are not images, and what rates methods in each kind of study."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from saliency_assay import scores
from saliency_assay.catalogue import CATALOGUE
from saliency_assay.reliability_raters import agreement, halves
from saliency_assay.report.agreement import COLUMNS, agreement_table
from saliency_assay.report.figures import DIRECTIONS
from saliency_assay.report.rated import OF_BAM, Rated, rated_scores
from saliency_assay.report.reliability import (
    consistency_table,
    order_table,
    reliability_table,
    variance_table,
)

METHODS = ("smooth", "gradcam", "edge", "random")
LABELS = np.arange(30) % 3
SPLITS = 30


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


def mean_of(table: pd.DataFrame, method: str, **equal: object) -> float:
    """The mean over images of the means over seeds of what equals."""
    for name, value in {**equal, "method": method}.items():
        table = table[table[name] == value]
    return float(np.nanmean([part["score"].mean() for _, part in table.groupby("image")]))


def test_every_kind_of_rater_has_a_row_by_its_means() -> None:
    table = score_table()
    table.loc[(table["image"] == 4) & (table["method"] == "smooth"), "score"] = np.nan
    found = agreement_table(table, LABELS, splits=SPLITS)
    assert list(found.columns) == COLUMNS
    assert list(found[["variant", "between", "raters", "methods"]].itertuples(index=False, name=None)) == [
        *(
            (variant, *kind)
            for variant in ("a L=1", "a L=2")
            for kind in (("seeds", 2, 4), ("classes", 3, 4), ("halves", 2, 4))
        ),
        ("", "variants", 2, 4),
    ]
    classed = table.assign(label=LABELS[table["image"]])
    second = classed[classed["variant"] == "a L=2"]
    expected = {
        "seeds": [[mean_of(second, method, seed=seed) for method in METHODS] for seed in (0, 1)],
        "classes": [[mean_of(second, method, label=label) for method in METHODS] for label in range(3)],
    }
    variants = [
        [mean_of(table, method, variant=variant) for method in METHODS] for variant in ("a L=1", "a L=2")
    ]
    for place, rated in ((3, expected["seeds"]), (4, expected["classes"]), (6, variants)):
        wanted = agreement(np.array(rated))
        names = ["alpha", "correlation", "low", "high"]
        assert found.loc[place, names].to_list() == pytest.approx([*vars(wanted).values()], abs=1e-12)
    wide = second.groupby(["image", "method"])["score"].mean().unstack()[list(METHODS)]
    wanted = halves(wide.to_numpy(), splits=SPLITS)
    assert found.loc[5, "correlation"] == wanted.correlation
    assert np.isnan(found.loc[5, "alpha"])


def test_one_rater_alone_has_no_row() -> None:
    table = score_table(("a",), (0,))
    found = agreement_table(table[table["image"] % 3 == 0], LABELS, splits=SPLITS)
    assert list(found["between"]) == ["halves"]
    whole = table.assign(image=scores.WHOLE_SET).drop_duplicates("method")
    assert list(agreement_table(whole, LABELS).columns) == COLUMNS
    assert agreement_table(whole, LABELS).empty


def test_variants_that_are_models_are_called_so() -> None:
    found = agreement_table(score_table(), LABELS, variants="models", splits=SPLITS)
    assert found["between"].iloc[-1] == "models"


# --- what rates methods -------------------------------------------------------------------------------------


def written(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / f"{len(list(folder.iterdir()))}.parquet"
    scores.write(path, pd.DataFrame(rows))
    return path


def keys(table: pd.DataFrame) -> list[tuple[object, ...]]:
    names = ["data", "model", "metric", "variant", "image", "score"]
    return list(table[names].itertuples(index=False, name=None))


def test_all_scores_of_single_maps_rate_methods(tmp_path: Path) -> None:
    path = written(tmp_path, row(variant="aopc L=1"), row(image=-1, metric="other"))
    found = rated_scores([path], "fidelity", data="d", models=["m"])
    assert keys(found) == [("d", "m", "aopc", "aopc L=1", 0, 0.0), ("d", "m", "other", "aopc", -1, 0.0)]


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
    found = rated_scores([pair, change], "bam", data="b", models=["f_o", "f_s"])
    assert keys(found) == [
        ("b", "f_o, f_s", "mcs", "mcs", 3, 0.5),
        ("b", "f_o, f_s", "mcs", "mcs scale", 3, 0.25),
        ("b", "f_o, f_s", "idr", "idr", 3, 1.0),
        ("b", "f_o, f_s", "iir", "iir", 4, 1.0),
        ("b", "f_o, f_s", "iir_difference", "iir_difference", 4, 0.1),
    ]


def test_directions_of_bam_are_those_of_its_figures() -> None:
    found = {
        score.name: score.direction
        for name in ("mcs", "idr", "iir")
        for score in CATALOGUE.metrics[name].scores
    }
    assert found == DIRECTIONS
    assert tuple(found) == OF_BAM


def test_a_caption_study_rates_under_both_models(tmp_path: Path) -> None:
    paths = [
        written(tmp_path, row(metric="infidelity", variant="infidelity_halves", model=model, score=score))
        for model, score in (("f_picture", 0.5), ("f_caption", 0.25))
    ]
    found = rated_scores(paths, "caption", data="d", models=["f_picture", "f_caption"])
    assert keys(found) == [
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
    found = rated_scores([path], "retrain", data="d", models=["m"])
    assert keys(found) == [
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
                    for step in range(4)
                    for image in range(30)
                ]
                append(pd.DataFrame(rows))


def test_tables_of_retraining_are_the_same_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores, "ROW_GROUP", 100)
    retrained(path := tmp_path / "scores.parquet")
    rated = Rated([path], "retrain", "d", ["m"])
    of_seed = list(rated.parts("metric", "variant", "seed"))
    assert [len(part) for part in of_seed] == [3 * 30] * 12
    directions, whole = {"accuracy": "lower"}, rated.whole
    sampled = {"resamples": 40}
    for in_parts, at_once in (
        (
            reliability_table(of_seed, ["edge"], level=0.9, **sampled),
            reliability_table(whole, ["edge"], level=0.9, **sampled),
        ),
        (
            agreement_table(rated.parts("metric", "variant"), LABELS, splits=SPLITS),
            agreement_table(whole, LABELS, splits=SPLITS),
        ),
        (
            order_table(rated.parts("metric", "variant"), directions, ["edge"], **sampled),
            order_table(whole, directions, ["edge"], **sampled),
        ),
        (
            consistency_table(rated.parts("seed", "method"), directions),
            consistency_table(whole, directions),
        ),
        (variance_table(rated.parts("metric", "variant")), variance_table(whole)),
    ):
        assert len(in_parts) > 1
        assert in_parts.to_csv() == at_once.to_csv()


def test_other_studies_have_one_part(tmp_path: Path) -> None:
    path = written(tmp_path, row(), row(variant="aopc L=1"))
    [found] = Rated([path], "fidelity", "d", ["m"]).parts("metric", "variant")
    assert len(found) == 2


@pytest.mark.parametrize("kind", ["fidelity", "bam", "caption", "retrain"])
def test_a_study_without_a_score_that_rates_has_empty_tables(kind: str, tmp_path: Path) -> None:
    rows = [] if kind == "fidelity" else [row(metric="other")]
    path = tmp_path / "0.parquet"
    scores.write(path, pd.DataFrame(rows, columns=list(scores.COLUMNS)))
    assert rated_scores([path], kind, data="d", models=["m"]).empty
