"""Test that each public read is compared with the model after an operation."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tornpage.impl.read.log_reader import LogSession
from tornpage.impl.read.queue_pull import GetMessageResult
from tornpage.impl.read.read_buffer import BufferLease, ReadBuffer, RecordBuffer, RecordWindow
from tornpage.impl.store import MessageStore
from tornpage.model.operations import Get, Operation, Put, Step
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.lockstep.lockstep import Lockstep
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Settings

MESSAGES: tuple[Operation, ...] = (*(Put(body_bytes=300) for _ in range(5)), Step(service="reput"))
READS = tuple(Get() for _ in range(40))
SMALL = {"pull_count": 3, "pull_bytes": 1_200, "far_count": 2, "far_bytes": 600, "memory_bytes": 2_500}


@pytest.fixture(params=[False, True], ids=["walked", "confirmed"])
def trial(request: pytest.FixtureRequest) -> Iterator[Lockstep]:
    with choose_tracker("auto") as tracker:
        found = lockstep_of(Settings(file_bytes=1024, confirms=request.param), tracker=tracker)
        run(found, *MESSAGES)
        yield found


def run(trial: Lockstep, *operations: Operation) -> None:
    for operation in operations:
        trial.run(operation)


def test_all_reads_answer_as_the_model(trial: Lockstep) -> None:
    run(trial, *READS)


@pytest.mark.parametrize("confirms", [False, True])
def test_small_limits_are_those_of_the_model(confirms: bool) -> None:
    with choose_tracker("auto") as tracker:
        found = lockstep_of(Settings(file_bytes=1024, confirms=confirms, **SMALL), tracker=tracker)  # type: ignore[arg-type]
        run(found, *MESSAGES, *READS)


VERBS: dict[str, Callable[[Any], Any]] = {
    "get": lambda found: replace(found, message=None),
    "message_by_id": lambda found: replace(found, message=None),
    "select_message_by_offset": lambda _: None,
    "commit_log_data": lambda _: None,
    "queues": lambda found: found[1:],
    "message_total_in_queue": lambda found: found + 1,
    "commit_log_offset_in_queue": lambda found: found and found + 1,
    "store_timestamp_in_queue": lambda found: found and found + 1,
    "earliest_message_time": lambda found: found and found - 1,
    "offset_in_queue_by_time": lambda found: found + 1,
    "message_ids_in_queue": lambda _: {},
    "is_in_disk": lambda found: not found,
    "get_message": lambda found: replace(found, behind_bytes=(found.behind_bytes or 0) + 1),
}


@pytest.mark.parametrize("verb", VERBS)
def test_wrong_answer_of_a_read_is_found(trial: Lockstep, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = getattr(MessageStore, verb)
    monkeypatch.setattr(MessageStore, verb, lambda *given, **named: VERBS[verb](right(*given, **named)))
    with pytest.raises(GuaranteeBroken):
        run(trial, *READS)


@pytest.mark.parametrize(
    ("kind", "name", "wrong"),
    [
        (GetMessageResult, "size_bytes", property(lambda _: 1)),
        (ReadBuffer, "released", property(lambda self: self._released and self.offset < 0)),
        (ReadBuffer, "__len__", lambda self: self.size_bytes + 1),
        (BufferLease, "give_back", lambda *_: None),
        (LogSession, "queue_offset", lambda _: 77),
        (RecordBuffer, "message", lambda _: None),
    ],
)
def test_wrong_buffer_is_found(
    trial: Lockstep, kind: Any, name: str, wrong: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kind, name, wrong)
    with pytest.raises(GuaranteeBroken):
        run(trial, *READS)


def test_window_is_looked_at_in_every_way(monkeypatch: pytest.MonkeyPatch) -> None:
    right = RecordWindow.__getitem__

    def wrong(window: RecordWindow, index: Any) -> Any:
        return right(window, index if isinstance(index, slice) else abs(index))

    with choose_tracker("auto") as tracker:
        found = lockstep_of(Settings(file_bytes=16_384, confirms=True), tracker=tracker)
        run(found, *MESSAGES)
        monkeypatch.setattr(RecordWindow, "__getitem__", wrong)
        with pytest.raises(GuaranteeBroken, match=r"buffer|answer"):
            run(found, *READS)


def test_windows_are_made_where_units_are_confirmed(trial: Lockstep, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    right = BufferLease.window

    def noted(lease: BufferLease, units: bytes, count: int, *rest: int) -> RecordWindow:
        counts.append(count)
        return right(lease, units, count, *rest)

    monkeypatch.setattr(BufferLease, "window", noted)
    run(trial, *READS)
    assert any(counts) is trial.settings.confirms
