"""The extension of one consume queue: data that does not fit in a unit.

The unit holds its address.

    0 size (i16)   2 tags code (i64)   10 store timestamp (i64)   18 bit map size (i16)   20 bit map

The size is that of the whole extension unit. Four bytes at the end of a file stay free. If a unit would reach into
them, the size -1 (`FF FF`) ends the file. An address is the position plus -2^63, which is no possible tags code.
Source: `ConsumeQueueExt`.
"""

import struct
from typing import NamedTuple

from tornpage.impl.log.loading import Finding
from tornpage.impl.message.dispatching import ExtDraft
from tornpage.impl.queue.queue_files import QueueFiles

__all__ = ["NO_ADDRESS", "ConsumeQueueExt", "ExtUnit", "is_address"]

NO_ADDRESS = 1
"""What `put` returns when a unit cannot be stored."""

_ADDRESS_MAX = -(1 << 31) - 1
_ADDRESS_BASE = -(1 << 63)
_POSITION_MAX = _ADDRESS_MAX - _ADDRESS_BASE

_HEAD = struct.Struct(">hqqh")
_UNIT_BYTES_MAX = (1 << 15) - 1
_END_BYTES = 4
_END = b"\xff\xff"
assert _HEAD.size == 20


class ExtUnit(NamedTuple):
    """One extension unit. `store_timestamp` is in milliseconds; `bit_map` may be empty."""

    tags_code: int
    store_timestamp: int
    bit_map: bytes


def is_address(tags_code: int) -> bool:
    """Return whether the third field of a queue unit is an address in the extension.

    Source: `isExtAddr`.
    """
    return tags_code <= _ADDRESS_MAX


class ConsumeQueueExt:
    """Owns the extension files of one queue.

    One thread puts and truncates; any thread may get. The files do not show where the extension ends. After `load`,
    call `truncate_by_max_address` with the last address of the queue before the first `put`.
    """

    def __init__(self, units: QueueFiles) -> None:
        self._units = units
        self.directory = units.directory

    def load(self, *, durable: bool) -> list[Finding]:
        """Map the files that exist; return the findings. Raises OSError."""
        findings = self._units.load(durable=durable)
        self._units.drop_before_gap()
        return findings

    @property
    def is_empty(self) -> bool:
        """Whether there is no file."""
        return not self._units.mapped

    def put(self, draft: ExtDraft) -> int:
        """Append a unit; return its address, or NO_ADDRESS if no file or address has room for it.

        Raises OSError if a new file cannot be created.
        """
        size_bytes = _HEAD.size + len(draft.bit_map)
        units = self._units
        if size_bytes > min(_UNIT_BYTES_MAX, units.file_bytes - _END_BYTES):
            return NO_ADDRESS
        if units.end_position + 2 * units.file_bytes > _POSITION_MAX:
            return NO_ADDRESS
        if not units.mapped:
            units.begin(0)
        last = units.mapped[-1]
        if 0 < last.size_bytes - last.written_position < size_bytes + _END_BYTES:
            units.end_file(_END)
        head = _HEAD.pack(size_bytes, draft.tags_code, draft.store_timestamp, len(draft.bit_map))
        units.append(head + draft.bit_map)
        return units.end_position - size_bytes + _ADDRESS_BASE

    def get(self, address: int) -> ExtUnit | None:
        """Return the unit at an address; None if no whole unit lies there."""
        position = address - _ADDRESS_BASE
        if not is_address(address) or position + _HEAD.size > self._units.end_position:
            return None
        head = self._units.read(position, _HEAD.size)
        if len(head) < _HEAD.size:
            return None
        size_bytes, tags_code, store_timestamp, bit_map_bytes = _HEAD.unpack(head)
        room = self._units.file_bytes - _END_BYTES - position % self._units.file_bytes
        if not _HEAD.size <= size_bytes <= room or size_bytes != _HEAD.size + bit_map_bytes:
            return None
        return ExtUnit(tags_code, store_timestamp, self._units.read(position + _HEAD.size, bit_map_bytes))

    def truncate_by_max_address(self, address: int) -> bool:
        """Erase everything past the unit at an address; return whether there was anything.

        If no unit lies at the address, everything is erased. RocketMQ erases nothing then, so new units overlap old
        ones (hole C17). Raises OSError.
        """
        unit = self.get(address)
        if unit is None:
            return self._units.cut(0)
        return self._units.cut(address - _ADDRESS_BASE + _HEAD.size + len(unit.bit_map))

    def truncate_by_min_address(self, address: int) -> None:
        """Remove the files before the one that holds an address. Raises OSError."""
        if is_address(address):
            self._units.drop_before(address - _ADDRESS_BASE)

    def flush(self, least_pages: int = 0) -> int:
        """Flush by a page rule; return the position reached. Raises OSError."""
        return self._units.flush(least_pages)

    def close(self) -> None:
        """Close the mappings."""
        self._units.close()

    def check(self) -> None:
        """Assert the invariants of the files."""
        self._units.check()
