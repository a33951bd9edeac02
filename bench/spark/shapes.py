"""Name the rows, with the figures of 2026-11-23 for a store of 3.22 GB."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["OLD_BYTES", "SHAPES", "Shape"]

Kind = Literal["make", "walk", "audit", "query"]

OLD_BYTES = 3_220_000_000
"""Bytes of records of the store of the old figures."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A row.

    `cores` are those of a query. `old` has wall time, processor time and memory of 2026-11-23 in seconds and MB; 0 is
    not known.
    """

    name: str
    kind: Kind
    what: str
    old: tuple[float, float, float] = (0.0, 0.0, 0.0)
    query: str = ""
    cores: int = 0
    engine: str = ""
    is_damaged: bool = False
    work: Literal["", "new", "resume"] = ""


def _audit(
    name: str,
    what: str,
    engine: str,
    *old: float,
    damaged: bool = False,
    work: Literal["", "new", "resume"] = "",
) -> Shape:
    wall_s, cpu_s, memory_mb = old
    return Shape(name, "audit", what, (wall_s, cpu_s, memory_mb), engine=engine, is_damaged=damaged, work=work)


def _query(query: str, what: str, *, one: float | None = 0.0, two: float = 0.0) -> tuple[Shape, ...]:
    """Return a row on one core and a row on two.

    `one` and `two` are old seconds. Without `one` there is only the row on two cores.
    """
    on_two = Shape(f"{query}_2", "query", f"{what}, local[2]", (two, 0.0, 0.0), query, 2)
    if one is None:
        return (on_two,)
    return (Shape(f"{query}_1", "query", f"{what}, local[1]", (one, 0.0, 0.0), query, 1), on_two)


_QUERIES = (
    *_query("count_offsets", "count, column offset", one=9.18, two=3.71),
    *_query("by_topic", "group by topic, column topic", one=7.49, two=4.23),
    *_query("by_topic_bulk", "the same by read_table", one=6.48, two=3.87),
    *_query("topic_sums", "the same by the table topics"),
    *_query("by_minute", "group by minute and topic", one=6.44, two=4.82),
    *_query("join", "join of log and queues", one=17.47, two=14.36),
    *_query("parquet_usual", "Parquet, usual columns", one=10.01, two=8.98),
    *_query("count_usual", "count, usual columns", one=None, two=5.07),
    *_query("by_topic_usual", "group by topic, usual columns", one=None, two=5.34),
    *_query("one_topic", "count of one topic of fifty", one=None, two=4.92),
    *_query("one_topic_by_queues", "the same by its queues", one=None),
    *_query("bodies", "length of all bodies, read_table", one=None),
    *_query("parquet_bodies", "Parquet with bodies, keys, properties", one=None, two=39.1),
    *_query("parquet_bodies_bulk", "the same by read_table", one=None, two=30.4),
    *_query("units", "count of queue units", one=None, two=3.46),
    *_query("entries", "count of index entries", one=None, two=1.68),
    *_query("stream", "stream of offset and topic to Parquet, once", one=None),
)

SHAPES: tuple[Shape, ...] = (
    Shape("make", "make", "write the store", (12.1, 18.2, 136.0)),
    Shape("walk", "walk", "compiled walk of the log, one process", (5.69, 5.07, 0.0)),
    _audit("audit_plain", "audit, plain", "plain", 15.3, 15.3, 1506),
    _audit("audit_tasks", "audit, tasks", "tasks", 27.4, 0, 2035),
    _audit("audit_joins", "audit, joins", "joins", 44.9, 0, 2022),
    _audit("audit_joins_work", "audit, joins --work", "joins", 47.9, 0, 2031, work="new"),
    _audit("audit_joins_resume", "audit, joins --resume, nothing changed", "joins", 41.8, 0, 1871, work="resume"),
    *(shape for shape in _QUERIES if shape.cores == 1),
    *(shape for shape in _QUERIES if shape.cores == 2),
    _audit("damaged_plain", "audit of the damaged store, plain", "plain", 14.8, 14.6, 1434, damaged=True),
    _audit("damaged_tasks", "audit of the damaged store, tasks", "tasks", 22.7, 26.5, 2056, damaged=True),
    _audit("damaged_joins", "audit of the damaged store, joins", "joins", 60.0, 103.0, 2074, damaged=True),
)
"""The rows in order. The rows of a damaged store are last, since the damage stays."""
