"""Test every way into the log and every obstacle (contract 8, 9, 16, 17).

Messages, batches, delays, transactions and light queues are put at once, asynchronously, and by two producers at the
same time. Obstacles are set flags, a full disk, failing replicas, and files that end at every distance from a record.
"""

from dataclasses import replace
from typing import ClassVar

from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tornpage.model.batch import messages_of
from tornpage.model.message import record_bytes
from tornpage.model.operations import (
    Close,
    Concurrent,
    DiskUsed,
    FailAppend,
    FailSync,
    Member,
    Put,
    PutBatch,
    ReplicaIs,
    Step,
    SwitchFlag,
)
from tornpage.model.payloads import batch_of, message_of
from tornpage.properties.explore.machines.machine import TrialMachine
from tornpage.properties.explore.machines.put_strategies import (
    any_puts,
    batches,
    concurrent_puts,
    odd_batches,
    settings_of_puts,
    special_puts,
    wide_batches,
)
from tornpage.properties.explore.machines.strategies import odd_puts, puts
from tornpage.properties.program.case import Settings

__all__ = ["PutMachine"]

_TWO = PutBatch(members=(Member(body_bytes=0), Member(body_bytes=1)))
_FILLERS_MAX = 4
_SOME_PUTS = st.lists(any_puts(), min_size=1, max_size=3)


class PutMachine(TrialMachine):
    """Run one store that is put into in every way, beside its model."""

    must_run: ClassVar[tuple[str, ...]] = (
        "put",
        "put_batch",
        "step",
        "concurrent",
        "switch_flag",
        "disk_used",
        "replica_is",
        "fail_append",
        "close",
        "open",
        "crash",
    )
    must_happen: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("answered_by_group_commit",),
        ("batches_stored",),
        ("answered_UNKNOWN_ERROR",),
        ("answered_SLAVE_NOT_AVAILABLE", "answered_FLUSH_SLAVE_TIMEOUT"),
    )

    @initialize(settings=settings_of_puts())
    def open_store(self, settings: Settings) -> None:
        """Open a store on an empty disk."""
        self.start(settings)

    # ---- what producers do ---------------------------------------------------------------------------------------

    @precondition(lambda self: not self.trial.closed)
    @rule(put=special_puts())
    def put_special(self, put: Put) -> None:
        """Put a delayed, transactional or multi-dispatched message, at once or asynchronously."""
        self._put(put)

    @rule(put=puts())
    def put(self, put: Put) -> None:
        """Put an ordinary message."""
        self._put(put)

    @precondition(lambda self: not self.trial.closed)
    @rule(put=odd_puts())
    def put_odd(self, put: Put) -> None:
        """Put a message at a limit."""
        self._put(put)

    @rule(batch=batches())
    def put_batch(self, batch: PutBatch) -> None:
        """Put a batch."""
        self._put(batch)

    @precondition(lambda self: not self.trial.closed)
    @rule(batch=odd_batches())
    def put_odd_batch(self, batch: PutBatch) -> None:
        """Put a batch that is malformed or at a limit."""
        self._put(batch)

    @precondition(lambda self: not self.trial.closed and self.settings.file_bytes > 40_000)
    @rule(batch=wide_batches())
    def put_wide_batch(self, batch: PutBatch) -> None:
        """Put a batch whose properties are near the limit only when merged."""
        self._put(batch)

    @precondition(lambda self: not self.trial.closed and self.settings.multi_dispatch)
    @rule(sys_flag=st.sampled_from((0x04, 0x0C, 0x08)), names=st.sampled_from(("%LMQ%a", "T,%LMQ%a")))
    def put_dispatched_twice(self, sys_flag: int, names: str) -> None:
        """Put a message into further queues, first as part of a transaction.

        It may not count there then.
        """
        put = Put(properties=f"INNER_MULTI_DISPATCH\x01{names}")
        self._put(replace(put, sys_flag=sys_flag))
        self._put(put)

    @precondition(lambda self: not self.trial.closed and self.trial.log.files > 0)
    @rule(left_bytes=st.integers(0, 120), batch=st.booleans())
    def put_close_to_the_end(self, left_bytes: int, batch: bool) -> None:
        """Leave `left_bytes` in the file, then put.

        This gives blanks of every size, and no blank where the record just fits.
        """
        self._put_with_room(left_bytes, _TWO if batch else Put())

    @precondition(lambda self: not self.trial.closed and self.trial.log.files > 0)
    @rule(slack_bytes=st.sampled_from((*(8, 7, 8) * 4, *range(-4, 13))), put=st.sampled_from((_TWO, Put())))
    def put_that_just_fits(self, slack_bytes: int, put: Put | PutBatch) -> None:
        """Put a record that would leave `slack_bytes` in the file.

        8 bytes have to remain; with fewer the record goes to the next file.
        """
        self._put_with_room(self._stored_bytes(put) + slack_bytes, put)

    def _put_with_room(self, left_bytes: int, put: Put | PutBatch) -> None:
        """Fill the file except `left_bytes` with as few puts as the record limit allows, then put."""
        room_bytes = self.settings.file_bytes - self.trial.log.end_offset % self.settings.file_bytes - left_bytes
        count = -(-room_bytes // self.settings.record_bytes_max)
        overhead_bytes = self._stored_bytes(Put())
        if not 0 < count <= _FILLERS_MAX or room_bytes < count * overhead_bytes:
            return
        for number in range(count):
            size_bytes = (room_bytes + number) // count
            self._put(Put(body_bytes=size_bytes - overhead_bytes))
        self._put(put)
        event("blank", payload=f"{left_bytes} bytes left")

    def _stored_bytes(self, put: Put | PutBatch) -> int:
        """Return what an accepted put adds to the log, without blanks."""
        if isinstance(put, Put):
            return record_bytes(message_of(put), trailer=self.settings.trailer)
        messages = messages_of(batch_of(put), layout=self.trial.pair.layout)
        assert isinstance(messages, tuple)
        return sum(record_bytes(message, trailer=self.settings.trailer) for message in messages)

    def _put(self, put: Put | PutBatch) -> None:
        before = len(self.trial.log.records)
        self.carry_out(put)
        event(put.op, payload="stored" if len(self.trial.log.records) > before else "refused")

    @precondition(lambda self: not self.trial.closed and self.settings.sync_flush)
    @rule()
    def group_commit_steps(self) -> None:
        """Run a step of group commit, which answers waiting puts, or flushes if there are none."""
        self.carry_out(Step())

    @precondition(lambda self: self._may_flush())
    @rule(several=_SOME_PUTS, closes=st.sampled_from((False, False, True)))
    def puts_wait_together(self, several: list[Put | PutBatch], closes: bool) -> None:
        """Let a few producers wait. One flush answers all, or a close ends the wait."""
        for put in several:
            self._put(replace(put, later=True))
        self.carry_out(Close() if closes else Step())

    @precondition(lambda self: self._may_flush())
    @rule(several=_SOME_PUTS)
    def a_sync_fails_under_many(self, several: list[Put | PutBatch]) -> None:
        """Let a few producers wait, and fail their common flush with EIO."""
        for put in several:
            self._put(replace(put, later=True))
        self.carry_out(FailSync())
        self.carry_out(Step())

    def _may_flush(self) -> bool:
        return not self.trial.closed and self.settings.sync_flush and not self.trial.log.poisoned

    @precondition(lambda self: not self.trial.closed)
    @rule(operation=concurrent_puts())
    def put_concurrently(self, operation: Concurrent) -> None:
        """Let two producers put at the same time."""
        self.carry_out(operation)

    # ---- obstacles ---------------------------------------------------------------------------------------------------

    @precondition(lambda self: not self.trial.closed)
    @rule(bit=st.sampled_from((1, 2, 4, 8)), put=any_puts())
    def a_flag_is_set(self, bit: int, put: Put | PutBatch) -> None:
        """Set a running flag, put, clear it again."""
        self.carry_out(SwitchFlag(bit=bit, on=True))
        self._put(put)
        self.carry_out(SwitchFlag(bit=bit, on=False))

    @precondition(lambda self: not self.trial.closed)
    @rule(percent=st.sampled_from((95, 91, 100, 90, 0)), put=any_puts())
    def the_disk_is_used(self, percent: int, put: Put | PutBatch) -> None:
        """Fill the disk, put, and free the disk again."""
        self.carry_out(DiskUsed(percent=percent))
        self._put(put)
        self.carry_out(DiskUsed(percent=0))

    @rule(replica=st.builds(ReplicaIs, state=st.sampled_from(("confirms", "none", "behind", "silent"))))
    def a_replica_changes(self, replica: ReplicaIs) -> None:
        """Change the best replica: it confirms, disappears, falls behind or is silent."""
        self.carry_out(replica)

    @precondition(lambda self: not self.trial.closed)
    @rule(advance_ms=st.sampled_from((1, 2000)), put=any_puts())
    def the_mapped_file_refuses(self, advance_ms: int, put: Put | PutBatch) -> None:
        """Fail the next append. A later put must succeed."""
        self.carry_out(FailAppend())
        self._put(put)
        self.carry_out(Put(advance_ms=advance_ms))

    @precondition(lambda self: not self.trial.closed)
    @rule(put=puts())
    def a_sync_fails_under_a_put(self, put: Put) -> None:
        """Fail the sync of a put, or of the file created for it, with EIO."""
        self.carry_out(FailSync())
        self._put(put)
