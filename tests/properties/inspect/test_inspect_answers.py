"""What a look-up answers when there is nothing, more than is shown, or a store at work."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pipeline.handmade import HandmadeStore
from tests.support.properties.handmade import golden_dirs
from tornpage import Message, MessageStore, MessageStoreConfig
from tornpage.pipeline.audit.audit import audit_store
from tornpage.properties.inspect import Query, inspect_view
from tornpage.properties.inspect.query import parse_times

STORE = next(path for path in golden_dirs() if path.name == "01-plain-ascii") / "store"


def test_date_is_a_day() -> None:
    day = 86_400_000
    assert parse_times("1970-01-02") == (day, 2 * day - 1)
    assert parse_times("1970-01-02..1970-01-03") == (day, 3 * day - 1)
    assert parse_times("1970-01-02..1970-01-03T00:00:00Z") == (day, 2 * day)
    assert parse_times("5") == (5, 5)


def test_records_of_a_day_are_found() -> None:
    rows = inspect_view(STORE, "log", None, Query(times=parse_times("2026-11-21")))["rows"]
    assert len(rows) == 60


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (Query(topic="NoSuchTopic"), "no record of the topic 'NoSuchTopic' is in the log"),
        (Query(tag="NoSuchTag"), "no matching record"),
    ],
)
def test_look_up_without_an_answer_says_so(query: Query, said: str) -> None:
    document = inspect_view(STORE, "log", None, query)
    assert [(each["code"], each["message"]) for each in document["findings"]] == [("LOOK_NOTHING", said)]
    assert document["verdict"] == "holds"


def test_offset_past_the_log_claims_no_end() -> None:
    figures = inspect_view(STORE, "log", None, Query(offset=99_999_999_999))["figures"]
    assert "max_offset" not in figures


@pytest.mark.parametrize(
    ("view", "query", "left_out"),
    [
        ("log", Query(limit=10), 50),
        ("log", Query(limit=100), 0),
        ("log", Query(limit=10, offset=0), None),
        ("log", Query(limit=10, times=parse_times("2026-11-21")), None),
        ("config", Query(limit=0), 1),
    ],
)
def test_cut_list_says_how_many_rows_are_missing(view: str, query: Query, left_out: int | None) -> None:
    assert inspect_view(STORE, view, None, query)["rowsLeftOut"] == left_out


def test_moving_end_is_named_in_the_file_that_holds_it(tmp_path: Path) -> None:
    """It once was a negative position in the file that was made ahead."""
    config = MessageStoreConfig(mapped_file_size_commit_log=8192)
    with MessageStore.open(tmp_path / "store", config) as store:
        for _ in range(13):
            end = store.put(Message("T", b"x" * 1000)).offset
        findings = audit_store(tmp_path / "store").findings
        [moving] = [each for each in findings if each.code == "CL_TAIL_MOVING"]
    assert moving.offset is not None
    assert moving.offset > end
    assert moving.file == f"commitlog/{moving.offset - moving.offset % 8192:020}"
    assert moving.position == moving.offset % 8192


def test_handmade_store_has_rows_with_time_tags_and_id(tmp_path: Path) -> None:
    from tornpage.outcomes.inspecting import document_text

    store = HandmadeStore(tmp_path / "store")
    store.put("T", 0, 0)
    document = inspect_view(store.write(), "log", None, Query())
    text = document_text(document, view="log", everything=False)
    assert "2023-11-14T22:13:20.001Z" in text
    assert document["rows"][0]["msgId"] in text
    assert "unreadable bytes 0" not in text
