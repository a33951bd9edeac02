"""Rebuild queues, the index or both in a store, from its sound log; the old ones are kept.

1. The log is not changed. A store whose log is damaged, or has records with wrong header fields, is refused.
2. The new files are made durable in `STORE/rebuild.unfinished` first.
3. The old directories move to `STORE/backup.N`, and the new ones get their names. After an interruption between the two
   a directory can be missing; it is then in the backup, and the new one in `rebuild.unfinished`.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tornpage.pipeline.audit.audit import StoreAudit, audit_rows, audit_store
from tornpage.pipeline.audit.small_files import deleted_topics
from tornpage.pipeline.audit.store_rows import StoreRows, bytes_to_read, read_store
from tornpage.pipeline.audit.stores import StorePlan, plan_store
from tornpage.pipeline.repairing.files import make_durable
from tornpage.pipeline.repairing.index import write_index
from tornpage.pipeline.repairing.plan import RepairPlan, RepairRefused, plan_repair, refuse_states
from tornpage.pipeline.repairing.queues import write_queues
from tornpage.pipeline.repairing.salvage import Salvage, plan_salvage
from tornpage.properties.decode.consumequeue import UNIT_BYTES
from tornpage.properties.judge.shape import SettingsOverride

__all__ = ["PARTS", "RebuildDone", "rebuild"]

PARTS = ("queues", "index", "all")
Part = Literal["queues", "index", "all"]
_UNFINISHED = "rebuild.unfinished"
_FLOCK = "hhqqi4x"  # struct flock of Linux with 64-bit offsets: type, whence, start, length, pid
_DERIVED_FLOOR = "config/derivedFloor"


@dataclass(frozen=True, slots=True)
class RebuildDone:
    """The audits before and after, counts of what was made, and the backup."""

    before: StoreAudit
    audit: StoreAudit
    figures: dict[str, int]
    backup: Path


def rebuild(
    store_dir: str | os.PathLike[str],
    part: Part,
    given: SettingsOverride,
    *,
    tell: Callable[[str], object] = lambda _: None,
    progress: Callable[[int, int], None] = lambda read_bytes, total_bytes: None,
) -> RebuildDone:
    """Rebuild a part of a store in place.

    Raises properties.inspect.InspectError and RepairRefused.
    """
    numbers = given.numbers
    sizes = {"file_bytes": numbers.get("mappedFileSizeCommitLog"), "slots": numbers.get("maxHashSlotNum")}
    store = plan_store(0, store_dir, **sizes, drops_joined=given.drops_joined)
    total_bytes = bytes_to_read(store)
    try:
        with _locked(store):
            rows = read_store(store, lambda read_bytes: progress(read_bytes, total_bytes))
            before, facts = audit_rows(store, rows)
            refuse_states(store, facts, before)
            _refuse_damaged_log(before)
            salvage = plan_salvage(
                store,
                rows,
                facts,
                (),
                file_units=max(store.queue_file_bytes // UNIT_BYTES, 1),
                deleted=deleted_topics(store.name, store.view)[0],
                with_quarantine=False,
            )
            _refuse_wrong_records(salvage)
            rows = replace(rows, wanted=salvage.wanted, keys=salvage.keys, records=salvage.records)
            unfinished = store.view.store_dir / _UNFINISHED
            plan = plan_repair(store, rows, facts, before, unfinished, given, salvage)
            figures = _make(plan, rows, part, unfinished, tell)
            backup = _exchange(store.view.store_dir, unfinished, part)
    except OSError as error:
        where = error.filename or store.name
        raise RepairRefused(f"cannot rebuild {part}: {where}: {error.strerror}; check permissions and room") from error
    return RebuildDone(before, audit_store(store_dir, **sizes, drops_joined=given.drops_joined), figures, backup)


@contextmanager
def _locked(store: StorePlan) -> Iterator[None]:
    """Hold the lock of a store, so that no store opens it meanwhile. Raises RepairRefused."""
    path = store.view.store_dir / "lock"
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0))
    except OSError:
        os.close(fd)
        raise RepairRefused(f"{store.name} is open; close the store first") from None
    try:
        yield
    finally:
        os.close(fd)


def _refuse_damaged_log(found: StoreAudit) -> None:
    for each in found.findings:
        if each.code.startswith("CL_") and each.severity != "note":
            raise RepairRefused(
                f"the log is damaged ({each.code} in {each.file}), and queues and index are made from it; make a "
                "mended copy with --repair-to"
            )


def _refuse_wrong_records(salvage: Salvage) -> None:
    wrong = len(salvage.corrections) + len(salvage.numbering.without_place)
    if wrong:
        raise RepairRefused(
            f"{wrong:,} records of the log state a wrong queue or queue offset; make a mended copy with --repair-to"
        )


def _make(
    plan: RepairPlan, rows: StoreRows, part: Part, directory: Path, tell: Callable[[str], object]
) -> dict[str, int]:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    figures: dict[str, int] = {}
    if part != "index":
        tell("make the consume queues")
        names = {
            (file.topic, file.queue_id): file.path.parent.relative_to(plan.store.view.store_dir / "consumequeue")
            for file in plan.store.queue_files
        }
        queues, units = write_queues(
            directory / "consumequeue",
            rows,
            log_min=plan.facts.log_min,
            file_bytes=plan.queue_file_bytes,
            delays_ms=plan.delays_ms,
            names=names,
        )
        (directory / "consumequeue").mkdir(exist_ok=True)
        figures |= {"made_queues": queues, "made_units": units}
    if part != "queues":
        if plan.index is None:
            shutil.rmtree(directory)
            raise RepairRefused("how many slots an index file has is not known; give --broker-config")
        tell("make the index")
        figures["made_index_files"] = write_index(directory / "index", rows.keys, plan.index)[0]
        (directory / "index").mkdir(exist_ok=True)
    tell("make it durable")
    make_durable(directory)
    return figures


def _exchange(store_dir: Path, made: Path, part: Part) -> Path:
    """Move the old directories to a backup, and name the new ones; return the backup."""
    backup = next(path for n in range(2**20) if not os.path.lexists(path := store_dir / f"backup.{n}"))
    backup.mkdir()
    for name in ("consumequeue", "index"):
        if not (made / name).is_dir():
            continue
        if os.path.lexists(store_dir / name):
            (store_dir / name).rename(backup / name)
        (made / name).rename(store_dir / name)
    if (store_dir / _DERIVED_FLOOR).exists():
        (store_dir / _DERIVED_FLOOR).rename(backup / "derivedFloor")
    made.rmdir()
    for directory in (backup, store_dir):
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    return backup
