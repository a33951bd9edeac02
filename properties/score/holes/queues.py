"""Define the holes of consume queues and their extension (C1 to C17)."""

from tornpage.properties.score.holes.hole import Hole
from tornpage.properties.score.holes.search import Search

__all__ = ["HOLES"]

_QUEUES = "tests/regressions/holes/test_holes_queues.py::"
_QUEUE, _RETENTION = Search("queue"), Search("retention")


HOLES = (
    Hole(
        "C1",
        "units of records that the log lost stay in their file and count again once the log is longer",
        (3, 4),
        "units without a record in the log are erased, durably with the next flush",
        hunt=Search(
            "queue",
            fixed={"sync_flush": False, "pool_buffers": 0, "queue_units": 16, "index": False, "queue_ext": False},
        ),
    ),
    Hole(
        "C2",
        "a unit that lost its tags code in a tear counts: consumers by tag never see the message",
        (4, 17),
        "each unit that no checksum proves is compared with its record, including the tags code",
        hunt=Search("queue", 6, fixed={"index": False, "queue_ext": False}),
    ),
    Hole(
        "C3",
        "a full index file writes the checkpoint, which then covers queues that are not flushed",
        (9,),
        "only a complete flush of queues and index writes the checkpoint",
        hunt=Search(fixed={"index": True, "index_entries": 4}),
        pinned_by=_QUEUES + "test_c3_index_does_not_speak_for_queues",
    ),
    Hole(
        "C4",
        "a flush covers one file of each queue, and the checkpoint covers all of them",
        (9,),
        "all files of all queues are flushed before the checkpoint",
        hunt=_QUEUE,
    ),
    Hole(
        "C5",
        "pre-fill counts as the furthest record: until the log is 2 GiB long no queue gets a message",
        (4, 16),
        "pre-fill has no end offset; dispatch starts where the log says",
        hunt=Search(
            "retention", 4, fixed={"file_bytes": 1024, "queue_units": 16, "queue_ext": False, "index": False}
        ),
        pinned_by=_QUEUES + "test_c5_prefill_is_not_the_furthest_record",
    ),
    Hole(
        "C6",
        "after a restart pre-fill counts as messages: reads find nothing there and skip real messages",
        (4, 17),
        "the minimum of a queue is after its pre-fill",
        hunt=_RETENTION,
        pinned_by=_QUEUES + "test_c6_prefill_is_no_message",
    ),
    Hole(
        "C7",
        "the first unit of a new file of zeros counts as a message that does not exist",
        (4, 17),
        "a unit counts only if the log has its record",
        hunt=Search(
            fixed={"queue_units": 2, "sync_flush": False, "pool_buffers": 0, "multi_dispatch": False, "index": False,
                   "disk": "journal"}
        ),
        pinned_by=_QUEUES + "test_c7_file_of_zeros_has_no_unit",
    ),
    Hole(
        "C8",
        "dispatch resumes after the furthest unit, even past the end of the log: new messages are skipped",
        (16, 17),
        "dispatch resumes where the verified part of the log ends",
        hunt=Search("queue", 6, fixed={"sync_flush": False, "pool_buffers": 0, "index": False, "queue_ext": False}),
        pinned_by=_QUEUES + "test_c8_dispatch_does_not_begin_behind_the_log",
    ),
    Hole(
        "C9",
        "dispatch starts where the furthest queue ends: other queues keep missing units",
        (4, 17),
        "each queue is verified separately",
        hunt=_QUEUE,
    ),
    Hole(
        "C10",
        "a unit that does not fit on the disk is logged as an error but counts as written",
        (4, 17),
        "the write raises, and the batch is dispatched again",
        hunt=_QUEUE,
    ),
    Hole(
        "C11",
        "the counters of light queues restart at 0 after a restart",
        (1, 4),
        "they continue where log and queues end",
        hunt=Search("put"),
        pinned_by=_QUEUES + "test_c11_light_queues_go_on_counting",
    ),
    Hole(
        "C12",
        "queues are rebuilt before the delay levels are read: delayed messages are due at once",
        (4, 12),
        "the delay levels are read first",
        hunt=_QUEUE,
    ),
    Hole(
        "C13",
        "a lost queue is rebuilt from the newest log file on, or not at all",
        (4, 7),
        "it is rebuilt from the start of the log",
        pinned_by=_QUEUES + "test_c13_lost_queue_comes_back_whole",
    ),
    Hole(
        "C14",
        "a deleted topic comes back with the next recovery",
        (10,),
        "deleted topics are recorded with the offset below which they are not dispatched",
        hunt=_RETENTION,
    ),
    Hole(
        "C15",
        "a record with queue offset 0 never counts as queued: it is appended again",
        (4,),
        "an existing number is recognised, whichever it is",
        hunt=_QUEUE,
    ),
    Hole(
        "C16",
        "recovery checks the last three files of a queue: damage before them stays",
        (4,),
        "all files are verified",
        hunt=Search(fixed={"queue_units": 1}),
        pinned_by=_QUEUES + "test_c16_fourth_file_from_the_end_is_compared",
    ),
    Hole(
        "C17",
        "units keep addresses past the end of a cut extension, and later extension units are written there",
        (4, 17),
        "an address counts only if the extension has the expected unit there",
        hunt=_QUEUE,
    ),
)  # fmt: skip
