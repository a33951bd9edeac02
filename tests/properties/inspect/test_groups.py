"""Test the view of groups: lag of consumer groups and delay levels, from any files."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.impl.stores import snapshot
from tornpage.cli.inspect import command
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.message.message import Message
from tornpage.impl.store import MessageStore
from tornpage.properties.inspect import InspectError, Query, inspect_view

GOLDEN = Path(__file__).parents[2] / "data" / "golden" / "05-transactions-delays-light-queues" / "store"
SMALL = MessageStoreConfig(mapped_file_size_commit_log=16384, mapped_file_size_consume_queue=400)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a store with three messages in T/0 and one in T/1; group G has read two."""
    with MessageStore.open(tmp_path, SMALL, files=OsFiles(), clock=lambda: 1_700_000_000_000) as opened:
        for queue_id in (0, 0, 0, 1):
            opened.put(Message("T", b"body", queue_id=queue_id))
        while opened.dispatch_behind_bytes:
            opened.pull_async("", "T", queue_id=1, offset=0, hold_ms=1_000).result(30).release()
        opened.commit_offset("G", "T", 0, 2)
    return tmp_path


def rewrite(store: Path, name: str, text: str) -> None:
    (store / "config").mkdir(exist_ok=True)
    (store / "config" / name).write_text(text)


def rows_of(store: Path, **query: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = inspect_view(store, "groups", None, Query(**query))["rows"]
    return rows


def codes(store: Path) -> list[tuple[str, str]]:
    findings = inspect_view(store, "groups", None, Query())["findings"]
    return [(finding["code"], finding["severity"]) for finding in findings]


def lags(store: Path) -> list[tuple[Any, ...]]:
    return [
        (row["group"], row["queueId"], row["consumerOffset"], row["brokerOffset"], row["diff"], row["state"])
        for row in rows_of(store)
        if row["kind"] == "offset"
    ]


def test_lag_of_a_store_of_ours(store: Path) -> None:
    before = snapshot(store)
    document = inspect_view(store, "groups", None, Query())
    assert lags(store) == [("G", 0, 2, 3, 1, "ok"), ("G", 1, None, 1, 1, "none")]
    assert document["rows"][:2] == [
        {"kind": "group", "group": "G", "topics": 1, "queues": 2, "diffTotal": 2, "diffTotalText": "2",
         "deadLetters": 0, "deadLettersText": "0"},
        {"kind": "topic", "topic": "T", "group": "G", "queues": 2, "diffTotal": 2, "diffTotalText": "2"},
    ]  # fmt: skip
    assert (document["figures"]["consumer_groups"], document["figures"]["diff_total"]) == (1, 2)
    assert (document["verdict"], document["findings"]) == (None, [])
    assert snapshot(store) == before


def test_delays_of_a_store_of_rocketmq() -> None:
    rows = rows_of(GOLDEN)
    assert [(row["level"], row["delayOffset"], row["scheduleMessageOffset"], row["state"]) for row in rows] == [
        (1, 4, "4,4", "ok"),
        (2, None, "0,3", "none"),
        (3, None, "0,2", "none"),
    ]


def test_offsets_that_no_queue_has_are_named(store: Path) -> None:
    rewrite(store, "consumerOffset.json", '{"offsetTable":{"T@G":{0:4,1:1\n},"T@H":{0:-1\n},"gone@G":{2:7\n}}}')
    assert lags(store) == [
        ("G", 0, 4, 3, -1, "beyond"),
        ("G", 1, 1, 1, 0, "ok"),
        ("G", 2, 7, 0, -7, "beyond"),
        ("H", 0, -1, 3, 3, "below"),
        ("H", 1, None, 1, 1, "none"),
    ]
    assert codes(store) == [("CFG_BEYOND_QUEUE", "note")] * 2


def test_levels_ahead_of_their_queue_are_named(store: Path) -> None:
    rewrite(store, "delayOffset.json", '{"offsetTable":{3:9\n}}')
    assert [row["scheduleMessageOffset"] for row in rows_of(store) if row["kind"] == "delay"] == ["9,0"]
    assert codes(store) == [("CFG_BEYOND_QUEUE", "note")]


def test_groups_of_light_queues_are_in_a_file_of_their_own(store: Path) -> None:
    rewrite(store, "lmqConsumerOffset.json", '{"lmqOffsetTable":{"T@%LMQ%g":1},"offsetTable":{}}')
    assert ("%LMQ%g", 0, 1, 3, 2, "ok") in lags(store)
    assert {row["file"] for row in rows_of(store) if row.get("group") == "%LMQ%g" and row["kind"] == "offset"} == {
        "config/lmqConsumerOffset.json"
    }


def test_a_file_that_says_nothing_is_named_and_its_backup_counts(store: Path) -> None:
    rewrite(store, "consumerOffset.json.bak", '{"offsetTable":{"T@G":{0:1\n}}}')
    rewrite(store, "consumerOffset.json", "")
    assert lags(store)[0] == ("G", 0, 1, 3, 2, "ok")
    assert codes(store) == [("CFG_FROM_BACKUP", "note")]
    rewrite(store, "consumerOffset.json.bak", "{")
    assert lags(store) == []
    assert codes(store) == [("CFG_UNREADABLE", "damage")]


@pytest.mark.parametrize(
    "text", ['{"offsetTable":[1]}', "[]", '{"offsetTable":{"T":{0:1}}}', '{"offsetTable":{"T@G":7}}']
)
def test_a_file_that_says_something_else_is_named(store: Path, text: str) -> None:
    rewrite(store, "consumerOffset.json", text)
    assert lags(store) == []
    assert codes(store) == [("CFG_UNREADABLE", "damage")]


def test_a_topic_a_queue_and_a_limit_are_asked_for(store: Path) -> None:
    rewrite(store, "consumerOffset.json", '{"offsetTable":{"T@G":{0:2\n},"U@G":{0:0\n}}}')
    assert {row["topic"] for row in rows_of(store, topic="U") if row["kind"] != "group"} == {"U"}
    assert [row["queueId"] for row in rows_of(store, topic="T", queue_id=1) if row["kind"] == "offset"] == [1]
    assert len(rows_of(store, limit=1)) == 1


def test_the_command_prints_a_table_and_a_document(store: Path) -> None:
    rewrite(store, "consumerOffset.json", '{"offsetTable":{"T@G\\u001b":{0:2\n}}}')
    text = CliRunner().invoke(command, [str(store), "groups"])
    assert text.exit_code == 0
    assert "G\\x1b" in text.output
    assert "\x1b" not in text.output
    document = json.loads(CliRunner().invoke(command, [str(store), "groups", "--json"]).output)
    assert [row["kind"] for row in document["rows"]] == ["group", "topic", "offset", "offset"]


def test_groups_are_known_by_retries_and_dead_letters(store: Path) -> None:
    with MessageStore.open(store, SMALL, files=OsFiles(), clock=lambda: 1_700_000_000_001) as opened:
        for topic in ("%RETRY%G", "%DLQ%G", "%DLQ%G", "%DLQ%quiet"):
            opened.put(Message(topic, b"body", queue_id=0))
        opened.pull_async("", "%DLQ%quiet", queue_id=0, offset=1, hold_ms=1).result(30).release()
    document = inspect_view(store, "groups", None, Query())
    groups = [
        (row["group"], row["diffTotal"], row["deadLetters"]) for row in document["rows"] if row["kind"] == "group"
    ]
    assert groups == [("G", 3, 2), ("quiet", 0, 1)]
    assert ("G", 0, None, 1, 1, "none") in lags(store)
    assert document["figures"]["dead_letters"] == 3
    dead = [(row["topic"], row["messages"]) for row in document["rows"] if row["kind"] == "dead"]
    assert dead == [("%DLQ%G", 2), ("%DLQ%quiet", 1)]
    named = inspect_view(store, "groups", "quiet", Query())["rows"]
    assert [row["kind"] for row in named] == ["group", "dead"]
    text = CliRunner().invoke(command, [str(store), "groups", "G"])
    assert "2 dead letters" in text.output


def test_the_former_name_is_refused_with_the_new_one(store: Path) -> None:
    done = CliRunner().invoke(command, [str(store), "progress"])
    assert done.exit_code == 2
    assert "the view 'progress' is now 'groups'; give that name" in done.stderr
    with pytest.raises(InspectError, match="is now 'groups'"):
        inspect_view(store, "progress", None, Query())


def test_unknown_group_is_refused_unless_a_damaged_file_may_have_named_it(store: Path) -> None:
    assert inspect_view(store, "groups", "G", Query())["figures"]["consumer_groups"] == 1
    with pytest.raises(InspectError, match=r"no group 'H'; `inspect STORE groups` lists them"):
        inspect_view(store, "groups", "H", Query())
    rewrite(store, "consumerOffset.json", "{")
    rewrite(store, "consumerOffset.json.bak", "{")
    assert inspect_view(store, "groups", "H", Query())["rows"] == []
