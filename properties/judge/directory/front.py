"""Units and index entries of records that retention has removed: the log no longer says what they have to be.

They stay in front of those of the records that are there, so that numbers go on. Judges take them as they are, as long
as they stand in front.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from tornpage.model.state import Layout
from tornpage.model.state import Record as ModelRecord
from tornpage.properties.decode.consumequeue import UNIT_BYTES
from tornpage.properties.decode.index import decode_index
from tornpage.properties.decode.units import PREFILL_UNIT, decode_units
from tornpage.properties.judge.derived_files import DERIVED, INDEX, QUEUES
from tornpage.properties.judge.derived_ledger import DerivedLedger, EntryPut
from tornpage.properties.program.case import Settings

__all__ = ["WithFront", "front_entries", "own_files", "without_front"]

_OWN = re.compile(r"index/[0-9]{17}|consumequeue(_ext)?/[^/]+/(?:0|-?[1-9][0-9]{0,9})/[0-9]{20}")


class WithFront(DerivedLedger):
    """The memory of queues and index of some records, with index entries in front that were there already."""

    def __init__(self, layout: Layout, records: Iterable[ModelRecord], front: Sequence[EntryPut]) -> None:
        super().__init__(layout, records)
        self._front = list(front)

    def entries_at(self, end_offset: int) -> list[EntryPut]:
        """Return the index entries of a log that ends at an offset, those in front of it first."""
        return self._front + super().entries_at(end_offset)


def own_files(content: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files without what does not belong among queues and index, which a store leaves where it is."""
    return {name: data for name, data in content.items() if not name.startswith(DERIVED) or _OWN.fullmatch(name)}


def without_front(content: Mapping[str, bytes], *, begin: int) -> dict[str, bytes]:
    """Return the files with the filler in place of each unit whose record lies in front of `begin`.

    Queue files that have nothing else are left out.
    """
    if not begin:
        return dict(content)
    kept: dict[str, bytes] = {}
    for name, data in content.items():
        units = decode_units(data) if name.startswith(QUEUES) else []
        removed = [number for number, unit in enumerate(units) if unit[1] > 0 and 0 <= unit[0] < begin]
        others = [unit for unit in units if unit[1] > 0 and unit[0] >= begin]
        if not removed:
            kept[name] = data
        elif others:
            changed = bytearray(data)
            for number in removed:
                changed[number * UNIT_BYTES : (number + 1) * UNIT_BYTES] = PREFILL_UNIT
            kept[name] = bytes(changed)
    return kept


def front_entries(content: Mapping[str, bytes], settings: Settings, *, begin: int) -> list[EntryPut] | None:
    """Return the index entries in front of `begin`; None where the file before the first is gone, which has its time.

    Their times are those of the entries themselves, in whole seconds.
    """
    found: list[EntryPut] = []
    names = sorted(name for name in content if name.startswith(INDEX)) if begin else []
    for place, name in enumerate(names):
        view = decode_index(content[name], slots=settings.index_slots, entries=settings.index_entries)
        header = view.header
        if place == 0 and view.entries and view.entries[0].seconds:
            return None
        for entry in view.entries:
            if entry.offset >= begin:
                return found
            is_end = entry.number in (1, len(view.entries))
            at_ms = (
                (header.begin_timestamp if entry.number == 1 else header.end_timestamp)
                if is_end
                else (header.begin_timestamp + 1000 * entry.seconds)
            )
            found.append((entry.key_hash, entry.offset, at_ms))
    return found
