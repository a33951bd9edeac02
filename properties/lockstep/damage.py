"""Damage outside the crash model: what was durable after a clean exit is no longer what it was (contract 7)."""

from dataclasses import dataclass

from model.operations import Damage
from model.state import CommitLog, Record
from properties.disk.disk import Image
from properties.disk.journal import PAGE_BYTES
from properties.disk.page_versions import Earlier
from properties.program.log_places import log_files

__all__ = ["Lost", "damaged_image"]


_TRAILER_BYTES = 20
_NUMBER_BYTES = 11
"""Of these the last: ten digits and the end of the property; its name and what ends that stand in front."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The physical offsets between which something was harmed, and the records that were."""

    offset: int
    end_offset: int
    records: frozenset[int]

    def spares(self, record: Record) -> bool:
        """Whether a record is what it was."""
        return record.offset not in self.records


def damaged_image(
    damage: Damage, image: Image, log: CommitLog, *, earlier: Earlier, file_bytes: int, trailer: bool
) -> tuple[Image, Lost] | None:
    """Return the damaged image and what was lost, or None when this damage would change nothing that is checked.

    `earlier` has what pages of log files held before.
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
    """Return the image without a log file. The first one may as well have expired, unless it is the only one."""
    bases = sorted({record.offset // file_bytes * file_bytes for record in log.records})
    if base == bases[0] and (len(bases) > 1 or base > 0):
        return None
    left = {path: content for path, content in image.files.items() if path != _path(image, base)}
    return Image(image.directories, left), _lost(log, base, base + file_bytes)


def _other_page(damage: Damage, image: Image, path: str, page: int, earlier: Earlier) -> bytes | None:
    """Return what a page holds instead: zeros, what it held before, or what belongs on another page."""
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
        # without its name a trailer is an ordinary property, and vouches for nothing any more
        keeps_trailer = trailer and changed.isdisjoint(range(size_bytes - _TRAILER_BYTES, size_bytes - _NUMBER_BYTES))
        if changed.isdisjoint(_covered_positions(record, trailer=keeps_trailer)):
            return None
    lost = Lost(harmed[0].offset, harmed[-1].end_offset, frozenset(record.offset for record in harmed))
    return _with(image, base, after), lost


def _covered_positions(record: Record, *, trailer: bool) -> list[int]:
    """Return the bytes of a record whose change must be noticed.

    With the trailer: all but the trailer's own name, whose loss makes it an ordinary property. Without it: size, magic
    and CRC, the position, and the body; 4.9.3 covers nothing else (hole H2).
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
