"""A killed removal of a cut file is made durable by the next open.

Symptom: a log file that recovery had removed was still on disk and could reappear (contract 3, hole H8).
Cause: recovery was killed between removing the file and syncing its directory. The next recovery saw nothing to remove
and synced nothing.
Fix: every writable open syncs the log directory before it removes anything (impl/store.py, _prepare).
Found by: the crash campaign; this is its shrunk case.
"""

from tests.support.regressions import Attempt
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.log.log_files import LogFileMaker
from tornpage.impl.parts import Parts
from tornpage.model.operations import Crash, Operation, Put
from tornpage.properties.program.case import Settings

SETTINGS = Settings()
FIRST, SECOND = (f"/store/commitlog/{base:020d}" for base in (0, 16384))
TORN = Crash(survived={f"page {FIRST} 0": 1, f"page {FIRST} 1": 1, f"page {FIRST} 2": 2, f"page {SECOND} 1": 1})


def kills_in_recovery() -> list[tuple[Operation, ...]]:
    puts = (Put(body_bytes=8236), Put(body_bytes=4432), Put(body_bytes=4087))
    return [(*puts, TORN, Crash(kill=True, back=back)) for back in range(1, 30)]


class RemovalIsNotSynced(LogFileMaker):
    """The mistake: a removal does not sync the name."""

    def remove(self, mapped: MappedFile) -> None:
        mapped.close()
        self._files.unlink(mapped.path)


def test_a_killed_removal_is_made_durable_by_the_next_open(attempt: Attempt) -> None:
    for operations in kills_in_recovery():
        assert attempt(operations, SETTINGS) is None


def test_a_removal_left_to_chance_can_come_back(attempt: Attempt) -> None:
    mistake = Parts({LogFileMaker: RemovalIsNotSynced})
    broken = [attempt(operations, SETTINGS, mistake) for operations in kills_in_recovery()]
    assert {error.contract for error in broken if error is not None} == {3}
