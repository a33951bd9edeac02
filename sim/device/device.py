"""The times that disk, page cache and processor take for the operations of a store.

`DeviceTimes` is a value. Its presets name the source of each number: a section of docs/disks/presets.md, which has the
measurements of one virtual machine. `tornpage sim calibrate` measures another disk. [K] marks general knowledge that
was not measured.

A calibrated disk (`sim.device.calibration`) draws each sync from measured syncs with a similar pause before and a
similar number of pages.

Three effects are left out: the fault that re-protects the tail page after a flush (2.9 us once per flush), syncs that
hold up stores or each other, and the memory of the disk (successive syncs are drawn independently, but the logarithms
of real ones correlate by 0.5 to 0.7).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp
from types import MappingProxyType

import numpy as np

from tornpage.impl.config.policy import PAGE_BYTES
from tornpage.sim.device.empirical import Uniform32
from tornpage.sim.device.gap_table import GapTable
from tornpage.sim.device.stalls import Stalls
from tornpage.sim.device.sync_table import SyncTable
from tornpage.sim.distributions import NO_TIME, Constant, Distribution, Exponential, Int64s, LogNormal
from tornpage.sim.streams import Draws, Law

__all__ = ["PRESETS", "Device", "DeviceTimes"]

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
US = 1_000
MS = 1_000_000
STREAMS = 5
"""The number of random streams of a device: syncs, stalls, wakes, puts, turns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTimes:
    """Durations in ns. Every field except `sync` may be 0, which leaves its operation out."""

    name: str
    sync: Distribution
    """fdatasync or msync of a mapped file, without the cost per KiB."""
    sync_ns_per_kib: int = 0
    """For each KiB of whole pages that a sync writes."""
    convert_ns: int = 0
    """Extra time of a sync whose pages were only reserved before (extent conversion)."""
    convert_ns_per_kib: int = 0
    """The same extra time for each KiB."""
    put_ns: int = 0
    """Under the put lock, without copying: encoding and bookkeeping."""
    copy_ns_per_kib: int = 0
    """Copying a record into memory that is already mapped and dirty."""
    touch_page_ns: int = 0
    """First store into a page of a file that was not warmed."""
    read_ahead_bytes: int = 0
    """A first touch at each multiple of this waits for `read_ahead_stall` too; 0: never."""
    read_ahead_stall: Distribution = NO_TIME
    create_ns: int = 0
    """Create a file, set its size, map it."""
    reserve_ns_per_gib: int = 0
    """Reserve its blocks (fallocate)."""
    sync_directory_ns: int = 0
    """Make its name durable."""
    commit_ns: int = 0
    """Write a piece of a pool buffer to the page cache (pwrite), without the cost per KiB."""
    commit_ns_per_kib: int = 0
    """For each KiB of the piece."""
    wake_ns: int = 0
    """From the store for which a sleeping flusher or committer waits until it runs."""
    wake: GapTable | None = None
    """Extra wake time, as measured by the time since the last sync."""
    put: GapTable | None = None
    """Extra time under the put lock, as measured by the time since the last arrival."""
    waiting_put: GapTable | None = None
    """The same for a put that makes a request of group commit; None: the same as `put`."""
    answering_ns: int = 0
    """From the end of a sync of group commit to its first answer."""
    turn: Distribution = NO_TIME
    """From the end of a sync of group commit until its flusher checks again.

    `answer_ns` for each answer comes on top.
    """
    answer_ns: int = 0
    """Each answer of a group commit; answers follow one another, in the order of the puts."""
    measured: SyncTable | None = None
    """Measured syncs.

    With them `sync` is their median, and neither it nor `convert_…` is used for a sync.
    """

    def __post_init__(self) -> None:
        for field in self.__dataclass_fields__:
            value = getattr(self, field)
            if isinstance(value, int) and value < 0:
                raise ValueError(f"{field} is {value}; times and sizes are at least 0")

    @property
    def puts_cost_the_same(self) -> bool:
        """Whether records of one size take equally long at any position."""
        stalls = self.read_ahead_bytes and self.read_ahead_stall != NO_TIME
        return self.touch_page_ns == 0 and not stalls and self.put is None

    @property
    def syncs_cost_the_same(self) -> bool:
        """Whether the law of a sync does not depend on earlier events."""
        syncs = (self.sync_ns_per_kib, self.convert_ns, self.convert_ns_per_kib)
        answers = (self.wake_ns, self.answering_ns, self.answer_ns)
        return not any(syncs + answers) and self.measured is None and self.wake is None and self.turn == NO_TIME

    @property
    def sync_law(self) -> Law:
        """The law that is drawn for each sync: its time, or the choice of a measured time."""
        return self.sync if self.measured is None else Uniform32()

    def copy_ns(self, size_bytes: int) -> int:
        """Return how long a put holds the lock if it touches no new page."""
        return self.put_ns + size_bytes * self.copy_ns_per_kib // KIB

    def allocation_ns(self, file_bytes: int) -> int:
        """Return how long making a file takes, without warm-up."""
        return self.create_ns + file_bytes * self.reserve_ns_per_gib // GIB + self.sync_directory_ns


class Device:
    """`DeviceTimes` with the random streams of one actor."""

    def __init__(self, times: DeviceTimes, rng: np.random.Generator, stalls: Stalls | None = None) -> None:
        self.times = times
        self._disk_stalls = stalls
        sync_rng, stall_rng, wake_rng, put_rng, turn_rng = rng.spawn(STREAMS)
        self._sync = Draws(times.sync_law, sync_rng)
        self._stalls = Draws(times.read_ahead_stall, stall_rng)
        self._wakes = Draws(Uniform32(), wake_rng)
        self._puts = Draws(Uniform32(), put_rng)
        self._turns = Draws(times.turn, turn_rng)

    def sync_ns(self, device_bytes: int, *, gap_ns: int, reserved_only: bool) -> int:
        """Draw the time of one sync of `device_bytes`, `gap_ns` after the previous sync.

        `reserved_only` says that their blocks were never written.
        """
        times = self.times
        if times.measured is not None:
            pages = -(-device_bytes // PAGE_BYTES)
            return times.measured.took_ns(self._sync.next(), pages=pages, gap_ns=gap_ns, reserved_only=reserved_only)
        fixed_ns, ns_per_kib = self._sync.next(), times.sync_ns_per_kib
        if reserved_only:
            fixed_ns, ns_per_kib = fixed_ns + times.convert_ns, ns_per_kib + times.convert_ns_per_kib
        return fixed_ns + device_bytes * ns_per_kib // KIB

    def held_up_ns(self, start_ns: int, took_ns: int) -> int:
        """Return how long a sync takes on this disk with its stalls.

        It begins at `start_ns` and would take `took_ns` without stalls.
        """
        if self._disk_stalls is None:
            return took_ns
        return self._disk_stalls.returns_ns(start_ns, start_ns + took_ns) - start_ns

    def put_ns(self, begin: int, end: int, *, gap_ns: int, touches: bool) -> int:
        """Draw how long a put holds the lock, `gap_ns` after the last arrival.

        `touches` says that its pages are new.
        """
        times = self.times
        took_ns = times.copy_ns(end - begin)
        if times.put is not None:
            took_ns += times.put.took_ns(self._puts.next(), gap_ns)
        if touches:
            took_ns += _first_multiples(begin, end, PAGE_BYTES) * times.touch_page_ns
            if times.read_ahead_bytes:
                for _ in range(_first_multiples(begin, end, times.read_ahead_bytes)):
                    took_ns += self._stalls.next()
        return took_ns

    def puts_ns(self, begins: Int64s, ends: Int64s, *, gaps_ns: Int64s, touches: bool) -> Int64s:
        """Draw the same for many puts, in their order."""
        times = self.times
        took_ns: Int64s = times.put_ns + (ends - begins) * times.copy_ns_per_kib // KIB
        if times.put is not None:
            took_ns += times.put.took_many_ns(self._puts.take(len(begins)), gaps_ns)
        if touches:
            took_ns += (-(-ends // PAGE_BYTES) + (-begins // PAGE_BYTES)) * times.touch_page_ns
            if times.read_ahead_bytes:
                stalls = -(-ends // times.read_ahead_bytes) + (-begins // times.read_ahead_bytes)
                rows = np.repeat(np.arange(len(begins)), stalls)
                np.add.at(took_ns, rows, self._stalls.take(len(rows)))
        return took_ns

    def wake_ns(self, gap_ns: int) -> int:
        """Draw how long a sleeper takes to run after its event, `gap_ns` after the last sync."""
        wake = self.times.wake
        return self.times.wake_ns + (0 if wake is None else wake.took_ns(self._wakes.next(), gap_ns))

    def turn_ns(self, answers: int) -> int:
        """Draw how long a group commit is busy with its answers before it checks again."""
        return self._turns.next() + answers * self.times.answer_ns

    def warm_up_ns(self, file_bytes: int) -> int:
        """Draw the time of touching every page of a new file."""
        times = self.times
        touch_ns = -(-file_bytes // PAGE_BYTES) * times.touch_page_ns
        windows = -(-file_bytes // times.read_ahead_bytes) if times.read_ahead_bytes else 0
        return touch_ns + int(self._stalls.take(windows).sum())


def _first_multiples(begin: int, end: int, unit: int) -> int:
    """Return how many multiples of `unit` lie in [begin, end)."""
    return -(-end // unit) - -(-begin // unit)


def _here(
    name: str, sync: Distribution, *, sync_ns_per_kib: int, convert_ns: int, convert_ns_per_kib: int
) -> DeviceTimes:
    """Return the measured machine with another disk.

    | field | section | measured |
    |---|---|---|
    | put_ns | copies | CPython: 15 fields packed 275 ns, slice store of 1 KiB 156 to 244 ns (200) |
    | copy_ns_per_kib | copies | 15 GiB/s into a dirty mapping |
    | read_ahead | first touches | window 8 MiB; about 0.6 ms each where the host has backed the memory |
    | touch_page_ns | first touches | fallocated file, quiet run: 643 ns per page on average, stalls above taken off |
    | create_ns | allocation | 57 us create + 3.1 us size + 5.6 us map |
    | reserve_ns_per_gib | allocation | fallocate of 1 GiB 929 to 974 us |
    | sync_directory_ns | allocation | fsync of a new file 113 to 155 us; taken for the directory's too |
    | commit_ns | copies | pwrite 4.3 to 4.7 us up to 4 KiB; 83 us at 1 MiB |
    | wake_ns | copies | wake of a waiting thread 17 to 20 us |
    """
    window_bytes, stall_ns = 8 * MIB, 600 * US
    return DeviceTimes(
        name=name,
        sync=sync,
        sync_ns_per_kib=sync_ns_per_kib,
        convert_ns=convert_ns,
        convert_ns_per_kib=convert_ns_per_kib,
        put_ns=275 + 200,
        copy_ns_per_kib=10**9 * KIB // (15 * GIB),
        touch_page_ns=643 - stall_ns * PAGE_BYTES // window_bytes,
        read_ahead_bytes=window_bytes,
        read_ahead_stall=Constant(stall_ns),
        create_ns=57_000 + 3_100 + 5_600,
        reserve_ns_per_gib=950 * US,
        sync_directory_ns=134 * US,
        commit_ns=4_500,
        commit_ns_per_kib=(83_000 - 4_500) // 1024,
        wake_ns=18_500,
    )


def _presets() -> dict[str, DeviceTimes]:
    """Return the disks by name.

    | disk | sync | section |
    |---|---|---|
    | vm-ext4 | p50 75 us, p99 111 us, 0.13 us/KiB; conversion 50 us and 0.29 us/KiB | syncs, quiet runs |
    | plp-nvme | 12 to 58 us, read as p1 and p99; 3.4 GiB/s | other disks; syncs (1 GiB) |
    | consumer-nvme | 0.9 ms, no spread known; 2 MiB in 1 to 5.4 ms gives 1.1 us/KiB | other disks |
    | ebs-gp3 | mean 700 us, deviation 240 us; 125 MiB/s [K] | other disks |
    | ebs-gp2 | mean 1422 us, deviation 728 us; 250 MiB/s [K] | other disks |
    | hdd | one turn at 7,200/min, 8.33 ms [K]; 150 MiB/s [K] | other disks |

    All but vm-ext4 keep the other times of the measured machine, and no conversion. Beside them, devices for the
    formulas of that page: `constant-1ms`, `exponential-1ms`, `lognormal-1ms` (sigma 1) have a sync of mean 1 ms
    and nothing else; `put-100us` has a put of 100 us, and a sync that costs nothing.
    """
    plp = LogNormal.from_quantiles(p50_ns=(12_000 * 58_000) ** 0.5, p99_ns=58_000)
    disks = [
        _here(
            "vm-ext4",
            LogNormal.from_quantiles(p50_ns=75_000, p99_ns=111_000),
            sync_ns_per_kib=130,
            convert_ns=50 * US,
            convert_ns_per_kib=290,
        ),
        _disk("plp-nvme", plp, mib_per_s=3482),
        _disk("consumer-nvme", Constant(900 * US), mib_per_s=870),
        _disk("ebs-gp3", LogNormal.from_moments(mean_ns=700_000, deviation_ns=240_000), mib_per_s=125),
        _disk("ebs-gp2", LogNormal.from_moments(mean_ns=1_422_000, deviation_ns=728_000), mib_per_s=250),
        _disk("hdd", Constant(8_330 * US), mib_per_s=150),
        DeviceTimes(name="constant-1ms", sync=Constant(MS)),
        DeviceTimes(name="exponential-1ms", sync=Exponential(float(MS))),
        DeviceTimes(name="lognormal-1ms", sync=LogNormal(MS * exp(-0.5), 1.0)),
        DeviceTimes(name="put-100us", sync=Constant(0), put_ns=100 * US),
    ]
    return {times.name: times for times in disks}


def _disk(name: str, sync: Distribution, *, mib_per_s: int) -> DeviceTimes:
    ns_per_kib = 10**9 // (mib_per_s * 1024)
    return _here(name, sync, sync_ns_per_kib=ns_per_kib, convert_ns=0, convert_ns_per_kib=0)


PRESETS: Mapping[str, DeviceTimes] = MappingProxyType(_presets())
