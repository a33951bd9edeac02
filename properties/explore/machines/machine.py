"""Compare the mapped store with the model in Hypothesis machines, including crash faults.

Rules are what users and disks do. Each is an operation of properties/program, so that a failing run is a case that
replays without Hypothesis. Answers are compared in properties/lockstep. `TrialMachine` has what every machine needs:
close, open, power loss and kill. `CommitLogMachine` drives the log (contract 1-3, 6-9).
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from hypothesis import event, note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tornpage.model.operations import Close, Crash, Damage, FailSync, Flush, Get, Open, OpenTwice, Operation, Put, Step
from tornpage.properties.campaign.replay import Failure
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker, choose_tracker
from tornpage.properties.disk.images import InFlightWrite, disk_state, in_flight_writes
from tornpage.properties.explore.machines.strategies import (
    choices_of,
    damages,
    holes_of,
    odd_puts,
    puts,
    settings_of_trials,
)
from tornpage.properties.lockstep.lockstep import Lockstep
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Case, Settings, describe

__all__ = ["REPUT", "CommitLogMachine", "Progress", "TrialMachine", "planted_machine"]

COMMIT, REPUT = Step(service="commit", after_ms=200), Step(service="reput")


@dataclass(frozen=True, slots=True)
class Progress:
    """Hold the callback for the start of an example. A bare function would become a method."""

    begins: Callable[[], None]


class TrialMachine(RuleBasedStateMachine):
    """Run one store on one recorded disk beside its model.

    `bug` plants a bug; `failure` is the last one seen. Settings in `fixed` override drawn ones. `is_interrupted` is
    kept here because Hypothesis may report an interrupt in the last run of a failure as something else.
    """

    bug: ClassVar[str] = ""
    fixed: ClassVar[Mapping[str, Any]] = {}
    tracker: ClassVar[DirtyTracker] = choose_tracker("auto")
    failure: ClassVar[Failure | None] = None
    is_interrupted: ClassVar[bool] = False
    fired: ClassVar[Counter[str]] = Counter()
    progress: ClassVar[Progress] = Progress(lambda: None)
    must_run: ClassVar[tuple[str, ...]] = ()
    """Operations without which a run proves nothing."""
    effects: ClassVar[Counter[str]] = Counter()
    must_happen: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """Effects without which a run proves nothing; one of each tuple is enough."""

    def start(self, settings: Settings) -> None:
        """Open a store on an empty disk. The first rule of each machine calls this."""
        self.progress.begins()
        self.is_broken = False
        self.settings = replace(settings, bug=self.bug, **self.fixed)
        try:
            self.trial = self._new_trial()
        except GuaranteeBroken as broken:
            type(self).failure = Failure(Case(self.settings, ()), broken)
            raise
        except KeyboardInterrupt:
            type(self).is_interrupted = True
            raise

    def _new_trial(self) -> Lockstep:
        return lockstep_of(self.settings, tracker=self.tracker)

    def carry_out(self, operation: Operation) -> None:
        """Run an operation; keep the case if a promise breaks."""
        note(describe(operation))
        self.fired[operation.op] += 1
        try:
            self.trial.run(operation)
        except GuaranteeBroken as broken:
            self.is_broken = True
            type(self).failure = Failure(Case(self.settings, tuple(self.trial.performed)), broken)
            raise
        except KeyboardInterrupt:
            type(self).is_interrupted = True
            self.is_broken = True  # interrupted inside an operation, so the store is not judged any further
            raise

    # ---- what users do -------------------------------------------------------------------------------------------

    @precondition(lambda self: not self.trial.closed)
    @rule()
    def flush(self) -> None:
        """Make everything durable."""
        self.carry_out(Flush())

    @precondition(lambda self: not self.trial.closed)
    @rule()
    def close(self) -> None:
        """Close cleanly."""
        self.carry_out(Close())

    @precondition(lambda self: self.trial.closed)
    @rule()
    def open(self) -> None:
        """Open again, and check that a second process is refused."""
        self.carry_out(Open())
        self.carry_out(OpenTwice())

    # ---- crash faults ------------------------------------------------------------------------------------------------

    @precondition(lambda self: not self.trial.closed)
    @rule()
    def next_sync_fails(self) -> None:
        """Fail the next file sync with EIO."""
        self.carry_out(FailSync())

    @rule(data=st.data())
    def power_fails(self, data: st.DataObject) -> None:
        """Lose power at rest. Any legal set of pages, sizes and names survives."""
        self._lose_power(data, back=0)

    @rule(data=st.data(), back=st.integers(1, 40))
    def power_fails_inside_an_operation(self, data: st.DataObject, back: int) -> None:
        """Lose power inside the last operation or recovery: before, during and after each flush."""
        span = self.trial.spans[-1]
        self._lose_power(data, back=min(back, span.last - span.first))

    def _open_facts(self, *, back: int) -> list[InFlightWrite]:
        """Return the in-flight writes of a power loss `back` events before the last answer."""
        files, span = self.trial.files, self.trial.spans[-1]
        position = files.events[span.last - back] if back else len(files.journal)
        return in_flight_writes(disk_state(files.base, files.journal, position, disk=self.settings.disk))

    def _lose_power(self, data: st.DataObject, *, back: int) -> None:
        survived = data.draw(choices_of(self._open_facts(back=back)), label="survived")
        before = len(self.trial.log.records)
        self.carry_out(Crash(back=back, survived=survived))
        event("power loss", payload="records lost" if len(self.trial.log.records) < before else "nothing lost")

    def _lose_messages(self, data: st.DataObject) -> None:
        """Lose power at rest with a page of the log that is not durable, if there is one."""
        self.carry_out(Crash(survived=data.draw(holes_of(self._open_facts(back=0)), label="survived")))

    def _somewhere_inside(self, data: st.DataObject) -> int:
        """Draw a crash point inside the last operation, as the number of events before its answer."""
        span = self.trial.spans[-1]
        back: int = data.draw(st.integers(0, span.last - span.first), label="back")
        return back

    def _break_off(self, data: st.DataObject, *, back: int, kill: bool) -> None:
        """Kill the process, or lose power."""
        if kill:
            self.carry_out(Crash(kill=True, back=back))
        else:
            self._lose_power(data, back=back)

    def _commit(self) -> None:
        """Commit the buffers of the pool, if there is one."""
        if "commit" in self.trial.services:
            self.carry_out(COMMIT)

    def _bring_into_queues(self) -> None:
        """Commit and dispatch everything that was put."""
        self._commit()
        self.carry_out(REPUT)

    @rule(back=st.integers(0, 40))
    def process_dies(self, back: int) -> None:
        """Kill the process with SIGKILL. The page cache survives."""
        self.carry_out(Crash(kill=True, back=back))

    def teardown(self) -> None:
        """Close, so that nothing leaks."""
        if hasattr(self, "trial") and not self.trial.closed and not self.is_broken:
            self.carry_out(Close())
        if hasattr(self, "trial"):
            self.effects.update(self.trial.coverage)

    @classmethod
    def missing(cls) -> list[str]:
        """Return what had to happen in the runs so far and did not."""
        return cls.never_happened(cls.fired, cls.effects)

    @classmethod
    def never_happened(cls, fired: Counter[str], effects: Counter[str]) -> list[str]:
        """Return what has to happen and is missing in these operations and effects."""
        operations = [name for name in cls.must_run if not fired[name]]
        return operations + [" or ".join(some) for some in cls.must_happen if not any(effects[e] for e in some)]


class CommitLogMachine(TrialMachine):
    """Put, get, flush and lose messages."""

    must_run: ClassVar[tuple[str, ...]] = ("put", "get", "flush", "close", "open", "fail_sync", "crash", "damage")
    must_happen: ClassVar[tuple[tuple[str, ...], ...]] = (("checksums_of_zero",),)

    @initialize(settings=settings_of_trials())
    def open_store(self, settings: Settings) -> None:
        """Open a store on an empty disk."""
        self.start(settings)

    # ---- what users do -------------------------------------------------------------------------------------------

    @rule(put=puts())
    def put(self, put: Put) -> None:
        """Put one message."""
        self.carry_out(put)

    @precondition(lambda self: not self.trial.closed)
    @rule(several=st.lists(puts(), min_size=2, max_size=8))
    def put_several(self, several: list[Put]) -> None:
        """Put a few messages in a row, so that files fill."""
        for put in several:
            self.carry_out(put)

    @rule(put=odd_puts())
    def put_odd(self, put: Put) -> None:
        """Put a message at a limit. Most are refused, and a refusal changes nothing."""
        before = len(self.trial.log.records)
        self.carry_out(put)
        event("odd put", payload="stored" if len(self.trial.log.records) > before else "refused")

    @precondition(lambda self: not self.trial.closed and self.settings.trailer)
    @rule(body_bytes=st.sampled_from((8, 300)), fill=st.integers(0, 5))
    def put_of_checksum_zero(self, body_bytes: int, fill: int) -> None:
        """Put a message whose record has the checksum 0, like one record in about two billion."""
        self.carry_out(Put(body_bytes=body_bytes, fill=fill, body_kind="sums to zero"))

    @precondition(lambda self: not self.trial.closed)
    @rule(record=st.integers(0, 40), shift=st.sampled_from((0, 0, 1, -1, 88, 100, 112, 5000)))
    def get(self, record: int, shift: int) -> None:
        """Get a message, or read near one."""
        self.carry_out(Get(record=record, shift=shift))

    @precondition(lambda self: not self.trial.closed and not self.settings.sync_flush)
    @rule(data=st.data(), noted=st.booleans(), by_ms=st.sampled_from((1, -100_000)), count=st.integers(2, 5))
    def power_fails_after_new_files(self, data: st.DataObject, noted: bool, by_ms: int, count: int) -> None:
        """Lose power after creating unflushed files, perhaps with the clock set back before.

        Any of the files may be lost or torn. With `noted` there is something durable before them, which the checkpoint
        covers.
        """
        if noted:
            for operation in (Put(), Flush(), Step(service="reput"), Step(service="flush-queues", after_ms=60_000)):
                self.carry_out(operation)
        large = Put(body_bytes=min(self.settings.file_bytes, self.settings.record_bytes_max) * 2 // 3)
        self.carry_out(replace(large, advance_ms=by_ms))
        for _ in range(count):
            self.carry_out(large)
        self._lose_power(data, back=0)

    @precondition(lambda self: not self.trial.closed and not self.trial.log.poisoned and self.trial.log.records)
    @rule(damage=damages())
    def disk_is_damaged(self, damage: Damage) -> None:
        """Close cleanly, then flip a bit, cut a file, or misplace a record."""
        self.carry_out(damage)

    @precondition(lambda self: not self.trial.closed and not self.trial.log.poisoned)
    @rule(several=st.lists(puts(), min_size=2, max_size=4), damage=damages())
    def new_messages_are_damaged(self, several: list[Put], damage: Damage) -> None:
        """Damage the log right after new dispatched messages.

        Each of them is served or was damaged.
        """
        for put in several:
            self.carry_out(put)
        self._bring_into_queues()
        self.carry_out(replace(damage, record=-1 - damage.record % len(several)))


def planted_machine(machine: type[TrialMachine], bug: str) -> type[TrialMachine]:
    """Return a machine with a planted bug and new counters."""
    counters = {"fired": Counter[str](), "effects": Counter[str]()}
    fresh: dict[str, object] = {"bug": bug, "failure": None, "is_interrupted": False, **counters}
    return type("Planted" + machine.__name__, (machine,), fresh)
