"""Count the pairs and threes of levels that runs had.

A run is given by its levels as text, `factor=level` separated by spaces. Two levels of different factors that one run
had are a pair that was exercised. The result depends on the runs and not on their order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tornpage.properties.program.covering import Level, Pair, possible_pairs

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Exercised", "LevelsTogether", "exercised_by"]

_WORD_BITS = 64


@dataclass(frozen=True, slots=True)
class Exercised:
    """Hold the possible pairs of `levels`, and those that no run has exercised.

    `threes_exercised` counts sets of three levels, of `threes` that contain only possible pairs.
    """

    levels: tuple[Level, ...]
    pairs: tuple[Pair, ...]
    missing: tuple[Pair, ...]
    threes: int
    threes_exercised: int

    @property
    def exercised(self) -> int:
        """Return the number of exercised pairs."""
        return len(self.pairs) - len(self.missing)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each level: its possible pairs and the exercised ones."""
        possible = Counter(level for pair in self.pairs for level in pair)
        missing = Counter(level for pair in self.missing for level in pair)
        return [
            {
                "factor": factor,
                "level": level,
                "pairs": (pairs := possible[factor, level]),
                "exercised": pairs - missing[factor, level],
            }
            for factor, level in self.levels
        ]


class LevelsTogether:
    """Collect which levels runs had together, in memory that does not grow with the runs.

    For each pair of levels there is a bit for each third level that some run had with them.
    """

    def __init__(self, factors: Mapping[str, Sequence[str]]) -> None:
        self._factors = {factor: tuple(levels) for factor, levels in factors.items()}
        self._levels: tuple[Level, ...] = tuple((factor, level) for factor in factors for level in factors[factor])
        self._numbers = {f"{factor}={level}": number for number, (factor, level) in enumerate(self._levels)}
        many = len(self._levels)
        words = -(-many // _WORD_BITS)
        self._bits: NDArray[np.uint64] = np.zeros((many, words), np.uint64)
        for number in range(many):
            self._bits[number, number // _WORD_BITS] = 1 << number % _WORD_BITS
        self._together: NDArray[np.uint64] = np.zeros((many, many, words), np.uint64)

    def add(self, text: str) -> None:
        """Add the levels of a run. Levels that no factor has are ignored."""
        numbers = self._numbers
        levels = [numbers[word] for word in text.split() if word in numbers]
        if levels:
            row = np.zeros_like(self._bits)
            row[levels] = np.bitwise_or.reduce(self._bits[levels])
            for level in levels:
                with_level = self._together[level]
                np.bitwise_or(with_level, row, out=with_level)

    def merge(self, other: LevelsTogether) -> None:
        """Add the runs of another collection of the same factors."""
        self._together |= other._together

    def exercised(self, *, excluded: Iterable[Pair] = ()) -> Exercised:
        """Return what the runs have exercised."""
        numbers = {level: number for number, level in enumerate(self._levels)}
        pairs = tuple(possible_pairs(self._factors, excluded=excluded))
        allowed = [0] * len(numbers)
        numbered = [(numbers[one], numbers[other]) for one, other in pairs]
        for first, second in numbered:
            allowed[first] |= 1 << second
            allowed[second] |= 1 << first
        missing = []
        threes = had = 0
        for pair, (first, second) in zip(pairs, numbered, strict=True):
            together = int.from_bytes(self._together[first, second].astype("<u8").tobytes(), "little")
            if not together:
                missing.append(pair)
            both = allowed[first] & allowed[second] & -(1 << second)  # the third level comes after the second one
            threes += both.bit_count()
            had += (both & together).bit_count()
        return Exercised(self._levels, pairs, tuple(missing), threes, had)


def exercised_by(
    runs: Iterable[str], factors: Mapping[str, Sequence[str]], *, excluded: Iterable[Pair] = ()
) -> Exercised:
    """Return what runs have exercised. Levels that no factor has are ignored."""
    together = LevelsTogether(factors)
    for text in runs:
        together.add(text)
    return together.exercised(excluded=excluded)
