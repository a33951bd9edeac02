"""Rows of counterexamples: operations, and the fate of each page, name and size."""

from collections.abc import Sequence
from dataclasses import dataclass

from tornpage.reports.shape import Count, Scalar

__all__ = ["FactRow", "PageMapRow", "PageRow", "wrong_maps"]

_FATES = frozenset({"durable", "kept", "lost", "older", "torn", "gone"})


@dataclass(frozen=True, slots=True)
class PageRow:
    """Page `number` of `file`: versions since its last sync, and its fate."""

    file: str
    number: Count
    versions: Count
    fate: str


@dataclass(frozen=True, slots=True)
class FactRow:
    """A name or a size that was not synced, and its fate."""

    fact: str
    fate: str


@dataclass(frozen=True, slots=True)
class PageMapRow:
    """A counterexample; `crash` is the number, from 0, of its power loss in `operations`."""

    operations: tuple[str, ...]
    crash: Count
    disk: str
    pages: tuple[PageRow, ...]
    facts: tuple[FactRow, ...]
    sentences: tuple[str, ...]
    sentence: str
    token: str
    expected: str | None = None
    found: str | None = None
    bug: str | None = None
    settings: dict[str, Scalar] | None = None
    page: str = ""


def wrong_maps(rows: Sequence[PageMapRow]) -> str | None:
    """Return the error of the counterexamples, or None.

    Errors are a power loss that is no operation, and an unknown fate.
    """
    for number, row in enumerate(rows):
        if row.crash >= len(row.operations):
            return f"rows[{number}].crash is {row.crash}, and there are {len(row.operations)} operations"
        for fate in (*(page.fate for page in row.pages), *(fact.fate for fact in row.facts)):
            if fate not in _FATES:
                return f"rows[{number}] has the unknown fate {fate!r}"
    return None
