"""Count the pairs and threes of levels that runs had.

A run is given by its levels as text, `factor=level` separated by spaces. Two levels of different factors that one run
had are a pair that was exercised. The result depends on the runs and not on their order.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from tornpage.properties.program.covering import Level, Pair, possible_pairs

__all__ = ["Exercised", "exercised_by"]


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


def exercised_by(
    runs: Iterable[str], factors: Mapping[str, Sequence[str]], *, excluded: Iterable[Pair] = ()
) -> Exercised:
    """Return what runs have exercised. Levels that no factor has are ignored."""
    numbers = {
        (factor, level): number
        for number, (factor, level) in enumerate((factor, level) for factor in factors for level in factors[factor])
    }
    pairs = tuple(possible_pairs(factors, excluded=excluded))
    allowed = [0] * len(numbers)
    numbered = [(numbers[one], numbers[other]) for one, other in pairs]
    for first, second in numbered:
        allowed[first] |= 1 << second
        allowed[second] |= 1 << first
    together: dict[tuple[int, int], int] = {}
    for text in dict.fromkeys(runs):
        levels = [numbers[level] for word in text.split() if (level := _level(word)) in numbers]
        chosen = sum(1 << level for level in levels)
        for first, second in combinations(sorted(levels), 2):
            if allowed[first] >> second & 1:
                together[first, second] = together.get((first, second), 0) | chosen
    missing = tuple(pair for pair, number in zip(pairs, numbered, strict=True) if number not in together)
    threes = had = 0
    for first, second in numbered:
        both = allowed[first] & allowed[second] & -(1 << second)  # the third level comes after the second one
        threes += both.bit_count()
        had += (both & together.get((first, second), 0)).bit_count()
    return Exercised(tuple(numbers), pairs, missing, threes, had)


def _level(word: str) -> Level:
    factor, _, level = word.partition("=")
    return factor, level
