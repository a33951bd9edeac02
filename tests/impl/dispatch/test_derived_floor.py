"""Test the derived floor: what an open trusts, and what makes it prove everything again."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from isal.isal_zlib import crc32

from tests.support.impl.stores import MESSAGE, FaultyFiles, HandRunner, config_of, open_store, snapshot
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.log.scan import RecordChecker, walk_log
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.store import MessageStore

CONFIG = replace(
    config_of(file_bytes=2048),
    mapped_file_size_consume_queue=5 * 20,
    max_hash_slot_num=4,
    max_index_num=8,
    enable_multi_dispatch=True,
    enable_lmq=True,
)
FLOOR = "config/derivedFloor"


class Walk:
    """Begin and end of each scan of the log, as physical offsets."""

    def __init__(self) -> None:
        self.stretches: list[tuple[int, int]] = []

    def __call__(
        self, view: memoryview, position: int, *, file_bytes: int, base_offset: int, check: RecordChecker
    ) -> tuple[int, str | None]:
        """Walk one file."""
        end, reason = walk_log(view, position, file_bytes=file_bytes, base_offset=base_offset, check=check)
        self.stretches.append((base_offset + position, base_offset + end))
        return end, reason


def opened(
    directory: Path, config: MessageStoreConfig = CONFIG, files: FaultyFiles | None = None
) -> tuple[MessageStore, HandRunner, Walk]:
    runner, walk = HandRunner(), Walk()
    store = open_store(directory, config=config, files=files, parts=Parts({ThreadRunner: runner, walk_log: walk}))
    return store, runner, walk


def put(store: MessageStore, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        properties = {"KEYS": f"k{number % 3}", "TAGS": "a", "INNER_MULTI_DISPATCH": "%LMQ%one,other"}
        store.put(replace(MESSAGE, queue_id=number % 2, properties=properties))


def made(directory: Path, *, after: int = 5) -> tuple[Path, int]:
    """Return a store as a killed process left it, and its durable end.

    The store put a few more messages after that end.
    """
    store, runner, _ = opened(directory / "live")
    with store:
        put(store, 20)
        runner.step("reput")
        store.flush()
        runner.step("flush-queues", after_ms=60_000)
        durable = store.flushed_offset
        put(store, after, start=20)
        runner.step("reput")
        shutil.copytree(directory / "live", directory / "killed")
    return directory / "killed", durable


def derived(directory: Path) -> dict[str, Any]:
    """Return queues and index; an index file is named by its number in place of its time."""
    found = snapshot(directory)
    queues = {path: data for path, data in found.items() if path.startswith("consumequeue")}
    index = [data for path, data in sorted(found.items()) if path.startswith("index/")]
    return queues | {f"index {number}": data for number, data in enumerate(index)}


def recovered(directory: Path, config: MessageStoreConfig = CONFIG) -> tuple[int, dict[str, Any], tuple[str, ...]]:
    """Open a copy and close it.

    Returns the begin of the walk, queues and index after it, and the findings.
    """
    copy = directory.parent / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(directory, copy)
    store, _, walk = opened(copy, config)
    found = tuple(finding.code for finding in store.findings)
    store.close()
    return walk.stretches[0][0], derived(copy), found


# ---- proved parts ----------------------------------------------------------------------------------------------


def test_open_after_a_kill_walks_from_where_everything_was_durable(tmp_path: Path) -> None:
    killed, durable = made(tmp_path)
    whole = recovered(killed, replace(CONFIG, check_whole_log_on_recover=True))
    assert whole[0] == 0
    assert recovered(killed) == (durable, whole[1], ())


def test_open_after_a_clean_exit_walks_nothing(tmp_path: Path) -> None:
    store, _, _ = opened(tmp_path / "store")
    with store:
        put(store, 12)
        end_offset = store.max_offset
    start, after, found = recovered(tmp_path / "store")
    assert (start, after, found) == (end_offset, derived(tmp_path / "store"), ())


def test_a_file_that_ended_just_there_is_no_beginning_of_another(tmp_path: Path) -> None:
    """The log ends with a blank: dispatch continues at the begin of the next file."""
    store, _, _ = opened(tmp_path / "store")
    with store:
        while store.max_offset < 2048:
            put(store, 1)
        end_offset = store.max_offset
    assert recovered(tmp_path / "store")[0] == end_offset


def test_numbers_keys_and_times_go_on_as_if_all_had_been_read(tmp_path: Path) -> None:
    killed, _ = made(tmp_path)
    answers = []
    for whole in (True, False):
        copy = tmp_path / f"copy {whole}"
        shutil.copytree(killed, copy)
        store, runner, _ = opened(copy, replace(CONFIG, check_whole_log_on_recover=whole))
        with store:
            put(store, 7, start=25)
            runner.step("reput")
            queues = [("TopicTest", 0), ("TopicTest", 1), ("%LMQ%one", 0), ("other", 0), ("other", 1)]
            bounds = [(store.min_offset_in_queue(*queue), store.max_offset_in_queue(*queue)) for queue in queues]
            found = store.query_message("TopicTest", "k1", max_num=64)
            answers.append((bounds, [message.offset for message in found.messages], derived(copy)))
    assert answers[0] == answers[1]


def test_light_queues_in_front_count_against_their_limit(tmp_path: Path) -> None:
    killed, _ = made(tmp_path, after=0)
    store, _, walk = opened(killed, replace(CONFIG, max_lmq_consume_queue_num=1))
    with store:
        answer = store.put(replace(MESSAGE, properties={"INNER_MULTI_DISPATCH": "%LMQ%two"}))
    assert walk.stretches[0][0] > 0
    assert answer.status.name == "LMQ_CONSUME_QUEUE_NUM_EXCEEDED"


# ---- untrusted parts -------------------------------------------------------------------------------------------


def _changed(directory: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = directory / FLOOR
    said = json.loads(path.read_bytes().partition(b"\n")[2])
    change(said)
    body = json.dumps(said).encode()
    path.write_bytes(b"TPDERIVED1 %08x\n" % crc32(body) + body)


@pytest.mark.parametrize("number", range(0, 34, 2))
def test_any_byte_in_front_that_is_another_has_everything_proved_again(number: int, tmp_path: Path) -> None:
    killed, durable = made(tmp_path)
    right = recovered(killed)[1]
    said = json.loads((killed / FLOOR).read_bytes().partition(b"\n")[2])
    stretches = [(path, 0, size) for path, size, _ in said["queue_files"]]
    start = 40 + 4 * CONFIG.max_hash_slot_num + 20
    stretches += [(path, start, start + 20 * (header[5] - 1)) for path, header, _, _ in said["index_files"]]
    path, begin, end = stretches[number % len(stretches)]
    data = bytearray((killed / path).read_bytes())
    data[begin + number * 7 % (end - begin)] ^= 1 << number % 8
    (killed / path).write_bytes(data)
    start, after, found = recovered(killed)
    assert start == 0 < durable
    assert after == right
    assert set(found) <= {"queue_rebuilt", "index_rebuilt"}


@pytest.mark.parametrize(
    "harm",
    [
        lambda store: (store / FLOOR).unlink(),
        lambda store: (store / FLOOR).write_bytes(b""),
        lambda store: (store / FLOOR).write_bytes((store / FLOOR).read_bytes()[:-1]),
        lambda store: (store / FLOOR).write_bytes(b"TPDERIVED1 00000000\n{}"),
        lambda store: (store / "config" / "durableFloor").unlink(),
        lambda store: shutil.rmtree(store / "consumequeue" / "other"),
        lambda store: min((store / "index").iterdir()).unlink(),
        lambda store: (store / "index" / "20200101000000000").write_bytes(
            min((store / "index").iterdir()).read_bytes()
        ),
        lambda store: _changed(store, lambda said: said["settings"].update(delay_levels="1s")),
        lambda store: _changed(store, lambda said: said.update(offset=1 << 40)),
    ],
)
def test_whatever_the_floor_says_less_than_the_truth_is_no_harm(harm: Callable[[Path], None], tmp_path: Path) -> None:
    killed, _ = made(tmp_path)
    right = recovered(killed)[1]
    harm(killed)
    start, after, _ = recovered(killed)
    assert start == 0
    assert after == right


def test_damage_in_front_shows_when_it_is_read_and_where_the_whole_log_is_asked_for(tmp_path: Path) -> None:
    killed, _ = made(tmp_path)
    log = killed / "commitlog" / f"{0:020d}"
    data = bytearray(log.read_bytes())
    data[90] ^= 1
    log.write_bytes(data)
    store, _, walk = opened(killed)
    with store:
        assert walk.stretches[0][0] > 0
        assert store.get(0).message is None
        assert store.read_only_reason is None
    store, _, _ = opened(killed, replace(CONFIG, check_whole_log_on_recover=True))
    with store:
        assert store.read_only_reason is not None
        assert [finding.severity for finding in store.findings] == ["damage"]


def test_damage_behind_the_derived_floor_and_below_that_of_the_log_is_damage(tmp_path: Path) -> None:
    store, runner, _ = opened(tmp_path / "live")
    with store:
        put(store, 4)
        runner.step("reput")
        store.flush()
        runner.step("flush-queues", after_ms=60_000)
        durable = store.flushed_offset
        put(store, 4)
        store.flush()
        shutil.copytree(tmp_path / "live", tmp_path / "killed")
    log = tmp_path / "killed" / "commitlog" / f"{0:020d}"
    data = bytearray(log.read_bytes())
    data[durable + 90] ^= 1
    log.write_bytes(data)
    store, _, _ = opened(tmp_path / "killed")
    with store:
        assert [(finding.severity, finding.offset) for finding in store.findings] == [("damage", durable)]


# ---- when it rises -----------------------------------------------------------------------------------------------


def offset_of(directory: Path) -> int:
    found: int = json.loads((directory / FLOOR).read_bytes().partition(b"\n")[2])["offset"]
    return found


def test_it_waits_until_the_log_is_durable_as_far(tmp_path: Path) -> None:
    store, runner, _ = opened(tmp_path)
    with store:
        put(store, 3)
        runner.step("reput")
        runner.step("flush-queues", after_ms=60_000)
        assert not (tmp_path / FLOOR).exists()
        store.flush()
        runner.step("flush-queues", after_ms=1_000)
        assert offset_of(tmp_path) == store.flushed_offset


def test_it_is_not_written_for_nothing(tmp_path: Path) -> None:
    files = FaultyFiles()
    store, runner, _ = opened(tmp_path, files=files)
    with store:
        put(store, 3)
        runner.step("reput")
        store.flush()
        for _ in range(3):
            runner.step("flush-queues", after_ms=60_000)
        assert files.calls.count(("pwrite", f"{tmp_path}/{FLOOR}.new")) == 1


@pytest.mark.parametrize("verb", ["pwrite", "sync", "sync_directory"])
def test_a_disk_that_refuses_it_stops_nothing(verb: str, tmp_path: Path) -> None:
    files = FaultyFiles()
    store, runner, _ = opened(tmp_path, files=files)
    with store:
        put(store, 3)
        runner.step("reput")
        store.flush()
        files.fail(verb, part="config" if verb == "sync_directory" else "derivedFloor", times=1)
        runner.step("flush-queues", after_ms=60_000)
        runner.step("flush-queues", after_ms=1_000)
        assert offset_of(tmp_path) == store.flushed_offset
        assert store.read_only_reason is None


def test_what_no_queue_can_hold_is_found_by_each_open(tmp_path: Path) -> None:
    """Only the log shows a gap in the numbers. A log with a gap has no floor."""
    store, runner, _ = opened(tmp_path)
    with store:
        put(store, 1)
        store._held.queue_offsets.advance((b"TopicTest", 0), 3)
        put(store, 1)
        runner.step("reput")
        store.flush()
        runner.step("flush-queues", after_ms=60_000)
        assert not (tmp_path / FLOOR).exists()
    for _ in range(2):
        store, _, walk = opened(tmp_path)
        with store:
            assert [finding.code for finding in store.findings] == ["queue_gap"]
        assert walk.stretches[0][0] == 0
