"""Test slices of measurements: complete rows, no files left, and their machine."""

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.sim.made_samples import made_samples
from tests.sim.support import SYNC, scenario
from tornpage.bench.calibration import page_slices, probes, scratch_file, sync_sweep
from tornpage.bench.calibration.calibrate import CannotCalibrate, calibrate, require_disk
from tornpage.bench.calibration.driven import COMMIT_DTYPE, FLUSH_DTYPE, Driven
from tornpage.bench.calibration.load_slices import samples_of
from tornpage.bench.calibration.probes import NEEDED_BYTES, Slice, slices
from tornpage.bench.calibration.snapshot import Pressure, machine_snapshot, pressure_between
from tornpage.bench.figures import describe_machine
from tornpage.impl.config.policy import FlushDiskType
from tornpage.run import directory as run_directory
from tornpage.sim.device.calibration import Calibration
from tornpage.sim.device.samples import MODES, PROBES, STATES, Samples

MIB = 1 << 20


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices of some milliseconds."""
    monkeypatch.setattr(sync_sweep, "GAPS_US", (0, 150))
    monkeypatch.setattr(sync_sweep, "SMALL_PAGES", (1, 3))
    monkeypatch.setattr(sync_sweep, "LARGE", ((64, (0,)),))
    monkeypatch.setattr(sync_sweep, "SMALL_TIMES", 2)
    monkeypatch.setattr(page_slices, "TOUCHED_BYTES", 4 * MIB)
    monkeypatch.setattr(page_slices, "COPIES", 4)
    monkeypatch.setattr(page_slices, "WRITES", ((4096, 2), (MIB, 2)))
    monkeypatch.setattr(page_slices, "FILE_BYTES", (MIB,))
    monkeypatch.setattr(probes, "LOAD_SECONDS", 0.02)


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_a_round_measures_everything_once_and_leaves_nothing(tmp_path: Path) -> None:
    found = slices(str(tmp_path), np.random.default_rng(1))
    parts = {one.name: one.run(4) for one in found}
    assert len(parts) == len(found) == 2 + len(MODES) * len(STATES) + len(probes.LOADS)
    assert not list(tmp_path.iterdir())
    samples = Samples.joined(parts.values())
    assert set(samples.syncs["round"].tolist()) | set(samples.probes["round"].tolist()) == {4}
    assert min(samples.syncs["took_ns"].min(), samples.probes["took_ns"].min()) > 0
    measured = {PROBES[number] for number in samples.probes["probe"].tolist()}
    assert measured >= set(PROBES) - {"wake", "turn", "request"}, "those three come by chance"
    chosen = samples.syncs[samples.syncs["rate_per_s"] == 0]
    for mode in range(len(MODES)):
        for state in range(len(STATES)):
            pages = chosen["pages"][(chosen["mode"] == mode) & (chosen["state"] == state)]
            assert Counter(pages.tolist()) == {1: 4, 3: 4, 64: 1}
    load = samples.syncs[samples.syncs["rate_per_s"] > 0]
    assert {(row["mode"], row["state"]) for row in load} == {(0, 0)}


def test_two_rounds_of_a_seed_differ_in_order_and_seeds_repeat_it() -> None:
    def orders(seed: int) -> list[list[str]]:
        rng = np.random.default_rng(seed)
        return [[one.name for one in slices("/proc/nonexistent", rng)] for _ in range(3)]

    assert orders(1) == orders(1) != orders(2)
    assert len({tuple(order) for order in orders(1)}) == 3


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(5, "Input/output error")], ids=["Ctrl-C", "EIO"])
def test_a_slice_that_ends_early_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    real, calls = os.fdatasync, 0

    def fails(fd: int) -> None:
        nonlocal calls
        calls += 1
        if calls % 5 == 0:
            raise error
        real(fd)

    monkeypatch.setattr(os, "fdatasync", fails)
    for one in slices(str(tmp_path), np.random.default_rng(1), loads=()):
        if one.name.startswith("syncs"):
            with pytest.raises(type(error)):
                one.run(0)
            assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("small")
def test_syncs_follow_each_other_without_a_gap_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored: list[tuple[int, int]] = []
    monkeypatch.setattr(sync_sweep, "_store_mapped", lambda file, begin, end: stored.append((begin, end)))
    found = sync_sweep.sync_sweep(str(tmp_path), "mmap", "reserved", np.random.default_rng(2), 0)
    assert [begin for begin, _ in stored] == [0, *(end for _, end in stored[:-1])]
    assert all(begin < end and end % sync_sweep.RECORD_BYTES == 0 for begin, end in stored)
    pages = [-(-end // 4096) - begin // 4096 for begin, end in stored]
    assert pages == found.syncs["pages"].tolist()
    assert (found.syncs["gap_ns"] >= 0).all()


def driven_by_hand() -> Driven:
    """Return a slice of five puts.

    One wakes, two wait for a running flush, one arrives while that answers, and one wakes.
    """
    us = 1_000

    def column(*values: int) -> np.ndarray:
        return np.array(values, np.int64) * us

    began = column(1_000, 1_060, 1_120, 1_650, 9_000)
    flushes = np.zeros(4, FLUSH_DTYPE)
    flushes["start_ns"], flushes["end_ns"] = column(100, 1_050, 1_400, 9_080), column(300, 1_300, 1_600, 9_200)
    flushes["to_offset"] = np.array([1, 2, 4, 6]) * 1024
    flushes["from_offset"] = np.array([0, 1, 2, 4]) * 1024
    return Driven(
        replace(scenario(flush=SYNC, workload=2_000.0, messages=5)),
        0,
        began,
        began,
        began + column(20, 30, 40, 50, 60),
        column(1_310, 1_610, 1_620, 9_215, 9_225),
        np.arange(2, 7, dtype=np.int64) * 1024,
        flushes,
        np.zeros(0, COMMIT_DTYPE),
    )


def test_what_a_load_shows_is_told_apart() -> None:
    found = samples_of(driven_by_hand(), 3)
    us = 1_000

    def rows(probe: str) -> list[tuple[int, int, int]]:
        seen = found.probes[found.probes["probe"] == PROBES.index(probe)]
        return [(int(row["amount"]), int(row["gap_ns"]) // us, int(row["took_ns"]) // us) for row in seen]

    assert rows("request") == [(1024, 60, 30), (1024, 60, 40)]
    assert rows("wake") == [(1_001_000_000, 700, 50)], "the put at 1,650 comes too soon after a flush to say who slept"
    assert rows("turn") == [(1, 0, 100)]
    assert sorted(rows("answer")) == [(0, 0, 10), (0, 0, 10), (0, 0, 15), (1, 0, 20), (1, 0, 25)]
    assert rows("put") == []
    assert found.syncs["took_ns"].tolist() == [250 * us, 200 * us, 120 * us]
    assert found.syncs["gap_ns"].tolist() == [750 * us, 100 * us, 7_480 * us]
    assert found.syncs["pages"].tolist() == [1, 1, 1]
    assert set(found.syncs["rate_per_s"].tolist()) == {2_000}


def test_an_asynchronous_load_shows_puts() -> None:
    driven = driven_by_hand()
    flush = replace(driven.scenario.flush, flush_disk_type=FlushDiskType.ASYNC_FLUSH)
    found = samples_of(replace(driven, scenario=replace(driven.scenario, flush=flush)), 0)
    assert {PROBES[number] for number in found.probes["probe"].tolist()} == {"put"}
    assert found.probes["took_ns"].tolist() == [20_000, 30_000, 40_000, 50_000, 60_000]
    assert found.probes["gap_ns"][1:].tolist() == [60_000, 60_000, 530_000, 7_350_000]


@pytest.mark.parametrize("kind", ["tmpfs", "ramfs"])
def test_a_directory_in_memory_is_refused(tmp_path: Path, kind: str) -> None:
    with pytest.raises(CannotCalibrate, match=f"is on {kind}, in memory"):
        calibrate(str(tmp_path), seconds=1, modes=MODES, seed=0, file_system=lambda _: kind)


def test_a_disk_without_room_is_refused() -> None:
    require_disk("/x", "ext4", NEEDED_BYTES)
    with pytest.raises(CannotCalibrate, match="/x has 511 MiB free, measuring takes up to 512 MiB; make room"):
        require_disk("/x", "ext4", NEEDED_BYTES - 1)


def stand_in(monkeypatch: pytest.MonkeyPatch, *, interrupted_in: int = 99) -> None:
    """Make a round one slice of made-up samples; a round may be interrupted."""

    def work(_: np.random.Generator, number: int) -> Samples:
        if number == interrupted_in:
            raise KeyboardInterrupt
        made = made_samples()
        return Samples(made.syncs[made.syncs["round"] == number], made.probes[made.probes["round"] == number])

    monkeypatch.setattr(
        "tornpage.bench.calibration.calibrate.slices",
        lambda *_, **__: [Slice("made up", work, np.random.default_rng(0))],
    )


def test_rounds_end_with_the_time_but_two_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch)
    told: list[str] = []
    found = calibrate(
        str(tmp_path),
        seconds=1e-9,
        modes=MODES,
        seed=0,
        progress=lambda name, _: told.append(name),
        file_system=lambda _: "ext4",
    )
    assert told == ["round 1: made up", "round 2: made up"]
    assert (found.calibration.rounds, found.interrupted) == (2, False)
    assert isinstance(found.calibration, Calibration)


def test_an_interrupted_calibration_keeps_whole_rounds_if_two_are_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch, interrupted_in=3)
    found = calibrate(str(tmp_path), seconds=1e9, modes=MODES, seed=0, file_system=lambda _: "ext4")
    assert (found.calibration.rounds, found.interrupted) == (3, True)
    stand_in(monkeypatch, interrupted_in=1)
    with pytest.raises(KeyboardInterrupt):
        calibrate(str(tmp_path), seconds=1e9, modes=MODES, seed=0, file_system=lambda _: "ext4")


def fake_root(root: Path, device: int, *, partition: bool, journal: bool) -> None:
    disk = root / "sys/devices/disk"
    (disk / "queue").mkdir(parents=True)
    (disk / "queue/read_ahead_kb").write_text("128\n")
    (disk / "queue/scheduler").write_text("[none] bfq\n")
    block = disk / "part1" if partition else disk
    block.mkdir(exist_ok=True)
    link = root / f"sys/dev/block/{os.major(device)}:{os.minor(device)}"
    link.parent.mkdir(parents=True)
    link.symlink_to(block)
    (root / "proc/fs/jbd2" / (f"{block.name}-8" if journal else "other-8")).mkdir(parents=True)
    (root / "proc/pressure").mkdir()
    (root / "proc/pressure/cpu").write_text("some avg10=1.00 avg60=0.00 avg300=0.00 total=2500000\n")
    (root / "proc/stat").write_text("cpu  1 2 3 4 5 6 7 300 9 10\n")
    (root / "proc/meminfo").write_text("MemTotal:  2097152 kB\n")


@pytest.mark.parametrize("partition", [True, False])
@pytest.mark.parametrize("journal", [True, False])
def test_the_snapshot_finds_the_disk_below_a_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partition: bool, journal: bool
) -> None:
    machine = replace(describe_machine("/"), file_system="ext4")
    monkeypatch.setattr("tornpage.bench.calibration.snapshot.describe_machine", lambda _: machine)
    fake_root(tmp_path, os.stat(tmp_path).st_dev, partition=partition, journal=journal)
    found = machine_snapshot(str(tmp_path), tmp_path)
    assert (found["disk"], found["read_ahead_kib"], found["scheduler"]) == ("disk", 128, "[none] bfq")
    assert found["journal"] == ("yes" if journal else "no")
    assert found["memory_mib"] == 2048
    assert "write_cache" not in found, "what the machine does not tell is left out"
    assert str(tmp_path) not in str(found)
    assert os.uname().nodename not in (str(value) for value in found.values())


def test_whether_there_is_a_journal_is_left_out_where_the_disk_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without /sys a disk was reported to have no journal."""
    machine = replace(describe_machine("/"), file_system="ext4")
    monkeypatch.setattr("tornpage.bench.calibration.snapshot.describe_machine", lambda _: machine)
    assert "journal" not in machine_snapshot(str(tmp_path), tmp_path / "nothing")


def test_a_machine_without_proc_is_told_as_far_as_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.read_text

    def read_text(path: Path, *arguments: Any, **options: Any) -> str:
        if path.is_relative_to("/proc"):
            raise FileNotFoundError(2, "No such file or directory")
        return real(path, *arguments, **options)

    monkeypatch.setattr(Path, "read_text", read_text)
    machine = describe_machine("/")
    assert (machine.processor, machine.file_system) == (os.uname().machine, "unknown")
    assert machine_snapshot("/")["memory_mib"] == 0
    assert run_directory.machine(Path("/"))["file_system"] == "no mount found for /"


def test_stolen_time_is_a_share_of_all_cores_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was one of the cores of this process.

    The kernel counts the stolen time of all cores.
    """
    seen: list[int] = []

    def between(begin: Pressure, end: Pressure, cores: int) -> dict[str, float]:
        seen.append(cores)
        return dict(pressure_between(begin, end, cores))

    stand_in(monkeypatch)
    monkeypatch.setattr("tornpage.bench.calibration.calibrate.pressure_between", between)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    calibrate(str(tmp_path), seconds=1e-9, modes=MODES, seed=0, file_system=lambda _: "ext4")
    assert seen == [64]


@pytest.mark.usefixtures("small")
def test_what_the_kernel_cannot_populate_took_no_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before Linux 5.14 the time of a refused call counted as time of populating."""
    monkeypatch.setattr(scratch_file, "_MADV_POPULATE_WRITE", 9_999)
    found = page_slices.page_slice(str(tmp_path), np.random.default_rng(1), 0)
    measured = Counter(PROBES[number] for number in found.probes["probe"].tolist())
    assert "populate" not in measured
    assert measured["pwrite"] == len(STATES) * 4


def test_pressure_is_what_the_counters_grew_by(tmp_path: Path) -> None:
    fake_root(tmp_path, 5, partition=False, journal=False)
    begin = Pressure.now(tmp_path)
    assert (begin.cpu_s, begin.io_s, begin.stolen_s) == (2.5, 0.0, 300 / os.sysconf("SC_CLK_TCK"))
    later = replace(begin, at_s=begin.at_s + 10, cpu_s=begin.cpu_s + 2.5, stolen_s=begin.stolen_s + 4)
    assert pressure_between(begin, later, cores=2) == {
        "measured_s": 10.0,
        "cpu_pressure_share": 0.25,
        "io_pressure_share": 0.0,
        "stolen_share": 0.2,
    }
    assert Pressure.now(tmp_path / "nothing").cpu_s == 0.0
