"""Compare the counts that an open store keeps with what its clients did (contract 8).

1. Messages and bytes by topic are those of the records that this process appended.
2. A read by queue counts once: as found with its messages, or as a miss.
3. The runtime information states the same counts.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from tornpage.impl.store import MessageStore
from tornpage.model.state import Record
from tornpage.properties.contract import GuaranteeBroken, observed

__all__ = ["Appended", "counts_one_read", "puts_are_counted"]


class Appended:
    """The messages and bytes by topic that one store has appended."""

    def __init__(self) -> None:
        self._store: MessageStore | None = None
        self._topics: dict[str, tuple[int, int]] = {}

    def add(self, store: MessageStore, record: Record) -> None:
        """Count a record that a store appended. Another store begins with nothing."""
        topics, topic = self.of(store), record.message.topic
        messages, size_bytes = topics.get(topic, (0, 0))
        topics[topic] = messages + 1, size_bytes + record.end_offset - record.offset

    def of(self, store: MessageStore) -> dict[str, tuple[int, int]]:
        """Return the counts of a store."""
        if self._store is not store:
            self._store, self._topics = store, {}
        return self._topics


def puts_are_counted(store: MessageStore, appended: Appended) -> None:
    """Compare the counts of puts. Raises GuaranteeBroken."""
    taken = observed("statistics", store.statistics)
    found = {each.topic: (each.message_count, each.size_bytes) for each in taken.topics}
    expected = appended.of(store)
    if found != expected:
        raise GuaranteeBroken(8, "the statistics count other puts than were appended", str(expected), str(found))
    totals = sum(each[0] for each in expected.values()), sum(each[1] for each in expected.values())
    if (taken.message_count, taken.size_bytes) != totals:
        texts = str(totals), str((taken.message_count, taken.size_bytes))
        raise GuaranteeBroken(8, "the statistics have other totals than their topics", *texts)


@contextmanager
def counts_one_read(store: MessageStore) -> Iterator[list[int]]:
    """Run one read by queue, and compare what the store counts.

    The body adds the number of messages. Raises GuaranteeBroken.
    """
    before, read = observed("read_statistics", store.read_statistics), list[int]()
    yield read
    after, messages = observed("read_statistics", store.read_statistics), sum(read)
    expected = (messages > 0, messages == 0, messages)
    found = (
        after.found_count - before.found_count,
        after.miss_count - before.miss_count,
        after.transferred_count - before.transferred_count,
    )
    if found != expected:
        raise GuaranteeBroken(8, "the statistics count a read wrongly", str(expected), str(found))
    info = observed("runtime_info", store.runtime_info)
    for name, value in (
        ("putMessageTimesTotal", store.statistics().message_count),
        ("commitLogMinOffset", store.min_offset),
        ("commitLogMaxOffset", store.max_offset),
    ):
        if info.get(name) != str(value):
            raise GuaranteeBroken(8, f"the runtime information {name} is wrong", str(value), str(info.get(name)))
