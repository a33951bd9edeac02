"""Test a failing disk: calls fail by rules, and promises are kept (2, 3, 6 to 9, 13).

Faults are drawn by effect, kind of file and count (docs/faults.md, "Aiming"). A time under faults ends with an open, a
kill or a power loss. The faults may hit that recovery as well. The crash is judged by what was promised meanwhile.
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
    """Run one store on a failing disk, beside its model."""

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
        """Put messages, let services take their turns, and commit offsets."""
        self._do(several, work)

    def _end(self, data: st.DataObject, ending: str) -> None:
        """Open again, after a close or not, or crash inside the last operation."""
        if ending in ("open", "exit"):
            self._do([], [Close(), Open()] if ending == "exit" else [Open()])
        else:
            self._break_off(data, back=self._somewhere_inside(data), kill=ending == "kill")

    # ---- obstacles ---------------------------------------------------------------------------------------------------

    @precondition(lambda self: not self.trial.closed)
    @rule(faults=FAULTS)
    def calls_fail(self, faults: list[AimFault]) -> None:
        """Make some calls fail from now on."""
        for fault in faults:
            self.carry_out(fault)

    @precondition(lambda self: not self.trial.closed)
    @rule(faults=FAULTS, several=SOME_PUTS, work=WORK, closed=st.booleans())
    def open_on_failing_disk(
        self, faults: list[AimFault], several: list[Put], work: list[Operation], closed: bool
    ) -> None:
        """Make calls fail before and during an open, and not afterwards."""
        self._do([], work)
        self.calls_fail(faults)
        self._do(several, work)
        if closed:
            self.carry_out(Close())
        self.carry_out(Open())

    @precondition(lambda self: not self.trial.closed)
    @rule(data=st.data(), several=SOME_PUTS, faults=FAULTS, work=WORK, kill=st.booleans())
    def recover_on_failing_disk(
        self, data: st.DataObject, several: list[Put], faults: list[AimFault], work: list[Operation], kill: bool
    ) -> None:
        """Crash, and make calls fail in the recovery as well."""
        self._do(several, work)
        self.calls_fail(faults)
        self._break_off(data, back=0, kill=kill)

    @precondition(lambda self: not self.trial.closed and not self.trial.log.poisoned)
    @precondition(lambda self: self.settings.disk != "kill")
    @rule(data=st.data(), count=st.integers(2, 5), effect=st.sampled_from(OF_SYNCS), nth=st.sampled_from((1, 1, 2, 3)))
    def cut_stays_unsynced(self, data: st.DataObject, count: int, effect: str, nth: int) -> None:
        """Lose pages after a durable record but keep later ones, and fail the sync of the cut.

        No put waits for the disk here, so that un-synced messages exist in stores with synchronous flush too.
        """
        put = Put(body_bytes=OF_A_FILE[self.settings.file_bytes], properties="WAIT\x01false")
        self._do([put], [Flush()])
        self._do([put] * count, [])
        self._commit()
        self.carry_out(AimFault(effect, f"kind=log and nth={nth}"))
        self._lose_messages(data)

    @precondition(lambda self: not self.trial.closed and not self.trial.log.poisoned)
    @rule(data=st.data(), count=st.integers(3, 6), fault=REMOVALS, runs=st.integers(1, 3), kill=st.booleans())
    def clean_up_fails(self, data: st.DataObject, count: int, fault: AimFault, runs: int, kill: bool) -> None:
        """Expire log files, some of which cannot be removed, or not durably."""
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
    def deletion_fails(
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
        """Delete topics while recording it or removing queues fails; then put new messages."""
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
    def delivery_fails(
        self,
        data: st.DataObject,
        delayed: list[Put],
        fault: AimFault,
        rounds: list[int],
        work: list[Operation],
        ending: str,
    ) -> None:
        """Deliver delayed messages while files for their copies, or saves of progress, fail."""
        self._do(delayed, [])
        self._bring_into_queues()
        self._do([], [fault, *(Step(service="schedule", after_ms=pause_ms) for pause_ms in rounds), *work])
        self._end(data, ending)

    @precondition(lambda self: not self.trial.closed and not self.trial.log.poisoned)
    @rule(data=st.data(), several=SOME_PUTS, harm=MADE_ANEW, fault=NOT_DURABLE, opens=st.integers(1, 2), ending=ENDINGS)
    def rebuilt_files_fail(
        self, data: st.DataObject, several: list[Put], harm: HarmDerived, fault: AimFault, opens: int, ending: str
    ) -> None:
        """Corrupt queues or index, and prevent the rebuilt files from becoming durable."""
        self._do([KEYED, *several], [harm])
        if not self.trial.closed and not self.trial.log.poisoned:
            self._do([], [fault, *[Open()] * opens])
            self._end(data, ending)

    @precondition(lambda self: not self.trial.closed and not self.trial.log.poisoned)
    @rule(data=st.data(), fault=NO_INDEX_FILE, stays=st.booleans(), several=SOME_PUTS, work=WORK, ending=ENDINGS)
    def index_file_fails(
        self, data: st.DataObject, fault: AimFault, stays: bool, several: list[Put], work: list[Operation], ending: str
    ) -> None:
        """Prevent the creation of an index file, and perhaps the removal of its remains."""
        self._do([], [fault, *([INDEX_FILE_STAYS] if stays else [])])
        self._do([KEYED, *several], [REPUT, *work])
        self._end(data, ending)
