"""Test that members in the process of the broker and parts used alone are judged."""

from collections.abc import Callable
from typing import Any, get_args

import pytest

from tornpage.impl.consumer import member_table, queue_locks, send_back
from tornpage.impl.consumer.broker import ConsumerBroker
from tornpage.impl.consumer.client import Findings
from tornpage.impl.consumer.concurrent import Concurrent
from tornpage.impl.consumer.connection import Call, DirectConnection
from tornpage.impl.consumer.first_offset import FirstOffsets
from tornpage.impl.consumer.flow_control import FlowControl
from tornpage.impl.consumer.hand_over import HandOver
from tornpage.impl.consumer.heartbeats import Heartbeats
from tornpage.impl.consumer.lag import QueueLag
from tornpage.impl.consumer.leases import Leases
from tornpage.impl.consumer.offset_store import LocalOffsets
from tornpage.impl.consumer.orderly import Orderly
from tornpage.impl.consumer.process_queue import ProcessQueue
from tornpage.impl.consumer.pull_consumer import PullConsumer
from tornpage.impl.consumer.pull_loop import PullLoop
from tornpage.impl.consumer.push_consumer import PushConsumer
from tornpage.impl.consumer.queue_locks import QueueLocks
from tornpage.impl.consumer.rebalance import Rebalance
from tornpage.impl.consumer.requests import Route
from tornpage.impl.consumer.running import RunningConsumer
from tornpage.impl.consumer.send_back import SendBacks
from tornpage.impl.consumer.settings import ConsumerSettings
from tornpage.impl.groups import consumer_offsets, fastjson
from tornpage.impl.groups.broker_configs import SubscriptionGroupConfig
from tornpage.impl.groups.config_file import ConfigFile
from tornpage.impl.groups.config_table import ConfigTable
from tornpage.impl.parts import Parts
from tornpage.model.consumers.operations import (
    CrashLocal,
    DropConnection,
    FlushBroker,
    GroupOperation,
    HoldResults,
    Join,
    MemberPart,
    PassTime,
    Produce,
    RunDirect,
    RunGroup,
    StepBroker,
    StepMember,
    Subscribe,
    TryConsumerSettings,
    UseBroker,
    UseCache,
    UseMemberPart,
    UseMembers,
    UseOwners,
    UseStateFiles,
)
from tornpage.properties.consumers.bounded_tables import filters_hold, full_tables_hold
from tornpage.properties.consumers.restarting import use_restarts
from tornpage.properties.consumers.trial import GroupTrial
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.program.group_case import GroupSettings

_PUTS = (Produce(), Produce(1), Produce(tag="B"), Produce(1))
_BOTH = (
    RunDirect(is_broadcasting=False),
    RunDirect(1, is_broadcasting=False),
    *_PUTS,
    RunDirect(is_broadcasting=False),
)
_ALONE = (RunDirect(begins="last"), *_PUTS, RunDirect(result="later"), RunDirect(end="leave"), RunDirect())
_AGAIN = (RunDirect(), *_PUTS, RunDirect(end="leave"), RunDirect())
_CACHES = tuple(UseCache(seed) for seed in range(40))
_OWNERS = tuple(UseOwners(seed) for seed in range(60))
_MEMBERS = tuple(UseMembers(seed) for seed in range(20))
_FILES = tuple(UseStateFiles(seed) for seed in range(40))
_BROKERS = (Produce(), Produce(1), FlushBroker(), StepBroker(), *(UseBroker(seed) for seed in range(40)))
_PARTS = tuple(UseMemberPart(part, seed) for part in get_args(MemberPart) for seed in range(12))
_SETTINGS = tuple(TryConsumerSettings(part) for part in range(4))


def carried_out(tracker: DirtyTracker, operations: tuple[GroupOperation, ...], **settings: Any) -> GroupTrial:
    trial = GroupTrial(GroupSettings(**settings), tracker=tracker)
    for operation in operations:
        trial.run(operation)
    trial.finish()
    return trial


@pytest.mark.parametrize("is_orderly", [False, True])
@pytest.mark.parametrize("is_cold", [False, True])
@pytest.mark.parametrize(
    "operations", [_BOTH, _ALONE, (*_PUTS, RunDirect(begins="time"), *_PUTS, RunDirect(end="kill"))]
)
def test_members_get_what_they_have_to(
    tracker: DirtyTracker, operations: tuple[GroupOperation, ...], is_cold: bool, is_orderly: bool
) -> None:
    trial = carried_out(tracker, operations, is_cold=is_cold, is_orderly=is_orderly)
    assert trial.hit["direct success"] + trial.hit["direct failure"] >= 3


def test_member_without_its_topic_gets_nothing_until_it_subscribes_again(tracker: DirtyTracker) -> None:
    trial = GroupTrial(GroupSettings(), tracker=tracker)
    for operation in (Join(), RunGroup(6, 500), Subscribe(), RunGroup(6, 500), Produce(), RunGroup(6, 500)):
        trial.run(operation)
    before = trial.hit["listener success"]
    trial.finish()
    assert (before, trial.hit["listener success"]) == (0, 1)


def test_member_whose_connection_ended_joins_again(tracker: DirtyTracker) -> None:
    trial = GroupTrial(GroupSettings(), tracker=tracker)
    for operation in (Join(), RunGroup(6, 500), DropConnection()):
        trial.run(operation)
    assert trial.members[0].consumer is not None
    trial.run(Produce())
    trial.run(RunGroup(8, 6_000))
    assert trial.hit["listener success"] == 1


def _changed(kind: Any, name: str, change: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that changes the answer of the one that is replaced."""
    before = getattr(kind, name)
    return lambda self, *given, **named: change(before(self, *given, **named))


@pytest.mark.parametrize(
    ("operations", "where", "name", "wrong", "sentence"),
    [
        (_AGAIN, LocalOffsets, "persist_all", lambda self, holdings, now_ms: None, "gets a finished message again"),
        (_ALONE, QueueLag, "diff", property(lambda self: 1), "lag"),
        (_BOTH, Rebalance, "wake", lambda self: None, "do not divide the queues"),
        (_BOTH, Heartbeats, "step", _changed(Heartbeats, "step", lambda due_ms: 0), "step after step without a pause"),
        (_BOTH, DirectConnection, "watch", lambda self, wake: None, "do not divide the queues|never"),
        (_CACHES, FlowControl, "room", _changed(FlowControl, "room", lambda room: room + 1), "room of a cache"),
        (_CACHES, ProcessQueue, "rollback", lambda self: None, "the cache after rollback"),
        (_OWNERS, QueueLocks, "note_pull", lambda self, *given: None, "the owner after"),
        (
            (CrashLocal(),),
            LocalOffsets,
            "keep_first",
            lambda self, *given: Call(Route("T"), deadline_ms=0),
            "first offset",
        ),
        (_OWNERS, queue_locks, "_GIVEN_UP_MAX", 9_999, "a late claim"),
        (_OWNERS, queue_locks, "_GIVEN_UP_MAX", 10_001, "the claim of forgotten process"),
        (_OWNERS, member_table, "_LEFT_MAX", 999, "a late heartbeat of process 2"),
        (_OWNERS, member_table, "_LEFT_MAX", 1_001, "a late heartbeat of process 1"),
        (_FILES, ConfigTable, "delete", lambda self, key: False, "the answer to a removal"),
        (_FILES, ConfigFile, "save", lambda self, document: None, "the file after"),
        (_SETTINGS, ConsumerSettings, "suspend_ms", lambda self, asked_ms: 10, "suspend_ms of"),
        (_BROKERS, QueueLocks, "void", lambda self, *given, **named: None, "of the model"),
        (_BROKERS, QueueLocks, "renew", lambda self, *given: True, "of the model"),
        (_BROKERS, ConsumerBroker, "_fenced", lambda self, *given: None, "of the model|raises"),
        (_BROKERS, ConsumerBroker, "_group", lambda self, name: SubscriptionGroupConfig(name), "not served|route"),
        (_BROKERS, ConsumerBroker, "_filter_of", lambda self, subscription: None, "a pull|a wrong filter"),
        (_BROKERS, SendBacks, "_remember", lambda self, key: None, "the answer to Send"),
        (_BROKERS, send_back, "_id_of", lambda stored: "another", "the properties of a copy"),
        (_PARTS, Heartbeats, "wake", lambda self: None, "requests of heartbeats"),
        (_PARTS, Heartbeats, "leave", lambda self, now_ms: None, "leaves"),
        (_PARTS, Rebalance, "step", _changed(Rebalance, "step", lambda found: ({}, found[1])), "shares of a member"),
        (_PARTS, Leases, "is_usable", lambda self, holding, now_ms: True, "leases in use"),
        (_PARTS, Leases, "_lose", lambda self, holding, now_ms: None, "leases|values of a queue"),
        (_PARTS, HandOver, "resume", lambda self, holding, now_ms: None, "values of a queue"),
        (_PARTS, FirstOffsets, "decide_again", lambda self, queue: None, "the begin of a queue|first offsets"),
        (_PARTS, Concurrent, "submit", lambda self, *given: None, "the messages of a batch"),
        (_PARTS, Orderly, "_pause", lambda self, *given: None, "of a queue|a listener"),
        (_PARTS, PullLoop, "_pause_ms", lambda self, *given: 0, "of pulls"),
        (_PARTS, Findings, "add", lambda self, sentence: None, "a finding of .* is missing"),
        (_PARTS, RunningConsumer, "_wake", lambda self: None, "the steps of a consumer"),
        (_PARTS, RunningConsumer, "_run_listener", lambda self, *given: None, "the results of listeners"),
        (_PARTS, RunningConsumer, "_end", lambda self: None, "after a stop|ends of connections"),
        (_PARTS, DirectConnection, "notify", lambda self, request, *, now_ms: None, "requests without an answer"),
        (_PARTS, DirectConnection, "_hold", lambda self, call, held: None, "of calls|wake-ups of a client"),
        (
            _PARTS,
            PullConsumer,
            "bounds",
            lambda self, queue, now_ms: Call(Route("T"), deadline_ms=0),
            "a pull consumer",
        ),
        (_PARTS, PushConsumer, "unsubscribe", lambda self, topic: None, "the subscriptions in heartbeats"),
        (_FILES, consumer_offsets, "_offsets", lambda offsets: dict(offsets), "is read otherwise"),
        (_FILES, fastjson, "_escape", lambda found: found[0], "is written otherwise|no valid document"),
        (_MEMBERS, ConsumerBroker, "notices", lambda self, client_id: (), "the notices of a client"),
    ],
)
def test_wrong_part_is_found(
    tracker: DirtyTracker,
    monkeypatch: pytest.MonkeyPatch,
    operations: tuple[GroupOperation, ...],
    where: Any,
    name: str,
    wrong: Any,
    sentence: str,
) -> None:
    monkeypatch.setattr(where, name, wrong)
    full_tables_hold.cache_clear()
    with pytest.raises(GuaranteeBroken, match=sentence):
        carried_out(tracker, operations)


@pytest.mark.parametrize("bound", [255, 257])
def test_another_bound_of_the_compiled_filters_is_found(monkeypatch: pytest.MonkeyPatch, bound: int) -> None:
    filters_hold.cache_clear()
    filters_hold(ConsumerBroker)
    monkeypatch.setattr("tornpage.impl.consumer.broker._FILTERS_MAX", bound)
    filters_hold.cache_clear()
    with pytest.raises(GuaranteeBroken, match="filter"):
        filters_hold(ConsumerBroker)


@pytest.mark.slow
def test_a_member_that_goes_on_after_a_restart_of_numbers_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_all() -> None:
        for seed in range(60):
            use_restarts(seed, Parts())

    run_all()
    monkeypatch.setattr(HandOver, "abandon", lambda self, holding, now_ms: None)
    with pytest.raises(GuaranteeBroken):
        run_all()


def test_overdue_listener_is_reported(tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch) -> None:
    operations = (Produce(), HoldResults(), Join(), RunGroup(6, 500), PassTime(125_000), StepMember())
    carried_out(tracker, operations)
    monkeypatch.setattr(PushConsumer, "_report_overdue", lambda self, now_ms: None)
    with pytest.raises(GuaranteeBroken, match="no finding names an overdue listener"):
        carried_out(tracker, operations)
