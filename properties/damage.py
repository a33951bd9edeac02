"""Damage outside the crash model: what was durable after a clean exit is no longer what it was (contract 7)."""

from dataclasses import dataclass

from model.state import CommitLog, Record
from properties.case import Damage
from properties.log_places import log_files
from properties.recorder.disk import Image

__all__ = ["Lost", "damaged_image"]


@dataclass(frozen=True, slots=True)
class Lost:
    """The physical offsets that were harmed."""

    offset: int
    end_offset: int

    def spares(self, record: Record) -> bool:
        """Whether a record lies wholly outside."""
        return record.end_offset <= self.offset or record.offset >= self.end_offset


def damaged_image(
    damage: Damage, image: Image, log: CommitLog, *, file_bytes: int, trailer: bool
) -> tuple[Image, Lost] | None:
    """Return the damaged image and what was lost, or None when this damage would change nothing."""
    record = log.records[damage.record % len(log.records)]
    if damage.kind == "truncate":
        newest = max(record.offset for record in log.records) // file_bytes * file_bytes
        kept = damage.amount % file_bytes
        return _with(image, newest, image.files[_path(image, newest)][:kept]), Lost(newest + kept, newest + file_bytes)
    base = record.offset // file_bytes * file_bytes
    content = bytearray(image.files[_path(image, base)])
    start, end = record.offset - base, record.end_offset - base
    if damage.kind == "flip":
        covered = _covered_positions(record, trailer=trailer)
        content[start + covered[damage.amount // 8 % len(covered)]] ^= 1 << damage.amount % 8
    else:
        others = [r for r in log.records if r.size_bytes == record.size_bytes and r.offset != record.offset]
        if not others:
            return None
        other = others[damage.amount % len(others)]
        other_base = other.offset // file_bytes * file_bytes
        source = image.files[_path(image, other_base)]
        content[start:end] = source[other.offset - other_base : other.end_offset - other_base]
    return _with(image, base, bytes(content)), Lost(record.offset, record.end_offset)


def _covered_positions(record: Record, *, trailer: bool) -> list[int]:
    """Return the bytes of a record whose change must be noticed.

    With the trailer: all but the trailer's own name, whose loss makes it an ordinary property. Without it: size, magic
    and CRC, the position, and the body; 4.9.3 covers nothing else (hole H2).
    """
    if trailer:
        return [n for n in range(record.size_bytes) if not record.size_bytes - 20 <= n < record.size_bytes - 11]
    hosts = sum(20 if ":" in host[0] else 8 for host in (record.message.born_host, record.message.store_host))
    return [*range(12), *range(28, 36), *range(72 + hosts, 72 + hosts + len(record.message.body or b""))]


def _path(image: Image, base: int) -> str:
    return next(path for path in log_files(image.files) if path.endswith(f"/{base:020d}"))


def _with(image: Image, base: int, content: bytes) -> Image:
    return Image(directories=image.directories, files={**image.files, _path(image, base): content})
