"""Run the Hypothesis machine of clusters, without a bug and with one."""

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.explore.cluster.machine import cluster_machine

LOOSE: dict[str, Any] = {
    "deadline": None,
    "database": None,
    "suppress_health_check": list(HealthCheck),
    "derandomize": True,
}


@pytest.mark.parametrize("nodes", [2, 3])
def test_the_machine_holds(nodes: int) -> None:
    chosen = settings(max_examples=8, stateful_step_count=20, **LOOSE)
    run_state_machine_as_test(cluster_machine(nodes=nodes), settings=chosen)


@pytest.mark.deep
@pytest.mark.parametrize("nodes", [2, 3])
def test_the_machine_holds_for_long(nodes: int) -> None:
    chosen = settings(max_examples=600, stateful_step_count=30, **LOOSE)
    run_state_machine_as_test(cluster_machine(nodes=nodes), settings=chosen)


@pytest.mark.parametrize("bug", ["RB08", pytest.param("RB02", marks=pytest.mark.deep)])
def test_the_machine_catches_a_bug(bug: str) -> None:
    chosen = settings(max_examples=300, stateful_step_count=20, phases=[Phase.generate], **LOOSE)
    with pytest.raises((GuaranteeBroken, BaseExceptionGroup)):
        run_state_machine_as_test(cluster_machine(bug=bug), settings=chosen)
