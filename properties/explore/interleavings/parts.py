"""Replace the locks and services of a store by those of the stepped scheduler.

The modules that hold a lock create those of the scheduler (`locks.controlled_locks`). Locks that a part gets from its
constructor are replaced here. Locks of other modules are held over no yield point.
"""

from collections.abc import Callable
from functools import cache, partial

from tornpage.impl.dispatch.reput import ReputMessages
from tornpage.impl.guards import make_guard
from tornpage.impl.index.index_file import IndexFile
from tornpage.impl.index.index_service import IndexService
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.log.put_lock import make_put_lock
from tornpage.impl.parts import Parts
from tornpage.impl.put.group_commit import GroupCommit
from tornpage.impl.queue.consume_queues import ConsumeQueues
from tornpage.impl.queue.queue_files import QueueFiles
from tornpage.impl.read.read_buffer import ReadBuffers
from tornpage.impl.service.runner import Runner, Service, ThreadRunner
from tornpage.properties.explore.interleavings.locks import UNWATCHED, modules_with_locks
from tornpage.properties.scheduler import CooperativeLock

__all__ = ["stepped_parts", "watched_modules"]

_WITHOUT_LOCKS = (
    "tornpage.impl.queue.consume_queue",
    "tornpage.impl.retention.clean_commit_log",
    "tornpage.impl.retention.clean_consume_queues",
    "tornpage.impl.dispatch.deleted_topics",
    "tornpage.impl.dispatch.derived",
    "tornpage.impl.index.index_entries",
    "tornpage.impl.read.log_reader",
    "tornpage.impl.read.message_query",
    "tornpage.impl.read.queue_pull",
    "tornpage.impl.read.queue_reads",
    "tornpage.impl.retention.topic_cleaning",
    "tornpage.impl.queue.units",
)
_PLANTED = "tornpage.properties.planted.races"


@cache
def watched_modules() -> tuple[str, ...]:
    """Return the modules whose lines are yield points.

    They write, publish, read or delete what several threads use. Each module with a lock is one of them, unless
    `UNWATCHED` has it with a reason.
    """
    return (*sorted({*_WITHOUT_LOCKS, *modules_with_locks()} - set(UNWATCHED)), _PLANTED)


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
