"""Test a store of two log directories of which one is on a full disk."""

from dataclasses import replace

import pytest

from tornpage.impl.log.log_directories import LogDirectories
from tornpage.model.operations import Clean, Crash, Flush, Open, Operation, Put
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Case, Settings
from tornpage.properties.program.log_places import log_files

SETTINGS = Settings(file_bytes=1024, log_paths=2, second_disk_full=True)

FILL = [Put(body_bytes=600, fill=number) for number in range(4)]


def run(tracker: DirtyTracker, *operations: Operation) -> list[str]:
    """Return the paths of the log files after these operations."""
    trial = lockstep_of(SETTINGS, tracker=tracker)
    for operation in operations:
        trial.run(operation)
    return log_files(trial.files.paths())


def test_all_files_are_in_the_directory_that_has_room(tracker: DirtyTracker) -> None:
    paths = run(tracker, *FILL, Flush(), Crash(), Open(), *FILL, Flush())
    assert len(paths) >= 8
    assert all(path.startswith("/store/commitlog/") for path in paths)


def test_all_files_are_in_the_second_directory_if_the_first_one_is_full(tracker: DirtyTracker) -> None:
    trial = lockstep_of(Settings(file_bytes=1024, log_paths=2, first_disk_full=True), tracker=tracker)
    operations: tuple[Operation, ...] = (*FILL, Flush(), Crash(), Open(), *FILL, Flush())
    for operation in operations:
        trial.run(operation)
    paths = log_files(trial.files.paths())
    assert len(paths) >= 8
    assert all(path.startswith("/store/morelog/") for path in paths)


def test_directories_take_turns_once_both_are_full(tracker: DirtyTracker) -> None:
    paths = run(tracker, *FILL, Flush(), Clean(percent=88), *FILL, Flush(), Crash(), Open(), *FILL)
    assert any(path.startswith("/store/morelog/") for path in paths)


def test_a_file_in_the_full_directory_breaks_the_contract(
    tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LogDirectories, "_is_full", lambda self, usage: False)
    with pytest.raises(GuaranteeBroken):
        run(tracker, *FILL, Flush(), Crash())


def test_the_setting_is_part_of_a_case() -> None:
    case = Case(SETTINGS, ())
    assert Case.from_token(case.token()) == case
    assert "second_disk_full" not in Case(replace(SETTINGS, second_disk_full=False), ()).document()["settings"]
