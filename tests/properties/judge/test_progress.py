"""Test that judges of progress files refuse mistakes, and that the ledger is right.

The ledger has the legal versions of each moment.
"""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tornpage.model.operations import Close, CommitOffset, Flush, Open, Operation, Put, QueryOffsets, Step
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.disk import Image
from tornpage.properties.judge.delay import delivery_goes_on_where_it_was_saved
from tornpage.properties.judge.evidence import DELETED_TOPICS, Recovered
from tornpage.properties.judge.judges import JUDGES
from tornpage.properties.judge.ledgers import (
    CONSUMER_OFFSETS,
    DELAY_OFFSETS,
    LIGHT_CONSUMER_OFFSETS,
    ProgressLedger,
    versions_in,
)
from tornpage.properties.judge.progress import files_are_old_or_new, nobody_is_led_past, progress_effects
from tornpage.properties.judge.rulings import require
from tornpage.properties.lockstep.lockstep import Lockstep
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Settings

SAVE = Step(service="progress", after_ms=5_000)
READ = (Put(), Put(), Step(service="reput"), Flush(), CommitOffset(behind=1), SAVE)
SAID = ((("T", "g", 0), 1),)


def carried_out(tracker: DirtyTracker, *operations: Operation) -> Lockstep:
    trial = lockstep_of(Settings(file_bytes=1024), tracker=tracker)
    for operation in operations:
        trial.run(operation)
    return trial


@pytest.fixture
def found(tracker: DirtyTracker) -> Recovered:
    trial = carried_out(tracker, *READ)
    return trial.recovery.judged_at_rest()


def test_what_was_saved_is_what_is_there(found: Recovered) -> None:
    assert found.versions_before[CONSUMER_OFFSETS] == SAID
    assert progress_effects(found) >= {"progress_saved"}


@pytest.mark.parametrize("said", [(), ((("T", "g", 0), 2),), ("unreadable", "[]")])
def test_a_version_that_nobody_saved_is_noticed(found: Recovered, said: Any) -> None:
    with pytest.raises(GuaranteeBroken, match=r"consumerOffset\.json is neither"):
        require(files_are_old_or_new(replace(found, versions_before={CONSUMER_OFFSETS: said})))


def on_disk(found: Recovered, name: str, content: bytes) -> Recovered:
    """The crash has left another content on the disk."""
    before = found.files.base
    files: Any = SimpleNamespace(base=Image(before.directories, {**before.files, name: content}))
    return replace(found, files=files)


def all_judge(found: Recovered) -> None:
    for judge in JUDGES:
        require(judge(found))


@pytest.mark.parametrize("content", [b"", b"\0\0", b"{"], ids=repr)
@pytest.mark.parametrize("name", [CONSUMER_OFFSETS, f"{CONSUMER_OFFSETS}.bak"])
def test_a_torn_file_is_noticed_though_it_says_the_right_thing_with_its_backup(
    found: Recovered, name: str, content: bytes
) -> None:
    with pytest.raises(GuaranteeBroken, match=r"contract 13: consumerOffset.* is torn"):
        require(files_are_old_or_new(on_disk(found, name, content)))
    require(files_are_old_or_new(replace(on_disk(found, name, content), torn_before=frozenset({(name, content)}))))


def test_a_torn_list_of_deleted_topics_is_noticed(found: Recovered) -> None:
    with pytest.raises(GuaranteeBroken, match="contract 13: the list of deleted topics is torn"):
        require(files_are_old_or_new(on_disk(found, DELETED_TOPICS, b"\0" * 40)))
    durable = Image(found.durable.directories, {**found.durable.files, DELETED_TOPICS: b"\0" * 40})
    assert replace(found, durable=durable).key == found.key, "it says as much as none"


def test_delay_offsets_of_another_shape_are_judged_before_anybody_uses_them(found: Recovered) -> None:
    legal = {DELAY_OFFSETS: frozenset({()})}
    spoken = replace(found, versions_before={DELAY_OFFSETS: ("unreadable", "[]")}, legal_versions=legal)
    with pytest.raises(GuaranteeBroken, match=r"contract 13: delayOffset\.json is neither"):
        all_judge(spoken)


def test_delay_offsets_that_recovery_has_not_made_durable_are_noticed(found: Recovered) -> None:
    durable = Image(found.durable.directories, {**found.durable.files, DELAY_OFFSETS: b'{"offsetTable":{1:5}}'})
    spoken = replace(found, durable=durable)
    with pytest.raises(GuaranteeBroken, match=r"contract 12: delayOffset\.json on disk has other progress"):
        require(delivery_goes_on_where_it_was_saved(spoken))


def test_an_offset_that_was_not_brought_back_is_noticed(found: Recovered) -> None:
    with pytest.raises(GuaranteeBroken, match="not those that the recovered queues allow"):
        require(nobody_is_led_past(replace(found, versions_before={CONSUMER_OFFSETS: ((("T", "g", 0), 9),)})))


def test_a_store_that_answers_otherwise_than_its_file_is_noticed(found: Recovered) -> None:
    found.store.commit_offset("g", "T", 0, 0)
    with pytest.raises(GuaranteeBroken, match="a group continues at another offset"):
        require(nobody_is_led_past(found))


@pytest.mark.parametrize("says", [0, 2])
@pytest.mark.parametrize("queues_created_late", [False, True])
def test_a_level_that_goes_on_elsewhere_is_noticed(
    tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch, says: int, queues_created_late: bool
) -> None:
    put, due = Put(properties="DELAY\x011"), Step(service="schedule", after_ms=2_000)
    trial = carried_out(tracker, put, Step(service="reput"), due, due, due, Close(), Open())
    disk = trial.pair.new_disk(trial.pair.durable(trial.files))
    found = trial.recovery.judged(
        disk, trial.recovery.legal_between(trial.log, trial.log, kill=True), trial.recovery.versions_now()
    )
    assert dict(found.store.delay_offsets()) == {1: 1}
    monkeypatch.setattr(found.store, "delay_offsets", lambda: {1: says})
    with pytest.raises(GuaranteeBroken, match="contract 12: delivery continues at the wrong place"):
        require(delivery_goes_on_where_it_was_saved(replace(found, queues_created_late=queues_created_late)))


@pytest.mark.parametrize(
    ("verb", "answer", "operation"),
    [("commit_offset", lambda *_: 7, CommitOffset()), ("query_offset", lambda *_: None, QueryOffsets()),
     ("diff_total", lambda *_: 7, QueryOffsets()),
     ("query_min_offset_in_all_group", lambda *_, **__: {0: 7}, QueryOffsets())],
)  # fmt: skip
def test_a_wrong_answer_is_noticed(
    tracker: DirtyTracker, verb: str, answer: Callable[..., object], operation: Operation
) -> None:
    trial = carried_out(tracker, *READ)
    setattr(trial.store, verb, answer)
    with pytest.raises(GuaranteeBroken) as broken:
        trial.run(operation)
    assert broken.value.contract == 17


def test_a_trial_knows_its_consumers_behind_a_close(tracker: DirtyTracker) -> None:
    trial = carried_out(tracker, *READ, CommitOffset(), Close(), Open())
    assert trial.pair.consumers.committed == ((("T", "g", 0), 2),)


# ---- the ledger --------------------------------------------------------------------------------------------------


def test_inside_a_verb_two_versions_are_legal_and_behind_it_one() -> None:
    ledger = ProgressLedger({CONSUMER_OFFSETS: ()})
    ledger.saved(CONSUMER_OFFSETS, SAID, 10, 20)
    ledger.saved(CONSUMER_OFFSETS, SAID, 20, 30)
    ledger.saved(CONSUMER_OFFSETS, (), 30, 40)
    legal = {event: set(ledger.legal_versions(event)[CONSUMER_OFFSETS]) for event in (0, 9, 10, 19, 20, 29, 30, 39, 40)}
    assert legal == {0: {()}, 9: {()}, 10: {(), SAID}, 19: {(), SAID}, 20: {SAID}, 29: {SAID},
                     30: {SAID, ()}, 39: {SAID, ()}, 40: {()}}  # fmt: skip


def test_what_files_say_is_read_without_the_store() -> None:
    stored = b'{\n\t"lmqOffsetTable":{"T@%LMQ%g":4},"offsetTable":{"T@g":{0:1,1:2\n\t\t}\n\t}\n}'
    said = versions_in({LIGHT_CONSUMER_OFFSETS: stored}, (CONSUMER_OFFSETS, LIGHT_CONSUMER_OFFSETS))
    assert said[CONSUMER_OFFSETS] == ()
    assert said[LIGHT_CONSUMER_OFFSETS] == ((("T", "%LMQ%g", 0), 4), (("T", "g", 0), 1), (("T", "g", 1), 2))


@pytest.mark.parametrize("main", [b"", b"\0\0", b"{"])
def test_a_backup_speaks_for_a_file_that_says_nothing(main: bytes) -> None:
    files = {CONSUMER_OFFSETS: main, f"{CONSUMER_OFFSETS}.bak": b'{"offsetTable":{"T@g":{0:1}}}'}
    assert versions_in(files, (CONSUMER_OFFSETS,)) == {CONSUMER_OFFSETS: SAID}


@pytest.mark.parametrize(
    "text", [b"[]", b'{"offsetTable":[]}', b'{"offsetTable":{"T":{"0":1}}}', b'{"offsetTable":{"T@g":7}}']
)
def test_a_document_of_another_shape_is_no_version(text: bytes) -> None:
    assert versions_in({CONSUMER_OFFSETS: text}, (CONSUMER_OFFSETS,))[CONSUMER_OFFSETS][:1] == ("unreadable",)  # type: ignore[index]
