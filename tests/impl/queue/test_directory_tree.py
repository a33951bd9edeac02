"""Test directories made on demand: each name is synced once, with the first file in it."""

from pathlib import Path

import pytest

from tests.support.impl.stores import FaultyFiles
from tornpage.impl.queue.directory_tree import DirectoryTree


def synced(files: FaultyFiles, root: Path) -> list[str]:
    """Return the directories synced since the last call."""
    found = [path.removeprefix(str(root)) for verb, path in files.calls if verb == "sync_directory"]
    files.calls.clear()
    return found


def test_directories_are_made_and_synced_up_to_the_root(tmp_path: Path) -> None:
    files = FaultyFiles()
    tree = DirectoryTree(files, str(tmp_path))
    tree.make(f"{tmp_path}/a/b")
    assert (tmp_path / "a/b").is_dir()
    assert synced(files, tmp_path) == []
    tree.sync(f"{tmp_path}/a/b")
    assert synced(files, tmp_path) == ["/a/b", "/a", ""]
    tree.make(f"{tmp_path}/a/b")
    assert files.calls == []
    tree.sync(f"{tmp_path}/a/b")
    assert synced(files, tmp_path) == ["/a/b"]


def test_one_sync_of_a_parent_serves_all_its_directories(tmp_path: Path) -> None:
    files = FaultyFiles()
    tree = DirectoryTree(files, str(tmp_path))
    for name in "xyz":
        tree.make(f"{tmp_path}/a/{name}")
    for name in "xyz":
        tree.sync(f"{tmp_path}/a/{name}")
    assert synced(files, tmp_path) == ["/a/x", "/a", "", "/a/y", "/a/z"]
    tree.make(f"{tmp_path}/a/later")
    tree.sync(f"{tmp_path}/a/later")
    assert synced(files, tmp_path) == ["/a/later", "/a"]


@pytest.mark.parametrize(("durable", "expected"), [(True, ["/a/b"]), (False, ["/a/b", "/a", ""])])
def test_directory_that_was_there_counts_as_new_unless_it_is_said(
    tmp_path: Path, durable: bool, expected: list[str]
) -> None:
    """An earlier process may have been killed between making and syncing it."""
    (tmp_path / "a/b").mkdir(parents=True)
    files = FaultyFiles()
    tree = DirectoryTree(files, str(tmp_path))
    if durable:
        tree.note(f"{tmp_path}/a/b", durable=True)
    tree.make(f"{tmp_path}/a/b")
    tree.sync(f"{tmp_path}/a/b")
    assert synced(files, tmp_path) == expected


@pytest.mark.parametrize("part", ["/a", "/a/b"])
def test_failed_sync_is_tried_again(tmp_path: Path, part: str) -> None:
    files = FaultyFiles()
    tree = DirectoryTree(files, str(tmp_path))
    tree.make(f"{tmp_path}/a/b")
    files.fail("sync_directory", part=f"{tmp_path}{part}", times=1, skip=part == "/a")
    with pytest.raises(OSError, match="Input/output"):
        tree.sync(f"{tmp_path}/a/b")
    files.calls.clear()
    tree.sync(f"{tmp_path}/a/b")
    assert synced(files, tmp_path) == ["/a/b", "/a", ""]


def test_refused_directory_is_made_later(tmp_path: Path) -> None:
    files = FaultyFiles()
    tree = DirectoryTree(files, str(tmp_path))
    files.fail("make_directory", part="/a/b", times=1)
    with pytest.raises(OSError, match="Input/output"):
        tree.make(f"{tmp_path}/a/b")
    tree.make(f"{tmp_path}/a/b")
    tree.sync(f"{tmp_path}/a/b")
    assert synced(files, tmp_path) == ["/a/b", "/a", ""]
