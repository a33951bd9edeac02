"""Produce the death that other faults check for: a write to a sparse log on a full disk.

This is not a fault of the store, which reserves its files. Here the disk only pretends to reserve those of the log. It
shows that a death by SIGBUS is detected, and what it leaves.
"""

import os
import random

from tornpage.impl.io.files import OpenFile
from tornpage.impl.io.os_files import OsFiles
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.explore.real_faults.children import Page, in_child
from tornpage.properties.explore.real_faults.full_disk import FILE_BYTES, PUTS_MAX, UNWATCHED
from tornpage.properties.explore.real_faults.report import FaultReport
from tornpage.properties.explore.real_faults.small_disk import small_disk
from tornpage.properties.explore.real_faults.writer import Writer, config_of, judge_log

__all__ = ["SparseLog", "sparse_sigbus"]

PUTS_BEFORE_MIN, PUTS_BEFORE_MAX = 10, 40


class SparseLog(OsFiles):
    """Skip the reservation of log files, which a full disk punishes with SIGBUS.

    All other files are reserved. A missing page of a queue or of the index would kill the dispatching thread, perhaps
    between two puts, and the death would then lose nothing.
    """

    def allocate(self, file: OpenFile, size_bytes: int) -> None:
        """Set the size of a log file without reserving blocks."""
        if os.path.basename(os.path.dirname(file.path)) == "commitlog.unfinished":
            os.truncate(file.path, size_bytes)
        else:
            super().allocate(file, size_bytes)


def sparse_sigbus(report: FaultReport, directory: str, rng: random.Random) -> None:
    """Die by SIGBUS.

    Everything answered before is in the page cache and must be there afterwards (contract 2). The fault is hit when the
    signal comes, and effective when it interrupted a put that was never answered.
    """
    config = config_of(file_bytes=rng.choice(FILE_BYTES), sync=False, populate_ahead_bytes=0, **UNWATCHED)
    puts, seed, page = rng.randrange(PUTS_BEFORE_MIN, PUTS_BEFORE_MAX), rng.randrange(1 << 32), Page()

    def dies(page: Page) -> None:
        writer = Writer(page, disk.store, config, rng=random.Random(seed), files=SparseLog())
        for _ in range(puts):
            writer.put()
        disk.fill()
        writer.put_until(lambda result: not result.stored, tries=PUTS_MAX)

    def recovers(page: Page) -> None:
        writer = Writer(page, disk.store, config, rng=random.Random(seed))
        writer.check_promised_messages("after the death of the process")
        writer.close()

    with small_disk(directory, "sparse") as disk:
        report.enabled += 1
        ending = in_child(page, dies)
        if ending.signal != "SIGBUS":
            report.seen.append(f"the process ended by {ending.signal or 'itself'}")
            return
        report.hit += 1
        report.effective += bool(page.putting)
        report.seen.append(f"{ending.signal} in {page.verb}, {len(page.stored)} puts answered before")
        disk.unload()
        if in_child(page, recovers).signal is not None:
            raise GuaranteeBroken(7, f"the process died in {page.verb} after a death by SIGBUS")
        judge_log(disk.store, page)
