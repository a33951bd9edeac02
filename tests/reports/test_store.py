"""Test the page of a store: files to scale, findings with remedy and place, the verdict."""

import json
from typing import Any

import pytest

from tests.reports.documents import store_document
from tornpage.reports.errors import ReportError
from tornpage.reports.pages.store_page import read_store_report, render_store_report
from tornpage.reports.plots.filemap import LENGTH, RUN_STYLES, FileMap, MapRun, lines_of


def page(**changes: Any) -> str:
    return render_store_report(read_store_report(store_document() | changes))


def test_files_of_a_kind_share_a_scale_and_one_bad_byte_can_be_seen() -> None:
    long = FileMap(
        "commitlog/0", "log", 10_000_000, 0, (MapRun("record", 0, 9_999_999, 5), MapRun("unreadable", 5, 1, 0))
    )
    short = FileMap("commitlog/1", "log", 5_000_000, 0, ())
    queue = FileMap("consumequeue/T/0/0", "queue", 100, 0, (MapRun("unit", 0, 100, 5),))
    lines = lines_of([long, short, queue], [("commitlog/0", 5_000_000), ("elsewhere", 1), ("commitlog/1", 9**9)])
    assert [line.length for line in lines] == [str(LENGTH), "500", str(LENGTH)]
    assert lines[0].bars[1].width == "2"
    assert lines[0].marks == ("500",)
    assert lines[1].marks == ("500",)
    assert lines[0].bars[0].said == "5 records, 9,999,999 bytes at 0"
    assert lines[1].said == "nothing could be read"


def test_kinds_of_runs_differ_in_height_or_colour_and_damage_stands_out() -> None:
    heights = {what: height for what, (_, _, height, _) in RUN_STYLES.items()}
    assert heights["unreadable"] > heights["record"] > heights["blank"] > heights["zeros"] > 0
    for kinds in (
        ("record", "blank", "zeros", "unreadable", "more"),
        ("unit", "empty", "prefill"),
        ("slots", "entries"),
    ):
        assert len({heights[kind] for kind in kinds}) == len(kinds)


def test_every_finding_is_there_with_place_and_remedy_the_log_first() -> None:
    text = page()
    assert text.index("CL_BAD_RECORD") < text.index("CQ_MISSING") < text.index("CP_AHEAD_OF_LOG")
    for said in (
        "2 findings of damage: promised data is missing or wrong.",
        "position 200, offset 30,801, queue offset 10",
        "Remedy: restore.",
        "no record can be read, 5,000 bytes at 19,801",
        "tornpage audit STORE --html store.html",
        "<td>sound</td>",
    ):
        assert said in text


def test_many_findings_of_a_code_are_folded_behind_the_first() -> None:
    """They filled a hundred screens before the map of the files."""
    finding = next(each for each in store_document()["findings"] if each["code"] == "CQ_MISSING")
    few, many = ([{**finding, "queue_offset": number} for number in range(count)] for count in (30, 31))
    assert "<details open><summary>30 findings" in page(findings=few)
    text = page(findings=many)
    assert "<details><summary>31 findings" in text
    assert f"First: {finding['message']}, in <code>{finding['file']}</code>." in text
    assert "First: " not in page(findings=few)


@pytest.mark.parametrize(
    ("verdict", "word", "tone"),
    [
        ("holds", "sound", "good"),
        ("broken", "damaged", "bad"),
        ("unknown", "unknown", "unsure"),
        (None, "not judged", "unsure"),
    ],
)
def test_only_a_store_that_holds_is_green(verdict: str | None, word: str, tone: str) -> None:
    assert f'<div class="banner {tone}">\n<p class="verdict">{word}</p>' in page(verdict=verdict)


def test_an_empty_store_has_a_page() -> None:
    empty: dict[str, list[str]] = {
        name: [] for name in ("findings", "files", "queues", "indexes", "small_files", "consumers")
    }
    text = page(**empty, verdict="holds")
    for said in ("No findings.", "no files to draw", "no consume queues", "no index"):
        assert said in text


def test_index_files_say_how_they_are() -> None:
    (index,) = store_document()["indexes"]
    said = [
        ({"problems": 3}, "3 broken links"),
        ({"slots": None, "problems": None}, "slots unknown"),
        ({"slots": None, "problems": None, "entries": 0}, "empty"),
        ({"problems": None}, "not compared"),
    ]
    report = read_store_report(store_document() | {"indexes": [index | change for change, _ in said]})
    assert [each.health for each in report.indexes] == [word for _, word in said]


def test_a_document_of_another_shape_is_refused() -> None:
    with pytest.raises(ReportError, match=r"store.queues\[0\] has no 'topic'"):
        read_store_report(json.loads(json.dumps(store_document() | {"queues": [{}]})))
