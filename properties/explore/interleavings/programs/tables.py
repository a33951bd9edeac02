"""Benches of the tables that are saved to files, and of filters, flags and directories."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from errno import EIO
from typing import Any, ClassVar, cast

from tornpage.impl.config.retention_policy import RetentionPolicy
from tornpage.impl.delay.delay_offsets import DelayOffsets
from tornpage.impl.groups.config_file import ConfigFile
from tornpage.impl.groups.config_table import ConfigTable, TableFormat
from tornpage.impl.groups.consumer_offsets import ConsumerOffsets
from tornpage.impl.io.files import Files
from tornpage.impl.queue.directory_tree import DirectoryTree
from tornpage.impl.read.filters import FilterBitMaps
from tornpage.impl.retention.clean_files import CleanFiles
from tornpage.impl.service.running_flags import RunningFlag, RunningFlags
from tornpage.impl.statistics.read_statistics import ReadStatistics
from tornpage.properties.explore.interleavings.programs.bench import Bench, call, program, require_rule, slow
from tornpage.properties.explore.interleavings.programs.drawing import Entry, entry
from tornpage.properties.explore.interleavings.scenario import Scenario
from tornpage.properties.scheduler import CooperativeLock, current_task

__all__ = ["BENCHES"]

_END = 100
_DEPTH = 3
"""The number of slashes in the path of a queue."""


class _File:
    """Stand in for a state file.

    The saves of a task fail while its number in `failing` is not 0. With 1 they leave the old content, with 2 the new
    one. Two saves at a time break a rule.
    """

    path = "config/file.json"
    findings = ()

    def __init__(self) -> None:
        self.content: object = None
        self.failing: dict[object, int] = {}
        self._is_written = False

    def save(self, document: Mapping[str, object]) -> None:
        require_rule(not self._is_written, "two saves write one file at the same time")
        self._is_written = True
        fails = self.failing.get(current_task(), 0)
        try:
            slow("a file is written")
            if fails != 1:
                self.content = repr(document)
            if fails:
                raise OSError(EIO, "planned failure")
            slow("a file is synced")
        finally:
            self._is_written = False

    def load(self, _read: object) -> None:
        return None


def _guard() -> CooperativeLock:
    return CooperativeLock("guard")


def _range(_topic: str, _queue_id: int) -> tuple[int, int]:
    slow("the range of a queue is read")
    return 0, _END


class OffsetsBench(Bench):
    """Consumer offsets."""

    modules = ("tornpage.impl.groups.consumer_offsets",)

    def __init__(self) -> None:
        self.file = _File()
        self.restarting: AbstractContextManager[Callable[[], None]] | None = None
        self.forget: Callable[[], None] = lambda: None
        self.offsets = ConsumerOffsets(cast(ConfigFile, self.file), light=False, interval_ms=1, guard=_guard)

    def commit(self, group: int, queue: int, offset: int) -> int:
        return self.offsets.commit(f"g{group}", "T", queue, offset, range_of=_range)

    def query(self, group: int, queue: int) -> int | None:
        return self.offsets.query(f"g{group}", "T", queue)

    def of_topic(self) -> dict[str, dict[int, int]]:
        return self.offsets.of_topic("T")

    def topics_of(self, group: int) -> list[str]:
        return self.offsets.topics_of(f"g{group}")

    def clone(self) -> None:
        self.offsets.clone("g1", "g2", "T")

    def remove(self) -> list[tuple[str, str]]:
        return self.offsets.remove_if(lambda key, offsets: key[1] == "g1" and 0 in offsets)

    def save(self) -> None:
        self.offsets.save()

    def restart(self) -> None:
        restart = self.offsets.restart_numbers(lambda topic, queue: queue == 0)
        self.forget = restart.__enter__()
        self.restarting = restart

    def restarted(self, is_done: int) -> None:
        if self.restarting is None:
            return
        if is_done:
            self.forget()
        self.restarting.__exit__(None, None, None)

    def fail(self, fails: int) -> None:
        self.file.failing[current_task()] = fails

    def state(self) -> object:
        left = self.file.content
        self._require_saved()
        table = self.offsets.of_topic("T")
        self.file.failing[None] = 2
        with suppress(OSError), self.offsets.restart_numbers(lambda topic, queue: queue == 0):
            pass
        self.file.failing.clear()
        self._require_saved()
        return left, table

    def _require_saved(self) -> None:
        """Save, and check that the file has the offsets in memory. Raises GuaranteeBroken."""
        self.offsets.save()
        table = self.offsets.of_topic("T")
        named = {f"T@{group}": dict(sorted(offsets.items())) for group, offsets in sorted(table.items())}
        saved = self.file.content or repr({"offsetTable": {}})
        require_rule(saved == repr({"offsetTable": named}), "a save leaves out offsets", found=f"{saved}, not {named}")

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("commit", (1, 2), (0, 1), (3, 5, 7)),
        entry("save"),
        entry("query", (1, 2), (0, 1)),
        entry("of_topic"),
        entry("topics_of", (1, 2)),
        entry("clone"),
        entry("remove"),
        entry("commit", (1,), (0,), (3, 7)).then("commit", (2,), (0, 1), (3, 7)),
        entry("restart", role="restart").then("restarted", (0, 1)),
        entry("fail", (1, 2)).then("save").then("fail", (0,)),
    )
    programs: ClassVar[tuple[Scenario, ...]] = (
        program("offsets", [call("commit", 1, 0, 5)], [call("commit", 1, 1, 7)]),
        program("offsets", [call("commit", 1, 0, 5), call("save")], [call("commit", 1, 1, 7), call("save")]),
        program("offsets", [call("save")], [call("commit", 1, 1, 7)], before=[call("commit", 2, 0, 1)]),
        program(
            "offsets",
            [call("restart"), call("restarted", 1)],
            [call("commit", 1, 0, 7)],
            before=[call("commit", 1, 0, 3)],
        ),
        program("offsets", [call("restart"), call("restarted", 1)], [call("save")], before=[call("commit", 1, 0, 3)]),
        program(
            "offsets",
            [call("restart"), call("restarted", 0)],
            [call("commit", 1, 1, 7), call("save")],
            before=[call("commit", 1, 0, 3)],
        ),
        program(
            "offsets", [call("of_topic")], [call("commit", 2, 0, 7), call("remove")], before=[call("commit", 1, 0, 3)]
        ),
        program("offsets", [call("topics_of", 1)], [call("commit", 2, 0, 7)], before=[call("commit", 1, 0, 3)]),
        program("offsets", [call("clone")], [call("commit", 1, 1, 7)], before=[call("commit", 1, 0, 3)]),
        program(
            "offsets", [call("clone")], [call("remove"), call("commit", 1, 3, 2)], before=[call("commit", 1, 0, 3)]
        ),
        program("offsets", [call("remove")], [call("commit", 3, 0, 7)], before=[call("commit", 1, 0, 3), call("save")]),
        program("offsets", [call("remove")], [call("remove")], before=[call("commit", 1, 0, 3), call("save")]),
        program(
            "offsets",
            [call("restart"), call("restarted", 1)],
            [call("of_topic"), call("commit", 2, 1, 4)],
            before=[call("commit", 1, 0, 3), call("commit", 1, 1, 2)],
        ),
        program(
            "offsets",
            [call("fail", 1), call("save"), call("fail", 0)],
            [call("query", 1, 0)],
            before=[call("commit", 1, 0, 3)],
        ),
        program(
            "offsets",
            [call("fail", 1), call("restart"), call("restarted", 1), call("fail", 0)],
            [call("query", 1, 0)],
            before=[call("commit", 1, 0, 3), call("save")],
        ),
    )


_FORMAT: TableFormat[int] = TableFormat("table.json", 0, lambda document: {}, lambda entries: {"table": dict(entries)})


class TableBench(Bench):
    """A broker table whose changes are durable when their call returns."""

    modules = ("tornpage.impl.groups.config_table",)
    interval_ms = 0

    def __init__(self) -> None:
        self.file = _File()
        shape = TableFormat("table.json", self.interval_ms, _FORMAT.read, _FORMAT.write)
        self.table: ConfigTable[int] = ConfigTable(cast(ConfigFile, self.file), shape, clock=lambda: 1, guard=_guard)

    def put(self, key: int, value: int) -> int:
        self.table.put(key, value)
        return self.table.data_version.counter if not self.interval_ms else 0

    def get(self, key: int) -> int | None:
        return self.table.get(key)

    def delete(self, key: int) -> bool:
        return self.table.delete(key)

    def save(self) -> None:
        self.table.save()

    def fail(self, fails: int) -> None:
        self.file.failing[current_task()] = fails

    def state(self) -> object:
        left = self.file.content
        version = self.table.data_version.counter
        self.table.save()
        entries = self.table.all()
        saved = str(self.file.content)
        is_there = (self.file.content is None and not entries) or f"'table': {entries}" in saved
        require_rule(is_there, "a save leaves out an entry", found=f"{saved}, not {entries}")
        return left, version, sorted(entries.items())

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("put", (1, 2), (1, 5), role="change"),
        entry("delete", (1, 2), role="change"),
        entry("get", (1, 2)),
        entry("save"),
        entry("fail", (1, 2), role="change").then("put", (1, 2), (7,)).then("fail", (0,)),
    )
    programs: ClassVar[tuple[Scenario, ...]] = (
        program("table", [call("fail", 1), call("put", 1, 5), call("fail", 0), call("save")], [call("get", 1)]),
        program("table", [call("put", 1, 5)], [call("save")], before=[call("put", 2, 1)]),
        program(
            "table", [call("fail", 1), call("delete", 1), call("fail", 0)], [call("get", 1)], before=[call("put", 1, 1)]
        ),
        program("table", [call("put", 1, 5)], [call("get", 1), call("get", 1)], before=[call("put", 2, 1)]),
        program(
            "table", [call("fail", 1), call("put", 1, 5), call("fail", 0)], [call("save")], before=[call("put", 2, 1)]
        ),
    )


class PutsToOneTableBench(TableBench):
    """Concurrent puts. Callers serialise them, so only file and version are compared."""

    def state(self) -> object:
        return self.table.data_version.counter, len(self.table.all()) > 0

    def put(self, key: int, value: int) -> int:
        self.table.put(key, value)
        return 0

    programs: ClassVar[tuple[Scenario, ...]] = (program("puts to one table", [call("put", 1, 5)], [call("put", 2, 6)]),)


class SavedTableBench(TableBench):
    """A broker table that a service saves."""

    interval_ms = 10

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("put", (1, 2), (1, 5), role="change"),
        entry("delete", (1, 2), role="change"),
        entry("get", (1, 2)),
        entry("save"),
        entry("fail", (1, 2)).then("save").then("fail", (0,)),
    )
    programs: ClassVar[tuple[Scenario, ...]] = (
        program("saved table", [call("save")], [call("put", 1, 5)], before=[call("put", 2, 1)]),
        program("saved table", [call("save")], [call("save")], before=[call("put", 2, 1)]),
        program(
            "saved table",
            [call("fail", 1), call("save"), call("fail", 0)],
            [call("get", 1)],
            before=[call("put", 2, 1)],
        ),
    )


class DelayBench(Bench):
    """The progress of delayed delivery: one task delivers, others save."""

    modules = ("tornpage.impl.delay.delay_offsets",)

    def __init__(self) -> None:
        self.file = _File()
        self.durable = self.copies = 0
        self.flush_fails = False
        self.offsets = DelayOffsets(
            cast(ConfigFile, self.file), interval_ms=1, make_copies_durable=self._flush, guard=_guard
        )

    def _flush(self) -> bool:
        copies = self.copies
        slow("the log is flushed")
        self.durable = self.durable if self.flush_fails else max(self.durable, copies)
        return not self.flush_fails

    def deliver(self, number: int) -> None:
        """Deliver copies up to a number, or that many more if they are there already."""
        self.copies = max(number, self.copies + number * (number <= self.copies))
        self.offsets.advance(1, self.copies)

    def save(self) -> None:
        self.offsets.save()

    def fail(self, fails: int) -> None:
        self.file.failing[current_task()] = fails

    def fail_flush(self, fails: int) -> None:
        self.flush_fails = bool(fails)

    def state(self) -> object:
        left, self.flush_fails = self.file.content, False
        self.offsets.save()
        wanted = repr({"offsetTable": dict(self.offsets.by_level())})
        is_there = self.file.content == wanted or (self.file.content is None and not self.offsets.by_level())
        require_rule(is_there, "a save leaves out a number", found=self.file.content)
        require_rule(self.durable >= self.copies, "a saved number covers a copy that is not durable", contract=2)
        return left

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("deliver", (1, 2), role="delivery"),
        entry("save"),
        entry("fail", (1, 2)).then("save").then("fail", (0,)),
        entry("fail_flush", (1,)).then("save").then("fail_flush", (0,)),
    )
    programs: ClassVar[tuple[Scenario, ...]] = (
        program("delay", [call("save")], [call("deliver", 2), call("save")], before=[call("deliver", 1)]),
        program("delay", [call("save")], [call("save")], before=[call("deliver", 1)]),
        program("delay", [call("deliver", 2), call("deliver", 3)], [call("save")], [call("save")]),
        program(
            "delay", [call("fail", 1), call("save"), call("fail", 0)], [call("deliver", 2)], before=[call("deliver", 1)]
        ),
    )


class FiltersBench(Bench):
    """Property filters of consumer groups."""

    modules = ("tornpage.impl.read.filters",)

    def __init__(self) -> None:
        self.filters = FilterBitMaps()

    def register(self, group: int, topic: int) -> None:
        self.filters.register(f"g{group}", f"T{topic}", "a = '1'", born_ms=1)

    def unregister(self, group: int, topic: int) -> None:
        self.filters.unregister(f"g{group}", f"T{topic}")

    def bit_map(self, topic: int) -> str:
        return self.filters.bit_map_of(f"T{topic}".encode(), {"a": "1"}).hex()

    def state(self) -> object:
        return [self.bit_map(topic) for topic in range(2)]

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("register", (1, 2), (0, 1)),
        entry("unregister", (1, 2), (0, 1)),
        entry("bit_map", (0, 1)),
    )
    programs: ClassVar[tuple[Scenario, ...]] = (
        program("filters", [call("register", 1, 0)], [call("register", 2, 0)]),
        program("filters", [call("register", 1, 0)], [call("unregister", 2, 0)], before=[call("register", 2, 0)]),
        program("filters", [call("unregister", 1, 0)], [call("register", 2, 1)], before=[call("register", 1, 0)]),
        program(
            "filters",
            [call("unregister", 1, 0)],
            [call("unregister", 2, 0)],
            before=[call("register", 1, 0), call("register", 2, 0)],
        ),
        program(
            "filters",
            [call("unregister", 1, 0)],
            [call("bit_map", 0), call("bit_map", 0)],
            before=[call("register", 1, 0), call("register", 2, 0)],
        ),
    )


class FlagsBench(Bench):
    """The permissions of a store."""

    modules = ("tornpage.impl.service.running_flags",)

    def __init__(self) -> None:
        self.flags = RunningFlags(lock=_guard)

    def set(self, number: int) -> bool:
        return self.flags.set(list(RunningFlag)[number])

    def clear(self, number: int) -> bool:
        return self.flags.clear(list(RunningFlag)[number])

    def state(self) -> object:
        flags = self.flags
        return int(flags.bits), flags.readable, flags.writeable, flags.queue_writeable

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("set", range(4)),
        entry("clear", range(4)),
    )
    programs: ClassVar[tuple[Scenario, ...]] = (
        program("flags", [call("set", 0)], [call("set", 1)]),
        program("flags", [call("set", 0)], [call("clear", 1)], before=[call("set", 1)]),
        program("flags", [call("set", 1)], [call("set", 1)]),
        program("flags", [call("clear", 2)], [call("clear", 1)], before=[call("set", 1), call("set", 2)]),
    )


class _Directories:
    """Stand in for a disk that has directories only, and records which names are durable."""

    def __init__(self) -> None:
        self.there = {"/s"}
        self.durable = {"/s"}
        self.fails = 0

    def stat(self, path: str) -> object:
        return path if path in self.there else None

    def make_directory(self, path: str) -> None:
        slow("a directory is made")
        self.there.add(path)

    def sync_directory(self, path: str) -> None:
        if path not in self.there:
            raise FileNotFoundError(2, "no such directory", path)
        names = {each for each in self.there if each.rpartition("/")[0] == path}
        slow("a directory is synced")
        if self.fails and path == "/s":
            self.fails -= 1
            raise OSError(EIO, "planned failure")
        self.durable |= names


class TreeBench(Bench):
    """The directories of queues."""

    modules = ("tornpage.impl.queue.directory_tree",)

    def __init__(self) -> None:
        self.disk = _Directories()
        self.tree = DirectoryTree(cast(Files, self.disk), "/s")
        self.made: set[str] = set()

    def make(self, topic: int, queue: int) -> None:
        self.tree.make(f"/s/t{topic}/{queue}")
        self.made.add(f"/s/t{topic}/{queue}")

    def sync(self, topic: int, queue: int) -> None:
        path = f"/s/t{topic}/{queue}"
        if path in self.made:  # a queue syncs its directory after `make` has returned
            try:
                self.tree.sync(path)
            except OSError as error:
                if error.errno != EIO:
                    raise
                return  # overlapping syncs may each sync the root, so that one more of them fails
            is_durable = {path, path.rpartition("/")[0]} <= self.disk.durable
            require_rule(is_durable, "a sync returns before a name of its path is durable", contract=2)

    def fail_sync(self, count: int) -> None:
        """Let the next syncs of the root fail."""
        self.disk.fails = count

    def state(self) -> object:
        self.disk.fails = 0
        for path in sorted(each for each in self.disk.there if each.count("/") == _DEPTH):
            self.tree.sync(path)
        require_rule(self.disk.durable >= self.disk.there, "a synced directory is lost after a power loss", contract=2)
        return sorted(self.disk.there)

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("make", (0, 1), (0, 1), role="dispatch"),
        entry("sync", (0, 1), (0, 1)),
        entry("fail_sync", (1, 2)).then("sync", (0, 1), (0, 1)),
    )
    programs: ClassVar[tuple[Scenario, ...]] = (
        program("tree", [call("make", 0, 0), call("sync", 0, 0)], [call("make", 1, 1), call("sync", 1, 1)]),
        program("tree", [call("make", 0, 0), call("sync", 0, 0)], [call("sync", 0, 1)], before=[call("make", 0, 1)]),
        program("tree", [call("make", 0, 0)], [call("make", 0, 1)]),
        program("tree", [call("sync", 0, 0)], [call("make", 0, 1), call("sync", 0, 1)], before=[call("make", 0, 0)]),
    )


class ReadsBench(Bench):
    """The statistics of reads."""

    modules = ("tornpage.impl.statistics.read_statistics",)

    def __init__(self) -> None:
        self.statistics = ReadStatistics(started_ms=0)

    def count(self, messages: int, now_ms: int) -> None:
        self.statistics.count(messages=messages, elapsed_ms=messages, now_ms=now_ms)

    def fall(self, queue: int, behind_bytes: int) -> None:
        self.statistics.record_disk_fall("T", queue, "g", behind_bytes)

    def snapshot(self, now_ms: int) -> object:
        found = self.statistics.snapshot(now_ms)
        return found.found_count, found.miss_count, found.transferred_count, found.latency_ms_max, found.disk_fall

    def state(self) -> object:
        return self.statistics.snapshot(9_000)

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("count", (0, 1, 2), (5, 1_005)),
        entry("fall", (1, 2), (5, 7)),
        entry("snapshot", (6, 1_006)),
    )
    programs: ClassVar[tuple[Scenario, ...]] = (
        program("reads", [call("count", 1, 5)], [call("count", 2, 6)]),
        program("reads", [call("count", 0, 5)], [call("count", 0, 6)]),
        program("reads", [call("count", 2, 5)], [call("snapshot", 6)]),
        program("reads", [call("count", 1, 1_005)], [call("count", 2, 1_005)]),
        program("reads", [call("snapshot", 1_005)], [call("snapshot", 1_005)], before=[call("count", 3, 5)]),
        program("reads", [call("fall", 1, 5)], [call("snapshot", 6)], before=[call("fall", 2, 5)]),
        program("reads", [call("count", 1, 1_005)], [call("snapshot", 1_006)], before=[call("count", 3, 5)]),
    )


class _Nothing:
    """Stand in for whatever a round of clean-up uses: it finds nothing to do."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *args, **named: None if name != "follow" else iter(())


class _Room:
    wants_deletion = urgent = False


class _Watch:
    def look(self, _clock_ms: int) -> _Room:
        return _Room()


class _Deletions:
    def __init__(self) -> None:
        self.rounds = 0

    def delete_first(self, *_args: object, **_named: object) -> bool:
        slow("a file may be deleted")
        self.rounds += 1
        return False

    def retry_hanging(self, _now_ms: int) -> None:
        return None


class ManualBench(Bench):
    """Clean-up that was requested by hand."""

    modules = ("tornpage.impl.retention.clean_files",)

    def __init__(self) -> None:
        self.deletions = _Deletions()
        policy = RetentionPolicy(delete_when="04", time_zone="UTC")
        self.cleaner = CleanFiles(
            policy,
            watch=cast(Any, _Watch()),
            commit_log=cast(Any, self.deletions),
            queues=cast(Any, _Nothing()),
            clock=lambda: 0,
            may_clean=lambda: True,
            followed=lambda: None,
        )

    def request(self) -> None:
        self.cleaner.delete_manually()

    def step(self) -> int:
        return self.cleaner.step(0)

    def state(self) -> object:
        while True:
            before = self.deletions.rounds
            self.cleaner.step(0)
            if self.deletions.rounds == before:
                return before

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("request"),
        entry("step", role="cleaner"),
    )
    programs: ClassVar[tuple[Scenario, ...]] = (
        program("manual", [call("request")], [call("step")], before=[call("request")]),
    )


BENCHES: Mapping[str, Callable[[], Bench]] = {
    "offsets": OffsetsBench,
    "table": TableBench,
    "puts to one table": PutsToOneTableBench,
    "saved table": SavedTableBench,
    "delay": DelayBench,
    "filters": FiltersBench,
    "flags": FlagsBench,
    "tree": TreeBench,
    "reads": ReadsBench,
    "manual": ManualBench,
}
