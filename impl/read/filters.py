"""Filters by the properties of messages, and the bit maps of the extension that make them quick.

- `PropertyFilter`: an expression (impl/read/sql92.py), and, where the extension has a bit map, its Bloom bits.
- `FilterBitMaps` makes those bit maps: hand its `bit_map_of` to the store.

Source: `ExpressionMessageFilter`, `CommitLogDispatcherCalcBitMap`.
"""

import logging
import threading
from collections.abc import Callable, Mapping

from tornpage.impl.queue.consume_queue_ext import ExtUnit
from tornpage.impl.read.bloom import BloomBits, BloomFilter, is_hit
from tornpage.impl.read.sql92 import compile_expression

__all__ = ["FilterBitMaps", "PropertyFilter"]

_LOG = logging.getLogger("tornpage.store")


class PropertyFilter:
    """An expression over properties. Raises BadFilter for one that cannot be compiled.

    `bloom` are the bits of the consumer, and `born_ms` when its filter was registered: bit maps of records stored until
    then say nothing about it. Without them each record is looked at.
    """

    def __init__(self, expression: str, *, bloom: BloomBits | None = None, born_ms: int = 0) -> None:
        self.expression = expression
        self.bloom = bloom
        self.born_ms = born_ms
        self._evaluate = compile_expression(expression)

    def matches_unit(self, tags_code: int | None, ext: ExtUnit | None) -> bool:
        """Say no only if a bit map of the right size says so."""
        bloom = self.bloom
        if bloom is None or ext is None or ext.store_timestamp <= self.born_ms:
            return True
        return len(ext.bit_map) * 8 != bloom.bit_count or is_hit(bloom, ext.bit_map)

    def matches_record(self, properties: Callable[[], Mapping[str, str]]) -> bool:
        """Evaluate the expression; neither unknown nor an error is a match."""
        return self.matches(properties())

    def matches(self, properties: Mapping[str, str]) -> bool:
        """Return whether some properties match."""
        try:
            return self._evaluate(properties) is True
        except ValueError as error:
            _LOG.debug("filter_failed expression=%r error=%s", self.expression, error)
            return False


class FilterBitMaps:
    """The property filters of all consumers, and the bit maps they make of new records.

    Registering is done by few, evaluating by the dispatcher: the table is replaced, never changed.
    """

    def __init__(self, bloom: BloomFilter | None = None) -> None:
        self.bloom = bloom or BloomFilter()
        self._guard = threading.Lock()
        self._by_topic: dict[bytes, dict[str, PropertyFilter]] = {}

    def register(self, group: str, topic: str, expression: str, *, born_ms: int) -> PropertyFilter:
        """Take in the filter of a consumer group, in place of its earlier one, and return it. Raises BadFilter.

        `born_ms` is the store's time now: records stored later have the filter's bits in their maps.
        """
        made = PropertyFilter(expression, bloom=self.bloom.bits_of(group, topic), born_ms=born_ms)
        with self._guard:
            filters = self._by_topic.get(topic.encode(), {}) | {group: made}
            self._by_topic = self._by_topic | {topic.encode(): filters}
        return made

    def unregister(self, group: str, topic: str) -> None:
        """Forget the filter of a consumer group."""
        with self._guard:
            filters = dict(self._by_topic.get(topic.encode(), {}))
            filters.pop(group, None)
            self._by_topic = self._by_topic | {topic.encode(): filters}

    def bit_map_of(self, topic: bytes, properties: Mapping[str, str]) -> bytes:
        """Return the bit map of a record: the bits of each consumer whose filter it passes; empty without filters."""
        filters = self._by_topic.get(topic)
        if not filters:
            return b""
        passed = [made.bloom for made in filters.values() if made.bloom is not None and made.matches(properties)]
        return self.bloom.bit_map(passed)
