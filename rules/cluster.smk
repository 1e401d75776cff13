"""Before the first job: nobody else may work in this folder, nor in the folder of results."""

from saliency_assay.cluster import check_alone
from saliency_assay.environment import announce
from saliency_assay.lock import check_writable, hold

try:
    check_writable(Path.cwd())
except ValueError as error:
    sys.exit(str(error))


onstart:
    announce(PACKAGES)
    try:
        check_alone(Path.cwd())
        # Asked for with --nolock by who only reads, such as the rule plan.
        if workflow.execution_settings.lock:
            hold(Path(RESULTS))
    except ValueError as error:
        sys.exit(str(error))
