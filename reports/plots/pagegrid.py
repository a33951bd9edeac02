"""A page map as a grid: one line of cells per 16 pages of a file.

Names and sizes are beside the first line of a file. A figure has at most 24 lines of cells. What it leaves out is
counted. Names and sizes left out are in the text.
"""

import re
from collections import Counter
from dataclasses import dataclass

from tornpage.reports.palette import FATES
from tornpage.reports.results.tables import FactRow, PageMapRow

__all__ = ["COLUMNS", "LINES_MAX", "GridLine", "PageGrid", "summarise_page_map"]

COLUMNS = 16
LINES_MAX = 24


@dataclass(frozen=True, slots=True)
class GridLine:
    """Pages of `file` from `first_page` on, and the facts (what, fate) beside them.

    A page that is not in the map has the fate "".
    """

    file: str
    first_page: int
    fates: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class PageGrid:
    """The lines of a grid.

    `columns` is the length of the longest line. `fates` are those that occur, in their order, with the number of their
    pages.
    """

    lines: tuple[GridLine, ...]
    columns: int
    fates: tuple[tuple[str, int], ...]
    lines_left_out: int


def summarise_page_map(row: PageMapRow) -> PageGrid:
    """Return the grid of a counterexample; files are in the order of the map, the log first."""
    facts = _facts_by_file(row)
    lines = []
    files = dict.fromkeys([*(page.file for page in row.pages), *facts])
    for file in sorted(files, key=lambda file: "/commitlog/" not in file):
        pages = {page.number: page.fate for page in row.pages if page.file == file}
        for first in range(0, max(pages, default=0) + 1, COLUMNS):
            last = max((number for number in pages if number < first + COLUMNS), default=first - 1)
            fates = [pages.get(number, "") for number in range(first, last + 1)]
            lines.append(GridLine(file, first, tuple(fates), facts.get(file, ()) if first == 0 else ()))
    counts = Counter(page.fate for page in row.pages)
    shown = {fate for line in lines[:LINES_MAX] for fate in (*line.fates, *(fate for _, fate in line.facts))}
    return PageGrid(
        tuple(lines[:LINES_MAX]),
        max((len(line.fates) for line in lines), default=0),
        tuple((fate, counts[fate]) for fate in FATES if fate in shown),
        max(0, len(lines) - LINES_MAX),
    )


def _facts_by_file(row: PageMapRow) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return the facts of each file: "size /store/lock" is about the size of /store/lock."""
    found: dict[str, list[tuple[str, str]]] = {}
    for fact in row.facts:
        what, file = _split(fact)
        found.setdefault(file, []).append((what, fact.fate))
    return {file: tuple(facts) for file, facts in found.items()}


def _split(fact: FactRow) -> tuple[str, str]:
    named = re.fullmatch(r"(\w+) (?:/.* )?(/.*?)( \(\d+\))?", fact.fact)
    return (f"{named[1]}{named[3] or ''}", named[2]) if named else (fact.fact, "all files")
