"""Judge the index: its files, and queries by key (contract 5).

The model says what must be there, record by record (properties/judge/ledgers.py). Files are bytes by name below the
store directory and are decoded by the judges' own decoder.
"""

from bisect import bisect_left
from collections.abc import Mapping
from functools import lru_cache

from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.decode.index import IndexEntry, decode_index
from tornpage.properties.judge.answers import found_by_key
from tornpage.properties.judge.evidence import INDEX, STRAY, Evidence
from tornpage.properties.judge.ledgers import DerivedLedger, EntryPut
from tornpage.properties.judge.rulings import bounds_text, judge
from tornpage.properties.program.case import Settings

__all__ = ["decoded_index", "index_holds_the_log", "index_is_right", "index_names", "keys_are_found"]

_UNUSED_KEY = "an unused key"

_QUERY_MAX = 64

_TURNS = 3
"""Each crash state reads one in so many queues and keys; the number of records decides which."""


@judge(5)
def index_holds_the_log(found: Evidence) -> None:
    """Contract 5: the index files have exactly the entries of the surviving records."""
    content, derived = found.derived_files(), found.index_ledger
    index_is_right(content, derived, found.end, settings=found.settings, min_offset=found.derived_begin)


@judge(5)
def keys_are_found(found: Evidence) -> None:
    """Contract 5: a query for a key returns all surviving records with it.

    With a time range it returns those within the range.

    The number of records decides which keys are queried. The entries of all keys are judged by their bytes.
    """
    store, derived, stored = found.store, found.derived, found.ledger.stored
    turn, keys = found.key[0], derived.keys_at(store.max_offset)
    for key in keys[turn % _TURNS :: _TURNS]:
        records = derived.records_with(key, store.max_offset, store.min_offset)
        found_by_key(store, key, records[-_QUERY_MAX:], stored=stored, max_num=_QUERY_MAX)
    if keys:
        key = keys[turn % len(keys)] if turn % 5 else (keys[0][0], _UNUSED_KEY)
        records = derived.records_with(key, store.max_offset, store.min_offset)
        begin_ms = records[turn % len(records)].store_timestamp if records else 0
        end_ms = records[-1].store_timestamp - turn % 2 if records else begin_ms
        within = [record for record in records if begin_ms <= record.store_timestamp <= end_ms]
        max_num = 1 + turn % 7
        found_by_key(store, key, within[-max_num:], stored=stored, max_num=max_num, begin_ms=begin_ms, end_ms=end_ms)


decoded_index = lru_cache(maxsize=4096)(decode_index)  # the same log gives the same index, and most states share one


def index_is_right(
    content: Mapping[str, bytes], derived: DerivedLedger, end_offset: int, *, settings: Settings, min_offset: int = 0
) -> None:
    """Check that the index has exactly the entries of the surviving records (contract 5).

    Every chain, count and range has to fit them, and only the last file may have room left. Entries of records before
    `min_offset` may come first; those records are removed, so they are not compared.
    """
    names = index_names(content)
    entries = derived.entries_at(end_offset)
    removed = bisect_left(entries, min_offset, key=_offset_of_put) if min_offset else 0
    expected, at = entries[removed:], 0
    last_timestamp = 0
    for name in names:
        view = decoded_index(content[name], slots=settings.index_slots, entries=settings.index_entries)
        for problem, detail in view.problems:
            raise GuaranteeBroken(5, f"{name} contradicts itself: {problem}", found=detail)
        front = 0 if at else bisect_left(view.entries, min_offset, key=_offset_of_entry)
        found_entries = view.entries[front:]
        puts = expected[at : at + len(found_entries)]
        for entry, put in zip(found_entries, puts, strict=False):
            if (entry.key_hash, entry.offset) != put[:2]:
                found = f"{entry.key_hash:#x} at {entry.offset}"
                raise GuaranteeBroken(5, f"entry {entry.number} of {name} is wrong", f"{put[0]:#x} at {put[1]}", found)
        if len(puts) < len(found_entries):
            raise GuaranteeBroken(
                5, f"{name} has entries for records that do not exist", str(len(puts)), str(len(found_entries))
            )
        if puts:
            times = (view.header.begin_timestamp, view.header.end_timestamp)
            wanted = (times[0] if front else puts[0][2], puts[-1][2])
            if times != wanted:
                raise GuaranteeBroken(5, f"{name} has the wrong times", bounds_text(wanted), bounds_text(times))
            begins = [times[0] if front else last_timestamp, *[times[0]] * (len(puts) - 1)]
            for entry, put, begin in zip(found_entries, puts, begins, strict=True):
                seconds = max(0, (put[2] - begin) // 1000) if begin else 0
                is_relative_to_a_file_that_is_gone = removed and name == names[0] and entry.number == 1
                if entry.seconds != seconds and not is_relative_to_a_file_that_is_gone:
                    sentence = f"entry {entry.number} of {name} has the wrong time"
                    raise GuaranteeBroken(5, sentence, f"{seconds} s", f"{entry.seconds} s")
        last_timestamp = view.header.end_timestamp if view.entries else last_timestamp
        if name != names[-1] and len(view.entries) != settings.index_entries - 1:
            raise GuaranteeBroken(5, f"{name} is neither full nor the last file", found=f"{len(view.entries)} entries")
        at += len(puts)
    if at < len(expected):
        raise GuaranteeBroken(5, f"the index has no entry for the record at {expected[at][1]}")


def _offset_of_put(put: EntryPut) -> int:
    return put[1]


def _offset_of_entry(entry: IndexEntry) -> int:
    return entry.offset


def index_names(content: Mapping[str, bytes]) -> list[str]:
    """Return the names of the index files, the oldest first."""
    return sorted(name for name in content if name.startswith(INDEX) and not name.endswith(STRAY))
