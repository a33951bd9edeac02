"""Test a store with several log directories: rolling, reopening, recovery, foreign files."""

import errno
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.impl.killed import FILE_BYTES, codes, message, numbers
from tests.support.impl.several_disks import Spread, spread_config
from tests.support.impl.stores import SetClock, snapshot
from tornpage.impl.errors import BadConfig, BadDirectory, NoSpace, StoreInUse, WrongFileSize
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.message.message import GetStatus, PutStatus
from tornpage.impl.service.running_flags import RunningFlag
from tornpage.impl.store import MessageStore

A, B = 0, FILE_BYTES
C, D, E = 2 * FILE_BYTES, 3 * FILE_BYTES, 4 * FILE_BYTES


@pytest.fixture
def spread(tmp_path: Path) -> Spread:
    """Return a path for a store with log directories."""
    return Spread(tmp_path / "live")


def fill(store: MessageStore, first: int, last: int) -> None:
    """Put messages of these numbers; three of them fill a file."""
    for number in range(first, last):
        assert store.put(message(number)).status is PutStatus.PUT_OK


def killed(spread: Spread, puts: int, *names: str, flushed: int = 0, files_ahead: int = 0) -> Spread:
    """Return a copy of an open store that has put this many messages."""
    with spread.open(*names, files_ahead=files_ahead) as store:
        fill(store, 0, flushed)
        if flushed:
            store.flush()
        fill(store, flushed, puts)
        shutil.copytree(spread.parent, spread.parent.with_name("killed"))
    copy = Spread(spread.parent.with_name("killed"))
    copy.files.used = spread.files.used
    return copy


# ---- rolling and reopening ----------------------------------------------------------------------------------------


def test_files_take_turns_and_are_one_log_again_after_a_restart(spread: Spread) -> None:
    with spread.open("y", "x") as store:
        fill(store, 0, 14)
    assert spread.placed() == {"x": [A, C, E], "y": [B, D]}
    with spread.open("x", "y") as store:
        assert store.findings == ()
        assert numbers(store) == list(range(14))
        fill(store, 14, 17)
        store.check()
    assert spread.placed() == {"x": [A, C, E], "y": [B, D, 5 * FILE_BYTES]}


def test_only_the_log_lies_in_its_directories(spread: Spread) -> None:
    with spread.open("x", "y") as store:
        fill(store, 0, 4)
        with pytest.raises(StoreInUse):
            spread.open("x", "y")
        assert sorted(path.name for path in spread.root.iterdir()) == ["abort", "checkpoint", "config", "lock"]
    found = sorted(path.name for path in spread.root.iterdir())
    assert found == ["checkpoint", "config", "consumequeue", "consumequeue.unfinished", "lock"]
    assert sorted(path.name for path in spread.parent.iterdir()) == ["root", "x", "x.unfinished", "y", "y.unfinished"]


def test_paths_below_the_store_directory(tmp_path: Path) -> None:
    config = spread_config("commitlog", "more/log")
    with MessageStore.open(tmp_path, config, files=Spread(tmp_path).files, clock=SetClock(ticking=True)) as store:
        fill(store, 0, 6)
    assert (tmp_path / "commitlog" / f"{A:020d}").exists()
    assert (tmp_path / "more" / "log" / f"{B:020d}").exists()


def test_path_that_the_store_needs_itself_is_refused_at_open(spread: Spread) -> None:
    with pytest.raises(BadConfig, match="does not use for other files"):
        spread.open("x", "root/config")
    assert not spread.parent.exists()


def test_new_directory_joins_an_old_log(spread: Spread) -> None:
    with spread.open("x") as store:
        fill(store, 0, 9)
    with spread.open("x", "deep/new") as store:
        assert (spread.parent / "deep" / "new").is_dir()
        fill(store, 9, 15)
    with spread.open("x", "deep/new") as store:
        assert numbers(store) == list(range(15))
    assert spread.log("x", D).exists()
    assert spread.log("deep/new", E).exists()


def test_new_file_is_durable_in_its_own_directory_before_use(spread: Spread) -> None:
    with spread.open("x", "y") as store:
        fill(store, 0, 3)
        spread.files.calls.clear()
        fill(store, 3, 4)
        path = str(spread.log("y", B))
        part = f"{spread.parent}/y.unfinished/file.part"
        changing = ("create", "allocate", "sync", "rename", "sync_directory", "map")
        assert [call for call in spread.files.calls if call[0] in changing] == [
            ("create", part),
            ("allocate", part),
            ("sync", part),
            ("rename", path),
            ("sync_directory", str(spread.parent / "y")),
            ("map", path),
        ]


# ---- full and read-only directories -------------------------------------------------------------------------------


def test_full_directory_gets_no_file_until_it_has_room(spread: Spread) -> None:
    with spread.open("x", "y") as store:
        spread.files.used = {"x": 0.86}
        fill(store, 0, 6)
        assert spread.placed() == {"x": [], "y": [A, B]}
        spread.files.used = {"x": 0.85}
        fill(store, 6, 7)
        spread.files.used = {"x": 0.87, "y": 0.88}
        fill(store, 7, 13)
        assert spread.placed() == {"x": [C, E], "y": [A, B, D]}
    with spread.open("x", "y") as store:
        assert numbers(store) == list(range(13))


def test_read_only_directory_keeps_its_files_and_gets_no_other(spread: Spread) -> None:
    with spread.open("x", "y") as store:
        fill(store, 0, 7)
    with spread.open("x", "y", read_only=("x",)) as store:
        fill(store, 7, 13)
        assert numbers(store) == list(range(13))
        assert spread.placed() == {"x": [A, C], "y": [B, D, E]}
        assert store.flush().durable
    with spread.open("x", "y", read_only=("y",)) as store:
        assert numbers(store) == list(range(13))


def test_read_only_directory_that_is_missing_is_not_made(spread: Spread) -> None:
    with spread.open("x", "y", read_only=("y",)) as store:
        fill(store, 0, 4)
    assert spread.placed() == {"x": [A, B]}


@pytest.mark.parametrize(
    ("used", "full"),
    [
        ({"x": 0.91, "y": 0.92}, True),
        ({"x": 0.91, "y": 0.90}, False),
        ({"x": 0.91, "y": None}, True),
        ({"x": 0.10, "y": None}, False),
        ({"x": 0.91, "y": 0.92, "z": 0.0}, True),
    ],
)
def test_disk_full_is_when_the_emptiest_writable_directory_is(
    spread: Spread, used: dict[str, float | None], full: bool
) -> None:
    with spread.open("x", "y", "z", read_only=("z",)):
        pass
    spread.files.used = used
    with spread.open("x", "y", "z", read_only=("z",)) as store:
        assert (store.running_flags.bits == RunningFlag.DISK_FULL) is full
        expected = PutStatus.SERVICE_NOT_AVAILABLE if full else PutStatus.PUT_OK
        assert store.put(message(0)).status is expected


@pytest.mark.parametrize("was_full", [True, False])
def test_directories_that_cannot_be_asked_change_nothing(spread: Spread, was_full: bool) -> None:
    clock = SetClock()
    config = spread_config(str(spread.parent / "x"), str(spread.parent / "y"))
    spread.files.used = {"live": 0.91 if was_full else 0.0}
    with MessageStore.open(spread.root, config, files=spread.files, clock=clock) as store:
        spread.files.used = {"live": None}
        clock.now_ms += 10_000
        assert store.put(message(0)).stored is not was_full


def test_store_needs_room_for_a_file_in_one_directory(spread: Spread) -> None:
    spread.files.used = {"x": 1.0, "y": 1.0}
    spread.parent.mkdir()
    for name in "xyz":
        (spread.parent / name).mkdir()
    with pytest.raises(NoSpace):
        spread.open("x", "y")
    with pytest.raises(NoSpace):
        spread.open("x", "y", "z", read_only=("z",))
    spread.files.used = {"x": None, "y": None}
    with pytest.raises(BadDirectory, match=f"{spread.parent}/x, {spread.parent}/y"):
        spread.open("x", "y")
    spread.files.used = {"x": 1.0}
    with spread.open("x", "y") as store:
        fill(store, 0, 4)
    assert spread.placed() == {"x": [], "y": [A, B], "z": []}


@pytest.mark.parametrize("verb", ["create", "allocate", "sync", "sync_directory", "map"])
def test_file_that_cannot_be_made_in_one_directory_is_made_in_another(spread: Spread, verb: str) -> None:
    with spread.open("x", "y") as store:
        fill(store, 0, 3)
        spread.files.fail(verb, code=errno.ENOSPC, part="/y")
        assert store.put(message(3)).status is PutStatus.CREATE_MAPEDFILE_FAILED
        assert spread.placed() == {"x": [A], "y": []}
        spread.files.mend()
        spread.files.used = {"y": 0.99}
        fill(store, 3, 4)
        assert spread.placed() == {"x": [A, B], "y": []}
    with spread.open("x", "y") as store:
        assert numbers(store) == [0, 1, 2, 3]


def test_failed_sync_in_the_second_directory_is_named(spread: Spread) -> None:
    with spread.open("x", "y") as store:
        fill(store, 0, 4)
        spread.files.fail("sync", part="/y/")
        assert not store.flush().durable
        assert store.flushed_offset == B
        assert str(spread.log("y", B)) in str(store.read_only_reason)
        spread.files.mend()


# ---- prepared files -----------------------------------------------------------------------------------------------


def test_prepared_file_is_used_where_it_was_made(spread: Spread) -> None:
    """RocketMQ chooses again at the roll, and leaves a twin when the disks have changed (H12)."""
    with spread.open("x", "y", files_ahead=1) as store:
        fill(store, 0, 3)
        spread.runner.step("allocate")
        assert spread.placed() == {"x": [A], "y": [B]}
        spread.files.used = {"y": 0.99}
        fill(store, 3, 6)
        assert spread.placed() == {"x": [A], "y": [B]}
        fill(store, 6, 9)
        assert spread.placed() == {"x": [A, C], "y": [B]}
    with spread.open("x", "y") as store:
        assert store.findings == ()
        assert numbers(store) == list(range(9))


@pytest.mark.parametrize("clean", [True, False])
def test_prepared_file_that_was_not_used_is_gone_before_it_is_made_elsewhere(spread: Spread, clean: bool) -> None:
    with spread.open("x", "y", files_ahead=1) as store:
        fill(store, 0, 3)
        spread.runner.step("allocate")
        assert spread.placed() == {"x": [A], "y": [B]}
        shutil.copytree(spread.parent, spread.parent.with_name("killed"))
    left = spread if clean else Spread(spread.parent.with_name("killed"))
    left.files.used = {"y": 0.99}
    with left.open("x", "y") as store:
        assert store.findings == ()
        assert left.placed() == {"x": [A], "y": []}
        fill(store, 3, 6)
        assert left.placed() == {"x": [A, B], "y": []}
        assert numbers(store) == list(range(6))


# ---- recovery -----------------------------------------------------------------------------------------------------


def test_recovery_cuts_across_directories_newest_file_first(spread: Spread) -> None:
    found = killed(spread, 15, "x", "y", flushed=4)
    with open(found.log("y", B), "r+b") as file:
        file.seek(400)
        file.write(b"torn")
    with found.open("x", "y") as store:
        assert codes(store) == [("tear", "torn_tail")]
        assert store.findings[0].file == str(found.log("y", B))
        assert found.placed() == {"x": [A], "y": [B]}
        kept = numbers(store)
        assert kept == list(range(len(kept)))
        assert not any(found.log("y", B).read_bytes()[store.max_offset - B :])
        removed = [(verb, path) for verb, path in found.files.calls if verb in ("unlink", "sync_directory")]
        order = [call for name, base in (("x", E), ("y", D), ("x", C)) for call in
                 (("unlink", str(found.log(name, base))), ("sync_directory", str(found.parent / name)))]  # fmt: skip
        at = removed.index(order[0])
        assert removed[at : at + len(order)] == order
        fill(store, len(kept), 12)
    with found.open("x", "y") as store:
        assert store.findings == ()
        assert numbers(store) == list(range(12))


def test_records_behind_the_cut_of_a_foreign_store_are_kept_aside(spread: Spread) -> None:
    found = killed(spread, 12, "x", "y")
    (found.root / "config" / "durableFloor").unlink()
    with open(found.log("y", B), "r+b") as file:
        file.write(b"torn")
    behind = {base: found.log(name, base).read_bytes() for name, base in (("y", B), ("x", C), ("y", D))}
    with found.open("x", "y") as store:
        assert numbers(store) == [0, 1, 2]
        assert {
            int(path.name.partition(".")[0]): path.read_bytes() for path in (found.root / "quarantine").iterdir()
        } == behind


# ---- foreign files in the directories ---------------------------------------------------------------------------


@pytest.mark.parametrize("size_bytes", [0, 1, FILE_BYTES])
@pytest.mark.parametrize(("real", "base"), [("x", A), ("y", B), ("x", E)])
def test_twin_of_zeros_is_not_used_and_goes(spread: Spread, size_bytes: int, real: str, base: int) -> None:
    found = killed(spread, 13, "x", "y", flushed=13)
    twin = found.log("y" if real == "x" else "x", base)
    twin.write_bytes(bytes(size_bytes))
    with found.open("x", "y") as store:
        assert codes(store) == [("note", "twin_file")]
        assert store.findings[0].file == str(twin)
        assert str(found.log(real, base)) in store.findings[0].message
        assert numbers(store) == list(range(13))
        assert not twin.exists()
        fill(store, 13, 19)
    with found.open("x", "y") as store:
        assert store.findings == ()
        assert numbers(store) == list(range(19))


@pytest.mark.parametrize("sizes", [(0, 0), (0, FILE_BYTES), (FILE_BYTES, 0), (FILE_BYTES, FILE_BYTES), (5, FILE_BYTES)])
def test_twins_that_were_never_written_both_go(spread: Spread, sizes: tuple[int, int]) -> None:
    found = killed(spread, 6, "x", "y", flushed=6)
    for name, size_bytes in zip("xy", sizes, strict=True):
        found.log(name, C).write_bytes(bytes(size_bytes))
    with found.open("x", "y") as store:
        assert codes(store) == [("note", "twin_file")]
        assert found.placed() == {"x": [A], "y": [B]}
        fill(store, 6, 9)
    with found.open("x", "y") as store:
        assert store.findings == ()
        assert numbers(store) == list(range(9))


def test_twin_of_zeros_in_a_read_only_directory_stays(spread: Spread) -> None:
    found = killed(spread, 6, "x", "y", flushed=6)
    twin = found.log("y", A)
    twin.write_bytes(bytes(FILE_BYTES))
    for _ in range(2):
        with found.open("x", "y", read_only=("y",)) as store:
            assert codes(store) == [("note", "twin_file")]
            assert numbers(store) == list(range(6))
    assert twin.exists()


@pytest.mark.parametrize(("real", "twin", "base"), [("x", "y", A), ("y", "x", B), ("x", "y", E)])
def test_twins_that_both_hold_something_are_damage(spread: Spread, real: str, twin: str, base: int) -> None:
    found = killed(spread, 13, "x", "y", flushed=13)
    shutil.copy(found.log(real, base), found.log(twin, base))
    before = snapshot(found.parent)
    with found.open("x", "y") as store:
        assert codes(store) == [("damage", "twin_file")]
        assert store.findings[0].file == str(found.log("y", base))
        assert str(found.log("x", base)) in store.findings[0].message
        assert store.read_only_reason is not None
        assert store.put(message(13)).status is PutStatus.SERVICE_NOT_AVAILABLE
        assert numbers(store) == list(range(13))
    assert snapshot(found.parent) == before


def test_twin_that_ends_with_something_is_damage(spread: Spread) -> None:
    found = killed(spread, 6, "x", "y", flushed=6)
    found.log("y", A).write_bytes(bytes(3 << 20) + b"!")
    with found.open("x", "y") as store:
        assert codes(store) == [("damage", "twin_file")]
        assert numbers(store) == list(range(6))


def test_one_directory_under_two_names_is_damage_and_loses_nothing(spread: Spread) -> None:
    with spread.open("x") as store:
        fill(store, 0, 7)
    (spread.parent / "y").symlink_to(spread.parent / "x")
    with spread.open("x", "y") as store:
        assert {finding.code for finding in store.findings} == {"twin_file"}
        assert store.read_only_reason is not None
    with spread.open("x") as store:
        assert numbers(store) == list(range(7))


@pytest.mark.parametrize(
    ("named", "gone"),
    [(("x",), B), (("y",), C), (("z",), A), ((), A)],
    ids=["second", "first", "both", "all"],
)
def test_forgotten_directory_is_a_missing_file(spread: Spread, named: tuple[str, ...], gone: int) -> None:
    found = killed(spread, 14, "x", "y", flushed=14)
    before = snapshot(found.parent)
    with found.open(*named) as store:
        first = store.findings[0]
        assert (first.severity, first.code, first.offset) == ("damage", "missing_file", gone)
        where = str(found.parent / named[0]) if named else str(found.root / "commitlog")
        assert where in first.message
        assert f"{gone:020d}" in first.message
        assert "store_path_commit_log" in first.message
        assert store.put(message(14)).status is PutStatus.SERVICE_NOT_AVAILABLE
    assert snapshot(found.parent) == before
    with found.open("x", "y") as store:
        assert numbers(store) == list(range(14))


def test_missing_file_of_several_directories_names_them_all(spread: Spread) -> None:
    found = killed(spread, 14, "x", "y", flushed=14)
    found.log("x", C).unlink()
    with found.open("x", "y") as store:
        assert codes(store) == [("damage", "missing_file")]
        assert (store.findings[0].file, store.findings[0].offset) == (f"{C:020d}", C)
        assert f"{found.parent}/x, {found.parent}/y" in store.findings[0].message
        assert str(found.log("y", D)) in store.findings[0].message
        assert numbers(store) == [0, 1, 2, 3, 4, 5, 9, 10, 11, 12, 13]
    shutil.rmtree(found.parent / "y")
    with found.open("x", "y") as store:
        assert not (found.parent / "y").exists()
        assert {finding.code for finding in store.findings} == {"missing_file"}


def test_lost_disk_that_had_nothing_durable_is_a_new_disk(spread: Spread) -> None:
    found = killed(spread, 5, "x", "y", flushed=2)
    shutil.rmtree(found.parent / "y")
    with found.open("x", "y") as store:
        assert store.findings == ()
        assert numbers(store) == [0, 1, 2]
        fill(store, 3, 6)
        assert found.placed() == {"x": [A], "y": [B]}


def test_stray_short_and_misplaced_files_are_named_where_they_lie(spread: Spread) -> None:
    found = killed(spread, 9, "x", "y", flushed=9)
    (found.parent / "x" / "notes").touch()
    (found.parent / "y" / "lost+found").mkdir()
    with found.open("x", "y") as store:
        assert [(finding.code, finding.file) for finding in store.findings] == [
            ("stray_file", str(found.parent / "x" / "notes")),
            ("stray_file", str(found.parent / "y" / "lost+found")),
        ]
        assert store.read_only_reason is None
    found.log("y", 100).write_bytes(bytes(FILE_BYTES))
    with open(found.log("y", B), "r+b") as file:
        file.truncate(500)
    with found.open("x", "y") as store:
        assert {(finding.code, finding.file) for finding in store.findings if finding.severity == "damage"} == {
            ("misplaced_file", str(found.log("y", 100))),
            ("short_file", str(found.log("y", B))),
        }
        assert store.get(0).status is GetStatus.FOUND


def test_file_of_another_size_is_named_where_it_lies(spread: Spread) -> None:
    with spread.open("x", "y", read_only=("x",)) as store:
        fill(store, 0, 2)
    config = replace(spread_config(str(spread.parent / "x"), str(spread.parent / "y")), mapped_file_size_commit_log=512)
    with pytest.raises(WrongFileSize, match=str(spread.log("y", A))):
        MessageStore.open(spread.root, config, files=spread.files, clock=SetClock())


def test_empty_newest_file_is_removed_from_its_directory(spread: Spread) -> None:
    found = killed(spread, 3, "x", "y", flushed=3)
    found.log("y", B).touch()
    with found.open("x", "y") as store:
        assert store.findings == ()
        assert found.placed() == {"x": [A], "y": []}
        unlinked = found.files.calls.index(("unlink", str(found.log("y", B))))
        assert found.files.calls[unlinked + 1] == ("sync_directory", str(found.parent / "y"))


def test_files_loaded_in_the_order_of_their_paths_are_no_log(spread: Spread, monkeypatch: pytest.MonkeyPatch) -> None:
    """RMQ-B10 planted: the judges of this file would see it."""
    found = killed(spread, 14, "x", "y", flushed=14)
    adopt: Callable[..., None] = MappedFileQueue.adopt

    def by_path(queue: MappedFileQueue, path: str, *, writable: bool) -> None:
        adopt(queue, path, writable=writable)
        queue.mapped.sort(key=lambda mapped: mapped.path)

    monkeypatch.setattr(MappedFileQueue, "adopt", by_path)
    with found.open("x", "y") as store:
        assert numbers(store) != list(range(14)) or store.findings
