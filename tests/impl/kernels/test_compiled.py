"""Test compiled parts: loaded when they have work, and omitted if they do not load."""

import importlib
import logging
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.impl.kernels.test_dispatch_kernel import RULES
from tests.support.impl.log_files import LogFile, log_file
from tests.support.impl.stores import SetClock
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.dispatch import dispatch_records as plain
from tornpage.impl.dispatch.dispatch_records import dispatch_records
from tornpage.impl.index.index_entries import PLAIN_ENTRIES
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.kernels import compiled
from tornpage.impl.kernels.compiled import CompiledParts
from tornpage.impl.log import scan
from tornpage.impl.log.scan import walk_log
from tornpage.impl.message import codec
from tornpage.impl.message.message import Message
from tornpage.impl.parts import Parts
from tornpage.impl.store import MessageStore

KINDS = [(Message("T", b"b", properties=f"UNIQ_KEY\x01{n}", prepared_transaction_offset=n), True) for n in range(9)]

SMALL_STORE = """
import sys
from tornpage.front import MessageStore
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.index.index_entries import PLAIN_ENTRIES
from tornpage.impl.message.message import Message
for _ in range(2):
    with MessageStore.open(sys.argv[1], MessageStoreConfig(mapped_file_size_commit_log=1 << 20)) as store:
        for number in range(20):
            assert store.put(Message("T", b"body", properties=f"KEYS\\x01{number}")).stored
print(sum(name.partition(".")[0] in ("numba", "llvmlite", "numpy") for name in sys.modules))
"""


def test_a_small_store_loads_no_compiler(tmp_path: Path, repository: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", SMALL_STORE, str(tmp_path / "store")], cwd=repository, capture_output=True, text=True
    )
    assert run.stdout == "0\n", run.stderr  # it may warn of a slow put: files of 1 GiB on a busy machine


@pytest.fixture(autouse=True)
def _forgets() -> Iterator[None]:
    """Forget all loaded twins before and after a test."""
    compiled._twins.cache_clear()
    yield
    compiled._twins.cache_clear()


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the kernels that were loaded since the test began, in order."""
    names: list[str] = []

    def load(name: str) -> Any:
        names.append(name.rpartition(".")[2])
        return importlib.import_module(name)

    monkeypatch.setattr("tornpage.impl.kernels.compiled.import_module", load)
    return names


def walked(parts: CompiledParts, file: LogFile) -> tuple[int, str | None]:
    return parts.walk_log(
        memoryview(file.data), 0, file_bytes=file.file_bytes, base_offset=file.base_offset, check=codec.check_record
    )


def test_parts_are_plain_until_there_was_enough_to_do(loaded: list[str]) -> None:
    file = log_file(KINDS)
    view = memoryview(file.data)
    parts = CompiledParts(records_worth_loading=20)
    expected = scan.walk_log(
        view, 0, file_bytes=file.file_bytes, base_offset=file.base_offset, check=codec.check_record
    )
    assert walked(parts, file) == expected
    found = parts.dispatch_records(view, 0, len(view), RULES)
    assert found == plain.dispatch_records(view, 0, len(view), RULES)
    assert loaded == []
    assert walked(parts, file) == expected
    assert loaded == ["walk"]
    assert len(parts.dispatch_records(view, 0, len(view), RULES).runs) == 1
    assert loaded == ["walk", "dispatch"]
    assert walked(CompiledParts(), file) == expected  # the kernels are loaded already


def test_entries_without_records_count_too(loaded: list[str]) -> None:
    parts = CompiledParts(records_worth_loading=3)
    for end, names in ((2, []), (3, ["index"])):
        found, expected = (
            entries.trace_entries(memoryview(bytearray(8)), memoryview(bytearray(60)), 1, end, 0, 100)
            for entries in (parts.index_entries, PLAIN_ENTRIES)
        )
        assert found == expected
        assert loaded == names


@pytest.mark.parametrize(("error", "told"), [(ImportError("no compiler"), "no compiler"), (KeyError("_nrt"), "'_nrt'")])
def test_without_a_compiler_the_plain_parts_work(
    monkeypatch: pytest.MonkeyPatch, caplog: Any, error: Exception, told: str
) -> None:
    def refuses(name: str) -> None:
        raise error

    monkeypatch.setattr("tornpage.impl.kernels.compiled.import_module", refuses)
    file = log_file(KINDS)
    view = memoryview(file.data)
    parts = CompiledParts(records_worth_loading=0)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            found = parts.dispatch_records(view, 0, len(view), replace(RULES, index=False))
    assert found.records == 9
    assert [record.getMessage() for record in caplog.records] == [
        f"compiled_parts_missing name=dispatch error={told!r}"
    ]


def bytes_of(directory: Path) -> dict[str, bytes]:
    """Return log, queues and index of a store; index files are named by times."""
    found: dict[str, bytes] = {}
    for kind in ("commitlog", "consumequeue", "index"):
        for number, path in enumerate(sorted(path for path in (directory / kind).rglob("*") if path.is_file())):
            name = kind + str(number) if kind == "index" else str(path.relative_to(directory))
            found[name] = path.read_bytes()
    return found


def test_a_store_of_compiled_parts_writes_the_bytes_of_a_plain_one(tmp_path: Path) -> None:
    config = MessageStoreConfig(
        mapped_file_size_commit_log=8192,
        mapped_file_size_consume_queue=100,
        max_hash_slot_num=7,
        max_index_num=20,
        enable_multi_dispatch=True,
        enable_lmq=True,
    )
    words = ("k1 k2", "中文 😀", " a  b ", "polygenelubricants")
    messages = [
        Message(
            topic=("TopicTest", "中文", "T")[number % 3],
            body=bytes(number),
            queue_id=number % 2,
            properties={"UNIQ_KEY": str(number), "KEYS": words[number % 4], "TAGS": words[number % 3]}
            | ({"DELAY": "3"} if number % 7 == 0 else {})
            | ({"INNER_MULTI_DISPATCH": "%LMQ%a,b"} if number % 5 == 0 else {}),
            sys_flag=(0, 4, 8, 12)[number % 11 % 4],
            born_timestamp=1,
        )
        for number in range(120)
    ]
    stores = {"plain": None, "compiled": CompiledParts(records_worth_loading=0)}
    for name, twins in stores.items():
        parts = Parts()
        if twins is not None:
            parts = Parts(
                {
                    walk_log: twins.walk_log,
                    dispatch_records: twins.dispatch_records,
                    PLAIN_ENTRIES: twins.index_entries,
                }
            )
        clock = SetClock()
        for half in (messages[:70], messages[70:]):
            with MessageStore.open(tmp_path / name, config, files=OsFiles(), clock=clock, parts=parts) as store:
                assert [finding for finding in store.findings if finding.severity != "note"] == []
                for message in half:
                    clock.now_ms += 700
                    assert store.put(message).stored
    assert bytes_of(tmp_path / "plain") == bytes_of(tmp_path / "compiled")
    clock = SetClock(1_800_000_000_000)
    with MessageStore.open(tmp_path / "plain", config, files=OsFiles(), clock=clock, parts=parts) as store:
        assert store.findings == ()
