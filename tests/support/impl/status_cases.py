"""Rows of docs/statuses.md that refuse a put: a message or batch for each, and for pairs."""

import struct
from dataclasses import dataclass, replace
from pathlib import Path

from tests.support.impl.stores import MESSAGE, config_of
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.message.batch import encode_batch_body
from tornpage.impl.message.message import BatchMember, Message, MessageBatch, PutStatus

__all__ = ["BATCHES", "LONG", "MESSAGES", "Refused", "Row", "batch_of", "groups_of", "rows_of"]

ILLEGAL, TOO_LONG = PutStatus.MESSAGE_ILLEGAL, PutStatus.PROPERTIES_SIZE_EXCEEDED
TOO_MANY = PutStatus.LMQ_CONSUME_QUEUE_NUM_EXCEEDED
PLAIN = config_of(file_bytes=1024)
SHORT = config_of(file_bytes=1024, record_bytes_max=512)
LIGHT = replace(PLAIN, enable_multi_dispatch=True, enable_lmq=True, max_lmq_consume_queue_num=2)
ROOMY = replace(config_of(file_bytes=1 << 17), enable_multi_dispatch=True)
LONG = "A\x01" + "x" * 32_767
NAMES = "INNER_MULTI_DISPATCH\x01"
TWO_KNOWN = MESSAGE, replace(MESSAGE, properties=f"{NAMES}%LMQ%a,%LMQ%b")


@dataclass(frozen=True)
class Row:
    """One row of the table: its part, and its cells."""

    part: str
    text: str
    answer: str
    written: str


def rows_of(document: Path) -> list[Row]:
    """Return the rows of the first table, from all its parts."""
    rows, part = [], ""
    for line in document.read_text(encoding="utf-8").splitlines():
        if line.startswith("### "):
            break
        cells = [cell.strip() for cell in line.strip("|").split(" | ")] if line.startswith("| ") else []
        if len(cells) >= 3 and not cells[0].startswith("**"):
            rows.append(Row(part, *cells[:3]))
        elif cells:
            part = cells[0].strip("* |")
    return rows


@dataclass(frozen=True)
class Refused:
    """A put that a row refuses; `row` is the begin of the row. `before` is put first."""

    row: str
    put: Message | MessageBatch
    status: PutStatus = ILLEGAL
    config: MessageStoreConfig = PLAIN
    before: tuple[Message, ...] = (MESSAGE,)
    why: str = ""


def groups_of(cases: list[Refused]) -> list[list[Refused]]:
    """Return the cases that can share a store: one row, equal settings, equal beginning."""
    groups: list[list[Refused]] = []
    for case in cases:
        for group in groups:
            if (group[0].row, group[0].config, group[0].before) == (case.row, case.config, case.before):
                group.append(case)
                break
        else:
            groups.append([case])
    return groups


def refused(
    row: str,
    puts: dict[str, Message | MessageBatch],
    status: PutStatus = ILLEGAL,
    config: MessageStoreConfig = PLAIN,
    before: tuple[Message, ...] = (MESSAGE,),
) -> list[Refused]:
    """Return a case per put of a row; the keys name the mistake."""
    return [Refused(row, each, status, config, before, why) for why, each in puts.items()]


def delayed(level: str, **fields: object) -> Message:
    """Return a message with a property DELAY."""
    return replace(MESSAGE, properties=f"DELAY\x01{level}", **fields)  # type: ignore[arg-type]


SEPARATORS = {"name 01": {"A\x01": "b"}, "name 02": {"A\x02": "b"}, "value 02": {"A": "b\x02"}}
ABSURD = {
    "queue id -1": {"queue_id": -1},
    "queue id": {"queue_id": 1 << 31},
    "sysFlag": {"sys_flag": 1 << 31},
    "sysFlag negative": {"sys_flag": -(1 << 31) - 1},
    "reconsume times": {"reconsume_times": 1 << 31},
    "born time": {"born_timestamp": 1 << 63},
}
HOSTS = {
    "born name": {"born_host": ("localhost", 1)},
    "born empty": {"born_host": ("", 1)},
    "born port": {"born_host": ("::1", 1 << 31)},
    "store": {"store_host": ("1.2.3.4.5", 1)},
    "store port": {"store_host": ("1.2.3.4", -(1 << 31) - 1)},
}
TOPICS = {
    "empty": "",
    "128 bytes": "t" * 128,
    "128 bytes of 64 characters": "é" * 64,
    "NUL": "a\0b",
    "slash": "a/b",
    "dot": ".",
    "dots": "..",
    "surrogate": "\ud800",
}

MESSAGES: list[Refused] = [
    *refused("topic empty", {why: replace(MESSAGE, topic=topic) for why, topic in TOPICS.items()}),
    *refused("topic empty", {why: delayed("1", topic=topic) for why, topic in TOPICS.items()}),
    *refused("topic empty", {"before long properties": replace(MESSAGE, topic="", properties=LONG)}),
    *refused("property name with", {why: replace(MESSAGE, properties=bad) for why, bad in SEPARATORS.items()}),
    *refused(
        "property name with", {"before long ones": replace(MESSAGE, properties={"A\x01": "b", "B": "x" * 40_000})}
    ),
    *refused(
        "property DELAY is no decimal number",
        {level: delayed(level) for level in ("x", "1x", "1.5", " 1", "2147483648", "-2147483649", "+", "\u0661")},
    ),
    *refused(
        "property DELAY is no decimal number",
        {
            "committed transaction": delayed("x", sys_flag=8),
            "before the schedule topic": delayed("x", topic="SCHEDULE_TOPIC_XXXX"),
            "before long properties": replace(MESSAGE, properties=f"DELAY\x01x\x02{LONG}"),
            "mapping": replace(MESSAGE, properties={"DELAY": "x"}),
            "prepared, in the schedule topic": delayed("x", topic="SCHEDULE_TOPIC_XXXX", sys_flag=4),
            "rolled back, in the schedule topic": delayed("x", topic="SCHEDULE_TOPIC_XXXX", sys_flag=12),
        },
    ),
    *refused(
        "neither prepared nor rolled back, DELAY above 0",
        {
            "again": delayed("1", topic="SCHEDULE_TOPIC_XXXX"),
            "before long properties": replace(MESSAGE, topic="SCHEDULE_TOPIC_XXXX", properties=f"DELAY\x011\x02{LONG}"),
        },
    ),
    *refused(
        "properties not encodable",
        {
            "string": replace(MESSAGE, properties="A\x01\ud800"),
            "mapping": replace(MESSAGE, properties={"A": "\udfff"}),
            "before long ones": replace(MESSAGE, properties=LONG + "\ud800"),
        },
    ),
    *refused(
        "properties over 32,767 bytes",
        {
            "characters": replace(MESSAGE, properties=LONG),
            "bytes": replace(MESSAGE, properties="A\x01" + "é" * 16_383),
            "with the trailer": replace(MESSAGE, properties="A\x01" + "x" * 32_745),
            "mapping": replace(MESSAGE, properties={"A": "x" * 32_767}),
            "before NUL": replace(MESSAGE, properties=LONG + "\0"),
            "before hosts": replace(MESSAGE, properties=LONG, born_host=("", 0)),
            "before numbers": replace(MESSAGE, properties=LONG, queue_id=-1, flag=1 << 40),
            "before a long record": replace(MESSAGE, properties=LONG, body=bytes(1 << 20)),
            "after rewriting": replace(MESSAGE, properties="DELAY\x011\x02A\x01" + "x" * 32_720),
        },
        TOO_LONG,
    ),
    *refused(
        "properties over 32,767 bytes",
        {
            "before names": replace(MESSAGE, properties=f"{NAMES}a/b\x02{LONG}"),
            "before the limit": replace(MESSAGE, properties=f"{NAMES}%LMQ%c\x02{LONG}"),
        },
        TOO_LONG,
        LIGHT,
        TWO_KNOWN,
    ),
    *refused(
        "properties with a NUL byte",
        {
            "string": replace(MESSAGE, properties="A\x01\0"),
            "mapping": replace(MESSAGE, properties={"\0": "b"}),
            "name": replace(MESSAGE, properties="\0"),
        },
    ),
    *refused("born or store host", {why: replace(MESSAGE, **bad) for why, bad in HOSTS.items()}),  # type: ignore[arg-type]
    *refused("queue id negative", {why: replace(MESSAGE, **bad) for why, bad in ABSURD.items()}),  # type: ignore[arg-type]
    *refused(
        "queue id negative",
        {
            "flag": replace(MESSAGE, flag=1 << 31),
            "flag negative": replace(MESSAGE, flag=-(1 << 31) - 1),
            "born time negative": replace(MESSAGE, born_timestamp=-(1 << 63) - 1),
            "prepared offset": replace(MESSAGE, prepared_transaction_offset=1 << 63),
            "delayed": delayed("1", queue_id=-1),
            "delayed, too large": delayed("1", queue_id=1 << 31),
        },
    ),
    *refused(
        "record longer than `max_message_size`",
        {"body": replace(MESSAGE, body=bytes(500)), "by one": replace(MESSAGE, body=bytes(513 - 120))},
        config=SHORT,
    ),
    *refused("record that leaves fewer", {"by one": replace(MESSAGE, body=bytes(1017 - 120))}),
    *refused("record that leaves fewer", {"much": replace(MESSAGE, body=bytes(5000))}),
    *refused("delayed (below), and the topic", {"it ends there": delayed("1", topic="a\x02b")}),
    *refused(
        "delayed, and the properties of its copy",
        {"many queues": replace(MESSAGE, properties=f"{NAMES}{',a' * 1_700}b\x02DELAY\x011")},
        TOO_LONG,
        ROOMY,
    ),
    *refused("delayed, and its copy", {"long topic": delayed("1", topic="t" * 127, body=bytes(200))}, config=SHORT),
    *refused(
        "delayed, and its copy",
        {"no queue": replace(MESSAGE, properties=f"{NAMES}a/b\x02DELAY\x011")},
        config=LIGHT,
        before=TWO_KNOWN,
    ),
    *refused(
        "multi-dispatch, and a name",
        {
            names: replace(MESSAGE, properties=f"{NAMES}{names}")
            for names in ("a,,b", ",", "a,", ".", "..", "a/b", "%LMQ%a,%LMQ%b/", "n" * 128, "%LMQ%c,x/y")
        },
        config=LIGHT,
        before=TWO_KNOWN,
    ),
    *refused(
        "multi-dispatch and light queues",
        {
            "a third": replace(MESSAGE, properties=f"{NAMES}%LMQ%c"),
            "among known ones": replace(MESSAGE, properties=f"{NAMES}%LMQ%a,%LMQ%c,%LMQ%b"),
            "mapping": replace(MESSAGE, properties={"INNER_MULTI_DISPATCH": "%LMQ%c"}),
        },
        TOO_MANY,
        LIGHT,
        TWO_KNOWN,
    ),
    *refused(
        "multi-dispatch and light queues",
        {"two at once": replace(MESSAGE, properties=f"{NAMES}%LMQ%b,%LMQ%c")},
        TOO_MANY,
        LIGHT,
        (replace(MESSAGE, properties=f"{NAMES}%LMQ%a"),),
    ),
    *refused(
        "record that leaves fewer",
        {"before names": replace(MESSAGE, properties=f"{NAMES}%LMQ%c", body=bytes(1000))},
        config=LIGHT,
        before=TWO_KNOWN,
    ),
]


def batch_of(*members: BatchMember | bytes, **fields: object) -> MessageBatch:
    """Return a batch to the queue of MESSAGE; a member may be its body alone."""
    body = encode_batch_body(BatchMember(each) if isinstance(each, bytes) else each for each in members)
    values = {"queue_id": 1, "born_host": ("127.0.0.1", 50000), "born_timestamp": 1_700_000_000_000} | fields
    return MessageBatch("TopicTest", **({"body": body} | values))  # type: ignore[arg-type]


GOOD = batch_of(b"one", b"two")
assert GOOD.body is not None


def patched(at: int, value: int, form: str = ">i") -> MessageBatch:
    """Return a batch of two messages of 25 bytes each with a number replaced."""
    body = bytearray(GOOD.body or b"")
    struct.pack_into(form, body, at, value)
    return replace(GOOD, body=bytes(body))


LONG_MEMBER = BatchMember(b"", LONG[:32_700])
MANY = {"A": "x" * 80}
BATCHES: list[Refused] = [
    *refused("topic as in a put", {why: replace(GOOD, topic=topic) for why, topic in TOPICS.items()}),
    *refused("topic as in a put", {"schedule topic": replace(GOOD, topic="SCHEDULE_TOPIC_XXXX")}),
    *refused(
        "topic as in a put", {"before long properties": replace(batch_of(LONG_MEMBER, properties=MANY), topic="")}
    ),
    *refused("body None", {"None": replace(GOOD, body=None), "empty": replace(GOOD, body=b"")}),
    *refused(
        "body None",
        {"too long": batch_of(bytes(500)), "before long properties": batch_of(LONG_MEMBER, properties=MANY)},
        config=SHORT,
    ),
    *refused(
        "body that does not parse",
        {
            "total one more": patched(0, 26),
            "total one less": patched(0, 24),
            "total negative": patched(25, -1),
            "body length negative": patched(16, -1),
            "body beyond the end": patched(16, 1000),
            "properties negative": patched(48, -1, ">h"),
            "properties beyond the end": patched(48, 1, ">h"),
            "bytes left over": replace(GOOD, body=(GOOD.body or b"") + b"\0"),
            "cut": replace(GOOD, body=(GOOD.body or b"")[:-1]),
            "a head alone": replace(GOOD, body=(GOOD.body or b"")[:20]),
            "before long properties": replace(GOOD, body=(batch_of(LONG_MEMBER).body or b"") + b"x", properties=MANY),
        },
    ),
    *refused("transaction bits set", {f"sysFlag {bits}": replace(GOOD, sys_flag=bits) for bits in (4, 8, 12)}),
    *refused(
        "transaction bits set",
        {f"DELAY {level}": replace(GOOD, properties=f"DELAY\x01{level}") for level in ("1", "99", "x", "2147483648")},
    ),
    *refused(
        "transaction bits set",
        {"before long properties": replace(batch_of(LONG_MEMBER, properties=MANY), sys_flag=4)},
    ),
    *refused(
        "multi-dispatch, and the batch",
        {
            "batch": replace(GOOD, properties=f"{NAMES}a"),
            "message": batch_of(b"one", BatchMember(b"two", f"{NAMES}%LMQ%a")),
            "before long properties": batch_of(LONG_MEMBER, BatchMember(b"", f"{NAMES}a"), properties=MANY),
        },
        config=LIGHT,
    ),
    *refused("properties of the batch", {why: replace(GOOD, properties=bad) for why, bad in SEPARATORS.items()}),
    *refused(
        "properties of the batch",
        {
            "surrogate": replace(GOOD, properties="A\x01\ud800"),
            "before long ones": batch_of(LONG_MEMBER, properties=MANY | {"B": "\ud800"}),
        },
    ),
    *refused(
        "properties of a message, those of the batch appended",
        {
            "together": batch_of(b"one", LONG_MEMBER, properties=MANY),
            "with the separator": batch_of(BatchMember(b"", LONG[:32_743]), properties="A\x01b"),
            "with the trailer": batch_of(BatchMember(b"", LONG[:32_747])),
            "batch alone": replace(GOOD, properties=LONG),
            "before NUL": batch_of(BatchMember(b"", "A\x01\0"), LONG_MEMBER, properties=MANY),
            "before hosts": batch_of(LONG_MEMBER, properties=MANY, born_host=("", 0)),
            "before numbers": batch_of(LONG_MEMBER, properties=MANY, queue_id=-1),
            "before a long record": batch_of(bytes(2000), LONG_MEMBER, properties=MANY),
        },
        TOO_LONG,
    ),
    *refused(
        "properties of a message or of the batch with a NUL",
        {
            "batch": replace(GOOD, properties="A\x01\0"),
            "message": batch_of(b"one", BatchMember(b"two", "A\x01\0")),
            "no UTF-8": replace(GOOD, body=(batch_of(BatchMember(b"", "A\x01b")).body or b"")[:-1] + b"\xff"),
        },
    ),
    *refused("hosts and numbers as in a put", {why: replace(GOOD, **bad) for why, bad in HOSTS.items()}),  # type: ignore[arg-type]
    *refused("hosts and numbers as in a put", {why: replace(GOOD, **bad) for why, bad in ABSURD.items()}),  # type: ignore[arg-type]
    *refused(
        "one record longer than `max_message_size`",
        {
            "one": batch_of(bytes(480)),
            "together": batch_of(*[b"x"] * 5),
        },
        config=SHORT,
    ),
    *refused("records that together leave fewer", {"by one": batch_of(b"one", bytes(1017 - 123 - 120))}),
    *refused("records that together leave fewer", {"many": batch_of(*[b"x"] * 30)}),
]
