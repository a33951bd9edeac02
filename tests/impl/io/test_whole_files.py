"""Test files that are made whole before they get their names."""

import errno
import shutil
from pathlib import Path

import pytest

from tests.support.impl.faulty_files import FaultyFiles
from tests.support.impl.stores import MESSAGE, open_store
from tornpage.impl.io.files import OpenFile
from tornpage.impl.io.whole_files import WholeFiles

SIZE = 4096


def made(whole: WholeFiles, files: FaultyFiles, path: Path, *, replaces: bool = False) -> None:
    """Make a file of a fixed size and close it."""

    def fill(file: OpenFile) -> None:
        files.allocate(file, SIZE)

    files.close(whole.make(str(path), top=str(path.parent), fill=fill, replaces=replaces))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return the path of a file in a new directory."""
    (tmp_path / "log").mkdir()
    return tmp_path / "log" / "0"


@pytest.mark.parametrize("verb", ["create", "allocate", "sync", "rename", "make_directory"])
def test_name_comes_last(log: Path, verb: str) -> None:
    files = FaultyFiles()
    files.fail(verb, times=1)
    whole = WholeFiles(files)
    with pytest.raises(OSError, match="Input/output"):
        made(whole, files, log)
    assert list(log.parent.iterdir()) == []
    made(whole, files, log)
    assert [path.stat().st_size for path in log.parent.iterdir()] == [SIZE]
    assert list((log.parent.parent / "log.unfinished").iterdir()) == []


def test_content_is_durable_before_the_name(log: Path) -> None:
    files = FaultyFiles()
    made(WholeFiles(files), files, log)
    verbs = [verb for verb, _ in files.calls]
    assert verbs.index("sync") < verbs.index("rename")


def test_existing_file_is_replaced_on_request_only(log: Path) -> None:
    files = FaultyFiles()
    log.write_bytes(b"there")
    with pytest.raises(FileExistsError):
        made(WholeFiles(files), files, log)
    assert log.read_bytes() == b"there"
    made(WholeFiles(files), files, log, replaces=True)
    assert log.read_bytes() == bytes(SIZE)


def test_leftover_is_replaced(log: Path) -> None:
    files = FaultyFiles()
    files.fail("allocate", times=1)
    whole = WholeFiles(files)
    files.faults["unlink"] = files.faults["allocate"]
    files.fail("unlink", times=1)
    with pytest.raises(OSError, match="Input/output"):
        made(whole, files, log)
    tops = [str(log.parent)]
    assert list(whole.leftovers(tops).values()) == [0]
    files.mend()
    made(whole, files, log)
    assert whole.leftovers(tops) == {}


def test_removed_folder_is_created_again(log: Path) -> None:
    files = FaultyFiles()
    whole = WholeFiles(files)
    made(whole, files, log)
    shutil.rmtree(log.parent.parent / "log.unfinished")
    with pytest.raises(FileNotFoundError):
        made(whole, files, log.with_name("1"))
    made(whole, files, log.with_name("1"))
    assert log.with_name("1").stat().st_size == SIZE


@pytest.mark.parametrize(("verb", "code"), [("make_directory", errno.EACCES), ("rename", errno.EXDEV)])
def test_files_are_made_in_place_without_a_usable_folder(
    log: Path, verb: str, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    files = FaultyFiles()
    files.fail(verb, code=code)
    whole = WholeFiles(files)
    made(whole, files, log)
    made(whole, files, log.with_name("1"))
    assert [path.stat().st_size for path in sorted(log.parent.iterdir())] == [SIZE, SIZE]
    assert caplog.text.count("no_unfinished_folder") == 1
    assert [path for verb, path in files.calls if verb == "create"][-1] == str(log.with_name("1"))


def test_open_removes_what_a_killed_store_left(tmp_path: Path) -> None:
    with open_store(tmp_path / "store") as store:
        store.put(MESSAGE)
    left = [tmp_path / "store" / f"{name}.unfinished" / "file.part" for name in ("commitlog", "consumequeue", "index")]
    for path in left:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"part of a file")
    with open_store(tmp_path / "store") as store:
        assert not any(path.exists() for path in left)
        assert store.findings == ()
