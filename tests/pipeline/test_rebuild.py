"""Test rebuilding queues and index in place from a sound log."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.pipeline.test_repair import tree
from tests.support.pipeline.handmade import copied, overwrite
from tornpage import Message, MessageStore, MessageStoreConfig
from tornpage.cli.main import cli
from tornpage.pipeline.audit.audit import audit_store
from tornpage.pipeline.repairing import RepairRefused, rebuild
from tornpage.properties.judge.shape import SettingsOverride

NAME = "01-plain-ascii"
LOG_FILE = "commitlog/00000000000000000000"


def only(files: dict[str, bytes], *parts: str) -> dict[str, bytes]:
    return {name: data for name, data in files.items() if name.startswith(parts)}


def test_zeroed_queue_is_as_it_was(tmp_path: Path) -> None:
    root = copied(NAME, tmp_path / "store")
    before = tree(root)
    queue = next(path for path in (root / "consumequeue").rglob("0*") if path.is_file())
    overwrite(queue, 100, bytes(200))
    broken = only(tree(root), "consumequeue/")
    done = rebuild(root, "queues", SettingsOverride())
    assert (done.before.verdict, done.audit.verdict) == ("broken", "holds")
    assert only(tree(root), "consumequeue/") == only(before, "consumequeue/")
    assert only(tree(root), "commitlog/", "index/") == only(before, "commitlog/", "index/")
    assert {f"consumequeue/{name}": data for name, data in tree(done.backup / "consumequeue").items()} == broken
    assert not (root / "rebuild.unfinished").exists()


@pytest.mark.parametrize("part", ["index", "all"])
def test_damaged_index_is_rebuilt(tmp_path: Path, part: str) -> None:
    root = copied("06-index-files-collisions", tmp_path / "store")
    overwrite(sorted((root / "index").iterdir())[0], 300, b"damage")
    done = rebuild(root, part, SettingsOverride())  # type: ignore[arg-type]
    assert (done.before.verdict, done.audit.verdict) == ("broken", "holds")


def test_damaged_log_and_wrong_records_are_refused_and_nothing_changes(tmp_path: Path) -> None:
    root = copied(NAME, tmp_path / "store")
    shutil.copytree(root, tmp_path / "other")
    overwrite(root / LOG_FILE, 300, b"damage")
    overwrite(tmp_path / "other" / LOG_FILE, 20, b"\x01")
    for store, said in ((root, "the log is damaged"), (tmp_path / "other", "wrong queue")):
        before = tree(store)
        with pytest.raises(RepairRefused, match=said):
            rebuild(store, "all", SettingsOverride())
        assert tree(store) == before


def test_open_store_is_refused(tmp_path: Path) -> None:
    with MessageStore.open(tmp_path / "store", MessageStoreConfig(mapped_file_size_commit_log=16384)) as store:
        store.put(Message("T", b"x"))
        with pytest.raises(RepairRefused, match="close the store first"):
            rebuild(tmp_path / "store", "queues", SettingsOverride())


def test_second_rebuild_makes_a_second_backup(tmp_path: Path) -> None:
    root = copied(NAME, tmp_path / "store")
    assert rebuild(root, "queues", SettingsOverride()).backup.name == "backup.0"
    assert rebuild(root, "queues", SettingsOverride()).backup.name == "backup.1"
    assert audit_store(root).verdict == "holds"


def test_command_rebuilds_one_store(tmp_path: Path) -> None:
    root = copied(NAME, tmp_path / "store")
    done = CliRunner().invoke(cli, ["audit", str(root), "--rebuild", "queues"], prog_name="tornpage")
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "verdict: holds")
    assert "backup.0" in done.stdout
    done = CliRunner().invoke(cli, ["audit", str(root), str(root), "--rebuild", "all"], prog_name="tornpage")
    assert done.exit_code == 2
