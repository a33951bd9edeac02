"""Test that an operation that costs too much, or is counted wrongly, is found."""

from collections.abc import Iterator
from typing import Any

import pytest

from tornpage.impl.dispatch.reput import ReputMessages
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.log.flushing import FlushRealTime
from tornpage.impl.statistics.read_statistics import ReadStatistics
from tornpage.impl.statistics.store_statistics import StoreStatistics
from tornpage.impl.store import MessageStore
from tornpage.model.operations import Flush, Get, GetMessage, Operation, Put, Step
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.lockstep.lockstep import Lockstep
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Settings

MESSAGES: tuple[Operation, ...] = (Put(body_bytes=300), Put(body_bytes=300), Step(service="reput"), Flush())
QUEUES = Step(service="flush-queues", after_ms=60_000)


@pytest.fixture
def trial() -> Iterator[Lockstep]:
    with choose_tracker("auto") as tracker:
        found = lockstep_of(Settings(files_ahead=0), tracker=tracker)
        run(found, *MESSAGES)
        yield found


def run(trial: Lockstep, *operations: Operation) -> None:
    for operation in operations:
        trial.run(operation)


def test_store_at_rest_costs_nothing(trial: Lockstep) -> None:
    run(trial, QUEUES, QUEUES)
    calls, entries = trial.files.marks.copy(), len(trial.files.journal)
    run(trial, Flush(), Get(), GetMessage(), Step(service="flush", after_ms=10_000), Step(service="reput"))
    assert len(trial.files.journal) == entries
    assert (trial.files.marks - calls).keys() <= {"returned"}


def refuses(trial: Lockstep, sentence: str, *operations: Operation) -> None:
    with pytest.raises(GuaranteeBroken, match=sentence):
        run(trial, *operations)


def test_read_with_a_disk_call_is_found(trial: Lockstep, monkeypatch: pytest.MonkeyPatch) -> None:
    get = MessageStore.get

    def looking(store: MessageStore, offset: int) -> Any:
        store._reads._files.stat(store.directory)
        return get(store, offset)

    monkeypatch.setattr(MessageStore, "get", looking)
    refuses(trial, "get costs more disk calls than it may", Get())


def test_flush_that_always_syncs_is_found(trial: Lockstep, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tornpage.impl.config.policy._is_due", lambda end, done, least_pages, file_is_full: True)
    monkeypatch.setattr(MappedFile, "flush", lambda file: file._with_file(file._files.sync))
    refuses(trial, "flush without work costs more disk calls than it may", Flush())


def test_second_flush_of_queues_that_syncs_is_found(trial: Lockstep, monkeypatch: pytest.MonkeyPatch) -> None:
    run(trial, QUEUES, QUEUES)
    monkeypatch.setattr("tornpage.impl.config.policy._is_due", lambda end, done, least_pages, file_is_full: True)
    monkeypatch.setattr(MappedFile, "flush", lambda file: file._with_file(file._files.sync))
    refuses(trial, "a second flush of queues costs more .* than it may", QUEUES)


def test_needless_wake_up_is_found(trial: Lockstep, monkeypatch: pytest.MonkeyPatch) -> None:
    too_long = Put(body_bytes=20_000)
    run(trial, Step(service="reput"))
    monkeypatch.setattr(ReputMessages, "behind_bytes", property(lambda reput: 0))
    waking = trial.store._reput
    trial.store._puts._written = lambda end_offset: waking.wake()  # type: ignore[misc]
    refuses(trial, "put wakes the service reput without work", too_long)


def test_early_round_is_found(trial: Lockstep, monkeypatch: pytest.MonkeyPatch) -> None:
    step = FlushRealTime.step
    monkeypatch.setattr(FlushRealTime, "step", lambda service, now_ms: step(service, now_ms) - 1)
    refuses(trial, "the next round of the service flush comes too early", Step(service="flush"))


def test_wrong_count_of_puts_is_found(trial: Lockstep, monkeypatch: pytest.MonkeyPatch) -> None:
    count = StoreStatistics.count_appended
    monkeypatch.setattr(
        StoreStatistics, "count_appended", lambda found, topic, messages, size: count(found, topic, messages + 1, size)
    )
    refuses(trial, "the statistics count other puts than were appended", Put())


def test_wrong_count_of_reads_is_found(trial: Lockstep, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReadStatistics, "count", lambda found, **given: None)
    refuses(trial, "the statistics count a read wrongly", GetMessage())
