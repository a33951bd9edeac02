"""The page map of a crash: what the disk held, fact by fact, when the power went.

Made from a case whose last power loss is the interesting one: each page of each file is durable, kept, lost, older,
torn or gone; each name and size likewise; with the sentence of the certificate that says why that is legal.
"""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from properties.disk.dirty import DirtyTracker
from properties.disk.disk import Image
from properties.disk.images import named_inodes
from properties.disk.journal import PAGE_BYTES
from properties.explain.crash_context import CrashContext, last_crash
from properties.program.case import Case, describe

__all__ = ["FactFate", "Fate", "PageFate", "PageMap", "crash_image", "map_of", "page_map"]

Fate = Literal["durable", "kept", "lost", "older", "torn", "gone"]
"""Gone: the file has no name on the disk, because it was removed or because its name did not survive."""


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
    moment = last_crash(case, tracker=tracker, kills=False)
    return None if moment is None else map_of(moment, case)


def map_of(moment: CrashContext, case: Case) -> PageMap:
    """Return the map of a crash."""
    return PageMap(
        tuple(describe(operation) for operation in case.operations),
        moment.number,
        moment.state.disk,
        tuple(_pages(moment)),
        tuple(_facts(moment)),
        tuple(moment.certificate.sentences()),
    )


def crash_image(case: Case, *, tracker: DirtyTracker) -> Image | None:
    """Return the disk as the last power loss of a case left it, before recovery; None when it has none."""
    moment = last_crash(case, tracker=tracker, kills=False)
    return None if moment is None else moment.image


def _pages(moment: CrashContext) -> list[PageFate]:
    named = named_inodes(moment.state, moment.choices)
    pages = []
    for inode_number, inode in moment.state.inodes.items():
        for number in range(-(-inode.size_bytes // PAGE_BYTES)):
            versions = len(inode.versions.get(number, ()))
            choice = moment.choices.get(f"page {inode.name} {number}", 0)
            fate: Fate = "durable"
            if inode_number not in named:
                fate = "gone"
            elif versions and moment.state.disk == "kill":
                fate = "kept"
            elif versions:
                fate = "torn" if isinstance(choice, tuple) else _fate(choice, versions)
            pages.append(PageFate(inode.name, number, versions, fate))
    return pages


def _facts(moment: CrashContext) -> list[FactFate]:
    fates = []
    for fact in moment.facts:
        choice = moment.choices.get(fact.name, 0)
        if fact.kind != "page" and isinstance(choice, int):
            fates.append(FactFate(fact.name, _fate(choice, fact.alternatives - 1)))
    return fates


def _fate(choice: int, latest: int) -> Fate:
    return "kept" if choice == latest else "lost" if choice == 0 else "older"
