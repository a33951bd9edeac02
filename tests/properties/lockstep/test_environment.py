"""Test the environment of a lockstep run: each part gives the scripted answers.

The parts belong to the store in use.
"""

import errno
import gc
import weakref
from typing import get_args

import pytest

from tornpage.impl.config.policy import PutLockKind
from tornpage.impl.log.put_lock import make_put_lock
from tornpage.impl.message.codec import MESSAGE_MAGIC
from tornpage.impl.message.message import Message, PutResult, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.service.running_flags import RunningFlag
from tornpage.impl.store import MessageStore
from tornpage.model.operations import ServiceName
from tornpage.model.payloads import BORN_TIMESTAMP
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.recording_files import EMPTY_DISK, RecordingFiles
from tornpage.properties.lockstep.environment import Environment
from tornpage.properties.program.case import Settings
from tornpage.properties.program.hand_driven import Round
from tornpage.properties.program.translation import CLEAN_RESOURCE_INTERVAL_MS, store_config
from tornpage.properties.scheduler import run_stepped

MESSAGE = Message("T", b"body", born_timestamp=BORN_TIMESTAMP)
SYNC = Settings(file_bytes=4096, sync_flush=True)
MASTER = Settings(file_bytes=4096, role="SYNC_MASTER")


class World:
    """An environment, and a disk for the stores in it."""

    def __init__(self, tracker: DirtyTracker) -> None:
        self.tracker = tracker
        self.environment = Environment()
        self.parts = self.environment.inject(Parts())
        self.files = self.empty_disk()

    def empty_disk(self) -> RecordingFiles:
        files = RecordingFiles(EMPTY_DISK, tracker=self.tracker, journal=(), budget_bytes=1 << 20)
        self.environment.use_disk(files, 0)
        return files

    def open(self, settings: Settings, *, files: RecordingFiles | None = None) -> MessageStore:
        store = MessageStore.open(
            "/store",
            store_config(settings),
            files=files or self.files,
            clock=self.environment.clock,
            parts=self.parts,
        )
        self.environment.remember(store)
        return store


@pytest.fixture
def world(tracker: DirtyTracker) -> World:
    return World(tracker)


def test_the_mapped_file_refuses_once_and_half_of_the_record_is_taken_back(world: World) -> None:
    store = world.open(Settings(file_bytes=4096))
    world.environment.use(store)
    store.put(MESSAGE)
    before = world.files.peek("/store/commitlog/" + "0" * 20, 0, 4096)
    written: list[bytes] = []
    file = store._log.mapped[0]
    erase_failed_append = file.erase_failed_append

    def seen(size_bytes: int) -> None:
        written.append(bytes(file.view[file.written_position : file.written_position + 8]))
        erase_failed_append(size_bytes)

    file.erase_failed_append = seen  # type: ignore[method-assign]
    world.environment.append_fails = True
    assert store.put(MESSAGE) == PutResult(PutStatus.UNKNOWN_ERROR)
    assert [head[4:] for head in written] == [MESSAGE_MAGIC.to_bytes(4, "big", signed=True)]
    assert world.files.peek("/store/commitlog/" + "0" * 20, 0, 4096) == before
    assert not world.environment.append_fails
    assert store.put(MESSAGE).status is PutStatus.PUT_OK


def test_an_append_that_is_refused_is_an_error_of_the_disk(world: World) -> None:
    file = world.open(Settings(file_bytes=4096))._log.next_file()
    world.environment.append_fails = True
    with pytest.raises(OSError, match="refuses") as caught:
        file.append(bytearray(10))
    assert caught.value.errno == errno.EIO


@pytest.mark.parametrize(
    ("state", "status"),
    [
        ("none", PutStatus.SLAVE_NOT_AVAILABLE),
        ("behind", PutStatus.SLAVE_NOT_AVAILABLE),
        ("silent", PutStatus.FLUSH_SLAVE_TIMEOUT),
        ("confirms", PutStatus.PUT_OK),
    ],
)
def test_replicas_answer_at_once_and_as_told(world: World, state: str, status: PutStatus) -> None:
    world.environment.replica = state  # type: ignore[assignment]
    store = world.open(MASTER)
    assert store.put(MESSAGE).status is status
    assert store.put_async(MESSAGE).result(timeout=0).status is status


def stepped(world: World, name: str) -> Round:
    service = world.environment.service(name)
    assert service is not None
    found = service.step()
    assert found is not None
    return found


def test_a_step_is_one_of_the_store_in_use(world: World) -> None:
    first, second = world.open(SYNC), world.open(SYNC, files=world.empty_disk())
    answers = [store.put_async(MESSAGE) for store in (first, second)]
    world.environment.use(first)
    stepped(world, "group-commit")
    assert [answer.done() for answer in answers] == [True, False]
    world.environment.use(second)
    stepped(world, "group-commit")
    stepped(world, "group-commit")
    assert [answer.result(timeout=0).status for answer in answers] == [PutStatus.PUT_OK] * 2


def test_each_mode_has_its_services(world: World) -> None:
    modes = {
        "sync": (SYNC, {"group-commit", "time-outs", "flush-queues"}),
        "async": (Settings(file_bytes=4096), {"flush", "time-outs", "flush-queues"}),
        "pool": (Settings(file_bytes=4096, pool_buffers=1), {"flush", "commit", "time-outs", "flush-queues"}),
        "ahead": (Settings(file_bytes=4096, files_ahead=1), {"flush", "allocate", "time-outs", "flush-queues"}),
    }
    for mode, (settings, expected) in modes.items():
        store = world.open(settings, files=world.empty_disk())
        world.environment.use(store)
        found = {name for name in get_args(ServiceName) if world.environment.service(name) is not None}
        assert expected <= found, mode
        assert ("commit" in found) is (mode == "pool"), mode
        assert ("flush" in found) is (mode != "sync"), mode


def test_services_keep_no_store_alive(world: World) -> None:
    store = world.open(SYNC)
    store.put_async(MESSAGE)
    gone = weakref.ref(store)
    del store
    gc.collect()
    assert gone() is None


@pytest.mark.slow
@pytest.mark.parametrize("settings", [SYNC, MASTER, Settings(file_bytes=4096, pool_buffers=2)])
def test_a_store_that_was_given_up_is_gone_at_once_and_its_disk_stays(world: World, settings: Settings) -> None:
    used = world.open(SYNC)
    world.environment.use(used)
    disk = world.empty_disk()
    store = world.open(settings, files=disk)
    store.put(MESSAGE)
    files = disk.paths()
    gc.collect()
    gc.disable()
    try:
        queues, gone = weakref.ref(world.environment.parts_of(store)["derived"]), weakref.ref(store)
        world.environment.give_up(store)
        del store
        assert gone() is None
        assert queues() is None  # no object of it waits for a garbage collection
    finally:
        gc.enable()
    assert disk.paths() == files
    assert used.put(MESSAGE).status is PutStatus.PUT_OK  # the other one is unchanged


def test_a_replica_that_hangs_is_waited_for_until_the_deadline(world: World) -> None:
    store = world.open(MASTER)
    world.environment.use(store)
    world.environment.replica = "hangs"
    answer = store.put_async(MESSAGE)
    world.environment.now_ms += 2_999
    assert stepped(world, "time-outs").due_ms == world.environment.now_ms + 1
    assert not answer.done()
    world.environment.now_ms += 1
    assert stepped(world, "time-outs").due_ms is None
    assert answer.result(timeout=0).status is PutStatus.FLUSH_SLAVE_TIMEOUT
    assert store.put(MESSAGE).status is PutStatus.FLUSH_SLAVE_TIMEOUT, "no other thread could answer, so it gives up"


@pytest.mark.parametrize(("percent", "full"), [(0, False), (90, False), (91, True), (100, True)])
def test_a_used_disk_is_seen_at_the_next_look(world: World, percent: int, full: bool) -> None:
    store = world.open(Settings(file_bytes=4096))
    store.put(MESSAGE)
    world.environment.use_disk(world.files, percent)
    assert store.put(MESSAGE).stored, "not looked at yet"
    world.environment.now_ms += CLEAN_RESOURCE_INTERVAL_MS + 1
    assert store.put(MESSAGE).stored is not full
    assert bool(store.running_flags.bits & RunningFlag.DISK_FULL) is full


def test_the_put_lock_is_held_since_the_put_read_the_clock_in_it(world: World) -> None:
    environment = world.environment
    store = world.open(Settings(file_bytes=4096))
    environment.use(store)
    lock = store._commit_log._put_lock
    assert environment.lock_held_ms() == 0
    with lock:
        world.environment.now_ms += 50
        assert environment.lock_held_ms() == 0, "the clock was not read in it"
        assert environment.clock() == world.environment.now_ms
        world.environment.now_ms += 70
        assert environment.lock_held_ms() == 70
    assert environment.lock_held_ms() == 0
    with lock:
        environment.clock()
    with lock:
        world.environment.now_ms += 2_000
        assert environment.lock_held_ms() == 0, "the reading before belongs to another turn, begun at the same time"


def test_each_store_has_a_lock_of_its_own(world: World) -> None:
    locks = [world.parts.of(make_put_lock)(kind) for kind in PutLockKind]
    with locks[0], locks[1]:
        assert world.environment.lock_held_ms() == 0


def test_a_flush_has_no_yield_points(world: World) -> None:
    """A flush holds a lock that the scheduler does not control.

    No task may be switched to meanwhile.
    """
    store = world.open(SYNC)
    world.environment.use(store)
    tasks = [lambda: store.put(MESSAGE), lambda: store.put(MESSAGE)]
    for before in range(140):
        schedule = (*(0,) * before, 1)
        outcomes = run_stepped(tasks, schedule, modules=("tornpage.impl.log.commit_log",), hang_seconds=1.0)
        assert [outcome.unwrap().status for outcome in outcomes] == [PutStatus.PUT_OK] * 2
