"""The messages of one queue that a client has pulled and not finished.

It has no thread, no lock and no clock. The owner serialises calls and passes the time. Field and method names are those
of RocketMQ's `ProcessQueue` in snake case. `cut` and `finish_taken` are not in RocketMQ, and `cleanExpiredMsg` is not
here (impl/consumer/concurrent.py). Three quirks are mended:

1. `queue_offset_max` never decreases. In RocketMQ an old message that is put again lowers it, and then the progress.
2. `commit` returns -1 if nothing was taken. In RocketMQ it raises.
3. `remove_message` lowers the size by the body that was cached, not by that of the argument.

Source: `ProcessQueue` of 4.9.3.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tornpage.impl.consumer.messages import ConsumerMessage

__all__ = ["NOTHING", "OffsetMap", "ProcessQueue"]

NOTHING = -1
"""The progress after a removal from an empty queue or a commit of nothing: there is none to store."""


class OffsetMap(Mapping[int, ConsumerMessage]):
    """A map from queue offset to message, in the order of offsets. Source: `TreeMap`."""

    __slots__ = ("_messages", "_offsets")

    def __init__(self) -> None:
        self._messages: dict[int, ConsumerMessage] = {}
        self._offsets: list[int] = []

    def __getitem__(self, offset: int) -> ConsumerMessage:
        return self._messages[offset]

    def __iter__(self) -> Iterator[int]:
        return iter(self._offsets)

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def first(self) -> int:
        """The lowest offset. The map must not be empty."""
        return self._offsets[0]

    @property
    def last(self) -> int:
        """The highest offset. The map must not be empty."""
        return self._offsets[-1]

    def put(self, message: ConsumerMessage) -> bool:
        """Put a message at its offset; return whether the offset is a new key."""
        offset = message.queue_offset
        is_new = offset not in self._messages
        if is_new:
            insort(self._offsets, offset)
        self._messages[offset] = message
        return is_new

    def remove(self, offset: int) -> ConsumerMessage | None:
        """Remove and return the message at an offset; None if there is none."""
        found = self._messages.pop(offset, None)
        if found is not None:
            del self._offsets[bisect_left(self._offsets, offset)]
        return found

    def clear(self) -> None:
        """Remove all messages."""
        self._messages.clear()
        self._offsets.clear()


class ProcessQueue:
    """The cached messages of one queue, and flags about its use.

    `msg_tree_map` has the messages that wait or are consumed concurrently. `consuming_msg_orderly_tree_map` has those
    that an orderly listener has taken. `msg_count` and `msg_size` (bytes of bodies) count both. `queue_offset_max` is
    the highest offset that was put. `msg_acc_cnt` is the number of messages after the last pulled one at that time.
    Times are milliseconds.
    """

    __slots__ = (
        "consuming",
        "consuming_msg_orderly_tree_map",
        "dropped",
        "last_consume_timestamp",
        "last_lock_timestamp",
        "last_pull_timestamp",
        "locked",
        "msg_acc_cnt",
        "msg_count",
        "msg_size",
        "msg_tree_map",
        "queue_offset_max",
    )

    def __init__(self, now_ms: int = 0) -> None:
        self.msg_tree_map = OffsetMap()
        self.consuming_msg_orderly_tree_map = OffsetMap()
        self.msg_count = 0
        self.msg_size = 0
        self.queue_offset_max = 0
        self.dropped = False
        self.locked = False
        self.consuming = False
        self.last_pull_timestamp = now_ms
        self.last_consume_timestamp = now_ms
        self.last_lock_timestamp = now_ms
        self.msg_acc_cnt = 0

    # ---- concurrent consumption ----------------------------------------------------------------------------------

    def put_message(self, messages: Sequence[ConsumerMessage]) -> bool:
        """Cache pulled messages; return whether consuming has to be started."""
        for message in messages:
            if self.msg_tree_map.put(message):
                self.msg_count += 1
                self.msg_size += len(message.body)
                self.queue_offset_max = max(self.queue_offset_max, message.queue_offset)
        starts = bool(self.msg_tree_map) and not self.consuming
        self.consuming = self.consuming or starts
        if messages and messages[-1].max_offset > messages[-1].queue_offset:
            self.msg_acc_cnt = messages[-1].max_offset - messages[-1].queue_offset
        return starts

    def remove_message(self, messages: Iterable[ConsumerMessage], now_ms: int) -> int:
        """Remove finished messages; return the smallest offset that is not finished.

        Returns NOTHING if no message was cached before.
        """
        self.last_consume_timestamp = now_ms
        if not self.msg_tree_map:
            return NOTHING
        for message in messages:
            removed = self.msg_tree_map.remove(message.queue_offset)
            if removed is not None:
                self._discount(removed)
        return self.msg_tree_map.first if self.msg_tree_map else self.queue_offset_max + 1

    # ---- orderly consumption -------------------------------------------------------------------------------------

    def take_messages(self, count: int, now_ms: int) -> list[ConsumerMessage]:
        """Move the messages with the lowest offsets to the consuming map, and return them.

        At most `count` messages are moved. Without any, `consuming` becomes false.
        """
        self.last_consume_timestamp = now_ms
        taken: list[ConsumerMessage] = []
        while self.msg_tree_map and len(taken) < count:
            message = self.msg_tree_map.remove(self.msg_tree_map.first)
            assert message is not None
            self.consuming_msg_orderly_tree_map.put(message)
            taken.append(message)
        if not taken:
            self.consuming = False
        return taken

    def commit(self) -> int:
        """Finish all taken messages; return the offset after the last one, NOTHING without any."""
        taken = self.consuming_msg_orderly_tree_map
        progress = taken.last + 1 if taken else NOTHING
        for message in taken.values():
            self._discount(message)
        taken.clear()
        return progress

    def rollback(self) -> None:
        """Put all taken messages back."""
        for message in self.consuming_msg_orderly_tree_map.values():
            self.msg_tree_map.put(message)
        self.consuming_msg_orderly_tree_map.clear()

    def make_message_to_consume_again(self, messages: Iterable[ConsumerMessage]) -> None:
        """Put some taken messages back."""
        for message in messages:
            self.consuming_msg_orderly_tree_map.remove(message.queue_offset)
            self.msg_tree_map.put(message)

    def finish_taken(self, messages: Iterable[ConsumerMessage]) -> int:
        """Finish some taken messages; return the smallest offset that is not finished.

        For a batch of which only a part was given up. RocketMQ puts the whole batch back.
        """
        for message in messages:
            removed = self.consuming_msg_orderly_tree_map.remove(message.queue_offset)
            if removed is not None:
                self._discount(removed)
        left = [each.first for each in (self.msg_tree_map, self.consuming_msg_orderly_tree_map) if each]
        return min(left, default=self.queue_offset_max + 1)

    # ---- state ---------------------------------------------------------------------------------------------------

    def cut(self, offset: int) -> int | None:
        """Forget the messages from an offset on; return the first of their offsets, or None.

        None of them was consumed. They will be pulled again, by this client or by another one.
        """
        unconsumed = [each for each in self.msg_tree_map if each >= offset]
        for each in unconsumed:
            removed = self.msg_tree_map.remove(each)
            assert removed is not None
            self._discount(removed)
        if not unconsumed:
            return None
        self.queue_offset_max = min(self.queue_offset_max, unconsumed[0] - 1)
        return unconsumed[0]

    def _discount(self, message: ConsumerMessage) -> None:
        self.msg_count -= 1
        self.msg_size -= len(message.body)

    @property
    def max_span(self) -> int:
        """The difference of the highest and the lowest cached offset, 0 without any."""
        return self.msg_tree_map.last - self.msg_tree_map.first if self.msg_tree_map else 0

    def has_temp_message(self) -> bool:
        """Return whether messages wait."""
        return bool(self.msg_tree_map)

    def is_lock_expired(self, now_ms: int, live_ms: int = 30_000) -> bool:
        """Return whether the last grant of the lock is too old."""
        return now_ms - self.last_lock_timestamp > live_ms

    def is_pull_expired(self, now_ms: int, idle_ms: int = 120_000) -> bool:
        """Return whether the last pull is too old."""
        return now_ms - self.last_pull_timestamp > idle_ms

    def clear(self) -> None:
        """Forget all messages."""
        self.msg_tree_map.clear()
        self.consuming_msg_orderly_tree_map.clear()
        self.msg_count = self.msg_size = self.queue_offset_max = 0
