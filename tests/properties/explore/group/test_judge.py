"""Test the judge of a group's data files, and a few fail-overs of real processes."""

from pathlib import Path

import pytest

from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.raft.messages import Carried
from tornpage.impl.raft.raft_log import RaftLog
from tornpage.properties.explore.group.judge import judged
from tornpage.properties.explore.group.producer import body_of, number_of
from tornpage.properties.explore.group.run import quantile, run_group


def log_of(place: Path, *bodies: str) -> Path:
    """Write a log whose first entry begins a term, and return its data folder."""
    log = RaftLog(OsFiles(), str(place), data_file_bytes=1_024, index_file_bytes=4_096)
    log.append([Carried(1, b""), *(Carried(1, each.encode()) for each in bodies)])
    log.sync()
    log.close()
    return place / "data"


BODIES = tuple(map(body_of, range(12)))


def test_equal_logs_with_all_entries_hold(tmp_path: Path) -> None:
    logs = [log_of(tmp_path / name, *BODIES) for name in "abc"]
    found = judged(logs, {number: number + 1 for number in range(12)})
    assert (found.entries, found.lost, found.unequal) == (13, (), "")
    assert found.log_bytes > 1_024


def test_an_entry_at_another_index_is_lost(tmp_path: Path) -> None:
    logs = [log_of(tmp_path / "a", *BODIES)]
    assert judged(logs, {3: 4, 4: 4, 11: 99}).lost == (4, 11)


def test_an_entry_that_one_log_lacks_is_lost(tmp_path: Path) -> None:
    logs = [log_of(tmp_path / "a", *BODIES), log_of(tmp_path / "b", *BODIES[:-1])]
    found = judged(logs, {number: number + 1 for number in range(12)})
    assert found.lost == (11,)
    assert found.unequal.startswith("the logs of a and b differ in 0")


@pytest.mark.parametrize("at", [0, 4, 8, 24, 44, 50, 56])
def test_an_entry_with_a_changed_byte_is_lost(tmp_path: Path, at: int) -> None:
    folder = log_of(tmp_path / "a", *BODIES)
    file = folder / f"{0:020d}"
    data = bytearray(file.read_bytes())
    data[48 + at] ^= 1
    file.write_bytes(data)
    assert judged([folder], {0: 1}).lost == (0,)


def test_a_body_has_its_number() -> None:
    assert [number_of(body_of(number).encode()) for number in (0, 7, 10**8)] == [0, 7, 10**8]
    assert [number_of(each) for each in (b"", b"12345678", b"12345678x")] == [None] * 3


def test_quantiles_are_values_of_the_list() -> None:
    values = [float(value) for value in range(100, 0, -1)]
    assert [quantile(values, share) for share in (0.0, 0.5, 0.9, 0.99, 1.0)] == [1, 50, 90, 99, 100]
    assert quantile([], 0.5) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize(("hangs", "messages"), [(False, False), (True, False), (False, True)])
def test_leaders_of_real_processes_are_lost(hangs: bool, messages: bool) -> None:
    report = run_group(1, seed=3, hangs=hangs, messages=messages, directory=None, progress=lambda _: None)
    assert not report.is_vacuous
    assert (report.lost, report.unequal, len(report.failovers_ms)) == ((), "", 1)
    assert report.entries > report.acknowledged
    assert report.appends_per_s > 0


@pytest.mark.deep
def test_a_hundred_kills_of_leaders_lose_no_acknowledged_entry() -> None:
    report = run_group(100, seed=2, directory=None, progress=lambda _: None)
    assert not report.is_vacuous
    assert (report.lost, report.unequal, len(report.failovers_ms)) == ((), "", 100)
