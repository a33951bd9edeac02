"""Test the counters of reads."""

import threading

from tornpage.impl.statistics.read_statistics import DiskFall, ReadRates, ReadStatistics


def test_nothing_was_read() -> None:
    snapshot = ReadStatistics(started_ms=1000).snapshot(1500)
    assert (snapshot.found_count, snapshot.miss_count, snapshot.transferred_count, snapshot.latency_ms_max) == (
        0,
        0,
        0,
        0,
    )
    assert snapshot.found == ReadRates(None, None, None)
    assert snapshot.disk_fall == ()


def test_counts_latency_and_rates() -> None:
    statistics = ReadStatistics(started_ms=0)
    for second in range(1, 71):
        statistics.count(messages=4, elapsed_ms=second % 9, now_ms=second * 1000)
        statistics.count(messages=0, elapsed_ms=1, now_ms=second * 1000 + 1)
    snapshot = statistics.snapshot(70_500)
    assert (snapshot.found_count, snapshot.miss_count, snapshot.transferred_count) == (70, 70, 280)
    assert snapshot.latency_ms_max == 8
    assert snapshot.found == ReadRates(1.0, 1.0, None)
    assert snapshot.miss == ReadRates(1.0, 1.0, None)
    assert snapshot.total == ReadRates(2.0, 2.0, None)
    assert snapshot.transferred == ReadRates(4.0, 4.0, None)


def test_clock_set_back_begins_the_samples_anew() -> None:
    statistics = ReadStatistics(started_ms=100_000)
    for now_ms in (101_000, 102_000, 5_000, 6_000):
        statistics.count(messages=1, elapsed_ms=0, now_ms=now_ms)
    for second in range(7, 16):
        statistics.count(messages=1, elapsed_ms=0, now_ms=second * 1000)
    assert statistics.snapshot(15_500).found == ReadRates(1.0, None, None)


def test_disk_fall_is_that_of_the_last_read() -> None:
    statistics = ReadStatistics(started_ms=0)
    for behind_bytes in (500, 300):
        statistics.record_disk_fall("T", 1, "G", behind_bytes)
    statistics.record_disk_fall("A", 2, "G", 7)
    assert statistics.snapshot(1).disk_fall == (DiskFall("A", 2, "G", 7), DiskFall("T", 1, "G", 300))


def test_counts_of_many_threads_are_exact() -> None:
    statistics = ReadStatistics(started_ms=0)

    def count() -> None:
        for _ in range(2000):
            statistics.count(messages=3, elapsed_ms=0, now_ms=1)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statistics.snapshot(1).transferred_count == 24_000
