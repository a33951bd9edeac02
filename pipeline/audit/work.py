"""Rows of stores in Parquet files of a work directory, for joins with bounded memory.

    <work>/<table>/<task>.parquet    records, wanted, keys, units, entries (`pipeline.rows.parquet_rows`)
    <work>/done/<task>.json          request and outline of a task, sizes and times of its files; written last
    <work>/compared.json             what the joins found, and of which rows and code; written after them

Each task reads some files of one store and writes its rows itself, batch by batch. A resumed run skips a task that is
done, has the same request, and whose files are unchanged (`resume`). The request includes where the log begins, which
topics were deleted and how many slots an index has, since these change the rows of equal bytes. A task that dies leaves
nothing that looks done. Rows of tasks that are no longer planned are removed. The joins are repeated only if rows, the
facts of the stores, or the code differ.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tornpage.pipeline.audit.index_compare import IndexSuspicion
from tornpage.pipeline.audit.stores import StoreFacts, StorePlan
from tornpage.pipeline.audit.suspicions import Suspicion
from tornpage.pipeline.rows.columns import LogBatch, QueueNumbers
from tornpage.pipeline.rows.index_reading import IndexPartition, IndexRow, read_index
from tornpage.pipeline.rows.log_reading import read_log
from tornpage.pipeline.rows.outline import LogPartition, LogRow, QueuePartition, QueueRow
from tornpage.pipeline.rows.outputs import whole
from tornpage.pipeline.rows.parquet_rows import (
    TABLES,
    RowWriters,
    plain_batch,
    records_batch,
    units_batch,
    wanted_batch,
)
from tornpage.pipeline.rows.queue_reading import read_queue
from tornpage.pipeline.spark.agreement import versions

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "Comparison", "Outline", "WorkError", "WorkTask", "do_task", "keep_comparison", "kept_comparison", "open_work",
    "outlines", "plan_tasks",
]  # fmt: skip

TASK_BYTES = 32 << 20
"""One task reads small files of a store until they have this many bytes together."""

_FORMAT = 1
_COMPARED = "compared.json"
_ROWS = {"log": LogRow, "queue": QueueRow, "index": IndexRow}
Part = LogPartition | QueuePartition | IndexPartition


class WorkError(RuntimeError):
    """The work directory cannot be used; the message is one line with the remedy."""


@dataclass(frozen=True, slots=True)
class WorkTask:
    """The files of one store that one task reads; `name` is unique."""

    kind: str
    store: int
    name: str
    parts: tuple[Part, ...]

    @property
    def asked(self) -> str:
        """A digest of everything that rows depend on except the bytes of the files."""
        return hashlib.sha256(repr(self.parts).encode(errors="surrogateescape")).hexdigest()

    def fingerprint(self) -> list[list[int]]:
        """Return size and time of each file now; unchanged ones need no second read."""
        found = []
        for part in self.parts:
            try:
                status = _path(part).stat()
            except OSError:
                found.append([-1, -1])
                continue
            found.append([status.st_size, status.st_mtime_ns])
        return found


@dataclass(frozen=True, slots=True)
class Outline:
    """The outline rows of one store, in the order of its files."""

    log: list[LogRow]
    queues: list[QueueRow]
    index: list[IndexRow]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the joins of all stores found.

    `reused` names topics that were deleted and created again: number of the store, topic, and the physical offset of
    the first record of the new topic.
    """

    queues: list[Suspicion]
    index: list[IndexSuspicion]
    reused: list[tuple[int, str, int]]


def plan_tasks(plan: StorePlan) -> list[WorkTask]:
    """Return the tasks of one store: a log file each, small files together."""
    kinds: dict[str, Sequence[Part]] = {"log": plan.log_parts, "queue": plan.queue_parts, "index": plan.index.readable}
    tasks: list[WorkTask] = []
    for kind, parts in kinds.items():
        groups: list[list[Part]] = []
        room = 0
        for part in parts:
            size = _size(part)
            if not groups or size > room:
                groups.append([])
                room = TASK_BYTES
            groups[-1].append(part)
            room -= size
        for number, group in enumerate(groups):
            tasks.append(WorkTask(kind, plan.number, f"{plan.number:05}-{kind}-{number:07}", tuple(group)))
    return tasks


def open_work(directory: Path, plans: Sequence[StorePlan], *, resume: bool, overwrite: bool) -> None:
    """Prepare a work directory.

    Raises WorkError if it has content and neither `resume` nor `overwrite` is set, or if it belongs to other stores.
    """
    stores = {"format": _FORMAT, "stores": [os.path.abspath(plan.view.store_dir) for plan in plans]}
    for plan in plans:
        if directory.resolve().is_relative_to(plan.view.store_dir.resolve()):
            raise WorkError(f"{directory} lies in the store {plan.name}; give a directory outside")
    said = directory / "stores.json"
    try:
        if directory.exists() and any(directory.iterdir()):
            is_ours = said.is_file() and (directory / "done").is_dir()
            if not is_ours:
                raise WorkError(f"{directory} has other content; give a new or empty directory")
            if not (resume or overwrite):
                raise WorkError(f"{directory} has rows of an audit; give --resume, --overwrite or another directory")
            if overwrite:
                for name in (*TABLES, "done", _COMPARED, said.name):
                    _remove(directory / name)
            elif json.loads(said.read_text()) != stores:
                raise WorkError(f"{directory} has rows of other stores or of another version; give --overwrite")
        for name in (*TABLES, "done"):
            (directory / name).mkdir(parents=True, exist_ok=True)
        _remove_others(directory, {task.name for plan in plans for task in plan_tasks(plan)})
        said.write_text(json.dumps(stores))
    except OSError as error:
        raise WorkError(f"cannot write to {directory}: {error.strerror}; give another directory") from error
    except (ValueError, RecursionError) as error:
        raise WorkError(f"{said} is damaged; give --overwrite") from error


def do_task(task: WorkTask, directory: Path) -> bool:
    """Read the files of a task and write their rows; return False if that was done before.

    Raises OSError.
    """
    done = directory / "done" / f"{task.name}.json"
    asked, before = task.asked, task.fingerprint()
    marker = _marker(done)
    if marker.get("asked") == asked and marker.get("files") == before:
        return False
    done.unlink(missing_ok=True)
    rows: list[tuple[Any, ...]] = []
    with RowWriters(directory, task.name) as writers:
        numbers = QueueNumbers()
        for part in task.parts:
            for said in _read(part, numbers):
                if isinstance(said, LogRow | QueueRow | IndexRow):
                    rows.append(tuple(said))
                elif isinstance(said, LogBatch):
                    writers.write("records", records_batch(task.store, said.records, numbers))
                    writers.write("wanted", wanted_batch(task.store, said.wanted, numbers))
                    writers.write("keys", plain_batch(task.store, said.keys, ("offset", "hash", "timestamp", "place")))
                elif task.kind == "queue":
                    writers.write("units", units_batch(task.store, said, numbers))
                else:
                    names = ("offset", "hash", "seconds", "file", "number")
                    writers.write("entries", plain_batch(task.store, said, names))
    with whole(done) as unfinished:
        unfinished.write_text(json.dumps({"asked": asked, "files": before, "rows": rows}))
    return True


def outlines(directory: Path, tasks: Sequence[WorkTask]) -> dict[int, Outline]:
    """Return the outline of each store."""
    found: dict[int, Outline] = {}
    for task in tasks:
        outline = found.setdefault(task.store, Outline([], [], []))
        rows = json.loads((directory / "done" / f"{task.name}.json").read_text())["rows"]
        kept: dict[str, list[Any]] = {"log": outline.log, "queue": outline.queues, "index": outline.index}
        kept[task.kind] += [_ROWS[task.kind](*row) for row in rows]
    return found


def keep_comparison(
    comparison: Comparison, directory: Path, tasks: Sequence[WorkTask], facts: Sequence[StoreFacts]
) -> None:
    """Write what the joins found, and a digest of what it depends on. Raises OSError."""
    document = {"of": _digest(directory, tasks, facts), **asdict(comparison)}
    with whole(directory / _COMPARED) as unfinished:
        unfinished.write_text(json.dumps(document))


def kept_comparison(directory: Path, tasks: Sequence[WorkTask], facts: Sequence[StoreFacts]) -> Comparison | None:
    """Return what earlier joins found on these rows with this code, or None without them."""
    said = _marker(directory / _COMPARED)
    if said.get("of") != _digest(directory, tasks, facts):
        return None
    return Comparison(
        [Suspicion(**each) for each in said["queues"]],
        [IndexSuspicion(**each) for each in said["index"]],
        [(number, topic, at) for number, topic, at in said["reused"]],
    )


def _digest(directory: Path, tasks: Sequence[WorkTask], facts: Sequence[StoreFacts]) -> str:
    """Return a digest of the finished tasks, of the facts about the stores, and of the code."""
    digest = hashlib.sha256(repr(sorted(versions().items())).encode())
    for task in tasks:
        digest.update((directory / "done" / f"{task.name}.json").read_bytes())
    digest.update(repr(facts).encode(errors="surrogateescape"))
    return digest.hexdigest()


def _marker(done: Path) -> dict[str, Any]:
    """Return the marker of a task, empty if the task is not done or its marker is torn."""
    try:
        said = json.loads(done.read_text())
    except (FileNotFoundError, ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _remove_others(directory: Path, names: set[str]) -> None:
    """Remove the rows of other tasks: their files are no longer in the store."""
    patterns = ("done/*.json", *(f"{table}/*.parquet" for table in TABLES))
    for path in (path for pattern in patterns for path in list(directory.glob(pattern))):
        if path.stem not in names:
            path.unlink()


def _read(part: Part, numbers: QueueNumbers) -> Iterator[LogBatch | NDArray[Any] | LogRow | QueueRow | IndexRow]:
    if isinstance(part, LogPartition):
        return read_log(part, numbers)
    return read_queue(part, numbers) if isinstance(part, QueuePartition) else read_index(part)


def _path(part: Part) -> Path:
    return part.file.path if isinstance(part, IndexPartition) else part.path


def _size(part: Part) -> int:
    return part.file.size_bytes if isinstance(part, IndexPartition) else part.size_bytes


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
