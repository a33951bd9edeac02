"""Compare log and queues of one store as arrays: units and records that do not fit.

`pipeline.audit.queue_joins` makes the same comparison on purpose in another language. Tests compare the two. Cost: some
sorts of the numbers of all records and units.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tornpage.pipeline.audit.findings import FINDINGS_MAX
from tornpage.pipeline.audit.stores import NEVER, StoreFacts
from tornpage.pipeline.audit.suspicions import Suspicion
from tornpage.pipeline.rows.columns import LogPlaces, QueueKey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["compare_queues"]

_CODES = (
    "CQ_DUPLICATE",
    "CQ_EXT_UNREADABLE",
    "CQ_MISSING",
    "CQ_POINTS_NOWHERE",
    "CQ_UNWANTED",
    "CQ_WRONG_OFFSET",
    "CQ_WRONG_QUEUE",
    "CQ_WRONG_SIZE",
    "CQ_WRONG_TAGS_CODE",
)
_CODE = {code: number for number, code in enumerate(_CODES)}
_EXCUSABLE = [_CODE["CQ_DUPLICATE"], _CODE["CQ_MISSING"], _CODE["CQ_WRONG_OFFSET"]]
_SINGLE = np.dtype(
    [
        ("code", "i4"),
        ("queue", "i4"),
        ("queue_offset", "i8"),
        ("offset", "i8"),
        ("found", "i8"),
        ("has_found", "?"),
        ("expected", "i8"),
        ("has_expected", "?"),
        ("other", "i4"),
        ("late", "?"),
        ("beyond", "?"),
        ("excused", "?"),
    ]
)
_KIND = ("queue", "code", "late", "beyond", "excused", "other")


def compare_queues(
    store: int,
    facts: StoreFacts,
    queues: Sequence[QueueKey],
    *,
    records: NDArray[Any],
    wanted: NDArray[Any],
    units: NDArray[Any],
) -> list[Suspicion]:
    """Return the runs of units and records that do not fit.

    There is at most one more per code than is listed.
    """
    first_current = np.array([facts.first_current.get(key, NEVER) for key in queues], "i8")
    units = units[units["queue_offset"] >= first_current[units["queue"]]] if len(units) else units
    places = LogPlaces(records["offset"])
    asked = wanted["queue"].astype("i8") * len(places) + places.numbers(wanted["offset"])
    order = np.argsort(asked, kind="stable")
    wanted, asked = wanted[order], asked[order]
    number = places.numbers(units["offset"])
    said = np.where(number < 0, -1, units["queue"].astype("i8") * len(places) + number)
    at = np.minimum(np.searchsorted(asked, said), max(len(asked) - 1, 0))
    matches = (number >= 0) & (asked[at] == said) if len(asked) else np.zeros(len(units), bool)
    parts = [
        _missing(wanted, np.isin(asked, said[matches])),
        _strange(units[~matches], number[~matches], records[places.order]),
        *_wrong(units[matches], wanted[at[matches]], said[matches]),
    ]
    single = np.concatenate(parts)
    _mark(single, facts, queues, wanted)
    return _runs(store, single, queues, may_move=facts.may_move)


def _single(code: str | NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
    """Return rows as suspicions about single units or records."""
    single = np.zeros(len(rows), _SINGLE)
    single["code"] = _CODE[code] if isinstance(code, str) else code
    for name in ("queue", "queue_offset", "offset"):
        single[name] = rows[name]
    single["other"] = -1
    return single


def _missing(wanted: NDArray[Any], has_unit: NDArray[Any]) -> NDArray[Any]:
    return _single("CQ_MISSING", wanted[~has_unit])


def _strange(units: NDArray[Any], number: NDArray[Any], records: NDArray[Any]) -> NDArray[Any]:
    """Judge the units that point to no record, or to one that does not need them."""
    if not len(records):
        return _single("CQ_POINTS_NOWHERE", units)
    owner = np.where(number < 0, -1, records["queue"][number])
    code = np.where(
        number < 0,
        _CODE["CQ_POINTS_NOWHERE"],
        np.where(owner == units["queue"], _CODE["CQ_UNWANTED"], _CODE["CQ_WRONG_QUEUE"]),
    )
    single = _single(code, units)
    single["other"] = np.where(code == _CODE["CQ_WRONG_QUEUE"], owner, -1)
    return single


def _wrong(units: NDArray[Any], wanted: NDArray[Any], said: NDArray[Any]) -> list[NDArray[Any]]:
    """Judge the units that point to a record of their queue.

    The unit that fits best counts. Others are duplicates.
    """
    due = _due(units, wanted)
    wrong_size = units["size"] != wanted["size"]
    wrong_offset = units["queue_offset"] != wanted["queue_offset"]
    order = np.lexsort((units["queue_offset"], wrong_offset, wrong_size, said))
    units, wanted, due, said = units[order], wanted[order], (due[0][order], due[1][order]), said[order]
    is_best = np.ones(len(said), bool)
    is_best[1:] = said[1:] != said[:-1]
    duplicates = _single("CQ_DUPLICATE", units[~is_best])
    units, wanted, code, has_due = units[is_best], wanted[is_best], due[0][is_best], due[1][is_best]
    found = []
    left = np.ones(len(units), bool)
    for name, wrong, one, other, is_told in (
        ("CQ_WRONG_SIZE", units["size"] != wanted["size"], units["size"], wanted["size"], True),
        (
            "CQ_WRONG_OFFSET",
            units["queue_offset"] != wanted["queue_offset"],
            units["queue_offset"],
            wanted["queue_offset"],
            True,
        ),
        ("CQ_EXT_UNREADABLE", ~units["has_code"], units["address"], code, False),
        ("CQ_WRONG_TAGS_CODE", ~has_due | (units["tags_code"] != code), units["tags_code"], code, has_due),
    ):
        chosen = left & wrong
        left &= ~wrong
        single = _single(name, units[chosen])
        single["found"], single["has_found"] = one[chosen], True
        single["expected"] = other[chosen]
        single["has_expected"] = is_told[chosen] if isinstance(is_told, np.ndarray) else is_told
        found.append(single)
    return [duplicates, *found]


def _due(units: NDArray[Any], wanted: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the tags code that each unit should have, and whether it is known.

    The delay of a level is not stored. It is taken from the units of its queue: the delay in whole seconds that most of
    them have.
    """
    code, is_known = wanted["tags_code"].copy(), ~wanted["is_delayed"]
    delayed = np.flatnonzero(wanted["is_delayed"])
    if len(delayed):
        stored, said = wanted["timestamp"][delayed], units["tags_code"][delayed]
        delays = said - stored
        # values beyond 64 bits have the wrong sign: no such delay, and no such due time
        possible = units["has_code"][delayed] & (delays >= 0) & (said >= stored) & (delays % 1000 == 0)
        queue = units["queue"][delayed]
        for each in np.unique(queue[possible]):
            values, counts = np.unique(delays[possible & (queue == each)], return_counts=True)
            mine = delayed[queue == each]
            code[mine] = wanted["timestamp"][mine] + values[np.argmax(counts)]
            is_known[mine] = code[mine] >= wanted["timestamp"][mine]
    return code, is_known


def _mark(single: NDArray[Any], facts: StoreFacts, queues: Sequence[QueueKey], wanted: NDArray[Any]) -> None:
    """Note what makes a suspicion less than damage."""
    next_offset = np.array([facts.next_offset.get(key, 0) for key in queues], "i8")
    single["late"] = single["offset"] >= facts.settled_end
    is_missing, is_nowhere = single["code"] == _CODE["CQ_MISSING"], single["code"] == _CODE["CQ_POINTS_NOWHERE"]
    if len(single):
        behind = single["queue_offset"] >= next_offset[single["queue"]]
        single["beyond"] = (is_missing & behind) | (is_nowhere & (single["offset"] >= facts.log_end))
        restarted = _restarts(len(queues), wanted[wanted["is_light"]])[single["queue"]]
        single["excused"] = np.isin(single["code"], _EXCUSABLE) & (single["offset"] >= restarted)


def _restarts(queues: int, light: NDArray[Any]) -> NDArray[Any]:
    """Return per queue the physical offset from which a light queue's offsets stop rising."""
    restarted = np.full(queues, NEVER, "i8")
    light = light[np.lexsort((light["offset"], light["queue"]))]
    starts = np.flatnonzero(np.diff(light["queue"], prepend=-1))
    for start, end in pairwise([*starts, len(light)]):
        numbers = light["queue_offset"][start:end]
        back = np.flatnonzero(numbers[1:] <= np.maximum.accumulate(numbers)[:-1])
        if len(back):
            restarted[light["queue"][start]] = light["offset"][start + back[0] + 1]
    return restarted


def _runs(store: int, single: NDArray[Any], queues: Sequence[QueueKey], *, may_move: bool) -> list[Suspicion]:
    """Return suspicions of one kind with consecutive queue offsets as one.

    Of each code those that are damage come first, so that the limit leaves out none while it lists a tear or a note.
    """
    if not len(single):
        return []
    single = single[np.lexsort((single["offset"], single["queue_offset"], *(single[name] for name in _KIND)))]
    begins = np.zeros(len(single), bool)
    begins[0] = True
    for name in _KIND:
        begins[1:] |= single[name][1:] != single[name][:-1]
    kind = np.cumsum(begins)
    number = np.arange(len(single)) - np.flatnonzero(begins)[kind - 1]
    order = np.lexsort((np.arange(len(single)), run := single["queue_offset"] - number, kind))
    single, run, kind = single[order], run[order], kind[order]
    starts = np.ones(len(single), bool)
    starts[1:] = (run[1:] != run[:-1]) | (kind[1:] != kind[:-1])
    first = np.flatnonzero(starts)
    items = np.diff([*first, len(single)])
    rank = np.empty(len(queues), "i8")
    rank[sorted(range(len(queues)), key=queues.__getitem__)] = np.arange(len(queues))
    rows = single[first]
    mild = rows["excused"] | (rows["beyond"] if may_move else rows["late"])
    listed = np.lexsort((run[first], rows["late"], rows["queue_offset"], rank[rows["queue"]], mild, rows["code"]))
    place = np.arange(len(rows)) - np.searchsorted(rows["code"][listed], rows["code"][listed])
    listed = listed[place <= FINDINGS_MAX]
    return [
        _suspicion(store, row, count, queues)
        for row, count in zip(rows[listed].tolist(), items[listed].tolist(), strict=True)
    ]


def _suspicion(store: int, row: tuple[Any, ...], items: int, queues: Sequence[QueueKey]) -> Suspicion:
    code, queue, queue_offset, offset, found, has_found, expected, has_expected, other, late, beyond, excused = row
    topic, queue_id = queues[queue]
    return Suspicion(
        store,
        _CODES[code],
        topic,
        queue_id,
        queue_offset,
        items,
        offset,
        late,
        beyond,
        excused,
        found if has_found else None,
        expected if has_expected else None,
        "/".join(map(str, queues[other])) if other >= 0 else None,
    )
