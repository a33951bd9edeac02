"""A store just after recovery, and everything a judge may compare it with."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from tornpage.impl.store import MessageStore
from tornpage.model.state import CommitLog, Layout
from tornpage.properties.contract import observed
from tornpage.properties.decode.deleted_topics import parse_deleted_topics
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.images import compose
from tornpage.properties.disk.recording_files import RecordingFiles
from tornpage.properties.judge.derived_ledger import DerivedLedger
from tornpage.properties.judge.ledger import Ledger
from tornpage.properties.judge.progress_ledger import LegalVersions, Said
from tornpage.properties.judge.rulings import CannotTell
from tornpage.properties.program.case import Disk, Settings
from tornpage.properties.program.log_places import LOG_DIRECTORY, ROOT

__all__ = [
    "DELETED_TOPICS",
    "LOG_DIRECTORY",
    "ROOT",
    "Key",
    "LegalLogs",
    "Recovered",
    "View",
    "durable_image",
    "key_of",
    "remembered_topics",
]

DELETED_TOPICS = f"{ROOT}/config/deletedTopics"

Key = tuple[int, int, int, tuple[tuple[str, int], ...]]
"""Number of records that were ever appended, end offset, where the log begins, and each deleted topic of which the log
still has records, with the offset below which they count in no queue. Of a log without a record: each topic that was
deleted where it ends, or behind that."""

LegalLogs = Mapping[Key, CommitLog]
"""Each legal log by what can be seen of it."""

View = tuple[bytes, Hashable]
"""What a process has: the fingerprint of log, queues and index as it sees them, and what it remembers of them."""


def key_of(log: CommitLog) -> Key:
    """Return what can be seen of a log just recovered."""
    end, begin = log.end_offset, log.min_offset
    there = _still_there(log.deleted, end, begin)
    if end == begin:
        there = tuple((topic, end) for topic, offset in log.deleted if offset >= end)
    return len(log.records), end, begin, there


def _still_there(deleted: Iterable[tuple[str, int]], end_offset: int, min_offset: int) -> tuple[tuple[str, int], ...]:
    return tuple(
        sorted((topic, min(offset, end_offset)) for topic, offset in deleted if min(offset, end_offset) > min_offset)
    )


@dataclass(frozen=True, slots=True)
class Recovered:
    """One store just after recovery, and what it may look like.

    `was_harmed` says that files made from the log were harmed behind the store's back: what its checkpoint says of them
    was true once. `said_before` is what the progress files said before the open, `legal_versions` what they may say.
    `torn_before` are the state files that somebody has torn behind the store's back, as they were left.
    `queues_came_late` says that the open could not make all queues, and that dispatch has made them behind it.
    `key` is how many whole records of the ledger the log claims to end with, where it ends and begins, and which topics
    it remembers as deleted. `view` is what the process has, where somebody remembers such views; `worked_out`
    keeps what several judges ask for.
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
    said_before: Mapping[str, Said] = field(default_factory=dict)
    legal_versions: LegalVersions = field(default_factory=dict)
    torn_before: frozenset[tuple[str, bytes]] = frozenset()
    queues_came_late: bool = False
    view: View | None = None
    key: Key = field(init=False)
    worked_out: dict[str, CommitLog] = field(init=False, default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        end, begin = self.store.max_offset, self.store.min_offset
        remembered = remembered_topics(self.durable.files.get(DELETED_TOPICS)) or ()
        count = self.ledger.count_at(end)
        there = self._gone_by_queues(count, end) if end == begin else _still_there(remembered, end, begin)
        object.__setattr__(self, "key", (count, end, begin, there))  # once: judges ask for it again and again

    @property
    def log(self) -> CommitLog:
        """The model's log that was recovered. Raises CannotTell where it is none of the legal ones."""
        log = self.legal.get(self.key)
        if log is None:
            raise CannotTell("the recovered log is none that may survive, which is judged by number 2")
        return log

    def _gone_by_queues(self, count: int, end: int) -> tuple[tuple[str, int], ...]:
        """Return the deleted topics of a log without a record, which only queues tell: such a topic has none.

        Where there is one legal answer it is that one, and other judges compare the queues with it.
        """
        legal = {key[3] for key in self.legal if key[:3] == (count, end, end)}
        if len(legal) == 1:
            return legal.pop()
        served = {topic for topic, _ in observed("queues", self.store.queues)}
        return tuple(sorted({(topic, end) for there in legal for topic, _ in there if topic not in served}))


@lru_cache(maxsize=256)
def remembered_topics(stored: bytes | None) -> tuple[tuple[str, int], ...] | None:
    """Return the deleted topics that a list has, none without a list; None of a list that says nothing."""
    if stored is None:
        return ()
    try:
        return tuple((topic.decode(), offset) for topic, offset in parse_deleted_topics(stored).items())
    except ValueError:
        return None


def durable_image(files: RecordingFiles, *, disk: Disk) -> Image:
    """Return what the disk holds for sure: the image in which nothing un-synced survived."""
    return compose(files.state(disk), {})
