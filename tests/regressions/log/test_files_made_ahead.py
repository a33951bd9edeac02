"""Files made ahead of the writes are no damage if a crash loses names or sizes.

Symptom: a killed or powerless RocketMQ store opened read-only, `short_file` or `missing_file`, although file 0 had
every record. Queue and key reads gave nothing, and `max_offset` counted the files of zeros.
Cause: RocketMQ makes two log files ahead. An open forgave one empty newest file only.
Fix: an empty or missing file is the end of the log if only empty files and files of zeros follow, unless the log was
durable past it. These files are removed.
Found by: crash states of RocketMQ's own writes, judged by our store (8 of 309 on disk journal).
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.impl.killed import FILE_BYTES, Killed, MakeKilled, message, numbers
from tests.support.impl.stores import caught_up, open_store, snapshot
from tornpage.cli.main import cli
from tornpage.impl.io.files import Files
from tornpage.impl.log.durable_floor import Floor
from tornpage.impl.log.loading import Finding, FoundLog, examine_log
from tornpage.impl.log.log_directories import LogDirectories
from tornpage.impl.parts import Parts
from tornpage.properties.judge.image import read_image
from tornpage.properties.judge.judgement import Judgement, judge_image

EMPTY, ZEROS = 0, FILE_BYTES
TAILS = {
    "next empty": {1024: EMPTY},
    "both empty": {1024: EMPTY, 2048: EMPTY},
    "next empty, then zeros": {1024: EMPTY, 2048: ZEROS},
    "next zeros, then empty": {1024: ZEROS, 2048: EMPTY},
    "next missing, then zeros": {2048: ZEROS},
    "next missing, then empty": {2048: EMPTY},
    "both zeros": {1024: ZEROS, 2048: ZEROS},
}


@pytest.fixture
def killed(tmp_path: Path) -> MakeKilled:
    """Return a maker of killed stores with `puts` records, of which `flushed` are on disk."""

    def make(puts: int, *, flushed: int = 0) -> Killed:
        with open_store(tmp_path / "live") as store:
            results = []
            for number in range(puts):
                results.append(store.put(message(number)))
                if number + 1 == flushed:
                    store.flush()
            caught_up(store)
            shutil.copytree(tmp_path / "live", tmp_path / "killed")
        return Killed(tmp_path / "killed", tuple(results))

    return make


@pytest.fixture(params=TAILS, ids=lambda name: name.replace(" ", "-"))
def tailed(request: pytest.FixtureRequest, killed: MakeKilled) -> Killed:
    """Return a store of three records in file 0 without a floor, with files made ahead."""
    found = killed(3)
    found.forget_floor()
    for base, size in TAILS[request.param].items():
        found.log(base).write_bytes(bytes(size))
    return found


def test_the_store_is_writable_and_has_every_record(tailed: Killed) -> None:
    end = tailed.results[-1].offset + tailed.results[-1].size_bytes
    with open_store(tailed.directory) as store:
        assert (store.read_only_reason, store.max_offset) == (None, end)
        assert numbers(store) == [0, 1, 2]
        assert store.put(message(3)).stored
    with open_store(tailed.directory) as store:
        assert numbers(store) == [0, 1, 2, 3]


@pytest.mark.parametrize("command", ["audit", "inspect"])
def test_commands_that_look_find_no_damage(tailed: Killed, command: str) -> None:
    seen = CliRunner().invoke(cli, [command, str(tailed.directory), "--json"])
    assert seen.exit_code in (0, 3), seen.stdout
    assert [each["code"] for each in json.loads(seen.stdout)["findings"] if each["severity"] == "damage"] == []


def judged(directory: Path, components: Parts | None = None) -> Judgement:
    return judge_image(read_image(directory), components=components, samples=None)


def test_recovery_crashed_everywhere_leads_to_the_same_store(tailed: Killed) -> None:
    assert judged(tailed.directory).numbers("broken") == []


def blocked(files: Files, directories: LogDirectories, *, file_bytes: int, floor: Floor | None) -> FoundLog:
    """Take files made ahead for damage, as before."""
    found = examine_log(files, directories, file_bytes=file_bytes, floor=floor)
    ahead = tuple(Finding("damage", "short_file", path, 0, f"{path}: not expected") for path in found.leftovers)
    return replace(found, findings=found.findings + ahead, leftovers=())


def test_a_store_that_takes_them_for_damage_is_noticed(killed: MakeKilled) -> None:
    found = killed(3)
    found.forget_floor()
    found.log(1024).touch()
    found.log(2048).touch()
    assert judged(found.directory, Parts({examine_log: blocked})).numbers("broken") == [7]


def _data_after_the_gap(found: Killed) -> None:
    found.log(2048).write_bytes(bytes(500) + b"rot" + bytes(FILE_BYTES - 503))


def _short_after_the_gap(found: Killed) -> None:
    found.log(2048).write_bytes(bytes(500))


@pytest.mark.parametrize("harm", [_data_after_the_gap, _short_after_the_gap])
def test_anything_else_after_a_gap_is_damage(killed: MakeKilled, harm: Callable[[Killed], None]) -> None:
    found = killed(3)
    found.forget_floor()
    harm(found)
    before = snapshot(found.directory)
    with open_store(found.directory) as store:
        assert store.read_only_reason is not None
    assert snapshot(found.directory) == before


def test_a_missing_file_below_the_floor_is_damage(killed: MakeKilled) -> None:
    """File 2048 had records; its zeros do not make the loss of file 1024 harmless."""
    found = killed(7, flushed=7)
    found.log(1024).unlink()
    found.log(2048).write_bytes(bytes(FILE_BYTES))
    with open_store(found.directory) as store:
        assert store.read_only_reason is not None
        assert store.findings[0].code == "missing_file"
