"""Judge repeated recovery: a crash during recovery is one more crash (contract 6).

The first recovery of an image was recorded. It is stopped at its file operations, by a kill and by power losses: one in
which no unsynced write survives, and random draws. The remains are recovered again. Log, queues and index have to be
the same, and no cut record may vanish from quarantine or reappear in the log.

properties/lockstep/recovery.py recovers a recorded disk again, and properties/explore/kills/judge.py the directory of a
killed process. There the log of the first recovery is the only legal log of the next, and all judges run again. For an
image some numbers may be unknown, so its second recovery is compared file by file.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.certificate import assert_legal
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.images import compose, disk_state, in_flight_writes
from tornpage.properties.disk.journal import Entry, ProcessKilled
from tornpage.properties.disk.sampling import draw
from tornpage.properties.judge.evidence import INDEX, Evidence
from tornpage.properties.judge.image_evidence import NOT_OPEN, ImageEvidence, Opened
from tornpage.properties.judge.index import index_holds_the_log
from tornpage.properties.judge.queues import extensions_hold_the_log, queues_hold_the_log
from tornpage.properties.judge.rulings import Ruling, broken, holds, judge, unknown
from tornpage.properties.judge.start import is_in_quarantine

__all__ = ["Crash", "Crashes", "crashes_of", "is_idempotent", "recovered_is_durable"]


@judge(6)
def recovered_is_durable(found: Evidence) -> None:
    """Contract 6: what recovery presents is on disk, for the next recovery."""
    if not found.is_recovered:
        return
    end, file_bytes, disk = found.end, found.settings.file_bytes, found.durable.files
    durable = {path.rpartition("/")[2]: disk[path] for path in found.log_paths(durable=True)}
    for base in range(found.begin, end, file_bytes):
        stored = durable.get(f"{base:020d}")
        kept = min(file_bytes, end - base)
        if stored is None or stored[:kept] != found.ledger.expected(base, end)[:kept]:
            raise GuaranteeBroken(6, f"recovery presents bytes from offset {base} on that are not durable")


@dataclass(frozen=True, slots=True)
class Crash:
    """One crash of a recovery.

    It has the file operation before which it happens, its kind, and what it leaves.
    """

    operation: int
    how: str
    image: Image
    journal: tuple[Entry, ...] = ()


@dataclass
class Crashes:
    """The recoveries after crashes of recovery: number by kind, and file operations."""

    operations: int = 0
    tried: set[int] = field(default_factory=set)
    kinds: Counter[str] = field(default_factory=Counter)


@judge(6)
def is_idempotent(
    evidence: ImageEvidence, crashes: Crashes, *, samples: int | None, losses: int = 1, seed: int = 0
) -> Ruling:
    """Recover again, then after crashes of the first recovery.

    The crashes are at `samples` of the file operations (None: all), with `losses` draws each.
    """
    if not evidence.did_open:
        return unknown(6, NOT_OPEN)
    durable = recovered_is_durable(evidence)
    if durable.verdict == "broken":
        return durable
    found = _differs(evidence, evidence.recoveries.opened(evidence.durable))
    if found is not None:
        return _in_context(found, "a second recovery changes the store")
    found = _differs_after_whole_check(evidence)
    if found is not None:
        return _in_context(found, "a recovery that reads the whole log gives another store")
    for crash in crashes_of(evidence, crashes, samples=samples, losses=losses, seed=seed):
        found = _differs(evidence, evidence.recoveries.opened(crash.image, crash.journal))
        if found is not None:
            return _in_context(found, f"{crash.how} at operation {crash.operation} of the recovery")
        crashes.kinds[crash.how] += 1
        crashes.tried.add(crash.operation)
    count = sum(crashes.kinds.values())
    return holds(
        6,
        f"recovering again changes nothing; {count:,} crashes at {len(crashes.tried):,} of the {crashes.operations:,} "
        "file operations of the recovery lead to the same store",
    )


def _differs_after_whole_check(evidence: ImageEvidence) -> Ruling | None:
    """Recover the image once more, and read the whole log."""
    recoveries, before = evidence.recoveries, evidence.recoveries.checks_whole_log
    recoveries.checks_whole_log = True
    try:
        return _differs(evidence, recoveries.opened(evidence.seen.image))
    finally:
        recoveries.checks_whole_log = before


def crashes_of(
    evidence: ImageEvidence, crashes: Crashes, *, samples: int | None, losses: int, seed: int
) -> Iterator[Crash]:
    """Yield crashes of the first recovery at chosen file operations.

    Each operation gets a process kill, a power loss without surviving unsynced writes, and draws.
    """
    base, disk, crash_points = evidence.seen.image, evidence.recoveries.disk, evidence.opened.crash_points
    journal = evidence.opened.files.journal[: evidence.opened.end]
    crashes.operations = len(crash_points)
    rng = random.Random(f"judge {seed}")
    before: Image | None = None
    for number in _chosen(len(crash_points), samples):
        position = crash_points[number]
        yield Crash(number, "a kill", base, (*journal[:position], ProcessKilled()))
        state = disk_state(base, journal, position, disk=disk)
        writes = in_flight_writes(state)
        for loss in range(1 + losses):
            choices = draw(writes, rng) if loss else {}
            image = compose(state, choices)
            if image == before or (loss and not writes):
                continue  # nothing new is durable, and no write is in flight
            assert_legal(base, journal, position, choices, image, disk=disk)
            before = before if loss else image
            yield Crash(number, "a power loss", image)


def _chosen(count: int, samples: int | None) -> list[int]:
    """Return which of `count` operations to crash: first, last, and evenly spread others."""
    if samples is None or samples >= count:
        return list(range(count))
    if samples <= 0:
        return []
    return sorted({round(step * (count - 1) / max(1, samples - 1)) for step in range(samples)})


def _differs(evidence: ImageEvidence, again: Opened) -> Ruling | None:
    """Return the first difference between a further recovery and the first, or None."""
    first = evidence.store
    if again.store is None:
        return broken(6, f"the store does not open: {again.refusal}")
    if (again.store.read_only_reason is None) != (first.read_only_reason is None):
        reason = str(again.store.read_only_reason)
        return broken(6, "the store opens read-only one time and read-write the other", found=reason)
    content = again.content()
    if not evidence.is_writable:
        same = {name: data for name, data in content.items() if name != "lock"}
        was = {name: data for name, data in evidence.content.items() if name != "lock"}
        return None if same == was else broken(6, "a damaged store is changed by opening it again")
    return _differs_in_files(evidence, content) or _differs_in_files(evidence, again.durable_content(), is_disk=True)


def _differs_in_files(evidence: ImageEvidence, content: Mapping[str, bytes], *, is_disk: bool = False) -> Ruling | None:
    where = " on the disk" if is_disk else ""
    log, first = evidence.read(dict(content)), evidence.after
    if set(log.files) != set(first.files):
        return broken(6, f"the log has other files{where}", expected=str(sorted(first.files.values())),
                      found=str(sorted(log.files.values())))  # fmt: skip
    for base, name in log.files.items():
        if content[name] != evidence.content[first.files[base]]:
            kept, was = content[name], evidence.content[first.files[base]]
            at = next((n for n, (a, b) in enumerate(zip(kept, was, strict=False)) if a != b), 0)
            return broken(6, f"the log differs{where}", file=name, offset=base + at)
    lost = [record for record in evidence.before.past_end if not is_in_quarantine(content, record)]
    if lost and evidence.floor is None and evidence.before.dirty_at is not None:
        return broken(6, f"a record that was cut is in no quarantine{where}", offset=lost[0].offset)
    return None if is_disk else _derived_differ(evidence, content)


def _derived_differ(evidence: ImageEvidence, content: Mapping[str, bytes]) -> Ruling | None:
    """Compare queues and index by their bytes, or else by their meaning.

    The bytes may differ legally because names of index files are times.
    """
    if _derived(content) == _derived(evidence.content) or evidence.not_derivable:
        return None
    again = evidence.with_content(dict(content))
    rulings = [queues_hold_the_log(again), extensions_hold_the_log(again)]
    if 5 not in evidence.store_layout.unknown and evidence.store_layout.settings.index:
        rulings.append(index_holds_the_log(again))
    return next((ruling for ruling in rulings if ruling.verdict == "broken"), None)


def _derived(content: Mapping[str, bytes]) -> tuple[dict[str, bytes], list[bytes]]:
    queues = {name: data for name, data in content.items() if name.startswith("consumequeue")}
    return queues, [content[name] for name in sorted(content) if name.startswith(INDEX)]


def _in_context(found: Ruling, what: str) -> Ruling:
    return broken(6, f"{what}: {found.sentence}", file=found.file, offset=found.offset, expected=found.expected,
                  found=found.found)  # fmt: skip
