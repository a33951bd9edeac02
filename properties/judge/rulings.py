"""State a ruling on a contract number: it holds, is broken, or cannot be judged.

A judge returns its ruling and never raises, whatever a broken store holds. A campaign raises a broken ruling with
`require`. An error in a judge other than GuaranteeBroken and CannotTell is a fault of the judge and is not caught.

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
    "bounds_text",
    "broken",
    "counted",
    "holds",
    "judge",
    "queue_text",
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
    10: "an image does not show which files were due for removal",
    11: "buffers of readers end with the process",
    12: "an image does not show when a message was delivered; number 4 judges that it waits in its queue",
    15: "the image of a master does not show what its replica had",
}
"""Why an image can never decide these numbers."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """State what holds of one contract number.

    `file` is relative to the store directory, `offset` is physical. Both give the place of a broken number.
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
        """Return a broken ruling with the file that its sentence names.

        The file is one of `names`; `contract` replaces the number.
        """
        file = next((name for name in sorted(names, key=len, reverse=True) if name in self.sentence), "")
        return replace(self, file=file, contract=self.contract if contract is None else contract)


def counted(count: float, one: str, several: str = "") -> str:
    """Return a number with its word: 1 record, 2 records."""
    return f"{count:,} {one if count == 1 else several or f'{one}s'}"


def queue_text(queue: tuple[str, int]) -> str:
    """Return a queue as TOPIC/ID."""
    return f"{queue[0]}/{queue[1]}"


def bounds_text(bounds: tuple[int, int]) -> str:
    """Return a range as text."""
    return f"{bounds[0]} to {bounds[1]}"


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
    """Return the ruling for a broken guarantee."""
    return broken(error.contract, error.sentence, expected=error.expected, found=error.found)


class CannotTell(Exception):
    """The evidence does not decide a number.

    A judge turns this into the ruling that the number is unknown.
    """


def judge(number: int) -> Callable[[Callable[Asked, Ruling | None]], Callable[Asked, Ruling]]:
    """Make a judge of contract `number` from a function that returns its ruling.

    The function may raise GuaranteeBroken and CannotTell. If it returns None, the number holds.
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
    """Raise GuaranteeBroken for a broken ruling."""
    if ruling.verdict == "broken":
        raise GuaranteeBroken(ruling.contract, ruling.sentence, ruling.expected, ruling.found)
