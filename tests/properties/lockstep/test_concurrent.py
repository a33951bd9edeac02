"""Test two producers at once: every schedule explains a right store and not a wrong one."""

import threading
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from tornpage.impl.log.commit_log import CommitLog
from tornpage.impl.message.message import Message as StoreMessage
from tornpage.impl.message.message import PutResult, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.put.put_path import PutEntry
from tornpage.model.operations import Close, Concurrent, FailAppend, Put, SwitchFlag
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.lockstep import concurrent, environment
from tornpage.properties.lockstep.lockstep import Lockstep
from tornpage.properties.planted import parts_of
from tornpage.properties.program.case import Settings
from tornpage.properties.scheduler import StepTrace, every_schedule, run_stepped

ASYNC = Settings(file_bytes=1024)
SYNC = Settings(file_bytes=1024, sync_flush=True)
LIGHT = Settings(file_bytes=4096, multi_dispatch=True, light_queues=True)

PUT = Put(advance_ms=0)
OTHER = Put(body_bytes=300, advance_ms=0)
NAMED = Put(properties="INNER_MULTI_DISPATCH\x01%LMQ%a", advance_ms=0)
JUMP_MS = 2000


class Listening(Lockstep):
    """A run that keeps the answers to producers, in their order."""

    def __init__(self, settings: Settings, *, tracker: DirtyTracker, parts: Parts | None = None) -> None:
        self.answers: list[PutResult] = []
        super().__init__(settings, parts=parts or Parts(), tracker=tracker)
        put = self.store.put

        def kept(message: StoreMessage) -> PutResult:
            self.answers.append(put(message))
            return self.answers[-1]

        self.store.put = kept  # type: ignore[method-assign]


def run(tracker: DirtyTracker, settings: Settings, operation: Concurrent, parts: Parts | None = None) -> Listening:
    trial = Listening(settings, tracker=tracker, parts=parts)
    trial.run(operation)
    return trial


def one_switch(first: tuple[Put, ...], second: tuple[Put, ...]) -> Iterator[Concurrent]:
    """Both producers, with one switch at each of the first yield points."""
    for before in range(120):
        yield Concurrent(first=first, second=second, schedule=(*(0,) * before, 1))


def broken_by(tracker: DirtyTracker, settings: Settings, operations: Iterator[Concurrent], parts: Parts) -> set[int]:
    """Return the numbers of the promises that some of the schedules break."""
    contracts = set()
    for operation in operations:
        try:
            run(tracker, settings, operation, parts)
        except GuaranteeBroken as broken:
            contracts.add(broken.contract)
    return contracts


# ---- a right store ---------------------------------------------------------------------------------------------------


def test_equal_schedules_give_equal_results(tracker: DirtyTracker) -> None:
    operation = Concurrent(first=(NAMED, OTHER), second=(PUT, NAMED), schedule=(0, 1, 0, 0, 1, 1, 0) * 12)
    first, second = (run(tracker, LIGHT, operation) for _ in range(2))
    assert first.answers == second.answers
    assert first.log == second.log
    assert first.pair.durable(first.files) == second.pair.durable(second.files)


def test_schedules_decide_who_is_first(tracker: DirtyTracker) -> None:
    orders = set()
    for operation in one_switch((Put(topic="A", advance_ms=0),), (Put(topic="B", advance_ms=0),)):
        orders.add(tuple(record.message.topic for record in run(tracker, ASYNC, operation).log.records))
    assert orders == {("A", "B"), ("B", "A")}


@pytest.mark.slow
@pytest.mark.parametrize("settings", [ASYNC, SYNC, LIGHT], ids=["asynchronous", "synchronous", "light queues"])
def test_every_schedule_at_the_put_lock_is_explained(
    tracker: DirtyTracker, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two producers put three messages, one of which needs a new file.

    All interleavings of their steps with the lock are run.
    """
    trace = StepTrace()

    def at_the_lock(*arguments: Any, **options: Any) -> Any:
        return run_stepped(*arguments, **{**options, "modules": (), "trace": trace})

    monkeypatch.setattr(concurrent, "run_stepped", at_the_lock)
    monkeypatch.setattr(environment, "_group_commit_lock", threading.Lock)
    logs = set()

    def carry_out(schedule: tuple[int, ...]) -> bytes:
        operation = Concurrent(first=(NAMED, OTHER), second=(Put(body_bytes=500, advance_ms=0),), schedule=schedule)
        logs.add(run(tracker, settings, operation).log)
        return bytes(trace.options)

    schedules = list(every_schedule(carry_out))
    assert len(schedules) == len(set(schedules)) > 50
    assert len(logs) == 3, "the single put comes before, between and after the two"


@pytest.mark.slow
@pytest.mark.parametrize("settings", [ASYNC, SYNC, LIGHT], ids=["asynchronous", "synchronous", "light queues"])
def test_one_switch_at_any_line_is_explained(tracker: DirtyTracker, settings: Settings) -> None:
    for operation in one_switch((NAMED, OTHER), (NAMED,)):
        assert len(run(tracker, settings, operation).log.records) == 3


def test_refusals_of_concurrent_puts_are_explained(tracker: DirtyTracker) -> None:
    for operation in one_switch((PUT, Put(topic="", advance_ms=0)), (OTHER, PUT)):
        trial = Listening(ASYNC, tracker=tracker)
        trial.run(FailAppend())
        trial.run(operation)
        statuses = sorted(answer.status.value for answer in trial.answers)
        assert statuses == ["MESSAGE_ILLEGAL", "PUT_OK", "PUT_OK", "UNKNOWN_ERROR"]
    trial = Listening(ASYNC, tracker=tracker)
    trial.run(SwitchFlag(2))
    trial.run(Concurrent(first=(PUT,), second=(PUT,), schedule=(1, 0, 1)))
    assert {answer.status for answer in trial.answers} == {PutStatus.SERVICE_NOT_AVAILABLE}


def test_a_closed_store_is_put_into_by_nobody(tracker: DirtyTracker) -> None:
    trial = Listening(ASYNC, tracker=tracker)
    trial.run(Close())
    trial.answers.clear()  # the close tries puts itself
    trial.run(Concurrent(first=(PUT,), second=(PUT,)))
    assert trial.answers == []


# ---- wrong stores ----------------------------------------------------------------------------------------------------


class Unlocked(CommitLog):
    """The put lock does not lock."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **{**settings, "put_lock": nullcontext()})


@pytest.mark.slow
def test_a_put_lock_that_does_not_lock_is_caught(tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of the puts counts, whatever lock covers the clock reading."""
    monkeypatch.setattr(concurrent, "_stamped_under_the_lock", lambda trial, producers: None)
    unlocked = Parts({CommitLog: Unlocked})
    assert broken_by(tracker, ASYNC, one_switch((PUT,), (PUT,)), unlocked) & {1, 17}
    run(tracker, ASYNC, Concurrent(first=(PUT,), second=(PUT,)), unlocked)


class StampedEarly(CommitLog):
    """The store timestamp is the time of the call, not that of the acquired lock."""

    def put(self, message: Any, *, now_ms: int) -> PutResult:
        self._clock, clock = (lambda: now_ms), self._clock
        try:
            return super().put(message, now_ms=now_ms)
        finally:
            self._clock = clock


def test_a_store_timestamp_read_before_the_lock_is_caught(tracker: DirtyTracker) -> None:
    with pytest.raises(GuaranteeBroken, match="not read under the put lock") as caught:
        run(tracker, ASYNC, Concurrent(first=(PUT,), second=(PUT,)), Parts({CommitLog: StampedEarly}))
    assert caught.value.contract == 17


def test_what_was_flushed_on_an_asynchronous_store_is_what_the_model_says(tracker: DirtyTracker) -> None:
    class FlushesWhatItLikes(CommitLog):
        def put(self, message: Any, *, now_ms: int) -> PutResult:
            result = super().put(message, now_ms=now_ms)
            self.flush()
            return result

    eager = Parts({CommitLog: FlushesWhatItLikes})
    with pytest.raises(GuaranteeBroken, match="watermarks") as caught:
        run(tracker, ASYNC, Concurrent(first=(PUT,), second=(PUT,)), eager)
    assert caught.value.contract == 9
    run(tracker, SYNC, Concurrent(first=(PUT,), second=(PUT,)), eager)


def test_a_born_time_is_given_with_concurrent_puts(tracker: DirtyTracker) -> None:
    now = replace(PUT, born_now=True)
    with_none, without = (run(tracker, ASYNC, Concurrent(first=(p,), second=(PUT,))) for p in (now, PUT))
    assert with_none.log == without.log


@pytest.mark.slow
def test_offsets_read_before_the_lock_are_caught(tracker: DirtyTracker) -> None:
    early = parts_of("RMQ-B76")
    assert broken_by(tracker, LIGHT, one_switch((NAMED,), (NAMED,)), early) & {1, 17}
    run(tracker, LIGHT, Concurrent(first=(NAMED,), second=(NAMED,)), early)


def test_a_lock_that_is_never_given_back_is_caught(tracker: DirtyTracker) -> None:
    class KeptLock(CommitLog):
        def put(self, message: Any, *, now_ms: int) -> PutResult:
            result = super().put(message, now_ms=now_ms)
            self._put_lock.acquire()
            return result

    with pytest.raises(GuaranteeBroken, match="wait for each other") as caught:
        run(tracker, ASYNC, Concurrent(first=(PUT,), second=(PUT,)), Parts({CommitLog: KeptLock}))
    assert caught.value.contract == 16


# ---- page-cache busy -------------------------------------------------------------------------------------------------


def switches_under_the_lock() -> Iterator[Concurrent]:
    """The clock jumps at the yield point at which the other producer starts."""
    for point in range(1, 130):
        schedule = (*(0,) * point, 1)
        yield Concurrent(first=(PUT,), second=(PUT,), schedule=schedule, jump_step=point, jump_ms=JUMP_MS)


def busy_of(trial: Listening) -> int:
    return [answer.status for answer in trial.answers].count(PutStatus.OS_PAGECACHE_BUSY)


@pytest.mark.slow
def test_busy_is_answered_while_the_lock_is_held_for_too_long_and_only_then(tracker: DirtyTracker) -> None:
    found = [busy_of(run(tracker, ASYNC, operation)) for operation in switches_under_the_lock()]
    assert set(found) == {0, 1}
    assert "".join(map(str, found)).strip("0").strip("1") == "", "from one line under the lock to another"
    shorter = (replace(operation, jump_ms=1000) for operation in switches_under_the_lock())
    assert {busy_of(run(tracker, ASYNC, operation)) for operation in shorter} == {0}


@pytest.mark.parametrize("answer", [None, PutStatus.OS_PAGECACHE_BUSY], ids=["never busy", "always busy"])
def test_busy_that_is_answered_wrongly_is_caught(
    tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch, answer: PutStatus | None
) -> None:
    is_busy = answer is None
    operation = next(o for o in switches_under_the_lock() if busy_of(run(tracker, ASYNC, o)) == is_busy)
    monkeypatch.setattr(PutEntry, "refusal", lambda self, **_: answer)
    with pytest.raises(GuaranteeBroken, match="busy is answered wrongly") as caught:
        run(tracker, ASYNC, operation)
    assert caught.value.contract == 8
