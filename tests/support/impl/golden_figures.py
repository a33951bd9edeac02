"""Figures of lost and wrong data in killed or damaged stores, for RocketMQ and this store.

`python -m tests.support.impl.golden_figures` prints the table of docs/against-java.md; it needs all of these stores.
"""

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.support.impl.golden import ROOT, read
from tests.support.impl.golden_answers import Answers, Row
from tests.support.impl.golden_departures import KILLED, stores
from tests.support.impl.golden_steps import Golden, Replay, Step
from tornpage.model.queues import java_hash

__all__ = ["DAMAGED", "PAGE", "Figures", "figures_by_dump", "row_of"]

PAGE = ROOT / "docs" / "against-java.md"
DAMAGED = [(case, variant) for case, variant in stores() if case >= KILLED]
Stored = dict[tuple[int, str], str | None]
"""Tags of the acknowledged records, by physical offset and SHA-256."""


class Figures(NamedTuple):
    """Counts of one dump, in the order of the columns of the page."""

    lost: int
    came_back: int
    unreachable: int
    without_keys: int
    served_wrong: int
    wrong_code: int
    twice: int
    skipped_bytes: int


class Side:
    """One of two stores with the same input, over all its dumps."""

    def __init__(self, stored: Stored) -> None:
        self.stored = dict(stored)
        self._missed: set[tuple[int, str]] = set()

    def look(self, answers: Answers) -> Figures:
        """Take the answers of one dump into account; return its own figures."""
        here = _records_of(answers).keys()
        found = figures_of(answers, self.stored)._replace(came_back=len(here & self._missed))
        self._missed |= self.stored.keys() - here
        return found


def _records_of(answers: Answers) -> dict[tuple[int, str], Row]:
    return {
        (int(about), row["recordSha256"]): row
        for (group, about), row in answers.items()
        if group == "log" and row["kind"] == "record"
    }


def figures_of(answers: Answers, stored: Stored) -> Figures:
    """Count the missing and wrong parts in the answers of one dump.

    Records that reappear need earlier dumps and are counted elsewhere.
    """
    log = _records_of(answers)
    reached, wrong = set(), 0
    for (group, about), row in answers.items():
        if group != "messages":
            continue
        place = row["commitLogOffset"], row["recordSha256"]
        if place in log and place in stored and about == f"{row['topic']}/{row['queueId']} {row['queueOffset']}":
            reached.add(place)
        else:
            wrong += 1
    codes = {offset: java_hash(stored[offset, sha] or "") for offset, sha in log.keys() & stored.keys()}
    own = {
        f"{row['topic']}/{row['queueId']} {row['queueOffset']}": (offset, row["size"])
        for (offset, _), row in log.items()
    }
    units = [
        row
        for (group, about), row in answers.items()
        if group == "entries" and own.get(about) == (row["offset"], row["size"])
    ]
    numbers = Counter((row["topic"], row["queueId"], row["queueOffset"]) for row in log.values())
    return Figures(
        lost=len(stored.keys() - log.keys()),
        came_back=0,
        unreachable=len((log.keys() & stored.keys()) - reached),
        without_keys=len(answers["indexCheck", ""]["commitLogOffsetsWithMissingKeys"]),
        served_wrong=wrong,
        wrong_code=sum(row["code"] != codes.get(row["offset"], row["code"]) for row in units),
        twice=sum(count - 1 for count in numbers.values()),
        skipped_bytes=max(0, -answers["store", ""]["dispatchBehindBytes"]),
    )


def figures_by_dump(store: Golden, steps: Iterable[Step]) -> Iterator[tuple[Step, Figures, Figures]]:
    """Yield the figures of RocketMQ and of this store for every dump of a store."""
    truth = read(store.folder / "truth.json")["records"]
    told = {(row["commitLogOffset"], row["recordSha256"]): row["tags"] for row in truth}
    theirs, ours = Side(told), Side(told)
    for step in steps:
        if step.told["do"] == "put":
            records = step.told["records"]
            theirs.stored |= {(row["commitLogOffset"], row["recordSha256"]): row["tags"] for row in records}
            ours.stored |= step.stored
        elif step.told["do"] == "dump":
            yield step, theirs.look(step.theirs), ours.look(step.ours)


def row_of(store: Golden, steps: Sequence[Step]) -> str:
    """Return the row of a store on the page.

    It has each figure for RocketMQ and this store, the worst of all dumps.
    """
    name = store.name.replace(f"{KILLED}/", "08: ")
    dumps = [(theirs, ours) for _, theirs, ours in figures_by_dump(store, steps)]
    if not dumps:
        how = "starts" if steps[0].ours["open", ""]["load"] else "opens read-only"
        return f"| {name} | does not start, {how} |{' |' * (len(Figures._fields) - 1)}"
    worst = zip(*(map(max, *side) if len(side) > 1 else side[0] for side in zip(*dumps, strict=True)), strict=True)
    return f"| {name} | {' | '.join(f'{theirs}, {ours}' if theirs or ours else '' for theirs, ours in worst)} |"


def _main() -> None:
    for case, variant in DAMAGED:
        with tempfile.TemporaryDirectory() as directory:
            store = Golden.copied(case, Path(directory) / "store", variant)
            print(row_of(store, list(Replay(store))))


if __name__ == "__main__":
    _main()
