"""Run a store on a recorded disk in lockstep with its model.

Every answer is compared and every crash fault is judged. A run is a function of its settings, parts and operations: the
clock is virtual, and the disk is in memory.
"""

from collections import Counter

from tornpage.impl.parts import Parts
from tornpage.impl.service.running_flags import RunningFlag
from tornpage.impl.store import MessageStore
from tornpage.model.operations import (
    AimFault,
    Call,
    CancelPull,
    ChangeRole,
    ChangeTable,
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
    HarmField,
    HarmNumbers,
    HarmOpen,
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
    ServiceName,
    Step,
    SwitchFlag,
    TryFunctions,
    TrySettings,
)
from tornpage.model.state import CommitLog
from tornpage.properties.contract import reading_store
from tornpage.properties.disk.choosing import PowerLoss
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.fault_rule_disk import FaultRuleDisk
from tornpage.properties.lockstep.closing import close, flush, open_twice
from tornpage.properties.lockstep.compare import compare_queues, disk_holds_the_log, predicted
from tornpage.properties.lockstep.consumers import (
    cancel_pull,
    commit_offset,
    pull_held,
    pull_while_dispatching,
    query_offsets,
)
from tornpage.properties.lockstep.copies.field_harm import harm_field
from tornpage.properties.lockstep.copies.number_harm import harm_numbers
from tornpage.properties.lockstep.corruption import Corruption
from tornpage.properties.lockstep.costs import Costs
from tornpage.properties.lockstep.counting import puts_are_counted
from tornpage.properties.lockstep.deleting import (
    clean,
    delete_topics,
    held_buffers_are_right,
    hold_buffer,
    release_buffer,
)
from tornpage.properties.lockstep.environment import Environment
from tornpage.properties.lockstep.functions.asking import functions_answer
from tornpage.properties.lockstep.io_faults import enable_rule, run_under_fault
from tornpage.properties.lockstep.memory import Memory
from tornpage.properties.lockstep.open_harm import harm_open
from tornpage.properties.lockstep.pair import Pair, Span
from tornpage.properties.lockstep.public_reads import PublicReads
from tornpage.properties.lockstep.puts import put, put_concurrently
from tornpage.properties.lockstep.reads import get, get_message, offset_by_time, query_key
from tornpage.properties.lockstep.recovery import Observer, Recovery
from tornpage.properties.lockstep.services import services_will_step, step
from tornpage.properties.lockstep.settings import settings_are_checked
from tornpage.properties.lockstep.tables import change_table
from tornpage.properties.program.case import Settings

__all__ = ["Lockstep"]


class Lockstep:
    """Runs operations one by one on store and model.

    Raises GuaranteeBroken if the store breaks a contract.

    `parts` are those of the store. `performed` are the operations as they ran: a crash has the in-flight writes that
    there were. An `observer` is called with each store that is recovered and judged.
    """

    @reading_store()
    def __init__(
        self, settings: Settings, *, parts: Parts, tracker: DirtyTracker, observer: Observer | None = None
    ) -> None:
        self.settings = settings
        self.performed: list[Operation] = []
        self.pair = Pair(settings, parts=parts, tracker=tracker)
        self.recovery = Recovery(self.pair, performed=self.performed, observer=observer)
        self._corruption = Corruption(self.pair, self.recovery)
        self._costs = Costs(self.pair)
        self._reads = PublicReads(self.pair)

    @reading_store()
    def run(self, operation: Operation) -> None:
        """Run one operation and compare."""
        if isinstance(operation, Crash):
            operation = self.recovery.fitted_crash(operation)
        self.performed.append(operation)
        self._costs.begin()
        if self.files.rules and not isinstance(operation, Crash | Open):
            run_under_fault(self.pair, operation)
            return
        self._run(operation)
        held_buffers_are_right(self.pair)
        disk_holds_the_log(self.pair)
        compare_queues(self.pair)
        services_will_step(self.pair)
        if not self.pair.closed:
            puts_are_counted(self.pair.store, self.pair.appended)
        self._reads.answer()
        self._costs.end(operation)

    # ---- for campaigns -------------------------------------------------------------------------------------------

    @property
    def store(self) -> MessageStore:
        """The store in use, also after it was closed."""
        return self.pair.store

    @property
    def files(self) -> FaultRuleDisk:
        """The recorded disk of the store."""
        return self.pair.files

    @property
    def log(self) -> CommitLog:
        """The log of the model."""
        return self.pair.log

    @property
    def closed(self) -> bool:
        """Whether the store is closed."""
        return self.pair.closed

    @property
    def services(self) -> tuple[ServiceName, ...]:
        """The services that the store has to have."""
        return self.pair.services

    @property
    def spans(self) -> list[Span]:
        """The operations since the last recovery, with that recovery as the first."""
        return self.pair.spans

    @property
    def coverage(self) -> Counter[str]:
        """How often each coverage point was hit."""
        return self.pair.coverage

    @property
    def losses(self) -> list[PowerLoss]:
        """The effects of each power loss."""
        return self.recovery.losses

    @property
    def memory(self) -> Memory:
        """The ledgers that judges compare a recovered store with."""
        return self.pair.memory

    @property
    def environment(self) -> Environment:
        """The environment of the stores of this run."""
        return self.pair.environment

    @property
    def waits_for_answers(self) -> bool:
        """Whether a put has no answer yet."""
        return bool(self.pair.model.puts)

    def position(self, back: int) -> int:
        """Return the journal position `back` events before the last answer; 0 is at rest."""
        return self.recovery.position(back)

    # ---- operations ----------------------------------------------------------------------------------------------

    def _run(self, operation: Operation) -> None:
        pair = self.pair
        match operation:
            case Put() | PutBatch():
                put(pair, operation)
            case Step():
                step(pair, operation)
            case Concurrent():
                put_concurrently(pair, operation)
            case Get(record, shift):
                get(pair, record, shift)
            case GetMessage():
                get_message(pair, operation)
            case QueryKey():
                query_key(pair, operation)
            case OffsetByTime():
                offset_by_time(pair, operation)
            case Flush():
                flush(pair)
            case Close():
                close(pair)
            case OpenTwice():
                open_twice(pair)
            case Clean():
                clean(pair, operation)
            case DeleteTopics():
                delete_topics(pair, operation)
            case HoldBuffer():
                hold_buffer(pair, operation)
            case ReleaseBuffer():
                release_buffer(pair)
            case PullHeld():
                pull_held(pair, operation)
            case CancelPull():
                cancel_pull(pair, operation)
            case PullWhileDispatching():
                pull_while_dispatching(pair, operation)
            case HarmOpen():
                harm_open(pair, operation)
            case CommitOffset():
                commit_offset(pair, operation)
            case QueryOffsets():
                query_offsets(pair, operation)
            case TrySettings(part):
                settings_are_checked(part)
            case TryFunctions(fill):
                functions_answer(fill)
            case ChangeTable():
                change_table(pair, operation)
            case AimFault():
                enable_rule(pair, operation)
            case (
                ClockStep()
                | SwitchFlag()
                | DiskUsed()
                | ReplicaIs()
                | FailAppend()
                | FailSync()
                | FailWrite()
                | RefuseFile()
            ):
                _change_the_environment(pair, operation)
            case Call():
                pass  # a call to a store of another shape
            case _:
                self._end_the_session(operation)

    def _end_the_session(self, operation: Operation) -> None:
        """Crash, or corrupt the closed store, and recover."""
        match operation:
            case Open() if self.files.rules:
                self.recovery.open_under_fault()
            case Open():
                self.recovery.open()
            case Crash() if self.files.rules and not operation.fault_ends:
                self.recovery.crash_under_fault(operation)
            case Crash():
                self.recovery.crash(operation)
            case Damage():
                self._corruption.damage_log(operation)
            case HarmDerived():
                self._corruption.corrupt_derived(operation)
            case HarmField():
                harm_field(self.pair, self.recovery, operation)
            case HarmNumbers():
                harm_numbers(self.pair, self.recovery, operation)
            case HarmProgress():
                self._corruption.corrupt_progress(operation)
            case DelayOffsetsAre():
                self._corruption.write_delay_offsets(operation)
            case ChangeRole():
                self._corruption.change_role(operation)


def _change_the_environment(pair: Pair, operation: Operation) -> None:
    """Change the environment of the store, or a running flag of the open store."""
    before = pair.begin(operation)
    pair.model, _ = predicted(pair, before, operation)
    if isinstance(operation, SwitchFlag) and not pair.closed:
        flags, flag = pair.store.running_flags, RunningFlag(operation.bit)
        flags.set(flag) if operation.on else flags.clear(flag)
