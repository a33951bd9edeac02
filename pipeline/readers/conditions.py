"""Conditions on columns that a reader checks itself.

Rows that do not fit are not given to Spark. A condition compares one column with constants. A file of which no row can
fit is not opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyspark.sql.datasource import Filter

__all__ = ["CHECKED", "Conditions", "conditions_of"]

CHECKED: Mapping[str, frozenset[str]] = {
    "rocketmq-commitlog": frozenset({"topic", "queue_id", "queue_offset", "offset", "store_timestamp"}),
    "rocketmq-consumequeue": frozenset({"topic", "queue_id", "queue_offset", "offset"}),
}
"""The columns of each format on which the reader checks conditions, in its table of rows."""

_INT64 = range(-(2**63), 2**63)
_SIGNS = {
    "EqualTo": "=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "In": "in",
}


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions that all have to hold.

    `least`, `most` and `one_of` are bounds and permitted numbers by column. `topics` None permits each topic.
    """

    least: Mapping[str, int]
    most: Mapping[str, int]
    one_of: Mapping[str, frozenset[int]]
    topics: frozenset[str] | None

    def may_have(self, column: str, values: range) -> bool:
        """Return whether a number of a range can fit the conditions on a column."""
        least = max(values.start, self.least.get(column, values.start))
        most = min(values.stop - 1, self.most.get(column, values.stop - 1))
        if least > most:
            return False
        allowed = self.one_of.get(column)
        return allowed is None or any(least <= each <= most for each in allowed)

    def has_topic(self, topic: str) -> bool:
        """Return whether a topic fits."""
        return self.topics is None or topic in self.topics

    def fitting(self, columns: Mapping[str, NDArray[np.int64]], rows: int) -> NDArray[np.bool_]:
        """Return which of the rows fit the conditions on these columns."""
        fits = np.ones(rows, bool)
        for name, values in columns.items():
            if name in self.least:
                fits &= values >= self.least[name]
            if name in self.most:
                fits &= values <= self.most[name]
            if name in self.one_of:
                fits &= np.isin(values, np.array(sorted(self.one_of[name]), np.int64))
        return fits


def conditions_of(name: str, filters: Sequence[Filter]) -> tuple[Conditions | None, Iterable[Filter]]:
    """Return the conditions that a reader checks, and the filters that are left to Spark.

    `name` is the format. None stands for no condition.
    """
    least: dict[str, int] = {}
    most: dict[str, int] = {}
    one_of: dict[str, frozenset[int]] = {}
    topics: frozenset[str] | None = None
    left: list[Filter] = []
    for each in filters:
        column, sign, values = _read(name, each)
        if column == "topic" and sign in ("=", "in"):
            named = frozenset(values)
            topics = named if topics is None else topics & named
        elif not sign or column == "topic":
            left.append(each)
        elif sign in ("=", "in"):
            numbers = frozenset(values)
            one_of[column] = one_of[column] & numbers if column in one_of else numbers
        elif sign in (">", ">="):
            bound = values[0] + (sign == ">")
            least[column] = max(bound, least.get(column, bound))
        else:
            bound = values[0] - (sign == "<")
            most[column] = min(bound, most.get(column, bound))
    if not (least or most or one_of or topics is not None):
        return None, left
    return Conditions(least, most, one_of, topics), left


def _read(name: str, each: Filter) -> tuple[str, str, tuple[Any, ...]]:
    """Return column, sign and constants of a filter.

    Without a sign the reader does not check it.
    """
    sign = _SIGNS.get(type(each).__name__, "")
    path: tuple[str, ...] = getattr(each, "attribute", ())
    column = path[0] if len(path) == 1 else ""
    if not sign or column not in CHECKED.get(name, ()):
        return "", "", ()
    value = each.value  # type: ignore[attr-defined]
    values = tuple(value) if sign == "in" else (value,)
    kind = str if column == "topic" else int
    if not all(type(each) is kind for each in values):
        return "", "", ()
    if kind is int and not all(each in _INT64 and each + 1 in _INT64 and each - 1 in _INT64 for each in values):
        return "", "", ()
    return column, sign, values
