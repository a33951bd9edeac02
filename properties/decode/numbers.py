"""Read numbers that properties hold as text: delay levels and queue offsets.

No text makes this raise. Python refuses to read very long numbers, and a property may have 32,000 digits. A text that
is not a number of its kind counts as no number.

Source: docs/format.md, section 4.
"""

from __future__ import annotations

import re

__all__ = ["delay_level", "queue_offsets"]

_LEVEL = re.compile(r"([+-]?)0*([0-9]{1,10})")
_OFFSET = re.compile(r"[0-9]{1,18}")
_I32 = range(-(2**31), 2**31)


def delay_level(text: str) -> int:
    """Return the level in the property DELAY, also a negative one.

    Returns 0 if it is not a number of 32 bits.
    """
    found = _LEVEL.fullmatch(text)
    level = int(found[1] + found[2]) if found else 0
    return level if level in _I32 else 0


def queue_offsets(text: str) -> list[int]:
    """Return the offsets in INNER_MULTI_QUEUE_OFFSET.

    Returns none if one of them has other characters than digits or more than 18 of them. A queue has no unit with such
    a number.
    """
    parts = text.split(",")
    return [int(part) for part in parts] if all(map(_OFFSET.fullmatch, parts)) else []
