"""Whether the extension of the consume queues says what the log says (contract 4).

A queue unit has an address there in place of its tags code, or the tags code itself where the extension could not take
it. The unit at the address has the tags code, the store time and the bit map of its message. Which tags code and store
time these are comes from the memory of the queues, the bit map from the function that the store was given; bytes are
decoded by the judges' own decoder.
"""

from collections.abc import Callable, Mapping, Sequence

from tornpage.model.dispatch import Queue
from tornpage.model.properties import property_of
from tornpage.model.queues import Unit
from tornpage.model.state import Record
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.decode.consumequeue import EXT_ADDRESS_MAX, UNIT_BYTES
from tornpage.properties.decode.units import decode_ext_unit
from tornpage.properties.judge.derived_files import EXTENSIONS, QUEUES, STRAY, is_base
from tornpage.properties.judge.derived_ledger import DerivedLedger
from tornpage.properties.program.bit_maps import LOOKED_AT, bit_map_of
from tornpage.properties.program.case import Settings

__all__ = ["BitMapOf", "bit_maps_of", "extensions_are_right"]

BitMapOf = Callable[[Record], bytes]
"""What the extension has to hold of a record."""


def bit_maps_of(settings: Settings) -> BitMapOf:
    """Return what a store with these settings has to hold of each record; without filters the bit maps are empty."""
    return _told_by_its_filters if settings.bit_maps else _nothing


def _told_by_its_filters(record: Record) -> bytes:
    values = ((name, property_of(record.message.properties, name)) for name in LOOKED_AT)
    said = {name: value for name, value in values if value is not None}
    return bit_map_of(record.message.topic.encode(errors="surrogateescape"), said)


def _nothing(record: Record) -> bytes:
    return b""


def extensions_are_right(
    content: Mapping[str, bytes],
    derived: DerivedLedger,
    end_offset: int,
    *,
    settings: Settings,
    min_offset: int = 0,
    bit_map_of: BitMapOf | None,
) -> None:
    """Contract 4: each address leads to a unit that says what its message says, behind that of the unit before.

    Of messages in front of `min_offset` the extension may have nothing any more. Without `bit_map_of` nobody can tell
    what the bit maps are, and the rest is compared.
    """
    by_directory: dict[str, dict[int, bytes]] = {}
    for name, data in content.items():
        if name.startswith(EXTENSIONS) and not name.endswith(STRAY):
            directory, slash, base = name.rpartition("/")
            if not is_base(base):
                raise GuaranteeBroken(4, f"{name} does not belong among the extensions")
            by_directory.setdefault(directory + slash, {})[int(base)] = data
    if not by_directory:  # no address leads anywhere, which is for who judges the tags codes
        return
    for queue, memory, count in derived.queues_at(end_offset):
        extension = by_directory.get(f"{EXTENSIONS}{queue[0]}/{queue[1]}/")
        if extension is not None:
            units = memory.units[min(memory.first_at(min_offset), count) : count]
            codes = _third_fields(content, queue, units, file_bytes=settings.queue_units * UNIT_BYTES)
            _compare(queue, units, codes, extension, bit_map_of)


def _third_fields(content: Mapping[str, bytes], queue: Queue, units: Sequence[Unit], *, file_bytes: int) -> list[int]:
    """Return what queue units have where a tags code or an address stands; 0 where there is no unit."""
    fields, base, data = [], -1, b""
    for unit in units:
        position = unit.queue_offset * UNIT_BYTES
        if position // file_bytes * file_bytes != base:
            base = position // file_bytes * file_bytes
            data = content.get(f"{QUEUES}{queue[0]}/{queue[1]}/{base:020d}", b"")
        at = position - base
        fields.append(int.from_bytes(data[at + 12 : at + UNIT_BYTES], "big", signed=True))
    return fields


def _compare(
    queue: Queue,
    units: Sequence[Unit],
    codes: Sequence[int],
    extension: Mapping[int, bytes],
    bit_map_of: BitMapOf | None,
) -> None:
    before: int | None = None
    for unit, address in zip(units, codes, strict=True):
        if address > EXT_ADDRESS_MAX:
            continue
        which = f"the extension unit of message {unit.queue_offset} of queue {queue}"
        if before is not None and address <= before:
            raise GuaranteeBroken(4, f"{which} does not lie behind the one before", f"behind {before}", str(address))
        before = address
        stored, record = decode_ext_unit(extension, address), unit.record
        if stored is None:
            raise GuaranteeBroken(4, f"{which} is not there", f"a unit at {address}")
        said, wanted = (stored.tags_code, stored.store_timestamp), (unit.tags_code, record.store_timestamp)
        if said != wanted:
            raise GuaranteeBroken(4, f"{which} says another tags code or store time", str(wanted), str(said))
        if bit_map_of is not None and stored.bit_map != (bit_map := bit_map_of(record)):
            raise GuaranteeBroken(4, f"{which} has another bit map", bit_map.hex(), stored.bit_map.hex())
