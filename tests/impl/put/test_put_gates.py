"""Test the gates of a put: role, running flags, disk watch, page cache, and put locks."""

import errno
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.impl.status_cases import batch_of
from tests.support.impl.stores import MESSAGE, FaultyFiles, ScriptedDisk, SetClock, config_of, open_store, put
from tornpage.impl.config.policy import BrokerRole, PutLockKind
from tornpage.impl.log.put_lock import PutLock, make_put_lock
from tornpage.impl.message.message import Message, MessageBatch, PutResult, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.service.running_flags import RunningFlag
from tornpage.impl.store import MessageStore

OK, BUSY, NONE = PutStatus.PUT_OK, PutStatus.OS_PAGECACHE_BUSY, PutStatus.SERVICE_NOT_AVAILABLE
INTERVAL_MS = 10_000


def statuses(store: MessageStore) -> set[PutStatus]:
    """Return the answers to a message and to a batch, waiting or not."""
    both: tuple[Message | MessageBatch, ...] = (MESSAGE, batch_of(b"one"))
    return {put(store, each).status for each in both} | {store.put_async(each).result(0).status for each in both}


# ---- role and flags ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("role", "status"), [(BrokerRole.ASYNC_MASTER, OK), (BrokerRole.SLAVE, NONE)])
def test_role_decides_about_all_puts(role: BrokerRole, status: PutStatus, tmp_path: Path) -> None:
    with open_store(tmp_path, config=replace(config_of(), broker_role=role)) as store:
        assert statuses(store) == {status}
        assert store.flush().durable


def test_every_combination_of_flags_forbids_or_allows(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        for bits in range(32):
            store.running_flags.clear(RunningFlag(31))
            store.running_flags.set(RunningFlag(bits))
            assert statuses(store) == {NONE if bits & 30 else OK}, bits


# ---- disk watch --------------------------------------------------------------------------------------------------


def test_full_disk_refuses_until_there_is_room_again(tmp_path: Path) -> None:
    disk, clock = ScriptedDisk(), SetClock()
    with open_store(tmp_path, files=disk, clock=clock) as store:
        assert store.put(MESSAGE).status is OK
        disk.use(0.95)
        clock.now_ms += INTERVAL_MS - 1
        assert store.put(MESSAGE).status is OK
        clock.now_ms += 1
        assert statuses(store) == {NONE}
        assert int(store.running_flags.bits) == RunningFlag.DISK_FULL
        disk.use(0.89)
        clock.now_ms += INTERVAL_MS - 1
        assert store.put(MESSAGE).status is NONE
        clock.now_ms += 1
        assert store.put(MESSAGE).queue_offset == 2
        assert int(store.running_flags.bits) == 0


def test_disk_is_looked_at_once_per_interval(tmp_path: Path) -> None:
    disk, clock = ScriptedDisk(), SetClock()
    with open_store(tmp_path, file_bytes=1 << 16, files=disk, clock=clock) as store:
        store.put(MESSAGE)  # its file is made, which checks the free space for one file
        looks = disk.looks
        for _ in range(30):
            clock.now_ms += 1000
            store.put(MESSAGE)
        assert disk.looks == looks + 2 * 3  # of the log, and of the queues


def test_store_that_opens_on_a_full_disk_takes_no_put(tmp_path: Path) -> None:
    disk, clock = ScriptedDisk(), SetClock()
    disk.use(0.91)
    with open_store(tmp_path, files=disk, clock=clock) as store:
        assert statuses(store) == {NONE}
        assert store.flush().durable
        disk.use(0.5)
        clock.now_ms += INTERVAL_MS
        assert statuses(store) == {OK}


def test_clock_that_is_set_back_hides_no_room(tmp_path: Path) -> None:
    """The next look was due at a time of the old clock, an hour away.

    The store refused puts until then.
    """
    disk, clock = ScriptedDisk(), SetClock()
    with open_store(tmp_path, files=disk, clock=clock) as store:
        disk.use(0.95)
        clock.now_ms += INTERVAL_MS
        assert store.put(MESSAGE).status is NONE
        disk.use(0.5)
        clock.now_ms -= 3_600_000
        assert store.put(MESSAGE).status is OK


def test_disk_that_cannot_be_asked_changes_nothing(tmp_path: Path) -> None:
    disk, clock = ScriptedDisk(), SetClock()
    with open_store(tmp_path, files=disk, clock=clock) as store:
        disk.fail("disk_usage", code=errno.EIO)
        clock.now_ms += INTERVAL_MS
        assert statuses(store) == {OK}
        disk.mend()
        disk.use(1.0)
        clock.now_ms += INTERVAL_MS
        assert statuses(store) == {NONE}


# ---- page cache --------------------------------------------------------------------------------------------------


class Held:
    """A put in its own thread that stays inside the put lock until it is released."""

    def __init__(self, store: MessageStore, files: FaultyFiles) -> None:
        self.results: list[PutResult] = []
        self._inside, self._go = threading.Event(), threading.Event()

        def stay(label: str) -> None:
            files.on_mark = None
            self._inside.set()
            assert self._go.wait(30)

        files.on_mark = stay
        self._thread = threading.Thread(target=lambda: self.results.append(store.put(MESSAGE)), daemon=True)
        self._thread.start()
        assert self._inside.wait(30)

    def let_go(self) -> None:
        """Release it."""
        self._go.set()
        self._thread.join(30)
        assert not self._thread.is_alive()


@pytest.mark.parametrize("kind", list(PutLockKind), ids=lambda kind: kind.name)
@pytest.mark.parametrize("limit_ms", [0, 1000])
def test_lock_that_is_held_too_long_is_a_busy_page_cache(kind: PutLockKind, limit_ms: int, tmp_path: Path) -> None:
    files, clock = FaultyFiles(), SetClock()
    config = replace(
        config_of(),
        use_reentrant_lock_when_put_message=kind is PutLockKind.REENTRANT,
        os_page_cache_busy_time_out_mills=limit_ms,
    )
    with open_store(tmp_path, config=config, files=files, clock=clock) as store:
        held = Held(store, files)
        clock.now_ms += limit_ms + 1
        assert statuses(store) == {BUSY}
        held.let_go()
        assert held.results[0].status is OK
        assert store.put(MESSAGE).queue_offset == 1


def test_lock_that_is_held_for_the_limit_is_waited_for(tmp_path: Path) -> None:
    files, clock = FaultyFiles(), SetClock()
    with open_store(tmp_path, files=files, clock=clock) as store:
        held = Held(store, files)
        clock.now_ms += 1000
        later: list[PutResult] = []
        waiting = threading.Thread(target=lambda: later.append(store.put(MESSAGE)), daemon=True)
        waiting.start()
        assert later == []
        held.let_go()
        waiting.join(30)
        assert [result.queue_offset for result in held.results + later] == [0, 1]


def test_clock_that_is_set_back_is_no_busy_page_cache(tmp_path: Path) -> None:
    files, clock = FaultyFiles(), SetClock()
    with open_store(tmp_path, files=files, clock=clock) as store:
        held = Held(store, files)
        clock.now_ms -= 3_600_000
        refused = store.put(replace(MESSAGE, topic=""))
        assert refused.status is PutStatus.MESSAGE_ILLEGAL
        held.let_go()


# ---- put locks ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(PutLockKind), ids=lambda kind: kind.name)
def test_store_takes_the_kind_of_lock_that_is_configured_once(kind: PutLockKind, tmp_path: Path) -> None:
    asked: list[PutLockKind] = []

    def lock_of(asked_for: PutLockKind) -> PutLock:
        asked.append(asked_for)
        return make_put_lock(asked_for)

    config = replace(config_of(), use_reentrant_lock_when_put_message=kind is PutLockKind.REENTRANT)
    with open_store(tmp_path, config=config, parts=Parts({make_put_lock: lock_of})) as store:
        assert statuses(store) == {OK}
    assert asked == [kind]


@pytest.mark.parametrize("kind", list(PutLockKind), ids=lambda kind: kind.name)
def test_producers_share_either_lock(kind: PutLockKind, tmp_path: Path) -> None:
    config = replace(config_of(), use_reentrant_lock_when_put_message=kind is PutLockKind.REENTRANT)
    results: list[PutResult] = []

    def produce(store: MessageStore) -> Callable[[], None]:
        return lambda: results.extend(store.put(MESSAGE) for _ in range(40))

    with open_store(tmp_path, config=config) as store:
        threads = [threading.Thread(target=produce(store), daemon=True) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        assert sorted(result.queue_offset for result in results) == list(range(120))
        assert [stored.queue_offset for stored in store.messages()] == list(range(120))
