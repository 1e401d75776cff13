"""Print meta-consistency beside the released values: ``python benchmarks/meta_consistency.py results_validity``.

The argument is the folder of results of ``config/validity.yaml``. Released values are those of the notebook output of
MetaQuantus (Hedström et al., 2023): means and standard deviations over iterations.
"""

import sys
from pathlib import Path

import pandas as pd

NAMES = {
    "sparseness": "sparseness",
    "complexity": "complexity",
    "faithfulness correlation": "faithfulness_correlation",
    "pixel flipping": "deletion",
    "pointing game": "pointing_game",
    "relevance mass accuracy": "mask_attribution",
    "random logit": "random_logit",
    "model parameter randomization": "randomization",
    "max-sensitivity": "sensitivity_max",
    "local Lipschitz": "local_lipschitz",
}
HIGHER = {
    "sparseness",
    "faithfulness correlation",
    "pixel flipping",
    "pointing game",
    "relevance mass accuracy",
}
"""Metrics that the released configuration calls better if higher."""
TERMS = ("iac_nr", "iac_ar", "iec_nr", "iec_ar")
# MC, its standard deviation, IAC NR, IAC AR, IEC NR, IEC AR: of the model's test, then of the input's.
RELEASED = {
    "mnist": """
        .640 .043 .209 .946 .837 .569  .476 .013 .929 .053 .840 .084
        .541 .007 .009 1.000 1.000 .156  .500 .000 .167 .833 1.000 .000
        .537 .003 .477 .900 .190 .579  .543 .026 .500 .890 .190 .594
        .609 .039 .547 .963 .299 .626  .644 .038 .485 1.000 .294 .796
        .672 .020 .977 .607 .996 .108  .500 .000 1.000 .000 1.000 .000
        .613 .022 .258 .793 .846 .553  .491 .007 .940 .071 .902 .051
        .712 .008 .360 .969 .937 .581  .620 .000 .186 .874 .860 .562
        .624 .005 .264 .959 .764 .510  .542 .010 .250 .806 .647 .463
        .754 .002 .547 .938 .804 .726  .545 .012 .361 1.000 .806 .011
        .726 .026 .484 .935 .736 .750  .756 .034 .519 .974 .740 .789""",
    "fmnist": """
        .596 .012 .145 .915 .831 .492  .475 .010 .917 .070 .832 .083
        .532 .014 .050 .990 .999 .086  .500 .000 .167 .833 1.000 .000
        .524 .021 .527 .857 .198 .515  .536 .021 .448 .994 .196 .504
        .573 .025 .447 .958 .329 .558  .649 .018 .453 1.000 .324 .817
        .666 .009 .950 .634 .995 .084  .500 .000 1.000 .000 1.000 .000
        .587 .024 .231 .806 .850 .460  .490 .022 .944 .067 .894 .055
        .717 .010 .234 1.000 .955 .680  .660 .000 .062 1.000 .902 .677
        .622 .010 .355 .925 .755 .451  .518 .010 .098 .902 .657 .414
        .699 .037 .515 .961 .816 .501  .580 .035 .504 1.000 .811 .004
        .696 .038 .538 .979 .775 .492  .724 .006 .567 .896 .774 .661""",
}


def released(data: str) -> pd.DataFrame:
    """Return the released values of a data set, a row per metric and test."""
    rows = []
    for name, line in zip(NAMES, RELEASED[data].strip().splitlines(), strict=True):
        numbers = list(map(float, line.split()))
        for test, values in (("model", numbers[:6]), ("input", numbers[6:])):
            rows.append((name, test, *values))
    return pd.DataFrame(rows, columns=["name", "test", "mc", "mc_sd", *TERMS])


def ours(results: Path, study: str) -> pd.DataFrame:
    """Return the meta-consistency of the study, with the reactivity that the released code computes."""
    table = pd.read_csv(results / "tables" / study / "meta_consistency.csv")
    table["entry"] = table["variant"].str.partition(" ")[0]
    rows = []
    for name, entry in NAMES.items():
        of_entry = table[table["entry"] == entry]
        if entry == "randomization":
            of_entry = of_entry[of_entry["metric"] == "randomization_spearman"]
            of_entry = of_entry[of_entry["variant"].str.contains("cascading")]
        for test in ("model", "input"):
            row = of_entry[of_entry["test"] == test].mean(numeric_only=True)
            if name in HIGHER:
                # The released code counts greater scores as better after every change. Pixel flipping, which it calls
                # better if higher, is our deletion, for which lower is better.
                row["released_ar"] = (
                    row["iec_ar"] if entry == "deletion" else 1 - row["iec_ar"] - row["ties_ar"]
                )
            else:
                row["released_ar"] = row["iec_ar"]
            row["released_mc"] = row[["iac_nr", "iac_ar", "iec_nr", "released_ar"]].mean()
            rows.append({"name": name, "test": test, **row})
    return pd.DataFrame(rows)


def main(results: Path) -> None:
    """Print a Markdown table for each data set."""
    for data in RELEASED:
        both = released(data).merge(ours(results, data), on=["name", "test"], suffixes=("_released", ""))
        spread = (both["mc_sd_released"] ** 2 + both["mc_sd"] ** 2) ** 0.5
        close = (both["released_mc"] - both["mc_released"]).abs() <= 2 * spread
        print(f"\n{data}: {close.sum()} of {len(both)} within two standard deviations\n")
        print(
            "| metric | change of | MC, released | MC | with the released IEC | IAC NR | IAC AR | IEC NR | IEC AR |"
        )
        print("|---|---|---|---|---|---|---|---|---|")
        for row, is_close in zip(both.to_dict("records"), close, strict=True):
            pairs = [
                f"{row[f'{name}_released']:.2f} / {row['released_ar' if name == 'iec_ar' else name]:.2f}"
                for name in TERMS
            ]
            cells = [
                row["name"],
                "image" if row["test"] == "input" else "model",
                f"{row['mc_released']:.3f} ± {row['mc_sd_released']:.3f}",
                f"{row['mc']:.3f} ± {row['mc_sd']:.3f}",
                f"{row['released_mc']:.3f}{'' if is_close else ' *'}",
                *pairs,
            ]
            print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
