"""Holes of consume queues and their extension (C1 to C17)."""

from tornpage.properties.score.holes.hole import Hole
from tornpage.properties.score.holes.hunt import Hunt

__all__ = ["HOLES"]

_QUEUES = "tests/regressions/holes/test_holes_queues.py::"
_QUEUE, _RETENTION = Hunt("queue"), Hunt("retention")


HOLES = (
    Hole(
        "C1",
        "units of records that the log lost stay in their file and count again once the log is longer",
        (3, 4),
        "what the log does not say is erased, durably with the next flush",
        hunt=Hunt(
            "queue",
            fixed={"sync_flush": False, "pool_buffers": 0, "queue_units": 16, "index": False, "queue_ext": False},
        ),
    ),
    Hole(
        "C2",
        "a unit that lost its tags code in a tear counts: consumers by tag never see the message",
        (4, 17),
        "each unit that is not proved by a checksum is compared with its record, tags code too",
        hunt=Hunt("queue", 6, fixed={"index": False, "queue_ext": False}),
    ),
    Hole(
        "C3",
        "a full index file has the checkpoint written, for queues too that nobody flushed",
        (9,),
        "only a thorough flush of queues and index writes it",
        hunt=Hunt(fixed={"index": True, "index_entries": 4}),
        pinned_by=_QUEUES + "test_c3_index_does_not_speak_for_queues",
    ),
    Hole(
        "C4",
        "a flush covers one file of each queue, and the checkpoint speaks for all",
        (9,),
        "all files of all queues, then the checkpoint",
        hunt=_QUEUE,
    ),
    Hole(
        "C5",
        "pre-fill counts as the furthest record: until the log is 2 GiB long no queue gets a message",
        (4, 16),
        "pre-fill has no end; dispatch begins where the log says",
        hunt=Hunt(
            "retention", 4, fixed={"file_bytes": 1024, "queue_units": 16, "queue_ext": False, "index": False}
        ),
        pinned_by=_QUEUES + "test_c5_prefill_is_not_the_furthest_record",
    ),
    Hole(
        "C6",
        "after a restart pre-fill counts as messages: reads find nothing there and skip what is",
        (4, 17),
        "the minimum lies behind pre-fill",
        hunt=_RETENTION,
        pinned_by=_QUEUES + "test_c6_prefill_is_no_message",
    ),
    Hole(
        "C7",
        "the first unit of a new file of zeros counts: a message that there is not",
        (4, 17),
        "a unit counts if the log has its record",
        hunt=Hunt(
            fixed={"queue_units": 2, "sync_flush": False, "pool_buffers": 0, "multi_dispatch": False, "index": False,
                   "disk": "journal"}
        ),
        pinned_by=_QUEUES + "test_c7_file_of_zeros_has_no_unit",
    ),
    Hole(
        "C8",
        "dispatch goes on behind the furthest unit, behind the end of the log even: new messages are passed",
        (16, 17),
        "dispatch goes on where the proved part of the log ends",
        hunt=Hunt("queue", 6, fixed={"sync_flush": False, "pool_buffers": 0, "index": False, "queue_ext": False}),
        pinned_by=_QUEUES + "test_c8_dispatch_does_not_begin_behind_the_log",
    ),
    Hole(
        "C9",
        "dispatch begins where the furthest queue ends: others lack what they lack",
        (4, 17),
        "each queue is proved for itself",
        hunt=_QUEUE,
    ),
    Hole(
        "C10",
        "a unit that the disk has no room for is logged and counts as written",
        (4, 17),
        "it raises, and the batch is dispatched again",
        hunt=_QUEUE,
    ),
    Hole(
        "C11",
        "the counters of light queues begin at 0 after a restart",
        (1, 4),
        "they go on where log and queues end",
        hunt=Hunt("put"),
        pinned_by=_QUEUES + "test_c11_light_queues_go_on_counting",
    ),
    Hole(
        "C12",
        "queues are rebuilt before the delay levels are read: delayed messages are due at once",
        (4, 12),
        "the levels are known first",
        hunt=_QUEUE,
    ),
    Hole(
        "C13",
        "a lost queue is rebuilt from the newest log file on, or not at all",
        (4, 7),
        "from the begin of the log on",
        pinned_by=_QUEUES + "test_c13_lost_queue_comes_back_whole",
    ),
    Hole(
        "C14",
        "a topic that was deleted comes back with the next recovery",
        (10,),
        "deleted topics are remembered, with the offset below which they are not dispatched",
        hunt=_RETENTION,
    ),
    Hole(
        "C15",
        "a record with queue offset 0 is never known to be there: it is appended again",
        (4,),
        "a number that is there is known, whichever it is",
        hunt=_QUEUE,
    ),
    Hole(
        "C16",
        "recovery looks at the last three files of a queue: damage in front stays",
        (4,),
        "all files are proved",
        hunt=Hunt(fixed={"queue_units": 1}),
        pinned_by=_QUEUES + "test_c16_fourth_file_from_the_end_is_compared",
    ),
    Hole(
        "C17",
        "units keep addresses of an extension that ends before them, and later units come to lie there",
        (4, 17),
        "an address counts if the extension has there what it should",
        hunt=_QUEUE,
    ),
)  # fmt: skip
