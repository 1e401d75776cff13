"""Seeds of the workflow's jobs."""

from saliency_assay.api.choices import record_named
from saliency_assay.methods.inputs import map_seed
from saliency_assay.metrics import METRICS
from saliency_assay.metrics.engine import metric_seed
from saliency_assay.registry.records import record_of


def workflow_seed(
    seed: int, *, model: str, data: str, method: str | None = None, metric: str | None = None
) -> int:
    """Return the ``seed`` with which ``attribute`` or ``score`` repeats a job of the workflow.

    Args:
        seed: the training seed, as in ``seed{seed}`` of the results' paths.
        model: its name in the configuration.
        data: the data set.
        method: of maps: the registered name, or the ``function`` of a custom method.
        metric: of scores: the registered name, or the ``function`` of a custom metric.

    Raises:
        ValueError: an unknown method or metric, or not exactly one of both.

    >>> import saliency_assay
    >>> saliency_assay.workflow_seed(0, model="f_o", data="bam_os", method="smoothgrad")
    4442187920788574784
    >>> saliency_assay.workflow_seed(0, model="f_o", data="bam_os", method="vargrad")  # the same samples
    4442187920788574784
    >>> saliency_assay.workflow_seed(0, model="f_o", data="bam_os", metric="road")
    6146936151058274299
    """
    if (method is None) == (metric is None):
        raise ValueError("workflow_seed: expected either method or metric")
    if method is not None:
        record = record_named(method)
        return map_seed(seed, model, data, (record.stream or record.name) if record else method)
    assert metric is not None
    if ":" not in metric:
        record_of([each for each in METRICS if each.judges_single_maps], metric, "metric")
    return metric_seed(seed, model, data, metric)
