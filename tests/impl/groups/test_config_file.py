"""Test a state file and its backup: which one counts, the findings, and failing writes."""

import errno
from pathlib import Path

import pytest

from tests.support.impl.faulty_files import FaultyFiles
from tornpage.impl.groups.config_file import ConfigFile

NAME = "consumerOffset.json"
FIRST, SECOND = b'{"v":1}', b'{"v":2}'


def version_of(document: object) -> int:
    match document:
        case {"v": int(version)}:
            return version
    raise ValueError("another shape")


def file_in(directory: Path, files: FaultyFiles | None = None) -> ConfigFile:
    return ConfigFile(files or FaultyFiles(), str(directory / NAME))


def holding(directory: Path, main: bytes | None, backup: bytes | None = None) -> ConfigFile:
    for name, content in ((NAME, main), (f"{NAME}.bak", backup)):
        if content is not None:
            (directory / name).write_bytes(content)
    return file_in(directory)


def codes(file: ConfigFile) -> list[str]:
    return [finding.code for finding in file.findings]


# ---- load --------------------------------------------------------------------------------------------------------


def test_without_files_there_is_nothing_and_nothing_to_say(tmp_path: Path) -> None:
    file = file_in(tmp_path)
    assert file.load(version_of) is None
    assert codes(file) == []
    file.make_durable()


def test_a_whole_file_counts_and_its_backup_is_not_asked(tmp_path: Path) -> None:
    file = holding(tmp_path, SECOND, b"rubbish")
    assert file.load(version_of) == 2
    assert codes(file) == []


@pytest.mark.parametrize("main", [None, b"", b"\0" * 7, b'{"v":', b'{"v":"x"}', b"[]", b"null", b"\xff{}"])
def test_a_file_that_says_nothing_gives_way_to_its_backup(tmp_path: Path, main: bytes | None) -> None:
    file = holding(tmp_path, main, FIRST)
    assert file.load(version_of) == 1
    assert codes(file) == ["config_file_from_backup"]
    assert {finding.severity for finding in file.findings} == {"note"}


@pytest.mark.parametrize(("main", "backup"), [(b"", None), (None, b""), (b"", b"\0\0"), (b"x", b"[")])
def test_where_neither_says_anything_the_state_is_empty(
    tmp_path: Path, main: bytes | None, backup: bytes | None
) -> None:
    file = holding(tmp_path, main, backup)
    assert file.load(version_of) is None
    assert codes(file) == ["config_file_unreadable"]


def test_a_directory_of_that_name_says_nothing(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    file = holding(tmp_path, None, FIRST)
    assert file.load(version_of) == 1


@pytest.mark.parametrize(("main", "synced"), [(SECOND, NAME), (None, f"{NAME}.bak")])
def test_what_counts_is_synced_before_it_is_built_on(tmp_path: Path, main: bytes | None, synced: str) -> None:
    holding(tmp_path, main, FIRST)
    files = FaultyFiles()
    file = file_in(tmp_path, files)
    file.load(version_of)
    files.calls.clear()
    file.make_durable()
    barriers = [call for call in files.calls if call[0].startswith("sync")]
    assert barriers == [("sync", str(tmp_path / synced)), ("sync_directory", str(tmp_path))]


# ---- save --------------------------------------------------------------------------------------------------------


def test_a_save_keeps_the_last_version_as_backup(tmp_path: Path) -> None:
    file = holding(tmp_path, FIRST)
    file.load(version_of)
    file.save({"v": 2})
    assert file_in(tmp_path).load(version_of) == 2
    assert (tmp_path / f"{NAME}.bak").read_bytes() == FIRST
    file.save({"v": 3})
    assert holding(tmp_path, b"").load(version_of) == 2


def test_the_first_save_has_no_backup_and_nothing_else_stays(tmp_path: Path) -> None:
    file_in(tmp_path).save({"v": 1})
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


def test_a_backup_that_was_loaded_stays_through_the_first_save(tmp_path: Path) -> None:
    file = holding(tmp_path, b"", FIRST)
    file.load(version_of)
    file.save({"v": 2})
    assert (tmp_path / f"{NAME}.bak").read_bytes() == FIRST
    file.save({"v": 3})
    assert holding(tmp_path, b"").load(version_of) == 2


def test_what_a_broken_save_has_left_is_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.tmp").write_bytes(b"half")
    (tmp_path / f"{NAME}.bak.tmp").write_bytes(b"half")
    file = holding(tmp_path, FIRST)
    file.load(version_of)
    file.save({"v": 2})
    assert sorted(path.name for path in tmp_path.iterdir()) == [NAME, f"{NAME}.bak"]


@pytest.mark.parametrize(
    ("verb", "skip"),
    [("create", 0), ("create", 1), ("pwrite", 0), ("pwrite", 1), ("sync", 0), ("sync", 1), ("rename", 0), ("rename", 1),
     ("sync_directory", 0)],
)  # fmt: skip
def test_a_disk_that_refuses_leaves_the_last_version_or_the_new_one(tmp_path: Path, verb: str, skip: int) -> None:
    holding(tmp_path, FIRST)
    files = FaultyFiles()
    file = file_in(tmp_path, files)
    file.load(version_of)
    files.fail(verb, code=errno.ENOSPC, skip=skip)
    with pytest.raises(OSError, match="No space"):
        file.save({"v": 2})
    files.mend()
    assert file_in(tmp_path).load(version_of) == (2 if verb == "sync_directory" else 1)
    file.save({"v": 3})
    assert file_in(tmp_path).load(version_of) == 3
    assert holding(tmp_path, b"").load(version_of) == 1
