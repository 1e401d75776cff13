"""Packages of records that can be called, which gives a table of their records."""

from types import ModuleType
from typing import Any

from saliency_assay.registry.records import resolve


class CallableRegistry(ModuleType):
    """Class of a package of records: ``saliency_assay.methods()`` returns a table of all methods."""

    def __call__(self) -> Any:
        """Return the table; by reference, because registries import nothing that imports torch or pandas."""
        return resolve(f"saliency_assay.api.tables:{self.__name__.rpartition('.')[2]}")()
