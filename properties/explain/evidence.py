"""Evidence of a failure, kept from the run that found it.

Its text, its page map and its page are made from it.

It has the operations and answers, the barriers, the fate of each page, size and name, the log as it then reads, what
recovery made of it, and why a disk may do so. A `Witness` watches the run, so nothing has to run again.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from tornpage.impl.store import MessageStore
from tornpage.model.operations import WITHOUT_A_VERB, Crash, Operation
from tornpage.model.state import CommitLog
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.images import named_inodes
from tornpage.properties.disk.journal import (
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
    ProcessKilled,
    Resized,
)
from tornpage.properties.explain.crash_context import CrashContext
from tornpage.properties.explain.hexdump import Frame, HexLine, frames_of, hex_of
from tornpage.properties.explain.page_history import PageHistory, PageVersion, histories_of, versions_of
from tornpage.properties.explain.page_map import PageFate, PageMap, WriteFate, page_map_of
from tornpage.properties.judge.evidence import durable_image
from tornpage.properties.judge.rulings import counted
from tornpage.properties.lockstep.lockstep import Lockstep
from tornpage.properties.program.case import Case, Settings, describe
from tornpage.properties.program.log_places import log_files

__all__ = ["Evidence", "Explanation", "Witness"]

PAGES_SHOWN_MAX = 12
MARKS_MAX = 2_000


# ---- values ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OperationSpan:
    """An operation, its journal entries, and its answer.

    Entries from `first` to `last`; they are -1 for an operation before the last crash.
    """

    text: str
    first: int
    last: int
    answer: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A journal entry in the lanes."""

    at: int
    kind: str
    file: str
    what: str


@dataclass(frozen=True, slots=True)
class Lanes:
    """Operations, writes and barriers along the journal.

    `crash` and `crash_operation` are -1 without a crash.
    """

    operations: tuple[OperationSpan, ...]
    entries: int
    opened: int
    crash: int
    crash_operation: int
    is_kill: bool
    back: int
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class HexPage:
    """A page of the crash state as text, and the versions that could survive."""

    file: str
    page: int
    fate: str
    lines: tuple[HexLine, ...]
    versions: tuple[PageVersion, ...]


@dataclass(frozen=True, slots=True)
class ReadFrame(Frame):
    """Bytes of a log file, and what recovery made of them."""

    recovery: str


@dataclass(frozen=True, slots=True)
class RecordFate:
    """A record that was put: whether it was promised, is whole on the disk, and was recovered."""

    offset: int
    size_bytes: int
    message: str
    promised: bool
    on_disk: bool
    recovered: bool


@dataclass(frozen=True, slots=True)
class Decision:
    """A finding or an action of recovery."""

    what: str
    said: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The content of a counterexample's page.

    Without a crash everything but the lanes is empty.
    """

    lanes: Lanes
    pages: tuple[PageFate, ...] = ()
    facts: tuple[WriteFate, ...] = ()
    certificate: tuple[str, ...] = ()
    histories: tuple[PageHistory, ...] = ()
    hexes: tuple[HexPage, ...] = ()
    frames: tuple[ReadFrame, ...] = ()
    records: tuple[RecordFate, ...] = ()
    decisions: tuple[Decision, ...] = ()
    legal: str = ""

    def document(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of a run with crashes.

    `page_map` is that of the last power loss, None without one. `account` is that of the last crash, including a kill.
    The account of a foreign store has no records, frames and decisions, since its recovery cannot be watched.
    """

    page_map: PageMap | None
    account: Explanation | None


# ---- watching a run --------------------------------------------------------------------------------------------------


class _Files(Protocol):
    """The recorded disk of a run."""

    @property
    def base(self) -> Image: ...
    @property
    def journal(self) -> Sequence[Entry]: ...
    @property
    def events(self) -> Sequence[int]: ...


class WatchedRun(Protocol):
    """The parts of a run that a witness reads, for tornpage's store and foreign stores."""

    performed: list[Operation]

    @property
    def settings(self) -> Settings: ...
    @property
    def files(self) -> _Files: ...
    @property
    def spans(self) -> Sequence[Any]: ...


class Witness:
    """Watches one run of a case, so that its evidence exists when the run breaks.

    `note` has to be called before each operation.
    """

    def __init__(self) -> None:
        self._run: WatchedRun | None = None
        self._power_loss: CrashContext | None = None
        self._last_crash: CrashContext | None = None
        self._spans_before = 0

    def note(self, run: WatchedRun, operation: Operation) -> None:
        """Keep what a crash is about to discard, or where any other operation begins."""
        self._run, self._spans_before = run, len(run.spans)
        if isinstance(operation, Crash):
            files, number = run.files, len(run.performed)
            self._last_crash = CrashContext(
                number, operation, run.settings, files.base, tuple(files.journal), tuple(files.events), [*run.spans]
            )
            self._power_loss = self._power_loss if operation.kill else self._last_crash

    @property
    def crash(self) -> CrashContext | None:
        """The last crash of the run, including a kill."""
        return self._last_crash

    @property
    def power_loss(self) -> CrashContext | None:
        """The last power loss of the run."""
        return self._power_loss

    def evidence(self) -> Evidence | None:
        """Return the evidence of a run that broke or ended; None if it ran no operation.

        Opens the store once more on the disk that the last crash left.
        """
        run = self._run
        if run is None:
            return None
        case = Case(run.settings, tuple(run.performed))
        page_map = None if self._power_loss is None else page_map_of(self._power_loss, case)
        return Evidence(page_map, self._explanation(run, case))

    def _explanation(self, run: WatchedRun, case: Case) -> Explanation:
        crash = self._last_crash
        if crash is not None and isinstance(run, Lockstep):
            return _explanation_of_crash(run, crash, case)
        if crash is not None:
            return _explanation_of_foreign_crash(run, crash, case)
        has_returned = len(run.spans) > self._spans_before
        until = len(case.operations) - 1 + has_returned
        lived = CrashContext(
            -1, Crash(), run.settings, run.files.base, tuple(run.files.journal), tuple(run.files.events), run.spans
        )
        return Explanation(_lanes(lived, case, until, has_crashed=False))


# ---- lanes -----------------------------------------------------------------------------------------------------------


def _lanes(run: CrashContext, case: Case, until: int, *, has_crashed: bool = True) -> Lanes:
    """Return operations, writes and barriers along the journal since the crash or open before."""
    names = _names(run)
    marks = [_mark(number, entry, names) for number, entry in enumerate(run.journal[:MARKS_MAX])]
    verbs = run.spans[1:]  # the first is the open
    numbers = _numbers_of(verbs) if case.settings.target else _numbers_with_a_verb(case, until, len(verbs))
    extents: dict[int, tuple[int, int, Any]] = {}
    for number, span in zip(numbers, verbs, strict=False):
        first = extents[number][0] if number in extents else _position(run, span.first)
        extents[number] = first, _position(run, span.last), span.after
    operations = []
    for number, operation in enumerate(case.operations):
        first, last, answer = -1, -1, ""
        if number in extents:
            first, last, after = extents[number]
            is_cut_short = has_crashed and run.back > 0 and number == numbers[-1]
            answered = _answer_of_foreign if case.settings.target else _answer
            answer = "no answer yet" if is_cut_short else answered(after)
        operations.append(OperationSpan(describe(operation), first, last, answer))
    return Lanes(
        tuple(operations),
        len(run.journal),
        _position(run, run.spans[0].last) if run.spans else 0,
        run.position if has_crashed else -1,
        run.number,
        has_crashed and run.crash.kill,
        run.back if has_crashed else 0,
        tuple(marks),
    )


def _numbers_with_a_verb(case: Case, until: int, count: int) -> list[int]:
    """Return the numbers of the operations of the last spans.

    They are operations on the store since the last crash or open.
    """
    numbers = [n for n in range(until) if not isinstance(case.operations[n], WITHOUT_A_VERB)]
    return numbers[len(numbers) - count :] if count else []


def _numbers_of(spans: Sequence[Any]) -> list[int]:
    """Return the operation number of each span of a foreign store.

    An open may have two spans, because it closes an open store first.
    """
    return [span.operations - 1 for span in spans]


def _position(run: CrashContext, event: int) -> int:
    return run.events[event] if event < len(run.events) else len(run.journal)


def _answer(log: CommitLog) -> str:
    return (
        f"answered: {counted(len(log.records), 'record')}, log ends at {log.end_offset}, "
        f"durable up to {log.flushed_offset}"
    )


def _answer_of_foreign(state: Any) -> str:
    return str(state.summary())


def _names(run: CrashContext) -> dict[int, str]:
    """Return the name with which each inode was created or loaded."""
    names = dict(enumerate(sorted(run.base.files)))
    names |= {entry.inode: "(a file without a name)" for entry in run.journal if isinstance(entry, FileMade)}
    names |= {entry.inode: entry.path for entry in run.journal if isinstance(entry, FileCreated | FileLinked)}
    return names


def _mark(number: int, entry: Entry, names: dict[int, str]) -> Mark:
    match entry:
        case PageWritten(inode, page, _):
            return Mark(number, "write", names[inode], f"page {page}")
        case Resized(inode, size_bytes):
            return Mark(number, "size", names[inode], f"{size_bytes} bytes")
        case FileCreated(_, path) | DirectoryMade(path):
            return Mark(number, "name", path, "created")
        case FileMade(inode):
            return Mark(number, "name", names[inode], "made without a name")
        case FileLinked(_, path):
            return Mark(number, "name", path, "gets its name")
        case FileUnlinked(_, path):
            return Mark(number, "name", path, "removed")
        case FileRenamed(_, source, target):
            return Mark(number, "name", source, f"renamed to {target}")
        case FileSynced(inode, succeeded, _, extent):
            part = "file" if extent is None else f"bytes {extent[0]} to {extent[1] - 1}"
            what = f"{part} synced" if succeeded else "sync failed"
            return Mark(number, "sync" if succeeded else "failed sync", names[inode], what)
        case PagesDropped(inode):
            what = "dirty pages count as clean, written or not"
            return Mark(number, "failed sync", names[inode], what)
        case DirectorySynced(path):
            return Mark(number, "directory sync", path, "directory synced")
        case _:  # ProcessKilled
            return Mark(number, "kill", "", "process killed")


# ---- the crash and the recovery --------------------------------------------------------------------------------------


def _explanation_of_crash(run: Lockstep, crash: CrashContext, case: Case) -> Explanation:
    image, file_bytes, at_rest = crash.image, case.settings.file_bytes, crash.back == 0
    page_map = page_map_of(crash, case)
    frames = frames_of(image, file_bytes=file_bytes)
    store, after, decisions = _recovered(run, crash)
    legal = sorted(key[:2] for key in run.recovery.legal_at(crash.span, at_rest=at_rest, kill=crash.crash.kill))
    histories = histories_of(crash)
    by_page = {(history.file, history.number): history for history in histories}
    paths = {crash.state.inodes[n].name: path for n, path in named_inodes(crash.state, crash.choices).items()}
    hexes = (
        HexPage(
            page.file,
            page.number,
            page.fate,
            tuple(hex_of(image, paths[page.file], page.number, frames)),
            tuple(versions_of(crash, by_page[page.file, page.number], file_bytes=file_bytes)),
        )
        for page in _most_telling(page_map.pages)
    )
    return Explanation(
        _lanes(crash, case, crash.number),
        page_map.pages,
        page_map.facts,
        page_map.sentences,
        tuple(histories),
        tuple(hexes),
        tuple(ReadFrame(*_values(frame), _read_as(frame, image, store, after)) for frame in frames),
        tuple(_records(crash, frames, store)),
        (*decisions, *_changes(image, after)),
        f"{legal[0][0]} to {legal[-1][0]} records, an end between {legal[0][1]} and {legal[-1][1]}",
    )


def _explanation_of_foreign_crash(run: Any, crash: CrashContext, case: Case) -> Explanation:
    """Return the account of a foreign store: what the disk kept, and what may survive that."""
    page_map = page_map_of(crash, case)
    histories = histories_of(crash)
    by_page = {(history.file, history.number): history for history in histories}
    paths = {crash.state.inodes[n].name: path for n, path in named_inodes(crash.state, crash.choices).items()}
    hexes = (
        HexPage(
            page.file,
            page.number,
            page.fate,
            tuple(hex_of(crash.image, paths[page.file], page.number, ())),
            tuple(versions_of(crash, by_page[page.file, page.number], file_bytes=case.settings.file_bytes)),
        )
        for page in _most_telling(page_map.pages)
    )
    lost_names = (
        f"{fact.fact}: its directory was not synced after it"
        for fact in page_map.facts
        if fact.fate != "kept" and not fact.fact.startswith("size ")
    )
    return Explanation(
        _lanes(crash, case, crash.number),
        page_map.pages,
        page_map.facts,
        (*page_map.sentences, *lost_names),
        tuple(histories),
        tuple(hexes),
        legal=_legal_for_foreign(run, crash),
    )


def _legal_for_foreign(run: Any, crash: CrashContext) -> str:
    """Return what may be left after a crash of a foreign store."""
    span = crash.span
    fault = "kill" if crash.crash.kill else "power"
    return str(run.book.legal(fault, span.since(crash.back), span.after))


def _values(frame: Frame) -> tuple[str, int, int, str, str]:
    return frame.file, frame.offset, frame.size_bytes, frame.what, frame.verdict


def _most_telling(pages: Sequence[PageFate]) -> list[PageFate]:
    """Return the pages that did not survive as written, then a few others.

    Pages of the log come first among equals.

    Pages of a file without a name are left out.
    """
    order = {"torn": 0, "older": 1, "lost": 2, "kept": 3, "durable": 4}
    found = [page for page in pages if page.fate != "gone"]
    telling = [page for page in found if page.versions or "/commitlog/" in page.file]
    return sorted(telling, key=lambda page: (order[page.fate], "log/" not in page.file))[:PAGES_SHOWN_MAX]


def _records(crash: CrashContext, frames: Sequence[Frame], store: MessageStore | None) -> list[RecordFate]:
    """Return the fate of each record that was put: promised, on disk, recovered."""
    answered: CommitLog = crash.span.at(at_rest=crash.back == 0)
    whole = {frame.offset for frame in frames if frame.what.startswith("record ")}
    floor = answered.committed_offset if crash.crash.kill else answered.flushed_offset
    end = -1 if store is None else store.max_offset
    return [
        RecordFate(
            record.offset,
            record.size_bytes,
            f"{record.message.topic}/{record.message.queue_id} at {record.queue_offset}",
            promised=record.end_offset <= floor,
            on_disk=record.offset in whole,
            recovered=store is not None and store.min_offset <= record.offset and record.end_offset <= end,
        )
        for record in crash.span.after.records[-200:]
    ]


def _recovered(run: Lockstep, crash: CrashContext) -> tuple[MessageStore | None, Image | None, list[Decision]]:
    """Recover what the crash left; return the store, its disk, and its decisions."""
    killed = (*crash.journal[: crash.position], ProcessKilled())
    files = run.pair.new_disk(crash.base, killed) if crash.crash.kill else run.pair.new_disk(crash.image)
    try:
        store = run.pair.open_on(files)
    except GuaranteeBroken as broken:
        return None, None, [Decision("open", broken.sentence)]
    mode = "read-write" if store.read_only_reason is None else f"read-only: {store.read_only_reason}"
    ends = f"begins at {store.min_offset}, ends at {store.max_offset}, flushed up to {store.flushed_offset}"
    said = [Decision("the log", ends), Decision("opened", mode)]
    said += [
        Decision(f"{finding.severity}: {finding.code}", f"{finding.message} ({finding.file} {finding.offset})")
        for finding in store.findings
    ]
    return store, durable_image(files, disk=run.settings.disk), said


def _read_as(frame: Frame, before: Image, store: MessageStore | None, after: Image | None) -> str:
    """Return what recovery made of some bytes of the log.

    The answer comes from the bounds of the recovered log and from the disk.
    """
    if store is None or after is None:
        return "the store does not open"
    if frame.offset < store.min_offset:
        return "before the log"
    if frame.offset + frame.size_bytes <= store.max_offset or (frame.offset < store.max_offset and _is_filler(frame)):
        return "kept"
    at = frame.offset - int(frame.file.rpartition("/")[2])
    old, new = (image.files.get(frame.file, b"")[at : at + frame.size_bytes] for image in (before, after))
    if not any(old):
        return "past the end of the log"
    if old == new:
        return "cut, its bytes left as they were"
    return "cut and erased" if not any(new) else "cut, its bytes changed"


def _is_filler(frame: Frame) -> bool:
    return frame.what.startswith(("blank", "zeros"))


def _changes(before: Image, after: Image | None) -> list[Decision]:
    """Return the changes of recovery to each file, by comparing the disk before and after."""
    if after is None:
        return []
    told = []
    for path in sorted({*before.files, *after.files}):
        old, new = before.files.get(path), after.files.get(path)
        if old == new:
            continue
        if old is None or new is None:
            told.append(Decision(path, "created" if old is None else "removed"))
            continue
        same = next((at for at, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), -1)
        what = "erased" if not any(new[max(same, 0) :]) else "changed"
        size = "" if len(old) == len(new) else f", {len(old)} bytes became {len(new)}"
        told.append(Decision(path, (f"{what} from byte {same} on" if same >= 0 else "size changed") + size))
    logs = log_files(after.files)
    return told or [Decision("files", f"no file changed; {counted(len(logs), 'log file')}")]
