"""Test that `tornpage export` writes every intact message with body and properties."""

from __future__ import annotations

import csv
import json
import os
import zlib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.pipeline.handmade import copied, overwrite
from tests.support.properties.handmade import golden_dirs
from tornpage import Message, MessageStore, MessageStoreConfig
from tornpage.cli.main import cli
from tornpage.properties.decode.record import Record, parse_properties
from tornpage.properties.decode.store import iter_items, look

STORE = next(path for path in golden_dirs() if path.name == "02-topics-unicode-limits") / "store"


def export(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["export", *arguments], prog_name="tornpage")


def rows_of(*arguments: str) -> list[dict[str, object]]:
    done = export(*arguments)
    assert done.exit_code == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def records(store: Path) -> list[Record]:
    return [each.item for each in iter_items(look(store)) if isinstance(each.item, Record)]


def body_of(row: dict[str, object]) -> bytes:
    import base64

    stored = str(row["body"])
    return stored.encode() if row["bodyEncoding"] == "utf-8" else base64.b64decode(stored)


def test_rows_are_all_messages_with_body_and_properties() -> None:
    rows = rows_of(str(STORE), "--raw")
    assert [(row["phy"], body_of(row), row["properties"]) for row in rows] == [
        (each.offset, each.body, parse_properties(each.properties)) for each in records(STORE)
    ]


@pytest.mark.parametrize("kind", ["csv", "parquet", "text", "jsonl"])
def test_every_format_has_every_message(kind: str, tmp_path: Path) -> None:
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    out = tmp_path / "out"
    assert export(str(STORE), "--format", kind, "--out", str(out)).exit_code == 0
    expected = [str(each.offset) for each in records(STORE)]
    if kind == "csv":
        with out.open(newline="", encoding="utf-8") as file:
            found = [row["phy"] for row in csv.DictReader(file)]
    elif kind == "parquet":
        import pyarrow.parquet as pq  # type: ignore[import-untyped]

        found = [str(each) for each in pq.read_table(out).column("phy").to_pylist()]
    elif kind == "jsonl":
        found = [str(json.loads(line)["phy"]) for line in out.read_text(encoding="utf-8").splitlines()]
    else:
        found = [line.split()[0] for line in out.read_text(encoding="utf-8").splitlines() if line[:1].isdigit()]
    assert found == expected
    assert os.listdir(tmp_path) == ["out"]


def test_messages_are_chosen_by_topic_queue_tag_key_time_and_place() -> None:
    all_records = records(STORE)
    assert len(rows_of(str(STORE), "--topic", "TopicTest")) == sum(each.topic == b"TopicTest" for each in all_records)
    assert {row["tags"] for row in rows_of(str(STORE), "--tag", "TagA")} == {"TagA"}
    assert [row["keys"] for row in rows_of(str(STORE), "--key", "k1")]
    third, last = all_records[2], all_records[-1]
    assert rows_of(str(STORE), "--offset", str(third.offset))[0]["phy"] == third.offset
    assert rows_of(str(STORE), "--until", str(last.offset))[-1]["phy"] == all_records[-2].offset
    assert len(rows_of(str(STORE), "--time", "2026-11-21")) == len(all_records)
    assert rows_of(str(STORE), "--time", "2026-11-20") == []
    assert len(rows_of(str(STORE), "--limit", "3")) == 3


def test_unknown_topic_is_named_with_those_that_are_there() -> None:
    done = export(str(STORE), "--topic", "NoSuchTopic")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "topics there: " in done.stderr
    assert "TopicTest" in done.stderr


def test_damage_does_not_end_an_export(tmp_path: Path) -> None:
    store = copied("03-rollover-blanks-retention", tmp_path / "store")
    before = records(store)
    overwrite(store / "commitlog/00000000000000098304", 300, b"damage")
    done = export(str(store))
    assert len(done.stdout.splitlines()) == len(before) - 1
    assert "bytes without a valid record" in done.stderr


def test_quarantine_is_exported_alone_by_file_and_with_its_store(tmp_path: Path) -> None:
    store = copied("01-plain-ascii", tmp_path / "store")
    chosen = records(store)[5:8]
    (store / "quarantine").mkdir()
    aside = store / "quarantine" / f"{chosen[0].offset:020}.0"
    aside.write_bytes(b"".join(each.raw for each in chosen))
    offsets = [each.offset for each in chosen]
    assert [row["phy"] for row in rows_of(str(aside))] == offsets
    assert [row["phy"] for row in rows_of(str(store / "quarantine"))] == offsets
    assert [row["phy"] for row in rows_of(str(store), "--quarantine")][-3:] == offsets
    assert len(rows_of(str(store))) == 60
    (tmp_path / "notes").touch()
    assert "no file of a log" in export(str(tmp_path / "notes")).stderr


def test_compressed_body_is_unpacked_unless_it_is_wanted_raw(tmp_path: Path) -> None:
    with MessageStore.open(tmp_path / "store", MessageStoreConfig(mapped_file_size_commit_log=8192)) as store:
        store.put(Message("T", zlib.compress(b"long text"), sys_flag=1))
    assert rows_of(str(tmp_path / "store"))[0]["body"] == "long text"
    assert rows_of(str(tmp_path / "store"), "--raw")[0]["bodyEncoding"] == "base64"


def test_redacted_rows_have_neither_bodies_nor_names(tmp_path: Path) -> None:
    with MessageStore.open(tmp_path / "store", MessageStoreConfig(mapped_file_size_commit_log=8192)) as store:
        store.put(Message("SecretTopic", b"secret body", properties={"KEYS": "secretkey", "name": "secretvalue"}))
    said = export(str(tmp_path / "store"), "--redact").stdout
    assert said
    assert "ecret" not in said
    [row] = rows_of(str(tmp_path / "store"), "--redact")
    assert "body" not in row
    assert row["bodyLength"] == 11


def test_what_exists_or_lies_in_a_store_is_never_written(tmp_path: Path) -> None:
    store = copied("01-plain-ascii", tmp_path / "store")
    out = tmp_path / "out.jsonl"
    out.write_text("mine")
    done = export(str(store), "--out", str(out))
    assert (done.exit_code, out.read_text()) == (2, "mine")
    assert "--overwrite" in done.stderr
    assert export(str(store), "--out", str(out), "--overwrite").exit_code == 0
    assert out.read_text() != "mine"
    for place in (store / "out", store / "config" / "out"):
        done = export(str(store), "--out", str(place))
        assert (done.exit_code, place.exists()) == (2, False)
        assert "lies in the store directory" in done.stderr
    assert "give --out" in export(str(store), "--format", "parquet").stderr
    assert export(str(store), "--out", str(tmp_path / "no" / "out")).exit_code == 2


def test_full_disk_is_one_line_that_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, *arguments: object, **more: object) -> None:
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr(Path, "open", full)
    done = export(str(STORE), "--out", str(tmp_path / "out"))
    assert done.exit_code == 2
    [line] = [line for line in done.stderr.splitlines() if "cannot write" in line]
    assert "out.unfinished: No space left on device; make room" in line
