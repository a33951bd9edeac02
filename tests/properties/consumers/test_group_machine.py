"""Run the Hypothesis machine of consumer groups, without a bug and with one."""

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.explore.consumers.machine import group_machine

LOOSE: dict[str, Any] = {
    "deadline": None,
    "database": None,
    "suppress_health_check": list(HealthCheck),
    "derandomize": True,
}


@pytest.mark.parametrize("members", [2, 3])
def test_the_machine_holds(members: int) -> None:
    chosen = settings(max_examples=8, stateful_step_count=20, **LOOSE)
    run_state_machine_as_test(group_machine(members=members), settings=chosen)


@pytest.mark.deep
def test_the_machine_holds_for_long() -> None:
    chosen = settings(max_examples=600, stateful_step_count=30, **LOOSE)
    run_state_machine_as_test(group_machine(), settings=chosen)


@pytest.mark.parametrize("bug", ["CC20", pytest.param("CB24", marks=pytest.mark.deep)])
def test_the_machine_catches_a_bug(bug: str) -> None:
    chosen = settings(max_examples=2_000, stateful_step_count=20, phases=[Phase.generate], **LOOSE)
    with pytest.raises((GuaranteeBroken, BaseExceptionGroup)):
        run_state_machine_as_test(group_machine(bug=bug), settings=chosen)
