"""Test views of handmade and damaged stores: bytes read, findings, and no change."""

from __future__ import annotations

import os
import random
import shutil
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.properties.handmade import DATA, blank, properties_of, record
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.message.message import Message
from tornpage.impl.store import MessageStore
from tornpage.properties.decode.index import index_hash
from tornpage.properties.inspect import InspectError, Query, inspect_view

FILE_BYTES = 1 << 20
GOLDEN = DATA / "golden" / "03-rollover-blanks-retention" / "store"


class Reads:
    """Counts the bytes read from files."""

    def __init__(self) -> None:
        self.bytes_read = 0


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    counted, real = Reads(), os.pread

    def pread(fd: int, size_bytes: int, offset: int) -> bytes:
        piece = real(fd, size_bytes, offset)
        counted.bytes_read += len(piece)
        return piece

    monkeypatch.setattr(os, "pread", pread)
    return counted


def filled_log(directory: Path, *, count: int, body_bytes: int = 1000) -> list[int]:
    """Write full log files of records; return the offsets of the records."""
    (directory / "commitlog").mkdir(parents=True)
    offsets: list[int] = []
    for number in range(count):
        base, stored = number * FILE_BYTES, bytearray()
        while FILE_BYTES - len(stored) > body_bytes + 200:
            offsets.append(base + len(stored))
            properties = properties_of(("KEYS", f"k{len(offsets)}"), ("TAGS", f"t{len(offsets) % 3}"))
            stored += record(
                offsets[-1],
                bytes([len(offsets) % 251 + 1]) * body_bytes,
                properties=properties,
                queue_offset=len(offsets) - 1,
                store_timestamp=1_700_000_000_000 + 10 * len(offsets),
            )
        stored += blank(FILE_BYTES - len(stored))
        (directory / "commitlog" / f"{base:020}").write_bytes(stored)
    return offsets


def index_bytes(keys: list[tuple[int, int]], *, slots: int, entries: int) -> bytes:
    """Lay out an index file of (hash, physical offset) pairs."""
    heads, rows = [0] * slots, [bytes(20)]
    for number, (key_hash, offset) in enumerate(keys, 1):
        rows.append(struct.pack(">iqii", key_hash, offset, 0, heads[key_hash % slots]))
        heads[key_hash % slots] = number
    used = sum(map(bool, heads))
    first, last = (keys[0][1], keys[-1][1]) if keys else (0, 0)
    header = struct.pack(">qqqqii", 1_700_000_000_000, 1_700_000_000_000, first, last, used, len(keys) + 1)
    table = struct.pack(f">{slots}i", *heads)
    return (header + table + b"".join(rows)).ljust(40 + 4 * slots + 20 * entries, b"\0")


def codes(document: dict[str, Any]) -> list[str]:
    return [finding["code"] for finding in document["findings"]]


def tree(directory: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        str(path): (path.stat().st_mtime_ns, path.stat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in sorted(directory.rglob("*"))
    }


# ---- how much is read --------------------------------------------------------------------------------------------


def test_a_look_up_by_offset_or_id_reads_little_of_a_big_log(tmp_path: Path, reads: Reads) -> None:
    offsets = filled_log(tmp_path, count=24)
    for number in (0, 1, len(offsets) // 2, len(offsets) - 2):
        for inside in (0, 1, 700):
            reads.bytes_read = 0
            query = Query(limit=1, offset=offsets[number] + inside)
            assert [row["phy"] for row in inspect_view(tmp_path, "log", None, query)["rows"]] == [offsets[number]]
            assert reads.bytes_read < 6 * FILE_BYTES
        reads.bytes_read = 0
        by_id = Query(message_id=f"7F00000100002A9F{offsets[number]:016x}")
        assert [row["phy"] for row in inspect_view(tmp_path, "log", None, by_id)["rows"]] == [offsets[number]]
        assert reads.bytes_read < 256 * 1024


def test_a_place_in_a_file_is_found_without_reading_it_from_its_start(tmp_path: Path, reads: Reads) -> None:
    (tmp_path / "commitlog").mkdir()
    size, stored, offsets = 1 << 25, bytearray(), []
    while len(stored) + 70_000 < size:
        offsets.append(len(stored))
        stored += record(len(stored), os.urandom(60_000))
    stored += blank(size - len(stored))
    (tmp_path / "commitlog" / f"{0:020}").write_bytes(stored)
    for inside in (0, 30_000, 60_050):
        reads.bytes_read = 0
        query = Query(limit=1, offset=offsets[-20] + inside)
        assert [row["phy"] for row in inspect_view(tmp_path, "log", None, query)["rows"]] == [offsets[-20]]
        assert reads.bytes_read < size / 3


def test_a_look_up_by_time_reads_only_files_that_can_hold_it(tmp_path: Path, reads: Reads) -> None:
    filled_log(tmp_path, count=12)
    middle = inspect_view(tmp_path, "log", None, Query(limit=1, offset=5 * FILE_BYTES))["rows"][0]
    reads.bytes_read = 0
    times = (middle["storeTimestamp"], middle["storeTimestamp"] + 40)
    document = inspect_view(tmp_path, "log", None, Query(times=times))
    assert [row["storeTimestamp"] for row in document["rows"]] == list(range(times[0], times[1] + 1, 10))
    assert reads.bytes_read < 4 * FILE_BYTES


def test_times_that_go_back_between_files_are_found_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    for number, moment in enumerate((500, 300, 900)):
        base = number * 1024
        stored = record(base, store_timestamp=moment)
        (tmp_path / "commitlog" / f"{base:020}").write_bytes(stored + blank(1024 - len(stored)))
    document = inspect_view(tmp_path, "log", None, Query(times=(250, 350)))
    assert [row["phy"] for row in document["rows"]] == [1024]
    assert codes(document) == ["LOOK_SCANNED"]


# ---- filters -----------------------------------------------------------------------------------------------------


def test_filters_choose_rows_and_the_verdict_is_that_of_the_whole_log(tmp_path: Path) -> None:
    offsets = filled_log(tmp_path, count=2)
    document = inspect_view(tmp_path, "log", None, Query(limit=None, tag="t1", topic="TopicTest", queue_id=0))
    assert [row["phy"] for row in document["rows"]] == offsets[0::3]
    assert document["figures"]["records"] == len(offsets)
    assert document["verdict"] == "holds"
    assert inspect_view(tmp_path, "log", None, Query(topic="Other"))["rows"] == []
    assert inspect_view(tmp_path, "log", None, Query(queue_id=1))["rows"] == []


def test_a_key_without_topic_or_index_is_searched_in_the_log(tmp_path: Path) -> None:
    offsets = filled_log(tmp_path, count=1)
    for query in (Query(key="k7"), Query(key="k7", topic="TopicTest")):
        document = inspect_view(tmp_path, "log", None, query)
        assert [row["phy"] for row in document["rows"]] == [offsets[6]]
        assert codes(document) == ["LOOK_SCANNED"]
        assert document["figures"]["records_scanned"] == len(offsets)
    assert codes(inspect_view(tmp_path, "log", None, Query(key="none"))) == ["LOOK_SCANNED", "LOOK_NOTHING"]


def test_an_ipv6_id_and_a_foreign_host(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    stored = record(0, store_host=("2001:db8::2", 10911))
    (tmp_path / "commitlog" / f"{0:020}").write_bytes(stored + blank(1024 - len(stored)))
    row = inspect_view(tmp_path, "log", None, Query(message_id="20010db8" + "0" * 22 + "0200002a9f" + "0" * 16))[
        "rows"
    ][0]
    assert row["msgId"] == "20010DB800000000000000000000000200002A9F0000000000000000"
    other = inspect_view(tmp_path, "log", None, Query(message_id="7F00000100002A9F" + "0" * 16))
    assert (len(other["rows"]), codes(other)) == (1, ["LOOK_OTHER_HOST"])
    assert codes(inspect_view(tmp_path, "log", None, Query(message_id="7F00000100002A9F" + "0" * 15 + "9"))) == [
        "LOOK_NOTHING"
    ]


# ---- index -------------------------------------------------------------------------------------------------------


def with_index(directory: Path, stored: bytes, name: str = "20260101000000000") -> Path:
    (directory / "index").mkdir(exist_ok=True)
    path = directory / "index" / name
    path.write_bytes(stored)
    return path


@pytest.mark.parametrize(("slots", "entries"), [(1, 2), (7, 40), (100, 30), (5000, 100), (64, 4000)])
def test_slots_are_found_from_the_bytes(tmp_path: Path, slots: int, entries: int) -> None:
    offsets = filled_log(tmp_path, count=1)
    count = min(entries - 1, 40)
    keys = [(index_hash("TopicTest", f"k{number + 1}"), offsets[number]) for number in range(count)]
    with_index(tmp_path, index_bytes(keys, slots=slots, entries=entries))
    document = inspect_view(tmp_path, "index", None, Query())
    row = document["rows"][0]
    assert (row["slots"], row["entriesMax"], row["entries"], row["problems"]) == (slots, entries, count, 0)
    assert document["findings"] == []
    by_key = inspect_view(tmp_path, "log", None, Query(key="k1", topic="TopicTest"))
    assert [row["phy"] for row in by_key["rows"]] == [offsets[0]]
    assert by_key["figures"]["index_answers"] >= 1


def test_slots_that_the_bytes_do_not_tell_are_a_finding_and_leave_the_verdict_open(tmp_path: Path) -> None:
    offsets = filled_log(tmp_path, count=1)
    path = with_index(tmp_path, index_bytes([(0, 0)], slots=20, entries=50))
    for document in (
        inspect_view(tmp_path, "index", None, Query()),
        inspect_view(tmp_path, "index", path.name, Query()),
        inspect_view(tmp_path, "index", None, Query(key="k1", topic="TopicTest")),
    ):
        assert codes(document) == ["IX_SLOTS_UNKNOWN"]
        assert document["verdict"] == "unknown"
    by_key = inspect_view(tmp_path, "log", None, Query(key="k1", topic="TopicTest"))
    assert [row["phy"] for row in by_key["rows"]] == [offsets[0]]
    assert set(codes(by_key)) == {"IX_SLOTS_UNKNOWN", "LOOK_SCANNED"}
    told = inspect_view(tmp_path, "index", path.name, Query(slots=20))
    assert (told["verdict"], [row["phy"] for row in told["rows"]]) == (None, [0])
    assert codes(inspect_view(tmp_path, "index", None, Query(slots=21))) == ["IX_SLOTS_UNKNOWN"]


def test_a_broken_chain_is_damage_and_the_log_answers(tmp_path: Path) -> None:
    offsets = filled_log(tmp_path, count=1)
    keys = [(index_hash("TopicTest", f"k{number + 1}"), offsets[number]) for number in range(39)]
    stored = bytearray(index_bytes(keys, slots=3, entries=40))
    struct.pack_into(">i", stored, 40 + 12 + 20 * 39 + 16, 77)  # the previous entry of the newest one
    with_index(tmp_path, bytes(stored))
    slot = keys[-1][0] % 3
    key = next(f"k{number + 1}" for number, (hashed, _) in enumerate(keys) if hashed % 3 == slot)
    document = inspect_view(tmp_path, "log", None, Query(key=key, topic="TopicTest"))
    assert len(document["rows"]) == 1
    assert set(codes(document)) == {"IX_BROKEN", "LOOK_SCANNED"}
    assert document["verdict"] == "broken"


def test_an_entry_that_points_to_no_record_is_named(tmp_path: Path) -> None:
    offsets = filled_log(tmp_path, count=1)
    path = with_index(tmp_path, index_bytes([(5, offsets[0]), (6, offsets[1] + 1)], slots=10, entries=40))
    document = inspect_view(tmp_path, "index", path.name, Query())
    assert [row["points"] for row in document["rows"]] == ["another key", "nothing"]
    assert [(finding["code"], finding["offset"]) for finding in document["findings"]] == [
        ("IX_POINTS_NOWHERE", offsets[1] + 1)
    ]


def test_a_key_that_the_index_lost_is_named_when_the_log_is_scanned(tmp_path: Path) -> None:
    offsets = filled_log(tmp_path, count=1)
    keys = [(index_hash("TopicTest", f"k{number + 1}"), offsets[number]) for number in range(20) if number != 6]
    with_index(tmp_path, index_bytes(keys, slots=10, entries=40))
    assert inspect_view(tmp_path, "log", None, Query(key="k7", topic="TopicTest"))["rows"] == []
    document = inspect_view(tmp_path, "log", None, Query(key="k7", topic="TopicTest", scan=True))
    assert [row["phy"] for row in document["rows"]] == [offsets[6]]
    assert (document["verdict"], "IX_KEY_MISSING" in codes(document)) == ("broken", True)
    (tmp_path / "abort").touch()
    assert inspect_view(tmp_path, "log", None, Query(key="k7", topic="TopicTest", scan=True))["verdict"] is None


# ---- queues ------------------------------------------------------------------------------------------------------


def test_units_that_do_not_fit_are_named(tmp_path: Path) -> None:
    offsets = filled_log(tmp_path, count=1)
    queue = tmp_path / "consumequeue" / "TopicTest" / "0"
    queue.mkdir(parents=True)
    size = offsets[1] - offsets[0]
    tags = [0x27A807 * 0 + (ord("t") * 31 + ord(str((number + 1) % 3))) for number in range(8)]
    units = [[offsets[number], size, tags[number]] for number in range(8)]
    units[1][0] += 1  # no record begins there
    units[2][1] += 1  # another size
    units[3][0] = offsets[4]  # the record of another queue offset
    units[5][2] += 1  # another tags code
    units[6][2] = -(2**63) + 40  # an address without an extension
    units[7] = [0, 0x7FFFFFFF, 0]
    stored = b"".join(struct.pack(">qiq", *unit) for unit in units)
    (queue / f"{0:020}").write_bytes(stored.ljust(400, b"\0"))
    document = inspect_view(tmp_path, "queue", "TopicTest/0", Query())
    assert [row["wrong"] for row in document["rows"]][:7] == [
        [],
        ["CQ_POINTS_NOWHERE"],
        ["CQ_WRONG_SIZE"],
        ["CQ_WRONG_OFFSET"] + (["CQ_WRONG_TAGS_CODE"] if tags[3] != tags[4] else []),
        [],
        ["CQ_WRONG_TAGS_CODE"],
        ["CQ_EXT_UNREADABLE"],
    ]
    assert document["rows"][7]["state"] == "prefill"
    assert document["verdict"] == "broken"
    assert [
        row["queueOffset"] for row in inspect_view(tmp_path, "queue", "TopicTest/0", Query(queue_offset=5))["rows"]
    ] == [
        5,
        6,
        7,
    ]
    tagged = inspect_view(tmp_path, "queue", "TopicTest/0", Query(tag="t1"))["rows"]
    assert {row["tags"] for row in tagged} == {"t1"}


def test_hex_shows_every_byte_with_the_name_of_its_field(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    stored = record(0, b"body", properties=properties_of(("KEYS", "a")), born_host=("2001:db8::1", 7))
    (tmp_path / "commitlog" / f"{0:020}").write_bytes(stored + b"junk" * 5 + bytes(400))
    rows = inspect_view(tmp_path, "log", None, Query(hex=True))["rows"]
    assert b"".join(bytes.fromhex(field["bytes"]) for field in rows[0]["hex"]) == stored
    named = {field["field"]: field for field in rows[0]["hex"]}
    assert (named["magic"]["bytes"], named["body"]["bytes"]) == ("daa320a7", b"body".hex())
    assert (named["store_timestamp"]["at"], len(bytes.fromhex(named["born_host"]["bytes"]))) == (68, 20)
    assert rows[1]["kind"] == "bad"
    assert rows[1]["hex"][0] == {"field": "size", "at": len(stored), "bytes": b"junk".hex()}


# ---- small files -------------------------------------------------------------------------------------------------


def test_config_files_and_their_backups(tmp_path: Path) -> None:
    filled_log(tmp_path, count=1)
    config = tmp_path / "config"
    config.mkdir()
    (config / "topics.json").write_text('{"topicConfigTable":{"T":{"perm":6}},"dataVersion":{"counter":1}}')
    (config / "consumerOffset.json").write_text('{"offsetTable":{"T@G":{0:5,1:7\n}}')
    (config / "consumerOffset.json.bak").write_text('{"offsetTable":{"T@{0:1":{0:4,1:7\n}}}')
    (config / "subscriptionGroup.json").write_bytes(b"\0" * 20)
    document = inspect_view(tmp_path, "config", None, Query())
    rows = {row["file"].removeprefix("config/"): row for row in document["rows"]}
    assert {name: row["state"] for name, row in rows.items()} == {
        "topics.json": "ok",
        "consumerOffset.json": "no JSON",
        "consumerOffset.json.bak": "ok",
        "subscriptionGroup.json": "no JSON",
    }
    assert rows["consumerOffset.json.bak"]["content"] == {"offsetTable": {"T@{0:1": {"0": 4, "1": 7}}}
    assert rows["topics.json"]["entries"] == 1
    found = {finding["file"]: finding["code"] for finding in document["findings"]}
    assert found == {
        "config/consumerOffset.json": "CFG_FROM_BACKUP",
        "config/subscriptionGroup.json": "CFG_UNREADABLE",
    }
    only = inspect_view(tmp_path, "config", "consumerOffset", Query())
    assert len(only["rows"]) == 2


def test_the_derived_floor_of_a_store_is_shown(tmp_path: Path) -> None:
    config = MessageStoreConfig(mapped_file_size_commit_log=16384, mapped_file_size_consume_queue=400)
    with MessageStore.open(tmp_path, config, files=OsFiles(), clock=lambda: 1_700_000_000_000) as store:
        for _ in range(3):
            store.put(Message("T", b"x" * 100))
        end_offset = store.max_offset
    row = inspect_view(tmp_path, "config", "derivedFloor", Query())["rows"][0]
    assert (row["state"], row["content"]["offset"]) == ("ok", end_offset)
    assert [path for path, *_ in row["content"]["queue_files"]] == [f"consumequeue/T/0/{0:020d}"]
    path = tmp_path / "config" / "derivedFloor"
    for harmed in (path.read_bytes()[:-1], b"TPDERIVED1 00000000\n{}", b"{}"):
        path.write_bytes(harmed)
        assert inspect_view(tmp_path, "config", "derivedFloor", Query())["rows"][0]["state"] == "unreadable"


def test_deleted_topics_are_shown(tmp_path: Path) -> None:
    filled_log(tmp_path, count=1)
    (tmp_path / "config").mkdir()
    listed = b"TPDELTP1" + struct.pack(">iqh", 1, 4096, 6) + "订单".encode()
    path = tmp_path / "config" / "deletedTopics"
    path.write_bytes(listed + struct.pack(">I", zlib.crc32(listed)))
    row = inspect_view(tmp_path, "config", None, Query())["rows"][0]
    assert (row["state"], row["entries"], row["content"]) == ("ok", 1, {"订单": 4096})
    path.write_bytes(listed + b"none")
    assert inspect_view(tmp_path, "config", None, Query())["rows"][0]["state"] == "unreadable"


def test_markers_say_what_is_there_and_what_not() -> None:
    rows = {row["kind"]: row for row in inspect_view(GOLDEN, "checkpoint", None, Query(hex=True))["rows"]}
    assert rows["checkpoint"]["present"]
    assert rows["checkpoint"]["physicMsgTimestamp"] > 0
    assert [field["field"] for field in rows["checkpoint"]["hex"]][:2] == ["physic_timestamp", "logics_timestamp"]
    assert (rows["floor"]["present"], rows["abort"]["present"], rows["lock"]["held"]) == (False, False, False)


# ---- refusals, damage, nothing written ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("view", "name", "query", "words"),
    [
        ("queue", None, Query(), "TOPIC/ID"),
        ("queue", "RollTopic", Query(), "TOPIC/ID"),
        ("queue", "RollTopic/99", Query(), "no queue"),
        ("ext", "RollTopic/0", Query(), "no extension"),
        ("index", "nothing", Query(), "no readable index file"),
        ("index", None, Query(key="k"), "--topic"),
        ("config", "nothing", Query(), "no file"),
        ("log", "RollTopic/0", Query(), "takes no name"),
        ("log", None, Query(message_id="12"), "message id"),
        ("log", None, Query(message_id="G" * 32), "message id"),
        ("queues", None, Query(message_id="0" * 32), "leave out the view"),
        ("log", None, Query(queue_offset=3), "a queue offset"),
        ("queues", None, Query(tag="t1", times=(0, 1)), "a tag and store times"),
        ("queue", "RollTopic/0", Query(topic="RollTopic"), "a topic"),
        ("queue", None, Query(topic="RollTopic", queue_id=0, scan=True), "a scan past the index"),
        ("ext", "RollTopic/0", Query(key="k1"), "a key"),
        ("index", None, Query(offset=1), "an offset"),
        ("index", "20261121", Query(queue_offset=1), "a queue offset"),
        ("checkpoint", None, Query(topic="RollTopic"), "a topic"),
        ("config", None, Query(queue_id=0), "a queue"),
        ("groups", None, Query(key="k1"), "a key"),
    ],
)
def test_unclear_questions_are_refused_in_one_line(view: str, name: str | None, query: Query, words: str) -> None:
    with pytest.raises(InspectError, match="; ") as refusal:
        inspect_view(GOLDEN, view, name, query)
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


def every_look(store: Path) -> Iterator[dict[str, Any]]:
    """Ask all questions; a refusal counts as an empty answer."""
    questions: list[tuple[str, str | None, Query]] = [
        ("log", None, Query(limit=None, hex=True)),
        ("log", None, Query(offset=40_000, limit=3)),
        ("log", None, Query(key="k1", topic="RollTopic")),
        ("log", None, Query(key="k1", topic="RollTopic", scan=True)),
        ("log", None, Query(times=(0, 2**62))),
        ("log", None, Query(message_id="0A141E0100002A9F000000000000A000")),
        ("queues", None, Query()),
        ("queue", "RollTopic/0", Query(limit=None, hex=True)),
        ("queue", "RollTopic/1", Query(offset=60_000)),
        ("index", None, Query(hex=True)),
        ("index", None, Query(key="k1", topic="RollTopic")),
        ("index", None, Query(slots=100)),
        ("checkpoint", None, Query(hex=True)),
        ("config", None, Query()),
    ]
    index = store / "index"
    questions += [("index", path.name, Query(hex=True)) for path in (index.iterdir() if index.is_dir() else ())]
    for view, name, query in questions:
        try:
            yield inspect_view(store, view, name, query)
        except InspectError:
            continue


def test_looking_changes_nothing(tmp_path: Path) -> None:
    store = shutil.copytree(GOLDEN, tmp_path / "store")
    before = tree(store)
    assert len(list(every_look(store))) >= 12
    assert tree(store) == before


@pytest.mark.parametrize("seed", range(12))
def test_no_damage_makes_it_raise(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    store = shutil.copytree(GOLDEN, tmp_path / "store")
    for path in rng.sample(sorted(path for path in store.rglob("*") if path.is_file()), 6):
        path.chmod(0o644)
        path.parent.chmod(0o755)
        data = bytearray(path.read_bytes())
        at = rng.randrange(min(len(data), rng.choice((64, 4096, 1 << 20))) or 1)
        match rng.randrange(5):
            case 0:
                data[at : at + 512] = rng.randbytes(len(data[at : at + 512]))
            case 1:
                data[at : at + 4096] = bytes(len(data[at : at + 4096]))
            case 2:
                del data[at:]
            case 3:
                data += rng.randbytes(33)
            case _:
                path.unlink()
                continue
        path.write_bytes(data)
    assert list(every_look(store))


def test_files_that_vanish_while_they_are_looked_at_are_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = shutil.copytree(GOLDEN, tmp_path / "store")
    real = os.open

    def gone(path: Any, *arguments: Any) -> int:
        if "/consumequeue/" in str(path) or "/index/" in str(path) or str(path).endswith("00000000000000081920"):
            raise FileNotFoundError(2, "No such file or directory", str(path))
        return real(path, *arguments)

    monkeypatch.setattr(os, "open", gone)
    found = [code for document in every_look(store) for code in codes(document)]
    assert {"CQ_FILE_GONE", "IX_NO_ACCESS", "CL_FILE_GONE"} <= set(found)


def test_files_without_permission_are_findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = shutil.copytree(GOLDEN, tmp_path / "store")

    def denied(path: Any, *arguments: Any) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "open", denied)
    looks = list(every_look(store))
    assert {"CQ_NO_ACCESS", "IX_NO_ACCESS", "CL_NO_ACCESS"} <= {code for look in looks for code in codes(look)}
    assert {look["verdict"] for look in looks} <= {None, "unknown"}
