"""Result tables on pages: labels, column names in words, and keys in code."""

import pandas as pd

from saliency_assay.plotting.display import displayed
from saliency_assay.plotting.html import Code, Keyed, table_page
from saliency_assay.registry.labels import Labels

NAN = float("nan")
LABELS = Labels(
    methods={"gradcam": "Grad-CAM"},
    scores={"aopc_morf": "AOPC (MoRF)", "mcs": "MCS"},
    data={"bam_os": "BAM (objects on scenes)", "bam_0s": "BAM (scenes)"},
    models={"f_o": "Object model", "f_s": "Scene model"},
    entry_scores={"aopc": {"aopc_morf": "AOPC (MoRF)"}},
    sub_variants={"aopc": {"L=(.+)": "(L = {})"}},
)


def test_keys_become_labels_and_columns_words() -> None:
    table = pd.DataFrame(
        {
            "metric": ["aopc_morf"],
            "variant": ["aopc L=40"],
            "model": ["f_o, f_s"],
            "data": ["bam_os → bam_0s"],
            "method": ["gradcam"],
            "direction": ["lower"],
            "baseline": [False],
            "above_baselines": [NAN],
            "rank_low": [1.0],
            "percent": [50.0],
            "seed": [0],
        }
    )
    shown = displayed(table, LABELS, {"percent": "test images (%)"})
    assert shown.to_dict("records") == [
        {
            "metric": "AOPC (MoRF, L = 40)",
            "model": "Object model, Scene model",
            "data set": "BAM (objects on scenes) → BAM (scenes)",
            "method": "Grad-CAM",
            "better direction": "lower is better",
            "baseline": "no",
            "better than every baseline": "–",
            "best rank": 1.0,
            "test images (%)": 50.0,
            "seed": 0,
        }
    ]
    assert "variant" in table  # the table itself is unchanged
    assert table["method"][0] == "gradcam"


def test_both_scores_of_a_pair_have_labels() -> None:
    pair = {
        "metric": ["mcs"],
        "variant": ["mcs"],
        "other_metric": ["aopc_morf"],
        "other_variant": ["aopc L=10"],
    }
    shown = displayed(pd.DataFrame(pair), LABELS)
    assert shown.to_dict("records") == [{"metric": "MCS", "other metric": "AOPC (MoRF, L = 10)"}]


def test_a_key_is_small_code_beside_its_label() -> None:
    table = pd.DataFrame({"method": [Keyed("Grad-CAM", "gradcam")], "parameters": [Code("relu: <b>")]})
    text = table_page(table, title="Methods", digits=1)
    assert '<td data-value="Grad-CAM">Grad-CAM <small><code>gradcam</code></small></td>' in text
    assert "<td><code>relu: &lt;b&gt;</code></td>" in text
    assert "<code>" not in table_page(pd.DataFrame({"parameters": [Code("")]}), title="", digits=1)
