"""Galleries: maps to look at, without scores."""

from saliency_assay.studies.kind import StudyKind

GALLERY = StudyKind(
    "gallery",
    "The same images under every method, to be looked at; nothing is scored.",
)
