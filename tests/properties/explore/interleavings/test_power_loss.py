"""Test the judge of a power loss after an interleaving: what it accepts and finds."""

import random

import pytest

from tornpage.impl.parts import Parts
from tornpage.model.operations import Close, Commit, DeleteTopics, Flush, InterleavedOperation, Put, Step
from tornpage.model.state import State
from tornpage.properties.contract import GuaranteeBroken, reading_store
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.interleavings.locks import controlled_locks
from tornpage.properties.explore.interleavings.power_loss import power_loss_is_survived
from tornpage.properties.explore.interleavings.stage import Promise, Stage
from tornpage.properties.judge.linearizability.linearise import linearise
from tornpage.properties.judge.linearizability.specification import points_of, shared_at
from tornpage.properties.program.case import Settings

SMALL = Settings(file_bytes=1024, queue_units=3, index=False)
ONE, REPUT, FLUSH = Put(), Step("reput"), Flush()
LARGE = Put(body_bytes=800)


class Ended:
    """A store that has carried out some operations in one task."""

    def __init__(self, tracker: DirtyTracker, *operations: InterleavedOperation, percent: int = 0) -> None:
        with controlled_locks(), reading_store():
            self.stage = Stage(SMALL, tracker=tracker, parts=Parts())
            self.stage.use_disk(percent)
            for operation in operations:
                self.stage.do(0, operation)

    @property
    def state(self) -> State:
        moments = points_of(self.stage.history.calls, self.stage.layout, clock_moves=True)
        found = linearise(moments, shared_at(self.stage.wall_ms))
        assert found.verdict == "holds"
        return found.state.state

    def judge(self, *, is_closed: bool = False) -> None:
        """Judge some power losses now, with and without writes in flight that survive."""
        with controlled_locks(), reading_store():
            position = self.stage.files.look()
            for seed in range(8):
                power_loss_is_survived(
                    self.stage, position, self.state, is_closed=is_closed, parts=Parts(),
                    rng=random.Random(seed),
                )  # fmt: skip


def test_a_store_survives_the_loss_of_what_it_did_not_promise(tracker: DirtyTracker) -> None:
    Ended(tracker, ONE, FLUSH, LARGE, LARGE, REPUT, Commit(offset=1), Step("progress")).judge()


def test_removed_files_and_deleted_topics_may_be_there_or_not(tracker: DirtyTracker) -> None:
    Ended(tracker, LARGE, LARGE, LARGE, REPUT, FLUSH, Step("clean"), percent=86).judge()
    Ended(tracker, ONE, Put(topic="U"), REPUT, DeleteTopics(in_use=("U",)), ONE).judge()


def test_a_store_that_was_closed_survives_as_a_whole(tracker: DirtyTracker) -> None:
    Ended(tracker, ONE, REPUT, Commit(offset=1), Close()).judge(is_closed=True)


def test_a_lost_promise_is_found(tracker: DirtyTracker) -> None:
    ended = Ended(tracker, ONE)
    stage = ended.stage
    stage.promises.append(Promise(stage.files.look(), stage.store.max_offset, "put()"))
    with pytest.raises(GuaranteeBroken, match="records that had to survive are missing") as broken:
        ended.judge()
    assert broken.value.contract == 2


def test_a_record_that_a_close_does_not_make_durable_is_found(tracker: DirtyTracker) -> None:
    with pytest.raises(GuaranteeBroken) as broken:
        Ended(tracker, ONE, REPUT).judge(is_closed=True)
    assert broken.value.contract == 2


def test_progress_that_a_close_does_not_save_is_found(tracker: DirtyTracker) -> None:
    with pytest.raises(GuaranteeBroken) as broken:
        Ended(tracker, ONE, REPUT, FLUSH, Commit(offset=1)).judge(is_closed=True)
    assert broken.value.contract == 13


@pytest.mark.parametrize("overlap", [True, False])
def test_either_of_two_commits_at_the_same_time_may_be_saved(tracker: DirtyTracker, overlap: bool) -> None:
    """Only one order was looked at, so an hour of interleavings had a false alarm."""
    ended = Ended(tracker, ONE, ONE, REPUT, Commit(offset=2), Commit(offset=1), Close())
    two, one = (call for call in ended.stage.history.calls if isinstance(call.request, Commit))
    assert two.ended is not None
    if overlap:
        one.began, two.ended, one.ended = two.ended, one.ended, one.began
        ended.judge(is_closed=True)
        return
    two.began, two.ended, one.began, one.ended = one.began, one.ended, two.began, two.ended
    with pytest.raises(GuaranteeBroken, match="neither the old version nor the new one"):
        ended.judge(is_closed=True)


class LateStage(Stage):
    """A stage whose store has a clock that is 5 s ahead."""

    def _clock(self) -> int:
        return super()._clock() + 5_000


def test_a_put_with_a_time_outside_of_its_call_is_found(tracker: DirtyTracker) -> None:
    with controlled_locks(), reading_store():
        stage = LateStage(SMALL, tracker=tracker, parts=Parts())
        with pytest.raises(GuaranteeBroken, match="a time outside of its call") as broken:
            stage.do(0, ONE)
    assert broken.value.contract == 8
