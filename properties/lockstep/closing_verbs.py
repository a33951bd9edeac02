"""The verbs that make everything durable: flush and close, compared with the model as they return; and who comes while
the store is open.
"""

from impl.errors import StoreInUse
from impl.store import MessageStore
from model import flushing
from model.progress import save
from properties.contract import GuaranteeBroken, observed
from properties.disk.journal import DirectorySynced
from properties.judge.derived_files import index_is_right, queues_are_right
from properties.judge.extension_files import bit_maps_of, extensions_are_right
from properties.judge.judges import ROOT
from properties.judge.queue_judges import derived_on
from properties.lockstep.holding_verbs import HoldingVerbs
from properties.program.log_places import log_files

__all__ = ["ClosingVerbs"]


class ClosingVerbs(HoldingVerbs):
    """Flush and close of a trial."""

    def flush(self) -> None:
        """Flush a store that is open; a failed sync, or a commit that fails, is answered as such and moves nothing."""
        if self.closed:
            return
        first = len(self.files.events)
        after, durable = flushing.flush(
            self.log, sync_fails=bool(self.files.failing_syncs), write_fails=bool(self.files.failing_writes)
        )
        result = observed("flush", self.store.flush)
        if result.durable != durable:
            raise GuaranteeBroken(9, "a flush answers otherwise than the model", str(durable), str(result.durable))
        self.happened("sync_failed_under_flush()", after.poisoned and not self.log.poisoned)
        self.end_verb(first, after)
        self.compare_watermarks()

    def close(self) -> None:
        """Close, cleanly or as a store closes whose disk fails; nobody waits any longer, and nothing may leak."""
        if self.closed:
            return
        first = len(self.files.events)
        after, clean = flushing.close(
            self.log, sync_fails=bool(self.files.failing_syncs), write_fails=bool(self.files.failing_writes)
        )
        if not after.poisoned:
            self.files.failing_syncs = 0  # what it would hit is no sync of the log
        self.files.refused_files = 0
        observed("close", self.store.close)
        self.closed = True
        if clean:
            self.consumers = save(self.consumers)
        self.answer_all(after)
        self.happened("sync_failed_under_close()", after.poisoned and not self.log.poisoned)
        self.happened("unclean_for_a_commit", not clean and not after.poisoned)
        self.end_verb(first, after)
        self.note_what_the_page_cache_has()
        if self.files.leaks():
            raise GuaranteeBroken(11, "a closed store still holds files", "nothing", "; ".join(self.files.leaks()))
        if clean and self.queue_sync_failed:  # a file that failed may have been the checkpoint, which is written anew
            clean = self.store.read_only_reason is None
        if clean != (self.store.read_only_reason is None):
            reason = str(self.store.read_only_reason)
            raise GuaranteeBroken(2, "a close says otherwise than the model whether it was clean", str(clean), reason)
        if clean:
            self.clean_exit_is_durable()
        elif f"{ROOT}/abort" not in self.durable(self.files).files:
            raise GuaranteeBroken(2, "an exit that was not clean has removed its abort marker")

    def open_twice(self) -> None:
        """Have somebody else open the store that is open: refused, and nothing was touched (contract 14)."""
        if self.closed:
            return
        self.files.mark("another opener")
        before = len(self.files.journal)
        try:
            MessageStore.open(
                ROOT, self._config, files=self.files, clock=self.surroundings.clock, parts=self._components
            )
        except StoreInUse:
            if all(isinstance(entry, DirectorySynced) for entry in self.files.journal[before:]):
                return
            raise GuaranteeBroken(14, "a second opener is refused and has touched the disk already") from None
        except Exception as error:
            raise GuaranteeBroken(14, "a second opener is not told that the store is open", found=str(error)) from error
        raise GuaranteeBroken(14, "a second opener is let in")

    def clean_exit_is_durable(self, *, unused_may_stay: bool = False) -> None:
        """After a clean close all of the log is on disk and nothing else, with what is made from it (2, 4, 5), and the
        word that the exit was clean. Where the disk has refused to remove files, those of zeros may stay, and expired
        ones may be back with the power.
        """
        image, file_bytes = self.durable(self.files), self.settings.file_bytes
        stored = image.files
        bases = range(self._oldest, self.log.files * file_bytes, file_bytes)
        contents = {self.log_file(base): self.ledger.expected(base, self.log.end_offset) for base in bases}
        expired = {self.log_file(base) for base in range(self._oldest, self.log.oldest_offset, file_bytes)}
        unused = {path for path in log_files(stored) if path not in contents and not stored[path].strip(b"\0")}
        left = {path: stored[path] for path in log_files(stored) if not (unused_may_stay and path in unused)}
        expected = {path: content for path, content in contents.items() if path in left or path not in expired}
        if left != expected:
            raise GuaranteeBroken(2, "a clean exit left the log not durable, or files that it has no use for")
        if f"{ROOT}/abort" in stored:
            raise GuaranteeBroken(2, "a clean exit left its abort marker on disk")
        self.checkpoint_is_right(self.log)
        content, end, begin = derived_on(image), self.log.end_offset, self.log.min_offset
        queues_are_right(
            content, self.derived, end, settings=self.settings, min_offset=begin, was_harmed=self.was_harmed
        )
        index_is_right(content, self.derived, end, settings=self.settings, min_offset=begin)
        if self.settings.queue_ext:
            extensions_are_right(
                content,
                self.derived,
                self.log.end_offset,
                settings=self.settings,
                min_offset=self.log.min_offset,
                bit_map_of=bit_maps_of(self.settings),
            )
