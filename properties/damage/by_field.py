"""Draw damages of a store: one field of one place, or one file as a whole.

Places are records, blanks, units, index entries, slots, headers and small files.

A damage is a function of the files and of the random numbers that are handed in. Places are those that the decoders
find in the undamaged files (properties/decode), so that each field has the same chance whatever its size. A damage
changes at least one byte, or it is not drawn.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from tornpage.properties.decode.fields import (
    Field,
    checkpoint_fields,
    entry_fields,
    extension_fields,
    floor_fields,
    header_fields,
    record_fields,
    unit_fields,
)
from tornpage.properties.decode.record import Blank, Record
from tornpage.properties.decode.walk import walk

__all__ = ["CHANGES", "FIELDS", "FILE_CHANGES", "DamageSource", "FieldDamage", "damaged"]

_UNIT_BYTES = 20
_HEADER_BYTES = 40
_SLOT_BYTES = 4
_EXTENSION_BYTES = 20
_LOG = re.compile(r"commitlog[^/]*/([0-9]{20})")
_QUEUE = re.compile(r"consumequeue/[^/]+/[^/]+/[0-9]{20}")
_EXTENSION = re.compile(r"consumequeue_ext/[^/]+/[^/]+/[0-9]{20}")
_INDEX = re.compile(r"index/[0-9]+")

FIELDS: dict[str, tuple[str, ...]] = {
    "record": (
        "size", "magic", "body_crc", "queue_id", "flag", "queue_offset", "physical_offset", "sys_flag",
        "born_timestamp", "born_host", "store_timestamp", "store_host", "reconsume_times",
        "prepared_transaction_offset", "body_length", "body", "topic_length", "topic", "properties_length",
        "properties",
    ),
    "blank": ("size", "magic"),
    "unit": ("physical_offset", "size", "tags_code"),
    "extension": ("size", "tags_code", "store_timestamp", "bit_map_length", "bit_map"),
    "header": ("begin_timestamp", "end_timestamp", "begin_offset", "end_offset", "slots_in_use", "next_entry"),
    "slot": ("entry",),
    "entry": ("key_hash", "physical_offset", "seconds", "previous"),
    "checkpoint": ("physic_timestamp", "logics_timestamp", "index_timestamp"),
    "floor": ("magic", "offset", "mapped_file_size", "checksum"),
    "small": ("bytes",),
    "file": ("bytes",),
}  # fmt: skip
"""The fields that are damaged, by the kind of their place."""

CHANGES: dict[str, str] = {
    "bit": "one bit is flipped",
    "zero": "the field is zero",
    "ones": "every bit is set",
    "more": "the number is greater by 1 to 3",
    "less": "the number is less by 1 to 3",
    "top": "the number is near the greatest that fits",
    "other": "the field has the bytes of the same field elsewhere",
    "random": "every byte is drawn",
}
"""What happens to a field."""

FILE_CHANGES: dict[str, str] = {
    "lost": "the file is gone",
    "empty": "the file has no bytes",
    "cut": "the end of the file is missing",
    "longer": "zeros follow the end of the file",
    "zeros": "the file is zeros from some place on",
    "garbage": "every byte of one sector is drawn",
    "swapped": "the file and another of its directory have each other's names",
    "copied": "the file has the bytes of another of its directory",
    "ahead": "two files made ahead follow the newest log file: one empty or missing, then one empty or of zeros",
}
"""What happens to a file as a whole."""

_WEIGHTS = {"record": 40, "unit": 16, "file": 16, "entry": 6, "header": 6, "checkpoint": 5, "small": 4, "floor": 3,
            "blank": 3, "slot": 3, "extension": 6}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FieldDamage:
    """One damage: what of which file, where, and the bytes before and after.

    `offset` is the physical offset of the damaged record, or -1. `other` is the second file of a change of two files.
    """

    kind: str
    field: str
    change: str
    file: str
    at: int
    before: bytes
    after: bytes
    offset: int = -1
    other: str = ""

    def __str__(self) -> str:
        place = f"{self.file} at {self.at}" if self.kind != "file" else self.file
        return f"{self.kind}.{self.field} {self.change} in {place}{f' with {self.other}' if self.other else ''}"


@dataclass(frozen=True, slots=True)
class _Place:
    file: str
    at: int
    fields: tuple[Field, ...]
    offset: int = -1


class DamageSource:
    """Draws damages of the files of one store, which are given by name below its directory."""

    def __init__(self, content: Mapping[str, bytes], *, index_slots: int) -> None:
        self._content = {name: data for name, data in content.items() if name != "lock"}
        self._index_slots = index_slots
        self._places: dict[str, list[_Place]] = {kind: [] for kind in FIELDS}
        for name in sorted(self._content):
            self._look(name, self._content[name])
        self._kinds = [kind for kind, places in self._places.items() if places]

    @property
    def kinds(self) -> Sequence[str]:
        """The kinds of places that there are."""
        return tuple(self._kinds)

    def draw(self, random: Random) -> FieldDamage:
        """Return a damage that changes something. Raises ValueError for a store without a byte."""
        if not self._kinds:
            raise ValueError("there is nothing to damage")
        for _ in range(1000):
            kind = random.choices(self._kinds, [_WEIGHTS[each] for each in self._kinds])[0]
            places = self._places[kind]
            place = places[random.randrange(len(places))]
            damage = self._of_a_file(place, random) if kind == "file" else self._of_a_field(kind, place, random)
            if damage is not None:
                return damage
        raise ValueError("no damage changes anything")

    # ---- places --------------------------------------------------------------------------------------------------

    def _look(self, name: str, data: bytes) -> None:
        self._places["file"].append(_Place(name, 0, ()))
        if match := _LOG.fullmatch(name):
            self._look_into_log(name, data, int(match[1]))
        elif _QUEUE.fullmatch(name):
            self._look_at_each("unit", name, data, 0, _UNIT_BYTES)
        elif _EXTENSION.fullmatch(name):
            self._look_at_each("extension", name, data, 0, _EXTENSION_BYTES)
        elif _INDEX.fullmatch(name):
            self._places["header"].append(_Place(name, 0, tuple(header_fields(data[:_HEADER_BYTES]))))
            entries_at = _HEADER_BYTES + _SLOT_BYTES * self._index_slots
            for at in range(_HEADER_BYTES, min(entries_at, len(data)), _SLOT_BYTES):
                if any(slot := data[at : at + _SLOT_BYTES]):
                    self._places["slot"].append(_Place(name, at, (Field("entry", 0, slot),)))
            self._look_at_each("entry", name, data, entries_at + _UNIT_BYTES, _UNIT_BYTES)
        elif name == "checkpoint":
            self._places["checkpoint"].append(_Place(name, 0, tuple(checkpoint_fields(data[:24]))))
        elif name == "config/durableFloor":
            self._places["floor"].append(_Place(name, 0, tuple(floor_fields(data[:28]))))
        elif data:
            self._places["small"].append(_Place(name, 0, (Field("bytes", 0, data),)))

    def _look_into_log(self, name: str, data: bytes, base: int) -> None:
        for item in walk(data, base_offset=base, file_bytes=len(data)):
            at = item.offset - base
            if isinstance(item, Record):
                self._places["record"].append(_Place(name, at, tuple(record_fields(item.raw)), item.offset))
            elif isinstance(item, Blank):
                self._places["blank"].append(_Place(name, at, tuple(record_fields(data[at : at + 8]))))

    def _look_at_each(self, kind: str, name: str, data: bytes, start: int, size: int) -> None:
        fields_of = {"unit": unit_fields, "extension": extension_fields, "entry": entry_fields}[kind]
        for at in range(start, len(data) - size + 1, size):
            if any(data[at : at + size]):
                self._places[kind].append(_Place(name, at, tuple(fields_of(data[at : at + size]))))

    # ---- changes -------------------------------------------------------------------------------------------------

    def _of_a_field(self, kind: str, place: _Place, random: Random) -> FieldDamage | None:
        fields = [each for each in place.fields if each.name != "rest"]
        found = fields[random.randrange(len(fields))]
        change = random.choice(tuple(CHANGES))
        after = self._changed(kind, found, change, random)
        if after is None or after == found.data or len(after) != len(found.data):
            return None
        at = place.at + found.at
        return FieldDamage(kind, found.name, change, place.file, at, found.data, after, place.offset)

    def _changed(self, kind: str, found: Field, change: str, random: Random) -> bytes | None:
        data, bits = found.data, 8 * len(found.data)
        number = int.from_bytes(data, "big")
        match change:
            case "bit":
                return (number ^ 1 << random.randrange(bits)).to_bytes(len(data), "big")
            case "zero":
                return bytes(len(data))
            case "ones":
                return b"\xff" * len(data)
            case "more" | "less":
                by = random.randint(1, 3)
                return ((number + (by if change == "more" else -by)) % (1 << bits)).to_bytes(len(data), "big")
            case "top":
                return ((1 << (bits - 1)) - 1 - random.randrange(3)).to_bytes(len(data), "big")
            case "other":
                others = self._places[kind]
                other = others[random.randrange(len(others))].fields
                return next((each.data for each in other if each.name == found.name), None)
            case _:
                return random.randbytes(len(data))

    def _of_a_file(self, place: _Place, random: Random) -> FieldDamage | None:
        name, data = place.file, self._content[place.file]
        change = random.choice(tuple(FILE_CHANGES))
        at, other, after = 0, "", b""
        match change:
            case "ahead":
                return self._files_ahead(random)
            case "cut":
                at = random.randrange(len(data)) if data else 0
                after = data[:at]
            case "longer":
                after = data + bytes(random.randint(1, 4096))
            case "zeros":
                step = random.choice((1, 512, 4096))
                at = random.randrange(len(data)) // step * step if data else 0
                after = data[:at] + bytes(len(data) - at)
            case "garbage":
                at = random.randrange(len(data)) // 512 * 512 if data else 0
                after = data[:at] + random.randbytes(len(data[at : at + 512])) + data[at + 512 :]
            case "swapped" | "copied":
                folder = name.rpartition("/")[0]
                others = [each for each in self._content if each.rpartition("/")[0] == folder and each != name]
                if not others:
                    return None
                other = others[random.randrange(len(others))]
                after = self._content[other]
        if after == data and change != "lost":
            return None
        return FieldDamage("file", "bytes", change, name, at, data, after, other=other)

    def _files_ahead(self, random: Random) -> FieldDamage | None:
        """Add two files made ahead as a crash may leave them. No existing file changes."""
        logs = [(int(match[1]), name) for name in self._content if (match := _LOG.fullmatch(name))]
        size = max((len(self._content[name]) for _, name in logs), default=0)
        if not size:
            return None
        base, newest = max(logs)
        first, second = (f"{newest.rpartition('/')[0]}/{base + number * size:020d}" for number in (1, 2))
        after = bytes(random.choice((0, size)))
        return FieldDamage("file", "bytes", "ahead", second, 0, b"", after, other=random.choice(("", first)))


def damaged(content: Mapping[str, bytes], damage: FieldDamage) -> dict[str, bytes]:
    """Return the files of a store after a damage."""
    files = dict(content)
    if damage.kind != "file":
        data = files[damage.file]
        files[damage.file] = data[: damage.at] + damage.after + data[damage.at + len(damage.after) :]
        return files
    if damage.change == "lost":
        del files[damage.file]
        return files
    files[damage.file] = damage.after
    if damage.other and damage.change in ("swapped", "ahead"):
        files[damage.other] = damage.before
    return files
