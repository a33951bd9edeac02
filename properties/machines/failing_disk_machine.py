"""The failing-disk machine: calls of the disk fail, wherever a fault is aimed, and what was promised is
kept (2, 3, 6 to 9, 13).

Faults are drawn by effect, kind of file and count (docs/faults.md, "Aiming"). A time under them ends with an open, a
kill or a power loss, and they may hit that recovery as well; the disaster is judged by what was promised meanwhile.
"""

from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from properties.aiming.effects import EFFECTS
from properties.cases.case import (
    AimFault,
    Clean,
    Close,
    CommitOffset,
    DeleteTopics,
    Flush,
    Open,
    Operation,
    Put,
    Settings,
    Step,
)
from properties.machines.machine import REPUT, TrialMachine
from properties.machines.strategies import one_of

__all__ = ["FailingDiskMachine"]

_FILES: dict[str, tuple[str, ...]] = {
    "sync-error": ("kind=log", "kind=queue", "kind=extension", "kind=index", "kind=checkpoint", "kind=progress"),
    "sync-lost": ("kind=log", "kind=log", "kind=log", "kind=queue", "kind=checkpoint", "kind=progress"),
    "short-write": ("kind=progress", "kind=checkpoint", "kind=log", "kind=queue,extension"),
    "no-space": ("op=create", "op=allocate", "kind=log", "kind=queue,extension", "kind=progress", "kind=index"),
    "read-error": ("op=open", "op=map", "op=read", "kind=progress", "kind=queue,extension", "kind=floor,checkpoint"),
    "directory-sync-error": ("path=config", "path=commitlog", "path=store", "path=consumequeue*"),
    "rename-error": ("kind=progress", "kind=progress", "kind=derived-floor"),
    "unlink-error": ("kind=marker", "kind=log", "kind=queue,extension", "kind=progress"),
}
"""What is aimed at, by what happens there: kinds of calls that come in a life of a store, and not all at one rate."""

_COUNTS = ("nth=1", "nth=1", "", "nth=2", "nth=3", "every=2")
_SAVE = Step(service="progress", after_ms=10_000)
_FLUSH_QUEUES = Step(service="flush-queues", after_ms=60_000)


def _settings() -> st.SearchStrategy[Settings]:
    """Files of one page and of four, so that what a failed sync has dropped may lie in front of what is there."""
    return st.builds(
        Settings,
        file_bytes=st.sampled_from((1024, 16_384)),
        sync_flush=st.booleans(),
        disk=st.sampled_from(("posix-strict", "posix-strict", "journal", "kill")),
        pool_buffers=st.sampled_from((0, 0, 0, 2)),
        queue_units=st.sampled_from((4, 1, 16)),
        queue_ext=st.sampled_from((True, False)),
        bit_maps=st.just(True),
        index=st.sampled_from((False, True)),
    )


def _aims() -> st.SearchStrategy[AimFault]:
    return st.sampled_from(tuple(EFFECTS)).flatmap(_aims_of)


def _aims_of(effect: str) -> st.SearchStrategy[AimFault]:
    """Draw where calls fail in one way: at all of a kind, or at some of them."""

    def aim(file: str, count: str) -> AimFault:
        return AimFault(effect, f"{file} and {count}" if count else file)

    return st.builds(aim, st.sampled_from(_FILES[effect]), st.sampled_from(_COUNTS))


def _aims_at(places: dict[str, tuple[str, ...]]) -> st.SearchStrategy[AimFault]:
    """Draw from places by what happens there: at each call, or at one of the first two."""
    counts = ("", " and nth=1", " and nth=2")
    wheres = [(effect, where) for effect, several in places.items() for where in several]
    return st.sampled_from([AimFault(effect, f"{where}{count}") for effect, where in wheres for count in counts])


def _puts() -> st.SearchStrategy[Put]:
    return st.builds(
        Put,
        topic=one_of(("T", "T", "U")),
        body_bytes=st.sampled_from((3_000, 10, 700)),
        properties=one_of(("", "KEYS\x01k\x02TAGS\x01TagA")),
    )


_SOME_PUTS = st.lists(_puts(), min_size=1, max_size=4)
_BACKGROUND: tuple[Operation, ...] = (Flush(), REPUT, _FLUSH_QUEUES, CommitOffset(), _SAVE)
_WORK = st.lists(st.sampled_from(_BACKGROUND), max_size=5)
_OF_A_FILE = {1024: 200, 16_384: 3_000}
"""Bodies by the size of a file: of their records some fit into one, and each is of more sectors or pages than one."""
_OF_SOME_FILES = {1024: 700, 16_384: 7_000}
"""Bodies by the size of a file: no more than two records fit into one."""
_CLEAN = Clean(after_hours=73, manual=True)
_OF_REMOVALS = ("unlink-error", "directory-sync-error")
_OF_SYNCS = ("sync-lost", "sync-error")
_FAULTS = st.lists(_aims(), min_size=1, max_size=2)
_REMOVALS = st.builds(
    AimFault,
    st.sampled_from(_OF_REMOVALS),
    st.sampled_from(("nth=1", "nth=2", "every=2", "kind=log", "path=*commitlog*")),
)
_DELETIONS = _aims_at(
    {
        "unlink-error": ("kind=queue,extension",),
        "directory-sync-error": ("path=config", "path=*consumequeue*"),
        "rename-error": ("kind=topics", "kind=progress"),
        "sync-error": ("kind=topics", "kind=progress"),
        "no-space": ("kind=topics", "kind=progress"),
    }
)
"""Where a deletion of topics writes: offsets of consumers first, then the list of deleted topics; then files go."""
_DELIVERIES = _aims_at(
    {
        "no-space": ("op=create and kind=log", "op=allocate and kind=log"),
        "sync-error": ("kind=log",),
        "sync-lost": ("kind=log",),
        "rename-error": ("kind=progress",),
        "directory-sync-error": ("path=config",),
    }
)
"""Where a round of delivery, and a save of it, write: copies into the log, progress into its file."""
_DELAYED = st.lists(
    st.builds(
        Put,
        topic=one_of(("T", "U")),
        body_bytes=st.sampled_from((200, 700, 10)),
        properties=st.sampled_from(("DELAY\x011", "DELAY\x011\x02TAGS\x01TagA", "DELAY\x012")),
    ),
    min_size=2,
    max_size=6,
)
_ENDINGS = st.sampled_from(("power loss", "kill", "open", "exit"))
_ROUNDS = st.lists(st.sampled_from((0, 1_000, 4_000)), min_size=1, max_size=3)


class FailingDiskMachine(TrialMachine):
    """One store on a disk that fails it, beside its model."""

    must_run: ClassVar[tuple[str, ...]] = (
        "put",
        "step",
        "flush",
        "commit_offset",
        "aim_fault",
        "close",
        "open",
        "crash",
        "clean",
        "delete_topics",
    )
    must_happen: ClassVar[tuple[tuple[str, ...], ...]] = (
        *((f"aimed_{effect.replace('-', '_')}_fired",) for effect in EFFECTS),
        ("cleaned_under_a_fault",),
        ("deleted_under_a_fault",),
        ("deleted_with_files_left",),
        ("deletion_refused",),
        ("delivered_under_a_fault",),
        ("delivery_refused_under_a_fault",),
    )

    @initialize(settings=_settings())
    def open_store(self, settings: Settings) -> None:
        """Open a store on an empty disk."""
        self.start(settings)

    # ---- what users and services do ------------------------------------------------------------------------------

    def _do(self, several: list[Put], work: list[Operation]) -> None:
        for operation in (*several, *work):
            self.carry_out(operation)

    @precondition(lambda self: not self.trial.closed)
    @rule(several=_SOME_PUTS, work=_WORK)
    def store_works(self, several: list[Put], work: list[Operation]) -> None:
        """Messages come, services take their turns, a group commits."""
        self._do(several, work)

    def _end(self, data: st.DataObject, ending: str) -> None:
        """Open again, behind a close of its own or not, or be broken off inside of the last verb."""
        if ending in ("open", "exit"):
            self._do([], [Close(), Open()] if ending == "exit" else [Open()])
        else:
            self._break_off(data, back=self._somewhere_inside(data), kill=ending == "kill")

    # ---- what stands in the way ----------------------------------------------------------------------------------

    @precondition(lambda self: not self.trial.closed)
    @rule(faults=_FAULTS)
    def calls_fail(self, faults: list[AimFault]) -> None:
        """From now on some calls fail."""
        for fault in faults:
            self.carry_out(fault)

    @precondition(lambda self: not self.trial.closed)
    @rule(faults=_FAULTS, several=_SOME_PUTS, work=_WORK, closed=st.booleans())
    def opens_on_a_disk_that_fails(
        self, faults: list[AimFault], several: list[Put], work: list[Operation], closed: bool
    ) -> None:
        """Calls fail before and while a store is opened again, and then no longer."""
        self._do([], work)
        self.calls_fail(faults)
        self._do(several, work)
        if closed:
            self.carry_out(Close())
        self.carry_out(Open())

    @precondition(lambda self: not self.trial.closed)
    @rule(data=st.data(), several=_SOME_PUTS, faults=_FAULTS, work=_WORK, kill=st.booleans())
    def recovers_on_a_disk_that_fails(
        self, data: st.DataObject, several: list[Put], faults: list[AimFault], work: list[Operation], kill: bool
    ) -> None:
        """A crash, and calls fail in the recovery as well."""
        self._do(several, work)
        self.calls_fail(faults)
        self._break_off(data, back=0, kill=kill)

    @precondition(lambda self: not self.trial.closed and not self.trial.log.poisoned)
    @precondition(lambda self: self.settings.disk != "kill")
    @rule(data=st.data(), count=st.integers(2, 5), effect=st.sampled_from(_OF_SYNCS), nth=st.sampled_from((1, 1, 2, 3)))
    def a_cut_does_not_become_durable(self, data: st.DataObject, count: int, effect: str, nth: int) -> None:
        """Pages behind a durable record are lost, others behind them are not, and the sync of the cut fails.

        Nobody waits for the disk there, so that it is so in stores that answer by the disk too.
        """
        put = Put(body_bytes=_OF_A_FILE[self.settings.file_bytes], properties="WAIT\x01false")
        self._do([put], [Flush()])
        self._do([put] * count, [])
        self._commit()
        self.carry_out(AimFault(effect, f"kind=log and nth={nth}"))
        self._lose_messages(data)

    @precondition(lambda self: not self.trial.closed and not self.trial.log.poisoned)
    @rule(data=st.data(), count=st.integers(3, 6), fault=_REMOVALS, runs=st.integers(1, 3), kill=st.booleans())
    def a_clean_up_fails(self, data: st.DataObject, count: int, fault: AimFault, runs: int, kill: bool) -> None:
        """Log files expire, and some of them cannot be removed, or not durably."""
        self._do([Put(body_bytes=_OF_SOME_FILES[self.settings.file_bytes])] * count, [Flush()])
        self._bring_into_queues()
        self._do([], [fault, *[_CLEAN] * runs])
        self._break_off(data, back=self._somewhere_inside(data), kill=kill)

    @precondition(lambda self: not self.trial.closed and not self.trial.log.poisoned)
    @rule(
        data=st.data(),
        several=_SOME_PUTS,
        fault=_DELETIONS,
        in_use=st.sampled_from(((), ("U",))),
        read=st.booleans(),
        new=_SOME_PUTS,
        work=_WORK,
        ending=_ENDINGS,
    )
    def a_deletion_fails(
        self,
        data: st.DataObject,
        several: list[Put],
        fault: AimFault,
        in_use: tuple[str, ...],
        read: bool,
        new: list[Put],
        work: list[Operation],
        ending: str,
    ) -> None:
        """Topics go while the disk refuses to remember it, or to remove their queues; new messages come."""
        self._do([Put(), *several], [])
        self._bring_into_queues()
        self._do([], [CommitOffset(), _SAVE] if read else [])
        self._do([], [fault, DeleteTopics(in_use=in_use)])
        self._do(new, work)
        self._end(data, ending)

    @precondition(lambda self: not self.trial.closed and not self.trial.log.poisoned)
    @rule(
        data=st.data(),
        delayed=_DELAYED,
        fault=_DELIVERIES,
        rounds=_ROUNDS,
        work=_WORK,
        ending=_ENDINGS,
    )
    def a_delivery_fails(
        self,
        data: st.DataObject,
        delayed: list[Put],
        fault: AimFault,
        rounds: list[int],
        work: list[Operation],
        ending: str,
    ) -> None:
        """Delayed messages are due while the disk refuses files for their copies, or to save who was delivered."""
        self._do(delayed, [])
        self._bring_into_queues()
        self._do([], [fault, *(Step(service="schedule", after_ms=pause_ms) for pause_ms in rounds), *work])
        self._end(data, ending)
