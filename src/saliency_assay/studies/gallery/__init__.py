"""Galleries: maps for visual inspection, without scores."""

from saliency_assay.registry.study_kind import StudyKind

GALLERY = StudyKind(
    "gallery",
    "Gallery",
    "Maps of the same images by every method, for visual inspection, without scores.",
    settings="saliency_assay.studies.gallery.gallery_study:GalleryStudy",
    takes_stored_maps=True,
)
