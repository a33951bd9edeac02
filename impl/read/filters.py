"""Filters by the properties of messages, and bit maps that speed them up.

- `PropertyFilter`: an expression (impl/read/sql92.py), and the consumer's Bloom bits if the extension has bit maps.
- `FilterBitMaps` computes those bit maps; pass its `bit_map_of` to `MessageStore.open` as `filter_bit_map`.

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
    """A filter by an expression over properties.

    `bloom` holds the bits of the consumer. `born_ms` is when its filter was registered, in milliseconds: the bit maps
    of records stored until then do not cover the filter. Without `bloom` every record is evaluated. Raises BadFilter if
    the expression cannot be compiled.
    """

    def __init__(self, expression: str, *, bloom: BloomBits | None = None, born_ms: int = 0) -> None:
        self.expression = expression
        self.bloom = bloom
        self.born_ms = born_ms
        self._evaluate = compile_expression(expression)

    def matches_unit(self, tags_code: int | None, ext: ExtUnit | None) -> bool:
        """Return False only if a bit map of the right size excludes the message."""
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
    """The property filters of all consumers; computes the bit maps of new records.

    Any thread may register a filter, and the dispatcher evaluates them: the table is replaced, never changed in place.
    """

    def __init__(self, bloom: BloomFilter | None = None) -> None:
        self.bloom = bloom or BloomFilter()
        self._guard = threading.Lock()
        self._by_topic: dict[bytes, dict[str, PropertyFilter]] = {}

    def register(self, group: str, topic: str, expression: str, *, born_ms: int) -> PropertyFilter:
        """Register the filter of a consumer group, replacing its earlier one, and return it.

        `born_ms` is the store's time now in milliseconds: the bit maps of records stored later include the filter.
        Raises BadFilter.
        """
        made = PropertyFilter(expression, bloom=self.bloom.bits_of(group, topic), born_ms=born_ms)
        with self._guard:
            filters = self._by_topic.get(topic.encode(), {}) | {group: made}
            self._by_topic = self._by_topic | {topic.encode(): filters}
        return made

    def unregister(self, group: str, topic: str) -> None:
        """Remove the filter of a consumer group."""
        with self._guard:
            filters = dict(self._by_topic.get(topic.encode(), {}))
            filters.pop(group, None)
            self._by_topic = self._by_topic | {topic.encode(): filters}

    def bit_map_of(self, topic: bytes, properties: Mapping[str, str]) -> bytes:
        """Return the bit map of a record: the bits of each consumer whose filter it passes.

        The result is empty without filters.
        """
        filters = self._by_topic.get(topic)
        if not filters:
            return b""
        passed = [made.bloom for made in filters.values() if made.bloom is not None and made.matches(properties)]
        return self.bloom.bit_map(passed)
