"""The page map of a crash: what the disk had of each in-flight write at the power loss.

Each page of each file is durable, kept, lost, older, torn or gone, and so is each name and size. The sentences of the
certificate say why that is legal.
"""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from tornpage.properties.disk.images import named_inodes
from tornpage.properties.disk.journal import PAGE_BYTES
from tornpage.properties.explain.crash_context import CrashContext
from tornpage.properties.program.case import Case, describe

__all__ = ["Fate", "PageFate", "PageMap", "WriteFate", "page_map_of"]

Fate = Literal["durable", "kept", "lost", "older", "torn", "gone"]
"""Gone: the file has no name on the disk, because it was removed or because its name did not survive."""


@dataclass(frozen=True, slots=True)
class PageFate:
    """Page `number` of `file`: its number of versions since its last sync, and which survived."""

    file: str
    number: int
    versions: int
    fate: Fate


@dataclass(frozen=True, slots=True)
class WriteFate:
    """A name or a size that was not synced, and whether it survived."""

    fact: str
    fate: Fate


@dataclass(frozen=True, slots=True)
class PageMap:
    """The content of a page map. `crash` is the number of the power loss in `operations`."""

    operations: tuple[str, ...]
    crash: int
    disk: str
    pages: tuple[PageFate, ...]
    facts: tuple[WriteFate, ...]
    sentences: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def page_map_of(context: CrashContext, case: Case) -> PageMap:
    """Return the map of a crash of a case."""
    return PageMap(
        tuple(describe(operation) for operation in case.operations),
        context.number,
        context.state.disk,
        tuple(_pages(context)),
        tuple(_facts(context)),
        tuple(context.certificate.sentences()),
    )


def _pages(context: CrashContext) -> list[PageFate]:
    named = named_inodes(context.state, context.choices)
    pages = []
    for inode_number, inode in context.state.inodes.items():
        for number in range(-(-inode.size_bytes // PAGE_BYTES)):
            versions = len(inode.versions.get(number, ()))
            choice = context.choices.get(f"page {inode.name} {number}", 0)
            fate: Fate = "durable"
            if inode_number not in named:
                fate = "gone"
            elif versions and context.state.disk == "kill":
                fate = "kept"
            elif versions:
                fate = "torn" if isinstance(choice, tuple) else _fate(choice, versions)
            pages.append(PageFate(inode.name, number, versions, fate))
    return pages


def _facts(context: CrashContext) -> list[WriteFate]:
    fates = []
    for write in context.writes:
        choice = context.choices.get(write.name, 0)
        if write.kind != "page" and isinstance(choice, int):
            fates.append(WriteFate(write.name, _fate(choice, write.alternatives - 1)))
    return fates


def _fate(choice: int, latest: int) -> Fate:
    return "kept" if choice == latest else "lost" if choice == 0 else "older"
