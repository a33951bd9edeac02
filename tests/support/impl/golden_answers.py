"""Answers of RocketMQ 4.9.3 and of this store to the same questions, in one form.

An answer is a row of named values under (group, about): the question, and its subject. Groups, names and values are
those of `expected.json`, flattened. Rows that the store decides on its own (records of the log, queues, their units and
messages, index files) may be on one side only.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

__all__ = [
    "ASKED_MAX",
    "CHECKPOINT",
    "OF_INDEX_FILE",
    "OF_LOG",
    "OF_QUEUE",
    "PROBED",
    "PULLED",
    "SCALARS",
    "Answers",
    "Difference",
    "Row",
    "answers_of_rocketmq",
    "count_of",
    "differences",
    "entry_row",
]

Row = dict[str, Any]
Answers = dict[tuple[str, str], Row]
PULLED = ("status", "nextBeginOffset", "messageCount")
PROBED = ("status", "nextBeginOffset", "minOffset", "maxOffset", "messageCount")
OF_QUEUE = ("minOffset", "maxOffset", "messageTotal", "maxPhysicOffset", "nextPutOffset", "earliestMessageTime")
OF_LOG = ("kind", "size", "topic", "queueId", "queueOffset", "storedPhy", "sysFlag", "storeTimestamp", "recordSha256")
OF_INDEX_FILE = ("beginTimestamp", "endTimestamp", "beginPhyOffset", "endPhyOffset", "hashSlotCount", "indexCount")
SCALARS = ("minPhyOffset", "maxPhyOffset", "dispatchBehindBytes", "writeable", "readable", "earliestMessageTime")
CHECKPOINT = ("physicMsgTimestamp", "logicsMsgTimestamp", "indexMsgTimestamp")
ASKED_MAX = 64


class Difference(NamedTuple):
    """One value that differs.

    `field` is group and name, or only the group where one side has no such row.
    """

    field: str
    about: str
    theirs: Any
    ours: Any


def differences(theirs: Answers, ours: Answers) -> Iterator[Difference]:
    """Yield the differences, in the order of RocketMQ's answers and then of this store's."""
    for place in dict.fromkeys((*theirs, *ours)):
        group, about = place
        row, other = theirs.get(place), ours.get(place)
        if row is None or other is None:
            yield Difference(group, about, row, other)
            continue
        assert row.keys() == other.keys(), place
        for name, value in row.items():
            if value != other[name]:
                yield Difference(f"{group}.{name}", about, value, other[name])


def count_of(answers: Answers) -> int:
    """Return the number of values."""
    return sum(len(row) for row in answers.values())


def answers_of_rocketmq(state: dict[str, Any]) -> Answers:
    """Return the answers of one dump."""
    return dict(_flattened(state))


def _flattened(state: dict[str, Any]) -> Iterator[tuple[tuple[str, str], Row]]:
    yield ("store", ""), {name: state[name] for name in SCALARS if name in state}
    yield ("checkpoint", ""), {name: state["checkpointInMemory"][name] for name in CHECKPOINT}
    for row in state["log"]:
        yield ("log", str(row["phy"])), {name: row.get(name) for name in OF_LOG}
    for queue in state["queues"]:
        name = f"{queue['topic']}/{queue['queueId']}"
        yield ("queues", name), {field: queue[field] for field in OF_QUEUE}
        for entry in queue["entries"]:
            yield ("entries", f"{name} {entry[0]}"), entry_row(*entry[1:])
        for offset, *answer in queue["pulls"]:
            yield ("pulls", f"{name} {offset}"), dict(zip(PULLED, answer, strict=True))
        for message in queue["messages"]:
            row = {field: value for field, value in message.items() if field != "cqOffset"}
            yield ("messages", f"{name} {message['cqOffset']}"), row
    for number, file in enumerate(state["indexFiles"]):
        yield ("indexFiles", str(number)), {field: file[field] for field in OF_INDEX_FILE}
    for number, query in enumerate(state["queries"]):
        asked = ("topic", "key", "maxNum", "begin", "end")
        yield ("queries", str(number)), {name: value for name, value in query.items() if name not in asked}
    yield ("indexCheck", ""), state["indexCheck"]
    for offset, found in state.get("lookMessageByOffset", []):
        yield ("lookMessageByOffset", str(offset)), {"message": found}
    for number, pull in enumerate(state.get("tagFilterPulls", [])):
        yield (
            ("tagFilterPulls", str(number)),
            {name: pull[name] for name in ("status", "nextBeginOffset", "commitLogOffsets")},
        )
    for queue in state.get("offsetInQueueByTime", []):
        for time, *answers in queue["answers"]:
            about = f"{queue['topic']}/{queue['queueId']} {time}"
            yield ("offsetInQueueByTime", about), dict(zip(("byFileTimes", "inFirstFile"), answers, strict=True))
    for number, probe in enumerate(state.get("pullProbes", [])):
        yield ("pullProbes", str(number)), {name: probe[name] for name in PROBED}
    for number, one in enumerate(state.get("singleEntry", [])):
        yield ("singleEntry", str(number)), {name: one[name] for name in ("commitLogOffset", "storeTimestamp")}


def entry_row(offset: int, size: int, code: int, ext: dict[str, Any] | None = None) -> Row:
    """Return a unit of a queue with its unit of the extension."""
    return {"offset": offset, "size": size, "code": code, "ext": ext}
