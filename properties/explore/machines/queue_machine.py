"""Test consume queues, index and their readers (contract 4, 5, 7, 16, 17).

Dispatch takes its steps between puts, commits and failed syncs. Queues and index are flushed, lost, corrupted and
rebuilt. Readers pull, query keys and look up times meanwhile.
"""

from dataclasses import replace
from typing import ClassVar, get_args

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tornpage.model.operations import (
    Close,
    Crash,
    DeleteTopics,
    DerivedFile,
    DerivedHarm,
    FailSync,
    Flush,
    GetMessage,
    HarmDerived,
    HarmField,
    HarmNumbers,
    HarmOpen,
    Member,
    OffsetByTime,
    Open,
    Put,
    PutBatch,
    QueryKey,
    RefuseFile,
    ServiceName,
    Step,
    VerifyReads,
)
from tornpage.properties.explore.machines.machine import REPUT, TrialMachine
from tornpage.properties.explore.machines.put_strategies import batches
from tornpage.properties.explore.machines.queue_strategies import (
    field_harms,
    key_queries,
    number_harms,
    open_harms,
    pulls,
    queued_puts,
    settings_of_queues,
    time_look_ups,
)
from tornpage.properties.program.case import Settings

__all__ = ["QueueMachine"]

_TAGGED = Put(topic="T", body_bytes=10, properties="TAGS\x01TagA")
_LONG = 802
_MANY = PutBatch(members=(Member(),) * (_LONG // 2))
_KEYED = Put(topic="T", body_bytes=10, properties="KEYS\x01Aa")
_SOME_PUTS = st.lists(queued_puts(), min_size=2, max_size=8)
_SOME_HARMS = st.lists(number_harms(), min_size=2, max_size=5)
_FILES: tuple[DerivedFile, ...] = get_args(DerivedFile)
_HARMED: tuple[DerivedFile, ...] = ("queue", "checkpoint", "index", "floor", "queue", "extension", "derived-floor",
                                    "queue", "index", "extension")  # fmt: skip
"""The files corrupted in turn. Those with units and entries come more often, since they can be wrong in more ways. The
marker comes last, because its only corruption is to exist when it should not."""
_HARMS: tuple[DerivedHarm, ...] = get_args(DerivedHarm)
_SETTINGS: tuple[VerifyReads, ...] = get_args(VerifyReads)
_FLUSH_QUEUES = Step(service="flush-queues", after_ms=60_000)


class QueueMachine(TrialMachine):
    """Run one store whose queues and index are read, beside its model."""

    must_run: ClassVar[tuple[str, ...]] = (
        "put",
        "put_batch",
        "step",
        "get_message",
        "query_key",
        "offset_by_time",
        "harm_derived",
        "refuse_file",
        "close",
        "open",
        "crash",
    )
    must_happen: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("dispatched",),
        ("dispatch_failed",),
        ("pulled_FOUND",),
        ("pulled_NO_MATCHED_LOGIC_QUEUE",),
        ("pulled_NO_MATCHED_MESSAGE",),
        ("pulled_OFFSET_TOO_SMALL",),
        ("pulled_OFFSET_OVERFLOW_ONE",),
        ("pulled_OFFSET_OVERFLOW_BADLY",),
        ("pulled_OFFSET_FOUND_NULL",),
        ("pulled_by_tags",),
        ("pulled_in_parts",),
        ("found_by_key",),
        ("found_several_by_key",),
        ("window_left_some_out",),
        *(tuple(f"harmed_open_{before}_{setting}" for setting in _SETTINGS) for before in ("verified", "other")),
        ("looked_up_by_time",),
        ("checkpoints_written",),
        *(tuple(f"{file}_{harm}" for file in _FILES) for harm in _HARMS),
        *(tuple(f"{file}_{harm}" for harm in _HARMS) for file in _FILES),
    )

    @initialize(settings=settings_of_queues())
    def open_store(self, settings: Settings) -> None:
        """Open a store on an empty disk."""
        self.start(settings)

    # ---- what producers do ---------------------------------------------------------------------------------------

    @precondition(lambda self: not self.trial.closed)
    @rule(several=_SOME_PUTS, dispatched=st.booleans())
    def put_several(self, several: list[Put], dispatched: bool) -> None:
        """Put a few messages in a row; dispatch follows, or comes later."""
        self._put(*several)
        if dispatched:
            self._bring_into_queues()

    @precondition(lambda self: not self.trial.closed)
    @rule(batch=batches())
    def put_batch(self, batch: PutBatch) -> None:
        """Put a batch."""
        self._put(batch)

    def _put(self, *puts: Put | PutBatch) -> None:
        for put in puts:
            self.carry_out(put)

    @rule(harm=field_harms())
    def a_field_is_harmed(self, harm: HarmField) -> None:
        """Harm a field of a record in a copy of the store."""
        self.carry_out(harm)

    @precondition(lambda self: not self.trial.closed and not self.settings.trailer)
    @rule(several=_SOME_PUTS, harms=_SOME_HARMS)
    def numbers_are_wrong(self, several: list[Put], harms: list[HarmNumbers]) -> None:
        """Change what several records claim in copies of the store."""
        self._put(*several)
        self._bring_into_queues()
        for harm in harms:
            self.carry_out(harm)

    @precondition(lambda self: not self.trial.closed)
    @rule(harm=open_harms())
    def a_record_changes_while_open(self, harm: HarmOpen) -> None:
        """Change a byte of a record of the open store, and read it."""
        self._bring_into_queues()
        self.carry_out(harm)

    @precondition(lambda self: not self.trial.closed)
    @rule(several=_SOME_PUTS)
    def topics_are_used_again(self, several: list[Put]) -> None:
        """Delete all topics, put to them again, and lose the list of them in a copy."""
        self._put(*several)
        self._bring_into_queues()
        self.carry_out(DeleteTopics())
        self._put(*several)
        self.carry_out(HarmField("deleted_topics"))

    @precondition(lambda self: not self.trial.closed)
    @rule(several=_SOME_PUTS, record=st.integers(0, 3), value=st.integers(0, 3))
    def copies_without_floors_are_damaged(self, several: list[Put], record: int, value: int) -> None:
        """Damage copies of the store that have no floors, each copy in another way.

        The last message comes long after the others, so that the checkpoint proves that the others were flushed.
        """
        self._put(*several, Put(advance_ms=5_000))
        self._bring_into_queues()
        for field in ("body", "end", "ahead", "swapped", "queue_bytes", "left_over"):
            self.carry_out(HarmField(field, record=record, value=value))

    # ---- what readers do -----------------------------------------------------------------------------------------

    @precondition(lambda self: not self.trial.closed)
    @rule(pull=pulls())
    def pull(self, pull: GetMessage) -> None:
        """Read a queue at any offset."""
        self.carry_out(pull)

    @precondition(lambda self: not self.trial.closed and self.trial.memory.derived.queues)
    @rule(queue=st.integers(0, 8), max_msg_nums=st.sampled_from((1, 2, 32)), tags=st.sampled_from(("", "TagA")))
    def read_queue(self, queue: int, max_msg_nums: int, tags: str) -> None:
        """Read a queue in pulls: before its start, up to its end, and past it."""
        count = max((len(memory.units) for memory in self.trial.memory.derived.queues.values()), default=0)
        for shift in (-1, *range(0, count + 2, max_msg_nums)):
            self.carry_out(GetMessage(queue=queue, shift=shift, max_msg_nums=max_msg_nums, tags=tags))

    @precondition(lambda self: not self.trial.closed and len(self.trial.log.records) < _LONG)
    @precondition(lambda self: self.settings.file_bytes == 65_536 and self.settings.queue_units >= 16)
    @rule()
    def read_long_queue(self) -> None:
        """Read a queue that is longer than the scan limit of a pull.

        Only few stores do this, since each such pull takes time.
        """
        self._put(_MANY, _MANY)
        self._bring_into_queues()
        for tags in ("TagA", ""):
            for max_msg_nums in (32, 1_000):
                self.carry_out(GetMessage(max_msg_nums=max_msg_nums, tags=tags))

    @precondition(lambda self: not self.trial.closed)
    @rule(query=key_queries())
    def query(self, query: QueryKey) -> None:
        """Query a key."""
        self.carry_out(query)

    @precondition(lambda self: not self.trial.closed)
    @rule(several=_SOME_PUTS, key=st.integers(0, 12))
    def read_by_key(self, several: list[Put], key: int) -> None:
        """Query a key of at least two messages, one of which is outside of a time window."""
        self._put(_KEYED, *several, replace(_KEYED, advance_ms=3_000))
        self._bring_into_queues()
        for window_ms in (-1, 1_000):
            self.carry_out(QueryKey(key=key, window_ms=window_ms))

    @precondition(lambda self: not self.trial.closed)
    @rule(look_up=time_look_ups())
    def look_up_time(self, look_up: OffsetByTime) -> None:
        """Look up a time."""
        self.carry_out(look_up)

    @precondition(lambda self: not self.trial.closed and self.trial.memory.derived.queues)
    @rule(queue=st.integers(0, 8), shift_ms=st.sampled_from((0, 1, -1)))
    def look_up_all_times(self, queue: int, shift_ms: int) -> None:
        """Look up the time of each message of a queue."""
        queues = list(self.trial.memory.derived.queues.values())
        for record in range(len(queues[queue % len(queues)].units)):
            self.carry_out(OffsetByTime(queue=queue, record=record, shift_ms=shift_ms))

    # ---- what services do ----------------------------------------------------------------------------------------

    @precondition(lambda self: not self.trial.closed)
    @rule(data=st.data(), after_ms=st.sampled_from((0, 1000, 60_000)))
    def a_service_steps(self, data: st.DataObject, after_ms: int) -> None:
        """Let any service take a step."""
        services: tuple[ServiceName, ...] = self.trial.services
        service = data.draw(st.sampled_from((*services, "reput", "flush-queues")), label="service")
        self.carry_out(Step(service=service, after_ms=after_ms))

    @precondition(lambda self: not self.trial.closed)
    @rule()
    def dispatch(self) -> None:
        """Dispatch everything that is readable."""
        self._bring_into_queues()

    # ---- obstacles ---------------------------------------------------------------------------------------------------

    @precondition(lambda self: not self.trial.closed and not self.trial.log.poisoned)
    @rule(several=_SOME_PUTS, known=st.booleans(), again=st.booleans())
    def file_is_refused(self, several: list[Put], known: bool, again: bool) -> None:
        """Refuse a queue or index file to dispatch for lack of space; dispatch must resume later.

        With `known` the queues exist already, so that the refused file belongs to the index or is a later file of a
        queue.
        """
        if known:
            self._put(*several)
            self._bring_into_queues()
        self._put(*several, *several)
        self.carry_out(RefuseFile())
        self._bring_into_queues()
        if again:
            self.carry_out(RefuseFile())
            self.carry_out(REPUT)
        self.carry_out(REPUT)

    @precondition(lambda self: not self.trial.closed)
    @rule(several=_SOME_PUTS, tags=st.sampled_from(("TagA", "TagB||TagA", "BB")))
    def read_by_tags(self, several: list[Put], tags: str) -> None:
        """Pull by tags; at least one message has the tag, unless it is refused."""
        self._put(*several, _TAGGED)
        self._bring_into_queues()
        for queue in range(len(self.trial.memory.derived.queues)):
            self.carry_out(GetMessage(queue=queue, shift=0, max_msg_nums=32, tags=tags))

    @precondition(lambda self: not self.trial.closed and not self.trial.log.poisoned)
    @precondition(lambda self: not self.trial.settings.sync_flush)
    @rule(several=_SOME_PUTS, more=st.booleans(), pull=pulls(), query=key_queries())
    def a_sync_fails_after_dispatch(self, several: list[Put], more: bool, pull: GetMessage, query: QueryKey) -> None:
        """Dispatch messages, then fail their flush. No reader may read them or be led past them."""
        self._put(*several)
        self.carry_out(Flush())
        self._put(_TAGGED, *several)
        self._bring_into_queues()
        if more:
            self._put(*several)
        self.carry_out(FailSync())
        self.carry_out(Flush())
        self.carry_out(REPUT)
        for operation in (pull, query):
            self.carry_out(operation)
        for queue, memory in enumerate(list(self.trial.memory.derived.queues.values())):
            self.carry_out(GetMessage(queue=queue, shift=len(memory.units) - 1))
        self.carry_out(Close())
        self.carry_out(Open())

    @precondition(lambda self: not self.trial.closed)
    @rule(several=_SOME_PUTS, fails=st.booleans())
    def queues_are_flushed(self, several: list[Put], fails: bool) -> None:
        """Flush queues and index and write the checkpoint, or fail a sync."""
        self._put(*several)
        self._bring_into_queues()
        if fails:
            self.carry_out(FailSync())
            self.carry_out(_FLUSH_QUEUES)
        self.carry_out(_FLUSH_QUEUES)

    @precondition(lambda self: not self.trial.log.poisoned)
    @rule(first=st.integers(0, len(_HARMED) - 1), several=_SOME_PUTS, number=st.integers(0, 12),
          amount=st.integers(0, 40) | st.integers(0, 400) | st.integers(0, 4000))  # fmt: skip
    def corrupt_derived_files(self, first: int, several: list[Put], number: int, amount: int) -> None:
        """Corrupt files of queues and index after clean exits, one after the other, in all ways.

        There is a derived floor once log and queues were flushed. The content of small files is in their first bytes.
        """
        if not self.trial.closed:
            self._put(*several)
            self._bring_into_queues()
            self.carry_out(Flush())
            self.carry_out(_FLUSH_QUEUES)
        for turn, harm in enumerate(_HARMS):
            if not self.trial.closed and not self.trial.log.poisoned:
                self._put(several[number % len(several)])
            self.carry_out(HarmDerived(_HARMED[(first + turn) % len(_HARMED)], harm, number=number, amount=amount))
        self.carry_out(HarmDerived("marker", "stale"))

    @precondition(lambda self: not self.trial.closed)
    @rule(data=st.data(), several=_SOME_PUTS, service=st.sampled_from(("reput", "flush-queues")))
    def power_fails_inside_a_step(self, data: st.DataObject, several: list[Put], service: ServiceName) -> None:
        """Lose power while queues and index are written or flushed."""
        self._put(*several)
        self._bring_into_queues()
        self._put(*several)
        self.carry_out(Step(service=service, after_ms=60_000))
        self._lose_power(data, back=self._somewhere_inside(data))

    @precondition(lambda self: not self.trial.closed)
    @rule(several=_SOME_PUTS, back=st.integers(0, 40))
    def process_dies_inside_dispatch(self, several: list[Put], back: int) -> None:
        """Kill the process during dispatch. Some queues have their units, others do not."""
        self._put(*several)
        self._bring_into_queues()
        self.carry_out(Crash(kill=True, back=back))
