"""Images of a closed store that was corrupted: its log, or a file that can be rebuilt.

The durable content after a clean exit is changed. The corruption of a file that can be rebuilt may lose nothing, and no
wrong content of it may be used. The number of a file counts modulo those of its kind; without any, nothing changes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from struct import Struct
from types import MappingProxyType

from tornpage.model.operations import Damage, DerivedFile, HarmDerived
from tornpage.model.state import CommitLog, Record
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.journal import PAGE_BYTES
from tornpage.properties.disk.page_versions import Earlier
from tornpage.properties.judge.evidence import STRAY
from tornpage.properties.program.log_places import ROOT, log_files

__all__ = ["CorruptedImage", "Lost", "corrupted_image", "damaged_image"]

_TRAILER_BYTES = 20
_NUMBER_BYTES = 11
"""The last of these bytes: ten digits and the end of the property. Its name and separator come before them."""
_SECTOR_BYTES = 512
_UNIT_BYTES = 20
"""A queue unit begins with its physical offset; so does an index entry after its hash (spec: wire)."""
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
class Lost:
    """The physical offsets of a corrupted range, and the corrupted records in it."""

    offset: int
    end_offset: int
    records: frozenset[int]

    def spares(self, record: Record) -> bool:
        """Whether a record is unchanged."""
        return record.offset not in self.records


def damaged_image(
    damage: Damage, image: Image, log: CommitLog, *, earlier: Earlier, file_bytes: int, trailer: bool
) -> tuple[Image, Lost] | None:
    """Return the damaged image and what was lost; None if no checked byte would change.

    `earlier` has the earlier contents of pages of log files.
    """
    record = log.records[damage.record % len(log.records)]
    base = record.offset // file_bytes * file_bytes
    path = _path(image, base)
    match damage.kind:
        case "missing":
            return _without_file(image, log, base, file_bytes=file_bytes)
        case "truncate":
            newest = max(record.offset for record in log.records) // file_bytes * file_bytes
            kept = damage.amount % file_bytes
            harmed = _with(image, newest, image.files[_path(image, newest)][:kept])
            return harmed, _lost(log, newest + kept, newest + file_bytes)
        case "flip":
            content = bytearray(image.files[path])
            covered = _covered_positions(record, trailer=trailer)
            content[record.offset - base + covered[damage.amount // 8 % len(covered)]] ^= 1 << damage.amount % 8
            return _with(image, base, bytes(content)), _lost(log, record.offset, record.end_offset)
        case "misdirect":
            others = [r for r in log.records if r.size_bytes == record.size_bytes and r.offset != record.offset]
            if not others:
                return None
            other = others[damage.amount % len(others)]
            content = bytearray(image.files[path])
            content[record.offset - base : record.end_offset - base] = _stored(image, other, file_bytes=file_bytes)
            return _with(image, base, bytes(content)), _lost(log, record.offset, record.end_offset)
    page = (record.offset - base) // PAGE_BYTES
    other_page = _other_page(damage, image, path, page, earlier)
    if other_page is None:
        return None
    return _with_page(image, log, base, page, other_page, file_bytes=file_bytes, trailer=trailer)


def _lost(log: CommitLog, offset: int, end_offset: int) -> Lost:
    touched = (r.offset for r in log.records if r.end_offset > offset and r.offset < end_offset)
    return Lost(offset, end_offset, frozenset(touched))


def _stored(image: Image, record: Record, *, file_bytes: int) -> bytes:
    base = record.offset // file_bytes * file_bytes
    return image.files[_path(image, base)][record.offset - base : record.end_offset - base]


def _without_file(image: Image, log: CommitLog, base: int, *, file_bytes: int) -> tuple[Image, Lost] | None:
    """Return the image without a log file.

    Returns None for the first file, which may have expired, unless it is the only one.
    """
    bases = sorted({record.offset // file_bytes * file_bytes for record in log.records})
    if base == bases[0] and (len(bases) > 1 or base > 0):
        return None
    left = {path: content for path, content in image.files.items() if path != _path(image, base)}
    return Image(image.directories, left), _lost(log, base, base + file_bytes)


def _other_page(damage: Damage, image: Image, path: str, page: int, earlier: Earlier) -> bytes | None:
    """Return the new content of a page: zeros, an earlier content, or that of another page."""
    if damage.kind == "zero_page":
        return bytes(PAGE_BYTES)
    if damage.kind == "stale_page":
        found = earlier.get((path, page), [])
        return found[damage.amount % len(found)] if found else None
    places = [(name, n) for name in log_files(image.files) for n in range(len(image.files[name]) // PAGE_BYTES)]
    others = [place for place in places if place != (path, page)]
    if not others:
        return None
    name, number = others[damage.amount % len(others)]
    return image.files[name][number * PAGE_BYTES : (number + 1) * PAGE_BYTES]


def _with_page(
    image: Image, log: CommitLog, base: int, page: int, other_page: bytes, *, file_bytes: int, trailer: bool
) -> tuple[Image, Lost] | None:
    before = image.files[_path(image, base)]
    start = page * PAGE_BYTES
    after = before[:start] + other_page.ljust(PAGE_BYTES, b"\0")[: len(before) - start] + before[start + PAGE_BYTES :]
    touched = [r for r in log.records if base + start < r.end_offset and r.offset < base + start + PAGE_BYTES]
    harmed = [
        r
        for r in touched
        if before[r.offset - base : r.end_offset - base] != after[r.offset - base : r.end_offset - base]
    ]
    if not harmed or before[: harmed[0].offset - base] != after[: harmed[0].offset - base]:
        return None
    for record in harmed:
        start_of_record, size_bytes = record.offset - base, record.size_bytes
        changed = {n for n in range(size_bytes) if before[start_of_record + n] != after[start_of_record + n]}
        # without its name a trailer is an ordinary property and no checksum
        keeps_trailer = trailer and changed.isdisjoint(range(size_bytes - _TRAILER_BYTES, size_bytes - _NUMBER_BYTES))
        if changed.isdisjoint(_covered_positions(record, trailer=keeps_trailer)):
            return None
    lost = Lost(harmed[0].offset, harmed[-1].end_offset, frozenset(record.offset for record in harmed))
    return _with(image, base, after), lost


def _covered_positions(record: Record, *, trailer: bool) -> list[int]:
    """Return the bytes of a record whose change must be noticed.

    With a trailer these are all bytes but the trailer's own name, whose loss makes it an ordinary property. Without one
    they are size, magic and CRC, the position, and the body; 4.9.3 covers nothing else (hole H2).
    """
    if trailer:
        name = range(record.size_bytes - _TRAILER_BYTES, record.size_bytes - _NUMBER_BYTES)
        return [n for n in range(record.size_bytes) if n not in name]
    hosts = sum(20 if ":" in host[0] else 8 for host in (record.message.born_host, record.message.store_host))
    return [*range(12), *range(28, 36), *range(72 + hosts, 72 + hosts + len(record.message.body or b""))]


def _path(image: Image, base: int) -> str:
    return next(path for path in log_files(image.files) if path.endswith(f"/{base:020d}"))


def _with(image: Image, base: int, content: bytes) -> Image:
    return Image(directories=image.directories, files={**image.files, _path(image, base): content})


# ---- files that can be rebuilt from the log --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CorruptedImage:
    """The disk after the corruption; `is_noticed` if it lost what the clean exit had promised."""

    image: Image
    is_noticed: bool


def corrupted_image(
    harm: HarmDerived,
    image: Image,
    earlier: Image,
    *,
    min_offset: int,
    index_slots: int,
    tags_codes: Mapping[int, int] = MappingProxyType({}),
) -> CorruptedImage | None:
    """Return the disk after the corruption, or None if it changes nothing.

    `earlier` is an earlier disk of the store. The log begins at `min_offset`; units and entries of messages before that
    have expired and are not promised. `tags_codes` are those of the messages by physical offset. A queue unit with the
    code in place of an extension address has the same meaning, so nothing is lost by that.
    """
    here = _PLACES[harm.file]
    if harm.file == "marker":
        left = Image(image.directories, {**image.files, here: b""})
        return CorruptedImage(left, is_noticed=False) if harm.harm == "stale" else None
    paths = sorted(path for path in image.files if path.startswith(here) and not path.endswith(STRAY))
    if not paths:
        return None
    path = paths[harm.number % len(paths)]
    before = image.files[path]
    after = _corrupted_content(harm, before, earlier.files.get(path))
    if harm.harm == "misdirected":
        if min_offset and harm.file in _FIRST_OFFSETS:  # expired units cannot be compared with anything
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
    return CorruptedImage(Image(image.directories, files), loses)


def _still_says(before: bytes, after: bytes, tags_codes: Mapping[int, int]) -> bool:
    """Whether each unit of a queue file is unchanged, or has the tags code of its message."""
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
    """Return an index file without the seconds of its first entry, which no reader uses.

    They count from a time in the file before, which may be removed. Source: docs/format.md, "The first entry of a later
    file".
    """
    # the entry with number 1, after its physical offset
    seconds = _FIRST_OFFSETS["index"] + _SLOT_BYTES * index_slots + _UNIT_BYTES + 8
    return content[:seconds] + content[seconds + 4 :]


def _latest_offset(content: bytes, file: DerivedFile, index_slots: int) -> int:
    """Return the greatest physical offset in the units or entries of a file."""
    first = _FIRST_OFFSETS[file] + (_SLOT_BYTES * index_slots if file == "index" else 0)
    offsets = (
        int.from_bytes(content[position : position + 8], "big")
        for position in range(first, len(content) - 7, _UNIT_BYTES)
    )
    return max(offsets, default=0)


def _corrupted_content(harm: HarmDerived, before: bytes, earlier: bytes | None) -> bytes | None:
    """Return the content of the file afterwards, None if it is removed."""
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
    """Return a file in which one page is the first page of another file.

    The other file is of the same kind if there is one.
    """
    before = image.files[path]
    start = harm.amount % max(len(before), 1) // PAGE_BYTES * PAGE_BYTES
    here = _PLACES[harm.file]
    others = [name for name in sorted(image.files) if name != path and image.files[name].strip(b"\0")]
    akin = [name for name in others if name.startswith(here)] or others
    if not akin:
        return before
    page = image.files[akin[harm.number % len(akin)]][:PAGE_BYTES].ljust(PAGE_BYTES, b"\0")
    return before[:start] + page[: len(before) - start] + before[start + PAGE_BYTES :]
