"""Open a changed copy of the directory of a member, and judge the opening.

Contracts 3, 7 and 15 are judged.

| change | what has to happen |
|---|---|
| nothing, bytes or a whole file after the end, a new file | the log opens with its entries, and erases the rest |
| a durable entry, its unit, a unit after the end | the log is damaged, and the reason names an entry |
| an entry that is not durable | the log ends before it |
| another size, a strange name, a short file | the directory is refused, and nothing in it is changed |
| entries without checksums, as DLedger writes them | they are refused, or read if that is asked for |
| a unit after the end of such a log | the log is damaged if the lost entry fits there, else the unit is erased |
| term, vote and commit end | a missing file is a new member, and a bad one is damage; a bad commit end is none |

A log that opens is used, opened again, and compared with the format byte by byte.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tornpage.impl.errors import StoreError
from tornpage.impl.io.files import OpenFile
from tornpage.impl.parts import Parts
from tornpage.impl.raft.commit_point import CommitPoint
from tornpage.impl.raft.hard_state import HardState, HardStateDamaged
from tornpage.impl.raft.messages import Carried
from tornpage.impl.raft.raft_log import RaftLog, RaftLogDamaged, RaftLogRefused
from tornpage.impl.raft.recent import RecentEntries
from tornpage.model.raft.operations import CopyChange
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.recording_files import RecordingFiles
from tornpage.properties.raft.files import HEADER_BYTES, UNIT_BYTES, LogFiles, Row, laid_out

__all__ = ["Copied", "files_differ", "has_entries", "open_copy", "sends_entries"]

_NEW_TERM = 1 << 20
_RECENT_BYTES = 300


@dataclass(frozen=True, slots=True)
class Copied:
    """A copy of the directory of a member.

    `entries` are the terms and bodies of its log, of which the first `synced` are durable. `term` and `vote` are those
    of the member.
    """

    files: RecordingFiles
    directory: str
    entries: Sequence[tuple[int, bytes]]
    synced: int
    data_file_bytes: int
    index_file_bytes: int
    term: int
    vote: int | None
    parts: Parts

    def log(self, *, unsealed: bool = False, data_file_bytes: int = 0) -> RaftLog:
        """Open the log."""
        log: RaftLog = self.parts.of(RaftLog)(
            self.files,
            self.directory,
            data_file_bytes=data_file_bytes or self.data_file_bytes,
            index_file_bytes=self.index_file_bytes,
            unsealed=unsealed,
        )
        return log

    def laid_out(self) -> LogFiles:
        """Return what its files have to hold."""
        return laid_out(self.entries, self.data_file_bytes, self.index_file_bytes, units=self.synced)

    def path(self, folder: str, first: int) -> str:
        """Return the path of a file of the log."""
        return f"{self.directory}/{folder}/{first:020d}"

    def write(self, path: str, at: int, data: bytes) -> None:
        """Change bytes of a file, which is created if it is missing."""
        is_new = self.files.stat(path) is None
        file: OpenFile = self.files.create(path) if is_new else self.files.open(path, writable=True)
        if data:
            self.files.pwrite(file, data, at)
        self.files.close(file)


# ---- changes ---------------------------------------------------------------------------------------------------------


def open_copy(copied: Copied, change: CopyChange, at: int) -> bool:
    """Change a copy, open it, and judge the opening.

    Return whether the change was possible. Raises GuaranteeBroken.
    """
    try:
        return _open_copy(copied, change, at)
    except StoreError as error:
        raise GuaranteeBroken(7, f"a copy with a harmless change ({change}) is refused: {error}") from error


def _open_copy(copied: Copied, change: CopyChange, at: int) -> bool:
    shown = copied.laid_out()
    match change:
        case "no term" | "only a backup of the term" | "bad term" | "bad vote":
            _judge_term(copied, change)
        case "bad commit end":
            _judge_commit_end(copied, at)
        case "entry" if shown.rows:
            _judge_entry(copied, shown.rows[at % len(shown.rows)], at)
        case "unit" if copied.synced:
            _judge_unit(copied, shown.rows[at % copied.synced], at)
        case "later unit" if copied.synced == len(shown.rows):
            unit = Row(copied.synced, _NEW_TERM, shown.end, b"x")
            _write_unit(copied, unit.place, unit.unit())
            _is_damaged(copied, f"entry {copied.synced} ")
        case "nothing" | "bytes after the end" | "file after the end" | "new file":
            _add_rest(copied, shown, change)
            _judge_use(copied, copied.log(), copied.entries, shown)
        case "other size" | "strange name" | "short file" if shown.rows:
            _judge_refusal(copied, shown, change)
        case "no checksums" if shown.rows:
            _judge_unsealed(copied, shown)
        case "no checksums, later unit" if shown.rows and copied.synced == len(shown.rows):
            _judge_left_unit(copied, shown, at)
        case "no checksums, later begin":
            _judge_later_begin(copied, shown, at)
        case _:
            return False
    return True


def _add_rest(copied: Copied, shown: LogFiles, change: CopyChange) -> None:
    """Add what a crash may leave after the end of a log."""
    size = copied.data_file_bytes
    next_file = shown.end + -shown.end % size
    if change == "bytes after the end" and shown.end % size:
        rest = size - shown.end % size
        copied.write(copied.path("data", next_file - size), shown.end % size, b"\x07" * rest)
    elif change == "file after the end":
        copied.write(copied.path("data", next_file), 0, b"\x07" * size)
    elif change == "new file":
        copied.write(copied.path("data", next_file), 0, b"")


def _judge_entry(copied: Copied, row: Row, at: int) -> None:
    path, offset = copied.path("data", row.position - row.position % copied.data_file_bytes), row.position
    place = (offset + at % (row.end - row.position)) % copied.data_file_bytes
    copied.write(path, place, bytes((copied.files.peek(path, place, 1)[0] ^ (1 << at % 8),)))
    if row.place < copied.synced:
        _is_damaged(copied, f"entry {row.place} ")
        return
    left = copied.entries[: row.place]
    _judge_use(copied, copied.log(), left, laid_out(left, copied.data_file_bytes, copied.index_file_bytes))


def _judge_unit(copied: Copied, row: Row, at: int) -> None:
    """Change a field of a unit.

    Without its magic or its number it is no unit, and is written again.
    """
    fields = (0, 4, 12, 16, 24)
    unit = bytearray(row.unit())
    begin = fields[at % len(fields)]
    unit[begin + 3 if begin in (0, 12) else begin + 7] ^= 1 << (at % 3)
    _write_unit(copied, row.place, bytes(unit))
    if begin in (0, 16):
        _judge_use(copied, copied.log(), copied.entries, copied.laid_out())
    else:
        _is_damaged(copied, f"entry {row.place} ")


def _write_unit(copied: Copied, place: int, unit: bytes) -> None:
    size = copied.index_file_bytes - copied.index_file_bytes % UNIT_BYTES
    at = place * UNIT_BYTES
    copied.write(copied.path("index", at - at % size), at % size, unit.ljust(UNIT_BYTES, b"\0"))
    file = copied.files.open(copied.path("index", at - at % size), writable=True)
    copied.files.allocate(file, size)
    copied.files.close(file)


def _judge_refusal(copied: Copied, shown: LogFiles, change: CopyChange) -> None:
    size, sizes = copied.data_file_bytes, 0
    if change == "other size":
        sizes = 2 * size
    elif change == "strange name":
        copied.write(f"{copied.directory}/data/00000000000000000000.bak", 0, b"x")
    else:
        copied.write(copied.path("data", shown.end + -shown.end % size), 0, b"\0" * 100)
    _raises(copied, lambda: copied.log(data_file_bytes=sizes), RaftLogRefused, "")


def _judge_unsealed(copied: Copied, shown: LogFiles) -> None:
    """Remove the checksums of all entries, and judge which readers accept them."""
    _unseal(copied, shown.rows)
    if shown.rows[0].body:
        _raises(copied, copied.log, RaftLogRefused, "set `unsealed`")
    elif copied.synced:
        _is_damaged(copied, "entry 0 ")
    _judge_use(copied, copied.log(unsealed=True), copied.entries, None)


def _judge_left_unit(copied: Copied, shown: LogFiles, at: int) -> None:
    """Judge a unit after the end of a log of DLedger, which leaves the units of cut entries.

    The unit tells of a lost entry if one fits there: after the last entry or in the next file, with no lower term.
    """
    size, last = copied.data_file_bytes, shown.rows[-1]
    next_file = shown.end + -shown.end % size
    places = (
        (shown.end, True),
        (next_file, True),
        (shown.end + 32, shown.end + 32 == next_file),
        (last.position, False),
    )
    position, fits = places[at % len(places)]
    terms = ((last.term, True), (last.term + 1, True), (last.term - 1, False))
    term, follows = terms[at // len(places) % len(terms)]
    if term < 0:
        return
    _unseal(copied, shown.rows)
    _write_unit(copied, copied.synced, Row(copied.synced, term, position, b"x").unit())
    if fits and follows:
        _raises(copied, lambda: copied.log(unsealed=True), RaftLogDamaged, f"entry {copied.synced} ")
    else:
        _judge_use(copied, copied.log(unsealed=True), copied.entries, None)


def _unseal(copied: Copied, rows: Sequence[Row]) -> None:
    for row in rows:
        at = row.position % copied.data_file_bytes
        copied.write(copied.path("data", row.position - at), at, row.data(sealed=False))


def _judge_later_begin(copied: Copied, shown: LogFiles, at: int) -> None:
    """Judge a log of DLedger that has deleted its first files.

    The log is extended to two files more first.
    """
    size, log, entries = copied.data_file_bytes, copied.log(), list(copied.entries)
    term = max((term for term, _ in entries), default=0)
    while log.end_position_of(log.end) < shown.end + 2 * size:
        entries.append((term, b"e" * (100 + at % 97)))
        log.append([Carried(*entries[-1])])
    log.sync()
    log.close()
    rows = laid_out(entries, size, copied.index_file_bytes).rows
    _unseal(copied, rows)
    begins = [row for row in rows if row.position and not row.position % size and row.body]
    first = begins[at % len(begins)]
    for position in range(0, first.position, size):
        copied.files.unlink(copied.path("data", position))
    log = copied.log(unsealed=True)
    if log.begin != first.place:
        raise GuaranteeBroken(15, "a log of DLedger begins elsewhere", str(first.place), str(log.begin))
    try:
        log.body_at(first.place - 1)
    except LookupError:
        _judge_use(copied, log, entries, None)
        return
    raise GuaranteeBroken(15, "a log of DLedger has an entry before its begin")


# ---- term and commit end ---------------------------------------------------------------------------------------------


def _judge_term(copied: Copied, change: CopyChange) -> None:
    path = f"{copied.directory}/currterm"
    kept = copied.files.stat(path) is not None
    if kept:
        state = copied.parts.of(HardState)(copied.files, copied.directory)
        if (state.term, state.vote) != (copied.term, copied.vote):
            raise GuaranteeBroken(15, "a copy has another term or vote", str(copied.term), str(state.term))
        vote = "" if copied.vote is None else f"n{copied.vote}"
        wanted = f"voteLeader={vote}\ncurrTerm={copied.term}\n".encode()
        if copied.files.peek(path, 0, 1 << 12).rstrip(b"\0") != wanted:
            raise GuaranteeBroken(15, "the file of the term has another content", str(wanted))
        copied.files.unlink(path)
    if change == "only a backup of the term":
        copied.write(f"{path}.bak", 0, b"voteLeader=n0\ncurrTerm=1\n")
    elif change == "bad term":
        copied.write(path, 0, b"voteLeader=n0\ncurrTerm=x\n")
    elif change == "bad vote":
        copied.write(path, 0, b"voteLeader=m0\ncurrTerm=1\n")
    if change != "no term":
        _raises(copied, lambda: copied.parts.of(HardState)(copied.files, copied.directory), HardStateDamaged, "")
        return
    state = copied.parts.of(HardState)(copied.files, copied.directory)
    if (state.term, state.vote) != (0, None):
        raise GuaranteeBroken(15, "a new member has a term or a vote", "0", str(state.term))
    state.save(7, 2)
    again = copied.parts.of(HardState)(copied.files, copied.directory)
    if (again.term, again.vote) != (7, 2):
        raise GuaranteeBroken(15, "a member does not keep its term and vote", "(7, 2)", str((again.term, again.vote)))


def _judge_commit_end(copied: Copied, at: int) -> None:
    """Judge a commit end that is damaged, and one that is saved."""
    path = f"{copied.directory}/checkpoint"
    if copied.files.stat(path) is not None:
        copied.files.unlink(path)
    content = (b"", b"committedIndex=\nendIndex=3\n", b"committedIndex=-1\nendIndex=-1\n", b"\0" * 40)[at % 4]
    copied.write(path, 0, content)
    point = copied.parts.of(CommitPoint)(copied.files, copied.directory)
    if point.commit:
        raise GuaranteeBroken(15, f"a commit end of {point.commit} is read from {content!r}", "0")
    for commit, end, saved in ((3, 5, 3), (2, 9, 3), (3, 9, 3), (4, 9, 4)):
        point.save(commit, end)
        found = copied.parts.of(CommitPoint)(copied.files, copied.directory).commit
        if (point.commit, found) != (saved, saved):
            raise GuaranteeBroken(15, "a commit end is not kept", str(saved), str((point.commit, found)))
    wanted = b"committedIndex=3\nendIndex=8\n"
    if copied.files.peek(path, 0, 1 << 12).rstrip(b"\0") != wanted:
        raise GuaranteeBroken(15, "the file of the commit end has another content", str(wanted))


# ---- outcomes --------------------------------------------------------------------------------------------------------


def _is_damaged(copied: Copied, part: str) -> None:
    """Contract 7: durable entries that cannot be read are damage. The disk stays as it is."""
    _raises(copied, copied.log, RaftLogDamaged, part)


def _raises(copied: Copied, call: Callable[[], object], kind: type[StoreError], part: str) -> None:
    before = {path: copied.files.peek(path, 0, 1 << 20) for path in copied.files.paths()}
    try:
        call()
    except kind as error:
        if part not in str(error):
            raise GuaranteeBroken(7, "a refused log has another reason", part, str(error)) from error
    except Exception as error:
        raise GuaranteeBroken(7, "a log is refused otherwise", kind.__name__, f"{error!r}") from error
    else:
        raise GuaranteeBroken(7, "a log with damage is opened", kind.__name__)
    after = {path: copied.files.peek(path, 0, 1 << 20) for path in copied.files.paths()}
    if after != before:
        raise GuaranteeBroken(7, "a refused directory was changed")


def _judge_use(copied: Copied, log: RaftLog, entries: Sequence[tuple[int, bytes]], shown: LogFiles | None) -> None:
    """Read a log, append to it, cut it, and open it again; compare its files with the format."""
    unsealed = shown is None
    has_entries(log, entries)
    _require_files(copied, entries, unsealed=unsealed)
    recent = RecentEntries(log, _RECENT_BYTES)
    term = max((term for term, _ in entries), default=0) + 1
    longest = copied.data_file_bytes - HEADER_BYTES - 8
    new = [(term, b"n" * 30), (term, b""), (term, b"m" * min(longest, 700)), (term + 1, b"o")]
    for each in new:
        recent.append([Carried(*each)])
    has_entries(log, [*entries, *new])
    sends_entries(recent, log.begin, [*entries, *new])
    recent.sync()
    cut = max(log.begin + unsealed, len(entries) - 1)  # a later begin needs an entry of DLedger
    recent.cut(cut)
    kept = [*entries[:cut], (term + 2, b"p" * 40)]
    recent.append([Carried(*kept[-1])])
    recent.sync()
    has_entries(log, kept)
    sends_entries(recent, log.begin, kept)
    _require_files(copied, kept, unsealed=unsealed)
    log.close()
    again = copied.log(unsealed=unsealed)
    has_entries(again, kept)
    again.close()
    try:
        again.append([Carried(term + 3, b"q")])
    except OSError:
        return
    raise GuaranteeBroken(8, "a closed log takes an entry")


def has_entries(log: RaftLog, entries: Sequence[tuple[int, bytes]]) -> None:
    """Contract 15: a log has these entries, and answers about their places."""
    found = [(log.term_at(place), log.body_at(place)) for place in range(log.begin, log.end)]
    if found != list(entries[log.begin :]):
        raise GuaranteeBroken(15, "a log has other entries", str(len(entries)), str(len(found)))
    sizes = [HEADER_BYTES + len(body) for _, body in entries]
    for place in range(log.begin, log.end):
        position = log.position_at(place)
        if log.end_position_of(place + 1) != position + sizes[place] or log.first_place_from(position) != place:
            raise GuaranteeBroken(15, f"a log places entry {place} at {position}, and ends it elsewhere")
    for begin in {log.begin, max(log.begin, log.end - 2)}:
        for size_max in (1, 200, 1 << 20):
            batch: list[Carried] = []
            total = 0
            for place in range(begin, log.end):
                if batch and total + sizes[place] > size_max:
                    break
                batch.append(Carried(*entries[place]))
                total += sizes[place]
            if list(log.entries(begin, size_max)) != batch:
                raise GuaranteeBroken(15, f"a batch of {size_max} bytes from entry {begin} on has other entries")


def sends_entries(recent: RecentEntries, first: int, entries: Sequence[tuple[int, bytes]]) -> None:
    """Contract 15: entries from memory are those of the log."""
    if (recent.end, recent.synced > recent.end) != (len(entries), False):
        raise GuaranteeBroken(15, "recent entries end elsewhere", str(len(entries)), str(recent.end))
    for begin in range(max(first, len(entries) - 8), len(entries)):
        for size_max in (1, 100, 1 << 20):
            found = list(recent.entries(begin, size_max))
            wanted = [Carried(*each) for each in entries[begin : begin + len(found)]]
            total = sum(HEADER_BYTES + len(each.body) for each in found)
            if not found or found != wanted or (len(found) > 1 and total > size_max):
                raise GuaranteeBroken(15, f"recent entries from {begin} on, {size_max} bytes, are others")


def files_differ(
    files: RecordingFiles, directory: str, shown: LogFiles, folders: Sequence[str] = ("data", "index")
) -> str:
    """Return which file does not have its bytes, or an empty text.

    Bytes after the last entry are zeros.
    """
    for folder in folders:
        wanted = shown.data if folder == "data" else shown.index
        present = {path for path in files.paths() if path.startswith(f"{directory}/{folder}/")}
        for path in sorted(present | {f"{directory}/{folder}/{first:020d}" for first in wanted}):
            expected = wanted.get(int(path.rpartition("/")[2]), b"")
            found = files.peek(path, 0, 1 << 20) if path in present else b""
            if found[: len(expected)] != expected or any(found[len(expected) :]):
                return path
    return ""


def _require_files(copied: Copied, entries: Sequence[tuple[int, bytes]], *, unsealed: bool) -> None:
    """Contract 3: the files are those of the format.

    Of a log without checksums only the index is compared, which has the same units.
    """
    shown = laid_out(entries, copied.data_file_bytes, copied.index_file_bytes)
    path = files_differ(copied.files, copied.directory, shown, folders=("index",) if unsealed else ("data", "index"))
    if path:
        raise GuaranteeBroken(3, f"{path} does not have the bytes of the format")
