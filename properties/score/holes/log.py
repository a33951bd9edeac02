"""Define the holes of the commit log and of answers to producers (H1 to H12, A1 to A7)."""

from tornpage.properties.score.holes.hole import Hole
from tornpage.properties.score.holes.search import Search

__all__ = ["HOLES"]

_LOG = "tests/regressions/holes/test_holes_log.py::"

HOLES = (
    Hole(
        "H1",
        "recovery cuts the log and leaves the bytes after the cut; a later record that ends there brings them back",
        (1, 3),
        "the cut bytes are zeroed durably before the first put",
        pinned_by=_LOG + "test_h1_stale_tail_does_not_return",
    ),
    Hole(
        "H2",
        "the checksum covers only the body: a record that lost topic or properties in a tear counts as valid",
        (1, 4),
        "the trailer covers the record; without a trailer a NUL in topic or properties is a tear (H2b too)",
        hunt=Search(fixed={"file_bytes": 8192, "index": False, "trailer": True}),
        pinned_by=_LOG + "test_h2_record_without_its_properties_does_not_count",
    ),
    Hole(
        "H3",
        "a record counts at any position: one inside a message body is read when its outer record is gone",
        (1, 4),
        "a record counts only at the offset stored in it",
        hunt=Search("commit-log"),
        pinned_by=_LOG + "test_h3_record_in_a_body_does_not_count",
    ),
    Hole(
        "H4",
        "a log file may be missing between two others: the log continues after the gap",
        (1, 2, 4),
        "names are durable before a file is used; a gap is damage, and the store opens read-only and reports it",
        hunt=Search(
            fixed={"file_bytes": 4096, "sync_flush": False, "files_ahead": 1, "pool_buffers": 0, "index": False}
        ),
        pinned_by=_LOG + "test_h4_log_does_not_go_on_behind_a_gap",
    ),
    Hole(
        "H5",
        "recovery starts in a file chosen by times and trusts all files before it",
        (1, 7),
        "times decide nothing: whatever checksums do not prove is read from the start of the log",
        hunt=Search(fixed={"file_bytes": 8192, "sync_flush": False, "pool_buffers": 0}, clock_back_ms=120_000),
        pinned_by=_LOG + "test_h5_old_files_are_not_believed_for_their_times",
    ),
    Hole(
        "H6",
        "the abort marker is never synced: a crash looks like a clean exit",
        (2, 4, 7),
        "the marker is durable before the first write",
        pinned_by=_LOG + "test_h6_crash_does_not_pass_for_a_clean_exit",
    ),
    Hole(
        "H7",
        "lengths wrap (batch properties over 32,767 bytes, topics over 127): PUT_OK, and the log ends there",
        (2, 8),
        "both are refused before anything is written",
        hunt=Search("put"),
        pinned_by=_LOG + "test_h7_lengths_that_wrap_are_refused",
    ),
    Hole(
        "H8",
        "files that recovery cut are unlinked without a directory sync, and may come back",
        (3,),
        "files are removed from the last one on, each removal durable before the next",
        pinned_by=_LOG + "test_h8_removed_file_does_not_come_back",
    ),
    Hole(
        "H9",
        "a short write during a commit of the transient pool counts as whole",
        (1, 2),
        "the commit retries until the write fails; then no watermark moves, and all bytes are written again",
        hunt=Search("flush"),
        pinned_by=_LOG + "test_h9_half_a_commit_does_not_count",
    ),
    Hole(
        "H10",
        "with checkCRCOnRecover=false a record that lost its body counts as valid",
        (1,),
        "there is no such switch",
        hunt=Search(fixed={"file_bytes": 8192, "sync_flush": False, "pool_buffers": 0, "index": False}),
        pinned_by=_LOG + "test_h10_record_without_its_body_does_not_count",
    ),
    Hole(
        "H11",
        "a buffer returned to the pool keeps its bytes, and they are written after the blank record of the next file",
        (1, 3),
        "a commit ends where the file's own bytes end",
        hunt=Search("flush"),
        pinned_by=_LOG + "test_h11_old_bytes_of_a_buffer_stay_behind",
    ),
    Hole(
        "H12",
        "with several log directories a prepared file may get a twin: both are loaded, and puts go to the wrong one",
        (1, 2),
        "a file stays in its directory; of two files of one name the one of zeros is removed, else it is damage",
        reason="no twin can be created, so no crash state has one: a file stays in its directory",
    ),
    Hole(
        "A1",
        "a failed sync is only logged, and the put is answered PUT_OK",
        (2, 9),
        "no watermark moves, the file is poisoned, and the put is answered FLUSH_DISK_TIMEOUT",
        hunt=Search("commit-log"),
        pinned_by=_LOG + "test_a1_failed_sync_is_no_success",
    ),
    Hole(
        "A2",
        "the directory of a new log file is never synced: the file may vanish with acknowledged messages",
        (2,),
        "size and name of a file are durable before it is used",
        pinned_by=_LOG + "test_a2_new_file_does_not_vanish",
    ),
    Hole(
        "A3",
        "a record larger than a file is answered PUT_OK and stored nowhere, after two files of blanks",
        (8,),
        "MESSAGE_ILLEGAL before anything is written",
        hunt=Search("commit-log"),
        pinned_by=_LOG + "test_a3_record_larger_than_a_file_is_refused",
    ),
    Hole(
        "A4",
        "a slave that is ahead of its master satisfies every synchronous put",
        (15,),
        "generations: the slave is cut before it confirms anything",
        reason="needs two nodes: planted as RB01 (`tornpage explore cluster --bug RB01`)",
    ),
    Hole(
        "A5",
        "the offset of a delay level is durable before the delivered message",
        (12,),
        "the copies are made durable before an offset that covers them is saved",
        hunt=Search("delay"),
        pinned_by=_LOG + "test_a5_saved_progress_speaks_of_durable_copies",
    ),
    Hole(
        "A6",
        "a consumer's offset is durable before the messages it counts: new messages with those numbers are skipped",
        (17,),
        "an open moves the offset back to the end of the queue, durably, before the first put; a read past that end is "
        "sent to it (RMQ-B44 plants 4.9.3's other answer, 0)",
        hunt=Search("consumer"),
        pinned_by=_LOG + "test_a6_nobody_is_led_past_new_messages",
    ),
    Hole(
        "A7",
        "JSON files are replaced by delete and rename without a sync: progress may be lost completely",
        (13,),
        "new version and backup are durable before a rename, and the directory is synced",
        hunt=Search("consumer"),
        pinned_by=_LOG + "test_a7_progress_file_is_old_or_new",
    ),
)
