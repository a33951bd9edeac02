"""Test judges of wrong numbers and of the lock file with stores that break them."""

from collections.abc import Iterator

import pytest

from tornpage.impl.io import store_lock
from tornpage.impl.message.dispatching import QueueRun
from tornpage.impl.parts import Parts
from tornpage.impl.queue.consume_queue import ConsumeQueue
from tornpage.model.operations import Close, HarmNumbers, Operation, Put, Step, WrongClaim
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker, choose_tracker
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Settings

SETTINGS = Settings(trailer=False, queue_units=16)
AFTER_A_GAP: tuple[Operation, ...] = (
    *(Put() for _ in range(6)),
    Step("reput"),
    HarmNumbers((WrongClaim(3, "from_here", 2),), "lost"),
)


class _WithoutGaps(ConsumeQueue):
    def _find(self, code: str, run: QueueRun, what: str, *, offset: int | None = None) -> None:
        if code != "queue_gap":
            super()._find(code, run, what, offset=offset)


class _EarlierMinimum(ConsumeQueue):
    def end_reconcile(self, log_min: int) -> bool:
        erased = super().end_reconcile(log_min)
        self.min_offset = self.first_number
        return erased


@pytest.fixture(scope="module")
def tracker() -> Iterator[DirtyTracker]:
    with choose_tracker("auto") as chosen:
        yield chosen


def run_program(parts: Parts, tracker: DirtyTracker, *operations: Operation) -> None:
    """Run operations on a store with other parts. Raises GuaranteeBroken."""
    trial = lockstep_of(SETTINGS, tracker=tracker, parts=parts)
    for operation in operations:
        trial.run(operation)


def test_the_store_itself_holds(tracker: DirtyTracker) -> None:
    run_program(Parts(), tracker, *AFTER_A_GAP, Close())


def test_a_gap_without_a_finding(tracker: DirtyTracker) -> None:
    with pytest.raises(GuaranteeBroken, match="findings or minima of queues"):
        run_program(Parts({ConsumeQueue: _WithoutGaps}), tracker, *AFTER_A_GAP)


def test_a_minimum_before_the_first_message(tracker: DirtyTracker) -> None:
    later = HarmNumbers((WrongClaim(0, "from_here", 2),), "lost")
    with pytest.raises(GuaranteeBroken, match="findings or minima of queues"):
        run_program(Parts({ConsumeQueue: _EarlierMinimum}), tracker, *AFTER_A_GAP[:-1], later)


def test_a_lock_file_with_another_content(tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_lock, "_CONTENT", b"mine")
    with pytest.raises(GuaranteeBroken, match="the lock file has another content"):
        run_program(Parts(), tracker, Put(), Close())
