"""Plan what to read from the directories of the stores; no large file is opened.

Tasks are tuples of parts: small files go together, large log files are split.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from tornpage.pipeline.readers.asking import Ask
from tornpage.pipeline.readers.conditions import Conditions
from tornpage.pipeline.readers.parts import CheckpointPart, IndexPart, LogPart, Part, QueuePart, Said
from tornpage.pipeline.readers.problems import Problem, from_error, from_findings
from tornpage.pipeline.readers.seams import part_starts
from tornpage.properties.decode.consumequeue import UNIT_BYTES, QueueFile, list_queues
from tornpage.properties.decode.index_files import list_index
from tornpage.properties.decode.store import StoreView, look

__all__ = ["log_parts", "plan", "together"]

TASK_BYTES = 64 * 1024 * 1024
TASK_PARTS = 256


def plan(ask: Ask) -> list[tuple[Part, ...]]:
    """Return the tasks in the order of stores and files."""
    plans = {
        "rocketmq-commitlog": _plan_log,
        "rocketmq-consumequeue": _plan_queues,
        "rocketmq-index": _plan_index,
        "rocketmq-checkpoint": _plan_checkpoint,
    }
    sized: list[tuple[Part, int]] = []
    problems: list[Problem] = []
    for store in ask.stores:
        sized += plans[ask.format](store, ask, problems)
    tasks = list(together(sized))
    if problems and ask.wants_problems:
        tasks.append((Said(tuple(problems)),))
    return tasks


def log_parts(store: str, view: StoreView, split_bytes: int) -> Iterator[tuple[LogPart, int]]:
    """Yield the parts of all log files of a store, with the number of bytes of each."""
    for file in view.files:
        end = min(file.size_bytes, view.file_bytes)
        starts = part_starts(end, split_bytes)
        for start, stop in zip(starts, (*starts[1:], None), strict=True):
            if end:
                part = LogPart(
                    store,
                    file.path,
                    file.label,
                    file.base_offset,
                    view.file_bytes,
                    start,
                    stop,
                    is_seam=start > 0,
                    is_live=view.live,
                )
                yield part, (end if stop is None else stop) - start


def _plan_log(store: str, ask: Ask, problems: list[Problem]) -> Iterator[tuple[Part, int]]:
    try:
        view = look(Path(store), file_bytes=ask.file_bytes)
    except OSError as error:
        problems.append(from_error(store, "commitlog", error))
        return
    problems += [each for each in from_findings(store, view.findings) if not each.code.startswith("CP_")]
    for part, size_bytes in log_parts(store, view, ask.split_bytes):
        end = part.start + size_bytes
        offsets = range(part.base_offset + part.start, part.base_offset + end)
        if ask.conditions is None or ask.conditions.may_have("offset", offsets):
            yield part, size_bytes


def _plan_queues(store: str, ask: Ask, problems: list[Problem]) -> Iterator[tuple[Part, int]]:
    files, _, closed = list_queues(Path(store)) if (Path(store) / "consumequeue").is_dir() else ([], [], [])
    problems += [from_error(store, label, error) for label, error in closed]
    last = {(file.topic, file.queue_id): file for file in files}
    for file in files:
        if ask.conditions is not None and not _may_have(ask.conditions, file):
            continue
        yield _queue_part(store, file, file is last[file.topic, file.queue_id]), file.size_bytes


def _may_have(conditions: Conditions, file: QueueFile) -> bool:
    """Return whether a unit of a queue file can fit the conditions."""
    units = range(file.base // UNIT_BYTES, -(-(file.base + file.size_bytes) // UNIT_BYTES))
    return (
        conditions.has_topic(file.topic)
        and conditions.may_have("queue_id", range(file.queue_id, file.queue_id + 1))
        and conditions.may_have("queue_offset", units)
    )


def _queue_part(store: str, file: QueueFile, is_last: bool) -> QueuePart:
    extension = Path(store) / "consumequeue_ext" / file.path.parent.relative_to(Path(store) / "consumequeue")
    return QueuePart(store, file.path, file.label, file.topic, file.queue_id, file.base, extension, is_last)


def _plan_index(store: str, ask: Ask, problems: list[Problem]) -> Iterator[tuple[Part, int]]:
    files, _, closed = list_index(Path(store))
    problems += [from_error(store, label, error) for label, error in closed]
    for file in files:
        yield IndexPart(store, file, ask.slots), file.size_bytes


def _plan_checkpoint(store: str, ask: Ask, problems: list[Problem]) -> Iterator[tuple[Part, int]]:
    yield CheckpointPart(store), 1


def together(sized: Iterable[tuple[Part, int]]) -> Iterator[tuple[Part, ...]]:
    """Yield tasks of neighbouring parts that are small together."""
    task: list[Part] = []
    size_bytes = 0
    for part, part_bytes in sized:
        if task and (size_bytes + part_bytes > TASK_BYTES or len(task) == TASK_PARTS):
            yield tuple(task)
            task, size_bytes = [], 0
        task.append(part)
        size_bytes += part_bytes
    if task:
        yield tuple(task)
