"""Run the dispatcher of entries alone, beside a list of what a data file holds.

The data file is drawn: entries with and without a body, blanks, and bytes that are no entry. The dispatcher of records
is scripted: it notes each call, and may end before the end of a body, with and without a reason.

| contract | what is judged |
|---|---|
| 4, 5 | each body is dispatched once, in the order of the log, and its units and keys are returned in this order |
| 4 | nothing is dispatched after a blank, after bytes that are no entry, or past the readable end |
| 4 | nothing is dispatched after a body that ends early: the reason is that of its records |
| 16 | a batch ends with the entry that reaches its size |

An entry without a body may be asked for, since it has no record. Source: impl/raft/entry_dispatch.py.
"""

import random
import struct
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Literal, cast

from tornpage.impl.message.dispatching import Dispatched, IndexPuts, QueueRun
from tornpage.impl.raft.entry_dispatch import entries_dispatcher
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.raft.files import BLANK_BYTES, HEADER_BYTES

__all__ = ["dispatch_program_holds"]

_MAGIC, _BLANK_MAGIC = 1, -1
"""The first 4 bytes of an entry and of a blank. Source: `DLedgerMmapFileStore` of DLedger 0.2.3."""
_PIECES_MAX = 7
_HEAD = struct.Struct(">ii")

Kind = Literal["entry", "blank", "other"]


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a data file."""

    kind: Kind
    begin: int
    end: int


def dispatch_program_holds(seed: int) -> None:
    """Judge one drawn file. Raises GuaranteeBroken."""
    observed("a dispatcher of entries", lambda: _file_holds(random.Random(f"dispatch {seed}")))


def _drawn_file(rng: random.Random) -> tuple[bytes, list[_Piece]]:
    """Draw the bytes of a file, and its pieces. Only the last piece may be no entry."""
    data, pieces = bytearray(), list[_Piece]()

    def add(kind: Kind, added: bytes) -> None:
        pieces.append(_Piece(kind, len(data), len(data) + len(added)))
        data.extend(added)

    for _ in range(rng.randint(0, _PIECES_MAX)):
        size = HEADER_BYTES + rng.choice((0, 0, 1, 20, 91))
        add("entry", _HEAD.pack(_MAGIC, size) + bytes(size - _HEAD.size))
    match rng.choice(("nothing", "blank", "short rest", "magic", "small", "long", "zeros")):
        case "blank":
            rest = BLANK_BYTES + rng.choice((0, 1, 60))
            add("blank", _HEAD.pack(_BLANK_MAGIC, rest) + bytes(rest - _HEAD.size))
        case "short rest":
            add("other", _HEAD.pack(_BLANK_MAGIC, 7)[: rng.randint(1, _HEAD.size - 1)])
        case "magic":
            add("other", _HEAD.pack(rng.choice((0, 2, -2)), 60) + bytes(52))
        case "small":
            add("other", _HEAD.pack(_MAGIC, rng.choice((0, -1, 8, HEADER_BYTES - 1))) + bytes(52))
        case "long":
            add("other", _HEAD.pack(_MAGIC, 60) + bytes(rng.choice((0, 40, 51))))
        case "zeros":
            add("other", bytes(rng.choice((8, 60))))
    return bytes(data), pieces


def _file_holds(rng: random.Random) -> None:
    data, pieces = _drawn_file(rng)
    begins = [each.begin for each in pieces]
    start = rng.choice((*begins[:3], len(data)))
    ends = (len(data), len(data), *(each.end for each in pieces), *(each.end - 1 for each in pieces))
    end = rng.choice([each for each in ends if each >= start])
    sizes = (1, 48, 49, 96, 1 << 20, *(each.end - start + more for each in pieces for more in (0, 1)))
    batch_bytes = max(1, rng.choice(sizes))
    share_of_early = rng.choice((0.0, 0.2))
    answers: dict[int, Dispatched] = {}
    calls: list[tuple[int, int]] = []

    def dispatch(view: memoryview, position: int, end: int, asked: object) -> Dispatched:
        if position == end:
            return Dispatched(end, 0, [], IndexPuts([], [], []), 0, None)
        _is("what the dispatcher of records gets", (bytes(view) == data, asked is rules), (True, True))
        calls.append((position, end))
        answers[position] = answer = _drawn_answer(rng, position, end, is_early=rng.random() < share_of_early)
        return answer

    rules = SimpleNamespace(batch_bytes_max=batch_bytes)
    found = entries_dispatcher(dispatch)(memoryview(data), start, end, cast(Any, rules))
    position, reason, given, wanted_calls = start, None, list[Dispatched](), list[tuple[int, int]]()
    for piece in (each for each in pieces if each.begin >= start):
        if piece.begin >= end or piece.begin - start >= batch_bytes:
            break
        if piece.kind != "entry" or piece.end > end:
            reason = "blank" if piece.kind == "blank" else "bad_entry"
            break
        if piece.end - piece.begin > HEADER_BYTES:
            body = piece.begin + HEADER_BYTES, piece.end
            wanted_calls.append(body)
            _is("which bodies are dispatched", calls[: len(wanted_calls)], wanted_calls)
            answer = answers[body[0]]
            if answer.end_position != piece.end:
                reason = answer.reason or "bad_record"
                break
            given.append(answer)
        position = piece.end
    _is("which bodies are dispatched", calls, wanted_calls)
    _is("where a dispatch ends", (found.end_position, found.reason), (position, reason))
    _is("the number of records", found.records, sum(each.records for each in given))
    _is("the units", list(found.runs), [run for each in given for run in each.runs])
    for name in ("hashes", "offsets", "store_timestamps"):
        wanted = [value for each in given for value in getattr(each.index, name)]
        _is(f"the {name} of keys", list(getattr(found.index, name)), wanted)
    _is(
        "the time of the newest record", found.store_timestamp, max((each.store_timestamp for each in given), default=0)
    )


def _drawn_answer(rng: random.Random, position: int, end: int, *, is_early: bool) -> Dispatched:
    """Draw what the records of a body give. No other body gives the same."""
    keys = rng.randint(0, 2)
    runs = [QueueRun((b"T", position), position, bytes(20), end) for _ in range(rng.randint(0, 2))]
    numbers = [position * 10 + at for at in range(keys)]
    index = IndexPuts([each + 1 for each in numbers], [each + 2 for each in numbers], [each + 3 for each in numbers])
    ends_at = rng.randrange(position, end) if is_early else end
    reason = rng.choice((None, "bad_magic")) if is_early else None
    return Dispatched(ends_at, rng.randint(1, 3), runs, index, rng.randint(1, 1_000), reason)


def _is(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise GuaranteeBroken(4, f"{what} is another one", str(wanted)[:300], str(found)[:300])
