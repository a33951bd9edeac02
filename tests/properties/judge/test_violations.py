"""Test that each judge passes the right recovery and refuses its planted violation.

It has to have something to compare.
"""

import pytest

from tornpage.properties.campaign.coverage import NEEDS, hit_judges
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.crashes.violations import judges_that_go_red, right_recovery
from tornpage.properties.judge.evidence import Recovered
from tornpage.properties.judge.judges import JUDGES
from tornpage.properties.judge.rulings import require
from tornpage.properties.judge.violations import VIOLATIONS
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Settings

NAMES = [judge.__name__ for judge in JUDGES]


@pytest.fixture
def found(tracker: DirtyTracker) -> Recovered:
    return right_recovery(tracker)


def test_every_judge_has_a_violation_and_a_need() -> None:
    assert sorted(VIOLATIONS) == sorted(NEEDS) == sorted(NAMES)


def test_a_right_recovery_is_compared_by_all_and_passes_all(found: Recovered) -> None:
    for judge in JUDGES:
        require(judge(found))
    assert set(hit_judges(found)) == {f"judge_{name}" for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_a_judge_refuses_its_violation(found: Recovered, name: str) -> None:
    judge = next(judge for judge in JUDGES if judge.__name__ == name)
    with pytest.raises(GuaranteeBroken):
        require(judge(VIOLATIONS[name](found)))


def test_a_judge_that_agrees_with_everything_is_not_among_the_red(
    tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert judges_that_go_red(tracker) == NAMES
    monkeypatch.setitem(VIOLATIONS, NAMES[0], lambda found: found)
    assert judges_that_go_red(tracker) == NAMES[1:]


def test_in_an_empty_store_hardly_any_judge_has_something_to_compare(tracker: DirtyTracker) -> None:
    trial = lockstep_of(Settings(), tracker=tracker)
    empty = trial.recovery.judged_at_rest()
    assert hit_judges(empty) == ("judge_opens_for_writing",)
