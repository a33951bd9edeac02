"""Judge settings and messages of a group at their limits, once in a process.

These parts have no state, so a run judges them without events. This module judges

* defaults and checks of settings (contract 8);
* every message with its smallest, largest and wrong values (contract 15);
* each entry with a wrong byte (contract 15).

The bytes are made without the store's code. `parts_hold` also calls the other judges that run once in a process:
impossible messages, open files, logs, links, nodes, requests and small parts alone, stores at their limits, and whole
members.
"""

import struct
import zlib
from functools import cache
from typing import get_args

from tornpage.impl.raft import entry_codec, wire
from tornpage.impl.raft import messages as ours
from tornpage.impl.raft.raft_log import DATA_FILE_BYTES, INDEX_FILE_BYTES
from tornpage.impl.raft.settings import RaftSettings
from tornpage.impl.replication.framing import BadFrame, Frame, Framing
from tornpage.model.raft.operations import CopyChange
from tornpage.model.raft.settings import CASES, DEFAULTS
from tornpage.properties.cluster.formats import framing_holds, refuses, settings_hold
from tornpage.properties.cluster.whole_nodes import whole_members_hold
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.raft.files import HEADER_BYTES, Row, laid_out
from tornpage.properties.raft.frames import frame
from tornpage.properties.raft.impossible import impossible_messages_hold
from tornpage.properties.raft.links_alone import links_alone_hold
from tornpage.properties.raft.logs_alone import log_alone_holds, log_opens_in_blocks
from tornpage.properties.raft.node_alone import nodes_alone_hold
from tornpage.properties.raft.open_files_alone import open_files_hold
from tornpage.properties.raft.requests_alone import requests_alone_hold
from tornpage.properties.raft.small_parts_alone import small_parts_alone_hold
from tornpage.properties.raft.store_alone import store_alone_holds
from tornpage.properties.raft.store_limits import store_limits_hold

__all__ = ["parts_hold"]

_PEERS = ("10.0.0.1:1", "10.0.0.2:2")
_LARGEST = (1 << 62) - 1
_LOG_PROGRAMS = len(get_args(CopyChange))
"""One for each change of a log that is opened afterwards."""
_FORMS: dict[int, str] = {20: ">qqq", 21: ">qB", 23: ">qBqq", 24: ">q"}
"""The bodies of messages without entries, by kind."""


@cache
def parts_hold() -> None:
    """Judge all parts. Raises GuaranteeBroken."""
    settings_hold(RaftSettings, DEFAULTS, CASES, peers=_PEERS)
    _derived_hold()
    _sizes_hold()
    _greetings_hold()
    _messages_hold()
    _entries_hold()
    _codec_holds()
    impossible_messages_hold()
    log_opens_in_blocks()
    for seed in range(_LOG_PROGRAMS):
        log_alone_holds(seed)
    open_files_hold()
    links_alone_hold()
    nodes_alone_hold()
    requests_alone_hold()
    small_parts_alone_hold()
    store_alone_holds()
    store_limits_hold()
    whole_members_hold()


def _is(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise GuaranteeBroken(15, f"{what} is another one", str(wanted)[:200], str(found)[:200])


def _derived_hold() -> None:
    made = RaftSettings(_PEERS, data_file_bytes=5_000, body_bytes_max=6_000)
    _is("the text of a group", made.group, "10.0.0.1:1,10.0.0.2:2 with entries in data files of 5000 bytes")
    _is("the list of hosts", made.hosts, ("10.0.0.1", "10.0.0.2"))
    bodies = (made.entry_body_bytes_max, RaftSettings(_PEERS, body_bytes_max=7).entry_body_bytes_max)
    _is("the longest body of an entry", bodies, (4_936, 7))
    _is("the size of files", (DATA_FILE_BYTES, INDEX_FILE_BYTES), (1 << 30, 32 * 5 * 1024 * 1024))


def _sizes_hold() -> None:
    """Contract 15: the longest frame has a batch and one more entry, and at least a greeting."""
    for batch, body in ((1, 1), (1, 4_039), (1, 4_040), (10_000, 5_000), (262_144, 4_194_304)):
        longest = wire.frame_bytes_max(batch, body)
        _is(f"the longest frame of {batch} and {body} bytes", longest, max(4_096, 44 + batch + 12 + body))
    framing_holds(Framing(wire.RaftKind, 1_000), 19, 1_000)


def _read(kind: int, body: bytes) -> ours.Message:
    return wire.message_of(Frame(wire.RaftKind(kind), body))


def _refused(kind: int, body: bytes, what: str) -> None:
    refuses(lambda wrong: _read(kind, wrong), body, BadFrame, what)


def _greetings_hold() -> None:
    for group, clients in (("", ""), ("g", "c"), ("é" * 10, "c:1"), ("g" * 4_088, "")):
        text = group.encode()
        body = struct.pack(">HHHH", 1, 3, 4, len(text)) + text + clients.encode()
        hello = wire.Hello(3, 4, group, clients)
        _is("a greeting", (wire.hello_of(body), wire.hello_frame(hello)), (hello, frame(17, body)))
    wrong = (
        b"", bytes(7), struct.pack(">HHHH", 2, 3, 4, 0), struct.pack(">HHHH", 1, 3, 4, 1) + b"\xff",
        struct.pack(">HHHH", 1, 3, 4, 0) + b"\xff", struct.pack(">HHHH", 1, 3, 4, 0) + b"c" * 4_089,
    )  # fmt: skip
    for body in wrong:
        refuses(wire.hello_of, body, BadFrame, f"a greeting of {len(body)} bytes")
    _is("a PING", wire.ping_frame(), frame(19, b""))


def _messages_hold() -> None:
    made: list[tuple[int, ours.Message]] = []
    for number in (1, 77, _LARGEST):
        made += [
            (20, ours.RequestVote(number, number - 1, number)),
            (21, ours.VoteAnswer(number, True)),
            (21, ours.VoteAnswer(number, False)),
            (23, ours.AppendAnswer(number, True, number, 0)),
            (23, ours.AppendAnswer(number, False, 0, number)),
            (24, ours.LeadNow(number)),
        ]
    for kind, message in made:
        body = struct.pack(_FORMS[kind], *message)
        _is(f"a message of kind {kind}", (wire.encoded(message), _read(kind, body)), (frame(kind, body), message))
        _refused(kind, body[:-1], f"a short message of kind {kind}")
        _refused(kind, body + b"\0", f"a long message of kind {kind}")
        for at, value in enumerate(message):
            for wrong in (2,) if isinstance(value, bool) else (-1, _LARGEST + 1):
                values = [wrong if place == at else each for place, each in enumerate(message)]
                _refused(kind, struct.pack(_FORMS[kind], *values), f"a message of kind {kind} with {values}")
    for kind in (17, 18, 19):
        _refused(kind, b"", f"a frame of kind {kind} as a message")


def _entries_hold() -> None:
    """Contract 15: a message with entries has ordered terms, and nothing after its entries."""
    lists: tuple[tuple[tuple[int, bytes], ...], ...] = ((), ((3, b""),), ((3, b"x"), (3, b""), (5, b"yy")))
    for begin, previous, entries in ((0, 0, lists[0]), (1, 2, lists[1]), (7, 3, lists[2])):
        numbers = (5, begin, previous, 1, 2)
        rows = b"".join(struct.pack(">qI", term, len(body)) + body for term, body in entries)
        body = struct.pack(">qqqqqI", *numbers, len(entries)) + rows
        carried = tuple(ours.Carried(*each) for each in entries)
        message = ours.AppendEntries(5, begin, previous, carried, 1, 2)
        _is("a message with entries", (wire.encoded(message), _read(22, body)), (frame(22, body), message))
        _refused(22, body[:-1], "entries that end early")
        _refused(22, body + b"\0", "bytes after entries")
        for at in range(5):
            for wrong in (-1, _LARGEST + 1):
                values = [wrong if place == at else each for place, each in enumerate(numbers)]
                head = struct.pack(">qqqqqI", *values, len(entries))
                _refused(22, head + rows, f"entries with {values}")
    for previous, begin, terms in ((0, 1, (6,)), (3, 1, (2,)), (0, 1, (4, 3)), (1, 0, ()), (6, 1, ())):
        rows = b"".join(struct.pack(">qI", term, 0) for term in terms)
        head = struct.pack(">qqqqqI", 5, begin, previous, 0, 0, len(terms))
        _refused(22, head + rows, f"entries of terms {terms} after {previous} in term 5")


def _row_without_checksum() -> Row:
    """Return an entry for whose bytes the checksum is 0. A 1 stands for it.

    A checksum is linear in the bits of the term. So the term is the solution of linear equations over bits.
    """

    def checksum(term: int) -> int:
        return zlib.crc32(struct.pack(">iqqqI", HEADER_BYTES + 1, 9, term, 640, zlib.crc32(b"z")))

    wanted, solution = checksum(0), 0
    basis: dict[int, tuple[int, int]] = {}
    for bit in range(60):
        value, made_of = checksum(1 << bit) ^ checksum(0), 1 << bit
        for top in sorted(basis, reverse=True):
            if value >> top & 1:
                value, made_of = value ^ basis[top][0], made_of ^ basis[top][1]
        if value:
            basis[value.bit_length() - 1] = value, made_of
    for top in sorted(basis, reverse=True):
        if wanted >> top & 1:
            wanted, solution = wanted ^ basis[top][0], solution ^ basis[top][1]
    assert checksum(solution) == 0
    return Row(9, solution, 640, b"z")


def _codec_holds() -> None:
    """Contract 15: a reader of entries takes each whole entry, and none with a wrong byte.

    A reader of blocks ends before the first entry that is not whole, or not the next one.
    """
    entries = ((3, b""), (3, b"x"), (4, b"yyyyy"), (4, bytes(range(64))))
    rows = laid_out(entries, 4_096, 320).rows
    data = b"".join(row.data() for row in rows)
    wanted = [(row.position, row.term, row.end - row.position) for row in rows]
    for size in range(len(data) + 1):
        whole = [each for each, row in zip(wanted, rows, strict=True) if row.end <= size]
        _is(f"what a reader takes of {size} bytes", entry_codec.skimmed(data[:size], 0, 0, 3), whole)
    for position, place, term in ((1, 0, 3), (0, 1, 3), (0, 0, 4)):
        _is("what a reader takes elsewhere", entry_codec.skimmed(data, position, place, term), [])
    later = entry_codec.skimmed(data[rows[2].position :], rows[2].position, 2, 0)
    _is("what a reader takes of a later block", later, wanted[2:])
    for at in range(len(data)):
        wrong = data[:at] + bytes((data[at] ^ 1 << at % 8,)) + data[at + 1 :]
        whole = [each for each, row in zip(wanted, rows, strict=True) if row.end <= at]
        _is(f"what a reader takes before a wrong byte at {at}", entry_codec.skimmed(wrong, 0, 0, 3), whole)
        row = next(each for each in rows if at < each.end)
        _is(
            f"an entry with a wrong byte at {at}",
            entry_codec.checked(wrong[row.position : row.end], row.position),
            None,
        )
    rows = (*rows, _row_without_checksum())
    last = rows[-1]
    found = entry_codec.skimmed(last.data(), last.position, last.place, 0)
    _is("what a reader takes of an entry with the checksum 0", found, [(last.position, last.term, HEADER_BYTES + 1)])
    for row in rows:
        body, sealed = row.data(), (row.place, row.term, row.position, row.body)
        for given in (body, body + b"z", memoryview(body)):
            _is("an entry", entry_codec.checked(given, row.position), (*sealed, True))
        _is("an entry without checksums", entry_codec.checked(row.data(sealed=False), row.position), (*sealed, False))
        for size in range(len(body)):
            _is(f"{size} bytes of an entry", entry_codec.checked(body[:size], row.position), None)
        _is("an entry elsewhere", entry_codec.checked(body, row.position + 1), None)
        made = entry_codec.entry(row.place, row.term, row.position, row.body)
        unit = entry_codec.unit(row.place, row.term, row.position, row.end - row.position)
        _is("the bytes of an entry and its unit", (made, unit), (body, row.unit()))
        wanted_unit = (row.place, row.term, row.position, row.end - row.position)
        _is("a unit", entry_codec.unit_of(unit), wanted_unit)
        for wrong_unit in (b"", unit[:-1], unit + b"\0", b"\1" + unit[1:], bytes(32)):
            _is("a wrong unit", entry_codec.unit_of(wrong_unit), None)
    _is("a blank", entry_codec.blank(77), struct.pack(">ii", -1, 77))
