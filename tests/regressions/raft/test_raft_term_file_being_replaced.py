"""A member of DLedger that was killed while it replaced its term does not forget its vote.

Symptom: such a directory opened with term 0 and no vote, so the member could vote twice in a term.
Cause: DLedger copies `currterm` to `currterm.bak`, deletes it and renames `currterm.tmp`. Between the last two steps
there is no `currterm`, which was read as a new member.
Fix: a missing `currterm` beside a `currterm.bak` is damage. The error names both copies.
Found by: a review of `IOUtils.string2File` for `tornpage peer raft`.
"""

import pytest

from tornpage.impl.raft.hard_state import HardState, HardStateDamaged
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.disk.recording_files import EMPTY_DISK, RecordingFiles


def test_a_missing_term_beside_a_backup_is_damage() -> None:
    with choose_tracker("auto") as tracker:
        files = RecordingFiles(EMPTY_DISK, tracker=tracker)
        files.make_directory("/member")
        HardState(files, "/member").save(4, 2)
        files.rename("/member/currterm", "/member/currterm.bak")
        with pytest.raises(HardStateDamaged, match=r"currterm is missing beside .*currterm\.bak"):
            HardState(files, "/member")
        files.rename("/member/currterm.bak", "/member/currterm")
        assert HardState(files, "/member").term == 4
