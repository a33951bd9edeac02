"""The log of the sync fault lies in order on any processor.

Symptom: one of thirty runs of the fault `sync-eio` ended in "... lies behind the place that is to fail" and exit 4.
Cause: a mistake of the lab. ext4 takes the blocks of small files from a pool of the current processor. The system moved
the store to another processor, and an older log file lay after the newest, where the disk was to fail.
Fix: the store stays on one processor.
Found by: the deep test of real faults over many seeds.
"""

import os
from multiprocessing import get_context

import pytest

from tornpage.impl.io.files import OpenFile
from tornpage.properties.contract import Verdict
from tornpage.properties.explore.real_faults import sync_eio
from tornpage.properties.explore.real_faults.run import run_faults


class Moving(sync_eio.WatchedFiles):
    """Make the first log file on the last usable processor, and all others on the first."""

    def allocate(self, file: OpenFile, size_bytes: int) -> None:
        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {max(allowed) if file.path.endswith("/commitlog/" + "0" * 20) else min(allowed)})
        super().allocate(file, size_bytes)
        os.sched_setaffinity(0, allowed)


def outcome(seed: int) -> tuple[bool, str]:
    """Return whether the fault holds or cannot be made here, and its row.

    It runs in a process of one thread.
    """
    (fault,) = run_faults(["sync-eio"], seed=seed, progress=lambda name: None).faults
    return fault.verdict is Verdict.HOLDS or bool(fault.skipped), str(fault.row())


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one processor")
def test_its_log_lies_in_order_wherever_the_system_would_run_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync_eio, "WatchedFiles", Moving)
    monkeypatch.setattr(sync_eio, "FILE_BYTES", (64 << 10,))  # larger files lie one after the other
    with get_context("fork").Pool(1) as single_threaded:
        for found, row in single_threaded.map(outcome, range(3)):
            assert found, row
