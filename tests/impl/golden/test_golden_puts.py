"""Repeat the puts of RocketMQ 4.9.3: the answers and all bytes of the log are the same."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.impl.golden import CASES, config_of, golden, message_of, opened, read
from tests.support.impl.records import encoder_of
from tests.support.impl.stores import SetClock, log_bytes, put
from tornpage.impl.log.commit_log import CommitLog
from tornpage.impl.message import codec
from tornpage.impl.message.message import Message, MessageBatch, PutResult, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.store import MessageStore

DEPARTURES = {("02-topics-unicode-limits", 188): PutStatus.PROPERTIES_SIZE_EXCEEDED}
"""(Case, number of the put): properties that are too long have one status here.

RocketMQ counts them in characters (MESSAGE_ILLEGAL) or in bytes.
"""
INTACT = [case for case in CASES if case[:2] not in ("09", "10", "11")]
"""The logs of the other stores were damaged after the puts."""
DELIVERED = "the schedule service"

Entry = tuple[int | str, Message | MessageBatch, str, dict[str, Any] | None]
"""One put: its number or DELIVERED, the message, RocketMQ's status, and its place."""


class Delivering(CommitLog):
    """Appends the copies of the schedule service.

    Their string still has DELAY, and they are not delayed again.
    """

    def put(self, message: Message, *, now_ms: int) -> PutResult:
        properties = str(message.properties)
        if not ("REAL_TOPIC\x01" in properties and "DELAY\x01" in properties):
            return super().put(message, now_ms=now_ms)
        record = self._encoder.encode(message, now_ms=now_ms)
        assert isinstance(record, bytearray)
        return self._under_lock(message, record, now_ms)


def log_of(folder: Path) -> dict[int, bytes]:
    """Return the log files of a golden store by base offset."""
    return {int(name): data for name, data in log_bytes(folder / "store").items()}


def delivered(folder: Path, put_at: set[int]) -> dict[int, dict[str, Any]]:
    """Return, by offset, the records of the schedule service as puts.

    These are the records that no listed put explains.
    """
    found = {}
    for base, data in log_of(folder).items():
        view, position = memoryview(data), 0
        while size := codec.check_record(view, position, limit=len(data), offset=base + position)[0]:
            stored = codec.decode_record(view, position)
            if stored.offset not in put_at:
                found[stored.offset] = {
                    "message": Message(
                        stored.topic, stored.body, stored.queue_id, codec.properties_of_record(view, position),
                        stored.flag, stored.sys_flag, stored.born_timestamp, stored.born_host, stored.store_host,
                        stored.reconsume_times, stored.prepared_transaction_offset,
                    ),
                    "status": "PUT_OK",
                    "append": {
                        "wroteOffset": stored.offset, "wroteBytes": size, "queueOffset": stored.queue_offset,
                        "storeTimestamp": stored.store_timestamp, "msgId": stored.message_id, "msgNum": 1,
                    },
                    "by": DELIVERED,
                }  # fmt: skip
            position += size
    return found


def history(folder: Path) -> Iterator[Entry]:
    """Yield the puts in log order."""
    puts = read(folder / "truth.json")["puts"]
    put_at = {
        offset
        for each in puts
        if each["result"].get("append")
        for offset in record_offsets(folder, each["result"]["append"])
    }
    others = delivered(folder, put_at) if folder.name.startswith("05") else {}
    ends = 0
    for number, each in enumerate(puts):
        append = each["result"].get("append")
        while append and ends != append["wroteOffset"] and ends in others:
            other = others.pop(ends)
            yield other["by"], other["message"], other["status"], other["append"]
            ends += other["append"]["wroteBytes"]
        status = "MESSAGE_ILLEGAL" if each["result"].get("status") is None else each["result"]["status"]
        yield number, message_of(each), status, append
        if append:
            ends = append["wroteOffset"] + append["wroteBytes"]
    for offset in sorted(others):
        yield others[offset]["by"], others[offset]["message"], others[offset]["status"], others[offset]["append"]


def record_offsets(folder: Path, append: dict[str, Any]) -> Iterator[int]:
    """Yield the begin of each record of a put.

    Of a batch only the first bytes of each record are read.
    """
    file_bytes = config_of(folder).mapped_file_size_commit_log
    offset, end = append["wroteOffset"], append["wroteOffset"] + append["wroteBytes"]
    data = log_of(folder).get(offset // file_bytes * file_bytes)
    while offset < end:
        yield offset
        if data is None:
            return  # deleted by retention
        offset += int.from_bytes(data[offset % file_bytes :][:4], "big")


def put_again(store: MessageStore, clock: SetClock, case: str, entry: Entry) -> None:
    """Repeat the put and compare the answers."""
    number, message, status, append = entry
    clock.now_ms = append["storeTimestamp"] if append else 0
    expected = PutStatus(status) if isinstance(number, str) else DEPARTURES.get((case, number), PutStatus(status))
    result = put(store, message)
    assert result.status is expected, number
    if append:
        assert (result.offset, result.size_bytes, result.queue_offset, result.message_id) == (
            append["wroteOffset"], append["wroteBytes"], append["queueOffset"], append["msgId"],
        ), number  # fmt: skip
        assert result.message_count == append["msgNum"]
    else:
        assert not result.stored


def assert_same_log(directory: Path, folder: Path) -> None:
    """Assert that both logs have the same bytes.

    Files that retention removed or that were made ahead are left out.
    """
    ours, javas = log_bytes(directory), log_bytes(folder / "store")
    compared = sorted(ours.keys() & javas.keys())
    assert compared
    for name in compared:
        assert hashlib.sha256(ours[name]).digest() == hashlib.sha256(javas[name]).digest(), name
    retained = min(javas)
    assert all(name < retained for name in ours.keys() - javas.keys())
    assert all(not any(javas[name]) for name in javas.keys() - ours.keys()), "made ahead of need: zeros"


@pytest.mark.parametrize("case", INTACT)
def test_same_puts_give_the_bytes_of_rocketmq(case: str, tmp_path: Path) -> None:
    folder, clock = golden(case, "truth.json"), SetClock()
    with opened(tmp_path, folder, clock, Parts({CommitLog: Delivering})) as store:
        entries = list(history(folder))
        for entry in entries:
            put_again(store, clock, case, entry)
    assert len([entry for entry in entries if entry[0] == DELIVERED]) == (4 if case.startswith("05") else 0)
    assert_same_log(tmp_path, folder)


@pytest.mark.parametrize("case", ["04-hosts-and-batches", "05-transactions-delays-light-queues"])
def test_same_puts_over_restarts_give_the_bytes_of_rocketmq(case: str, tmp_path: Path) -> None:
    """An open finds queue offsets in the log, those of light queues too."""
    folder, clock = golden(case, "truth.json"), SetClock()
    for entry in history(folder):
        with opened(tmp_path, folder, clock, Parts({CommitLog: Delivering})) as store:
            put_again(store, clock, case, entry)
    assert_same_log(tmp_path, folder)


@pytest.mark.parametrize("case", CASES[:8])
def test_single_records_are_encoded_to_the_bytes_of_rocketmq(case: str) -> None:
    """Compare single records without a store.

    Changes that a store makes on its way are left out.
    """
    folder = golden(case, "truth.json")
    config = config_of(folder)
    javas = log_bytes(folder / "store")
    compared = 0
    for each in read(folder / "truth.json")["puts"]:
        append = each["result"].get("append")
        message = message_of(each)
        if isinstance(message, MessageBatch) or not append or rewritten(message):
            continue
        record = encoder_of(trailer=False).encode(message, now_ms=0)
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


def rewritten(message: Message) -> bool:
    """Return whether a store may change the message: it is delayed or goes to several queues."""
    properties = str(message.properties)
    return "DELAY\x01" in properties or "INNER_MULTI_DISPATCH\x01" in properties
