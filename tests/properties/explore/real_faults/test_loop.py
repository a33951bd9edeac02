"""Test the kernel behaviour that the fault of a failing sync needs.

This kernel reports EIO once, then success, and the bytes are gone.
"""

import mmap
import os
from contextlib import closing
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any

import pytest

from tornpage.properties.explore.real_faults.children import Page, in_child
from tornpage.properties.explore.real_faults.loop import BLOCK_BYTES, Medium, extents_of
from tornpage.properties.explore.real_faults.mounts import Unavailable, enter_private_mounts, mounted

FILE_BYTES = 16 * BLOCK_BYTES


def told_by_a_failing_disk(directory: str) -> dict[str, Any]:
    """Return the results of two syncs of a file whose second half fails.

    With them comes the content of a copy of the disk.
    """

    def work(page: Page) -> None:
        enter_private_mounts(directory)
        with closing(Medium.formatted()) as medium:
            with medium.mounted(f"{directory}/failing") as where:
                fd = os.open(f"{where}/file", os.O_RDWR | os.O_CREAT)
                os.posix_fallocate(fd, 0, FILE_BYTES)
                mapping = mmap.mmap(fd, FILE_BYTES)
                mapping[:BLOCK_BYTES] = b"A" * BLOCK_BYTES
                os.fsync(fd)
                (extent, *_) = extents_of(f"{where}/file")
                medium.fail_from(extent.physical + BLOCK_BYTES)
                mapping[BLOCK_BYTES : 2 * BLOCK_BYTES] = b"B" * BLOCK_BYTES
                page.tell(first=sync(fd), second=sync(fd))
                mapping[:3] = b"CCC"
                page.tell(in_front=sync(fd))
                mapping.close()
                os.close(fd)
                left = medium.copy()
            with closing(left), left.mounted(f"{directory}/after") as where:
                content = Path(where, "file").read_bytes()
                page.tell(
                    size=len(content), kept=content[:5].decode(), lost=content[BLOCK_BYTES:].strip(b"\0").decode()
                )

    page = Page()
    try:
        in_child(page, work)
    except Unavailable as missing:
        page.tell(skipped=str(missing))
    return page.facts


def sync(fd: int) -> str:
    try:
        os.fdatasync(fd)
    except OSError as error:
        return error.strerror or "an error"
    return "durable"


def seen_from_outside(directory: str) -> dict[str, Any]:
    """Return the content of a mount for the process that made it, and for its parent."""

    def work(page: Page) -> None:
        enter_private_mounts(directory)
        with mounted("tmpfs", f"{directory}/disk", "tmpfs", "size=64k") as where:
            Path(where, "file").write_text("text")
            page.tell(inside=os.listdir(where))
        page.tell(left=os.listdir(directory))

    page = Page()
    try:
        in_child(page, work)
    except Unavailable as missing:
        page.tell(skipped=str(missing))
    page.tell(outside=os.listdir(directory))
    return page.facts


def test_the_kernel_reports_a_failed_write_once_and_drops_it(fresh_process: Pool, tmp_path: Path) -> None:
    told = fresh_process.apply(told_by_a_failing_disk, (str(tmp_path),))
    if "skipped" in told:
        pytest.skip(told["skipped"])
    assert (told["first"], told["second"], told["in_front"]) == ("Input/output error", "durable", "durable")
    assert (told["size"], told["kept"], told["lost"]) == (FILE_BYTES, "CCCAA", "")


def test_mounts_are_seen_by_nobody_else(fresh_process: Pool, tmp_path: Path) -> None:
    told = fresh_process.apply(seen_from_outside, (str(tmp_path),))
    if "skipped" in told:
        pytest.skip(told["skipped"])
    assert (told["inside"], told["left"], told["outside"]) == (["file"], [], [])
