"""Decide how to repair a store, before anything is written."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tornpage.model.state import DELAYS_MS
from tornpage.pipeline.audit.audit import StoreAudit, audit_rows
from tornpage.pipeline.audit.small_files import DELETED_TOPICS, deleted_topics
from tornpage.pipeline.audit.store_rows import StoreRows, bytes_to_read, read_store
from tornpage.pipeline.audit.stores import StoreFacts, StorePlan, facts_of, plan_store
from tornpage.pipeline.repairing.pieces import quarantine_files, renamed
from tornpage.pipeline.repairing.salvage import Salvage, plan_salvage
from tornpage.pipeline.rows.columns import QueueKey
from tornpage.properties.decode.consumequeue import UNIT_BYTES
from tornpage.properties.decode.index import index_file_bytes
from tornpage.properties.decode.record import END_RESERVE_BYTES
from tornpage.properties.judge.rulings import counted
from tornpage.properties.judge.shape import SettingsOverride, delays_of

__all__ = [
    "IndexShape",
    "Prepared",
    "RepairPlan",
    "RepairRefused",
    "plan_repair",
    "prepare_repair",
    "refuse_states",
    "unfinished_of",
]

_DEFAULT_QUEUE_FILE_BYTES = 6_000_000
_ENTRIES_MIN = 2
"""Entry 0 of an index file is never used."""
_FILE_BYTES_MAX = 2**31 - 1
"""RocketMQ counts the bytes of these files in 32 bits."""
_LISTED_MAX = 10_000
"""Ranges and records of one kind in `repair.json`; the counts beside them are of all."""
_SHOWN_MAX = 5
_NOT_TAKEN_OVER = ("durableFloor", "derivedFloor", "derivedFloor.new", "deletedTopics.new")


class RepairRefused(RuntimeError):
    """A store cannot be repaired in this way; the message is one line with the remedy."""


@dataclass(frozen=True, slots=True)
class IndexShape:
    """Slots and room for entries (including entry 0) of every index file."""

    slots: int
    entries_max: int


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """The plan of a repair; `salvage` is the log of the copy.


    `delays_ms` is the delay of each queue of delayed messages. `bit_maps` counts, per queue (topic/number), the units
    that lose theirs. `index` is None if no index will be made. `notes` give the reasons. `log_file_bytes` is the size
    of the copy's log files if it is another one than the store's, else None.
    """

    store: StorePlan
    facts: StoreFacts
    target: Path
    salvage: Salvage
    queue_file_bytes: int
    delays_ms: Mapping[QueueKey, int]
    index: IndexShape | None
    config_files: tuple[str, ...]
    set_aside: tuple[str, ...]
    deleted: Mapping[str, int]
    bit_maps: Mapping[str, int]
    has_floor: bool
    notes: tuple[str, ...]
    log_file_bytes: int | None = None

    @property
    def kept_records(self) -> int:
        """Return how many valid records stay."""
        return len(self.salvage.records)

    @property
    def log_bytes(self) -> int:
        """Return the length of the log of the copy."""
        return self.salvage.end - self.salvage.layout.bases[0]

    def document(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        salvage = self.salvage
        return {
            "store": self.store.name,
            "target": os.fsencode(self.target).decode("utf-8", "replace"),
            "logBegin": salvage.layout.bases[0],
            "logEnd": salvage.end,
            "records": self.kept_records,
            "recordBytes": int(salvage.records["size"].sum()),
            "fillers": len(salvage.fillers),
            "fillerBytes": salvage.lost_bytes,
            "lostMessages": salvage.losses.messages,
            "lost": [
                {"topic": each.topic, "queueId": each.queue_id, "first": each.first, "last": each.last}
                for each in salvage.lost[:_LISTED_MAX]
            ],
            "corrected": [
                {"offset": each.offset, "before": list(each.before), "after": list(each.after)}
                for each in salvage.corrections[:_LISTED_MAX]
            ],
            "correctedRecords": len(salvage.corrections),
            "withoutQueue": salvage.numbering.without_place[:_LISTED_MAX],
            "withoutQueueRecords": len(salvage.numbering.without_place),
            "reusedTopics": dict(salvage.numbering.reused),
            "misnamedFiles": {each.file: f"commitlog/{each.base_offset:020}" for each in salvage.misnamed},
            "restoredRecords": salvage.restored,
            "leftInQuarantine": salvage.left_in_quarantine,
            "index": None if self.index is None else {"slots": self.index.slots, "entries": self.index.entries_max},
            "configFiles": list(self.config_files),
            "setAside": list(self.set_aside),
            "bitMapsLeftOut": dict(self.bit_maps),
            "notes": list(self.notes),
            **({} if self.log_file_bytes is None else {"logFileBytes": self.log_file_bytes}),
        }

    def lines(self) -> list[str]:
        """Return the plan for people, a sentence each."""
        salvage = self.salvage
        files = len([base for base in salvage.layout.bases if base < salvage.end]) or 1
        said = [
            f"copy {counted(self.kept_records, 'record')} in {counted(files, 'log file')} to {self.target}, each "
            "at its offset"
        ]
        if self.log_file_bytes is not None:
            said = [f"copy {counted(self.kept_records, 'record')} to {self.target}, in their order"]
        said += [
            f"read {each.file} as commitlog/{each.base_offset:020}, which its records state"
            for each in salvage.misnamed
        ]
        if salvage.fillers:
            said.append(
                f"fill {salvage.lost_bytes:,} bytes of lost records with {counted(len(salvage.fillers), 'filler')}"
            )
        if salvage.losses.messages:
            said.append(f"report {counted(salvage.losses.messages, 'lost message')}: {self._lost_text()}")
        if salvage.corrections:
            said.append(
                f"correct topic, queue, queue offset or flags of {counted(len(salvage.corrections), 'record')}, "
                "by their queues "
                "and neighbours"
            )
        if salvage.numbering.without_place:
            said.append(
                f"keep {counted(len(salvage.numbering.without_place), 'record')} in the log without a place in a "
                "queue: another "
                "record has their number"
            )
        for topic, offset in sorted(salvage.numbering.reused.items()):
            said.append(f"take the records of {topic} before offset {offset} for those of a deleted topic")
        if salvage.restored or salvage.left_in_quarantine:
            said.append(
                f"put back {counted(salvage.restored, 'record')} of quarantine/; {salvage.left_in_quarantine:,} "
                "stay there, "
                "since later records have their place"
            )
        said.append("make all consume queues from the log")
        if self.index is not None:
            said.append(f"rebuild the index from the log, with {self.index.slots:,} slots a file")
        said.append("write a matching checkpoint")
        if self.log_file_bytes is not None:
            said.append(
                f"convert the log to files of {self.log_file_bytes:,} bytes: records keep their order, queues and "
                "queue offsets, and get other physical offsets and message ids"
            )
        if self.config_files:
            said.append(f"take over {', '.join(self.config_files)}")
        if self.set_aside:
            said.append(f"keep {', '.join(self.set_aside)} aside, since it cannot be read")
        if self.bit_maps:
            queues = ", ".join(f"{queue} ({units:,})" for queue, units in sorted(self.bit_maps.items()))
            said.append(
                f"leave out the bit maps of {counted(sum(self.bit_maps.values()), 'unit')}, which are not in the "
                f"log: {queues}; "
                "a broker filters these messages by their properties"
            )
        return [*said, *self.notes]

    def _lost_text(self) -> str:
        lost = self.salvage.lost
        shown = [
            f"{each.topic}/{each.queue_id} {each.first}" + (f" to {each.last}" if each.last > each.first else "")
            for each in lost[:_SHOWN_MAX]
        ]
        more = f", and {len(lost) - _SHOWN_MAX:,} more ranges" if len(lost) > _SHOWN_MAX else ""
        return ", ".join(shown) + more


@dataclass(frozen=True, slots=True)
class Prepared:
    """A plan, its rows, and the audit of the store before the repair."""

    plan: RepairPlan
    rows: StoreRows
    audit: StoreAudit


def prepare_repair(
    store_dir: str | os.PathLike[str],
    target: Path,
    given: SettingsOverride,
    *,
    with_quarantine: bool = False,
    log_file_bytes: int | None = None,
    progress: Callable[[int, int], None] = lambda read_bytes, total_bytes: None,
) -> Prepared:
    """Read and audit a store, and decide how to repair a copy of it.

    With `with_quarantine`, records of the store's `quarantine/` go back where their place in the log is free. With
    `log_file_bytes` the log of the copy has files of that size, and its records get other physical offsets. `progress`
    receives how many bytes of how many are read. Cost: memory for one row per record, unit and key, some 600 bytes a
    record without keys. Raises properties.inspect.InspectError and RepairRefused.
    """
    numbers = given.numbers
    store = plan_store(
        0,
        store_dir,
        file_bytes=numbers.get("mappedFileSizeCommitLog"),
        slots=numbers.get("maxHashSlotNum"),
        drops_joined=given.drops_joined,
    )
    _refuse_places(store, target)
    total_bytes = bytes_to_read(store)
    rows = read_store(store, lambda read_bytes: progress(read_bytes, total_bytes))
    audit, facts = audit_rows(store, rows)
    refuse_states(store, facts, audit)
    read, misnamed = renamed(store)
    if misnamed:
        rows = read_store(read)
        facts = facts_of(read, rows.log_outline, rows.queue_outline)
    queue_file_bytes = store.queue_file_bytes or _queue_file_bytes(given)
    try:
        salvage = plan_salvage(
            read,
            rows,
            facts,
            misnamed,
            file_units=queue_file_bytes // UNIT_BYTES,
            deleted=deleted_topics(store.name, store.view)[0],
            with_quarantine=with_quarantine,
        )
    except OSError as error:
        raise RepairRefused(f"the log of {store.name} cannot be read: {error.strerror or error}") from error
    rows = replace(rows, wanted=salvage.wanted, keys=salvage.keys, records=salvage.records)
    converted = log_file_bytes if log_file_bytes != store.view.file_bytes else None
    _refuse_conversion(store, salvage, converted)
    plan = plan_repair(read, rows, facts, audit, target, given, salvage, log_file_bytes=converted)
    return Prepared(plan, rows, audit)


def plan_repair(
    store: StorePlan,
    rows: StoreRows,
    facts: StoreFacts,
    found: StoreAudit,
    target: Path,
    given: SettingsOverride,
    salvage: Salvage,
    *,
    log_file_bytes: int | None = None,
) -> RepairPlan:
    """Decide what to do with the rows and findings of a store.

    `rows` are those of the copy. Raises RepairRefused.
    """
    queue_file_bytes = store.queue_file_bytes or _queue_file_bytes(given)
    notes: list[str] = []
    config_files, set_aside = _config_files(store, found)
    index = _index_shape(store, given.numbers)
    if index is None and len(rows.keys):
        notes.append(
            "make no index, since its number of slots is unknown (--broker-config); tornpage builds it at the next open"
        )
    if salvage.losses.unfillable:
        notes.append(
            f"leave {counted(len(salvage.losses.unfillable), 'stretch', 'stretches')} that are too short for a record"
        )
    plan = RepairPlan(
        store,
        facts,
        target,
        salvage,
        queue_file_bytes,
        _delays(rows, given),
        index,
        config_files,
        set_aside,
        deleted_topics(store.name, store.view)[0],
        _bit_maps(rows, salvage.end),
        store.view.floor is not None,
        tuple(notes),
        log_file_bytes,
    )
    _refuse_full_disk(plan, rows)
    return plan


def unfinished_of(target: Path) -> Path:
    """Return the path of a copy until it is complete."""
    return target.with_name(f"{target.name}.unfinished")


def _refuse_places(store: StorePlan, target: Path) -> None:
    source = store.view.store_dir.resolve()
    if not target.name or not target.parent.is_dir():
        raise RepairRefused(f"there is no directory {target.parent} for the copy; make it, or give another place")
    resolved = target.parent.resolve() / target.name
    if resolved.is_relative_to(source) or source.is_relative_to(resolved):
        raise RepairRefused(f"{target} and the store {store.name} overlap: neither may be inside the other")
    if os.path.lexists(target):
        raise RepairRefused(f"{target} already exists; give a directory that does not exist")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise RepairRefused(f"cannot write to {target.parent}; give another place for the copy")


def refuse_states(store: StorePlan, facts: StoreFacts, found: StoreAudit) -> None:
    """Refuse a store that is open, changes or cannot be read. Raises RepairRefused."""
    if store.view.live:
        raise RepairRefused(f"{store.name} is open; close the store first")
    if facts.may_move:
        raise RepairRefused(f"{store.name} changed while it was read; repair it while no process writes to it")
    closed = [each for each in found.findings if each.code in ("CL_NO_ACCESS", "CL_FILE_GONE")]
    if closed:
        raise RepairRefused(f"{closed[0].file} cannot be read; repair the store as a user who can read it")
    if not store.view.files:
        raise RepairRefused(f"{store.name} has no log files, from which everything else is rebuilt; restore them first")


def _refuse_conversion(store: StorePlan, salvage: Salvage, log_file_bytes: int | None) -> None:
    """Refuse a size without room for a record, and a store with quarantined bytes.

    Raises RepairRefused.
    """
    if log_file_bytes is None:
        return
    sizes = [*salvage.records["size"].tolist(), *(each.size_bytes for each in salvage.fillers)]
    needed = max(sizes, default=0) + END_RESERVE_BYTES
    if needed > log_file_bytes:
        raise RepairRefused(
            f"a record of {store.name} needs a log file of {needed:,} bytes; give --log-file-bytes {needed} or more"
        )
    if quarantine_files(store.view.store_dir):
        raise RepairRefused(
            f"{store.name} has quarantine/, whose files are named by physical offsets; move it away, or leave "
            "--log-file-bytes out"
        )


def _refuse_full_disk(plan: RepairPlan, rows: StoreRows) -> None:
    log_bytes = plan.log_bytes + sum(hole.end - hole.start for hole in plan.salvage.layout.holes if not hole.is_tail)
    entry_bytes = 20 * len(rows.keys) + (4 * plan.index.slots if plan.index is not None else 0)
    if plan.log_file_bytes is not None:
        log_bytes += 2 * plan.log_bytes + 2 * plan.log_file_bytes
    needed = log_bytes + UNIT_BYTES * len(rows.wanted) + entry_bytes + (1 << 20)
    free = shutil.disk_usage(plan.target.parent).free
    if free < needed:
        raise RepairRefused(f"the copy takes {needed:,} bytes, {plan.target.parent} has {free:,} free; make room")


def _config_files(store: StorePlan, found: StoreAudit) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return which files of `config` are copied, and which unreadable ones are kept aside."""
    directory = store.view.store_dir / "config"
    unreadable = {each.file for each in found.findings if each.code == "CFG_UNREADABLE"}
    unreadable |= {f"{name}.bak" for name in unreadable}
    if any(each.code == "CFG_DELETED_UNREADABLE" for each in found.findings):
        unreadable.add(DELETED_TOPICS)
    names = sorted(path.name for path in directory.iterdir() if path.is_file()) if directory.is_dir() else []
    labels = [f"config/{name}" for name in names if name not in _NOT_TAKEN_OVER and not name.endswith(".tmp")]
    return tuple(each for each in labels if each not in unreadable), tuple(
        each for each in labels if each in unreadable
    )


def _bit_maps(rows: StoreRows, end_offset: int) -> dict[str, int]:
    """Return by queue how many kept units refer to the extension."""
    units = rows.units[(rows.units["address"] != 0) & (rows.units["offset"] < end_offset)]
    numbers, counts = np.unique(units["queue"], return_counts=True)
    keys = [rows.numbers.keys[number] for number in numbers.tolist()]
    return {f"{topic}/{queue}": count for (topic, queue), count in zip(keys, counts.tolist(), strict=True)}


def _index_shape(store: StorePlan, settings: Mapping[str, int]) -> IndexShape | None:
    """Return the shape from the settings, or that of most index files.

    Raises RepairRefused for a shape that no broker allows.
    """
    if "maxHashSlotNum" in settings and "maxIndexNum" in settings:
        slots, entries = settings["maxHashSlotNum"], settings["maxIndexNum"]
        if entries < _ENTRIES_MIN or index_file_bytes(slots=slots, entries=entries) > _FILE_BYTES_MAX:
            raise RepairRefused(
                f"no index file has {slots} slots and {counted(entries, 'entry', 'entries')}; correct --broker-config"
            )
        return IndexShape(slots, entries)
    shapes = Counter(IndexShape(part.slots, part.entries_max) for part in store.index.parts if part.slots is not None)
    return max(shapes, key=lambda shape: (shapes[shape], shape.slots), default=None)


def _queue_file_bytes(given: SettingsOverride) -> int:
    """Return the configured size of a queue file, in whole units.

    Raises RepairRefused for a size that no broker allows.
    """
    stated = given.numbers.get("mappedFileSizeConsumeQueue", _DEFAULT_QUEUE_FILE_BYTES)
    if stated > _FILE_BYTES_MAX:
        raise RepairRefused(f"no queue file has {stated} bytes; correct mappedFileSizeConsumeQueue in --broker-config")
    return stated + -stated % UNIT_BYTES


def _delays(rows: StoreRows, given: SettingsOverride) -> dict[QueueKey, int]:
    """Return the delay of each queue of the schedule topic.

    It is that of the settings, or that of most of its units.
    """
    stated = None if given.delay_level is None else delays_of(given.delay_level, source="messageDelayLevel")
    table = stated or DELAYS_MS
    wanted = rows.wanted[rows.wanted["is_delayed"]]
    delays: dict[QueueKey, int] = {}
    for number in np.unique(wanted["queue"]).tolist():
        key = rows.numbers.keys[number]
        delays[key] = table[min(max(key[1], 0), len(table) - 1)]
        if stated is not None:
            continue
        units = rows.units[rows.units["queue"] == number]
        mine = wanted[wanted["queue"] == number]
        _, at, there = np.intersect1d(units["offset"], mine["offset"], return_indices=True)
        said = units["tags_code"][at] - mine["timestamp"][there]
        said, counts = np.unique(said[units["has_code"][at] & (said >= 0) & (said % 1000 == 0)], return_counts=True)
        if len(said):
            delays[key] = int(said[np.argmax(counts)])
    return delays
