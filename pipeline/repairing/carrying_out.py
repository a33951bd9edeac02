"""Make the planned copy of a store, audit it, and then give it its name."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tornpage.pipeline.audit.audit import StoreAudit, audit_store
from tornpage.pipeline.audit.store_rows import StoreRows
from tornpage.pipeline.repairing.files import copy_bytes, copy_small, make_durable, write_file
from tornpage.pipeline.repairing.index import write_index
from tornpage.pipeline.repairing.plan import RepairPlan, RepairRefused, unfinished_of
from tornpage.pipeline.repairing.queues import write_queues
from tornpage.pipeline.rows.columns import QueueKey
from tornpage.properties.decode.files import FileSource

__all__ = ["RepairDone", "carry_out"]

_CHECKPOINT = struct.Struct(">qqq4072x")
_FLOOR = struct.Struct(">8sqq")
_FLOOR_BYTES = 512
REPORT = "repair.json"
"""The file of the copy with a report of the repair."""

Tell = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class RepairDone:
    """The audit of the copy, and counts of its content."""

    audit: StoreAudit
    figures: dict[str, int]


def carry_out(plan: RepairPlan, rows: StoreRows, *, tell: Tell = lambda _: None) -> RepairDone:
    """Make the copy; report each step to `tell`.

    A copy that is interrupted is removed if possible. After a kill or a power loss it keeps the name `….unfinished`,
    and the next attempt removes it. Raises RepairRefused, also if the copy would not audit clean.
    """
    try:
        with _unfinished(plan.target) as copy:
            figures = _make(plan, rows, copy, tell)
            tell("audit the copy")
            slots = None if plan.index is None else plan.index.slots
            audit = audit_store(copy, file_bytes=plan.store.view.file_bytes, slots=slots)
            if audit.verdict != "holds":
                worst = next(
                    each for each in audit.findings if each.severity != "note" or each.code == "IX_SLOTS_UNKNOWN"
                )
                raise RepairRefused(f"the copy does not audit clean ({worst.code} in {worst.file}); please report this")
            report = plan.document() | {"figures": figures}
            write_file(copy / REPORT, json.dumps(report, indent=2).encode())
            tell("make it durable")
            make_durable(copy)
            if os.path.lexists(plan.target):
                raise RepairRefused(f"{plan.target} was created meanwhile; give a directory that does not exist")
            copy.rename(plan.target)
            _sync_directory(plan.target.parent)
    except OSError as error:
        where = error.filename or plan.target
        raise RepairRefused(f"cannot make the copy: {where}: {error.strerror}; check place and room") from error
    return RepairDone(audit, figures)


@contextmanager
def _unfinished(target: Path) -> Iterator[Path]:
    """Yield a new directory for the copy, locked so that no other repair removes it."""
    copy = unfinished_of(target)
    _clear(copy)
    copy.mkdir()
    fd = os.open(copy, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield copy
    finally:
        os.close(fd)
        shutil.rmtree(copy, ignore_errors=True)  # it still exists only after an error


def _clear(copy: Path) -> None:
    """Remove the remains of a killed repair.

    Raises RepairRefused if a repair is running, or if the directory is not from a repair.
    """
    if not os.path.lexists(copy):
        return
    if not copy.is_dir() or copy.is_symlink():
        raise RepairRefused(f"{copy} already exists; move it")
    fd = os.open(copy, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RepairRefused(f"another repair is making {copy}; wait for it, or give another directory") from None
    finally:
        os.close(fd)
    shutil.rmtree(copy)


def _make(plan: RepairPlan, rows: StoreRows, copy: Path, tell: Tell) -> dict[str, int]:
    view, end = plan.store.view, plan.end.offset
    (copy / "commitlog").mkdir()
    for path, size in plan.log_files:
        tell(f"copy {path.name}")
        copy_bytes(path, copy / "commitlog" / path.name, size=size, file_bytes=view.file_bytes)
    _refuse_changed(plan)
    quarantined = _set_aside(plan, copy, tell) if plan.end.lost_records else 0
    tell("build the consume queues")
    queues, units = write_queues(
        copy / "consumequeue",
        rows,
        log_min=plan.facts.log_min,
        end_offset=end,
        file_bytes=plan.queue_file_bytes,
        delays_ms=plan.delays_ms,
        names=_names(plan),
    )
    if plan.store.has_queues:
        (copy / "consumequeue").mkdir(exist_ok=True)
    keys = rows.keys[rows.keys["offset"] < end]
    index_files, indexed_ms = 0, 0
    if plan.index is not None:
        tell("make the index")
        index_files, indexed_ms = write_index(copy / "index", keys, plan.index)
    kept = rows.records[rows.records["offset"] < end]
    last_ms = max(0, int(kept["timestamp"][-1])) if len(kept) else 0
    write_file(copy / "checkpoint", _CHECKPOINT.pack(last_ms, last_ms, min(indexed_ms, last_ms)))
    for label in plan.config_files:
        copy_small(view.store_dir / label, copy / label)
    for label in plan.set_aside:
        copy_small(view.store_dir / label, copy / "quarantine" / label)
    if plan.has_floor:
        write_file(copy / "config" / "durableFloor", _floor(end, view.file_bytes))
    return {
        "kept_records": plan.kept_records,
        "quarantined_records": plan.end.lost_records,
        "quarantine_files": quarantined,
        "made_queues": queues,
        "made_units": units,
        "made_index_files": index_files,
    }


def _refuse_changed(plan: RepairPlan) -> None:
    for file in plan.store.view.files:
        status = file.path.stat()
        if (status.st_size, status.st_mtime_ns) != (file.size_bytes, file.mtime_ns):
            raise RepairRefused(
                f"{file.label} changed while it was copied; repair the store while no process writes to it"
            )


def _set_aside(plan: RepairPlan, copy: Path, tell: Tell) -> int:
    """Copy the bytes after the cut, each file named by the offset at which they begin.

    Recovery of tornpage's store does the same.
    """
    target = copy / "quarantine"
    target.mkdir(exist_ok=True)
    made = 0
    for file in plan.store.view.files:
        start = max(0, plan.end.offset - file.base_offset)
        if start >= min(file.size_bytes, plan.store.view.file_bytes):
            continue
        with FileSource(file.path, size_bytes_max=file.size_bytes) as source:
            if source.next_nonzero(start) >= source.end:
                continue
        tell(f"keep what is after the cut in {file.name}")
        size = file.size_bytes - start
        copy_bytes(file.path, target / f"{file.base_offset + start:020}.0", start=start, size=size, file_bytes=size)
        made += 1
    return made


def _names(plan: RepairPlan) -> dict[QueueKey, Path]:
    """Return the directories of the queues: topic and queue id as on the disk."""
    return {
        (file.topic, file.queue_id): file.path.parent.relative_to(plan.store.view.store_dir / "consumequeue")
        for file in plan.store.queue_files
    }


def _floor(offset: int, file_bytes: int) -> bytes:
    said = _FLOOR.pack(b"TPFLOOR1", offset, file_bytes)
    return (said + zlib.crc32(said).to_bytes(4, "big")).ljust(_FLOOR_BYTES, b"\0")


def _sync_directory(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
