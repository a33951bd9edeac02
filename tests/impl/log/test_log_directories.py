"""Test the choice of a directory for a log file, and the directories of a configuration."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.impl.several_disks import TOTAL_BYTES, SeveralDisks, spread_config
from tests.support.impl.stores import chain_of
from tornpage.impl.config.log_paths import resolved_log_paths
from tornpage.impl.errors import BadConfig
from tornpage.impl.log.log_directories import LogDirectories

FILE_BYTES = 1024
MakeDirectories = Callable[..., LogDirectories]


@pytest.fixture
def disks() -> SeveralDisks:
    """Return disks that answer with these numbers."""
    return SeveralDisks()


@pytest.fixture
def make_directories(disks: SeveralDisks) -> MakeDirectories:
    """Return a maker of log directories; one is full above 75 per cent."""

    def make(*paths: str, read_only: tuple[str, ...] = (), file_bytes: int = FILE_BYTES) -> LogDirectories:
        return LogDirectories(disks, paths, read_only=read_only, file_bytes=file_bytes, clean_forcibly_ratio=0.75)

    return make


def chosen(directories: LogDirectories, count: int = 6) -> str:
    """Return the last letters of the directories of the first files."""
    return "".join(directories.choose(number * FILE_BYTES)[-1] for number in range(count))


# ---- the choice ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("paths", "read_only", "used", "expected"),
    [
        (("/a", "/b"), (), {}, "ababab"),
        (("/c", "/a", "/b"), (), {}, "abcabc"),
        (("/c", "/a", "/b"), ("/a",), {}, "bcbcbc"),
        (("/a", "/b", "/c"), (), {"a": 0.86}, "bcbcbc"),
        (("/a", "/b", "/c"), (), {"a": 0.75}, "abcabc"),
        (("/a", "/b", "/c"), (), {"a": 0.9, "c": 0.9}, "bbbbbb"),
        (("/a", "/b", "/c"), (), {"a": 0.9, "b": 0.86, "c": 0.99}, "abcabc"),
        (("/a", "/b", "/c"), ("/b",), {"a": 0.9, "c": 0.99}, "acacac"),
        (("/a", "/b", "/c"), (), {"a": 0.9, "b": 1.0, "c": 0.99}, "acacac"),
        (("/a", "/b"), (), {"a": 1.0, "b": 1.0}, "ababab"),
        (("/a", "/b"), (), {"a": None}, "bbbbbb"),
        (("/a", "/b"), (), {"a": None, "b": 0.99}, "bbbbbb"),
        (("/a", "/b"), (), {"a": None, "b": 1.0}, "ababab"),
        (("/a", "/b"), (), {"a": None, "b": None}, "ababab"),
    ],
)
def test_directories_take_turns_but_for_full_ones(
    make_directories: MakeDirectories,
    disks: SeveralDisks,
    paths: tuple[str, ...],
    read_only: tuple[str, ...],
    used: dict[str, float | None],
    expected: str,
) -> None:
    disks.used = used
    assert chosen(make_directories(*paths, read_only=read_only)) == expected


def test_directory_without_room_for_a_file_is_full(make_directories: MakeDirectories, disks: SeveralDisks) -> None:
    disks.used = {"a": 0.5}
    half_bytes = TOTAL_BYTES // 2
    assert make_directories("/a", "/b", file_bytes=half_bytes).choose(0) == "/a"
    assert make_directories("/a", "/b", file_bytes=half_bytes + 1).choose(0) == "/b"


def test_single_directory_is_not_asked(make_directories: MakeDirectories, disks: SeveralDisks) -> None:
    disks.used = {"a": None, "b": None}
    assert chosen(make_directories("/a")) == "aaaaaa"
    assert chosen(make_directories("/a", "/b", read_only=("/a",))) == "bbbbbb"
    assert disks.calls == []


def test_disk_that_cannot_be_asked_is_logged(
    make_directories: MakeDirectories, disks: SeveralDisks, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "tornpage.store")
    disks.used = {"a": None}
    make_directories("/a", "/b").choose(0)
    assert [record.getMessage() for record in caplog.records] == [
        "disk_unreadable path='/a' error='Input/output error'"
    ]


def test_room_is_that_of_the_roomiest_writable_directory(
    make_directories: MakeDirectories, disks: SeveralDisks, tmp_path: Path
) -> None:
    disks.used = {"a": 0.75, "b": 0.5, "c": 0.0}
    paths = [str(tmp_path / name / "not" / "there") for name in "abc"]
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "not").mkdir(parents=True)
    assert make_directories(*paths, read_only=(paths[2],)).free_bytes() == TOTAL_BYTES // 2
    assert [path for verb, path in disks.calls if verb == "disk_usage"] == [
        str(tmp_path / "a" / "not"),
        str(tmp_path / "b"),
    ]


def test_writable_directories_are_made_and_all_names_synced(
    make_directories: MakeDirectories, disks: SeveralDisks, tmp_path: Path
) -> None:
    there, new, kept, gone = (str(tmp_path / name) for name in ("there", "deep/new", "kept", "gone"))
    (tmp_path / "there").mkdir()
    (tmp_path / "kept").mkdir()
    make_directories(there, new, kept, gone, read_only=(kept, gone)).prepare()
    root = str(tmp_path)
    calls = [(verb, path[len(root) :]) for verb, path in disks.calls if verb != "stat" and path.startswith(root)]
    assert calls == [
        ("make_directory", "/deep"),
        ("sync_directory", ""),
        ("make_directory", "/deep/new"),
        ("sync_directory", "/deep"),
        ("sync_directory", ""),
        ("sync_directory", "/deep/new"),
        ("sync_directory", "/kept"),
        ("sync_directory", "/there"),
    ]
    assert not (tmp_path / "gone").exists()


# ---- the configuration --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("paths", "read_only", "expected"),
    [
        ((), (), (("/r/commitlog",), ())),
        (("one", "two"), ("two",), (("/r/one", "/r/two"), ("/r/two",))),
        (("/x/one/", "//y//two/./deep", "three/../four"), (), (("/x/one", "/y/two/deep", "/r/four"), ())),
        (("commitlog", "/disk2/log"), ("/r/commitlog",), (("/r/commitlog", "/disk2/log"), ("/r/commitlog",))),
        (("a", "ab"), (), (("/r/a", "/r/ab"), ())),
        (("configs/log",), (), (("/r/configs/log",), ())),
    ],
)
def test_relative_paths_are_below_the_store_directory(
    paths: tuple[str, ...], read_only: tuple[str, ...], expected: tuple[tuple[str, ...], tuple[str, ...]]
) -> None:
    assert resolved_log_paths("/r", paths, read_only) == expected
    spread_config(*paths, read_only=() if "commitlog" in paths else read_only)


@pytest.mark.parametrize(
    ("paths", "read_only", "remedy"),
    [
        ("/disk1,/disk2", (), "use a tuple"),
        (["/disk1"], (), "use a tuple"),
        ((b"/disk1",), (), "use a tuple"),
        (("/disk1",), "/disk1", "use a tuple"),
        (("/disk1,/disk2",), (), "no comma"),
        (("",), (), "not empty"),
        (("/disk\0",), (), "NUL"),
        (("../log",), (), "absolute path"),
        (("a/../..",), (), "absolute path"),
        (("/disk1", "/disk1/"), (), "once"),
        (("log", "./log"), (), "once"),
        (("/disk1", "/disk1/deep"), (), "contain each other"),
        (("log/deep/er", "log"), (), "contain each other"),
        (("/", "/disk1"), (), "contain each other"),
        (("/",), (), "does not use for other files"),
        ((".",), (), "does not use for other files"),
        (("config",), (), "does not use for other files"),
        (("quarantine/log",), (), "does not use for other files"),
        (("/disk1",), ("/disk2",), "name directories of store_path_commit_log"),
        ((), ("/disk2",), "name directories of store_path_commit_log"),
        (("/disk1", "/disk2"), ("/disk2", "/disk1"), "leave one directory"),
        ((), ("commitlog",), "leave one directory"),
    ],
)
def test_paths_that_cannot_work_are_refused(paths: object, read_only: object, remedy: str) -> None:
    config = spread_config()
    with pytest.raises(BadConfig, match=remedy) as refused:
        type(config)(store_path_commit_log=paths, read_only_commit_log_store_paths=read_only)  # type: ignore[arg-type]
    assert refused.value.name in ("store_path_commit_log", "read_only_commit_log_store_paths")
    chain_of(refused.value)


@pytest.mark.parametrize(
    ("paths", "remedy"),
    [
        (("commitlog", "/r/commitlog"), "once"),
        (("log", "/r/log/deep"), "contain each other"),
        (("/r",), "does not use for other files"),
        (("/r/config/log",), "does not use for other files"),
    ],
)
def test_paths_that_cannot_work_in_this_store_are_refused(paths: tuple[str, ...], remedy: str) -> None:
    spread_config(*paths)
    with pytest.raises(BadConfig, match=remedy):
        resolved_log_paths("/r", paths, ())


@pytest.mark.parametrize("ratio", [0.0, -0.1, 1.1])
def test_ratio_is_a_share(ratio: float) -> None:
    with pytest.raises(BadConfig, match="disk_space_clean_forcibly_ratio"):
        type(spread_config())(disk_space_clean_forcibly_ratio=ratio)
