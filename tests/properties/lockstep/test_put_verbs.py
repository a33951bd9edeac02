"""Test the comparison of puts: it accepts a right store and notices each kind of mistake."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tornpage.impl.errors import StoreClosed
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.log.commit_log import CommitLog
from tornpage.impl.log.queue_offsets import QueueOffsetTable
from tornpage.impl.message.message import PutResult, PutStatus
from tornpage.impl.message.multi_dispatch import QueueKey
from tornpage.impl.parts import Parts
from tornpage.impl.put.group_commit import GroupCommit
from tornpage.impl.put.put_answers import PendingAnswer, PutAnswers
from tornpage.impl.put.put_path import PutEntry
from tornpage.impl.service.disk_watch import DiskWatch
from tornpage.impl.service.running_flags import RunningFlags
from tornpage.impl.store import MessageStore
from tornpage.model.operations import (
    BatchDefect,
    Close,
    Crash,
    DiskUsed,
    FailAppend,
    FailSync,
    Flush,
    Member,
    Open,
    Operation,
    Put,
    PutBatch,
    ReplicaIs,
    Step,
    SwitchFlag,
)
from tornpage.model.payloads import BORN_TIMESTAMP
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.lockstep.lockstep import Lockstep
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Settings
from tornpage.properties.program.workload import draw_operation

ASYNC = Settings(file_bytes=4096)
SYNC = replace(ASYNC, sync_flush=True)
MASTER = replace(ASYNC, role="SYNC_MASTER")
SYNC_MASTER = replace(SYNC, role="SYNC_MASTER")
SLAVE = replace(ASYNC, role="SLAVE")
LIGHT = replace(ASYNC, multi_dispatch=True, light_queues=True, light_queues_max=2)

TWO = PutBatch(members=(Member(body_bytes=10), Member(body_bytes=20, fill=1)))
LATER = Put(later=True)
NO_WAIT = Put(properties="WAIT\x01false", later=True)
HALF_A_FILE = Put(body_bytes=2000)
NAMES_A_QUEUE = "INNER_MULTI_DISPATCH\x01%LMQ%a"


def run(tracker: DirtyTracker, settings: Settings, *operations: Operation, components: Parts | None = None) -> Lockstep:
    trial = lockstep_of(settings, tracker=tracker, parts=components)
    for operation in operations:
        trial.run(operation)
    return trial


# ---- a right store ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "operations", "records"),
    [
        (ASYNC, (TWO, Put(), TWO), 5),
        (ASYNC, (HALF_A_FILE, PutBatch(members=(Member(body_bytes=900),) * 3), TWO), 6),
        (ASYNC, (PutBatch(), replace(TWO, sys_flag=8), replace(TWO, topic="a/b"), replace(TWO, queue_id=-1)), 0),
        (ASYNC, (TWO, Close(), TWO, Put(), LATER, Open(), TWO), 4),
        (SYNC, (LATER, replace(TWO, later=True), NO_WAIT, Step(), Step(), LATER), 5),
        (SYNC, (LATER, Put(), Step(), LATER, Flush(), Step()), 3),
        (SYNC, (LATER, LATER, Close(), Open(), Put()), 3),
        (SYNC, (LATER, FailSync(), Step(), LATER, Put(), Step(), Close(), Open(), Put()), 2),
        (SYNC, (Put(), LATER, Crash(), Step(), Put()), 2),
        (SYNC, (LATER, TWO, Crash(kill=True), Put()), 4),
        (MASTER, (Put(), LATER, ReplicaIs("confirms"), TWO, ReplicaIs("silent"), Put(), ReplicaIs("behind"), LATER), 6),
        (SYNC_MASTER, (LATER, ReplicaIs("confirms"), LATER, Step(), ReplicaIs("none"), FailSync(), Put(), Put()), 3),
        (SLAVE, (Put(), TWO, LATER, replace(TWO, later=True)), 0),
        (ASYNC, (SwitchFlag(2), Put(), SwitchFlag(8), SwitchFlag(2, on=False), TWO, SwitchFlag(8, on=False), Put()), 1),
        (ASYNC, (SwitchFlag(1), Put(), SwitchFlag(4), LATER, Close(), Open(), Put()), 2),
        (ASYNC, (DiskUsed(91), Put(), DiskUsed(90), Put(), DiskUsed(100), TWO, Crash(kill=True), Put()), 2),
        (ASYNC, (FailAppend(), Put(), Put(), FailAppend(), TWO, FailAppend(), Put(topic=""), LATER, Put()), 2),
        (ASYNC, (HALF_A_FILE, FailAppend(), HALF_A_FILE, Crash(kill=True), Put(), Close(), Open()), 2),
        (SYNC, (HALF_A_FILE, FailAppend(), HALF_A_FILE, Crash(back=3), Put()), 2),
        (LIGHT, (Put(properties=NAMES_A_QUEUE), Put(properties=NAMES_A_QUEUE + ",%LMQ%b,%LMQ%c"), Crash(kill=True)), 1),
        (ASYNC, (Put(properties="DELAY\x0199"), Put(topic="RMQ_SYS_TRANS_HALF_TOPIC", sys_flag=4), Put()), 3),
        (
            ASYNC,
            (Put(pairs=(("KEYS", "k"), ("WAIT", "false"))), Put(pairs=(("a\x01", "b"),)), Put(body_kind="none")),
            2,
        ),
    ],
)
def test_a_right_store_passes(
    tracker: DirtyTracker, settings: Settings, operations: tuple[Operation, ...], records: int
) -> None:
    trial = run(tracker, settings, *operations)
    assert trial.performed == list(operations)
    assert len(trial.log.records) == records


@pytest.mark.parametrize(
    "defect", ["no body", "empty", "cut short", "wrong total", "negative length", "bytes left over"]
)
def test_a_spoilt_batch_leaves_nothing_behind(tracker: DirtyTracker, defect: BatchDefect) -> None:
    trial = run(tracker, ASYNC, TWO, replace(TWO, defect=defect), Put())
    assert [record.queue_offset for record in trial.log.records] == [0, 1, 2]


def test_a_blank_alone_is_left_by_a_refused_append_and_written_over(tracker: DirtyTracker) -> None:
    trial = run(tracker, ASYNC, HALF_A_FILE, FailAppend(), HALF_A_FILE)
    assert (trial.log.files, trial.log.end_offset, len(trial.log.records)) == (2, 4096, 1)
    trial.run(Put())
    assert [record.offset for record in trial.log.records] == [0, 4096]


def test_a_put_waits_for_its_flush_until_the_step(tracker: DirtyTracker) -> None:
    trial = run(tracker, SYNC, LATER, LATER)
    assert (trial.log.flushed_offset, trial.store.flushed_offset) == (0, 0)
    trial.run(Step())
    assert trial.log.flushed_offset == trial.store.flushed_offset == trial.log.end_offset > 0


def test_a_born_time_left_to_the_store_is_its_clock(tracker: DirtyTracker) -> None:
    puts = (Put(born_now=True, advance_ms=5), replace(TWO, born_now=True), Put(born_now=True, later=True), Step())
    trial = run(tracker, SYNC, *puts)
    born = [record.message.born_timestamp - BORN_TIMESTAMP for record in trial.log.records]
    assert born == [5, 6, 6, 7]


def test_effects_are_counted(tracker: DirtyTracker) -> None:
    exact = Put(body_bytes=4096 - 8 - 112)
    trial = run(tracker, SYNC, LATER, TWO, Step(), Put(topic=""), FailAppend(), LATER, Close(), Open(), exact)
    assert trial.coverage == {
        "answered_PUT_OK": 3,
        "answered_MESSAGE_ILLEGAL": 1,
        "answered_UNKNOWN_ERROR": 1,
        "answered_with_another": 1,
        "batches_stored": 1,
        "least_room_left": 1,
        "used_a_proof": 1,
    }
    assert not trial.waits_for_answers
    assert run(tracker, SYNC, LATER).waits_for_answers


def test_the_workload_of_campaigns_draws_batches_later_puts_and_steps() -> None:
    rng = random.Random(0)
    drawn = [draw_operation(rng, closed=False) for _ in range(500)]
    assert {PutBatch, Step, Put} <= {type(operation) for operation in drawn}
    assert any(put.later for put in drawn if isinstance(put, Put))


# ---- wrong stores ----------------------------------------------------------------------------------------------------


def log_that_answers(change: Callable[[PutResult], PutResult]) -> Parts:
    def put(self: CommitLog, message: Any, *, now_ms: int) -> PutResult:
        return change(CommitLog.put(self, message, now_ms=now_ms))

    def put_batch(self: CommitLog, batch: Any, *, now_ms: int) -> PutResult:
        return change(CommitLog.put_batch(self, batch, now_ms=now_ms))

    return Parts({CommitLog: type("_Changed", (CommitLog,), {"put": put, "put_batch": put_batch})})


def answers(**methods: object) -> Parts:
    return Parts({PutAnswers: type("_Wrong", (PutAnswers,), methods)})


def files(**methods: object) -> Parts:
    return Parts({MappedFile: type("_Wrong", (MappedFile,), methods)})


def raises(*_: object, **__: object) -> Any:
    raise RuntimeError("out of order")


def at_once(self: PutAnswers, result: PutResult, **_: object) -> PutResult:
    return result


def never(self: PutAnswers, result: PutResult, *, waits: bool, on_answer: Callable[[PutResult], None]) -> PendingAnswer:
    return PendingAnswer(result, deadline_ms=0, timeout_status=PutStatus.FLUSH_DISK_TIMEOUT, on_answer=on_answer)


def later_as(change: Callable[[PutResult], PutResult]) -> Parts:
    """Changes answers on their way into the future."""

    def settle(self: PutAnswers, result: PutResult, **options: Any) -> PutResult | PendingAnswer:
        settled = PutAnswers.settle(self, result, **options)
        if isinstance(settled, PendingAnswer):
            settled.set_result = lambda result: PendingAnswer.set_result(settled, change(result))  # type: ignore[method-assign]
        return settled

    return answers(settle=settle)


class CountsABatchOnce(QueueOffsetTable):
    """The next number of a queue is one higher after any number of appended messages."""

    def advance(self, key: QueueKey, next_offset: int) -> None:
        super().advance(key, min(next_offset, self.next_offset(key) + 1))


class CountsWhatWasRefused(CommitLog):
    """An append that fails uses up a number."""

    def put(self, message: Any, *, now_ms: int) -> PutResult:
        result = super().put(message, now_ms=now_ms)
        if result.status is PutStatus.UNKNOWN_ERROR:
            self._queue_offsets.advance((b"T", 0), self._queue_offsets.next_offset((b"T", 0)) + 1)
        return result


def blank_left_out(self: MappedFile) -> None:
    self.written_position = self.size_bytes


OTHERWISE = "a put has another answer than the model's"
WRONG: dict[str, tuple[Parts, Settings, tuple[Operation, ...], int, str]] = {
    "message id": (log_that_answers(lambda r: r._replace(store_host=("192.0.2.9", 1))), ASYNC, (Put(),), 8, OTHERWISE),
    "message ids": (log_that_answers(lambda r: r._replace(record_ends=[5, 9])), ASYNC, (TWO,), 8, OTHERWISE),
    "message count": (log_that_answers(lambda r: r._replace(message_count=1)), ASYNC, (TWO,), 8, OTHERWISE),
    "size": (log_that_answers(lambda r: r._replace(size_bytes=r.size_bytes + 1)), ASYNC, (TWO,), 8, OTHERWISE),
    "batch numbering": (Parts({QueueOffsetTable: CountsABatchOnce}), ASYNC, (TWO, Put()), 8, OTHERWISE),
    "batch raises": (log_that_answers(raises), ASYNC, (TWO,), 8, "put_batch raises RuntimeError"),
    "later raises": (log_that_answers(raises), ASYNC, (LATER,), 8, "put_async raises RuntimeError"),
    "before its flush": (answers(settle=at_once), SYNC, (LATER,), 2, "answered before its flush"),
    "batch before its flush": (
        answers(settle=at_once), SYNC, (replace(TWO, later=True),), 2, "answered before its flush"
    ),
    "without a flush": (answers(settle=at_once), SYNC, (TWO,), 9, "watermarks"),
    "never": (answers(settle=never), SYNC, (LATER,), 16, "no wake-up"),
    "never, without a disk to wait for": (answers(settle=never), MASTER, (LATER,), 16, "a put is not answered"),
    "never, though group commit steps": (
        Parts({GroupCommit: type("_Wrong", (GroupCommit,), {"step": lambda self, now_ms: self._flush() and None})}),
        SYNC, (LATER, Step()), 16, "a put is not answered",
    ),
    "forgotten at close": (answers(finish=lambda self: None), SYNC, (LATER, Close()), 16, "a put is not answered"),
    "another number later": (later_as(lambda r: r._replace(queue_offset=7)), SYNC, (LATER, Step()), 8, OTHERWISE),
    "durable after a failed sync": (
        later_as(lambda r: r._replace(status=PutStatus.PUT_OK)), SYNC, (LATER, FailSync(), Step()), 8, OTHERWISE
    ),
    "step raises": (
        Parts({CommitLog: type("_Wrong", (CommitLog,), {"flush": raises})}),
        SYNC, (LATER, Step()), 8, "step raises RuntimeError",
    ),
    "replica not asked": (
        answers(settle=at_once), MASTER, (ReplicaIs("silent"), Put()), 8, OTHERWISE
    ),
    "replica not asked later": (answers(settle=at_once), MASTER, (ReplicaIs("none"), LATER), 8, OTHERWISE),
    "blank left out": (files(append_blank=blank_left_out), ASYNC, (HALF_A_FILE, HALF_A_FILE), 1, "has no blank"),
    "blank left out before a refused append": (
        files(append_blank=blank_left_out), ASYNC, (HALF_A_FILE, FailAppend(), HALF_A_FILE), 1, "has no blank"
    ),
    "refused bytes stay": (
        files(erase_failed_append=lambda self, size_bytes: None),
        ASYNC,
        (Put(), FailAppend(), Put()),
        1,
        "other bytes than",
    ),
    "refused append counts": (
        Parts({CommitLog: CountsWhatWasRefused}), ASYNC, (FailAppend(), Put(), Put()), 8, OTHERWISE
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_store_is_noticed_by_its_last_operation(tracker: DirtyTracker, name: str) -> None:
    components, settings, operations, contract, sentence = WRONG[name]
    trial = run(tracker, settings, *operations[:-1], components=components)
    with pytest.raises(GuaranteeBroken, match=sentence) as caught:
        trial.run(operations[-1])
    assert caught.value.contract == contract
    run(tracker, settings, *operations)


def lets_everybody_in(self: PutEntry, **_: int) -> None:
    """A gate that is open."""


def refuses_on_any_flag(self: PutEntry, **_: int) -> PutStatus | None:
    return PutStatus.SERVICE_NOT_AVAILABLE if self._flags.bits else None


def is_closed(self: MessageStore, batch: object) -> PutResult:
    raise StoreClosed(self.directory)


@pytest.mark.parametrize(
    ("part", "method", "wrong", "settings", "operations"),
    [
        (PutEntry, "refusal", lets_everybody_in, ASYNC, (SwitchFlag(2), Put())),
        (PutEntry, "refusal", lets_everybody_in, ASYNC, (DiskUsed(91), TWO)),
        (PutEntry, "refusal", lets_everybody_in, SLAVE, (LATER,)),
        (PutEntry, "refusal", refuses_on_any_flag, ASYNC, (SwitchFlag(1), Put())),
        (RunningFlags, "set", lambda self, flag: False, ASYNC, (SwitchFlag(8), Put())),
        (RunningFlags, "clear", lambda self, flag: False, ASYNC, (SwitchFlag(8), SwitchFlag(8, on=False), Put())),
        (DiskWatch, "_used_ratio_of", lambda self, path: 0.0, ASYNC, (DiskUsed(91), Put())),
        (DiskWatch, "_used_ratio_of", lambda self, path: 0.91, ASYNC, (DiskUsed(90), Put())),
        (MessageStore, "put_batch", is_closed, ASYNC, (Close(),)),
    ],
)
def test_a_gate_that_does_not_do_its_work_is_noticed(
    tracker: DirtyTracker,
    monkeypatch: pytest.MonkeyPatch,
    part: type,
    method: str,
    wrong: Callable[..., object],
    settings: Settings,
    operations: tuple[Operation, ...],
) -> None:
    run(tracker, settings, *operations)
    monkeypatch.setattr(part, method, wrong)
    trial = run(tracker, settings, *operations[:-1])
    with pytest.raises(GuaranteeBroken) as caught:
        trial.run(operations[-1])
    assert caught.value.contract == 8
