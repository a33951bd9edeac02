"""Test opening a store: directories, settings, and bugs of the past."""

from pathlib import Path

import pytest

from tests.support.impl.stores import MESSAGE, FaultyFiles, chain_of, open_store, snapshot
from tornpage.impl.config import defaults
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import FlushDiskType
from tornpage.impl.errors import BadConfig, NoSpace
from tornpage.impl.io.files import DiskUsage
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.message.message import GetStatus, PutResult, PutStatus

# ---- opening -----------------------------------------------------------------------------------------------------


def test_missing_directories_are_made(tmp_path: Path) -> None:
    with open_store(tmp_path / "a" / "b") as store:
        assert store.put(MESSAGE).stored
    assert sorted(path.name for path in (tmp_path / "a" / "b").iterdir()) == [
        "checkpoint", "commitlog", "commitlog.unfinished", "config", "consumequeue", "consumequeue.unfinished", "lock",
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
    """A put between the last flush and the end of close is not answered PUT_OK and lost.

    It was once, after a clean exit.
    """
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
    """The free-space check happened after the directory and its lock file had been made."""

    class FullFiles(OsFiles):
        def disk_usage(self, path: str) -> DiskUsage:
            return DiskUsage(total_bytes=1 << 30, free_bytes=0)

    with pytest.raises(NoSpace):
        open_store(tmp_path / "new" / "store", files=FullFiles())
    assert snapshot(tmp_path) == {}


def test_a_store_host_that_is_no_address_is_a_bad_setting() -> None:
    """Such a store opened and answered each put with MESSAGE_ILLEGAL."""
    with pytest.raises(BadConfig, match="store_host"):
        MessageStoreConfig(store_host=("localhost", 10911))


def test_every_status_has_its_row_in_the_table(repository: Path) -> None:
    table = (repository / "docs" / "statuses.md").read_text(encoding="utf-8")
    for status in (*PutStatus, *GetStatus):
        assert f"`{status.value}`" in table, status
