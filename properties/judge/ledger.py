"""The judges' memory of the log: which bytes every record had when its put returned.

Filled from the recorded disk, each record decoded by the judges' own decoder and compared with the model's record,
so that later byte comparisons need no decoding. Offsets are physical.
"""

from bisect import bisect_right
from collections.abc import Callable

from tornpage.model.message import stored_properties
from tornpage.model.state import CommitLog, Record
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.decode.record import TRAILER_BYTES, Bad, decode_record
from tornpage.properties.decode.record import Record as Decoded

__all__ = ["Ledger", "Peek", "compare_record"]

Peek = Callable[[str, int, int], bytes]
"""Reads (file name, position, size) of what the process sees of a log file."""

BLANK_HEAD_BYTES = 8


class Ledger:
    """Expected content per log file, and where each record ends."""

    def __init__(self, *, file_bytes: int) -> None:
        self.file_bytes = file_bytes
        self.ends: list[int] = []
        self._content: dict[int, bytearray] = {}

    def copy(self) -> "Ledger":
        """Return an independent copy."""
        other = Ledger(file_bytes=self.file_bytes)
        other.ends = list(self.ends)
        other._content = {base: bytearray(content) for base, content in self._content.items()}
        return other

    @classmethod
    def of(cls, log: CommitLog, *, file_bytes: int, peek: Peek) -> "Ledger":
        """Return the memory of a log of which `peek` reads the files. Raises GuaranteeBroken (1) where they differ."""
        ledger, end = cls(file_bytes=file_bytes), 0
        for record in log.records:
            ledger.note(record, end_before=end, peek=peek)
            end = record.end_offset
        if log.end_offset > end:
            ledger.note_blank(end, peek)
        return ledger

    def _file(self, base: int) -> bytearray:
        return self._content.setdefault(base, bytearray(self.file_bytes))

    def note(self, record: Record, *, end_before: int, peek: Peek) -> None:
        """Take in a record just put: decode what lies there, compare it with the model, remember the bytes."""
        base = record.offset // self.file_bytes * self.file_bytes
        if record.offset == base and end_before < base:
            self.note_blank(end_before, peek)
        found = peek(f"{base:020d}", record.offset - base, record.size_bytes)
        compare_record(found, record, base=base, file_bytes=self.file_bytes)
        self._file(base)[record.offset - base : record.end_offset - base] = found
        self.ends.append(record.end_offset)

    def note_blank(self, offset: int, peek: Peek) -> None:
        """Take in a blank just written: it declares the rest of its file empty."""
        base = offset // self.file_bytes * self.file_bytes
        position = offset - base
        expected = (self.file_bytes - position).to_bytes(4, "big") + 0xCBD43194.to_bytes(4, "big")
        found = peek(f"{base:020d}", position, BLANK_HEAD_BYTES)
        if found != expected:
            raise GuaranteeBroken(1, f"no blank ends the file at {offset}", expected.hex(), found.hex())
        self._file(base)[position : position + BLANK_HEAD_BYTES] = expected

    def count_at(self, end_offset: int) -> int:
        """Return how many records end at or before an offset."""
        return bisect_right(self.ends, end_offset)

    def truncate(self, end_offset: int) -> None:
        """Forget everything behind an offset: a recovery cut it."""
        del self.ends[self.count_at(end_offset) :]
        for base in [base for base in self._content if base >= end_offset]:
            del self._content[base]
        for base, content in self._content.items():
            if base + self.file_bytes > end_offset:
                content[end_offset - base :] = bytes(base + self.file_bytes - end_offset)

    def stored(self, record: Record) -> bytes:
        """Return the bytes of a record that was noted, as the log holds them."""
        base = record.offset // self.file_bytes * self.file_bytes
        return bytes(self._content[base][record.offset - base : record.end_offset - base])

    def expected(self, base: int, end_offset: int) -> bytes:
        """Return what the log file at `base` must hold, all of it, when the log ends at `end_offset`."""
        content = self._content.get(base)
        kept = max(0, min(self.file_bytes, end_offset - base))
        if content is None:
            return bytes(self.file_bytes)
        return bytes(content) if kept == self.file_bytes else bytes(content[:kept]).ljust(self.file_bytes, b"\0")


def compare_record(found: bytes, record: Record, *, base: int, file_bytes: int) -> None:
    """Decode the bytes of one record and compare every field with the model's. Raises GuaranteeBroken (1)."""
    position = record.offset - base
    item = decode_record(found, offset=record.offset, room_bytes=file_bytes - position)
    if not isinstance(item, Decoded):
        reason = item.reason if isinstance(item, Bad) else "a blank"
        raise GuaranteeBroken(1, f"what was put at {record.offset} is no record", "a valid record", str(reason))
    message, trailer = record.message, item.checksum is not None
    pairs = {
        "size": (record.size_bytes, item.size_bytes),
        "topic": (message.topic.encode(), item.topic),
        "body": (message.body, item.body),
        "queue id": (message.queue_id, item.queue_id),
        "queue offset": (record.queue_offset, item.queue_offset),
        "flag": (message.flag, item.flag),
        "transaction bits": (message.sys_flag & ~0x30, item.sys_flag & ~0x30),
        "born timestamp": (message.born_timestamp, item.born_timestamp),
        "born host": (message.born_host, item.born_host),
        "store timestamp": (record.store_timestamp, item.store_timestamp),
        "store host": (message.store_host, item.store_host),
        "reconsume times": (message.reconsume_times, item.reconsume_times),
        "prepared offset": (message.prepared_transaction_offset, item.prepared_transaction_offset),
        "properties": (
            stored_properties(message, trailer=trailer),
            item.properties[:-TRAILER_BYTES] if trailer else item.properties,
        ),
    }
    for name, (expected, stored) in pairs.items():
        if expected != stored:
            raise GuaranteeBroken(1, f"{name} of the record at {record.offset} is wrong", repr(expected), repr(stored))
