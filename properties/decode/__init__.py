"""The lab's own decoders of store files, written from docs/format.md.

They share no code with the store. Importing this package loads the standard library only.
"""

from __future__ import annotations

from tornpage.properties.decode.findings import Code, Finding, Severity, Verdict, verdict_of
from tornpage.properties.decode.judge import LogJudge
from tornpage.properties.decode.record import Bad, Blank, Record, decode_record, message_id, parse_properties
from tornpage.properties.decode.store import (
    Checkpoint,
    LocatedItem,
    LogFile,
    StoreView,
    iter_items,
    look,
    read_checkpoint,
    read_floor,
)
from tornpage.properties.decode.walk import Item, Unreadable, Zeros, scan, walk

__all__ = [
    "Bad",
    "Blank",
    "Checkpoint",
    "Code",
    "Finding",
    "Item",
    "LocatedItem",
    "LogFile",
    "LogJudge",
    "Record",
    "Severity",
    "StoreView",
    "Unreadable",
    "Verdict",
    "Zeros",
    "decode_record",
    "iter_items",
    "look",
    "message_id",
    "parse_properties",
    "read_checkpoint",
    "read_floor",
    "scan",
    "verdict_of",
    "walk",
]
