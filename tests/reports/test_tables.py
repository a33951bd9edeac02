"""Test run directories: complete, with missing parts, and malformed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tornpage.reports.errors import ReportError
from tornpage.reports.results.tables import Caption, read_run

MakeRun = Callable[..., Path]


def test_read_run_gives_rows_and_captions(make_run: MakeRun) -> None:
    run = read_run(make_run())
    assert (run.record.verdict, run.record.seed, run.record.figures["kills_killed"]) == ("holds", 0, 200.0)
    assert run.steps is not None
    assert [row.step for row in run.steps.rows][-1] == "campaign"
    assert run.steps.rows[-1].verdict is None
    assert run.at_risk is not None
    assert run.at_risk.caption == Caption("simulation", 0, "tornpage sim run --seed 0 --messages 200000")
    assert run.audit is not None
    assert run.audit.rows[1].findings[0].offset == 20480


def test_unknown_keys_are_ignored_and_captions_may_be_missing(make_run: MakeRun) -> None:
    rows = [{"states": 1, "distinct_images": 1, "distinct_recovered": 1, "more": []}]
    run = read_run(make_run(discovery={"rows": rows, "of": "tomorrow"}, record={"more": 1}))
    assert run.discovery is not None
    assert run.discovery.caption == Caption()


def test_missing_tables_are_none(make_run: MakeRun) -> None:
    names = ("steps", "put_latency", "at_risk", "stalls", "discovery", "activation", "pairs", "page_map", "audit")
    for name in names:
        run = read_run(make_run(f"without-{name}", without=(name,)))
        assert [table for table in names if getattr(run, table) is None] == [name]


STALL = {"allocation": "one-ahead", "roll": 1, "stall_us": 1.0}
LATENCY = {"policy": "p", "latency_us": 1.0, "fraction": 0.5}


@pytest.mark.parametrize(
    ("table", "document", "said"),
    [
        ("stalls", [], "table is no object"),
        ("stalls", {}, "table has no 'rows'"),
        ("stalls", {"rows": {}}, "table.rows is no list"),
        ("stalls", {"rows": [1]}, "table.rows[0] is no object"),
        ("stalls", {"rows": [{**STALL, "stall_us": "1"}]}, "rows[0].stall_us is not a number"),
        ("stalls", {"rows": [STALL, {**STALL, "stall_us": True}]}, "rows[1].stall_us is not a number"),
        ("stalls", {"rows": [{**STALL, "stall_us": -1}]}, "rows[0].stall_us is -1.0, less than 0"),
        ("stalls", {"rows": [{**STALL, "stall_us": 10**400}]}, "rows[0].stall_us is too large a number"),
        ("stalls", {"rows": [{**STALL, "roll": 1.5}]}, "rows[0].roll is not a whole number"),
        ("stalls", {"rows": [{**STALL, "allocation": None}]}, "rows[0].allocation is not text"),
        ("stalls", {"rows": [{"allocation": "a", "roll": 1}]}, "rows[0] has no 'stall_us'"),
        ("stalls", {"rows": [], "caption": "x"}, "table.caption is no object"),
        ("stalls", {"rows": [], "caption": {"seed": "x"}}, "table.caption.seed is not a whole number"),
        ("put_latency", {"rows": [{**LATENCY, "fraction": 1.5}]}, "more than 1"),
        ("put_latency", {"rows": [LATENCY, {**LATENCY, "latency_us": 2, "fraction": 0.1}]}, "no CDF"),
        ("page_map", {"rows": [{}]}, "rows[0] has no 'operations'"),
        ("audit", {"rows": [{"store": "s", "what": "w", "verdict": None, "findings": [3]}]}, "findings[0]"),
    ],
)
def test_a_malformed_table_is_told_with_its_place(make_run: MakeRun, table: str, document: Any, said: str) -> None:
    directory = make_run(**{table: document})
    with pytest.raises(ReportError) as caught:
        read_run(directory)
    assert caught.value.file == str(directory / "tables" / f"{table}.json")
    assert said in caught.value.what
    assert caught.value.remedy


@pytest.mark.parametrize(("change", "said"), [({"crash": 9}, "crash is 9"), ({"pages": "?"}, "unknown fate 'eaten'")])
def test_a_page_map_that_contradicts_itself_is_refused(make_run: MakeRun, change: dict[str, Any], said: str) -> None:
    if "pages" in change:
        change = {"pages": [{"file": "/s/lock", "number": 0, "versions": 1, "fate": "eaten"}]}
    directory = make_run()
    path = directory / "tables" / "page_map.json"
    document = json.loads(path.read_text())
    document["rows"][0] |= change
    path.write_text(json.dumps(document))
    with pytest.raises(ReportError, match=said):
        read_run(directory)


@pytest.mark.parametrize(
    "text", [b"", b"{", b"\xff\xfe", b'{"rows": [NaN]}', b'{"rows": [Infinity]}', b"[" * 100_000, b"null", b"\0"]
)
@pytest.mark.parametrize("name", ["run.json", "tables/steps.json"])
def test_what_is_no_json_is_one_error(make_run: MakeRun, name: str, text: bytes) -> None:
    directory = make_run()
    (directory / name).write_bytes(text)
    with pytest.raises(ReportError) as caught:
        read_run(directory)
    assert caught.value.file == str(directory / name)
    assert len(str(caught.value).splitlines()) == 1


def test_a_directory_in_place_of_a_table_is_an_error(make_run: MakeRun) -> None:
    directory = make_run(without=("steps",))
    (directory / "tables" / "steps.json").mkdir()
    with pytest.raises(ReportError, match="cannot be read"):
        read_run(directory)


@pytest.mark.parametrize("change", [{"schema": 2}, {"schema": None}, {"figures": {"a": "b"}}, {"findings": {}}])
def test_a_run_of_another_shape_is_refused(make_run: MakeRun, change: dict[str, Any]) -> None:
    with pytest.raises(ReportError, match=r"run\.json"):
        read_run(make_run(record=change))


@pytest.mark.parametrize("name", [".", "nowhere", "file"])
def test_a_directory_that_is_no_run_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ReportError, match="not a run directory"):
        read_run(tmp_path / name)
