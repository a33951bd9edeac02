"""Test the crash lab of clusters on programs whose outcome is known."""

from dataclasses import replace
from typing import get_args

import pytest

from tornpage.model.replication.operations import (
    AdvanceTime,
    Caller,
    CallNode,
    ChangeRoles,
    CleanNode,
    CloseNode,
    CrashNode,
    FailCopy,
    FailFile,
    FailSyncOn,
    FlushNode,
    Forged,
    ForgeFrame,
    HealLink,
    LimitLink,
    PutOn,
    ResetLink,
    RestartNode,
    RunAll,
    StepNode,
)
from tornpage.properties.cluster.forging import CALLERS, FORGED
from tornpage.properties.cluster.network import MASTER, REPLICA, RecordedNetwork
from tornpage.properties.cluster.replay import CLUSTERS, replay_cluster
from tornpage.properties.cluster.trial import ClusterTrial
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.planted import CLUSTER_REPRODUCERS
from tornpage.properties.program.cluster_case import ClusterCase, ClusterSettings
from tornpage.properties.program.packing import BadToken
from tornpage.properties.program.step_shrinking import identity_of

TWO = ClusterSettings()
THREE = ClusterSettings(nodes=3, quorum=2)
LAST_PUT_BYTES = 152
"""The record of the message that is put at the end of a run."""


def ran(tracker: DirtyTracker, *operations: object, settings: ClusterSettings = TWO) -> ClusterTrial:
    trial = ClusterTrial(settings, tracker=tracker)
    for operation in operations:
        trial.run(operation)  # type: ignore[arg-type]
    return trial


def confirmed(trial: ClusterTrial) -> int:
    return trial.hit["answered PUT_OK"]


def test_a_put_is_confirmed_by_its_replica(tracker: DirtyTracker) -> None:
    trial = ran(tracker, RunAll(), PutOn(body_bytes=2500), PutOn(body_bytes=2500), RunAll())
    assert confirmed(trial) == 2
    assert [node.end for node in trial.nodes] == [6708, 6708]
    trial.finish()


def test_a_put_without_a_replica_is_answered_at_once(tracker: DirtyTracker) -> None:
    assert ran(tracker, PutOn()).hit["answered SLAVE_NOT_AVAILABLE"] == 1


def test_a_silent_replica_is_a_time_out(tracker: DirtyTracker) -> None:
    trial = ran(tracker, RunAll(), LimitLink(1), PutOn(), RunAll(), AdvanceTime(3001), StepNode())
    assert trial.hit["answered FLUSH_SLAVE_TIMEOUT"] == 1


def test_a_quorum_of_two_waits_for_the_slower_replica(tracker: DirtyTracker) -> None:
    trial = ran(tracker, RunAll(), LimitLink(2), PutOn(), RunAll(), settings=THREE)
    assert confirmed(trial) == 0
    trial.run(HealLink(2))
    trial.run(RunAll())
    assert confirmed(trial) == 1


def test_a_durable_acknowledgement_waits_for_the_sync(tracker: DirtyTracker) -> None:
    trial = ran(tracker, RunAll(), PutOn(), RunAll(), settings=replace(TWO, acknowledge="durable"))
    assert confirmed(trial) == 0
    trial.run(FlushNode(1))
    trial.run(RunAll())
    assert confirmed(trial) == 1


def test_only_flushed_bytes_are_sent_if_asked(tracker: DirtyTracker) -> None:
    trial = ran(tracker, RunAll(), PutOn(), RunAll(), settings=replace(TWO, send_flushed_only=True))
    assert trial.nodes[1].end == 0
    trial.run(FlushNode(0))
    trial.run(RunAll())
    assert trial.nodes[1].end == trial.nodes[0].end == 112


def test_a_replica_that_is_ahead_is_cut_and_catches_up(tracker: DirtyTracker) -> None:
    trial = ran(tracker, PutOn(body_bytes=2500), RunAll(), PutOn(body_bytes=2500), RunAll(), CrashNode(), RestartNode())
    assert [node.end for node in trial.nodes] == [0, 6708]
    trial.run(PutOn(body_bytes=40))
    trial.run(AdvanceTime())
    trial.run(RunAll())
    trial.run(AdvanceTime())
    trial.run(RunAll())
    assert trial.hit["log cut"] == 1
    assert [node.end for node in trial.nodes] == [152, 152]
    trial.finish()


def test_a_slave_becomes_the_master_with_everything_after_a_drain(tracker: DirtyTracker) -> None:
    trial = ran(tracker, RunAll(), PutOn(body_bytes=300), ChangeRoles(1, drained=True), PutOn(1))
    assert [node.role for node in trial.nodes] == ["slave", "master"]
    assert trial.nodes[1].end == 524
    trial.finish()


def test_a_half_open_link_does_not_keep_a_replica_away(tracker: DirtyTracker) -> None:
    trial = ran(tracker, RunAll(), CrashNode(1, silent=True), RestartNode(1), RunAll(), PutOn(), RunAll())
    assert confirmed(trial) == 1


def test_a_full_disk_of_a_replica_delays_it(tracker: DirtyTracker) -> None:
    trial = ran(tracker, RunAll(), FailFile(1), PutOn(), RunAll())
    assert trial.nodes[1].end == 0
    trial.finish()
    assert trial.nodes[1].end == 112 + LAST_PUT_BYTES


def test_a_failed_copy_after_the_end_of_a_file_leaves_that_end(tracker: DirtyTracker) -> None:
    """Regression: the lab took the end of the file for a message.

    Found by `tornpage explore cluster --seconds 90 --seed 31`, which reported a missing message of queue 0.
    """
    trial = ran(tracker, PutOn(body_bytes=2500), FailCopy(0), PutOn(body_bytes=2500), PutOn(body_bytes=40), RunAll())
    assert [node.end for node in trial.nodes] == [4096 + 152, 4096 + 152]
    trial.finish()


def test_a_close_answers_waiting_puts(tracker: DirtyTracker) -> None:
    trial = ran(tracker, RunAll(), LimitLink(1), PutOn(), CloseNode())
    assert trial.hit["answered FLUSH_SLAVE_TIMEOUT"] == 1


def test_a_crash_withdraws_what_was_sent_after_it(tracker: DirtyTracker) -> None:
    trial = ran(tracker, RunAll(), PutOn(), StepNode(), StepNode(1))
    (link,) = trial.network.links
    assert link.waiting[MASTER]
    events = trial.events_of(1)
    trial.run(CrashNode(1, kill=True, back=events))
    assert not link.waiting[MASTER]
    trial.finish()


@pytest.mark.parametrize("kept", [0, 1, 16, 50, 10_000])
def test_any_prefix_of_the_bytes_may_arrive_before_a_reset(kept: int, tracker: DirtyTracker) -> None:
    operations = (RunAll(), PutOn(body_bytes=300), StepNode(), ResetLink(1, to_replica_bytes=kept))
    assert replay_cluster(ClusterCase(TWO, operations), tracker=tracker) is None


def test_every_crash_point_of_a_cut_is_survived(tracker: DirtyTracker) -> None:
    before = (PutOn(body_bytes=2500), PutOn(body_bytes=2500), RunAll(), CrashNode(), RestartNode(), AdvanceTime())
    steps = (StepNode(1), StepNode(1), StepNode(0), StepNode(1))
    trial = ran(tracker, *before, *steps)
    assert trial.hit["log cut"] == 1
    events = trial.events_of(1)
    assert events > 20
    for back in range(0, events, 9):
        for crash in (CrashNode(1, back=back), CrashNode(1, back=back, others="kept"), CrashNode(1, True, back)):
            failure = replay_cluster(ClusterCase(TWO, (*before, *steps, crash)), tracker=tracker)
            assert failure is None, failure.broken


# ---- retention, failing syncs, forged frames -------------------------------------------------------------------------

TWO_FILES = (PutOn(body_bytes=2500), PutOn(body_bytes=2500), FlushNode(), StepNode(), CleanNode())
"""Operations after which the log of the master begins with its second file."""


def test_a_new_replica_begins_where_its_master_begins(tracker: DirtyTracker) -> None:
    trial = ran(tracker, *TWO_FILES, RunAll(8))
    assert [(node.begin, node.end) for node in trial.nodes] == [(4096, 6708)] * 2
    trial.finish()


def test_a_replica_that_retention_has_passed_states_it(tracker: DirtyTracker) -> None:
    trial = ran(tracker, PutOn(), RunAll(), CloseNode(1), *TWO_FILES)
    trial.finish()
    assert trial.hit["bytes gone"] == 1
    assert trial.nodes[1].end == 112


def test_a_replica_has_time_to_state_what_is_gone(tracker: DirtyTracker) -> None:
    """Regression: the run ended before the replica had connected again."""
    before = (
        PutOn(body_bytes=2500),
        RunAll(),
        CrashNode(1, kill=True),
        PutOn(body_bytes=1500),
        StepNode(),
        FlushNode(),
    )
    trial = ran(tracker, *before, RestartNode(1), CleanNode(), RunAll(1), CloseNode())
    trial.finish()
    assert trial.hit["bytes gone"] == 1


def test_a_replica_that_retention_has_passed_may_drop_its_log(tracker: DirtyTracker) -> None:
    settings = replace(TWO, discard_when_gone=True)
    trial = ran(tracker, PutOn(), RunAll(), CloseNode(1), *TWO_FILES, settings=settings)
    trial.finish()
    assert [(node.begin, node.end) for node in trial.nodes] == [(4096, 6708 + LAST_PUT_BYTES)] * 2


def test_a_put_that_retention_removed_is_not_confirmed(tracker: DirtyTracker) -> None:
    """Regression: a new replica that begins past a waiting put confirmed it.

    Found by `tornpage explore cluster --seconds 75 --seed 1`: "node 1 acknowledges more than it has".
    """
    trial = ran(tracker, RunAll(), LimitLink(1), *TWO_FILES, ResetLink(1), HealLink(1), AdvanceTime(), RunAll(8))
    assert trial.hit["answered FLUSH_SLAVE_TIMEOUT"] == 1
    assert trial.hit["answered PUT_OK"] == 1
    trial.finish()


def test_a_dropped_log_leaves_no_queue_numbers(tracker: DirtyTracker) -> None:
    """Regression: the queue of a dropped log ignored the first messages of another log.

    Found by `tornpage explore cluster --nodes 3 --states 4000 --seed 203`: "queue 0 of node 2 does not hold its
    messages".
    """
    settings = ClusterSettings(nodes=3, discard_when_gone=True)
    begin = (PutOn(), RunAll(), CloseNode(1), *TWO_FILES[:-1], CleanNode(), CrashNode(2, kill=True), RestartNode(2))
    trial = ran(tracker, *begin, RunAll(8), ChangeRoles(), settings=settings)
    trial.finish()
    assert [node.end for node in trial.nodes] == [112 + LAST_PUT_BYTES] * 3


def test_logs_without_a_byte_are_equal(tracker: DirtyTracker) -> None:
    """Regression: a replica without a file was to reach the empty file of its new master.

    Found by `tornpage explore cluster --nodes 3 --states 3000 --seed 403`.
    """
    begin = (PutOn(body_bytes=1500), PutOn(body_bytes=2500), FlushNode(), RunAll(1), CleanNode(), RunAll())
    trial = ran(tracker, *begin, CrashNode(2), ChangeRoles(2), settings=ClusterSettings(nodes=3))
    trial.finish()
    assert trial.nodes[2].begin == 4096
    assert [node.end for node in trial.nodes] == [4096 + LAST_PUT_BYTES] * 3


def test_an_empty_file_does_not_keep_a_replica_from_a_later_begin(tracker: DirtyTracker) -> None:
    """Regression: a replica with one empty file refused a master that begins later.

    Found by `tornpage explore cluster --nodes 3 --seconds 45 --seed 62`: "node 2 does not catch up with its master".
    """
    two = (PutOn(body_bytes=2500), PutOn(body_bytes=2500))
    trial = ran(tracker, RunAll(), *two, FlushNode(), StepNode(), CleanNode(), FailCopy(1), StepNode(1))
    assert trial.nodes[1].end == 0
    trial.finish()
    assert trial.nodes[1].begin == 4096


def test_a_failed_sync_of_a_replica_is_not_acknowledged_as_durable(tracker: DirtyTracker) -> None:
    settings = replace(TWO, slave_syncs=True, acknowledge="durable")
    trial = ran(tracker, RunAll(), FailSyncOn(1), PutOn(), RunAll(8), settings=settings)
    assert confirmed(trial) == 0
    assert trial.nodes[1].end == 112
    assert trial.nodes[1].store.read_only_reason is not None
    trial.finish()


def test_a_failed_sync_inside_a_cut_is_repeated(tracker: DirtyTracker) -> None:
    """Regression: the lab did not look at the old link after a repeated cut."""
    trial = ran(tracker, PutOn(), RunAll(), PutOn(), ChangeRoles(), FailSyncOn(0), RunAll())
    assert trial.hit["log cut"] == 1
    trial.finish()


@pytest.mark.parametrize("size_bytes", [0, 20, 5_000, 1 << 22, (1 << 32) - 20])
@pytest.mark.parametrize("to_master", [False, True])
def test_a_forged_frame_ends_its_link_only(size_bytes: int, to_master: bool, tracker: DirtyTracker) -> None:
    trial = ran(tracker, RunAll(), ForgeFrame(1, to_master, size_bytes), PutOn(), RunAll(8))
    trial.finish()
    assert [node.end for node in trial.nodes] == [112 + LAST_PUT_BYTES] * 2


@pytest.mark.parametrize("frame", get_args(Forged))
def test_a_wrong_frame_ends_its_link_only(frame: Forged, tracker: DirtyTracker) -> None:
    put, to_master = PutOn(), FORGED[frame][0] == "master"
    trial = ran(tracker, RunAll(), ForgeFrame(1, to_master, 0, frame), put, RunAll(2), AdvanceTime(), RunAll(8))
    assert trial.hit["frame forged"] == 1
    assert trial.network.links[0].is_closed
    trial.finish()
    assert [node.end for node in trial.nodes] == [112 + LAST_PUT_BYTES] * 2


@pytest.mark.parametrize("caller", get_args(Caller))
def test_a_connection_of_no_replica_ends(caller: Caller, tracker: DirtyTracker) -> None:
    trial = ran(tracker, RunAll(), CallNode(0, caller), PutOn(), RunAll(8))
    assert trial.network.links[1].is_closed is (CALLERS[caller][0] != "silence")
    for operation in (AdvanceTime(21_000), RunAll(2)):
        trial.run(operation)
    assert trial.network.links[1].is_closed
    assert confirmed(trial) == 1
    trial.finish()


def test_a_failed_sync_of_generations_ends_an_opening(tracker: DirtyTracker) -> None:
    trial = ran(tracker, PutOn(), FailSyncOn(0, "generations"), CloseNode(), RestartNode())
    assert trial.hit["opening failed"] == 1
    assert not trial.nodes[0].is_up
    trial.finish()


def test_a_failed_sync_of_generations_ends_a_link(tracker: DirtyTracker) -> None:
    trial = ran(tracker, PutOn(), FailSyncOn(1, "generations"), RunAll(), AdvanceTime(), RunAll(), PutOn(), RunAll())
    assert trial.network.links[0].is_closed
    assert confirmed(trial) == 1
    trial.finish()


def test_a_settled_end_is_not_an_equal_log(tracker: DirtyTracker) -> None:
    """Regression: logs of equal length counted as equal logs."""
    put = PutOn(body_bytes=1500)
    trial = ran(tracker, put, RunAll(), CrashNode(silent=True), RestartNode(), replace(put, fill=1))
    trial.finish()
    assert trial.hit["log cut"] == 1


def test_a_false_end_of_a_replica_is_seen(tracker: DirtyTracker) -> None:
    trial = ran(tracker, RunAll(), PutOn(), RunAll())
    trial._states = [replace(each, copies=(each.copies[0], replace(each.copies[1], log=()))) for each in trial._states]
    trial._states = [replace(each, wires=(None, None)) for each in trial._states]
    with pytest.raises(GuaranteeBroken, match="ends where it may not"):
        trial.run(StepNode(1))


# ---- the network, tokens, shrinking ----------------------------------------------------------------------------------


def test_a_link_delivers_in_order_and_up_to_its_room() -> None:
    network = RecordedNetwork()
    listener = network.listen(0, "here")
    replica = network.connect(1, "here")
    assert network.connect(1, "elsewhere") is None
    assert replica is not None
    master = listener.accept()
    assert master is not None
    assert replica.send(b"abcdef") == 6
    network.links[0].room[MASTER] = 4
    assert [master.receive(3), master.receive(3), master.receive(3)] == [b"abc", b"d", b""]
    network.links[0].reset(to_master_bytes=1, to_replica_bytes=0)
    assert [master.receive(9), master.receive(9)] == [b"e", None]
    assert replica.receive(9) is None
    assert replica.send(b"more") == 0
    assert bytes(network.links[0].arrived[MASTER]) == b"abcde"
    assert not network.links[0].arrived[REPLICA]


def test_a_failure_is_shrunk_across_nodes_and_links(tracker: DirtyTracker) -> None:
    small = CLUSTER_REPRODUCERS["RB09"]
    noise = (FlushNode(1), LimitLink(1), HealLink(1), StepNode(1))
    large = ClusterCase(small.settings, (*noise, *small.operations, *noise))
    failure = replay_cluster(large, tracker=tracker)
    assert failure is not None
    shrunk = CLUSTERS.shrink(failure, tracker=tracker, tries_max=300)
    assert identity_of(shrunk.broken) == identity_of(failure.broken)
    assert len(shrunk.case.operations) <= len(small.operations)


@pytest.mark.parametrize(
    "text", ["", "{}", '{"tornpage_cluster": 1, "settings": {"nodes": 9}, "operations": []}',
             '{"tornpage_cluster": 1, "settings": {}, "operations": [{"op": "put_on", "node": "x"}]}']
)  # fmt: skip
def test_a_bad_case_is_refused(text: str) -> None:
    with pytest.raises(BadToken):
        ClusterCase.from_text(text)
