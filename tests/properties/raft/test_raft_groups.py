"""Test the lab of Raft groups: reproducers, drawn runs, the search and its check."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, get_args
from unittest.mock import patch

import pytest

from tornpage.impl.io.store_lock import StoreLock
from tornpage.impl.parts import Parts
from tornpage.impl.raft import raft_commit_log
from tornpage.impl.raft.answers import RaftStatus
from tornpage.impl.raft.entries import RaftEntries
from tornpage.impl.raft.node import RaftNode
from tornpage.impl.raft.peers import Peers
from tornpage.impl.serving.raft_operations import RaftOperations
from tornpage.model.raft.operations import (
    CloseMember,
    CrashMember,
    CutLinks,
    Deliver,
    Elect,
    Greeting,
    Knock,
    Propose,
    RaftOperation,
    RestartMember,
    RunNodes,
    SyncLog,
)
from tornpage.properties.contract import GuaranteeBroken, Verdict
from tornpage.properties.disk.dirty import DirtyTracker, choose_tracker
from tornpage.properties.explore.raft.campaign import REQUIRED, RaftPlan, draw_run, explore_raft, required_of
from tornpage.properties.explore.raft.search import brute_force, search
from tornpage.properties.explore.raft.states import Bound, canonical, independent, initial
from tornpage.properties.planted import RAFT_REPRODUCERS, parts_of
from tornpage.properties.program.packing import BadToken
from tornpage.properties.program.raft_case import RaftCase, RaftSettings
from tornpage.properties.raft import nodes
from tornpage.properties.raft.formats import parts_hold
from tornpage.properties.raft.replay import RAFT_GROUPS, replay_raft
from tornpage.properties.raft.trial import RaftTrial

OF_STORES = {"LB10", "LB11", "LB17", "LB18"}
"""Bugs that only a store on the log can show."""


@pytest.fixture(scope="module")
def tracker() -> Iterator[DirtyTracker]:
    with choose_tracker("auto") as chosen:
        yield chosen


def test_every_bug_of_the_list_is_planted() -> None:
    assert set(RAFT_REPRODUCERS) == {f"LB{number:02d}" for number in range(1, 19)}
    assert {bug for bug, case in RAFT_REPRODUCERS.items() if case.settings.store} == OF_STORES


@pytest.mark.parametrize("bug", RAFT_REPRODUCERS)
def test_a_minimal_reproducer_needs_its_bug(bug: str, tracker: DirtyTracker) -> None:
    case = RAFT_REPRODUCERS[bug]
    assert case.settings.judged == "promises", "the promises of the group show the bug, not a comparison of one step"
    found = replay_raft(case, tracker=tracker)
    assert found is not None
    assert found.broken.contract == (4 if bug in OF_STORES else 17 if bug == "LB12" else 15)
    assert replay_raft(case.with_bug(""), tracker=tracker) is None
    assert replay_raft(replace(case, settings=replace(case.settings, bug="", judged="all")), tracker=tracker) is None


def test_the_schedule_of_figure_8_loses_a_committed_entry(tracker: DirtyTracker) -> None:
    found = replay_raft(RAFT_REPRODUCERS["LB03"], tracker=tracker)
    assert found is not None
    assert found.broken.sentence == "leader 1 of term 4 lacks committed entries"


@pytest.mark.parametrize("members", [1, 3, 5])
def test_drawn_runs_hold_and_repeat(members: int, tracker: DirtyTracker) -> None:
    settings = RaftSettings(members=members)
    runs = [draw_run(settings, f"1:{number}", tracker=tracker) for number in range(12)]
    assert [run.failure for run in runs] == [None] * 12
    assert draw_run(settings, "1:3", tracker=tracker).digest == runs[3].digest


@pytest.mark.slow
def test_a_campaign_holds_and_reaches_everything(tracker: DirtyTracker) -> None:
    result = explore_raft(RaftPlan(RaftSettings(), seed=3, states=260), tracker=tracker)
    assert (result.verdict, result.silent, result.canary) == (Verdict.HOLDS, [], "LB06")


@pytest.mark.deep
@pytest.mark.parametrize(
    "settings", [RaftSettings(members=1), RaftSettings(store=True), RaftSettings(disk="kill")], ids=str
)
def test_a_campaign_asks_for_nothing_that_its_settings_forbid(settings: RaftSettings, tracker: DirtyTracker) -> None:
    """A member with a store gives no answers to appends, and the disk `kill` loses no write."""
    result = explore_raft(RaftPlan(settings, seed=3, states=400), tracker=tracker)
    assert (result.verdict, result.silent) == (Verdict.HOLDS, [])
    assert set(required_of(settings)) < set(REQUIRED)


def test_a_planted_bug_is_shrunk_to_few_events(tracker: DirtyTracker) -> None:
    settings = RaftSettings(judged="promises", bug="LB01")
    failure = next(
        run.failure for number in range(40) if (run := draw_run(settings, f"7:{number}", tracker=tracker)).failure
    )
    small = RAFT_GROUPS.shrink(failure, tracker=tracker)
    assert len(small.case.operations) <= 8
    assert replay_raft(RaftCase.from_token(small.case.token()), tracker=tracker) is not None


def test_a_vote_of_an_event_that_was_cut_short_was_never_sent(tracker: DirtyTracker) -> None:
    trial = RaftTrial(RaftSettings(), tracker=tracker)
    trial.run(Elect(1))
    trial.run(Deliver(1, 0, "vote"))
    trial.run(CrashMember(0, back=3))
    trial.run(RestartMember(0))
    assert trial.nodes[0].state.vote is None
    assert (0, 1, "vote_reply") not in trial.fresh


@pytest.mark.parametrize(("members", "store"), [(1, False), (2, True), (3, False), (5, True)])
def test_groups_of_nodes_hold_and_repeat(members: int, store: bool, tracker: DirtyTracker) -> None:
    settings = RaftSettings(members=members, store=store, nodes=True)
    runs = [draw_run(settings, f"3:{number}", tracker=tracker) for number in range(3)]
    assert [run.failure for run in runs] == [None] * 3
    assert draw_run(settings, "3:1", tracker=tracker).digest == runs[1].digest


@pytest.mark.parametrize("greeting", get_args(Greeting))
def test_a_stranger_changes_no_group(greeting: Greeting, tracker: DirtyTracker) -> None:
    operations = (RunNodes(2_000), Knock(0, greeting), RunNodes(6_000), Knock(1, greeting))
    for limits in ("usual", "small"):
        case = RaftCase(RaftSettings(nodes=True, limits=limits), operations)
        assert replay_raft(case, tracker=tracker) is None
        assert RaftCase.from_token(case.token()) == case


@pytest.mark.parametrize(
    ("target", "name", "change", "contract", "sentence"),
    [
        (RaftNode, "_take_transfers", lambda node, now_ms: None, 16, "has no answer|whether a transfer is answered"),
        (RaftNode, "_refusal", lambda node, now_ms: RaftStatus.NOT_LEADER, 8, "is answered NOT_LEADER"),
        (RaftNode, "_due_ms", lambda node, now_ms: now_ms, 16, "without a pause|at rest steps"),
        (RaftEntries, "lose_role", lambda entries: None, 16, "after the end of the member"),
        (Peers, "_accept", lambda peers, link, now_ms: link.close(), 16, "never elects a leader"),
        (Peers, "clients_of", lambda peers, member: "", 8, "a member shows another state"),
    ],
    ids=["transfer", "refusal", "due", "lost role", "accept", "clients"],
)
def test_a_wrong_node_is_found(
    target: type, name: str, change: Callable[..., Any], contract: int, sentence: str, tracker: DirtyTracker
) -> None:
    appends: tuple[RaftOperation, ...] = (CutLinks(0), CutLinks(1), *(Propose(each) for each in range(3)), RunNodes(20))
    operations: tuple[RaftOperation, ...] = (RunNodes(3_000), *appends, *(CloseMember(each) for each in range(3)))
    case = RaftCase(RaftSettings(nodes=True), operations)
    assert replay_raft(case, tracker=tracker) is None
    with patch.object(target, name, change):
        found = replay_raft(case, tracker=tracker)
    assert found is not None
    assert found.broken.contract == contract
    assert re.search(sentence, found.broken.sentence)


def test_a_lost_durable_entry_is_named(tracker: DirtyTracker) -> None:
    trial = RaftTrial(RaftSettings(members=1), tracker=tracker)
    trial.run(Elect(0))
    trial.run(SyncLog(0))
    node = trial.nodes[0]
    trial.run(CrashMember(0))
    node.state = node.before = node.state._replace(log=(*node.state.log, *node.state.log), synced=2)
    with pytest.raises(GuaranteeBroken, match="restarts with 1 entries, 2 were durable"):
        trial.run(RestartMember(0))


# ---- the search ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bound", [Bound(1, 0, 0), pytest.param(Bound(1, 0, 1), marks=pytest.mark.slow)])
def test_the_reductions_leave_out_no_state(bound: Bound) -> None:
    found, every = search(3, bound, batch=1, parts=Parts()), brute_force(3, bound, batch=1, parts=Parts())
    assert (found.broken, every.broken, found.is_complete) == ([], [], True)
    assert found.reached == every.reached
    assert found.states * 5 < every.states
    assert found.slept > 0


@pytest.mark.parametrize("bug", ["LB01", "LB08", "LB09"])
def test_the_search_finds_a_bug_by_the_promises_alone(bug: str) -> None:
    found = search(3, Bound(2, 0, 0), batch=1, parts=parts_of(bug), compares=False, states_max=500)
    assert found.broken
    assert found.schedule


def test_each_step_is_compared_with_the_model() -> None:
    found = search(3, Bound(1, 0, 0), batch=1, parts=parts_of("LB12"))
    assert found.is_complete, "a search without reads cannot show it"
    found = search(3, Bound(1, 0, 0), batch=1, parts=parts_of("LB03"))
    assert "and the model" in found.broken[0]


def test_renumbered_groups_are_one_state() -> None:
    start = initial(3, Bound())
    first, second = (
        start._replace(members=tuple(each._replace(term=at == place) for at, each in enumerate(start.members)))
        for place in (0, 2)
    )
    assert first != second
    assert canonical(first)[0] == canonical(second)[0]


def test_a_delivery_depends_on_what_its_source_does() -> None:
    assert not independent(("deliver", 1, 0, 2), ("beat", 0, 0, 0))
    assert independent(("deliver", 1, 0, 2), ("sync", 2, 0, 0))
    assert not independent(("elect", 0, 0, 0), ("elect", 1, 0, 0))


@pytest.mark.parametrize("text", ["tr1-x", "tr1-"])
def test_a_token_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(BadToken):
        RaftCase.from_token(text)


def failure_with(owner: Any, name: str, wrong: Any, tracker: DirtyTracker) -> Any:
    """Return the first failure of drawn runs on a store with another attribute.

    The failure of its replay comes with it. The store alone is not run, since it would find some of them first.
    """
    parts_hold()
    with patch.object(owner, name, wrong), patch.object(nodes, "store_program_holds"):
        for number in range(40):
            settings = RaftSettings(members=1 + number % 3)
            failure = draw_run(settings, f"wrong:{number}", tracker=tracker).failure
            if failure is not None:
                return failure, replay_raft(failure.case, tracker=tracker)
    return None


def status_without_waiting(operations: RaftOperations) -> dict[str, Any]:
    return {} if operations._node is None else operations._node.status()


@pytest.mark.parametrize(
    ("owner", "name", "wrong", "sentence"),
    [
        (RaftOperations, "answer_of", lambda *_: {"ok": True, "status": "OK"}, "is another one"),
        (RaftOperations, "status", status_without_waiting, "is another one"),
        (StoreLock, "release", lambda _: None, "keeps files open"),
        (Peers, "close", lambda _: None, "has ended, and keeps"),
        (raft_commit_log, "_records_of", lambda encoded, _: [bytearray(encoded.data)], "a batch of"),
    ],
)  # fmt: skip
@pytest.mark.slow
def test_wrong_end_or_answer_is_found_and_repeats(
    owner: Any, name: str, wrong: Any, sentence: str, tracker: DirtyTracker
) -> None:
    found = failure_with(owner, name, wrong, tracker)
    assert found is not None
    failure, again = found
    assert sentence in failure.broken.sentence
    assert again is not None
    assert again.broken.sentence == failure.broken.sentence
