"""Labels that need no configuration: keys with spaces in place of underscores."""

from saliency_assay.registry.labels import Labels


class _Spaced(dict[str, str]):
    """A mapping whose ``get`` labels every key."""

    def get(self, key: str, default: object = None) -> str:  # type: ignore[override]
        return key.replace("_", " ")


SPACED = Labels(methods=_Spaced(), metrics=_Spaced(), data=_Spaced(), models=_Spaced(), studies=_Spaced())
