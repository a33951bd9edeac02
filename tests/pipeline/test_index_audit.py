"""Test the index audit: in pieces it equals the plain decoder, and errors have a place."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.pipeline.handmade import HandmadeStore, copied, overwrite, write_deleted
from tests.support.properties.handmade import properties_of
from tornpage.pipeline.audit.audit import audit_store
from tornpage.pipeline.rows.columns import ENTRIES, joined
from tornpage.pipeline.rows.index_reading import IndexPartition, IndexRow, plan_index, read_index
from tornpage.properties.decode.index import decode_index
from tornpage.properties.decode.index_files import list_index

KINDS = {
    "begin_is_not_the_first_entry": "begin offset",
    "bytes_behind_the_entries": "bytes behind",
    "end_is_not_the_last_entry": "end offset",
    "entry_zero_is_used": "unused entry",
    "hash_is_negative": "hash is negative",
    "next_entry_out_of_range": "next entry",
    "offsets_go_back": "its offset lies before",
    "previous_is_not_the_entry_before": "does not name the entry before",
    "seconds_are_negative": "seconds are negative",
    "slot_is_not_the_newest_entry": "its newest is",
    "slots_in_use": "slots in use",
}
"""Problems of the plain decoder, and the findings of the audit."""


def parts_of(store: Path, slots: int) -> list[IndexPartition]:
    return [part for part in plan_index(0, list_index(store)[0], slots) if isinstance(part, IndexPartition)]


def read_all(part: IndexPartition) -> tuple[Any, list[IndexRow]]:
    rows: list[IndexRow] = []
    entries = []
    for said in read_index(part):
        rows.append(said) if isinstance(said, IndexRow) else entries.append(said)
    return joined(entries, ENTRIES), rows


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_reading_in_pieces_finds_what_the_plain_decoder_finds(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory, monkeypatch_module: None
) -> None:
    store = copied("06-index-files-collisions", tmp_path_factory.mktemp("index") / "store")
    path = sorted((store / "index").iterdir())[data.draw(st.integers(0, 3))]
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(0, 3))):
        # Small numbers of entries or slots are drawn more often than chance would draw them.
        at = data.draw(st.integers(0, 39) | st.integers(0, len(content) - 1))
        content[at] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]))
    path.write_bytes(bytes(content))
    part = next(part for part in parts_of(store, 50) if part.file.path == path)
    if part.slots is None:
        assert part.header.next_entry > part.file.size_bytes // 20 - 10
        return
    entries, rows = read_all(part)
    plain = decode_index(bytes(content), slots=50, entries=part.entries_max)
    assert [(e["number"], e["hash"], e["offset"], e["seconds"]) for e in entries] == [
        (e.number, e.key_hash, e.offset, e.seconds) for e in plain.entries
    ]
    said = sorted(text for row in rows if row.kind == "problem" for text in KINDS.values() if text in (row.text or ""))
    assert said == sorted(KINDS[code] for code, _ in plain.problems if code != "slots_count_entries")


@pytest.fixture(scope="module")
def monkeypatch_module() -> Any:
    """Use pieces of 7 entries, so that chains cross their ends."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tornpage.pipeline.rows.index_reading._PIECE_ENTRIES", 7)
        yield


def test_that_more_places_do_not_fit_than_are_listed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of further errors is unknown: each check stops counting in each piece."""
    monkeypatch.setattr("tornpage.pipeline.rows.index_reading.PROBLEMS_MAX", 3)
    store = copied("06-index-files-collisions", tmp_path / "store")
    part = parts_of(store, 50)[0]
    for number in range(1, part.entry_count + 1):
        overwrite(part.file.path, part.position_of(number) + 16, struct.pack(">i", -1))
    _, rows = read_all(part)
    problems = [row for row in rows if row.kind == "problem"]
    assert len(problems) == 4
    assert (problems[-1].position, problems[-1].text) == (None, "there are more places than are listed")


def test_keys_without_an_index_are_a_note_unless_one_was_promised(tmp_path: Path) -> None:
    store = HandmadeStore(tmp_path)
    store.put(properties=properties_of(("KEYS", "a b")))
    root = store.write()
    found = {each.code: each.severity for each in audit_store(root).findings}
    assert found == {"CP_MISSING": "note", "IX_NO_INDEX": "note"}
    (root / "checkpoint").write_bytes(struct.pack(">qqq", 1, 1, 1).ljust(4096, b"\0"))
    assert [(each.code, each.severity) for each in audit_store(root).findings] == [("IX_NO_INDEX", "damage")]


def test_lost_index_file_is_keys_in_a_row_without_an_entry(tmp_path: Path) -> None:
    store = copied("06-index-files-collisions", tmp_path / "store")
    lost = sorted((store / "index").iterdir())[1]
    lost.unlink()
    [finding] = audit_store(store).findings
    assert (finding.code, finding.severity, finding.items > 20) == ("IX_KEY_MISSING", "damage", True)


def test_file_without_a_known_number_of_slots_leaves_the_verdict_open(tmp_path: Path) -> None:
    store = copied("01-plain-ascii", tmp_path / "store")
    [path] = (store / "index").iterdir()
    overwrite(path, 0, b"\x01" * 36)
    overwrite(path, 40, b"\x01" * 5000)
    audited = audit_store(store)
    assert audited.verdict == "unknown"
    assert {each.code for each in audited.findings} == {"IX_SLOTS_UNKNOWN"}
    assert audit_store(store, slots=1000).verdict == "broken"


def test_records_of_a_deleted_topic_ask_for_no_unit_and_may_have_none(tmp_path: Path) -> None:
    store = HandmadeStore(tmp_path)
    store.put("Gone", 0, 0, dispatched=False)
    offset, _ = store.put("Gone", 0, 0)
    root = store.write()
    assert {each.code for each in audit_store(root).findings} == {"CP_MISSING", "CQ_TOPIC_REUSED"}
    write_deleted(root, {"Gone": offset})
    assert {each.code for each in audit_store(root).findings} == {"CP_MISSING"}
    write_deleted(root, {"Gone": offset + 1})
    [finding] = [each for each in audit_store(root).findings if each.severity == "damage"]
    assert (finding.code, finding.position, finding.offset) == ("CQ_UNWANTED", 0, offset)
    overwrite(root / "config/deletedTopics", 20, b"\xff")
    found = {each.code: each.file for each in audit_store(root).findings}
    assert found["CFG_DELETED_UNREADABLE"] == "config/deletedTopics"


def test_queue_file_that_retention_left_behind_is_a_note(tmp_path: Path) -> None:
    store = HandmadeStore(tmp_path, base=8192)
    for number in range(20):
        store.unit("T", 0, number, 91 * number, 91)
    store.put(queue_offset=20)
    found = [(each.code, each.file) for each in audit_store(store.write()).findings if each.code != "CP_MISSING"]
    assert found == [("CQ_OUTLIVED", "consumequeue/T/0/00000000000000000000")]


def test_progress_files_that_say_nothing_are_found(tmp_path: Path) -> None:
    store = copied("01-plain-ascii", tmp_path / "store")
    (store / "config/consumerOffset.json").write_bytes(b"{")
    (store / "config/derivedFloor").write_bytes(b"x")
    found = {(each.code, each.severity, each.file) for each in audit_store(store).findings}
    assert found == {
        ("CFG_UNREADABLE", "damage", "config/consumerOffset.json"),
        ("FLOOR_UNREADABLE", "note", "config/derivedFloor"),
    }
