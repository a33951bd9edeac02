"""Test running flags: every combination of bits, and each bit on its own."""

import threading

import pytest

from tornpage.impl.service.running_flags import RunningFlag, RunningFlags

ALL = tuple(RunningFlag)


def flags_with(bits: int) -> RunningFlags:
    """Return flags with the bits of a number set one by one."""
    flags = RunningFlags()
    for flag in ALL:
        if bits & flag:
            flags.set(flag)
    return flags


def test_masks_are_those_of_rocketmq() -> None:
    assert [(flag.name, int(flag)) for flag in RunningFlag] == [
        ("NOT_READABLE", 1),
        ("NOT_WRITEABLE", 2),
        ("WRITE_LOGICS_QUEUE_ERROR", 4),
        ("WRITE_INDEX_FILE_ERROR", 8),
        ("DISK_FULL", 16),
    ]


@pytest.mark.parametrize("bits", range(32))
def test_what_a_combination_forbids(bits: int) -> None:
    flags = flags_with(bits)
    assert flags.bits == bits
    assert flags.readable is (bits % 2 == 0)
    assert flags.writeable is (bits in (0, 1))
    assert flags.queue_writeable is (bits in (0, 1, 16, 17))


@pytest.mark.parametrize("bits", range(32))
@pytest.mark.parametrize("flag", ALL)
def test_a_bit_is_set_and_cleared_whatever_the_others_say(flag: RunningFlag, bits: int) -> None:
    flags = flags_with(bits)
    assert flags.set(flag) is not bool(bits & flag)
    assert flags.bits == bits | flag
    assert not flags.set(flag)
    assert flags.clear(flag)
    assert flags.bits == bits & ~flag
    assert not flags.clear(flag)
    assert flags.writeable is (bits & ~flag in (0, 1))


def test_a_second_reason_stays_when_the_first_one_goes() -> None:
    """RocketMQ dropped NOT_WRITEABLE when the disk was full already."""
    flags = RunningFlags()
    flags.set(RunningFlag.DISK_FULL)
    flags.set(RunningFlag.NOT_WRITEABLE)
    flags.clear(RunningFlag.DISK_FULL)
    assert not flags.writeable


def test_several_bits_at_once() -> None:
    flags = RunningFlags()
    assert flags.set(RunningFlag.NOT_READABLE | RunningFlag.DISK_FULL)
    assert flags.set(RunningFlag.DISK_FULL | RunningFlag.NOT_WRITEABLE)
    assert flags.bits == 19
    assert flags.clear(RunningFlag.DISK_FULL | RunningFlag.WRITE_INDEX_FILE_ERROR)
    assert flags.bits == 3


def test_each_change_holds_the_lock_it_was_given() -> None:
    seen: list[str] = []

    class Lock:
        def __enter__(self) -> None:
            seen.append(f"taken at {int(flags.bits)}")

        def __exit__(self, *_: object) -> None:
            seen.append(f"given back at {int(flags.bits)}")

    flags = RunningFlags(lock=Lock)
    flags.set(RunningFlag.DISK_FULL)
    flags.clear(RunningFlag.DISK_FULL)
    assert seen == ["taken at 0", "given back at 16", "taken at 16", "given back at 0"]


def test_threads_do_not_lose_each_others_bits() -> None:
    flags = RunningFlags()
    start = threading.Barrier(len(ALL), timeout=10)

    def flicker(flag: RunningFlag) -> None:
        start.wait()
        for _ in range(200):
            assert flags.set(flag)
            assert flags.clear(flag)
        flags.set(flag)

    threads = [threading.Thread(target=flicker, args=(flag,)) for flag in ALL]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    assert flags.bits == 31
