"""Define the holes of starting, and of recovering more than once (G1 to G11, F1, F2)."""

from tornpage.properties.score.holes.hole import Hole
from tornpage.properties.score.holes.log import HOLES as LOG_HOLES
from tornpage.properties.score.holes.search import Search

__all__ = ["HOLES"]

_STARTING = "tests/regressions/holes/test_holes_starting.py::"
_QUEUE = Search("queue")
_GAP = next(hole for hole in LOG_HOLES if hole.id == "H4")


HOLES = (
    Hole(
        "G1",
        "a kill while a file is made leaves it empty, and the store does not start (RMQ-B08, RMQ-B33)",
        (7,),
        "a file gets its name when it is whole; an empty newest log file is removed, an empty queue file is rebuilt",
        pinned_by=_STARTING + "test_g1_empty_newest_file_is_no_obstacle",
    ),
    Hole(
        "G2",
        "a foreign file in a log or queue directory keeps the store from starting",
        (7,),
        "the file is ignored and reported as a finding",
        hunt=_QUEUE,
        pinned_by=_STARTING + "test_g2_stray_file_is_no_obstacle",
    ),
    Hole(
        "G3",
        "when neither a JSON file nor its backup can be read the store does not start",
        (7, 13),
        "an unreadable file is a finding, and its backup counts",
        reason="a crash leaves one of the two whole, so no crash state has it; tests fill both with garbage",
    ),
    Hole(
        "G4",
        "after a gap in the log (H4) dispatch finds nothing to read, and the start never ends",
        (7, 16),
        "a gap is damage; dispatch stops with a reason and the start does not wait for it",
        hunt=_GAP.hunt,
        pinned_by=_GAP.pinned_by,
    ),
    Hole(
        "G5",
        "with duplicationEnable the start of a non-empty store never ends",
        (7, 16),
        "",
        reason="there is no such setting",
        paragraph="G4",
    ),
    Hole(
        "G6",
        "a full disk under a sparse file is an error that stops dispatch for good while puts continue",
        (16, 17),
        "blocks are reserved, a full disk is an error of the call, and each round is tried again",
        hunt=_QUEUE,
    ),
    Hole(
        "G7",
        "the lock is taken after recovery: a second process removes files of a store in use before it is refused",
        (14,),
        "the lock is taken first",
        pinned_by=_STARTING + "test_g7_second_opener_touches_nothing",
    ),
    Hole(
        "G8",
        "with multi-dispatch a record without properties stops dispatch, and after a kill the start",
        (7, 8),
        "no properties mean no further queues",
        hunt=Search("queue"),
    ),
    Hole(
        "G9",
        "an extension unit with a size past the end of its file stops the load",
        (7,),
        "sizes are checked before they are used; after an unclean exit the extension is rebuilt",
        reason="a tear leaves old bytes, new bytes or zeros, never too large a size: no crash state can show it",
    ),
    Hole(
        "G10",
        "the size of a record is used before it is checked: a huge size stops the start",
        (7,),
        "every length is checked before it is used",
        hunt=Search("commit-log"),
        paragraph="G9",
    ),
    Hole(
        "G11",
        "on a slave dispatch never passes a bad record in a file that was not scanned, and the start never ends",
        (7, 16),
        "dispatch stops with a reason",
        reason="a slave appends checked records only, so that no crash state has a bad one",
        paragraph="G9",
    ),
    Hole(
        "F1",
        "recover, append, recover: what the first recovery cut is back after the second",
        (3, 6),
        "cut bytes are erased durably before the first put",
        hunt=Search("commit-log"),
        pinned_by=_STARTING + "test_f1_second_recovery_brings_nothing_back",
    ),
    Hole(
        "F2",
        "progress of delayed messages lags behind their delivery: they are delivered again after a clean exit",
        (12,),
        "progress is counted message by message, and a close saves it",
        hunt=Search("delay"),
        pinned_by=_STARTING + "test_f2_clean_exit_delivers_nothing_again",
    ),
)
