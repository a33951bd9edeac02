"""The parts of a store whose locks and services the stepped scheduler knows.

Locks that stay the store's own are held over no yield point: the code under them is in no watched module.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from impl.components import Components
from impl.mapped_file import MappedFile
from impl.queue_files import QueueFiles
from impl.runner import Runner, Service
from properties.scheduler import CooperativeLock

__all__ = ["WATCHED", "stepped_parts"]

WATCHED = (
    "impl.appended_queue",
    "impl.clean_commit_log",
    "impl.clean_consume_queues",
    "impl.commit_log",
    "impl.consume_queue",
    "impl.consume_queues",
    "impl.consumer_offsets",
    "impl.deleted_topics",
    "impl.derived",
    "impl.durable_verbs",
    "impl.group_commit",
    "impl.index_directory",
    "impl.index_entries",
    "impl.index_file",
    "impl.index_service",
    "impl.log_reader",
    "impl.mapped_file",
    "impl.mapped_file_queue",
    "impl.message_query",
    "impl.queue_files",
    "impl.queue_pull",
    "impl.queue_reads",
    "impl.queue_units",
    "impl.reput",
    "impl.store",
    "impl.store_views",
    "impl.topic_cleaning",
    "impl.units",
    "properties.planted.racing",
)
"""The modules whose lines are yield points: who writes, shows, reads and takes away what several threads look at."""


def stepped_parts(parts: Components, *, runner: Callable[[Service], Runner]) -> Components:
    """Return the same parts with locks and services of a stepped run."""
    mapped_file = partial(parts.mapped_file, guard=_guard("mapped file"))
    queue_files = partial(QueueFiles, guard=_guard("queue files"))
    queues = partial(
        parts.consume_queues,
        guard=_guard("queues"),
        queue_files=queue_files,
        mapped_file=partial(MappedFile, guard=_guard("queue file")),
    )
    return replace(
        parts,
        guard=_guard("store"),
        runner=runner,
        put_lock=lambda kind: CooperativeLock("put lock"),
        mapped_file=mapped_file,
        mapped_file_queue=partial(parts.mapped_file_queue, guard=_guard("log")),
        consume_queues=queues,
        read_buffers=partial(parts.read_buffers, guard=_guard("buffers")),
        reput=partial(parts.reput, guard=_guard("dispatch")),
        index_service=partial(
            parts.index_service, guard=_guard("index"), mapped_file=partial(MappedFile, guard=_guard("index mapping"))
        ),
        index_file=partial(parts.index_file, guard=_guard("index file")),
        group_commit=partial(parts.group_commit, guard=_guard("group commit")),
    )


def _guard(name: str) -> Callable[[], CooperativeLock]:
    return partial(CooperativeLock, name)
