"""The page of reliability: ours beside the paper's, and tables of a length that can be read."""

import numpy as np
import pandas as pd

from saliency_assay.registry.labels import Labels
from saliency_assay.report.pages.reliability_page import page_tables, shortened

LABELS = Labels(
    methods={"edge": "Edge detection"},
    scores={"aopc": "AOPC", "faithfulness": "Faithfulness"},
    entry_scores={"mean": {"aopc": "AOPC"}, "faithfulness": {"faithfulness": "Faithfulness"}},
    sub_variants={"mean": {"L=(.+)": "(L = {})"}},
)
SCORES = (("aopc", "mean L=20"), ("aopc", "mean L=100"), ("faithfulness", "faithfulness"))


def reliability_rows(seeds: int = 1) -> pd.DataFrame:
    rows = [
        {
            **{"metric": metric, "variant": variant, "seed": seed, "baselines": kind, "printed": np.nan},
            **{"alpha": 0.3 + 0.1 * seed, "alpha_low": 0.2 + 0.1 * seed, "alpha_high": 0.4 + 0.1 * seed},
        }
        for metric, variant in SCORES
        for seed in range(seeds)
        for kind in ("with", "without")
    ]
    return pd.DataFrame(rows)


def consistency_rows(scores: tuple[tuple[str, str], ...] = SCORES, seeds: int = 1) -> pd.DataFrame:
    rows = [
        {
            **{"seed": seed, "method": method, "metric": one[0], "variant": one[1]},
            **{
                "other_metric": other[0],
                "other_variant": other[1],
                "correlation": 0.2 + seed,
                "printed": np.nan,
            },
        }
        for seed in range(seeds)
        for method in ("grad_cam", "edge")
        for place, one in enumerate(scores)
        for other in scores[place + 1 :]
    ]
    return pd.DataFrame(rows)


def page(reliability: pd.DataFrame, consistency: pd.DataFrame) -> dict[str, pd.DataFrame]:
    others = {name: pd.DataFrame({name: [1]}) for name in ("agreement", "variance")}
    others["controls"] = pd.DataFrame(
        {"metric": ["iou"], "variant": ["iou"], "upper": [""], "data": "", "model": ""}
    )
    others["pairs"] = pd.DataFrame({"metric": ["aopc"], "variant": ["mean L=100"], "wins": [0.5]})
    pairs = {"rankings": consistency.drop(columns="seed"), "consistency": consistency}
    return page_tables({"reliability": reliability, **pairs, **others}, "S", LABELS, level=0.999)


def test_the_page_begins_with_ours_beside_the_papers() -> None:
    alphas, rhos = reliability_rows(seeds=2), consistency_rows()
    assert not [title for title in page(alphas, rhos) if "published" in title]
    of = (alphas["variant"] == "mean L=100") & (alphas["baselines"] == "with")
    alphas.loc[of, "printed"] = 0.48
    alphas.loc[alphas["metric"] == "faithfulness", "printed"] = 0.04
    of = (rhos["variant"] == "mean L=100") & (rhos["method"] == "edge")
    rhos.loc[of, "printed"] = -0.001
    first, second, *others = page(alphas, rhos).items()
    assert "99.9 %" in first[0]
    assert first[1].to_dict("list") == {
        "metric": ["AOPC (L = 100)", "Faithfulness"],
        "with baselines": ["0.35 [0.20, 0.50] / 0.48", "0.35 [0.20, 0.50] / 0.04"],
        "without baselines": ["– / –", "0.35 [0.20, 0.50] / 0.04"],
    }
    assert second[1].to_dict("list") == {
        "metrics": ["AOPC (L = 100) and Faithfulness"],
        "Edge detection": ["0.20 / 0.00"],
    }
    assert len(others) == 6


def test_of_many_variants_the_page_has_the_last_of_each_score() -> None:
    many = (*(("aopc", f"mean L={length}") for length in range(20)), ("faithfulness", "faithfulness"))
    rhos = consistency_rows(many)
    assert shortened(consistency_rows()).equals(consistency_rows())
    kept = shortened(rhos)
    assert (
        list(kept[["variant", "other_variant"]].itertuples(index=False, name=None))
        == [("mean L=19", "faithfulness")] * 2
    )
    titles = list(page(reliability_rows(), rhos))
    assert titles[-2].endswith("all in tables/…/rankings.csv)")
    assert titles[-1].endswith("all in tables/…/consistency.csv)")
