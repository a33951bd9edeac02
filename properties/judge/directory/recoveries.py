"""Our store on recorded disks that hold an image: each opening recovers a copy of it, by the real load path."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.store import MessageStore
from tornpage.properties.disk.dirty import DirtyTracker, choose_tracker
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.images import compose, disk_state
from tornpage.properties.disk.journal import Entry
from tornpage.properties.disk.recording_files import RecordingFiles
from tornpage.properties.judge.directory.image import below_root
from tornpage.properties.judge.directory.shape import Shape
from tornpage.properties.program.case import Disk
from tornpage.properties.program.hand_driven import HandDriven
from tornpage.properties.program.log_places import ROOT

__all__ = ["Opened", "Recoveries", "recoveries_of"]


@dataclass(frozen=True, slots=True)
class Opened:
    """A disk on which the store was opened; `store` is None when that was refused, with `refusal` for a reason.

    `places` are those in the journal between two file operations of the opening, `end` is where it ended: what is done
    with the store afterwards is no part of it.
    """

    files: RecordingFiles
    store: MessageStore | None
    refusal: str
    disk: Disk
    places: tuple[int, ...]
    end: int

    def content(self) -> dict[str, bytes]:
        """Return the files as the process sees them, by name below the store directory."""
        start, files = len(ROOT) + 1, self.files
        return {path[start:]: files.peek(path, 0, 1 << 62) for path in files.paths() if path.startswith(f"{ROOT}/")}

    def durable(self) -> Image:
        """Return what the opening has left on the disk for sure."""
        return compose(disk_state(self.files.base, self.files.journal, self.end, disk=self.disk), {})

    def durable_content(self) -> dict[str, bytes]:
        """Return the files that are on the disk for sure, by name below the store directory."""
        return below_root(self.durable())


class Recoveries:
    """Opens the store of one shape as often as one likes; `now_ms` is its clock, `count` how often it was opened.

    `looks_at_all` has it look at the whole log each time, also where a proof says that nothing has changed.
    """

    def __init__(
        self, shape: Shape, components: Parts, *, tracker: DirtyTracker, now_ms: int, disk: Disk = "posix-strict"
    ) -> None:
        self.disk = disk
        self.count = 0
        self.looks_at_all = False
        self._config = shape.config
        self._clock = lambda: now_ms
        self._tracker = tracker
        self._components = components.replacing({ThreadRunner: lambda service: HandDriven(service, self._clock)})

    def opened(self, base: Image, journal: tuple[Entry, ...] = ()) -> Opened:
        """Open the store on a disk that holds an image, and the journal of a process that was killed on it."""
        files = RecordingFiles(base, tracker=self._tracker, journal=journal)
        store, refusal = self.open_on(files)
        files.mark("opened")
        return Opened(files, store, refusal, self.disk, tuple(dict.fromkeys(files.events)), len(files.journal))

    def open_on(self, files: RecordingFiles) -> tuple[MessageStore | None, str]:
        """Open the store on a disk; return it, or None and why not."""
        self.count += 1
        try:
            config = replace(self._config, check_whole_log_on_recover=self.looks_at_all)
            store = MessageStore.open(ROOT, config, files=files, clock=self._clock, parts=self._components)
        except Exception as error:  # whatever it is, it is an answer about this image
            return None, f"{type(error).__name__}: {error}"
        return store, ""


@contextmanager
def recoveries_of(shape: Shape, components: Parts, *, now_ms: int, disk: Disk) -> Iterator[Recoveries]:
    """Yield recoveries on disks whose memory is given back at the end."""
    tracker = choose_tracker("auto")
    try:
        yield Recoveries(shape, components, tracker=tracker, now_ms=now_ms, disk=disk)
    finally:
        tracker.close()
