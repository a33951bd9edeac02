"""State what judges look at: a store just after its open, and everything that it may be compared with.

`Evidence` is what each judge takes. Its providers are `Recovered`, of a recorded disk or of a directory that a killed
process left, and `ImageEvidence` (properties/judge/image_evidence.py), of a crash image with or without the truth.
Interleavings have no disk that a recovery has read: they provide `Answers`. A foreign store has no files of ours: what
it answers is the evidence of properties/foreign/judging.py.

A provider raises CannotTell for what its evidence does not show; the judge then rules that the number is unknown.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar, Protocol

from tornpage.impl.store import MessageStore
from tornpage.model.dispatch import Queue
from tornpage.model.state import CommitLog, Layout
from tornpage.properties.contract import observed
from tornpage.properties.decode.deleted_topics import parse_deleted_topics
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.images import compose
from tornpage.properties.disk.recording_files import RecordingFiles
from tornpage.properties.judge.ledgers import DerivedLedger, Ledger, LegalVersions, Said
from tornpage.properties.judge.rulings import CannotTell
from tornpage.properties.program.case import Disk, Settings
from tornpage.properties.program.log_places import ROOT, log_files

__all__ = [
    "DELETED_TOPICS",
    "DERIVED",
    "DERIVED_PATHS",
    "EXTENSIONS",
    "INDEX",
    "QUEUES",
    "STRAY",
    "Answers",
    "Evidence",
    "Files",
    "Key",
    "LegalLogs",
    "Recovered",
    "SeenFiles",
    "View",
    "below_root",
    "derived_on",
    "durable_image",
    "first_difference",
    "is_base",
    "is_derived",
    "key_of",
    "left_past",
    "name_of",
    "remembered_topics",
]

QUEUES, EXTENSIONS, INDEX = "consumequeue/", "consumequeue_ext/", "index/"

DERIVED = (QUEUES, EXTENSIONS, INDEX)
"""The directories whose files are made from the log."""

STRAY = "stray.txt"
"""What a trial calls a file that does not belong to a store: it is left alone."""

_BASE_DIGITS = 20


def below_root(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of a store by name below its directory."""
    start = len(ROOT) + 1
    return {path[start:]: content for path, content in files.items() if path.startswith(f"{ROOT}/")}


def name_of(path: str) -> str:
    """Return the name of a file below the store directory."""
    return path.removeprefix(f"{ROOT}/")


def is_base(name: str) -> bool:
    """Whether a file can have this name for the offset or the position that it begins at."""
    return len(name) == _BASE_DIGITS and name.isascii() and name.isdecimal()


DERIVED_PATHS = tuple(f"{ROOT}/{directory}" for directory in DERIVED)
"""How paths of files begin that are made from the log."""


def is_derived(path: str) -> bool:
    """Whether a file on a recorded disk is made from the log."""
    return path.startswith(DERIVED_PATHS)


def derived_on(image: Image) -> Mapping[str, bytes]:
    """Return what a disk holds of the files that are made from the log, by name below the store."""
    start = len(ROOT) + 1
    return {path[start:]: data for path, data in image.files.items() if is_derived(path)}


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


class Files(Protocol):
    """The files of a disk as a process sees them; `base` is the disk as the process found it."""

    @property
    def base(self) -> Image:
        """The disk before the store was opened."""

    def paths(self) -> list[str]:
        """Return the path of each file, in order."""

    def peek(self, path: str, offset: int, size_bytes: int) -> bytes:
        """Return bytes of a file, fewer at its end."""


class SeenFiles:
    """Files in memory, by path, on a disk that was found as `base`; nothing changes them."""

    def __init__(self, content: Mapping[str, bytes], base: Image) -> None:
        self.content = content
        self.base = base

    def paths(self) -> list[str]:
        """Return the path of each file, in order."""
        return sorted(self.content)

    def peek(self, path: str, offset: int, size_bytes: int) -> bytes:
        """Return bytes of a file, fewer at its end, none of a file that is not there."""
        return self.content.get(path, b"")[offset : offset + size_bytes]


class Answers(Protocol):
    """A store that is asked, and the log that its answers have to follow from."""

    @property
    def store(self) -> MessageStore:
        """The store. Raises CannotTell where it did not open."""

    @property
    def log(self) -> CommitLog:
        """The model's log. Raises CannotTell where the store has none of the legal ones."""


class Evidence(Answers, Protocol):
    """A store just after its open, its files, and what it may look like."""

    @property
    def refusal(self) -> str:
        """Why the store did not open; empty where it did."""

    @property
    def damage(self) -> str:
        """What no crash leaves behind in the files that the store was opened on; empty of a disk after a crash."""

    @property
    def is_recovered(self) -> bool:
        """Whether the open had to recover the files; a read-only store leaves those of a damaged image as they are."""

    @property
    def key(self) -> Key:
        """What can be seen of the log."""

    @property
    def legal(self) -> LegalLogs:
        """The logs that may be there."""

    @property
    def begin(self) -> int:
        """Where the log has to begin."""

    @property
    def end(self) -> int:
        """Up to which offset the log is kept; past each offset in a store that cuts nothing."""

    @property
    def ledger(self) -> Ledger:
        """What was appended, byte for byte."""

    @property
    def derived(self) -> DerivedLedger:
        """What queues and index have to hold of the records that are kept."""

    @property
    def index_ledger(self) -> DerivedLedger:
        """The same of the index, with entries of records that are gone. Raises CannotTell where they are not known."""

    @property
    def derived_begin(self) -> int:
        """Where the records begin whose units and entries are compared."""

    @property
    def files(self) -> Files:
        """The files as the process sees them, and the disk as it found it."""

    @property
    def durable(self) -> Image:
        """What the disk holds for sure after the open."""

    def log_paths(self, *, durable: bool = False) -> Sequence[str]:
        """Return the paths of the log files that the process sees, or those on the disk; lowest base first."""

    def derived_files(self) -> Mapping[str, bytes]:
        """Return the files of queues and index that the process sees, by name below the store directory."""

    def disks_of_the_checkpoint(self, *, of_queues: bool = False) -> Sequence[Image]:
        """Return the disks on which the times of the checkpoint have to be true, of the log or of what is derived."""

    @property
    def has_bit_maps(self) -> bool:
        """Whether it is known which bit maps the extension has to hold."""

    @property
    def settings(self) -> Settings:
        """The settings of the store."""

    @property
    def layout(self) -> Layout:
        """The same as the model has them."""

    @property
    def was_harmed(self) -> bool:
        """Whether files other than the log were damaged from outside, or written by another store."""

    @property
    def said_before(self) -> Mapping[str, Said]:
        """What each progress file of the store said before the open, by path."""

    @property
    def legal_versions(self) -> LegalVersions:
        """What each progress file may have said before the open. Raises CannotTell where no save was seen."""

    @property
    def torn_before(self) -> frozenset[tuple[str, bytes]]:
        """Path and content of each state file that was torn from outside."""

    @property
    def queues_came_late(self) -> bool:
        """Whether dispatch made queues after the open."""

    def end_of_queue(self, queue: Queue) -> int:
        """Return the number that follows the last message of a queue."""

    @property
    def worked_out(self) -> dict[str, CommitLog]:
        """What several judges ask for, kept."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """One store just after recovery, and what it may look like: evidence of a recorded disk or of a killed process.

    `was_harmed` says that files made from the log were harmed behind the store's back: what its checkpoint says of them
    was true once. `said_before` is what the progress files said before the open, `legal_versions` what they may say.
    `torn_before` are the state files that somebody has torn behind the store's back, as they were left.
    `queues_came_late` says that the open could not make all queues, and that dispatch has made them behind it.
    `key` is how many whole records of the ledger the log claims to end with, where it ends and begins, and which topics
    it remembers as deleted. `view` is what the process has, where somebody remembers such views; `worked_out`
    keeps what several judges ask for.
    """

    refusal: ClassVar[str] = ""
    damage: ClassVar[str] = ""
    has_bit_maps: ClassVar[bool] = True
    is_recovered: ClassVar[bool] = True

    store: MessageStore
    files: Files
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

    @property
    def recording(self) -> RecordingFiles:
        """The files, which are those of a recorded disk."""
        assert isinstance(self.files, RecordingFiles)
        return self.files

    @property
    def begin(self) -> int:
        """Where the log begins, by the store; which begins are legal is judged by number 10."""
        return self.store.min_offset

    @property
    def end(self) -> int:
        """Where the log ends, by the store; which ends are legal is judged by number 2."""
        return self.store.max_offset

    @property
    def index_ledger(self) -> DerivedLedger:
        """What the index has to hold."""
        return self.derived

    @property
    def derived_begin(self) -> int:
        """Where the log begins."""
        return self.store.min_offset

    def log_paths(self, *, durable: bool = False) -> list[str]:
        """Return the paths of the log files that the process sees, or those on the disk; lowest base first."""
        return log_files(self.durable.files if durable else self.files.paths())

    def derived_files(self) -> dict[str, bytes]:
        """Return the files of queues and index that the process sees, by name below the store directory."""
        files, start = self.files, len(ROOT) + 1
        return {path[start:]: files.peek(path, 0, 1 << 40) for path in files.paths() if is_derived(path)}

    def disks_of_the_checkpoint(self, *, of_queues: bool = False) -> tuple[Image, ...]:
        """Return the disks before and after the open; what was damaged from outside says nothing of before."""
        if self.was_harmed:
            return () if of_queues else (self.durable,)
        return self.files.base, self.durable

    def end_of_queue(self, queue: Queue) -> int:
        """Return the number that follows the last message of a queue, by the surviving records."""
        return self.derived.end_of(queue, self.store.max_offset)

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


def first_difference(first: bytes, second: bytes) -> int:
    """Return at which position two contents begin to differ, the length of the shorter one if it begins the other."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(len(first), len(second)))


def left_past(end: int, base: int, stored: bytes) -> tuple[int, int] | None:
    """Return offset and value of the first byte past `end` that is not zero, in a log file that begins at `base`."""
    past = stored[max(0, end - base) :]
    if past == bytes(len(past)):
        return None
    left = past.lstrip(b"\0")
    return base + len(stored) - len(left), left[0]


def durable_image(files: RecordingFiles, *, disk: Disk) -> Image:
    """Return what the disk holds for sure: the image in which nothing un-synced survived."""
    return compose(files.state(disk), {})
