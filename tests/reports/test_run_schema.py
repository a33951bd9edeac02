"""Test that everything that docs/schema/run.json allows can be read.

The reader of run directories asks for nothing else.
"""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from tests.support.json_schema import definition, objections, sample
from tornpage.reports.errors import ReportError
from tornpage.reports.pages import counterexample
from tornpage.reports.plots import lanes
from tornpage.reports.results import tables
from tornpage.reports.shape import shaped

READERS: dict[str, type[Any]] = {
    "": tables.RunRecord,
    "finding": tables.Finding,
    "caption": tables.Caption,
    "page_map_row": tables.PageMapRow,
    "page": tables.PageRow,
    "fact": tables.FactRow,
    "discovery_row": tables.DiscoveryRow,
    "activation_row": tables.ActivationRow,
    "pairs_row": tables.PairsRow,
    "stages_row": tables.StageRow,
    "account": counterexample.Counterexample,
    "lanes": lanes.Lanes,
    "operation": lanes.LaneOperation,
    "mark": lanes.LaneMark,
    "page_history": counterexample.PageHistory,
    "hex_page": counterexample.HexPage,
    "hex_line": counterexample.HexLine,
    "page_version": counterexample.PageVersion,
    "frame": counterexample.FrameRow,
    "record": counterexample.RecordRow,
    "decision": counterexample.Decision,
    "shrinking": counterexample.Shrinking,
    "shrink_step": counterexample.ShrinkRow,
}
TABLES = frozenset(("page_map", "discovery", "activation", "pairs", "stages"))
FOUND_BY_THE_READER = {("page_map_row", "page")}
"""Not in any document: whether there is a page beside the report."""

PROBES: tuple[Any, ...] = (None, True, -1, 0, 7, 2.5, "x", [], ["x"], [1], {}, {"a": 1})


def is_read(name: str, document: Any) -> bool:
    try:
        shaped(READERS[name], document, path=Path("run.json"), place="run")
    except ReportError:
        return False
    return True


def test_each_definition_has_a_reader() -> None:
    assert definition("")["$defs"].keys() == (READERS.keys() - {""}) | TABLES


@pytest.mark.parametrize("name", READERS)
def test_the_schema_has_each_key_of_the_reader(name: str) -> None:
    schema = definition(name)
    for field in dataclasses.fields(READERS[name]):
        if (name, field.name) not in FOUND_BY_THE_READER:
            assert field.name in schema["properties"], field.name
            is_wanted = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
            assert not is_wanted or field.name in schema["required"], field.name


@pytest.mark.parametrize("full", [True, False], ids=["full", "least"])
@pytest.mark.parametrize("name", READERS)
def test_what_the_schema_allows_is_read(name: str, full: bool) -> None:
    schema = definition(name)
    document = sample(schema, full=full)
    assert not [*objections(document, schema)]
    assert is_read(name, document)
    refused = 0
    for key in schema["properties"]:
        for probe in PROBES:
            changed = {**document, key: probe}
            if any(objections(changed, schema)):
                refused += 1
            else:
                assert is_read(name, changed), (key, probe)
    assert refused >= 3 * len(schema["properties"])


@pytest.mark.parametrize("name", READERS)
def test_without_a_key_that_the_reader_wants_the_schema_objects(name: str) -> None:
    document = sample(definition(name), full=True)
    for key in document:
        without = {other: value for other, value in document.items() if other != key}
        assert is_read(name, without) or any(objections(without, definition(name))), key
