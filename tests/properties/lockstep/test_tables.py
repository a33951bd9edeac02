"""Test that broker tables are compared with the model, in memory and after crashes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from tornpage.impl.groups.config_file import ConfigFile
from tornpage.impl.groups.config_table import ConfigTable
from tornpage.impl.parts import Parts
from tornpage.model.operations import ChangeTable, Close, Crash, FailSync, Open, Operation, Put
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.judge.ledgers import BROKER_TABLES, READERS, entry_fields
from tornpage.properties.lockstep.lockstep import Lockstep
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Settings

SET, OTHER, REMOVE = ChangeTable("topics", "T", 1), ChangeTable("groups", "g", 3), ChangeTable("topics", "T", -1)
TOPICS, GROUPS = BROKER_TABLES


class StaysInMemory(ConfigTable[Any]):
    """The mistake: a change is not saved."""

    def _change(self, entries: dict[Any, Any]) -> None:
        self._entries = entries


class NeverRemoves(ConfigTable[Any]):
    """The mistake: a removed entry stays in the table."""

    def delete(self, key: Any) -> bool:
        return key in self._entries


class WithoutSync(ConfigFile):
    """The mistake: the new file is not synced before it replaces the old one."""

    def _write(self, path: str, content: bytes) -> None:
        file = self._files.create(path)
        self._files.pwrite(file, content, 0)
        self._files.close(file)


def run_all(trial: Lockstep, operations: Sequence[Operation]) -> None:
    for operation in operations:
        trial.run(operation)


def test_tables_outlive_closes_and_crashes(tracker: DirtyTracker) -> None:
    trial = lockstep_of(Settings(file_bytes=1024), tracker=tracker)
    operations: tuple[Operation, ...] = (
        SET, OTHER, ChangeTable("topics", "T", 2), Crash(), REMOVE, Crash(kill=True), SET, Close(), Open(), REMOVE,
        REMOVE,
    )  # fmt: skip
    run_all(trial, operations)
    assert trial.pair.model.tables == ((("groups", "g"), 3),)
    assert trial.coverage["removed_entry"] == 2
    assert trial.memory.versions.legal_versions(1 << 30)[GROUPS] == frozenset({(("g", 3),)})


@pytest.mark.parametrize("kill", [False, True])
@pytest.mark.parametrize("back", range(1, 12, 2))
def test_crash_inside_a_change_leaves_the_old_table_or_the_new_one(
    tracker: DirtyTracker, back: int, kill: bool
) -> None:
    trial = lockstep_of(Settings(file_bytes=1024), tracker=tracker)
    run_all(trial, (SET, ChangeTable("topics", "T", 2), Crash(kill=kill, back=back)))
    assert trial.pair.model.tables in (((("topics", "T"), 1),), ((("topics", "T"), 2),))


def test_no_table_changes_before_a_failing_sync(tracker: DirtyTracker) -> None:
    trial = lockstep_of(Settings(file_bytes=1024), tracker=tracker)
    run_all(trial, (Put(), FailSync(), SET))
    assert trial.pair.model.tables == ()


@pytest.mark.parametrize(
    ("parts", "operations", "sentence"),
    [
        ({ConfigTable: StaysInMemory}, (SET, Crash()), "topics.json is neither the old version nor the new one"),
        ({ConfigTable: NeverRemoves}, (SET, REMOVE), "the table of topics is not that of topics.json"),
        ({ConfigFile: WithoutSync}, (SET, ChangeTable("topics", "T", 2), Crash()), "topics.json is"),
    ],
)
def test_mistakes_of_tables_are_found(
    tracker: DirtyTracker, parts: Mapping[Any, Any], operations: tuple[Operation, ...], sentence: str
) -> None:
    trial = lockstep_of(Settings(file_bytes=1024), tracker=tracker, parts=Parts(parts))
    with pytest.raises(GuaranteeBroken, match=rf"contract 13: .*{sentence}"):
        run_all(trial, operations)


@pytest.mark.parametrize("change", [lambda entry: entry | {"perm": 5}, lambda entry: {"topicName": "T"}])
def test_entry_with_other_fields_has_no_number(change: Callable[[dict[str, object]], dict[str, object]]) -> None:
    document = {"topicConfigTable": {"T": entry_fields("topics", "T", 4)}}
    assert READERS[TOPICS](document) == (("T", 4),)
    changed = change(entry_fields("topics", "T", 4))
    assert READERS[TOPICS]({"topicConfigTable": {"T": changed}}) == (("T", str(changed)),)
