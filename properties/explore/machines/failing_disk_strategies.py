"""Define Hypothesis strategies of the failing-disk machine: fault rules and operations."""

from hypothesis import strategies as st

from tornpage.model.operations import AimFault, Clean, CommitOffset, Flush, HarmDerived, Operation, Put, Step
from tornpage.properties.explore.machines.machine import REPUT
from tornpage.properties.explore.machines.strategies import one_of
from tornpage.properties.program.case import Settings
from tornpage.properties.program.fault_effects import EFFECTS

__all__ = [
    "CLEAN",
    "DELAYED",
    "DELETIONS",
    "DELIVERIES",
    "ENDINGS",
    "FAULTS",
    "INDEX_FILE_STAYS",
    "KEYED",
    "MADE_ANEW",
    "NOT_DURABLE",
    "NO_INDEX_FILE",
    "OF_A_FILE",
    "OF_SOME_FILES",
    "OF_SYNCS",
    "REMOVALS",
    "ROUNDS",
    "SAVE",
    "SOME_PUTS",
    "WORK",
    "settings_of_failing_disks",
]

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
"""The calls that a rule selects, by effect. They are kinds of calls that occur in a session of a store, some of them
often and some rarely."""

_COUNTS = ("nth=1", "nth=1", "", "nth=2", "nth=3", "every=2")
SAVE = Step(service="progress", after_ms=10_000)
_FLUSH_QUEUES = Step(service="flush-queues", after_ms=60_000)


def settings_of_failing_disks() -> st.SearchStrategy[Settings]:
    """Draw files of one page and of four.

    Pages dropped by a failed sync may then precede others.
    """
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
    """Draw a rule by which calls fail in one way: all of a kind, or some of them."""

    def aim(file: str, count: str) -> AimFault:
        return AimFault(effect, f"{file} and {count}" if count else file)

    return st.builds(aim, st.sampled_from(_FILES[effect]), st.sampled_from(_COUNTS))


def _aims_at(places: dict[str, tuple[str, ...]]) -> st.SearchStrategy[AimFault]:
    """Draw a rule from places by effect: each call fails, or one of the first two."""
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


SOME_PUTS = st.lists(_puts(), min_size=1, max_size=4)
_BACKGROUND: tuple[Operation, ...] = (Flush(), REPUT, _FLUSH_QUEUES, CommitOffset(), SAVE)
WORK = st.lists(st.sampled_from(_BACKGROUND), max_size=5)
OF_A_FILE = {1024: 200, 16_384: 3_000}
"""Body sizes by file size. Some of these records fit into one file, and each takes more than one sector or page."""
OF_SOME_FILES = {1024: 700, 16_384: 7_000}
"""Body sizes by file size. No more than two of these records fit into one file."""
CLEAN = Clean(after_hours=73, manual=True)
_OF_REMOVALS = ("unlink-error", "directory-sync-error")
OF_SYNCS = ("sync-lost", "sync-error")
FAULTS = st.lists(_aims(), min_size=1, max_size=2)
REMOVALS = st.builds(
    AimFault,
    st.sampled_from(_OF_REMOVALS),
    st.sampled_from(("nth=1", "nth=2", "every=2", "kind=log", "path=*commitlog*")),
)
DELETIONS = _aims_at(
    {
        "unlink-error": ("kind=queue,extension",),
        "directory-sync-error": ("path=config", "path=*consumequeue*"),
        "rename-error": ("kind=topics", "kind=progress"),
        "sync-error": ("kind=topics", "kind=progress"),
        "no-space": ("kind=topics", "kind=progress"),
    }
)
"""Where a deletion of topics writes: offsets of consumers, then the list of deleted topics. Files are removed after
that."""
DELIVERIES = _aims_at(
    {
        "no-space": ("op=create and kind=log", "op=allocate and kind=log"),
        "sync-error": ("kind=log",),
        "sync-lost": ("kind=log",),
        "rename-error": ("kind=progress",),
        "directory-sync-error": ("path=config",),
    }
)
"""Where a round of delivery, and a save of it, write: copies into the log, progress into its file."""
DELAYED = st.lists(
    st.builds(
        Put,
        topic=one_of(("T", "U")),
        body_bytes=st.sampled_from((200, 700, 10)),
        properties=st.sampled_from(("DELAY\x011", "DELAY\x011\x02TAGS\x01TagA", "DELAY\x012")),
    ),
    min_size=2,
    max_size=6,
)
ENDINGS = st.sampled_from(("power loss", "kill", "open", "exit"))
ROUNDS = st.lists(st.sampled_from((0, 1_000, 4_000)), min_size=1, max_size=3)
MADE_ANEW = st.builds(
    HarmDerived,
    file=st.sampled_from(("queue", "index")),
    harm=st.sampled_from(("zeroed", "lost", "torn")),
    number=st.integers(0, 3),
)
"""Corruptions of files that an open rebuilds from the log."""
NOT_DURABLE = _aims_at({"sync-lost": ("op=sync", "kind=queue", "kind=index"), "sync-error": ("kind=queue",)})
NO_INDEX_FILE = _aims_at({"short-write": ("kind=index",), "no-space": ("kind=index",)})
INDEX_FILE_STAYS = AimFault("unlink-error", "kind=index and nth=1")
KEYED = Put(properties="KEYS\x01k")
