"""Compare the defaults of settings, and the policies that follow from them."""

import errno
import random
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from functools import partial
from itertools import product
from typing import Any

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import (
    AllocationPolicy,
    CommitPolicy,
    FlushDiskType,
    FlushPolicy,
    QueueFlushPolicy,
    WarmUp,
)
from tornpage.impl.config.retention_policy import RetentionPolicy, Room
from tornpage.impl.io.files import DiskUsage
from tornpage.impl.read.queue_pull import TransferLimits
from tornpage.impl.service.disk_watch import DiskWatch
from tornpage.impl.service.running_flags import RunningFlag, RunningFlags
from tornpage.model.broker import policies as model
from tornpage.model.broker.defaults import DEFAULTS
from tornpage.properties.lockstep.functions.comparing import REFUSED, is_answered, is_value

__all__ = ["check"]

_POLICIES: Mapping[str, Callable[..., Any]] = {
    "FlushPolicy": partial(FlushPolicy, FlushDiskType.ASYNC_FLUSH),
    "CommitPolicy": CommitPolicy,
    "QueueFlushPolicy": QueueFlushPolicy,
    "AllocationPolicy": AllocationPolicy,
}
_NAMES = {0: "on-demand", 1: "one-ahead", 2: "2-ahead", 7: "7-ahead"}
_SUFFIXES = {WarmUp.NONE: "", WarmUp.TOUCH: "+touch", WarmUp.TOUCH_AND_FORCE: "+warm", WarmUp.POPULATE: "+populate"}
_HOUR_MS, _WATCH_MS = 3_600_000, 10_000
_RATIOS = (None, 0.0, 0.09, 0.1, 0.101, 0.5, 0.75, 0.751, 0.85, 0.851, 0.9, 0.901, 0.95, 0.951, 1.0)


def check(rng: random.Random) -> None:
    """Compare all of them. Raises GuaranteeBroken."""
    _defaults()
    for name, least in model.LEAST.items():
        for field, value in least.items():
            make = _POLICIES[name]
            is_answered(f"{name}({field}={value})", value, _field_of, make, field, value)
            is_answered(f"{name}({field}={value - 1})", REFUSED, make, **{field: value - 1})
    _rounds(rng)
    _allocation(rng)
    _retention(rng)
    _disk_watch(rng)
    _flags()
    _transfers(rng)


def _field_of(make: Callable[..., Any], field: str, value: int) -> Any:
    return getattr(make(**{field: value}), field)


def _defaults() -> None:
    config = MessageStoreConfig()
    found = {field.name: getattr(config, field.name) for field in fields(config)}
    is_value("the list of settings", sorted(DEFAULTS), sorted(found))
    for name, value in DEFAULTS.items():
        is_value(f"the default of {name}", value, getattr(found[name], "value", found[name]))
    for units in (1, 2):
        for more in (0, 1, 19):
            size = MessageStoreConfig(mapped_file_size_consume_queue=20 * units + more).consume_queue_file_bytes
            is_value("the size of a queue file", 20 * (units + (more > 0)), size)


def _rounds(rng: random.Random) -> None:
    for _ in range(40):
        done = rng.choice((0, 1, 4_095, 4_096, 8_191))
        end = done + rng.choice((-1, 0, 1, 4_095, 4_096, 8_192, 16_383, 16_384, 16_385))
        pages, is_full = rng.choice((0, 1, 2, 4)), rng.random() < 0.3
        expected = model.is_due(end, done, pages, is_full=is_full)
        place = f"a round from {done} to {end} with {pages} pages"
        rule = {"written_position": end, "least_pages": pages, "file_is_full": is_full}
        is_answered(place, expected, FlushPolicy.is_due, flushed_position=done, **rule)
        is_answered(place, expected, CommitPolicy.is_due, committed_position=done, **rule)
    for since_ms in (0, 9, 10, 11):
        expected_pages = model.page_rule(3, 10, since_ms)
        flush = FlushPolicy(
            FlushDiskType.ASYNC_FLUSH, flush_commit_log_least_pages=3, flush_commit_log_thorough_interval=10
        )
        commit = CommitPolicy(commit_commit_log_least_pages=3, commit_commit_log_thorough_interval=10)
        queues = QueueFlushPolicy(flush_consume_queue_least_pages=3, flush_consume_queue_thorough_interval=10)
        rule_text = f"the page rule after {since_ms} ms"
        is_answered(rule_text, expected_pages, flush.least_pages, since_thorough_ms=since_ms)
        is_answered(rule_text, expected_pages, commit.least_pages, since_commit_ms=since_ms)
        is_answered(rule_text, expected_pages, queues.least_pages, since_thorough_ms=since_ms)
    for kind in FlushDiskType:
        for waits in (False, True):
            policy = FlushPolicy(kind)
            expected_wait = waits and kind is FlushDiskType.SYNC_FLUSH
            is_answered("the wait for a flush", expected_wait, policy.answers_after_flush, wait_store_msg_ok=waits)


def _allocation(rng: random.Random) -> None:
    index = rng.randrange(9)
    for ahead, name in _NAMES.items():
        for warm_up, suffix in _SUFFIXES.items():
            policy = AllocationPolicy(files_ahead=ahead, warm_up=warm_up)
            is_value("the name of an allocation policy", name + suffix, policy.name)
            wanted = list(range(index, index + ahead + 1))
            is_value("the wanted files", wanted, list(policy.wanted(file_index=index)))
    for warm_up in WarmUp:
        for kind in FlushDiskType:
            for step, pages in ((1, 3), (2, 3), (3, 3), (4, 3), (4, 9)):
                policy = AllocationPolicy(warm_up=warm_up, flush_least_pages_when_warm_mapped_file=step)
                syncs = warm_up is WarmUp.TOUCH_AND_FORCE and kind is FlushDiskType.SYNC_FLUSH
                expected = tuple(model.syncs_of_warm_up(pages, step)) if syncs else ()
                syncs_of = policy.warm_up_syncs
                is_answered("the syncs of a warm-up", expected, syncs_of, file_pages=pages, flush_disk_type=kind)


def _retention(rng: random.Random) -> None:
    now_ms = rng.randrange(1_700_000_000_000, 1_800_000_000_000)
    for hours in (0, 1, 72):
        policy = RetentionPolicy(file_reserved_time=hours, time_zone="UTC")
        for age_ms in (-1, 0, 1):
            newest_ms = now_ms - hours * _HOUR_MS - age_ms
            what = f"the expiry after {hours} hours and {age_ms} ms"
            is_answered(what, age_ms >= 0, policy.is_expired, newest_ms=newest_ms, now_ms=now_ms)
    for text in ("04", "0;23", "04;4;16"):
        policy = RetentionPolicy(delete_when=text, time_zone="UTC")
        is_value(f"the hours {text!r}", model.hours_of(text), set(policy.hours()))
        for hour in range(24):
            at_ms = now_ms // (24 * _HOUR_MS) * 24 * _HOUR_MS + hour * _HOUR_MS + rng.choice((0, _HOUR_MS - 1))
            is_there = datetime.fromtimestamp(at_ms / 1000, UTC).hour in model.hours_of(text)
            is_answered(f"the time to delete {text!r}", is_there, policy.is_time_to_delete, at_ms)
    for text in ("24", "-1", "x", "", "4;", "0,23"):
        is_answered(f"the hours {text!r}", REFUSED, RetentionPolicy, delete_when=text)
    is_answered("an unknown time zone", REFUSED, RetentionPolicy, time_zone="Nowhere/Never")
    for _ in range(40):
        used, forces = rng.choice((0, 9, 10, 75, 95, 96, 100)), rng.random() < 0.5
        policy = RetentionPolicy(disk_max_used_space_ratio=used, clean_file_forcibly_enable=forces)
        ratios = rng.choice(_RATIOS), rng.choice(_RATIOS)
        known = [ratio for ratio in ratios if ratio is not None]
        expected = model.room_of(known, warning=0.9, forcibly=0.85, used_percent=used, forces=forces)
        is_answered(f"the room of disks with {ratios}", expected, _room, policy, ratios)


class _Disks:
    """Stands for disks with a known or unknown usage by path."""

    def __init__(self, ratios: Mapping[str, float | None]) -> None:
        self._ratios = ratios

    def disk_usage(self, path: str) -> DiskUsage:
        """Return the usage of a disk. Raises OSError if it is unknown."""
        ratio = self._ratios[path]
        if ratio is None:
            raise OSError(errno.EIO, "no usage", path)
        return DiskUsage(1000, 1000 - round(1000 * ratio))


def _disk_watch(rng: random.Random) -> None:
    """Compare the flag and the room of stores with two log disks and a disk of queues.

    The least full disk of the log counts. A disk with an unknown usage keeps its last one.
    """
    for _ in range(12):
        ratios: dict[str, float | None] = {path: rng.choice(_RATIOS) for path in ("a", "b", "queues")}
        flags, last = RunningFlags(), dict[str, float]()
        watch = DiskWatch(_Disks(ratios), ("a", "b"), flags, policy=RetentionPolicy(), queue_path="queues")  # type: ignore[arg-type]
        is_value("a watch before its first look", (0, 0, Room()), (watch.due_ms, watch.checked_ms, watch.room))
        now_ms = rng.randrange(1, 10_000)
        for number in range(3):
            logs = [ratio for path in ("a", "b") if (ratio := ratios[path]) is not None]
            last |= {"log": min(logs)} if logs else {}
            last |= {"queues": ratios["queues"]} if ratios["queues"] is not None else {}
            is_answered("the next look at the disks", now_ms + _WATCH_MS, watch.step, now_ms)
            expected = model.room_of(list(last.values()), warning=0.9, forcibly=0.85, used_percent=75, forces=True)
            room = watch.room.is_full, watch.room.wants_deletion, watch.room.urgent
            is_value(f"the room of disks with {ratios}, look {number}", expected, room)
            is_value("the flag of full disks", expected[0], RunningFlag.DISK_FULL in flags.bits)
            is_value("the time of the last look at the disks", now_ms, watch.checked_ms)
            is_answered("another look at the same time", now_ms + _WATCH_MS, watch.step, now_ms)
            is_value("the time of the last look at the disks", now_ms, watch.checked_ms)
            is_answered("an early look at the disks", now_ms + _WATCH_MS, watch.step, now_ms + _WATCH_MS - 1)
            now_ms = now_ms - 1 if rng.random() < 0.2 else now_ms + _WATCH_MS
            ratios[rng.choice(("a", "b", "queues"))] = rng.choice(_RATIOS)


def _flags() -> None:
    """Compare what each running flag forbids."""
    for bits in range(32):
        flags = RunningFlags()
        is_answered("setting flags", bits > 0, flags.set, RunningFlag(bits))
        is_answered("setting flags again", False, flags.set, RunningFlag(bits))
        found = flags.readable, flags.writeable, flags.queue_writeable, int(flags.bits)
        is_value(f"what the flags {bits} permit", (not bits & 1, not bits & 30, not bits & 14, bits), found)
        is_answered("clearing other flags", False, flags.clear, RunningFlag(31 & ~bits))
        is_answered("clearing flags", bits > 0, flags.clear, RunningFlag(bits))
        is_value("what no flag permits", (True, True, True), (flags.readable, flags.writeable, flags.queue_writeable))


def _room(policy: RetentionPolicy, ratios: tuple[float | None, float | None]) -> tuple[bool, bool, bool]:
    room = policy.room(*ratios)
    return room.is_full, room.wants_deletion, room.urgent


def _transfers(rng: random.Random) -> None:
    """Compare when an answer of a pull is full, at and beside each of its limits."""
    memory, disk = (rng.randrange(2, 900), rng.randrange(2, 40)), (rng.randrange(2, 900), rng.randrange(2, 40))
    memory_bytes = rng.randrange(2, 900)
    limits = TransferLimits(*memory, *disk, memory_bytes)
    for behind_bytes in (0, memory_bytes - 1, memory_bytes, memory_bytes + 1):
        is_far = behind_bytes > memory_bytes
        is_answered(f"whether {behind_bytes} bytes are on disk only", is_far, limits.is_far, behind_bytes)
        for (bytes_max, count_max), by, more in product((memory, disk), (-1, 0, 1), (-1, 0, 1)):
            size = rng.randrange(1, bytes_max)
            collected, count = bytes_max - size + by, count_max + more
            own_bytes, own_count = disk if is_far else memory
            is_answered(
                f"whether an answer with {collected} bytes and {count} messages is full",
                collected + size > own_bytes or count >= own_count, limits.is_full, collected, count, size,
                behind_bytes=behind_bytes,
            )  # fmt: skip
