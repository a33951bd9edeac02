"""Numbers and lists in the words of captions."""

from collections.abc import Iterable, Sequence

from tornpage.sim.experiments.values import Row

__all__ = ["grouped", "listed", "number", "of", "per_s", "span_ms", "span_us"]


def number(value: float) -> str:
    """Return a number with three significant digits: 0.25, 1.4 M, 320 k."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e4, " k")):
        if abs(value) >= size:
            return f"{value / (1e3 if unit == ' k' else size):.3g}{unit}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def per_s(rate: float) -> str:
    """Return a rate of messages."""
    return f"{number(rate)}/s"


def span_us(value: float) -> str:
    """Return a time given in µs, in a suitable unit."""
    for size, unit in ((1e6, "s"), (1e3, "ms")):
        if abs(value) >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} µs"


def span_ms(value: float) -> str:
    """Return a time given in ms, in a suitable unit."""
    return span_us(value * 1000)


def listed(words: Sequence[str]) -> str:
    """Return words as a list in a sentence: a, b and c."""
    return " and ".join([*[", ".join(words[:-1])][: len(words) > 1], *words[-1:]])


def grouped(rows: Iterable[Row], column: str) -> dict[str, list[Row]]:
    """Return the rows of each value of a column, values in order of appearance."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(str(row[column]), []).append(row)
    return groups


def of(row: Row, column: str) -> float:
    """Return a number of a row. Raises TypeError without one."""
    cell = row[column]
    if not isinstance(cell, int | float):
        raise TypeError(f"column {column} holds {cell!r}, no number")
    return cell
