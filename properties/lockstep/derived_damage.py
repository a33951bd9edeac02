"""Harm to files that the log can do without, after a clean exit: nothing may be lost by it, nothing of it believed.

Which file it is counts modulo those of its kind; a kind of which the store has none is left alone. The harm is drawn on
the durable image of the closed store.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from struct import Struct
from types import MappingProxyType

from model.operations import DerivedFile, HarmDerived
from properties.disk.disk import Image
from properties.disk.journal import PAGE_BYTES
from properties.judge.derived_files import STRAY
from properties.program.log_places import ROOT

__all__ = ["HarmedImage", "harmed_image"]

_SECTOR_BYTES = 512
_UNIT_BYTES = 20
"""A queue unit begins with its physical offset; so does an index entry, behind the hash (spec: wire)."""
_UNIT = Struct(">qiq")
_CODE_AT = 12
_SLOT_BYTES = 4
_FIRST_OFFSETS: dict[DerivedFile, int] = {"queue": 0, "index": 40 + 4}
_PLACES: dict[DerivedFile, str] = {
    "queue": f"{ROOT}/consumequeue/",
    "index": f"{ROOT}/index/",
    "extension": f"{ROOT}/consumequeue_ext/",
    "checkpoint": f"{ROOT}/checkpoint",
    "floor": f"{ROOT}/config/durableFloor",
    "derived-floor": f"{ROOT}/config/derivedFloor",
    "marker": f"{ROOT}/abort",
}


@dataclass(frozen=True, slots=True)
class HarmedImage:
    """The disk after the harm; `is_noticed` says that something was lost which the clean exit had promised."""

    image: Image
    is_noticed: bool


def harmed_image(
    harm: HarmDerived,
    image: Image,
    earlier: Image,
    *,
    min_offset: int,
    index_slots: int,
    tags_codes: Mapping[int, int] = MappingProxyType({}),
) -> HarmedImage | None:
    """Return the disk after the harm, or None when it changes nothing; `earlier` is a disk that held the store once.

    The log begins at `min_offset`: what a file has of messages in front of it, which have expired, is promised nobody.
    Messages have `tags_codes` by their physical offset: a queue unit that has its code in place of the address of an
    extension unit says the same with fewer words, and nothing is lost by that.
    """
    here = _PLACES[harm.file]
    if harm.file == "marker":
        left = Image(image.directories, {**image.files, here: b""})
        return HarmedImage(left, is_noticed=False) if harm.harm == "stale" else None
    paths = sorted(path for path in image.files if path.startswith(here) and not path.endswith(STRAY))
    if not paths:
        return None
    path = paths[harm.number % len(paths)]
    before = image.files[path]
    after = _harmed(harm, before, earlier.files.get(path))
    if harm.harm == "misdirected":
        if min_offset and harm.file in _FIRST_OFFSETS:  # units of what has expired: there is nothing to compare with
            return None
        after = _with_a_page_of_another(harm, image, path)
    if harm.harm == "stray":
        path = f"{path.rpartition('/')[0]}/{STRAY}"
    if after == before:
        return None
    files = {name: content for name, content in image.files.items() if name != path}
    if after is not None:
        files[path] = after
    loses = harm.file in _FIRST_OFFSETS and harm.harm != "stray" and bool(before.strip(b"\0"))
    if loses and min_offset:
        loses = _latest_offset(before, harm.file, index_slots) >= min_offset
    if loses and harm.file == "queue" and after is not None:
        loses = not _still_says(before, after, tags_codes)
    if loses and harm.file == "index" and after is not None:
        loses = _without_first_seconds(before, index_slots) != _without_first_seconds(after, index_slots)
    return HarmedImage(Image(image.directories, files), loses)


def _still_says(before: bytes, after: bytes, tags_codes: Mapping[int, int]) -> bool:
    """Whether each unit of a queue file is what it was, or has the tags code of its message."""
    if len(before) != len(after):
        return False
    for position in range(0, len(before) - _UNIT_BYTES + 1, _UNIT_BYTES):
        unit, other = before[position : position + _UNIT_BYTES], after[position : position + _UNIT_BYTES]
        offset, _, _ = _UNIT.unpack(unit)
        _, _, code = _UNIT.unpack(other)
        if unit != other and (unit[:_CODE_AT] != other[:_CODE_AT] or tags_codes.get(offset) != code):
            return False
    return True


def _without_first_seconds(content: bytes, index_slots: int) -> bytes:
    """Return an index file without the seconds of its first entry, which is of the file's begin whatever they say.

    They count from a time in the file before, which may be gone. Source: docs/format.md, "The first entry of a later
    file".
    """
    # of the entry with number 1, behind its physical offset
    seconds = _FIRST_OFFSETS["index"] + _SLOT_BYTES * index_slots + _UNIT_BYTES + 8
    return content[:seconds] + content[seconds + 4 :]


def _latest_offset(content: bytes, file: DerivedFile, index_slots: int) -> int:
    """Return the greatest physical offset in the units of a queue file or in the entries of an index file."""
    first = _FIRST_OFFSETS[file] + (_SLOT_BYTES * index_slots if file == "index" else 0)
    offsets = (
        int.from_bytes(content[position : position + 8], "big")
        for position in range(first, len(content) - 7, _UNIT_BYTES)
    )
    return max(offsets, default=0)


def _harmed(harm: HarmDerived, before: bytes, earlier: bytes | None) -> bytes | None:
    """Return what the file holds afterwards, None for a file that is gone."""
    position = harm.amount % len(before) if before else 0
    match harm.harm:
        case "lost":
            return None
        case "zeroed":
            return before[:position] + bytes(len(before) - position)
        case "torn":
            start = position // _SECTOR_BYTES * _SECTOR_BYTES
            end = min(start + _SECTOR_BYTES, len(before))
            return before[:start] + bytes(end - start) + before[end:]
        case "stale":
            return earlier if earlier not in (None, before) else bytes(len(before))
        case "resized":
            size_bytes = harm.amount % (2 * len(before) + 1)
            return before[:size_bytes].ljust(size_bytes, b"\0")
        case "stray":
            return b"no file of this store\n"
        case _:
            return before


def _with_a_page_of_another(harm: HarmDerived, image: Image, path: str) -> bytes:
    """Return the content of a file in which a page is the first one of another, of its kind if there is one."""
    before = image.files[path]
    start = harm.amount % max(len(before), 1) // PAGE_BYTES * PAGE_BYTES
    here = _PLACES[harm.file]
    others = [name for name in sorted(image.files) if name != path and image.files[name].strip(b"\0")]
    akin = [name for name in others if name.startswith(here)] or others
    if not akin:
        return before
    page = image.files[akin[harm.number % len(akin)]][:PAGE_BYTES].ljust(PAGE_BYTES, b"\0")
    return before[:start] + page[: len(before) - start] + before[start + PAGE_BYTES :]
