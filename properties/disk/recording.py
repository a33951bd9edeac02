"""The memory of a recorded disk: its current content, and the journal that led to it.

Each content that a page has at a look between two barriers becomes a version in the journal. An *event* is a point at
which a crash may happen, given as the length of the journal there.
"""

from collections import Counter

from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.disk import DiskState, Image
from tornpage.properties.disk.fingerprint import fingerprint
from tornpage.properties.disk.inodes import Inode, Names
from tornpage.properties.disk.journal import PAGE_BYTES, Entry, PageWritten
from tornpage.properties.program.case import Disk

__all__ = ["Recording"]


class Recording:
    """Starts from a durable image, and the journal of a process that was killed on it.

    `state` is the disk state after the journal, if the caller has it. `marks` counts the points by label.
    """

    def __init__(
        self, base: Image, *, tracker: DirtyTracker, journal: tuple[Entry, ...], state: DiskState | None
    ) -> None:
        self.base = base
        self.journal: list[Entry] = list(journal)
        self.events: list[int] = []
        self.marks: Counter[str] = Counter()
        self._tracker = tracker
        self._state_now: DiskState | None = None
        self._applied = 0
        if state is None:
            state = DiskState(base, disk="kill")
            state.apply_all(journal)
        names, directories = state.visible()
        files = {path: self._load(number, state.inodes[number].own_latest()) for path, number in names.items()}
        self._names = Names(directories, files)
        self._next_inode = max(state.inodes, default=-1) + 1
        self._mapped: dict[int, Inode] = {}

    def _load(self, number: int, content: bytearray) -> Inode:
        return Inode(number, self._tracker.watch(content))

    # ---- looking -------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Take a version of every page that changed through a mapping."""
        for inode in self._mapped.values():
            small = inode.tracked.small
            if small is None or small[0][0] != small[1]:
                self._take_versions(inode)

    def _take_versions(self, inode: Inode) -> None:
        tracked = inode.tracked
        for page in tracked.changed():
            content = bytes(tracked.buffer[page * PAGE_BYTES : (page + 1) * PAGE_BYTES])
            self.journal.append(PageWritten(inode.number, page, content))

    def _event(self) -> None:
        """Add a crash point here, unless nothing happened since the last one."""
        if not self.events or self.events[-1] != len(self.journal):
            self.events.append(len(self.journal))

    def _note(self, *entries: Entry) -> None:
        """Take versions, and record entries with a crash point before and after them."""
        self._look()
        self._event()
        self.journal.extend(entries)
        self._event()

    def mark(self, label: str) -> None:
        """Take versions at a point that the store names, and add a crash point."""
        self.marks[label] += 1
        self._look()
        self._event()

    # ---- for the crash lab ---------------------------------------------------------------------------------------

    def state(self, disk: Disk) -> DiskState:
        """Return what is durable and in flight now, by the rule of a disk for names.

        The result changes with the disk, so it has to be used before anything else happens. Cost: the journal entries
        since the last call.
        """
        if self._state_now is None or self._state_now.disk != disk:
            self._state_now, self._applied = DiskState(self.base, disk=disk), 0
        self._state_now.apply_all(self.journal[self._applied :])
        self._applied = len(self.journal)
        return self._state_now

    def peek(self, path: str, offset: int, size_bytes: int) -> bytes:
        """Return what the process sees of a file, without taking a version."""
        buffer = self._names.find(path).tracked.buffer
        return bytes(buffer if offset == 0 and size_bytes >= len(buffer) else buffer[offset : offset + size_bytes])

    def seen(self, beginnings: tuple[str, ...]) -> bytes:
        """Return the fingerprint of the visible files whose paths have these prefixes."""
        files = self._names.files.items()
        return fingerprint({path: inode.tracked.buffer for path, inode in files if path.startswith(beginnings)})

    def paths(self) -> list[str]:
        """Return the names of all visible files, sorted."""
        return sorted(self._names.files)

    def sizes(self) -> dict[str, int]:
        """Return the size in bytes of all visible files by path."""
        return {path: len(inode.tracked.buffer) for path, inode in self._names.files.items()}

    def leaks(self) -> list[str]:
        """Return the files that a closed store still has open or mapped."""
        return self._names.in_use()
