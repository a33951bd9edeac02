"""What may be found in a real directory whose process was killed, and the judges that look.

Legal logs come from the model, which carries out the same operations with the same clock. Stored bytes are read from
the directory and decoded by the judges' own decoder; the store under test is asked for its answers, never for truth.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from impl.files import OpenFile
from impl.os_files import OsFiles
from impl.parts import Parts
from impl.runner import ThreadRunner
from impl.store import MessageStore
from model.crash import crash, next_process, reopened
from model.operations import Open, Operation, Put, PutBatch
from model.state import Clock, CommitLog, State
from model.step import step
from properties.contract import GuaranteeBroken
from properties.decode.record import BLANK_MAGIC
from properties.explore.kills.child import Progress
from properties.explore.kills.derived import judge_derived
from properties.explore.kills.snapshot import Snapshot, snapshot_of
from properties.judge.ledger import compare_record
from properties.program.bit_maps import filters_of
from properties.program.case import Settings
from properties.program.hand_driven import HandDriven
from properties.program.translation import layout_of, store_config

__all__ = ["LegalLogs", "judge_directory", "legal_after", "marker_is_right", "model_path"]

LegalLogs = Mapping[int, CommitLog]
"""Each legal log by its end offset; no two of them end at the same place."""

_LOG = "commitlog"
_ABORT = "abort"


# ---- the model -------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def model_path(
    start: CommitLog, operations: tuple[Operation, ...], *, settings: Settings, start_ms: int
) -> list[CommitLog]:
    """Return the log after each operation: first the one that was recovered, then one per operation."""
    layout, state, path = layout_of(settings), State(start, clock=Clock(start_ms)), [start]
    for operation in operations:
        if isinstance(operation, Open):
            state = next_process(state, reopened(state.log), layout=layout)
        else:
            state, _ = next(step(state, operation, layout))
        path.append(state.log)
    return path


def legal_after(
    legal: LegalLogs, progress: Progress, operations: tuple[Operation, ...], *, settings: Settings, start_ms: int
) -> LegalLogs:
    """Return the legal logs after a life that began with one of `legal`, from how far it got.

    Raises GuaranteeBroken when the store had recovered or answered otherwise than the model.
    """
    if progress.returned < 0:
        return legal  # killed while it opened: recovery may be repeated, it decides nothing (contract 6)
    recovered = progress.end_of(0)
    if recovered not in legal:
        raise GuaranteeBroken(
            2, "the recovered log is none that may survive a kill", str(sorted(legal)), str(recovered)
        )
    path = model_path(legal[recovered], operations, settings=settings, start_ms=start_ms)
    for verb in range(1, progress.returned + 1):
        operation = operations[verb - 1]
        if isinstance(operation, Put | PutBatch | Open):
            stored = isinstance(operation, Open) or len(path[verb].records) > len(path[verb - 1].records)
            expected = path[verb].end_offset if stored else -1
            if progress.end_of(verb) != expected:
                sentence = f"{operation.op} (verb {verb}) answers otherwise than the model"
                raise GuaranteeBroken(8, sentence, str(expected), str(progress.end_of(verb)))
    before, after = path[progress.returned], path[progress.begun]
    return {log.end_offset: log for log in crash(before, after, "process kill", layout=layout_of(settings))}


def marker_is_right(before: Snapshot, found: Snapshot, progress: Progress, operations: Sequence[Operation]) -> None:
    """Contract 7: the abort marker is there while the store is open, and gone after a clean exit."""
    if progress.begun != progress.returned and _name_of(progress.begun, operations) in ("open", "close"):
        first = progress.returned < 0
        due = True if first and _ABORT in before.files else None
    else:
        due = _name_of(progress.returned, operations) != "close"
    if due is not None and due != (_ABORT in found.files):
        where = f"verb {progress.begun} ({_name_of(progress.begun, operations)})"
        words = {True: "present", False: "absent"}
        raise GuaranteeBroken(7, f"the abort marker is wrong in {where}", words[due], words[not due])


def _name_of(verb: int, operations: Sequence[Operation]) -> str:
    return "open" if verb <= 0 else operations[verb - 1].op


# ---- the store -------------------------------------------------------------------------------------------------------


class _AbandonableFiles(OsFiles):
    """The real disk, which can let go of everything as the end of a process does; no thread may go on with it then."""

    def __init__(self) -> None:
        self._open_files: list[OpenFile] = []

    def create(self, path: str) -> OpenFile:
        file = super().create(path)
        self._open_files.append(file)
        return file

    def open(self, path: str, *, writable: bool) -> OpenFile:
        file = super().open(path, writable=writable)
        self._open_files.append(file)
        return file

    def close(self, file: OpenFile) -> None:
        self._open_files.remove(file)
        super().close(file)

    def abandon(self) -> None:
        """Close every descriptor, and with it every lock; mappings go with their last view."""
        for file in list(self._open_files):
            self.close(file)


@dataclass(frozen=True, slots=True)
class _Disk:
    directory: str
    settings: Settings
    components: Parts
    clock: Callable[[], int]

    def open_with(self, files: _AbandonableFiles) -> MessageStore:
        try:
            return MessageStore.open(
                self.directory,
                store_config(self.settings),
                files=files,
                clock=self.clock,
                parts=self.components.replacing({ThreadRunner: lambda service: HandDriven(service, self.clock)}),
                bit_map_of=filters_of(self.settings),
            )
        except Exception as error:
            raise GuaranteeBroken(7, f"the store does not open: {type(error).__name__}: {error}") from error


def judge_directory(
    directory: str,
    legal: LegalLogs,
    *,
    settings: Settings,
    components: Parts,
    now_ms: int,
    once_more: Callable[[Snapshot, CommitLog], bool] = lambda left, survivor: True,
) -> CommitLog:
    """Recover by the real load path, judge, recover again, close cleanly, judge; return the log that survived.

    The first recovery is given up without a close, so that the second one follows a kill too; it is left out if
    `once_more` says so of what the first one has left, and of the log in it. Raises GuaranteeBroken.
    """
    disk = _Disk(directory, settings, components, lambda: now_ms)
    files = _AbandonableFiles()
    try:
        store = disk.open_with(files)
        survivor = _judge_store(store, legal)
        left = snapshot_of(directory)
        judge_derived(store, survivor, left.files, settings=settings)
        recovered = left.below(_LOG)
        _judge_bytes(recovered, survivor, settings)
    finally:
        files.abandon()
    if once_more(left, survivor):
        _judge_once_more(disk, survivor, recovered)
    return survivor


def _judge_once_more(disk: _Disk, survivor: CommitLog, recovered: Mapping[str, bytes]) -> None:
    """Contract 6: the next process recovers the same, byte for byte, and closes cleanly."""
    files = _AbandonableFiles()
    try:
        store = disk.open_with(files)
        _judge_store(store, {survivor.end_offset: survivor})
        judge_derived(store, survivor, snapshot_of(disk.directory).files, settings=disk.settings)
        store.close()
    except GuaranteeBroken as broken:
        raise GuaranteeBroken(6, f"recovering twice is not recovering once: {broken.sentence}") from broken
    finally:
        files.abandon()
    closed = snapshot_of(disk.directory)
    if closed.below(_LOG) != recovered:
        raise GuaranteeBroken(6, "a second recovery, or a clean close, changed the log files")
    if _ABORT in closed.files:
        raise GuaranteeBroken(7, "the abort marker is still there after a clean close")


def _judge_store(store: MessageStore, legal: LegalLogs) -> CommitLog:
    """Contracts 7, 2, 9 and 1 as far as the store answers."""
    if store.read_only_reason is not None:
        raise GuaranteeBroken(7, "the store opens read-only after a kill", "read-write", store.read_only_reason)
    end = store.max_offset
    if end not in legal:
        raise GuaranteeBroken(2, "the recovered log is none that may survive a kill", str(sorted(legal)), str(end))
    survivor = legal[end]
    marks = (store.min_offset, store.flushed_offset, store.committed_offset, end)
    if marks != (0, end, end, end):
        raise GuaranteeBroken(9, "the watermarks are wrong after recovery", str((0, end, end, end)), str(marks))
    served = [(message.offset, message.body) for message in store.messages()]
    if served != [(record.offset, record.message.body) for record in survivor.records]:
        raise GuaranteeBroken(1, "the store serves other messages than were put")
    return survivor


def _judge_bytes(found: Mapping[str, bytes], log: CommitLog, settings: Settings) -> None:
    """Contracts 1 and 3: the files hold the records of the log, blanks between files, and zeros."""
    file_bytes = settings.file_bytes
    expected = [f"{_LOG}/{base:020d}" for base in range(0, log.end_offset, file_bytes)]
    if sorted(found) != expected:
        raise GuaranteeBroken(1, "the log has other files than its end says", str(expected), str(sorted(found)))
    records = list(log.records)
    for base, name in zip(range(0, log.end_offset, file_bytes), expected, strict=True):
        data = found[name]
        if len(data) != file_bytes:
            raise GuaranteeBroken(1, f"{name} has the wrong size", str(file_bytes), str(len(data)))
        position = 0
        while records and records[0].offset == base + position:
            record = records.pop(0)
            stored = data[position : position + record.size_bytes]
            compare_record(stored, record, base=base, file_bytes=file_bytes)
            position += record.size_bytes
        if log.end_offset >= base + file_bytes:
            blank = (file_bytes - position).to_bytes(4, "big") + BLANK_MAGIC.to_bytes(4, "big")
            if data[position : position + len(blank)] != blank:
                raise GuaranteeBroken(1, f"no blank ends the file at {base + position}")
            position += len(blank)
        if data[position:].strip(b"\0"):
            at = base + len(data) - len(data[position:].lstrip(b"\0"))
            raise GuaranteeBroken(3, f"a byte behind the end is not zero at offset {at}", "zero")
    if records:
        raise GuaranteeBroken(1, f"no record at {records[0].offset}: the log has a hole")
