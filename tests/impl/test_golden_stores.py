"""Stores that RocketMQ 4.9.3 wrote: the same puts give the same bytes, and our store opens its directories.

Two of them are in tests/data/golden; the rest is read from TORNPAGE_GOLDEN or from shared/golden beside the checkout.
"""

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from impl import codec
from impl.config import MessageStoreConfig
from impl.message import GetStatus, Host, Message, PutStatus
from impl.os_files import OsFiles
from impl.policy import FlushDiskType
from impl.store import MessageStore
from tests.impl.support import SetClock, log_bytes, snapshot

ROOT = Path(__file__).resolve().parents[2]
PLACES = (
    ROOT / "tests" / "data" / "golden",
    Path(os.environ.get("TORNPAGE_GOLDEN", ROOT.parent / "shared" / "golden")),
)
CASES = (
    "01-plain-ascii",
    "02-topics-unicode-limits",
    "03-rollover-blanks-retention",
    "04-hosts-and-batches",
    "05-transactions-delays-light-queues",
    "06-index-files-collisions",
    "07-queue-ext-bitmaps",
    "08-halt-async",
    "09-crash-stale-log-tail",
    "10-crash-torn-properties",
    "11-crash-stale-queue-tail",
    "12-crash-torn-queue-entry",
)
DEPARTURES = {("02-topics-unicode-limits", 188): PutStatus.PROPERTIES_SIZE_EXCEEDED}
"""(case, number of the put): properties that are too long get one status from us, whether they are counted in
characters (RocketMQ: MESSAGE_ILLEGAL) or in bytes."""
SERVES_LESS = ("10-crash-torn-properties",)
"""RocketMQ serves a record with torn properties; we cut there (contract 7)."""


def golden(case: str) -> Path:
    """Return the folder of a case, or skip."""
    for place in PLACES:
        if (place / case / "truth.json").is_file():
            return place / case
    pytest.skip(f"golden store {case} is not at hand: set TORNPAGE_GOLDEN")


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def config_of(folder: Path, **changes: Any) -> MessageStoreConfig:
    """Return the settings a golden store was written with, pure 4.9.3 records."""
    given = read(folder / "config.json")["store"]
    return MessageStoreConfig(
        mapped_file_size_commit_log=given["mappedFileSizeCommitLog"],
        max_message_size=given["maxMessageSize"],
        flush_disk_type=FlushDiskType(given["flushDiskType"]),
        record_checksum=changes.get("record_checksum", "body"),
    )


def body_of(body: dict[str, Any] | None) -> bytes | None:
    if body is None:
        return None
    if "text" in body:
        return str(body["text"]).encode()
    if "hex" in body:
        return bytes.fromhex(body["hex"])
    head, fill, length = body["head"].encode(), body["fill"].encode(), int(body["length"])
    whole: bytes = head + fill * (length // max(1, len(fill)) + 1)
    return whole[:length]


def host_of(pair: list[Any]) -> Host:
    return pair[0], pair[1]


def message_of(put: dict[str, Any]) -> Message:
    return Message(
        topic=put["topic"],
        body=body_of(put["body"]),
        queue_id=put["queueId"],
        properties=put["properties"] or "",
        flag=put["flag"],
        sys_flag=put["sysFlag"],
        born_timestamp=put["bornTimestamp"],
        born_host=host_of(put["bornHost"]),
        store_host=host_of(put["storeHost"]),
        reconsume_times=put["reconsumeTimes"],
        prepared_transaction_offset=put["preparedTransactionOffset"],
    )


def opened(directory: Path, folder: Path, clock: SetClock | None = None, **changes: Any) -> MessageStore:
    return MessageStore.open(directory, config_of(folder, **changes), files=OsFiles(), clock=clock or SetClock())


# ---- the same puts, the same bytes -------------------------------------------------------------------------------


@pytest.mark.parametrize("case", [case for case in CASES if case[:2] in ("01", "02", "03", "06", "07", "08", "12")])
def test_same_puts_give_the_bytes_of_rocketmq(case: str, tmp_path: Path) -> None:
    folder = golden(case)
    puts = read(folder / "truth.json")["puts"]
    clock = SetClock()
    with opened(tmp_path, folder, clock) as store:
        for number, put in enumerate(puts):
            append = put["result"]["append"]
            clock.now_ms = append["storeTimestamp"] if append else 0
            result = store.put(message_of(put))
            assert result.status is DEPARTURES.get((case, number), PutStatus(put["result"]["status"])), number
            if append:
                answer = (result.offset, result.size_bytes, result.queue_offset, result.message_id)
                expected = (append["wroteOffset"], append["wroteBytes"], append["queueOffset"], append["msgId"])
                assert answer == expected, number
            else:
                assert not result.stored
        ours = log_bytes(tmp_path)
    javas = log_bytes(folder / "store")
    compared = sorted(ours.keys() & javas.keys())
    assert compared
    for name in compared:
        assert hashlib.sha256(ours[name]).digest() == hashlib.sha256(javas[name]).digest(), name
    retained = min(javas)
    assert all(name < retained for name in ours.keys() - javas.keys())
    assert all(not any(javas[name]) for name in javas.keys() - ours.keys()), "made ahead of need: zeros"


@pytest.mark.parametrize("case", CASES[:8])
def test_single_records_are_encoded_to_the_bytes_of_rocketmq(case: str) -> None:
    """Record by record, so that stores with batches or rewritten properties in between count as far as they go."""
    folder = golden(case)
    config = config_of(folder)
    javas = log_bytes(folder / "store")
    compared = 0
    for put in read(folder / "truth.json")["puts"]:
        append = put["result"].get("append")
        if "batch" in put or not append or rewritten_by_the_broker(put):
            continue
        record = codec.encode_record(message_of(put), now_ms=0, store_host=("0.0.0.0", 0), trailer=False)
        assert isinstance(record, bytearray)
        codec.place_record(
            record,
            queue_offset=append["queueOffset"],
            physical_offset=append["wroteOffset"],
            store_timestamp=append["storeTimestamp"],
            trailer=False,
        )
        base = append["wroteOffset"] // config.mapped_file_size_commit_log * config.mapped_file_size_commit_log
        if f"{base:020d}" not in javas:
            continue  # deleted by retention
        position = append["wroteOffset"] - base
        assert javas[f"{base:020d}"][position : position + len(record)] == record, append["wroteOffset"]
        compared += 1
    assert compared >= 20


def rewritten_by_the_broker(put: dict[str, Any]) -> bool:
    """Delayed messages and light queues change on their way into the log; the store does neither yet."""
    properties = put["properties"] or ""
    return "DELAY\x01" in properties or "INNER_MULTI_DISPATCH\x01" in properties


# ---- their directories in our store ------------------------------------------------------------------------------


def served_of(store: MessageStore, directory: Path, *, file_bytes: int) -> list[tuple[int, int, str]]:
    """Return (offset, size, SHA-256 of the bytes on disk) of each record the store serves, checking `get` too."""
    files = log_bytes(directory)
    served = []
    for stored in store.messages():
        assert store.get(stored.offset).message == stored
        base = stored.offset // file_bytes * file_bytes
        data = files[f"{base:020d}"][stored.offset - base :][: stored.size_bytes]
        served.append((stored.offset, stored.size_bytes, hashlib.sha256(data).hexdigest()))
    return served


def first_dump(steps: list[dict[str, Any]]) -> dict[str, Any]:
    state: dict[str, Any] = next(step["state"] for step in steps if step["do"] == "dump")
    return state


def expected_of(state: dict[str, Any]) -> list[tuple[int, int, str]]:
    return [(row["phy"], row["size"], row["recordSha256"]) for row in state["log"] if row["kind"] == "record"]


@pytest.mark.parametrize("case", CASES)
def test_directory_of_rocketmq_is_opened(case: str, tmp_path: Path) -> None:
    folder = golden(case)
    copied = tmp_path / "store"
    shutil.copytree(folder / "store", copied, copy_function=shutil.copyfile)
    clean = read(folder / "config.json")["lastExit"] == "clean"
    assert (copied / "abort").exists() is not clean
    state = first_dump(read(folder / "expected.json")["steps"])
    expected = expected_of(state)
    config = config_of(folder)
    file_bytes = config.mapped_file_size_commit_log
    with opened(copied, folder) as store:
        assert store.read_only_reason is None
        served = served_of(store, copied, file_bytes=file_bytes)
        if case in SERVES_LESS:
            torn = read(folder / "truth.json")["tornRecordOffset"]
            assert served == [row for row in expected if row[0] < torn]
            assert store.max_offset == torn
        else:
            assert served == expected
            assert store.max_offset == state["maxPhyOffset"]
        if expected:
            assert store.min_offset == state["minPhyOffset"]
        assert store.get(store.max_offset).status is GetStatus.OFFSET_OVERFLOW_ONE
        fields = {row["phy"]: row for row in state["log"] if row["kind"] == "record"}
        for stored in store.messages():
            row = fields[stored.offset]
            assert (stored.topic, stored.queue_id, stored.queue_offset, stored.sys_flag, stored.store_timestamp) == (
                row["topic"], row["queueId"], row["queueOffset"], row["sysFlag"], row["storeTimestamp"],
            )  # fmt: skip
        put = store.put(Message("NewTopic", b"ours"))
        assert (put.status, put.queue_offset) == (PutStatus.PUT_OK, 0)
    with opened(copied, folder, record_checksum="record") as store:
        assert [offset for offset, _, _ in served] == [stored.offset for stored in store.messages()][:-1]
        assert store.findings == ()


def test_unflushed_records_behind_a_hole_are_kept_aside(tmp_path: Path) -> None:
    """RocketMQ cuts them and later serves some again; we cut, keep a copy and never serve them again."""
    folder = golden("09-crash-stale-log-tail")
    copied = tmp_path / "store"
    shutil.copytree(folder / "store", copied, copy_function=shutil.copyfile)
    name = f"{0:020d}"
    before = log_bytes(copied)
    with opened(copied, folder) as store:
        assert [finding.code for finding in store.findings] == ["torn_tail"]
        assert store.max_offset == 18_000
        store.put(Message("StaleTopic", b"x" * 8_900, queue_id=1))
    assert (copied / "quarantine" / f"{18_000:020d}.0").read_bytes() == before[name][18_000:]
    with opened(copied, folder) as store:
        assert [stored.offset for stored in store.messages()] == [0, 9_000, 18_000]


def apply_damage(directory: Path, damage: list[dict[str, Any]]) -> None:
    """Carry out the operations of a variant."""
    for step in damage:
        path = directory / step["path"]
        match step["op"]:
            case "delete":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            case "create":
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(bytes.fromhex(step["hex"]))
            case "truncate":
                os.truncate(path, step["length"])
            case _:
                data = bytes(step["length"]) if step["op"] == "zero" else bytes.fromhex(step["hex"])
                with open(path, "r+b") as file:
                    file.seek(step["offset"])
                    file.write(data)


VARIANTS: dict[str, int | None] = {
    "checkpoint-future": 210,
    "checkpoint-missing": 210,
    "checkpoint-zero": 210,
    "delay-offset-garbage": 210,
    "drop-all-queues": 210,
    "abort-missing-queue-lost": 210,
    "stray-file": 210,
    "zero-length-next-log-file": 210,
    "last-log-file-missing": None,
    "log-all-missing": 0,
    "hole-after-scan-start": None,
    "hole-before-scan-start": None,
    "torn-last-record": None,
}
"""How many records we serve; None: those before the first damaged byte."""


@pytest.mark.parametrize("variant", VARIANTS)
def test_killed_store_with_a_damage_is_opened(variant: str, tmp_path: Path) -> None:
    folder = golden("08-halt-async")
    damage = read(folder / "variants" / f"{variant}.json")["damage"]
    copied = tmp_path / "store"
    shutil.copytree(folder / "store", copied, copy_function=shutil.copyfile)
    apply_damage(copied, damage)
    every = expected_of(first_dump(read(folder / "expected.json")["steps"]))
    count = VARIANTS[variant]
    if count is None:
        damaged_at = min(int(Path(step["path"]).name) + step.get("offset", 0) for step in damage)
        count = sum(offset + size <= damaged_at for offset, size, _ in every)
        assert 0 < count < 210
    with opened(copied, folder) as store:
        assert store.read_only_reason is None
        assert served_of(store, copied, file_bytes=65_536) == every[:count]
        assert store.put(Message("NewTopic", b"ours")).status is PutStatus.PUT_OK
    quarantined = b"".join(path.read_bytes() for path in sorted((copied / "quarantine").glob("*")))
    cut_with_records = variant.startswith("hole-")
    assert bool(quarantined) is cut_with_records
    if cut_with_records:
        whole = log_bytes(folder / "store")
        last_offset, last_size, _ = every[-1]
        base = last_offset // 65_536 * 65_536
        assert whole[f"{base:020d}"][last_offset - base :][:last_size] in quarantined


def test_short_log_file_opens_read_only_and_serves_what_verifies(tmp_path: Path) -> None:
    folder = golden("08-halt-async")
    damage = read(folder / "variants" / "short-log-file.json")["damage"]
    copied = tmp_path / "store"
    shutil.copytree(folder / "store", copied, copy_function=shutil.copyfile)
    apply_damage(copied, damage)
    before = snapshot(copied)
    every = expected_of(first_dump(read(folder / "expected.json")["steps"]))
    with opened(copied, folder) as store:
        assert store.read_only_reason is not None
        assert "60000 bytes instead of 65536" in store.read_only_reason
        assert served_of(store, copied, file_bytes=65_536) == every
        assert store.put(Message("NewTopic", b"ours")).status is PutStatus.SERVICE_NOT_AVAILABLE
    assert snapshot(copied) == before
