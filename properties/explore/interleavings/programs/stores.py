"""Benches of a whole store for the locks that only the store as a whole uses."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import ClassVar

from tornpage.impl.errors import StoreClosed
from tornpage.impl.message.batch import encode_batch_body
from tornpage.impl.message.message import BatchMember, Message, MessageBatch, PutResult
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import Service
from tornpage.impl.store import MessageStore
from tornpage.model.payloads import BORN_TIMESTAMP
from tornpage.properties.disk.dirty import CompareTracker
from tornpage.properties.disk.failing_disk import UnmarkedDisk
from tornpage.properties.disk.recording_files import EMPTY_DISK
from tornpage.properties.explore.interleavings.parts import stepped_parts
from tornpage.properties.explore.interleavings.programs.bench import Bench, call, program, require_rule
from tornpage.properties.explore.interleavings.programs.drawing import Entry, entry
from tornpage.properties.explore.interleavings.runner import SteppedRunner
from tornpage.properties.explore.interleavings.scenario import Scenario
from tornpage.properties.program.case import Settings
from tornpage.properties.program.log_places import ROOT
from tornpage.properties.program.translation import store_config

__all__ = ["BENCHES"]

_SETTINGS = Settings(file_bytes=1024, queue_units=3, index=False)
_BUDGET_BYTES = 1 << 26
_BODIES = (b"0", b"1", b"2")
_BATCH = encode_batch_body([BatchMember(b"1"), BatchMember(b"2")])


class StoreBench(Bench):
    """Flushes, deletions, rounds of services and closes of one store.

    One task of a drawn program closes the store, since a second close returns before the first one ends.
    """

    modules: ClassVar[tuple[str, ...]] = (
        "tornpage.impl.store",
        "tornpage.impl.durability",
        "tornpage.impl.retention.retention",
    )
    is_slow = True
    settings = _SETTINGS

    def __init__(self) -> None:
        self.runners: dict[str, SteppedRunner] = {}
        self.files = UnmarkedDisk(EMPTY_DISK, tracker=CompareTracker(), budget_bytes=_BUDGET_BYTES)
        self.store = MessageStore.open(
            ROOT,
            store_config(self.settings),
            files=self.files,
            clock=lambda: BORN_TIMESTAMP,
            parts=stepped_parts(Parts(), runner=self._runner),
            memory_bytes=1 << 33,
        )

    def _runner(self, service: Service) -> SteppedRunner:
        runner = self.runners[service.name] = SteppedRunner(service, lambda: BORN_TIMESTAMP)
        return runner

    def put(self, number: int) -> str:
        answer = self.store.put(Message("T", b"%d" % number))
        return answer.status.name

    def get(self) -> None:
        """Read the first record. A close refuses puts before reads, so only the body is judged."""
        is_there = self.store.max_offset > 0
        try:
            found = self.store.get(0)
        except StoreClosed:
            return
        if is_there:
            require_rule(found.message is not None, "a record is there, and not found", found=found.status.name)
        if found.message is not None:
            body = bytes(found.message.body)
            require_rule(body in _BODIES, "a read returns another body than a put stored", contract=11, found=body)

    def flush(self) -> None:
        """Flush.

        A close refuses puts before flushes, so it is not compared whether the store was closed.
        """
        with suppress(StoreClosed):
            self.store.flush()

    def delete(self) -> None:
        """Delete all topics. A close refuses puts before deletions, so the names are not compared."""
        with suppress(StoreClosed):
            self.store.clean_unused_topics(())

    def clean(self) -> None:
        self.runners["clean"].step()

    def dispatch(self) -> None:
        self.runners["reput"].step()

    def close(self) -> None:
        self.store.close()

    def state(self) -> object:
        self.store.close()
        journal = len(self.files.journal)
        self.store.close()
        require_rule(len(self.files.journal) == journal, "a closed store writes", contract=11)
        require_rule(not self.files._mapped, "a closed store leaves a file mapped", contract=11)
        return self.store.read_only_reason, sorted(self.files.paths())

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("put", (1, 2)),
        entry("put", (1,)).then("dispatch"),
        entry("flush"),
        entry("delete"),
        entry("clean", role="clean"),
        entry("get"),
        entry("close", role="closer"),
    )
    programs: ClassVar[tuple[Scenario, ...]] = (
        program("store", [call("close")], [call("flush")], before=[call("put", 1)]),
        program("store", [call("close")], [call("close")], before=[call("put", 1)]),
        program("store", [call("close")], [call("delete")], before=[call("put", 1), call("dispatch")]),
        program("store", [call("close")], [call("clean")], before=[call("put", 1), call("dispatch")]),
        program("store", [call("close")], [call("put", 2)], before=[call("put", 1)]),
        program("store", [call("flush")], [call("flush")], before=[call("put", 1)]),
        program("store", [call("delete")], [call("clean")], before=[call("put", 1), call("dispatch")]),
        program("store", [call("delete")], [call("delete")], before=[call("put", 1), call("dispatch")]),
    )


class PutsBench(StoreBench):
    """Puts, with the numbers and statistics that they get, beside whatever keeps them out."""

    modules: ClassVar[tuple[str, ...]] = ("tornpage.impl.log.commit_log", "tornpage.impl.put.put_path")
    programs = ()

    def __init__(self) -> None:
        super().__init__()
        self.is_closed = False
        self.answers: list[PutResult] = []

    def put_to(self, topic: int, queue: int) -> object:
        return self._answered(self.store.put(Message(f"T{topic}", b"1", queue_id=queue)))

    def put_batch(self, topic: int) -> object:
        return self._answered(self.store.put_batch(MessageBatch(f"T{topic}", _BATCH)))

    def _answered(self, answer: PutResult) -> object:
        self.answers.append(answer)
        return answer.status.name, answer.offset, answer.queue_offset

    def statistics(self) -> int:
        return self.store._puts.statistics().message_count

    def close(self) -> None:
        self.is_closed = True
        super().close()

    def state(self) -> object:
        content = b"".join(
            self.files.peek(path, 0, _SETTINGS.file_bytes)
            for path in sorted(self.files.paths())
            if "/commitlog/" in path
        )
        stored = [answer for answer in self.answers if answer.stored]
        magics = [content[answer.offset + 4 : answer.offset + 8] for answer in stored]
        require_rule(all(any(magic) for magic in magics), "a put that was answered is not in the log", contract=2)
        places = [answer.offset for answer in stored]
        require_rule(len(places) == len(set(places)), "two puts have one place", found=places)
        statistics = self.statistics()
        super().state()
        return "closed" if self.is_closed else (content, statistics)

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("put_to", (0, 1), (0, 1)),
        entry("put_batch", (0, 1)),
        entry("delete"),
        entry("statistics"),
        entry("close", role="closer"),
    )


class DispatchBench(PutsBench):
    """Dispatch, by its service and by callers that drain it, beside deletions."""

    modules = (
        "tornpage.impl.dispatch.reput",
        "tornpage.impl.dispatch.derived",
        "tornpage.impl.queue.consume_queues",
        "tornpage.impl.retention.topic_cleaning",
    )

    def drain(self) -> None:
        self.store._reput.drain()

    def state(self) -> object:
        is_open = self.store._lifecycle.shut != "closed"
        if is_open:
            self.store._reput.drain()
        keys = sorted(self.store.queues()) if is_open else []
        ends = [(key, self.store.max_offset_in_queue(*key)) for key in keys]
        return super().state(), ends

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("put_to", (0, 1), (0, 1)).then("dispatch"),
        entry("put_to", (0, 1), (0, 1)).then("drain"),
        entry("drain"),
        entry("delete"),
        entry("close", role="closer"),
    )


class ReceivingBench(StoreBench):
    """A slave, whose link appends what the master has sent."""

    modules = ("tornpage.impl.log.commit_log", "tornpage.impl.put.receiving")
    settings = replace(_SETTINGS, role="SLAVE")
    programs = ()

    def __init__(self) -> None:
        super().__init__()
        self.data, self.ends = _records()
        self.received = 0

    def receive(self, count: int) -> None:
        """Append the next records."""
        begin = self.store.max_offset
        ends = [end for end in self.ends if end > begin][:count]
        if ends and self.store._lifecycle.shut != "closed":
            found = self.store.append_to_commit_log(begin, memoryview(self.data)[begin : ends[-1]])
            self.received = max(self.received, begin + found.appended_bytes)

    def state(self) -> object:
        self.store.close()
        path = next((path for path in sorted(self.files.paths()) if "/commitlog/" in path), "")
        content = self.files.peek(path, 0, self.received) if path else b""
        is_there = content == self.data[: self.received]
        require_rule(is_there, "received records are not in the log", contract=2, found=self.received)
        super().state()
        return ""

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("receive", (1, 2), role="link"),
        entry("flush"),
        entry("get"),
        entry("close", role="closer"),
    )


@cache
def _records() -> tuple[bytes, tuple[int, ...]]:
    """Return the records of a master and their ends."""
    master = StoreBench()
    ends = []
    for number in range(5):
        answer = master.store.put(Message("T", b"%d" % number))
        ends.append(answer.offset + answer.size_bytes)
    path = next(path for path in sorted(master.files.paths()) if "/commitlog/" in path)
    return bytes(master.files.peek(path, 0, ends[-1])), tuple(ends)


BENCHES: Mapping[str, Callable[[], Bench]] = {
    "store": StoreBench,
    "puts": PutsBench,
    "dispatch": DispatchBench,
    "receiving": ReceivingBench,
}
