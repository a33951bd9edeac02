"""Let DLedger 0.2.3 and tornpage's Raft log write the same directories in turns.

What each of both reads is compared.

A run draws the sizes of files and bodies from a seed. In each turn one of both opens the directory, shows every entry,
appends some, and is closed or killed. What has to be there follows from the documented format alone: entries, their
positions, blanks, index units, and the files of the term and the checkpoint. Every byte of the files is compared,
except the checksums, which DLedger leaves 0.

Source: `DLedgerEntryCoder`, `MmapFileList`, `MemberState` of DLedger 0.2.3.
"""

import base64
import random
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tornpage.impl.errors import StoreError
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.raft.hard_state import HardState
from tornpage.impl.raft.messages import Carried
from tornpage.impl.raft.raft_log import RaftLog
from tornpage.peers.errors import PeerTimeout
from tornpage.peers.rocketmq.installing import Release
from tornpage.peers.rocketmq.process import Limits, Process
from tornpage.peers.rocketmq.raft_lab import RaftLab, RaftNode, free_port
from tornpage.properties.scratch import scratch_directory

__all__ = ["RUNS", "Difference", "Exchanged", "exchange"]

_ENTRY = struct.Struct(">iiqqqiiii")
_UNIT = struct.Struct(">iqiqq")
_BLANK = struct.Struct(">ii")
_CHECKSUMS = slice(36, 44)
_LEADER_S = 60.0
_TURNS = 4
_INDEX_FILE_BYTES_OF_STORE = 32 * 5 * 1024 * 1024
_STORE_FILE_BYTES = 4096
_DIFFERENCES_MAX = 20
_SHOWN_CHARACTERS = 160


class _Entry(NamedTuple):
    """An entry as it has to be."""

    term: int
    position: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference: in which run, of what, and both values."""

    run: str
    what: str
    expected: str
    found: str


@dataclass(slots=True)
class Exchanged:
    """The comparisons of all runs by kind, and the first differences."""

    runs: int = 0
    turns: int = 0
    kills: int = 0
    cuts: int = 0
    entries: int = 0
    compared: Counter[str] = field(default_factory=Counter)
    skipped: int = 0
    """Messages that the store of 4.9.3 does not serve after an entry without a body."""
    differing: int = 0
    differences: list[Difference] = field(default_factory=list)

    def same(self, run: str, kind: str, what: str, expected: object, found: object) -> None:
        """Compare two values."""
        self.compared[kind] += 1
        if expected != found:
            self.differing += 1
            if len(self.differences) < _DIFFERENCES_MAX:
                self.differences.append(Difference(run, what, _short(expected), _short(found)))


def exchange(
    release: Release,
    *,
    entries: int,
    seed: int,
    found: Exchanged,
    names: Sequence[str] = (),
    progress: Callable[[str], None] = lambda run: None,
) -> None:
    """Carry out some runs, or all, with about so many entries.

    `found` gets the comparisons. Raises PeerFailed and its subclasses.
    """
    share = max(_TURNS, entries // 2)
    for number, (name, carry_out) in enumerate(RUNS.items()):
        if names and name not in names:
            continue
        with (
            scratch_directory("tornpage-raft-") as root,
            Process(release, Limits(answer_s=120.0)) as java,
        ):
            carry_out(_Run(name, java, Path(root), random.Random(f"{seed} {number}"), share, found))
        found.runs += 1
        progress(name)


class _Run:
    """Hold one directory and what it has to contain."""

    def __init__(
        self, name: str, java: Process, root: Path, rng: random.Random, entries: int, found: Exchanged
    ) -> None:
        self.name, self.java, self.root, self.rng, self.entries, self.found = name, java, root, rng, entries, found
        self.data_file_bytes = rng.choice((1024, 2048, 4096, 10_000, 16_384))
        self.index_file_bytes = 32 * rng.choice((3, 16, 64, 1000))
        self.expected: list[_Entry] = []
        self.sealed: set[int] = set()
        """The places of entries with checksums."""
        self.term = 0
        self.member = root / "dledger-n0"

    def same(self, kind: str, what: str, expected: object, found: object) -> None:
        """Compare two values of this run."""
        self.found.same(self.name, kind, what, expected, found)

    # ---- turns -------------------------------------------------------------------------------------------------------

    def take_turns(self, *, java_first: bool) -> None:
        """Let both write in turns; at the end both read once more."""
        for turn in range(_TURNS):
            (self._java_turn if (turn % 2 == 0) == java_first else self._our_turn)(self.entries // _TURNS)
        self._java_turn(0)
        self._our_turn(0)

    def _java_turn(self, count: int) -> None:
        self.found.turns += 1
        with member_open(self.java, self.root, self.data_file_bytes, self.index_file_bytes) as state:
            self.compare_state(state)
            self.compare_java_entries()
            if count:
                state = wait_for_leader(self.java)
                self.term = int(state["term"])
                self._java_appends(count)
            is_killed = bool(count) and self.rng.random() < 0.5
            end = len(self.expected) - 1
            if count:
                self.same("states", "committed index", end, _committed(self.java, end))
            if is_killed:
                self.found.kills += 1
                self.java.close()
        self.compare_files()
        if not is_killed and count:
            text = (self.member / "checkpoint").read_text()
            self.same("files", "checkpoint", f"committedIndex={end}\nendIndex={end}\n", text)
        vote = "n0" if count or self.term else None
        if count:
            text = (self.member / "currterm").read_text()
            self.same("files", "currterm", f"voteLeader={vote}\ncurrTerm={self.term}\n", text)

    def _java_appends(self, count: int) -> None:
        bodies = [self._body() for _ in range(count)]
        answers = self.java.ask("append", bodies=[_text(body) for body in bodies])["answers"]
        for body, answer in zip(bodies, answers, strict=True):
            place = self.note(body)
            wanted = {"code": "SUCCESS", "index": place, "term": self.term, "pos": self.expected[place].position}
            self.same("appends of DLedger", f"append {place}", wanted, answer)

    def _our_turn(self, count: int) -> None:
        self.found.turns += 1
        files = OsFiles()
        self.member.mkdir(parents=True, exist_ok=True)
        hard_state = HardState(files, str(self.member))
        self.same("states", "term in tornpage", self.term, hard_state.term)
        log = RaftLog(
            files, str(self.member), data_file_bytes=self.data_file_bytes, index_file_bytes=self.index_file_bytes,
            unsealed=True,
        )  # fmt: skip
        self.compare_log(log)
        for _ in range(count):
            if self.expected and self.rng.random() < 0.05:
                self._cut(log)
            if self.rng.random() < 0.05 or not self.term:
                self.term += self.rng.randrange(1, 4)
                hard_state.save(self.term, 0)
            body = self._body()
            log.append([Carried(self.term, body)])
            self.sealed.add(self.note(body))
            if self.rng.random() < 0.2:
                log.sync()
        log.sync()
        log.close()
        self.compare_files()

    def _cut(self, log: RaftLog) -> None:
        end = self.rng.randrange(max(0, len(self.expected) - 20), len(self.expected))
        log.cut(end)
        del self.expected[end:]
        self.sealed -= set(range(end, max(self.sealed, default=0) + 1))
        self.found.cuts += 1

    # ---- what has to be there ------------------------------------------------------------------------------------

    def note(self, body: bytes) -> int:
        """Add an entry; return its place.

        An entry that leaves less than 8 bytes goes into the next file.
        """
        position = self._end()
        rest = self.data_file_bytes - position % self.data_file_bytes
        if _ENTRY.size + len(body) + _BLANK.size > rest:
            position += rest
        self.expected.append(_Entry(self.term, position, body))
        self.found.entries += 1
        return len(self.expected) - 1

    def _end(self) -> int:
        last = self.expected[-1] if self.expected else None
        return 0 if last is None else last.position + _ENTRY.size + len(last.body)

    def _body(self) -> bytes:
        """Draw a body: short, long, or one that just fits or just does not fit into the file."""
        most = self.data_file_bytes - _ENTRY.size - _BLANK.size
        rest = self.data_file_bytes - self._end() % self.data_file_bytes
        drawn = self.rng.random()
        if drawn < 0.1:
            size = rest - _ENTRY.size - _BLANK.size + self.rng.randrange(-1, 2)
        elif drawn < 0.2:
            size = self.rng.randrange(most + 1)
        else:
            size = self.rng.randrange(most // 6)
        return self.rng.randbytes(min(max(size, 0), most))

    # ---- comparisons ---------------------------------------------------------------------------------------------

    def compare_state(self, state: dict[str, Any]) -> None:
        """Compare what a member of DLedger shows after its opening."""
        end = len(self.expected) - 1
        self.same(
            "states", "begin and end in DLedger", (0 if self.expected else -1, end), (state["begin"], state["end"])
        )
        self.same("states", "term in DLedger", self.term, state["term"])
        if self.expected:
            self.same("states", "last term in DLedger", self.expected[-1].term, state["end_term"])

    def compare_java_entries(self) -> None:
        """Compare every entry that DLedger shows."""
        for first in range(0, len(self.expected), 500):
            after = min(first + 500, len(self.expected))
            shown = self.java.ask("entries", begin=first, end=after)["entries"]
            for place, entry in enumerate(shown, first):
                term, position, body = self.expected[place]
                wanted = {
                    "magic": 1, "size": _ENTRY.size + len(body), "index": place, "term": term, "pos": position,
                    "body": _text(body),
                }  # fmt: skip
                self.same("entries in DLedger", f"entry {place}", wanted, entry)

    def compare_log(self, log: RaftLog) -> None:
        """Compare every entry that our log shows."""
        self.same("states", "begin and end in tornpage", (0, len(self.expected)), (log.begin, log.end))
        self.same("states", "durable end in tornpage", len(self.expected), log.synced)
        for place in range(min(log.end, len(self.expected))):
            found = _Entry(log.term_at(place), log.position_at(place), log.body_at(place))
            self.same("entries in tornpage", f"entry {place}", self.expected[place], found)

    def compare_files(self) -> None:
        """Compare every byte of the data and index files."""
        data, units = self._contents()
        for folder, wanted, size in (("data", data, self.data_file_bytes), ("index", units, self.index_file_bytes)):
            there = {int(path.name): path for path in sorted((self.member / folder).iterdir())}
            self.same("files", f"names in {folder}", sorted(wanted), [each for each in sorted(there) if each in wanted])
            for first, path in there.items():
                content = bytearray(path.read_bytes())
                if folder == "data":
                    self._blank_checksums(content, first)
                self.same("files", f"{folder}/{first:020d}", bytes(wanted.get(first, bytes(size))), bytes(content))

    def _contents(self) -> tuple[dict[int, bytearray], dict[int, bytearray]]:
        data: dict[int, bytearray] = {}
        units: dict[int, bytearray] = {}
        end = self.expected[0].position if self.expected else 0
        for place, (term, position, body) in enumerate(self.expected):
            if position != end:
                _put(data, self.data_file_bytes, end, _BLANK.pack(-1, position - end))
            size = _ENTRY.size + len(body)
            head = _ENTRY.pack(1, size, place, term, position, 0, 0, 0, len(body))
            _put(data, self.data_file_bytes, position, head + body)
            _put(units, self.index_file_bytes, place * _UNIT.size, _UNIT.pack(1, position, size, place, term))
            end = position + size
        return data, units

    def _blank_checksums(self, content: bytearray, first: int) -> None:
        for place in self.sealed:
            at = self.expected[place].position - first
            if 0 <= at < len(content):
                begin, end = at + _CHECKSUMS.start, at + _CHECKSUMS.stop
                content[begin:end] = bytes(end - begin)


def _after_an_old_log(run: _Run) -> None:
    """Let a store write a plain commit log and then one of DLedger, and read both."""
    java, root, rng = run.java, run.root, run.rng
    run.data_file_bytes, run.index_file_bytes = _STORE_FILE_BYTES, _INDEX_FILE_BYTES_OF_STORE
    bodies = [rng.randbytes(rng.randrange(1, 900)) for _ in range(max(8, run.entries // 4))]
    old = bodies[: len(bodies) // 2]
    java.ask("open_plain_store", dir=str(root), data_file_bytes=_STORE_FILE_BYTES)
    offsets = [_put_message(java, body)["offset"] for body in old]
    java.ask("close")
    java.ask("open_store", dir=str(root), data_file_bytes=_STORE_FILE_BYTES, member="n0", peers=_peers())
    divided = wait_for_leader(java)["divided"]
    answers = [_put_message(java, body) for body in bodies[len(old) :]]
    records = _records(java, len(bodies))
    java.ask("close")
    run.found.turns += 2
    run.same(
        "states", "begin of the files of DLedger", -(-offsets[-1] // _STORE_FILE_BYTES) * _STORE_FILE_BYTES, divided
    )
    for number, body in enumerate(old):
        first = offsets[number] - offsets[number] % _STORE_FILE_BYTES
        content = (root / "commitlog" / f"{first:020d}").read_bytes()[offsets[number] - first :]
        run.same("records of the old log", f"record {number}", content[: len(records[number])], records[number])
        run.same("records of the old log", f"body of {number}", True, body in records[number])
    log = RaftLog(
        OsFiles(), str(run.member), data_file_bytes=_STORE_FILE_BYTES, index_file_bytes=_INDEX_FILE_BYTES_OF_STORE,
        unsealed=True,
    )  # fmt: skip
    try:
        run.same("states", "entries after the old log", (0, len(answers)), (log.begin, log.end))
        run.same("states", "first position after the old log", divided, log.position_at(0))
        for place, answer in enumerate(answers):
            record, position = log.body_at(place), log.position_at(place)
            run.same("entries in tornpage", f"record {place}", records[len(old) + place], record)
            run.same("entries in tornpage", f"position {place}", answer["offset"], position + _ENTRY.size)
            (physical,) = struct.unpack_from(">q", record, 28)
            run.same("entries in tornpage", f"offset in the record {place}", position + _ENTRY.size, physical)
            run.found.entries += 1
    except (LookupError, StoreError, OSError) as error:
        run.same("states", "reading the log", "no error", str(error))
    finally:
        log.close()


def _store_on_ours(run: _Run) -> None:
    """Let the store of 4.9.3 serve messages of tornpage's log.

    In a second log an entry has no body. A leader of tornpage begins its term with such an
    entry. DLedger reads it. The store of 4.9.3 takes it for a damaged record. Its queues lack the messages up to the
    end of the file.
    """
    java, rng = run.java, run.rng
    run.data_file_bytes, run.index_file_bytes = _STORE_FILE_BYTES, _INDEX_FILE_BYTES_OF_STORE
    count = max(20, run.entries // 8)
    old = run.root / "old"
    java.ask("open_plain_store", dir=str(old), data_file_bytes=_STORE_FILE_BYTES)
    for _ in range(4):
        _put_message(java, rng.randbytes(rng.randrange(1, 400)))
    templates = _records(java, 4)
    java.ask("close")
    for name, empty_at in (("records", -1), ("noop", count // 4)):
        root = run.root / name
        run.member, run.expected, run.term = root / "dledger-n0", [], 1
        run.sealed.clear()
        run.member.mkdir(parents=True)
        HardState(OsFiles(), str(run.member)).save(run.term, 0)
        log = RaftLog(
            OsFiles(), str(run.member), data_file_bytes=_STORE_FILE_BYTES, index_file_bytes=_INDEX_FILE_BYTES_OF_STORE
        )
        written = []
        for number in range(count):
            if number == empty_at:
                log.append([Carried(run.term, b"")])
                run.sealed.add(run.note(b""))
            template = rng.choice(templates)
            run.sealed.add(run.note(template))
            offsets = struct.pack(">qq", number, run.expected[-1].position + _ENTRY.size)
            record = template[:20] + offsets + template[36:]
            run.expected[-1] = run.expected[-1]._replace(body=record)
            log.append([Carried(run.term, record)])
            written.append(record)
        log.sync()
        log.close()
        state = java.ask("open_store", dir=str(root), data_file_bytes=_STORE_FILE_BYTES, member="n0", peers=_peers())
        run.found.turns += 1
        run.compare_state(state)
        run.compare_java_entries()
        wait_for_leader(java)
        if empty_at < 0:
            for number, record in enumerate(_records(java, count)):
                run.same("records of the store", f"record {number}", written[number], record)
        else:
            _put_message(java, b"after")  # it is served after those before it were dispatched
            run.found.skipped += count - _served(java)
        java.ask("close")


def _three_members(run: _Run) -> None:
    """Let a group of three lose an entry of its first leader, and read all three directories.

    The first leader appends an entry alone and is killed. After its restart it cuts the entry, and leaves its bytes.
    """
    rng = run.rng
    with RaftLab(run.java.release) as lab:
        nodes = lab.group(3)
        first = lab.leader(*nodes)
        others = [node for node in nodes if node is not first]
        count = max(5, run.entries // 20)
        _put_drawn(first, rng, count)
        end = first.state()["end"]
        lab.until("all have the first entries", lambda: all(node.state()["end"] == end for node in others))
        for node in others:
            node.kill()
        first.put("cut off later" * 40)
        first.kill()
        lab.start(*others)
        second = lab.leader(*others)
        _put_drawn(second, rng, count)
        first.start()
        last = second.state()["end"]
        lab.until("all have all entries", lambda: all(node.entry(last) == second.entry(last) for node in nodes))
        lab.until("all entries are committed", lambda: all(node.state()["committed"] == last for node in nodes))
        shown = [(node.state(), node.ask("entries", begin=0, end=last + 1)["entries"]) for node in nodes]
        first.kill()
        for node in others:
            node.close()
        run.found.turns += 3
        run.found.kills += 4
        run.found.entries += last + 1
        for node, (state, entries) in zip(nodes, shown, strict=True):
            _compare_member(run, node, state, entries)


def _put_drawn(node: RaftNode, rng: random.Random, count: int) -> None:
    for _ in range(count):
        _require_ok(node.ask("put", topic="T", body=_text(rng.randbytes(rng.randrange(1, 700)))))


def _compare_member(run: _Run, node: RaftNode, state: dict[str, Any], entries: Sequence[dict[str, Any]]) -> None:
    """Compare the directory of a member that is down with what the member showed."""
    directory = node.root / f"dledger-{node.name}"
    hard_state = HardState(OsFiles(), str(directory))
    vote = None if hard_state.vote is None else f"n{hard_state.vote}"
    run.same("states", f"term and vote of {node.name}", (state["term"], state["vote"]), (hard_state.term, vote))
    log = RaftLog(
        OsFiles(), str(directory), data_file_bytes=_STORE_FILE_BYTES, index_file_bytes=_INDEX_FILE_BYTES_OF_STORE,
        unsealed=True,
    )  # fmt: skip
    run.same("states", f"begin and end of {node.name}", (state["begin"], state["end"] + 1), (log.begin, log.end))
    run.same("states", f"terms of {node.name}", 2, len({entry["term"] for entry in entries}))
    for place, entry in enumerate(entries):
        found = _Entry(log.term_at(place), log.position_at(place), log.body_at(place))
        wanted = _Entry(entry["term"], entry["pos"], base64.b64decode(entry["body"]))
        run.same("entries in tornpage", f"entry {place} of {node.name}", wanted, found)
    log.close()


def _served(java: Process) -> int:
    """Return how many messages of the log the queue of the store has.

    The store has dispatched its last message by then.
    """
    until = time.monotonic() + _LEADER_S
    while time.monotonic() < until:
        state = java.ask("state")
        if state["max"] == state["written"] and state["dispatched"]:
            return int(state["queue_end"]) - int(state["queue_begin"]) - 1
        time.sleep(0.02)
    raise PeerTimeout(f"messages are not dispatched within {_LEADER_S:g} s")


def _put_message(java: Process, body: bytes) -> dict[str, Any]:
    return _require_ok(java.ask("put", topic="T", body=_text(body)))


def _require_ok(answer: dict[str, Any]) -> dict[str, Any]:
    if answer["status"] != "PUT_OK":
        raise PeerTimeout(f"a put is answered {answer['status']}")
    return answer


def _records(java: Process, count: int) -> list[bytes]:
    """Return the records of the queue, as soon as so many can be read."""
    until = time.monotonic() + _LEADER_S
    found: list[bytes] = []
    while len(found) < count:
        shown = java.ask("read", topic="T", offset=len(found), count=32)["records"]
        found += [base64.b64decode(record) for record in shown]
        if not shown and time.monotonic() > until:
            raise PeerTimeout(f"{len(found)} of {count} messages can be read after {_LEADER_S:g} s")
    return found


def _java_first(run: _Run) -> None:
    run.take_turns(java_first=True)


def _ours_first(run: _Run) -> None:
    run.take_turns(java_first=False)


RUNS: Mapping[str, Callable[[_Run], None]] = {
    "DLedger first": _java_first,
    "tornpage first": _ours_first,
    "after an old commit log": _after_an_old_log,
    "the store of 4.9.3 on tornpage's log": _store_on_ours,
    "three members": _three_members,
}
"""What each run does, by its name."""


@contextmanager
def member_open(java: Process, root: Path, data_file_bytes: int, index_file_bytes: int) -> Iterator[dict[str, Any]]:
    """Open a group of one member and yield its state. Close it at the end, unless killed."""
    state = java.ask(
        "open", dir=str(root), member="n0", peers=_peers(), data_file_bytes=data_file_bytes,
        index_file_bytes=index_file_bytes,
    )  # fmt: skip
    yield state
    if java.pid is not None:
        java.ask("close")


def wait_for_leader(java: Process) -> dict[str, Any]:
    """Return the state of a member as soon as it leads. Raises PeerTimeout."""
    until = time.monotonic() + _LEADER_S
    while time.monotonic() < until:
        state = java.ask("state")
        if state["role"] == "LEADER":
            return state
        time.sleep(0.02)
    raise PeerTimeout(f"no leader within {_LEADER_S:g} s")


def _committed(java: Process, wanted: int) -> int:
    """Return the committed index, which DLedger raises a moment after an append was answered."""
    until = time.monotonic() + _LEADER_S
    while (found := int(java.ask("state")["committed"])) < wanted and time.monotonic() < until:
        time.sleep(0.01)
    return found


def _peers() -> str:
    return f"n0-127.0.0.1:{free_port()}"


def _put(files: dict[int, bytearray], file_bytes: int, position: int, piece: bytes) -> None:
    at = position % file_bytes
    content = files.setdefault(position - at, bytearray(file_bytes))
    content[at : at + len(piece)] = piece


def _text(body: bytes) -> str:
    return base64.b64encode(body).decode()


def _short(value: object) -> str:
    text = value.hex() if isinstance(value, bytes) else str(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}… ({len(text)} characters)"
