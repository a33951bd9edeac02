"""A store just after recovery, and everything a judge may compare it with."""

from collections.abc import Mapping
from dataclasses import dataclass

from impl.store import MessageStore
from model.state import CommitLog, Layout
from properties.case import Settings
from properties.derived_ledger import DerivedLedger
from properties.images import compose, disk_state
from properties.ledger import Ledger
from properties.log_places import LOG_DIRECTORY, ROOT
from properties.recorder.disk import Disk, Image
from properties.recorder.recording_files import RecordingFiles

__all__ = ["LOG_DIRECTORY", "ROOT", "LegalLogs", "Recovered", "durable_image"]

LegalLogs = Mapping[tuple[int, int], CommitLog]
"""Each legal log by (number of records, end offset)."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """One store just after recovery, and what it may look like.

    `was_harmed` says that files made from the log were harmed behind the store's back: what its checkpoint says of them
    was true once.
    """

    store: MessageStore
    files: RecordingFiles
    ledger: Ledger
    derived: DerivedLedger
    legal: LegalLogs
    durable: Image
    settings: Settings
    layout: Layout
    was_harmed: bool = False

    @property
    def key(self) -> tuple[int, int]:
        """How many whole records of the ledger the log claims to hold, and where it ends."""
        end = self.store.max_offset
        return self.ledger.count_at(end), end


def durable_image(files: RecordingFiles, *, disk: Disk) -> Image:
    """Return what the disk holds for sure: the image in which nothing un-synced survived."""
    return compose(disk_state(files.base, files.journal, len(files.journal), disk=disk), {})
