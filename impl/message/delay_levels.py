"""Delay levels: from the property DELAY to a delay and a queue of delayed messages.

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
"""`messageDelayLevel`: the default delay of each level, level 1 first."""
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
"""`TopicValidator.RMQ_SYS_SCHEDULE_TOPIC`."""
HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
"""`TopicValidator.RMQ_SYS_TRANS_HALF_TOPIC`: holds prepared transactions, to which no delay applies."""

_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_LEVEL = re.compile("0*([0-9]{1,19})([smhd])")
_DECIMAL = re.compile("([+-]?)0*([0-9]{1,10})")
_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class DelayLevels:
    """The delay of each level in milliseconds; level 1 comes first.

    Source: `ScheduleMessageService`.
    """

    delays_ms: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> "DelayLevels":
        """Parse a table such as "1s 5s 1m 2h 1d".

        Each level is one number and unit; one space separates levels. Raises ValueError for anything else. RocketMQ
        accepts more: negative times, signs, digits of any script, trailing spaces, and times that overflow 64 bits.
        Source: `ScheduleMessageService.parseDelayLevel`.
        """
        return cls(_parse_delays(text))

    @property
    def highest(self) -> int:
        """The highest level; a message with a higher DELAY gets this one."""
        return len(self.delays_ms)

    def delay_ms(self, level: int) -> int:
        """Return the delay of a level in milliseconds.

        Raises ValueError if the table does not have the level.
        """
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
    """Return the level requested by the property DELAY.

    It is 0 if the property is absent, None if it is no 32-bit number. A number is ASCII digits after an optional sign;
    zero and less mean no delay. Source: `Message.getDelayTimeLevel`, which throws instead of returning null, and which
    accepts digits of any script.
    """
    if value is None:
        return 0
    found = _DECIMAL.fullmatch(value)
    if found is None:
        return None
    level = -int(found[2]) if found[1] == "-" else int(found[2])
    return level if -_INT32_MAX - 1 <= level <= _INT32_MAX else None


def queue_of_level(level: int) -> int:
    """Return the queue id of a level in SCHEDULE_TOPIC_XXXX. Source: `ScheduleMessageService`."""
    return level - 1
