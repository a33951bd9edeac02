"""Filling a small disk ends only when nothing is left.

Symptom: `tornpage faults` now and then reported that its own disk "is not full after it refused a write".
Cause: a thread of the store that allocates a file on a full disk takes the remaining blocks, fails, and releases them a
moment later. The write that fills the disk failed in between.
Fix: the disk is filled again until nothing is left (properties/explore/real_faults/small_disk.py, `SmallDisk.fill`).
Found by: the test suite on a busy machine.
"""

import contextlib
import multiprocessing
import os
from pathlib import Path
from typing import Any

import pytest

from tornpage.properties.explore.real_faults.children import Page, in_child
from tornpage.properties.explore.real_faults.mounts import Unavailable, enter_private_mounts
from tornpage.properties.explore.real_faults.small_disk import small_disk

_HELD_BYTES = 1 << 19


def fill_beside_another(directory: str) -> dict[str, Any]:
    """Fill a disk while another file holds a part, which is then released.

    Returns the number of blocks left.
    """

    def work(page: Page) -> None:
        enter_private_mounts(directory)
        with small_disk(directory, "small") as disk:
            held = f"{disk.directory}/held"
            with open(held, "wb") as file:
                os.posix_fallocate(file.fileno(), 0, _HELD_BYTES)
            blocks_left = os.statvfs

            def gives_back(path: Any) -> os.statvfs_result:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(held)
                return blocks_left(path)

            os.statvfs = gives_back
            disk.fill()
            page.tell(gave_back=not os.path.exists(held), left=blocks_left(disk.directory).f_bavail)

    page = Page()
    try:
        in_child(page, work)
    except Unavailable as missing:
        page.tell(skipped=str(missing))
    return page.facts


def test_the_disk_is_full_in_the_end(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        facts = pool.apply(fill_beside_another, (str(tmp_path),))
    if "skipped" in facts:
        pytest.skip(facts["skipped"])
    assert (facts["gave_back"], facts["left"]) == (True, 0)
