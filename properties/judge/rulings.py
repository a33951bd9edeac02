"""A ruling on one number of the contract: it holds, is broken, or cannot be judged, and why.

Source: docs/contract.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from properties.contract import GuaranteeBroken

__all__ = ["NAMES", "NEVER_JUDGED", "Ruling", "Word", "broken", "counted", "from_guarantee", "holds", "unknown"]

Word = Literal["holds", "broken", "unknown"]

NAMES: Final[Mapping[int, str]] = {
    1: "Prefix",
    2: "Floor",
    3: "No resurrection",
    4: "Queues",
    5: "Index",
    6: "Idempotent",
    7: "Starts",
    8: "Statuses",
    9: "Watermarks",
    10: "Retention",
    11: "Lifetimes",
    12: "Delay",
    13: "Progress files",
    14: "Exclusive",
    15: "Replication",
    16: "Liveness",
    17: "Visibility",
}

NEVER_JUDGED: Final[Mapping[int, str]] = {
    8: "a status is the answer to a put, and an image has no puts",
    10: "which files were due to go is not in an image",
    11: "buffers in the hands of readers end with the process",
    12: "when a message was delivered is not in an image; that it waits in its queue is a part of number 4",
    15: "what a replica had is not in the image of its master",
}
"""Why one image can never tell."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """`file` is relative to the store directory, `offset` physical; both say where a broken number shows."""

    number: int
    verdict: Word
    sentence: str
    file: str = ""
    offset: int | None = None
    expected: str = ""
    found: str = ""

    @property
    def name(self) -> str:
        """The name of the number."""
        return NAMES[self.number]

    def row(self) -> dict[str, Any]:
        """Return the ruling as a row of a table."""
        return {
            "number": self.number,
            "name": self.name,
            "verdict": self.verdict,
            "sentence": self.sentence,
            "file": self.file or None,
            "offset": self.offset,
            "expected": self.expected,
            "found": self.found,
        }


def counted(count: int, one: str, several: str = "") -> str:
    """Return a number with its word: 1 record, 2 records."""
    return f"{count:,} {one if count == 1 else several or f'{one}s'}"


def holds(number: int, sentence: str) -> Ruling:
    """Return the ruling that a number holds."""
    return Ruling(number, "holds", sentence)


def unknown(number: int, reason: str) -> Ruling:
    """Return the ruling that a number cannot be judged."""
    return Ruling(number, "unknown", reason)


def broken(
    number: int, sentence: str, *, file: str = "", offset: int | None = None, expected: str = "", found: str = ""
) -> Ruling:
    """Return the ruling that a number is broken."""
    return Ruling(number, "broken", sentence, file, offset, expected, found)


def from_guarantee(error: GuaranteeBroken, names: Mapping[str, Any], *, number: int | None = None) -> Ruling:
    """Return what a judge of the lab raised; the file is the one of `names` that its sentence names."""
    file = next((name for name in sorted(names, key=len, reverse=True) if name in error.sentence), "")
    return broken(
        error.contract if number is None else number,
        error.sentence,
        file=file,
        expected=error.expected,
        found=error.found,
    )
