"""Hypothesis as these tests run it: the same examples each time, few enough for every change."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "bounded",
    max_examples=40,
    derandomize=True,
    database=None,
    deadline=None,  # of a busy machine
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("bounded")
