"""Test retention: deleted files, what prevents deletion, and interruptions (10, 11).

Messages expire, disks fill, readers keep buffers, topics are deleted and come back. Power fails in the middle of a
clean-up. Queues and index follow the log and are read meanwhile.
"""

from dataclasses import replace
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tornpage.model.operations import (
    Clean,
    Close,
    DeleteTopics,
    DiskUsed,
    Flush,
    Get,
    GetMessage,
    HarmDerived,
    HoldBuffer,
    Open,
    Put,
    QueryKey,
    ReleaseBuffer,
    Step,
)
from tornpage.model.retention import RUNS
from tornpage.properties.explore.machines.machine import TrialMachine
from tornpage.properties.explore.machines.strategies import one_of
from tornpage.properties.program.case import Settings

__all__ = ["RetentionMachine"]

_TOPICS = ("T", "T", "U", "RMQ_SYS_TRANS_OP_HALF_TOPIC", "SCHEDULE_TOPIC_XXXX", "%LMQ%a")
_PROPERTIES = ("KEYS\x01k\x02TAGS\x01TagA", "", "UNIQ_KEY\x01u", "INNER_MULTI_DISPATCH\x01%LMQ%a,U\x02KEYS\x01k")
_HOURS = (0, 1, 24, 72, 73)
_PAUSES_MS = (10_000, 60_000, 119_999, 120_000, 1)
_PERCENTS = (0, 10, 75, 76, 80, 85, 86, 90, 91, 99)


def _settings() -> st.SearchStrategy[Settings]:
    """Draw stores with small files, so that all kinds of files roll over and are deleted."""
    return st.builds(
        Settings,
        file_bytes=st.sampled_from((1024, 2048, 4096)),
        sync_flush=st.sampled_from((False, True)),
        disk=st.sampled_from(("posix-strict", "journal")),
        multi_dispatch=st.sampled_from((False, True)),
        light_queues=st.sampled_from((True, False)),
        pool_buffers=st.sampled_from((0, 0, 2)),
        files_ahead=st.sampled_from((0, 1)),
        log_paths=st.sampled_from((1, 2)),
        queue_units=st.sampled_from((2, 1, 4, 16)),
        queue_ext=st.sampled_from((False, False, True)),
        bit_maps=st.just(True),
        index_slots=st.sampled_from((3, 1)),
        index_entries=st.sampled_from((4, 2, 24)),
    )


def _puts() -> st.SearchStrategy[Put]:
    """Draw messages of which a few fill a log file."""
    return st.builds(
        Put,
        topic=one_of(_TOPICS),
        queue_id=st.sampled_from((0, 0, 1)),
        body_bytes=st.sampled_from((100, 300, 500, 10)),
        fill=st.integers(0, 3),
        properties=one_of(_PROPERTIES),
        advance_ms=st.sampled_from((1, 500, 3_600_000)),
    )


_SOME_PUTS = st.lists(_puts(), min_size=2, max_size=10)


class RetentionMachine(TrialMachine):
    """Run one store that deletes, beside its model."""

    must_run: ClassVar[tuple[str, ...]] = (
        "put",
        "clean",
        "delete_topics",
        "disk_used",
        "hold_buffer",
        "release_buffer",
        "harm_derived",
        "get_message",
        "query_key",
        "close",
        "open",
        "crash",
    )
    must_happen: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("log_files_deleted",),
        ("urgent_run",),
        ("asked_for_run",),
        ("log_file_hangs",),
        ("hanging_file_deleted",),
        ("buffers_taken_back",),
        ("disk_full_seen_by_clean_up",),
        ("topics_deleted",),
        ("pulled_FOUND",),
        ("pulled_OFFSET_TOO_SMALL",),
        ("found_by_key",),
        ("cleaned_inside_a_query",),
    )

    @initialize(settings=_settings())
    def open_store(self, settings: Settings) -> None:
        """Open a store on an empty disk."""
        self.start(settings)

    # ---- what producers and readers do ---------------------------------------------------------------------------

    @precondition(lambda self: not self.trial.closed)
    @rule(several=_SOME_PUTS, settled=st.booleans())
    def put_several(self, several: list[Put], settled: bool) -> None:
        """Put a few messages in a row. They are dispatched and flushed now, or later."""
        self._put(several)
        if settled:
            self._settle()

    def _put(self, several: list[Put]) -> None:
        for put in several:
            self.carry_out(put)

    def _settle(self) -> None:
        self._bring_into_queues()
        self.carry_out(Flush())

    @precondition(lambda self: not self.trial.closed)
    @rule(queue=st.integers(-1, 5), shift=st.sampled_from((0, 0, 1, -1, -2, 5)), record=st.integers(0, 40))
    def read_something(self, queue: int, shift: int, record: int) -> None:
        """Read a queue, an offset of the log, and a key."""
        self.carry_out(GetMessage(queue=queue, shift=shift))
        self.carry_out(GetMessage(queue=queue, shift=-1))
        self.carry_out(Get(record=record))
        self.carry_out(QueryKey(key=record))

    @precondition(lambda self: not self.trial.closed and self.trial.log.retained)
    @rule(record=st.integers(0, 40))
    def hold_buffer(self, record: int) -> None:
        """Take a buffer and keep it."""
        self.carry_out(HoldBuffer(record=record))

    @rule()
    def buffer_is_released(self) -> None:
        """Release a buffer."""
        self.carry_out(ReleaseBuffer())

    @precondition(lambda self: not self.trial.closed)
    @rule()
    def reopen(self) -> None:
        """Close and open again.

        All buffers are taken back, and files that readers held are deleted.
        """
        self.carry_out(Close())
        self.carry_out(Open())

    @precondition(lambda self: not self.trial.closed)
    @rule(percent=st.sampled_from((0, 80, 88, 95)), put=_puts())
    def use_disk(self, percent: int, put: Put) -> None:
        """Set the disk usage and put; the put checks the disk itself."""
        self.carry_out(DiskUsed(percent=percent))
        self.carry_out(put)

    # ---- what is deleted -----------------------------------------------------------------------------------------

    @precondition(lambda self: not self.trial.closed)
    @rule(after_hours=st.sampled_from(_HOURS), manual=st.booleans(), percent=st.sampled_from(_PERCENTS))
    def clean(self, after_hours: int, manual: bool, percent: int) -> None:
        """Run the clean-up at any hour and on any disk."""
        self.carry_out(Clean(after_hours=after_hours, manual=manual, percent=percent))

    @precondition(lambda self: not self.trial.closed)
    @rule(several=_SOME_PUTS, urgent=st.booleans(), held=st.sampled_from((-1, -1, 0, 3)), again=st.booleans(),
          query=st.sampled_from((-1, 0, 1)))  # fmt: skip
    def expire_files(self, several: list[Put], urgent: bool, held: int, again: bool, query: int) -> None:
        """Let flushed and dispatched files expire, or fill the disk, and clean up.

        A reader may hold a file and lose its buffer at the end, or be in the middle of a query.
        """
        self._put(several * 2)
        self._settle()
        if held >= 0:
            self.carry_out(HoldBuffer(record=held))
        clean = Clean(percent=88) if urgent else Clean(after_hours=73, manual=True, percent=10)
        self.carry_out(replace(clean, query=query))
        if again:
            self._put(several)
            self._settle()
            self.carry_out(Clean(after_hours=1))

    @precondition(lambda self: not self.trial.closed)
    @rule(several=_SOME_PUTS, is_released=st.booleans(), pauses_ms=st.lists(st.sampled_from(_PAUSES_MS), max_size=4))
    def hang_a_file(self, several: list[Put], is_released: bool, pauses_ms: list[int]) -> None:
        """Let a reader hold a file that is deleted, and make runs that want no deletion.

        The file is tried again at the interval of held files only, whether or not the reader has released it.
        """
        self._put(several * 2)
        self._settle()
        self.carry_out(HoldBuffer(record=0))
        self.carry_out(Clean(percent=88))
        if is_released:
            self.carry_out(ReleaseBuffer())
        for pause_ms in pauses_ms:
            self.carry_out(Step(service="time-outs", after_ms=pause_ms))
            self.carry_out(Clean(percent=10))

    @precondition(lambda self: not self.trial.closed)
    @rule(several=_SOME_PUTS, runs=st.integers(0, RUNS))
    def request_runs(self, several: list[Put], runs: int) -> None:
        """Request a clean-up, which makes some runs.

        Files that expire by the last run are deleted, later ones are kept.
        """
        self._put(several * 2)
        self._settle()
        self.carry_out(Clean(manual=True, percent=10))
        for _ in range(runs):
            self.carry_out(Clean(percent=10))
        self.carry_out(Clean(after_hours=73, percent=10))

    @precondition(lambda self: not self.trial.closed)
    @rule(several=_SOME_PUTS, in_use=st.sampled_from(((), ("T",), ("U",), ("T", "U"))), settled=st.booleans())
    def topic_deletion(self, several: list[Put], in_use: tuple[str, ...], settled: bool) -> None:
        """Delete topics, which come back with new messages."""
        self._put(several)
        if settled:
            self._settle()
        self.carry_out(DeleteTopics(in_use=in_use))
        self._put(several[:3])

    # ---- crashes -----------------------------------------------------------------------------------------------------

    @precondition(lambda self: not self.trial.closed)
    @rule(data=st.data(), several=_SOME_PUTS, topics=st.booleans(), kill=st.booleans())
    def crash_inside(self, data: st.DataObject, several: list[Put], topics: bool, kill: bool) -> None:
        """Lose power or kill the process in the middle of a clean-up or of a deletion of topics."""
        self._put(several * 2)
        self._settle()
        self._put(several[:2])
        self.carry_out(DeleteTopics(in_use=("U",)) if topics else Clean(percent=88))
        self._break_off(data, back=self._somewhere_inside(data), kill=kill)

    @precondition(lambda self: not self.trial.log.poisoned)
    @rule(file=st.sampled_from(("queue", "index", "extension")), harm=st.sampled_from(("lost", "zeroed", "stale")),
          number=st.integers(0, 6), amount=st.integers(0, 400))  # fmt: skip
    def corrupt_derived_files(self, **drawn: int) -> None:
        """Corrupt the remaining queues and index, which are rebuilt from the remaining log."""
        self.carry_out(HarmDerived(**drawn))  # type: ignore[arg-type]

    @precondition(lambda self: not self.trial.closed and not self.trial.log.poisoned)
    @rule(several=_SOME_PUTS, number=st.integers(0, 6))
    def lose_queue_repeatedly(self, several: list[Put], number: int) -> None:
        """Lose and rebuild a queue that begins inside a file, then cut it to its first units.

        All messages go to one queue, so that no other queue is corrupted of which only its number is left.
        """
        self._put([replace(put, topic="T", queue_id=0, properties="") for put in several * 2])
        self._settle()
        self.carry_out(Clean(percent=88))
        self.carry_out(HarmDerived(file="queue", harm="lost", number=number))
        for units in range(1, 5):
            self.carry_out(HarmDerived(file="queue", harm="zeroed", number=number, amount=20 * units))
