"""Compare log and index of one store as arrays: missing entries, entries without a key.

`pipeline.audit.index_joins` makes the same comparison on purpose in another language. These rules apply to an entry
whose record is in the log. The first match counts: no record begins there, the record has no such key, the key already
has an entry, the seconds are not those of the record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tornpage.pipeline.audit.findings import FINDINGS_MAX
from tornpage.pipeline.rows.columns import LogPlaces
from tornpage.pipeline.rows.index_reading import IndexPartition

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["OFFSET_MAX", "SECONDS_MAX", "IndexSuspicion", "compare_index", "gap_of", "seconds_since"]

SECONDS_MAX = 2**31 - 1
OFFSET_MAX = 2**63 - 1
_CODES = ("IX_POINTS_NOWHERE", "IX_WRONG_KEY", "IX_DUPLICATE", "IX_WRONG_TIME")


@dataclass(frozen=True, slots=True)
class IndexSuspicion:
    """Consecutive entries of a file that do not fit, or keys of the log without an entry.

    `file` is the number of the file, -1 for keys. Numbers are those of the first entry or key.
    """

    store: int
    code: str
    file: int
    number: int
    offset: int
    items: int


def seconds_since(begin_ms: NDArray[Any], stored_ms: NDArray[Any]) -> NDArray[Any]:
    """Return the seconds that entries state for these times; 0 if the file has no begin.

    Any time is accepted.
    """
    begin_ms = np.maximum(begin_ms, 0)
    since = np.minimum((np.maximum(stored_ms, begin_ms) - begin_ms) // 1000, SECONDS_MAX)
    return np.where(begin_ms > 0, since, 0)


def gap_of(number: int, parts: Sequence[IndexPartition]) -> tuple[int, int]:
    """Return the range of offsets, ends included, whose keys may be in an unreadable file.

    The header of such a file may be as wrong as the rest, so the files before and after bound the range.
    """
    known = [each for each in parts if each.slots is not None and each.header.next_entry > 1]
    begin = max((each.header.end_offset for each in known if each.number < number), default=-1)
    end = min((each.header.begin_offset for each in known if each.number > number), default=OFFSET_MAX)
    return begin, end


def compare_index(
    store: int,
    parts: Sequence[IndexPartition],
    gaps: Sequence[tuple[int, int]],
    *,
    log_min: int,
    records: NDArray[Any],
    keys: NDArray[Any],
    entries: NDArray[Any],
) -> list[IndexSuspicion]:
    """Return what does not fit, at most one more per code than is listed.

    `gaps` are as in `gap_of`.
    """
    entries = entries[entries["offset"] >= log_min]
    places = LogPlaces(records["offset"])
    number = places.numbers(entries["offset"])
    is_nowhere = number < 0
    can_have_key = ~is_nowhere & (entries["hash"] >= 0)
    asked = _pairs(places.numbers(keys["offset"]), keys["hash"])
    said = _pairs(number[can_have_key], entries["hash"][can_have_key])
    _, same = np.unique(np.concatenate([asked, said]), return_inverse=True)
    asked, said = same[: len(asked)], same[len(asked) :]
    asked_counts = np.bincount(asked, minlength=len(same))
    has_key, is_first = np.zeros((2, len(entries)), bool)
    has_key[can_have_key] = asked_counts[said] > 0
    is_first[can_have_key] = _repeats(said) < asked_counts[said]
    wrong_time = _wrong_time(parts, places, entries, number, records)
    code = np.select([is_nowhere, ~has_key, ~is_first, wrong_time], [0, 1, 2, 3], default=-1)
    suspicions = [found for each, name in enumerate(_CODES) for found in _runs(store, name, entries[code == each])]
    is_missing = _repeats(asked) >= np.bincount(said, minlength=len(same))[asked]
    return suspicions + _missing(store, gaps, keys, is_missing)


def _runs(store: int, code: str, entries: NDArray[Any]) -> list[IndexSuspicion]:
    """Return consecutive entries of a file as one."""
    entries = entries[np.lexsort((entries["number"], entries["file"]))]
    follows = np.zeros(len(entries), bool)
    follows[1:] = (np.diff(entries["number"]) == 1) & (np.diff(entries["file"]) == 0)
    starts = np.flatnonzero(~follows)
    runs = np.diff([*starts, len(entries)])
    return [
        IndexSuspicion(store, code, int(row["file"]), int(row["number"]), int(row["offset"]), int(items))
        for row, items in zip(entries[starts[: FINDINGS_MAX + 1]], runs, strict=False)
    ]


def _pairs(number: NDArray[Any], hashes: NDArray[Any]) -> NDArray[Any]:
    """Return one number per record and hash."""
    pairs: NDArray[Any] = (number.astype("i8") << 31) | hashes.astype("i8")
    return pairs


def _repeats(values: NDArray[Any]) -> NDArray[Any]:
    """Return how often each value occurred before."""
    order = np.argsort(values, kind="stable")
    in_order = values[order]
    starts = np.flatnonzero(np.diff(in_order, prepend=-1))
    repeats = np.empty(len(values), "i8")
    repeats[order] = np.arange(len(values)) - np.repeat(starts, np.diff([*starts, len(values)]))
    return repeats


def _wrong_time(
    parts: Sequence[IndexPartition],
    places: LogPlaces,
    entries: NDArray[Any],
    number: NDArray[Any],
    records: NDArray[Any],
) -> NDArray[Any]:
    """Return which entries do not state the seconds since the begin of their file.

    The seconds of entry 1 are not used.
    """
    if not len(entries) or not len(records):
        return np.zeros(len(entries), bool)
    begins = np.zeros(max(part.number for part in parts) + 1, "i8")  # a file that cannot be read has a number too
    begins[[part.number for part in parts]] = [part.header.begin_timestamp for part in parts]
    begin = begins[entries["file"]]
    stored = records["timestamp"][places.order][np.maximum(number, 0)]
    seconds = seconds_since(begin, stored)
    is_wrong: NDArray[Any] = (number >= 0) & (entries["number"] > 1) & (seconds != entries["seconds"])
    return is_wrong


def _missing(
    store: int, gaps: Sequence[tuple[int, int]], keys: NDArray[Any], is_missing: NDArray[Any]
) -> list[IndexSuspicion]:
    """Return consecutive keys of the log without an entry as one."""
    for begin, end in gaps:
        is_missing = is_missing & ~((keys["offset"] >= begin) & (keys["offset"] <= end))
    missing = keys[is_missing]
    starts = np.flatnonzero(np.diff(missing["place"], prepend=-2) != 1)
    runs = np.diff([*starts, len(missing)])
    return [
        IndexSuspicion(store, "IX_KEY_MISSING", -1, 0, int(missing["offset"][start]), int(items))
        for start, items in zip(starts[: FINDINGS_MAX + 1], runs, strict=False)
    ]
