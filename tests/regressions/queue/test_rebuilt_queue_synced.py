"""A close syncs a queue that a killed open rebuilt.

Symptom: after a clean close and a power loss a queue file was gone (contract 2, 4).
Cause: an open that rebuilt a queue was killed before it had synced the queue. The next one found the bytes that the
derived floor describes, took them for durable, and its close synced nothing.
Fix: unchanged bytes are trusted but not taken for durable (impl/queue/consume_queue.py, `believe`). A wrong floor is
removed by now, which would be enough here, but a copied store has such bytes too.
Found by: a review with the retention machine.
"""

from typing import Any

from tests.support.regressions import Attempt
from tornpage.impl.dispatch.derived_floor import DerivedFloor
from tornpage.impl.parts import Parts
from tornpage.impl.queue.consume_queue import ConsumeQueue
from tornpage.model.operations import Close, Crash, HarmDerived, Operation, Put, Step
from tornpage.properties.program.case import Settings

OPERATIONS: tuple[Operation, ...] = (Put(), Step(service="reput"), HarmDerived(), Crash(kill=True), Close())


class TakenForDurable(ConsumeQueue):
    """The mistake: trusted bytes are taken for durable."""

    def trust(self, end_number: int, log_min: int) -> None:
        super().trust(end_number, log_min)
        for mapped in self.mapped:
            mapped.flushed_position = mapped.written_position
        files: Any = self._files
        files._names_pending = False


class KeepsTheFloor(DerivedFloor):
    """Keeps a floor that proved wrong for the next open."""

    def forget(self) -> None:
        """Keep the file."""


def test_a_close_syncs_what_an_open_before_made_anew(attempt: Attempt) -> None:
    assert attempt(OPERATIONS, Settings()) is None


def test_what_is_taken_for_durable_is_lost(attempt: Attempt) -> None:
    assert attempt(OPERATIONS, Settings(), Parts({DerivedFloor: KeepsTheFloor})) is None
    broken = attempt(OPERATIONS, Settings(), Parts({ConsumeQueue: TakenForDurable, DerivedFloor: KeepsTheFloor}))
    assert broken is not None
    assert broken.contract == 4
