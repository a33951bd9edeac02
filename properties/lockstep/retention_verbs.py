"""The verbs that delete, compared with the model as they return: clean-up, topics, and the readers in the way.

The clean-up makes a whole run for each operation, and no time passes in it, so a crash may fall behind any file of it.
"""

from impl.errors import BufferReleased
from model import progress, retention
from model.operations import Clean
from model.state import CommitLog
from properties.contract import GuaranteeBroken, observed
from properties.judge.reads import compare_query
from properties.lockstep.closing_verbs import ClosingVerbs
from properties.lockstep.trial_state import Held

__all__ = ["RetentionVerbs"]

_HOUR_MS = 3_600_000
_RUN_MS = 10_000
_STEPS_OF_A_RUN_MAX = 200


class RetentionVerbs(ClosingVerbs):
    """Clean-up and deletions of a trial."""

    # ---- clean-up ------------------------------------------------------------------------------------------------

    def clean(self, operation: Clean) -> None:
        """Let the clean-up make a run; nothing happens while the store is closed or a disk has broken dispatch off."""
        first, after = len(self.files.events), self.log
        self.now_ms += operation.after_hours * _HOUR_MS
        if not self.closed and not self.is_partly_dispatched:
            after = self._cleaned(operation)
        self.end_verb(first, after)
        self.compare_watermarks()

    def _cleaned(self, operation: Clean) -> CommitLog:
        before = self.log
        self.files.failing_syncs = 0  # what it would hit is no sync of the log
        if operation.percent:
            self.surroundings.use_disk(self.files, operation.percent)
        if operation.manual:
            observed("delete_expired_files_manually", self.store.delete_expired_files_manually)
            before = retention.ask_for_runs(before)
        after, cleaned = retention.clean(
            before,
            layout=self.layout,
            now_ms=self.now_ms,
            percent=self.surroundings.percent_used(self.files),
            held=self._held_files(),
        )
        self._makes_a_run_inside_a_query(operation.query, after)
        self.happened("log_files_deleted", cleaned.files)
        self.happened("urgent_run", cleaned.urgent and cleaned.files > 0)
        self.happened("asked_for_run", operation.manual and cleaned.files > 0)
        self.happened("log_file_hangs", after.hanging is not None)
        self.happened("hanging_file_deleted", before.hanging is not None and after.hanging is None)
        self.happened("buffers_taken_back", cleaned.forced)
        self.happened("disk_full_seen_by_clean_up", bool(after.flags & ~before.flags & retention.DISK_FULL))
        return after

    def _makes_a_run_inside_a_query(self, number: int, after: CommitLog) -> None:
        """Have the index find something for a key, make the run, and compare what the query brings of what is left."""
        keys = list(self.derived.keys) if number >= 0 and self._may_read() else []
        if keys:
            key, self.surroundings.interruption = keys[number % len(keys)], self._makes_a_run
            compare_query(self.store, after, self.layout, key, stored=self.ledger.stored)
            is_made, self.surroundings.interruption = self.surroundings.interruption is None, None
            self.happened("cleaned_inside_a_query", is_made)
            if is_made:
                return
        self._makes_a_run()

    def _makes_a_run(self) -> None:
        """Step the service until its run is over (contract 10, 16)."""
        service = self.surroundings.service("clean")
        if service is None:
            raise GuaranteeBroken(16, "the store lacks a service", "clean", "none of that name")
        for _ in range(_STEPS_OF_A_RUN_MAX):
            found = observed("step", service.step)
            if found is None or found.due_ms is None:
                raise GuaranteeBroken(16, "the clean-up of an open store was stopped")
            if found.failed:
                raise GuaranteeBroken(10, "the clean-up fails on a disk that refuses nothing")
            if found.due_ms >= found.now_ms + _RUN_MS:
                return
        raise GuaranteeBroken(16, "a run of the clean-up does not end", found=f"{_STEPS_OF_A_RUN_MAX} steps")

    def everybody_is_waited_for(self) -> None:
        """Contract 16: the clean-up, too, will take another step."""
        super().everybody_is_waited_for()
        if not self.closed:
            self.require_will_step("clean", by_ms=None)

    # ---- topics --------------------------------------------------------------------------------------------------

    def delete_topics(self, in_use: tuple[str, ...]) -> None:
        """Delete all topics but those in use, and compare which were deleted (contract 10)."""
        first, after = len(self.files.events), self.log
        if not self.closed and not self.is_partly_dispatched:
            self.files.failing_syncs = 0
            after, deleted = retention.delete_topics(self.log, layout=self.layout, in_use=in_use)
            found = observed("clean_unused_topics", lambda: self.store.clean_unused_topics(in_use))
            if found != deleted:
                raise GuaranteeBroken(10, "other topics were deleted than the model's", str(deleted), str(found))
            self.derived = self.derived.with_deleted(after.deleted, after.end_offset)
            self.consumers = progress.delete_topics(self.consumers, deleted)
            self.happened("topics_deleted", len(deleted))
        self.end_verb(first, after)
        self.compare_watermarks()

    def has_a_queue_of_numbers_only(self) -> bool:
        """Whether some queue has lost all its records: its last number is nowhere but in its file."""
        return any(
            memory.first_at(self.log.min_offset) >= count
            for _, memory, count in self.derived.queues_at(self.log.end_offset)
        )

    # ---- readers -------------------------------------------------------------------------------------------------

    def hold_buffer(self, number: int) -> None:
        """Take a buffer of a record that can be read, and keep it."""
        readable = [record for record in self.log.retained if record.end_offset <= self.log.readable_end]
        if self.closed or not readable:
            return
        record = readable[number % len(readable)]
        buffer = observed("select_message_by_offset", lambda: self.store.select_message_by_offset(record.offset))
        if buffer is None:
            raise GuaranteeBroken(8, f"the record at {record.offset} cannot be read")
        self._held.append(Held(buffer, record))

    def release_buffer(self) -> None:
        """Give the oldest buffer back."""
        if self._held:
            self._held.pop(0).buffer.release()

    def _held_files(self) -> frozenset[int]:
        """Return where the files begin that readers hold a buffer of."""
        file_bytes = self.settings.file_bytes
        return frozenset(each.record.offset // file_bytes * file_bytes for each in self._held)

    def held_buffers_are_right(self) -> None:
        """Contract 11: a buffer shows its record until it is given back, or its file is gone; then it says so."""
        for each in list(self._held):
            is_gone = self.closed or each.record.offset < self.log.oldest_offset
            try:
                shows = bytes(each.buffer)
            except BufferReleased:
                if not is_gone:
                    raise GuaranteeBroken(11, f"the buffer at {each.record.offset} was taken back too soon") from None
                self._held.remove(each)
                continue
            if is_gone:
                raise GuaranteeBroken(11, f"a buffer shows a record at {each.record.offset} whose file is gone")
            if shows != self.ledger.stored(each.record):
                raise GuaranteeBroken(11, f"the buffer at {each.record.offset} shows other bytes than were put")
