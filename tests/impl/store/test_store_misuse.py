"""Test forks, pickles, threads, full and failing disks."""

import copy
import errno
import os
import pickle
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.impl.stores import (
    MESSAGE,
    FaultyFiles,
    HandRunner,
    caught_up,
    chain_of,
    log_bytes,
    open_store,
    snapshot,
)
from tornpage.impl.errors import BadDirectory, ForkedStore, NoSpace, StoreError
from tornpage.impl.io.files import DiskUsage
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.message.message import GetStatus, Message, PutResult, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.store import FlushResult, MessageStore

# ---- misuse ------------------------------------------------------------------------------------------------------


def test_use_in_a_forked_child_is_refused(tmp_path: Path) -> None:
    with open_store(tmp_path, parts=Parts({ThreadRunner: HandRunner()})) as store:
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
    """Run two producers on one queue and a reader: numbers are contiguous, records whole."""
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
        held = len(list(caught_up(store).messages()))
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
        def disk_usage(self, path: str) -> DiskUsage:
            return DiskUsage(total_bytes=1 << 30, free_bytes=1000)

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
        def disk_usage(self, path: str) -> DiskUsage:
            return DiskUsage(total_bytes=1 << 30, free_bytes=0)

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
    caught_up(store)
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
