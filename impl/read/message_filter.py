"""The interface of message filters, and the filter by tags.

A filter is called twice. The first call has the tags code or extension unit from the queue and needs no read of the
log; a refusal there is final. The second call has the properties of the record. Filters by properties, which load a
parser, are in impl/read/filters.py. Source: `MessageFilter`, `DefaultMessageFilter`.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from tornpage.impl.message.key_hash import java_hash
from tornpage.impl.queue.consume_queue_ext import ExtUnit

__all__ = ["MessageFilter", "TagFilter"]


class MessageFilter(Protocol):
    """The calls that `get_message` makes. They must not raise."""

    def matches_unit(self, tags_code: int | None, ext: ExtUnit | None) -> bool:
        """Return whether a message may match.

        `tags_code` is None if its extension unit cannot be read.
        """

    def matches_record(self, properties: Callable[[], Mapping[str, str]]) -> bool:
        """Return whether a message matches; `properties` parses those of the record when called."""


class TagFilter:
    """The tags of a subscription, separated by `||`; `*` or nothing means all.

    Source: `FilterAPI`.
    """

    def __init__(self, expression: str = "*") -> None:
        names = [name.strip() for name in expression.split("||")]
        self.tags = () if expression in ("", "*") else tuple(name for name in names if name)
        self._codes = frozenset(java_hash(tag) & 0xFFFFFFFF for tag in self.tags)
        self._all = expression in ("", "*")

    def matches_unit(self, tags_code: int | None, ext: ExtUnit | None) -> bool:
        """Compare the low 32 bits.

        For a delayed message they are the end of its due time, as in RocketMQ.
        """
        return self._all or tags_code is None or tags_code & 0xFFFFFFFF in self._codes

    def matches_record(self, properties: Callable[[], Mapping[str, str]]) -> bool:
        """Return True; the tags code has decided."""
        return True
