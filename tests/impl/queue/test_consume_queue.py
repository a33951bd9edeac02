"""Test one consume queue: appending, reading, its minimum, and impossible logs."""

import errno
import threading
from pathlib import Path

import pytest

from tests.support.impl.queues import EMPTY, KEY, PREFILL, bytes_in, queue_of, run_of, told_units
from tests.support.impl.stores import FaultyFiles
from tornpage.impl.queue.units import Unit


def test_new_queue_is_empty_and_on_no_disk(tmp_path: Path) -> None:
    queue = queue_of(tmp_path)
    assert (queue.topic, queue.queue_id, queue.key) == ("TopicTest", 3, KEY)
    assert (queue.min_offset, queue.max_offset, queue.max_physic_offset) == (0, 0, -1)
    assert queue.unit(0) is None
    assert list(queue.units(0, 10)) == []
    assert queue.is_empty
    assert list(tmp_path.iterdir()) == []
    queue.check()


def test_units_come_back_in_order_over_file_ends(tmp_path: Path) -> None:
    queue = queue_of(tmp_path)
    for number in range(3):
        queue.append(run_of(number))
    queue.append(run_of(3, 10))
    expected = [Unit(number * 100, 99, 7) for number in range(13)]
    assert list(queue.units(0, 100)) == expected
    assert list(queue.units(4, 3)) == expected[4:7]
    assert list(queue.units(12, 3)) == expected[12:]
    assert list(queue.units(13, 3)) == []
    assert [queue.unit(number) for number in (-1, 0, 12, 13)] == [None, expected[0], expected[12], None]
    assert (queue.min_offset, queue.max_offset, queue.max_physic_offset) == (0, 13, 1299)
    assert bytes_in(tmp_path)["0200"] == told_units(expected[10:]) + 2 * EMPTY
    queue.check()


def test_queue_is_published_after_its_bytes(tmp_path: Path) -> None:
    files = FaultyFiles()
    queue = queue_of(tmp_path, files=files)
    queue.append(run_of(0, 2))
    seen = []
    files.on_mark = lambda label: seen.append((label, queue.max_offset, bytes_in(tmp_path)["0000"][40:60]))
    queue.append(run_of(2))
    assert seen == [("unit", 2, run_of(2).units)]
    assert queue.max_offset == 3


def test_a_run_is_one_mark(tmp_path: Path) -> None:
    files = FaultyFiles()
    queue = queue_of(tmp_path, files=files, file_bytes=1000)
    marks: list[str] = []
    files.on_mark = marks.append
    queue.append(run_of(0, 40))
    assert marks == ["unit"]


@pytest.mark.parametrize("number", [1, 4, 5, 13, 20])
def test_queue_that_begins_late_has_prefill_nobody_sees(tmp_path: Path, number: int) -> None:
    queue = queue_of(tmp_path)
    queue.append(run_of(number, 2))
    for _ in range(2):
        assert (queue.min_offset, queue.max_offset, queue.max_physic_offset) == (number, number + 2, number * 100 + 199)
        assert list(queue.units(0, 100)) == []
        assert queue.unit(number - 1) is None
        assert list(queue.units(number, 100)) == [Unit(n * 100, 99, 7) for n in (number, number + 1)]
        assert queue.first_number == number // 5 * 5
        queue.check()
        queue.close()
        queue = queue_of(tmp_path)
    data = b"".join(bytes_in(tmp_path).values())
    assert data.startswith(PREFILL * (number % 5) + run_of(number, 2).units)


def test_units_that_are_there_are_left_alone(tmp_path: Path) -> None:
    """A batch that failed half-way is dispatched again as a whole."""
    queue = queue_of(tmp_path)
    queue.append(run_of(3, 4))
    before = bytes_in(tmp_path)
    queue.append(run_of(3, 4))
    queue.append(run_of(4, 2))
    assert (bytes_in(tmp_path), queue.findings) == (before, ())
    queue.append(run_of(3, 6))
    assert list(queue.units(3, 10)) == [Unit(n * 100, 99, 7) for n in range(3, 9)]
    assert queue.findings == ()


def test_second_record_of_a_number_is_passed_and_named(tmp_path: Path) -> None:
    queue = queue_of(tmp_path)
    queue.append(run_of(0, 3))
    again = run_of(1, 3, step=1000)
    for _ in range(2):
        queue.append(again)
    assert list(queue.units(0, 10)) == [*(Unit(n * 100, 99, 7) for n in range(3)), Unit(3000, 999, 7)]
    assert [(finding.code, finding.offset) for finding in queue.findings] == [
        ("repeated_queue_offset", 1000),
        ("repeated_queue_offset", 2000),
    ]


def test_numbers_without_a_message_become_prefill(tmp_path: Path) -> None:
    queue = queue_of(tmp_path)
    queue.append(run_of(0, 2))
    queue.append(run_of(6, 2))
    assert bytes_in(tmp_path)["0000"] == run_of(0, 2).units + 3 * PREFILL
    assert [unit.is_prefill for unit in queue.units(0, 10)] == [False] * 2 + [True] * 4 + [False] * 2
    assert (queue.unit(3), queue.unit(6)) == (None, Unit(600, 99, 7))
    assert (queue.max_offset, queue.max_physic_offset) == (8, 799)
    assert [(finding.code, finding.offset) for finding in queue.findings] == [("queue_gap", 600)]


def test_gap_longer_than_a_file_is_not_filled(tmp_path: Path) -> None:
    queue = queue_of(tmp_path)
    queue.append(run_of(0, 2))
    queue.append(run_of(7 + 1, 2))
    assert queue.max_offset == 2
    assert [(finding.code, "in no queue" in finding.message) for finding in queue.findings] == [("queue_gap", True)]
    queue.append(run_of(7))
    assert queue.max_offset == 8


@pytest.mark.parametrize("number", [-1, -(1 << 31), 1 << 62])
def test_impossible_number_is_passed_and_named(tmp_path: Path, number: int) -> None:
    queue = queue_of(tmp_path)
    queue.append(run_of(number, step=0))
    assert queue.is_empty
    assert [finding.code for finding in queue.findings] == ["impossible_queue_offset"]


@pytest.mark.parametrize("verb", ["create", "allocate", "map"])
@pytest.mark.parametrize("first", [0, 3, 5])
def test_refused_file_loses_nothing_and_doubles_nothing(tmp_path: Path, verb: str, first: int) -> None:
    files = FaultyFiles()
    queue = queue_of(tmp_path, files=files)
    queue.append(run_of(first, 1))
    files.fail(verb, code=errno.ENOSPC, times=2)
    run = run_of(first + 1, 12)
    for _ in range(2):
        with pytest.raises(OSError, match="No space"):
            queue.append(run)
        assert queue.max_offset == (first // 5 + 1) * 5
        assert queue.max_physic_offset == queue.max_offset * 100 - 1
        queue.check()
    queue.append(run)
    assert list(queue.units(first, 100)) == [Unit(n * 100, 99, 7) for n in range(first, first + 13)]
    assert queue.findings == ()
    queue.check()


def test_refused_first_file_leaves_an_empty_queue(tmp_path: Path) -> None:
    files = FaultyFiles()
    files.fail("allocate", times=1)
    queue = queue_of(tmp_path, files=files)
    with pytest.raises(OSError, match="Input/output"):
        queue.append(run_of(3))
    assert (queue.min_offset, queue.max_offset, queue.is_empty) == (0, 0, True)
    queue.append(run_of(3))
    assert (queue.min_offset, queue.max_offset) == (3, 4)


@pytest.mark.parametrize("number", range(14))
def test_minimum_follows_the_log(tmp_path: Path, number: int) -> None:
    queue = queue_of(tmp_path)
    queue.append(run_of(2, 11))
    for log_min in (number * 100 - 50, number * 100):
        queue.correct_min_offset(log_min)
        assert queue.min_offset == min(max(number, 2), 13)
    queue.correct_min_offset(0)
    assert queue.min_offset == min(max(number, 2), 13)
    assert queue.max_offset == 13


@pytest.mark.parametrize("log_min", range(0, 1500, 50))
def test_minimum_is_never_prefill(tmp_path: Path, log_min: int) -> None:
    """RocketMQ takes pre-fill for a message at offset 0 (hole C6)."""
    queue = queue_of(tmp_path)
    for number in (1, 2, 5, 6, 11):
        queue.append(run_of(number))
    queue.correct_min_offset(log_min)
    assert queue.min_offset == next((number for number in (1, 2, 5, 6, 11) if number * 100 >= log_min), 12)


def test_units_have_addresses_where_there_is_an_extension(tmp_path: Path) -> None:
    queue = queue_of(tmp_path, ext_file_bytes=100)
    queue.append(run_of(0, 2, ext=b"bits"))
    queue.append(run_of(2, 2))
    queue.append(run_of(4, 1, ext=bytes(90)))
    codes = [unit.tags_code for unit in queue.units(0, 10)]
    assert codes == [-(1 << 63), -(1 << 63) + 24, 7, 7, 7]
    assert queue.ext is not None
    assert queue.ext.get(codes[1]) == (7, 1_700_000_000_001, b"bits")
    queue.check()


def test_queue_without_an_extension_ignores_drafts(tmp_path: Path) -> None:
    queue = queue_of(tmp_path)
    queue.append(run_of(0, 2, ext=b"bits"))
    assert [unit.tags_code for unit in queue.units(0, 10)] == [7, 7]


def test_minimum_takes_the_extension_along(tmp_path: Path) -> None:
    queue = queue_of(tmp_path, ext_file_bytes=100)
    queue.append(run_of(0, 10, ext=b"bits"))
    queue.correct_min_offset(900)
    assert list(bytes_in(tmp_path, "consumequeue_ext/TopicTest/3")) == ["0200"]


def test_flush_makes_extension_and_units_durable(tmp_path: Path) -> None:
    files = FaultyFiles()
    queue = queue_of(tmp_path, files=files, ext_file_bytes=100)
    queue.append(run_of(0, 7, ext=b""))
    files.calls.clear()
    assert queue.flush() == 140
    synced = [path.removeprefix(str(tmp_path)).split("/")[1] for verb, path in files.calls if verb == "sync"]
    assert synced == ["consumequeue_ext"] * 2 + ["consumequeue"] * 2
    assert queue.flush() == 140


def test_closed_queue_has_nothing_to_read(tmp_path: Path) -> None:
    queue = queue_of(tmp_path)
    queue.append(run_of(0, 7))
    queue.close()
    assert (queue.unit(0), list(queue.units(0, 7))) == (None, [])
    queue.close()


def test_readers_see_whole_units_while_one_thread_appends(tmp_path: Path, switch_often: None) -> None:
    queue = queue_of(tmp_path, file_bytes=200)
    errors: list[str] = []
    done = threading.Event()

    def read() -> None:
        number = 0
        while not (done.is_set() and number == queue.max_offset):
            end = queue.max_offset
            for unit in queue.units(number, end - number):
                if unit != (number * 100, 99, 7):
                    errors.append(f"{number}: {unit}")
                number += 1
            if number != end:
                errors.append(f"{number} of {end} units")
                return

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(3000):
        queue.append(run_of(number))
    done.set()
    for reader in readers:
        reader.join(30)
    assert (errors, queue.max_offset) == ([], 3000)
    queue.check()
