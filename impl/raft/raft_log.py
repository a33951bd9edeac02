"""Keep the entries of a member in data files and an index, in DLedger's format.

A directory has `data/` and `index/`. Data files have a fixed size and the position of their first byte as a name. An
entry lies within one file, and the rest of a file after its last entry is a blank.

1. An append writes to the data files only. A sync makes them durable and then writes the index units of these entries.
   So an entry with an index unit was durable: the index is the durable floor of the log.
2. A cut first removes units from the index, durably. Then it erases the entries, durably. No byte of a removed entry
   can be read as an entry again (L7). Last it removes the data files after the end: DLedger takes more than one of them
   for damage and ends its process. The log then ends where its last entry ends. So positions follow from the entries
   alone, and members with equal entries have equal files.
3. Opening reads every entry. The first invalid one ends the log, if the index has no unit for it. Otherwise durable
   entries were lost, and the log does not open: the member would break promises that it has given.

DLedger reads such a directory. Entries of DLedger have no checksums and are accepted if `unsealed` is set. Its log may
begin after position 0, and after entry 0 if it has deleted files. Index units of DLedger prove nothing: it writes them
before an entry is durable, and leaves those of entries that it has cut.

Source: `DLedgerMmapFileStore`, `MmapFileList` of DLedger 0.2.3.
"""

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tornpage.impl.errors import BadDirectory, StoreError
from tornpage.impl.io.files import Files, OpenFile
from tornpage.impl.raft import entry_codec as codec
from tornpage.impl.raft.messages import Carried
from tornpage.impl.raft.open_files import OpenFiles

__all__ = ["DATA_FILE_BYTES", "INDEX_FILE_BYTES", "RaftLog", "RaftLogDamaged", "RaftLogRefused"]

DATA_FILE_BYTES = 1 << 30
INDEX_FILE_BYTES = 32 * 5 * 1024 * 1024
_FILE_NAME = re.compile("[0-9]{20}")
_SKIM_BYTES = 1 << 20
_SKIM_UNITS = 1 << 12


class RaftLogDamaged(StoreError):
    """Entries that were durable cannot be read.

    The file, the entry and the remedy are in the message.
    """


class RaftLogRefused(BadDirectory):
    """The directory does not fit the settings of the log. Nothing in it was changed."""


class RaftLog:
    """The log in a directory, which is created if it is missing.

    Places count entries from 0. `cuts` counts the cuts since the opening. After a failed write of a cut or a sync the
    log takes no more entries.
    """

    def __init__(
        self,
        files: Files,
        directory: str,
        *,
        data_file_bytes: int = DATA_FILE_BYTES,
        index_file_bytes: int = INDEX_FILE_BYTES,
        unsealed: bool = False,
    ) -> None:
        self._files = files
        self._data = f"{directory}/data"
        self._index = f"{directory}/index"
        self._data_file_bytes = data_file_bytes
        self._index_file_bytes = index_file_bytes - index_file_bytes % codec.UNIT_BYTES
        self._unsealed = unsealed
        self._positions = array("q")
        self._terms = array("q")
        self._sizes = array("q")
        self._open_files = OpenFiles(files)
        self._failure = ""
        self._begin = 0
        self._end_position = 0
        self.cuts = 0
        for path in (directory, self._data, self._index):
            if files.stat(path) is None:
                files.make_directory(path)
        self._synced = 0
        self._require_files(self._data, "data_file_bytes", data_file_bytes)
        self._require_files(self._index, "index_file_bytes", self._index_file_bytes)
        try:
            self._load()
            self.sync()
        except BaseException:
            self.close()
            raise

    # ---- what is there -------------------------------------------------------------------------------------------

    @property
    def begin(self) -> int:
        """The place of the first entry. It is 0 unless DLedger has deleted files."""
        return self._begin

    @property
    def end(self) -> int:
        """The place after the last entry."""
        return self._begin + len(self._positions)

    @property
    def synced(self) -> int:
        """The place after the last durable entry."""
        return self._synced

    def term_at(self, place: int) -> int:
        """Return the term of an entry. Raises LookupError for a place before the begin."""
        return self._terms[self._row(place)]

    def position_at(self, place: int) -> int:
        """Return the position of an entry in all data files.

        Raises LookupError for a place before the begin.
        """
        return self._positions[self._row(place)]

    def end_position_of(self, end: int) -> int:
        """Return the position after the first `end` entries, without a blank after them."""
        row = self._row(end)
        if row:
            return self._positions[row - 1] + self._sizes[row - 1]
        return self._positions[0] if self._positions else self._end_position

    def first_place_from(self, position: int) -> int:
        """Return the place of the first entry that begins at a position or after it."""
        return self._begin + bisect_left(self._positions, position)

    def next_position(self, body_bytes: int, end: int | None = None) -> int:
        """Return the position of an entry that is appended at `end`.

        None means the end of the log. An entry whose body has so many bytes begins another file if it does not fit.
        """
        end = self._end_position if end is None else end
        rest = -end % self._data_file_bytes
        is_full = rest and codec.HEADER_BYTES + body_bytes + codec.BLANK_BYTES_MIN > rest
        return end + rest if is_full else end

    def body_at(self, place: int) -> bytes:
        """Return the body of an entry.

        Raises RaftLogDamaged if it has changed on the disk, and LookupError for a place before the begin.
        """
        row = self._row(place)
        position = self._positions[row]
        path, at = self._place_of(position)
        with self._opened(path) as file:
            found = codec.checked(self._files.read(file, at, self._sizes[row]), position)
        if found is None or found.place != place or found.term != self._terms[row]:
            raise RaftLogDamaged(f"entry {place} at {at} of {path} is damaged; copy the log of another member")
        return found.body

    def entries(self, begin: int, size_bytes_max: int) -> tuple[Carried, ...]:
        """Return entries from `begin` on, with about so many bytes of bodies.

        At least one entry is returned if there is one.
        """
        found: list[Carried] = []
        for place in range(begin, self.end):
            size = self._sizes[self._row(place)]
            if found and size_bytes_max < size:
                break
            size_bytes_max -= size
            found.append(Carried(self.term_at(place), self.body_at(place)))
        return tuple(found)

    def _row(self, place: int) -> int:
        """Return the row of an entry in the tables of this log."""
        if place < self._begin:
            raise LookupError(f"entry {place} was deleted; the log begins with entry {self._begin}")
        return place - self._begin

    # ---- changes -------------------------------------------------------------------------------------------------

    def append(self, entries: Sequence[Carried]) -> None:
        """Append entries, not durable yet. Raises OSError; entries before the failed one stay."""
        self._require_usable()
        for each in entries:
            size = codec.HEADER_BYTES + len(each.body)
            if size + codec.BLANK_BYTES_MIN > self._data_file_bytes:
                raise ValueError(f"an entry of {size} bytes does not fit into a file of {self._data_file_bytes}")
            position = self.next_position(len(each.body))
            self._end_file_before(position)
            self._write(position, codec.entry(self.end, each.term, position, each.body))
            self._note(position, each.term, size)

    def sync(self) -> None:
        """Make all entries durable, then write their index units. Raises OSError."""
        if self._synced == self.end:
            return
        self._require_usable()
        with self._failing("sync"):
            durable_end = self.end_position_of(self._synced)  # a blank after it is not durable yet
            for path in self._data_files(durable_end, self._end_position):
                with self._opened(path) as file:
                    self._files.sync(file)
                    self._open_files.note_durable(path)
            self._files.sync_directory(self._data)
            first, self._synced = self._synced, self.end
            self._write_units(first)

    def cut(self, end: int) -> None:
        """Remove all entries from `end` on, and a blank before them, durably. Raises OSError.

        An entry has the same position at all members, since it depends on the sizes of the entries before it only.
        """
        if end >= self.end:
            return
        self._require_usable()
        self.cuts += 1
        first, position = self._row(end), self.end_position_of(end)
        with self._failing("cut"):
            self._cut_index(end)
            self._erase(position, self._end_position)
            self._remove_files_after(position)
        self._end_position = position
        for table in (self._positions, self._terms, self._sizes):
            del table[first:]
        self._synced = min(self._synced, end)

    def close(self) -> None:
        """Close all files. The log is not synced."""
        self._open_files.close()
        self._failure = "it is closed"

    def _require_usable(self) -> None:
        if self._failure:
            raise OSError(f"the log in {self._data} takes no entries: {self._failure}")

    @contextmanager
    def _failing(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._failure = f"a {what} failed: {error}"
            raise

    # ---- data files ----------------------------------------------------------------------------------------------

    def _note(self, position: int, term: int, size: int) -> None:
        self._positions.append(position)
        self._terms.append(term)
        self._sizes.append(size)
        self._end_position = position + size

    def _end_file_before(self, position: int) -> None:
        """Write a blank if the next entry begins in another file.

        The other bytes of the blank are zeros.
        """
        rest = position - self._end_position
        if rest >= codec.BLANK_BYTES_MIN:
            self._write(self._end_position, codec.blank(rest))

    def _place_of(self, position: int) -> tuple[str, int]:
        """Return the path of the file with a position, and the offset in it."""
        at = position % self._data_file_bytes
        return f"{self._data}/{position - at:020d}", at

    def _data_files(self, begin: int, end: int) -> list[str]:
        first = begin - begin % self._data_file_bytes
        return [self._place_of(each)[0] for each in range(first, end, self._data_file_bytes)]

    def _write(self, position: int, data: bytes) -> None:
        path, at = self._place_of(position)
        with self._opened(path, self._data_file_bytes) as file:
            self._open_files.note_written(path)
            self._files.pwrite(file, data, at)
            self._files.mark("entry")

    def _erase(self, begin: int, end: int) -> None:
        """Overwrite all bytes of [begin, end) by zeros, durably."""
        for path in self._data_files(begin, end):
            first = int(path.rpartition("/")[2])
            with self._opened(path) as file:
                at = max(0, begin - first)
                self._files.zero(file, at, min(self._data_file_bytes, end - first) - at)
                self._files.sync(file)

    def _remove_files_after(self, end: int) -> None:
        """Remove the erased data files after the one with a position, durably."""
        removed = [name for name in self._files.list_directory(self._data) if int(name) > end]
        for name in reversed(removed):
            path = f"{self._data}/{name}"
            self._open_files.forget(path)
            self._files.unlink(path)
        if removed:
            self._files.sync_directory(self._data)

    @contextmanager
    def _opened(self, path: str, size_bytes: int = 0) -> Iterator[OpenFile]:
        """Yield an open file. With a size it is created if it is missing."""
        with self._open_files.opened(path, creates=bool(size_bytes)) as file:
            if size_bytes:
                stat = self._files.stat(path)
                if stat is None or stat.size_bytes < size_bytes:
                    self._files.allocate(file, size_bytes)
            yield file

    # ---- index files ---------------------------------------------------------------------------------------------

    def _unit_place(self, place: int) -> tuple[str, int]:
        position = place * codec.UNIT_BYTES
        at = position % self._index_file_bytes
        return f"{self._index}/{position - at:020d}", at

    def _write_units(self, first: int) -> None:
        """Write the index units of durable entries.

        They become durable with a later sync of the system.
        """
        for place in range(first, self.end):
            path, at = self._unit_place(place)
            row = self._row(place)
            data = codec.unit(place, self._terms[row], self._positions[row], self._sizes[row])
            with self._opened(path, self._index_file_bytes) as file:
                self._files.pwrite(file, data, at)

    def _cut_index(self, end: int) -> None:
        for place in range(end, self._synced):
            path, at = self._unit_place(place)
            with self._opened(path) as file:
                self._files.pwrite(file, bytes(codec.UNIT_BYTES), at)
        for path in sorted({self._unit_place(place)[0] for place in range(end, self._synced)}):
            with self._opened(path) as file:
                self._files.sync(file)

    # ---- opening -------------------------------------------------------------------------------------------------

    def _require_files(self, folder: str, setting: str, size_bytes: int) -> None:
        """Refuse files with a name or size that is not of this log.

        A file without bytes is a new one.
        """
        for name in self._files.list_directory(folder):
            path = f"{folder}/{name}"
            stat = self._files.stat(path)
            if not _FILE_NAME.fullmatch(name) or stat is None or stat.kind != "file":
                raise RaftLogRefused(path, "is no file of a log", "move it away")
            if stat.size_bytes not in (0, size_bytes) or int(name) % size_bytes:
                found = f"has {stat.size_bytes} bytes, and {setting} is {size_bytes}"
                raise RaftLogRefused(path, found, f"give --set {setting}={stat.size_bytes}")

    def _load(self) -> None:
        """Read every entry, compare it with its index unit, and erase what is after the last one."""
        position = self._find_begin()
        sealed: list[bool] = []
        while (found := self._entry_at(position)) is not None:
            entry, position = found
            self._note(entry.position, entry.term, position - entry.position)
            sealed.append(entry.is_sealed)
            position = self._skim(position)
            sealed += [True] * (len(self._positions) - len(sealed))
        self._synced = self._units_in_index(sealed)
        last = [int(name) for name in self._files.list_directory(self._data)][-1:]
        for first in last:
            self._require_nothing_after_end(first)
            self._erase_after_end(first + self._data_file_bytes)
            self._remove_files_after(self._end_position)
        self._erase_units_after(self._synced)

    def _find_begin(self) -> int:
        """Return the position of the first entry.

        It is 0, unless the first data file is a later one and begins with an entry of DLedger.
        """
        names = self._files.list_directory(self._data)
        first = int(names[0]) if names else 0
        found = self._foreign_at(first) if first else None
        if found is None:
            return 0
        self._begin, self._synced, self._end_position = found.place, found.place, first
        return first

    def _foreign_at(self, position: int) -> codec.Found | None:
        """Return the entry of DLedger with a body at the begin of a file, or None."""
        path, _ = self._place_of(position)
        with self._opened(path) as file:
            size = int.from_bytes(self._files.read(file, 0, codec.HEADER_BYTES)[4:8], "big")
            if not codec.HEADER_BYTES < size <= self._data_file_bytes:
                return None
            found = codec.checked(self._files.read(file, 0, size), position)
        return None if found is None or found.is_sealed else found

    def _require_nothing_after_end(self, last: int) -> None:
        """Refuse a log with entries of DLedger in files after the one in which it ends."""
        for path in self._data_files(self._end_position, last + 1):
            first = int(path.rpartition("/")[2])
            if first <= self._end_position or self._files.stat(path) is None:
                continue
            found = self._foreign_at(first)
            if found is not None and found.place > self.end:
                gap = f"begins with entry {found.place} of DLedger, and the log ends with entry {self.end - 1}"
                raise RaftLogRefused(path, gap, "copy the log of another member")

    def _skim(self, position: int) -> int:
        """Note the entries with checksums that follow in the same file.

        Return the position after them. `_entry_at` decides about the first one that is not plainly right.
        """
        while True:
            path, at = self._place_of(position)
            if not at:
                return position
            with self._opened(path) as file:
                data = self._files.read(file, at, _SKIM_BYTES)
            rows = codec.skimmed(data, position, self.end, self._terms[-1])
            for row in rows:
                self._note(*row)
            if not rows:
                return position
            position = self._end_position

    def _entry_at(self, position: int) -> tuple[codec.Found, int] | None:
        """Return the entry at a position, and the position after it.

        After a blank it is the first entry of the next file.
        """
        path, at = self._place_of(position)
        if self._files.stat(path) is None:
            return None
        with self._opened(path) as file:
            head = self._files.read(file, at, codec.HEADER_BYTES)
            rest = self._data_file_bytes - at
            if at and (rest < codec.BLANK_BYTES_MIN or head[: codec.BLANK_BYTES_MIN] == codec.blank(rest)):
                return self._entry_at(position + rest)
            if len(head) < codec.HEADER_BYTES:
                return None
            size = int.from_bytes(head[4:8], "big")
            if size > rest:
                return None
            found = codec.checked(self._files.read(file, at, size), position)
        if found is None or found.place != self.end or (self._terms and found.term < self._terms[-1]):
            return None
        if not found.is_sealed and not self._unsealed:
            if not found.body:  # a tear can leave the first half of an entry without a body
                return None
            unsealed = f"entry {found.place} at {at} has no checksums, as DLedger writes it"
            raise RaftLogRefused(path, unsealed, "set `unsealed`")
        return found, position + size

    def _units_in_index(self, sealed: Sequence[bool]) -> int:
        """Return the place after the leading units in the index that describe entries of the log.

        `sealed` has for each entry whether it has checksums. A unit that contradicts one of these is damage, and so is
        a unit of a lost entry after it. After an entry of DLedger a unit is damage only if the lost entry fits there.
        """
        place = self._equal_units()
        while (unit := self._unit_at(place)) is not None:
            row = place - self._begin
            if row < len(sealed):
                if unit[1:] != (self._terms[row], self._positions[row], self._sizes[row]):
                    if not sealed[row]:
                        break
                    path, at = self._unit_place(place)
                    raise RaftLogDamaged(
                        f"entry {place} and its unit at {at} of {path} differ; copy the log of another member"
                    )
            elif self._was_entry(unit, is_sealed=not sealed or sealed[-1]):
                path, at = self._place_of(self._end_position)
                raise RaftLogDamaged(
                    f"entry {self.end} at {at} of {path} was durable and is damaged or missing; "
                    "copy the log of another member"
                )
            else:
                break
            place += 1
        return place

    def _was_entry(self, unit: tuple[int, int, int, int], *, is_sealed: bool) -> bool:
        """Return whether a unit after the end describes an entry that was the next one."""
        if is_sealed:
            return True
        _, term, position, _ = unit
        next_file = self._end_position + -self._end_position % self._data_file_bytes
        return position in (self._end_position, next_file) and term >= self._terms[-1]

    def _unit_at(self, place: int) -> tuple[int, int, int, int] | None:
        path, at = self._unit_place(place)
        if self._files.stat(path) is None:
            return None
        with self._opened(path) as file:
            unit = codec.unit_of(self._files.read(file, at, codec.UNIT_BYTES))
        return unit if unit is not None and unit[0] == place else None

    def _erase_units_after(self, place: int) -> None:
        """Erase units that DLedger has left after the end of the index."""
        if not self._unsealed:
            return
        end = place * codec.UNIT_BYTES
        for name in self._files.list_directory(self._index):
            begin = int(name)
            if begin + self._index_file_bytes > end:
                self._zero_from(f"{self._index}/{name}", max(0, end - begin))

    def _equal_units(self) -> int:
        """Return the place after some leading units that are those of the entries.

        The block with the first difference is not counted.
        """
        place = self._begin
        while place < self.end:
            path, at = self._unit_place(place)
            block = min(_SKIM_UNITS, self.end - place, (self._index_file_bytes - at) // codec.UNIT_BYTES)
            if self._files.stat(path) is None:
                return place
            first = place - self._begin
            rows = range(first, first + block)
            units = b"".join(
                [
                    codec.unit(self._begin + row, self._terms[row], self._positions[row], self._sizes[row])
                    for row in rows
                ]
            )
            with self._opened(path) as file:
                if self._files.read(file, at, len(units)) != units:
                    return place
            place += block
        return place

    def _erase_after_end(self, end: int) -> None:
        for path in self._data_files(self._end_position, end):
            first = int(path.rpartition("/")[2])
            stat = self._files.stat(path)
            if stat is None:
                continue
            with self._opened(path, self._data_file_bytes):
                self._zero_from(path, max(0, self._end_position - first))

    def _zero_from(self, path: str, at: int) -> None:
        """Erase the end of a file, durably."""
        with self._opened(path) as file:
            found = self._files.next_data(file, at)
            while found is not None:
                begin, end = max(at, found[0]), found[1]
                self._files.zero(file, begin, end - begin)
                found = self._files.next_data(file, end)
            self._files.sync(file)
