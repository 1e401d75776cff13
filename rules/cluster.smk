"""Before the first job: nobody else may work in this folder."""

from saliency_assay.cluster import check_alone


onstart:
    try:
        check_alone(Path.cwd())
    except ValueError as error:
        sys.exit(str(error))
