"""From whatever a directory holds to a prefix of what was appended, or to a named damage (contracts 1-3, 6, 7)."""

import errno
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from impl import codec
from impl.errors import BadDirectory, StoreError, WrongFileSize
from impl.loading import Finding
from impl.message import GetStatus, Message, PutResult, PutStatus
from impl.store import MessageStore
from tests.impl.support import MESSAGE, FaultyFiles, chain_of, log_bytes, open_store, snapshot

FILE_BYTES = 1024
BODY_BYTES = 200


def message(number: int, queue_id: int = 0) -> Message:
    return Message("T", f"{number:03d}".encode().ljust(BODY_BYTES, b"."), queue_id=queue_id)


@dataclass(frozen=True)
class Killed:
    """A store directory as a killed process left it, and what it had put: three records to a file."""

    directory: Path
    results: tuple[PutResult, ...]

    def log(self, base: int) -> Path:
        """Return a log file."""
        return self.directory / "commitlog" / f"{base:020d}"

    def overwrite(self, offset: int, data: bytes) -> None:
        """Damage the log at a physical offset."""
        base = offset // FILE_BYTES * FILE_BYTES
        with open(self.log(base), "r+b") as file:
            file.seek(offset - base)
            file.write(data)

    def forget_floor(self) -> None:
        """Make it look like a store that RocketMQ wrote."""
        (self.directory / "config" / "durableFloor").unlink()

    def exit_cleanly(self) -> None:
        """Make the exit look clean."""
        (self.directory / "abort").unlink()


@pytest.fixture
def killed(tmp_path: Path) -> Callable[..., Killed]:
    """Return a maker of killed stores with `puts` records of which the first `flushed` are on disk."""

    def make(puts: int, *, flushed: int = 0, trailer: bool = True) -> Killed:
        with open_store(tmp_path / "live", trailer=trailer) as store:
            results = []
            for number in range(puts):
                results.append(store.put(message(number)))
                if number + 1 == flushed:
                    store.flush()
            shutil.copytree(tmp_path / "live", tmp_path / "killed")
        return Killed(tmp_path / "killed", tuple(results))

    return make


def numbers(store: MessageStore) -> list[int]:
    """Return which messages the store serves, checking that each is served by its offset too."""
    found = []
    for stored in store.messages():
        again = store.get(stored.offset)
        assert again.message == stored
        found.append(int(stored.body[:3]))
    return found


def codes(store: MessageStore) -> list[tuple[str, str]]:
    return [(finding.severity, finding.code) for finding in store.findings]


def assert_zeros_behind_the_end(directory: Path, store: MessageStore) -> None:
    for name, data in log_bytes(directory).items():
        end = store.max_offset - int(name)
        assert not any(data[max(end, 0) :]), name


# ---- no damage ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("puts", [0, 1, 3, 4, 10])
@pytest.mark.parametrize("trailer", [True, False])
def test_killed_store_keeps_everything(killed: Callable[..., Killed], puts: int, trailer: bool) -> None:
    found = killed(puts, trailer=trailer)
    before = log_bytes(found.directory)
    with open_store(found.directory, trailer=trailer) as store:
        assert numbers(store) == list(range(puts))
        assert store.findings == ()
        assert store.flushed_offset == store.max_offset
        assert log_bytes(found.directory) == before
        store.check()


def test_what_is_recovered_is_made_durable_before_the_first_put(killed: Callable[..., Killed]) -> None:
    found = killed(7, flushed=3)
    files = FaultyFiles()
    with open_store(found.directory, files=files):
        synced = [path for verb, path in files.calls if verb == "sync" and "/commitlog/" in path]
        assert synced == [str(found.log(base)) for base in (0, 1024, 2048)]


def test_files_below_the_floor_need_no_second_sync(killed: Callable[..., Killed]) -> None:
    found = killed(7, flushed=7)
    files = FaultyFiles()
    with open_store(found.directory, files=files):
        synced = [path for verb, path in files.calls if verb == "sync" and "/commitlog/" in path]
        assert synced == [str(found.log(2048))]


def test_queue_offsets_go_on_where_they_were(killed: Callable[..., Killed]) -> None:
    found = killed(5)
    with open_store(found.directory) as store:
        assert store.put(message(5)).queue_offset == 5
        assert store.put(message(6, queue_id=1)).queue_offset == 0
    with open_store(found.directory) as store:
        assert store.put(message(7)).queue_offset == 6
        assert store.put(message(8, queue_id=1)).queue_offset == 1


def test_a_closed_file_stays_closed_though_its_follower_is_lost(killed: Callable[..., Killed]) -> None:
    """The blank survived, the file behind it did not: the next record begins a new file."""
    found = killed(4)
    found.log(1024).unlink()
    with open_store(found.directory) as store:
        assert numbers(store) == [0, 1, 2]
        assert store.max_offset == 1024
        assert store.findings == ()
        assert store.put(message(3)).offset == 1024
    with open_store(found.directory) as store:
        assert numbers(store) == [0, 1, 2, 3]


def test_a_file_made_ahead_of_need_goes(killed: Callable[..., Killed]) -> None:
    found = killed(2)
    found.log(1024).write_bytes(bytes(FILE_BYTES))
    with open_store(found.directory) as store:
        assert store.findings == ()
        assert store.put(message(2)).stored
        assert store.put(message(3)).offset == 1024
        assert numbers(store) == [0, 1, 2, 3]


def test_a_log_that_begins_later_keeps_its_offsets(killed: Callable[..., Killed]) -> None:
    found = killed(7, flushed=7)
    found.log(0).unlink()
    with open_store(found.directory) as store:
        assert store.min_offset == 1024
        assert numbers(store) == [3, 4, 5, 6]
        assert store.get(0).status is GetStatus.OFFSET_TOO_SMALL
        assert store.put(message(7)).queue_offset == 7
        store.check()


# ---- tears -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [0, 4, 30, 100, 250])
@pytest.mark.parametrize("torn", range(7))
def test_torn_record_is_cut_and_erased(killed: Callable[..., Killed], torn: int, at: int) -> None:
    found = killed(7)
    found.overwrite(found.results[torn].offset + at, b"\0" * 30 if at != 100 else b"\xff" * 30)
    with open_store(found.directory) as store:
        assert numbers(store) == list(range(torn))
        assert codes(store) == [("tear", "torn_tail")]
        finding = store.findings[0]
        assert finding.offset == (0 if torn == 0 else found.results[torn].offset)
        assert str(finding.offset) in finding.message
        assert "\n" not in finding.message
        assert_zeros_behind_the_end(found.directory, store)
        assert store.flushed_offset == store.max_offset
        assert store.put(message(500)).queue_offset == torn
    with open_store(found.directory) as store:
        assert numbers(store) == [*range(torn), 500]
        assert store.findings == ()


def test_erased_bytes_and_removed_files_are_durable_before_a_put(killed: Callable[..., Killed]) -> None:
    found = killed(7)
    found.overwrite(found.results[1].offset, bytes(300))
    files = FaultyFiles()
    with open_store(found.directory, files=files):
        steps = [
            (verb, Path(path).name) for verb, path in files.calls if "/commitlog" in path and verb[:3] in
            ("unl", "syn", "pwr")
        ]  # fmt: skip
    steps = steps[[verb for verb, _ in steps].index("unlink") :]
    assert steps == [
        ("unlink", "00000000000000002048"),
        ("sync_directory", "commitlog"),
        ("unlink", "00000000000000001024"),
        ("sync_directory", "commitlog"),
        ("pwrite", "00000000000000000000"),
        ("sync", "00000000000000000000"),
    ]


def test_cut_records_never_come_back(killed: Callable[..., Killed]) -> None:
    """Records of equal size appended over the cut would meet the old ones if these were still there (contract 3)."""
    found = killed(7)
    found.overwrite(found.results[1].offset, bytes(100))
    expected = [0]
    for generation in range(4):
        with open_store(found.directory) as store:
            assert numbers(store) == expected
            store.put(message(900 + generation))
            expected.append(900 + generation)


def test_tear_at_the_floor_is_a_tear_and_one_below_is_damage(killed: Callable[..., Killed]) -> None:
    found = killed(6, flushed=4)
    found.overwrite(found.results[4].offset + 90, b"torn")
    with open_store(found.directory) as store:
        assert codes(store) == [("tear", "torn_tail")]
        assert numbers(store) == [0, 1, 2, 3]


@pytest.mark.parametrize("verb", ["pwrite", "sync", "sync_directory", "unlink"])
@pytest.mark.parametrize("floor", [True, False])
def test_recovery_that_is_broken_off_leads_to_the_same_cut(
    killed: Callable[..., Killed], verb: str, floor: bool, tmp_path: Path
) -> None:
    found = killed(10)
    found.overwrite(found.results[1].offset + 90, b"torn")
    if not floor:
        found.forget_floor()
    whole = tmp_path / "whole"
    shutil.copytree(found.directory, whole)
    with open_store(whole) as store:
        expected = log_bytes(whole)
        assert numbers(store) == [0]
    for skip in count():
        attempt = tmp_path / f"attempt{skip}"
        shutil.copytree(found.directory, attempt)
        files = FaultyFiles()
        files.fail(verb, skip=skip)
        try:
            open_store(attempt, files=files).close()
            break
        except BadDirectory as error:
            refused = chain_of(error)
        assert "mend the disk" in refused
        with open_store(attempt) as store:
            assert numbers(store) == [0]
            assert log_bytes(attempt) == expected
            assert store.read_only_reason is None
    assert skip > 0


def test_recovering_twice_is_recovering_once(killed: Callable[..., Killed]) -> None:
    found = killed(7, flushed=2)
    found.overwrite(found.results[4].offset + 90, b"torn")
    open_store(found.directory).close()
    once = log_bytes(found.directory)
    (found.directory / "abort").touch()
    with open_store(found.directory) as store:
        assert store.findings == ()
    assert log_bytes(found.directory) == once


# ---- damage ------------------------------------------------------------------------------------------------------


def assert_read_only(found: Killed, *, served: list[int], code: str, offset: int) -> Finding:
    """Open a damaged store twice: it changes nothing, serves what verifies and refuses the rest."""
    before = snapshot(found.directory)
    damages = []
    for _ in range(2):
        with open_store(found.directory) as store:
            assert store.read_only_reason is not None
            assert "\n" not in store.read_only_reason
            assert store.put(message(900)) == PutResult(PutStatus.SERVICE_NOT_AVAILABLE)
            assert not store.flush().durable
            damages = [finding for finding in store.findings if finding.severity == "damage"]
            assert (damages[0].code, damages[0].offset) == (code, offset)
            assert store.read_only_reason == damages[0].message
            assert damages[0].file in damages[0].message
            assert numbers(store) == served
        assert snapshot(found.directory) == before
    return damages[0]


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("bad", [0, 2, 3, 6])
def test_damage_below_the_floor_is_read_only(killed: Callable[..., Killed], bad: int, clean: bool) -> None:
    found = killed(8, flushed=7)
    if clean:
        found.exit_cleanly()
    found.overwrite(found.results[bad].offset + 90, b"rot")
    served = [number for number in range(8) if number != bad]
    finding = assert_read_only(found, served=served, code="damaged_record", offset=found.results[bad].offset)
    assert finding.file == str(found.log(found.results[bad].offset // FILE_BYTES * FILE_BYTES))


def test_damaged_record_is_not_served(killed: Callable[..., Killed]) -> None:
    found = killed(3, flushed=3)
    found.overwrite(found.results[1].offset + 90, b"rot")
    with open_store(found.directory) as store:
        assert store.get(found.results[0].offset).status is GetStatus.FOUND
        assert store.get(found.results[1].offset).status is GetStatus.OFFSET_FOUND_NULL
        assert store.get(found.results[2].offset).status is GetStatus.FOUND


@pytest.mark.parametrize("floor", [True, False])
def test_bytes_behind_the_end_after_a_clean_exit_are_damage(killed: Callable[..., Killed], floor: bool) -> None:
    found = killed(5, flushed=5)
    found.exit_cleanly()
    if not floor:
        found.forget_floor()
    end = found.results[-1].offset + found.results[-1].size_bytes
    found.overwrite(end + 17, b"rot")
    assert_read_only(found, served=[0, 1, 2, 3, 4], code="damaged_record", offset=end)


def test_damage_after_a_clean_exit_without_a_floor(killed: Callable[..., Killed]) -> None:
    found = killed(5)
    found.exit_cleanly()
    found.forget_floor()
    found.overwrite(found.results[1].offset + 90, b"rot")
    assert_read_only(found, served=[0, 2, 3, 4], code="damaged_record", offset=found.results[1].offset)


def test_zeros_below_the_floor_are_damage(killed: Callable[..., Killed]) -> None:
    found = killed(2, flushed=2)
    found.overwrite(0, bytes(FILE_BYTES))
    assert_read_only(found, served=[], code="damaged_record", offset=0)


def test_gap_is_damage_and_what_lies_behind_it_is_served(killed: Callable[..., Killed]) -> None:
    found = killed(12)
    found.log(1024).unlink()
    finding = assert_read_only(found, served=[0, 1, 2, *range(6, 12)], code="missing_file", offset=1024)
    assert str(found.log(1024)) in finding.message


def test_missing_last_file_below_the_floor_is_damage(killed: Callable[..., Killed]) -> None:
    found = killed(7, flushed=7)
    found.log(2048).unlink()
    assert_read_only(found, served=[0, 1, 2, 3, 4, 5], code="missing_file", offset=2048)


def test_all_files_missing_below_the_floor_is_damage(killed: Callable[..., Killed]) -> None:
    found = killed(7, flushed=7)
    shutil.rmtree(found.directory / "commitlog")
    assert_read_only(found, served=[], code="missing_file", offset=0)


@pytest.mark.parametrize(("base", "size_bytes"), [(2048, 500), (0, 300), (1024, 1023)])
def test_short_file_is_damage(killed: Callable[..., Killed], base: int, size_bytes: int) -> None:
    found = killed(9)
    with open(found.log(base), "r+b") as file:
        file.truncate(size_bytes)
    lost = [n for n, put in enumerate(found.results) if base + size_bytes < put.offset + put.size_bytes + 8 and
            put.offset < base + FILE_BYTES]  # fmt: skip
    served = [number for number in range(9) if number not in lost]
    finding = assert_read_only(found, served=served, code="short_file", offset=base + size_bytes)
    assert f"{size_bytes} bytes instead of {FILE_BYTES}" in finding.message


def test_empty_file_below_the_floor_is_damage(killed: Callable[..., Killed]) -> None:
    found = killed(7, flushed=7)
    found.log(2048).write_bytes(b"")
    assert_read_only(found, served=[0, 1, 2, 3, 4, 5], code="short_file", offset=2048)


# ---- leftovers ---------------------------------------------------------------------------------------------------


def test_empty_newest_file_is_removed(killed: Callable[..., Killed]) -> None:
    found = killed(3, flushed=3)
    found.log(1024).touch()
    with open_store(found.directory) as store:
        assert store.findings == ()
        assert not found.log(1024).exists()
        assert numbers(store) == [0, 1, 2]
        assert store.put(message(3)).offset == 1024


def test_empty_only_file_is_removed(killed: Callable[..., Killed]) -> None:
    found = killed(0)
    found.log(0).touch()
    with open_store(found.directory) as store:
        assert store.put(message(0)).offset == 0
        assert numbers(store) == [0]


@pytest.mark.parametrize("name", ["notes.txt", "0", "x" * 20, "٠" * 20, "00000000000000001024.bak"])
@pytest.mark.parametrize("directory", [True, False])
def test_stray_entry_is_ignored_with_a_finding(killed: Callable[..., Killed], name: str, directory: bool) -> None:
    found = killed(2, flushed=2)
    stray = found.directory / "commitlog" / name
    if directory:
        stray.mkdir()
    else:
        stray.write_bytes(b"mine")
    with open_store(found.directory) as store:
        assert store.findings == (
            Finding("note", "stray_file", str(stray), -1, f"{stray} is no commit log file: ignored"),
        )
        assert store.read_only_reason is None
        assert store.put(message(2)).stored
        assert numbers(store) == [0, 1, 2]
    assert stray.is_dir() if directory else stray.read_bytes() == b"mine"


@pytest.mark.parametrize("left", ["abort", "config", "commitlog", "checkpoint", "lock"])
def test_an_open_that_was_broken_off_is_no_obstacle(tmp_path: Path, left: str) -> None:
    if "." in left or left in ("config", "commitlog"):
        (tmp_path / left).mkdir()
    else:
        (tmp_path / left).touch()
    with open_store(tmp_path) as store:
        assert store.findings == ()
        assert store.put(message(0)).stored
    with open_store(tmp_path) as store:
        assert numbers(store) == [0]


@pytest.mark.parametrize("data", [b"", b"\0" * 10, b"\xff" * 4096, b"\0" * 4096])
def test_a_bad_checkpoint_is_no_obstacle(killed: Callable[..., Killed], data: bytes) -> None:
    found = killed(5)
    (found.directory / "checkpoint").write_bytes(data)
    with open_store(found.directory) as store:
        assert numbers(store) == [0, 1, 2, 3, 4]
        assert store.put(message(5)).stored


# ---- another file size -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("floor", [True, False])
@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("file_bytes", [512, 2048, 1 << 20])
def test_other_file_size_is_refused_naming_both(
    killed: Callable[..., Killed], floor: bool, clean: bool, file_bytes: int
) -> None:
    found = killed(7, flushed=7)
    if not floor:
        found.forget_floor()
    if clean:
        found.exit_cleanly()
    before = snapshot(found.directory)
    with pytest.raises(WrongFileSize) as refused:
        open_store(found.directory, file_bytes=file_bytes)
    text = chain_of(refused.value)
    assert "1024" in text
    assert str(file_bytes) in text
    assert str(found.directory) in text
    assert (refused.value.found_bytes, refused.value.configured_bytes) == (1024, file_bytes)
    assert isinstance(refused.value, StoreError)
    assert snapshot(found.directory) == before
    open_store(found.directory).close()


# ---- quarantine --------------------------------------------------------------------------------------------------


def quarantined(found: Killed) -> dict[str, bytes]:
    directory = found.directory / "quarantine"
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())} if directory.exists() else {}


def test_valid_records_behind_a_cut_are_kept_aside_without_a_floor(killed: Callable[..., Killed]) -> None:
    found = killed(7)
    found.forget_floor()
    found.overwrite(found.results[1].offset + 90, b"torn")
    before = log_bytes(found.directory)
    cut = found.results[1].offset
    with open_store(found.directory) as store:
        assert numbers(store) == [0]
        assert codes(store) == [("tear", "torn_tail")]
    names = sorted(before)
    assert quarantined(found) == {
        f"{cut:020d}.0": before[names[0]][cut:],
        f"{names[1]}.0": before[names[1]],
        f"{names[2]}.0": before[names[2]],
    }


def test_the_copies_are_durable_before_anything_is_cut(killed: Callable[..., Killed]) -> None:
    found = killed(7)
    found.forget_floor()
    found.overwrite(found.results[1].offset + 90, b"torn")
    files = FaultyFiles()
    open_store(found.directory, files=files).close()
    last_copy = max(
        n for n, call in enumerate(files.calls) if call == ("sync_directory", f"{found.directory}/quarantine")
    )
    first_cut = files.calls.index(("unlink", str(found.log(2048))))
    assert last_copy < first_cut
    synced = [call for call in files.calls[:last_copy] if call == ("sync", f"{found.directory}/quarantine/unfinished")]
    assert len(synced) == len(quarantined(found)) == 3


def test_nothing_is_kept_aside_with_a_floor_or_without_valid_records(killed: Callable[..., Killed]) -> None:
    found = killed(7)
    found.overwrite(found.results[1].offset + 90, b"torn")
    open_store(found.directory).close()
    assert quarantined(found) == {}


def test_a_tear_in_the_last_record_needs_no_quarantine(killed: Callable[..., Killed]) -> None:
    found = killed(2)
    found.forget_floor()
    found.overwrite(found.results[1].offset + 90, b"torn")
    with open_store(found.directory) as store:
        assert numbers(store) == [0]
    assert quarantined(found) == {}


def test_a_copy_is_never_replaced(killed: Callable[..., Killed]) -> None:
    found = killed(3)
    found.forget_floor()
    found.overwrite(found.results[1].offset + 90, b"torn")
    cut = found.results[1].offset
    (found.directory / "quarantine").mkdir()
    (found.directory / "quarantine" / f"{cut:020d}.0").write_bytes(b"first copy")
    (found.directory / "quarantine" / "unfinished").write_bytes(b"half a copy")
    before = log_bytes(found.directory)[f"{0:020d}"]
    open_store(found.directory).close()
    assert quarantined(found) == {f"{cut:020d}.0": b"first copy", f"{cut:020d}.1": before[cut:]}


def test_no_room_for_the_copies_means_nothing_is_cut(killed: Callable[..., Killed]) -> None:
    found = killed(7)
    found.forget_floor()
    found.overwrite(found.results[1].offset + 90, b"torn")
    before = log_bytes(found.directory)
    files = FaultyFiles()
    files.fail("pwrite", code=errno.ENOSPC, part="/quarantine/")
    with pytest.raises(BadDirectory, match="No space left"):
        open_store(found.directory, files=files)
    assert log_bytes(found.directory) == before
    with open_store(found.directory) as store:
        assert numbers(store) == [0]


# ---- stores that others made, or that were put together by hand ------------------------------------------------


def record(body: bytes, *, offset: int, queue_offset: int = 0) -> bytes:
    """Return the bytes of a record of topic T."""
    made = codec.encode_record(Message("T", body), now_ms=1, store_host=("127.0.0.1", 1), trailer=False)
    assert isinstance(made, bytearray)
    codec.place_record(made, queue_offset=queue_offset, physical_offset=offset, store_timestamp=1, trailer=False)
    return bytes(made)


def test_records_behind_a_blank_are_not_served(tmp_path: Path) -> None:
    """RocketMQ does not erase what it cuts: old records may stand behind the blank of a closed file (contract 3)."""
    stale_at = 400
    first = record(b"kept", offset=0)
    blank = codec.encode_blank(512 - len(first))
    stale = record(b"cut long ago", offset=stale_at, queue_offset=3)
    head = (first + blank).ljust(stale_at, b"\0")
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / f"{0:020d}").write_bytes((head + stale[:104]).ljust(512, b"\0"))
    assert len(stale) <= 104
    second = record(b"second", offset=512, queue_offset=1)
    (tmp_path / "commitlog" / f"{512:020d}").write_bytes(second.ljust(512, b"\0"))
    with open_store(tmp_path, file_bytes=512, trailer=False) as store:
        assert [stored.body for stored in store.messages()] == [b"kept", b"second"]
        assert store.get(stale_at).status is GetStatus.OFFSET_FOUND_NULL


def test_another_file_size_is_refused_without_writing(tmp_path: Path) -> None:
    """A directory without a lock file got one before it was refused."""
    with open_store(tmp_path) as store:
        store.put(MESSAGE)
    (tmp_path / "lock").unlink()
    before = snapshot(tmp_path)
    with pytest.raises(WrongFileSize):
        open_store(tmp_path, file_bytes=2048)
    assert snapshot(tmp_path) == before


def test_a_damaged_store_that_begins_later_passes_its_own_check(tmp_path: Path) -> None:
    """The flushed end of a read-only store was 0, below its first retained offset (contract 9)."""
    with open_store(tmp_path / "live") as store:
        for _ in range(20):
            store.put(MESSAGE)
        store.flush()
        shutil.copytree(tmp_path / "live", tmp_path / "copy")
    logs = sorted((tmp_path / "copy" / "commitlog").iterdir())
    logs[0].unlink()
    with open(logs[-1], "r+b") as file:
        file.write(b"\xff" * 100)
    with open_store(tmp_path / "copy") as store:
        assert store.read_only_reason is not None
        store.check()


def test_a_file_that_can_be_no_part_of_a_log_does_not_end_in_an_exception(tmp_path: Path) -> None:
    """Its twenty digits are beyond 64 bits: the next put raised struct.error."""
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / ("9" * 20)).write_bytes(bytes(1024))
    with open_store(tmp_path) as store:
        assert store.put(MESSAGE).status in set(PutStatus)


def test_a_name_that_is_no_multiple_of_the_file_size_is_not_taken_for_a_log_file(tmp_path: Path) -> None:
    """A file of zeros named 100 was adopted and written to; RocketMQ finds nothing in such a log."""
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / f"{100:020d}").write_bytes(bytes(1024))
    with open_store(tmp_path) as store:
        store.put(MESSAGE)
        assert store.findings
        assert not any(log_bytes(tmp_path)[f"{100:020d}"])
