"""The judges of queues, index and reads; each looks at one recovered store (contract 4, 5, 9 and 17).

What must be there comes from the model, record by record (properties/judge/derived_ledger.py), stored bytes from the
recorded disk. A pull and a query of each kind is asked of the store; which places at the edges are tried depends on how
many records there are, so that a campaign tries all of them.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from tornpage.impl.store import MessageStore
from tornpage.model.dispatch import Queue
from tornpage.model.queues import Unit
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.disk.disk import Image
from tornpage.properties.judge.derived_files import DERIVED, index_is_right, missing_before, queues_are_right
from tornpage.properties.judge.extension_files import bit_maps_of, extensions_are_right
from tornpage.properties.judge.reads import compare_first_times, compare_pull, compare_time, found_by_key
from tornpage.properties.judge.recovered import ROOT, Recovered
from tornpage.properties.judge.rulings import judge, require

__all__ = [
    "DERIVED_PATHS",
    "MADE_GOOD",
    "QUEUE_JUDGES",
    "checkpoint_times",
    "derived_on",
    "is_derived",
    "made_good",
    "nothing_is_left_to_dispatch",
]

MADE_GOOD = ("queues_made_good", "index_made_good")
"""What a recovery may have to do: units or entries were missing, torn or too many."""

DERIVED_PATHS = tuple(f"{ROOT}/{directory}" for directory in DERIVED)
"""How paths of files begin that are made from the log."""

_UNKNOWN_QUEUE = ("nobody wrote to this", 0)
_UNUSED_KEY = "nobody used this"
_QUERY_MAX = 64
_TURNS = 3
"""Each state reads so many-th of the queues and of the keys: the next record brings the next ones."""


def checkpoint_times(image: Image) -> tuple[int, int]:
    """Return up to which store timestamps the checkpoint on a disk says that queues and index are durable.

    Source: docs/format.md, section 6.
    """
    content = image.files.get(f"{ROOT}/checkpoint", b"").ljust(24, b"\0")
    return int.from_bytes(content[8:16], "big", signed=True), int.from_bytes(content[16:24], "big", signed=True)


def is_derived(path: str) -> bool:
    """Whether a file on a recorded disk is made from the log."""
    return path.startswith(DERIVED_PATHS)


def _derived_files(found: Recovered) -> dict[str, bytes]:
    """Return what the process sees of the files that are made from the log, by name below the store."""
    files, start = found.files, len(ROOT) + 1
    return {path[start:]: files.peek(path, 0, 1 << 40) for path in files.paths() if is_derived(path)}


def made_good(found: Recovered) -> set[str]:
    """Return what the recovery from a power loss had to change: of `MADE_GOOD`, as an activation table counts it."""
    before, made = found.files.base.files, set()
    for name, kind in zip(MADE_GOOD, DERIVED[::2], strict=True):
        prefix = f"{ROOT}/{kind}"
        live = [path for path in found.files.paths() if path.startswith(prefix)]
        if any(found.files.peek(path, 0, 1 << 40) != before.get(path) for path in live):
            made.add(name)
    return made


@judge(4)
def queues_hold_the_log(found: Recovered) -> None:
    """Contract 4: the queue files hold exactly the units of the surviving records, in order, without a gap."""
    end, begin = found.store.max_offset, found.store.min_offset
    queues_are_right(
        _derived_files(found),
        found.derived,
        end,
        settings=found.settings,
        min_offset=begin,
        was_harmed=found.was_harmed,
    )


@judge(4)
def extensions_hold_the_log(found: Recovered) -> None:
    """Contract 4: what the extension of a queue has at an address is what the message there says."""
    if found.settings.queue_ext:
        extensions_are_right(
            _derived_files(found),
            found.derived,
            found.store.max_offset,
            settings=found.settings,
            min_offset=found.store.min_offset,
            bit_map_of=bit_maps_of(found.settings),
        )


@judge(5)
def index_holds_the_log(found: Recovered) -> None:
    """Contract 5: the index files hold exactly the entries of the surviving records, in chains that find them."""
    end, begin = found.store.max_offset, found.store.min_offset
    index_is_right(_derived_files(found), found.derived, end, settings=found.settings, min_offset=begin)


@judge(17)
def queues_have_their_bounds(found: Recovered) -> None:
    """Contract 17: the store knows each queue of a surviving record, from its first to its last; others are empty.

    A queue whose records are all gone is empty too, at the number behind them.
    """
    store = found.store
    expected = {}
    for queue, memory, count in found.derived.queues_at(store.max_offset):
        first = memory.units[0].queue_offset
        expected[queue] = first + min(memory.first_at(store.min_offset), count), first + count
    for queue in dict.fromkeys((*expected, *observed("queues", store.queues))):  # not a set: equal in every process
        lowest = observed("min_offset_in_queue", partial(store.min_offset_in_queue, *queue))
        bounds = (lowest, observed("max_offset_in_queue", partial(store.max_offset_in_queue, *queue)))
        if bounds != expected.get(queue, (0, 0)):
            raise GuaranteeBroken(
                17, f"the bounds of queue {queue} are wrong", str(expected.get(queue, (0, 0))), str(bounds)
            )
    require(nothing_is_left_to_dispatch(store))


@judge(16)
def nothing_is_left_to_dispatch(store: MessageStore) -> None:
    """Contract 16: a store that has opened has dispatched its log."""
    behind = store.dispatch_behind_bytes
    if behind:
        raise GuaranteeBroken(16, "something was left to dispatch when the store had opened", "0", str(behind))


@judge(17)
def queues_are_read_in_order(found: Recovered) -> None:
    """Contract 17: who reads a queue gets every surviving message once, in order; at its edges he is told so.

    Which of the queues are read depends on how many records there are, as do the edges.
    """
    turn, end_offset = found.key[0], found.store.max_offset
    queues = list(found.derived.queues_at(end_offset))
    for queue, memory, count in queues[turn % _TURNS :: _TURNS]:
        at = memory.first_at(found.store.min_offset)
        while at < count:
            at += _read_on(found, queue, memory.units[at:count])
    asked, offset = _UNKNOWN_QUEUE, turn % 2
    if queues and turn % 5:
        asked, _, count = queues[turn % len(queues)]
        offset = (-1, count, count + 1 + turn, turn % (count + 1))[turn % 4]
    compare_pull(
        found.store,
        found.log,
        found.layout,
        asked,
        offset,
        stored=found.ledger.stored,
        max_msg_nums=(1, 32, 3)[turn % 3],
    )


@judge(8)
def times_are_found(found: Recovered) -> None:
    """Contract 8: the offset of a time beside that of some message, and the first times, are right."""
    turn, log = found.key[0], found.log
    queues = list(found.derived.queues_at(found.store.max_offset))
    if queues:
        queue, memory, count = queues[turn % len(queues)]
        at_ms = memory.units[turn // _TURNS % count].record.store_timestamp
        compare_time(found.store, log, found.layout, queue, at_ms + turn % _TURNS - 1)
        compare_first_times(found.store, log, found.layout, queue)


def _read_on(found: Recovered, queue: Queue, units: Sequence[Unit]) -> int:
    """Pull from a queue where these units follow; return how many of them that brought, one at least."""
    first = units[0].queue_offset
    with observed("get_message", lambda: found.store.get_message(*queue, first)) as pulled:
        brought = len(pulled.messages)
        if not 0 < brought <= len(units) or pulled.next_begin_offset != first + brought:
            expected = f"messages {first} to {units[-1].queue_offset}"
            answer = f"{brought} of them, {pulled.status.value}, next {pulled.next_begin_offset}"
            raise GuaranteeBroken(17, f"a reader of queue {queue} is led astray", expected, answer)
        for message, unit in zip(pulled.messages, units, strict=False):
            if message.queue_offset != unit.queue_offset or bytes(message) != found.ledger.stored(unit.record):
                raise GuaranteeBroken(17, f"message {unit.queue_offset} of queue {queue} is not the one put there")
    return brought


@judge(5)
def keys_are_found(found: Recovered) -> None:
    """Contract 5: a query for a key brings all surviving records that have it, in a window those within.

    Which of the keys are queried depends on how many records there are; that the entries of all are right is judged
    by their bytes.
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


@judge(9)
def checkpoint_is_not_ahead_of_queues(found: Recovered) -> None:
    """Contract 9: what is older than the checkpoint's times for queues and index is durable in them.

    That holds for the disk as the crash left it, and as recovery leaves it.
    """
    for image in () if found.was_harmed else (found.files.base, found.durable):
        queues_ms, index_ms = checkpoint_times(image)
        if not queues_ms and not index_ms:
            continue  # a checkpoint without times says nothing of them
        missing = missing_before(
            derived_on(image),
            found.derived,
            found.store.max_offset,
            queues_ms=queues_ms,
            index_ms=index_ms,
            settings=found.settings,
            min_offset=found.store.min_offset,
        )
        if missing is not None:
            raise GuaranteeBroken(
                9, "the checkpoint is newer than the durable queues and index", f"{queues_ms}, {index_ms}", missing
            )


def derived_on(image: Image) -> Mapping[str, bytes]:
    """Return what a disk holds of the files that are made from the log, by name below the store."""
    start = len(ROOT) + 1
    return {path[start:]: data for path, data in image.files.items() if is_derived(path)}


QUEUE_JUDGES = (
    queues_hold_the_log,
    extensions_hold_the_log,
    index_holds_the_log,
    queues_have_their_bounds,
    queues_are_read_in_order,
    times_are_found,
    keys_are_found,
    checkpoint_is_not_ahead_of_queues,
)
"""In the order in which they speak."""
