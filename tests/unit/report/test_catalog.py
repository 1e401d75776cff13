"""The pages of methods, metrics and provenance against values worked out by hand."""

import re
from pathlib import Path

import pandas as pd
import pytest
from report_tables import reliability_rows

from saliency_assay.methods import METHODS as REGISTERED
from saliency_assay.methods.cost import Stopwatch
from saliency_assay.registry.labels import Labels
from saliency_assay.report.pages.catalog import cost_table, methods_page, metrics_page
from saliency_assay.report.pages.provenance import (
    data_facts,
    packages_of,
    provenance_page,
    ran,
    sizes,
    times,
    versions,
)

EVIL = "<script>alert('1')</script>"


def method(name: str, registered: str, **parameters: object) -> dict[str, object]:
    return {
        "name": name,
        "label": f"Method {name}",
        "method": registered,
        "summary": f"what {name} is",
        "reference": "Someone, 2017",
        "parameters": parameters,
        "signed": True,
        "passes": next((record.passes for record in REGISTERED if record.name == registered), None),
        "baseline": registered == "random",
        "background": 0,
        "stored": False,
    }


METHODS = [
    method("plain", "gradient"),
    {**method("smooth", "smoothgrad", samples=10), "base": method("guided_gradcam", "guided_gradcam")},
    {**method("mine", ""), "signed": None},
    method("noise", "random"),
]
STORES = [
    {"method": name, "model": "m", "data": "d", "batch": 4} for name in ("plain", "smooth", "mine", "noise")
]
COSTS = [
    [{"images": 8, "seconds": seconds, "device": "cpu", "passes": 3}] for seconds in (0.4, 8.0, 1.0, 0.0)
]


def test_costs_are_passes_by_parameters_or_as_measured_and_seconds_as_measured() -> None:
    table = cost_table(METHODS, STORES, COSTS, {"d": (8, 8)})
    assert list(table["passes"]) == [1, 20, 3, 0]
    assert list(table["seconds"]) == [0.4, 8, 1, 0]
    assert list(cost_table(METHODS, [], [], {})) == list(table)


@pytest.mark.parametrize(
    ("description", "passes"),
    [
        (METHODS[0], 1),
        (method("scorecam", "scorecam"), 6),  # depends on the model
        ({**method("smooth", "smoothgrad", samples=3), "base": METHODS[2]}, 6),  # smooths a custom method
    ],
)
def test_costs_of_shards_are_summed_and_passes_known_or_means(
    description: dict[str, object], passes: int
) -> None:
    store = {"method": description["name"], "model": "m", "data": "d", "batch": 4}
    shards = [
        {"images": 6, "seconds": 0.25, "device": "cuda", "passes": 7.0},
        {"images": 2, "seconds": 0.5, "device": "cpu", "passes": 3.0},
    ]
    table = cost_table([description], [store], [shards], {"d": (8, 8)})
    assert table[["images", "seconds", "device", "passes"]].to_dict("records") == [
        {"images": 8, "seconds": 0.75, "device": "cuda, cpu", "passes": passes}
    ]


def test_the_page_of_methods_has_the_cost_of_an_image_beside_the_plain_gradient() -> None:
    labels = Labels(methods={"plain": "Gradient (plain)"}, models={"m": "Model"})
    text = methods_page(METHODS, cost_table(METHODS, STORES, COSTS, {"d": (8, 8)}), labels)
    rows = [re.findall(r"<td.*?>(.*?)</td>", row) for row in text.splitlines() if row.startswith("<tr><td")]
    cost = {row[0]: row[5:] for row in rows if row[1] == "Model"}
    assert cost["Gradient (plain)"] == ["1", "50", "1.00"]
    assert cost["smooth"] == ["20", "1000", "20.00"]
    assert cost["mine"] == ["3", "125", "2.50"]
    assert "what noise is (baseline: does not use the model)" in text
    assert "custom function" in text
    assert '<td data-value="Method plain">Method plain <small><code>plain</code></small></td>' in text
    assert "<code>samples: 10</code>" in text


def test_maps_from_another_program_have_no_cost() -> None:
    methods = [{**method("theirs", ""), "stored": True}, method("plain", "gradient")]
    stores = [{**STORES[0], "method": "theirs"}, STORES[0]]
    costs = cost_table(methods, stores, COSTS[:2], {"d": (8, 8)})
    assert costs["method"].tolist() == ["plain"]
    assert "from another program" in methods_page(methods, costs, Labels())


def metric(name: str, scores: list[str], direction: str = "lower") -> dict[str, object]:
    rows = [
        {"name": score, "label": f"label of {score}", "unit": "", "direction": direction, "range": "[0, ∞)"}
        for score in scores
    ]
    texts = {"summary": "what it measures", "reference": "Someone, 2018", "formula": "F = ρ(R, Δ)"}
    return {
        "name": name,
        "label": f"Metric {name}",
        "metric": "aopc",
        "scores_single_maps": True,
        "reduction": "sum",
        "parameters": {"steps": 3},
        **texts,
        "scores": rows,
    }


def test_the_page_of_metrics_has_formula_direction_and_reliability() -> None:
    table = reliability_rows((0.9, 0.8, 1.0), study="s", metric="morf", variant="mine L=3")
    text = metrics_page([metric("mine", ["morf"]), metric("other", ["morf"], "target 0")], table, Labels())
    assert text.count("<dd>F = ρ(R, Δ)</dd>") == 2
    for phrase in ("lower is better", "closer to 0 is better"):
        assert text.count(f"<dd>range [0, ∞); {phrase}</dd>") == 1
    assert text.count("<dt>Score label of morf <small><code>morf</code></small></dt>") == 2
    assert "<h2>Metric mine <small><code>mine</code></small></h2>" in text
    assert "Metric mine: reliability in this run" in text
    assert "Metric other: reliability in this run" not in text  # another entry of the same score
    assert ">images agree on the ranking (CI ≥ 0.65)</td>" in text


def test_times_are_summed_by_rule(tmp_path: Path) -> None:
    head = "s\th:m:s\tmax_rss\n"
    for name, row in {
        "train/a.tsv": "3600\t1:00:00\t2000",
        "train/b/c.tsv": "1800\t0:30:00\t-",
        "report.tsv": "36\t0\t1",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{head}{row}\n")
    table = times(tmp_path)
    ended = table.pop("ended")
    assert table.to_dict("list") == {
        "rule": ["train", "report"],
        "jobs": [2, 1],
        "hours": [1.5, 0.01],
        "longest": [3600, 36],
        "memory": [2, 0.001],
    }
    assert ended.notna().all()
    assert times(tmp_path / "none").empty


def test_versions_are_all_of_those_that_computed_the_maps() -> None:
    stores = [
        {"version": "0.1.0", "libraries": {"torch": version}, "device": device}
        for version, device in (("2.15.0", "cpu"), ("2.14.0", "cuda"))
    ]
    table = versions(stores)
    assert (table["torch"], table["device of the maps"]) == ("2.15.0, 2.14.0", "cpu, cuda")
    took = pd.DataFrame({"hours": [1.5], "jobs": [3], "ended": [pd.Timestamp("2026-11-21", tz="UTC")]})
    plain = [{"version": "0.1.0", "libraries": {}}]
    assert ran(plain, took).startswith("1.5 hours of computing, last on 2026-11-21; saliency-assay 0.1.0")
    assert ran(stores, took).startswith("1.5 hours of computing on cpu, cuda, last on 2026-11-21;")
    assert ran(plain, took.iloc[:0]).startswith("0.0 hours of computing; ")  # benchmark files were deleted


def test_provenance_shows_sizes_and_the_configuration_as_text(tmp_path: Path) -> None:
    row = data_facts(EVIL, (5, 3, 8, 9), {"classes": {"class": ["a", "b"]}, "digest": "ff"})
    took = pd.DataFrame(
        {"rule": ["train"], "jobs": [1], "hours": [1.0], "longest": [1.0], "memory": [1.0], "ended": [0]}
    )
    packages = packages_of({"maps": [{"torch": "2.15.0"}]})
    (tmp_path / "results/maps/m").mkdir(parents=True)
    (tmp_path / "results/maps/m/a.zip").write_bytes(bytes(2_500_000))
    on_disk = sizes(tmp_path / "results")
    assert on_disk.to_numpy().tolist() == [["maps", 1, 2.5]]
    text = provenance_page(
        f"methods: {EVIL}", versions={"torch": EVIL}, packages=packages, data=[row], took=took, sizes=on_disk
    )
    assert text.count("<script>") == 1  # the page's own
    assert "methods: &lt;script&gt;" in text
    assert re.search(r">5</td>.*>3</td>.*>8</td>.*>9</td>.*>2 \(class\)</td>.*>ff</code></td>", text)


def test_packages_are_counted_by_version_and_kind_of_file() -> None:
    old, new = {"numpy": "2.4.6", "torch": "2.14.0"}, {"numpy": "2.4.6", "torch": "2.15.0"}
    table = packages_of({"weights": [old], "maps": [new, old, new], "scores": []})
    assert table.to_dict("split", index=False) == {
        "columns": ["package", "version", "weights", "maps", "scores"],
        "data": [["numpy", "2.4.6", 1, 3, 0], ["torch", "2.14.0", 1, 1, 0], ["torch", "2.15.0", 0, 2, 0]],
    }


@pytest.mark.parametrize(("others", "mixed"), [("2.15.0", ""), ("2.14.0", "torch")])
def test_provenance_names_packages_of_several_versions(others: str, mixed: str) -> None:
    packages = packages_of({"weights": [{"torch": others}], "maps": [{"numpy": "2.4.6", "torch": "2.15.0"}]})
    took = times(Path("none"))
    text = provenance_page("", versions={}, packages=packages, data=[], took=took, sizes=sizes(Path("none")))
    assert re.findall(r"mix versions of ([\w, ]+)\.", text) == ([mixed] if mixed else [])


def test_a_stopwatch_counts_the_making_of_blocks_alone() -> None:
    ticks = iter([0.0, 1.0, 10.0, 12.0, 20.0, 20.5])
    watch = Stopwatch(lambda: next(ticks))
    assert list(watch.over(iter("ab"))) == ["a", "b"]
    assert watch.seconds == 3.5
