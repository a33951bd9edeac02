"""Only pages of the log lack blocks in the SIGBUS fault.

Symptom: `tornpage faults` ended vacuous now and then, because the death by SIGBUS had hit no put.
Cause: a mistake of the lab. No file of the store had reserved blocks. When dispatch was late, its thread touched a page
of a queue without a block between two puts, and the process died with all puts answered.
Fix: only the log has no blocks, and only puts write to it.
Found by: one of twenty seeds in a deep test, on a loaded machine.
"""

import os
import random
from pathlib import Path

from tornpage.properties.explore.real_faults.children import Page
from tornpage.properties.explore.real_faults.full_disk import FILE_BYTES, UNWATCHED
from tornpage.properties.explore.real_faults.sparse_sigbus import SparseLog
from tornpage.properties.explore.real_faults.writer import Writer, config_of


def blocks_missing(directory: Path) -> set[bool]:
    """Return whether files lack blocks of their size, true and false for each kind found."""
    found = [path.stat() for path in directory.rglob("*") if path.is_file()]
    return {status.st_blocks * 512 < status.st_size for status in found}


def test_only_pages_of_the_log_have_no_blocks(tmp_path: Path) -> None:
    config = config_of(file_bytes=FILE_BYTES[0], sync=False, populate_ahead_bytes=0, **UNWATCHED)
    writer = Writer(Page(), os.fspath(tmp_path / "store"), config, rng=random.Random(0), files=SparseLog())
    for _ in range(3):
        writer.put()
    assert writer.close() is None
    assert blocks_missing(tmp_path / "store" / "commitlog") == {True}
    assert blocks_missing(tmp_path / "store" / "consumequeue") == {False}
