"""One store on one recorded disk, beside its model: verbs are compared as they return, disasters are judged.

A trial is a function of its settings and operations: the clock is virtual, the disk is in memory.
"""

from model.operations import (
    AimFault,
    CancelPull,
    ChangeRole,
    Clean,
    ClockStep,
    Close,
    CommitOffset,
    Concurrent,
    Crash,
    Damage,
    DelayOffsetsAre,
    DeleteTopics,
    DiskUsed,
    FailAppend,
    FailSync,
    FailWrite,
    Flush,
    Get,
    GetMessage,
    HarmDerived,
    HarmProgress,
    HoldBuffer,
    OffsetByTime,
    Open,
    OpenTwice,
    Operation,
    PullHeld,
    PullWhileDispatching,
    Put,
    PutBatch,
    QueryKey,
    QueryOffsets,
    RefuseFile,
    ReleaseBuffer,
    ReplicaIs,
    Step,
    SwitchFlag,
)
from properties.lockstep.delay_disasters import change_role, write_delay_offsets
from properties.lockstep.fault_endings import crash_under_fault, open_under_fault
from properties.lockstep.harm_at_rest import damage, harm_derived
from properties.lockstep.progress_disasters import harm_progress
from properties.lockstep.recovery_verbs import RecoveryVerbs
from properties.lockstep.under_fault import aim, carry_out_under_fault

__all__ = ["Trial"]


class Trial(RecoveryVerbs):
    """Carries out operations one by one. Raises GuaranteeBroken where a promise does not hold.

    `components` are the parts of the store, in place of those that `settings.bug` stands for.
    """

    def run(self, operation: Operation) -> None:
        """Carry out one operation and compare.

        `performed` takes it in as it was carried out: a crash with the facts that were open, in numbers they had.
        """
        if isinstance(operation, Crash):
            operation = self.fitted_crash(operation)
        self.performed.append(operation)
        if self.files.aimed and not isinstance(operation, Crash | Open):
            carry_out_under_fault(self, operation)
            return
        self._carry_out(operation)
        self.held_buffers_are_right()
        self.disk_holds_the_log()
        self.compare_queues()
        self.everybody_is_waited_for()

    def _carry_out(self, operation: Operation) -> None:
        """Do what somebody asks of the store, or let befall it what comes unasked."""
        match operation:
            case Put() | PutBatch():
                self.put(operation)
            case Step(service="schedule"):
                self.deliver(operation)
            case Step():
                self.step(operation)
            case Concurrent():
                self.put_concurrently(operation)
            case Get(record, shift):
                self.get(record, shift)
            case GetMessage():
                self.get_message(operation)
            case QueryKey():
                self.query_key(operation)
            case OffsetByTime():
                self.offset_by_time(operation)
            case Flush():
                self.flush()
            case Close():
                self.close()
            case Open() if self.files.aimed:
                open_under_fault(self)
            case Open():
                self.open()
            case OpenTwice():
                self.open_twice()
            case Clean():
                self.clean(operation)
            case DeleteTopics(in_use):
                self.delete_topics(in_use)
            case HoldBuffer(record):
                self.hold_buffer(record)
            case ReleaseBuffer():
                self.release_buffer()
            case PullHeld():
                self.pull_held(operation)
            case CancelPull():
                self.cancel_pull(operation)
            case PullWhileDispatching():
                self.pull_while_dispatching(operation)
            case CommitOffset():
                self.commit_offset(operation)
            case QueryOffsets():
                self.query_offsets(operation)
            case _:
                self._befall(operation)

    def _befall(self, operation: Operation) -> None:
        """Change what is around the store, have its disk fail, or let a disaster come."""
        match operation:
            case ClockStep():
                self.set_clock(operation)
            case DelayOffsetsAre():
                write_delay_offsets(self, operation)
            case ChangeRole():
                change_role(self, operation)
            case SwitchFlag(bit, on):
                self.switch_flag(bit, on=on)
            case DiskUsed(percent):
                self.fill_disk(percent)
            case ReplicaIs(state):
                self.surroundings.replica = state
            case FailAppend():
                self.surroundings.append_fails = True
            case FailSync():
                self.files.failing_syncs = 1
            case FailWrite():
                self.files.failing_writes = 1
            case RefuseFile():
                self.files.refused_files = 1
            case AimFault():
                aim(self, operation)
            case Crash() if self.files.aimed:
                crash_under_fault(self, operation)
            case Crash():
                self.crash(operation)
            case Damage():
                damage(self, operation)
            case HarmDerived():
                harm_derived(self, operation)
            case HarmProgress():
                harm_progress(self, operation)
