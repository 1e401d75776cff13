"""Tables for a paper: the tidy table, and LaTeX that shows every name and number as it is."""

import re
import shutil
import subprocess
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pipelines import TINY
from spaced import SPACED

from saliency_assay.catalog import CATALOG
from saliency_assay.config.configuration import read
from saliency_assay.config.labels import labels_of
from saliency_assay.plotting import latex
from saliency_assay.plotting.display import displayed
from saliency_assay.plotting.labels import with_keys_and_labels
from saliency_assay.report.export.export import TIDY, score_floats, study_tex, tidy_table
from saliency_assay.report.export.image_scores import COLUMNS as IMAGE_COLUMNS
from saliency_assay.report.export.image_scores import write_image_scores
from saliency_assay.studies.bam import latex_tables as bam
from saliency_assay.studies.caption import latex_tables as caption
from saliency_assay.studies.latex_tables import StudyTableSpec, floats_of
from saliency_assay.studies.retrain import latex_tables as retrain

NASTY = "<script>alert('&')</script> \"50 %\" $a_b$ #1 {x} ~ ^2 C:\\d -- [k] * |z|"
METHODS = ("gradient_x_input", "a_&_b", "random")
NAN = float("nan")
DIRECTIONS = {"aopc": "higher", "infidelity": "lower"}


def tables(
    variants: int = 1, seeds: int = 1, baselines: bool = True, model: str = "m"
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Of METHODS, whose means are 0, 10 and 20: the order of two metrics and its reliability."""
    count = 3 if baselines else 2
    rows = product(DIRECTIONS, range(variants), range(count))
    order = pd.DataFrame(rows, columns=["metric", "variant", "place"])
    place, direction = order.pop("place"), order["metric"].map(DIRECTIONS)
    rank = (count - place).where(direction == "higher", place + 1).astype(float)
    over = "images × seeds" if seeds > 1 else "images"
    order = order.assign(
        variant=order["metric"] + " L=" + order["variant"].astype(str), direction=direction, data="set_1",
        model=model, method=[METHODS[number] for number in place], baseline=place == 2, seeds=seeds, over=over,
        images=12, all_images=12, undefined=0.0, mean=10.0 * place, low=10.0 * place - 1, high=10.0 * place + 1,
        mean_worst=10.0 * place, mean_best=10.0 * place, win_rate=1 / rank, rank_low=rank, rank_high=rank,
        lead=np.where(rank == 1, 10.0, -10.0), lead_low=np.nan, lead_high=np.nan,
        lead_over=[METHODS[number == 0] for number in place], lead_p=np.where(rank == 1, 0.01, 1.0),
        above_baselines=np.nan, best_share=(rank == 1).astype(float), ranked_by="wins",
    )  # fmt: skip
    kinds = ("with", "without") if baselines else ("none",)
    rows = product(dict.fromkeys(zip(order["metric"], order["variant"], strict=True)), range(seeds), kinds)
    reliability = pd.DataFrame(
        [(*score, seed, kind, 0.5 + 0.1 * seed + 0.2 * (kind == "with")) for score, seed, kind in rows],
        columns=["metric", "variant", "seed", "baselines", "alpha"],
    )
    alpha = reliability["alpha"]
    return order, reliability.assign(
        data="set_1", model=model, methods=count, images=12, alpha_low=alpha - 0.1, alpha_high=alpha + 0.1,
        correlation_images=12, correlation=alpha / 2, correlation_low=alpha / 2 - 0.1,
        correlation_high=alpha / 2 + 0.1, printed=np.nan,
    )  # fmt: skip


def tidy(printed: pd.DataFrame | None = None, **options: Any) -> pd.DataFrame:
    return tidy_table("my_study", "fidelity", *tables(**options), printed)


def body(text: str) -> list[list[str]]:
    """The cells of all rows of a float that hold some."""
    lines = [line for line in text.splitlines() if " & " in line]
    return [re.sub(r" \\\\(\[2pt\])?$", "", line).split(" & ") for line in lines]


# ---- scores of single images


@pytest.mark.parametrize("files", [[], ["a, b.png", 'c"d.png', "NA"]])
def test_scores_of_single_images_are_read_back_with_all_digits(tmp_path: Path, files: list[str]) -> None:
    scores = pd.DataFrame(
        {
            **{"study": "", "data": "d", "model": "m", "seed": 0, "metric": "aopc", "variant": "aopc L=20"},
            **{"method": ["a", "a", "b"], "image": [2, 0, 2], "score": [1 / 3, NAN, 1e-300]},
        }
    )
    chunks = [scores[:2].astype({"method": "category"}), scores[2:]]
    write_image_scores(tmp_path / "scores.csv", chunks, "my study", ["cat", "dog", "Zürich, West"], files)
    table = pd.read_csv(tmp_path / "scores.csv", keep_default_na=False, na_values={"score": [""]})
    assert list(table) == IMAGE_COLUMNS
    assert set(table["study"]) == {"my study"}
    assert table["label"].tolist() == ["Zürich, West", "cat", "Zürich, West"]
    assert table["file"].tolist() == (["NA", "a, b.png", "NA"] if files else [""] * 3)
    pd.testing.assert_frame_equal(table[["method", "image", "score"]], scores[["method", "image", "score"]])


def test_a_study_without_scores_exports_the_columns(tmp_path: Path) -> None:
    write_image_scores(tmp_path / "scores.csv", [], "s", [])
    assert (tmp_path / "scores.csv").read_text().split() == [",".join(IMAGE_COLUMNS)]


# ---- the tidy table


def test_the_tidy_table_has_a_row_for_every_score_and_method() -> None:
    order, reliability = tables(variants=2, seeds=2)
    table = tidy_table("my_study", "fidelity", order, reliability)
    assert list(table) == TIDY
    pd.testing.assert_frame_equal(table[list(order)], order)
    assert set(table["study"]) == {"my_study"}
    assert set(table["kind"]) == {"fidelity"}
    assert table["printed"].isna().all()


def test_files_have_the_labels_of_the_configuration_and_the_report_beside_the_keys() -> None:
    """One table in the report, in LaTeX and in CSV: the same keys have the same labels."""
    methods = {"gradient": {"label": "Vanilla"}, "smooth": TINY["methods"]["smooth"]}
    raw = {**TINY, "methods": {**TINY["methods"], **methods}}
    labels = labels_of(read(raw, catalog=CATALOG, source="some.yaml"))
    keys = {
        **{"study": "digits", "data": "digits", "model": "f_o", "method": ["gradient", "smooth", "edge"]},
        **{"metric": "infidelity", "variant": "infidelity", "lead_over": ["smooth", "gradient", None]},
    }
    table = pd.DataFrame(keys)
    exported = with_keys_and_labels(table, labels)
    pd.testing.assert_frame_equal(exported[list(keys)], table)
    shown = displayed(table, labels)
    heads = ("study", "data", "model", "method", "metric")
    for name, head in zip(heads, ("study", "data set", "model", "method", "metric"), strict=True):
        assert exported[f"{name}_label"].tolist() == shown[head].tolist()
    assert exported["method_label"].tolist() == ["Vanilla", "Smooth", "Edge detection"]
    assert exported["lead_over_label"].tolist()[:2] == ["Smooth", "Vanilla"]
    assert exported["lead_over_label"].isna().tolist() == [False, False, True]


def test_reliability_is_of_the_mean_over_seeds_with_and_without_baselines() -> None:
    order, reliability = tables(seeds=2)
    for metric, rows in tidy_table("s", "fidelity", order, reliability).groupby("metric"):
        of_metric = reliability[reliability["metric"] == metric]
        for kind, ending in (("with", ""), ("without", "_without_baselines")):
            of_kind = of_metric[of_metric["baselines"] == kind]
            for name in ("alpha", "correlation"):
                (value,) = set(rows[f"{name}{ending}"])
                assert value == pytest.approx(of_kind[name].mean())
                assert set(rows[f"{name}{ending}_low"]) == {of_kind[f"{name}_low"].min()}
                assert set(rows[f"{name}{ending}_high"]) == {of_kind[f"{name}_high"].max()}
    second = reliability["seed"] == 1
    reliability.loc[second, ["alpha_low", "alpha_high"]] = np.nan  # a mean of one interval is none
    reliability.loc[second, "correlation"] = np.nan
    table = tidy_table("s", "fidelity", order, reliability)
    absent = ["alpha_low", "alpha_high", "alpha_without_baselines_low", "correlation"]
    assert table[absent].isna().all(axis=None)
    assert table[["alpha", "correlation_low"]].notna().all(axis=None)


def test_a_study_without_baselines_has_one_reliability() -> None:
    table = tidy(baselines=False)
    assert table["alpha"].notna().all()
    assert table["alpha_without_baselines"].isna().all()
    (text,) = score_floats(table, "s", level=0.9)
    assert text.count(r"\midrule") == 2
    assert "aseline" not in text


def test_what_a_paper_printed_stands_beside_its_own_score() -> None:
    summary = pd.DataFrame(
        {
            "metric": "infidelity",
            "variant": "infidelity L=0",
            "method": ["random", "random", "a_&_b"],
            "seed": [0, 1, 0],
            "printed": [4.12, 4.12, np.nan],
        }
    )
    table = tidy(summary, seeds=2)
    rows = table.loc[table["printed"].notna(), ["metric", "method", "printed"]]
    assert rows.to_numpy().tolist() == [["infidelity", "random", 4.12]]


def test_scores_of_several_models_stay_apart() -> None:
    table = pd.concat([tidy(), tidy(model="other")])
    assert len(table) == 12
    (text,) = score_floats(table, "s", level=0.9)
    header = body(text)[0]
    assert [cell.count(r"\\m\\") for cell in header] == [0, 1, 1, 0, 0]
    assert [cell.count(r"\\other\\") for cell in header] == [0, 0, 0, 1, 1]
    assert "(data set: set\\_1):" in text
    assert ", model" not in text


# ---- numbers and names


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ((0.77512, 0.715, 0.83), ("0.775", "[0.715, 0.830]")),
        ((-0.0019, -0.0033, 0.0417), ("$-$0.0019", "[$-$0.0033, 0.0417]")),
        ((59590.4, 23553.0, 103000.2), ("59590", "[23553, 103000]")),
        ((2.346e-5, -1e-6, 5e-5), (r"2.35$\cdot10^{-5}$", r"[$-$0.10, 5.00]$\cdot10^{-5}$")),
        ((2.346e7, 2e7, 3e7), (r"2.35$\cdot10^{7}$", r"[2.00, 3.00]$\cdot10^{7}$")),
        ((0.0, 0.0, 0.0), ("0", "[0, 0]")),
        ((-1e-9, -0.5, 0.5), ("0.000", "[$-$0.500, 0.500]")),
        ((np.nan, np.nan, np.nan), ("--", "")),
        ((-np.inf, np.nan, np.nan), (r"$-$$\infty$", "")),
    ],
)
def test_a_mean_and_its_interval(values: tuple[float, float, float], shown: tuple[str, str]) -> None:
    assert latex.with_interval(*values) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(97.5, "97.5"), (100.0, "100"), (9.9122e-9, r"9.91$\cdot10^{-9}$"), (-0.5, "$-$0.5"), (np.nan, "--")],
)
def test_a_number(value: float, shown: str) -> None:
    assert latex.number(value) == shown


def test_what_latex_would_take_for_a_command_is_escaped() -> None:
    assert latex.escaped(NASTY) == (
        r"\textless{}script\textgreater{}alert('\&')\textless{}/script\textgreater{} \char34{}50 \%\char34{} "
        r"\$a\_b\$ \#1 \{x\} \textasciitilde{} \textasciicircum{}2 "
        r"C:\textbackslash{}d -{}- {[}k] {*} \textbar{}z\textbar{}"
    )
    assert latex.escaped("Grüße\n\n  ρ") == r"Grüße $\rho$"
    assert latex.escaped("LRP-ε, 8 × 8, x₀², 1–2") == r"LRP-$\varepsilon$, 8 $\times$ 8, x$_0$$^2$, 1--2"
    assert latex.label("my_study", 'a"&_<b>') == "tab:my-study-a----b-"


def shown_labels() -> list[str]:
    """All labels of methods, metrics and scores."""
    labels = [record.label for section in (CATALOG.methods, CATALOG.metrics) for record in section.values()]
    kinds = CATALOG.study_kinds.values()
    scores = [score for record in (*CATALOG.metrics.values(), *kinds) for score in record.scores]
    texts = [*(record.sub_variants for record in (*CATALOG.metrics.values(), *kinds))]
    texts += [kind.method_labels for kind in kinds]
    return [*labels, *(score.label for score in scores), *(text for part in texts for text in part.values())]


def test_every_label_is_ascii_in_latex() -> None:
    assert [text for text in map(latex.escaped, shown_labels()) if not text.isascii()] == []


# ---- tables in LaTeX


def test_the_caption_says_why_intervals_are_missing() -> None:
    reason = "none if scores are constant, too skewed or too few"
    table = tidy()
    assert reason not in " ".join(score_floats(table, "my_study", level=0.9))
    table.loc[table.index[0], ["low", "high"]] = np.nan
    assert reason in " ".join(score_floats(table, "my_study", level=0.9))


def test_methods_are_rows_baselines_below_and_the_best_bold() -> None:
    (text,) = score_floats(tidy(), "my_study", level=0.9, labels=SPACED)
    rows = body(text)
    assert [cell.count("arrow") for cell in rows[0]] == [0, 1, 1]
    assert r"$\uparrow$" in rows[0][1]
    assert r"$\downarrow$" in rows[0][2]
    upper = {row[0]: row[1:] for row in rows[1::2]}
    assert list(upper) == ["gradient x input", r"a \& b", "random", r"$\alpha$"]
    best = {
        name: [bool(re.fullmatch(r"\\textbf\{.*\} \(1\)", cell)) for cell in upper[name]] for name in upper
    }
    assert best["random"] == [False, False]  # ranks first under the first metric, but is a baseline method
    assert best["gradient x input"] == [False, True]
    assert [cell.endswith("(2)") for cell in upper[r"a \& b"]] == [True, True]
    assert [row[0] for row in rows[2::2]] == ["", "", "", "all methods", "without baselines"]
    before, baselines, reliability = text.partition(r"\toprule")[2].split(r"\midrule")[1:]
    assert ("gradient" in before, "random" in baselines, "alpha" in reliability) == (True, True, True)
    for phrase in ("(model: m; data set: set 1):", "n = 12 images, 1 training seed", r"95\,\%", r"90\,\%"):
        assert phrase in text
    assert r"\label{tab:my-study-scores}" in text


def test_methods_that_may_be_first_are_bold_with_their_rank_sets() -> None:
    table = tidy(seeds=3).assign(rank_low=[1.0, 1.0, 3.0] * 2, rank_high=[2.0, 2.0, 3.0] * 2)
    (text,) = score_floats(table, "s", level=0.9, labels=SPACED)
    upper = {row[0]: row[1] for row in body(text)[1::2]}
    assert upper["gradient x input"] == r"\textbf{0.00} (1--2)"
    assert upper["random"] == "20.0 (3)"


def test_a_method_without_a_score_has_a_dash() -> None:
    table = tidy()
    table.loc[
        (table["method"] == "random") & (table["metric"] == "aopc"),
        ["mean", "low", "high", "rank_low", "rank_high"],
    ] = np.nan
    table = table[~((table["method"] == METHODS[1]) & (table["metric"] == "infidelity"))]
    (text,) = score_floats(table, "s", level=0.9, labels=SPACED)
    upper = {row[0]: row[1:] for row in body(text)[1::2]}
    assert upper["random"][0] == "--"
    assert upper[r"a \& b"][1] == "--"
    assert "nan" not in text


def test_of_many_variants_the_last_and_many_scores_in_several_tables() -> None:
    few = score_floats(tidy(variants=2), "s", level=0.9)
    assert len(few) == 1
    assert [cell.count("L=1") for cell in body(few[0])[0]] == [0, 0, 1, 0, 1]
    (many,) = score_floats(tidy(variants=3), "s", level=0.9)
    assert [cell.count("L=2") for cell in body(many)[0]] == [0, 1, 1]
    wide = pd.concat([tidy(model=f"m{place}") for place in range(4)])
    parts = score_floats(wide, "s", level=0.9)
    assert [len(body(part)[0]) for part in parts] == [6, 4]
    assert [re.findall(r"\\label\{(.*)\}", part) for part in parts] == [
        ["tab:s-scores-1"],
        ["tab:s-scores-2"],
    ]


def retrained(iterations: int = 2, seeds: int = 1) -> pd.DataFrame:
    rows = [
        {
            **{"protocol": "iteroar", "fill": "mean", "method": method, "iteration": iteration},
            **{"nominal": 0.1 * iteration, "accuracy_test": 0.9 - 0.1 * iteration, "chance": 0.1},
            **{"accuracy_test_sd": 0.02 if seeds > 1 else np.nan, "seeds": seeds, "images": 180},
        }
        for method in METHODS
        for iteration in range(iterations + 1)
    ]
    return pd.DataFrame(rows)


def test_accuracy_after_retraining_is_by_share_occluded() -> None:
    (text,) = retrain.latex_tables("s", {"summary": retrained()}, SPACED)
    assert body(text) == [
        ["method", r"0\,\%", r"10\,\%", r"20\,\%"],
        ["gradient x input", "90.0", "80.0", "70.0"],
        [r"a \& b", "90.0", "80.0", "70.0"],
        ["random", "90.0", "80.0", "70.0"],
    ]
    assert "IteROAR, mean fill" in text
    assert r"chance: 10.0\,\%" in text
    first, second = retrain.latex_tables("s", {"summary": retrained(8, seeds=3)}, SPACED)
    assert len(body(first)[0]) == 1 + 8
    assert [row[1] for row in body(second)] == [r"80\,\%", *["10.0", r"{\scriptsize $\pm$ 2.0}"] * 3]


def table_of(spec: StudyTableSpec) -> pd.DataFrame:
    """A table with all that is shown of it, and all kinds of values."""
    columns = list(spec.heads)
    values = [NASTY, "f_o", 0, 97.25, np.nan, 3e-9, True, -0.5, 4.0]
    return pd.DataFrame({column: [values[place]] * 2 for place, column in enumerate(columns)})


def test_a_studys_own_tables_are_shown_as_they_are() -> None:
    premise = pd.DataFrame(
        {
            "model": ["f_o", "f_s"],
            "seed": [0, 1],
            "set": NASTY,
            "check": "accuracy",
            "percent": [100.0, 9.333],
        }
    ).assign(images=[600, 30], printed=[91.1, np.nan])
    (text,) = bam.latex_tables("bam", {"premise": premise, "claims": premise})
    rows = [row.replace(latex.escaped(NASTY), "NAME") for row in text.splitlines()]
    assert [row for row in rows if "NAME" in row] == [
        r"f\_o & 0 & accuracy & NAME & 100.0 & 91.1 & 600 \\",
        r"f\_s & 1 & accuracy & NAME & 9.3 & -- & 30 \\",
    ]
    leaks = pd.DataFrame({"protocol": "roar", "fill": "mean", "method": "random"}, index=[0, 1])
    leaks = leaks.assign(iteration=1, accuracy=0.5, random=0.123, chance=0.1)
    leaks = leaks.assign(p_holm=[3e-34, np.nan], leaks=[True, np.nan])
    text = retrain.latex_tables("s", {"summary": retrained(), "leakage": leaks})[-1]
    assert [row[-2:] for row in body(text)[-2:]] == [[r"3$\cdot10^{-34}$", "yes"], ["--", "--"]]
    parts = bam.latex_tables("bam", {"premise": pd.concat([premise] * 25)})
    assert [part.count(r"\_o &") + part.count(r"\_s &") for part in parts] == [40, 10]


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_it_compiles_with_booktabs_alone(tmp_path: Path) -> None:
    nasty = tidy(variants=3, seeds=2).replace({"method": {METHODS[0]: NASTY}})
    nasty.loc[nasty["metric"] == "infidelity", "direction"] = "target 0"
    nasty["variant"] = nasty["variant"] + " " + NASTY
    (tmp_path / "scores.tex").write_text(study_tex("my_study", nasty, [], level=0.9))
    kinds = {"bam": bam, "caption": caption, "retrain": retrain}
    for name, kind in kinds.items():
        tables = {table: table_of(spec) for table, spec in kind.TABLES.items()}
        if "ranking" in tables:
            tables["ranking"]["metric"] = "mcs"
        own = kind.latex_tables("my_study", tables | {"summary": retrained(9, seeds=2)})
        text = study_tex("my_study", pd.DataFrame(columns=TIDY), own, level=0.9)
        (tmp_path / f"{name}.tex").write_text(text)
    labels = pd.DataFrame({"model": shown_labels()})
    spec = {"labels": StudyTableSpec("labels", {"model": "label"})}
    (tmp_path / "labels.tex").write_text("\n".join(floats_of("all", spec, {"labels": labels})))
    symbols = [chr(code) for code in latex.COMMANDS]
    (tmp_path / "symbols.tex").write_text(" ".join(map(latex.escaped, symbols)))
    inputs = "".join(rf"\input{{{name}}}\clearpage" for name in ("scores", *kinds, "labels", "symbols"))
    document = rf"\documentclass{{article}}\usepackage{{booktabs}}\begin{{document}}{inputs}\end{{document}}"
    (tmp_path / "paper.tex").write_text(document)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stdout
    assert "Missing character" not in (tmp_path / "paper.log").read_text(errors="replace")
