"""Galleries: maps for visual inspection, without scores."""

from saliency_assay.registry.study_kind import StudyKind

GALLERY = StudyKind(
    "gallery",
    "Gallery",
    "What do the maps look like? The same images under every method, without scores.",
    settings="saliency_assay.studies.gallery.settings:GalleryStudy",
    read="saliency_assay.studies.gallery.settings:read_study",
)
