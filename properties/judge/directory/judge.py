"""Judges one crash image: reads it, recovers a copy, and gives a ruling on each number of the contract."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from tornpage.impl.parts import Parts
from tornpage.properties.contract import Verdict
from tornpage.properties.decode.findings import Finding
from tornpage.properties.decode.opening import InspectError
from tornpage.properties.decode.store import read_floor
from tornpage.properties.judge.directory.again import Crashes, is_idempotent
from tornpage.properties.judge.directory.derived_rulings import (
    index_is_judged,
    liveness_is_judged,
    queues_are_judged,
    readers_are_judged,
)
from tornpage.properties.judge.directory.evidence import Evidence, is_damaged
from tornpage.properties.judge.directory.given import Given
from tornpage.properties.judge.directory.image import SeenImage
from tornpage.properties.judge.directory.log_rulings import floor_is_covered, is_a_prefix, nothing_comes_back
from tornpage.properties.judge.directory.recoveries import recoveries_of
from tornpage.properties.judge.directory.shape import first_look, shape_of
from tornpage.properties.judge.directory.start_rulings import (
    is_exclusive,
    is_in_quarantine,
    progress_files_are_whole,
    starts,
    watermarks_are_in_order,
)
from tornpage.properties.judge.directory.truth import Truth
from tornpage.properties.judge.rulings import NEVER_JUDGED, Ruling, unknown
from tornpage.properties.program.case import Disk

__all__ = ["SAMPLES", "Judgement", "evidence_of", "judge_image", "rulings_on"]

SAMPLES = 12
"""At how many of its file operations the recovery is crashed, unless somebody asks for more."""

_LAST_MS = 253_370_000_000_000
"""In the year 9998: no index file can be named behind it, and a record may state any time."""

_JUDGES: Mapping[int, Callable[[Evidence], Ruling]] = {
    1: is_a_prefix,
    2: floor_is_covered,
    3: nothing_comes_back,
    4: queues_are_judged,
    5: index_is_judged,
    7: starts,
    9: watermarks_are_in_order,
    13: progress_files_are_whole,
    16: liveness_is_judged,
    17: readers_are_judged,
    14: is_exclusive,
}
"""By number, in the order in which they look. Number 6 recovers again, and comes last."""


@dataclass
class Judgement:
    """All rulings in the order of their numbers; `findings` are those of the image, `said` those of the store."""

    rulings: list[Ruling]
    crashes: Crashes
    figures: dict[str, int]
    findings: tuple[Finding, ...] = ()
    said: list[dict[str, Any]] = field(default_factory=list)
    mode: str = ""

    @property
    def verdict(self) -> Verdict:
        """Broken if one number is; unknown if none could be judged."""
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
    given: Given | None = None,
    truth: Truth | None = None,
    components: Parts | None = None,
    disk: Disk = "posix-strict",
    samples: int | None = SAMPLES,
    losses: int = 1,
    seed: int = 0,
    progress: Callable[[str], None] = lambda what: None,
) -> Judgement:
    """Judge an image. A function of its arguments: the clock stands just behind the newest record.

    `samples` says at how many file operations the recovery is crashed again, None at all of them. Raises InspectError.
    """
    with evidence_of(seen, given=given, truth=truth, components=components, disk=disk, progress=progress) as evidence:
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
    given: Given | None = None,
    truth: Truth | None = None,
    components: Parts | None = None,
    disk: Disk = "posix-strict",
    progress: Callable[[str], None] = lambda what: None,
) -> Iterator[Evidence]:
    """Yield an image and its first recovery. Raises InspectError."""
    given = given or Given()
    progress("read")
    before, directories, file_bytes = first_look(seen, given)
    shape = shape_of(seen, given, before, directories=directories, file_bytes=file_bytes)
    newest_ms = max((0, *(record.store_timestamp for record in (*before.records, *before.behind))))
    now_ms = 1000 + min(newest_ms, _LAST_MS)
    floor = read_floor(seen.directory)
    with recoveries_of(shape, components or Parts(), now_ms=now_ms, disk=disk) as recoveries:
        progress("recover")
        recoveries.looks_at_all = is_damaged(seen, before, floor)
        evidence = Evidence(seen, shape, before, recoveries.opened(seen.image), recoveries, truth, floor)
        if evidence.opened.refusal.startswith("WrongFileSize") and "mappedFileSizeCommitLog" in given.numbers:
            raise InspectError(f"no log file has the {file_bytes:,} bytes that were given; leave the size out")
        yield evidence


def rulings_on(evidence: Evidence) -> list[Ruling]:
    """Return what each judge but that of number 6 says; a store that fails when it is asked breaks that number."""
    return [replace(judge(evidence), contract=number) for number, judge in _JUDGES.items()]


def _judgement(evidence: Evidence, rulings: list[Ruling], crashes: Crashes) -> Judgement:
    store, before = evidence.store, evidence.before
    kept = () if store is None else evidence.after.records
    stayed = [] if store is None else [*kept, *(() if evidence.is_writable else evidence.after.behind)]
    figures = {
        "image_files": len(evidence.seen.image.files),
        "image_bytes": sum(map(len, evidence.seen.image.files.values())),
        "records_in_image": len(before.records) + len(before.behind),
        "records_kept": len(stayed),
        "records_in_quarantine": sum(is_in_quarantine(evidence.content, record) for record in before.behind),
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
    said = [] if store is None else [
        {"severity": f.severity, "code": f.code, "file": f.file.partition("/store/")[2], "offset": f.offset,
         "message": f.message.replace("/store/", "")}
        for f in store.findings
    ]  # fmt: skip
    mode = "does not open" if store is None else ("read-write" if evidence.is_writable else "read-only")
    return Judgement(rulings, crashes, figures, (*evidence.seen.strays, *evidence.shape.findings), said, mode)
