"""Define the holes of the index (I1 to I7)."""

from tornpage.properties.score.holes.hole import Hole
from tornpage.properties.score.holes.search import Search

__all__ = ["HOLES"]

_INDEX = "tests/regressions/holes/test_holes_index.py::"
_QUEUE = Search("queue")


HOLES = (
    Hole(
        "I1",
        "each unclean exit drops the newest index file, and only part of its records are indexed again",
        (5, 6),
        "the index is compared with the log; correct entries are kept and missing entries are added",
        hunt=_QUEUE,
    ),
    Hole(
        "I2",
        "the last index file is not flushed at a clean close",
        (5,),
        "all index files are flushed before the abort marker is removed",
        hunt=_QUEUE,
    ),
    Hole(
        "I3",
        "entries of records that the log lost are kept, and hide new records at lower offsets",
        (5,),
        "entries without a record in the log are erased",
        hunt=_QUEUE,
        pinned_by=_INDEX + "test_i3_index_does_not_outlive_the_log",
    ),
    Hole(
        "I4",
        "when the log lost everything, the queues are removed but the index is kept",
        (5,),
        "an empty log has an empty index",
        hunt=Search("queue", 6, fixed={"sync_flush": False, "pool_buffers": 0, "index": True, "disk": "journal"}),
        pinned_by=_INDEX + "test_i4_empty_log_has_an_empty_index",
    ),
    Hole(
        "I5",
        "a header older than its file is trusted: slots lead to entries that were overwritten",
        (5,),
        "slots follow from the entries, and bytes past the last entry are erased",
        hunt=_QUEUE,
        pinned_by=_INDEX + "test_i5_header_is_not_believed",
    ),
    Hole(
        "I6",
        "after a kill between unit and index entry the record counts as indexed",
        (5,),
        "queues and index are each compared with the log",
        hunt=_QUEUE,
        pinned_by=_INDEX + "test_i6_record_in_its_queue_is_indexed_too",
    ),
    Hole(
        "I7",
        "dispatching the last indexed record again adds a second index entry",
        (5,),
        "entries at the end of the index are recognised one by one",
        hunt=Search("queue", fixed={"index": True, "index_entries": 3, "queue_units": 60}),
    ),
)
