"""Test that queues and index follow the log at an open, whatever their files contain."""

import shutil
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.impl.stores import (
    MESSAGE,
    FaultyFiles,
    HandRunner,
    SetClock,
    caught_up,
    config_of,
    open_store,
    snapshot,
)
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.message.message import Message, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.store import MessageStore

KEYED = replace(MESSAGE, properties={"KEYS": "k", "TAGS": "a"})
CONFIGS = {
    "plain": config_of(),
    "extension": replace(config_of(), enable_consume_queue_ext=True, mapped_file_size_consume_queue_ext=256),
    "multi": replace(config_of(), enable_multi_dispatch=True, enable_lmq=True),
}
EACH_CONFIG = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)


def by_hand(directory: Path, config: MessageStoreConfig, files: FaultyFiles | None = None) -> MessageStore:
    return open_store(directory, config=config, files=files, parts=Parts({ThreadRunner: HandRunner()}))


def filled(directory: Path, config: MessageStoreConfig, count: int = 30) -> dict[str, bytes | None]:
    """Make a store, close it, and return the files of its directory."""
    with by_hand(directory, config) as store:
        for number in range(count):
            properties = {"KEYS": f"k{number % 3}", "TAGS": "a", "INNER_MULTI_DISPATCH": "other,%LMQ%one"}
            store.put(replace(MESSAGE, queue_id=number % 2, properties=properties))
    return snapshot(directory)


def derived(found: dict[str, bytes | None]) -> dict[str, bytes | None]:
    """Return the contents of queues, extensions and index.

    Index files are in order and without their names.
    """
    queues = {path: data for path, data in found.items() if path.startswith("consumequeue")}
    index = [data for path, data in sorted(found.items()) if path.startswith("index/")]
    return queues | {f"index {number}": data for number, data in enumerate(index)}


def reopened(directory: Path, config: MessageStoreConfig) -> tuple[str, ...]:
    """Open and close a store with stepped services; return the codes of the findings."""
    with by_hand(directory, config) as store:
        return tuple(finding.code for finding in store.findings)


# ---- nothing to do -----------------------------------------------------------------------------------------------


@EACH_CONFIG
def test_open_and_close_change_nothing(config: MessageStoreConfig, tmp_path: Path) -> None:
    before = filled(tmp_path, config)
    assert reopened(tmp_path, config) == ()
    assert derived(snapshot(tmp_path)) == derived(before)


def test_exit_without_dispatch_is_no_finding(tmp_path: Path) -> None:
    """After a kill units may be missing: no checkpoint promised them."""
    with by_hand(tmp_path / "live", CONFIGS["plain"]) as store:
        store.put(KEYED)
        shutil.copytree(tmp_path / "live", tmp_path / "killed")
    with by_hand(tmp_path / "killed", CONFIGS["plain"]) as store:
        assert store.findings == ()
        assert store.max_offset_in_queue(MESSAGE.topic, 1) == 1
        assert store.dispatch_behind_bytes == 0


# ---- rebuilt ---------------------------------------------------------------------------------------------------


def lose(path: Path) -> None:
    path.unlink()


def zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def shorten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def lengthen(path: Path) -> None:
    path.write_bytes(path.read_bytes() + bytes(20))


def empty(path: Path) -> None:
    path.write_bytes(b"")


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[45] ^= 0x10
    path.write_bytes(data)


@pytest.mark.slow
@EACH_CONFIG
@pytest.mark.parametrize("harm", [lose, zero, shorten, lengthen, empty, flip])
@pytest.mark.parametrize("clean", [True, False])
def test_whatever_happens_to_a_file_it_is_made_anew(
    harm: Callable[[Path], None], clean: bool, config: MessageStoreConfig, tmp_path: Path
) -> None:
    right = derived(filled(tmp_path / "store", config))
    for number, path in enumerate(sorted(right)):
        if right[path] is None or path.startswith("index") or "ext" in path:
            continue
        harmed = tmp_path / str(number)
        shutil.copytree(tmp_path / "store", harmed)
        harm(harmed / path)
        if not clean:
            (harmed / "abort").touch()
        found = reopened(harmed, config)
        assert derived(snapshot(harmed)) == right, path
        assert found or not clean, path
        assert reopened(harmed, config) == ()


@pytest.mark.parametrize("harm", [lose, zero, shorten, empty, flip])
def test_index_files_too(harm: Callable[[Path], None], tmp_path: Path) -> None:
    config = replace(CONFIGS["plain"], max_index_num=16)
    right = derived(filled(tmp_path / "store", config))
    names = sorted(path.name for path in (tmp_path / "store" / "index").iterdir())
    assert len(names) > 1
    for name in names:
        harmed = tmp_path / name
        shutil.copytree(tmp_path / "store", harmed)
        harm(harmed / "index" / name)
        found_codes = reopened(harmed, config)
        assert found_codes or harm is flip  # a kill may leave a slot that points to no entry
        with by_hand(harmed, config) as store, store.query_message(MESSAGE.topic, "k1", max_num=64) as found:
            assert len(found.messages) == 10
        again = derived(snapshot(harmed))
        assert {path: again[path] for path in again if path.startswith("c")} == {
            path: right[path] for path in right if path.startswith("c")
        }


def test_other_sizes_are_taken_up(tmp_path: Path) -> None:
    filled(tmp_path, CONFIGS["plain"])
    other = replace(CONFIGS["plain"], mapped_file_size_consume_queue=200, max_hash_slot_num=7, max_index_num=9)
    assert set(reopened(tmp_path, other)) <= {"queue_file_size", "queue_rebuilt", "index_rebuilt"}
    filled(tmp_path / "other", other)
    for path in (tmp_path / "other" / "consumequeue").rglob("0*"):
        twin = tmp_path / path.relative_to(tmp_path / "other")
        assert twin.is_dir() or twin.read_bytes() == path.read_bytes()


def test_stale_queues_of_another_log_are_no_danger(tmp_path: Path) -> None:
    """These units point into a log that has other records now, as after a cut."""
    filled(tmp_path / "other", CONFIGS["plain"], count=60)
    right = derived(filled(tmp_path / "store", CONFIGS["plain"], count=20))
    for name in ("consumequeue", "index"):
        shutil.rmtree(tmp_path / "store" / name)
        shutil.copytree(tmp_path / "other" / name, tmp_path / "store" / name)
    assert reopened(tmp_path / "store", CONFIGS["plain"])
    assert derived(snapshot(tmp_path / "store")) == right


def test_bit_maps_come_from_their_provider(tmp_path: Path) -> None:
    store = MessageStore.open(
        tmp_path,
        CONFIGS["extension"],
        files=OsFiles(),
        clock=SetClock(ticking=True),
        parts=Parts({ThreadRunner: HandRunner()}),
        filter_bit_map=lambda topic, properties: b"\x01\x02" if properties.get("TAGS") == "a" else b"",
    )
    with store:
        store.put(KEYED)
        store._reput.step(0)
        queue = store._held.derived.queues.find(MESSAGE.topic, 1)
        assert queue is not None
        unit = queue.unit(0)
        assert unit is not None
        assert queue.ext is not None
        extended = queue.ext.get(unit.tags_code)
        assert extended is not None
        assert extended.bit_map == b"\x01\x02"


# ---- queue offsets -----------------------------------------------------------------------------------------------


def test_numbers_go_on_where_the_queues_end(tmp_path: Path) -> None:
    filled(tmp_path, CONFIGS["multi"], count=5)
    with by_hand(tmp_path, CONFIGS["multi"]) as store:
        named = replace(MESSAGE, queue_id=0, properties={"INNER_MULTI_DISPATCH": "other,%LMQ%one"})
        assert store.put(named).queue_offset == 3
        store._reput.step(0)
        assert store.max_offset_in_queue("other", 0) == 4
        assert store.max_offset_in_queue("%LMQ%one", 0) == 6
        assert store._held.queue_offsets.light_queues == {(b"%LMQ%one", 0)}


def test_queue_of_which_the_log_has_nothing_goes_on(tmp_path: Path) -> None:
    """The records of this queue have expired. It keeps its maximum and its numbers."""
    config = replace(CONFIGS["plain"], mapped_file_size_commit_log=256)
    with by_hand(tmp_path, config) as store:
        store.put(Message("Old", b"x"))
        while store.max_offset < 768:
            store.put(Message("New", b"x" * 80))
    (tmp_path / "commitlog" / f"{0:020d}").unlink()
    (tmp_path / "config" / "durableFloor").unlink()
    with by_hand(tmp_path, config) as store:
        assert store.read_only_reason is None
        assert store.put(Message("Old", b"y")).queue_offset == 1


# ---- checkpoint --------------------------------------------------------------------------------------------------


def times(directory: Path) -> tuple[int, ...]:
    return struct.unpack(">qqq", (directory / "checkpoint").read_bytes()[:24])


def test_checkpoint_follows_queues_and_index(tmp_path: Path) -> None:
    runner = HandRunner()
    with open_store(tmp_path, parts=Parts({ThreadRunner: runner})) as store:
        first = store.put(KEYED)
        runner.step("flush-queues", after_ms=1_000)
        assert times(tmp_path) == (0, 0, 0)
        runner.step("reput")
        runner.step("flush-queues", after_ms=60_000)
        assert times(tmp_path) == (0, first.store_timestamp, first.store_timestamp)
        last = store.put(KEYED)
    assert times(tmp_path) == (last.store_timestamp,) * 3
    with by_hand(tmp_path, config_of()):
        assert times(tmp_path) == (last.store_timestamp, 0, 0)  # the checkpoint promises nothing during the proof


def test_clean_exit_needs_durable_queues(tmp_path: Path) -> None:
    files = FaultyFiles()
    store = by_hand(tmp_path, config_of(), files)
    store.put(KEYED)
    files.fail("sync", part="consumequeue/")
    store.close()
    assert "clean exit not noted" in str(store.read_only_reason)
    assert (tmp_path / "abort").exists()
    with open_store(tmp_path) as again:
        assert again.max_offset_in_queue(MESSAGE.topic, 1) == 1


# ---- damage ------------------------------------------------------------------------------------------------------


def test_damaged_store_leaves_them_alone_and_reads_them(tmp_path: Path) -> None:
    filled(tmp_path, CONFIGS["plain"], count=10)
    log = tmp_path / "commitlog" / f"{0:020d}"
    data = bytearray(log.read_bytes())
    data[90] ^= 1
    log.write_bytes(data)
    before = snapshot(tmp_path)
    with by_hand(tmp_path, replace(CONFIGS["plain"], check_whole_log_on_recover=True)) as store:
        assert store.read_only_reason is not None
        assert store.dispatch_behind_bytes == 0
        assert store.put(MESSAGE).status is PutStatus.SERVICE_NOT_AVAILABLE
        assert store.max_offset_in_queue(MESSAGE.topic, 1) == 5
    assert snapshot(tmp_path) == before


def test_store_without_an_index_has_none(tmp_path: Path) -> None:
    config = replace(config_of(), message_index_enable=False)
    with open_store(tmp_path, config=config) as store:
        store.put(KEYED)
        caught_up(store)
        with store.query_message(MESSAGE.topic, "k") as found:
            assert not found.messages
    assert not (tmp_path / "index").exists()
