"""Test consumer groups: saved offsets, no skipped messages, held pulls (13, 16, 17).

Groups commit and query offsets while messages are put, flushed, lost and deleted. Power fails inside saves, twice in a
row. Progress files become unreadable. Consumers wait for messages and must be answered in time.
"""

from dataclasses import replace
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tornpage.model.operations import (
    CancelPull,
    Close,
    CommitOffset,
    DeleteTopics,
    FailSync,
    Flush,
    HarmProgress,
    Open,
    PullHeld,
    PullWhileDispatching,
    Put,
    QueryOffsets,
    Step,
)
from tornpage.properties.explore.machines.machine import TrialMachine
from tornpage.properties.explore.machines.polling_strategies import held_pulls, pulls_beside_dispatch, tagged_puts
from tornpage.properties.explore.machines.strategies import one_of
from tornpage.properties.program.case import Settings
from tornpage.properties.program.translation import HELD_PULLS_MAX

__all__ = ["ConsumerMachine"]

_TOPICS = ("T", "T", "U", "%LMQ%a")
_GROUPS = ("g", "g", "h", "%LMQ%g")
_QUEUES = st.integers(-1, 3)
_BEHIND = st.sampled_from((0, 0, 1, 2, -1, -3))


def _settings() -> st.SearchStrategy[Settings]:
    """Draw stores that lose messages at a power loss, and others that do not."""
    return st.builds(
        Settings,
        file_bytes=st.sampled_from((1024, 4096)),
        sync_flush=st.sampled_from((False, False, True)),
        disk=st.sampled_from(("posix-strict", "journal")),
        multi_dispatch=(light := st.sampled_from((False, True))),
        light_queues=light,
        pool_buffers=st.sampled_from((0, 0, 2)),
        index=st.just(False),
    )


def _puts() -> st.SearchStrategy[Put]:
    return st.builds(Put, topic=one_of(_TOPICS), queue_id=st.sampled_from((0, 0, 1)), body_bytes=st.just(10))


def _commits() -> st.SearchStrategy[CommitOffset]:
    return st.builds(CommitOffset, group=one_of(_GROUPS), queue=_QUEUES, behind=_BEHIND)


_WAITS_MS = st.sampled_from((0, 0, 1, 999, 1_000, 15_000))
_MOSTLY = st.sampled_from((True, True, False))
_SOME_TAGGED = st.lists(tagged_puts(), min_size=1, max_size=5)
_SOME_PULLS = st.lists(held_pulls(), min_size=1, max_size=4)
_SOME_PUTS = st.lists(_puts(), min_size=1, max_size=5)
_SOMECOMMITS = st.lists(_commits(), min_size=1, max_size=3)


class ConsumerMachine(TrialMachine):
    """Run one store that consumers read, beside its model."""

    must_run: ClassVar[tuple[str, ...]] = (
        "put",
        "commit_offset",
        "query_offsets",
        "step",
        "delete_topics",
        "harm_progress",
        "pull_held",
        "cancel_pull",
        "pull_while_dispatching",
        "close",
        "open",
        "crash",
    )
    must_happen: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("progress_saved",),
        ("progress_corrected",),
        ("progress_crashed_in_save",),
        ("committed_beyond_the_end",),
        ("queried_known_offset",),
        ("topics_deleted",),
        ("progress_file_lost", "progress_file_empty", "progress_file_torn"),
        ("progress_file_both",),
        ("held_pull_woken",),
        ("held_pull_late",),
        ("held_pull_closed",),
        ("held_pull_NO_MATCHED_MESSAGE",),
        ("held_beside_dispatch",),
        ("answered_beside_dispatch",),
        ("pull_refused",),
    )

    @initialize(settings=_settings())
    def open_store(self, settings: Settings) -> None:
        """Open a store on an empty disk."""
        self.start(settings)

    # ---- what producers and consumers do -------------------------------------------------------------------------

    @precondition(lambda self: not self.trial.closed)
    @rule(several=_SOME_PUTS, durable=st.booleans())
    def put_several(self, several: list[Put], durable: bool) -> None:
        """Put messages and make them readable; they may be durable or not."""
        self._put(several)
        if durable:
            self.carry_out(Flush())

    def _put(self, several: list[Put]) -> None:
        for put in several:
            self.carry_out(put)
        self._bring_into_queues()

    @precondition(lambda self: not self.trial.closed)
    @rule(commits=_SOMECOMMITS)
    def groups_commit(self, commits: list[CommitOffset]) -> None:
        """Let groups commit their offsets."""
        for commit in commits:
            self.carry_out(commit)

    @precondition(lambda self: not self.trial.closed)
    @rule(group=one_of(_GROUPS), queue=_QUEUES)
    def query_offsets(self, group: str, queue: int) -> None:
        """Query the offset of a group."""
        self.carry_out(QueryOffsets(group=group, queue=queue))

    @precondition(lambda self: not self.trial.closed)
    @rule(after_ms=st.sampled_from((0, 1_000, 4_999, 5_000, 60_000)))
    def save_progress(self, after_ms: int) -> None:
        """Let time pass, after which committed offsets are saved if they are due."""
        self.carry_out(Step(service="progress", after_ms=after_ms))

    # ---- held pulls --------------------------------------------------------------------------------------------------

    @precondition(lambda self: not self.trial.closed)
    @rule(pulls=_SOME_PULLS, several=_SOME_TAGGED, here=st.booleans(), after_ms=_WAITS_MS)
    def consumers_wait(self, pulls: list[PullHeld], several: list[Put], here: bool, after_ms: int) -> None:
        """Hold pulls that find nothing; then matching messages arrive, or time passes, or both."""
        for pull in pulls:
            self.carry_out(pull)
        if here:
            several = [replace(put, topic=pulls[0].topic, queue_id=pulls[0].queue_id) for put in several]
        self._put(several)
        self.carry_out(Step(service="pull-hold", after_ms=after_ms))

    @precondition(lambda self: not self.trial.closed)
    @rule(after_ms=_WAITS_MS)
    def time_passes_for_pulls(self, after_ms: int) -> None:
        """Let time pass, so that some held pulls time out."""
        self.carry_out(Step(service="pull-hold", after_ms=after_ms))

    @precondition(lambda self: not self.trial.closed)
    @rule(pull=held_pulls(), number=st.integers(0, 7))
    def many_pulls_wait(self, pull: PullHeld, number: int) -> None:
        """Hold more pulls than allowed; a place is free after one is cancelled."""
        for _ in range(HELD_PULLS_MAX + 1):
            self.carry_out(replace(pull, shift=0, hold_ms=15_000))
        self.carry_out(CancelPull(number=number))
        self.carry_out(pull)

    @rule(number=st.integers(0, 7))
    def pull_is_cancelled(self, number: int) -> None:
        """Cancel one of the held pulls."""
        self.carry_out(CancelPull(number=number))

    @precondition(lambda self: not self.trial.closed)
    @rule(several=st.lists(st.tuples(tagged_puts(), pulls_beside_dispatch()), min_size=2, max_size=6))
    def messages_arrive_during_pulls(self, several: list[tuple[Put, PullWhileDispatching]]) -> None:
        """Start a pull while the message that it waits for is dispatched."""
        for put, pull in several:
            self.carry_out(put)
            self._commit()
            self.carry_out(replace(pull, topic=put.topic, queue_id=put.queue_id))
            self.carry_out(Step(service="pull-hold"))

    @precondition(lambda self: not self.trial.closed)
    @rule(pulls=_SOME_PULLS, several=_SOME_TAGGED, here=_MOSTLY, looked=_MOSTLY, back=_MOSTLY)
    def delete_topics_of_held_pulls(
        self, pulls: list[PullHeld], several: list[Put], here: bool, looked: bool, back: bool
    ) -> None:
        """Delete the topics of held pulls, in one queue (`here`) or several; some come back."""
        if here:
            pulls = [replace(pull, topic=pulls[0].topic, queue_id=pulls[0].queue_id) for pull in pulls]
            several = [replace(put, topic=pulls[0].topic, queue_id=pulls[0].queue_id) for put in several]
        self._put(several)
        for pull in pulls:
            self.carry_out(pull)
        if looked:
            self._put(several)
            self.carry_out(Step(service="pull-hold"))
        self.carry_out(DeleteTopics())
        self._put(several if back else several[1:])
        self.carry_out(Step(service="pull-hold"))

    # ---- after that --------------------------------------------------------------------------------------------------

    @precondition(lambda self: not self.trial.closed)
    @rule(several=_SOME_PUTS, commits=_SOMECOMMITS, data=st.data())
    def unsynced_reads_are_lost(self, several: list[Put], commits: list[CommitOffset], data: st.DataObject) -> None:
        """Commit and save offsets of messages that are then lost with the power; put others.

        No put waits for the disk here, so that un-synced messages exist in stores with synchronous flush too.
        """
        self._put([replace(put, properties="WAIT\x01false") for put in several])
        everything = [CommitOffset(queue=queue) for queue in range(len(self.trial.memory.derived.queues))]
        self._commit_and_save([*everything, *commits])
        self._lose_messages(data)
        self._put(several[:2])
        self.carry_out(Flush())
        if data.draw(st.booleans(), label="again"):
            self._lose_power(data, back=0)

    @precondition(lambda self: not self.trial.closed)
    @rule(commits=_SOMECOMMITS, later=_SOMECOMMITS, data=st.data(), kill=st.booleans())
    def abort_save(
        self, commits: list[CommitOffset], later: list[CommitOffset], data: st.DataObject, kill: bool
    ) -> None:
        """Lose power or kill the process inside a save, and inside the next one."""
        for each in (commits, later):
            self._commit_and_save(each)
            self._break_off(data, back=self._somewhere_inside(data), kill=kill)

    def _commit_and_save(self, commits: list[CommitOffset]) -> None:
        for commit in commits:
            self.carry_out(commit)
        self.carry_out(Step(service="progress", after_ms=5_000))

    @precondition(lambda self: not self.trial.closed)
    @rule(commits=_SOMECOMMITS, closes=st.booleans())
    def save_fails(self, commits: list[CommitOffset], closes: bool) -> None:
        """Let a save fail. The next save, or the close, writes the missing changes."""
        for commit in commits:
            self.carry_out(commit)
        self.carry_out(FailSync())
        self.carry_out(Step(service="progress", after_ms=5_000))
        self.carry_out(Close() if closes else Step(service="progress", after_ms=1_000))

    @precondition(lambda self: not self.trial.closed)
    @rule(several=_SOME_PUTS, commits=_SOMECOMMITS, in_use=st.sampled_from(((), ("T",), ("U",))),
          back=st.integers(0, 30), data=st.data())  # fmt: skip
    def delete_topics(
        self, several: list[Put], commits: list[CommitOffset], in_use: tuple[str, ...], back: int, data: st.DataObject
    ) -> None:
        """Delete topics that groups have read, put new messages, and lose power around that."""
        self._put(several)
        self.carry_out(Flush())
        self._commit_and_save(commits)
        self.carry_out(DeleteTopics(in_use=in_use))
        self._put(several[:2])
        self.carry_out(Flush())
        span = self.trial.spans[-1]
        self._lose_power(data, back=min(back, span.last - span.first))

    @precondition(lambda self: not self.trial.closed)
    @rule(commits=_SOMECOMMITS)
    def store_reopens(self, commits: list[CommitOffset]) -> None:
        """Commit offsets, close at once and open again; every offset must be known."""
        for commit in commits:
            self.carry_out(commit)
        self.carry_out(Close())
        self.carry_out(Open())
        self.carry_out(QueryOffsets(group=commits[0].group, queue=commits[0].queue))

    @precondition(lambda self: not self.trial.log.poisoned)
    @rule(harm=st.sampled_from(("lost", "empty", "torn", "both", "both")), commits=_SOMECOMMITS, later=_SOMECOMMITS,
          data=st.data())  # fmt: skip
    def start_from_backup(
        self, harm: str, commits: list[CommitOffset], later: list[CommitOffset], data: st.DataObject
    ) -> None:
        """Corrupt the progress file, start from the backup, and lose power in the first save."""
        if not self.trial.closed:
            self._commit_and_save(commits)
        self.carry_out(HarmProgress(harm=harm))  # type: ignore[arg-type]
        self._commit_and_save(later)
        self._lose_power(data, back=self._somewhere_inside(data))
