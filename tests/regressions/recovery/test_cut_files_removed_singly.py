"""Recovery removes cut files one by one, the last one first.

Symptom: after a crash in recovery the first log file was gone and a later one still there: a gap, no prefix.
Cause: recovery removed several files under one directory sync, and a directory may lose any of several unlinks.
Fix: last file first, each removal durable before the next (impl/log/mapped_file_queue.py, drop_after).
Found by: the crash campaign, in a crash inside recovery.
"""

from tests.support.regressions import Attempt
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.parts import Parts
from tornpage.model.operations import Crash, Operation, Put
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.program.case import Settings

SETTINGS = Settings(file_bytes=4096)
FIRST, SECOND = (f"/store/commitlog/{base:020d}" for base in (0, 4096))
NOTHING_IN_THE_FIRST = Crash(survived={f"page {SECOND} 0": 1})


def crashes_in_recovery() -> list[tuple[Operation, ...]]:
    puts = (Put(body_bytes=3700), Put(body_bytes=3700))
    return [(*puts, NOTHING_IN_THE_FIRST, Crash(back=n, survived={f"unlink {FIRST}": 1})) for n in range(1, 30)]


class OneSyncForAll(MappedFileQueue):
    """The mistake: one sync for all removals."""

    def drop_after(self, index: int) -> None:
        removed = self.mapped[index + 1 :]
        del self.mapped[index + 1 :]
        files = self._maker._files
        for mapped in reversed(removed):
            mapped.close()
            files.unlink(mapped.path)
        files.sync_directory(self.directories.paths[0])


def test_a_crash_between_two_removals_leaves_no_gap(attempt: Attempt) -> None:
    for operations in crashes_in_recovery():
        assert attempt(operations, SETTINGS) is None


def test_one_sync_for_all_removals_leaves_a_gap(attempt: Attempt) -> None:
    mistake = Parts({MappedFileQueue: OneSyncForAll})
    broken = [attempt(operations, SETTINGS, mistake) for operations in crashes_in_recovery()]
    assert {error.contract for error in broken if isinstance(error, GuaranteeBroken)} == {1}
