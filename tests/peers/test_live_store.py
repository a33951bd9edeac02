"""Test a live Java store on golden stores.

Both modes give the same answers.
"""

import json
import os
import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tornpage.peers.errors import PeerCrashed, PeerFailed
from tornpage.peers.rocketmq.installing import Release
from tornpage.peers.rocketmq.process import Limits, Process
from tornpage.peers.rocketmq.store import Mode, PeerStore, opened
from tornpage.properties.decode.record import parse_properties
from tornpage.properties.judge.image import read_image, read_log

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
CASES = ("03-rollover-blanks-retention", "04-hosts-and-batches", "08-halt-async", "09-crash-stale-log-tail",
         "10-crash-torn-properties", "11-crash-stale-queue-tail")  # fmt: skip


@pytest.fixture(scope="module")
def process(release: Release) -> Iterator[Process]:
    with Process(release, Limits(answer_s=60)) as made:
        yield made


def settings_in(case: Path) -> dict[str, Any]:
    settings = json.loads((case / "config.json").read_text())["store"]
    return {name: value for name, value in settings.items() if isinstance(value, int) and name != "fileReservedTime"}


def keys_of(case: Path) -> list[tuple[str, str]]:
    """Return some topics and keys of the records in a store."""
    content = read_image(case / "store").content
    log = read_log(content, ("commitlog",), file_bytes=settings_in(case)["mappedFileSizeCommitLog"], floor=0)
    keys = {
        (record.topic_text, key)
        for record in log.records
        for key in parse_properties(record.properties).get("KEYS", "").split()
    }
    return sorted(keys)[:20]


def answers(store: PeerStore, keys: list[tuple[str, str]]) -> dict[str, Any]:
    return {
        "log": store.log(),
        "queues": [(queue, store.messages(queue)) for queue in store.queues()],
        "found": [sorted(found) for found in store.query(keys)],
    }


def asked(process: Process, case: str, directory: Path, *, mode: Mode) -> dict[str, Any]:
    shutil.copytree(GOLDEN / case / "store", directory, copy_function=shutil.copyfile)
    with opened(process, str(directory), settings_in(GOLDEN / case), mode=mode) as store:
        assert (store.loaded, store.dispatched, store.reason) == (True, True, "")
        return answers(store, keys_of(GOLDEN / case))


@pytest.mark.parametrize("case", CASES)
def test_a_light_store_answers_as_a_stock_one(process: Process, case: str, tmp_path: Path) -> None:
    light = asked(process, case, tmp_path / "light", mode="light")
    stock = asked(process, case, tmp_path / "stock", mode="stock")
    assert light == stock
    assert any(messages for _, (messages, _) in light["queues"])
    assert process.starts == 1


def test_a_light_store_leaves_a_killed_store(process: Process, tmp_path: Path) -> None:
    """The abort marker stays, so that the next open is one after a kill again."""
    first = asked(process, "08-halt-async", tmp_path / "store", mode="light")
    assert (tmp_path / "store" / "abort").exists()
    with opened(process, str(tmp_path / "store"), settings_in(GOLDEN / "08-halt-async")) as store:
        assert answers(store, keys_of(GOLDEN / "08-halt-async")) == first


def test_hashes_are_those_of_the_stored_records(process: Process, tmp_path: Path) -> None:
    case = GOLDEN / "04-hosts-and-batches"
    found = asked(process, case.name, tmp_path / "store", mode="light")
    truth = {row["commitLogOffset"]: row for row in json.loads((case / "truth.json").read_text())["records"]}
    served = [message for _, (messages, _) in found["queues"] for message in messages]
    assert served
    for message in served:
        assert message.record_sha256 == truth[message.offset]["recordSha256"]
        assert message.body_sha256 is not None
    assert sha256(b"").hexdigest() not in {message.record_sha256 for message in served}


def test_a_store_that_does_not_load_is_an_answer(process: Process, tmp_path: Path) -> None:
    case = GOLDEN / "08-halt-async"
    shutil.copytree(case / "store", tmp_path / "store", copy_function=shutil.copyfile)
    (tmp_path / "store" / "commitlog" / "00000000000000065536").write_bytes(b"short")
    with opened(process, str(tmp_path / "store"), settings_in(case)) as store:
        assert (store.loaded, store.reason) == (False, "load() returned false")
    with pytest.raises(PeerFailed, match="no store is open"):
        process.ask("log")


def test_many_opens_leave_no_descriptor_and_no_thread(process: Process, tmp_path: Path) -> None:
    """The garbage collector closes the descriptors of mapped files.

    A few are left at any time.
    """
    case, home = GOLDEN / "11-crash-stale-queue-tail", Path(f"/proc/{process.pid}")
    before = len(list((home / "fd").iterdir())), len(list((home / "task").iterdir()))
    for number in range(100):
        asked(process, case.name, tmp_path / str(number), mode="light")
    assert len(list((home / "fd").iterdir())) < before[0] + 90
    assert len(list((home / "task").iterdir())) < before[1] + 20


@pytest.mark.slow
def test_a_killed_jvm_is_a_crash_and_the_next_open_starts_another(release: Release, tmp_path: Path) -> None:
    with Process(release, Limits(answer_s=60, heap_mib=64)) as process:
        asked(process, CASES[-1], tmp_path / "a", mode="light")
        assert process.pid is not None
        os.kill(process.pid, 9)
        with pytest.raises(PeerCrashed):
            process.ask("log")
        asked(process, CASES[-1], tmp_path / "b", mode="light")
        assert process.starts == 2
