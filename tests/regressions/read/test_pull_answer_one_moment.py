"""All parts of an answer of a pull, a get or a query belong to one moment.

Symptom: a pull returned a message past the maximum that it named, or none where it named messages. A get found no
record (`OFFSET_FOUND_NULL`) where one had expired (`OFFSET_TOO_SMALL`). A query by key omitted a message that was there
before another one, also omitted, had expired.
Cause: maximum, units, records and the begin of the log were read one after the other while dispatch, a deletion of
topics or a clean-up ran (contract 17).
Fix: a pull reads no further than the maximum that it read first, before the readable end, and reads again if its source
was deleted meanwhile (impl/read/queue_reads.py, `get_message`, `range_of`). A deleted queue is unknown before its files
are removed (impl/queue/consume_queues.py, `remove`). A get that cannot hold its file reads the begin of the log again
(impl/log/commit_log.py, `get`). A query reads again when the log lost its head (impl/read/message_query.py, `by_key`).
Found by: `tornpage explore interleavings`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.support.properties.sweeps import sweep
from tornpage.model.operations import AskMaximum, AskMinimum, DeleteTopics, Flush, GetRecord, Pull, Put, Query, Step
from tornpage.model.operations import InterleavedOperation as Operation
from tornpage.properties.disk.dirty import DirtyTracker, choose_tracker
from tornpage.properties.explore.interleavings.scenario import Scenario
from tornpage.properties.program.case import Settings

LARGE = tuple(Put(body_bytes=800, fill=fill) for fill in range(3))
KEY = "KEYS\x01k"
READS = (
    "tornpage.impl.log.commit_log",
    "tornpage.impl.read.message_query",
    "tornpage.impl.read.queue_reads",
    "tornpage.impl.queue.consume_queue",
    "tornpage.impl.queue.queue_files",
    "tornpage.impl.queue.units",
)
TOO_FULL = 86


@dataclass(frozen=True, slots=True)
class Race:
    """A reader and a client or service that changes its data.

    `bug` is the planted bug with the mistake.
    """

    reader: tuple[Operation, ...]
    other: tuple[Operation, ...]
    before: tuple[Operation, ...]
    bug: str = ""
    percent: int = 0

    def scenario(self, bug: str) -> Scenario:
        settings = Settings(file_bytes=1024, queue_units=2, bug=bug)
        return Scenario("a reader", settings, self.before, (self.reader, self.other), (), self.percent)


REPUT, CLEAN = Step("reput"), Step("clean")
RACES = {
    "a message comes": Race((Pull(),), (REPUT,), (Put(), REPUT, Put(fill=1)), "beyond-its-maximum"),
    "the topic goes": Race((Pull(),), (DeleteTopics(),), (Put(), Put(fill=1), Put(fill=2), REPUT), "looked-at-once"),
    "the bounds of a queue that goes": Race((AskMaximum(), AskMinimum()), (DeleteTopics(),), (Put(), REPUT)),
    "the file of a get goes": Race((GetRecord(0),), (CLEAN,), (*LARGE, REPUT, Flush()), "gone-is-nothing", TOO_FULL),
    "the file of a query goes, and a message comes": Race(
        (Query(),),
        (Put(properties=KEY), REPUT, CLEAN),
        (*(Put(body_bytes=700, fill=fill, properties=KEY) for fill in (1, 2)), REPUT, Flush()),
        "queried-once",
        TOO_FULL,
    ),
    "the files of a pull go": Race((Pull(),), (CLEAN, CLEAN), (*LARGE, REPUT, Flush()), percent=TOO_FULL),
}


@pytest.fixture
def tracker() -> Iterator[DirtyTracker]:
    with choose_tracker("auto") as made:
        yield made


@pytest.mark.parametrize("name", RACES)
def test_wherever_the_reader_is_interrupted_his_answers_follow(name: str, tracker: DirtyTracker) -> None:
    for interleaving, ran in sweep(RACES[name].scenario(""), tracker=tracker, modules=READS):
        assert ran.verdict.value == "holds", (interleaving.schedule, str(ran.broken))


@pytest.mark.parametrize("name", [name for name, race in RACES.items() if race.bug])
def test_with_the_mistake_put_back_they_do_not(name: str, tracker: DirtyTracker) -> None:
    race = RACES[name]
    runs = sweep(race.scenario(race.bug), tracker=tracker, modules=(*READS, "tornpage.properties.planted.races"))
    broken = next(ran.broken for _, ran in runs if ran.broken is not None)
    assert broken.contract == 17
