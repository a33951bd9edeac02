"""Test that each planted bug of consumers shows in its reproducer, and only there."""

import pytest

from tornpage.model.consumers.operations import FlushBroker, HealMember, StepMember
from tornpage.properties.consumers.replay import CONSUMER_GROUPS, account_of, replay_group
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.planted import GROUP_REPRODUCERS, PLANTED
from tornpage.properties.program.group_case import GroupCase
from tornpage.properties.program.packing import BadToken
from tornpage.properties.program.step_shrinking import identity_of


def test_the_list_of_bugs_is_complete() -> None:
    listed = {f"CB{number:02}" for number in range(1, 25)}
    assert {bug for bug in GROUP_REPRODUCERS if bug.startswith("CB")} == listed


@pytest.mark.parametrize("bug", GROUP_REPRODUCERS)
def test_a_bug_shows_in_its_reproducer_and_not_without_it(bug: str, tracker: DirtyTracker) -> None:
    case = GROUP_REPRODUCERS[bug]
    failure = replay_group(case, tracker=tracker)
    assert failure is not None
    assert failure.broken.contract == PLANTED[bug].shown_contract
    assert failure.case.operations == case.operations, "it shows with the last operation or after it"
    assert replay_group(case.with_bug(""), tracker=tracker) is None


@pytest.mark.parametrize("bug", ["CB01", "CB12"])
def test_a_reproducer_survives_its_token(bug: str) -> None:
    case = GROUP_REPRODUCERS[bug]
    assert GroupCase.from_token(case.token()) == case


@pytest.mark.parametrize(
    "text", ["", "{}", '{"tornpage_group": 1, "settings": {"members": 9}, "operations": []}',
             '{"tornpage_group": 1, "settings": {}, "operations": [{"op": "join", "member": "x"}]}']
)  # fmt: skip
def test_a_bad_case_is_refused(text: str) -> None:
    with pytest.raises(BadToken):
        GroupCase.from_text(text)


def test_a_failure_is_shrunk(tracker: DirtyTracker) -> None:
    small = GROUP_REPRODUCERS["CB08"]
    noise = (FlushBroker(), HealMember(1), StepMember(1))
    failure = replay_group(GroupCase(small.settings, (*noise, *small.operations, *noise)), tracker=tracker)
    assert failure is not None
    shrunk = CONSUMER_GROUPS.shrink(failure, tracker=tracker, tries_max=150)
    assert identity_of(shrunk.broken) == identity_of(failure.broken)
    assert len(shrunk.case.operations) <= len(small.operations)


def test_an_account_has_the_events_of_each_operation(tracker: DirtyTracker) -> None:
    found = account_of(GROUP_REPRODUCERS["CB08"], tracker=tracker)
    assert found is not None
    failure, moments = found
    assert failure.broken.contract == 20
    assert any("Began" in event for moment in moments for event in moment.events)
    assert account_of(GROUP_REPRODUCERS["CB08"].with_bug(""), tracker=tracker) is None
