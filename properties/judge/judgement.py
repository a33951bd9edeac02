"""Judge one crash image: recover a copy, and give a ruling on each contract number."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from tornpage.impl.parts import Parts
from tornpage.properties.contract import GuaranteeBroken, Verdict, observed
from tornpage.properties.decode.findings import Finding
from tornpage.properties.decode.opening import InspectError
from tornpage.properties.judge.idempotence import Crashes, is_idempotent
from tornpage.properties.judge.image import SeenImage, Truth
from tornpage.properties.judge.image_evidence import ImageEvidence, is_damaged, recoveries_of
from tornpage.properties.judge.judges import JUDGES_OF_IMAGES
from tornpage.properties.judge.log import (
    due_in,
    why_due,
)
from tornpage.properties.judge.progress import is_progress
from tornpage.properties.judge.rulings import NEVER_JUDGED, CannotTell, Ruling, counted, holds, ruling_of, unknown
from tornpage.properties.judge.shape import Look, SettingsOverride, look_at
from tornpage.properties.judge.start import (
    is_in_quarantine,
)
from tornpage.properties.judge.without_floor import CLOCK_AHEAD_MS, newest_time
from tornpage.properties.program.case import Disk

__all__ = ["SAMPLES", "Judgement", "evidence_of", "judge_image", "rulings_on"]

SAMPLES = 12
"""At how many of its file operations a recovery is crashed by default."""

_LAST_MS = 253_370_000_000_000
"""In the year 9998. An index file cannot have a later time in its name, and a record may state any time."""

_READ_ONLY: Mapping[int, str] = {
    3: "a read-only store cuts nothing",
    4: "a read-only store leaves queues and index as they are; number 7 judges what it serves",
    5: "a read-only store leaves queues and index as they are; number 7 judges what it serves",
    9: "a read-only store moves no watermark",
    16: "a read-only store dispatches nothing",
    17: "a read-only store leaves queues and index as they are; number 7 judges what it serves",
    18: "a read-only store takes no puts",
}
"""Why a number cannot be judged in a read-only store."""


@dataclass
class Judgement:
    """All rulings by contract number.

    `findings` are those of the image, and `store_findings` those that the store reported.
    """

    rulings: list[Ruling]
    crashes: Crashes
    figures: dict[str, int]
    findings: tuple[Finding, ...] = ()
    store_findings: list[dict[str, Any]] = field(default_factory=list)
    mode: str = ""

    @property
    def verdict(self) -> Verdict:
        """Broken if one number is broken; unknown if none could be judged."""
        words = {ruling.verdict for ruling in self.rulings}
        if "broken" in words:
            return Verdict.BROKEN
        return Verdict.HOLDS if "holds" in words else Verdict.UNKNOWN

    def numbers(self, word: str) -> list[int]:
        """Return the numbers with a verdict."""
        return [ruling.contract for ruling in self.rulings if ruling.verdict == word]


def judge_image(
    seen: SeenImage,
    *,
    override: SettingsOverride | None = None,
    truth: Truth | None = None,
    components: Parts | None = None,
    disk: Disk = "posix-strict",
    samples: int | None = SAMPLES,
    losses: int = 1,
    seed: int = 0,
    progress: Callable[[str], None] = lambda what: None,
) -> Judgement:
    """Judge an image.

    The result depends on the arguments only: the clock stands just after the newest record.

    `samples` says at how many of its file operations the recovery is crashed, None at all of them. Raises InspectError.
    """
    with evidence_of(
        seen, override=override, truth=truth, components=components, disk=disk, progress=progress
    ) as evidence:
        crashes = Crashes()
        rulings = rulings_on(evidence)
        progress("recover again")
        rulings.append(is_idempotent(evidence, crashes, samples=samples, losses=losses, seed=seed))
        rulings += [unknown(number, reason) for number, reason in NEVER_JUDGED.items()]
        return _judgement(evidence, sorted(rulings, key=lambda ruling: ruling.contract), crashes)


@contextmanager
def evidence_of(
    seen: SeenImage,
    *,
    override: SettingsOverride | None = None,
    truth: Truth | None = None,
    components: Parts | None = None,
    disk: Disk = "posix-strict",
    progress: Callable[[str], None] = lambda what: None,
    look: Look | None = None,
) -> Iterator[ImageEvidence]:
    """Yield an image and its first recovery.

    With `look` the directory of the image is not read. Raises InspectError.
    """
    override = override or SettingsOverride()
    progress("read")
    look = look or look_at(seen, override)
    before, store_layout, floor = look.log, look.store_layout, look.floor
    now_ms = CLOCK_AHEAD_MS + min(newest_time(before), _LAST_MS)
    with recoveries_of(store_layout, components or Parts(), now_ms=now_ms, disk=disk) as recoveries:
        progress("recover")
        has_pool = store_layout.config.transient_store_pool_enable
        recoveries.checks_whole_log = is_damaged(seen, before, floor, has_pool=has_pool)
        evidence = ImageEvidence(seen, store_layout, before, recoveries.opened(seen.image), recoveries, truth, floor)
        if evidence.opened.refusal.startswith("WrongFileSize") and "mappedFileSizeCommitLog" in override.numbers:
            raise InspectError(f"no log file has the {before.file_bytes:,} bytes that were given; leave the size out")
        yield evidence


def rulings_on(evidence: ImageEvidence, *, without: Container[int] = ()) -> list[Ruling]:
    """Return the ruling of each number but 6, and but those in `without`.

    A store that fails when it is asked breaks the number asked about.
    """
    return [ruling_on(number, evidence) for number in JUDGES_OF_IMAGES if number not in without]


def ruling_on(number: int, evidence: ImageEvidence) -> Ruling:
    """Return the first ruling on a number that is not `holds`, or `holds` if there is none."""
    try:
        _require_judgeable(number, evidence)
    except CannotTell as reason:
        return unknown(number, str(reason))
    except GuaranteeBroken as error:
        return replace(ruling_of(error), contract=number)
    for judge in JUDGES_OF_IMAGES[number]:
        ruling = judge(evidence)
        if ruling.verdict != "holds":
            return replace(_placed(ruling, evidence), contract=number)
    return holds(number, _what_holds(number, evidence))


def _require_judgeable(number: int, evidence: ImageEvidence) -> None:
    """Raise CannotTell if an image does not show what a number is about."""
    if number == 7:
        return
    store = evidence.store
    if not evidence.is_writable and number in _READ_ONLY:
        raise CannotTell(_READ_ONLY[number])
    if number not in (4, 5, 17):
        return
    if store.max_offset != evidence.after.end:
        raise CannotTell("the log does not end where the store says, which number 1 judges")
    reason = evidence.not_derivable or evidence.store_layout.unknown.get(5 if number == 5 else 4, "")
    if not reason and number == 5 and not evidence.settings.index:
        reason = "the store has no index"
    if reason:
        raise CannotTell(reason)
    known = {queue for queue, _, _ in evidence.derived.queues_at(evidence.after.end)}
    if number == 17 and evidence.after.begin and set(observed("queues", store.queues)) - known:
        raise CannotTell("all records of a queue are removed, and the log does not show its next queue offset")


def _placed(ruling: Ruling, evidence: ImageEvidence) -> Ruling:
    """Return a broken ruling with its file.

    The offset is the end of the log if that is the place.
    """
    if ruling.verdict != "broken" or ruling.file or not evidence.did_open:
        return ruling
    if ruling.contract == 7:
        problem = next(iter(evidence.before.problems), None)
        end = evidence.before.end
        file, offset = (problem.file, problem.offset) if problem else (evidence.before.file_of(end), end)
        return replace(ruling, file=file, offset=offset) if ruling.offset is None else ruling
    if ruling.contract == 2:
        return replace(ruling, file=evidence.before.file_of(evidence.after.end))
    return ruling.in_one_of(evidence.content)


def _what_holds(number: int, evidence: ImageEvidence) -> str:
    """Return a sentence that says what was checked for a number that holds."""
    before, after, derived, truth = evidence.before, evidence.after, evidence.derived, evidence.truth
    match number:
        case 1:
            whose = "as in the image" if truth is None else "as in the image, and as put"
            return f"{counted(len(after.records), 'record')} from {after.begin} to {after.end}, byte for byte {whose}"
        case 2 if truth is not None:
            due = counted(len(due_in(evidence, truth)), "record")
            return f"none is missing of {due} {why_due(truth)}"
        case 3:
            was = "they were zero before" if before.dirty_at is None else f"bytes from {before.dirty_at} on were erased"
            return f"all bytes past {after.end} are zero on disk; {was}"
        case 4:
            queues = list(derived.queues_at(after.end))
            units = counted(sum(count for _, _, count in queues), "unit")
            return f"{units} in {counted(len(queues), 'queue')}, each byte as the records require"
        case 5:
            entries = counted(len(derived.entries_at(after.end)), "entry", "entries")
            return f"{entries}, each link as the records require; queries find their keys"
        case 7:
            return _how_it_starts(evidence)
        case 9:
            store = evidence.store
            marks = (store.min_offset, store.flushed_offset, store.committed_offset, store.max_offset)
            shown = ", ".join(map(str, marks))
            return f"minimum, flushed, committed and written are {shown}; the checkpoint is not newer"
        case 13:
            files = counted(sum(map(is_progress, evidence.seen.content)), "progress file")
            return f"checkpoint, floor and {files} are whole; progress lies within its queues"
        case 14:
            return "a second open was refused and changed nothing"
        case 16:
            return "the store opened with nothing left to dispatch; requests and services are not in an image"
        case 17:
            return "bounds of all queues are right; each queue read (one in three) returned every record in order"
        case 18:
            return "each put to a queue is given to a consumer at the number of its answer"
        case _:
            return ""


def _how_it_starts(evidence: ImageEvidence) -> str:
    past_end = counted(len(evidence.before.past_end), "record")
    if not evidence.is_writable:
        served = counted(len(evidence.before.records) + len(evidence.before.past_end), "record")
        return f"read-only, changed nothing, serves {served}; {evidence.store.read_only_reason}"
    if evidence.floor is not None or not evidence.before.past_end:
        return "the store opens read-write"
    return f"the store opens read-write; {past_end} past the cut are in quarantine"


def _judgement(evidence: ImageEvidence, rulings: list[Ruling], crashes: Crashes) -> Judgement:
    store, before = evidence.opened.store, evidence.before
    kept = () if store is None else evidence.after.records
    stayed = [] if store is None else [*kept, *(() if evidence.is_writable else evidence.after.past_end)]
    figures = {
        "image_files": len(evidence.seen.image.files),
        "image_bytes": sum(map(len, evidence.seen.image.files.values())),
        "records_in_image": len(before.records) + len(before.past_end),
        "records_kept": len(stayed),
        "records_in_quarantine": sum(is_in_quarantine(evidence.content, record) for record in before.past_end),
        "log_begin": before.begin,
        "log_end": before.begin if store is None else evidence.after.end,
        "recoveries": evidence.recoveries.count,
        "recovery_operations": crashes.operations,
        "crashed_recoveries": sum(crashes.kinds.values()),
    }
    if evidence.truth is not None:
        places = {record.offset for record in stayed}
        figures["records_told"] = len(evidence.truth.records)
        figures["records_lost"] = sum(offset not in places for offset in evidence.truth.records)
    for word in ("holds", "broken", "unknown"):
        figures[f"numbers_{word}"] = sum(ruling.verdict == word for ruling in rulings)
    store_findings = [] if store is None else [
        {"severity": f.severity, "code": f.code, "file": f.file.partition("/store/")[2], "offset": f.offset,
         "message": f.message.replace("/store/", "")}
        for f in store.findings
    ]  # fmt: skip
    mode = "does not open" if store is None else ("read-write" if evidence.is_writable else "read-only")
    return Judgement(
        rulings, crashes, figures, (*evidence.seen.strays, *evidence.store_layout.findings), store_findings, mode
    )
