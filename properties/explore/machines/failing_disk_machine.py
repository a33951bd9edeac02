"""The failing-disk machine: calls of the disk fail, wherever a fault is aimed, and what was promised is
kept (2, 3, 6 to 9, 13).

Faults are drawn by effect, kind of file and count (docs/faults.md, "Aiming"). A time under them ends with an open, a
kill or a power loss, and they may hit that recovery as well; the disaster is judged by what was promised meanwhile.
"""

from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tornpage.model.operations import (
    AimFault,
    Close,
    CommitOffset,
    DeleteTopics,
    Flush,
    HarmDerived,
    Open,
    Operation,
    Put,
    Step,
)
from tornpage.properties.explore.machines.failing_disk_strategies import (
    CLEAN,
    DELAYED,
    DELETIONS,
    DELIVERIES,
    ENDINGS,
    FAULTS,
    INDEX_FILE_STAYS,
    KEYED,
    MADE_ANEW,
    NO_INDEX_FILE,
    NOT_DURABLE,
    OF_A_FILE,
    OF_SOME_FILES,
    OF_SYNCS,
    REMOVALS,
    ROUNDS,
    SAVE,
    SOME_PUTS,
    WORK,
    settings_of_failing_disks,
)
from tornpage.properties.explore.machines.machine import REPUT, TrialMachine
from tornpage.properties.program.case import Settings
from tornpage.properties.program.fault_effects import EFFECTS

__all__ = ["FailingDiskMachine"]


class FailingDiskMachine(TrialMachine):
    """One store on a disk that fails it, beside its model."""

    must_run: ClassVar[tuple[str, ...]] = (
        "put",
        "step",
        "flush",
        "commit_offset",
        "aim_fault",
        "close",
        "open",
        "crash",
        "clean",
        "delete_topics",
        "harm_derived",
    )
    must_happen: ClassVar[tuple[tuple[str, ...], ...]] = (
        *((f"aimed_{effect.replace('-', '_')}_fired",) for effect in EFFECTS),
        ("cleaned_under_a_fault",),
        ("deleted_under_a_fault",),
        ("deleted_with_files_left",),
        ("deletion_refused",),
        ("delivered_under_a_fault",),
        ("delivery_refused_under_a_fault",),
    )

    @initialize(settings=settings_of_failing_disks())
    def open_store(self, settings: Settings) -> None:
        """Open a store on an empty disk."""
        self.start(settings)

    # ---- what users and services do ------------------------------------------------------------------------------

    def _do(self, several: list[Put], work: list[Operation]) -> None:
        for operation in (*several, *work):
            self.carry_out(operation)

    @precondition(lambda self: not self.trial.closed)
    @rule(several=SOME_PUTS, work=WORK)
    def store_works(self, several: list[Put], work: list[Operation]) -> None:
        """Messages come, services take their turns, a group commits."""
        self._do(several, work)

    def _end(self, data: st.DataObject, ending: str) -> None:
        """Open again, behind a close of its own or not, or be broken off inside of the last verb."""
        if ending in ("open", "exit"):
            self._do([], [Close(), Open()] if ending == "exit" else [Open()])
        else:
            self._break_off(data, back=self._somewhere_inside(data), kill=ending == "kill")

    # ---- what stands in the way ----------------------------------------------------------------------------------

    @precondition(lambda self: not self.trial.closed)
    @rule(faults=FAULTS)
    def calls_fail(self, faults: list[AimFault]) -> None:
        """From now on some calls fail."""
        for fault in faults:
            self.carry_out(fault)

    @precondition(lambda self: not self.trial.closed)
    @rule(faults=FAULTS, several=SOME_PUTS, work=WORK, closed=st.booleans())
    def opens_on_a_disk_that_fails(
        self, faults: list[AimFault], several: list[Put], work: list[Operation], closed: bool
    ) -> None:
        """Calls fail before and while a store is opened again, and then no longer."""
        self._do([], work)
        self.calls_fail(faults)
        self._do(several, work)
        if closed:
            self.carry_out(Close())
        self.carry_out(Open())

    @precondition(lambda self: not self.trial.closed)
    @rule(data=st.data(), several=SOME_PUTS, faults=FAULTS, work=WORK, kill=st.booleans())
    def recovers_on_a_disk_that_fails(
        self, data: st.DataObject, several: list[Put], faults: list[AimFault], work: list[Operation], kill: bool
    ) -> None:
        """A crash, and calls fail in the recovery as well."""
        self._do(several, work)
        self.calls_fail(faults)
        self._break_off(data, back=0, kill=kill)

    @precondition(lambda self: not self.trial.closed and not self.trial.log.poisoned)
    @precondition(lambda self: self.settings.disk != "kill")
    @rule(data=st.data(), count=st.integers(2, 5), effect=st.sampled_from(OF_SYNCS), nth=st.sampled_from((1, 1, 2, 3)))
    def a_cut_does_not_become_durable(self, data: st.DataObject, count: int, effect: str, nth: int) -> None:
        """Pages behind a durable record are lost, others behind them are not, and the sync of the cut fails.

        Nobody waits for the disk there, so that it is so in stores that answer by the disk too.
        """
        put = Put(body_bytes=OF_A_FILE[self.settings.file_bytes], properties="WAIT\x01false")
        self._do([put], [Flush()])
        self._do([put] * count, [])
        self._commit()
        self.carry_out(AimFault(effect, f"kind=log and nth={nth}"))
        self._lose_messages(data)

    @precondition(lambda self: not self.trial.closed and not self.trial.log.poisoned)
    @rule(data=st.data(), count=st.integers(3, 6), fault=REMOVALS, runs=st.integers(1, 3), kill=st.booleans())
    def a_clean_up_fails(self, data: st.DataObject, count: int, fault: AimFault, runs: int, kill: bool) -> None:
        """Log files expire, and some of them cannot be removed, or not durably."""
        self._do([Put(body_bytes=OF_SOME_FILES[self.settings.file_bytes])] * count, [Flush()])
        self._bring_into_queues()
        self._do([], [fault, *[CLEAN] * runs])
        self._break_off(data, back=self._somewhere_inside(data), kill=kill)

    @precondition(lambda self: not self.trial.closed and not self.trial.log.poisoned)
    @rule(
        data=st.data(),
        several=SOME_PUTS,
        fault=DELETIONS,
        in_use=st.sampled_from(((), ("U",))),
        read=st.booleans(),
        new=SOME_PUTS,
        work=WORK,
        ending=ENDINGS,
    )
    def a_deletion_fails(
        self,
        data: st.DataObject,
        several: list[Put],
        fault: AimFault,
        in_use: tuple[str, ...],
        read: bool,
        new: list[Put],
        work: list[Operation],
        ending: str,
    ) -> None:
        """Topics go while the disk refuses to remember it, or to remove their queues; new messages come."""
        self._do([Put(), *several], [])
        self._bring_into_queues()
        self._do([], [CommitOffset(), SAVE] if read else [])
        self._do([], [fault, DeleteTopics(in_use=in_use)])
        self._do(new, work)
        self._end(data, ending)

    @precondition(lambda self: not self.trial.closed and not self.trial.log.poisoned)
    @rule(
        data=st.data(),
        delayed=DELAYED,
        fault=DELIVERIES,
        rounds=ROUNDS,
        work=WORK,
        ending=ENDINGS,
    )
    def a_delivery_fails(
        self,
        data: st.DataObject,
        delayed: list[Put],
        fault: AimFault,
        rounds: list[int],
        work: list[Operation],
        ending: str,
    ) -> None:
        """Delayed messages are due while the disk refuses files for their copies, or to save who was delivered."""
        self._do(delayed, [])
        self._bring_into_queues()
        self._do([], [fault, *(Step(service="schedule", after_ms=pause_ms) for pause_ms in rounds), *work])
        self._end(data, ending)

    @precondition(lambda self: not self.trial.closed and not self.trial.log.poisoned)
    @rule(data=st.data(), several=SOME_PUTS, harm=MADE_ANEW, fault=NOT_DURABLE, opens=st.integers(1, 2), ending=ENDINGS)
    def what_is_made_anew_fails(
        self, data: st.DataObject, several: list[Put], harm: HarmDerived, fault: AimFault, opens: int, ending: str
    ) -> None:
        """Queues or index are harmed, and what an open makes in their place does not become durable."""
        self._do([KEYED, *several], [harm])
        if not self.trial.closed and not self.trial.log.poisoned:
            self._do([], [fault, *[Open()] * opens])
            self._end(data, ending)

    @precondition(lambda self: not self.trial.closed and not self.trial.log.poisoned)
    @rule(data=st.data(), fault=NO_INDEX_FILE, stays=st.booleans(), several=SOME_PUTS, work=WORK, ending=ENDINGS)
    def an_index_file_fails(
        self, data: st.DataObject, fault: AimFault, stays: bool, several: list[Put], work: list[Operation], ending: str
    ) -> None:
        """The index gets no file, and what is left of that may not go."""
        self._do([], [fault, *([INDEX_FILE_STAYS] if stays else [])])
        self._do([KEYED, *several], [REPUT, *work])
        self._end(data, ending)
