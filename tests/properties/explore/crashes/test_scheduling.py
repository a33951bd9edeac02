"""Test configurations of runs: the standard one keeps its draws, disabled rules stay out."""

import random
from collections import Counter

import pytest

from tornpage.model.operations import DeleteTopics, Operation, ServiceName
from tornpage.properties.campaign.coverage import Tally
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.sampling import CHANCES
from tornpage.properties.explore.crashes.explore import explore_seed
from tornpage.properties.explore.crashes.scheduling import (
    STANDARD,
    RunConfiguration,
    Strategy,
    configuration_of,
    rule_epilogue,
)
from tornpage.properties.program.case import Settings
from tornpage.properties.program.workload import RULES, TABLE, UNDELETED, WEIGHTS, draw_operation, draw_rule, possible

STANDARD_RULES = {name for name, weight in WEIGHTS.items() if weight}
SERVICES: tuple[ServiceName, ...] = ("group-commit", "reput", "schedule")


def drawn(mix: RunConfiguration, *, seed: int = 1, draws: int = 5_000) -> Counter[str]:
    rng = random.Random(seed)
    return Counter(draw_rule(rng, services=SERVICES, weights=mix.weights).name for _ in range(draws))


def test_the_standard_mix_is_a_table_of_thousandths() -> None:
    assert sum(WEIGHTS.values()) == 1_000
    assert configuration_of("random", "1:2") is STANDARD
    assert STANDARD.text() == ""


def test_rules_come_as_often_as_their_weights_say() -> None:
    found = drawn(STANDARD, draws=50_000)
    assert found.keys() == STANDARD_RULES
    for name, weight in WEIGHTS.items():
        assert found[name] == pytest.approx(50 * weight, rel=0.25, abs=60)


def test_a_group_without_its_service_leaves_its_share_to_the_next() -> None:
    rng = random.Random(3)
    found = Counter(draw_rule(rng, services=("group-commit",), weights=WEIGHTS).name for _ in range(20_000))
    assert not found["dispatch"] + found["deliver"]
    assert found["step"] == pytest.approx(20 * (WEIGHTS["dispatch"] + WEIGHTS["step"]), rel=0.1)


def test_where_nothing_is_deleted_flushes_take_the_share() -> None:
    assert sum(UNDELETED.values()) == 1_000
    rng = random.Random(4)
    operations: list[Operation] = [draw_operation(rng, closed=False, services=SERVICES) for _ in range(5_000)]
    assert not any(isinstance(each, DeleteTopics) for each in operations)


def test_equal_seeds_draw_equal_mixes_and_others_do_not() -> None:
    assert configuration_of("covering", "1:2") == configuration_of("covering", "1:2")
    assert configuration_of("covering", "1:2") != configuration_of("covering", "1:3")


def test_what_a_mix_has_switched_off_is_never_drawn() -> None:
    for number in range(20):
        mix = configuration_of("covering", f"5:{number}")
        assert drawn(mix, draws=300).keys() <= {name for name, weight in mix.weights.items() if weight}


def test_every_rule_service_and_damage_is_on_in_some_mixes_and_off_in_others() -> None:
    mixes = [configuration_of("covering", f"6:{number}") for number in range(60)]
    for name in WEIGHTS.keys() - {"put", "dispatch", "try_functions", "try_settings"}:  # these are in every mix
        assert {bool(mix.weights[name]) for mix in mixes} == {True, False}
    for damage in set(STANDARD.damages) - {"second_opener"}:
        assert {damage in mix.damages for mix in mixes} == {True, False}
    assert any(mix.chances.kill == 0 for mix in mixes)
    assert any(mix.chances.kill > CHANCES.kill for mix in mixes)


def test_loss_patterns_of_a_mix_are_shares_of_one() -> None:
    for number in range(60):
        pattern_ends = configuration_of("covering", f"7:{number}").chances.pattern_ends
        assert list(pattern_ends) == sorted(pattern_ends)
        assert 0 <= pattern_ends[0] <= pattern_ends[-1] <= 1


def test_a_coda_leaves_no_rule_out() -> None:
    rules = possible(RULES.values(), services=SERVICES, weights=WEIGHTS)
    assert {rule.name for rule, operation in rule_epilogue(rules, Counter()) if operation is None} == STANDARD_RULES
    done = Counter(dict.fromkeys(RULES, 1))
    assert len(list(rule_epilogue(rules, done))) < len(list(rule_epilogue(rules, Counter())))


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["random", "covering"])
def test_every_rule_that_a_history_may_draw_fires_in_it(strategy: Strategy, tracker: DirtyTracker) -> None:
    tally = Tally()
    for failure in explore_seed(
        "9:0",
        Settings(),
        tracker=tracker,
        tally=tally,
        strategy=strategy,
        is_over=lambda: True,
    ):
        assert failure is None
    armed = {name for name in tally.enabled if name.startswith("rule_")}
    assert armed == {name for name in tally.hit if name.startswith("rule_")}
    assert len(armed) == len(STANDARD_RULES) or strategy == "covering"
    assert sum(len(group) for group in TABLE) == len(RULES)


def test_an_interrupt_ends_a_run_before_its_next_operation(tracker: DirtyTracker) -> None:
    """The rest of a run took many seconds: only crash states were left out."""
    calls = 0

    def is_stopped() -> bool:
        nonlocal calls
        calls += 1
        return calls > 5

    run = explore_seed("9:0", Settings(), tracker=tracker, tally=Tally(), is_stopped=is_stopped)
    assert list(run) == []
    assert calls == 6
