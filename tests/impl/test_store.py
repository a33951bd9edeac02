"""The store's verbs on a real directory: answers, reads, flush, close, misuse, threads, full and failing disks."""

import copy
import errno
import os
import pickle
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from impl import defaults
from impl.config import MessageStoreConfig
from impl.errors import BadConfig, BadDirectory, ForkedStore, NoSpace, StoreClosed, StoreError
from impl.message import GetResult, GetStatus, Message, PutResult, PutStatus
from impl.os_files import OsFiles
from impl.policy import FlushDiskType, FlushPolicy
from impl.store import FlushResult, MessageStore
from tests.impl.support import MESSAGE, FaultyFiles, SetClock, chain_of, log_bytes, open_store, snapshot

BAD_MESSAGES = [
    (Message("", b""), PutStatus.MESSAGE_ILLEGAL),
    (Message("t" * 128, b""), PutStatus.MESSAGE_ILLEGAL),
    (Message("T", b"", queue_id=-1), PutStatus.MESSAGE_ILLEGAL),
    (Message("T", b"", born_host=("nowhere", 1)), PutStatus.MESSAGE_ILLEGAL),
    (Message("T", b"", properties="\0"), PutStatus.MESSAGE_ILLEGAL),
    (Message("T", b"", properties="A\x01" + "x" * 32_767), PutStatus.PROPERTIES_SIZE_EXCEEDED),
    (Message("T", b"x" * 1024), PutStatus.MESSAGE_ILLEGAL),
]


# ---- put and get -------------------------------------------------------------------------------------------------


def test_put_answers_where_the_record_is(tmp_path: Path) -> None:
    with open_store(tmp_path, clock=SetClock(5000)) as store:
        first = store.put(Message("T", b"one", queue_id=3))
        second = store.put(Message("T", b"two", queue_id=3))
        assert first == PutResult(PutStatus.PUT_OK, 0, 115, 0, 5000, "7F00000100002A9F0000000000000000")
        assert second == PutResult(PutStatus.PUT_OK, 115, 115, 1, 5000, "7F00000100002A9F0000000000000073")
        assert first.stored
        assert store.max_offset == 230
        store.check()


def test_get_gives_back_what_was_put(tmp_path: Path) -> None:
    message = Message(
        "TopicTest", b"\0body", queue_id=9, properties={"KEYS": "k1", "TAGS": "A"}, flag=-3, sys_flag=0x08,
        born_timestamp=4000, born_host=("2001:db8::1", 77), store_host=("10.0.0.1", 88), reconsume_times=2,
        prepared_transaction_offset=99,
    )  # fmt: skip
    with open_store(tmp_path, clock=SetClock(5000)) as store:
        put = store.put(message)
        found = store.get(put.offset)
        assert found.status is GetStatus.FOUND
        stored = found.message
        assert stored is not None
        assert (stored.topic, stored.body, stored.queue_id) == (message.topic, message.body, 9)
        assert stored.properties == message.properties
        assert (stored.flag, stored.sys_flag, stored.reconsume_times) == (-3, 0x18, 2)
        assert (stored.born_timestamp, stored.born_host) == (4000, ("2001:db8::1", 77))
        assert (stored.store_timestamp, stored.store_host) == (5000, ("10.0.0.1", 88))
        assert stored.prepared_transaction_offset == 99
        assert (stored.offset, stored.size_bytes, stored.queue_offset) == (put.offset, put.size_bytes, 0)
        assert stored.message_id == put.message_id


@pytest.mark.parametrize(
    ("shift", "status"),
    [(-1, GetStatus.OFFSET_FOUND_NULL), (0, GetStatus.OFFSET_OVERFLOW_ONE), (1, GetStatus.OFFSET_OVERFLOW_BADLY)],
)
def test_get_beside_the_end(tmp_path: Path, shift: int, status: GetStatus) -> None:
    with open_store(tmp_path) as store:
        store.put(MESSAGE)
        assert store.get(store.max_offset + shift) == GetResult(status)


def test_get_elsewhere(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        assert store.get(0) == GetResult(GetStatus.OFFSET_OVERFLOW_ONE)
        for _ in range(20):
            store.put(MESSAGE)
        assert store.get(-1) == GetResult(GetStatus.OFFSET_TOO_SMALL)
        assert store.get(1) == GetResult(GetStatus.OFFSET_FOUND_NULL)
        last_in_file = max(stored.offset + stored.size_bytes for stored in store.messages() if stored.offset < 1024)
        assert store.get(last_in_file) == GetResult(GetStatus.OFFSET_FOUND_NULL)
        assert store.get(1 << 62) == GetResult(GetStatus.OFFSET_OVERFLOW_BADLY)


def test_messages_come_in_order(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        results = [store.put(Message("T", str(number).encode(), queue_id=number % 3)) for number in range(40)]
        assert [stored.offset for stored in store.messages()] == [result.offset for result in results]
        assert [int(stored.body) for stored in store.messages()] == list(range(40))
        assert [result.queue_offset for result in results] == [number // 3 for number in range(40)]
        assert sorted(log_bytes(tmp_path)) == [f"{base:020d}" for base in range(0, store.max_offset, 1024)]


@pytest.mark.parametrize("left", [8, 9, 12, 99, 115, 122])
def test_any_rest_of_a_file_becomes_a_blank(tmp_path: Path, left: int) -> None:
    """The next record needs 115 bytes and 8 more; with less left, the file is closed."""
    with open_store(tmp_path, file_bytes=512) as store:
        store.put(Message("T", b"x" * (512 - left - 112)))
        assert store.max_offset == 512 - left
        assert store.put(Message("T", b"one")).offset == 512
        files = log_bytes(tmp_path)
    blank = left.to_bytes(4, "big") + bytes.fromhex("cbd43194")
    assert files[f"{0:020d}"][512 - left :] == blank.ljust(left, b"\0")


def test_a_record_that_fits_exactly_stays(tmp_path: Path) -> None:
    with open_store(tmp_path, file_bytes=512) as store:
        store.put(Message("T", b"x" * (512 - 123 - 112)))
        assert store.put(Message("T", b"one")).offset == 512 - 123
        assert store.max_offset == 504
        assert list(log_bytes(tmp_path)) == [f"{0:020d}"]


@pytest.mark.parametrize(("body_bytes", "status"), [(392, PutStatus.PUT_OK), (393, PutStatus.MESSAGE_ILLEGAL)])
def test_largest_record_of_a_file(tmp_path: Path, body_bytes: int, status: PutStatus) -> None:
    with open_store(tmp_path, file_bytes=512) as store:
        assert store.put(Message("T", b"x" * body_bytes)).status is status


@pytest.mark.parametrize(("limit", "status"), [(115, PutStatus.PUT_OK), (114, PutStatus.MESSAGE_ILLEGAL)])
def test_largest_record_that_is_allowed(tmp_path: Path, limit: int, status: PutStatus) -> None:
    with open_store(tmp_path, record_bytes_max=limit) as store:
        assert store.put(Message("T", b"one")).status is status


@pytest.mark.parametrize(("message", "status"), BAD_MESSAGES)
def test_refused_message_changes_nothing(tmp_path: Path, message: Message, status: PutStatus) -> None:
    with open_store(tmp_path) as store:
        store.put(Message("T", b"before"))
        before = snapshot(tmp_path)
        assert store.put(message) == PutResult(status)
        assert snapshot(tmp_path) == before
        after = store.put(Message("T", b"after"))
        assert after.queue_offset == 1
        assert [stored.body for stored in store.messages()] == [b"before", b"after"]


def test_refused_first_message_makes_no_file(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        for message, status in BAD_MESSAGES:
            assert store.put(message) == PutResult(status)
        assert log_bytes(tmp_path) == {}


def test_transactions_take_no_queue_offset(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        offsets = [store.put(Message("T", b"", sys_flag=flag)).queue_offset for flag in (0, 4, 8, 12, 0)]
    assert offsets == [0, 0, 1, 0, 2]
    with open_store(tmp_path) as store:
        assert store.put(Message("T", b"")).queue_offset == 3


def test_the_clock_is_read_before_and_under_the_lock(tmp_path: Path) -> None:
    clock = SetClock(100, ticking=True)
    with open_store(tmp_path, clock=clock) as store:
        put = store.put(Message("T", b""))
        stored = store.get(put.offset).message
    assert stored is not None
    assert (stored.born_timestamp, stored.store_timestamp, clock.calls) == (101, 102, 2)


# ---- flush and close ---------------------------------------------------------------------------------------------


def test_async_put_answers_before_the_disk(tmp_path: Path) -> None:
    files = FaultyFiles()
    with open_store(tmp_path, files=files) as store:
        store.put(MESSAGE)
        files.calls.clear()
        put = store.put(MESSAGE)
        assert "sync" not in [verb for verb, _ in files.calls]
        assert store.flushed_offset == 0
        assert store.flush() == FlushResult(True, put.offset + put.size_bytes)
        assert ("sync", f"{tmp_path}/commitlog/{0:020d}") in files.calls
        store.check()


def test_sync_put_answers_after_the_disk(tmp_path: Path) -> None:
    files = FaultyFiles()
    with open_store(tmp_path, sync=True, files=files) as store:
        store.put(MESSAGE)
        files.calls.clear()
        put = store.put(MESSAGE)
        assert [verb for verb, path in files.calls if "commitlog" in path] == ["sync"]
        assert store.flushed_offset == put.offset + put.size_bytes


@pytest.mark.parametrize(
    ("properties", "waits"),
    [("WAIT\x01false", False), ({"WAIT": "false"}, False), ("WAIT\x01true", True), ("A\x01b", True), ("", True)],
)
def test_wait_false_answers_before_the_disk(tmp_path: Path, properties: str | dict[str, str], waits: bool) -> None:
    with open_store(tmp_path, sync=True) as store:
        put = store.put(Message("T", b"", properties=properties))
        assert put.status is PutStatus.PUT_OK
        assert store.flushed_offset == (store.max_offset if waits else 0)
        store.put(Message("T", b""))
        assert store.flushed_offset == store.max_offset


@pytest.mark.parametrize("sync", [True, False])
def test_flush_policy(sync: bool) -> None:
    policy = FlushPolicy(FlushDiskType.SYNC_FLUSH if sync else FlushDiskType.ASYNC_FLUSH)
    assert policy.answers_after_flush(wait_store_msg_ok=True) is sync
    assert policy.answers_after_flush(wait_store_msg_ok=False) is False


def test_clean_close_keeps_everything_and_removes_the_marker(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    for _ in range(12):
        store.put(MESSAGE)
    assert (tmp_path / "abort").exists()
    store.close()
    assert not (tmp_path / "abort").exists()
    assert store.read_only_reason is None
    with open_store(tmp_path) as store:
        assert store.findings == ()
        assert len(list(store.messages())) == 12
        assert store.flushed_offset == store.max_offset


def test_close_makes_durable_first_and_removes_the_marker_last(tmp_path: Path) -> None:
    files = FaultyFiles()
    store = open_store(tmp_path, files=files)
    store.put(MESSAGE)
    files.calls.clear()
    store.close()
    steps = [(verb, Path(path).name) for verb, path in files.calls if verb in ("sync", "unlink", "sync_directory")]
    assert steps == [
        ("sync", f"{0:020d}"),
        ("sync", "checkpoint"),
        ("sync", "durableFloor"),
        ("unlink", "abort"),
        ("sync_directory", tmp_path.name),
    ]


def test_marker_is_durable_before_the_first_write(tmp_path: Path) -> None:
    files = FaultyFiles()
    with open_store(tmp_path, files=files) as store:
        store.put(MESSAGE)
        made = files.calls.index(("create", f"{tmp_path}/abort"))
        durable = files.calls.index(("sync_directory", str(tmp_path)), made)
        assert durable < files.calls.index(("create", f"{tmp_path}/commitlog/{0:020d}"))


def test_close_is_idempotent(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.put(MESSAGE)
    store.close()
    before = snapshot(tmp_path)
    with open_store(tmp_path) as other:
        store.close()
        assert other.put(MESSAGE).stored
        other.close()
    store.close()
    assert snapshot(tmp_path).keys() == before.keys()


def test_verbs_after_close(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.put(MESSAGE)
    store.close()
    before = snapshot(tmp_path)
    assert store.put(MESSAGE) == PutResult(PutStatus.SERVICE_NOT_AVAILABLE)
    verbs: list[Callable[[], object]] = [lambda: store.get(0), store.flush, lambda: list(store.messages())]
    for verb in verbs:
        with pytest.raises(StoreClosed, match="open it again") as refused:
            verb()
        assert str(tmp_path) in chain_of(refused.value)
    assert snapshot(tmp_path) == before


def test_context_manager_closes_when_its_body_raises(tmp_path: Path) -> None:
    def put_and_fail() -> None:
        with open_store(tmp_path) as store:
            store.put(MESSAGE)
            raise KeyError

    with pytest.raises(KeyError):
        put_and_fail()
    assert not (tmp_path / "abort").exists()
    with open_store(tmp_path) as store:
        assert len(list(store.messages())) == 1


def test_no_mapping_or_descriptor_is_left(tmp_path: Path) -> None:
    def held() -> int:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8")
        descriptors = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if
                       os.path.lexists(f"/proc/self/fd/{fd}")]  # fmt: skip
        return maps.count(str(tmp_path)) + sum(str(tmp_path) in path for path in descriptors)

    store = open_store(tmp_path)
    for _ in range(30):
        store.put(MESSAGE)
    assert list(store.messages())
    assert held() > 0
    store.close()
    assert held() == 0


def test_no_space_refusals_leave_no_descriptor(tmp_path: Path) -> None:
    files = FaultyFiles()
    with open_store(tmp_path, files=files) as store:
        files.fail("allocate", code=errno.ENOSPC)
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            assert store.put(MESSAGE).status is PutStatus.CREATE_MAPEDFILE_FAILED
        assert len(os.listdir("/proc/self/fd")) == before


# ---- misuse ------------------------------------------------------------------------------------------------------


def test_use_in_a_forked_child_is_refused(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        put = store.put(MESSAGE)
        before = snapshot(tmp_path)
        verbs: list[Callable[[], object]] = [
            lambda: store.put(MESSAGE),
            lambda: store.get(put.offset),
            store.flush,
            store.close,
            lambda: list(store.messages()),
        ]
        child = os.fork()
        if child == 0:
            refused = 0
            for verb in verbs:
                try:
                    verb()
                except ForkedStore:
                    refused += 1
                except BaseException:
                    refused += 100
            os._exit(refused)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == len(verbs)
        assert snapshot(tmp_path) == before
        assert store.put(MESSAGE).stored


def test_child_that_exits_does_not_give_up_the_lock(tmp_path: Path) -> None:
    with open_store(tmp_path):
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        with pytest.raises(StoreError):
            open_store(tmp_path)


@pytest.mark.parametrize("take", [pickle.dumps, copy.copy, copy.deepcopy])
def test_open_store_cannot_be_pickled_or_copied(tmp_path: Path, take: Callable[[object], object]) -> None:
    with open_store(tmp_path) as store, pytest.raises(TypeError, match="cannot be pickled"):
        take(store)


@pytest.mark.parametrize("sync", [True, False])
def test_threads_share_a_store(tmp_path: Path, sync: bool) -> None:
    """Two producers on one queue and a reader: contiguous queue offsets, whole records, nothing lost."""
    puts_each = 60
    results: list[list[PutResult]] = [[], []]
    stop = threading.Event()
    troubles: list[BaseException] = []

    def produce(number: int) -> None:
        try:
            for at in range(puts_each):
                results[number].append(store.put(Message("T", f"{number}-{at}".encode())))
        except BaseException as error:
            troubles.append(error)

    def read() -> None:
        try:
            while not stop.is_set():
                found = [stored.queue_offset for stored in store.messages()]
                assert found == list(range(len(found)))
        except BaseException as error:
            troubles.append(error)

    with open_store(tmp_path, sync=sync) as store:
        reader = threading.Thread(target=read)
        producers = [threading.Thread(target=produce, args=(number,)) for number in range(2)]
        for thread in (reader, *producers):
            thread.start()
        for thread in producers:
            thread.join()
        stop.set()
        reader.join()
        store.check()
        assert troubles == []
        stored_messages = list(store.messages())
    assert [stored.queue_offset for stored in stored_messages] == list(range(2 * puts_each))
    by_offset = {stored.offset: stored.body for stored in stored_messages}
    for number in range(2):
        assert [by_offset[put.offset] for put in results[number]] == [f"{number}-{at}".encode() for at in range(60)]
        assert {put.status for put in results[number]} == {PutStatus.PUT_OK}


# ---- full and failing disks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["create", "allocate", "sync", "sync_directory"])
def test_put_without_room_is_refused_and_works_again_later(tmp_path: Path, verb: str) -> None:
    files = FaultyFiles()
    with open_store(tmp_path, files=files, sync=True) as store:
        while store.max_offset < 900:
            assert store.put(MESSAGE).stored
        held = len(list(store.messages()))
        before = snapshot(tmp_path)
        files.fail(verb, code=errno.ENOSPC, part="commitlog")
        big = Message("T", b"x" * 300)
        assert store.put(big) == PutResult(PutStatus.CREATE_MAPEDFILE_FAILED)
        assert snapshot(tmp_path) == before
        store.check()
        files.mend()
        put = store.put(big)
        assert (put.status, put.offset, put.queue_offset) == (PutStatus.PUT_OK, 1024, 0)
        assert len(list(store.messages())) == held + 1


def test_smaller_record_still_fits_after_a_refusal(tmp_path: Path) -> None:
    files = FaultyFiles()
    with open_store(tmp_path, files=files) as store:
        first = store.put(Message("T", b"x" * 600))
        files.fail("allocate", code=errno.ENOSPC)
        assert store.put(Message("T", b"x" * 600)).status is PutStatus.CREATE_MAPEDFILE_FAILED
        assert store.put(Message("T", b"small")).offset == first.size_bytes


def test_full_disk_is_named_at_open(tmp_path: Path) -> None:
    class FullFiles(OsFiles):
        def free_bytes(self, path: str) -> int:
            return 1000

    with pytest.raises(NoSpace, match="free some space") as refused:
        open_store(tmp_path, files=FullFiles())
    text = chain_of(refused.value)
    assert str(tmp_path) in text
    assert "1024" in text
    assert "1000" in text
    assert (refused.value.needed_bytes, refused.value.free_bytes) == (1024, 1000)
    assert not (tmp_path / "commitlog").exists()


def test_full_disk_does_not_hinder_reading_what_is_there(tmp_path: Path) -> None:
    class FullFiles(OsFiles):
        def free_bytes(self, path: str) -> int:
            return 0

    with open_store(tmp_path) as store:
        store.put(MESSAGE)
    with open_store(tmp_path, files=FullFiles()) as store:
        assert len(list(store.messages())) == 1


@pytest.mark.parametrize("verb", ["make_directory", "create"])
def test_missing_permission_is_named(tmp_path: Path, verb: str) -> None:
    files = FaultyFiles()
    files.fail(verb, code=errno.EACCES)
    with pytest.raises(BadDirectory, match="no permission") as refused:
        open_store(tmp_path / "new", files=files)
    text = chain_of(refused.value)
    assert str(tmp_path / "new") in text
    assert "change its owner or mode" in text
    assert not (tmp_path / "new" / "commitlog").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_missing_permission_of_a_real_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(BadDirectory, match="no permission"):
        open_store(tmp_path / "closed")
    assert list((tmp_path / "closed").iterdir()) == []


@pytest.mark.parametrize("verb", ["open", "list_directory", "map", "pwrite"])
def test_failing_disk_at_open_is_named_and_leaves_the_log_alone(tmp_path: Path, verb: str) -> None:
    with open_store(tmp_path) as store:
        for _ in range(12):
            store.put(MESSAGE)
    before = log_bytes(tmp_path)
    files = FaultyFiles()
    files.fail(verb)
    with pytest.raises(BadDirectory, match="Input/output error") as refused:
        open_store(tmp_path, files=files)
    assert "mend the disk" in chain_of(refused.value)
    assert log_bytes(tmp_path) == before
    with open_store(tmp_path) as store:
        assert len(list(store.messages())) == 12


def test_commitlog_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "commitlog").write_bytes(b"precious")
    with pytest.raises(BadDirectory) as refused:
        open_store(tmp_path)
    assert "commitlog" in chain_of(refused.value)
    assert (tmp_path / "commitlog").read_bytes() == b"precious"


def poisoned(directory: Path, *, sync: bool) -> tuple[MessageStore, FaultyFiles, list[PutResult]]:
    """Open a store, put two durable messages and one whose sync fails."""
    files = FaultyFiles()
    store = open_store(directory, sync=sync, files=files)
    results = [store.put(MESSAGE), store.put(MESSAGE)]
    store.flush()
    files.fail("sync", part="/commitlog/", times=1)
    results.append(store.put(MESSAGE))
    return store, files, results


def test_failed_sync_is_a_time_out_then_no_service(tmp_path: Path) -> None:
    store, files, results = poisoned(tmp_path, sync=True)
    assert [result.status.value for result in results] == ["PUT_OK", "PUT_OK", "FLUSH_DISK_TIMEOUT"]
    assert results[2].stored
    files.mend()
    before = snapshot(tmp_path)
    assert store.put(MESSAGE) == PutResult(PutStatus.SERVICE_NOT_AVAILABLE)
    assert store.flush() == FlushResult(False, results[2].offset)
    assert snapshot(tmp_path) == before
    store.check()
    store.close()


def test_failed_flush_is_told_and_ends_the_service(tmp_path: Path) -> None:
    store, files, results = poisoned(tmp_path, sync=False)
    assert results[2].status is PutStatus.PUT_OK
    assert store.flush() == FlushResult(False, results[2].offset)
    files.mend()
    assert store.put(MESSAGE) == PutResult(PutStatus.SERVICE_NOT_AVAILABLE)
    store.close()


def test_reads_stop_at_the_flushed_end_after_a_failed_sync(tmp_path: Path) -> None:
    store, _, results = poisoned(tmp_path, sync=True)
    assert store.committed_offset == store.flushed_offset == results[2].offset
    assert [stored.offset for stored in store.messages()] == [result.offset for result in results[:2]]
    assert store.get(results[1].offset).status is GetStatus.FOUND
    assert store.get(results[2].offset).status is GetStatus.OFFSET_OVERFLOW_ONE
    assert store.get(results[2].offset + 1).status is GetStatus.OFFSET_OVERFLOW_BADLY
    store.close()


@pytest.mark.parametrize("sync", [True, False])
def test_abort_marker_stays_after_a_failed_sync(tmp_path: Path, sync: bool) -> None:
    store, files, results = poisoned(tmp_path, sync=sync)
    store.close()
    assert (tmp_path / "abort").exists()
    assert store.read_only_reason is not None
    assert f"{tmp_path}/commitlog/{0:020d}" in store.read_only_reason
    files.mend()
    with open_store(tmp_path) as store:
        found = [stored.offset for stored in store.messages()]
        assert found[:2] == [result.offset for result in results[:2]]
        assert store.put(MESSAGE).stored


@pytest.mark.parametrize(("verb", "part"), [("sync", "checkpoint"), ("sync", "durableFloor"), ("unlink", "abort")])
def test_clean_exit_that_cannot_be_noted_is_told(tmp_path: Path, verb: str, part: str) -> None:
    files = FaultyFiles()
    store = open_store(tmp_path, files=files)
    store.put(MESSAGE)
    files.fail(verb, part=part)
    store.close()
    assert store.read_only_reason is not None
    assert "clean exit not noted" in store.read_only_reason
    assert (tmp_path / "abort").exists()
    with open_store(tmp_path) as store:
        assert len(list(store.messages())) == 1


# ---- opening -----------------------------------------------------------------------------------------------------


def test_missing_directories_are_made(tmp_path: Path) -> None:
    with open_store(tmp_path / "a" / "b") as store:
        assert store.put(MESSAGE).stored
    assert sorted(path.name for path in (tmp_path / "a" / "b").iterdir()) == [
        "checkpoint", "commitlog", "config", "lock",
    ]  # fmt: skip


def test_relative_directory_survives_a_change_of_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with open_store(Path("relative")) as store:
        monkeypatch.chdir("/")
        assert store.put(MESSAGE).stored
    assert (tmp_path / "relative" / "commitlog").is_dir()


def test_foreign_files_in_the_directory_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_bytes(b"dear")
    with open_store(tmp_path) as store:
        store.put(MESSAGE)
    assert (tmp_path / "letter.txt").read_bytes() == b"dear"


def test_checksum_kind_may_change_between_opens(tmp_path: Path) -> None:
    for trailer in (True, False, True):
        with open_store(tmp_path, trailer=trailer) as store:
            store.put(MESSAGE)
    with open_store(tmp_path) as store:
        sizes = [stored.size_bytes for stored in store.messages()]
    assert [size - sizes[1] for size in sizes] == [20, 0, 20]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mapped_file_size_commit_log", 255),
        ("mapped_file_size_commit_log", (1 << 40) + 1),
        ("max_message_size", 0),
        ("max_message_size", 1 << 31),
        ("record_checksum", "none"),
        ("flush_disk_type", "SYNC_FLUSH"),
    ],
)
def test_setting_that_cannot_work_is_named(name: str, value: object) -> None:
    with pytest.raises(BadConfig) as refused:
        MessageStoreConfig(**{name: value})  # type: ignore[arg-type] # some are wrong on purpose
    assert refused.value.name == name
    assert name in chain_of(refused.value)
    assert repr(value) in chain_of(refused.value)
    assert "use " in chain_of(refused.value)


def test_defaults_are_those_of_rocketmq() -> None:
    config = MessageStoreConfig()
    assert config.mapped_file_size_commit_log == defaults.MAPPED_FILE_SIZE_COMMIT_LOG == 1024**3
    assert config.max_message_size == 4 * 1024**2
    assert config.flush_disk_type is FlushDiskType.ASYNC_FLUSH
    assert config.record_checksum == "record"


def test_a_put_during_close_is_refused_or_durable(tmp_path: Path) -> None:
    """A put between the last flush and the end of close was answered PUT_OK and not covered by the clean exit."""
    files = FaultyFiles()
    store = open_store(tmp_path, files=files)
    store.put(MESSAGE)
    late: list[tuple[PutResult, int]] = []
    synced: list[int] = []

    def put_late(label: str) -> None:
        if label == "checkpoint":
            files.on_mark = None
            late.append((store.put(MESSAGE), len(files.calls)))

    files.on_mark = put_late
    store.close()
    result, at = late[0]
    synced = [n for n, (verb, path) in enumerate(files.calls) if verb == "sync" and "/commitlog/" in path and n >= at]
    assert result == PutResult(PutStatus.SERVICE_NOT_AVAILABLE) or synced


def test_a_full_disk_is_noticed_before_anything_is_created(tmp_path: Path) -> None:
    """The free-space check came after the directory and its lock file had been made."""

    class FullFiles(OsFiles):
        def free_bytes(self, path: str) -> int:
            return 0

    with pytest.raises(NoSpace):
        open_store(tmp_path / "new" / "store", files=FullFiles())
    assert snapshot(tmp_path) == {}


def test_a_store_host_that_is_no_address_is_a_bad_setting() -> None:
    """Such a store opened, and answered each put with MESSAGE_ILLEGAL."""
    with pytest.raises(BadConfig, match="store_host"):
        MessageStoreConfig(store_host=("localhost", 10911))


def test_every_status_has_its_row_in_the_table(repository: Path) -> None:
    table = (repository / "docs" / "statuses.md").read_text(encoding="utf-8")
    for status in (*PutStatus, *GetStatus):
        assert f"`{status.value}`" in table, status
