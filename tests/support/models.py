"""How long the model-based tests run: briefly for a developer, at length in CI."""

import os

from hypothesis import HealthCheck, settings

STEPS = 50


def model_settings(*, examples: int = 12, in_ci: int = 80) -> settings:
    """Settings of a state machine: ``examples`` runs of up to 50 steps, ``in_ci`` under CI."""
    return settings(
        max_examples=in_ci if os.environ.get("CI") else examples,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
