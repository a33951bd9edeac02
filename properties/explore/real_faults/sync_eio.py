"""Fail a sync with a real EIO.

It must not be acknowledged or trusted, and no promise is lost. A synchronous store runs on an ext4 (`loop`) whose
medium starts to refuse writes right after the acknowledged bytes. The next put has to be answered FLUSH_DISK_TIMEOUT,
and the store is read-only from then on. The trap is that the kernel reports the error once, drops the pages, and
reports success for the next sync of the same file. Afterwards the medium is copied as it is, as if the power had
failed, and everything answered PUT_OK has to be on the copy.
"""

import os
import random
from contextlib import closing
from pathlib import Path

from tornpage.impl.io.files import OpenFile
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.message.message import GetStatus, PutStatus
from tornpage.impl.parts import Parts
from tornpage.properties.contract import GuaranteeBroken, HarnessError
from tornpage.properties.explore.real_faults.children import Page, in_child
from tornpage.properties.explore.real_faults.loop import BLOCK_BYTES, Medium, extents_of
from tornpage.properties.explore.real_faults.report import FaultReport
from tornpage.properties.explore.real_faults.writer import Writer, config_of, judge_log

__all__ = ["sync_eio"]

FILE_BYTES = (64 << 10, 128 << 10)
PUTS_BEFORE_MIN, PUTS_BEFORE_MAX = 20, 60
FAILING_BODY_BYTES = 3 * BLOCK_BYTES
ROOM_BYTES = FAILING_BODY_BYTES + 4 * BLOCK_BYTES
"""Bytes that must remain in the current file, because the failing record may not begin a new file."""
LATER_PUTS = 3


def sync_eio(report: FaultReport, directory: str, rng: random.Random, *, components: Parts | None = None) -> None:
    """Let a sync fail.

    The fault is hit when the kernel answered EIO to the store, and effective when the record is not on the medium.
    """
    config = config_of(file_bytes=rng.choice(FILE_BYTES), sync=True)
    puts, seed, page = rng.randrange(PUTS_BEFORE_MIN, PUTS_BEFORE_MAX), rng.randrange(1 << 32), Page()
    with closing(Medium.formatted()) as medium:

        def meets_the_error(page: Page) -> None:
            _stay_on_one_processor()
            files = WatchedFiles()
            writer = Writer(page, store, config, rng=random.Random(seed), files=files, components=components)
            for _ in range(puts):
                writer.put()
            _align(writer, config.mapped_file_size_commit_log)
            _arm(medium, writer, config.mapped_file_size_commit_log)
            page.tell(log_end=writer.store.max_offset)
            try:
                _fail_and_look(writer, files)
            finally:
                page.tell(errors=files.errors)

        def goes_on(page: Page) -> None:
            writer = Writer(page, store, config, rng=random.Random(seed + 1))
            writer.check_promised_messages("after the power loss")
            if writer.put().status is not PutStatus.PUT_OK:
                raise GuaranteeBroken(8, "the store does not go on on a sound medium")
            writer.close()

        with medium.mounted(f"{directory}/failing") as where:
            store = f"{where}/store"
            try:
                ending = in_child(page, meets_the_error)
            finally:
                told = page.facts
                report.enabled += "log_end" in told
                report.hit += bool(told.get("errors"))
                report.seen += [f"sync of {path}: {error}" for path, error in told.get("errors", ())[:1]]
                report.seen += list(told.get("seen", ()))
            if ending.signal is not None:
                raise GuaranteeBroken(8, f"the process died by {ending.signal} in {page.verb}")
            left = medium.copy()
    with closing(left), left.mounted(f"{directory}/after") as where:
        store = f"{where}/store"
        report.effective += judge_log(store, page) <= told["log_end"] and bool(report.hit)
        if in_child(page, goes_on).signal is not None:
            raise GuaranteeBroken(7, f"the process died in {page.verb} after the power loss")
        judge_log(store, page)


class WatchedFiles(OsFiles):
    """Use the real disk, and record each failed sync."""

    def __init__(self) -> None:
        self.errors: list[tuple[str, str]] = []

    def sync(self, file: OpenFile) -> None:
        """Record a failure and pass it on."""
        try:
            super().sync(file)
        except OSError as error:
            self.errors.append((os.path.basename(file.path), error.strerror or str(error)))
            raise


def _stay_on_one_processor() -> None:
    """Make files adjacent in the order of creation.

    For small files ext4 gives each processor its own blocks.
    """
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def _align(writer: Writer, file_bytes: int) -> None:
    """Put until the log ends at a block, with space left in its file.

    No write may cross the cut that follows.
    """
    result = writer.put(BLOCK_BYTES)
    overhead = result.size_bytes - BLOCK_BYTES
    while file_bytes - writer.store.max_offset % file_bytes < ROOM_BYTES + 2 * BLOCK_BYTES:
        writer.put(BLOCK_BYTES)
    missing = -(writer.store.max_offset + overhead + 1) % BLOCK_BYTES + 1
    writer.put(missing)
    if writer.store.max_offset % BLOCK_BYTES or writer.store.flushed_offset != writer.store.max_offset:
        raise HarnessError(f"the log ends at {writer.store.max_offset}, not durable at a block")


def _arm(medium: Medium, writer: Writer, file_bytes: int) -> None:
    """Make the medium fail past the durable bytes of the current log file.

    All later positions on the medium fail too.
    """
    end = writer.store.max_offset
    position = end % file_bytes
    path = f"{writer.store.directory}/commitlog/{end - position:020d}"
    cut = next(
        extent.physical + position - extent.position
        for extent in extents_of(path)
        if extent.position <= position < extent.position + extent.size_bytes
    )
    log = [str(name) for name in Path(path).parent.iterdir() if str(name) <= path]
    for name in (*log, f"{writer.store.directory}/config/durableFloor", f"{writer.store.directory}/checkpoint"):
        for extent in extents_of(name):
            kept_bytes = position - extent.position if name == path else extent.size_bytes
            if extent.written and extent.physical + min(extent.size_bytes, kept_bytes) > cut:
                raise HarnessError(f"{os.path.basename(name)} is past the failing position")
    medium.fail_from(cut)


def _fail_and_look(writer: Writer, files: WatchedFiles) -> None:
    """Let the put fail, and check everything that the store answers afterwards."""
    store, page = writer.store, writer.page
    end = store.max_offset
    failed = writer.put(FAILING_BODY_BYTES)
    if not files.errors:  # a store cannot know an error that its disk does not report
        page.tell(promised_end=end)
        return
    if failed.status is not PutStatus.FLUSH_DISK_TIMEOUT:
        raise GuaranteeBroken(9, "a put whose sync failed", PutStatus.FLUSH_DISK_TIMEOUT.name, failed.status.name)
    seen = [f"the put: {failed.status.name}", f"the store: {store.read_only_reason}"]
    _stays_poisoned(writer, end, "after the failed sync")
    writer.check_promised_messages("after the failed sync")
    with page.asking("get of the record that is not durable"):
        found = store.get(failed.offset)
    if found.status is GetStatus.FOUND:
        raise GuaranteeBroken(8, "a record whose sync failed is served", "not FOUND", found.status.name)
    trapped = _kernel_says_durable(writer.store.directory)
    seen.append(f"a second sync of the same descriptors: {'success' if trapped else 'an error again'}")
    _stays_poisoned(writer, end, "after a second sync that succeeds")
    reason = writer.close()
    if reason is None or "/commitlog/" not in reason:
        raise GuaranteeBroken(8, "close after a failed sync", "a reason that names the file", str(reason))
    page.tell(seen=seen)


def _stays_poisoned(writer: Writer, end: int, when: str) -> None:
    """Check that nothing is accepted, called durable, or moved after the error (contract 9)."""
    store = writer.store
    if store.read_only_reason is None or "/commitlog/" not in store.read_only_reason:
        raise GuaranteeBroken(9, f"the store does not name the file {when}", "read-only", str(store.read_only_reason))
    if writer.flush() or store.flushed_offset != end:
        raise GuaranteeBroken(9, f"a flush calls lost bytes durable {when}", str(end), str(store.flushed_offset))
    for _ in range(LATER_PUTS):
        status = writer.put().status
        if status is not PutStatus.SERVICE_NOT_AVAILABLE:
            raise GuaranteeBroken(9, f"a put {when}", PutStatus.SERVICE_NOT_AVAILABLE.name, status.name)


def _kernel_says_durable(directory: str) -> bool:
    """Sync the store's own descriptors of log files once more, like a store that retries."""
    synced = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            path = os.readlink(f"/proc/self/fd/{name}")
            if path.startswith(f"{directory}/commitlog/0"):
                os.fdatasync(int(name))
                synced += 1
        except OSError:
            continue
    return synced > 0
