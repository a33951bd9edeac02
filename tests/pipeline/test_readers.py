"""Test the readers without Spark: golden rows, split and damaged files, refusals."""

from __future__ import annotations

import json
import os
import random
import re
import struct
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.pipeline.handmade import HandmadeStore, copied, overwrite
from tests.support.properties.handmade import blank, golden_dirs, properties_of, record
from tornpage.pipeline.readers import planning
from tornpage.pipeline.readers.asking import Ask, ReaderError
from tornpage.pipeline.readers.log_reader import read_log
from tornpage.pipeline.readers.parts import LogPart
from tornpage.pipeline.readers.planning import plan
from tornpage.pipeline.readers.problems import PROBLEM_CODES, Problem
from tornpage.pipeline.readers.reading import read_task
from tornpage.pipeline.readers.seams import part_starts
from tornpage.pipeline.readers.split_properties import split_properties
from tornpage.pipeline.readers.tables import FORMATS, TIMES
from tornpage.pipeline.readers.topic_sums import _grouped
from tornpage.pipeline.rows.parquet_rows import AUDIT_TABLES
from tornpage.pipeline.spark.agreement import PathUnseen
from tornpage.pipeline.tables.described import (
    CAMPAIGN_TABLE,
    PEER_TABLE,
    SWEEP_TABLE,
    TARGET_TABLE,
    arrow_type,
    described,
    times_of,
)
from tornpage.properties.decode.arrays.plain import keys_of_properties
from tornpage.properties.decode.record import parse_properties

LOG, QUEUES, INDEX, CHECKPOINT = FORMATS


def rows(name: str, *stores: Path, **options: str) -> list[dict[str, Any]]:
    """Read a table in this process."""
    ask = Ask.of(name, {"paths": json.dumps([str(store) for store in stores]), **options})
    columns = FORMATS[name][ask.table]
    found = []
    for task in plan(ask):
        for batch in read_task(task, ask):
            assert batch.schema.names == list(ask.columns)
            for column in ask.columns:  # Spark reads a null as 0 in a column declared without nulls
                assert columns[column].is_nullable or not batch.column(column).null_count, column
            found += batch.to_pylist()
    return found


def problems(name: str, *stores: Path, **options: str) -> list[tuple[str, str]]:
    return [(row["file"], row["code"]) for row in rows(name, *stores, table="problems", **options)]


# ---- golden stores -----------------------------------------------------------------------------------------------


CASES = {path.name: path for path in golden_dirs()}
SOUND = sorted(name for name in CASES if name < "08")
LOGS_AS_JAVA = sorted(name for name in CASES if not name.startswith(("09-", "10-")))
KILLED = sorted(name for name in CASES if name.startswith(("08-", "12-")))


def java(name: str) -> dict[str, Any]:
    """Return the first answers of Java."""
    steps = json.loads((CASES[name] / "expected.json").read_text(encoding="utf-8"))["steps"]
    state: dict[str, Any] = next(step["state"] for step in steps if step["do"] == "dump")
    return state


@pytest.mark.parametrize("name", LOGS_AS_JAVA)
@pytest.mark.parametrize("split", ["0", "3000"])
def test_golden_logs_have_the_rows_of_java(name: str, split: str) -> None:
    found = rows(LOG, CASES[name] / "store", columns="*", splitBytes=split)
    wanted = [entry for entry in java(name)["log"] if entry["kind"] == "record"]
    names = {
        "offset": "phy",
        "size": "size",
        "topic": "topic",
        "queue_id": "queueId",
        "queue_offset": "queueOffset",
        "sys_flag": "sysFlag",
        "store_timestamp": "storeTimestamp",
    }
    assert [{ours: row[ours] for ours in names} for row in found] == [
        {ours: entry[theirs] for ours, theirs in names.items()} for entry in wanted
    ]
    assert [sha256(row["raw"]).hexdigest() for row in found] == [entry["recordSha256"] for entry in wanted]
    assert problems(LOG, CASES[name] / "store", splitBytes=split) == []


@pytest.mark.parametrize("name", LOGS_AS_JAVA)
def test_golden_messages_have_the_fields_of_java(name: str) -> None:
    found = {row["offset"]: row for row in rows(LOG, CASES[name] / "store", columns="*")}
    messages = [each for queue in java(name)["queues"] for each in queue.get("messages", ()) if "msgId" in each]
    for message in messages:
        row = found[message["commitLogOffset"]]
        assert row["body_crc"] == message["bodyCRC"]
        assert sha256(row["body"]).hexdigest() == message["bodySha256"]
        assert (row["flag"], row["born_timestamp"]) == (message["flag"], message["bornTimestamp"])
        assert row["reconsume_times"] == message["reconsumeTimes"]
        assert row["prepared_transaction_offset"] == message["preparedTransactionOffset"]
        assert row["message_id"] == message["msgId"]
        assert row["properties_size"] == message["propertiesLength"]
        assert dict(row["properties"]) == message["properties"]
        assert row["tags"] == message["properties"].get("TAGS")
        assert row["born_host"].rpartition(":")[2] == str(message["bornHost"][1])
    assert messages


Units = dict[tuple[str, int], dict[int, tuple[int, ...]]]


def stored_units(name: str) -> Units:
    found: Units = {}
    for row in rows(QUEUES, CASES[name] / "store", columns="*"):
        stored = row["tags_code"] if row["ext_address"] is None else row["ext_address"]
        unit = (row["offset"], row["size"], stored, row["tags_code"])
        found.setdefault((row["topic"], row["queue_id"]), {})[row["queue_offset"]] = unit
    return found


def units_of_java(name: str) -> Units:
    found: Units = {}
    for queue in java(name)["queues"]:
        for entry in queue["entries"]:
            code = entry[4]["tagsCode"] if len(entry) > 4 and entry[4] is not None else entry[3]
            found.setdefault((queue["topic"], queue["queueId"]), {})[entry[0]] = (*entry[1:4], code)
    return found


@pytest.mark.parametrize("name", SOUND)
def test_golden_queues_have_the_entries_of_java(name: str) -> None:
    least = {(queue["topic"], queue["queueId"]): queue["minOffset"] for queue in java(name)["queues"]}
    found = {
        key: {number: unit for number, unit in units.items() if number >= least[key]}
        for key, units in stored_units(name).items()
    }
    assert found == units_of_java(name)
    assert problems(QUEUES, CASES[name] / "store") == []


@pytest.mark.parametrize("name", KILLED)
def test_units_of_killed_stores_are_those_that_java_kept(name: str) -> None:
    kept = units_of_java(name)
    found = [(key, number, unit) for key, units in stored_units(name).items() for number, unit in units.items()]
    assert len(found) > 100
    assert all(kept[key][number] == unit for key, number, unit in found)


@pytest.mark.parametrize("name", SOUND)
def test_golden_indexes_have_headers_and_answers_of_java(name: str) -> None:
    store = CASES[name] / "store"
    found = rows(INDEX, store, table="headers")
    assert [
        {
            "file": row["file"].removeprefix("index/"),
            "beginTimestamp": row["begin_timestamp"],
            "endTimestamp": row["end_timestamp"],
            "beginPhyOffset": row["begin_offset"],
            "endPhyOffset": row["end_offset"],
            "hashSlotCount": row["slots_in_use"],
            "indexCount": max(1, row["next_entry"]),
        }
        for row in found
    ] == java(name)["indexFiles"]
    entries = rows(INDEX, store, columns="*")
    assert len(entries) == sum(max(0, row["next_entry"] - 1) for row in found)
    config = json.loads((CASES[name] / "config.json").read_text(encoding="utf-8"))["store"]
    assert {row["slots"] for row in found} <= {config["maxHashSlotNum"], None}
    assert problems(INDEX, store) == []


@pytest.mark.parametrize("name", SOUND)
def test_golden_checkpoints_have_the_times_of_java(name: str) -> None:
    [row] = rows(CHECKPOINT, CASES[name] / "store")
    times = java(name)["checkpointInMemory"]
    assert row["physic_timestamp"] == times["physicMsgTimestamp"]
    assert row["logics_timestamp"] == times["logicsMsgTimestamp"]
    assert row["index_timestamp"] == times["indexMsgTimestamp"]


def test_a_golden_row_that_differs_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = copied("01-plain-ascii", tmp_path / "case" / "store")
    (tmp_path / "case" / "expected.json").write_bytes((CASES["01-plain-ascii"] / "expected.json").read_bytes())
    overwrite(store / "commitlog/00000000000000000000", 55, b"\x01")  # a store time that no checksum covers
    monkeypatch.setitem(CASES, "01-plain-ascii", tmp_path / "case")
    with pytest.raises(AssertionError):
        test_golden_logs_have_the_rows_of_java("01-plain-ascii", "0")


@pytest.mark.parametrize(
    ("name", "code", "position"),
    [("09-crash-stale-log-tail", "CL_BAD_RECORD", 18000), ("10-crash-torn-properties", "CL_BAD_RECORD", None)],
)
def test_damaged_golden_logs_have_a_problem(name: str, code: str, position: int | None) -> None:
    if name not in CASES:
        pytest.skip(f"golden case {name} is not at hand: set TORNPAGE_GOLDEN to the directory of golden stores")
    place = java("10-crash-torn-properties")["log"][-1]["phy"] if position is None else position
    [problem] = rows(LOG, CASES[name] / "store", table="problems")
    assert (problem["code"], problem["position"]) == (code, place)


# ---- split files -------------------------------------------------------------------------------------------------


def parts_of(path: Path, base: int, file_bytes: int, split: int) -> list[LogPart]:
    starts = part_starts(min(path.stat().st_size, file_bytes), split)
    return [
        LogPart("s", path, "commitlog/f", base, file_bytes, start, stop, is_seam=start > 0)
        for start, stop in zip(starts, (*starts[1:], None), strict=True)
    ]


def read_split(path: Path, base: int, file_bytes: int, split: int, **how: Any) -> tuple[list[Any], list[Problem]]:
    """Return rows (offset, size, body) and problems of a file read in parts."""
    found: list[Any] = []
    said: list[Problem] = []
    for part in parts_of(path, base, file_bytes, split):
        for each in read_log(part, ("offset", "size", "body"), **how):
            if isinstance(each, Problem):
                said.append(each)
            else:
                found += [tuple(row.values()) for row in each.to_pylist()]
    return found, said


@pytest.mark.parametrize("name", LOGS_AS_JAVA)
def test_tasks_for_a_number_of_cores_have_the_rows_of_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = CASES[name] / "store"
    whole = rows(LOG, store, splitBytes="0")
    monkeypatch.setattr(planning, "SPLIT_BYTES", 3000)
    monkeypatch.setattr(planning, "TASK_BYTES", 1000)
    ask = Ask.of(LOG, {"path": str(store)})
    most = len(plan(ask))
    for cores in (1, 2, 3, 7):
        tasks = plan(ask, cores=cores)
        assert [row for task in tasks for batch in read_task(task, ask) for row in batch.to_pylist()] == whole
        assert min(most, cores) <= len(tasks) <= (2 * cores + 1 if cores < 4 else most)
        for task in tasks:
            assert all(a.path != b.path for a, b in pairwise(task) if isinstance(a, LogPart) and isinstance(b, LogPart))
    asked = Ask.of(LOG, {"path": str(store), "splitBytes": "3000"})
    assert sum(map(len, plan(asked, cores=1))) == most  # parts of the size that was asked for


def test_a_source_carries_the_cores_to_the_process_that_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    from tornpage.pipeline.readers.sources import CommitLogSource, for_cores

    monkeypatch.setattr(planning, "SPLIT_BYTES", 3000)
    monkeypatch.setattr(planning, "TASK_BYTES", 1000)
    options = {"path": str(CASES["01-plain-ascii"] / "store")}
    sent = cloudpickle.loads(cloudpickle.dumps(for_cores(CommitLogSource, 1)))
    tasks = [task.parts for task in sent(options).reader(None).partitions()]
    assert tasks == plan(Ask.of(LOG, options), cores=1) != plan(Ask.of(LOG, options))


def chain(offset: int, count: int, rng: random.Random) -> bytes:
    """Return consecutive valid records for this place.

    Some have such records in their bodies.
    """
    stored = b""
    for _ in range(count):
        place = offset + len(stored)
        inner = chain(place + 88, rng.randrange(1, 3), rng) if rng.random() < 0.4 else b""
        body = inner + rng.randbytes(rng.choice((0, 3, 60, 300)))
        if rng.random() < 0.2:
            body += struct.pack(">II", 100, 0xCBD43194) + struct.pack(">II", 92, 0xDAA320A7)
        stored += record(place, body, properties=properties_of(("K", "v")) if rng.random() < 0.5 else b"")
    return stored


@st.composite
def deceitful_files(draw: st.DrawFn) -> tuple[bytes, int]:
    """Draw a file whose bodies hold records for exactly their place, and its base offset.

    The file may be damaged.
    """
    rng = random.Random(draw(st.integers(0, 2**32)))
    base = draw(st.sampled_from([0, 1 << 33]))
    data = bytearray(chain(base, draw(st.integers(1, 12)), rng))
    for _ in range(draw(st.integers(0, 3))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    tail = draw(st.sampled_from([b"", bytes(500), blank(60)]))
    return bytes(data + tail), base


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("split") / "file"


@settings(max_examples=50)
@given(file=deceitful_files(), split=st.integers(40, 900))
def test_parts_of_a_file_together_are_the_one_walk(place: Path, file: tuple[bytes, int], split: int) -> None:
    data, base = file
    place.write_bytes(data)
    whole, said = read_split(place, base, len(data) + 8, 0)
    in_parts, said_in_parts = read_split(place, base, len(data) + 8, split)
    seams = [problem for problem in said_in_parts if problem.code == "CL_SEAM"]
    if not seams:
        assert in_parts == whole
        assert said_in_parts == said
    else:  # the walk ends at a damaged record that reads as an end mark: the bytes after it do not concern seams
        ends = [row[0] + row[1] for row in whole]
        assert len(whole) < len(in_parts)
        assert in_parts[: len(whole)] == whole
        assert not ends or min(seam.position or 0 for seam in seams) + base >= ends[-1]


@settings(max_examples=50)
@given(file=deceitful_files(), split=st.integers(40, 900))
def test_a_wrong_seam_is_never_silent(place: Path, file: tuple[bytes, int], split: int) -> None:
    data, base = file
    place.write_bytes(data)
    whole, _ = read_split(place, base, len(data) + 8, 0)
    in_parts, said = read_split(place, base, len(data) + 8, split, look_back_bytes=0)
    if in_parts != whole:
        assert "CL_SEAM" in {problem.code for problem in said}


def test_bodies_do_deceive_who_does_not_look_back(place: Path) -> None:
    inner = record(88, b"x" * 500) + record(88 + len(record(0, b"x" * 500)), b"y" * 500)
    data = record(0, inner) + record(len(record(0, inner)), b"z") + bytes(200)
    place.write_bytes(data)
    whole, said = read_split(place, 0, len(data) + 8, 0)
    assert (len(whole), said) == (2, [])
    assert read_split(place, 0, len(data) + 8, 100) == (whole, [])
    deceived, said = read_split(place, 0, len(data) + 8, 100, look_back_bytes=0)
    assert len(deceived) > 2
    assert {problem.code for problem in said} >= {"CL_SEAM"}


def test_records_behind_an_end_mark_are_told(place: Path) -> None:
    first = record(0, b"a" * 300) + blank(400)
    data = first + record(len(first), b"stale") + bytes(500)
    place.write_bytes(data)
    whole, said = read_split(place, 0, len(data), 0)
    assert (len(whole), said) == (1, [])
    _, said = read_split(place, 0, len(data), 500)
    assert [(problem.code, problem.position) for problem in said] == [("CL_SEAM", len(first))]


# ---- damage, files that vanish or change, and queues ----------------------------------------------------------------


def test_a_file_that_is_gone_is_a_problem_and_the_others_are_read(tmp_path: Path) -> None:
    store = copied("03-rollover-blanks-retention", tmp_path / "store")
    every = rows(LOG, store)
    ask = Ask.of(LOG, {"path": str(store), "table": "problems"})
    tasks = plan(ask)
    gone = store / "commitlog/00000000000000049152"
    gone.unlink()
    found = [row for task in tasks for batch in read_task(task, ask) for row in batch.to_pylist()]
    assert [(row["file"], row["code"]) for row in found] == [("commitlog/00000000000000049152", "READ_GONE")]
    left = [row for row in every if not 49152 <= row["offset"] < 65536]
    assert rows(LOG, store) == left
    assert ("commitlog/00000000000000065536", "CL_GAP") in problems(LOG, store)


def test_a_file_that_changes_while_it_is_read_is_said(tmp_path: Path) -> None:
    store = HandmadeStore(tmp_path / "store")
    for number in range(5):
        store.put(queue_offset=number)
    path = store.write() / "commitlog/00000000000000000000"
    part = LogPart("s", path, "commitlog/f", 0, 8192)
    found = []
    for each in read_log(part, ("offset",)):
        os.utime(path, ns=(1, 1))
        found.append(each.code if isinstance(each, Problem) else each.num_rows)
    assert found == [5, "READ_CHANGED"]


@pytest.mark.parametrize("is_live", [False, True])
def test_a_bad_tail_is_unknown_where_a_store_is_at_work(tmp_path: Path, is_live: bool) -> None:
    data = record(0) + record(len(record(0)))[:-9] + b"half"
    (tmp_path / "f").write_bytes(data)
    part = LogPart("s", tmp_path / "f", "commitlog/f", 0, 8192, is_live=is_live)
    [problem] = list(read_log(part, ()))
    assert problem.code == ("CL_TAIL_MOVING" if is_live else "CL_BAD_RECORD")


def test_empty_units_and_lost_extension_units_are_problems(tmp_path: Path) -> None:
    store = HandmadeStore(tmp_path / "store")
    for number in (0, 1, 4):
        store.put(queue_offset=number, tags_code=-(2**63) if number == 4 else 7)
    store.write()
    found = rows(QUEUES, store.root, columns="queue_offset,tags_code,ext_address")
    assert found == [
        {"queue_offset": 0, "tags_code": 7, "ext_address": None},
        {"queue_offset": 1, "tags_code": 7, "ext_address": None},
        {"queue_offset": 4, "tags_code": None, "ext_address": -(2**63)},
    ]
    said = [(row["code"], row["position"], row["size"]) for row in rows(QUEUES, store.root, table="problems")]
    assert said == [("CQ_EXT_UNREADABLE", 80, 0), ("CQ_EMPTY_UNITS", 40, 40)]


def test_an_index_that_does_not_tell_its_slots_is_a_problem(tmp_path: Path) -> None:
    store = copied("01-plain-ascii", tmp_path / "store")
    [file] = (store / "index").iterdir()
    overwrite(file, 40, b"\x7f" * (file.stat().st_size - 40))
    assert rows(INDEX, store) == []
    assert problems(INDEX, store) == [(f"index/{file.name}", "IX_SLOTS_UNKNOWN")]
    [header] = rows(INDEX, store, table="headers")
    assert header["slots"] is None


def test_a_checkpoint_of_another_size_is_a_problem(tmp_path: Path) -> None:
    store = copied("01-plain-ascii", tmp_path / "store")
    (store / "checkpoint").write_bytes(b"short")
    assert rows(CHECKPOINT, store) == []
    assert problems(CHECKPOINT, store) == [("checkpoint", "CP_BAD_SIZE")]


@given(st.binary(max_size=300), st.integers(0, 200))
def test_no_bytes_make_a_reader_fail(place: Path, data: bytes, split: int) -> None:
    root = place.parent / "any"
    for name in ("commitlog/" + "0" * 20, "consumequeue/T/0/" + "0" * 20, "index/" + "1" * 17, "checkpoint"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    for name in FORMATS:
        rows(name, root, columns="*", splitBytes=str(split))
        for row in rows(name, root, table="problems", splitBytes=str(split)):
            assert row["code"] in PROBLEM_CODES or row["code"][:3] in ("CL_", "CP_")


# ---- columns and options -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("split", ["0", "2048"])
@pytest.mark.parametrize("name", SOUND)
def test_sums_by_topic_are_those_of_the_rows(name: str, split: str) -> None:
    wanted: dict[tuple[str, str, int], list[int]] = {}
    for row in rows(LOG, CASES[name] / "store", columns="file,topic,queue_id,size,body_size,store_timestamp"):
        time = row["store_timestamp"]
        sums = wanted.setdefault((row["file"], row["topic"], row["queue_id"]), [0, 0, 0, time, time])
        for place, number in enumerate((1, row["size"], row["body_size"])):
            sums[place] += number
        sums[3:] = [min(sums[3], time), max(sums[4], time)]
    found: dict[tuple[str, str, int], list[int]] = {}
    names = ("messages", "bytes", "body_bytes", "first_timestamp", "last_timestamp")
    for row in rows(LOG, CASES[name] / "store", table="topics", columns="*", splitBytes=split):
        more = [row[each] for each in names]
        sums = found.setdefault((row["file"], row["topic"], row["queue_id"]), [0, 0, 0, *more[3:]])
        added = [a + b for a, b in zip(sums[:3], more[:3], strict=True)]
        sums[:] = [*added, min(sums[3], more[3]), max(sums[4], more[4])]
        assert row["first_time"] == datetime.fromtimestamp(row["first_timestamp"] / 1000, UTC)
    assert found == wanted
    assert found


def test_topics_and_queues_of_any_numbers_are_grouped() -> None:
    topics = np.array([2, 0, 2, 2, 0], "i8")
    for queues in ([5, -3, 5, 7, 9], [5, -(2**31), 5, 2**31 - 1, 9]):  # counted in arrays, and sorted
        pairs, which = _grouped(topics, np.array(queues, "i8"))
        assert [pairs[place] for place in which.tolist()] == list(zip(topics.tolist(), queues, strict=True))
        assert len(set(pairs)) == len(pairs) == 4


def test_columns_come_in_the_order_asked_for() -> None:
    store = CASES["01-plain-ascii"] / "store"
    assert rows(LOG, store, columns="size, offset")[:2] == [{"size": 138, "offset": 0}, {"size": 138, "offset": 138}]


def test_several_stores_are_read_in_order() -> None:
    stores = [CASES[name] / "store" for name in SOUND[:2]]
    found = rows(LOG, *stores, columns="store,offset")
    assert found == [row for store in stores for row in rows(LOG, store, columns="store,offset")]
    assert {row["store"] for row in found} == {str(store) for store in stores}


def test_bodies_are_not_gathered_unless_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from tornpage.properties.decode.arrays import texts

    def refuse(*arguments: Any) -> None:
        raise AssertionError("a body was gathered")

    store = CASES["01-plain-ascii"] / "store"
    monkeypatch.setitem(texts._PLACES, "body", refuse)
    assert rows(LOG, store)
    with pytest.raises(AssertionError, match="gathered"):
        rows(LOG, store, columns="body")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": "offst"}, "rocketmq-commitlog has no column 'offst' in its rows; there is offset"),
        ({"columns": " ,"}, "the option columns names no column"),
        ({"table": "row"}, "has no table 'row'; it has rows, topics, problems"),
        ({"splitbytes": "-1"}, "splitBytes is a whole number of at least 0, not '-1'"),
        ({"fileBytes": "1k"}, "fileBytes is a whole number of at least 1, not '1k'"),
        ({"colums": "offset"}, "has no option 'colums'; it has columns, fileBytes"),
        ({"path": "/no/where"}, "there is no store directory /no/where"),
        ({"path": "hdfs://x/y"}, "reads directories that all workers can see as files"),
        ({"paths": "["}, "the option paths is no JSON list"),
        ({"fileBytes": "9" * 5000}, "fileBytes is a whole number of at least 1, not '9999999999"),
        ({"fileBytes": str(10**30)}, "fileBytes is a whole number of at least 1"),
    ],
)
def test_options_that_make_no_sense_are_refused_in_one_line(options: Mapping[str, str], message: str) -> None:
    given = {"path": str(CASES["01-plain-ascii"] / "store"), **options}
    with pytest.raises(ReaderError) as error:
        Ask.of(LOG, given)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_reader_without_a_store_is_refused() -> None:
    with pytest.raises(ReaderError, match="name one or several in load"):
        Ask.of(QUEUES, {})


def test_spark_is_told_that_a_column_is_never_null_unless_its_meaning_says_when() -> None:
    for tables in FORMATS.values():
        for columns in tables.values():
            for name, column in columns.items():
                assert column.is_nullable == ("null" in column.meaning), name
    assert Ask.of(LOG, {"path": str(CASES["01-plain-ascii"] / "store"), "columns": "offset,tags"}).schema["fields"] == [
        {
            "name": "offset",
            "type": "long",
            "nullable": False,
            "metadata": {
                "comment": "physical offset where the record begins",
                "unit": "bytes from the start of the log",
            },
        },
        {"name": "tags", "type": "string", "nullable": True, "metadata": {"comment": "the tag; null without one"}},
    ]


def test_the_page_of_tables_has_every_column_and_code(repository: Path) -> None:
    page = (repository / "docs/tables.md").read_text(encoding="utf-8")
    readers = [columns for tables in FORMATS.values() for columns in tables.values()]
    written = [CAMPAIGN_TABLE, PEER_TABLE, TARGET_TABLE, SWEEP_TABLE, *AUDIT_TABLES.values()]
    shown = Counter(re.findall(r"^\| \*{0,2}(\w+)\*{0,2} \| [\w<>,]+ \| ", page, re.MULTILINE))
    del shown["column"], shown["format"]  # heads of tables
    problems = FORMATS[LOG]["problems"]  # the page has this table once
    told = [columns for columns in readers if columns != problems] + [problems, *written]
    assert shown == Counter(name for columns in told for name in columns)
    for columns in (*readers, *written):
        for name, column in columns.items():
            shown_name = f"**{name}**" if column.is_usual else name
            assert f"| {shown_name} | {column.kind} | {column.unit} | {column.meaning} |\n" in page
            assert column.meaning
    for code, meaning in PROBLEM_CODES.items():
        assert f"| {code} | {meaning} |\n" in page


def test_files_of_tables_have_units_and_meanings_that_spark_reads() -> None:
    for table in (CAMPAIGN_TABLE, PEER_TABLE, TARGET_TABLE, SWEEP_TABLE, *AUDIT_TABLES.values()):
        plain = pa.schema([(name, arrow_type(column.kind)) for name, column in table.items()])
        schema = described(plain, table)
        struct = json.loads(schema.metadata[b"org.apache.spark.sql.parquet.row.metadata"])
        assert [field["name"] for field in struct["fields"]] == list(table)
        for field, (name, column) in zip(struct["fields"], table.items(), strict=True):
            assert field["metadata"]["comment"] == column.meaning
            assert schema.field(name).metadata[b"comment"].decode() == column.meaning
            assert field["metadata"].get("unit", "") == column.unit
        assert schema == plain


@pytest.mark.parametrize(
    ("ms", "shown"),
    [
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        (-62_135_596_800_000, datetime(1, 1, 1, tzinfo=UTC)),
        (253_402_300_799_999, datetime(9999, 12, 31, 23, 59, 59, 999_000, UTC)),
        (-62_135_596_800_001, None),
        (253_402_300_800_000, None),
        (2**63 - 1, None),
        (-(2**63), None),
    ],
)
def test_times_that_no_calendar_has_are_null(ms: int, shown: datetime | None) -> None:
    assert times_of(np.array([ms], np.int64)).to_pylist() == [shown]


def test_times_are_the_milliseconds_beside_them() -> None:
    store = str(CASES["06-index-files-collisions"] / "store")
    tables = {LOG: "rows", "rocketmq-index": "headers", "rocketmq-checkpoint": "rows"}
    for name, table in tables.items():
        ask = Ask.of(name, {"path": store, "table": table, "columns": "*"})
        found = [row for task in plan(ask) for batch in read_task(task, ask) for row in batch.to_pylist()]
        assert found
        times = [time for time in TIMES if time in FORMATS[name][table]]
        assert times
        for row in found:
            for time in times:
                assert row[time] == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=row[TIMES[time]])


PROPERTIES = st.lists(
    st.tuples(
        st.sampled_from(["TAGS", "KEYS", "UNIQ_KEY", "__CRC32#", "a", "bc", ""]),
        st.sampled_from(["\x01", "\x01\x01", ""]),
        st.sampled_from(["", "x", "k1 k2", " k  k ", "__CRC32#"]),
    ),
    max_size=4,
    unique_by=lambda pair: pair[0],
).map(lambda pairs: "\x02".join("".join(pair) for pair in pairs).encode())


@given(st.lists(st.tuples(PROPERTIES, st.sampled_from(["", "\x02"]), st.sampled_from([0, 4, 12])), max_size=6))
def test_properties_that_are_split_at_once_are_those_of_each_record(rows: list[tuple[bytes, str, int]]) -> None:
    stored = [text + end.encode() for text, end, _ in rows]
    flags = np.array([flag for _, _, flag in rows], np.int64)
    ends = np.cumsum([0, *map(len, stored)])
    split = split_properties(ends, np.frombuffer(b"".join(stored), np.uint8))
    assert split is not None
    parsed = [parse_properties(text) for text in stored]
    assert [dict(row) for row in split.maps().to_pylist()] == parsed
    assert [list(dict(row)) for row in split.maps().to_pylist()] == [list(row) for row in parsed]
    assert split.value_of("TAGS").to_pylist() == [row.get("TAGS") for row in parsed]
    wanted = [keys_of_properties(row, flag) for row, flag in zip(parsed, flags.tolist(), strict=True)]
    assert split.keys(flags).to_pylist() == wanted


@pytest.mark.parametrize("rare", [b"a\x01\xc3\xa9", b"a\x01\xff", b"a\x011\x02b\x012\x02a\x013"])
def test_rare_properties_are_left_to_the_plain_reader(rare: bytes) -> None:
    data = np.frombuffer(b"b\x011" + rare, np.uint8)
    assert split_properties(np.array([0, 3, 3 + len(rare)]), data) is None
    assert split_properties(np.array([0, 3]), data[:3]) is not None


@pytest.mark.parametrize("format_name", sorted(FORMATS))
def test_names_that_are_no_text_are_problems_that_can_be_told(tmp_path: Path, format_name: str) -> None:
    store = copied("01-plain-ascii", tmp_path / "store")
    for directory in ("commitlog", "consumequeue", "consumequeue/TopicTest/0", "index"):
        (store / directory).mkdir(exist_ok=True)
        name = os.fsencode(store / directory) + b"/\xff"
        os.symlink(name, name)  # no process can follow it, so a finding has to report it
    ask = Ask.of(format_name, {"path": str(store), "table": "problems"})
    files = [file for task in plan(ask) for batch in read_task(task, ask) for file in batch.to_pydict()["file"]]
    assert all(file.isprintable() for file in files)
    assert format_name == "rocketmq-checkpoint" or any("\ufffd" in file for file in files)


@pytest.mark.parametrize("name", FORMATS)
def test_worker_that_does_not_see_the_store_returns_no_problem_of_it(tmp_path: Path, name: str) -> None:
    store = copied("01-plain-ascii", tmp_path / "store")
    ask = Ask.of(name, {"path": str(store), "table": "problems"})
    tasks = plan(ask)
    assert tasks
    store.rename(tmp_path / "elsewhere")
    with pytest.raises(PathUnseen, match="does not see the directory"):
        list(read_task(tasks[0], ask))


def test_relative_store_is_read_by_its_absolute_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = copied("01-plain-ascii", tmp_path / "store")
    monkeypatch.chdir(tmp_path)
    assert Ask.of(LOG, {"path": "store"}).stores == (str(store),)


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_address_of_a_file_names_its_path(tmp_path: Path, scheme: str) -> None:
    store = copied("01-plain-ascii", tmp_path / "store")
    assert Ask.of(LOG, {"path": f"{scheme}{store}"}).stores == (str(store),)


def test_table_in_a_catalog_is_refused_with_what_works(tmp_path: Path) -> None:
    """The error was an unknown option `location`, which Spark adds."""
    options = {"path": f"file:{tmp_path}", "location": f"file:{tmp_path}", "owner": "me", "provider": LOG}
    with pytest.raises(ReaderError, match=r"use CREATE TEMPORARY VIEW … USING `rocketmq-commitlog` OPTIONS \(path"):
        Ask.of(LOG, options)
