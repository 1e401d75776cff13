"""Galleries: maps for visual inspection, without scores."""

from saliency_assay.registry.study_kind import StudyKind

GALLERY = StudyKind(
    "gallery",
    "The same images under every method, to be looked at; nothing is scored.",
    settings="saliency_assay.studies.gallery.settings:GalleryStudy",
    read="saliency_assay.studies.gallery.settings:read_study",
)
