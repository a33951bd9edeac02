"""Stores that RocketMQ 4.9.3 wrote: their paths, and their puts as messages and batches.

01 to 11 are in tests/data/golden, with five of the variants of 08. The others are read from TORNPAGE_GOLDEN or from
shared/golden beside the checkout.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.impl.stores import SetClock
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import FlushDiskType
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.message.batch import encode_batch_body
from tornpage.impl.message.dispatching import FilterBitMap
from tornpage.impl.message.hosts import Host
from tornpage.impl.message.message import BatchMember, Message, MessageBatch
from tornpage.impl.parts import Parts
from tornpage.impl.store import MessageStore

__all__ = ["CASES", "config_of", "expected_of", "first_dump", "golden", "message_of", "opened", "read"]

ROOT = Path(__file__).resolve().parents[3]
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


def golden(case: str, needed: str = "expected.json") -> Path:
    """Return a folder of a case that has the needed file, or skip."""
    for place in PLACES:
        if (place / case / needed).is_file():
            return place / case
    pytest.skip(f"golden store {case} is not at hand: set TORNPAGE_GOLDEN")


def read(path: Path) -> Any:
    """Return the content of a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


def config_of(folder: Path, **changes: Any) -> MessageStoreConfig:
    """Return the settings of a golden store: pure 4.9.3 records."""
    given = read(folder / "config.json")["store"]
    optional = {
        ours: given[javas]
        for ours, javas in (
            ("message_delay_level", "messageDelayLevel"),
            ("enable_multi_dispatch", "enableMultiDispatch"),
            ("enable_lmq", "enableLmq"),
            ("mapped_file_size_consume_queue", "mappedFileSizeConsumeQueue"),
            ("enable_consume_queue_ext", "enableConsumeQueueExt"),
            ("mapped_file_size_consume_queue_ext", "mappedFileSizeConsumeQueueExt"),
            ("max_hash_slot_num", "maxHashSlotNum"),
            ("max_index_num", "maxIndexNum"),
        )
        if javas in given
    }
    return MessageStoreConfig(
        mapped_file_size_commit_log=given["mappedFileSizeCommitLog"],
        max_message_size=given["maxMessageSize"],
        flush_disk_type=FlushDiskType(given["flushDiskType"]),
        record_checksum=changes.get("record_checksum", "body"),
        **optional,
    )


def body_of(body: dict[str, Any] | None) -> bytes | None:
    """Return a body as the inputs describe it."""
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
    """Return a host as JSON has it."""
    return pair[0], pair[1]


def message_of(put: dict[str, Any]) -> Message | MessageBatch:
    """Return the message or batch of a put."""
    if "batch" in put:
        members = [BatchMember(body_of(m["body"]) or b"", m["properties"] or "", m["flag"]) for m in put["batch"]]
        return MessageBatch(
            topic=put["topic"],
            body=encode_batch_body(members),
            queue_id=put["queueId"],
            properties=put["properties"] or "",
            sys_flag=put["sysFlag"],
            born_timestamp=put["bornTimestamp"],
            born_host=host_of(put["bornHost"]),
            store_host=host_of(put["storeHost"]),
            reconsume_times=put["reconsumeTimes"],
        )
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


def opened(
    directory: Path,
    folder: Path,
    clock: SetClock | None = None,
    parts: Parts | None = None,
    filter_bit_map: FilterBitMap | None = None,
    **changes: Any,
) -> MessageStore:
    """Open a store with the settings of a golden one."""
    return MessageStore.open(
        directory,
        config_of(folder, **changes),
        files=OsFiles(),
        clock=clock or SetClock(),
        parts=parts,
        filter_bit_map=filter_bit_map,
    )


def first_dump(steps: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the first answers of RocketMQ about a store."""
    state: dict[str, Any] = next(step["state"] for step in steps if step["do"] == "dump")
    return state


def expected_of(state: dict[str, Any]) -> list[tuple[int, int, str]]:
    """Return (offset, size, SHA-256) of each record that RocketMQ saw."""
    return [(row["phy"], row["size"], row["recordSha256"]) for row in state["log"] if row["kind"] == "record"]
