"""Describe the machine and the disk of a calibration, as far as they affect a sync.

The description has no host, user or path. Unknown values are left out.
"""

import os
import resource
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from tornpage.bench.figures import describe_machine

__all__ = ["Pressure", "machine_snapshot", "pressure_between"]

QUEUE = {
    "read_ahead_kib": "read_ahead_kb",
    "scheduler": "scheduler",
    "write_cache": "write_cache",
    "rotational": "rotational",
    "write_back_throttle_us": "wbt_lat_usec",
}
"""Files of the disk's queue in /sys, by key."""
SYSCTLS = (
    "dirty_background_ratio",
    "dirty_background_bytes",
    "dirty_ratio",
    "dirty_bytes",
    "dirty_expire_centisecs",
    "dirty_writeback_centisecs",
)
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
STEAL = 8
"""The column of stolen time in a line of /proc/stat."""


def machine_snapshot(directory: str, root: Path = Path("/")) -> dict[str, str | int | float]:
    """Return what is known of this machine and of the disk below `directory`.

    `root` contains proc and sys.
    """
    machine = describe_machine(directory)
    found: dict[str, str | int | float] = {
        "processor": machine.processor,
        "cores": machine.cores,
        "kernel": machine.kernel,
        "python": machine.python,
        "file_system": machine.file_system,
        "memory_mib": _memory_mib(root),
        "memory_lock_kib": _limit_kib(resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]),
        "policy": {os.SCHED_FIFO: "real time", os.SCHED_OTHER: "normal"}.get(os.sched_getscheduler(0), "other"),
    }
    for name in SYSCTLS:
        found |= _read(name, root / "proc/sys/vm" / name)
    queue = _queue(os.stat(directory).st_dev, root)
    if queue is not None:
        found["disk"] = queue.parent.name
        for key, name in QUEUE.items():
            found |= _read(key, queue / name)
    if queue is not None and machine.file_system in ("ext3", "ext4"):
        found["journal"] = "yes" if _has_journal(os.stat(directory).st_dev, root) else "no"
    return found


@dataclass(frozen=True, slots=True)
class Pressure:
    """Counters at a moment.

    They are the seconds in which a process waited for a processor or for the disk, and the stolen seconds.
    """

    at_s: float
    cpu_s: float
    io_s: float
    stolen_s: float

    @classmethod
    def now(cls, root: Path = Path("/")) -> "Pressure":
        """Return the present counters; 0 for what the kernel does not count."""
        waiting = root / "proc/pressure"
        return cls(perf_counter(), _waited_s(waiting / "cpu"), _waited_s(waiting / "io"), _stolen_s(root))


def pressure_between(begin: Pressure, end: Pressure, cores: int) -> Mapping[str, float]:
    """Return the growth of the counters as shares of the time.

    Stolen time is a share of the time of all `cores`, since the kernel sums it up over every core, whichever this
    process may use.
    """
    elapsed_s = max(end.at_s - begin.at_s, 1e-9)
    return {
        "measured_s": round(elapsed_s, 3),
        "cpu_pressure_share": round((end.cpu_s - begin.cpu_s) / elapsed_s, 4),
        "io_pressure_share": round((end.io_s - begin.io_s) / elapsed_s, 4),
        "stolen_share": round((end.stolen_s - begin.stolen_s) / elapsed_s / max(cores, 1), 4),
    }


def _read(key: str, path: Path) -> dict[str, str | int]:
    try:
        text = path.read_text(errors="replace").strip()
    except OSError:
        return {}
    return {key: int(text) if text.isdigit() else text}


def _memory_mib(root: Path) -> int:
    said = _read("meminfo", root / "proc/meminfo").get("meminfo", "")
    line = next((line for line in str(said).splitlines() if line.startswith("MemTotal:")), "MemTotal: 0")
    return int(line.split()[1]) >> 10


def _limit_kib(size_bytes: int) -> int | str:
    return "unlimited" if size_bytes == resource.RLIM_INFINITY else size_bytes >> 10


def _queue(device: int, root: Path) -> Path | None:
    """Return the queue of the disk with a device number, of the disk or of a partition."""
    block = (root / f"sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve()
    return next((place / "queue" for place in (block, block.parent) if (place / "queue").is_dir()), None)


def _has_journal(device: int, root: Path) -> bool:
    block = (root / f"sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve()
    return any((root / "proc/fs/jbd2").glob(f"{block.name}-*"))


def _waited_s(path: Path) -> float:
    """Return the total of the line "some" of a file of pressure stall information."""
    said = str(_read("some", path).get("some", ""))
    line = next((line for line in said.splitlines() if line.startswith("some")), "")
    return int(line.rpartition("total=")[2] or 0) / 1e6


def _stolen_s(root: Path) -> float:
    said = str(_read("stat", root / "proc/stat").get("stat", "")).partition("\n")[0].split()
    return int(said[STEAL]) / TICKS_PER_S if len(said) > STEAL else 0.0
