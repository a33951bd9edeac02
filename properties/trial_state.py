"""What every trial has: a store on a recorded disk beside its model, and the memory of what both have done.

`Window` remembers, for each verb, the events it spans and the model before and after, so that a crash may fall on any
of them afterwards.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from impl.components import Components
from impl.store import MessageStore
from model.state import CommitLog
from properties.bodies import BORN_TIMESTAMP
from properties.case import (
    Operation,
    Settings,
)
from properties.judges import LOG_DIRECTORY, ROOT, durable_image
from properties.ledger import Ledger
from properties.planted import components_of
from properties.recorder.dirty import DirtyTracker
from properties.recorder.disk import Image
from properties.recorder.journal import Entry
from properties.recorder.recording_files import EMPTY_DISK, RecordingFiles
from properties.surroundings import Surroundings
from properties.translation import (
    layout_of,
    store_config,
)
from properties.verdict import GuaranteeBroken

__all__ = ["TrialState", "Window", "observed"]

Result = TypeVar("Result")

_OTHER_FILES_BYTES = 4096 + 512 + 4
"""Room for checkpoint, floor and lock: less than one more log file of any size that trials use, with what is free."""


@dataclass(frozen=True, slots=True)
class Window:
    """One verb: events `first` to `last` (exclusive) fall into it; the model leads from `before` to `after`."""

    first: int
    last: int
    before: CommitLog
    after: CommitLog

    def at(self, *, at_rest: bool) -> CommitLog:
        """Return what had been answered when a crash fell into the verb, or right after it."""
        return self.after if at_rest else self.before


class TrialState:
    """Store, model, ledger, disk and surroundings of one trial; an empty disk and an open store to begin with."""

    def __init__(self, settings: Settings, *, tracker: DirtyTracker, components: Components | None = None) -> None:
        self.settings = settings
        self.now_ms = BORN_TIMESTAMP
        self.layout = layout_of(settings)
        self._tracker = tracker
        self.surroundings = Surroundings(lambda: self.now_ms)
        self._components = self.surroundings.components(components or components_of(settings.bug))
        self._config = store_config(settings)
        self.performed: list[Operation] = []
        self.effects: Counter[str] = Counter()
        self.log = CommitLog()
        self.ledger = Ledger(file_bytes=settings.file_bytes)
        self.files = self.new_disk(EMPTY_DISK)
        self.closed = False
        self.windows: list[Window] = []
        self.store = self.open_on(self.files)
        self.surroundings.use(self.store)
        self.end_verb(0, self.log)

    # ---- disks and stores ----------------------------------------------------------------------------------------

    def new_disk(self, base: Image, journal: tuple[Entry, ...] = ()) -> RecordingFiles:
        """Return a disk that holds an image, and the journal of the process killed on it."""
        budget = self.settings.files_max * self.settings.file_bytes + _OTHER_FILES_BYTES
        files = RecordingFiles(base, tracker=self._tracker, journal=journal, budget_bytes=budget)
        self.surroundings.use_disk(files, 0)
        return files

    def open_on(self, files: RecordingFiles) -> MessageStore:
        """Open the store on a disk by its real load path. A refusal breaks contract 7."""
        try:
            store = MessageStore.open(
                ROOT, self._config, files=files, clock=self.surroundings.clock, components=self._components
            )
        except Exception as error:
            raise GuaranteeBroken(7, f"the store does not open: {type(error).__name__}: {error}") from error
        self.surroundings.remember(store)
        return store

    def durable(self, files: RecordingFiles) -> Image:
        """Return what a disk of this trial holds for sure."""
        return durable_image(files, disk=self.settings.disk)

    # ---- what every verb needs -----------------------------------------------------------------------------------

    def disk_holds_the_log(self) -> None:
        """After every operation the files are, byte for byte, what was put, and zero behind it (contract 1)."""
        file_bytes = self.settings.file_bytes
        for base in range(0, max(self.log.end_offset, self.log.files * file_bytes), file_bytes):
            found = self.peek(f"{base:020d}", 0, file_bytes)
            if found != self.ledger.expected(base, self.log.end_offset):
                raise GuaranteeBroken(1, f"the log file at {base} holds other bytes than were put")

    def end_verb(self, first: int, after: CommitLog) -> None:
        """Note that a verb which began at event `first` has returned and led to the log `after`."""
        self.files.mark("returned")
        self.windows.append(Window(first, len(self.files.events), self.log, after))
        self.log = after

    def peek(self, name: str, position: int, size_bytes: int) -> bytes:
        """Return what the process sees of a log file."""
        return self.files.peek(f"{LOG_DIRECTORY}/{name}", position, size_bytes)

    def compare_watermarks(self) -> None:
        """The store's watermarks are those of the model (contract 9)."""
        if self.closed:
            return
        observed("check", self.store.check)
        expected = (self.log.flushed_offset, self.log.readable_end, self.log.end_offset)
        found = (self.store.flushed_offset, self.store.committed_offset, self.store.max_offset)
        if expected != found:
            raise GuaranteeBroken(9, "watermarks (flushed, readable, written) are wrong", str(expected), str(found))


def observed(verb: str, call: Callable[[], Result]) -> Result:
    """Run a verb of the store: no exception may escape for what the model calls an answer."""
    try:
        return call()
    except GuaranteeBroken:
        raise
    except Exception as error:
        raise GuaranteeBroken(8, f"{verb} raises {type(error).__name__}: {error}") from error
