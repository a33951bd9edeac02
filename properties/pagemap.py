"""The page map of a crash: what the disk held, fact by fact, when the power went.

Made from a case whose last power loss is the interesting one: each page of each file is durable, kept, lost, older or
torn; each name and size likewise; with the sentence of the certificate that says why that is legal.
"""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from properties.case import Case, Crash, describe
from properties.certificate import certify
from properties.images import compose, disk_state, facts_of
from properties.recorder.dirty import DirtyTracker
from properties.recorder.disk import DiskState, Image
from properties.recorder.journal import PAGE_BYTES, Entry
from properties.trial import Trial

__all__ = ["FactFate", "PageFate", "PageMap", "crash_image", "page_map"]

Fate = Literal["durable", "kept", "lost", "older", "torn"]


@dataclass(frozen=True, slots=True)
class PageFate:
    """Page `number` of `file`: how many versions it had since its last sync, and which survived."""

    file: str
    number: int
    versions: int
    fate: Fate


@dataclass(frozen=True, slots=True)
class FactFate:
    """A name or a size that was not synced, and whether it survived."""

    fact: str
    fate: Fate


@dataclass(frozen=True, slots=True)
class PageMap:
    """Everything a page map shows. `crash` is the number of the power loss in `operations`."""

    operations: tuple[str, ...]
    crash: int
    disk: str
    pages: tuple[PageFate, ...]
    facts: tuple[FactFate, ...]
    sentences: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def page_map(case: Case, *, tracker: DirtyTracker) -> PageMap | None:
    """Return the map of the last power loss of a case, or None when it has none."""
    last = _last_power_loss(case)
    if last is None:
        return None
    number, crash = last
    base, journal, position = _before(case, number, crash, tracker)
    disk = case.settings.disk
    state = disk_state(base, journal, position, disk=disk)
    certificate = certify(base, journal, position, crash.survived, disk=disk)
    return PageMap(
        tuple(describe(operation) for operation in case.operations),
        number,
        disk,
        tuple(_pages(state, crash)),
        tuple(_facts(state, crash)),
        tuple(certificate.sentences()),
    )


def crash_image(case: Case, *, tracker: DirtyTracker) -> Image | None:
    """Return the disk as the last power loss of a case left it, before recovery; None when it has none."""
    last = _last_power_loss(case)
    if last is None:
        return None
    number, crash = last
    base, journal, position = _before(case, number, crash, tracker)
    return compose(disk_state(base, journal, position, disk=case.settings.disk), crash.survived)


def _last_power_loss(case: Case) -> tuple[int, Crash] | None:
    found = [(n, o) for n, o in enumerate(case.operations) if isinstance(o, Crash) and not o.kill]
    return found[-1] if found else None


def _before(case: Case, number: int, crash: Crash, tracker: DirtyTracker) -> tuple[Image, list[Entry], int]:
    """Carry out what comes before a crash; return the recorded disk and the position at which the power goes."""
    trial = Trial(case.settings, tracker=tracker)
    for operation in case.operations[:number]:
        trial.run(operation)
    return trial.files.base, trial.files.journal, trial.position(crash.back)


def _pages(state: DiskState, crash: Crash) -> list[PageFate]:
    pages = []
    for inode in state.inodes.values():
        for number in range(-(-inode.size_bytes // PAGE_BYTES)):
            versions = len(inode.versions.get(number, ()))
            choice = crash.survived.get(f"page {inode.name} {number}", 0)
            fate: Fate = "durable"
            if versions:
                fate = "torn" if isinstance(choice, tuple) else _fate(choice, versions)
            pages.append(PageFate(inode.name, number, versions, fate))
    return pages


def _facts(state: DiskState, crash: Crash) -> list[FactFate]:
    fates = []
    for fact in facts_of(state):
        choice = crash.survived.get(fact.name, 0)
        if fact.kind != "page" and isinstance(choice, int):
            fates.append(FactFate(fact.name, _fate(choice, fact.alternatives - 1)))
    return fates


def _fate(choice: int, latest: int) -> Fate:
    return "lost" if choice == 0 else "kept" if choice == latest else "older"
