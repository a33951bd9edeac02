"""Test everything between an answer and the disk, in all three durability modes.

The subjects are timed flushes and commits with and without a page rule, group commit and its time-outs, the transient
store pool and its exhaustion, and prepared files. Each meets failing disks and crashes (contract 2, 9, 16, 17).
"""

from typing import ClassVar

from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tornpage.model.operations import (
    Close,
    Concurrent,
    Crash,
    DiskUsed,
    FailSync,
    FailWrite,
    Flush,
    Get,
    Open,
    Operation,
    Put,
    ReplicaIs,
    ServiceName,
    Step,
)
from tornpage.properties.explore.machines.flush_strategies import (
    large_puts,
    meetings,
    plain_puts,
    settings_of_flushes,
    steps_of,
)
from tornpage.properties.explore.machines.machine import TrialMachine
from tornpage.properties.program.case import Settings

__all__ = ["FlushMachine"]

_SOME_PUTS = st.lists(plain_puts(), min_size=1, max_size=4)
_ENDINGS: tuple[Operation, ...] = (Flush(), Close())
_FLUSHERS: tuple[ServiceName, ...] = ("group-commit", "flush")


class FlushMachine(TrialMachine):
    """Run one store with its services stepped by hand, beside its model."""

    must_run: ClassVar[tuple[str, ...]] = (
        "put",
        "step",
        "flush",
        "close",
        "open",
        "fail_sync",
        "fail_write",
        "disk_used",
        "replica_is",
        "concurrent",
        "crash",
    )
    must_happen: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("answered_by_group_commit",),
        ("answered_with_another",),
        ("answered_by_close",),
        ("timed_out",),
        ("flushed_by_the_timer",),
        ("flushed_by_the_page_rule", "committed_by_the_page_rule"),
        ("left_alone_by_the_page_rule",),
        ("committed",),
        ("commits_failed", "unclean_for_a_commit"),
        ("files_without_a_buffer", "fast_failed"),
        ("files_prepared",),
        ("prepared_files_taken",),
        ("preparations_failed",),
        ("checkpoints_written",),
        ("sync_failed_under_group-commit", "sync_failed_under_flush"),
        ("sync_failed_under_flush()", "sync_failed_under_close()"),
    )

    @initialize(settings=settings_of_flushes())
    def open_store(self, settings: Settings) -> None:
        """Open a store on an empty disk."""
        self.start(settings)

    # ---- what producers and readers do ---------------------------------------------------------------------------

    @rule(several=_SOME_PUTS)
    def put_several(self, several: list[Put]) -> None:
        """Put a few small messages in a row, some of them to be answered later."""
        self._put(*several)

    @precondition(lambda self: not self.trial.closed)
    @rule(data=st.data(), count=st.integers(1, 6))
    def put_large(self, data: st.DataObject, count: int) -> None:
        """Put messages that fill files, so that new ones are needed."""
        puts = large_puts(self.settings)
        self._put(*(data.draw(puts, label="put") for _ in range(count)))

    @precondition(lambda self: not self.trial.closed)
    @rule(record=st.integers(0, 40))
    def get(self, record: int) -> None:
        """Get a message. It is served once it is committed, and not before."""
        self.carry_out(Get(record=record))

    def _put(self, *puts: Put) -> None:
        for put in puts:
            self.carry_out(put)

    @precondition(lambda self: not self.trial.closed)
    @rule(several=meetings(), put=plain_puts())
    def producers_meet(self, several: tuple[Concurrent, ...], put: Put) -> None:
        """Let two producers put at once. They wait for one flush, or commit their buffers at once."""
        self._make_sound()
        if self._has("commit"):
            self._go_on_in_a_buffer()
        self.carry_out(ReplicaIs(state="confirms"))  # otherwise the replica's answer would hide the disk's answer
        self._put(put)
        for meeting in several:
            self.carry_out(meeting)

    # ---- what services do ----------------------------------------------------------------------------------------

    @precondition(lambda self: not self.trial.closed)
    @rule(data=st.data())
    def a_service_steps(self, data: st.DataObject) -> None:
        """Let any service take a step, at any time."""
        step = data.draw(steps_of(self.trial.services), label="step")
        self.carry_out(step)
        event("step", payload=step.service)

    @precondition(lambda self: self._has("flush"))
    @rule(several=_SOME_PUTS, rounds=st.integers(1, 4), after_ms=st.sampled_from((500, 500, 10_000)))
    def the_timer_flushes(self, several: list[Put], rounds: int, after_ms: int) -> None:
        """Run rounds of the timed flush after a few puts; a late round flushes everything."""
        self._make_sound()
        for _ in range(rounds):
            self._put(*several)
            if self._has("commit"):
                self.carry_out(Step(service="commit", after_ms=200))
            self.carry_out(Step(service="flush", after_ms=after_ms))

    @precondition(lambda self: self._has("commit"))
    @rule(data=st.data(), several=_SOME_PUTS, after_ms=st.sampled_from((0, 100, 0, 200)))
    def the_pool_is_committed(self, data: st.DataObject, several: list[Put], after_ms: int) -> None:
        """Run rounds of the timed commit; a round soon after another follows the page rule."""
        self._make_sound()
        large = data.draw(large_puts(self.settings), label="put")
        for puts in (several, (large,), (large,), several):
            self._put(*puts)
            self.carry_out(Step(service="commit", after_ms=after_ms))

    @precondition(lambda self: self._has("commit"))
    @rule()
    def the_pool_runs_out(self) -> None:
        """Fill files without committing, until no buffer is left for the next one."""
        self._make_sound()
        for _ in range(2 * self.settings.pool_buffers + 2):
            self._put(Put(body_bytes=self.settings.file_bytes // 2 - 100))

    @precondition(lambda self: self._has("allocate"))
    @rule(data=st.data(), steps=st.integers(1, 3), after_ms=st.sampled_from((0, 1_000)))
    def a_file_is_prepared(self, data: st.DataObject, steps: int, after_ms: int) -> None:
        """Prepare the next file before it is needed, then use it."""
        self._make_sound()
        self._put(Put())
        for _ in range(steps):
            self.carry_out(Step(service="allocate", after_ms=after_ms))
        self._put(data.draw(large_puts(self.settings), label="put"))

    @precondition(lambda self: not self.trial.closed)
    @rule(several=_SOME_PUTS, after_ms=st.sampled_from((0, 60_000)))
    def the_checkpoint_is_written(self, several: list[Put], after_ms: int) -> None:
        """Flush all but the newest part of the log, then write the checkpoint."""
        self._put(*several)
        if self._has("flush"):
            self.carry_out(Step(service="flush", after_ms=after_ms))
            self._put(*several)
            self.carry_out(Step(service="flush", after_ms=500))
        self.carry_out(Step(service="flush-queues"))

    @precondition(lambda self: self._has("group-commit"))
    @rule(several=_SOME_PUTS, late_ms=st.sampled_from((5_000, 5_000, 4_999)))
    def puts_time_out(self, several: list[Put], late_ms: int) -> None:
        """Let puts wait for the disk until they time out, or almost, and flush after that.

        Later puts are answered by the flush of another put, and by a close.
        """
        self._make_sound()
        self._put(*map(_later, several))
        self.carry_out(Step(service="time-outs", after_ms=late_ms))
        self._put(_later(several[0]))
        self.carry_out(Step())
        self._put(_later(several[0]), Put(), _later(several[0]))
        self._close_and_open()

    @rule(replica=st.builds(ReplicaIs, state=st.sampled_from(("hangs", "confirms", "silent", "none"))))
    def a_replica_changes(self, replica: ReplicaIs) -> None:
        """Change the best replica: it confirms, disappears, gives up or never answers."""
        self.carry_out(replica)

    @precondition(lambda self: self.settings.role == "SYNC_MASTER")
    @rule(put=plain_puts(), late_ms=st.sampled_from((3_000, 2_999, 5_000)))
    def a_replica_never_answers(self, put: Put, late_ms: int) -> None:
        """Let a put wait for a replica until it times out; the disk may have answered before."""
        self._make_sound()
        self.carry_out(ReplicaIs(state="hangs"))
        self._put(_later(put))
        self.carry_out(Step(service="time-outs", after_ms=late_ms))
        self.carry_out(Step())

    # ---- obstacles ---------------------------------------------------------------------------------------------------

    @rule(data=st.data(), several=_SOME_PUTS)
    def a_sync_fails_under_some(self, data: st.DataObject, several: list[Put]) -> None:
        """Fail the next sync with EIO, whichever caller makes it: a service, a flush or a close."""
        self._make_sound()
        flushers = [Step(service=name, after_ms=10_000) for name in _FLUSHERS if self._has(name)]
        for flusher in data.draw(st.permutations((*flushers, *_ENDINGS)), label="flushers")[:2]:
            self._put(*several, _later(several[0]))
            if self._has("commit"):
                self.carry_out(Step(service="commit", after_ms=200))
            self.carry_out(FailSync())
            self.carry_out(flusher)
            self._close_and_open()

    @precondition(lambda self: self._has("commit"))
    @rule(data=st.data(), several=_SOME_PUTS)
    def a_commit_fails_under_some(self, data: st.DataObject, several: list[Put]) -> None:
        """End the write of a commit half-way. The next commit, if there is one, writes everything."""
        self._make_sound()
        self._go_on_in_a_buffer()
        committers = (Step(service="commit", after_ms=200), *_ENDINGS)
        for committer in data.draw(st.permutations(committers), label="committers")[:2]:
            self._put(*several)
            self.carry_out(FailWrite())
            self.carry_out(committer)
            if self.trial.closed:
                self.carry_out(Open())

    def _go_on_in_a_buffer(self) -> None:
        """Roll over to a file with a buffer, if one is free. A file found at an open has none."""
        for _ in range(2):
            if not self.trial.log.buffers:
                self._put(Put(body_bytes=self.settings.file_bytes * 3 // 4))

    def _close_and_open(self) -> None:
        """Close the store if it is open, and open it again."""
        if not self.trial.closed:
            self.carry_out(Close())
        self.carry_out(Open())

    @precondition(lambda self: self._has("allocate"))
    @rule(data=st.data(), full=st.booleans())
    def a_file_cannot_be_prepared(self, data: st.DataObject, full: bool) -> None:
        """Fill the disk or fail a sync while the next file is created.

        It is retried a second later.
        """
        self._make_sound()
        self._put(data.draw(large_puts(self.settings), label="put"))
        self.carry_out(DiskUsed(percent=100) if full else FailSync())
        self.carry_out(Step(service="allocate"))
        self.carry_out(DiskUsed(percent=0))
        for after_ms in (0, 999, 1):
            self.carry_out(Step(service="allocate", after_ms=after_ms))

    @precondition(lambda self: not self.trial.closed)
    @rule(data=st.data(), several=_SOME_PUTS)
    def power_fails_inside_a_step(self, data: st.DataObject, several: list[Put]) -> None:
        """Lose power while a service works."""
        self._put(*several)
        self.carry_out(data.draw(steps_of(self.trial.services), label="step"))
        self._lose_power(data, back=self._somewhere_inside(data))

    @precondition(lambda self: not self.trial.closed)
    @rule(data=st.data(), several=_SOME_PUTS, back=st.integers(0, 10))
    def process_dies_inside_a_step(self, data: st.DataObject, several: list[Put], back: int) -> None:
        """Kill the process while a service works.

        Committed bytes stay, bytes in a buffer are lost.
        """
        self._put(*several)
        self.carry_out(data.draw(steps_of(self.trial.services), label="step"))
        self.carry_out(Crash(kill=True, back=back))

    def _has(self, service: ServiceName) -> bool:
        return service in self.trial.services

    def _make_sound(self) -> None:
        """Open a closed store; close and reopen one that a failed sync made read-only."""
        if self.trial.closed:
            self.carry_out(Open())
        elif self.trial.log.poisoned:
            self._close_and_open()


def _later(put: Put) -> Put:
    """Return the put as one that waits for disk and replica, and is answered later."""
    return Put(body_bytes=put.body_bytes, fill=put.fill, later=True, advance_ms=put.advance_ms)
