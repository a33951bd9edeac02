"""Plan what to read from the directories of the stores; no large file is opened.

Tasks are tuples of parts: small files go together, large log files are split. A task costs about 40 ms of processor
time in Spark, in its worker and at the seams of its parts, which is the cost of 150 MB of log. So large tables have few
tasks for each core.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tornpage.pipeline.readers.asking import SPLIT_BYTES, Ask
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
_TASKS_A_CORE = 2
_SHARE_BYTES_MAX = 1 << 30
"""Most bytes of a task of several parts, so that a lost worker loses about a second."""


def plan(ask: Ask, *, cores: int = 0) -> list[tuple[Part, ...]]:
    """Return the tasks in the order of stores and files.

    With `cores` a large table has about two tasks for each core, unless the option `splitBytes` is given. Without it
    tasks are as small as is useful on many cores.
    """
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
    tasks = list(_shared_out(sized, cores) if ask.split_bytes is None else together(sized))
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
    for part, size_bytes in log_parts(store, view, SPLIT_BYTES if ask.split_bytes is None else ask.split_bytes):
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


def _shared_out(sized: Sequence[tuple[Part, int]], cores: int) -> Iterator[tuple[Part, ...]]:
    """Yield tasks of about equal size, two for each core.

    Neighbouring parts of a log file become one part.
    """
    share_bytes = sum(size_bytes for _, size_bytes in sized) // (_TASKS_A_CORE * cores) if cores else 0
    limit_bytes = min(share_bytes * 5 // 4, _SHARE_BYTES_MAX)  # parts are larger than a share is exact
    for task in together(sized, max(TASK_BYTES, limit_bytes)):
        joined: list[Part] = []
        for part in task:
            last = joined[-1] if joined else None
            if isinstance(last, LogPart) and isinstance(part, LogPart) and _are_neighbours(last, part):
                joined[-1] = replace(last, stop=part.stop)
            else:
                joined.append(part)
        yield tuple(joined)


def _are_neighbours(first: LogPart, second: LogPart) -> bool:
    return first.path == second.path and first.stop == second.start


def together(sized: Iterable[tuple[Part, int]], task_bytes: int = TASK_BYTES) -> Iterator[tuple[Part, ...]]:
    """Yield tasks of neighbouring parts that are small together."""
    task: list[Part] = []
    size_bytes = 0
    for part, part_bytes in sized:
        if task and (size_bytes + part_bytes > task_bytes or len(task) == TASK_PARTS):
            yield tuple(task)
            task, size_bytes = [], 0
        task.append(part)
        size_bytes += part_bytes
    if task:
        yield tuple(task)
