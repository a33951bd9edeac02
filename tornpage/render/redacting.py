"""Show rows and findings of a store unchanged, or redacted for sharing.

A redacted document is for readers who must not see the messages. Rows are copied column by column from a list of
harmless columns. A column that is not listed is left out, so that a new column cannot leak.
Free text (messages, remedies) quotes the store, so the sentences of docs/findings.md replace it. docs/inspect.md,
"Sharing a dump", states what stays visible and what it reveals.

A sentence does not show whether it quotes the store. So the sentences of rulings that quote nothing are listed here,
with `N` for a number. Of any other sentence the listed part is kept, up to a colon or semicolon.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from tornpage.render.finding_codes import FindingCode, finding_codes

__all__ = [
    "AS_IT_IS",
    "LEFT_OUT",
    "SENTENCES",
    "Redacted",
    "Showing",
    "bounded",
    "harmless_sentence",
    "harmless_value",
    "said_of",
    "showing",
]


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
    """Shows everything unchanged."""

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
    """Made-up names for the content of a store; equal values get equal names.

    A name is a word, a number in the order of appearance and, after a colon, the length of the original in bytes
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
        """Redact a tags code: a hash within 32 bits, else a due time or an address."""
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
    "deadLetters", "deadLettersText", "delayOffset", "delayOffsetText", "diff", "diffText", "diffTotal",
    "diffTotalText", "endPhyOffset", "endPhyOffsetText", "endTimestamp", "entries", "entriesMax", "extFiles", "files",
    "hasChecksum", "hashSlotCount", "held", "indexCount", "indexMsgTimestamp", "level", "logicsMsgTimestamp",
    "mappedFileSize", "maxOffset", "maxOffsetText", "maxPhysicOffset", "maxPhysicOffsetText", "messageTotal",
    "messages", "messagesText", "minOffset", "minOffsetText", "modified", "msgStoreTime", "number", "offset",
    "offsetText", "phy", "phyText", "physicMsgTimestamp", "place", "placeText", "present", "previous", "problems",
    "queueId", "queueOffset", "queueOffsetText", "queues", "sameHash", "seconds", "size", "slotCollisions", "slots",
    "slotsUsed", "storeTimestamp", "storedPhy", "storedPhyText", "sysFlag", "time", "topics", "units",
)  # fmt: skip
_COLUMNS: dict[str, Callable[[Redacted, Any], Any]] = {
    # words of tornpage
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


# ---- sentences -------------------------------------------------------------------------------------------------------


LEFT_OUT = "…"
"""Stands for what quotes the store, or might."""

SENTENCES = (
    # 1 to 3
    "N records? from N to N, byte for byte as in the image(, and as put)?",
    "the log does not end where the store says",
    "the log does not begin where that of the image does",
    "the log's files do not fit its begin and end",
    "the log differs from what was appended at offset N",
    "the record at N may be the copy of a delayed message",
    "a record differs from every record that was put",
    "a record that was put is missing in the middle of the log",
    "records that had to survive are missing after recovery",
    "the recovered log has records that must not be there",
    "the recovered log is not one that may survive",
    "the recovered log is not that of the image, which number 2 judges",
    "the log ends below its durable floor",
    r"an image does not show what was acknowledged \(--truth FILE adds it\); "
    "none of N valid records? up to N is missing",
    "none is missing of N records? (flushed|acknowledged before the process died)",
    "N records that were (flushed|acknowledged before the process died) are missing",
    "the valid log of the image lacks N records that were (flushed|acknowledged before the process died), from N on, "
    r"which no crash may lose; they and N records past them are not in the log \(see number 7\)",
    "all bytes past N are zero on disk; (they were zero before|bytes from N on were erased)",
    "a byte that recovery cut is still (in the page cache|on disk) at offset N",
    "a read-only store cuts nothing",
    # 4 and 5
    "N units? in N queues?, each byte as the records require",
    "N entr(y|ies), each link as the records require; queries find their keys",
    "the store has no index",
    "the first entry of the index has its time relative to a file that is removed",
    "topics were deleted, and the image does not show which records are still dispatched",
    "due times in the image do not fit the default delay levels, and it does not show the levels",
    "index files have several sizes, and the image does not show which one was configured",
    "a record has a topic or properties that are not UTF-8, which Java decodes in its own way",
    "a read-only store leaves queues and index as they are; number 7 judges what it serves",
    # 6
    "recovering again changes nothing; N crashes at N of the N file operations of the recovery lead to the same store",
    "recovery presents bytes from offset N on that are not durable",
    "a second recovery changes the store",
    "a recovery that reads the whole log gives another store",
    "a (kill|power loss) at operation N of the recovery",
    "the store opens read-only one time and read-write the other",
    "a damaged store is changed by opening it again",
    "the log has other files( on the disk)?",
    "the log differs( on the disk)?",
    "a record that was cut is in no quarantine( on the disk)?",
    # 7
    "the store does not open",
    "the store did not open",
    "the store opens read-write(; N records? past the cut are in quarantine)?",
    "the store opens read-only after a crash",
    "the store does not notice damage",
    "the durable floor lies past the end of the log after a recovery",
    "recovery did not set the durable floor to the end of the log",
    "N valid records past the cut are not in quarantine, and no floor permits their loss",
    "no finding names file and offset of the damage",
    "a damaged store cannot be read",
    "a damaged store serves a message that does not verify",
    "N records that verify are not served",
    "opening a damaged store changed it",
    "read-only, changed nothing, serves N records?",
    # 9 and 13
    "a read-only store moves no watermark",
    "the watermarks are out of order after recovery",
    "the checkpoint is newer than the durable log",
    "the checkpoint is newer than the durable queues and index",
    "minimum, flushed, committed and written are N, N, N, N; the checkpoint is not newer",
    "recovery changed the content of a file( on the disk)?",
    "the durable floor on disk is not whole after a recovery",
    "the recovered store has no whole (checkpoint|durable floor)",
    "checkpoint, floor and N progress files? are whole; progress lies within its queues",
    # 14, 16 and 17
    "a second open succeeds",
    "a second open fails for another reason than the open store",
    "a second open changed the store before it failed",
    "a second open was refused and changed nothing",
    "a read-only store dispatches nothing",
    "the store opened with part of its log not dispatched",
    "the store opened with nothing left to dispatch; requests and services are not in an image",
    "all records of a queue are removed, and the log does not show its next queue offset",
    r"bounds of all queues are right; each queue read \(one in three\) returned every record in order",
    "each put to a queue is given to a consumer at the number of its answer",
    "a read-only store takes no puts",
    # what an image can never show
    "a status is the answer to a put, and an image has no puts",
    "an image does not show which files were due for removal",
    "buffers of readers end with the process",
    "an image does not show when a message was delivered; number 4 judges that it waits in its queue",
    "the image of a master does not show what its replica had",
)
_NUMBER_MAX = 1 << 47
"""No offset, size or time (ms) of a store comes near; eight bytes of a message that stand in the place of one do."""
_NUMBER = r"[0-9][0-9,]*"
_HARMLESS = re.compile("|".join(f"(?:{re.sub('N(?![a-z])', _NUMBER, sentence)})" for sentence in SENTENCES))
_SEPARATOR = re.compile("[:;] ")

_OF_OFFSETS = re.compile(
    "the log (does not (end where the store says|begin where that of the image does)|ends below its durable floor)"
    "|records that had to survive are missing after recovery|the recovered log has records that must not be there"
    "|the recovered log is not one that may survive"
    "|the watermarks are out of order after recovery|the checkpoint is newer than the durable log"
    "|the store opened with part of its log not dispatched|the store opens read-only after a crash"
    "|the store does not notice damage.*",
    re.DOTALL,
)
"""Sentences whose expected and found values are offsets, times, or words of tornpage. Others may have bytes there."""
_LOG_TEXT = rf"{_NUMBER}(?: to {_NUMBER})? records?, log end {_NUMBER}(?: to {_NUMBER})?"
_OFFSETS = re.compile(
    rf"{_NUMBER}(?:, {_NUMBER})*|{_NUMBER} at most|{_LOG_TEXT}"
    "|min <= flushed = written|read-only|read-write"
)


def harmless_sentence(sentence: str) -> str:
    """Return the part of a ruling's sentence that is known to quote no content of the store."""
    if _HARMLESS.fullmatch(sentence):
        return _bounded(sentence)
    for separator in _SEPARATOR.finditer(sentence):
        if _HARMLESS.fullmatch(sentence, 0, separator.start()):
            return _bounded(sentence[: separator.end()]) + harmless_sentence(sentence[separator.end() :])
    return LEFT_OUT


def harmless_value(sentence: str, value: str) -> str:
    """Return an expected or found text if it quotes no content of the store, else ""."""
    return _bounded(value) if _OF_OFFSETS.fullmatch(sentence) and _OFFSETS.fullmatch(value) else ""


def bounded(number: int | str | None) -> int | None:
    """Return a number; -1 for one that no store has, which may be bytes of a message."""
    if number is None or isinstance(number, bool):
        return number
    return int(number) if -_NUMBER_MAX < int(number) < _NUMBER_MAX else -1


def _bounded(text: str) -> str:
    return re.sub(_NUMBER, lambda number: number[0] if bounded(number[0].replace(",", "")) != -1 else "-1", text)


def said_of(code: str, severity: str, place: str) -> dict[str, str]:
    """Return message and remedy of docs/findings.md for a code, or the place for others."""
    said = finding_codes().get(code, FindingCode(severity, place, ""))
    return {"message": said.meaning.replace("`", ""), "remedy": _remedy(said.remedy, severity)}


def _remedy(remedies: str, severity: str) -> str:
    """Return the remedy for a severity; some codes have one for each, as "damage: …; tear: …"."""
    each = re.split(r"(?:^|; )(damage|tear|note): ", remedies.replace("`", ""))
    return dict(zip(each[1::2], each[2::2], strict=True)).get(severity, each[0] or remedies.replace("`", ""))
