"""Cut the write of a commit short: the kernel writes a part, then refuses the rest.

Only a store with write buffers (the transient store pool) writes records with a system call. A limit on the size of
files (RLIMIT_FSIZE) is set in the middle of a record that is still in a buffer. The kernel writes the bytes up to the
limit and answers EFBIG for the rest. No flush may call the rest durable then. Once the limit is gone, either everything
becomes durable or the store is read-only and says why. No privileges are needed.
"""

import os
import random
import resource
from collections.abc import Iterator
from contextlib import contextmanager

from tornpage.impl.io.files import OpenFile
from tornpage.impl.io.os_files import OsFiles
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.explore.real_faults.children import Page, in_child
from tornpage.properties.explore.real_faults.mounts import Unavailable
from tornpage.properties.explore.real_faults.report import FaultReport
from tornpage.properties.explore.real_faults.writer import Writer, config_of, judge_log, knows

__all__ = ["short_write"]

POOL = "transient_store_pool_enable"
FILE_BYTES = 256 << 10
PUTS_BEFORE, PUTS_AFTER = 12, 8
"""With the longest bodies they fit into one log file. A new file would exceed the limit by itself."""


def short_write(report: FaultReport, directory: str, rng: random.Random) -> None:
    """Cut a commit short.

    The fault is hit when the kernel wrote a part, and effective when a flush was not durable until the limit was gone.
    """
    if not knows(POOL):
        raise Unavailable(f"this store writes no log by system call ({POOL})")
    config = config_of(file_bytes=FILE_BYTES, sync=False, **{POOL: True})
    seed, page, store = rng.randrange(1 << 32), Page(), f"{directory}/store"

    def meets_the_limit(page: Page) -> None:
        files = WatchedFiles()
        writer = Writer(page, store, config, rng=random.Random(seed), files=files)
        for _ in range(PUTS_BEFORE):
            writer.put()
        if not writer.flush():
            raise GuaranteeBroken(8, "a flush fails on a sound disk", "durable", str(writer.store.read_only_reason))
        durable_end = writer.store.flushed_offset
        page.tell(armed=True, promised_end=durable_end)
        limit_bytes = durable_end + 100  # every record is longer than that, so the limit is inside the next one
        with _size_limit(limit_bytes):
            for _ in range(PUTS_AFTER):
                writer.put()
            if writer.flush() or writer.store.flushed_offset > limit_bytes:
                raise GuaranteeBroken(9, "a flush calls bytes durable that the disk did not take")
            page.tell(cut=files.cut, late=True)
        end = writer.store.max_offset
        if writer.flush():
            page.tell(promised_end=end)
            writer.check_promised_messages("after the limit is gone")
        reason = writer.close()
        page.tell(outcome=reason or "everything durable once the limit was gone")

    def opens_again(page: Page) -> None:
        writer = Writer(page, store, config, rng=random.Random(seed + 1))
        writer.check_promised_messages("after the short write")
        writer.close()

    ending = None
    try:
        ending = in_child(page, meets_the_limit)
    finally:
        told = page.facts
        report.enabled += bool(told.get("armed"))
        report.hit += bool(told.get("cut"))
        report.effective += bool(told.get("late"))
        report.seen += [f"write of {name}: {error}" for name, error in told.get("cut", ())[:1]]
        report.seen += [told["outcome"]] if "outcome" in told else []
    if ending.signal is not None:
        raise GuaranteeBroken(8, f"the process died by {ending.signal} in {page.verb}")
    if in_child(page, opens_again).signal is not None:
        raise GuaranteeBroken(7, f"the process died in {page.verb} after the short write")
    judge_log(store, page)


@contextmanager
def _size_limit(size_bytes: int) -> Iterator[None]:
    """Limit the size of files that this process writes.

    Python ignores the signal of the limit.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class WatchedFiles(OsFiles):
    """Use the real disk, and record each write that failed after its first part."""

    def __init__(self) -> None:
        self.cut: list[tuple[str, str]] = []

    def pwrite(self, file: OpenFile, data: bytes | memoryview, offset: int) -> None:
        """Record a write that ended early, and pass its error on."""
        try:
            super().pwrite(file, data, offset)
        except OSError as error:
            if self.read(file, offset, 1) == bytes(data[:1]) != b"":
                self.cut.append((os.path.basename(file.path), error.strerror or str(error)))
            raise
