"""Number the topics of a walk in the order in which records first name them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Topics"]

_TOPICS = 256
_BYTES = 8192


class Topics:
    """Numbers of topics.

    `pool`, `ends` and `slots` are the kernel's form of it (see `records.walk_records`).
    """

    def __init__(self) -> None:
        self.names: list[bytes] = []
        self._numbers: dict[bytes, int] = {}
        self._make_room(_TOPICS, _BYTES)

    def number(self, topic: bytes) -> int:
        """Return the number of a topic, a new number for a new topic."""
        found = self._numbers.get(topic)
        if found is not None:
            return found
        count = len(self.names)
        if count + 1 == len(self.ends) or self._used() + len(topic) > len(self.pool):
            self._make_room(2 * len(self.ends), 2 * len(self.pool))
        self._add_to_view(count, topic)
        self.names.append(topic)
        self._numbers[topic] = count
        return count

    def take_new(self) -> None:
        """Take over the topics that the kernel has added to its form."""
        for number in range(len(self.names), int(self.ends[-1])):
            start = int(self.ends[number - 1]) if number else 0
            topic = self.pool[start : self.ends[number]].tobytes()
            self.names.append(topic)
            self._numbers[topic] = number

    def _used(self) -> int:
        return int(self.ends[len(self.names) - 1]) if self.names else 0

    def _make_room(self, topics: int, size_bytes: int) -> None:
        self.pool: NDArray[np.uint8] = np.zeros(size_bytes, np.uint8)
        self.ends: NDArray[np.int64] = np.zeros(topics, np.int64)
        self.slots: NDArray[np.int32] = np.zeros(2 * topics, np.int32)
        for number, topic in enumerate(self.names):
            self._add_to_view(number, topic)

    def _add_to_view(self, number: int, topic: bytes) -> None:
        start = int(self.ends[number - 1]) if number else 0
        self.pool[start : start + len(topic)] = np.frombuffer(topic, np.uint8)
        self.ends[number] = start + len(topic)
        self.ends[-1] = number + 1
        value = len(topic)
        for byte in topic:
            value = (value * 31 + byte) & 0xFFFFFFFF
        slot = (value ^ (value >> 15)) & (len(self.slots) - 1)
        while self.slots[slot]:
            slot = (slot + 1) & (len(self.slots) - 1)
        self.slots[slot] = number + 1
