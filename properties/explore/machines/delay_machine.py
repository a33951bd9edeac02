"""Test delayed delivery: messages come when due and in order, whatever happens (12, 13).

Clocks are set forward and back. Puts of copies are refused. Power fails between two copies and inside a save. Files
expire at the head of a level. The progress file is replaced from outside, and a slave becomes a master. With
asynchronous delivery, copies wait for disk and replica.
"""

from typing import ClassVar, Literal

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tornpage.model.operations import (
    ChangeRole,
    Clean,
    ClockStep,
    Close,
    DelayOffsetsAre,
    DiskUsed,
    FailAppend,
    FailSync,
    FailWrite,
    Flush,
    GetMessage,
    Open,
    Put,
    ReplicaIs,
    Step,
    SwitchFlag,
)
from tornpage.properties.explore.machines.machine import REPUT, TrialMachine
from tornpage.properties.explore.machines.strategies import one_of
from tornpage.properties.program.case import Settings

__all__ = ["DelayMachine"]

_SAVE = Step(service="progress", after_ms=10_000)
_TOPICS = ("T", "T", "U", "t" * 127, "%RETRY%g", "a\x02b", "RMQ_SYS_TRANS_HALF_TOPIC", "SCHEDULE_TOPIC_XXXX")
_PROPERTIES = (
    "DELAY\x011",
    "DELAY\x012\x02TAGS\x01TagA",
    "WAIT\x01true\x02DELAY\x011\x02KEYS\x01k",
    "DELAY\x013\x02WAIT\x01false",
    "",
    "DELAY\x0199\x02UNIQ_KEY\x01u",
    "DELAY\x01x",
    "INNER_MULTI_DISPATCH\x01%LMQ%a,U\x02DELAY\x011",
    "INNER_MULTI_DISPATCH\x01..,U\x02DELAY\x011",
    "REAL_TOPIC\x01V\x02REAL_QID\x01-1\x02a__CRC32#\x0112345678901\x02DELAY\x011",
)
_NO_COPY = (Put(properties="INNER_MULTI_DISPATCH\x01..,U\x02DELAY\x011"), Put(topic="a\x02b", properties="DELAY\x011"))
_PAUSES_MS = (0, 1, 100, 900, 999, 1_000, 2_000, 3_000, 10_000)


def _settings() -> st.SearchStrategy[Settings]:
    """Draw stores with small files and three levels of one, two and three seconds."""
    return st.builds(
        Settings,
        file_bytes=st.sampled_from((4096, 1024, 2048)),
        record_bytes_max=st.sampled_from((1 << 20, 260)),
        sync_flush=st.booleans(),
        trailer=st.sampled_from((True, True, False)),
        files_max=st.sampled_from((1000, 1000, 4)),
        disk=st.sampled_from(("posix-strict", "journal")),
        multi_dispatch=(dispatches := st.booleans()),
        light_queues=dispatches,
        light_queues_max=st.sampled_from((20_000, 0)),
        delay_levels=st.just(3),
        pool_buffers=st.sampled_from((0, 0, 2)),
        files_ahead=st.sampled_from((0, 1)),
        queue_units=st.sampled_from((16, 2)),
        queue_ext=st.sampled_from((False, False, True)),
        java_delays=st.sampled_from((False, True)),
        role=st.sampled_from(("ASYNC_MASTER", "ASYNC_MASTER", "SYNC_MASTER")),
        pending_copies=st.sampled_from((0, 0, 1, 3, 20)),
    )


def _puts() -> st.SearchStrategy[Put]:
    """Draw messages, most of them delayed.

    The copies of a few are too long or have no destination.
    """
    return st.builds(
        Put,
        topic=one_of((*("T",) * 4, *_TOPICS)),
        queue_id=st.sampled_from((0, 0, 1)),
        body_bytes=st.sampled_from((10, 40, 100, 300, 60, 50)),
        fill=st.integers(0, 3),
        properties=one_of((*_PROPERTIES[:2] * 4, *_PROPERTIES)),
        sys_flag=st.sampled_from((0, 0, 0, 0x04, 0x08)),
        store_v6=st.sampled_from((False, False, True)),
        advance_ms=st.sampled_from((1, 0, 500)),
    )


_SOME_PUTS = st.lists(_puts(), min_size=1, max_size=8)


class DelayMachine(TrialMachine):
    """Run one store that delivers, beside its model."""

    must_run: ClassVar[tuple[str, ...]] = (
        "put",
        "step",
        "clock_step",
        "delay_offsets_are",
        "change_role",
        "fail_append",
        "clean",
        "close",
        "open",
        "crash",
    )
    must_happen: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("delayed_delivered",),
        ("delayed_delivered_in_a_row",),
        ("delayed_not_yet",),
        ("delayed_skipped",),
        ("delivery_refused",),
        ("delay_offsets_saved",),
        ("delay_offsets_corrected",),
        ("delivered_after_recovery",),
        ("slave_was_sent_progress",),
        ("became_SLAVE",),
        ("copies_awaited",),
        ("copies_answered",),
        ("line_full",),
    )

    @initialize(settings=_settings())
    def open_store(self, settings: Settings) -> None:
        """Open a store on an empty disk."""
        self.start(settings)

    # ---- what producers and time do ------------------------------------------------------------------------------

    def _put(self, several: list[Put]) -> None:
        for put in several:
            self.carry_out(put)
        self._bring_into_queues()

    def _deliver(self, after_ms: int) -> None:
        self.carry_out(Step(service="schedule", after_ms=after_ms))

    @precondition(lambda self: not self.trial.closed)
    @rule(several=_SOME_PUTS, flushed=st.booleans())
    def put_several(self, several: list[Put], flushed: bool) -> None:
        """Put a few messages in a row and dispatch them."""
        self._put(several)
        if flushed:
            self.carry_out(Flush())

    @rule(after_ms=st.sampled_from(_PAUSES_MS))
    def time_passes(self, after_ms: int) -> None:
        """Let time pass and deliver what is due."""
        self._deliver(after_ms)

    @precondition(lambda self: not self.trial.closed)
    @rule(several=_SOME_PUTS, after_ms=st.sampled_from((1_000, 3_000)), saved=st.booleans())
    def messages_become_due(self, several: list[Put], after_ms: int, saved: bool) -> None:
        """Put, wait, deliver, and read the delivered messages."""
        self._put(several)
        self._deliver(after_ms)
        self.carry_out(REPUT)
        self.carry_out(GetMessage(queue=0))
        if saved:
            self.carry_out(_SAVE)

    @precondition(lambda self: not self.trial.closed)
    @rule(after_ms=st.sampled_from((0, 1_000, 10_000)), fails=st.sampled_from(("", "", "sync", "write")))
    def progress_is_saved(self, after_ms: int, fails: str) -> None:
        """Save progress on a disk that may fail."""
        if fails:
            self.carry_out(FailSync() if fails == "sync" else FailWrite())
        self.carry_out(Step(service="progress", after_ms=after_ms))

    @rule(by_ms=st.sampled_from((-1, -1_000, -3_600_000, 500, 1_000, 3_600_000)), several=_SOME_PUTS)
    def set_clock(self, by_ms: int, several: list[Put]) -> None:
        """Set the clock. Earlier and later messages are delivered by the new time."""
        if not self.trial.closed:
            self._put(several)
        self.carry_out(ClockStep(by_ms=by_ms))
        self._deliver(0)

    # ---- obstacles ---------------------------------------------------------------------------------------------------

    @precondition(lambda self: not self.trial.closed)
    @rule(several=_SOME_PUTS, trouble=st.sampled_from(("append", "append", "disk", "flag")), tries=st.integers(0, 3))
    def copies_are_refused(self, several: list[Put], trouble: str, tries: int) -> None:
        """Refuse the put of a copy and its retries for some time, then allow it."""
        self._put(several)
        match trouble:
            case "append":
                self.carry_out(FailAppend())
            case "disk":
                self.carry_out(DiskUsed(percent=95))
            case _:
                self.carry_out(SwitchFlag(bit=2, on=True))
        self._deliver(3_000)
        for _ in range(tries):
            self._deliver(100)
        if trouble == "disk":
            self.carry_out(DiskUsed(percent=0))
        self.carry_out(SwitchFlag(bit=2, on=False))
        self._deliver(100)

    @precondition(lambda self: not self.trial.closed and self.settings.java_delays)
    @rule(put=_puts(), refused=st.sampled_from(_NO_COPY))
    def copy_is_never_storable(self, put: Put, refused: Put) -> None:
        """Put a message whose copy no store accepts, as RocketMQ does.

        Its level must continue after it.
        """
        self._put([refused, put])
        self._deliver(3_000)

    @precondition(lambda self: not self.trial.closed)
    @rule(several=_SOME_PUTS, delivered=st.booleans(), put=_puts())
    def messages_expire(self, several: list[Put], delivered: bool, put: Put) -> None:
        """Fill the disk, so that log files with delivered or undelivered messages are deleted."""
        self._put(several * 2)
        if delivered:
            self._deliver(3_000)
        self.carry_out(Flush())
        self.carry_out(Clean(percent=88))
        self._put([put])
        self._deliver(1_000)

    @precondition(lambda self: not self.trial.log.poisoned)
    @rule(several=_SOME_PUTS, kind=st.sampled_from(("moved", "moved", "lost", "garbage")),
          by=st.sampled_from((1, 2, 100, -1, -100)))  # fmt: skip
    def progress_is_replaced(self, several: list[Put], **drawn: int) -> None:
        """Replace the progress file from outside, then put messages, which must be delivered."""
        self.carry_out(DelayOffsetsAre(**drawn))  # type: ignore[arg-type]
        if not self.trial.closed:
            self._put(several)
            self._deliver(3_000)

    @precondition(lambda self: not self.trial.log.poisoned and not self.trial.waits_for_answers)
    @rule(several=_SOME_PUTS, by=st.sampled_from((1, 2, 100, -1)))
    def become_master(self, several: list[Put], by: int) -> None:
        """Send a slave the progress of its master, then promote it."""
        if not self.trial.closed:
            self._put(several)
            self._deliver(3_000)
        self.carry_out(ChangeRole("SLAVE"))
        self.carry_out(DelayOffsetsAre(by=by))
        self.carry_out(ChangeRole("ASYNC_MASTER"))
        self._deliver(3_000)

    @precondition(lambda self: not self.trial.closed)
    @rule(several=_SOME_PUTS, replica=st.sampled_from(("hangs", "hangs", "silent", "behind", "none")),
          late=st.booleans())  # fmt: skip
    def copies_wait_for_answers(
        self, several: list[Put], replica: Literal["hangs", "silent", "behind", "none"], late: bool
    ) -> None:
        """Let disk and replica answer a copy late or never; then the level must continue."""
        self._put(several * 2)
        self.carry_out(ReplicaIs(replica))
        self._deliver(3_000)
        self._deliver(100)
        self.carry_out(Step(service="time-outs", after_ms=5_000) if late else Step(service="group-commit"))
        self.carry_out(ReplicaIs("confirms"))
        self._deliver(0)

    # ---- crashes -----------------------------------------------------------------------------------------------------

    @precondition(lambda self: not self.trial.closed)
    @rule(data=st.data(), several=_SOME_PUTS, saves=st.booleans(), fails=st.booleans(), kill=st.booleans())
    def crash_inside(self, data: st.DataObject, several: list[Put], saves: bool, fails: bool, kill: bool) -> None:
        """Lose power or kill the process between two copies, or inside a save that may fail."""
        self._put(several * 2)
        self.carry_out(Flush())
        self._deliver(3_000)
        if saves:
            if fails:
                self.carry_out(FailSync())
            self.carry_out(_SAVE)
        span = self.trial.spans[-1]
        events = span.last - span.first
        back = data.draw(st.integers(0, events) | st.integers(events // 3, 2 * events // 3), label="back")
        self._break_off(data, back=back, kill=kill)
        self._deliver(3_000)

    @precondition(lambda self: not self.trial.closed)
    @rule(several=_SOME_PUTS)
    def store_reopens(self, several: list[Put]) -> None:
        """Restart cleanly; nothing may be delivered twice."""
        self._put(several)
        self._deliver(2_000)
        self.carry_out(Close())
        self.carry_out(Open())
        self._deliver(3_000)
