"""Test equal files in one directory: made on demand, found again, cut, erased and durable."""

import errno
from pathlib import Path

import pytest

from tests.support.impl.queues import bytes_in, files_of
from tests.support.impl.stores import FaultyFiles
from tornpage.impl.io.files import OpenFile
from tornpage.impl.io.os_files import OsFiles

DIRECTORY = "consumequeue/TopicTest/3"


def filled(root: Path, size_bytes: int, *, files: FaultyFiles | None = None) -> None:
    """Leave durable files of 100 bytes with this many bytes in them."""
    units = files_of(root, files=files)
    units.begin(0)
    units.append(bytes(range(1, 251))[:size_bytes])
    units.flush()
    units.close()


def test_nothing_is_made_before_the_first_byte(tmp_path: Path) -> None:
    units = files_of(tmp_path)
    assert units.load(durable=False) == []
    assert (units.first_position, units.end_position, units.at(0), units.read(0, 20)) == (0, 0, None, b"")
    assert units.flush() == 0
    assert list(tmp_path.iterdir()) == []


def test_bytes_roll_over_file_ends(tmp_path: Path) -> None:
    units = files_of(tmp_path)
    units.begin(0)
    data = bytes(range(1, 251))
    units.append(data[:120])
    units.append(data[120:200])
    assert units.end_position == 200
    units.append(data[200:])
    assert bytes_in(tmp_path) == {"0000": data[:100], "0100": data[100:200], "0200": data[200:] + bytes(50)}
    assert units.read(0, 250) == data
    assert units.read(95, 10) == data[95:105]
    assert units.read(300, 20) == b""
    units.check()
    units.close()
    assert units.read(0, 20) == b""


def test_first_file_is_the_one_that_holds_the_position(tmp_path: Path) -> None:
    units = files_of(tmp_path)
    units.begin(340)
    assert (units.first_position, units.end_position) == (300, 300)
    assert list(bytes_in(tmp_path)) == ["0300"]


def test_files_are_found_again(tmp_path: Path) -> None:
    filled(tmp_path, 150)
    units = files_of(tmp_path)
    assert units.load(durable=True) == []
    assert units.end_position == 200
    assert not units.cut(150)
    assert units.end_position == 150
    units.append(b"x" * 60)
    assert bytes_in(tmp_path)["0200"] == b"x" * 10 + bytes(90)


@pytest.mark.parametrize(
    ("position", "left"),
    [
        (250, {"0000": 100, "0100": 100, "0200": 50}),
        (201, {"0000": 100, "0100": 100, "0200": 1}),
        (200, {"0000": 100, "0100": 100}),
        (130, {"0000": 100, "0100": 30}),
        (1, {"0000": 1}),
        (0, {}),
    ],
)
def test_cut_erases_everything_behind_it(tmp_path: Path, position: int, left: dict[str, int]) -> None:
    filled(tmp_path, 250)
    before = bytes_in(tmp_path)
    units = files_of(tmp_path)
    units.load(durable=False)
    assert units.cut(position) == (position < 250)
    assert not units.cut(position)
    assert bytes_in(tmp_path) == {name: before[name][:size] + bytes(100 - size) for name, size in left.items()}
    assert units.end_position == position
    units.check()


def test_cut_unlinks_last_first_and_is_durable_with_the_next_flush(tmp_path: Path) -> None:
    filled(tmp_path, 250)
    files = FaultyFiles()
    units = files_of(tmp_path, files=files)
    units.load(durable=True)
    files.calls.clear()
    units.cut(30)
    assert [path[-3:] for verb, path in files.calls if verb == "unlink"] == ["200", "100"]
    files.calls.clear()
    units.flush()
    assert [(verb, path.rpartition("/")[2][-3:]) for verb, path in files.calls] == [
        ("open", "000"),
        ("sync", "000"),
        ("sync_directory", "3"),
    ]


def test_files_that_cannot_be_used_go_and_are_named(tmp_path: Path) -> None:
    filled(tmp_path, 250)
    directory = tmp_path / DIRECTORY
    (directory / f"{300:020d}").write_bytes(b"short")
    (directory / f"{400:020d}").write_bytes(b"")
    (directory / f"{450:020d}").write_bytes(bytes(100))
    (directory / f"{(1 << 62) + 96:020d}").write_bytes(bytes(100))
    (directory / "notes.txt").write_text("stray")
    (directory / f"{500:020d}").mkdir()
    units = files_of(tmp_path)
    found = [(finding.code, Path(finding.file).name[-4:]) for finding in units.load(durable=False)]
    assert sorted(found) == [
        ("queue_file_size", "0300"),
        ("queue_file_size", "0450"),
        ("queue_file_size", "8000"),
        ("stray_file", ".txt"),
        ("stray_file", "0500"),
    ]
    assert sorted(path.name[-4:] for path in directory.iterdir()) == [".txt", "0000", "0100", "0200", "0500"]
    assert units.end_position == 300


def test_files_in_front_of_a_gap_are_not_used(tmp_path: Path) -> None:
    filled(tmp_path, 250)
    (tmp_path / DIRECTORY / f"{100:020d}").unlink()
    units = files_of(tmp_path)
    assert [finding.code for finding in units.load(durable=False)] == ["queue_file_alone"]
    assert (units.first_position, units.end_position) == (200, 300)
    units.drop_before_gap()
    assert list(bytes_in(tmp_path)) == ["0200"]
    assert not units.map_before_gap()


def test_files_in_front_of_a_gap_can_take_the_place_of_those_behind_it(tmp_path: Path) -> None:
    filled(tmp_path, 250)
    (tmp_path / DIRECTORY / f"{200:020d}").rename(tmp_path / DIRECTORY / f"{300:020d}")
    (tmp_path / DIRECTORY / f"{500:020d}").write_bytes(bytes(100))
    units = files_of(tmp_path)
    units.load(durable=False)
    assert (units.first_position, units.end_position) == (500, 600)
    assert units.map_before_gap()
    assert (units.first_position, units.end_position) == (300, 400)
    assert units.map_before_gap()
    assert (units.first_position, units.end_position) == (0, 200)
    assert not units.map_before_gap()
    assert list(bytes_in(tmp_path)) == ["0000", "0100"]
    units.check()


def test_read_only_directory_stays_as_it_is(tmp_path: Path) -> None:
    filled(tmp_path, 250)
    (tmp_path / DIRECTORY / f"{300:020d}").write_bytes(b"short")
    before = bytes_in(tmp_path)
    files = FaultyFiles()
    units = files_of(tmp_path, files=files, writable=False)
    assert [finding.code for finding in units.load(durable=False)] == ["queue_file_size"]
    assert units.cut(130)
    assert (units.end_position, units.read(100, 30)) == (130, before["0100"][:30])
    units.flush()
    assert [verb for verb, _ in files.calls if verb.startswith("sync")] == []
    units.check()
    units.close()
    assert bytes_in(tmp_path) == before


@pytest.mark.parametrize("verb", ["create", "allocate", "map", "make_directory"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_refused_file_leaves_nothing_and_is_made_later(tmp_path: Path, verb: str, code: int) -> None:
    files = FaultyFiles()
    files.fail(verb, code=code, times=1)
    units = files_of(tmp_path, files=files)
    with pytest.raises(OSError) as refused:  # noqa: PT011 - the code is checked below
        units.begin(0)
    assert refused.value.errno == code
    assert bytes_in(tmp_path) == {}
    assert units.end_position == 0
    units.begin(0)
    units.append(b"unit")
    assert units.read(0, 4) == b"unit"


def test_name_that_a_failed_attempt_left_is_used_again(tmp_path: Path) -> None:
    files = FaultyFiles()
    files.fail("allocate", times=1)
    units = files_of(tmp_path, files=files)
    files.faults["unlink"] = files.faults["allocate"]
    files.fail("unlink", times=1)
    with pytest.raises(OSError, match="Input/output"):
        units.begin(0)
    left = tmp_path / f"{DIRECTORY}.unfinished" / "file.part"
    assert left.read_bytes() == b""
    assert bytes_in(tmp_path) == {}
    files.mend()
    units.begin(0)
    assert not left.exists()
    assert bytes_in(tmp_path) == {"0000": bytes(100)}


def test_flush_makes_contents_durable_before_names(tmp_path: Path) -> None:
    files = FaultyFiles()
    units = files_of(tmp_path, files=files)
    units.begin(0)
    units.append(bytes(250))
    synced = [path for verb, path in files.calls if verb.startswith("sync")]
    assert synced == [f"{tmp_path}/{DIRECTORY}.unfinished/file.part"] * 3
    files.calls.clear()
    assert units.flush() == 250
    assert [(verb, path.removeprefix(str(tmp_path))) for verb, path in files.calls if verb != "open"] == [
        ("sync", f"/{DIRECTORY}/{0:020d}"),
        ("sync", f"/{DIRECTORY}/{100:020d}"),
        ("sync", f"/{DIRECTORY}/{200:020d}"),
        ("sync_directory", f"/{DIRECTORY}"),
        ("sync_directory", "/consumequeue/TopicTest"),
        ("sync_directory", "/consumequeue"),
        ("sync_directory", ""),
    ]
    files.calls.clear()
    assert units.flush() == 250
    assert files.calls == []


def test_flush_follows_the_page_rule_and_full_files_never_wait(tmp_path: Path) -> None:
    files = FaultyFiles()
    units = files_of(tmp_path, files=files)
    units.begin(0)
    units.append(bytes(60))
    assert units.flush(2) == 0
    units.append(bytes(60))
    assert units.flush(2) == 100
    assert units.flush(0) == 120


def test_new_name_is_synced_with_the_flush_of_what_is_in_it(tmp_path: Path) -> None:
    files = FaultyFiles()
    units = files_of(tmp_path, files=files)
    units.begin(0)
    units.append(bytes(60))
    units.flush(2)
    assert "sync_directory" not in [verb for verb, _ in files.calls]
    units.flush(0)
    files.calls.clear()
    units.append(bytes(60))
    units.flush()
    assert [path.removeprefix(str(tmp_path)) for verb, path in files.calls if verb == "sync_directory"] == [
        f"/{DIRECTORY}"
    ]


def test_failed_sync_of_names_is_tried_again(tmp_path: Path) -> None:
    files = FaultyFiles()
    units = files_of(tmp_path, files=files)
    units.begin(0)
    units.append(bytes(60))
    for part in (DIRECTORY, str(tmp_path)):
        files.fail("sync_directory", part=part, times=1)
        with pytest.raises(OSError, match="Input/output"):
            units.flush()
    files.calls.clear()
    units.flush()
    assert [path.removeprefix(str(tmp_path)) for _, path in files.calls][-1] == ""


def test_failed_sync_of_a_file_stops_the_flush_there(tmp_path: Path) -> None:
    files = FaultyFiles()
    units = files_of(tmp_path, files=files)
    units.begin(0)
    units.append(bytes(250))
    files.fail("sync", part=f"{100:020d}", times=1)
    with pytest.raises(OSError, match="Input/output"):
        units.flush()
    assert [mapped.flushed_position for mapped in units.mapped] == [100, 0, 0]


@pytest.mark.parametrize(("durable", "synced"), [(True, []), (False, [f"{0:020d}", f"{100:020d}", "3", "TopicTest"])])
def test_only_what_the_last_opener_left_undurable_is_synced(tmp_path: Path, durable: bool, synced: list[str]) -> None:
    filled(tmp_path, 150)
    files = FaultyFiles()
    units = files_of(tmp_path, files=files)
    units.load(durable=durable)
    units.cut(150)
    files.calls.clear()
    units.flush()
    assert [path.rpartition("/")[2] for verb, path in files.calls if verb.startswith("sync")][:4] == synced


def test_files_in_front_go_but_never_the_last(tmp_path: Path) -> None:
    filled(tmp_path, 250)
    units = files_of(tmp_path)
    units.load(durable=True)
    units.drop_before(199)
    assert list(bytes_in(tmp_path)) == ["0100", "0200"]
    units.drop_before(1000)
    assert list(bytes_in(tmp_path)) == ["0200"]
    assert units.read(210, 5) == bytes(range(211, 216))


class CountingFiles(OsFiles):
    """The real disk; it counts the open files."""

    opens = 0

    def create(self, path: str) -> OpenFile:
        self.opens += 1
        return super().create(path)

    def open(self, path: str, *, writable: bool) -> OpenFile:
        self.opens += 1
        return super().open(path, writable=writable)

    def close(self, file: OpenFile) -> None:
        self.opens -= 1
        super().close(file)


def test_files_are_open_for_a_moment_only(tmp_path: Path) -> None:
    """The count leaves out mappings: Python before 3.13 keeps a descriptor in each."""
    files = CountingFiles()
    units = files_of(tmp_path, files=files)
    units.begin(0)
    units.append(bytes(range(250)))
    assert files.opens == 0
    units.flush()
    units.cut(20)
    assert files.opens == 0
    units.close()
    assert files.opens == 0


def test_reader_keeps_what_it_holds_while_files_go(tmp_path: Path) -> None:
    filled(tmp_path, 250)
    units = files_of(tmp_path)
    units.load(durable=True)
    place = units.at(120)
    assert place is not None
    mapped, start = place
    assert mapped.hold()
    units.drop_before(200)
    units.close()
    assert bytes(mapped.view[start : start + 3]) == bytes([121, 122, 123])
    mapped.release()
    assert not mapped.hold()
