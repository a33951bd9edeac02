"""Use the owners of state files alone, and compare them with the model (contracts 13, 17).

The operations and their arguments are drawn from a seed. Files are loaded again by new owners, sometimes after the file
or its backup was lost, emptied or torn. The bytes are read by the decoder of the harness and not by that of the store.
"""

from collections.abc import Mapping
from functools import partial
from random import Random
from typing import Any

from tornpage.impl.groups.broker_configs import ConsumerFilterData, SubscriptionGroupConfig, TopicConfig
from tornpage.impl.groups.config_file import ConfigFile
from tornpage.impl.groups.config_table import FILTERS, GROUPS, TOPICS, ConfigTable
from tornpage.impl.groups.consumer_offsets import ConsumerOffsets
from tornpage.impl.groups.fastjson import parse, written
from tornpage.impl.guards import make_guard
from tornpage.impl.parts import Parts
from tornpage.model.consumers.settings import DEFAULTS, Kind
from tornpage.model.consumers.state_files import STORED, TORN, Offsets, StateFile, text_of
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.decode.config_files import named_as_stored, parse_config
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.recording_files import EMPTY_DISK, RecordingFiles

__all__ = ["use_state_files"]

_STEPS = 20
_DIRECTORY = "/state"
_TOPICS, _GROUPS = ("T", "U"), ("g", "h", "%LMQ%l")
_KINDS: Mapping[str, tuple[Any, str]] = {
    "topics": (TOPICS, "topicConfigTable"),
    "groups": (GROUPS, "subscriptionGroupTable"),
    "filters": (FILTERS, "filterDataByTopic"),
}
_DEFAULTS_OF: Mapping[str, Kind] = {"topics": "topic", "groups": "group", "filters": "filter"}
_HARMS = ("main lost", "main empty", "main torn", "both torn", "backup lost", "main other", "main foreign")
_TEXTS: Mapping[str, bytes] = {
    "empty": b"", "torn": b'{"offsetTable":{', "other": b'["no table"]',
    "foreign": b'{"offsetTable":[],"dataVersion":1}',
}  # fmt: skip
_NAMES = ("a", "b", 'quoted "x"', "line\nbreak", "\u2028", "é", "%", "back\\slash")


def use_state_files(seed: int, parts: Parts, *, tracker: DirtyTracker) -> None:
    """Use one owner on a disk of its own."""
    rng = Random(seed)
    if rng.random() < 0.2:
        _documents_are_kept(rng)
        return
    files = RecordingFiles(EMPTY_DISK, tracker=tracker)
    files.make_directory(_DIRECTORY)
    if rng.random() < 0.3:
        for kind in STORED:
            _stored_is_read(kind, files, parts, rng)
    elif rng.random() < 0.5:
        _Table(rng.choice(tuple(_KINDS)), files, parts, rng).run()
    else:
        _Progress(files, parts, rng, light=rng.random() < 0.3).run()


class _Owner:
    """The common part: a file, its model, and harm to both."""

    def __init__(self, name: str, files: RecordingFiles, parts: Parts, rng: Random) -> None:
        self.path = f"{_DIRECTORY}/{name}"
        self.files, self.parts, self.rng = files, parts, rng
        self.file = StateFile()
        self.now_ms = 1_000

    def config_file(self) -> ConfigFile:
        """Return a new owner of the file."""
        return self.parts.of(ConfigFile)(self.files, self.path)

    def run(self) -> None:
        """Carry out drawn operations."""
        self.reload()
        for _ in range(_STEPS):
            self.now_ms += self.rng.randrange(1, 20_000)
            verb = self.rng.choice(self.verbs())
            if verb == "reload":
                self.reload()
            elif verb == "harm":
                self.harm(self.rng.choice(_HARMS))
                self.reload()
            else:
                self.step(verb)
            self.compare(verb)

    def verbs(self) -> tuple[str, ...]:
        """Return the operations to draw from."""
        raise NotImplementedError

    def step(self, verb: str) -> None:
        """Carry out one operation on both."""
        raise NotImplementedError

    def reload(self) -> None:
        """Load the file by a new owner."""
        raise NotImplementedError

    def read_anew(self) -> tuple[dict[Any, Any], list[str]]:
        """Load the file by a new owner.

        Returns the entries as plain values, and the codes of the findings.
        """
        raise NotImplementedError

    def compare(self, verb: str) -> None:
        """Compare answers and the decoded file with its backup."""
        self._is(f"the file after {verb}", self.file.main, self.read(self.path))
        self._is(f"the backup after {verb}", self.file.backup, self.read(f"{self.path}.bak"))

    def read(self, path: str) -> object:
        """Return the document at a path as the harness decodes it."""
        if self.files.stat(path) is None:
            return None
        file = self.files.open(path, writable=False)
        try:
            stored = self.files.read(file, 0, 1 << 20)
        finally:
            self.files.close(file)
        if stored in _TEXTS.values():
            return TORN
        try:
            return parse_config(stored)
        except ValueError as error:
            raise GuaranteeBroken(13, f"{path} has no valid document", found=str(stored[:200])) from error

    def harm(self, harm: str) -> None:
        """Lose or replace the file, its backup, or both."""
        which, _, what = harm.partition(" ")
        for name, path in (("main", self.path), ("backup", f"{self.path}.bak")):
            if which not in (name, "both") or self.files.stat(path) is None:
                continue
            self.files.unlink(path)
            content: object = None
            if what != "lost":
                file = self.files.create(path)
                self.files.pwrite(file, _TEXTS[what], 0) if _TEXTS[what] else None
                self.files.close(file)
                content = TORN
            main, backup = (content, self.file.backup) if name == "main" else (self.file.main, content)
            self.file = StateFile(main, backup, self.file.last)

    def loaded(self, findings: tuple[Any, ...]) -> object:
        """Load the model, compare the findings, and return the document."""
        self.file, document, finding = self.file.loaded()
        codes = [each.code for each in findings if each.code.startswith("config_file")]
        self._is("the finding of a load", [finding] if finding else [], codes)
        return document

    def _is(self, what: str, expected: object, found: object) -> None:
        if found != expected:
            name = self.path.rpartition("/")[2]
            raise GuaranteeBroken(13, f"{what} of {name} is not that of the model", str(expected), str(found))


class _Table(_Owner):
    """A table of topics, groups or filters."""

    def __init__(self, kind: str, files: RecordingFiles, parts: Parts, rng: Random) -> None:
        self.shape, self.key = _KINDS[kind]
        super().__init__(self.shape.file_name, files, parts, rng)
        self.kind = kind
        self.entries: dict[Any, Any] = {}
        self.version: dict[str, int] = {"counter": 0, "timestamp": 0}
        self.is_saved = True

    def verbs(self) -> tuple[str, ...]:
        return ("put", "put", "put", "delete", "save", "reload", "harm")

    def _load(self) -> None:
        self.table = self.parts.of(ConfigTable)(
            self.config_file(), self.shape, clock=lambda: self.now_ms, guard=self.parts.of(make_guard)
        )
        observed("load", self.table.load)

    def read_anew(self) -> tuple[dict[Any, Any], list[str]]:
        self._load()
        found = {
            key: {name: getattr(entry, name) for name in entry.__slots__} for key, entry in self.table.all().items()
        }
        return found, [each.code for each in self.table.findings]

    def reload(self) -> None:
        self._load()
        observed("make_durable", self.table.make_durable)
        document = self.loaded(self.table.findings)
        self.is_saved, self.version = True, {"counter": 0, "timestamp": 0}
        self.entries = {}
        if isinstance(document, dict):
            self.version = document.get("dataVersion", self.version)
            self.entries = self._entries_in(document)

    def _entries_in(self, document: Mapping[str, Any]) -> dict[Any, Any]:
        by_kind: dict[str, Any] = {"topics": TopicConfig, "groups": SubscriptionGroupConfig}
        table = document[self.key]
        if self.kind == "filters":
            items = [item for by_topic in table.values() for item in by_topic["groupFilterData"].values()]
            made = [ConsumerFilterData(**_snaked(item, but=("dead",))) for item in items]
            return {(each.topic, each.consumer_group): each for each in made}
        return {name: by_kind[self.kind](**_snaked(item)) for name, item in table.items()}

    def _document(self) -> dict[str, Any]:
        head = {} if self.kind == "filters" else {"dataVersion": dict(self.version)}
        if self.kind != "filters":
            return {**head, self.key: {name: named_as_stored(entry) for name, entry in self.entries.items()}}
        topics: dict[str, Any] = {}
        for (topic, group), entry in self.entries.items():
            at = topics.setdefault(topic, {"groupFilterData": {}, "topic": topic})
            at["groupFilterData"][group] = {**named_as_stored(entry), "dead": entry.dead_time >= entry.born_time}
        return {self.key: topics}

    def step(self, verb: str) -> None:
        rng = self.rng
        name = rng.choice(_NAMES)
        key: Any = (rng.choice(_TOPICS), name) if self.kind == "filters" else name
        if verb == "save":
            before = len(self.files.events)
            observed("save", self.table.save)
            if not self.is_saved:
                self.file = self.file.saved(self._document())
            else:
                self._is("the number of writes of a save without a change", 0, len(self.files.events) - before)
            self.is_saved = True
            return
        if verb == "put":
            self.entries = {**self.entries, key: self.drawn(key)}
            observed("put", partial(self.table.put, key, self.entries[key]))
        else:
            is_there = key in self.entries
            found = observed("delete", partial(self.table.delete, key))
            self._is("the answer to a removal", is_there, found)
            if not is_there:
                return
            self.entries = {each: entry for each, entry in self.entries.items() if each != key}
        self.version = {"counter": self.version["counter"] + 1, "timestamp": self.now_ms}
        if self.kind == "filters":
            self.is_saved = False
        else:
            self.file = self.file.saved(self._document())

    def drawn(self, key: Any) -> Any:
        """Return a drawn entry."""
        rng = self.rng
        if self.kind == "topics":
            return TopicConfig(
                key, rng.randrange(9), rng.randrange(9), perm=rng.choice((2, 4, 6)), order=rng.random() < 0.5
            )
        if self.kind == "groups":
            return SubscriptionGroupConfig(
                key,
                consume_enable=rng.random() < 0.5,
                retry_queue_nums=rng.randrange(3),
                retry_max_times=rng.randrange(20),
            )
        return ConsumerFilterData(
            key[1], key[0], expression=rng.choice(_NAMES), born_time=rng.randrange(3), dead_time=rng.randrange(3)
        )

    def compare(self, verb: str) -> None:
        super().compare(verb)
        self._is("the table", self.entries, observed("all", self.table.all))
        for key in self.entries:
            self._is("an entry", self.entries[key], observed("get", partial(self.table.get, key)))
        if self.kind != "filters":
            version = self.table.data_version
            self._is("the version", (self.version["counter"], self.version["timestamp"]),
                     (version.counter, version.timestamp))  # fmt: skip


class _Progress(_Owner):
    """The offsets of groups."""

    def __init__(self, files: RecordingFiles, parts: Parts, rng: Random, *, light: bool) -> None:
        super().__init__("lmqConsumerOffset.json" if light else "consumerOffset.json", files, parts, rng)
        self.light = light
        self.offsets = Offsets()
        self.saved = Offsets()
        self.is_changed = False
        self.ends = {(topic, queue_id): rng.randrange(1, 9) for topic in _TOPICS for queue_id in range(3)}

    def range_of(self, topic: str, queue_id: int) -> tuple[int, int]:
        """Return the bounds of a queue; other queues are unknown."""
        end = self.ends.get((topic, queue_id), 0)
        return end // 3, end

    def verbs(self) -> tuple[str, ...]:
        return (
            "commit",
            "commit",
            "commit",
            "clone",
            "clone",
            "remove",
            "restart",
            "save",
            "save",
            "reload",
            "harm",
            "cut",
        )

    def _load(self) -> None:
        self.owner = self.parts.of(ConsumerOffsets)(
            self.config_file(), light=self.light, interval_ms=5_000, guard=self.parts.of(make_guard)
        )
        observed("load", self.owner.load)

    def read_anew(self) -> tuple[dict[Any, Any], list[str]]:
        self._load()
        found = {(topic, group): offsets for topic in _TOPICS for group, offsets in self.owner.of_topic(topic).items()}
        return found, [each.code for each in self.owner.findings]

    def reload(self) -> None:
        self._load()
        observed("make_durable", self.owner.make_durable)
        document = self.loaded(self.owner.findings)
        self.is_changed = False
        self.saved = self._offsets_in(document) if isinstance(document, dict) else Offsets()
        self.offsets = self.saved.corrected(self.range_of)
        observed("correct", partial(self.owner.correct, self.range_of))
        codes = [each.code for each in self.owner.findings if each.code == "progress_corrected"]
        self._is("the finding of a correction", ["progress_corrected"] if self.offsets != self.saved else [], codes)
        self._save()

    def _offsets_in(self, document: Mapping[str, Any]) -> Offsets:
        found = {tuple(key.split("@")): {int(queue_id): at for queue_id, at in offsets.items()}
                 for key, offsets in document["offsetTable"].items()}  # fmt: skip
        found |= {tuple(key.split("@")): {0: at} for key, at in document.get("lmqOffsetTable", {}).items()}
        return Offsets({(key[0], key[1]): offsets for key, offsets in found.items()})

    def _document(self, offsets: Offsets) -> dict[str, Any]:
        plain, light = {}, {}
        for (topic, group), at in offsets.of.items():
            if self.light and group.startswith("%LMQ%"):
                light[f"{topic}@{group}"] = at[0]
            else:
                plain[f"{topic}@{group}"] = {str(queue_id): offset for queue_id, offset in at.items()}
        return {"lmqOffsetTable": light, "offsetTable": plain} if self.light else {"offsetTable": plain}

    def _save(self) -> None:
        before = len(self.files.events)
        observed("save", self.owner.save)
        if self.offsets != self.saved or self.is_changed:
            self.file = self.file.saved(self._document(self.offsets))
        else:
            self._is("the number of writes of a save without a change", 0, len(self.files.events) - before)
        self.saved, self.is_changed = self.offsets, False

    def step(self, verb: str) -> None:
        rng = self.rng
        topic, group = rng.choice(_TOPICS), rng.choice(_GROUPS)
        queue_id = 0 if self.light and group.startswith("%LMQ%") else rng.randrange(4)
        match verb:
            case "commit":
                offset = rng.randrange(12)
                self.offsets, counts = self.offsets.commit((topic, group), queue_id, offset, self.range_of)
                asked = queue_id if queue_id or not self.light else rng.randrange(2) * group.startswith("%LMQ%")
                commit = partial(self.owner.commit, group, topic, asked, offset, range_of=self.range_of)
                self._is("a committed offset", counts, observed("commit", commit))
                self.is_changed = True
            case "clone":
                other = rng.choice(_GROUPS[:2])
                if group.startswith("%LMQ%"):
                    return
                self.is_changed |= (topic, group) in self.offsets.of
                self.offsets = self.offsets.cloned((topic, group), (topic, other))
                observed("clone", partial(self.owner.clone, group, other, topic))
            case "remove":
                gone = [key for key in self.offsets.of if key == (topic, group)]
                self.offsets = self.offsets.without(gone)
                self.is_changed |= bool(gone)
                found = observed("remove_if", partial(self.owner.remove_if, lambda key, _: key == (topic, group)))
                self._is("the removed groups", gone, found)
            case "restart":
                self._restart(topic, ends=rng.random() < 0.7)
            case "save":
                self._save()
            case "cut":
                self._save()
                self.ends = {queue: rng.randrange(end + 1) for queue, end in self.ends.items()}
                self.reload()

    def _restart(self, topic: str, *, ends: bool) -> None:
        """Let the numbers of a topic restart: commits to it are ignored meanwhile."""
        zeroed = self.offsets.restarted(topic, is_memory=False)
        with self.owner.restart_numbers(lambda name, _: name == topic) as done:
            ignored = self.owner.commit("g", topic, 0, 3, range_of=self.range_of)
            self._is("a commit during a restart", 0, ignored)
            if zeroed != self.offsets or self.is_changed or self.offsets != self.saved:
                self.file = self.file.saved(self._document(zeroed))
                self.is_changed = True
            super().compare("restart")
            if ends:
                done()
        if ends:
            after = self.offsets.restarted(topic, is_memory=True)
            self.is_changed |= after != self.offsets
            self.offsets = after

    def compare(self, verb: str) -> None:
        super().compare(verb)
        owner = self.owner
        for topic in _TOPICS:
            expected = {group: dict(at) for (name, group), at in self.offsets.of.items() if name == topic}
            self._is("the offsets of a topic", expected, observed("of_topic", partial(owner.of_topic, topic)))
            for without in ((), ("g",)):
                least = observed("least", partial(owner.least, topic, without, range_of=self.range_of))
                self._is("the lowest offsets", self.offsets.least(topic, without, self.range_of), least)
        for group in _GROUPS:
            topics = sorted(topic for topic, name in self.offsets.of if name == group)
            self._is("the topics of a group", topics, observed("topics_of", partial(owner.topics_of, group)))
            for queue_id in range(4):
                at = 0 if self.light and group.startswith("%LMQ%") else queue_id
                expected_offset = self.offsets.of.get(("T", group), {}).get(at)
                self._is("an offset", expected_offset, observed("query", partial(owner.query, group, "T", queue_id)))


def _snaked(item: Mapping[str, Any], but: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"".join(f"_{each.lower()}" if each.isupper() else each for each in name): value
            for name, value in item.items() if name not in but}  # fmt: skip


# ---- documents -------------------------------------------------------------------------------------------------------

_INVALID = (
    "", "{", "[1,]", "{1}", '{"a"}', '{"a":}', '{"a":1,}', "{,}", "[1 2]", '{"a" 1}', "nul", "1 2", "{true:1}",
    "{1.5:1}", "{null:1}", "{[]:1}", '{{"a":[]}:1}', '{{"a":{}}:1}', '"open', '{"a":01x}', "]", ":",
    '{"a":1}}', "[[[", "-", "+1",
)  # fmt: skip
_DEPTH = 60


def _documents_are_kept(rng: Random) -> None:
    """Contract 13: a document has its layout and is read as it was written.

    An invalid one is refused.
    """
    document = _drawn(rng, 3)
    text = observed("written", partial(written, document))
    _has_layout(document, text)
    for what, found in (
        ("the store", observed("parse", partial(parse, text))),
        ("the harness", parse_config(text.encode())),
    ):
        wanted = document if what == "the store" else _with_text_keys(document)
        if found != wanted:
            raise GuaranteeBroken(13, f"{what} reads another document than was written", str(wanted), str(found))
    keyed = {(("b", 1), ("a", "x")): [document], (("b", 2), ("a", "y")): 1}
    _has_layout(keyed, observed("written", partial(written, keyed)))
    every = "".join(map(chr, (*range(0x110), *range(0x2026, 0x202B), 0xD7FF, 0xD800, 0xDFFF, 0xE000, 0xFFFF)))
    _has_layout([every], observed("written", partial(written, [every])))
    if parse(written(keyed)) != keyed:
        raise GuaranteeBroken(13, "a document with objects as keys is read otherwise", str(keyed))
    if parse("[" * _DEPTH + "]" * _DEPTH) is None:
        raise GuaranteeBroken(13, "a nested document is not read")
    for invalid in (*_INVALID, "[" * 100 + "]" * 100):
        try:
            found = parse(invalid)
        except ValueError:
            continue
        raise GuaranteeBroken(13, "an invalid document is read", f"ValueError for {invalid[:30]!r}", repr(found))


def _has_layout(document: Any, text: str) -> None:
    """Compare the text of a document with that of the model."""
    if text != text_of(document):
        raise GuaranteeBroken(13, "a document is written otherwise than RocketMQ does", text_of(document), text)


def _stored_is_read(kind: str, files: RecordingFiles, parts: Parts, rng: Random) -> None:
    """Contract 13: a file of another program is read, and what it has besides is kept."""
    text, expected = rng.choice(tuple(STORED[kind].items()))
    owner: _Owner = _Progress(files, parts, rng, light=False) if kind == "progress" else _Table(kind, files, parts, rng)
    kept = text.replace("{", '{"others":[1],', 1) if text.startswith("{") and text != "{}" else text
    file = files.create(owner.path)
    files.pwrite(file, kept.encode(), 0)
    files.close(file)
    found, codes = owner.read_anew()
    wanted = expected if kind == "progress" or expected is None else _with_defaults(kind, expected)
    if (found, codes) != (wanted or {}, ["config_file_unreadable"] if expected is None else []):
        raise GuaranteeBroken(13, f"a file of {kind} is read otherwise: {kept}", str(wanted), f"{found} {codes}")
    if isinstance(owner, _Table):
        key: Any = ("U", "h") if kind == "filters" else "U"
        observed("put", partial(owner.table.put, key, owner.drawn(key)))
        observed("save", owner.table.save)
        others = owner.read(owner.path)
        if expected is not None and kept != text and (not isinstance(others, dict) or others.get("others") != [1]):
            raise GuaranteeBroken(13, f"a file of {kind} loses what another program wrote", kept, str(others))


def _with_defaults(kind: str, expected: Mapping[Any, Mapping[str, Any]]) -> dict[Any, Any]:
    """Return the whole entries of a table, with the stated defaults."""
    defaults = DEFAULTS[_DEFAULTS_OF[kind]]
    return {key: {**defaults, **given} for key, given in expected.items()}


def _drawn(rng: Random, depth: int) -> Any:
    kind = rng.randrange(8 if depth else 4)
    match kind:
        case 0:
            return rng.choice(_NAMES)
        case 1:
            return rng.choice((0, -1, 7, (1 << 63) - 1))
        case 2:
            return rng.choice((True, False, None))
        case 3:
            return ""
        case 4 | 5:
            return {name: _drawn(rng, depth - 1) for name in rng.sample(_NAMES, rng.randrange(4))}
        case 6:
            return {number: _drawn(rng, depth - 1) for number in rng.sample((0, 1, 2, 40), rng.randrange(4))}
    return [_drawn(rng, depth - 1) for _ in range(rng.randrange(3))]


def _with_text_keys(document: Any) -> Any:
    if isinstance(document, dict):
        return {str(key): _with_text_keys(value) for key, value in document.items()}
    return [_with_text_keys(each) for each in document] if isinstance(document, list) else document
