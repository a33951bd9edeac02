"""Test that a reader with conditions gives exactly the rows that fit."""

from __future__ import annotations

import json
import operator
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.pipeline.handmade import copied
from tornpage.pipeline.readers.asking import Ask
from tornpage.pipeline.readers.conditions import CHECKED, conditions_of
from tornpage.pipeline.readers.parts import Said
from tornpage.pipeline.readers.planning import plan
from tornpage.pipeline.readers.reading import read_task

datasource = pytest.importorskip("pyspark.sql.datasource")

LOG, QUEUES = CHECKED
MEANING: dict[str, Callable[[Any, Any], bool]] = {
    "EqualTo": operator.eq,
    "GreaterThan": operator.gt,
    "GreaterThanOrEqual": operator.ge,
    "LessThan": operator.lt,
    "LessThanOrEqual": operator.le,
    "In": lambda value, among: value in among,
}
"""The meaning of each kind of filter, as Spark documents it."""

STORES = ("02-topics-unicode-limits", "03-rollover-blanks-retention", "06-index-files-collisions")


def rows(ask: Ask) -> list[dict[str, Any]]:
    return [row for task in plan(ask) for batch in read_task(task, ask) for row in batch.to_pylist()]


def fits(row: dict[str, Any], filters: list[Any]) -> bool:
    return all(MEANING[type(each).__name__](row[each.attribute[0]], each.value) for each in filters)


def drawn(rng: random.Random, name: str, found: list[dict[str, Any]]) -> list[Any]:
    """Draw up to three filters with constants at, near and far from values of rows."""
    filters = []
    for _ in range(rng.randint(1, 3)):
        column = rng.choice(sorted(CHECKED[name]))
        value = rng.choice(found)[column] if found else 0
        if column == "topic":
            kind = rng.choice(["EqualTo", "In"])
            constant = rng.choice([value, "none"])
        else:
            kind = rng.choice(sorted(MEANING))
            constant = rng.choice([value, value + 1, value - 1, 0, -1, 2**62])
        filters.append(getattr(datasource, kind)((column,), (constant, value) if kind == "In" else constant))
    return filters


@pytest.mark.parametrize("name", [LOG, QUEUES])
@pytest.mark.parametrize("store", [*(pytest.param(each, marks=pytest.mark.slow) for each in STORES[:-1]), STORES[-1]])
@pytest.mark.parametrize("columns", ["", "*"])
def test_rows_that_fit_are_those_of_a_whole_scan(tmp_path: Path, name: str, store: str, columns: str) -> None:
    directory = copied(store, tmp_path / "store")
    options = {"path": str(directory), "splitBytes": "4096", **({"columns": columns} if columns else {})}
    whole = Ask.of(name, options)
    found = rows(whole)
    rng = random.Random(f"{name} {store} {columns}")
    left_out = 0
    for _ in range(40):
        filters = drawn(rng, name, found)
        conditions, left = conditions_of(name, filters)
        assert (conditions is not None, list(left)) == (True, [])
        wanted = [row for row in found if fits(row, filters)]
        assert rows(replace(whole, conditions=conditions)) == wanted, filters
        left_out += len(found) - len(wanted)
    assert left_out


def test_files_without_a_fitting_row_are_not_planned(tmp_path: Path) -> None:
    directory = copied("03-rollover-blanks-retention", tmp_path / "store")

    def files(name: str, *filters: Any) -> set[str]:
        ask = replace(Ask.of(name, {"path": str(directory)}), conditions=conditions_of(name, filters)[0])
        return {part.label for task in plan(ask) for part in task if not isinstance(part, Said)}  # type: ignore[union-attr]

    log = sorted(files(LOG))
    assert len(log) > 2
    begin = int(Path(log[1]).name)
    assert files(LOG, datasource.LessThan(("offset",), begin)) == {log[0]}
    assert files(LOG, datasource.EqualTo(("offset",), begin)) == {log[1]}
    assert files(QUEUES, datasource.EqualTo(("topic",), "no such topic")) == set()
    queues = files(QUEUES)
    topic = Path(min(queues)).parts[1]
    assert files(QUEUES, datasource.In(("topic",), (topic,))) == {
        label for label in queues if Path(label).parts[1] == topic
    }


@pytest.mark.parametrize(
    "left",
    [
        datasource.EqualTo(("body_size",), 1),
        datasource.EqualTo(("topic", "name"), "a"),
        datasource.GreaterThan(("topic",), "a"),
        datasource.EqualTo(("offset",), None),
        datasource.EqualTo(("offset",), True),
        datasource.LessThan(("offset",), -(2**63)),
        datasource.IsNotNull(("topic",)),
        datasource.Not(datasource.EqualTo(("topic",), "a")),
        datasource.StringStartsWith(("topic",), "a"),
    ],
)
def test_other_filters_are_left_to_spark(left: Any) -> None:
    assert conditions_of(LOG, [left]) == (None, [left])
    conditions, others = conditions_of(LOG, [datasource.EqualTo(("topic",), "a"), left])
    assert conditions is not None
    assert list(others) == [left]


def test_problems_are_not_filtered(tmp_path: Path) -> None:
    sources = pytest.importorskip("tornpage.pipeline.readers.sources")
    directory = copied("01-plain-ascii", tmp_path / "store")
    reader = sources.StoreReader(Ask.of(LOG, {"paths": json.dumps([str(directory)]), "table": "problems"}), cores=1)
    filters = [datasource.EqualTo(("store",), "x")]
    assert reader.pushFilters(filters) == filters
