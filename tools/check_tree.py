"""Check the source tree, as ``make lint`` does: ``python -m tools.check_tree`` prints ``file:line: message``."""

import sys

from tools.check_documentation import check_documentation
from tools.check_imports import check_imports
from tools.check_requirements import check_requirements
from tools.check_settings import check_settings
from tools.check_site import check_site
from tools.check_workflow import check_workflow
from tools.picture_records import check_pictures

CHECKS = (
    check_imports,
    check_workflow,
    check_documentation,
    check_pictures,
    check_requirements,
    check_settings,
    check_site,
)

if __name__ == "__main__":
    problems = [problem for check in CHECKS for problem in check()]
    for problem in problems:
        print(problem)
    sys.exit(bool(problems))
