"""Bugs of a damaged store: what it believes and proves, and where readers stop."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from tornpage.impl.dispatch.derived import Derived
from tornpage.impl.dispatch.queue_numbers import QueueNumbers, Rulings
from tornpage.impl.io.files import Files
from tornpage.impl.log.durable_floor import Floor
from tornpage.impl.log.loading import Finding, FoundLog, examine_log
from tornpage.impl.log.log_directories import LogDirectories
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.message.dispatching import QueueRun
from tornpage.impl.message.multi_dispatch import QueueKey
from tornpage.impl.parts import Parts
from tornpage.impl.queue.consume_queues import ConsumeQueues
from tornpage.impl.read.queue_reads import QueueReads
from tornpage.impl.recovery.evidence import LastUnit, flushed_time, last_units
from tornpage.impl.recovery.recovery import Recovery, RecoveryPlan
from tornpage.model.operations import DeleteTopics, HarmField, Put
from tornpage.properties.planted.programs import FULL, PUT
from tornpage.properties.planted.record import PlantedBug
from tornpage.properties.program.case import Settings

__all__ = ["BUGS"]


class _EachNumberBelieved(Derived):
    """No neighbour and no stored unit outvotes the queue offset of a record."""

    def _numbers_of(self, log: MappedFileQueue, offset: int, end_offset: int) -> Rulings:
        return Rulings()


class _OldestNumbering(QueueNumbers):
    """A queue whose numbers begin at 0 again is decided without its later records."""

    def __init__(self, queues: ConsumeQueues, *, log_min: int) -> None:
        super().__init__(queues, log_min=log_min)
        self._begun: set[QueueKey] = set()
        self._begun_again: set[QueueKey] = set()

    def take(self, runs: Iterable[QueueRun]) -> None:
        for run in runs:
            if run.queue_offset == 0 and run.key in self._begun:
                self._begun_again.add(run.key)
            self._begun.add(run.key)
            if run.key not in self._begun_again:
                super().take((run,))


class _WaitsForWhatIsLost(QueueReads):
    """A pull of a damaged store ends before a unit that points past the end of the log."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._reader.never_grows = False


def _never_flushed(*_: object, **__: object) -> int:
    """No time in a checkpoint proves anything."""
    return 0


def _no_units(*_: object, **__: object) -> Sequence[LastUnit]:
    """No queue says how long the log was."""
    return ()


def _one_empty_file(files: Files, directories: LogDirectories, *, file_bytes: int, floor: Floor | None) -> FoundLog:
    """Forgive one empty newest file. Take other incomplete files made ahead for damage."""
    found = examine_log(files, directories, file_bytes=file_bytes, floor=floor)
    sizes = [stat.size_bytes for path in found.leftovers if (stat := files.stat(path)) is not None]
    if sizes in ([], [0]):
        return found
    ahead = (Finding("damage", "short_file", path, 0, f"{path} is not expected") for path in found.leftovers)
    return replace(found, findings=(*found.findings, *ahead), leftovers=())


class _NamesBelieved(Recovery):
    """Take a log file with the records of another place for the torn end of the log."""

    def plan(self, load_findings: tuple[Finding, ...]) -> RecoveryPlan:
        plan = super().plan(load_findings)
        findings = (
            replace(each, severity="tear", code="torn_tail") if each.code == "misnamed_file" else each
            for each in plan.findings
        )
        return replace(plan, findings=tuple(findings))


def _any_units(files: Files, root: str, *, queue_file_bytes: int, log_file_bytes: int) -> Sequence[LastUnit]:
    """Return the last unit of each queue, also where no record fits."""
    return last_units(files, root, queue_file_bytes=queue_file_bytes, log_file_bytes=1 << 62)


class _EveryFileFull(Recovery):
    """A damaged log reaches to the end of its newest file."""

    def leave(self, plan: RecoveryPlan) -> None:
        self._log.flushed_where = max(self._log.min_offset, plan.scan.end_offset)


_BODIES_ONLY = Settings(file_bytes=1024, trailer=False)

BUGS = (
    PlantedBug("queue-offset-believed", "each record is believed about its queue and its number there", 18,
        Parts({Derived: _EachNumberBelieved}), machine="queue",
        program=(_BODIES_ONLY, (PUT, PUT, HarmField(record=1, value=1 << 40)))),
    PlantedBug("deleted-topic-counts", "messages of a deleted topic overwrite the units of the topic created again", 17,
        Parts({QueueNumbers: _OldestNumbering}), machine="queue",
        program=(_BODIES_ONLY, (PUT, DeleteTopics(), PUT, HarmField(field="deleted_topics")))),
    PlantedBug("flushed-part-cut", "without a floor every bad record of a killed store is a tear", 7,
        Parts({flushed_time: _never_flushed}), machine="queue",
        program=(_BODIES_ONLY, (Put(body_bytes=9), PUT, Put(advance_ms=5_000), HarmField(field="body")))),
    PlantedBug("lost-end-accepted", "a log that lost its end after a clean exit is opened for writing", 7,
        Parts({last_units: _no_units, flushed_time: _never_flushed}), machine="queue",
        program=(_BODIES_ONLY, (PUT, HarmField(field="end")))),
    PlantedBug("waits-for-what-is-lost", "a pull of a damaged store stays before a unit that leads nowhere", 7,
        Parts({QueueReads: _WaitsForWhatIsLost}), machine="queue",
        program=(_BODIES_ONLY, (FULL, FULL, HarmField(field="end", record=1)))),
    PlantedBug("zeros-are-log", "the log of a store that opens read-only includes zeros after its last record", 9,
        Parts({Recovery: _EveryFileFull}), machine="queue",
        program=(_BODIES_ONLY, (PUT, HarmField(field="end")))),
    PlantedBug("names-of-files-believed", "the log of a killed store is cut before a file with the name of another", 7,
        Parts({Recovery: _NamesBelieved}), machine="queue",
        program=(_BODIES_ONLY, (FULL, FULL, HarmField(field="swapped", value=1)))),
    PlantedBug("garbage-proves-records", "bytes of a queue file that mean nothing make a closed store read-only", 7,
        Parts({last_units: _any_units}), machine="queue",
        program=(_BODIES_ONLY, (PUT, HarmField(field="queue_bytes")))),
    PlantedBug("files-ahead-are-damage", "incomplete files made ahead make a store read-only after a crash", 7,
        Parts({examine_log: _one_empty_file}), machine="queue",
        program=(_BODIES_ONLY, (PUT, HarmField(field="ahead")))),
)  # fmt: skip
