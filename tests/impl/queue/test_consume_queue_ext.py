"""Test the extension of a queue: units found by address, file ends, and complete cuts."""

from pathlib import Path

import pytest

from tests.support.impl.queues import bytes_in, files_of
from tornpage.impl.message.dispatching import ExtDraft
from tornpage.impl.queue.consume_queue_ext import NO_ADDRESS, ConsumeQueueExt, ExtUnit, is_address

NAME = "consumequeue_ext/TopicTest/3"
LEAST = -(1 << 63)


def ext_of(root: Path, *, file_bytes: int = 100) -> ConsumeQueueExt:
    """Load a small extension."""
    ext = ConsumeQueueExt(files_of(root, name="consumequeue_ext", file_bytes=file_bytes))
    ext.load(durable=False)
    return ext


def test_unit_comes_back_by_its_address(tmp_path: Path) -> None:
    ext = ext_of(tmp_path)
    assert ext.is_empty
    first, second = ext.put(ExtDraft(7, 1_700_000_000_000, b"")), ext.put(ExtDraft(-5, 1, b"\x80\x01"))
    assert (first, second) == (LEAST, LEAST + 20)
    assert ext.get(first) == ExtUnit(7, 1_700_000_000_000, b"")
    assert ext.get(second) == ExtUnit(-5, 1, b"\x80\x01")
    assert bytes_in(tmp_path, NAME)["0000"][20:42].hex() == "0016fffffffffffffffb000000000000000100028001"
    ext.check()


@pytest.mark.parametrize("address", [LEAST + 1, LEAST + 42, LEAST + 5000, -(1 << 31) - 1, 0, 7, NO_ADDRESS])
def test_address_of_nothing_gives_nothing(tmp_path: Path, address: int) -> None:
    ext = ext_of(tmp_path)
    ext.put(ExtDraft(7, 1_700_000_000_000, b""))
    ext.put(ExtDraft(-5, 1, b"\x80\x01"))
    assert ext.get(address) is None


@pytest.mark.parametrize(("code", "expected"), [(-(1 << 31), False), (-(1 << 31) - 1, True), (LEAST, True), (0, False)])
def test_hash_is_never_an_address(code: int, expected: bool) -> None:
    assert is_address(code) is expected


@pytest.mark.parametrize(("bits", "ends_at"), [(12, 96), (13, 66), (16, 72), (17, 74), (24, 88), (40, 60), (56, 76)])
def test_unit_that_reaches_into_the_last_four_bytes_goes_to_the_next_file(
    tmp_path: Path, bits: int, ends_at: int
) -> None:
    ext = ext_of(tmp_path)
    addresses = [ext.put(ExtDraft(number, number, bytes([number] * bits))) for number in range(1, 5)]
    assert [ext.get(address) for address in addresses] == [
        ExtUnit(number, number, bytes([number] * bits)) for number in range(1, 5)
    ]
    first = bytes_in(tmp_path, NAME)["0000"]
    assert (first[ends_at : ends_at + 2], first[ends_at + 2 :]) == (b"\xff\xff", bytes(98 - ends_at))
    assert ext.get(LEAST + ends_at) is None


def test_unit_that_fills_a_file_up_to_its_end_bytes_fits(tmp_path: Path) -> None:
    ext = ext_of(tmp_path)
    assert ext.put(ExtDraft(1, 1, bytes(76))) == LEAST
    assert ext.put(ExtDraft(2, 2, b"")) == LEAST + 100


@pytest.mark.parametrize(("bits", "file_bytes"), [(77, 100), (32_748, 1 << 20)])
def test_unit_that_no_file_takes_is_not_stored(tmp_path: Path, bits: int, file_bytes: int) -> None:
    """RocketMQ tries three file ends before it fails."""
    ext = ext_of(tmp_path, file_bytes=file_bytes)
    assert ext.put(ExtDraft(1, 1, bytes(bits))) == NO_ADDRESS
    assert ext.is_empty
    assert ext.put(ExtDraft(1, 1, bytes(bits - 1))) == LEAST


def test_cut_goes_behind_the_unit_of_the_last_address(tmp_path: Path) -> None:
    ext = ext_of(tmp_path)
    addresses = [ext.put(ExtDraft(number, number, b"bits")) for number in range(10)]
    before = bytes_in(tmp_path, NAME)
    ext.close()
    ext = ext_of(tmp_path)
    assert not ext.truncate_by_max_address(addresses[-1])
    assert bytes_in(tmp_path, NAME) == before
    assert ext.truncate_by_max_address(addresses[5])
    assert ext.get(addresses[5]) == ExtUnit(5, 5, b"bits")
    assert ext.get(addresses[6]) is None
    assert bytes_in(tmp_path, NAME) == {"0000": before["0000"], "0100": before["0100"][:48] + bytes(52)}
    assert ext.put(ExtDraft(6, 6, b"bits")) == addresses[6]
    ext.check()


@pytest.mark.parametrize("address", [0, LEAST + 3])
def test_cut_behind_no_unit_erases_everything(tmp_path: Path, address: int) -> None:
    ext = ext_of(tmp_path)
    for number in range(10):
        ext.put(ExtDraft(number, number, b"bits"))
    assert ext.truncate_by_max_address(address)
    assert bytes_in(tmp_path, NAME) == {}
    assert ext.put(ExtDraft(1, 1, b"")) == LEAST


def test_files_in_front_of_an_address_go(tmp_path: Path) -> None:
    ext = ext_of(tmp_path)
    addresses = [ext.put(ExtDraft(number, number, b"bits")) for number in range(10)]
    ext.truncate_by_min_address(7)
    assert list(bytes_in(tmp_path, NAME)) == ["0000", "0100", "0200"]
    ext.truncate_by_min_address(addresses[9])
    assert ext.get(addresses[0]) is None
    assert ext.get(addresses[9]) == ExtUnit(9, 9, b"bits")
    assert list(bytes_in(tmp_path, NAME)) == ["0200"]
