"""Differences between the answers of this store and of RocketMQ 4.9.3, with reasons.

The list is `tests/data/golden_departures.tsv`: store, step, reason, field and number of answers. `python -m
tests.support.impl.golden_departures` prints the list; it needs all stores. docs/departures.md describes the reasons. A
reason of this module compares both answers. For damaged stores it only depends on the store, and the model, which has
to give this store's answers, checks the rest (`tests/impl/golden/test_golden_answers.py`).
"""

import tempfile
from collections import Counter
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.impl.golden import CASES, ROOT, config_of, golden
from tests.support.impl.golden_answers import Difference, differences
from tests.support.impl.golden_steps import Golden, Replay, Step

__all__ = ["DAMAGES", "KILLED", "REASONS", "Departure", "departures_of", "listed", "stores"]

LIST = ROOT / "tests" / "data" / "golden_departures.tsv"
KILLED = "08-halt-async"
TIMES_OF_INDEX_MS = 1000
PULLED_AT_ONCE = 32


class Departure(NamedTuple):
    """The number of answers of one field in one step that differ for one reason."""

    store: str
    step: int
    reason: str
    field: str
    answers: int


class Seen(NamedTuple):
    """A difference with its context."""

    difference: Difference
    step: Step
    queue_file_units: int

    @property
    def group(self) -> str:
        """The question."""
        return self.difference.field.split(".")[0]

    @property
    def name(self) -> str:
        """The value of the answer, empty for a whole row."""
        return self.difference.field.partition(".")[2]

    @property
    def row(self) -> dict[str, Any]:
        """RocketMQ's row."""
        return self.step.theirs.get((self.group, self.difference.about), {})

    @property
    def our_row(self) -> dict[str, Any]:
        """This store's row."""
        return self.step.ours.get((self.group, self.difference.about), {})

    @property
    def question(self) -> dict[str, Any]:
        """The question in the form of `expected.json`."""
        found: dict[str, Any] = self.step.told["state"][self.group][int(self.difference.about)]
        return found


def _newest_ms(seen: Seen) -> int:
    return max((record.store_timestamp for record in seen.step.records), default=0)


def _ahead(seen: Seen) -> bool:
    return (
        seen.difference.field == "pullProbes.nextBeginOffset"
        and seen.row["status"] == "OFFSET_OVERFLOW_BADLY"
        and seen.difference.ours == seen.our_row["maxOffset"]
    )


def _unknown_queue(seen: Seen) -> bool:
    if seen.group == "queues":
        return seen.difference.ours is None and seen.difference.theirs["maxOffset"] == 0
    answers = seen.difference[2:]
    return seen.group == "pullProbes" and answers == ("NO_MESSAGE_IN_QUEUE", "NO_MATCHED_LOGIC_QUEUE")


def _nothing_asked(seen: Seen) -> bool:
    return (
        seen.group == "pullProbes"
        and seen.question["maxMsgNums"] <= 0
        and seen.row["status"] == "FOUND"
        and [seen.our_row[name] for name in ("status", "nextBeginOffset", "messageCount")]
        == ["NO_MATCHED_MESSAGE", seen.question["offset"], 0]
    )


def _end_of_queue_file(seen: Seen) -> bool:
    """RocketMQ's pull ended with a queue file, and this store's pull continued.

    Later pulls of both have different offsets.
    """
    if seen.difference.field == "pulls":
        queue = seen.difference.about.rsplit(" ", 1)[0]
        return any(
            answer == "pulls"
            and about.rsplit(" ", 1)[0] == queue
            and row["nextBeginOffset"] % seen.queue_file_units == 0
            and row["messageCount"] < PULLED_AT_ONCE
            for (answer, about), row in seen.step.theirs.items()
        )
    if seen.group not in ("pulls", "pullProbes", "tagFilterPulls"):
        return False
    ends_with_file = seen.row["nextBeginOffset"] % seen.queue_file_units == 0
    return ends_with_file and bool(seen.our_row["nextBeginOffset"] > seen.row["nextBeginOffset"])


def _older_or_not_first(seen: Seen) -> bool:
    return seen.group == "offsetInQueueByTime"


def _parses(seen: Seen) -> bool:
    theirs = seen.difference.theirs
    nothing = seen.group == "lookMessageByOffset" and seen.difference.ours is None
    return bool(nothing) and (
        str(theirs).startswith("threw") or (theirs["topic"], theirs["msgId"].strip("0")) == ("", "")
    )


def _zero(seen: Seen) -> bool:
    return seen.group == "lookMessageByOffset" and seen.difference.about == "0" and seen.difference.ours is None


def _empty_query(seen: Seen) -> bool:
    return seen.name.startswith("indexLastUpdate") and seen.difference.theirs == 0 and not seen.row["messages"]


def _small_log(seen: Seen) -> bool:
    return seen.difference.field == "store.earliestMessageTime" and seen.difference.theirs == -1


def _checkpoint(seen: Seen) -> bool:
    return seen.group == "checkpoint" and seen.difference.theirs < seen.difference.ours == _newest_ms(seen)


def _address_text(seen: Seen) -> bool:
    if seen.name not in ("bornHost", "storeHost"):
        return False
    (host, port), (our_host, our_port) = seen.difference.theirs, seen.difference.ours
    return (ip_address(host), port) == (ip_address(our_host), our_port)


def _equal_hash(seen: Seen) -> bool:
    """RocketMQ's answer has messages of another key, which may have displaced others."""
    if seen.difference.field != "queries.messages":
        return False
    ours, theirs = seen.difference.ours, seen.difference.theirs
    return not all(_is_asked_for(seen, offset) for offset, _ in theirs) and (
        len(theirs) >= seen.question["maxNum"] or all(row in theirs for row in ours)
    )


def _is_asked_for(seen: Seen, offset: int) -> bool:
    asked = seen.question
    record = next((record for record in seen.step.records if record.offset == offset), None)
    if record is None:
        return True  # RocketMQ returns it for another reason
    keys = (record.properties.get("UNIQ_KEY"), *record.properties.get("KEYS", "").split(" "))
    return record.topic == asked["topic"] and asked["key"] in keys


def _index_seconds(seen: Seen) -> bool:
    """The asked time cuts through an index file.

    This concerns whole seconds, or the first entry of a later file.
    """
    if seen.name not in ("indexOffsets", "messages") or seen.group != "queries":
        return False
    asked = seen.question
    return bool(asked["begin"] > 0 or asked["end"] < _newest_ms(seen) + TIMES_OF_INDEX_MS)


REASONS: dict[str, Callable[[Seen], bool]] = {
    "ahead": _ahead,
    "unknown queue": _unknown_queue,
    "nothing asked": _nothing_asked,
    "end of a queue file": _end_of_queue_file,
    "time": _older_or_not_first,
    "place that parses": _parses,
    "place zero": _zero,
    "empty query": _empty_query,
    "small log": _small_log,
    "checkpoint lags": _checkpoint,
    "address text": _address_text,
    "equal hash": _equal_hash,
    "index time": _index_seconds,
}
"""Reasons by name, in the order of their trial."""
DAMAGES = {
    "09-crash-stale-log-tail": "stale log tail",
    "10-crash-torn-properties": "torn record",
    "11-crash-stale-queue-tail": "stale queue tail",
    "12-crash-torn-queue-entry": "torn unit",
    f"{KILLED}/checkpoint-future": "lost queue",
    f"{KILLED}/drop-all-queues": "lost queue",
    f"{KILLED}/drop-first-queue-file": "lost queue",
    f"{KILLED}/drop-queue-directory": "lost queue",
    f"{KILLED}/abort-missing-queue-lost": "lost queue",
    f"{KILLED}/zero-first-queue-file": "lost queue",
    f"{KILLED}/hole-after-scan-start": "hole in the log",
    f"{KILLED}/hole-before-scan-start": "hole in the log",
    f"{KILLED}/torn-last-record": "hole in the log",
    f"{KILLED}/last-log-file-missing": "lost log file",
    f"{KILLED}/log-all-missing": "lost log file",
    f"{KILLED}/short-log-file": "refused open",
    f"{KILLED}/stray-file": "refused open",
    f"{KILLED}/zero-length-next-log-file": "refused open",
    f"{KILLED}/delay-offset-garbage": "refused open",
}
"""Other errors in RocketMQ's answers about a store."""
INDEX = ("queries", "indexFiles", "indexCheck")


def reason_of(seen: Seen, store: str) -> str:
    """Return the reason of a difference, "?" without one."""
    for name, applies in REASONS.items():
        if applies(seen):
            return name
    if store.startswith(KILLED) and seen.group in INDEX:
        return "lost index file"
    return DAMAGES.get(store, "?")


def departures_of(store: Golden, step: Step) -> list[Departure]:
    """Return the departures of the answers of one step."""
    units = config_of(store.folder).consume_queue_file_bytes // 20
    found = Counter(
        (reason_of(Seen(difference, step, units), store.name), difference.field)
        for difference in differences(step.theirs, step.ours)
    )
    return [Departure(store.name, step.number, *place, count) for place, count in sorted(found.items())]


def stores() -> list[tuple[str, str | None]]:
    """Return every golden store and every variant of one that the list names."""
    variants = {row.store.split("/")[1] for row in listed() if "/" in row.store}
    return [*((case, None) for case in CASES), *((KILLED, variant) for variant in sorted(variants))]


def listed() -> list[Departure]:
    """Return the list."""
    _, *lines = LIST.read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines)
    return [Departure(store, int(step), reason, field, int(count)) for store, step, reason, field, count in rows]


def _main() -> None:
    print("\t".join(Departure._fields))
    variants = sorted(
        path.stem for path in (golden(KILLED, "variants/checkpoint-future.json") / "variants").glob("*.json")
    )
    for case, variant in [*((case, None) for case in CASES), *((KILLED, variant) for variant in variants)]:
        with tempfile.TemporaryDirectory() as directory:
            store = Golden.copied(case, Path(directory) / "store", variant)
            for step in Replay(store):
                for row in departures_of(store, step):
                    print("\t".join(map(str, row)))


if __name__ == "__main__":
    _main()
