"""The put machine: every way into the log, and everything that may stand in the way (contract 8, 9, 16, 17).

Messages, batches, delays, transactions and light queues; put at once, later, and by two producers at the same time;
with flags set, the disk full, replicas that fail, and files that end at every distance from a record.
"""

from typing import ClassVar

from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from properties.case import (
    Concurrent,
    DiskUsed,
    FailAppend,
    FailSync,
    Member,
    Put,
    PutBatch,
    ReplicaIs,
    Settings,
    Step,
    SwitchFlag,
)
from properties.machine import TrialMachine
from properties.put_strategies import (
    batches,
    concurrent_puts,
    odd_batches,
    settings_of_puts,
    special_puts,
    wide_batches,
)
from properties.strategies import odd_puts, puts

__all__ = ["PutMachine"]

_TWO = (Member(body_bytes=0), Member(body_bytes=1))


class PutMachine(TrialMachine):
    """One store that is put into in every way, beside its model."""

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

    @initialize(settings=settings_of_puts())
    def open_store(self, settings: Settings) -> None:
        """Open a store on an empty disk."""
        self.start(settings)

    # ---- what producers do ---------------------------------------------------------------------------------------

    @rule(put=special_puts())
    def put_special(self, put: Put) -> None:
        """Put a delayed, transactional or multi-dispatched message, at once or later."""
        self._put(put)

    @rule(put=puts())
    def put(self, put: Put) -> None:
        """Put an ordinary message."""
        self._put(put)

    @rule(put=odd_puts())
    def put_odd(self, put: Put) -> None:
        """Put something at a limit."""
        self._put(put)

    @rule(batch=batches())
    def put_batch(self, batch: PutBatch) -> None:
        """Put a batch."""
        self._put(batch)

    @rule(batch=odd_batches())
    def put_odd_batch(self, batch: PutBatch) -> None:
        """Put a batch that is spoilt or at a limit."""
        self._put(batch)

    @precondition(lambda self: self.settings.file_bytes > 40_000)
    @rule(batch=wide_batches())
    def put_wide_batch(self, batch: PutBatch) -> None:
        """Put a batch whose properties are near the limit only together."""
        self._put(batch)

    @precondition(lambda self: not self.trial.closed and self.trial.log.files > 0)
    @rule(left_bytes=st.integers(0, 120), batch=st.booleans())
    def put_close_to_the_end(self, left_bytes: int, batch: bool) -> None:
        """Leave so many bytes in the file, then put: blanks of every size, and none where the record just fits."""
        log, file_bytes = self.trial.log, self.settings.file_bytes
        overhead_bytes = 92 + (20 if self.settings.trailer else 0)
        body_bytes = file_bytes - log.end_offset % file_bytes - overhead_bytes - left_bytes
        if body_bytes >= 0:
            self._put(Put(body_bytes=body_bytes, properties=""))
            self._put(PutBatch(members=_TWO) if batch else Put())
            event("blank", payload=f"{left_bytes} bytes left")

    def _put(self, put: Put | PutBatch) -> None:
        before = len(self.trial.log.records)
        self.carry_out(put)
        event(put.op, payload="stored" if len(self.trial.log.records) > before else "refused")

    @rule()
    def group_commit_steps(self) -> None:
        """Group commit answers whoever waits."""
        self.carry_out(Step())

    @precondition(lambda self: not self.trial.closed)
    @rule(operation=concurrent_puts())
    def put_concurrently(self, operation: Concurrent) -> None:
        """Two producers put at the same time."""
        self.carry_out(operation)

    # ---- what stands in the way ----------------------------------------------------------------------------------

    @precondition(lambda self: not self.trial.closed)
    @rule(bit=st.sampled_from((1, 2, 4, 8)))
    def a_flag_is_set(self, bit: int) -> None:
        """Set a running flag, put, clear it again."""
        self.carry_out(SwitchFlag(bit=bit, on=True))
        self.carry_out(Put())
        self.carry_out(SwitchFlag(bit=bit, on=False))

    @precondition(lambda self: not self.trial.closed)
    @rule(percent=st.sampled_from((95, 91, 100, 90, 0)))
    def the_disk_is_used(self, percent: int) -> None:
        """The disk fills, a put comes, the disk has room again."""
        self.carry_out(DiskUsed(percent=percent))
        self.carry_out(Put())
        self.carry_out(DiskUsed(percent=0))

    @rule(replica=st.builds(ReplicaIs, state=st.sampled_from(("confirms", "none", "behind", "silent"))))
    def a_replica_changes(self, replica: ReplicaIs) -> None:
        """The best replica comes, goes, falls behind or falls silent."""
        self.carry_out(replica)

    @precondition(lambda self: not self.trial.closed)
    @rule(advance_ms=st.sampled_from((1, 2000)))
    def the_mapped_file_refuses(self, advance_ms: int) -> None:
        """The next append fails; a put after it is as welcome as ever."""
        self.carry_out(FailAppend())
        self.carry_out(Put())
        self.carry_out(Put(advance_ms=advance_ms))

    @precondition(lambda self: not self.trial.closed)
    @rule(put=puts())
    def a_sync_fails_under_a_put(self, put: Put) -> None:
        """The sync of a put, or of the file made for it, answers EIO."""
        self.carry_out(FailSync())
        self._put(put)
