"""Make the planned copy of a store, audit it, and then give it its name."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tornpage.pipeline.audit.audit import StoreAudit, audit_store
from tornpage.pipeline.audit.small_files import DELETED_TOPICS
from tornpage.pipeline.audit.store_rows import StoreRows
from tornpage.pipeline.repairing.files import copy_bytes, copy_small, make_durable, write_file
from tornpage.pipeline.repairing.index import write_index
from tornpage.pipeline.repairing.log_writing import set_aside, write_log
from tornpage.pipeline.repairing.pieces import quarantine_files
from tornpage.pipeline.repairing.plan import RepairPlan, RepairRefused, unfinished_of
from tornpage.pipeline.repairing.queues import write_queues
from tornpage.pipeline.repairing.resizing import convert_log
from tornpage.pipeline.rows.columns import KEYS, LogBatch, QueueKey, QueueNumbers, joined
from tornpage.pipeline.rows.log_reading import read_log

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
            file_bytes = plan.log_file_bytes or plan.store.view.file_bytes
            audit = audit_store(
                copy,
                file_bytes=file_bytes,
                slots=slots,
                drops_joined=any(part.drops_joined for part in plan.store.log_parts),
            )
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
    view, salvage = plan.store.view, plan.salvage
    write_log(copy / "commitlog", salvage, tell)
    _refuse_changed(plan)
    tell("keep what no record of the copy has")
    aside = set_aside(copy / "quarantine", salvage) + _keep_quarantine(plan, copy)
    keys = rows.keys if plan.index is None else _keys(plan, rows, copy)
    file_bytes, end = view.file_bytes, salvage.end
    deleted = {**plan.deleted, **salvage.numbering.reused} if salvage.numbering.reused else {}
    if plan.log_file_bytes is not None:
        if aside:
            raise RepairRefused(
                f"{view.store_dir} has damaged bytes that the copy keeps in quarantine/, named by physical offsets; "
                "repair it without --log-file-bytes"
            )
        tell(f"convert the log to files of {plan.log_file_bytes} bytes")
        file_bytes = plan.log_file_bytes
        moved = convert_log(copy, file_bytes=view.file_bytes, new_file_bytes=file_bytes)
        rows, keys, end = replace(rows, wanted=moved.rows(rows.wanted)), moved.rows(keys), moved.end
        deleted = {topic: moved.bound(offset) for topic, offset in (deleted or plan.deleted).items()}
    tell("build the consume queues")
    queues, units = write_queues(
        copy / "consumequeue",
        rows,
        log_min=plan.facts.log_min,
        file_bytes=plan.queue_file_bytes,
        delays_ms=plan.delays_ms,
        names=_names(plan),
    )
    if plan.store.has_queues:
        (copy / "consumequeue").mkdir(exist_ok=True)
    index_files, indexed_ms = 0, 0
    if plan.index is not None:
        tell("make the index")
        index_files, indexed_ms = write_index(copy / "index", keys, plan.index)
    last_ms = max(0, int(salvage.records["timestamp"][-1])) if len(salvage.records) else 0
    write_file(copy / "checkpoint", _CHECKPOINT.pack(last_ms, last_ms, min(indexed_ms, last_ms)))
    for label in plan.config_files:
        copy_small(view.store_dir / label, copy / label)
    for label in plan.set_aside:
        copy_small(view.store_dir / label, copy / "quarantine" / label)
    if deleted:
        write_file(copy / DELETED_TOPICS, _deleted(deleted))
    if plan.has_floor:
        write_file(copy / "config" / "durableFloor", _floor(end, file_bytes))
    return {
        "kept_records": plan.kept_records,
        "filler_records": len(salvage.fillers),
        "lost_messages": salvage.losses.messages,
        "corrected_records": len(salvage.corrections),
        "records_without_queue": len(salvage.numbering.without_place),
        "restored_records": salvage.restored,
        "quarantine_files": aside,
        "made_queues": queues,
        "made_units": units,
        "made_index_files": index_files,
    }


def _keys(plan: RepairPlan, rows: StoreRows, copy: Path) -> NDArray[Any]:
    """Return the keys of the copy.

    They are read from its log if a topic was corrected, because their hashes depend on the topic.
    """
    if all(each.before[0] == each.after[0] for each in plan.salvage.corrections):
        return rows.keys
    numbers, like = QueueNumbers(), plan.store.log_parts[0]
    parts = [
        replace(like, path=path, label=f"commitlog/{path.name}", base_offset=int(path.name))
        for path in sorted((copy / "commitlog").iterdir())
    ]
    batches = (said for part in parts for said in read_log(part, numbers) if isinstance(said, LogBatch))
    return joined((batch.keys for batch in batches), KEYS)


def _refuse_changed(plan: RepairPlan) -> None:
    for file in plan.store.view.files:
        status = file.path.stat()
        if (status.st_size, status.st_mtime_ns) != (file.size_bytes, file.mtime_ns):
            raise RepairRefused(
                f"{file.label} changed while it was copied; repair the store while no process writes to it"
            )


def _keep_quarantine(plan: RepairPlan, copy: Path) -> int:
    """Copy the quarantine of the store, unless all its records are back; return the files."""
    files = quarantine_files(plan.store.view.store_dir)
    if plan.salvage.restored and not plan.salvage.left_in_quarantine:
        return 0
    directory = copy / "quarantine"
    for file in files:
        directory.mkdir(exist_ok=True)
        number = next(n for n in range(len(files) + 2**20) if not (directory / f"{file.offset:020}.{n}").exists())
        target = directory / f"{file.offset:020}.{number}"
        copy_bytes(file.path, target, size=file.size_bytes, file_bytes=file.size_bytes)
    return len(files)


def _deleted(topics: Mapping[str, int]) -> bytes:
    """Return the list of deleted topics as our store keeps it (docs/format.md, section 14)."""
    entries = b"".join(
        struct.pack(">qh", offset, len(name.encode())) + name.encode() for name, offset in sorted(topics.items())
    )
    said = struct.pack(">8si", b"TPDELTP1", len(topics)) + entries
    return said + zlib.crc32(said).to_bytes(4, "big")


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
