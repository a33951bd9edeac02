"""Draw rows of a covering array: soon they contain every pair of levels, then threes.

A *factor* has *levels*, and a row has one level of each factor. Each row is chosen greedily: of a few candidates, the
one that has most pairs that no earlier row has. After the last pair, rows are chosen by the threes that they add. The
rows have no end, and every prefix of them covers much of what so few rows can cover.

Levels that exclude each other are never in one row. A pair that no row can have is listed as impossible. Rows are a
function of the factors, the exclusions and the seed.

Source: Cohen, Dalal, Fredman and Patton, "The AETG System: An Approach to Testing Based on Combinatorial Design", IEEE
Transactions on Software Engineering 23(7), 1997.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations

__all__ = ["CoveringArray", "Level", "Pair", "Row", "possible_pairs"]

Level = tuple[str, str]
"""A factor and one of its levels."""

Pair = tuple[Level, Level]
Row = dict[str, str]
"""The level of each factor."""

_Added = Callable[[int, Sequence[int], int], int]
"""Return what a level adds to a row: the level, the levels of the row, and the same levels as bits."""

_CANDIDATES = 6
"""Candidates for a row while pairs are left."""

_CANDIDATES_OF_THREES = 2
"""Candidates for a row after that; each costs about ten times as much."""

_LEAST = -(1 << 62)
"""Less than any count."""

_TRIES = 30
"""Rows tried for a pair before it counts as impossible."""


class CoveringArray:
    """Hold the rows drawn so far, and the pairs and threes that they lack.

    Sets of levels are bits of an integer, so that one operation counts what a level adds to the levels chosen so far.
    """

    def __init__(
        self,
        factors: Mapping[str, Sequence[str]],
        *,
        excluded: Iterable[Pair] = (),
        first: Row | None = None,
        seed: str = "",
    ) -> None:
        """Take levels by factor, pairs that exclude each other, and perhaps the first row.

        Raises ValueError if a factor has no level, has one twice, if an exclusion names an unknown level, or if the
        first row is no row.
        """
        self._rng = random.Random(f"covering array {seed}")
        self._names: list[Level] = [(factor, level) for factor, levels in factors.items() for level in levels]
        numbers = {level: number for number, level in enumerate(self._names)}
        if len(numbers) < len(self._names) or not all(factors.values()):
            raise ValueError("each factor needs levels, each of them once")
        self._factors = [[numbers[factor, level] for level in levels] for factor, levels in factors.items()]
        self._factor_of = [place for place, levels in enumerate(self._factors) for _ in levels]
        own = [sum(1 << level for level in levels) for levels in self._factors]
        everything = (1 << len(self._names)) - 1
        self._allowed = [everything & ~own[self._factor_of[level]] for level in range(len(self._names))]
        for one, other in excluded:
            if one not in numbers or other not in numbers or one[0] == other[0]:
                raise ValueError(f"no two levels of two factors: {one}, {other}")
            self._allowed[numbers[one]] &= ~(1 << numbers[other])
            self._allowed[numbers[other]] &= ~(1 << numbers[one])
        self._own = own
        self._bound = [
            place
            for place, levels in enumerate(self._factors)
            if any(self._allowed[level] | own[place] != everything for level in levels)
        ]
        self._pairs = list(self._allowed)
        self._threes: dict[tuple[int, int], int] | None = None
        self._rows: list[list[int]] = []
        self.impossible: list[Pair] = []
        if first is not None:
            row = [numbers.get((factor, level), -1) for factor, level in first.items()]
            both = combinations(row, 2)
            if first.keys() != factors.keys() or -1 in row or not all(self._allowed[a] >> b & 1 for a, b in both):
                raise ValueError("the first row is not a row of these factors")
            self._take(row)

    @property
    def pairs_left(self) -> int:
        """Return the number of possible pairs that no row has yet."""
        return sum(mask.bit_count() for mask in self._pairs) // 2

    def rows(self) -> Iterator[Row]:
        """Yield the rows, from the first one on. Two iterators yield equal rows."""
        number = 0
        while True:
            yield self.row(number)
            number += 1

    def row(self, number: int) -> Row:
        """Return a row by its number, from 0 on. Raises ValueError if the exclusions leave no row."""
        while len(self._rows) <= number:
            self._add()
        return {self._names[level][0]: self._names[level][1] for level in self._rows[number]}

    # ---- the next row ------------------------------------------------------------------------------------------------

    def _add(self) -> None:
        row = self._row_of_pairs() if any(self._pairs) else None
        if row is None:
            row = self._row_of_threes()
        self._take(row)

    def _take(self, row: list[int]) -> None:
        chosen = sum(1 << level for level in row)
        for level in row:
            self._pairs[level] &= ~chosen
        if self._threes is not None:
            self._take_threes(row)
        self._rows.append(sorted(row))

    def _row_of_pairs(self) -> list[int] | None:
        """Return a row with at least one new pair, or None if none is possible any more."""
        while any(self._pairs):
            most = max(mask.bit_count() for mask in self._pairs)
            richest = [level for level, mask in enumerate(self._pairs) if mask.bit_count() == most]
            best: list[int] | None = None
            best_count = _LEAST
            first = self._rng.choice(richest)
            second = self._rng.choice(_bits(self._pairs[first]))
            for number in range(_TRIES):
                if best is not None and number >= _CANDIDATES:
                    break
                row = self._completed([first, second], self._pairs_added)
                if row is not None and (count := self._pairs_in(row)) > best_count:
                    best, best_count = row, count
            if best is not None:
                return best
            self._pairs[first] &= ~(1 << second)
            self._pairs[second] &= ~(1 << first)
            self.impossible.append((self._names[min(first, second)], self._names[max(first, second)]))
        return None

    def _row_of_threes(self) -> list[int]:
        if self._threes is None:
            self._threes = {}
            for earlier in self._rows:
                self._take_threes(earlier)
        best: list[int] | None = None
        best_count = _LEAST
        for number in range(_TRIES):
            if best is not None and number >= _CANDIDATES_OF_THREES:
                break
            row = self._completed([], self._threes_added)
            if row is not None and (count := self._threes_in(row)) > best_count:
                best, best_count = row, count
        if best is None:
            raise ValueError("the exclusions leave no row")
        return best

    def _completed(self, start: list[int], added: _Added) -> list[int] | None:
        """Return a row that begins with some levels, or None if their order allowed no row."""
        row = list(start)
        chosen, allowed = 0, (1 << len(self._names)) - 1
        for level in row:
            chosen |= 1 << level
            allowed &= self._allowed[level]
        taken = {self._factor_of[level] for level in row}
        left = [place for place in range(len(self._factors)) if place not in taken]
        self._rng.shuffle(left)
        for index, place in enumerate(left):
            later = [other for other in left[index + 1 :] if other in self._bound] if place in self._bound else []
            ties: list[int] = []
            best_count = _LEAST
            for level in self._factors[place]:
                if not allowed >> level & 1:
                    continue
                after = allowed & self._allowed[level]
                if not all(after & self._own[other] for other in later):
                    continue
                count = added(level, row, chosen)
                if count > best_count:
                    ties, best_count = [level], count
                elif count == best_count:
                    ties.append(level)
            if not ties:
                return None
            level = ties[0] if len(ties) == 1 else self._rng.choice(ties)
            row.append(level)
            chosen |= 1 << level
            allowed &= self._allowed[level]
        return row

    # ---- what a level adds -------------------------------------------------------------------------------------------

    def _pairs_added(self, level: int, row: Sequence[int], chosen: int) -> int:
        return (self._pairs[level] & chosen).bit_count()

    def _pairs_in(self, row: Sequence[int]) -> int:
        chosen = sum(1 << level for level in row)
        return sum((self._pairs[level] & chosen).bit_count() for level in row) // 2

    def _threes_added(self, level: int, row: Sequence[int], chosen: int) -> int:
        assert self._threes is not None
        done = self._threes
        return -sum((done.get((level, other), 0) & chosen).bit_count() for other in row)

    def _threes_in(self, row: Sequence[int]) -> int:
        assert self._threes is not None
        chosen = sum(1 << level for level in row)
        return -sum((self._threes.get(pair, 0) & chosen).bit_count() for pair in combinations(sorted(row), 2))

    def _take_threes(self, row: Sequence[int]) -> None:
        """Note the threes of a row: for each pair of levels the third ones."""
        assert self._threes is not None
        chosen = sum(1 << level for level in row)
        for first in row:
            for second in row:
                if first != second:
                    self._threes[first, second] = self._threes.get((first, second), 0) | chosen


def _bits(mask: int) -> list[int]:
    """Return the numbers of the bits that are set."""
    return [number for number in range(mask.bit_length()) if mask >> number & 1]


def possible_pairs(factors: Mapping[str, Sequence[str]], *, excluded: Iterable[Pair] = ()) -> Iterator[Pair]:
    """Yield the pairs of levels of two factors that do not exclude each other, in order."""
    refused = {frozenset(pair) for pair in excluded}
    for (first, ones), (second, others) in combinations(factors.items(), 2):
        for one in ones:
            for other in others:
                pair = ((first, one), (second, other))
                if frozenset(pair) not in refused:
                    yield pair
