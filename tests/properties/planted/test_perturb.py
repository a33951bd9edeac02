"""Test that the store holds near the minimal reproducer of each planted bug."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from tornpage.model.operations import AimFault, Crash
from tornpage.properties.campaign.replay import replay
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.planted import REPRODUCERS
from tornpage.properties.planted.perturb import perturbed_reproducer
from tornpage.properties.program.case import Case
from tornpage.properties.program.fault_effects import EFFECTS

CASES_OF_A_SEED = 150


def test_perturbed_reproducers_are_drawn_from_the_seed_alone_and_are_of_every_kind() -> None:
    drawn = [perturbed_reproducer(Random(seed)) for seed in range(4_000)]
    assert drawn[:50] == [perturbed_reproducer(Random(seed)) for seed in range(50)]
    assert {case.settings.bug for case in drawn} == {""}
    kinds = Counter(type(operation) for case in drawn for operation in case.operations)
    assert kinds.keys() == {type(operation) for case in REPRODUCERS.values() for operation in case.operations}
    faults = {operation for case in drawn for operation in case.operations if isinstance(operation, AimFault)}
    assert {fault.effect for fault in faults if fault.seed} == set(EFFECTS)  # reproducers have none
    settings = {replace(case.settings, bug="") for case in REPRODUCERS.values()}
    assert 0 < sum(case.settings not in settings for case in drawn) < len(drawn) / 3
    backs = {operation.back for case in drawn for operation in case.operations if isinstance(operation, Crash)}
    assert backs >= set(range(25))
    assert all(Case.from_token(case.token()) == case for case in drawn[:50])


def test_a_bug_shows_beside_the_reproducers_of_others(tracker: DirtyTracker) -> None:
    for number in range(CASES_OF_A_SEED):
        case = perturbed_reproducer(Random(number))
        if replay(replace(case, settings=replace(case.settings, bug="lying-flush")), tracker=tracker) is not None:
            return
    pytest.fail("nothing is asked there")


def holds_beside_the_reproducers(seed: int, tracker: DirtyTracker) -> None:
    for number in range(CASES_OF_A_SEED):
        case = perturbed_reproducer(Random(f"{seed}:{number}"))
        failure = replay(case, tracker=tracker)
        assert failure is None, f"{failure.broken}: tornpage replay {failure.case.token()}"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_the_store_holds_beside_the_reproducers(seed: int, tracker: DirtyTracker) -> None:
    holds_beside_the_reproducers(seed, tracker)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(4, 204))
def test_the_store_holds_beside_the_reproducers_in_long_runs(seed: int, tracker: DirtyTracker) -> None:
    holds_beside_the_reproducers(seed, tracker)
