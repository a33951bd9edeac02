"""What a document about a store shows: its rows and findings as they are, or without a word of what the store holds.

A redacted document is for people who must not see the messages. Rows are copied column by column from a list of what is
known to be harmless; a column that is not in the list is left out, so that a new one cannot leak by being forgotten.
Free text (messages, remedies) quotes the store, so that the sentences of docs/findings.md stand in its place. What
stays visible, and what it can give away, is told in docs/inspect.md, "Sharing a dump".
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from tornpage.redacted_words import bounded, harmless_sentence, harmless_value, said_of

__all__ = ["AS_IT_IS", "Redacted", "Showing", "showing"]

Row = dict[str, Any]

_SYSTEM_TOPICS = frozenset(
    {
        "BenchmarkTest", "OFFSET_MOVED_EVENT", "RMQ_SYS_SCHEDULE_TOPIC", "RMQ_SYS_TRACE_TOPIC",
        "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC", "SCHEDULE_TOPIC_XXXX", "SELF_TEST_TOPIC", "TBW102",
        "TRANS_CHECK_MAX_TIME_TOPIC",
    }
)  # fmt: skip
"""`TopicValidator`'s names: every broker has them."""

_OF_GROUPS = re.compile(r"(%RETRY%|%DLQ%)(.*)", re.DOTALL)
_OF_QUEUES = re.compile(r"(%LMQ%)(.*)", re.DOTALL)
_FOLDERS = {
    "commitlog": re.compile(r"[0-9]{20}"),
    "index": re.compile(r"[0-9]{17}"),
    "config": re.compile(
        r"(?:(?:consumerOffset|lmqConsumerOffset|delayOffset|topics|subscriptionGroup|consumerFilter)\.json(?:\.bak|\.tmp)?"
        r"|durableFloor|derivedFloor|deletedTopics)"
    ),
}
_QUEUES = ("consumequeue", "consumequeue_ext")
_ALONE = frozenset({*_FOLDERS, *_QUEUES, "abort", "checkpoint", "lock"})
_QUEUE_ID = re.compile(r"[0-9]{1,10}")
_QUEUE_FILE = re.compile(r"[0-9]{20}")


_NARROW = {
    "unit": (("phy",), ("size", "tagsCode", "tagsCodeText")),
    "entry": (("phy",), ("seconds", "time", "previous", "keyHash", "slot")),
    "index": (("beginTimestamp", "endTimestamp", "beginPhyOffset", "endPhyOffset"), ("hashSlotCount", "indexCount")),
}
"""Where numbers of 64 bits are bytes of something else, so are their neighbours of 32, which nothing else tells."""


class Showing(Protocol):
    """How a document is shown."""

    def document(self, seen: Row) -> Row:
        """Return a view's document: verdict, figures, rows, findings."""

    def row(self, row: Row) -> Row:
        """Return a row of a view."""

    def finding(self, finding: Mapping[str, Any]) -> Row:
        """Return a finding of a view or of an audit."""

    def ruling(self, ruling: Mapping[str, Any]) -> Row:
        """Return the sentence and the places of a ruling on a number of the contract."""

    def label(self, label: str) -> str:
        """Return the path of a file, relative to the store."""

    def store(self, path: str) -> str:
        """Return the path of a store."""

    @property
    def option(self) -> str:
        """The option that shows it this way, with a space before it; empty for none."""

    @property
    def extra(self) -> Row:
        """What it adds to a JSON document."""


class _AsItIs:
    """Everything as it is."""

    option = ""

    @property
    def extra(self) -> Row:
        return {}

    def document(self, seen: Row) -> Row:
        return seen

    def row(self, row: Row) -> Row:
        return row

    def finding(self, finding: Mapping[str, Any]) -> Row:
        return dict(finding)

    def ruling(self, ruling: Mapping[str, Any]) -> Row:
        return {name: ruling[name] for name in ("sentence", "file", "offset", "expected", "found")}

    def label(self, label: str) -> str:
        return label

    def store(self, path: str) -> str:
        return path


class Redacted:
    """Pseudonyms for what the store holds: equal values get equal names, as long as this object is used.

    A name is a word, a number in the order of appearance and, behind a colon, the length of what it stands for in bytes
    of UTF-8: `topic-1:6`. Hashes are numbers in the order of appearance.
    """

    option = " --redact"

    def __init__(self) -> None:
        self._names: dict[str, dict[Any, int]] = {}

    @property
    def extra(self) -> Row:
        return {"redacted": True}

    def document(self, seen: Row) -> Row:
        figures = {name: bounded(figure) for name, figure in seen["figures"].items() if name != "key_hash"}
        rows = [self.row(row) for row in seen["rows"]]
        return {**seen, "figures": figures, "rows": rows, "findings": [self.finding(one) for one in seen["findings"]]}

    def row(self, row: Row) -> Row:
        shown = {name: _COLUMNS[name](self, value) for name, value in row.items() if name in _COLUMNS}
        shown |= {name: str(value) for name, value in shown.items() if name.endswith("Text") and value is not None}
        of_bytes, narrow = _NARROW.get(row.get("kind", ""), ((), ()))
        if any(shown[name] == -1 != row[name] for name in of_bytes):
            shown |= {name: "-1" if name.endswith("Text") else -1 for name in narrow}
        if row.get("kind") == "delay":
            shown["scheduleMessageOffset"] = f"{shown['delayOffset'] or 0},{shown['maxOffset']}"
        return shown

    def finding(self, finding: Mapping[str, Any]) -> Row:
        place = self.label(finding["file"])
        shown: Row = {name: bounded(finding[name]) for name in _FINDING_NUMBERS if name in finding}
        if "store" in finding:
            shown["store"] = self.store(finding["store"])
        if "topic" in finding:
            shown["topic"] = self.topic(finding["topic"])
        told = said_of(finding["code"], finding["severity"], place)
        shown |= {"code": finding["code"], "severity": finding["severity"], "file": place, **told}
        return {name: shown[name] for name in finding}

    def ruling(self, ruling: Mapping[str, Any]) -> Row:
        sentence = ruling["sentence"]
        values = {name: harmless_value(sentence, ruling[name]) for name in ("expected", "found")}
        file = ruling["file"] and self.label(ruling["file"])
        return {**values, "sentence": harmless_sentence(sentence), "file": file, "offset": bounded(ruling["offset"])}

    def label(self, label: str) -> str:
        first, *rest = label.split("/")
        if not rest:
            return first if first in _ALONE else self._name("file", label)
        if first in _FOLDERS and len(rest) == 1 and _FOLDERS[first].fullmatch(rest[0]):
            return label
        if first in _QUEUES:
            return "/".join((first, *self._below_queues(rest)))
        return "/".join(
            (first if first in _ALONE else self._name("file", first), *(self._name("file", r) for r in rest))
        )

    def store(self, path: str) -> str:
        return f"store-{self._count('store', path)}"

    def topic(self, topic: str | None) -> str | None:
        """Return a topic's name: RocketMQ's own ones, and what they put before others, are kept."""
        if topic is None or topic in _SYSTEM_TOPICS:
            return topic
        for prefixed, kind in ((_OF_GROUPS, "group"), (_OF_QUEUES, "queue")):
            if match := prefixed.fullmatch(topic):
                return match[1] + self._name(kind, match[2])
        return self._name("topic", topic)

    def group(self, group: str) -> str:
        """Return the name of a consumer group."""
        return self._name("group", group)

    def key(self, key: str | None) -> str | None:
        """Return the name of a key or unique key."""
        return None if key is None else self._name("key", key)

    def keys(self, keys: str | list[str] | None) -> str | list[str] | None:
        """Return names for each of several keys, which RocketMQ separates by spaces."""
        if isinstance(keys, list):
            return [self._name("key", key) for key in keys]
        return None if keys is None else " ".join(self._name("key", key) for key in keys.split(" ") if key)

    def tag(self, tag: str | None) -> str | None:
        """Return the name of a tag."""
        return None if tag is None else self._name("tag", tag)

    def message_id(self, stated: str) -> str:
        """Return the name of a message id, which holds the address of the host."""
        return self._name("id", stated)

    def host(self, host: list[Any]) -> list[Any]:
        """Return the name of an address, without its port."""
        return [f"host-{self._count('host', host[0])}", 0]

    def digest(self, digest: str) -> str:
        """Return the name of a checksum."""
        return self._name("digest", digest)

    def hash(self, number: int | None) -> int | None:
        """Return the number of a hash; 0 is kept, it is that of no tag."""
        return number if not number else self._count("hash", number)

    def slot(self, number: int) -> int:
        """Return the number of a slot, which tells most of a hash."""
        return self._count("slot", number)

    def bits(self, bits: str | None) -> str | None:
        """Return the name of a bit map, which tells whose filters a message passes."""
        return None if bits is None else self._name("bits", bits)

    def extension(self, unit: Row) -> Row:
        """Return the extension of a unit."""
        return self.row(unit)

    def tags_code(self, code: int | str | None) -> int | None:
        """Return a tags code: within 32 bits it is a hash, else a due time, or the address of an extension."""
        if code is None:
            return None
        return self.hash(int(code)) if -(1 << 31) <= int(code) < 1 << 31 else bounded(code)

    def _below_queues(self, parts: list[str]) -> list[str]:
        topic = self.topic(parts[0])
        assert topic is not None
        patterns = (_QUEUE_ID, _QUEUE_FILE)
        rest = parts[1:]
        known = len(rest) <= len(patterns) and all(p.fullmatch(r) for p, r in zip(patterns, rest, strict=False))
        return [topic, *(rest if known else [self._name("file", part) for part in rest])]

    def _name(self, kind: str, value: str) -> str:
        return f"{kind}-{self._count(kind, value)}:{len(value.encode('utf-8', 'surrogatepass'))}"

    def _count(self, kind: str, value: Any) -> int:
        known = self._names.setdefault(kind, {})
        return known.setdefault(value, len(known) + 1)


AS_IT_IS: Showing = _AsItIs()


def showing(*, redact: bool) -> Showing:
    """Return how documents are shown."""
    return Redacted() if redact else AS_IT_IS


_FINDING_NUMBERS = ("offset", "position", "queue_id", "queue_offset", "items")
_NUMBERS = (
    "accepted", "address", "addressText", "beginPhyOffset", "beginPhyOffsetText", "beginTimestamp", "bodyLength",
    "bornTimestamp", "brokerOffset", "brokerOffsetText", "bytes", "chainMax", "consumerOffset", "consumerOffsetText",
    "delayOffset", "delayOffsetText", "diff", "diffText", "diffTotal", "diffTotalText", "endPhyOffset",
    "endPhyOffsetText", "endTimestamp", "entries", "entriesMax", "extFiles", "files", "hasChecksum", "hashSlotCount",
    "held", "indexCount", "indexMsgTimestamp", "level", "logicsMsgTimestamp", "mappedFileSize", "maxOffset",
    "maxOffsetText", "maxPhysicOffset", "maxPhysicOffsetText", "messageTotal", "minOffset", "minOffsetText",
    "modified", "msgStoreTime", "number", "offset", "offsetText", "phy", "phyText", "physicMsgTimestamp", "place",
    "placeText", "present", "previous", "problems", "queueId", "queueOffset", "queueOffsetText", "queues",
    "sameHash", "seconds", "size", "slotCollisions", "slots", "slotsUsed", "storeTimestamp", "storedPhy",
    "storedPhyText", "sysFlag", "time", "units",
)  # fmt: skip
_COLUMNS: dict[str, Callable[[Redacted, Any], Any]] = {
    # words of ours
    **dict.fromkeys(("kind", "field", "points", "reason", "state", "wrong"), lambda _, word: word),
    **dict.fromkeys(_NUMBERS, lambda _, number: bounded(number)),
    **dict.fromkeys(("file", "directory"), Redacted.label),
    "topic": Redacted.topic,
    "group": Redacted.group,
    "keys": Redacted.keys,
    "uniqKey": Redacted.key,
    "tags": Redacted.tag,
    **dict.fromkeys(("tagsCode", "tagsCodeText"), Redacted.tags_code),
    "msgId": Redacted.message_id,
    **dict.fromkeys(("bornHost", "storeHost"), Redacted.host),
    "recordSha256": Redacted.digest,
    "bitMap": Redacted.bits,
    "ext": Redacted.extension,
    "keyHash": Redacted.hash,
    "slot": Redacted.slot,
    "content": lambda _, __: None,
    "scheduleMessageOffset": lambda _, word: word,
}
