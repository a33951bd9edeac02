"""Generations: which master wrote which part of a log.

A store begins a generation each time it opens as a master, before its first append. An entry has the number of the
generation, the offset at which it begins, and a random identity. Two logs with a common entry have equal bytes below
the begin of that entry, and below the smaller of its two ends. That end is the *common point*: a slave whose log goes
past it has bytes that the master lost or never had, and cuts them.

The begin and the identity both count. Two masters that were promoted from different logs may choose the same number.

Entries lie in `config/replication.json`, whole after a crash. RocketMQ 4.9.3 has nothing like them and compares only
one offset (R3 and R4).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tornpage.impl.groups.config_file import ConfigFile
from tornpage.impl.io.files import Files

__all__ = ["ENTRIES_MAX", "TOKEN_BYTES", "Generation", "GenerationsFile", "common_point"]

ENTRIES_MAX = 256
"""Entries kept, the newest ones. A slave that shares only older ones is refused."""
TOKEN_BYTES = 16


class Generation(NamedTuple):
    """One generation. `start` is the offset of its first byte, `token` its identity."""

    number: int
    start: int
    token: bytes


def common_point(ours: Sequence[Generation], our_end: int, theirs: Sequence[Generation], their_end: int) -> int | None:
    """Return the offset up to which two logs are known to be equal.

    None without a common entry.

    An entry that begins past the end of its log says nothing about it.
    """
    for place in reversed(range(len(ours))):
        entry = ours[place]
        if entry in theirs and entry.start <= min(our_end, their_end):
            there = theirs.index(entry)
            return min(_end_of(ours, place, our_end), _end_of(theirs, there, their_end))
    return None


def _end_of(entries: Sequence[Generation], place: int, log_end: int) -> int:
    """Return the offset at which a generation ends in a log."""
    return min(log_end, entries[place + 1].start) if place + 1 < len(entries) else log_end


class GenerationsFile:
    """Owns `config/replication.json`: the identity of the node, and the entries of its log.

    The directory must exist before a change. Each change is durable when the call returns. Every method may raise
    OSError.
    """

    def __init__(self, files: Files, directory: str, *, new_token: Callable[[], bytes]) -> None:
        self.node = b""
        self.entries: tuple[Generation, ...] = ()
        self._file = ConfigFile(files, f"{directory}/config/replication.json")
        self._new_token = new_token

    def load(self) -> None:
        """Load the entries; choose the identity of a node that has none."""
        found = self._file.load(_read)
        if found is None:
            self.node, self.entries = self._new_token(), ()
        else:
            self._file.make_durable()
            self.node, self.entries = found

    def begin(self, *, log_begin: int, log_end: int) -> None:
        """Begin a generation at the end of the log.

        The first generation of a store covers everything that the log already has.
        """
        kept = [entry for entry in self.entries if entry.start <= log_end]
        number = max((entry.number for entry in self.entries), default=0) + 1
        start = log_end if self.entries else log_begin
        self._save((*kept, Generation(number, start, self._new_token())))

    def adopt(self, entries: Sequence[Generation]) -> None:
        """Take over the entries of a master, with whose log this log is equal up to its end."""
        if tuple(entries) != self.entries:
            self._save(tuple(entries))

    def _save(self, entries: tuple[Generation, ...]) -> None:
        kept = entries[-ENTRIES_MAX:]
        rows = [{"number": each.number, "start": each.start, "token": each.token.hex()} for each in kept]
        self._file.save({"generations": rows, "node": self.node.hex()})
        self.entries = kept


def _read(document: object) -> tuple[bytes, tuple[Generation, ...]]:
    """Return node and entries of a document. Raises ValueError."""
    try:
        rows = document["generations"]  # type: ignore[index]
        entries = tuple(_entry(int(row["number"]), int(row["start"]), bytes.fromhex(row["token"])) for row in rows)
        return bytes.fromhex(document["node"]), entries  # type: ignore[index]
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(str(error)) from error


def _entry(number: int, start: int, token: bytes) -> Generation:
    if number < 1 or start < 0 or len(token) != TOKEN_BYTES:
        raise ValueError(f"no generation has the number {number}, the start {start} and {len(token)} bytes of identity")
    return Generation(number, start, token)
