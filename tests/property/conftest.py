"""Hypothesis as these tests run it: the same examples each time, few unless HYPOTHESIS_PROFILE is ``full``."""

import os

from hypothesis import HealthCheck, settings

for name, examples in {"bounded": 40, "full": 400}.items():
    settings.register_profile(
        name,
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,  # of a busy machine
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "bounded"))
