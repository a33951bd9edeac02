"""Delay levels: the table that turns the property DELAY into a time, and where delayed messages wait.

A message with DELAY above 0 goes to the topic SCHEDULE_TOPIC_XXXX, one queue per level, until it is due.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

__all__ = [
    "DEFAULT_MESSAGE_DELAY_LEVEL",
    "HALF_TOPIC",
    "SCHEDULE_TOPIC",
    "DelayLevels",
    "delay_level_of",
    "queue_of_level",
]

DEFAULT_MESSAGE_DELAY_LEVEL = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
"""`messageDelayLevel`."""
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
"""`TopicValidator.RMQ_SYS_SCHEDULE_TOPIC`."""
HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
"""`TopicValidator.RMQ_SYS_TRANS_HALF_TOPIC`: prepared transactions wait here, and no delay applies to them."""

_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_LEVEL = re.compile("0*([0-9]{1,19})([smhd])")
_DECIMAL = re.compile("([+-]?)0*([0-9]{1,10})")
_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class DelayLevels:
    """How long each level delays, in milliseconds; level 1 comes first. Source: `ScheduleMessageService`."""

    delays_ms: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> "DelayLevels":
        """Read a table such as "1s 5s 1m 2h 1d": one number and unit per level, one space between two.

        Raises ValueError. RocketMQ takes more: negative times, signs, digits of any script, spaces at the end, and
        times that overflow 64 bits. Source: `ScheduleMessageService.parseDelayLevel`.
        """
        return cls(_parse_delays(text))

    @property
    def highest(self) -> int:
        """The highest level; a message that asks for more gets this one."""
        return len(self.delays_ms)

    def delay_ms(self, level: int) -> int:
        """Return how long a level delays. Raises ValueError when the table does not have it."""
        if not 1 <= level <= self.highest:
            raise ValueError(f"delay level {level}: the levels are 1 to {self.highest}")
        return self.delays_ms[level - 1]


@lru_cache(maxsize=16)
def _parse_delays(text: str) -> tuple[int, ...]:
    return tuple(_parse_delay(text, level, part) for level, part in enumerate(text.split(" "), 1))


def _parse_delay(text: str, level: int, part: str) -> int:
    found = _LEVEL.fullmatch(part)
    delay_ms = int(found[1]) * _UNIT_MS[found[2]] if found else -1
    if not 0 <= delay_ms <= _INT64_MAX:
        raise ValueError(
            f"delay level {level} is {part!r} in {text!r}; "
            "it has to be a number and a unit (s, m, h, d) of at most 63 bits of milliseconds, one space between levels"
        )
    return delay_ms


def delay_level_of(value: str | None) -> int | None:
    """Return the level that the property DELAY asks for: 0 when it is absent, None when it is no number of 32 bits.

    A number is ASCII digits behind an optional sign; zero and less mean no delay. Source:
    `Message.getDelayTimeLevel`, which throws, and which takes digits of any script.
    """
    if value is None:
        return 0
    found = _DECIMAL.fullmatch(value)
    if found is None:
        return None
    level = -int(found[2]) if found[1] == "-" else int(found[2])
    return level if -_INT32_MAX - 1 <= level <= _INT32_MAX else None


def queue_of_level(level: int) -> int:
    """Return the queue of SCHEDULE_TOPIC_XXXX in which a level waits. Source: `ScheduleMessageService`."""
    return level - 1
