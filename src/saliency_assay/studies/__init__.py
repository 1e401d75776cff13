"""The kinds of study, each a folder with its record: one line each, read by the Snakefile."""

from saliency_assay.studies.bam import BAM
from saliency_assay.studies.caption import CAPTION
from saliency_assay.studies.fidelity import FIDELITY
from saliency_assay.studies.gallery import GALLERY
from saliency_assay.studies.retrain import RETRAIN

STUDY_KINDS = {kind.name: kind for kind in (BAM, CAPTION, FIDELITY, GALLERY, RETRAIN)}
