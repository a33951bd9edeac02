"""Holes of the commit log and of what a producer is answered (H1 to H12, A1 to A7)."""

from tornpage.properties.score.holes.hole import Hole
from tornpage.properties.score.holes.hunt import Hunt

__all__ = ["HOLES"]

_LOG = "tests/regressions/holes/test_holes_log.py::"

HOLES = (
    Hole(
        "H1",
        "recovery cuts the log and leaves the bytes behind it; a later record that ends at an old one brings it back",
        (1, 3),
        "the cut is zeroed, durably, before a put is taken",
        pinned_by=_LOG + "test_h1_stale_tail_does_not_return",
    ),
    Hole(
        "H2",
        "the checksum covers the body: a record that lost topic or properties in a tear counts",
        (1, 4),
        "the trailer covers the record; without one a NUL in topic or properties is a tear (H2b too)",
        hunt=Hunt(fixed={"file_bytes": 8192, "index": False, "trailer": True}),
        pinned_by=_LOG + "test_h2_record_without_its_properties_does_not_count",
    ),
    Hole(
        "H3",
        "a record counts wherever it lies: a whole one in a body is taken up when its cover is gone",
        (1, 4),
        "a record counts at the offset that it names",
        hunt=Hunt("commit-log"),
        pinned_by=_LOG + "test_h3_record_in_a_body_does_not_count",
    ),
    Hole(
        "H4",
        "a log file may be missing between two others: the log goes on behind the gap",
        (1, 2, 4),
        "names are durable before a file is used; a gap is damage, the store opens read-only and names it",
        hunt=Hunt(fixed={"file_bytes": 4096, "sync_flush": False, "files_ahead": 1, "pool_buffers": 0, "index": False}),
        pinned_by=_LOG + "test_h4_log_does_not_go_on_behind_a_gap",
    ),
    Hole(
        "H5",
        "recovery begins in a file chosen by times and believes all files before it",
        (1, 7),
        "times decide nothing: what is not proved by checksums is read from the log's begin on",
        hunt=Hunt(fixed={"file_bytes": 8192, "sync_flush": False, "pool_buffers": 0}, clock_back_ms=120_000),
        pinned_by=_LOG + "test_h5_old_files_are_not_believed_for_their_times",
    ),
    Hole(
        "H6",
        "the abort marker is never synced: a crash passes for a clean exit",
        (2, 4, 7),
        "the marker is durable before the first write",
        pinned_by=_LOG + "test_h6_crash_does_not_pass_for_a_clean_exit",
    ),
    Hole(
        "H7",
        "lengths wrap (properties of a batch beyond 32,767 bytes, topics beyond 127): PUT_OK, the log ends there",
        (2, 8),
        "both are refused before anything is written",
        hunt=Hunt("put"),
        pinned_by=_LOG + "test_h7_lengths_that_wrap_are_refused",
    ),
    Hole(
        "H8",
        "files that recovery cut are unlinked without a sync of the directory, and may come back",
        (3,),
        "last file first, each removal durable before the next",
        pinned_by=_LOG + "test_h8_removed_file_does_not_come_back",
    ),
    Hole(
        "H9",
        "a commit of the transient pool that the disk takes half of counts as whole",
        (1, 2),
        "it goes on until the disk says why not; then nothing moved, and all of it is written again",
        hunt=Hunt("flush"),
        pinned_by=_LOG + "test_h9_half_a_commit_does_not_count",
    ),
    Hole(
        "H10",
        "with checkCRCOnRecover=false a record that lost its body counts",
        (1,),
        "there is no such switch",
        hunt=Hunt(fixed={"file_bytes": 8192, "sync_flush": False, "pool_buffers": 0, "index": False}),
        pinned_by=_LOG + "test_h10_record_without_its_body_does_not_count",
    ),
    Hole(
        "H11",
        "a buffer that comes back to the pool keeps its bytes, and they get behind the blank of the next file",
        (1, 3),
        "a commit ends where the file's own bytes end",
        hunt=Hunt("flush"),
        pinned_by=_LOG + "test_h11_old_bytes_of_a_buffer_stay_behind",
    ),
    Hole(
        "H12",
        "with several log directories a file made ahead may get a twin: both are loaded, puts go into the wrong one",
        (1, 2),
        "a file keeps the directory that it was made in; of two of one name that of zeros goes, else it is damage",
        reason="no twin can come to be, so no crash state has one: a file keeps its directory, however full that gets",
    ),
    Hole(
        "A1",
        "a failed sync is logged, and the put is answered PUT_OK",
        (2, 9),
        "nothing moves, the file is poisoned, the put is answered FLUSH_DISK_TIMEOUT",
        hunt=Hunt("commit-log"),
        pinned_by=_LOG + "test_a1_failed_sync_is_no_success",
    ),
    Hole(
        "A2",
        "the directory of a new log file is never synced: the file may vanish with what was acknowledged in it",
        (2,),
        "a file is durable in size and name before it is used",
        pinned_by=_LOG + "test_a2_new_file_does_not_vanish",
    ),
    Hole(
        "A3",
        "a record larger than a file is answered PUT_OK and is nowhere, after two files of blanks",
        (8,),
        "MESSAGE_ILLEGAL before anything is written",
        hunt=Hunt("commit-log"),
        pinned_by=_LOG + "test_a3_record_larger_than_a_file_is_refused",
    ),
    Hole(
        "A4",
        "a slave that is ahead of its master satisfies every synchronous put",
        (15,),
        "",
        reason="needs replicas, not built yet",
    ),
    Hole(
        "A5",
        "the offset of a delay level is durable before the message that was delivered is",
        (12,),
        "the log is durable up to the copies before an offset is saved that speaks of them",
        hunt=Hunt("delay"),
        pinned_by=_LOG + "test_a5_saved_progress_speaks_of_durable_copies",
    ),
    Hole(
        "A6",
        "a consumer's offset is durable before the messages it counts are: new messages of those numbers are skipped",
        (17,),
        "an open brings it back to the end of the queue, durably, before a put is taken; who asks beyond that end is "
        "sent to it (RMQ-B44 plants 4.9.3's other answer, 0)",
        hunt=Hunt("consumer"),
        pinned_by=_LOG + "test_a6_nobody_is_led_past_new_messages",
    ),
    Hole(
        "A7",
        "JSON files are replaced by delete and rename without a sync: progress falls back to nothing",
        (13,),
        "new version and backup are durable before a name changes, and the directory is synced",
        hunt=Hunt("consumer"),
        pinned_by=_LOG + "test_a7_progress_file_is_old_or_new",
    ),
)
