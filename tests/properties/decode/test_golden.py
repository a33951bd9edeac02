"""Test the decoder on stores of RocketMQ 4.9.3: it reads and refuses as that store does.

Two small cases are always present. The others are tested where TORNPAGE_GOLDEN (or ../shared/golden) has them.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.support.properties.handmade import GOLDEN, golden_dirs
from tornpage.properties.decode.record import Bad, Blank, Record, message_id, parse_properties
from tornpage.properties.decode.store import LocatedItem, iter_items, look
from tornpage.properties.decode.walk import Unreadable, scan
from tornpage.properties.inspect import inspect_store

CASES = {path.name: path for path in golden_dirs()}
READ_LIKE_JAVA = sorted(name for name in CASES if not name.startswith(("09-", "10-")))
COMMON = ("phy", "size", "topic", "queueId", "queueOffset", "storedPhy", "sysFlag", "storeTimestamp", "recordSha256")


def first_dump(case: Path) -> dict[str, Any]:
    steps = json.loads((case / "expected.json").read_text(encoding="utf-8"))["steps"]
    state: dict[str, Any] = next(step["state"] for step in steps if step["do"] == "dump")
    return state


def case_or_skip(name: str, needs: str = "store") -> Path:
    if name not in CASES or not (CASES[name] / needs).exists():
        pytest.skip(f"golden case {name} is not at hand: set TORNPAGE_GOLDEN to the directory of golden stores")
    return CASES[name]


def items(case: Path) -> list[LocatedItem]:
    return list(iter_items(look(case / "store")))


def test_all_golden_cases_are_at_hand() -> None:
    if not GOLDEN.is_dir():
        pytest.skip("only the golden stores of tests/data are at hand: set TORNPAGE_GOLDEN to the directory of all")
    assert len(CASES) >= 12


@pytest.mark.parametrize("name", READ_LIKE_JAVA)
def test_log_is_read_as_java_reads_it(name: str) -> None:
    document = inspect_store(CASES[name] / "store", limit=None)
    expected = first_dump(CASES[name])
    rows = [{key: row[key] for key in (*COMMON, "kind") if key in row} for row in document["rows"]]
    assert rows == expected["log"]
    assert document["verdict"] == "holds"
    assert document["figures"]["min_offset"] == expected["minPhyOffset"]
    assert document["figures"]["max_offset"] == expected["maxPhyOffset"]
    assert document["figures"]["unclean"] == int((CASES[name] / "store" / "abort").exists())


@pytest.mark.parametrize("name", READ_LIKE_JAVA)
def test_messages_are_read_as_java_reads_them(name: str) -> None:
    records = {found.item.offset: found.item for found in items(CASES[name]) if isinstance(found.item, Record)}
    compared = 0
    for message in messages(first_dump(CASES[name])):
        record = records[message["commitLogOffset"]]
        assert record.size_bytes == message["storeSize"]
        assert record.queue_offset == message["queueOffset"]
        assert record.physical_offset == message["physicOffset"]
        assert record.body_crc == message["bodyCRC"]
        assert sha256(record.body).hexdigest() == message["bodySha256"]
        assert (record.flag, record.sys_flag) == (message["flag"], message["sysFlag"])
        assert record.born_timestamp == message["bornTimestamp"]
        assert record.store_timestamp == message["storeTimestamp"]
        assert record.reconsume_times == message["reconsumeTimes"]
        assert record.prepared_transaction_offset == message["preparedTransactionOffset"]
        assert record.born_host[1] == message["bornHost"][1]
        assert message_id(record) == message["msgId"]
        assert len(record.properties) == message["propertiesLength"]
        assert parse_properties(record.properties) == message["properties"]
        compared += 1
    assert compared > 0


def messages(state: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for queue in state["queues"]:
        yield from (message for message in queue.get("messages", ()) if "msgId" in message)


@pytest.mark.parametrize("name", READ_LIKE_JAVA)
def test_truth_is_in_the_log(name: str) -> None:
    truth = json.loads((CASES[name] / "truth.json").read_text(encoding="utf-8"))
    found = {located.item.offset: located.item for located in items(CASES[name]) if isinstance(located.item, Record)}
    least = min(found)
    log_end = max(record.end_offset for record in found.values())
    for record in truth["records"]:
        if least <= record["commitLogOffset"] < log_end:
            assert sha256(found[record["commitLogOffset"]].raw).hexdigest() == record["recordSha256"]


@pytest.mark.parametrize("name", sorted(CASES))
def test_scan_sees_the_same_records_up_to_the_first_bad_place(name: str) -> None:
    view = look(CASES[name] / "store")
    for file in view.files:
        offsets, end, stop = scan(file.path.read_bytes(), base_offset=file.base_offset)
        here = [located.item for located in iter_items(view) if located.file == file.label]
        sound: list[int] = []
        for item in here:
            if not isinstance(item, Record):
                break
            sound.append(item.offset)
        assert offsets == sound
        assert end == here[len(sound)].offset
        ending = here[len(sound)]
        assert stop == ("blank" if isinstance(ending, Blank) else ending.reason if isinstance(ending, Bad) else None)


def test_stale_tail_is_bad_where_the_page_is_lost() -> None:
    case = case_or_skip("09-crash-stale-log-tail")
    found = [located.item for located in items(case)]
    assert Bad(18000, "bad_body_crc", "body_crc") in found
    assert Unreadable(18000, 9000, "bad_body_crc") in found
    # Records written after the lost one stand at their offsets. They are found, but not part of the prefix.
    behind = [item.offset for item in found if isinstance(item, Record) and item.offset > 18000]
    assert behind[:4] == [27000, 36000, 45000, 54000]
    document = inspect_store(case / "store")
    assert document["verdict"] == "unknown"
    assert document["figures"]["prefix_end_offset"] == 18000
    finding, risk = document["findings"]
    assert (finding["code"], finding["severity"], finding["offset"]) == ("CL_BAD_RECORD", "tear", 18000)
    assert (risk["code"], risk["message"]) == (
        "CL_RECORDS_AT_RISK",
        "9 valid records after this place are cut when a store recovers",
    )


def test_torn_properties_are_refused() -> None:
    case = case_or_skip("10-crash-torn-properties")
    torn = first_dump(case)["log"][-1]["phy"]  # Java accepts this one
    found = [located.item for located in items(case)]
    assert Bad(torn, "nul_in_properties", "properties") in found
    rows = [row for row in inspect_store(case / "store", limit=None)["rows"] if row["kind"] == "record"]
    assert [row["phy"] for row in rows] == [entry["phy"] for entry in first_dump(case)["log"][:-1]]


@pytest.mark.parametrize("name", ["11-crash-stale-queue-tail", "12-crash-torn-queue-entry"])
def test_logs_whose_queues_are_torn_are_sound(name: str) -> None:
    document = inspect_store(case_or_skip(name) / "store")
    assert document["verdict"] == "holds"
    assert document["findings"] == []


def damaged_copy(case: Path, variant: str, target: Path) -> Path:
    """Copy a golden store and apply the damage of one of its variants."""
    told = case / "variants" / f"{variant}.json"
    if not told.exists():
        pytest.skip(f"golden variant {variant} is not at hand: set TORNPAGE_GOLDEN to the directory of golden stores")
    shutil.copytree(case / "store", target)
    for damage in json.loads(told.read_text(encoding="utf-8"))["damage"]:
        path, kind = target / damage["path"], damage["op"]
        if kind == "delete":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        elif kind == "create":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(bytes.fromhex(damage["hex"]))
        else:
            with path.open("r+b") as stream:
                stream.seek(damage.get("offset", 0))
                if kind == "truncate":
                    stream.truncate(damage["length"])
                else:
                    stream.write(bytes(damage["length"]) if kind == "zero" else bytes.fromhex(damage["hex"]))
    return target


@pytest.mark.parametrize(
    ("variant", "codes", "verdict"),
    [
        ("checkpoint-future", {"CP_AHEAD_OF_LOG"}, "holds"),
        ("checkpoint-missing", {"CP_MISSING"}, "holds"),
        ("checkpoint-zero", set(), "holds"),
        ("drop-all-queues", set(), "holds"),
        ("hole-after-scan-start", {"CL_BAD_RECORD"}, "broken"),
        ("hole-before-scan-start", {"CL_BAD_RECORD"}, "broken"),
        ("log-all-missing", {"CL_MISSING"}, "broken"),
        ("short-log-file", {"CL_SHORT_FILE"}, "broken"),
        ("stray-file", {"CL_STRAY_FILE"}, "holds"),
        ("torn-last-record", {"CL_BAD_RECORD"}, "holds"),
        ("zero-length-next-log-file", {"CL_ZERO_LENGTH"}, "holds"),
    ],
)
def test_damage_of_a_killed_store_is_found(variant: str, codes: set[str], verdict: str, tmp_path: Path) -> None:
    store = damaged_copy(case_or_skip("08-halt-async", f"variants/{variant}.json"), variant, tmp_path / "store")
    document = inspect_store(store)
    assert {finding["code"] for finding in document["findings"]} == codes
    assert document["verdict"] == verdict
