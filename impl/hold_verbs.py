"""The public verb of long polling, and what a hold asks of the reads of its store. Source: `PullMessageProcessor`."""

from concurrent.futures import Future

from impl.config import MessageStoreConfig
from impl.guards import make_guard
from impl.held_pulls import PullRequest, QueueName
from impl.message_filter import MessageFilter
from impl.opening import OpenDirectory
from impl.parts import Parts
from impl.pull_hold import PullHold
from impl.queue_pull import GetMessageResult
from impl.read_path import ReadPath
from impl.runner import ThreadRunner

__all__ = ["HoldVerbs", "pull_hold_of"]

_MESSAGES = 32


class HoldVerbs:
    """A base class of the store."""

    _pull_hold: PullHold

    def pull_async(
        self,
        group: str,
        topic: str,
        *,
        queue_id: int,
        offset: int,
        hold_ms: int,
        max_msg_nums: int = _MESSAGES,
        message_filter: MessageFilter | None = None,
    ) -> Future[GetMessageResult]:
        """Pull as `get_message` does, and wait for up to `hold_ms` where there is nothing yet; 0 is not to wait.

        The future has the answer of a pull at the moment when there is a message that the filter wants, when the queue
        was deleted, or when the time is over; StoreClosed if the store is closed before, NotReadable if nobody may
        read then. To cancel it is to give up waiting. Its callbacks run in a thread of the store and must not wait for
        another pull. Without `long_polling_enable` everybody who would wait does so for `short_polling_time_mills`.

        Raises NotReadable while the running flag NOT_READABLE is set, TooManyHeldPulls where nobody more may wait,
        StoreClosed and ForkedStore.
        """
        request = PullRequest((topic, queue_id), offset, max_msg_nums, message_filter, group)
        return self._pull_hold.pull(request, hold_ms)

    @property
    def held_pulls(self) -> int:
        """How many pulls wait for a message."""
        return self._pull_hold.held_count


class _StorePulls:
    """The pulls of one store."""

    def __init__(self, reads: ReadPath) -> None:
        self._reads = reads

    def pull(self, request: PullRequest) -> GetMessageResult:
        return self._reads.get_message(
            *request.queue,
            request.offset,
            max_msg_nums=request.max_msg_nums,
            message_filter=request.message_filter,
            group=request.group,
        )

    def look(self, request: PullRequest, offset: int) -> GetMessageResult:
        return self._reads.look(
            self._reads.queues.get_message,
            *request.queue,
            offset,
            max_msg_nums=1,
            message_filter=request.message_filter,
        )

    def range_of(self, queue: QueueName) -> tuple[int, int]:
        return self._reads.look(self._reads.queues.range_of, *queue)


def pull_hold_of(held: OpenDirectory, reads: ReadPath, *, config: MessageStoreConfig, parts: Parts) -> PullHold:
    """Return the hold of a store, which dispatch tells of each batch."""
    hold = parts.of(PullHold)(
        _StorePulls(reads),
        runner=parts.of(ThreadRunner),
        held_max=config.max_held_pulls,
        short_polling_ms=None if config.long_polling_enable else config.short_polling_time_mills,
        path=held.directory,
        guard=parts.of(make_guard),
    )
    held.derived.tell_of_runs(hold.dispatched)
    return hold
