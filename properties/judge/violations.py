"""Plant one violation per judge: a right recovery with one change, to be rejected.

A judge that accepts its violation proves nothing in a campaign, however often it ran. Each shard of a campaign runs
every judge on its violation (properties/explore/crashes/violations.py).
"""

import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tornpage.properties.disk.disk import Image
from tornpage.properties.judge.evidence import Recovered, SeenFiles
from tornpage.properties.judge.ledgers import CONSUMER_OFFSETS
from tornpage.properties.judge.small_files import DURABLE_FLOOR, physic_timestamp
from tornpage.properties.program.log_places import LOG_DIRECTORY, ROOT, log_files

__all__ = ["VIOLATIONS"]

_FIRST = f"{LOG_DIRECTORY}/{0:020d}"
_FIRST_QUEUE = f"{ROOT}/consumequeue/T/0/{0:020d}"
_FIRST_EXTENSION = f"{ROOT}/consumequeue_ext/T/0/{0:020d}"
_STORE_TIME_ENDS = 17


# ---- ways to change a recovery ---------------------------------------------------------------------------------------


class _StoreAnswering:
    """A store with some answers replaced; all others are those of the real store."""

    def __init__(self, store: object, lies: Mapping[str, object]) -> None:
        self._store = store
        self._lies = lies

    def __getattr__(self, name: str) -> Any:
        return self._lies[name] if name in self._lies else getattr(self._store, name)


def _answering(found: Recovered, **lies: object) -> Recovered:
    store: Any = _StoreAnswering(found.store, lies)
    return replace(found, store=store)


def _live(found: Recovered, change: Callable[[dict[str, bytes]], object]) -> Recovered:
    """Return a recovery whose page cache differs."""
    content = {path: found.files.peek(path, 0, 1 << 20) for path in found.files.paths()}
    change(content)
    return replace(found, files=SeenFiles(content, found.files.base))


def _durable(found: Recovered, change: Callable[[dict[str, bytes]], object]) -> Recovered:
    """Return a recovery whose disk differs."""
    content = dict(found.durable.files)
    change(content)
    return replace(found, durable=Image(found.durable.directories, content))


def _flip(path: str, at: int) -> Callable[[dict[str, bytes]], object]:
    def change(content: dict[str, bytes]) -> None:
        data = bytearray(content[path])
        data[at] ^= 1
        content[path] = bytes(data)

    return change


# ---- the violations --------------------------------------------------------------------------------------------------


def _lost_record(found: Recovered) -> Recovered:
    return _answering(found, max_offset=found.ledger.ends[-2])


def _byte_past_the_end(found: Recovered) -> Recovered:
    return _durable(found, _flip(max(log_files(found.durable.files)), -1))


def _checkpoint_ahead(found: Recovered) -> Recovered:
    checkpoint = f"{ROOT}/checkpoint"
    later = (physic_timestamp(found.durable) + 1_000_000).to_bytes(8, "big")
    return _durable(found, lambda content: content.update({checkpoint: later + content[checkpoint][8:]}))


def _changed_index(found: Recovered) -> Recovered:
    return _live(found, _flip(next(path for path in found.files.paths() if path.startswith(f"{ROOT}/index/")), 7))


def _reader_led_astray(found: Recovered) -> Recovered:
    def astray(topic: str, queue_id: int, offset: int, **options: Any) -> Any:
        return found.store.get_message(topic, queue_id, offset + 1, **options)

    return _answering(found, get_message=astray)


def _message_without_its_key(found: Recovered) -> Recovered:
    def nothing(topic: str, key: str, **options: Any) -> Any:
        return found.store.query_message(topic, "an unused key")

    return _answering(found, query_message=nothing)


def _checkpoint_ahead_of_queues(found: Recovered) -> Recovered:
    newest_ms = found.derived.entries[-1][2]

    def change(content: dict[str, bytes]) -> None:
        checkpoint = f"{ROOT}/checkpoint"
        content[checkpoint] = content[checkpoint][:8] + newest_ms.to_bytes(8, "big") * 2 + content[checkpoint][24:]
        del content[_FIRST_QUEUE]

    return _durable(found, change)


def _delayed_left_out(found: Recovered) -> Recovered:
    """Return a recovery whose log lacks the copies of messages that saved progress has passed."""
    legal = {key: log.changed(delivered=()) for key, log in found.legal.items()}
    return replace(found, legal=legal)


def _older_floor(found: Recovered) -> Recovered:
    """Return a recovery whose disk has the floor from before the last record."""
    said = found.durable.files[DURABLE_FLOOR]
    head = said[:8] + found.ledger.ends[-2].to_bytes(8, "big") + said[16:24]
    older = (head + zlib.crc32(head).to_bytes(4, "big")).ljust(len(said), b"\0")
    return _durable(found, lambda content: content.update({DURABLE_FLOOR: older}))


def _other_version(found: Recovered) -> Recovered:
    return replace(found, versions_before={**found.versions_before, CONSUMER_OFFSETS: ((("T", "g", 0), 0),)})


VIOLATIONS: Mapping[str, Callable[[Recovered], Recovered]] = {
    "opens_for_writing": lambda found: _answering(found, read_only_reason="planted"),
    "begins_where_it_may": lambda found: _answering(found, min_offset=8),
    "is_a_prefix": lambda found: _live(found, _flip(_FIRST, 50)),
    "covers_the_floor": _lost_record,
    "nothing_behind_the_end": _byte_past_the_end,
    "recovered_is_durable": lambda found: _durable(found, _flip(_FIRST, 7)),
    "watermarks_in_order": lambda found: _answering(found, flushed_offset=0),
    "checkpoint_is_not_ahead": _checkpoint_ahead,
    "queues_hold_the_log": lambda found: _live(found, _flip(_FIRST_QUEUE, 7)),
    "extensions_hold_the_log": lambda found: _live(found, _flip(_FIRST_EXTENSION, _STORE_TIME_ENDS)),
    "index_holds_the_log": _changed_index,
    "queues_have_their_bounds": lambda found: _answering(found, max_offset_in_queue=lambda *_: 1 << 20),
    "queues_are_read_in_order": _reader_led_astray,
    "times_are_found": lambda found: _answering(found, offset_in_queue_by_time=lambda *_: 1 << 20),
    "keys_are_found": _message_without_its_key,
    "checkpoint_is_not_ahead_of_queues": _checkpoint_ahead_of_queues,
    "nothing_delayed_is_left_out": _delayed_left_out,
    "delivery_goes_on_where_it_was_saved": lambda found: _answering(found, delay_offsets=lambda: {1: 1 << 20}),
    "small_files_are_whole": lambda found: _durable(found, _flip(DURABLE_FLOOR, 27)),
    "floors_say_what_is_durable": _older_floor,
    "files_are_old_or_new": _other_version,
    "nobody_is_led_past": lambda found: _answering(found, query_offset=lambda *_: 1 << 20),
}
"""By name of the judge: the recovery that it must reject."""
