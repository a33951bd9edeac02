"""Differences between releases that have a reason.

A difference that no entry explains is a failure of the matrix. An entry names writers, readers and the items that may
differ, so it explains nothing else.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tornpage.impl.log.loading import Finding
from tornpage.impl.message.delay_levels import SCHEDULE_TOPIC, queue_of_level
from tornpage.peers.matrix.answers import Answers, Difference
from tornpage.peers.matrix.held import Held, Run, changed_entries, dropped_records
from tornpage.peers.matrix.workload import SETTINGS
from tornpage.properties.decode.consumequeue import UNIT_BYTES
from tornpage.properties.decode.index import index_hash

__all__ = [
    "FINDINGS",
    "KNOWN",
    "OURS",
    "Known",
    "Opening",
    "Reading",
    "dropped_by",
    "known_finding",
    "number_of",
    "reason_of",
]

OURS = "tornpage"
"""The name of our store as a writer and as a reader."""

_BATCHES_JOINED = ("4.8.0", "4.9.0")
_SPLIT_UNTIL = (4, 9, 0)
_DELIVERS_AGAIN_UNTIL = (4, 5, 2)
_KEEPS_BEGIN_UNTIL = (4, 9, 8)
_SEARCHES_TEN_FILES = (5, 4, 0)
_RECOVERY_MARGIN_MS = 3000
_UNITS_A_FILE = SETTINGS["mappedFileSizeConsumeQueue"] // UNIT_BYTES
_REMOVING = "MESSAGE_WAS_REMOVING"


@dataclass(frozen=True, slots=True)
class Reading:
    """A reading of a store: its writer, how it ended, and its reader.

    `is_stock` says that the reader is a stock store. `again` says that another store has opened it in between.
    `dropped` has the physical offsets of records that a release no longer indexes after it recovered a killed store.
    """

    writer: str
    ending: str
    reader: str
    is_stock: bool = False
    again: bool = False
    dropped: frozenset[int] = frozenset()


_INDEXES_TAGS = (5, 4, 0)
_TAGS_INDEXED = "tags-indexed"
_INDEX_DOUBLED = "index-doubled"
_INDEX_DROPPED = "index-dropped"
_PROGRESS_CORRECTED = "progress-corrected"
FINDINGS = {
    _TAGS_INDEXED: "5.4.0 also indexes tags. An open with our store removes these entries, with the finding "
    "`index_rebuilt`.",
    _INDEX_DOUBLED: "After a kill a release keeps the index files that the checkpoint covers, and deletes later ones. "
    "It then indexes the last record of the kept files again, so its keys there get a second entry. An open with our "
    "store removes the second entries, with the finding `index_rebuilt`.",
    _INDEX_DROPPED: "After a kill a release deletes the index files that the checkpoint does not cover. It then "
    "indexes the records of the log files that its recovery reads: from 3 s before the checkpoint on, and 5.4.0 at "
    "most 10 files (`commitLogRecoverMaxNum`). Earlier records of deleted index files have no entries. An open with "
    "our store indexes them, with the finding `index_rebuilt`.",
    _PROGRESS_CORRECTED: "Up to 4.9.8 the progress of a delay level stays before the begin of its queue if messages "
    "expire that were not delivered. An open with our store corrects it, with the finding `progress_corrected`.",
}
"""Findings of our store on healthy stores, with the reason."""


@dataclass(frozen=True, slots=True)
class Opening:
    """What an open with our store found in a directory, and left there.

    `written` is what the writer left, `before` what the last other store left, `after` what our store left.
    """

    written: Held
    before: Held
    after: Held


def known_finding(reading: Reading, finding: Finding, opening: Opening, expected: Answers) -> tuple[str, ...]:
    """Return the names of the reasons for a finding of our store, none if it has no reason.

    `expected` has the answers of the writer.
    """
    if finding.code == "index_rebuilt":
        return _rebuilt(reading, finding, opening, expected)
    if finding.code == "progress_corrected" and _is_before_its_queue(reading, finding, opening, expected):
        return (_PROGRESS_CORRECTED,)
    return ()


def _rebuilt(reading: Reading, finding: Finding, opening: Opening, expected: Answers) -> tuple[str, ...]:
    """Return the reasons of an index that our store rebuilt.

    All differences between the index before the open and after it must have a reason. The open must have kept each
    record that the writer had indexed, and the writer must not have left two entries for a key.
    """
    releases = [number_of(name) for name in (reading.writer, reading.reader) if name != OURS]
    has_tags = any(version >= _INDEXES_TAGS for version in releases)

    def tag_hash_of(offset: int) -> int | None:
        fields = expected.fields.get(str(offset))
        tag = fields["properties"].get("TAGS") if has_tags and fields is not None else None
        return None if fields is None or not tag else index_hash(fields["topic"], f"T#{tag}")

    before = opening.before.runs
    end = max(expected.end, before[-1].offset + 1 if before else 0)  # our store may have delivered messages since
    required = [run for run in opening.after.runs if run.offset < end]
    changed = changed_entries(before, required, tag_hash_of)
    if changed is None or opening.before.problems or finding.file.rpartition("/")[2] < changed.file_name:
        return ()
    written = {run.offset: run for run in opening.written.runs}
    if not written.keys() <= {run.offset for run in opening.after.runs}:
        return ()
    if (changed.doubled or changed.dropped) and not (reading.ending == "killed" and reading.again):
        return ()
    if len(changed.doubled) > 1 or any(_has_repeats(written[at]) for at in changed.doubled if at in written):
        return ()
    if changed.dropped and not _is_start_of_recovery(
        reading.reader, _first_after(before, changed.dropped), opening.written, expected
    ):
        return ()
    reasons = {_TAGS_INDEXED: changed.tagged, _INDEX_DOUBLED: changed.doubled, _INDEX_DROPPED: changed.dropped}
    return tuple(name for name, offsets in reasons.items() if offsets)


def _first_after(runs: Sequence[Run], dropped: frozenset[int]) -> int:
    """Return the physical offset of the first indexed record after the dropped ones."""
    return next(run.offset for run in runs if run.offset > max(dropped))


def _has_repeats(run: Run) -> bool:
    return len(set(run.hashes)) < len(run.hashes)


def _is_before_its_queue(reading: Reading, finding: Finding, opening: Opening, expected: Answers) -> bool:
    """Whether a delay level had its progress before its queue, and none past its queue."""
    is_theirs = reading.ending == "expired" and number_of(reading.writer) <= _KEEPS_BEGIN_UNTIL
    if not is_theirs or not finding.file.endswith("/config/delayOffset.json"):
        return False
    is_before = False
    for level, number in opening.before.progress:
        queue = expected.queues.get(f"{SCHEDULE_TOPIC}/{queue_of_level(level)}")
        end = queue["end"] if queue is not None else 0
        if number > end:
            return False
        is_before |= number < (queue["begin"] if queue is not None and queue["messages"] else end)
    return is_before


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
        return grew and not difference.about.startswith(f"{SCHEDULE_TOPIC}/")
    return difference.kind in {"message", "fields"} and difference.expected is None


def _indexed_again(reading: Reading, difference: Difference, expected: Answers) -> bool:
    """Whether a key finds one record twice after a release has recovered a killed store."""
    by_release = reading.reader != OURS and reading.ending == "killed" and not reading.again
    if not by_release or difference.kind != "query":
        return False
    return _has_one_more(difference.found, difference.expected)


def _index_dropped(reading: Reading, difference: Difference, expected: Answers) -> bool:
    """Whether a key finds no record that a release dropped from its index after a kill."""
    if difference.kind != "query":
        return False
    found, left = difference.found, [row for row in difference.expected if row[0] not in reading.dropped]
    return left != difference.expected and (found == left or _has_one_more(found, left))


def _has_one_more(found: list[Any], wanted: list[Any]) -> bool:
    """Whether rows are the wanted ones and one of them again."""
    return any(row in wanted and found[:at] + found[at + 1 :] == wanted for at, row in enumerate(found))


def _expired_begin(reading: Reading, difference: Difference, expected: Answers) -> bool:
    """Whether both sides begin an expired queue as their releases do."""
    name, _, bound = difference.about.rpartition(" ")
    if reading.ending != "expired" or difference.kind != "queue" or not _has_expired(name, expected):
        return False
    sides = (reading.writer, difference.expected), (reading.reader, difference.found)
    end = expected.queues[name]["end"]
    return bound in {"begin", "gaps"} and all(_is_its_begin(by, bound, value, end) for by, value in sides)


def _has_expired(name: str, answers: Answers) -> bool:
    """Whether all messages of a queue have expired.

    A message served in place of the first record of the log does not count.
    """
    queue = answers.queues.get(name)
    if queue is None:
        return False
    return all(_is_of_first_file(name, place, found, answers) for place, found in queue["messages"].items())


def _is_of_first_file(name: str, place: str, found: Any, answers: Answers) -> bool:
    """Whether the first place of a queue serves the first record of the log, of another queue."""
    begin = answers.begin
    others = (row for other, queue in answers.queues.items() if other != name for row in queue["messages"].values())
    return place == "0" and found is not None and 0 < begin == found[0] and any(row[0] == begin for row in others)


def _first_file_served(reading: Reading, difference: Difference, expected: Answers) -> bool:
    """Whether an old release serves the begin of the log for an expired record."""
    name, _, place = difference.about.rpartition(" ")
    if reading.ending != "expired" or difference.kind != "message" or not _has_expired(name, expected):
        return False
    sides = (reading.writer, difference.expected), (reading.reader, difference.found)
    return all(
        _is_of_first_file(name, place, value, expected) if number_of(by) <= _KEEPS_BEGIN_UNTIL else value is None
        for by, value in sides
    )


def _is_its_begin(by: str, bound: str, value: Any, end: int) -> bool:
    """Whether an expired queue begins where a release, or our store, lets it begin.

    Up to 4.9.8 that is the begin of its first file. A pull there answers MESSAGE_WAS_REMOVING, and continues with the
    next file. The unit of the first record of the log gives no such answer (`first-file-served`).
    """
    keeps_begin = number_of(by) <= _KEEPS_BEGIN_UNTIL
    if bound == "begin":
        return bool(value % _UNITS_A_FILE == 0 and 0 <= value < end if keeps_begin else value == end)
    if not keeps_begin:
        return bool(value == [])
    places = [place for place, _ in value]
    first = places[0] - places[0] % _UNITS_A_FILE if places else end
    each_file = list(range(first, end, _UNITS_A_FILE))
    after_first_record = [1, *range(_UNITS_A_FILE, end, _UNITS_A_FILE)]
    return places in (each_file, after_first_record) and all(status == _REMOVING for _, status in value)


KNOWN = (
    Known(
        "expired-begin",
        "A queue keeps its last file if all its messages have expired. Up to 4.9.8 it then begins at its first file, "
        "since no unit there is that of a surviving record, and a pull there answers MESSAGE_WAS_REMOVING. From 5.0.0 "
        "on, and in our store, it begins at its end.",
        _expired_begin,
    ),
    Known(
        "first-file-served",
        "A pull of RocketMQ takes the first file of the log for physical offset 0. Up to 4.9.8, in a queue whose "
        "messages have all expired, the unit of the first record of the log therefore serves bytes of the first file.",
        _first_file_served,
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
        "After a kill a release indexes the last record of the index files that it keeps again (`index-doubled`). "
        "A key of this record may then find it twice.",
        _indexed_again,
    ),
    Known(
        "keys-dropped",
        "After a kill a release deletes the index files that the checkpoint does not cover (`index-dropped`). Keys of "
        "records before the log files that its recovery reads may then find nothing.",
        _index_dropped,
    ),
    Known(
        "delivered-again",
        "A start delivers delayed messages again whose delivery was not yet noted in `config/delayOffset.json`. This "
        "happens after a kill, and up to 4.5.2 after a close too. The copies are new records at the end of the log.",
        _delivers_again,
    ),
)


def dropped_by(reader: str, written: Held, held: Held, expected: Answers) -> frozenset[int]:
    """Return the physical offsets of records that a release dropped from an index.

    `written` is the killed store as its writer left it, `held` what the release made of it.
    """
    keyed = [
        int(offset)
        for offset, fields in expected.fields.items()
        if fields is not None and {"KEYS", "UNIQ_KEY"} & fields["properties"].keys()
    ]
    dropped = dropped_records([run.offset for run in held.runs], keyed)
    if not dropped:
        return dropped
    start = _first_after(held.runs, dropped)
    return dropped if _is_start_of_recovery(reader, start, written, expected) else frozenset()


def _is_start_of_recovery(reader: str, offset: int, written: Held, expected: Answers) -> bool:
    """Whether a release recovers a killed store from the log file with an offset on.

    It looks for a file whose first record is old enough, beginning at the last one. 5.4.0 ends this search at the tenth
    file, which may count one made ahead.
    """
    fields = expected.fields.get(str(offset))
    is_covered = fields is not None and fields["stored"] <= written.covered_ms - _RECOVERY_MARGIN_MS
    file_bytes = SETTINGS["mappedFileSizeCommitLog"]
    files = expected.end // file_bytes - offset // file_bytes + 1
    return is_covered or (number_of(reader) >= _SEARCHES_TEN_FILES and files in {9, 10})


def reason_of(reading: Reading, difference: Difference, expected: Answers) -> str | None:
    """Return the name of the known difference that explains one, or None."""
    return next((known.name for known in KNOWN if known.explains(reading, difference, expected)), None)
