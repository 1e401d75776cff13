"""Compare intra- and inter-consistency with MetaQuantus: ``python benchmarks/parity_meta_consistency.py``.

It needs the packages ``metaquantus`` and ``quantus`` (and, for these, ``cachetools`` and ``opencv-python-headless``),
installed without their dependencies. Random scores with ties stand for those of a metric.
"""

import numpy as np
from metaquantus import MetaEvaluation

from saliency_assay.studies.validity.meta_consistency import inter_resilience, intra

METHODS, IMAGES, ROUNDS = 6, 50, 20


def main() -> None:
    """Print the largest difference of each term."""
    generator = np.random.default_rng(0)
    largest = dict.fromkeys(("IAC", "IEC, resilience", "IEC, reactivity"), 0.0)
    for _ in range(ROUNDS):
        before, after = (generator.normal(size=(METHODS, IMAGES)).round(1) for _ in range(2))
        chosen = generator.random(IMAGES) < 0.7
        theirs = [
            MetaEvaluation.compute_iac_score(one, other, chosen, "Resilience")
            for one, other in zip(before, after, strict=True)
        ]
        ours = intra(before, after[None], chosen[None])[0]
        largest["IAC"] = max(largest["IAC"], abs(np.mean(theirs) - ours))
        # Without ties, whose order NumPy's default sort leaves open.
        before, after = (scores + 1e-6 * generator.random(scores.shape) for scores in (before, after))
        resilience = MetaEvaluation.compute_iec_resilience(before, after, chosen)
        ours = inter_resilience(before, after[None], chosen[None])[0]
        largest["IEC, resilience"] = max(largest["IEC, resilience"], abs(resilience - ours))
        # Its direction is a truth value: True counts scores that become greater.
        reactivity = MetaEvaluation.compute_iec_adversary(before, after, chosen, score_direction="")
        largest["IEC, reactivity"] = max(
            largest["IEC, reactivity"], abs(reactivity - (before > after)[:, chosen].mean())
        )
    for name, difference in largest.items():
        print(f"{name}: largest difference {difference:.1e}")


if __name__ == "__main__":
    main()
