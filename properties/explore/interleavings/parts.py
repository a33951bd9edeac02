"""The parts of a store whose locks and services the stepped scheduler knows.

Locks that stay the store's own are held over no yield point: the code under them is in no watched module.
"""

from collections.abc import Callable
from functools import partial

from impl.dispatch.reput import ReputMessages
from impl.guards import make_guard
from impl.index.index_file import IndexFile
from impl.index.index_service import IndexService
from impl.io.mapped_file import MappedFile
from impl.log.mapped_file_queue import MappedFileQueue
from impl.log.put_lock import make_put_lock
from impl.parts import Parts
from impl.put.group_commit import GroupCommit
from impl.queue.consume_queues import ConsumeQueues
from impl.queue.queue_files import QueueFiles
from impl.read.read_buffer import ReadBuffers
from impl.service.runner import Runner, Service, ThreadRunner
from properties.scheduler import CooperativeLock

__all__ = ["WATCHED", "stepped_parts"]

WATCHED = (
    "impl.queue.consume_queue",
    "impl.retention.clean_commit_log",
    "impl.retention.clean_consume_queues",
    "impl.log.commit_log",
    "impl.queue.consume_queues",
    "impl.groups.consumer_offsets",
    "impl.dispatch.deleted_topics",
    "impl.dispatch.derived",
    "impl.store",
    "impl.durability",
    "impl.put.group_commit",
    "impl.index.index_service",
    "impl.index.index_entries",
    "impl.index.index_file",
    "impl.read.log_reader",
    "impl.io.mapped_file",
    "impl.log.mapped_file_queue",
    "impl.read.message_query",
    "impl.queue.queue_files",
    "impl.read.queue_pull",
    "impl.read.queue_reads",
    "impl.dispatch.reput",
    "impl.retention.topic_cleaning",
    "impl.queue.units",
    "properties.planted.races",
)
"""The modules whose lines are yield points: who writes, shows, reads and takes away what several threads look at."""


def stepped_parts(parts: Parts, *, runner: Callable[[Service], Runner]) -> Parts:
    """Return the same parts with locks and services of a stepped run."""
    mapped_file = partial(parts.of(MappedFile), guard=_guard("mapped file"))
    queue_files = partial(QueueFiles, guard=_guard("queue files"))
    queues = partial(
        parts.of(ConsumeQueues),
        guard=_guard("queues"),
        queue_files=queue_files,
        mapped_file=partial(MappedFile, guard=_guard("queue file")),
    )
    index_mapping = partial(MappedFile, guard=_guard("index mapping"))
    return parts.replacing(
        {
            make_guard: _guard("store"),
            ThreadRunner: runner,
            make_put_lock: lambda kind: CooperativeLock("put lock"),
            MappedFile: mapped_file,
            MappedFileQueue: partial(parts.of(MappedFileQueue), guard=_guard("log")),
            ConsumeQueues: queues,
            ReadBuffers: partial(parts.of(ReadBuffers), guard=_guard("buffers")),
            ReputMessages: partial(parts.of(ReputMessages), guard=_guard("dispatch")),
            IndexService: partial(parts.of(IndexService), guard=_guard("index"), mapped_file=index_mapping),
            IndexFile: partial(parts.of(IndexFile), guard=_guard("index file")),
            GroupCommit: partial(parts.of(GroupCommit), guard=_guard("group commit")),
        }
    )


def _guard(name: str) -> Callable[[], CooperativeLock]:
    return partial(CooperativeLock, name)
