"""Run every measurement in tiny sizes: right name, positive rounds, no files left."""

import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tornpage.bench import group_commit
from tornpage.bench.figures import Figure, Skipped, describe_machine, figure, file_system_of, scratch
from tornpage.bench.sizes import TINY, Sizes
from tornpage.bench.suite import SUITE, Measurement, measure
from tornpage.properties.contract import HarnessError

ALL = list(dict.fromkeys(measurement for room in SUITE.values() for measurement in room))
OF_THE_MACHINE = {"write_protect_look_us_1m"}
"""Figures that some machines cannot provide."""

ON_SPARK = {
    one.__name__
    for one in ALL
    if one.__name__.startswith(("spark", "source2", "group_by", "topics2", "task_ms", "campaign"))
}
"""Figures that start a session each, or run whole shards."""

BESIDE_JAVA = {"replica_async_over_java_1024", "replica_sync64_over_java_1024", "java_first_confirmed_s"}
"""Figures that wait for a pair of Java stores, which takes 10 to 20 s."""

MEASURED = [
    pytest.param(one, marks=[pytest.mark.deep] if one.__name__ in ON_SPARK | BESIDE_JAVA else [], id=one.__name__)
    for one in ALL
]


def test_the_suite_names_each_figure_once() -> None:
    names = [measurement.__name__ for measurement in ALL]
    assert len(names) == len(set(names))
    assert list(SUITE) == ["put", "read", "replication", "recover", "lab", "target", "sim", "audit", "campaign"]


@pytest.mark.slow
@pytest.mark.parametrize("measurement", MEASURED)
def test_a_measurement_is_positive_and_cleans_up(measurement: Measurement, tmp_path: Path) -> None:
    result = measure_one(measurement, tmp_path)
    if result is not None:
        assert result.name == measurement.__name__
        assert result.unit
        assert all(value > 0 for value in result.rounds)
        assert result.value == median(result.rounds)
        assert result.file_system == file_system_of(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def measure_one(measurement: Measurement, directory: Path) -> Figure | None:
    try:
        return measurement(str(directory), seconds=0.01, sizes=TINY)
    except Skipped as reason:
        if measurement.__name__ not in OF_THE_MACHINE:
            raise AssertionError(f"{measurement.__name__} was skipped: {reason}") from reason
    return None


def test_a_figure_drops_the_warm_up_and_is_the_median_of_the_other_rounds(tmp_path: Path) -> None:
    values = iter((1000.0, 3.0, 1.0, 2.0))
    taken = figure("f", "x/s", lambda: next(values), directory=str(tmp_path), seconds=0.0, rounds_min=3)
    assert taken.rounds == (3.0, 1.0, 2.0)
    assert taken.value == 2.0


def test_scratch_is_gone_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), scratch(str(tmp_path)) as path:  # noqa: PT012
        Path(path, "file").touch()
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_scratch_is_gone_after_an_interrupt_while_it_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One Ctrl-C of twenty interrupted the removal of a store and left it behind."""
    real, calls = shutil.rmtree, iter((True, False))

    def interrupted(path: str, *, ignore_errors: bool) -> None:
        if next(calls):
            raise KeyboardInterrupt
        real(path, ignore_errors=ignore_errors)

    monkeypatch.setattr(shutil, "rmtree", interrupted)
    with pytest.raises(KeyboardInterrupt), scratch(str(tmp_path)) as path:
        Path(path, "file").touch()
    assert list(tmp_path.iterdir()) == []


def test_two_scratch_directories_never_meet(tmp_path: Path) -> None:
    with scratch(str(tmp_path)) as first, scratch(str(tmp_path)) as second:
        assert first != second


def test_the_machine_is_named(tmp_path: Path) -> None:
    machine = describe_machine(str(tmp_path))
    assert machine.processor
    assert machine.cores >= 1
    assert machine.python.startswith("CPython 3.")
    assert machine.file_system == file_system_of(str(tmp_path))


def test_a_disk_in_memory_is_a_finding() -> None:
    if file_system_of("/dev/shm") != "tmpfs":
        pytest.skip("/dev/shm is no tmpfs here")
    result = measure([], "/dev/shm", seconds=0.01)
    assert [finding["sentence"] for finding in result.findings] == ["tmpfs: sync figures are meaningless"]


def test_an_interrupted_run_keeps_what_it_has(tmp_path: Path) -> None:
    result = measure(["put"], str(tmp_path), seconds=0.01, sizes=TINY, progress=interrupting_at("put_100"))
    assert result.interrupted
    taken = [figure.name for figure in result.figures]
    assert taken == ["put_only_1024", "put_keyed_1024", "put_with_dispatch_1024"]
    assert list(tmp_path.iterdir()) == []


def test_a_figure_of_two_rooms_is_taken_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crc(directory: str, *, seconds: float, sizes: Sizes) -> Figure:
        return Figure("crc", 1.0, "GB/s", (1.0,), "ext4")

    monkeypatch.setattr("tornpage.bench.suite.SUITE", {"read": (crc,), "recover": (crc,)})
    assert len(measure(["read", "recover"], str(tmp_path), seconds=0.01).figures) == 1


def interrupting_at(name: str) -> Callable[[str], None]:
    def progress(current: str) -> None:
        if current == name:
            raise KeyboardInterrupt

    return progress


@pytest.mark.parametrize("room", ["recover", "read"])
def test_a_log_that_does_not_fit_costs_its_figures_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: str
) -> None:
    """On a disk without 4 GiB the harness failed after a minute, and all figures were lost."""
    sizes = replace(TINY, open_bytes=1 << 60, recover_bytes=1 << 60)
    result = measure([room], str(tmp_path), seconds=0.01, sizes=sizes)
    sentences = [finding["sentence"] for finding in result.findings if finding["code"] == "skipped"]
    assert sentences
    assert all(" MiB free, and its store takes up to 1,099,511,627,776 MiB" in said for said in sentences)
    assert "crc_gb_per_s_1024" in {figure.name for figure in result.figures}
    assert list(tmp_path.iterdir()) == []


def test_a_thread_that_breaks_off_makes_no_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its puts counted in the rate of 64 outstanding ones, which it had not made."""
    real, calls = group_commit._put_in_window, iter(range(99))

    def breaks_off(*arguments: Any, **options: Any) -> int:
        if next(calls) == 1:
            raise MemoryError
        return real(*arguments, **options)

    monkeypatch.setattr(group_commit, "_put_in_window", breaks_off)
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    with pytest.raises(HarnessError, match="8 puts were refused"):
        group_commit.sync_64(str(tmp_path), seconds=0.01, sizes=TINY)


def test_sizes_of_a_round_fit_one_log_file() -> None:
    for sizes in (Sizes(), TINY):
        assert 1200 * (sizes.puts + 50) < sizes.log_file_bytes
