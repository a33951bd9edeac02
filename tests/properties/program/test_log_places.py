"""Test lockstep runs with a log in two directories, and mistakes that only they show."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.log.log_files import LogFileMaker, file_name
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.parts import Parts
from tornpage.model.operations import Close, Crash, Damage, FailSync, Flush, Open, Operation, Put, Step
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.lockstep.lockstep import Lockstep
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import BadToken, Case, Disk, Settings
from tornpage.properties.program.log_places import ROOT, file_at, log_directories, log_files

SETTINGS = Settings(file_bytes=4096, log_paths=2)
PUTS = (Put(body_bytes=1800),) * 7
"""Two of them fill a file."""
FIRST = file_at(0, file_bytes=4096, log_paths=2)


def run(
    tracker: DirtyTracker,
    operations: Sequence[Operation],
    *,
    settings: Settings = SETTINGS,
    parts: Parts | None = None,
) -> Lockstep:
    trial = lockstep_of(settings, tracker=tracker, parts=parts)
    for operation in operations:
        trial.run(operation)
    return trial


def test_places_are_those_of_rocketmq() -> None:
    assert log_directories(1) == log_directories(2)[:1]
    first, second = (f"{ROOT}/{name}" for name in log_directories(2))
    assert first < second
    paths = [file_at(base, file_bytes=4096, log_paths=2) for base in range(0, 4 * 4096, 4096)]
    assert [path.rpartition("/")[0] for path in paths] == [first, second, first, second]
    assert log_files([*sorted(paths), "/store/abort", "/store/config/x"]) == paths


@pytest.mark.parametrize("disk", ["posix-strict", "journal"])
@pytest.mark.parametrize("mode", [{}, {"sync_flush": True}, {"pool_buffers": 1}, {"files_ahead": 1}], ids=str)
def test_a_right_store_passes_every_disaster_in_two_directories(
    tracker: DirtyTracker, disk: Disk, mode: dict[str, int]
) -> None:
    settings = replace(SETTINGS, disk=disk, **mode)  # type: ignore[arg-type]
    operations = (
        *PUTS, Flush(), Crash(), *PUTS, Step(service="allocate"), Crash(kill=True, back=2), *PUTS, Close(), Open(),
        FailSync(), *PUTS, Flush(), Put(), Crash(back=1), *PUTS, Damage(kind="flip", record=3, amount=900), *PUTS,
        Damage(kind="truncate", amount=77),
    )  # fmt: skip
    trial = run(tracker, operations, settings=settings)
    assert len(trial.performed) == len(operations)
    directories = {path.rpartition("/")[0] for path in log_files(trial.files.paths())}
    assert directories == {f"{ROOT}/{name}" for name in log_directories(2)}


class _AlwaysTheFirst(LogFileMaker):
    """Each file goes into the first directory."""

    def path_of(self, base_offset: int) -> str:
        return f"{self.directories.paths[0]}/{file_name(base_offset)}"


class _FirstDirectorySynced(LogFileMaker):
    """Always the first directory is synced; the new file may be in the other one."""

    def _sync_name(self, path: str) -> None:
        self._files.sync_directory(self.directories.paths[0])


class _RemovalNotSynced(LogFileMaker):
    """A file is removed from one directory, and another one is synced."""

    def remove(self, mapped: MappedFile) -> None:
        mapped.close()
        self._files.unlink(mapped.path)
        self._files.sync_directory(self.directories.paths[0])


class _OrderOfPaths(MappedFileQueue):
    """Files are loaded in the order of their paths (RMQ-B10, before 4.9.2)."""

    def adopt(self, path: str, *, writable: bool) -> None:
        super().adopt(path, writable=writable)
        self.mapped.sort(key=lambda mapped: mapped.path)


HISTORIES: dict[str, list[tuple[Operation, ...]]] = {
    "power loss": [(*PUTS, Flush(), Put(), Crash(back=back), *PUTS) for back in range(12)],
    "power loss in recovery": [  # later files have records, which the recovery cuts
        (*PUTS, Crash(survived={f"page {FIRST} 0": 1}, others="kept"), Crash(back=back), *PUTS) for back in range(1, 40)
    ],
}


@pytest.mark.parametrize("history", HISTORIES)
def test_histories_are_right_without_a_mistake(tracker: DirtyTracker, history: str) -> None:
    for operations in HISTORIES[history]:
        run(tracker, operations)


@pytest.mark.parametrize(
    ("mistake", "history", "contracts"),
    [
        (Parts({LogFileMaker: _AlwaysTheFirst}), "power loss", {8}),
        (Parts({LogFileMaker: _FirstDirectorySynced}), "power loss", {16}),  # the sync of a directory without a change
        (Parts({LogFileMaker: _RemovalNotSynced}), "power loss in recovery", {3}),
        (Parts({MappedFileQueue: _OrderOfPaths}), "power loss", {1}),
    ],
    ids=["place", "directory of a new file", "directory of a removed file", "order of paths"],
)
def test_mistakes_with_two_directories_are_seen(
    tracker: DirtyTracker, mistake: Parts, history: str, contracts: set[int]
) -> None:
    broken = set()
    for operations in HISTORIES[history]:
        try:
            run(tracker, operations, parts=mistake)
        except GuaranteeBroken as error:
            broken.add(error.contract)
    assert broken == contracts


@pytest.mark.parametrize("log_paths", [0, 3, -1])
def test_case_with_another_number_of_directories_is_refused(log_paths: int) -> None:
    with pytest.raises(BadToken, match="log_paths"):
        Case.from_token(Case(Settings(log_paths=log_paths), ()).token())
