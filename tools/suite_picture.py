"""Save the figure of README.md, rank sets on the suite's task coco: ``python -m tools.suite_picture``."""

from dataclasses import replace

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd

from saliency_assay.suite.scores import reference
from tools.picture_records import IMAGES, write_record

FIGURE = IMAGES / "coco.png"
METHODS = ["gradcam", "eigencam", "rise", "occlusion", "smoothgrad", "integrated_gradients", "random"]
SCORES = ["iou", "relevance_rank_accuracy", "insertion", "deletion"]


def main() -> None:
    """Save the figure and print the table."""
    mpl.use("agg")
    scores = reference("coco")
    table = scores.table[scores.table["method"].isin(METHODS)]
    by_score = {score: each for each in scores.metrics for score in each.directions if score in SCORES}
    shown = replace(
        scores,
        methods=[each for name in METHODS for each in scores.methods if each.name == name],
        metrics=[
            replace(each, directions={score: each.directions[score]}) for score, each in by_score.items()
        ],
        table=pd.concat([table[table["metric"] == score] for score in SCORES]),
    ).benchmark()
    print(shown)
    shown.plot.heat_map()
    plt.gcf().savefig(FIGURE, dpi=100, bbox_inches="tight", metadata={"Software": None})
    write_record(FIGURE)


if __name__ == "__main__":
    main()
