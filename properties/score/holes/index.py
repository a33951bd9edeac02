"""Holes of the index (I1 to I7)."""

from tornpage.properties.score.holes.hole import Hole
from tornpage.properties.score.holes.hunt import Hunt

__all__ = ["HOLES"]

_INDEX = "tests/regressions/holes/test_holes_index.py::"
_QUEUE = Hunt("queue")


HOLES = (
    Hole(
        "I1",
        "each unclean exit drops the newest index file, of which the log is indexed again only in part",
        (5, 6),
        "the index is compared with the log; what is right stays, what is missing is put",
        hunt=_QUEUE,
    ),
    Hole(
        "I2",
        "the last index file is not flushed at a clean exit",
        (5,),
        "all files are, before the abort marker goes",
        hunt=_QUEUE,
    ),
    Hole(
        "I3",
        "entries of records that the log lost stay, and hide those of new records at lower offsets",
        (5,),
        "entries that the log does not ask for are erased",
        hunt=_QUEUE,
        pinned_by=_INDEX + "test_i3_index_does_not_outlive_the_log",
    ),
    Hole(
        "I4",
        "when the log lost everything the queues go and the index stays",
        (5,),
        "an empty log has an empty index",
        hunt=Hunt("queue", 6, fixed={"sync_flush": False, "pool_buffers": 0, "index": True, "disk": "journal"}),
        pinned_by=_INDEX + "test_i4_empty_log_has_an_empty_index",
    ),
    Hole(
        "I5",
        "a header that is older than its file counts: slots lead to entries that are overwritten",
        (5,),
        "slots are what the entries ask for, and nothing lies behind the last entry",
        hunt=_QUEUE,
        pinned_by=_INDEX + "test_i5_header_is_not_believed",
    ),
    Hole(
        "I6",
        "a kill between unit and entry: the record has its unit and counts as indexed",
        (5,),
        "queues and index are each compared with the log",
        hunt=_QUEUE,
        pinned_by=_INDEX + "test_i6_record_in_its_queue_is_indexed_too",
    ),
    Hole(
        "I7",
        "the last record that was indexed is indexed again when it is told again",
        (5,),
        "entries at the end of the index are known, one by one",
        hunt=Hunt("queue", fixed={"index": True, "index_entries": 3, "queue_units": 60}),
    ),
)
