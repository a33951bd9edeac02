"""Judge a real directory whose process was killed.

Legal logs come from the model, which carries out the same operations with the same clock. Stored bytes are read from
the directory and decoded by the judges' own decoder. The store under test is asked for its answers, never for the
truth.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from tornpage.impl.io.files import OpenFile
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.store import MessageStore
from tornpage.model.crash import crash, next_process, reopened
from tornpage.model.operations import Open, Operation, Put, PutBatch
from tornpage.model.state import Clock, CommitLog, State
from tornpage.model.step import step
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.disk.disk import Image
from tornpage.properties.explore.kills.child import Progress
from tornpage.properties.explore.kills.snapshot import Snapshot, snapshot_of
from tornpage.properties.judge.evidence import Recovered, SeenFiles, key_of
from tornpage.properties.judge.judges import QUEUE_JUDGES
from tornpage.properties.judge.ledgers import DerivedLedger, Ledger
from tornpage.properties.judge.log import (
    begins_where_it_may,
    covers_the_floor,
    is_a_prefix,
    messages_are_served,
    nothing_behind_the_end,
    watermarks_in_order,
)
from tornpage.properties.judge.rulings import Ruling, broken, holds, judge, require, ruling_of
from tornpage.properties.judge.start import opens_for_writing
from tornpage.properties.program.bit_maps import filters_of
from tornpage.properties.program.case import Settings
from tornpage.properties.program.hand_driven import HandDriven
from tornpage.properties.program.log_places import LOG_DIRECTORY, ROOT
from tornpage.properties.program.translation import layout_of, store_config

__all__ = [
    "JUDGES_OF_KILLS",
    "Answered",
    "LegalLogs",
    "Survived",
    "evidence_of",
    "judge_directory",
    "legal_after",
    "marker_is_right",
    "model_path",
]

LegalLogs = Mapping[int, CommitLog]
"""Each legal log by its end offset; no two of them end at the same place."""


@dataclass(frozen=True, slots=True)
class Answered:
    """Hold the ruling on the answers of a process, and the legal logs after it.

    There are none if the ruling is broken.
    """

    ruling: Ruling
    legal: LegalLogs = field(default_factory=dict)


_LOG = "commitlog"
_ABORT = "abort"
RIGHT = holds(6, "")
_ANSWERED = holds(8, "")


# ---- the model -------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def model_path(
    start: CommitLog, operations: tuple[Operation, ...], *, settings: Settings, start_ms: int
) -> list[CommitLog]:
    """Return the log after each operation; the first one is the recovered log."""
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
) -> Answered:
    """Return the legal logs after a session that began with one of `legal`, from its progress.

    The ruling is on contract 2 if the store recovered differently from the model, and on contract 8 if it answered
    differently.
    """
    if progress.returned < 0:
        return Answered(_ANSWERED, legal)  # killed during its open: recovery may be repeated, so it decides nothing
    recovered = progress.end_of(0)
    if recovered not in legal:
        sentence = "the recovered log is not one that may survive a kill"
        return Answered(broken(2, sentence, expected=str(sorted(legal)), found=str(recovered)))
    path = model_path(legal[recovered], operations, settings=settings, start_ms=start_ms)
    for verb in range(1, progress.returned + 1):
        operation = operations[verb - 1]
        if isinstance(operation, Put | PutBatch | Open):
            stored = isinstance(operation, Open) or len(path[verb].records) > len(path[verb - 1].records)
            expected = path[verb].end_offset if stored else -1
            if progress.end_of(verb) != expected:
                sentence = f"{operation.op} (verb {verb}) answers differently from the model"
                answered = str(progress.end_of(verb))
                return Answered(broken(8, sentence, expected=str(expected), found=answered))
    before, after = path[progress.returned], path[progress.begun]
    logs = crash(before, after, "process kill", layout=layout_of(settings))
    return Answered(_ANSWERED, {log.end_offset: log for log in logs})


@judge(7)
def marker_is_right(before: Snapshot, found: Snapshot, progress: Progress, operations: Sequence[Operation]) -> None:
    """Check contract 7: the abort marker exists while the store is open, not after a close."""
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
    """Use the real disk, and release everything at once like the end of a process.

    No thread may use the files afterwards.
    """

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
        """Close every descriptor, and with it every lock. Mappings end with their last view."""
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
                filter_bit_map=filters_of(self.settings),
            )
        except Exception as error:
            raise GuaranteeBroken(7, f"the store does not open: {type(error).__name__}: {error}") from error


@dataclass(frozen=True, slots=True)
class Survived:
    """Hold the ruling on a directory, and the log that survived.

    The log is None if it is not a legal one.
    """

    ruling: Ruling
    log: CommitLog | None = None


def judge_directory(
    directory: str,
    legal: LegalLogs,
    *,
    settings: Settings,
    components: Parts,
    now_ms: int,
    once_more: Callable[[Snapshot, CommitLog], bool] = lambda left, survivor: True,
) -> Survived:
    """Recover by the real load path, judge, recover again, close cleanly, judge.

    The first recovery is abandoned without a close, so that the second one also follows a kill. The second one is left
    out if `once_more` returns False for the files and the log that the first one left.
    """
    disk = _Disk(directory, settings, components, lambda: now_ms)
    try:
        left, survivor = _judged_open(disk, legal)
        if once_more(left, survivor):
            _judge_once_more(disk, survivor, left.below(_LOG))
    except GuaranteeBroken as error:
        return Survived(ruling_of(error))
    return Survived(RIGHT, survivor)


def _judged_open(disk: _Disk, legal: LegalLogs, *, closes: bool = False) -> tuple[Snapshot, CommitLog]:
    """Open the store and evaluate every judge; return the files after the open, and the log.

    Raises GuaranteeBroken.
    """
    files = _AbandonableFiles()
    try:
        store = disk.open_with(files)
        left = snapshot_of(disk.directory)
        found = evidence_of(store, left.files, legal, settings=disk.settings)
        for each in JUDGES_OF_KILLS:
            require(each(found))
        if closes:
            observed("close", store.close)
        return left, found.legal[found.key]
    finally:
        files.abandon()


def _judge_once_more(disk: _Disk, survivor: CommitLog, recovered: Mapping[str, bytes]) -> None:
    """Check contract 6: the next process recovers the same bytes, and closes cleanly."""
    try:
        _judged_open(disk, {survivor.end_offset: survivor}, closes=True)
    except GuaranteeBroken as error:
        raise GuaranteeBroken(6, f"a second recovery differs from the first: {error.sentence}") from error
    closed = snapshot_of(disk.directory)
    if closed.below(_LOG) != recovered:
        raise GuaranteeBroken(6, "a second recovery, or a clean close, changed the log files")
    if _ABORT in closed.files:
        raise GuaranteeBroken(7, "the abort marker is still there after a clean close")


# ---- the evidence ----------------------------------------------------------------------------------------------------


def evidence_of(
    store: MessageStore, content: Mapping[str, bytes], legal: LegalLogs, *, settings: Settings
) -> Recovered:
    """Return the evidence for the judges.

    The page cache is the truth, since a kill loses nothing of it. Raises GuaranteeBroken (1) if the files hold other
    records than the log that ends where the store says.
    """
    by_path = {f"{ROOT}/{name}": data for name, data in content.items()}  # as on a recorded disk
    layout, files = layout_of(settings), SeenFiles(by_path, Image(frozenset(), by_path))
    survivor = legal.get(store.max_offset, CommitLog())

    def peek(name: str, position: int, size_bytes: int) -> bytes:
        return files.peek(f"{LOG_DIRECTORY}/{name}", position, size_bytes)

    return Recovered(
        store,
        files,
        Ledger.of(survivor, file_bytes=settings.file_bytes, peek=peek),
        DerivedLedger(layout, survivor.records),
        {key_of(log): log for log in legal.values()},
        files.base,
        settings,
        layout,
    )


JUDGES_OF_KILLS = (
    opens_for_writing,
    begins_where_it_may,
    covers_the_floor,
    watermarks_in_order,
    messages_are_served,
    is_a_prefix,
    nothing_behind_the_end,
    *QUEUE_JUDGES,
)
"""In the order of evaluation."""
