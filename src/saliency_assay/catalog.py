"""All registries, by name, for the configuration; importing the records does not import their callables."""

from saliency_assay.config.checks import Catalog
from saliency_assay.data import DATA_KINDS
from saliency_assay.methods import METHODS
from saliency_assay.metrics import METRICS
from saliency_assay.models import ARCHITECTURES
from saliency_assay.studies import STUDY_KINDS
from saliency_assay.training.hyperparameters import PARAMETERS

CATALOG = Catalog(
    data_kinds={record.name: record for record in DATA_KINDS},
    architectures={record.name: record for record in ARCHITECTURES},
    methods={record.name: record for record in METHODS},
    metrics={record.name: record for record in METRICS},
    training=PARAMETERS,
    study_kinds=STUDY_KINDS,
)
