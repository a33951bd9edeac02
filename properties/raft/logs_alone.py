"""Run the log of a Raft member alone, on a small disk whose calls may fail.

The reference is a list of terms and bodies, and the number of them that are durable. A drawn program appends, syncs,
cuts, closes, kills the process and loses power:

| contract | what is judged |
|---|---|
| 2, 3 | after each operation the files have the bytes of the format, and zeros after them |
| 2 | what is durable after a sync has each entry, and what is durable after a cut has no byte of a removed one |
| 8 | an entry that fits into no file is refused; a failed append may be repeated; a failed sync or cut ends the log |
| 8 | a log keeps few files open, and none after its end |
| 15 | the entries that are read and sent are those of the list, after each operation and each opening |
| 16 | a sync without new entries does nothing; an opening reads blocks and not single entries |

Each 512 bytes of a file are lost or kept at a power loss. Source: the head of impl/raft/raft_log.py.
"""

import random
from collections.abc import Callable
from typing import get_args

from tornpage.impl.errors import StoreError
from tornpage.impl.io.files import OpenFile
from tornpage.impl.parts import Parts
from tornpage.impl.raft.messages import Carried
from tornpage.impl.raft.open_files import FILES_MAX
from tornpage.impl.raft.raft_log import RaftLog
from tornpage.impl.raft.recent import RecentEntries
from tornpage.model.raft.operations import CopyChange
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.disk import Image
from tornpage.properties.lockstep.parts.part_disk import PartDisk, tried
from tornpage.properties.raft.copies import Copied, files_differ, has_entries, open_copy, sends_entries
from tornpage.properties.raft.files import BLANK_BYTES, HEADER_BYTES, UNIT_BYTES, laid_out

__all__ = ["log_alone_holds", "log_opens_in_blocks"]

_DIRECTORY = "/part"
_DATA_BYTES, _INDEX_BYTES = 1_024, 10 * UNIT_BYTES + 9
_RECENT_BYTES = 300
_EVENTS = 16
_SECTOR_BYTES = 512
_READS_OF_FILE = 6
"""So many reads of a data file find its first entry, the others, its blank and its end."""
_FAILING = 0.15
_CALLS_MAX = 8
_TRIES_MAX = 20
_CHANGES: tuple[CopyChange, ...] = get_args(CopyChange)
_LONGEST = _DATA_BYTES - HEADER_BYTES - BLANK_BYTES


class _LogDisk(PartDisk):
    """A disk that counts reads, syncs of files and syncs of directories."""

    reads = syncs = 0

    def read(self, file: OpenFile, offset: int, size_bytes: int) -> bytes:
        """Read, and count."""
        self.reads += 1
        return super().read(file, offset, size_bytes)

    def sync(self, file: OpenFile) -> None:
        """Sync, and count."""
        self.syncs += 1
        super().sync(file)

    def sync_directory(self, path: str) -> None:
        """Sync, and count."""
        self.syncs += 1
        super().sync_directory(path)


def log_opens_in_blocks() -> None:
    """Contract 16: judge the opening of a log of many small entries. Raises GuaranteeBroken."""
    program = _Program(random.Random(0))
    program.open_many(200)


def log_alone_holds(seed: int) -> None:
    """Judge one drawn program, and the opening of its changed log. Raises GuaranteeBroken."""
    _Program(random.Random(f"log {seed}")).run(_CHANGES[seed % len(_CHANGES)])


class _Program:
    """One drawn program beside the reference."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._disk = _LogDisk()
        self._entries: list[tuple[int, bytes]] = []
        self._synced = 0
        self._term = 1
        self._log: RaftLog
        self._recent: RecentEntries

    def run(self, change: CopyChange) -> None:
        """Draw operations, then close the log, change its files, and open it."""
        self._open()
        events: tuple[Callable[[], None], ...] = (
            self._append, self._append, self._append, self._append, self._append_too_long, self._sync, self._sync,
            self._cut, self._close, self._kill, self._lose_power,
        )  # fmt: skip
        for _ in range(_EVENTS):
            self._rng.choice(events)()
        self._close()
        self._log.close()
        copied = Copied(
            self._disk, _DIRECTORY, self._entries, self._synced, _DATA_BYTES, _INDEX_BYTES, 0, None, Parts()
        )  # fmt: skip
        open_copy(copied, change, self._rng.randrange(1 << 12))

    def open_many(self, count: int) -> None:
        """Open a log of entries with one byte each."""
        self._open()
        self._entries, self._synced = [(1, b"x")] * count, count
        self._log.append([Carried(*each) for each in self._entries])
        self._log.sync()
        self._close()

    # ---- operations ----------------------------------------------------------------------------------------------

    def _body(self, end: int) -> bytes:
        """Draw a body. Often it ends where a file ends, or a few bytes before."""
        rest = -end % _DATA_BYTES or _DATA_BYTES
        size = rest - HEADER_BYTES - self._rng.choice((0, 1, 7, 8, 9, 47, 48, 56, 57))
        if self._rng.random() < 0.6 or not 0 <= size <= _LONGEST:
            size = self._rng.choice((0, 1, 5, 40, 200, _LONGEST))
        return self._rng.randbytes(size)

    def _append(self) -> None:
        self._term += self._rng.random() < 0.2
        new = [(self._term, self._body(self._end_position)) for _ in range(self._rng.randint(1, 4))]
        wanted = [*self._entries, *new]
        fails = self._rng.random() < _FAILING
        for _ in range(_TRIES_MAX):
            self._disk.failing_in = 1 + self._rng.randrange(_CALLS_MAX) if fails else 0
            failed, fails = self._disk.failed, self._rng.random() < 0.3
            rest = [Carried(*each) for each in wanted[self._log.end :]]
            try:
                tried("an append", lambda rest=rest: self._recent.append(rest))  # type: ignore[misc]
                break
            except OSError as error:
                self._require_failed("an append", failed, error)
                has_entries(self._log, wanted[: self._log.end])
                self._recent = RecentEntries(self._log, _RECENT_BYTES)  # a member ends after a failed append
            finally:
                self._disk.failing_in = 0
        self._entries = wanted
        self._judge()

    def _append_too_long(self) -> None:
        """Contract 8: an entry that fits into no file is refused, and changes nothing."""
        try:
            self._log.append([Carried(self._term, bytes(_LONGEST + self._rng.choice((1, 2, 500))))])
        except ValueError:
            self._judge()
            return
        raise GuaranteeBroken(8, "an entry that fits into no file is appended", "ValueError")

    def _sync(self) -> None:
        begin, syncs, events = self._laid_out_end(self._synced), self._disk.syncs, len(self._disk.written)
        is_idle = self._synced == len(self._entries)
        if self._fails("a sync", self._recent.sync):
            self._reopen(self._disk.durable if self._rng.random() < 0.5 else self._seen, least=self._synced)
            return
        self._synced = len(self._entries)
        if is_idle and (self._disk.syncs, len(self._disk.written)) != (syncs, events):
            raise GuaranteeBroken(16, "a sync without new entries uses the disk")
        files = self._end_position // _DATA_BYTES - begin // _DATA_BYTES + 2
        if self._disk.syncs - syncs > files:
            raise GuaranteeBroken(16, f"a sync makes {self._disk.syncs - syncs} syncs", str(files))
        self._judge()
        self._judge_durable()

    def _cut(self) -> None:
        end = self._rng.randrange(len(self._entries) + 2)
        cuts = self._log.cuts
        if self._fails("a cut", lambda: self._recent.cut(end)):
            self._reopen(self._disk.durable if self._rng.random() < 0.5 else self._seen, least=min(end, self._synced))
            return
        is_cut = end < len(self._entries)
        self._entries, self._synced = self._entries[:end], min(self._synced, end)
        beyond = [name for name in self._disk.list_directory(f"{_DIRECTORY}/data") if int(name) > self._end_position]
        if is_cut and beyond:
            raise GuaranteeBroken(15, "a cut leaves data files after the end of the log", found=str(beyond))
        if self._log.cuts - cuts != is_cut:
            raise GuaranteeBroken(15, f"a cut counts as {self._log.cuts - cuts} cuts", str(int(is_cut)))
        self._judge()
        if is_cut:
            self._judge_durable()

    def _fails(self, what: str, do: Callable[[], None]) -> bool:
        """Call the log; return whether a call of the disk failed.

        The log takes no more changes then (contract 8).
        """
        self._disk.failing_in = 1 + self._rng.randrange(_CALLS_MAX) if self._rng.random() < _FAILING else 0
        failed = self._disk.failed
        try:
            tried(what, do)
        except OSError as error:
            self._require_failed(what, failed, error)
        finally:
            self._disk.failing_in = 0
        if self._disk.failed == failed:
            return False
        if not self._entries and what == "a cut":
            return True  # a cut of an empty log does nothing
        again: tuple[Callable[[], None], ...] = (
            lambda: self._log.append([Carried(self._term, b"x")]), lambda: self._log.cut(0),
        )  # fmt: skip
        for change in again[: 1 + bool(self._log.end)]:
            try:
                change()
            except OSError:
                continue
            raise GuaranteeBroken(8, f"a log takes a change after {what} that has failed", "OSError")
        return True

    def _require_failed(self, what: str, failed: int, error: OSError) -> None:
        if self._disk.failed == failed:
            raise GuaranteeBroken(8, f"{what} raises {error!r} although no call failed") from error

    # ---- ends and openings ---------------------------------------------------------------------------------------

    def _close(self) -> None:
        """Close the log, and open it again on the same disk."""
        self._log.close()
        self._log.close()
        if self._disk.held[0]:
            raise GuaranteeBroken(8, f"a closed log keeps {self._disk.held[0]} files open")
        self._reopen(self._seen, least=len(self._entries))

    def _kill(self) -> None:
        self._reopen(self._seen, least=len(self._entries))

    def _lose_power(self) -> None:
        durable, seen = self._disk.durable, self._seen
        files = {path: self._mixed(data, seen.files.get(path, b"")) for path, data in durable.files.items()}
        self._reopen(Image(durable.directories, files), least=self._synced)

    def _mixed(self, durable: bytes, seen: bytes) -> bytes:
        """Return a file of which each sector was lost or kept."""
        size = self._rng.choice((len(durable), max(len(durable), len(seen))))
        versions = durable.ljust(size, b"\0"), seen.ljust(size, b"\0")
        return b"".join(
            self._rng.choice(versions)[at : at + _SECTOR_BYTES][: size - at] for at in range(0, size, _SECTOR_BYTES)
        )

    @property
    def _seen(self) -> Image:
        return Image(self._disk.durable.directories | {f"{_DIRECTORY}/data", f"{_DIRECTORY}/index"}, self._disk.content)

    def _reopen(self, image: Image, *, least: int) -> None:
        """Contract 15: a log opens with its first entries, at least with the durable ones."""
        self._disk = _LogDisk(image)
        self._open()
        if not least <= self._log.end <= len(self._entries):
            raise GuaranteeBroken(15, f"a log opens with {self._log.end} entries, and {least} were durable")
        self._entries = self._entries[: self._log.end]
        self._synced = len(self._entries)
        self._judge()
        self._judge_durable()

    def _open(self) -> None:
        try:
            self._log = RaftLog(
                self._disk, _DIRECTORY, data_file_bytes=_DATA_BYTES, index_file_bytes=_INDEX_BYTES
            )  # fmt: skip
        except (StoreError, OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise GuaranteeBroken(7, f"a sound log does not open: {type(error).__name__}: {error}") from error
        self._disk.sync_directory(_DIRECTORY)  # as a member does when it saves its first term
        self._recent = RecentEntries(self._log, _RECENT_BYTES)
        files = 1 + self._log.end_position_of(self._log.end) // _DATA_BYTES
        units = 1 + self._log.end * UNIT_BYTES // (_INDEX_BYTES - _INDEX_BYTES % UNIT_BYTES)
        if self._disk.reads > _READS_OF_FILE * files + 2 * units + 10:
            raise GuaranteeBroken(16, f"an opening reads {self._disk.reads} times, for {files} files of a log")
        beyond = [name for name in self._disk.list_directory(f"{_DIRECTORY}/data") if int(name) >= files * _DATA_BYTES]
        if beyond:
            raise GuaranteeBroken(15, "a log opens and keeps data files after its end", found=str(beyond))

    # ---- judges --------------------------------------------------------------------------------------------------

    @property
    def _end_position(self) -> int:
        return self._laid_out_end(len(self._entries))

    def _laid_out_end(self, count: int) -> int:
        return laid_out(self._entries[:count], _DATA_BYTES, _INDEX_BYTES).end

    def _judge(self) -> None:
        """Judge answers, files, and open files of a log that is open."""
        has_entries(self._log, self._entries)
        if (self._log.end, self._log.synced) != (len(self._entries), self._synced):
            raise GuaranteeBroken(
                15, "a log has another end or durable end", str((len(self._entries), self._synced)),
                str((self._log.end, self._log.synced)),
            )  # fmt: skip
        sends_entries(self._recent, 0, self._entries)
        shown = laid_out(self._entries, _DATA_BYTES, _INDEX_BYTES, units=self._synced)
        path = files_differ(self._disk, _DIRECTORY, shown)
        if path:
            raise GuaranteeBroken(3, f"{path} does not have the bytes of the format")
        changed = (self._end_position - self._laid_out_end(self._synced)) // _DATA_BYTES + 2
        if self._disk.held[0] > FILES_MAX + changed:
            raise GuaranteeBroken(8, f"a log keeps {self._disk.held[0]} files open", str(FILES_MAX + changed))

    def _judge_durable(self) -> None:
        """Judge what a power loss leaves for certain.

        It is each durable entry, and no byte of a removed one.
        """
        durable = self._disk.durable.files
        shown = laid_out(self._entries, _DATA_BYTES, _INDEX_BYTES)
        certain = self._laid_out_end(self._synced)
        for path, data in durable.items():
            folder, _, name = path.removeprefix(f"{_DIRECTORY}/").partition("/")
            first = int(name)
            wanted = (shown.data if folder == "data" else shown.index).get(first, b"")
            padded = wanted.ljust(len(data), b"\0")[: len(data)]
            if any(found not in (0, each) for found, each in zip(data, padded, strict=True)):
                raise GuaranteeBroken(3, f"bytes of a removed entry are durable in {path}")
            stated = max(0, min(len(wanted), certain - first)) if folder == "data" else 0
            if data[:stated] != wanted[:stated]:
                raise GuaranteeBroken(2, f"a synced entry is not durable in {path}")
        for first in shown.data:
            if first < certain and f"{_DIRECTORY}/data/{first:020d}" not in durable:
                raise GuaranteeBroken(2, f"the data file {first} of synced entries is not durable")
