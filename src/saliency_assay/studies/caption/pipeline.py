"""Inputs and parameters of the rules of caption studies."""

from saliency_assay.pipeline.inputs import StudyInputs, Wildcards
from saliency_assay.pipeline.params import Settings, StudyParams

SMALL = ("digits", "synthetic")  # kinds of source data that are smaller than those of the paper


class CaptionInputs(StudyInputs):
    """Inputs of the rules of caption studies."""

    def rated_scores(self, wildcards: Wildcards) -> list[str]:
        """Return the scores of infidelity for halves."""
        return self.of_study(self.paths.scores, wildcards["study"], ["infidelity_halves"])


class CaptionParams(StudyParams):
    """Settings of the rules of caption studies."""

    def tabulate_caption(self, wildcards: Wildcards) -> Settings:
        study = self.studies.study(wildcards["study"])
        return self.settings(
            "tabulate_caption",
            image_model=study.models[0],
            caption_model=study.models[1],
            data=[self.config.sets[self.config.models[model].data].name for model in study.models],
            references=self.references(study.name),
        )

    def plot_caption(self, wildcards: Wildcards) -> Settings:
        methods = self.studies.study(wildcards["study"]).methods
        names = {name: self._table_method(name) for name in methods}
        labels = self.descriptions.labels(wildcards["study"])
        data = self.config.sets[self.studies.study(wildcards["study"]).data]
        is_small = self.config.sets[str(data.source)].kind in SMALL
        return self.settings(
            "plot_caption",
            study=wildcards["study"],
            methods=names,
            labels=labels,
            setting="in this small setting" if is_small else "",
        )

    def _table_method(self, name: str) -> str:
        """Return the name of a method in the paper's Table 3.

        "local" or "global" is appended if the kind of map differs from the parameter ``explanation`` of infidelity.
        """
        method = self.config.methods[name]
        expected = self.config.metrics["infidelity_halves"].parameters["explanation"]
        kinds = {"gradient": "local", "gradient_x_input": "global"}
        if "times_input" in method.parameters:
            kinds[method.method] = "global" if method.parameters["times_input"] else "local"
        kind = kinds.get(method.method, expected)
        paper_name = self.descriptions.paper_method(name)
        return paper_name if kind == expected else f"{paper_name}, {kind}"
