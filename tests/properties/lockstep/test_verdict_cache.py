"""Test the verdict cache: it changes no counter, and a differing verdict is noticed.

Parts and disks that make a crash state cheap are compared with those that make it expensive.
"""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tornpage.impl.log.scan import walk_log
from tornpage.impl.message.codec import check_record
from tornpage.impl.message.message import Message
from tornpage.model.operations import AimFault, CommitOffset, Flush, Operation, Put, Step
from tornpage.properties.campaign.coverage import Tally, hit_by_recovery, judge_counter
from tornpage.properties.contract import GuaranteeBroken, HarnessError
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.disk import DiskState, Image
from tornpage.properties.disk.images import compose, in_flight_writes
from tornpage.properties.disk.journal import PagesDropped, ProcessKilled
from tornpage.properties.disk.last_disk import LastDisk
from tornpage.properties.disk.sampling import draw
from tornpage.properties.explore.crashes.crash_states import CrashStates
from tornpage.properties.judge.evidence import LegalLogs, Recovered
from tornpage.properties.judge.judges import OF_THE_PROCESS
from tornpage.properties.judge.queues import queues_have_their_bounds
from tornpage.properties.judge.rulings import require
from tornpage.properties.lockstep import cache
from tornpage.properties.lockstep.cache import AGAIN_EVERY, Outcome, VerdictCache, cached_walk
from tornpage.properties.lockstep.lockstep import Lockstep
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Disk, Settings
from tornpage.properties.program.log_places import log_files


def lived(tracker: DirtyTracker, **settings: Any) -> Lockstep:
    """Return a store with flushed and dispatched records that two groups have read."""
    return after_its_life(lockstep_of(Settings(file_bytes=4096, **settings), tracker=tracker))


def after_its_life(trial: Lockstep) -> Lockstep:
    operations: list[Operation] = [Put(body_bytes=900, fill=number) for number in range(12)]
    operations[8:8] = [Flush(), Step(service="reput"), CommitOffset(queue=0), Step(service="progress", after_ms=5_000)]
    for operation in (*operations, Step(service="reput")):
        trial.run(operation)
    return trial


def tally_of(tracker: DirtyTracker) -> Tally:
    """Run the store and crash it everywhere."""
    tally = Tally()
    trial = after_its_life(lockstep_of(Settings(file_bytes=4096), tracker=tracker, observer=judge_counter(tally)))
    for failure in CrashStates(trial, trial.performed, 0, rng=random.Random(1), tally=tally).everywhere():
        assert failure is None, failure
    return tally


def crash_images(trial: Lockstep, count: int) -> Iterator[Image]:
    rng, state = random.Random(7), DiskState(trial.files.base, disk=trial.settings.disk)
    state.apply_all(trial.files.journal)
    for _ in range(count):
        yield compose(state, draw(in_flight_writes(state), rng))


def legal_at_the_end(trial: Lockstep) -> LegalLogs:
    return trial.recovery.legal_at(trial.spans[-1], at_rest=True, kill=False)


def judged(trial: Lockstep, image: Image, what: VerdictCache | None) -> Recovered:
    return trial.recovery.judged(
        trial.pair.last_disk(image), legal_at_the_end(trial), trial.recovery.versions_now(), cache=what
    )


def nothing_known(tally: Tally | None = None) -> VerdictCache:
    counts = tally or Tally()
    return VerdictCache(random.Random(0), counts.work, counts.evaluations)


# ---- nothing changes -------------------------------------------------------------------------------------------------


def test_what_is_done_again_and_what_is_not_are_counted_alike(
    tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = tally_of(tracker)
    monkeypatch.setattr(cache, "AGAIN_SHARE", 1.0)
    thorough = tally_of(tracker)
    assert quick.work["known"] > 0 < quick.work["viewed"]
    assert thorough.work["known"] == thorough.work["viewed"] == 0
    assert quick.work["recoveries"] < thorough.work["recoveries"]
    for tally in (quick, thorough):
        tally.seconds.clear()
        tally.work.clear()
        tally.evaluations.clear()
        for counter in (tally.enabled, tally.hit, tally.effective):
            del counter["delivered_after_recovery"]  # counts repeated deliveries too
    assert quick == thorough
    assert quick.hit["judge_queues_hold_the_log"] > quick.states


@pytest.mark.parametrize("disk", ["posix-strict", "journal", "kill"])
def test_a_disk_without_a_history_ends_as_one_with_a_history(disk: Disk, tracker: DirtyTracker) -> None:
    trial = lived(tracker, disk=disk)
    for image in crash_images(trial, 12):
        with_history, without = trial.pair.new_disk(image), trial.pair.last_disk(image)
        for files in (with_history, without):
            trial.pair.open_on(files)
        assert without.paths() == with_history.paths()
        assert [without.peek(path, 0, 1 << 20) for path in without.paths()] == [
            with_history.peek(path, 0, 1 << 20) for path in without.paths()
        ]
        assert trial.pair.durable(without) == trial.pair.durable(with_history)


def test_a_disk_on_which_pages_were_dropped_keeps_its_history(tracker: DirtyTracker) -> None:
    trial = lockstep_of(Settings(), tracker=tracker)
    for operation in (Put(), AimFault("sync-lost", "kind=log and nth=1"), Flush()):
        trial.run(operation)
    journal = (*trial.files.journal, ProcessKilled())
    assert any(isinstance(entry, PagesDropped) for entry in journal)
    (log_file,) = log_files(trial.files.paths())
    files = trial.pair.last_disk(trial.files.base, journal)
    files.sync(files.open(log_file, writable=True))
    assert trial.pair.durable(files).files[log_file] != files.peek(log_file, 0, 1 << 20)
    with pytest.raises(ValueError, match="need a disk with a history"):
        LastDisk(trial.files.base, disk=trial.settings.disk, journal=journal)


# ---- verdicts that may be cached -----------------------------------------------------------------------------------


def test_a_verdict_is_known_only_while_the_same_is_legal(tracker: DirtyTracker) -> None:
    trial = lived(tracker)
    (image,) = crash_images(trial, 1)
    found = judged(trial, image, nothing_known())
    outcome, legal, versions = (
        Outcome.of(found, frozenset(), ()),
        legal_at_the_end(trial),
        trial.recovery.versions_now(),
    )
    assert outcome.is_legal(legal, versions)
    assert not outcome.is_legal({}, versions)
    log = legal[found.key]
    assert not outcome.is_legal({found.key: log.changed(records=log.records[1:])}, versions)
    assert not outcome.is_legal(legal, {path: frozenset({"something else"}) for path in versions})


def test_judges_of_the_process_pass_over_what_another_process_had(tracker: DirtyTracker) -> None:
    trial, tally = lived(tracker), Tally()
    what, (image,) = nothing_known(tally), crash_images(trial, 1)
    what.rng.random = lambda: 1.0  # type: ignore[method-assign]  # nothing is done again
    for _ in range(2):
        judged(trial, image, what)
    assert tally.work["viewed"] == 1
    assert {name for name, times in tally.evaluations.items() if times == 1} == {
        judge.__name__ for judge in OF_THE_PROCESS
    }


def test_a_process_that_remembers_something_else_is_asked_itself(tracker: DirtyTracker) -> None:
    trial, what = lived(tracker), nothing_known()
    what.rng.random = lambda: 1.0  # type: ignore[method-assign]  # nothing is done again
    (image,) = crash_images(trial, 1)
    first = judged(trial, image, what)
    assert first.view is not None
    assert what.is_judged(first)
    queue = trial.environment.parts_of(first.store)["derived"].queues.all()[0]
    queue.max_offset += 1  # planted: the bytes are the same
    assert not what.is_judged(replace(first, view=(first.view[0], trial.environment.memory_of(first.store))))
    with pytest.raises(GuaranteeBroken, match="contract 17: the bounds of queue"):
        require(queues_have_their_bounds(first))


# ---- planted: a wrong cached verdict -------------------------------------------------------------------------------


def test_an_image_that_is_recovered_otherwise_the_second_time_is_the_harness_fault(tracker: DirtyTracker) -> None:
    trial, what = lived(tracker), nothing_known()
    (image,) = crash_images(trial, 1)
    outcome = Outcome.of(judged(trial, image, what), frozenset(), ())
    what.note(b"image", outcome)
    what.note(b"image", outcome)
    with pytest.raises(HarnessError, match="two recoveries of one image"):
        what.note(b"image", replace(outcome, durable=b"other bytes"))


def test_what_judges_had_to_compare_is_asked_of_the_recovery_and_not_of_what_came_after(tracker: DirtyTracker) -> None:
    """A store with a full log file delivered the rest before the question.

    It looked like another store.
    """
    trial = lockstep_of(Settings(), tracker=tracker)
    found = judged(trial, trial.pair.durable(trial.files), None)
    before = hit_by_recovery(found)
    assert found.store.put(Message("T", b"later")).status.name == "PUT_OK"
    assert found.store.max_offset > found.key[1]
    assert hit_by_recovery(found) == before


def test_a_part_that_is_no_function_of_bytes_is_the_harness_fault() -> None:
    calls: Counter[str] = Counter()

    def drifting(*arguments: Any, **options: Any) -> tuple[int, str | None]:
        calls["walk"] += 1
        return walk_log(*arguments, **options)[0] + calls["walk"] // 2, None

    walk, view = cached_walk(drifting), memoryview(bytes(64))
    options = {"file_bytes": 64, "base_offset": 0, "check": check_record}
    for _ in range(AGAIN_EVERY):
        walk(view, 0, **options)
    assert calls["walk"] == 1
    with pytest.raises(HarnessError, match="function of bytes"):
        walk(view, 0, **options)
