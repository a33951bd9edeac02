"""What a pull asks of a filter, and the filter by tags: which messages of a queue a consumer wants.

A filter is asked twice. First with what the queue says of a message, its tags code or its extension unit, which costs
no look at the log; a no is final. Then, after a yes, with the properties of the record itself. Filters by properties,
which load a parser, are in impl/read/filters.py. Source: `MessageFilter`, `DefaultMessageFilter`.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from tornpage.impl.message.key_hash import java_hash
from tornpage.impl.queue.consume_queue_ext import ExtUnit

__all__ = ["MessageFilter", "TagFilter"]


class MessageFilter(Protocol):
    """What `get_message` asks. Must not raise."""

    def matches_unit(self, tags_code: int | None, ext: ExtUnit | None) -> bool:
        """Return whether a message may be wanted; `tags_code` is None when the extension that has it cannot be read."""

    def matches_record(self, properties: Callable[[], Mapping[str, str]]) -> bool:
        """Return whether the message is wanted; `properties` parses those of the record when it is called."""


class TagFilter:
    """The tags of a subscription, separated by `||`; `*` or nothing means all. Source: `FilterAPI`."""

    def __init__(self, expression: str = "*") -> None:
        names = [name.strip() for name in expression.split("||")]
        self.tags = () if expression in ("", "*") else tuple(name for name in names if name)
        self._codes = frozenset(java_hash(tag) & 0xFFFFFFFF for tag in self.tags)
        self._all = expression in ("", "*")

    def matches_unit(self, tags_code: int | None, ext: ExtUnit | None) -> bool:
        """Compare the low 32 bits: those of a delayed message are the end of its due time, as in RocketMQ."""
        return self._all or tags_code is None or tags_code & 0xFFFFFFFF in self._codes

    def matches_record(self, properties: Callable[[], Mapping[str, str]]) -> bool:
        """Always: the queue has decided."""
        return True
