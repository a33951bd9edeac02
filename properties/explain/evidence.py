"""The account of a counterexample: everything that its page shows, as plain values.

What was done and answered, which barriers there were, what each page, size and name became, how the log then reads,
what recovery did with it, and why a disk may do so. The case is carried out again; nothing is remembered from before.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from impl.store import MessageStore
from model.operations import WITHOUT_A_VERB
from model.state import CommitLog
from properties.campaign.replay import Failure
from properties.contract import GuaranteeBroken
from properties.disk.dirty import DirtyTracker
from properties.disk.disk import Image
from properties.disk.images import named_inodes
from properties.disk.journal import (
    DirectoryMade,
    DirectorySynced,
    Entry,
    FileCreated,
    FileRenamed,
    FileSynced,
    FileUnlinked,
    PagesDropped,
    PageWritten,
    ProcessKilled,
    Resized,
)
from properties.explain.crash_context import CrashContext, last_crash
from properties.explain.hexdump import Frame, frames_of, hex_of
from properties.explain.page_history import histories_of, versions_of
from properties.explain.page_map import PageFate, map_of
from properties.judge.judges import durable_image
from properties.lockstep.trial import Trial
from properties.program.case import Case, describe
from properties.program.log_places import log_files

__all__ = ["account_of"]

PAGES_SHOWN_MAX = 12
MARKS_MAX = 2_000


def account_of(failure: Failure, *, tracker: DirtyTracker) -> dict[str, Any]:
    """Return the account of a failure as JSON values. What needs a crash is empty in a case without one."""
    case, broken = failure.case, failure.broken
    moment = last_crash(case, tracker=tracker, kills=True)
    lived, until = (moment.trial, moment.number) if moment is not None else _carried_out(case, tracker)
    return {
        "contract": broken.contract,
        "sentence": broken.sentence,
        "expected": broken.expected,
        "found": broken.found,
        "bug": case.settings.bug,
        "disk": case.settings.disk,
        "settings": case.document()["settings"],
        "token": case.token(),
        "losses": failure.losses,
        "lost_pages": failure.lost_pages,
        "lanes": _lanes(lived, case, until, moment),
        **(_of_the_crash(moment, case) if moment is not None else _WITHOUT_A_CRASH),
    }


_WITHOUT_A_CRASH: dict[str, Any] = {
    "pages": [], "facts": [], "certificate": [], "histories": [], "hexes": [], "frames": [], "records": [],
    "decisions": [], "legal": "",
}  # fmt: skip


def _carried_out(case: Case, tracker: DirtyTracker) -> tuple[Trial, int]:
    """Carry a case out up to the operation that fails; return how many have ended, or failed behind their answer."""
    trial = Trial(case.settings, tracker=tracker)
    for number, operation in enumerate(case.operations):
        windows = len(trial.windows)
        try:
            trial.run(operation)
        except GuaranteeBroken:
            return trial, number + (len(trial.windows) > windows)
    return trial, len(case.operations)


# ---- lanes -----------------------------------------------------------------------------------------------------------


def _lanes(trial: Trial, case: Case, until: int, moment: CrashContext | None) -> dict[str, Any]:
    """Return operations, writes and barriers on the axis of the journal since the last disaster before."""
    journal = trial.files.journal
    names = _names(trial, journal)
    marks = [_mark(number, entry, names) for number, entry in enumerate(journal)]
    verbs = trial.windows[1:]  # the first is the open
    numbers = _numbers_with_a_verb(case, until, len(verbs))
    extents = {
        number: (_position(trial, window.first), _position(trial, window.last), window.after)
        for number, window in zip(numbers, verbs, strict=False)
    }
    operations = []
    for number, operation in enumerate(case.operations):
        first, last, answer = -1, -1, ""
        if number in extents:
            first, last, after = extents[number]
            is_cut_short = moment is not None and moment.crash.back > 0 and number == numbers[-1]
            answer = "had not answered yet" if is_cut_short else _answer(after)
        operations.append({"text": describe(operation), "first": first, "last": last, "answer": answer})
    return {
        "operations": operations,
        "entries": len(journal),
        "opened": _position(trial, trial.windows[0].last) if trial.windows else 0,
        "crash": -1 if moment is None else moment.position,
        "crash_operation": -1 if moment is None else moment.number,
        "is_kill": moment is not None and moment.crash.kill,
        "back": 0 if moment is None else moment.crash.back,
        "marks": marks[:MARKS_MAX],
    }


def _numbers_with_a_verb(case: Case, until: int, count: int) -> list[int]:
    """Return which operations the last windows belong to: those with a verb, since the last disaster or open."""
    numbers = [n for n in range(until) if not isinstance(case.operations[n], WITHOUT_A_VERB)]
    return numbers[len(numbers) - count :] if count else []


def _position(trial: Trial, event: int) -> int:
    events = trial.files.events
    return events[event] if event < len(events) else len(trial.files.journal)


def _answer(log: CommitLog) -> str:
    return f"answered: {len(log.records)} records, log ends at {log.end_offset}, durable up to {log.flushed_offset}"


def _names(trial: Trial, journal: Sequence[Entry]) -> dict[int, str]:
    """Return the name each inode was made with, or had from the begin on."""
    names = dict(enumerate(sorted(trial.files.base.files)))
    names |= {entry.inode: entry.path for entry in journal if isinstance(entry, FileCreated)}
    return names


def _mark(number: int, entry: Entry, names: dict[int, str]) -> dict[str, Any]:
    match entry:
        case PageWritten(inode, page, _):
            return {"at": number, "kind": "write", "file": names[inode], "what": f"page {page}"}
        case Resized(inode, size_bytes):
            return {"at": number, "kind": "size", "file": names[inode], "what": f"{size_bytes} bytes"}
        case FileCreated(_, path) | DirectoryMade(path):
            return {"at": number, "kind": "name", "file": path, "what": "made"}
        case FileUnlinked(_, path):
            return {"at": number, "kind": "name", "file": path, "what": "removed"}
        case FileRenamed(_, source, target):
            return {"at": number, "kind": "name", "file": source, "what": f"renamed to {target}"}
        case FileSynced(inode, succeeded):
            what = "file synced" if succeeded else "sync failed"
            return {"at": number, "kind": "sync" if succeeded else "failed sync", "file": names[inode], "what": what}
        case PagesDropped(inode):
            what = "dirty pages count as clean, written or not"
            return {"at": number, "kind": "failed sync", "file": names[inode], "what": what}
        case DirectorySynced(path):
            return {"at": number, "kind": "directory sync", "file": path, "what": "directory synced"}
        case _:  # ProcessKilled
            return {"at": number, "kind": "kill", "file": "", "what": "process killed"}


# ---- the crash and the recovery --------------------------------------------------------------------------------------


def _of_the_crash(moment: CrashContext, case: Case) -> dict[str, Any]:
    image, file_bytes = moment.image, case.settings.file_bytes
    shown = map_of(moment, case)
    frames = frames_of(image, file_bytes=file_bytes)
    answered = moment.window.at(at_rest=moment.crash.back == 0)
    store, after, decisions = _recovered(moment, image)
    legal = moment.trial.legal_at(moment.window, at_rest=moment.crash.back == 0, kill=moment.crash.kill)
    counts = sorted(key[:2] for key in legal)
    histories = histories_of(moment)
    by_page = {(history.file, history.number): history for history in histories}
    paths = {moment.state.inodes[n].name: path for n, path in named_inodes(moment.state, moment.choices).items()}
    return {
        "pages": [asdict(page) for page in shown.pages],
        "facts": [asdict(fact) for fact in shown.facts],
        "certificate": list(shown.sentences),
        "histories": [asdict(history) for history in histories],
        "hexes": [
            {
                "file": page.file,
                "page": page.number,
                "fate": page.fate,
                "lines": [asdict(line) for line in hex_of(image, paths[page.file], page.number, frames)],
                "versions": [
                    asdict(version)
                    for version in versions_of(moment, by_page[page.file, page.number], file_bytes=file_bytes)
                ],
            }
            for page in _most_telling(shown.pages)
        ],
        "frames": [{**asdict(frame), "recovery": _read_as(frame, image, store, after)} for frame in frames],
        "records": _records(moment, answered, frames, store),
        "decisions": decisions + _changes(image, after),
        "legal": f"{counts[0][0]} to {counts[-1][0]} records, an end between {counts[0][1]} and {counts[-1][1]}",
    }


def _most_telling(pages: Sequence[PageFate]) -> list[PageFate]:
    """Return the pages that did not survive as they were written, those of the log first, then a few that did.

    Pages that nobody can find any more have nothing to show.
    """
    order = {"torn": 0, "older": 1, "lost": 2, "kept": 3, "durable": 4}
    found = [page for page in pages if page.fate != "gone"]
    telling = [page for page in found if page.versions or "/commitlog/" in page.file]
    return sorted(telling, key=lambda page: (order[page.fate], "log/" not in page.file))[:PAGES_SHOWN_MAX]


def _records(
    moment: CrashContext, answered: CommitLog, frames: Sequence[Frame], store: MessageStore | None
) -> list[dict[str, Any]]:
    """Return each record that was put: whether it was promised, is whole on the disk, and came back."""
    whole = {frame.offset for frame in frames if frame.what.startswith("record ")}
    floor = answered.committed_offset if moment.crash.kill else answered.flushed_offset
    end = -1 if store is None else store.max_offset
    return [
        {
            "offset": record.offset,
            "size_bytes": record.size_bytes,
            "message": f"{record.message.topic}/{record.message.queue_id} at {record.queue_offset}",
            "promised": record.end_offset <= floor,
            "on_disk": record.offset in whole,
            "recovered": store is not None and store.min_offset <= record.offset and record.end_offset <= end,
        }
        for record in moment.window.after.records[-200:]
    ]


def _recovered(moment: CrashContext, image: Image) -> tuple[MessageStore | None, Image | None, list[dict[str, str]]]:
    """Recover the image; return the store, its disk, and what it said."""
    trial = moment.trial
    killed = (*trial.files.journal[: moment.position], ProcessKilled())
    files = trial.new_disk(trial.files.base, killed) if moment.crash.kill else trial.new_disk(image)
    try:
        store = trial.open_on(files)
    except GuaranteeBroken as broken:
        return None, None, [{"what": "open", "said": broken.sentence}]
    mode = "read-write" if store.read_only_reason is None else f"read-only: {store.read_only_reason}"
    ends = f"begins at {store.min_offset}, ends at {store.max_offset}, flushed up to {store.flushed_offset}"
    said = [{"what": "the log", "said": ends}, {"what": "opened", "said": mode}]
    said += [
        {"what": f"{finding.severity}: {finding.code}", "said": f"{finding.message} ({finding.file} {finding.offset})"}
        for finding in store.findings
    ]
    return store, durable_image(files, disk=trial.settings.disk), said


def _read_as(frame: Frame, before: Image, store: MessageStore | None, after: Image | None) -> str:
    """Return what recovery made of some bytes of the log, from where its log begins and ends, and from the disk."""
    if store is None or after is None:
        return "the store does not open"
    if frame.offset < store.min_offset:
        return "in front of the log"
    if frame.offset + frame.size_bytes <= store.max_offset or (frame.offset < store.max_offset and _is_filler(frame)):
        return "kept"
    at = frame.offset - int(frame.file.rpartition("/")[2])
    old, new = (image.files.get(frame.file, b"")[at : at + frame.size_bytes] for image in (before, after))
    if not any(old):
        return "behind the end of the log"
    if old == new:
        return "cut, its bytes left as they were"
    return "cut and erased" if not any(new) else "cut, its bytes changed"


def _is_filler(frame: Frame) -> bool:
    return frame.what.startswith(("blank", "zeros"))


def _changes(before: Image, after: Image | None) -> list[dict[str, str]]:
    """Return what recovery did to each file, as a comparison of the disk before and after."""
    if after is None:
        return []
    told = []
    for path in sorted({*before.files, *after.files}):
        old, new = before.files.get(path), after.files.get(path)
        if old == new:
            continue
        if old is None or new is None:
            told.append({"what": path, "said": "made" if old is None else "removed"})
            continue
        same = next((at for at, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), -1)
        what = "erased" if not any(new[max(same, 0) :]) else "changed"
        size = "" if len(old) == len(new) else f", {len(old)} bytes made {len(new)}"
        told.append({"what": path, "said": (f"{what} from byte {same} on" if same >= 0 else "size changed") + size})
    logs = log_files(after.files)
    return told or [{"what": "files", "said": f"none of them changed; {len(logs)} log files"}]
