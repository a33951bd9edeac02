"""Say for each finding what RocketMQ 4.9.3 and tornpage do with such a store.

Source: docs/holes.md, docs/departures.md and the golden stores, which record what RocketMQ 4.9.3 did.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ADVICE", "Advice", "advice_of"]


class Advice(NamedTuple):
    """What the store of RocketMQ 4.9.3 does, and what tornpage's store does."""

    rocketmq: str
    tornpage: str


_CUTS = Advice(
    "cuts the log here if recovery reads this file (the last three after a clean exit), and passes over it if not; cut "
    "records can come back after later puts",
    "read-only if the place was flushed, and serves the rest; else cuts it here, with valid records in quarantine/",
)
_NOT_STARTED = Advice("does not start", "read-only, and serves the rest")
_QUEUE = Advice(
    "serves what the unit says: a message is missing, comes twice or is another one; no queue that exists is rebuilt",
    "rebuilds the queue from the log when it opens read-write",
)
_INDEX = Advice(
    "finds no record by this key, or a wrong one; index files of an unclean exit are dropped and rebuilt in part",
    "rebuilds the index from the log when it opens read-write",
)
_NOTHING = Advice("nothing", "nothing")
_READ = Advice("fails with the device or for lack of permission", "fails with the device or for lack of permission")
_STRAY = Advice("nothing", "leaves it alone")
_PROGRESS = Advice("takes the offset; later messages below it are passed over", "sets the offset back to the end")

ADVICE: dict[str, Advice] = {
    "CFG_BEYOND_QUEUE": _PROGRESS,
    "CFG_DELETED_UNREADABLE": Advice("does not have this file", "refuses to open, or counts the records again"),
    "CFG_FROM_BACKUP": Advice("takes the backup", "takes the backup"),
    "CFG_UNREADABLE": Advice(
        "does not start without delay progress; begins with empty tables for the other files",
        "begins with empty tables",
    ),
    "CL_BAD_RECORD": _CUTS,
    "CL_BLANK_LENGTH": Advice("goes on with the next file", "as for a bad record: read-only, or cuts the log there"),
    "CL_BYTES_BEYOND_END": _CUTS,
    "CL_ENDS_BELOW_FLOOR": Advice("does not know the floor and opens", "read-only, and serves the rest"),
    "CL_FILE_GONE": _NOTHING,
    "CL_GAP": Advice("opens; reads past the gap fail", "read-only, and serves the rest"),
    "CL_MISALIGNED": Advice("opens; offsets lead to wrong places", "refuses to open with this file size"),
    "CL_MISNAMED": Advice("opens; queues lead to wrong messages", "read-only, and serves the rest"),
    "CL_MISSING": Advice("opens with an empty log and old queues", "read-only if queues are there"),
    "CL_MIXED_SIZES": _NOT_STARTED,
    "CL_NO_ACCESS": _READ,
    "CL_READ_ERROR": _READ,
    "CL_RECORDS_AT_RISK": Advice(
        "cuts these records when it opens the store; some can come back after later puts",
        "cuts these records when it opens the store, and keeps copies in quarantine/ if no floor is there",
    ),
    "CL_SHORT_FILE": _NOT_STARTED,
    "CL_STRAY_FILE": Advice("does not start", "leaves it alone"),
    "CL_TAIL_MOVING": _NOTHING,
    "CL_ZERO_LENGTH": Advice("does not start", "removes the newest file; read-only if others follow"),
    "CP_AHEAD_OF_LOG": Advice(
        "trusts the checkpoint: queues are not rebuilt from older records", "compares it with the log"
    ),
    "CP_BAD_SIZE": Advice("takes what the file has", "rebuilds it"),
    "CP_MISSING": Advice("recovers from the first file", "recovers from the first file"),
    "CP_NEGATIVE_TIME": Advice("recovers from the first file", "rebuilds it"),
    "CQ_EXT_UNREADABLE": Advice("filters the message by no tags code", "rebuilds the queue without the extension"),
    "CQ_FILE_GONE": _NOTHING,
    "CQ_GAP": Advice("reads past the gap fail", "rebuilds the queue from the log when it opens read-write"),
    "CQ_LIGHT_RESTARTED": Advice("drops what it takes for repeats", "reads the messages by offset"),
    "CQ_NO_ACCESS": _READ,
    "CQ_NO_QUEUES": Advice("rebuilds the queues of the part of the log that recovery reads", "rebuilds all queues"),
    "CQ_OUTLIVED": _NOTHING,
    "CQ_READ_ERROR": _READ,
    "CQ_STRAY_FILE": _STRAY,
    "CQ_TAIL_MOVING": _NOTHING,
    "CQ_TOPIC_REUSED": Advice("serves the later messages", "serves the later messages"),
    "CQ_WRONG_TAGS_CODE": Advice(
        "keeps the code: consumers that filter by the tag never see the message",
        "rebuilds the queue from the log when it opens read-write",
    ),
    "FLOOR_UNREADABLE": Advice("does not have this file", "writes it again with the next flush"),
    "IX_DUPLICATE": _NOTHING,
    "IX_NO_ACCESS": _READ,
    "IX_NO_INDEX": Advice(
        "indexes only records that it dispatches: keys of the others stay missing",
        "builds the index of all records in the log",
    ),
    "IX_OUTLIVED": _NOTHING,
    "IX_READ_ERROR": _READ,
    "IX_SLOTS_UNKNOWN": Advice("takes maxHashSlotNum of its settings", "takes max_hash_slot_num of its settings"),
    "IX_STRAY_FILE": Advice("does not start", "leaves it alone"),
    "IX_TAIL_MOVING": _NOTHING,
    "LOCK_UNKNOWN": _NOTHING,
}
"""Per code; other codes of queues and of the index are those of their group."""


def advice_of(code: str) -> Advice:
    """Return what both stores do about a finding."""
    known = ADVICE.get(code)
    if known is not None:
        return known
    return _QUEUE if code.startswith("CQ_") else _INDEX if code.startswith("IX_") else _NOTHING
