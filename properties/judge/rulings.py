"""State a ruling on one number of the contract: it holds, is broken, or cannot be judged, and why.

A judge returns its ruling and never raises, whatever a broken store holds. A campaign raises what a ruling says with
`require`. An error in a judge that is no GuaranteeBroken is a fault of the judge: nothing here turns it into a ruling.

Source: docs/contract.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Final, Literal, ParamSpec

from tornpage.properties.contract import GuaranteeBroken

__all__ = [
    "NAMES",
    "NEVER_JUDGED",
    "CannotTell",
    "Ruling",
    "Word",
    "broken",
    "counted",
    "holds",
    "judge",
    "require",
    "ruling_of",
    "unknown",
]

Asked = ParamSpec("Asked")

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
    18: "Reachable",
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
    """State what holds of one contract number.

    `file` is relative to the store directory, `offset` physical. Both say where a broken number shows.
    """

    contract: int
    verdict: Word
    sentence: str
    file: str = ""
    offset: int | None = None
    expected: str = ""
    found: str = ""

    @property
    def name(self) -> str:
        """The name of the number."""
        return NAMES[self.contract]

    def row(self) -> dict[str, Any]:
        """Return the ruling as a row of a table."""
        return {
            "number": self.contract,
            "name": self.name,
            "verdict": self.verdict,
            "sentence": self.sentence,
            "file": self.file or None,
            "offset": self.offset,
            "expected": self.expected,
            "found": self.found,
        }

    def in_one_of(self, names: Iterable[str], *, contract: int | None = None) -> Ruling:
        """Return a broken ruling with the file of `names` that its sentence names, maybe under another number."""
        file = next((name for name in sorted(names, key=len, reverse=True) if name in self.sentence), "")
        return replace(self, file=file, contract=self.contract if contract is None else contract)


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


def ruling_of(error: GuaranteeBroken) -> Ruling:
    """Return the ruling that a number is broken in this way."""
    return broken(error.contract, error.sentence, expected=error.expected, found=error.found)


class CannotTell(Exception):
    """The evidence does not decide a number; a judge turns it into the ruling that the number is unknown."""


def judge(number: int) -> Callable[[Callable[Asked, Ruling | None]], Callable[Asked, Ruling]]:
    """Make a judge of contract `number` from a function that returns its ruling, or raises.

    It may raise GuaranteeBroken and CannotTell. A function that returns None has found nothing broken.
    """
    right = holds(number, "")

    def judging(rule: Callable[Asked, Ruling | None]) -> Callable[Asked, Ruling]:
        @wraps(rule)
        def ruled(*args: Asked.args, **kwargs: Asked.kwargs) -> Ruling:
            try:
                return rule(*args, **kwargs) or right
            except GuaranteeBroken as error:
                return ruling_of(error)
            except CannotTell as reason:
                return unknown(number, str(reason))

        return ruled

    return judging


def require(ruling: Ruling) -> None:
    """Raise GuaranteeBroken of a broken ruling."""
    if ruling.verdict == "broken":
        raise GuaranteeBroken(ruling.contract, ruling.sentence, ruling.expected, ruling.found)
