"""Retention of one store: deletion of expired files, and deletions on request."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.dispatch.reput import ReputMessages
from tornpage.impl.errors import StoreClosed
from tornpage.impl.guards import make_guard
from tornpage.impl.io.files import Clock
from tornpage.impl.log.commit_log import CommitLog
from tornpage.impl.message.codec import check_record
from tornpage.impl.parts import Parts
from tornpage.impl.read.read_buffer import ReadBuffers
from tornpage.impl.recovery.opening import OpenDirectory
from tornpage.impl.retention.clean_commit_log import CleanCommitLog
from tornpage.impl.retention.clean_consume_queues import CleanConsumeQueues
from tornpage.impl.retention.clean_files import CleanFiles
from tornpage.impl.retention.topic_cleaning import RestartNumbers, TopicCleaning
from tornpage.impl.service.disk_watch import DiskWatch
from tornpage.impl.service.lifecycle import Lifecycle
from tornpage.impl.service.runner import ThreadRunner

__all__ = ["Retention"]

_FIRST_RUN_MS = 60_000


class Retention:
    """Builds the parts of retention.

    `start` runs the service a minute later; `stop` ends everything. `queues_deleted` is called after each deletion on
    request, even if it failed.
    """

    def __init__(
        self,
        held: OpenDirectory,
        lifecycle: Lifecycle,
        *,
        config: MessageStoreConfig,
        clock: Clock,
        parts: Parts,
        watch: DiskWatch,
        reput: ReputMessages,
        commit_log: CommitLog,
        buffers: ReadBuffers,
        restart_numbers: RestartNumbers,
        queues_deleted: Callable[[], None],
    ) -> None:
        policy, log, deleted = config.retention_policy(), held.log, held.deleted_topics
        self._lifecycle = lifecycle
        self._guard = parts.of(make_guard)()
        self._stopped = False
        self._refuses = False
        self._queues_deleted = queues_deleted

        def settle_deletions() -> None:
            with self._guard:
                deleted.write_if_doubtful()

        cleaner = parts.of(CleanCommitLog)(
            log,
            policy=policy,
            check=parts.of(check_record),
            dispatched_end=lambda: held.derived.reput_from_offset,
            make_derived_durable=held.derived.flush,
            settle_deletions=settle_deletions,
            revoke=buffers.revoke,
        )

        def forget_expired() -> None:
            with reput.without_dispatch():
                held.derived.queues.remove_leftovers()  # first: leftovers of a forgotten topic would count
            deleted.forget_expired(cleaner.oldest_offset)

        self._service = parts.of(CleanFiles)(
            policy,
            watch=watch,
            commit_log=cleaner,
            queues=parts.of(CleanConsumeQueues)(
                held.derived,
                log,
                policy=policy,
                oldest_offset=lambda: cleaner.oldest_offset,
                without_dispatch=reput.without_dispatch,
            ),
            clock=clock,
            may_clean=lambda: not lifecycle.shut,
            followed=lambda: self._with_files(forget_expired),
        )
        self.topics = parts.of(TopicCleaning)(
            log,
            held.derived.queues,
            held.queue_offsets,
            deleted,
            without_dispatch=reput.without_dispatch,
            without_puts=commit_log.without_puts,
            restart_numbers=restart_numbers,
        )
        self._runner = parts.of(ThreadRunner)(self._service)

    def start(self) -> None:
        """Start the service. Source: `DefaultMessageStore.addScheduleTask`."""
        self._runner.start(after_ms=_FIRST_RUN_MS)

    @contextmanager
    def refusing_deletions(self) -> Iterator[None]:
        """Refuse deletions on request from the end of this block on; none runs in it.

        The clean-up goes on until `stop`.
        """
        with self._guard:
            yield
            self._refuses = True

    def stop(self) -> None:
        """Stop deletions; waits for a running one."""
        self._runner.stop()
        with self._guard:
            self._stopped = True

    def delete_manually(self) -> None:
        """Start the next 20 runs at any hour. Source: `executeDeleteFilesManually`."""
        self._lifecycle.require_open()
        self._service.delete_manually()

    def clean_unused_topics(self, topics_in_use: Collection[str]) -> tuple[str, ...]:
        """Delete the queues of all topics not in use, and return their names. Raises OSError."""
        in_use = {topic.encode(errors="surrogateescape") for topic in topics_in_use}
        with self._on_request() as may_delete:
            deleted = tuple(self.topics.clean_unused_topics(in_use)) if may_delete else ()
        return tuple(topic.decode(errors="surrogateescape") for topic in deleted)

    def clean_unused_lmq_topic(self, topic: str) -> bool:
        """Delete a light queue; return whether there was one. Raises OSError."""
        with self._on_request() as may_delete:
            return may_delete and bool(self.topics.clean_unused_lmq_topic(topic.encode(errors="surrogateescape")))

    def clean_expired_consume_queues(self) -> tuple[tuple[str, int], ...]:
        """Delete each queue whose messages have all expired; return their topics and queue ids.

        Raises OSError.
        """
        with self._on_request() as may_delete:
            deleted = tuple(self.topics.clean_expired_consume_queues()) if may_delete else ()
        return tuple((topic.decode(errors="surrogateescape"), queue_id) for topic, queue_id in deleted)

    @contextmanager
    def _on_request(self) -> Iterator[bool]:
        """Yield whether a deletion is allowed; it is not in a read-only store.

        A deletion that began before `stop` is completed, and its answer is valid even if the store closes afterwards.
        Raises StoreClosed and ForkedStore.
        """
        self._lifecycle.require_open()
        try:
            with self._guard:
                if self._stopped or self._refuses:
                    raise StoreClosed(self._lifecycle.directory)
                yield not self._lifecycle.shut
        finally:
            self._queues_deleted()

    def _with_files(self, action: Callable[[], None]) -> None:
        """Run a function that writes small files, unless they are closed."""
        with self._guard:
            if not self._stopped and not self._lifecycle.shut:
                action()
