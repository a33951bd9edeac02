"""A failure of a campaign fails in its replay too.

Symptom: four of 167 searches of a scoreboard ended with "a failure does not replay", a fault of the harness.
Cause: a run is executed first and then crashed at each of its events. Judges asked for keys of messages that were put
after the crash, which a replay does not have. All recoveries had the clock of the end of the session.
Fix: keys are those of the recovered log. The crash of a case says how much later its recovery was.

A later cause: the wall clock was moved in the session. A crash before that had a recovery with the moved clock, from
which an index file has its name. A crash after it belonged to an earlier operation in the case, because a step of the
clock counted as an operation with disk calls. Fix: a crash state has the wall clock of its operation, and a step of the
clock is listed with the operations that make no disk call.

A third cause: a session had an I/O fault rule. Its crash states recover without the rule. A replay recovered under the
rule, so the first open was refused, and the second one made a name durable. Fix: the crash of such a case says that the
fault ends with it.
"""

import random

import pytest

from tornpage.model.operations import AimFault, ClockStep, Crash, Flush, Operation, Put
from tornpage.properties.campaign.coverage import Tally
from tornpage.properties.campaign.replay import replay
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.explore.crashes.crash_states import CrashStates, StateBroken
from tornpage.properties.explore.crashes.explore import explore_seed
from tornpage.properties.lockstep.environment import Environment
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Case, Settings
from tornpage.properties.score.trials import TrialKey, run_trial


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bug", "number", "seed"),
    [("equal-hashes", 2, 0), ("newest-index-file-dropped", 2, 0), ("unlink-not-synced", 0, 18)],
)
def test_what_a_campaign_finds_is_found_again(bug: str, number: int, seed: int) -> None:
    row = run_trial(TrialKey(bug, "covering", number, seed), 60.0, "cpu")
    assert (row.end, row.why) == ("killed", "")


def test_a_crash_beside_a_step_of_the_clock_is_found_again() -> None:
    """The rows of these runs move the clock by 90 s."""
    settings = Settings(bug="index-header-believed")
    for seed in ("1:1", "1:5", "1:6"):
        with choose_tracker("auto") as tracker:
            found = explore_seed(seed, settings, tracker=tracker, tally=Tally(), strategy="covering")
            failure = next(each for each in found if each is not None)
            assert any(isinstance(each, ClockStep) for each in failure.case.operations), "choose another seed"
            assert replay(failure.case, tracker=tracker) is not None


def test_an_earlier_crash_has_the_clock_of_before_its_step() -> None:
    environment = Environment(1_000)
    environment.set_clock(90_000)
    with environment.before_clock_steps(0):
        assert (environment.clock_ms, environment.set_forward_ms) == (1_000, 0)
    assert (environment.clock_ms, environment.set_forward_ms) == (91_000, 90_000)


def test_a_recovery_may_begin_later_than_its_crash() -> None:
    with choose_tracker("auto") as tracker:
        for kill in (True, False):
            case = Case(Settings(), (Put(), Crash(kill=kill, later_ms=86_400_000), Put()))
            assert Case.from_token(case.token()) == case
            assert replay(case, tracker=tracker) is None


def test_equal_images_before_and_after_a_step_of_the_clock_have_verdicts_of_their_own() -> None:
    """A recovery names its index file by the wall clock, and verdicts were cached without it."""
    with choose_tracker("auto") as tracker:
        found = list(explore_seed("0:8", Settings(), tracker=tracker, tally=Tally(), strategy="covering"))
    assert found
    assert not any(found)


@pytest.mark.parametrize(("fault_ends", "refused"), [(False, 1), (True, 0)])
@pytest.mark.parametrize("kill", [False, True])
def test_a_fault_that_ends_does_not_act_on_the_recovery(*, kill: bool, fault_ends: bool, refused: int) -> None:
    fault = AimFault("read-error", "kind=log and nth=1")
    with choose_tracker("auto") as tracker:
        trial = lockstep_of(Settings(), tracker=tracker)
        for operation in (Put(), fault, Crash(kill=kill, fault_ends=fault_ends)):
            trial.run(operation)
        assert trial.coverage[f"{fault.text}_fired"] == refused


def test_crash_states_of_a_session_with_a_fault_recover_without_it() -> None:
    with choose_tracker("auto") as tracker:
        trial = lockstep_of(Settings(bug="lying-flush"), tracker=tracker)
        fault = AimFault("read-error", "kind=log and nth=1")
        operations: list[Operation] = [Put(), Flush(), fault, *[Put(body_bytes=700)] * 40]
        for operation in operations:
            trial.run(operation)
        states = CrashStates(trial, trial.performed, 0, rng=random.Random(0), tally=Tally())
        with pytest.raises(StateBroken) as broken:
            list(states.everywhere())
        crash = broken.value.failure.case.operations[-1]
        assert isinstance(crash, Crash)
        assert crash.fault_ends
