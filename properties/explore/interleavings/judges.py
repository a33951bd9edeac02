"""Judge an interleaving after all its tasks have ended."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tornpage.impl.store import MessageStore
from tornpage.model.answers import Answer, PutAnswer, QueueRead
from tornpage.model.dispatch import Queue, places
from tornpage.model.operations import Close, Commit, DeleteTopics, Put, PutBatch, Query, Step
from tornpage.model.parts import Shared
from tornpage.model.queues import queue_of
from tornpage.model.state import CommitLog, State
from tornpage.properties.contract import GuaranteeBroken, HarnessError, observed
from tornpage.properties.disk.disk import DiskState
from tornpage.properties.explore.interleavings.stage import Stage
from tornpage.properties.judge.linearizability.calls import Call
from tornpage.properties.judge.linearizability.linearise import Found, Point
from tornpage.properties.judge.log import messages_are_served
from tornpage.properties.judge.rulings import Ruling, broken, holds, judge, require, ruling_of, unknown
from tornpage.properties.program.log_places import file_at

__all__ = [
    "an_order_explains",
    "count_effects",
    "dispatch_has_caught_up",
    "ends_as_explained",
    "escaped",
    "promises_are_kept",
]

DISPATCH, CLEAN = Step("reput"), Step("clean")
_CALLS_SHOWN = 12


def escaped(error: BaseException) -> Ruling:
    """Judge the error in which a task ended.

    Use of released memory breaks contract 11, any other error contract 8. Raises HarnessError and KeyboardInterrupt,
    which are not faults of the store.
    """
    if isinstance(error, HarnessError | KeyboardInterrupt):
        raise error
    if isinstance(error, GuaranteeBroken):
        return ruling_of(error)
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, ValueError) and "released" in str(error):
        return broken(11, f"released memory is used: {text}")
    return broken(8, f"a task ends with {text}")


@judge(16)
def dispatch_has_caught_up(stage: Stage) -> None:
    """Check contracts 4 and 16: dispatch meets no error, and its thread leaves no work undone."""
    steps = [call for call in stage.history.calls if call.request == DISPATCH]
    reput, store = stage.services["reput"], stage.store
    if store.dispatch_error is not None:
        raise GuaranteeBroken(4, "dispatch reads a record that no put has written", found=store.dispatch_error)
    if not steps or reput.is_stopped:
        return
    if store.dispatch_behind_bytes and not reput.is_woken:
        found = f"{store.dispatch_behind_bytes} bytes not dispatched"
        raise GuaranteeBroken(16, "dispatch sleeps and was not woken for available records", "all dispatched", found)


def an_order_explains(calls: Sequence[Call], points: Sequence[Point[Shared]], found: Found[Shared]) -> Ruling:
    """Check contract 17: some order of the calls explains their answers.

    If none does, name the calls that the longest order leaves over.
    """
    if found.verdict != "broken":
        return (
            holds(17, "") if found.verdict == "holds" else unknown(17, "the search for an order ended without a result")
        )
    left = sorted(set(range(len(points))) - set(found.order), key=lambda number: points[number].ended or 1 << 62)
    first = points[left[0]].name if left else "none"
    shown = "\n".join(f"    {call}" for call in calls[-_CALLS_SHOWN:])
    return broken(
        17,
        "no order of the calls explains their answers",
        expected=f"an order that explains each answer; the longest one stops before {first}",
        found=f"\n{shown}",
    )


@judge(2)
def promises_are_kept(stage: Stage) -> None:
    """Check contract 2: at a power loss now, everything acknowledged as durable is on disk.

    No store has recovered here, so there are no legal logs for `covers_the_floor`.
    """
    files, file_bytes = stage.files, stage.layout.file_bytes
    state = DiskState(files.base, disk="posix-strict")
    applied, there = 0, set(files.paths())
    for promise in stage.promises:
        state.apply_all(files.journal[applied : promise.journal])
        applied = promise.journal
        for base in range(stage.store.min_offset, promise.end_offset, file_bytes):
            path = file_at(base, file_bytes=file_bytes, log_paths=1)
            end = min(promise.end_offset - base, file_bytes)
            inode = state.names.get(path)
            durable = b"" if inode is None else state.inodes[inode].durable[:end]
            seen = files.peek(path, 0, end) if path in there else None
            if durable != seen:
                sentence = "a record acknowledged as durable is not on the disk after a power loss"
                raise GuaranteeBroken(
                    2, sentence, f"{path} up to {end}, for {promise.who}", "other bytes" if seen else "no file"
                )


@dataclass(frozen=True, slots=True)
class Explained:
    """Hold evidence: the store of an interleaving, and the log of the order that explains it."""

    store: MessageStore
    log: CommitLog


@judge(1)
def ends_as_explained(stage: Stage, state: State) -> None:
    """Check contracts 1 and 4: the store has the log of the explaining order, with all queues.

    Then close it. A closed store is not checked.
    """
    store = stage.store
    if stage.is_closed:
        return
    observed("check", store.check)
    observed("flush", store.flush)
    stage.services["reput"].step()
    log = state.log
    require(messages_are_served(Explained(store, log)))
    for queue in sorted({queue for record in log.records for queue, _ in places(record, stage.layout)}):
        _queue_ends_as_explained(stage, log, queue)
    observed("close", store.close)
    if store.read_only_reason is not None:
        raise GuaranteeBroken(16, "the store does not close", found=store.read_only_reason)


def _queue_ends_as_explained(stage: Stage, log: CommitLog, queue: Queue) -> None:
    units = queue_of(log.changed(dispatched_offset=log.end_offset), stage.layout, queue)
    expected = [(unit.queue_offset, unit.record.offset) for unit in units]
    topic, queue_id = queue
    store = stage.store
    first = observed("min_offset_in_queue", lambda: store.min_offset_in_queue(topic, queue_id))
    with observed("get_message", lambda: store.get_message(topic, queue_id, first, max_msg_nums=1000)) as result:
        found = [(buffer.queue_offset, buffer.offset) for buffer in result.messages]
    if found != expected:
        sentence = f"queue {queue_id} of {topic} has other messages than those put into it"
        raise GuaranteeBroken(4, sentence, str(expected), str(found))


def count_effects(stage: Stage, effects: Counter[str]) -> None:
    """Count what happened, so that a campaign can report what never did."""
    calls = stage.history.calls
    tasks = [call for call in calls if call.task >= 0]
    puts = [call for call in tasks if isinstance(call.request, Put | PutBatch) and _put_offset(call) >= 0]
    file_bytes = stage.layout.file_bytes
    effects["puts"] += len(puts)
    effects["rolls"] += sum(_put_offset(call) > 0 and _put_offset(call) % file_bytes == 0 for call in puts)
    reads = [call for call in tasks if _read_status(call.answer)]
    effects["reads_found"] += sum(_read_status(call.answer) == "FOUND" for call in reads)
    effects["queries_found"] += sum(isinstance(c.request, Query) and _brings_any(c.answer) for c in tasks)
    effects["commits"] += sum(isinstance(c.request, Commit) and _told(c).committed not in (0, None) for c in tasks)
    effects["reads_between"] += sum(any(read.overlaps(put) for put in puts) for read in reads)
    effects["dispatched_between"] += sum(
        step.request == DISPATCH and any(step.overlaps(put) for put in puts) for step in tasks
    )
    effects["promises"] += len(stage.promises)
    effects["log_files_deleted"] += sum(call.request == CLEAN and _told(call).client not in (0, None) for call in tasks)
    effects["topics_deleted"] += sum(isinstance(c.request, DeleteTopics) and bool(_told(c).names) for c in tasks)
    effects["closed_between"] += sum(
        isinstance(each.request, Close) and any(each.overlaps(o) for o in tasks if o is not each) for each in tasks
    )


def _told(call: Call) -> Answer:
    return call.answer or Answer()


def _put_offset(call: Call) -> int:
    """Return the offset of the record of a put, or -1 without one."""
    put = _told(call).put
    return put.offset if isinstance(put, PutAnswer) else -1


def _read_status(answer: Answer | None) -> str:
    """Return the status of a read by queue or physical offset, or "" for other answers."""
    if answer is None:
        return ""
    if answer.got is not None:
        return answer.got.status
    return answer.client.status if isinstance(answer.client, QueueRead) else ""


def _brings_any(answer: Answer | None) -> bool:
    return answer is not None and answer.client not in ((), "closed", None)
