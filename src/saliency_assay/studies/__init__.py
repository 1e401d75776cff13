"""The kinds of study, each a folder with its record; the Snakefile imports this, so it must not import torch.

To add one, write a folder in this package with its record, ``registry.study_kind.StudyKind``, its rules, if any, in
``workflow/rules/studies/<kind>.smk``, and two lines here. Scripts are in ``workflow/scripts``, captions of figures in
``workflow/report``. ``caption`` is the smallest kind that has rules.
"""

from saliency_assay.studies.bam import BAM
from saliency_assay.studies.caption import CAPTION
from saliency_assay.studies.designed import DESIGNED
from saliency_assay.studies.fidelity import FIDELITY
from saliency_assay.studies.gallery import GALLERY
from saliency_assay.studies.grid import GRID
from saliency_assay.studies.parts import PARTS
from saliency_assay.studies.retrain import RETRAIN
from saliency_assay.studies.validity import VALIDITY

KINDS = (
    BAM,
    CAPTION,
    DESIGNED,
    FIDELITY,
    GALLERY,
    GRID,
    PARTS,
    RETRAIN,
    VALIDITY,
)
STUDY_KINDS = {kind.name: kind for kind in KINDS}
