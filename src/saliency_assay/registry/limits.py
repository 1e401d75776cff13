"""Valid values of parameters, which the signatures of registered functions declare: ``steps: PositiveInt = 25``.

A record checks its parameters against them before the function is called (``records.with_defaults``). Values that
only one function takes are declared there: ``cells: Annotated[int, Limits(minimum=2)] = 7``.
"""

from dataclasses import dataclass
from typing import Annotated


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of a parameter among the values of its type.

    ``minimum`` and ``maximum`` are inclusive. ``words`` are strings that are valid instead of a number.
    """

    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


PositiveInt = Annotated[int, Limits(minimum=1)]
NonNegativeInt = Annotated[int, Limits(minimum=0)]
NonNegativeFloat = Annotated[float, Limits(minimum=0)]
Share = Annotated[float, Limits(minimum=0, maximum=1)]
Steps = Annotated[int | str, Limits(minimum=1, words=("exact",))]
"""A number of equal blocks of pixels, or ``exact`` for one pixel at a time."""
Baseline = Annotated[str, Limits(choices=("black", "gray", "mean"))]
Distribution = Annotated[str, Limits(choices=("gaussian", "uniform"))]
PathRule = Annotated[str, Limits(choices=("middle", "trapezoid", "left", "right", "gauss_legendre"))]
Upsampling = Annotated[str, Limits(choices=("bilinear", "bicubic", "nearest"))]
InputRule = Annotated[str, Limits(choices=("z_box", "w_squared", "same"))]
Features = Annotated[str, Limits(choices=("grid", "superpixels"))]
Output = Annotated[str, Limits(choices=("probability", "logit"))]
ScoredOutput = Annotated[str, Limits(choices=("probability", "logit", "accuracy"))]
Fill = Annotated[str, Limits(choices=("black", "gray", "mean", "image_mean", "random", "blur"))]
Explanation = Annotated[str, Limits(choices=("global", "local"))]
