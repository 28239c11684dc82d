"""For all tests: examples of Hypothesis are not timed, since a busy machine is no defect."""

from hypothesis import HealthCheck, settings

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
