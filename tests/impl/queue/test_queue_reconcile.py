"""Test the proof of a queue at an open: equal units stay, and all others are rebuilt."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.impl.queues import EMPTY, PREFILL, bytes_in, queue_of, reconciled, run_of, told_units
from tests.support.impl.stores import FaultyFiles, snapshot
from tornpage.impl.message.dispatching import QueueRun
from tornpage.impl.queue.units import Unit

DIRECTORY = "consumequeue/TopicTest/3"


def stored(root: Path, *runs: QueueRun, ext: bool = False) -> dict[str, bytes | None]:
    """Leave a queue with these runs."""
    queue = queue_of(root, ext_file_bytes=100 if ext else 0)
    for run in runs:
        queue.append(run)
    queue.flush()
    queue.close()
    return snapshot(root)


def file(root: Path, base: int) -> Path:
    return root / DIRECTORY / f"{base:020d}"


def write(root: Path, base: int, position: int, data: bytes) -> None:
    """Overwrite bytes of a queue file."""
    with file(root, base).open("r+b") as opened:
        opened.seek(position)
        opened.write(data)


@pytest.mark.parametrize("clean_exit", [False, True])
@pytest.mark.parametrize("first", [0, 3, 5, 13])
@pytest.mark.parametrize("step", [1, 4, 20])
def test_queue_that_is_right_stays_byte_for_byte(tmp_path: Path, first: int, step: int, clean_exit: bool) -> None:
    before = stored(tmp_path, run_of(first, 17))
    queue = queue_of(tmp_path, clean_exit=clean_exit)
    runs = [run_of(n, min(step, first + 17 - n)) for n in range(first, first + 17, step)]
    assert not reconciled(queue, runs, log_min=first * 100)
    assert (queue.min_offset, queue.max_offset, queue.max_physic_offset) == (first, first + 17, first * 100 + 1699)
    assert queue.findings == ()
    assert snapshot(tmp_path) == before
    queue.append(run_of(first + 17))
    assert queue.unit(first + 17) == Unit(first * 100 + 1700, 99, 7)


def zeroed_head(root: Path) -> None:
    write(root, 0, 0, bytes(100))


def zeroed_middle(root: Path) -> None:
    write(root, 100, 0, bytes(100))


def zeroed_tail(root: Path) -> None:
    write(root, 300, 0, bytes(100))


def zeroed_all(root: Path) -> None:
    for base in (0, 100, 200, 300):
        write(root, base, 0, bytes(100))


def lost_head(root: Path) -> None:
    file(root, 0).unlink()


def lost_middle(root: Path) -> None:
    file(root, 200).unlink()


def lost_tail(root: Path) -> None:
    file(root, 300).unlink()


def lost_all(root: Path) -> None:
    for base in (0, 100, 200, 300):
        file(root, base).unlink()


def lost_directory(root: Path) -> None:
    lost_all(root)
    (root / DIRECTORY).rmdir()


def short_head(root: Path) -> None:
    file(root, 0).write_bytes(b"x" * 60)


def short_middle(root: Path) -> None:
    file(root, 100).write_bytes(b"")


def long_tail(root: Path) -> None:
    file(root, 300).write_bytes(bytes(200))


def torn_unit(root: Path) -> None:
    """A lost page leaves such a unit: it has offset and size, and no tags code (hole C2)."""
    write(root, 300, 12, bytes(8))


def torn_in_the_middle(root: Path) -> None:
    write(root, 100, 48, bytes(8))


def stale_tail(root: Path) -> None:
    """These units belong to records that the log has lost (hole C1)."""
    write(root, 300, 40, run_of(50, 3, step=999).units)


def bogus_zero_offset(root: Path) -> None:
    """The unit is zero except for its size (hole C7)."""
    write(root, 300, 40, told_units([(0, 0, 5)]))


def stale_behind_zeros(root: Path) -> None:
    write(root, 300, 80, run_of(50, 1).units)


def stale_file(root: Path) -> None:
    file(root, 400).write_bytes(run_of(20, 5, step=77).units)


def wrong_unit(root: Path) -> None:
    write(root, 200, 20, run_of(3, step=333).units)


def prefill_instead(root: Path) -> None:
    write(root, 0, 0, PREFILL * 2)


def far_file(root: Path) -> None:
    file(root, 700).write_bytes(bytes(100))


def foreign_names(root: Path) -> None:
    (root / DIRECTORY / f"{450:020d}").write_bytes(bytes(100))
    (root / DIRECTORY / "notes").write_text("")


DAMAGES = [
    zeroed_head, zeroed_middle, zeroed_tail, zeroed_all, lost_head, lost_middle, lost_tail, lost_all, lost_directory,
    short_head, short_middle, long_tail, torn_unit, torn_in_the_middle, stale_tail, bogus_zero_offset,
    stale_behind_zeros, stale_file, wrong_unit, prefill_instead, far_file, foreign_names,
]  # fmt: skip


@pytest.mark.parametrize("step", [1, 3, 17])
@pytest.mark.parametrize("clean_exit", [False, True])
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damaged_queue_is_made_anew_from_the_log(
    tmp_path: Path, damage: Callable[[Path], None], clean_exit: bool, step: int
) -> None:
    before = stored(tmp_path, run_of(0, 17))
    damage(tmp_path)
    queue = queue_of(tmp_path, clean_exit=clean_exit)
    reconciled(queue, [run_of(n, min(step, 17 - n)) for n in range(0, 17, step)])
    assert (queue.min_offset, queue.max_offset, queue.max_physic_offset) == (0, 17, 1699)
    assert list(queue.units(0, 100)) == [Unit(n * 100, 99, 7) for n in range(17)]
    found = {finding.code for finding in queue.findings}
    assert all(finding.severity == "note" for finding in queue.findings)
    assert not clean_exit or found or damage is far_file
    queue.flush()
    queue.close()
    (tmp_path / DIRECTORY / "notes").unlink(missing_ok=True)
    assert snapshot(tmp_path) == before
    again = queue_of(tmp_path)
    assert not reconciled(again, [run_of(0, 17)])
    assert again.findings == ()


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_in_front_of_the_log_costs_no_message(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    """The log begins with number 7, in the second file of the queue."""
    stored(tmp_path, run_of(0, 17))
    damage(tmp_path)
    queue = queue_of(tmp_path)
    reconciled(queue, [run_of(n) for n in range(7, 17)], log_min=700)
    assert (queue.min_offset, queue.max_offset) == (7, 17)
    assert list(queue.units(7, 100)) == [Unit(n * 100, 99, 7) for n in range(7, 17)]
    assert queue.unit(6) is None
    data = b"".join(bytes_in(tmp_path).values())
    assert data.endswith(run_of(7, 10).units + 3 * EMPTY)


def test_units_of_expired_messages_stay(tmp_path: Path) -> None:
    before = stored(tmp_path, run_of(0, 17))
    queue = queue_of(tmp_path)
    assert not reconciled(queue, [run_of(9, 8)], log_min=850)
    assert (queue.min_offset, queue.max_offset) == (9, 17)
    assert snapshot(tmp_path) == before


def test_minimum_reaches_what_was_not_proved_and_lies_in_the_log(tmp_path: Path) -> None:
    """A recovery that begins after the first message proves the end of the queue only."""
    stored(tmp_path, run_of(0, 17))
    queue = queue_of(tmp_path)
    reconciled(queue, [run_of(9, 8)], log_min=450)
    assert (queue.min_offset, queue.max_offset) == (5, 17)


@pytest.mark.parametrize("log_min", [0, 50, 850, 1699, 1700, 5000])
def test_queue_without_surviving_messages_keeps_what_expired(tmp_path: Path, log_min: int) -> None:
    stored(tmp_path, run_of(0, 17))
    queue = queue_of(tmp_path)
    expired = min((log_min + 1) // 100, 17)
    assert reconciled(queue, [], log_min=log_min) == (expired < 17)
    assert (queue.min_offset, queue.max_offset) == (expired, expired)
    assert queue.max_physic_offset == expired * 100 - 1
    assert list(queue.units(expired, 10)) == []
    assert queue.is_empty == (expired == 0)
    if expired:
        queue.append(run_of(expired, step=200))
        assert queue.unit(expired) == Unit(expired * 200, 199, 7)
        assert queue.min_offset == expired


def test_queue_of_prefill_alone_keeps_its_place(tmp_path: Path) -> None:
    """RocketMQ takes 2 GiB for its end and dispatches no message below that (hole C5)."""
    stored(tmp_path, run_of(8, 1))
    write(tmp_path, 100, 60, EMPTY)
    queue = queue_of(tmp_path)
    assert not reconciled(queue, [], log_min=0)
    assert (queue.min_offset, queue.max_offset, queue.max_physic_offset) == (8, 8, -1)
    queue.append(run_of(8))
    assert queue.unit(8) == Unit(800, 99, 7)


@pytest.mark.parametrize(("first", "expected"), [(3, 3), (7, 7), (30, 30)])
def test_queue_begins_anew_where_the_log_does(tmp_path: Path, first: int, expected: int) -> None:
    stored(tmp_path, run_of(8, 4))
    queue = queue_of(tmp_path)
    reconciled(queue, [run_of(first, 20)], log_min=first * 100)
    assert (queue.min_offset, queue.max_offset) == (expected, first + 20)
    assert list(queue.units(first, 100)) == [Unit(n * 100, 99, 7) for n in range(first, first + 20)]
    assert queue.unit(first - 1) is None


def test_gaps_and_repeats_of_a_log_are_the_same_every_time(tmp_path: Path) -> None:
    runs = [run_of(2, 3), run_of(6, 2), run_of(0, 5, step=1000), run_of(8, 1)]
    before: dict[str, bytes | None] = {}
    for _ in range(3):
        queue = queue_of(tmp_path)
        assert not reconciled(queue, runs)
        assert [unit.offset for unit in queue.units(2, 10)] == [200, 300, 400, 0, 600, 700, 800]
        assert sorted(finding.code for finding in queue.findings) == ["queue_gap"] + ["repeated_queue_offset"] * 5
        queue.close()
        before = before or snapshot(tmp_path)
        assert snapshot(tmp_path) == before


def test_what_a_clean_exit_should_have_left_is_named(tmp_path: Path) -> None:
    stored(tmp_path, run_of(0, 4))
    for clean_exit, expected in ((False, []), (True, ["queue_rebuilt"])):
        queue = queue_of(tmp_path, clean_exit=clean_exit)
        reconciled(queue, [run_of(0, 6 + clean_exit)])
        assert [finding.code for finding in queue.findings] == expected
        queue.close()


def test_erased_units_are_durably_zero_after_a_flush(tmp_path: Path) -> None:
    stored(tmp_path, run_of(0, 17))
    files = FaultyFiles()
    queue = queue_of(tmp_path, files=files, clean_exit=True)
    files.calls.clear()
    assert reconciled(queue, [run_of(0, 7)])
    assert [finding.code for finding in queue.findings] == ["queue_rebuilt"]
    queue.flush()
    assert [path[-3:] for verb, path in files.calls if verb == "unlink"] == ["300", "200"]
    assert [path[-3:] for verb, path in files.calls if verb == "sync"] == ["100"]
    assert (f"{tmp_path}/{DIRECTORY}") in [path for verb, path in files.calls if verb == "sync_directory"]
    assert bytes_in(tmp_path) == {"0000": run_of(0, 5).units, "0100": run_of(5, 2).units + 3 * EMPTY}


def test_read_only_queue_shows_what_is_there_and_changes_nothing(tmp_path: Path) -> None:
    stored(tmp_path, run_of(3, 14))
    stale_behind_zeros(tmp_path)
    before = snapshot(tmp_path)
    queue = queue_of(tmp_path, writable=False)
    assert (queue.min_offset, queue.max_offset, queue.max_physic_offset) == (3, 17, 1699)
    queue.correct_min_offset(500)
    assert list(queue.units(5, 2)) == [Unit(500, 99, 7), Unit(600, 99, 7)]
    queue.check()
    queue.close()
    assert snapshot(tmp_path) == before


# ---- with an extension ---------------------------------------------------------------------------------------------


def test_extension_that_is_right_stays_after_a_clean_exit(tmp_path: Path) -> None:
    before = stored(tmp_path, run_of(0, 10, ext=b"bits"), run_of(10, 3), ext=True)
    queue = queue_of(tmp_path, ext_file_bytes=100, clean_exit=True, bit_maps=True)
    assert not reconciled(queue, [run_of(0, 4, ext=b"bits"), run_of(4, 6, ext=b"bits"), run_of(10, 3)])
    assert snapshot(tmp_path) == before
    assert queue.findings == ()


@pytest.mark.parametrize("clean_exit", [False, True])
def test_extension_without_its_bit_maps_is_made_anew_after_an_unclean_exit(tmp_path: Path, clean_exit: bool) -> None:
    before = stored(tmp_path, run_of(0, 10, ext=b"bits"), ext=True)
    queue = queue_of(tmp_path, ext_file_bytes=100, clean_exit=clean_exit)
    assert reconciled(queue, [run_of(0, 10, ext=b"")]) != clean_exit
    assert (snapshot(tmp_path) == before) == clean_exit
    assert queue.ext is not None
    maps = {getattr(queue.ext.get(unit.tags_code), "bit_map", None) for unit in queue.units(0, 10)}
    assert maps == ({b"bits"} if clean_exit else {b""})


@pytest.mark.parametrize("clean_exit", [False, True])
@pytest.mark.parametrize(
    "damage", ["lost", "head", "middle", "zeroed", "other code", "other time", "other map", "behind", "swapped"]
)
def test_damaged_extension_is_made_anew(tmp_path: Path, damage: str, clean_exit: bool) -> None:
    before = stored(tmp_path, run_of(0, 10, ext=b"bits"), ext=True)
    directory = tmp_path / "consumequeue_ext/TopicTest/3"
    first = directory / f"{0:020d}"
    data = bytearray(first.read_bytes())
    if damage == "lost":
        for path in directory.iterdir():
            path.unlink()
    elif damage == "head":
        first.unlink()
    elif damage == "middle":
        (directory / f"{100:020d}").unlink()
    elif damage == "behind":
        path = directory / f"{200:020d}"
        path.write_bytes(path.read_bytes()[:60] + b"stale".ljust(40, b"\0"))
    elif damage == "swapped":
        units = bytes_in(tmp_path)["0000"]
        write(tmp_path, 0, 12, units[32:40])
    else:
        at = {"zeroed": (0, bytes(100)), "other code": (9, b"x"), "other time": (17, b"x"), "other map": (20, b"x")}
        position, new = at[damage]
        data[position : position + len(new)] = new
        first.write_bytes(data)
    queue = queue_of(tmp_path, ext_file_bytes=100, clean_exit=clean_exit, bit_maps=True)
    assert reconciled(queue, [run_of(0, 10, ext=b"bits")]) or damage in ("lost", "head")
    assert "queue_rebuilt" in {finding.code for finding in queue.findings} or not clean_exit
    queue.close()
    assert snapshot(tmp_path) == before


def test_extension_is_cut_with_its_queue(tmp_path: Path) -> None:
    """RocketMQ leaves it, and addresses dangle (hole C17)."""
    stored(tmp_path, run_of(0, 10, ext=b"bits"), ext=True)
    queue = queue_of(tmp_path, ext_file_bytes=100, clean_exit=True, bit_maps=True)
    assert reconciled(queue, [run_of(0, 6, ext=b"bits")])
    queue.append(run_of(6, 2, ext=b"more"))
    queue.close()
    other = tmp_path / "other"
    other.mkdir()
    stored(other, run_of(0, 6, ext=b"bits"), run_of(6, 2, ext=b"more"), ext=True)
    assert bytes_in(tmp_path) == bytes_in(other)
    name = "consumequeue_ext/TopicTest/3"
    assert bytes_in(tmp_path, name) == bytes_in(other, name)


@pytest.mark.parametrize("then", [True, False])
def test_extension_may_be_switched_on_and_off(tmp_path: Path, then: bool) -> None:
    stored(tmp_path, run_of(0, 7, ext=None if then else b"bits"), ext=True)
    queue = queue_of(tmp_path, ext_file_bytes=100 if then else 0, clean_exit=True)
    reconciled(queue, [run_of(0, 7, ext=b"bits" if then else None)])
    queue.append(run_of(7, ext=b"bits" if then else None))
    assert [unit.tags_code < 0 for unit in queue.units(0, 10)] == [False] * 7 + [then]


def test_disk_that_refuses_while_a_queue_is_proved(tmp_path: Path) -> None:
    stored(tmp_path, run_of(0, 4))
    files = FaultyFiles()
    queue = queue_of(tmp_path, files=files)
    files.fail("allocate", times=1)
    with pytest.raises(OSError, match="Input/output"):
        queue.reconcile(run_of(0, 12))
    queue.end_reconcile(0)
    queue.check()
    queue.append(run_of(0, 12))
    assert list(queue.units(0, 100)) == [Unit(n * 100, 99, 7) for n in range(12)]
    queue.check()


@pytest.mark.parametrize("seed", range(60))
def test_whatever_lies_there_a_queue_is_what_the_log_says(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    written, first, log_end = chance.randrange(1, 40), chance.randrange(30), chance.randrange(1, 60)
    stored(tmp_path, run_of(chance.choice([0, first]), written))
    paths = sorted((tmp_path / DIRECTORY).iterdir())
    for _ in range(chance.randrange(4)):
        path = chance.choice(paths)
        data = bytearray(path.read_bytes() if path.exists() else bytes(100))
        start = chance.randrange(100)
        data[start : start + 30] = chance.choice([bytes(30), chance.randbytes(30), PREFILL + PREFILL[:10]])
        if chance.random() < 0.3:
            path.unlink(missing_ok=True)
        else:
            path.write_bytes(data[: chance.choice([100, 100, 40])])
    numbers = range(first, first + log_end)
    runs = [run_of(n, min(3, numbers.stop - n)) for n in numbers[::3]]
    for _ in range(2):
        queue = queue_of(tmp_path, clean_exit=chance.random() < 0.5)
        reconciled(queue, runs, log_min=first * 100)
        assert (queue.min_offset, queue.max_offset) == (first, numbers.stop)
        assert list(queue.units(first, 100)) == [Unit(n * 100, 99, 7) for n in numbers]
        queue.close()
        tail = b"".join(bytes_in(tmp_path).values())
        assert tail.endswith(runs[-1].units + EMPTY * (-numbers.stop % 5))
    assert queue.findings == ()


def with_a_gap(root: Path) -> list[str]:
    """Leave units 0 to 4, and 10 to 12 after a missing file; return the files of the queue."""
    queue = queue_of(root)
    queue.append(run_of(0, 13))
    queue.close()
    (root / "consumequeue/TopicTest/3" / f"{100:020d}").unlink()
    return list(bytes_in(root))


@pytest.mark.parametrize(
    ("log_min", "bounds", "names"),
    [
        (0, (0, 0), []),  # no part of it was ever before the begin of the log
        (400, (4, 4), ["0000"]),
        (1000, (5, 5), ["0000"]),  # and not after the gap, where nothing is before the begin of the log
        (1200, (12, 12), ["0200"]),
        (1300, (13, 13), ["0200"]),
    ],
)
def test_the_newest_files_without_a_gap_that_know_an_expired_message_say_where_numbers_go_on(
    tmp_path: Path, log_min: int, bounds: tuple[int, int], names: list[str]
) -> None:
    assert with_a_gap(tmp_path) == ["0000", "0200"]
    queue = queue_of(tmp_path)
    reconciled(queue, [], log_min=log_min)
    assert (queue.min_offset, queue.max_offset) == bounds
    assert list(bytes_in(tmp_path)) == names


@pytest.mark.parametrize("number", [3, 7, 10, 11])
def test_what_the_log_tells_of_is_right_whatever_lies_in_front_of_a_gap(tmp_path: Path, number: int) -> None:
    with_a_gap(tmp_path)
    queue = queue_of(tmp_path)
    reconciled(queue, [run_of(number, 13 - number)], log_min=number * 100)
    assert (queue.min_offset, queue.max_offset) == (number, 13)
    queue.close()
    again = queue_of(tmp_path)
    assert not reconciled(again, [run_of(number, 13 - number)], log_min=number * 100)
    assert (again.min_offset, again.max_offset) == (number, 13)


def test_zeros_behind_a_gap_are_not_the_queue(tmp_path: Path) -> None:
    with_a_gap(tmp_path)
    (tmp_path / "consumequeue/TopicTest/3" / f"{200:020d}").write_bytes(bytes(100))
    queue = queue_of(tmp_path, writable=False)
    assert queue.max_offset == 5
