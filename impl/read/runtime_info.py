"""The runtime information for operators, as texts under RocketMQ's names.

A rate with too few samples is an empty text, as in RocketMQ. Source: `getRuntimeInfo`, `StoreStatsService`.
"""

from collections.abc import Mapping

from tornpage.impl.io.disk_usage import disk_usage_of
from tornpage.impl.io.files import Files
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.statistics.read_statistics import ReadRates, ReadStatisticsSnapshot
from tornpage.impl.statistics.store_statistics import StatisticsSnapshot

__all__ = ["runtime_info"]


def runtime_info(
    puts: StatisticsSnapshot,
    reads: ReadStatisticsSnapshot,
    log: MappedFileQueue,
    *,
    files: Files,
    queues_directory: str,
) -> dict[str, str]:
    """Return the texts by name; the ratio of a disk whose usage cannot be read is -1."""
    info = {
        "bootTimestamp": str(puts.taken_ms - puts.runtime_ms),
        "runtime": _span(puts.runtime_ms),
        "putMessageEntireTimeMax": str(puts.latency_ms_max),
        "putMessageTimesTotal": str(puts.message_count),
        "putMessageFailedTimes": str(puts.failure_count),
        "putMessageSizeTotal": str(puts.size_bytes),
        "putMessageDistributeTime": _buckets({} if puts.put_latency is None else puts.put_latency.document()),
        "putMessageAverageSize": str(puts.size_bytes_mean),
        "getMessageEntireTimeMax": str(reads.latency_ms_max),
        "putTps": _rates(ReadRates(puts.rate_10s, puts.rate_60s, puts.rate_600s)),
        "getFoundTps": _rates(reads.found),
        "getMissTps": _rates(reads.miss),
        "getTotalTps": _rates(reads.total),
        "getTransferedTps": _rates(reads.transferred),
        "commitLogMinOffset": str(log.min_offset),
        "commitLogMaxOffset": str(log.max_offset),
    }
    ratios = {path: _used_ratio(files, path) for path in log.directories.paths}
    info |= {f"commitLogDiskRatio_{path}": str(ratio) for path, ratio in ratios.items()}
    info["commitLogDiskRatio"] = str(min(ratios.values()))
    info["consumeQueueDiskRatio"] = str(_used_ratio(files, queues_directory))
    return info


def _used_ratio(files: Files, path: str) -> float:
    usage = disk_usage_of(files, path)
    return -1.0 if usage is None else usage.used_ratio


def _rates(rates: ReadRates) -> str:
    return " ".join(str(rate) for rate in (rates.rate_10s, rates.rate_60s, rates.rate_600s) if rate is not None)


def _buckets(counts: Mapping[str, int]) -> str:
    return " ".join(f"{name}:{count}" for name, count in counts.items())


def _span(span_ms: int) -> str:
    seconds = span_ms // 1000
    days, hours, minutes = seconds // 86_400, seconds // 3_600 % 24, seconds // 60 % 60
    return f"[ {days} days, {hours} hours, {minutes} minutes, {seconds % 60} seconds ]"
