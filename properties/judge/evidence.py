"""Define the evidence of judges: a store just after its open, and what it has to be.

Each judge takes `Evidence`. `Recovered` provides it for a recorded disk and for the directory of a killed process.
`ImageEvidence` (properties/judge/image_evidence.py) provides it for a crash image, with or without the truth.
An interleaving provides `Answers` at its end, and `Recovered` after a power loss. The answers of a foreign store, which
has none of these files, are the evidence of properties/foreign/judging.py.

A provider raises CannotTell for what its evidence does not show. The judge then rules the number unknown.
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
from tornpage.properties.judge.ledgers import DerivedLedger, Ledger, LegalVersions, SavedVersion
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
    "ProcessView",
    "Recovered",
    "SeenFiles",
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
"""The directories whose files are built from the log."""

STRAY = "stray.txt"
"""Name of a file that a run adds although it does not belong to a store. The store leaves it alone."""

_BASE_DIGITS = 20


def below_root(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of a store by name below its directory."""
    start = len(ROOT) + 1
    return {path[start:]: content for path, content in files.items() if path.startswith(f"{ROOT}/")}


def name_of(path: str) -> str:
    """Return the name of a file below the store directory."""
    return path.removeprefix(f"{ROOT}/")


def is_base(name: str) -> bool:
    """Whether a name can state the offset or position at which a file begins."""
    return len(name) == _BASE_DIGITS and name.isascii() and name.isdecimal()


DERIVED_PATHS = tuple(f"{ROOT}/{directory}" for directory in DERIVED)
"""Path prefixes of files that are built from the log."""


def is_derived(path: str) -> bool:
    """Whether a file on a recorded disk is built from the log."""
    return path.startswith(DERIVED_PATHS)


def derived_on(image: Image) -> Mapping[str, bytes]:
    """Return the files of a disk that are built from the log, by name below the store."""
    start = len(ROOT) + 1
    return {path[start:]: data for path, data in image.files.items() if is_derived(path)}


DELETED_TOPICS = f"{ROOT}/config/deletedTopics"

Key = tuple[int, int, int, tuple[tuple[str, int], ...]]
"""Number of records ever appended, end offset, begin offset, and deleted topics of which the log still has records.

Each deleted topic comes with the offset below which its records count in no queue. For a log without records: each
topic that was deleted at the end offset of the log or past it.
"""

LegalLogs = Mapping[Key, CommitLog]
"""Each legal log by its visible key."""

ProcessView = tuple[bytes, Hashable]
"""What a process sees: the fingerprint of log, queues and index, and what it holds in memory of them."""


def key_of(log: CommitLog) -> Key:
    """Return the visible key of a log just recovered."""
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
    """The files of a disk as a process sees them; `base` is the disk before the open."""

    @property
    def base(self) -> Image:
        """The disk before the store was opened."""

    def paths(self) -> list[str]:
        """Return the path of each file, in order."""

    def peek(self, path: str, offset: int, size_bytes: int) -> bytes:
        """Return bytes of a file, fewer at its end."""


class SeenFiles:
    """Immutable files in memory, by path, on a disk whose state before the open was `base`."""

    def __init__(self, content: Mapping[str, bytes], base: Image) -> None:
        self.content = content
        self.base = base

    def paths(self) -> list[str]:
        """Return the path of each file, in order."""
        return sorted(self.content)

    def peek(self, path: str, offset: int, size_bytes: int) -> bytes:
        """Return bytes of a file: fewer at its end, none of a file that is missing."""
        return self.content.get(path, b"")[offset : offset + size_bytes]


class Answers(Protocol):
    """A store, and the log that its answers have to follow from."""

    @property
    def store(self) -> MessageStore:
        """The store. Raises CannotTell if it did not open."""

    @property
    def log(self) -> CommitLog:
        """The model's log. Raises CannotTell if the log of the store is not legal."""


class Evidence(Answers, Protocol):
    """A store just after its open, its files, and what they may legally be."""

    @property
    def refusal(self) -> str:
        """Why the store did not open; empty if it did."""

    @property
    def damage(self) -> str:
        """Damage in the opened files that no crash leaves; empty for a disk after a crash."""

    @property
    def is_recovered(self) -> bool:
        """Whether the open recovered the files.

        A store that opens read-only leaves the files of a damaged image alone.
        """

    @property
    def key(self) -> Key:
        """The visible key of the log."""

    @property
    def legal(self) -> LegalLogs:
        """The logs that may be there, by key."""

    @property
    def begin(self) -> int:
        """The offset at which the log has to begin."""

    @property
    def end(self) -> int:
        """The end of the kept part of the log; past every offset if the store cuts nothing."""

    @property
    def ledger(self) -> Ledger:
        """The bytes that were appended."""

    @property
    def derived(self) -> DerivedLedger:
        """What queues and index have to hold of the records that are kept."""

    @property
    def index_ledger(self) -> DerivedLedger:
        """The same for the index, including entries of removed records.

        Raises CannotTell if those entries are not known.
        """

    @property
    def derived_begin(self) -> int:
        """The offset from which units and entries are compared."""

    @property
    def files(self) -> Files:
        """The files as the process sees them, and the disk before the open."""

    @property
    def durable(self) -> Image:
        """What the disk holds for certain after the open."""

    def log_paths(self, *, durable: bool = False) -> Sequence[str]:
        """Return the paths of the process's or the disk's log files, lowest base first."""

    def derived_files(self) -> Mapping[str, bytes]:
        """Return the process's files of queues and index, by name below the store directory."""

    def disks_of_the_checkpoint(self, *, of_queues: bool = False) -> Sequence[Image]:
        """Return the disks on which the checkpoint's times have to be true.

        The times are those of the log, or with `of_queues` those of queues and index.
        """

    @property
    def has_bit_maps(self) -> bool:
        """Whether it is known which bit maps the extension has to hold."""

    @property
    def settings(self) -> Settings:
        """The settings of the store."""

    @property
    def layout(self) -> Layout:
        """The settings as the model has them."""

    @property
    def was_corrupted(self) -> bool:
        """Whether files other than the log were damaged from outside, or written by another store."""

    @property
    def versions_before(self) -> Mapping[str, SavedVersion]:
        """The version of each progress file of the store before the open, by path."""

    @property
    def legal_versions(self) -> LegalVersions:
        """The versions that each progress file may have had before the open.

        Raises CannotTell if no save was recorded.
        """

    @property
    def torn_before(self) -> frozenset[tuple[str, bytes]]:
        """Path and content of each state file that was torn from outside."""

    @property
    def queues_created_late(self) -> bool:
        """Whether dispatch created queues after the open."""

    def end_of_queue(self, queue: Queue) -> int:
        """Return the number after the last message of a queue."""

    @property
    def cached_logs(self) -> dict[str, CommitLog]:
        """Values that several judges need, computed once."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """Evidence of a recorded disk or of a killed process: a store just after recovery.

    `was_corrupted`: files built from the log were corrupted from outside, so the checkpoint's times for them were true
    only before that. `versions_before`: the versions of the progress files before the open. `legal_versions`: those
    they may have had. `torn_before`: the state files that were torn from outside, with their content.
    `queues_created_late`: the open could not create all queues, and dispatch created them afterwards. `key`: the number
    of whole records of the ledger up to the log's end, its end and begin, and the topics that it remembers as deleted.
    `view`: the view of the process, if views are cached. `cached_logs`: values that several judges need.
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
    was_corrupted: bool = False
    versions_before: Mapping[str, SavedVersion] = field(default_factory=dict)
    legal_versions: LegalVersions = field(default_factory=dict)
    torn_before: frozenset[tuple[str, bytes]] = frozenset()
    queues_created_late: bool = False
    view: ProcessView | None = None
    key: Key = field(init=False)
    cached_logs: dict[str, CommitLog] = field(init=False, default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        end, begin = self.store.max_offset, self.store.min_offset
        remembered = remembered_topics(self.durable.files.get(DELETED_TOPICS)) or ()
        count = self.ledger.count_at(end)
        there = self._gone_by_queues(count, end) if end == begin else _still_there(remembered, end, begin)
        object.__setattr__(self, "key", (count, end, begin, there))  # computed once: judges read it often

    @property
    def log(self) -> CommitLog:
        """The model's log that was recovered. Raises CannotTell if it is not a legal one."""
        log = self.legal.get(self.key)
        if log is None:
            raise CannotTell("the recovered log is not one that may survive, which number 2 judges")
        return log

    @property
    def recording(self) -> RecordingFiles:
        """The files, which have to be those of a recorded disk."""
        assert isinstance(self.files, RecordingFiles)
        return self.files

    @property
    def begin(self) -> int:
        """Where the log begins according to the store. Contract 10 judges which begins are legal."""
        return self.store.min_offset

    @property
    def end(self) -> int:
        """Where the log ends according to the store. Contract 2 judges which ends are legal."""
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
        """Return the paths of the process's or the disk's log files, lowest base first."""
        return log_files(self.durable.files if durable else self.files.paths())

    def derived_files(self) -> dict[str, bytes]:
        """Return the process's files of queues and index, by name below the store directory."""
        files, start = self.files, len(ROOT) + 1
        return {path[start:]: files.peek(path, 0, 1 << 40) for path in files.paths() if is_derived(path)}

    def disks_of_the_checkpoint(self, *, of_queues: bool = False) -> tuple[Image, ...]:
        """Return the disks before and after the open.

        If files were corrupted from outside, the disk before the open is left out.
        """
        if self.was_corrupted:
            return () if of_queues else (self.durable,)
        return self.files.base, self.durable

    def end_of_queue(self, queue: Queue) -> int:
        """Return the number after the last message of a queue, by the surviving records."""
        return self.derived.end_of(queue, self.store.max_offset)

    def _gone_by_queues(self, count: int, end: int) -> tuple[tuple[str, int], ...]:
        """Return the deleted topics of a log without records.

        Only the queues show them: a deleted topic has no queue.

        If only one answer is legal, that one is returned, and other judges compare the queues with it.
        """
        legal = {key[3] for key in self.legal if key[:3] == (count, end, end)}
        if len(legal) == 1:
            return legal.pop()
        served = {topic for topic, _ in observed("queues", self.store.queues)}
        return tuple(sorted({(topic, end) for there in legal for topic, _ in there if topic not in served}))


@lru_cache(maxsize=256)
def remembered_topics(stored: bytes | None) -> tuple[tuple[str, int], ...] | None:
    """Return the deleted topics of a stored list.

    Returns none if there is no list, and None if the list is unreadable.
    """
    if stored is None:
        return ()
    try:
        return tuple((topic.decode(), offset) for topic, offset in parse_deleted_topics(stored).items())
    except ValueError:
        return None


def first_difference(first: bytes, second: bytes) -> int:
    """Return the position of the first difference, or the length of the shorter content."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(len(first), len(second)))


def left_past(end: int, base: int, stored: bytes) -> tuple[int, int] | None:
    """Return offset and value of the first byte past `end` that is not zero, or None.

    The log file begins at `base`.
    """
    past = stored[max(0, end - base) :]
    if past == bytes(len(past)):
        return None
    left = past.lstrip(b"\0")
    return base + len(stored) - len(left), left[0]


def durable_image(files: RecordingFiles, *, disk: Disk) -> Image:
    """Return what the disk holds for certain: the image in which no unsynced write survived."""
    return compose(files.state(disk), {})
