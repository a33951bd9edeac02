"""Test generations, requests, received records, cuts and settings, each alone."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.impl.nodes import FILE_BYTES, node_config, open_node
from tests.support.impl.stores import MESSAGE, config_of, open_store, put
from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.errors import BadConfig, StoreInUse
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.message.message import Message, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.put.time_outs import Awaited
from tornpage.impl.replication.cutting import cut_log
from tornpage.impl.replication.generations import Generation, GenerationsFile, common_point
from tornpage.impl.replication.requests import ReplicaRequests
from tornpage.impl.replication.settings import ReplicationSettings
from tornpage.properties.cluster.network import RecordedNetwork

OK, LATE = PutStatus.PUT_OK, PutStatus.FLUSH_SLAVE_TIMEOUT
A, B, C = (Generation(1, 0, b"a" * 16), Generation(2, 100, b"b" * 16), Generation(2, 100, b"c" * 16))


@pytest.mark.parametrize(
    ("ours", "our_end", "theirs", "their_end", "point"),
    [
        ((A,), 50, (A,), 70, 50),
        ((A, B), 150, (A,), 120, 100),
        ((A, B), 150, (A, B), 120, 120),
        ((A, B), 150, (A, C), 170, 100),
        ((A, B), 150, (A, B), 60, 60),
        ((A,), 50, (C,), 120, None),
        ((), 50, (A,), 120, None),
    ],
)
def test_common_point(ours: tuple[Generation, ...], our_end: int, theirs: tuple[Generation, ...],
                      their_end: int, point: int | None) -> None:  # fmt: skip
    assert common_point(ours, our_end, theirs, their_end) == point
    assert common_point(theirs, their_end, ours, our_end) == point


def tokens() -> Iterator[bytes]:
    yield from (bytes([number]) * 16 for number in range(1, 200))


def test_generations_are_kept_and_those_past_the_log_are_dropped(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    source = tokens()

    def loaded() -> GenerationsFile:
        found = GenerationsFile(OsFiles(), str(tmp_path), new_token=lambda: next(source))
        found.load()
        return found

    first = loaded()
    first.begin(log_begin=0, log_end=80)
    first.begin(log_begin=0, log_end=90)
    again = loaded()
    assert again.node == first.node == b"\1" * 16
    assert [(each.number, each.start) for each in again.entries] == [(1, 0), (2, 90)]
    again.begin(log_begin=0, log_end=60)
    assert [(each.number, each.start) for each in loaded().entries] == [(1, 0), (3, 60)]
    again.adopt((A, B))
    assert loaded().entries == (A, B)


class Asked:
    """Requests of puts, and their answers in the order in which they came."""

    def __init__(self, requests: ReplicaRequests) -> None:
        self.answers: list[tuple[int, PutStatus]] = []
        self._requests = requests

    def request(self, end_offset: int) -> Awaited:
        def say(status: PutStatus) -> None:
            self.answers.append((end_offset, status))

        asked = Awaited(say, end_offset=end_offset, deadline_ms=0, timeout_status=LATE)
        self._requests.request(asked)
        return asked


def test_a_request_ends_once_enough_replicas_have_confirmed() -> None:
    requests = ReplicaRequests(lambda: 0, timeout_ms=100, in_sync_replicas=2)
    asked = Asked(requests)
    requests.note(b"one", 50)
    assert requests.acknowledged_offset is None
    requests.note(b"two", 30)
    asked.request(30)
    asked.request(40)
    assert (asked.answers, requests.waiting) == ([(30, OK)], 1)
    assert sorted(requests._confirmed.values()) == [30, 50]
    requests.note(b"two", 40)
    assert asked.answers == [(30, OK), (40, OK)]
    requests.forget(b"one")
    assert requests.acknowledged_offset is None


def test_one_acknowledgement_answers_all_requests_up_to_it_in_the_order_of_offsets() -> None:
    requests = ReplicaRequests(lambda: 0, timeout_ms=100, in_sync_replicas=1)
    asked = Asked(requests)
    for end_offset in (10, 30, 20, 50, 40):  # threads that were faster after a later append
        asked.request(end_offset)
    requests.note(b"one", 40)
    assert asked.answers == [(10, OK), (20, OK), (30, OK), (40, OK)]
    assert requests.waiting == 1


def test_a_request_ends_at_its_own_deadline() -> None:
    now = [0]
    requests = ReplicaRequests(lambda: now[0], timeout_ms=100, in_sync_replicas=1)
    asked = Asked(requests)
    asked.request(10)
    now[0] = 50
    asked.request(30)
    now[0] = 60
    asked.request(20)
    assert requests.step(99) == 100
    assert requests.step(100) == 150
    assert (asked.answers, requests.waiting) == ([(10, LATE)], 2)
    assert requests.step(150) == 160
    assert requests.step(160) is None
    assert asked.answers == [(10, LATE), (30, LATE), (20, LATE)]
    assert requests.waiting == 0


def test_a_request_that_is_answered_elsewhere_does_not_wait() -> None:
    requests = ReplicaRequests(lambda: 0, timeout_ms=100, in_sync_replicas=1)
    asked = Asked(requests)
    asked.request(10).answer(LATE)
    assert requests.waiting == 0
    requests.note(b"one", 10)
    assert asked.answers == [(10, LATE)]


def test_a_request_for_removed_bytes_ends() -> None:
    requests = ReplicaRequests(lambda: 0, timeout_ms=100, in_sync_replicas=1)
    asked = Asked(requests)
    asked.request(40)
    asked.request(41)
    requests.forgo(40)
    assert asked.answers == [(40, LATE)]
    requests.note(b"a", 50)
    assert asked.answers == [(40, LATE), (41, OK)]


def test_a_close_ends_all_requests() -> None:
    requests = ReplicaRequests(lambda: 0, timeout_ms=100, in_sync_replicas=1)
    asked = Asked(requests)
    asked.request(10)
    requests.close()
    assert asked.answers == [(10, LATE)]
    asked.request(20)
    assert asked.answers == [(10, LATE), (20, LATE)]
    assert requests.step(1_000) is None


# ---- received records ------------------------------------------------------------------------------------------------


def records(directory: Path, count: int = 3) -> bytes:
    """Return the log of a store with some messages in one file."""
    with open_store(directory, file_bytes=FILE_BYTES) as store:
        for _ in range(count):
            put(store, MESSAGE)
        end = store.max_offset
    return (directory / "commitlog" / f"{0:020d}").read_bytes()[:end]


def test_only_whole_checked_records_are_appended(tmp_path: Path) -> None:
    log = records(tmp_path / "source")
    size = len(log) // 3
    slave = open_node(tmp_path / "slave", BrokerRole.SLAVE, "", network=RecordedNetwork().of(1))
    try:
        append = slave.store.append_to_commit_log
        assert append(0, memoryview(log[: size + 10])) == (size, None, False)
        assert append(0, memoryview(log[:size])).refusal == f"bytes for offset 0, but the log ends at {size}"
        changed = bytearray(log[size:])
        changed[90] ^= 1
        assert append(size, memoryview(changed)).appended_bytes == 0
        assert append(size, memoryview(changed)).refusal is not None
        assert append(size, memoryview(b"\0" * 100)).refusal == f"no record begins at {size}"
        assert append(size, memoryview(log[size:])) == (2 * size, None, False)
        assert slave.store.max_offset == len(log)
    finally:
        slave.close()


def test_a_master_and_a_misplaced_first_record_are_refused(tmp_path: Path) -> None:
    log = records(tmp_path / "source", 1)
    with open_store(tmp_path / "master", config=config_of(file_bytes=FILE_BYTES)) as store:
        assert store.append_to_commit_log(0, memoryview(log)).refusal == "this store is not a slave"
    slave = open_node(tmp_path / "slave", BrokerRole.SLAVE, "", network=RecordedNetwork().of(1))
    try:
        answer = slave.store.append_to_commit_log(100, memoryview(log))
        assert answer.refusal == f"an empty log cannot begin at 100, inside a file of {FILE_BYTES} bytes"
    finally:
        slave.close()


def test_a_record_that_is_too_long_is_refused_before_it_arrives(tmp_path: Path) -> None:
    slave = open_node(tmp_path / "slave", BrokerRole.SLAVE, "", network=RecordedNetwork().of(1))
    try:
        head = (FILE_BYTES - 8).to_bytes(4, "big") + bytes.fromhex("daa320a7")
        assert slave.store.append_to_commit_log(0, memoryview(head)) == (0, None, False)
        head = (FILE_BYTES + 1).to_bytes(4, "big") + bytes.fromhex("daa320a7")
        assert slave.store.append_to_commit_log(0, memoryview(head)).refusal == "no record begins at 0"
    finally:
        slave.close()


# ---- cuts ------------------------------------------------------------------------------------------------------------


def test_a_cut_erases_the_tail_and_its_queue_units(tmp_path: Path) -> None:
    config = config_of(file_bytes=1024)
    with open_store(tmp_path, config=config) as store:
        offsets = [put(store, MESSAGE).offset for _ in range(30)]
        with pytest.raises(StoreInUse):
            cut_log(OsFiles(), str(tmp_path), config, offset=offsets[9])
    cut_log(OsFiles(), str(tmp_path), config, offset=offsets[9])
    with open_store(tmp_path, config=config) as store:
        assert store.read_only_reason is None
        assert store.max_offset == offsets[9]
        assert store.max_offset_in_queue("TopicTest", 1) == 9
        assert put(store, MESSAGE).queue_offset == 9


def test_a_cut_of_everything_leaves_an_empty_store(tmp_path: Path) -> None:
    config = config_of(file_bytes=1024)
    with open_store(tmp_path, config=config) as store:
        for _ in range(10):
            put(store, MESSAGE)
    cut_log(OsFiles(), str(tmp_path), config, offset=0)
    with open_store(tmp_path, config=config) as store:
        assert (store.read_only_reason, store.max_offset) == (None, 0)
        assert put(store, MESSAGE).queue_offset == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"ha_transfer_batch_size": 0},
        {"ha_transfer_batch_size": 5 << 20},
        {"ha_housekeeping_interval": 5_000},
        {"acknowledge": "soon"},
        {"in_sync_replicas": 0},
        {"connections_max": 0},
    ],
)
def test_impossible_settings_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(BadConfig, match=next(iter(wrong))):
        ReplicationSettings(**wrong)  # type: ignore[arg-type]


def test_a_slave_below_the_first_byte_of_its_master_stops_or_drops_its_log(tmp_path: Path) -> None:
    network = RecordedNetwork()
    master = open_node(tmp_path / "master", BrokerRole.ASYNC_MASTER, "here", network=network.of(0))
    slave = open_node(tmp_path / "slave", BrokerRole.SLAVE, "here", network=network.of(1))
    try:
        master.store.put(Message("T", bytes(3_000), queue_id=0))
        for now in range(5):
            slave.step(now)
            master.step(now)
        assert slave.store.max_offset == master.store.max_offset > 0
        slave.close()
        for _ in range(20):
            master.store.put(Message("T", bytes(3_000), queue_id=0))
        for _ in range(2):
            first = master.store._log.drop_first()
            master.store._log.remove(first)
        assert master.store.min_offset == 2 * FILE_BYTES
        slave = open_node(tmp_path / "slave", BrokerRole.SLAVE, "here", network=network.of(1))
        for now in range(100, 110):
            slave.step(now)
            master.step(now)
        assert "the log of the master begins at 32768" in slave.status()["finding"]
        slave.close()
        slave = open_node(tmp_path / "slave", BrokerRole.SLAVE, "here", network=network.of(1), discard_when_gone=True)
        for now in range(200, 400):
            slave.step(now)
            master.step(now)
        assert (slave.store.min_offset, slave.store.max_offset) == (2 * FILE_BYTES, master.store.max_offset)
        slave.store._reput.drain()
        assert slave.store.dispatch_error is None
        assert slave.store.max_offset_in_queue("T", 0) == 21
    finally:
        slave.close()
        master.close()


def test_a_cut_that_fails_is_tried_again(tmp_path: Path) -> None:
    network, failures = RecordedNetwork(), [OSError("no"), OSError("no")]

    def failing(*arguments: Any, **options: Any) -> None:
        if failures:
            raise failures.pop()
        cut_log(*arguments, **options)

    master = open_node(tmp_path / "master", BrokerRole.ASYNC_MASTER, "here", network=network.of(0))
    slave = open_node(
        tmp_path / "slave", BrokerRole.SLAVE, "here", network=network.of(1), parts=Parts({cut_log: failing})
    )
    try:
        master.store.put(Message("T", bytes(3_000), queue_id=0))
        for now in range(5):
            slave.step(now)
            master.step(now)
        end = slave.store.max_offset
        assert end > 0
        master.close()
        cut_log(OsFiles(), str(tmp_path / "master"), node_config(BrokerRole.ASYNC_MASTER), offset=0)
        master = open_node(tmp_path / "master", BrokerRole.ASYNC_MASTER, "here", network=network.of(0))
        for now in range(1_000, 4_000, 20):
            with suppress(OSError):
                slave.step(now)
            master.step(now)
        assert not failures
        assert slave.store.max_offset == 0
        assert slave.status()["joined"]
    finally:
        slave.close()
        master.close()
