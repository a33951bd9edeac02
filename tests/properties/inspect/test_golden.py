"""Compare the views of stores of RocketMQ 4.9.3 with RocketMQ's answers about them.

Only cleanly closed stores are compared row by row: RocketMQ changes a damaged store before it answers.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.impl.golden import CASES, first_dump, golden, read
from tornpage.properties.decode.index import index_hash
from tornpage.properties.inspect import Query, inspect_view

CLEAN = [case for case in CASES if case < "08"]


def state_of(case: str) -> tuple[Path, dict[str, Any]]:
    folder = golden(case)
    if not (folder / "store" / "consumequeue").is_dir():
        pytest.skip(f"only the log of {case} is here: set TORNPAGE_GOLDEN")
    return folder / "store", first_dump(read(folder / "expected.json")["steps"])


@pytest.mark.parametrize("case", CLEAN)
def test_list_of_queues(case: str) -> None:
    store, state = state_of(case)
    document = inspect_view(store, "queues", None, Query(limit=None))
    names = ("topic", "queueId", "minOffset", "maxOffset", "messageTotal", "maxPhysicOffset")
    said = {tuple(row[name] for name in names) for row in document["rows"]}
    assert said == {tuple(queue[name] for name in names) for queue in state["queues"]}
    assert document["findings"] == []


@pytest.mark.parametrize("case", CLEAN)
def test_units_of_each_queue_with_their_extension(case: str) -> None:
    store, state = state_of(case)
    for queue in state["queues"]:
        name = f"{queue['topic']}/{queue['queueId']}"
        document = inspect_view(store, "queue", name, Query(limit=None))
        rows = [row for row in document["rows"] if row["kind"] == "unit"]
        found = [[row["queueOffset"], row["phy"], row["size"], row["tagsCode"]] for row in rows]
        assert found == [entry[:4] for entry in queue["entries"]]
        for row, entry in zip(rows, queue["entries"], strict=True):
            if len(entry) > 4 and entry[4] is not None:
                columns = {name: row["ext"][name] for name in ("tagsCode", "msgStoreTime", "bitMap", "size")}
                assert columns == entry[4]
            else:
                assert "ext" not in row
        assert {row["state"] for row in rows} <= {"ok"}
        assert document["findings"] == []
        messages = {message["cqOffset"]: message for message in queue["messages"]}
        for row in rows:
            if row["queueOffset"] in messages:
                assert row["msgId"] == messages[row["queueOffset"]]["msgId"]


@pytest.mark.parametrize("case", CLEAN)
def test_index_files_and_their_slots(case: str) -> None:
    store, state = state_of(case)
    settings = read(store.parent / "config.json")["store"]
    document = inspect_view(store, "index", None, Query(limit=None))
    names = ("beginTimestamp", "endTimestamp", "beginPhyOffset", "endPhyOffset", "hashSlotCount", "indexCount")
    assert len(document["rows"]) == len(state["indexFiles"])
    for row, said in zip(document["rows"], state["indexFiles"], strict=True):
        assert row["file"] == f"index/{said['file']}"
        assert {name: row[name] for name in names} == {name: said[name] for name in names}
        assert (row["slots"], row["entriesMax"]) == (settings["maxHashSlotNum"], settings["maxIndexNum"])
        assert row["slotsUsed"] == row["hashSlotCount"]
        assert row["problems"] == 0
    assert document["findings"] == []


@pytest.mark.slow
@pytest.mark.parametrize("case", CLEAN)
def test_queries_by_key_find_what_rocketmq_finds_and_no_collision(case: str) -> None:
    store, state = state_of(case)
    for asked in state["queries"]:
        if (asked["begin"], asked["maxNum"]) != (0, 32) or asked["end"] < 4_000_000_000_000:
            continue
        query = Query(limit=None, topic=asked["topic"], key=asked["key"])
        document = inspect_view(store, "log", None, query)
        found = [row["phy"] for row in document["rows"]]
        chain = inspect_view(store, "index", None, query)["rows"]
        by_hash = [row["phy"] for row in chain if row["sameHash"]]
        assert by_hash[: len(asked["indexOffsets"])] == asked["indexOffsets"]
        assert len(asked["indexOffsets"]) in (32, len(by_hash))
        # RocketMQ's answer depends on the hash alone, the view's answer on the record.
        assert set(found) == {row["phy"] for row in chain if row["accepted"]}
        assert set(found) <= set(by_hash)
        assert all(row["slot"] == index_hash(asked["topic"], asked["key"]) % settings_slots(store) for row in chain)
        scanned = inspect_view(store, "log", None, Query(limit=None, topic=asked["topic"], key=asked["key"], scan=True))
        assert [row["phy"] for row in scanned["rows"]] == found
        codes = {finding["code"] for finding in scanned["findings"]}
        assert codes == ({"LOOK_SCANNED"} if found else {"LOOK_SCANNED", "LOOK_NOTHING"})


def settings_slots(store: Path) -> int:
    slots: int = read(store.parent / "config.json")["store"]["maxHashSlotNum"]
    return slots


def test_every_key_of_a_record_is_found() -> None:
    store, _ = state_of("06-index-files-collisions")
    tokens = 0
    for said in inspect_view(store, "log", None, Query(limit=None))["rows"][::7]:
        for key in filter(None, [said["uniqKey"], *(said["keys"] or "").split(" ")]):
            tokens += 1
            document = inspect_view(store, "log", None, Query(limit=None, topic=said["topic"], key=key))
            assert said["phy"] in [row["phy"] for row in document["rows"]]
            assert document["figures"]["records_scanned"] <= 1  # the last record has no key
    assert tokens > 60


@pytest.mark.parametrize("case", CLEAN)
def test_every_message_id_is_found(case: str) -> None:
    store, state = state_of(case)
    for queue in state["queues"]:
        for message in queue["messages"]:
            document = inspect_view(store, "log", None, Query(message_id=message["msgId"]))
            assert [row["phy"] for row in document["rows"]] == [message["commitLogOffset"]]
            assert document["rows"][0]["recordSha256"] == message["recordSha256"]
            assert document["findings"] == []


def test_times_between_are_exact() -> None:
    store, state = state_of("03-rollover-blanks-retention")
    every = [row for row in state["log"] if row["kind"] == "record"]
    times = sorted({row["storeTimestamp"] for row in every})
    for begin, end in ((times[0], times[-1]), (times[3], times[-4]), (times[5], times[5]), (times[-1], times[-1] + 1)):
        document = inspect_view(store, "log", None, Query(limit=None, times=(begin, end)))
        expected = [row["phy"] for row in every if begin <= row["storeTimestamp"] <= end]
        assert [row["phy"] for row in document["rows"]] == expected
    assert document["figures"]["files_read"] == 1


def test_an_index_that_begins_late_is_completed_from_the_log(tmp_path: Path) -> None:
    store, _ = state_of("06-index-files-collisions")
    copy = shutil.copytree(store, tmp_path / "store")
    copy.chmod(0o755)
    (copy / "index").chmod(0o755)
    first = min((copy / "index").iterdir())
    first.unlink()
    query = Query(limit=None, topic="IdxA", key="AaAa")
    document = inspect_view(copy, "log", None, query)
    assert document["rows"] == inspect_view(store, "log", None, query)["rows"]
    assert [finding["code"] for finding in document["findings"]] == ["LOOK_SCANNED"]
    assert 0 < document["figures"]["records_scanned"] < 150


def test_config_of_the_delivery_is_read_although_its_keys_have_no_quotes() -> None:
    store, _ = state_of("05-transactions-delays-light-queues")
    rows = inspect_view(store, "config", "delayOffset", Query())["rows"]
    assert [(row["file"], row["state"]) for row in rows] == [
        ("config/delayOffset.json", "ok"),
        ("config/delayOffset.json.bak", "ok"),
    ]
    assert rows[0]["content"] == {"offsetTable": {"1": 4}}
