"""Test power losses with the log in two directories: the remaining log is always a prefix.

Each run happens once on a recorded disk (`posix-strict`: any subset of the names). At each crash point, every
combination of the names, sizes and page versions that could have reached the disk is tried. Pages torn by sectors are
left to the campaigns.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice, product

import pytest

from tests.support.impl.killed import numbers
from tests.support.impl.stores import HandRunner, SetClock, config_of
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.io.files import DiskUsage
from tornpage.impl.message.message import Message, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.store import MessageStore
from tornpage.properties.disk.dirty import CompareTracker
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.images import Choices, InFlightWrite, compose, disk_state, in_flight_writes
from tornpage.properties.disk.recording_files import EMPTY_DISK, RecordingFiles

FILE_BYTES = 4096
X, Y = "/disk1/log", "/disk2/log"
CONFIG = replace(config_of(file_bytes=FILE_BYTES), store_path_commit_log=(X, Y), populate_ahead_bytes=0)


class TwoDisks(RecordingFiles):
    """A recorded disk with two directories that may be full or fail to sync."""

    def __init__(self, base: Image) -> None:
        super().__init__(base, tracker=CompareTracker())
        self.full: set[str] = set()
        self.unsyncable: set[str] = set()

    def disk_usage(self, path: str) -> DiskUsage:
        return DiskUsage(100 * FILE_BYTES, (10 if path in self.full else 90) * FILE_BYTES)

    def sync_directory(self, path: str) -> None:
        if path in self.unsyncable:
            raise OSError(5, "Input/output error", path)
        super().sync_directory(path)


class History:
    """A store on a recorded disk.

    `promised` maps each event to the number of messages that a crash there has to leave.
    """

    def __init__(self, base: Image = EMPTY_DISK, *, put: int = 0, flushed: int = 0, files_ahead: int = 0) -> None:
        self.config = replace(CONFIG, mapped_files_ahead=files_ahead)
        self.files = TwoDisks(base)
        self.put_count, self._flushed_count = put, flushed
        self._promises: list[tuple[int, int]] = [(0, flushed)]
        self.runner = HandRunner()
        self.store = opened(self.files, self.config, self.runner)

    def put(self, count: int = 1, *, status: PutStatus = PutStatus.PUT_OK) -> None:
        """Put messages; two of them fill a file."""
        for _ in range(count):
            assert self.store.put(message(self.put_count)).status is status
            self.put_count += status is PutStatus.PUT_OK

    def flush(self) -> None:
        """Flush, and promise the messages put so far."""
        assert self.store.flush().durable
        self._promise(self.put_count)

    def close(self) -> None:
        """Close, and promise the messages put so far."""
        self.store.close()
        self._promise(self.put_count)

    def _promise(self, count: int) -> None:
        self.files.mark("returned")
        self._promises.append((len(self.files.events) - 1, count))

    def promised(self, event: int) -> int:
        """Return the number of messages that a crash at an event has to leave."""
        return max(count for first, count in self._promises if first <= event)


def message(number: int) -> Message:
    return Message("T", f"{number:03d}".encode().ljust(1800, b"."))


def opened(files: RecordingFiles, config: MessageStoreConfig, runner: HandRunner) -> MessageStore:
    return MessageStore.open(
        "/store", config, files=files, clock=SetClock(ticking=True), parts=Parts({ThreadRunner: runner})
    )


def choices_of(facts: list[InFlightWrite]) -> Iterator[Choices]:
    """Yield every combination of facts that may have reached the disk."""
    names = [fact.name for fact in facts]
    for numbers_chosen in product(*(range(fact.alternatives) for fact in facts)):
        yield dict(zip(names, numbers_chosen, strict=True))


def power_losses(history: History) -> Iterator[tuple[Image, int]]:
    """Yield each different disk that a power loss may leave.

    With it comes the number of messages that the disk has to hold.
    """
    seen: set[tuple[object, ...]] = set()
    for event, position in enumerate(history.files.events):
        state = disk_state(history.files.base, history.files.journal, position, disk="posix-strict")
        for choices in choices_of(in_flight_writes(state)):
            image = compose(state, choices)
            key = (history.promised(event), image.directories, tuple(sorted(image.files.items())))
            if key not in seen:
                seen.add(key)
                yield image, history.promised(event)


def judge(history: History, every: int) -> Counter[str]:
    """Open every n-th disk that a power loss may leave, judge the log and continue.

    Returns how often each finding occurred.
    """
    found: Counter[str] = Counter()
    for image, promised in islice(power_losses(history), 0, None, every):
        store = opened(RecordingFiles(image, tracker=CompareTracker()), history.config, HandRunner())
        kept = numbers(store)
        assert store.read_only_reason is None, store.findings
        assert kept == list(range(len(kept)))
        assert promised <= len(kept) <= history.put_count
        found.update(finding.code for finding in store.findings)
        found["states"] += 1
        found["states that lost something"] += len(kept) < history.put_count
        for number in range(len(kept), len(kept) + 3):
            assert store.put(message(number)).status is PutStatus.PUT_OK
        assert numbers(store) == list(range(len(kept) + 3))
        store.close()
    return found


def directories_take_turns() -> History:
    history = History()
    history.put(3)
    history.flush()
    history.put(4)
    history.close()
    return history


def files_are_made_ahead() -> History:
    history = History(files_ahead=1)
    history.put(3)
    history.runner.step("allocate")
    history.flush()
    history.files.full = {X}
    history.put(3)
    history.close()
    return history


def file_is_given_up_in_one_directory_and_made_in_another() -> History:
    """The name and the zeros of the first attempt may reappear beside the real file.

    The removal of that attempt is not synced.
    """
    history = History()
    history.put(2)
    history.files.unsyncable = {Y}
    history.put(status=PutStatus.CREATE_MAPEDFILE_FAILED)
    history.files.unsyncable, history.files.full = set(), {Y}
    history.put(3)
    history.flush()
    history.put()
    return history


def recovery_cuts_files_of_both_directories() -> History:
    """Seven messages are in four files.

    The page of the second one is lost, and power fails again in recovery.
    """
    history = History()
    history.put(2)
    history.flush()
    history.put(5)
    files = history.files
    state = disk_state(files.base, files.journal, len(files.journal), disk="posix-strict")
    newest = {
        fact.name: fact.alternatives - 1 for fact in in_flight_writes(state) if f"{FILE_BYTES:020d}" not in fact.name
    }
    again = History(compose(state, newest), put=2, flushed=2)
    assert [finding.code for finding in again.store.findings] == ["torn_tail"]
    again.put(3)
    again.close()
    return again


@pytest.mark.slow
@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.deep)])
@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (directories_take_turns, "torn_tail"),
        (files_are_made_ahead, "states that lost something"),
        (file_is_given_up_in_one_directory_and_made_in_another, "twin_file"),
        (recovery_cuts_files_of_both_directories, "torn_tail"),
    ],
)
def test_whatever_survives_is_a_prefix_with_all_that_was_flushed(
    make: Callable[[], History], expected: str, every: int
) -> None:
    found = judge(make(), every)
    assert found[expected], found
    assert found["states"] > 20, found
