"""Test that each planted bug of replication shows in its reproducer, and only there."""

from dataclasses import replace

import pytest

from tornpage.properties.cluster.replay import replay_cluster
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.planted import CLUSTER_REPRODUCERS, PLANTED
from tornpage.properties.program.cluster_case import ClusterCase


def test_the_list_of_bugs_is_complete() -> None:
    listed = {f"RB{number:02}" for number in range(1, 25)}
    assert {bug for bug in CLUSTER_REPRODUCERS if bug.startswith("RB")} == listed


@pytest.mark.parametrize("bug", CLUSTER_REPRODUCERS)
def test_a_bug_shows_in_its_reproducer_and_not_without_it(bug: str, tracker: DirtyTracker) -> None:
    case = CLUSTER_REPRODUCERS[bug]
    failure = replay_cluster(case, tracker=tracker)
    assert failure is not None
    assert failure.broken.contract == PLANTED[bug].shown_contract
    assert failure.case.operations == case.operations, "it shows with the last operation or after it"
    assert replay_cluster(replace(case, settings=replace(case.settings, bug="")), tracker=tracker) is None


@pytest.mark.parametrize("bug", ["RB09", "RB14"])
def test_a_reproducer_survives_its_token(bug: str) -> None:
    case = CLUSTER_REPRODUCERS[bug]
    assert ClusterCase.from_token(case.token()) == case
