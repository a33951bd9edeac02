"""Test that every judge of queues and index refuses one mistake at a time."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, Literal

import pytest

from tornpage.model.operations import (
    Close,
    Flush,
    GetMessage,
    HarmDerived,
    OffsetByTime,
    Open,
    Operation,
    Put,
    QueryKey,
    RefuseFile,
    Step,
)
from tornpage.properties.campaign.passes import SIMPLER
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.disk import Image
from tornpage.properties.judge.evidence import Recovered
from tornpage.properties.judge.index import index_holds_the_log, keys_are_found
from tornpage.properties.judge.judges import QUEUE_JUDGES
from tornpage.properties.judge.queues import (
    made_good,
    queues_are_read_in_order,
    queues_have_their_bounds,
    queues_hold_the_log,
)
from tornpage.properties.judge.rulings import require
from tornpage.properties.judge.small_files import checkpoint_is_not_ahead_of_queues, checkpoint_times
from tornpage.properties.lockstep.lockstep import Lockstep
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Case, Settings
from tornpage.properties.program.log_places import ROOT

QUEUE = f"{ROOT}/consumequeue/T/0/{0:020d}"
SECOND = f"{ROOT}/consumequeue/T/0/{80:020d}"
KEYS = "KEYS\x01Aa k\x02TAGS\x01TagA"
SETTINGS = Settings(file_bytes=16384, queue_units=4, index_entries=6)


@dataclass
class Harmed:
    """A right recovery, and the change of a test."""

    found: Recovered

    def live(self, change: Callable[[dict[str, bytes]], object]) -> Recovered:
        """The page cache has another content."""
        files = self.found.files
        content = {path: files.peek(path, 0, 1 << 20) for path in files.paths()}
        change(content)
        fake: Any = SimpleNamespace(
            paths=lambda: sorted(content), peek=lambda path, at, size: content[path][at : at + size], base=files.base
        )
        return replace(self.found, files=fake)

    def durable(self, change: Callable[[dict[str, bytes]], object]) -> Recovered:
        """The disk has another content."""
        content = dict(self.found.durable.files)
        change(content)
        return replace(self.found, durable=Image(self.found.durable.directories, content))

    def store(self, **methods: object) -> Recovered:
        """The store gives another answer."""
        store = self.found.store

        class Lying:
            def __getattr__(self, name: str) -> Any:
                return methods[name] if name in methods else getattr(store, name)

        fake: Any = Lying()
        return replace(self.found, store=fake)


@pytest.fixture
def harmed(tracker: DirtyTracker) -> Harmed:
    trial = lockstep_of(SETTINGS, tracker=tracker)
    puts = (Put(properties=KEYS), Put(queue_id=1), Put(properties="KEYS\x01BB"), *[Put(properties=KEYS)] * 4)
    run(trial, *puts, Step(service="reput"), Flush(), Step(service="flush-queues"), Close())
    legal = trial.recovery.legal_between(trial.log, trial.log, kill=True)
    return Harmed(trial.recovery.judged(trial.files, legal, trial.recovery.versions_now()))


def run(trial: Lockstep, *operations: Operation) -> None:
    for operation in operations:
        trial.run(operation)


def index_file(found: Recovered, number: int = 0) -> str:
    return [path for path in found.files.paths() if path.startswith(f"{ROOT}/index/")][number]


def flip(path: str, at: int, bit: int = 1) -> Callable[[dict[str, bytes]], object]:
    def change(content: dict[str, bytes]) -> None:
        data = bytearray(content[path])
        data[at] ^= bit
        content[path] = bytes(data)

    return change


def test_a_right_recovery_passes_all(harmed: Harmed) -> None:
    for judge in QUEUE_JUDGES:
        require(judge(harmed.found))
    assert made_good(harmed.found) == {"queues_made_good", "index_made_good"}  # the first disk was empty


@pytest.mark.parametrize("at", [7, 11, 19, 27, 79])
def test_a_changed_unit_is_noticed(harmed: Harmed, at: int) -> None:
    with pytest.raises(GuaranteeBroken, match="contract 4"):
        require(queues_hold_the_log(harmed.live(flip(QUEUE, at))))


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.pop(SECOND),
        lambda content: content.update({SECOND: content[SECOND][:40]}),
        lambda content: content.update({f"{ROOT}/consumequeue/T/0/{160:020d}": content[QUEUE]}),
        lambda content: content.update({f"{ROOT}/consumequeue/U/0/{0:020d}": content[QUEUE]}),
        lambda content: content.update({f"{ROOT}/consumequeue/U/0/other": b""}),
        flip(SECOND, 79),
    ],
    ids=["lost", "short", "behind", "other queue", "stray", "behind the end"],
)
def test_a_queue_file_too_many_or_too_few_is_noticed(
    harmed: Harmed, change: Callable[[dict[str, bytes]], None]
) -> None:
    with pytest.raises(GuaranteeBroken, match="contract 4"):
        require(queues_hold_the_log(harmed.live(change)))


def test_an_empty_file_behind_the_last_unit_is_no_harm(harmed: Harmed) -> None:
    def change(content: dict[str, bytes]) -> None:
        content[f"{ROOT}/consumequeue/T/0/{160:020d}"] = bytes(80)

    require(queues_hold_the_log(harmed.live(change)))


@pytest.mark.parametrize("at", [7, 15, 23, 35, 39, 43, 55, 63, 87, 99])
def test_a_changed_byte_in_the_index_is_noticed(harmed: Harmed, at: int) -> None:
    with pytest.raises(GuaranteeBroken, match="contract 5"):
        require(index_holds_the_log(harmed.live(flip(index_file(harmed.found), at))))


@pytest.mark.parametrize("number", [0, 1])
def test_a_lost_index_file_is_noticed(harmed: Harmed, number: int) -> None:
    path = index_file(harmed.found, number)
    with pytest.raises(GuaranteeBroken, match="contract 5"):
        require(index_holds_the_log(harmed.live(lambda content: content.pop(path))))


def test_wrong_bounds_are_noticed(harmed: Harmed) -> None:
    with pytest.raises(GuaranteeBroken, match="contract 17"):
        require(queues_have_their_bounds(harmed.store(max_offset_in_queue=lambda topic, queue_id: 1)))
    with pytest.raises(GuaranteeBroken, match="contract 16"):
        require(queues_have_their_bounds(harmed.store(dispatch_behind_bytes=5)))


def test_a_reader_who_gets_nothing_is_noticed(harmed: Harmed) -> None:
    def other_queue(topic: str, queue_id: int, offset: int, **options: Any) -> Any:
        return harmed.found.store.get_message(topic, 1 - queue_id, 0, **options)

    with pytest.raises(GuaranteeBroken, match="contract 17"):
        require(queues_are_read_in_order(harmed.store(get_message=other_queue)))


def test_a_query_that_brings_too_much_is_noticed(harmed: Harmed) -> None:
    def everything(topic: str, key: str, **options: Any) -> Any:
        return harmed.found.store.query_message(topic, "k")

    def nothing(topic: str, key: str, **options: Any) -> Any:
        return harmed.found.store.query_message(topic, "nothing")

    for lie in (everything, nothing):
        with pytest.raises(GuaranteeBroken, match="contract 5"):
            require(keys_are_found(harmed.store(query_message=lie)))


@pytest.mark.parametrize("what", ["queue", "index"])
def test_a_checkpoint_ahead_of_queues_or_index_is_noticed(harmed: Harmed, what: str) -> None:
    lost = QUEUE if what == "queue" else index_file(harmed.found)
    newest_ms = harmed.found.derived.entries[-1][2]

    def change(content: dict[str, bytes]) -> None:
        checkpoint = f"{ROOT}/checkpoint"
        assert checkpoint_times(harmed.found.durable) == (0, 0)  # an opened store reports nothing at first
        content[checkpoint] = content[checkpoint][:8] + newest_ms.to_bytes(8, "big") * 2 + content[checkpoint][24:]

    require(checkpoint_is_not_ahead_of_queues(harmed.durable(change)))

    def change_and_lose(content: dict[str, bytes]) -> None:
        change(content)
        del content[lost]

    broken = harmed.durable(change_and_lose)
    with pytest.raises(GuaranteeBroken, match="contract 9"):
        require(checkpoint_is_not_ahead_of_queues(broken))
    require(checkpoint_is_not_ahead_of_queues(replace(broken, was_corrupted=True)))


# ---- the trial -------------------------------------------------------------------------------------------------------


def test_reads_are_compared_where_there_is_something_and_where_there_is_nothing(tracker: DirtyTracker) -> None:
    trial = lockstep_of(SETTINGS, tracker=tracker)
    reads: tuple[Operation, ...] = (
        *(GetMessage(queue=queue, shift=shift) for queue in (0, 1, -1) for shift in (-1, 0, 1, 2, 9)),
        *(QueryKey(key=key, max_num=number) for key in (0, 1, -1) for number in (0, 1, 32)),
        *(OffsetByTime(queue=queue, shift_ms=shift_ms) for queue in (0, -1) for shift_ms in (-1, 0, 1)),
    )
    run(
        trial,
        *reads,
        Put(properties=KEYS),
        Put(queue_id=1),
        Put(properties=KEYS),
        Step(service="reput"),
        *reads,
    )
    assert trial.coverage["found_several_by_key"]
    assert trial.coverage["pulled_FOUND"]
    assert trial.coverage["pulled_NO_MATCHED_LOGIC_QUEUE"]


def test_a_refused_file_delays_dispatch_and_loses_nothing(tracker: DirtyTracker) -> None:
    trial = lockstep_of(SETTINGS, tracker=tracker)
    puts: list[Operation] = [Put(properties=KEYS)] * 6
    run(trial, *puts, RefuseFile(), Step(service="reput"))
    assert trial.coverage["dispatch_failed"] == 1
    assert trial.store.dispatch_behind_bytes
    run(trial, Step(service="reput"), GetMessage(), GetMessage(shift=5), QueryKey())
    assert trial.store.max_offset_in_queue("T", 0) == 6


@pytest.mark.parametrize("file", ["queue", "index", "checkpoint", "extension"])
@pytest.mark.parametrize("harm", ["lost", "zeroed", "torn", "stale", "resized", "stray"])
def test_whatever_is_harmed_is_made_anew(
    tracker: DirtyTracker,
    file: Literal["queue", "index", "checkpoint", "extension"],
    harm: Literal["lost", "zeroed", "torn", "stale", "resized", "stray"],
) -> None:
    trial = lockstep_of(replace(SETTINGS, queue_ext=True), tracker=tracker)
    run(trial, *[Put(properties=KEYS)] * 6, HarmDerived(file, harm, amount=3), Put(), Close(), Open())
    assert trial.coverage[f"{file}_{harm}"] == 1
    assert len(trial.memory.derived.queues["T", 0].units) == 7


def test_reads_and_harm_are_made_simpler() -> None:
    case = Case(Settings(), (GetMessage(queue=4, shift=9, tags="TagA"), HarmDerived("index", "torn", amount=8)))
    tried = {operation for simpler in SIMPLER for smaller in simpler(case) for operation in smaller.operations}
    assert {GetMessage(queue=4, shift=9), GetMessage(queue=4, shift=4, tags="TagA")} <= tried
    assert {HarmDerived("index", "torn"), HarmDerived("index", "torn", amount=4)} <= tried
