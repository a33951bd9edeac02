"""Specify the state files below `config/` and the tables in them (contracts 13 and 17).

1. A save replaces NAME by the new document. NAME.bak gets the document that was loaded or saved before, if any.
2. A load takes NAME. If NAME is missing, empty or invalid, it takes NAME.bak. Each of the two cases has its finding.
3. Each change of topics and groups is saved by its method. It counts up the version of the table, with its time.
4. Committed offsets are limited to the end of their queue. They are corrected to it at open.
5. A file has the layout of fastjson (`text_of`). `STORED` lists files that another program may have written, and what
   is read from them. Unknown fields of an entry are ignored, and missing ones have their defaults.

A document is any value; None is no file, and `TORN` an empty or invalid one.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

__all__ = ["STORED", "TORN", "Offsets", "StateFile", "text_of"]

TORN = "torn"
Document = object
Queue = tuple[str, int]
Range = Callable[[str, int], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class StateFile:
    """A file, its backup, and the document that its owner loaded or saved last."""

    main: Document = None
    backup: Document = None
    last: Document = None

    def loaded(self) -> tuple["StateFile", Document, str]:
        """Load the file: its document, and the finding; empty without one."""
        for document, finding in ((self.main, ""), (self.backup, "config_file_from_backup")):
            if document is not None and document != TORN:
                return replace(self, last=document), document, finding
        is_lost = TORN in (self.main, self.backup)
        return replace(self, last=None), None, "config_file_unreadable" if is_lost else ""

    def saved(self, document: Document) -> "StateFile":
        """Replace the file."""
        return StateFile(document, self.backup if self.last is None else self.last, document)


@dataclass(frozen=True, slots=True)
class Offsets:
    """The committed offsets by topic and group, and by queue id."""

    of: Mapping[tuple[str, str], Mapping[int, int]] = field(default_factory=dict)

    def _with(self, key: tuple[str, str], offsets: Mapping[int, int]) -> "Offsets":
        return Offsets({**self.of, key: offsets})

    def commit(self, key: tuple[str, str], queue_id: int, offset: int, range_of: Range) -> tuple["Offsets", int]:
        """Commit an offset; what counts."""
        counts = min(offset, range_of(key[0], queue_id)[1])
        return self._with(key, {**self.of.get(key, {}), queue_id: counts}), counts

    def corrected(self, range_of: Range) -> "Offsets":
        """Limit all offsets to the ends of their queues."""
        return Offsets(
            {
                key: {queue_id: min(at, range_of(key[0], queue_id)[1]) for queue_id, at in offsets.items()}
                for key, offsets in self.of.items()
            }
        )

    def cloned(self, source: tuple[str, str], target: tuple[str, str]) -> "Offsets":
        """Copy the offsets of a group, if it has any."""
        return self._with(target, self.of[source]) if source in self.of else self

    def without(self, keys: Collection[tuple[str, str]]) -> "Offsets":
        """Remove groups in topics."""
        return Offsets({key: offsets for key, offsets in self.of.items() if key not in keys})

    def restarted(self, topic: str, *, is_memory: bool) -> "Offsets":
        """Return the offsets after the numbers of a topic restart.

        They are forgotten in memory, and 0 on the disk before that.
        """
        if is_memory:
            return self.without([key for key in self.of if key[0] == topic])
        return Offsets({key: dict.fromkeys(at, 0) if key[0] == topic else at for key, at in self.of.items()})

    def least(self, topic: str, without: Collection[str], range_of: Range) -> dict[int, int]:
        """Return the lowest readable offset of each queue, over all groups but some."""
        found: dict[int, int] = {}
        for (name, group), offsets in self.of.items():
            for queue_id, at in offsets.items() if name == topic and group not in without else ():
                if at >= range_of(topic, queue_id)[0]:
                    found[queue_id] = min(at, found.get(queue_id, at))
        return found


# ---- texts -----------------------------------------------------------------------------------------------------------

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_WORDS = {True: "true", False: "false", None: "null"}


def text_of(document: Any, depth: int = 0) -> str:
    """Return the text of a document, as fastjson writes it with `PrettyFormat`.

    A key that is a text begins a line, with a tab for each level. A key that is a number or an object does not. A
    mapping with entries ends on a line of its own. A list has no line breaks of its own. Source: `docs/format.md`,
    section 15.
    """
    if isinstance(document, Mapping):
        entries = [_key_text(key, depth) + ":" + text_of(value, depth + 1) for key, value in document.items()]
        return "{" + ",".join(entries) + ("\n" + "\t" * depth if entries else "") + "}"
    if isinstance(document, list):
        return "[" + ",".join(text_of(each, depth) for each in document) + "]"
    if isinstance(document, str):
        return '"' + "".join(map(_character_text, document)) + '"'
    return _WORDS[document] if document is None or isinstance(document, bool) else str(document)


def _key_text(key: Any, depth: int) -> str:
    if isinstance(key, str):
        return "\n" + "\t" * (depth + 1) + text_of(key)
    return text_of(dict(key), depth + 1) if isinstance(key, tuple) else str(key)


def _character_text(character: str) -> str:
    """Return a character in a text.

    Control characters, line separators and surrogates are escapes.
    """
    code = ord(character)
    is_control = code < 0x20 or 0x7F <= code <= 0x9F
    if is_control or code in (0x2028, 0x2029) or 0xD800 <= code <= 0xDFFF:
        return _ESCAPES.get(character, f"\\u{code:04X}")
    return _ESCAPES.get(character, character)


_MAX = (1 << 63) - 1
_FILTER = '{"filterDataByTopic":{"T":{"groupFilterData":{"g":%s},"topic":"T"}}}'

STORED: Mapping[str, Mapping[str, Any]] = {
    "progress": {
        '{"offsetTable":{"T@g":{0:5,"1":7}}}': {("T", "g"): {0: 5, 1: 7}},
        '{"offsetTable":{"T@g":{0:0},"U@g":{3:9223372036854775807}}}': {("T", "g"): {0: 0}, ("U", "g"): {3: _MAX}},
        '{"offsetTable":{"T":{0:1},"a@b@c":{0:1},"T@g":{0:2}}}': {("T", "g"): {0: 2}},
        '{"offsetTable":{}}': {}, "{}": {},
        '{"offsetTable":{"T@g":{0:-1}}}': None, '{"offsetTable":{"T@g":{0:9223372036854775808}}}': None,
        '{"offsetTable":{"T@g":{0:true}}}': None, '{"offsetTable":{"T@g":{0:"5"}}}': None,
        '{"offsetTable":{"T@g":{0:1.5}}}': None, '{"offsetTable":{"T@g":{"x":1}}}': None,
        '{"offsetTable":{"T@g":[]}}': None, '{"offsetTable":[]}': None, "[]": None, "null": None,
    },
    "topics": {
        '{"topicConfigTable":{"T":{"topicName":"T","readQueueNums":3,"perm":4,"another":1}}}':
            {"T": {"topic_name": "T", "read_queue_nums": 3, "perm": 4}},
        '{"dataVersion":null,"topicConfigTable":{"T":{"topicName":"T","order":true}}}':
            {"T": {"topic_name": "T", "order": True}},
        "{}": {}, '{"topicConfigTable":null}': {}, '{"topicConfigTable":{}}': {},
        '{"topicConfigTable":[]}': None, '{"topicConfigTable":{"T":{}}}': None, '{"topicConfigTable":{"T":[]}}': None,
        '{"topicConfigTable":{"T":{"topicName":"T","perm":"4"}}}': None,
        '{"topicConfigTable":{"T":{"topicName":1}}}': None, "[]": None,
        '{"dataVersion":{"counter":"1"},"topicConfigTable":{}}': None,
        '{"dataVersion":[1],"topicConfigTable":{}}': None,
    },
    "groups": {
        '{"subscriptionGroupTable":{"g":{"groupName":"g","consumeEnable":false,"retryMaxTimes":3}}}':
            {"g": {"group_name": "g", "consume_enable": False, "retry_max_times": 3}},
        '{"subscriptionGroupTable":{"g":{"groupName":"g","whichBrokerWhenConsumeSlowly":0}}}':
            {"g": {"group_name": "g", "which_broker_when_consume_slowly": 0}},
        "{}": {}, '{"subscriptionGroupTable":{"g":{"groupName":"g","consumeEnable":1}}}': None,
        '{"subscriptionGroupTable":{"g":7}}': None,
    },
    "filters": {
        _FILTER % '{"consumerGroup":"g","topic":"T","expression":"a","bloomFilterData":{"bitNum":64}}':
            {("T", "g"): {"consumer_group": "g", "topic": "T", "expression": "a", "bloom_filter_data": {"bitNum": 64}}},
        _FILTER % '{"consumerGroup":"g","topic":"T","bornTime":5,"dead":true}':
            {("T", "g"): {"consumer_group": "g", "topic": "T", "born_time": 5}},
        "{}": {}, '{"filterDataByTopic":null}': {}, _FILTER % "{}": None, _FILTER % "[]": None,
        _FILTER % '{"consumerGroup":"g","topic":"T","bornTime":"5"}': None,
        '{"filterDataByTopic":{"T":{}}}': None, '{"filterDataByTopic":{"T":[]}}': None,
        '{"filterDataByTopic":[1]}': None,
    },
}  # fmt: skip
"""What is read from the text of a file, by the kind of the file.

None stands for content that counts as invalid. Progress has queue ids and offsets by topic and group. Tables have the
given fields of each entry.
"""
