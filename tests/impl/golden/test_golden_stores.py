"""Test that the store opens directories of RocketMQ 4.9.3: whole, killed and damaged."""

import hashlib
import shutil
from pathlib import Path

import pytest

from tests.support.impl.golden import CASES, config_of, expected_of, first_dump, golden, opened, read
from tests.support.impl.killed import codes
from tests.support.impl.stores import log_bytes, snapshot
from tornpage.impl.message.message import GetStatus, Message, PutStatus
from tornpage.impl.store import MessageStore
from tornpage.properties.judge.golden import apply_damage

SERVES_LESS = ("10-crash-torn-properties",)
"""RocketMQ serves a record with torn properties; this store cuts there (contract 7)."""


def served_of(store: MessageStore, directory: Path, *, file_bytes: int) -> list[tuple[int, int, str]]:
    """Return (offset, size, SHA-256) of each served record, checking `get` too.

    The digest is of the bytes on disk.
    """
    files = log_bytes(directory)
    served = []
    for stored in store.messages():
        assert store.get(stored.offset).message == stored
        base = stored.offset // file_bytes * file_bytes
        data = files[f"{base:020d}"][stored.offset - base :][: stored.size_bytes]
        served.append((stored.offset, stored.size_bytes, hashlib.sha256(data).hexdigest()))
    return served


@pytest.mark.parametrize("case", CASES)
def test_directory_of_rocketmq_is_opened(case: str, tmp_path: Path) -> None:
    folder = golden(case)
    copied = tmp_path / "store"
    shutil.copytree(folder / "store", copied, copy_function=shutil.copyfile)
    clean = read(folder / "config.json")["lastExit"] == "clean"
    assert (copied / "abort").exists() is not clean
    state = first_dump(read(folder / "expected.json")["steps"])
    expected = expected_of(state)
    config = config_of(folder)
    file_bytes = config.mapped_file_size_commit_log
    with opened(copied, folder) as store:
        assert store.read_only_reason is None
        served = served_of(store, copied, file_bytes=file_bytes)
        if case in SERVES_LESS:
            torn = read(folder / "truth.json")["tornRecordOffset"]
            assert served == [row for row in expected if row[0] < torn]
            assert store.max_offset == torn
        else:
            assert served == expected
            assert store.max_offset == state["maxPhyOffset"]
        if expected:
            assert store.min_offset == state["minPhyOffset"]
        assert store.get(store.max_offset).status is GetStatus.OFFSET_OVERFLOW_ONE
        fields = {row["phy"]: row for row in state["log"] if row["kind"] == "record"}
        for stored in store.messages():
            row = fields[stored.offset]
            assert (stored.topic, stored.queue_id, stored.queue_offset, stored.sys_flag, stored.store_timestamp) == (
                row["topic"], row["queueId"], row["queueOffset"], row["sysFlag"], row["storeTimestamp"],
            )  # fmt: skip
        put = store.put(Message("NewTopic", b"ours"))
        assert (put.status, put.queue_offset) == (PutStatus.PUT_OK, 0)
    with opened(copied, folder, record_checksum="record") as store:
        assert [offset for offset, _, _ in served] == [stored.offset for stored in store.messages()][:-1]
        assert store.findings == ()


def test_unflushed_records_behind_a_hole_are_kept_aside(tmp_path: Path) -> None:
    """RocketMQ cuts them and serves some of them later.

    This store cuts them, keeps a copy and never serves them again.
    """
    folder = golden("09-crash-stale-log-tail")
    copied = tmp_path / "store"
    shutil.copytree(folder / "store", copied, copy_function=shutil.copyfile)
    name = f"{0:020d}"
    before = log_bytes(copied)
    with opened(copied, folder) as store:
        assert codes(store) == [("tear", "torn_tail")]
        assert store.max_offset == 18_000
        store.put(Message("StaleTopic", b"x" * 8_900, queue_id=1))
    assert (copied / "quarantine" / f"{18_000:020d}.0").read_bytes() == before[name][18_000:]
    with opened(copied, folder) as store:
        assert [stored.offset for stored in store.messages()] == [0, 9_000, 18_000]


VARIANTS: dict[str, int | None] = {
    "checkpoint-future": 210,
    "checkpoint-missing": 210,
    "checkpoint-zero": 210,
    "delay-offset-garbage": 210,
    "drop-all-queues": 210,
    "abort-missing-queue-lost": 210,
    "stray-file": 210,
    "zero-length-next-log-file": 210,
    "last-log-file-missing": None,
    "log-all-missing": 0,
    "hole-after-scan-start": None,
    "hole-before-scan-start": None,
    "torn-last-record": None,
}
"""Number of served records; None stands for those before the first damaged byte."""


@pytest.mark.parametrize("variant", VARIANTS)
def test_killed_store_with_a_damage_is_opened(variant: str, tmp_path: Path) -> None:
    folder = golden("08-halt-async", f"variants/{variant}.json")
    damage = read(folder / "variants" / f"{variant}.json")["damage"]
    copied = tmp_path / "store"
    shutil.copytree(folder / "store", copied, copy_function=shutil.copyfile)
    apply_damage(copied, damage)
    every = expected_of(first_dump(read(folder / "expected.json")["steps"]))
    count = VARIANTS[variant]
    if count is None:
        damaged_at = min(int(Path(step["path"]).name) + step.get("offset", 0) for step in damage)
        count = sum(offset + size <= damaged_at for offset, size, _ in every)
        assert 0 < count < 210
    with opened(copied, folder) as store:
        assert store.read_only_reason is None
        assert served_of(store, copied, file_bytes=65_536) == every[:count]
        assert store.put(Message("NewTopic", b"ours")).status is PutStatus.PUT_OK
    quarantined = b"".join(path.read_bytes() for path in sorted((copied / "quarantine").glob("*")))
    cut_with_records = variant.startswith("hole-")
    assert bool(quarantined) is cut_with_records
    if cut_with_records:
        whole = log_bytes(folder / "store")
        last_offset, last_size, _ = every[-1]
        base = last_offset // 65_536 * 65_536
        assert whole[f"{base:020d}"][last_offset - base :][:last_size] in quarantined


def test_short_log_file_opens_read_only_and_serves_what_verifies(tmp_path: Path) -> None:
    folder = golden("08-halt-async", "variants/short-log-file.json")
    damage = read(folder / "variants" / "short-log-file.json")["damage"]
    copied = tmp_path / "store"
    shutil.copytree(folder / "store", copied, copy_function=shutil.copyfile)
    apply_damage(copied, damage)
    before = snapshot(copied)
    every = expected_of(first_dump(read(folder / "expected.json")["steps"]))
    with opened(copied, folder) as store:
        assert store.read_only_reason is not None
        assert "60000 bytes instead of 65536" in store.read_only_reason
        assert served_of(store, copied, file_bytes=65_536) == every
        assert store.put(Message("NewTopic", b"ours")).status is PutStatus.SERVICE_NOT_AVAILABLE
    assert snapshot(copied) == before
