"""Run the small parts of a Raft member alone.

These are puts that wait, recent entries, the saved commit end, and the directory of a member. The dispatcher of entries
(`dispatch_alone.py`) runs with them. Each has a plain
reference, and each drawn program is judged after each operation:

| contract | part | what is judged |
|---|---|---|
| 8 | puts of a leader | each is decided once: OK after its entries are visible, else unknown; in the order of the log |
| 8, 16 | recent entries | they are those of the log; new ones are sent without a read; their memory has a limit |
| 2, 8 | commit end | it never falls; the file has the bytes of DLedger; a failed save leaves the one before |
| 8 | directory | a directory of another member, or with other content, is refused with a remedy, and not changed |

Sources: impl/raft/appended_puts.py, recent.py, commit_point.py and opening.py, each its head.
"""

import random
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, Literal, cast

from tornpage.impl.errors import BadDirectory, StoreInUse
from tornpage.impl.message.message import PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.put.time_outs import Request
from tornpage.impl.raft.appended_puts import AppendedPut, AppendedPuts, Decided
from tornpage.impl.raft.commit_point import CommitPoint
from tornpage.impl.raft.messages import Carried
from tornpage.impl.raft.opening import OpenMember, require_member, require_no_member
from tornpage.impl.raft.recent import RecentEntries
from tornpage.impl.raft.settings import RaftSettings
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.disk.disk import Image
from tornpage.properties.lockstep.parts.part_disk import PartDisk
from tornpage.properties.raft.dispatch_alone import dispatch_program_holds
from tornpage.properties.raft.files import HEADER_BYTES

__all__ = ["small_part_programs_hold", "small_parts_alone_hold"]

_PROGRAMS = 24
_EVENTS = 40
_FILES = 20
"""Data files that each program dispatches."""
_RECENT_BYTES = 400
_BATCHES_KEPT = 8
_SIZES = ((0, 1, 20, 52, 90, 300, 2 * _RECENT_BYTES), (52, 152))
"""Bytes of bodies. The second ones reach both limits of the memory exactly."""
_FAILING = 0.2
_PEERS = ("10.0.0.1:1", "10.0.0.2:2", "10.0.0.3:3")
_POINTS: tuple[tuple[bytes, int], ...] = (
    (b"", 0), (b"committedIndex=0\nendIndex=3\n", 1), (b"endIndex=9\ncommittedIndex=41\n", 42),
    (b"committedIndex=-1\n", 0), (b"committedIndex=x\n", 0), (b"committedIndex=\n", 0), (b"\xff\xfe\0", 0),
    (b"committedIndex= 7 \n", 8), (b"otherIndex=7\n", 0), (b"#Thu Jan 01\ncommittedIndex=5\r\n", 6),
)  # fmt: skip
"""Contents of the file of a commit end, and the end that they say."""

Content = Literal["entries", "messages"]


def small_parts_alone_hold() -> None:
    """Judge all directories of a member, and some drawn programs. Raises GuaranteeBroken."""
    observed("a directory of a member", _directories_hold)
    observed("an opening of a member", _openings_hold)
    observed("a commit end", _saved_ends_hold)
    for seed in range(_PROGRAMS):
        small_part_programs_hold(seed)


def small_part_programs_hold(seed: int) -> None:
    """Judge one drawn program of each part. Raises GuaranteeBroken."""
    observed("puts of a leader", lambda: _puts_hold(random.Random(f"puts {seed}")))
    observed("recent entries", _Recent(random.Random(f"recent {seed}")).run)
    observed("a commit end", lambda: _commit_ends_hold(random.Random(f"commit {seed}")))
    for number in range(_FILES):
        dispatch_program_holds(_FILES * seed + number)


# ---- puts that wait --------------------------------------------------------------------------------------------------


def _puts_hold(rng: random.Random) -> None:
    """Contract 8: add puts, let requests wait, and decide them."""
    puts = AppendedPuts()
    undecided: list[AppendedPut] = []
    status: dict[int, PutStatus] = {}
    waiting: dict[int, Request] = {}
    end, made = 0, list[AppendedPut]()

    def decides(what: str, found: Decided, decided: list[AppendedPut], wanted: PutStatus) -> None:
        status.update((id(each), wanted) for each in decided)
        requests = [(waiting[id(each)], wanted) for each in decided if id(each) in waiting]
        _is(what, found, requests)

    for _ in range(_EVENTS):
        event = rng.choice(("add", "add", "add", "attach", "attach", "committed", "committed", "give up"))
        if event == "add":
            end += rng.randint(1, 9)
            key = rng.choice((None, (b"T", 3)))
            put = AppendedPut(end, key, end + 7)
            found = put.end, put.key, put.number, put.status, put.request
            _is("a new put", found, (end, key, end + 7, None, None))
            puts.add(put)
            undecided.append(put)
            made.append(put)
        elif event == "attach" and made:
            put = rng.choice(made)
            request = cast(Request, object())
            _is("the status of a put", puts.attach(put, request), status.get(id(put)))
            waiting[id(put)] = request
        elif event == "committed":
            upto = rng.choice((end, end - 1, end + 1, rng.randint(0, end + 1)))
            decided = [each for each in undecided if each.end <= upto]
            undecided = undecided[len(decided) :]
            decides("what a commit decides", puts.committed(upto), decided, PutStatus.PUT_OK)
        elif event == "give up":
            decided, undecided = undecided, []
            decides("what a lost role decides", puts.give_up(), decided, PutStatus.OUTCOME_UNKNOWN)
        _is("the statuses of puts", [each.status for each in made], [status.get(id(each)) for each in made])


# ---- recent entries --------------------------------------------------------------------------------------------------


class _Log:
    """A scripted log: a list of entries that counts its calls.

    `fails` is the name of a call that raises.
    """

    def __init__(self, entries: list[Carried]) -> None:
        self.kept = entries
        self.synced = 0
        self.reads = 0
        self.fails = ""

    @property
    def end(self) -> int:
        """The number of entries."""
        return len(self.kept)

    def term_at(self, place: int) -> int:
        """Return the term of an entry."""
        return self.kept[place].term

    def entries(self, begin: int, size_bytes_max: int) -> tuple[Carried, ...]:
        """Return entries from `begin` on, and count the call."""
        self.reads += 1
        self._may_fail("read")
        return tuple(_fitting(self.kept[begin:], size_bytes_max))

    def append(self, entries: Sequence[Carried]) -> None:
        """Append entries, or fail."""
        self._may_fail("append")
        self.kept += entries

    def cut(self, end: int) -> None:
        """Remove entries, or fail."""
        self._may_fail("cut")
        del self.kept[end:]
        self.synced = min(self.synced, end)

    def sync(self) -> None:
        """Make entries durable, or fail."""
        self._may_fail("sync")
        self.synced = self.end

    def _may_fail(self, name: str) -> None:
        if self.fails == name:
            raise OSError(f"{name} fails")


def _bytes_of(entries: Sequence[Carried]) -> int:
    return sum(HEADER_BYTES + len(each.body) for each in entries)


def _fitting(entries: list[Carried], size_bytes_max: int) -> list[Carried]:
    """Return the first entries that fit, and at least one."""
    count = 1
    while count < len(entries) and _bytes_of(entries[: count + 1]) <= size_bytes_max:
        count += 1
    return entries[:count]


class _Recent:
    """A drawn program of recent entries beside a list.

    `_first` is the first entry in memory, as the reference states it: all since the opening or the last cut, less the
    oldest ones at each time when more than twice the limit is kept.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._log = _Log([Carried(1, bytes(rng.randint(0, 90))) for _ in range(rng.choice((0, 3, 12)))])
        self._recent = RecentEntries(self._log, _RECENT_BYTES)
        self._entries = list(self._log.kept)
        self._first = len(self._entries)
        self._batches: list[tuple[int, int]] = []
        self._sizes = rng.choice(_SIZES)

    def run(self) -> None:
        """Draw operations, and judge the entries after each."""
        for _ in range(_EVENTS):
            self._log.fails = self._rng.choice(("append", "cut", "sync", "read")) if self._rng.random() < 0.1 else ""
            self._rng.choice((self._append, self._append, self._send, self._send, self._sync, self._cut))()
            found = self._recent.end, self._recent.synced, [self._recent.term_at(at) for at in range(self._log.end)]
            _is("end and terms", found, (len(self._entries), self._log.synced, [each.term for each in self._entries]))
        self._log.fails = ""
        for _ in range(_EVENTS):
            self._sends(self._rng.randrange(min(_BATCHES_KEPT + 2, len(self._entries) + 1)), 1)
        for begin in range(len(self._entries) + 1):
            for size in (1, 100, _RECENT_BYTES, 1 << 20):
                self._sends(begin, size)

    def _fails(self, name: str, call: Callable[[], object]) -> bool:
        try:
            call()
        except OSError as error:
            _is(f"the failure of {name}", str(error), f"{self._log.fails} fails")
            return True
        _is("a failed call that raises nothing", self._log.fails == name, False)
        return False

    def _append(self) -> None:
        rng = self._rng
        sizes = [rng.choice(self._sizes) for _ in range(rng.choice((1, 1, 2, 5)))]
        new = [Carried(rng.randint(1, 9), bytes(size)) for size in sizes]
        if self._fails("append", lambda: self._recent.append(new)):
            return
        self._entries += new
        if _bytes_of(self._entries[self._first :]) > 2 * _RECENT_BYTES:
            while _bytes_of(self._entries[self._first + 1 :]) >= _RECENT_BYTES:
                self._first += 1

    def _cut(self) -> None:
        end = self._rng.randint(max(0, len(self._entries) - 4), len(self._entries))
        if self._rng.random() < 0.5 or self._fails("cut", lambda: self._recent.cut(end)):
            return
        del self._entries[end:]
        self._first = len(self._entries)
        self._batches.clear()

    def _sync(self) -> None:
        self._fails("sync", self._recent.sync)

    def _send(self) -> None:
        begin = self._rng.choice((self._first, self._rng.randint(0, len(self._entries)), len(self._entries)))
        self._sends(min(begin, len(self._entries)), self._rng.choice((1, 48, 100, 196, _RECENT_BYTES, 1 << 20)))

    def _sends(self, begin: int, size: int) -> None:
        """Judge what is sent, and that only old entries are read, each kept batch once."""
        reads, key = self._log.reads, (begin, size)
        is_read = begin < self._first and key not in self._batches
        try:
            found = self._recent.entries(begin, size)
        except OSError:
            _is("a read that fails", (self._log.fails, is_read), ("read", True))
            return
        _is("how often entries are read", self._log.reads - reads, int(is_read))
        wanted = _fitting(self._entries[begin:], size)
        if begin < self._first and key in self._batches:
            _is("a batch that is sent again", list(found), wanted[: len(found) or 1])
        else:
            _is("the entries of a message", list(found), wanted)
        if is_read:
            self._batches = [*self._batches[-_BATCHES_KEPT + 1 :], key]


# ---- the saved commit end --------------------------------------------------------------------------------------------


def _saved_ends_hold() -> None:
    """Contract 15: read each content of the file."""
    _is("a commit end without a file", CommitPoint(PartDisk(), "/part").commit, 0)
    for content, wanted in _POINTS:
        disk = PartDisk(Image(frozenset(("/", "/part")), {"/part/checkpoint": content}))
        _is(f"the commit end of {content!r}", CommitPoint(disk, "/part").commit, wanted)


def _commit_ends_hold(rng: random.Random) -> None:
    """Contracts 2 and 8: save ends with failing calls; open the file after a power loss."""
    disk, path, saved, commit = PartDisk(), "/part/checkpoint", b"", 0
    point = CommitPoint(disk, "/part")
    for _ in range(12):
        end = rng.choice((commit, commit + 1, max(0, commit - 1), commit + rng.randint(0, 9)))
        last = end + rng.randint(0, 3)
        disk.failing_in = rng.randint(1, 6) if rng.random() < _FAILING else 0
        failed, written = disk.failed, len(disk.written)
        new = f"committedIndex={end - 1}\nendIndex={last - 1}\n".encode()
        try:
            point.save(end, last)
        except OSError:
            _is("a save that raises without a failed call", disk.failed == failed, False)
            found = disk.content.get(path, b"")
            _is("the file after a failed save", found in (saved, new), True)
            saved = found
        else:
            if end > commit:
                commit, saved = end, new
                _is("what is durable after a save", disk.durable.files.get(path), saved)
            else:
                _is("the writes of a save of an older end", len(disk.written) - written, 0)
            _is("the file of a commit end", disk.content.get(path, b""), saved)
        disk.failing_in = 0
        _is("a saved commit end", point.commit, commit)
        _is("the open files of a commit end", disk.held[0], 0)
        if rng.random() < 0.2:
            disk = PartDisk(disk.durable)
            point = CommitPoint(disk, "/part")
            saved = disk.content.get(path, b"")
            commit = int(saved.split(b"\n")[0].partition(b"=")[2]) + 1 if saved else 0
            _is("a commit end after a power loss", point.commit, commit)


# ---- the directory of a member ---------------------------------------------------------------------------------------


def _directories_hold() -> None:
    """Contract 8: let each member meet each directory."""
    stores = ((), ("commitlog",), ("checkpoint",), ("config",), ("consumequeue",), ("lock",), ("checkpoint", "config"))
    members: tuple[dict[int, str], ...] = (
        {}, {0: "nothing"}, {1: "nothing"}, {1: "empty"}, {1: "files"}, {0: "files"}, {2: "empty"},
        {0: "files", 1: "empty"},
    )  # fmt: skip
    contents: tuple[Content, ...] = ("entries", "messages")
    for names, logs, content, me in product(stores, members, contents, (0, 1)):
        disk = PartDisk(_image(names, logs))
        settings = RaftSettings(_PEERS, content=content)
        before = disk.durable, disk.content
        what = f"a directory with {[*names, *logs.items()]} for member {me} with {content}"
        found = _refusal(lambda disk=disk, me=me, settings=settings: require_member(disk, "/part", me, settings))  # type: ignore[misc]
        _is(what, found, _stated_refusal(names, logs, me, content))
        found = _refusal(lambda disk=disk: require_no_member(disk, "/part"))  # type: ignore[misc]
        wanted = [
            f"store directory /part: has the log of member n{each} of a Raft group; "
            f"give --raft-id {each} and --raft-peers, or another directory" for each in sorted(logs)
        ]  # fmt: skip
        _is(f"{what} without a group", found, wanted[0] if wanted else "")
        _is("what a refused directory has", (disk.durable, disk.content), before)
    disk = PartDisk(Image(frozenset(("/",)), {"/file": b""}))
    for path in ("/none", "/file"):
        _is("a store without a directory", _refusal(lambda path=path: require_no_member(disk, path)), "")  # type: ignore[misc]
    _is("a member without a directory", _refusal(lambda: require_member(disk, "/none", 0, RaftSettings(_PEERS))), "")


def _image(names: Sequence[str], logs: dict[int, str]) -> Image:
    """Return a directory with the names of a store, and with logs of members."""
    directories, files = {"/", "/part", *(f"/part/{name}" for name in names)}, dict[str, bytes]()
    for each, log in logs.items():
        directories.add(f"/part/dledger-n{each}")
        if log != "nothing":
            directories.add(f"/part/dledger-n{each}/data")
        if log == "files":
            files[f"/part/dledger-n{each}/data/{0:020d}"] = bytes(4_096)
    return Image(frozenset(directories), files)


def _stated_refusal(names: Sequence[str], logs: dict[int, str], me: int, content: Content) -> str:
    """State why a directory is refused, with its remedy."""
    head = "store directory /part: "
    if "commitlog" in names:
        return f"{head}is a store without a group; name another directory"
    if logs and me not in logs:
        other = min(logs)
        return (
            f"{head}has the log of member n{other}, and this is member n{me}; "
            f"give --raft-id {other}, or another directory"
        )
    has_store = bool({"checkpoint", "config", "consumequeue"} & set(names))
    if logs and has_store and content == "entries":
        return f"{head}has messages, and this member is to have entries; give --raft-messages"
    if logs.get(me) == "files" and not has_store and content == "messages":
        return f"{head}has entries, and this member is to have messages; leave out --raft-messages"
    return ""


def _refusal(call: Callable[[], object]) -> str:
    try:
        call()
    except BadDirectory as error:
        _is("the path of a refused directory", error.path, "/part")
        return str(error)
    return ""


def _openings_hold() -> None:
    """Contracts 8 and 14: let each call of an opening fail, and judge locks and open files."""
    settings = RaftSettings(_PEERS, data_file_bytes=4_096, index_file_bytes=4_096)

    def opened(disk: PartDisk, me: int = 1, path: str = "/part") -> OpenMember:
        return OpenMember(path, me, settings, files=disk, parts=Parts())

    disk = PartDisk()
    opened(disk, path="/part/a/b").close()
    _is("whether a new directory is durable", "/part/a/b/dledger-n1" in disk.durable.directories, True)

    disk = PartDisk()
    member = opened(disk)
    member.log.append([Carried(1, b"x")])
    member.log.sync()
    member.hard_state.save(3, 1)
    for me in (1, 0):
        _is("a second opening", _raised(lambda me=me: opened(disk, me)), StoreInUse)  # type: ignore[misc]
    member.close()
    _is("the open files of a closed member", disk.held[0], 0)
    _is("a member of another number", _raised(lambda: opened(disk, 0)), BadDirectory)
    for calls in range(1, 40):
        disk.failing_in, failed = calls, disk.failed
        error = _raised(lambda: opened(disk).close())
        if disk.failed == failed:
            _is("an opening without a failed call", error, None)
            break
        _is("an opening with a failed call", error in (OSError, None), True)
        _is("the open files of a failed opening", disk.held[0], 0)
    disk.failing_in = 0
    member = opened(PartDisk(disk.durable))
    found = member.log.end, member.log.body_at(0), member.hard_state.term, member.hard_state.vote
    _is("the state of a member", found, (1, b"x", 3, 1))
    member.close()


def _raised(call: Callable[[], Any]) -> type[Exception] | None:
    try:
        call()
    except (OSError, BadDirectory, StoreInUse) as error:
        return type(error)
    return None


def _is(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise GuaranteeBroken(8, f"{what} is another one", str(wanted)[:300], str(found)[:300])
