"""Export of the scores of single images as CSV."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

COLUMNS = [
    *("study", "data", "model", "seed", "method", "metric", "variant"),
    *("image", "file", "label", "score"),
]


def write_image_scores(
    path: Path, scores: Iterable[pd.DataFrame], study: str, labels: Sequence[str], files: Sequence[str] = ()
) -> None:
    """Write the rated scores of a study with the class, and the file if there is one, of each image.

    Args:
        path: the file, with the columns ``COLUMNS``. Scores have all digits; a missing score is empty.
        scores: chunks of the study's ``RatedScores``; rows keep their order.
        study: name of the study.
        labels: name of the class of each image of the data set.
        files: name of the file of each image; empty if the images are in no files.
    """
    pd.DataFrame(columns=COLUMNS).to_csv(path, index=False)
    for chunk in scores:
        images = chunk["image"].to_numpy()
        columns = {
            name: np.array(of_images, object)[images]
            for name, of_images in {"label": labels, "file": files}.items()
            if of_images
        }
        chunk.assign(**{"study": study, "file": "", **columns})[COLUMNS].to_csv(
            path, mode="a", header=False, index=False
        )
