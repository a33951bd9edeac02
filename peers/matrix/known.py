"""Differences between releases that have a reason.

A difference that no entry explains is a failure of the matrix. An entry names writers, readers and the items that may
differ, so it explains nothing else.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tornpage.peers.matrix.answers import Answers, Difference

__all__ = ["FINDINGS", "KNOWN", "OURS", "Known", "Reading", "known_finding", "number_of", "reason_of"]

OURS = "tornpage"
"""The name of our store as a writer and as a reader."""

_BATCHES_JOINED = ("4.8.0", "4.9.0")
_SPLIT_UNTIL = (4, 9, 0)
_DELIVERS_AGAIN_UNTIL = (4, 5, 2)
_SCHEDULE = "SCHEDULE_TOPIC_XXXX"


@dataclass(frozen=True, slots=True)
class Reading:
    """A reading of a store: its writer, how it ended, and its reader.

    `is_stock` says that the reader is a stock store. `again` says that another store has opened it in between.
    """

    writer: str
    ending: str
    reader: str
    is_stock: bool = False
    again: bool = False


_INDEXES_TAGS = (5, 4, 0)
_TAGS_INDEXED = "tags-indexed"
_PROGRESS_CORRECTED = "progress-corrected"
FINDINGS = {
    _TAGS_INDEXED: "5.4.0 also indexes tags. An open with our store removes these entries, with the finding "
    "`index_rebuilt`.",
    _PROGRESS_CORRECTED: "Up to 4.9.8 the progress of a delay level stays before the begin of its queue if messages "
    "expire that were not delivered. An open with our store corrects it, with the finding `progress_corrected`.",
}
"""Findings of our store on healthy stores, with the reason."""


def known_finding(writer: str, ending: str, reader: str, code: str) -> str | None:
    """Return the name of the reason for a finding of our store, or None."""
    versions = [number_of(name) for name in (writer, reader) if name != OURS]
    if code == "index_rebuilt" and any(version >= _INDEXES_TAGS for version in versions):
        return _TAGS_INDEXED
    return _PROGRESS_CORRECTED if code == "progress_corrected" and ending == "expired" else None


@dataclass(frozen=True, slots=True)
class Known:
    """A known difference.

    `explains` says whether it explains a difference of a reading, given the answers of the writer.
    """

    name: str
    reason: str
    explains: Callable[[Reading, Difference, Answers], bool]


def number_of(version: str) -> tuple[int, ...]:
    """Return a version as numbers, for comparisons; our store is later than all."""
    return tuple(map(int, version.split("."))) if version != OURS else (99,)


def _batches_joined(reading: Reading, difference: Difference, expected: Answers) -> bool:
    """Whether a batch of 4.8.0 or 4.9.0 is parsed by another rule."""
    if reading.writer not in _BATCHES_JOINED or number_of(reading.reader) <= _SPLIT_UNTIL:
        return False
    if difference.kind == "fields":
        left, right = difference.expected, difference.found
        is_same = left is not None and right is not None and {**left, "properties": 0} == {**right, "properties": 0}
        return is_same and "\x01" in right["properties"].get("KEYS", "")
    return False


def _delivers_again(reading: Reading, difference: Difference, expected: Answers) -> bool:
    """Whether a store has delivered delayed messages again after it started."""
    delivers = reading.is_stock or reading.reader == OURS
    repeats = reading.ending == "killed" or number_of(reading.reader) <= _DELIVERS_AGAIN_UNTIL
    if not delivers or not repeats:
        return False
    if difference.kind == "query":
        known = len(difference.expected)
        further = difference.found[known:]
        is_longer = bool(further) and difference.found[:known] == difference.expected
        return is_longer and all(row not in difference.expected for row in further)
    if difference.kind == "log":
        return bool(difference.about == "end" and difference.found > difference.expected)
    if difference.kind == "queue":
        grew = bool(difference.about.endswith(" end") and difference.found > difference.expected)
        return grew and not difference.about.startswith(_SCHEDULE)
    return difference.kind in {"message", "fields"} and difference.expected is None


def _indexed_again(reading: Reading, difference: Difference, expected: Answers) -> bool:
    """Whether a key finds a record twice after a release has recovered a killed store."""
    by_release = reading.reader != OURS and reading.ending == "killed" and not reading.again
    if not by_release or difference.kind != "query":
        return False
    found = difference.found
    return (
        len(found) > len(difference.expected)
        and all(row in difference.expected for row in found)
        and all(row in found for row in difference.expected)
    )


def _expired_begin(reading: Reading, difference: Difference, expected: Answers) -> bool:
    """Whether the queue of a delay level whose messages have all expired begins elsewhere."""
    name, _, bound = difference.about.rpartition(" ")
    is_theirs = reading.ending == "expired" and difference.kind == "queue" and name.startswith(f"{_SCHEDULE}/")
    if not is_theirs or bound not in {"begin", "gaps"}:
        return False
    queue = expected.queues.get(name)
    return queue is not None and not queue["messages"]


KNOWN = (
    Known(
        "expired-begin",
        "Up to 4.9.8 the queue of a delay level keeps its begin if all its messages have expired, and a pull there "
        "answers MESSAGE_WAS_REMOVING. From 5.0.0 on, and in our store, it begins at its end.",
        _expired_begin,
    ),
    Known(
        "batch-joined",
        "4.8.0 and 4.9.0 append the properties of a batch to those of a member without a separator. Their parser drops "
        "the joined pair; later ones keep it with a value that contains 0x01. Nothing in a store states its release. "
        "With the setting `rocketmq_version` our store parses as the release of the writer.",
        _batches_joined,
    ),
    Known(
        "indexed-again",
        "After a kill a release may index records again that its surviving index file has already. A key then finds "
        "such a record twice.",
        _indexed_again,
    ),
    Known(
        "delivered-again",
        "A start delivers delayed messages again whose delivery was not yet noted in `config/delayOffset.json`. This "
        "happens after a kill, and up to 4.5.2 after a close too. The copies are new records at the end of the log.",
        _delivers_again,
    ),
)


def reason_of(reading: Reading, difference: Difference, expected: Answers) -> str | None:
    """Return the name of the known difference that explains one, or None."""
    return next((known.name for known in KNOWN if known.explains(reading, difference, expected)), None)
