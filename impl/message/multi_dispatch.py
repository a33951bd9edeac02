"""Multi-dispatch and light queues: one message in several queues.

The property INNER_MULTI_DISPATCH names the queues. The message's offsets in these queues are stored in
INNER_MULTI_QUEUE_OFFSET, so dispatch and recovery need no second table. Messages stored again under a retry or schedule
topic keep both properties and are not dispatched again (RMQ-B75). Source: `MultiDispatch`, docs/statuses.md, "What a
put changes about a message".
"""

import re
from collections.abc import Sequence

from tornpage.impl.message.delay_levels import SCHEDULE_TOPIC
from tornpage.impl.message.properties_text import format_pairs, is_blank, parse_pairs

__all__ = ["OFFSET_MAX", "MultiDispatch", "QueueKey", "asks_for_dispatch", "offsets_in"]

QueueKey = tuple[bytes, int]
"""Topic or queue name as UTF-8, and queue id."""

_NAMES = "INNER_MULTI_DISPATCH"
_OFFSETS = "INNER_MULTI_QUEUE_OFFSET"

_LIGHT_PREFIX = b"%LMQ%"
_RETRY_PREFIX = "%RETRY%"
_OFFSET = re.compile(r"[0-9]{1,18}", re.ASCII)

OFFSET_MAX = 10**18 - 1
"""The greatest queue offset that is parsed."""


class MultiDispatch:
    """Determines the named queues of a message.

    `light_queues` says whether names with the prefix %LMQ% have a single queue, number 0.
    """

    def __init__(self, *, light_queues: bool) -> None:
        self._light_queues = light_queues

    def queues_of(self, topic: str, queue_id: int, text: str) -> tuple[QueueKey, ...]:
        """Return the named queues of a message in order; empty if it is in its own queue only."""
        if f"{_NAMES}\x01" not in text or topic == SCHEDULE_TOPIC or topic.startswith(_RETRY_PREFIX):
            return ()
        names = parse_pairs(text).get(_NAMES)
        if names is None or is_blank(names):
            return ()
        return tuple(self._key(name, queue_id) for name in names.split(","))

    def _key(self, name: str, queue_id: int) -> QueueKey:
        stored = name.encode(errors="surrogatepass")  # the encoder refuses a name that cannot be stored
        return stored, 0 if self._light_queues and stored.startswith(_LIGHT_PREFIX) else queue_id

    def is_light(self, key: QueueKey) -> bool:
        """Return whether a named queue is a light queue."""
        return self._light_queues and key[0].startswith(_LIGHT_PREFIX)

    @staticmethod
    def with_offsets(text: str, offsets: Sequence[int]) -> str:
        """Return the properties string with the offsets added; WAIT is left out, as in RocketMQ."""
        pairs = parse_pairs(text)
        pairs[_OFFSETS] = ",".join(map(str, offsets))
        pairs.pop("WAIT", None)
        return format_pairs(pairs)


def offsets_in(text: str) -> tuple[int, ...]:
    """Return the offsets in a stored properties string; empty if they are malformed."""
    parts = parse_pairs(text).get(_OFFSETS, "").split(",")
    return tuple(map(int, parts)) if all(map(_OFFSET.fullmatch, parts)) else ()


def asks_for_dispatch(text: str) -> bool:
    """Return whether a properties string asks for multi-dispatch."""
    return f"{_NAMES}\x01" in text and not is_blank(parse_pairs(text).get(_NAMES))
