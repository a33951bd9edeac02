"""Judge the costs of each operation of an open store (contract 16).

Costs are disk calls, syncs, files, and wake-ups of services.

The recorded disk counts the calls, and the model says what an operation changed. docs/tester/costs.md has the bounds:

1. A read, a question, a pull, a buffer, a running flag and a commit of an offset make no call.
2. A round of a service, a flush and a deletion of topics make no call if they changed nothing in the
   model. The flush of queues may write the checkpoint.
3. A put, and each copy that a delivery puts, makes, opens and maps only the log files that the model counts.
4. A put, a flush, a round of a service and a change of a table sync no file without a change since its last sync, and
   no directory without a change of its names. The flush of queues may do so.
5. A service is woken only if it has work, as long as no sync has failed. Of puts that overlap, one may wake it for
   work that another has just done.

Operations under an I/O fault rule or with an injected failure are not measured.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tornpage.model import schedule
from tornpage.model.operations import (
    WITHOUT_A_VERB,
    AimFault,
    ChangeTable,
    Concurrent,
    DeleteTopics,
    Flush,
    HarmOpen,
    OpenTwice,
    Operation,
    Put,
    PutBatch,
    Step,
)
from tornpage.model.state import State
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.disk import parent_of
from tornpage.properties.disk.fault_rule_disk import FaultRuleDisk
from tornpage.properties.disk.journal import (
    PAGE_BYTES,
    DirectoryMade,
    DirectorySynced,
    Entry,
    FileCreated,
    FileLinked,
    FileMade,
    FileRenamed,
    FileSynced,
    FileUnlinked,
    PagesDropped,
    PageWritten,
    Resized,
)
from tornpage.properties.lockstep.pair import Pair

__all__ = ["Costs"]

_WITHOUT_CALLS = tuple(kind for kind in WITHOUT_A_VERB if kind not in (OpenTwice, AimFault))
_MAY_REST = (Step, Flush, DeleteTopics)
_SYNCS_ONCE = (Put, PutBatch, Flush, ChangeTable, Step)
_NOT_COUNTED = ("returned", "unmap", "close")
_OF_LOG_FILES = (FileMade, FileLinked, Resized)
_QUEUE_ROUND_ENTRIES = (PageWritten, FileSynced)


@dataclass(slots=True)
class _Changed:
    """The files and directories with a change since their last sync.

    They are those up to a place in the journal of a disk. A file whose last sync is not known counts as changed.
    """

    files: FaultRuleDisk
    read: int = 0
    inodes: set[int] = field(default_factory=set)
    synced: set[int] = field(default_factory=set)
    directories: set[str] = field(default_factory=set)

    def take(self, until: int) -> tuple[int, int]:
        """Read the journal up to a place; return the needless syncs of files and of directories."""
        needless_files = needless_directories = 0
        for entry in self.files.journal[self.read : until]:
            match entry:
                case PageWritten(inode=inode) | Resized(inode=inode) | PagesDropped(inode=inode):
                    self.inodes.add(inode)
                case FileSynced(inode=inode, succeeded=succeeded):
                    needless_files += inode in self.synced and inode not in self.inodes
                    self.synced.add(inode)
                    if succeeded:
                        self.inodes.discard(inode)
                case DirectorySynced(path=path):
                    needless_directories += path not in self.directories
                    self.directories.discard(path)
                case FileRenamed(source=source, target=target):
                    self.directories |= {parent_of(source), parent_of(target)}
                case (
                    FileCreated(path=path) | FileLinked(path=path) | FileUnlinked(path=path) | DirectoryMade(path=path)
                ):
                    self.directories.add(parent_of(path))
        self.read = until
        return needless_files, needless_directories


@dataclass(frozen=True, slots=True)
class _Begun:
    """What was there before an operation."""

    files: FaultRuleDisk
    state: State
    entries: int
    calls: int
    faults: tuple[int, int, int, bool]
    woken: Mapping[str, bool]


class Costs:
    """Measures the operations of one lockstep run."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        self._changed = _Changed(pair.files)
        self._rested: object = None
        self._begun: _Begun | None = None

    def begin(self) -> None:
        """Note what is there before an operation."""
        pair, files = self._pair, self._pair.files
        if pair.closed or files.rules:
            self._begun = None
            return
        if self._changed.files is not files:
            self._changed, self._rested = _Changed(files), None
        self._changed.take(len(files.journal))
        self._begun = _Begun(files, pair.model, len(files.journal), _calls(files), self._faults(), self._woken())

    def end(self, operation: Operation) -> None:
        """Judge the operation that has ended. Raises GuaranteeBroken."""
        begun, pair = self._begun, self._pair
        if begun is None or pair.closed or pair.files is not begun.files or isinstance(operation, HarmOpen):
            return
        needless = self._changed.take(len(begun.files.journal))
        if any(begun.faults) or any(self._faults()):
            self._rested = None
            return
        entries = begun.files.journal[begun.entries :]
        name = operation.service if isinstance(operation, Step) else operation.op
        self._has_bounded_calls(operation, name, begun, entries)
        if isinstance(operation, _SYNCS_ONCE) and name != "flush-queues":
            _require_at_most(name, "syncs of files without a change", 0, needless[0])
            _require_at_most(name, "syncs of directories without a change", 0, needless[1])
        if not isinstance(operation, Concurrent):
            self._wakes_with_work(name, begun)

    def _faults(self) -> tuple[int, int, int, bool]:
        files = self._pair.files
        return files.failing_syncs, files.failing_writes, files.refused_files, self._pair.environment.append_fails

    def _woken(self) -> Mapping[str, bool]:
        return {service.name: service.is_woken for service in self._pair.environment.services()}

    # ---- disk calls ----------------------------------------------------------------------------------------------

    def _has_bounded_calls(self, operation: Operation, name: str, begun: _Begun, entries: list[Entry]) -> None:
        before, after = begun.state, self._pair.model
        calls = _calls(begun.files) - begun.calls
        if isinstance(operation, _WITHOUT_CALLS):
            _require_at_most(name, "disk calls", 0, calls + len(entries))
        elif name == "flush-queues":
            self._queues_may_rest(before, after, calls, entries)
        elif isinstance(operation, _MAY_REST) and not _waits_for_disk(name, before) and _is_same(before, after):
            _require_at_most(f"{name} without work", "disk calls", 0, calls + len(entries))
        elif (isinstance(operation, Put | PutBatch) or name == "schedule") and not self._is_nearly_full(after):
            self._makes_its_files(name, before, after, entries)

    def _is_nearly_full(self, state: State) -> bool:
        """Return whether the disk may have no room for another log file.

        Creations are tried repeatedly then.
        """
        log, layout = state.log, self._pair.layout
        return log.files + log.prepared - log.oldest_offset // layout.file_bytes >= layout.files_max - 1

    def _queues_may_rest(self, before: State, after: State, calls: int, entries: list[Entry]) -> None:
        """Check that a second flush of queues only writes the checkpoint, if nothing came between."""
        log = after.log
        rests = (
            log.dispatched_offset,
            log.end_offset,
            log.flushed_offset,
            log.min_offset,
            log.process.queued,
            log.deleted,
        )
        if self._rested == rests and not self._pair.is_partly_dispatched:
            others = [entry for entry in entries if not isinstance(entry, _QUEUE_ROUND_ENTRIES)]
            _require_at_most("a second flush of queues", "other calls than writes and syncs", 0, len(others))
            for kind, text in ((PageWritten, "writes"), (FileSynced, "syncs")):
                found = sum(isinstance(entry, kind) for entry in entries)
                _require_at_most("a second flush of queues", text, 1, found)
            _require_at_most("a second flush of queues", "calls", 1, calls)
        is_thorough = log.timers.noted_ms != before.log.timers.noted_ms
        is_whole = not self._pair.is_partly_dispatched
        self._rested = rests if is_whole and (is_thorough or self._rested == rests) else None

    def _makes_its_files(self, name: str, before: State, after: State, entries: list[Entry]) -> None:
        """Check that a put makes the files of the model, or tries the one that it refuses."""
        old, new = before.log, after.log
        made = max(0, new.files + new.prepared - old.files - old.prepared)
        tried = made + (new.end_offset == old.end_offset or name == "schedule")
        for kind in _OF_LOG_FILES:
            found = sum(isinstance(entry, kind) for entry in entries)
            _require_at_most(name, f"{kind.__name__} of log files", tried, found)
        synced = sum(isinstance(entry, FileSynced) for entry in entries)
        flushed = (
            new.flushed_offset // self._pair.layout.file_bytes - old.flushed_offset // self._pair.layout.file_bytes
        )
        _require_at_most(name, "syncs", tried + (flushed + 2 if new.flushed_offset > old.flushed_offset else 0), synced)

    # ---- wake-ups ------------------------------------------------------------------------------------------------

    def _wakes_with_work(self, name: str, begun: _Begun) -> None:
        if self._pair.log.poisoned:
            return  # nothing that is committed now is readable
        for service, is_woken in self._woken().items():
            if is_woken and not begun.woken.get(service) and not self._has_work(service, begun.state):
                raise GuaranteeBroken(
                    16, f"{name} wakes the service {service} without work", "it sleeps", "it is woken"
                )

    def _has_work(self, service: str, before: State) -> bool:
        after, layout = self._pair.model, self._pair.layout
        old, new = before.log, after.log
        match service:
            case "reput":
                return new.dispatched_offset < new.readable_end or self._pair.is_partly_dispatched
            case "commit":
                return self._fills_pages(after)
            case "flush" | "flush-queues" | "progress" | "clean":
                return False
            case "allocate":
                return new.asked > old.asked or new.files > old.files
            case "group-commit":
                return layout.sync_flush and new.end_offset > old.end_offset
            case "time-outs":
                return new.end_offset > old.end_offset
            case "pull-hold":
                return bool(before.pulls or after.pulls)
            case "schedule":
                return schedule.has_work(new, layout) or bool(old.pending or new.pending)
        return True

    def _fills_pages(self, state: State) -> bool:
        """Return whether the page rule asks for a commit."""
        log = state.log
        pages = log.end_offset // PAGE_BYTES - log.committed_offset // PAGE_BYTES
        return pages >= self._pair.layout.least_pages


def _waits_for_disk(service: str, before: State) -> bool:
    """Return whether a round may try again what the disk refused before."""
    return service == "reput" or (service == "allocate" and before.log.prepared < before.log.asked)


def _is_same(before: State, after: State) -> bool:
    """Return whether an operation changed only timers and waiting clients."""
    old, new = before.log, after.log
    return (
        old.disk == new.disk
        and old.process == new.process
        and before.consumers == after.consumers
        and before.tables == after.tables
        and before.broke_off == after.broke_off
    )


def _calls(files: FaultRuleDisk) -> int:
    """Return the number of calls that a disk notes by name.

    The ends of operations do not count. A mapping and an open file may end whenever the last reader releases them.
    """
    return files.marks.total() - sum(files.marks[label] for label in _NOT_COUNTED)


def _require_at_most(name: str, what: str, most: int, found: int) -> None:
    if found > most:
        raise GuaranteeBroken(16, f"{name} costs more {what} than it may", f"{most} at most", str(found))
