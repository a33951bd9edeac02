"""Use offsets of groups, broker tables and state files as a store does (8, 13 and 17).

1. Each verb first looks whether the store is open. After a close it raises StoreClosed, and ForkedStore in a child. It
   takes no lock and reads no queue then, because a lock may be held without end in a child. A store that is read-only
   answers questions, and raises ReadOnlyStore for a change of a table and for a save of offsets.
2. A committed offset is limited to the end of its queue. Names without text or with @, queue ids outside of 0 to
   2^31 - 1 and offsets outside of 0 to 2^63 - 1 raise BadProgress, and change nothing.
3. A change of topics or groups is durable when its verb returns. If it raises OSError, the table is unchanged, and the
   file has the old table or the new one. Offsets and filters are saved by the service, by `save_all`, and by an open
   that corrects offsets.
4. A save without a change writes nothing. A save makes the last document the backup. A load that needs the backup, or
   finds nothing that can be read, says so. A document that is nested too deeply is invalid.
5. An open that may write makes durable what it has loaded. One that may not write opens files for reading only.
6. The service saves an owner after its interval, and a second after a failed save. A save of all tries every owner,
   and raises the first error.
7. Queues are looked at only inside of a read of the store, and no lock is taken twice.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.errors import BadProgress, ForkedStore, ReadOnlyStore, StoreClosed
from tornpage.impl.groups.broker_configs import ConsumerFilterData, SubscriptionGroupConfig, TopicConfig
from tornpage.impl.groups.broker_tables import BrokerTables
from tornpage.impl.groups.config_file import ConfigFile
from tornpage.impl.groups.config_table import ConfigTable
from tornpage.impl.groups.consumer_offsets import ConsumerOffsets
from tornpage.impl.groups.group_offsets import GroupOffsets
from tornpage.impl.groups.persist_progress import PersistProgress
from tornpage.impl.groups.progress import Progress
from tornpage.impl.log.loading import NO_OFFSET, Finding
from tornpage.impl.service.lifecycle import Lifecycle
from tornpage.model.consumers.state_files import TORN, Offsets, StateFile, text_of
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.decode.config_files import named_as_stored
from tornpage.properties.lockstep.functions.comparing import is_value
from tornpage.properties.lockstep.parts.part_disk import PartDisk, tried

__all__ = ["check"]

_TOPICS, _GROUPS = ("T", "U", "%LMQ%t"), ("g", "h", "%LMQ%l")
_BAD_NAMES = ("", "a@b", "@")
_FILES = ("offsets", "topics", "groups", "filters")
_NAMES = {"topics": "topics.json", "groups": "subscriptionGroup.json", "filters": "consumerFilter.json"}
_TABLES = {"topics": "topicConfigTable", "groups": "subscriptionGroupTable"}
_FILTERS_MS, _FAILED_MS = 10_000, 1_000
_QUEUE_ID_MAX, _OFFSET_MAX = (1 << 31) - 1, (1 << 63) - 1
_INVALID = (
    b"", b"{", b'{"offsetTable":[],"topicConfigTable":[],"subscriptionGroupTable":[],"filterDataByTopic":[1]}',
    b"[" * 3_000, b"{" * 3_000, b'{"a":' * 3_000, b"\xff",
)  # fmt: skip
"""Contents that are no state. The deep ones are longer than a stack."""
_PROGRAMS, _STEPS = 3, 24

Queue = tuple[str, int]
Shut = Literal["", "read-only", "closed", "forked"]


def check(rng: random.Random) -> None:
    """Use the state files of some stores. Raises GuaranteeBroken."""
    for _ in range(_PROGRAMS):
        _Program(rng).run()
    _owners_are_saved(rng)


# ---- stand-ins -------------------------------------------------------------------------------------------------------


class _Guard:
    """A lock that counts how often it was taken."""

    def __init__(self, taken: list[int]) -> None:
        self._taken, self._is_held = taken, False

    def __enter__(self) -> None:
        if self._is_held:
            raise GuaranteeBroken(8, "the owner of a lock takes it twice")
        self._is_held = True
        self._taken[0] += 1

    def __exit__(self, *_: object) -> None:
        self._is_held = False


class _Reads:
    """The queues of a store, their bounds, and whether the first message has left the memory."""

    def __init__(self, rng: random.Random) -> None:
        self.ranges: dict[Queue, tuple[int, int]] = {}
        self.old: set[Queue] = set()
        self.reads, self._depth = 0, 0
        for topic in _TOPICS:
            for queue_id in range(rng.randrange(4)):
                least = rng.choice((0, 0, 1, 3))
                self.ranges[topic, queue_id] = (least, least + rng.randrange(6))
                if rng.random() < 0.5:
                    self.old.add((topic, queue_id))

    def __enter__(self) -> None:
        self.reads += 1
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1

    @property
    def queues(self) -> "_Reads":
        """The queues, inside of a read only."""
        if not self._depth:
            raise GuaranteeBroken(8, "queues are looked at outside of a read of the store")
        return self

    def names(self) -> list[Queue]:
        """Return the names of all queues."""
        return sorted(self.ranges)

    def range_of(self, topic: str, queue_id: int) -> tuple[int, int]:
        """Return minimum and maximum of a queue."""
        return self.ranges.get((topic, queue_id), (0, 0))

    def is_in_disk(self, topic: str, queue_id: int, offset: int) -> bool:
        """Return whether the first message has left the memory."""
        is_value("the offset of a question about the memory", 0, offset)
        return (topic, queue_id) in self.old


class _Owner:
    """An owner of a state file that notes its calls in a list."""

    def __init__(self, name: str, interval_ms: int, calls: list[str]) -> None:
        self.name, self.interval_ms, self._calls = name, interval_ms, calls
        self.findings: tuple[Finding, ...] = (Finding("note", name, "", NO_OFFSET, ""),)
        self.error: OSError | None = None

    def load(self) -> None:
        """Note the call."""
        self._calls.append(f"{self.name} load")

    def make_durable(self) -> None:
        """Note the call."""
        self._calls.append(f"{self.name} make_durable")

    def correct(self, range_of: object) -> None:
        """Note the call."""
        self._calls.append(f"{self.name} correct")

    def save(self) -> None:
        """Note the call, and fail if that was chosen."""
        self._calls.append(f"{self.name} save")
        if self.error is not None:
            raise self.error


class _Runner:
    """A runner that notes its calls, and has the service."""

    def __init__(self, service: Any) -> None:
        self.service, self.calls = service, list[object]()

    def start(self, *, after_ms: int = 0) -> None:
        """Note the call."""
        self.calls.append(after_ms)

    def stop(self) -> None:
        """Note the call."""
        self.calls.append("stop")


# ---- one store after the other on one disk ---------------------------------------------------------------------------


class _Program:
    """Draws verbs of a store, and keeps what the rules say about its tables and files."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.disk, self.reads = rng, PartDisk(), _Reads(rng)
        self.light, self.interval_ms = rng.random() < 0.3, rng.choice((5_000, 20_000))
        self.now_ms = 1_000
        self.files = {name: StateFile() for name in _FILES}
        self.offsets, self.is_changed = Offsets(), False
        self.tables: dict[str, dict[Any, Any]] = {name: {} for name in _NAMES}
        self.versions = dict.fromkeys(_NAMES, (0, 0))
        self.filters_changed = False
        self.written: dict[bytes, dict[str, Any]] = {}
        self.unsynced: set[str] = set()
        self.due: dict[str, int] = {}

    def path(self, name: str) -> str:
        """Return the path of a file."""
        own = "lmqConsumerOffset.json" if self.light else "consumerOffset.json"
        return f"/part/{_NAMES.get(name, own)}"

    def run(self) -> None:
        """Carry out drawn verbs. Raises GuaranteeBroken."""
        self.open("")
        for _ in range(_STEPS):
            self.now_ms += self.rng.randrange(4_000)
            verbs = (self.commit, self.commit, self.commit, self.clone, self.scan, self.restart, self.table, self.table,
                     self.table, self.save, self.step, self.step, self.refuse, self.again)  # fmt: skip
            self.rng.choice(verbs)()
            self.compare()

    # ---- opens -------------------------------------------------------------------------------------------------------

    def again(self) -> None:
        """End the store by a close, a kill or a power loss, or harm a file, and open again."""
        match self.rng.choice(("close", "kill", "power", "harm")):
            case "close":
                self.progress.stop()
                is_value("the calls of a runner", "stop", self.runner.calls[-1])
                self.changed("save_all", self.progress.save_all)
                self.offsets_saved()
                self.filters_saved()
                self.closed(self.rng.choice(("closed", "forked")))
            case "power":
                self.disk = PartDisk(self.disk.durable)
                self.reread()
            case "harm":
                self.harm(self.rng.choice(_FILES))
        if self.rng.random() < 0.3:
            self.reads = _Reads(self.rng)
        if self.rng.random() < 0.3:
            self.open("read-only")
            self.compare(only_answers=True)
            self.read_only_is_kept()
        self.open("")

    def harm(self, name: str) -> None:
        """Replace files without a sync, as a writer that was killed, or lose them."""
        for path, is_main in ((self.path(name), True), (f"{self.path(name)}.bak", False)):
            if self.rng.random() < 0.6:
                old = self.disk.content.get(path)
                content = old if self.rng.random() < 0.4 else self.rng.choice((None, *_INVALID))
                if self.disk.stat(path) is not None:
                    self.disk.unlink(path)
                if content is not None:
                    file = self.disk.create(path)
                    self.disk.pwrite(file, content, 0)
                    self.disk.close(file)
                self.unsynced.add(path)
                known = self.files[name]
                document = None if content is None else TORN if content in _INVALID else _main_or_backup(known, is_main)
                self.files[name] = StateFile(*((document, known.backup) if is_main else (known.main, document)))

    def reread(self) -> None:
        """Note the files that a power loss has left, of those that were not durable."""
        for name, known in self.files.items():
            left = [known.main, known.backup]
            for place, end in enumerate(("", ".bak")):
                path = f"{self.path(name)}{end}"
                if path in self.unsynced:
                    content = self.disk.content.get(path)
                    left[place] = None if content is None else self.written.get(content, TORN)
            self.files[name] = StateFile(*left)
        self.unsynced.clear()

    def open(self, shut: Shut) -> None:
        """Open the state files, and compare findings, durability and order of calls."""
        self.disk.is_read_only = shut == "read-only"
        lifecycle, calls, self.taken = Lifecycle("/part"), list[str](), [0]
        if shut:
            lifecycle.become_read_only("it was chosen")
        self.lifecycle = lifecycle
        config = MessageStoreConfig(enable_lmq=self.light, flush_consumer_offset_interval=self.interval_ms)
        made: list[_Runner] = []

        def runner(service: Any) -> Any:
            made.append(_Runner(service))
            return made[-1]

        self.progress = progress = Progress(
            config, config_file=lambda name: ConfigFile(self.disk, f"/part/{name}"), consumer_offsets=ConsumerOffsets,
            config_table=ConfigTable, service=PersistProgress, runner=runner, guard=lambda: _Guard(self.taken),
            clock=lambda: self.now_ms, lifecycle=lifecycle,
        )  # fmt: skip
        (self.runner,), self.due = made, {}
        others = [_Owner("first", 0, calls), _Owner("second", 3_000, calls)]
        for owner in others:
            progress.add(owner)
        codes = [code for name in _FILES for code in self.loaded(name, may_write=not shut)]
        found = self.changed("open", lambda: progress.open(self.reads.range_of))
        is_value("the findings of an open", [*codes, "first", "second"], [each.code for each in found])
        verbs = ("load",) if shut else ("load", "make_durable", "correct", "save")
        is_value("the last calls of an open", [f"{each.name} {verb}" for each in others for verb in verbs],
                 calls[-len(others) * len(verbs):])  # fmt: skip
        self.disk.is_read_only = False
        if not shut:
            self.loads_are_durable()
            progress.start()
            is_value("the time of the first save", min(self.interval_ms, 3_000), self.runner.calls[-1])
        self.store = GroupOffsets(progress, self.reads, lifecycle)  # type: ignore[arg-type]
        self.broker = BrokerTables(progress, lifecycle)

    def loaded(self, name: str, *, may_write: bool) -> list[str]:
        """Load a file into the tables of the rules; return the codes of the findings."""
        self.files[name], document, code = self.files[name].loaded()
        codes = [code] if code else []
        known: Any = document if isinstance(document, dict) else {}
        if name != "offsets":
            self.tables[name] = known.get("entries", {})
            self.versions[name] = known.get("version", (0, 0))
            self.filters_changed = False
            return codes
        stored = known.get("entries", Offsets())
        self.offsets, self.is_changed = stored, False
        if may_write:
            self.offsets = stored.corrected(self.reads.range_of)
            if self.offsets != stored:
                self.is_changed = True
                self.offsets_saved()
                return [*codes, "progress_corrected"]
        return codes

    def loads_are_durable(self) -> None:
        """Rule 5: a power loss after an open leaves what the open has loaded."""
        durable = self.disk.durable.files
        for name in _FILES:
            _, document, code = self.files[name].loaded()
            if isinstance(document, dict):
                path = f"{self.path(name)}.bak" if code else self.path(name)
                self.unsynced.discard(path)
                is_value(f"{path} after an open and a power loss", document["text"].encode(), durable.get(path))

    # ---- documents ---------------------------------------------------------------------------------------------------

    def document(self, name: str, entries: Any = None) -> dict[str, Any]:
        """Return a document: its text, and the entries and the version in it."""
        entries = (self.offsets if name == "offsets" else self.tables[name]) if entries is None else entries
        version = self.versions.get(name, (0, 0))
        document = {"text": text_of(self.plain(name, entries, version)), "entries": entries, "version": version}
        self.written[document["text"].encode()] = document
        return document

    def plain(self, name: str, entries: Any, version: tuple[int, int]) -> dict[str, Any]:
        """Return the values in a document, in the order of the file."""
        if name == "offsets":
            named = {f"{topic}@{group}": (group, at) for (topic, group), at in sorted(entries.of.items())}
            light = {key: at[0] for key, (group, at) in named.items() if self.is_light(group)}
            plain = {key: dict(sorted(at.items())) for key, (group, at) in named.items() if not self.is_light(group)}
            return {"lmqOffsetTable": light, "offsetTable": plain} if self.light else {"offsetTable": plain}
        if name == "filters":
            topics: dict[str, Any] = {}
            for (topic, group), entry in sorted(entries.items()):
                fields = {**named_as_stored(entry), "dead": entry.dead_time >= entry.born_time}
                topics.setdefault(topic, {"groupFilterData": {}, "topic": topic})
                topics[topic]["groupFilterData"][group] = dict(sorted(fields.items()))
            return {"filterDataByTopic": topics}
        table = {key: dict(sorted(named_as_stored(entry).items())) for key, entry in sorted(entries.items())}
        head = {"dataVersion": {"counter": version[0], "timestamp": version[1]}}
        return dict(sorted({**head, _TABLES[name]: table}.items()))

    def is_light(self, group: str) -> bool:
        """Return whether a group has one offset for a topic."""
        return self.light and group.startswith("%LMQ%")

    def saved(self, name: str, entries: Any = None) -> None:
        """Note that a file was replaced."""
        self.unsynced.discard(self.path(name))
        if self.files[name].last is not None:
            self.unsynced.discard(f"{self.path(name)}.bak")
        self.files[name] = self.files[name].saved(self.document(name, entries))

    def offsets_saved(self) -> None:
        """Note a save of offsets."""
        if self.is_changed:
            self.saved("offsets")
        self.is_changed = False

    def filters_saved(self) -> None:
        """Note a save of filters."""
        if self.filters_changed:
            self.saved("filters")
        self.filters_changed = False

    # ---- verbs -------------------------------------------------------------------------------------------------------

    def changed(self, what: str, do: Callable[[], Any], name: str = "") -> Any:
        """Call a verb, sometimes with calls of the disk that fail, and again until it succeeds.

        After a failure the tables are unchanged. `name` is the file that the verb replaces, if it replaces one.
        """
        for _ in range(6):
            self.disk.failing_in = self.rng.randrange(1, 9) if self.rng.random() < 0.25 else 0
            failed = self.disk.failed
            try:
                return tried(what, do)
            except OSError as error:
                if self.disk.failed == failed:
                    raise GuaranteeBroken(8, f"{what} raises {error!r} although no call failed") from error
                self.disk.failing_in = 0
                if name:
                    self.compare(only_answers=True)
            finally:
                self.disk.failing_in = 0
        return tried(what, do)

    def commit(self) -> None:
        """Commit an offset, and sometimes one that no file can hold."""
        rng = self.rng
        group, topic = rng.choice(_GROUPS), rng.choice(_TOPICS)
        queue_id, offset = rng.randrange(4), rng.choice((0, 1, 2, 3, 5, 8, _OFFSET_MAX))
        bad = rng.choice(("", "", "", "group", "topic", "queue id", "offset"))
        if bad:
            wrong = {
                "group": (rng.choice(_BAD_NAMES), topic, queue_id, offset),
                "topic": (group, rng.choice(_BAD_NAMES), queue_id, offset),
                "queue id": (group, topic, rng.choice((-1, _QUEUE_ID_MAX + 1)), offset),
                "offset": (group, topic, queue_id, rng.choice((-1, _OFFSET_MAX + 1))),
            }[bad]
            self.is_refused(bad, lambda: self.store.commit_offset(*wrong))
            return
        if rng.random() < 0.1:
            queue_id = _QUEUE_ID_MAX
        at = 0 if self.is_light(group) else queue_id
        self.offsets, counts = self.offsets.commit((topic, group), at, offset, self.reads.range_of)
        self.is_changed = True
        is_value("a committed offset", counts,
                 tried("commit_offset", lambda: self.store.commit_offset(group, topic, queue_id, offset)))  # fmt: skip

    def is_refused(self, what: str, do: Callable[[], object]) -> None:
        """Compare the refusal of a name or a number."""
        try:
            found = do()
        except BadProgress as error:
            is_value("what a refusal names", what, error.what)
            return
        raise GuaranteeBroken(8, f"a wrong {what} is accepted", "BadProgress", repr(found))

    def clone(self) -> None:
        """Copy the offsets of a group to another one."""
        source, target, topic = self.rng.choice(_GROUPS), self.rng.choice(_GROUPS[:2]), self.rng.choice(_TOPICS)
        if self.rng.random() < 0.3:
            what, names = self.rng.choice((("group", ("a@b", topic)), ("topic", (target, "a@b"))))
            self.is_refused(what, lambda: self.store.clone_offset(source, *names))
            return
        self.is_changed |= (topic, source) in self.offsets.of
        self.offsets = self.offsets.cloned((topic, source), (topic, target))
        tried("clone_offset", lambda: self.store.clone_offset(source, target, topic))

    def scan(self) -> None:
        """Remove the offsets of groups that have read nothing and do not subscribe."""
        subscribed = [key for key in sorted(self.offsets.of) if self.rng.random() < 0.5]
        gone = [
            key
            for key, at in sorted(self.offsets.of.items())
            if key not in subscribed
            and all(offset <= self.reads.range_of(key[0], queue_id)[0] for queue_id, offset in at.items())
        ]
        self.offsets, self.is_changed = self.offsets.without(gone), self.is_changed or bool(gone)
        found = tried("scan_unsubscribed_topic", lambda: self.store.scan_unsubscribed_topic(subscribed))
        is_value("the groups that were removed", gone, found)

    def restart(self) -> None:
        """Restart the numbers of a topic, with commits meanwhile."""
        topic, ends = self.rng.choice(_TOPICS), self.rng.random() < 0.7
        zeroed = self.offsets.restarted(topic, is_memory=False)
        if zeroed != self.offsets or self.is_changed:
            self.saved("offsets", zeroed)
            self.is_changed = True
        try:
            with self.restarting(topic) as done:
                ignored = tried("commit_offset", lambda: self.store.commit_offset("g", topic, 0, 3))
                is_value("a commit during a restart", 0, ignored)
                self.files_are("a restart of numbers")
                if ends:
                    done()
        except OSError as error:
            raise GuaranteeBroken(8, f"a restart raises {error!r} although no call failed") from error
        if ends:
            after = self.offsets.restarted(topic, is_memory=True)
            self.is_changed |= after != self.offsets
            self.offsets = after
        again = tried("commit_offset", lambda: self.store.commit_offset("h", topic, 0, 1))
        self.offsets, counts = self.offsets.commit((topic, "h"), 0, 1, self.reads.range_of)
        self.is_changed = True
        is_value("a commit after a restart", counts, again)

    @contextmanager
    def restarting(self, topic: str) -> Iterator[Callable[[], None]]:
        """Restart the numbers of a topic."""
        with self.progress.restart_numbers(lambda name, _: name == topic) as done:
            yield done

    def table(self) -> None:
        """Change a table, with a name that fits or does not."""
        rng, name = self.rng, self.rng.choice(tuple(_NAMES))
        topic, group = rng.choice(("T", "U", "V")), rng.choice(("g", "h"))
        if rng.random() < 0.2:
            bad = rng.choice(_BAD_NAMES)
            what, do = rng.choice((
                ("topic", lambda: self.broker.put_topic_config(TopicConfig(bad))),
                ("topic", lambda: self.broker.delete_topic_config(bad)),
                ("group", lambda: self.broker.put_subscription_group(SubscriptionGroupConfig(bad))),
                ("group", lambda: self.broker.delete_subscription_group(bad)),
                ("group", lambda: self.broker.put_consumer_filter(ConsumerFilterData(bad, topic))),
            ))  # fmt: skip
            self.is_refused(what, do)
            return
        key: Any = (topic, group) if name == "filters" else topic if name == "topics" else group
        deletes = name != "filters" and rng.random() < 0.3
        before, version = self.tables[name], self.versions[name]
        entry, verb = self.entry(name, topic, group), f"{'delete' if deletes else 'put'} of {name}"
        verbs: dict[tuple[str, bool], Callable[[], object]] = {
            ("topics", False): lambda: self.broker.put_topic_config(entry),
            ("topics", True): lambda: self.broker.delete_topic_config(topic),
            ("groups", False): lambda: self.broker.put_subscription_group(entry),
            ("groups", True): lambda: self.broker.delete_subscription_group(group),
            ("filters", False): lambda: self.broker.put_consumer_filter(entry),
        }
        found = self.changed(verb, verbs[name, deletes], name)
        is_value(f"the answer of {verb}", key in before if deletes else None, found)
        if deletes and key not in before:
            return
        left = {each: value for each, value in before.items() if each != key}
        self.tables[name] = left if deletes else {**before, key: entry}
        self.versions[name] = (version[0] + 1, self.now_ms)
        if name == "filters":
            self.filters_changed = True
        else:
            self.saved(name)

    def entry(self, name: str, topic: str, group: str) -> Any:
        """Return a drawn entry."""
        rng = self.rng
        if name == "topics":
            return TopicConfig(topic, rng.randrange(9), rng.randrange(9), perm=rng.choice((2, 4, 6)))
        if name == "groups":
            return SubscriptionGroupConfig(group, rng.random() < 0.5, retry_max_times=rng.randrange(20))
        bits = rng.choice(({}, {"bitNum": 64, "bitPos": [1, 2]}, {"bitPos": [[1, "a"], [], 3]}))
        return ConsumerFilterData(group, topic, rng.choice(("a", 'b "c"')), born_time=rng.randrange(2),
                                  dead_time=rng.randrange(2), bloom_filter_data=bits)  # fmt: skip

    def save(self) -> None:
        """Save the offsets."""
        self.changed("save_offsets", self.store.save_offsets)
        self.offsets_saved()

    def step(self) -> None:
        """Step the service, sometimes with a call that fails in the first save."""
        first = "offsets" if self.is_due("offsets", self.interval_ms) and self.is_changed else ""
        first = first or ("filters" if self.is_due("filters", _FILTERS_MS) and self.filters_changed else "")
        fails = bool(first) and self.rng.random() < 0.4
        self.disk.failing_in = self.rng.randrange(1, 5) if fails else 0
        found = tried("step", lambda: self.runner.service.step(self.now_ms))
        self.disk.failing_in = 0
        for name, interval_ms in (("offsets", self.interval_ms), ("filters", _FILTERS_MS), ("second", 3_000)):
            if not self.is_due(name, interval_ms):
                continue
            has_failed = fails and name == first
            self.due[name] = self.now_ms + (_FAILED_MS if has_failed else interval_ms)
            if has_failed:
                self.settle(name)
            elif name == "offsets":
                self.offsets_saved()
            elif name == "filters":
                self.filters_saved()
        is_value("the time of the next save", min(self.due.values()), found)

    def is_due(self, name: str, interval_ms: int) -> bool:
        """Return whether the service saves an owner now."""
        return bool(interval_ms) and self.due.get(name, self.now_ms) <= self.now_ms

    def settle(self, name: str) -> None:
        """Save a file whose save has failed."""
        tried("save", (self.progress.offsets if name == "offsets" else self.progress.filters).save)
        if name == "offsets":
            self.offsets_saved()
        else:
            self.filters_saved()

    # ---- refusals ----------------------------------------------------------------------------------------------------

    def refuse(self) -> None:
        """Rule 1: verbs of a closed store, of a child, and of a store that became read-only."""
        before = self.lifecycle.shut
        self.closed(self.rng.choice(("closed", "forked")))
        self.lifecycle.shut = before

    def closed(self, shut: Shut) -> None:
        """Call each verb of a store that is closed, or in a child."""
        self.lifecycle.shut = shut
        error = StoreClosed if shut == "closed" else ForkedStore
        taken, reads, calls = self.taken[0], self.reads.reads, len(self.disk.written)
        for what, do in self.verbs(self.rng.choice((*_TOPICS, "a@b")), self.rng.choice((*_GROUPS, ""))):
            self.raises(f"{what} of a store that is {shut}", error, do)
        is_value(f"the locks that verbs of a store take that is {shut}", taken, self.taken[0])
        is_value(f"the reads of a store that is {shut}", reads, self.reads.reads)
        is_value(f"the writes of a store that is {shut}", calls, len(self.disk.written))

    def verbs(self, topic: str, group: str) -> list[tuple[str, Callable[[], object]]]:
        """Return all verbs with one topic and group."""
        store, broker = self.store, self.broker
        return [
            *self.changes(topic, group),
            ("commit_offset", lambda: store.commit_offset(group, topic, 0, 0)),
            ("query_offset", lambda: store.query_offset(group, topic, 0)),
            ("consumer_offsets", lambda: store.consumer_offsets(topic)),
            ("topics_of_group", lambda: store.topics_of_group(group)),
            ("diff_total", lambda: store.diff_total(group, topic)),
            ("query_min_offset_in_all_group", lambda: store.query_min_offset_in_all_group(topic)),
            ("clone_offset", lambda: store.clone_offset(group, group, topic)),
            ("scan_unsubscribed_topic", lambda: store.scan_unsubscribed_topic(())),
            ("topic_configs", broker.topic_configs),
            ("subscription_groups", broker.subscription_groups),
            ("consumer_filters", broker.consumer_filters),
        ]

    def changes(self, topic: str, group: str) -> list[tuple[str, Callable[[], object]]]:
        """Return the verbs that a read-only store refuses."""
        broker = self.broker
        return [
            ("save_offsets", self.store.save_offsets),
            ("put_topic_config", lambda: broker.put_topic_config(TopicConfig(topic))),
            ("delete_topic_config", lambda: broker.delete_topic_config(topic)),
            ("put_subscription_group", lambda: broker.put_subscription_group(SubscriptionGroupConfig(group))),
            ("delete_subscription_group", lambda: broker.delete_subscription_group(group)),
            ("put_consumer_filter", lambda: broker.put_consumer_filter(ConsumerFilterData(group, topic))),
        ]

    def read_only_is_kept(self) -> None:
        """A read-only store refuses changes, and its service writes nothing."""
        files = self.disk.content
        for what, do in self.changes("T", "g"):
            self.raises(f"{what} of a read-only store", ReadOnlyStore, do)
        tried("step", lambda: self.runner.service.step(self.now_ms))
        is_value("the files of a read-only store", files, self.disk.content)

    def raises(self, what: str, error: type[Exception], do: Callable[[], object]) -> None:
        """Compare the exception of a call."""
        try:
            found = repr(do())
        except GuaranteeBroken:
            raise
        except Exception as raised:
            if type(raised) is error:
                return
            found = repr(raised)
        raise GuaranteeBroken(8, what, error.__name__, found)

    # ---- comparison --------------------------------------------------------------------------------------------------

    def compare(self, *, only_answers: bool = False) -> None:
        """Compare each answer, and the files unless a save has just failed."""
        store, broker, reads, known = self.store, self.broker, self.reads, self.offsets.of
        for topic in _TOPICS:
            expected = {group: dict(at) for (name, group), at in known.items() if name == topic}
            is_value(
                "the offsets of a topic", expected, tried("consumer_offsets", partial(store.consumer_offsets, topic))
            )
            for without in ((), ("g",), ("h", "%LMQ%l")):
                least = self.offsets.least(topic, without, reads.range_of)
                found = tried("query_min_offset_in_all_group",
                              partial(store.query_min_offset_in_all_group, topic, without))  # fmt: skip
                is_value("the lowest offsets", least, found)
            for group in _GROUPS:
                at = expected.get(group, {})
                left = sum(end - at.get(queue_id, 0) for (name, queue_id), (_, end) in reads.ranges.items()
                           if name == topic)  # fmt: skip
                is_value("the lag of a group", left, tried("diff_total", partial(store.diff_total, group, topic)))
                for queue_id in range(4):
                    young = reads.range_of(topic, queue_id)[0] == 0 and (topic, queue_id) not in reads.old
                    next_offset = at.get(0 if self.is_light(group) else queue_id, 0 if young else None)
                    is_value("the next offset of a group", next_offset,
                             tried("query_offset", partial(store.query_offset, group, topic, queue_id)))  # fmt: skip
        for group in _GROUPS:
            topics = sorted(topic for topic, name in known if name == group)
            is_value("the topics of a group", topics, tried("topics_of_group", partial(store.topics_of_group, group)))
        for name, ask in (("topics", broker.topic_configs), ("groups", broker.subscription_groups),
                          ("filters", broker.consumer_filters)):  # fmt: skip
            is_value(f"the table of {name}", self.tables[name], tried(name, ask))
        if not only_answers:
            self.files_are("a verb")

    def files_are(self, what: str) -> None:
        """Compare all files and backups, and whether their names and bytes are durable."""
        visible, durable = self.disk.content, self.disk.durable.files
        for name in _FILES:
            for end, document in (("", self.files[name].main), (".bak", self.files[name].backup)):
                path = f"{self.path(name)}{end}"
                if document == TORN:
                    continue
                text = document["text"].encode() if isinstance(document, dict) else None
                is_value(f"{path} after {what}", text, visible.get(path))
                if text is not None and path not in self.unsynced:
                    is_value(f"{path} after {what} and a power loss", text, durable.get(path))


def _main_or_backup(file: StateFile, is_main: bool) -> object:
    return file.main if is_main else file.backup


# ---- owners ----------------------------------------------------------------------------------------------------------


def _owners_are_saved(rng: random.Random) -> None:
    """Rule 6, with owners of every interval, of which some fail."""
    calls: list[str] = []
    owners = [_Owner(str(number), rng.choice((0, 1_000, 2_500, 9_000)), calls) for number in range(rng.randrange(5))]
    may_save = True
    service = PersistProgress(owners, may_save=lambda: may_save)
    intervals = [each.interval_ms for each in owners if each.interval_ms]
    is_value("the name of the service of progress", "progress", service.name)
    is_value("the time of the first save", min(intervals, default=None), service.first_ms)
    now_ms, due = 7_000, dict[str, int]()
    for _ in range(12):
        may_save = rng.random() < 0.8
        for each in owners:
            each.error = OSError("it was chosen") if rng.random() < 0.3 else None
        wanted = [each for each in owners if each.interval_ms and due.get(each.name, 0) <= now_ms]
        for each in wanted:
            has_failed = may_save and each.error is not None
            due[each.name] = now_ms + (_FAILED_MS if has_failed else each.interval_ms)
        calls.clear()
        at_ms = now_ms
        is_value("the time of the next save", min(due.values(), default=None),
                 tried("step", partial(service.step, at_ms)))  # fmt: skip
        is_value("the saves of a step", [f"{each.name} save" for each in wanted if may_save], calls)
        now_ms = rng.choice((min(due.values(), default=now_ms), now_ms + rng.randrange(3_000)))
    _all_are_saved(rng)


def _all_are_saved(rng: random.Random) -> None:
    """A save of all tries every owner, and raises the first error."""
    calls: list[str] = []
    disk = PartDisk()
    progress = Progress(
        MessageStoreConfig(), config_file=lambda name: ConfigFile(disk, f"/part/{name}"),
        consumer_offsets=ConsumerOffsets, config_table=ConfigTable, service=PersistProgress, runner=_Runner,  # type: ignore[arg-type]
        guard=lambda: _Guard([0]), clock=lambda: 0, lifecycle=Lifecycle("/part"),
    )  # fmt: skip
    owners = [_Owner(str(number), 1_000, calls) for number in range(3)]
    for each in owners:
        progress.add(each)
        each.error = OSError(each.name) if rng.random() < 0.5 else None
    errors = [each.error for each in owners if each.error is not None]
    try:
        tried("save_all", progress.save_all)
    except OSError as error:
        is_value("the error of a save of all", repr(errors[0]) if errors else "none", repr(error))
    else:
        is_value("the error of a save of all", [], [repr(each) for each in errors])
    is_value("the calls of a save of all", [f"{each.name} save" for each in owners], calls)
