"""A broker table in its state file: topics, consumer groups, or the filters of groups.

A change to topics and groups is durable when its method returns, and has not happened if that fails. The service saves
filters, which consumers register again. Unknown parts of a file are written back unchanged.

Source: `TopicConfigManager`, `SubscriptionGroupManager`, `ConsumerFilterManager`; spec: services, section 7.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tornpage.impl.groups.broker_configs import (
    ConsumerFilterData,
    DataVersion,
    SubscriptionGroupConfig,
    TopicConfig,
    entry_from,
    fields_of,
)
from tornpage.impl.groups.config_file import ConfigFile
from tornpage.impl.groups.progress_owner import QueueRange
from tornpage.impl.guards import MakeGuard
from tornpage.impl.io.files import Clock
from tornpage.impl.log.loading import Finding

__all__ = ["FILTERS", "GROUPS", "TOPICS", "ConfigTable", "TableFormat"]

Entry = TypeVar("Entry")

FLUSH_FILTER_INTERVAL_MS = 10_000


@dataclass(frozen=True, slots=True)
class TableFormat(Generic[Entry]):
    """The format of a table: the file name below `config/`, and the conversion of its entries."""

    file_name: str
    interval_ms: int
    read: Callable[[dict[Any, Any]], dict[Any, Entry]]
    write: Callable[[Mapping[Any, Entry]], dict[str, object]]
    is_versioned: bool = True


class ConfigTable(Generic[Entry]):
    """Owns one table and its file; usable from several threads."""

    def __init__(self, file: ConfigFile, shape: TableFormat[Entry], *, clock: Clock, guard: MakeGuard) -> None:
        self._file = file
        self._shape = shape
        self._clock = clock
        self._guard = guard()
        self._entries: dict[Any, Entry] = {}
        self._others: dict[str, object] = {}
        self._is_saved = True
        self.data_version = DataVersion()

    @property
    def name(self) -> str:
        """The name used in log lines."""
        return self._shape.file_name

    @property
    def interval_ms(self) -> int:
        """The longest time in milliseconds from a change to its save.

        It is 0 if the method itself saves it.
        """
        return self._shape.interval_ms

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The defects of the file."""
        return self._file.findings

    # ---- the file ------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Read the file. Raises OSError."""
        loaded = self._file.load(self._read)
        if loaded is not None:
            self._entries, self.data_version, self._others = loaded

    def _read(self, document: object) -> tuple[dict[Any, Entry], DataVersion, dict[str, object]]:
        match document:
            case dict():
                entries = self._shape.read(document)
                version = entry_from(DataVersion, document.get("dataVersion") or {})
                written = self._document(entries, version, {})
                return entries, version, {str(key): item for key, item in document.items() if key not in written}
        raise ValueError("the document is not an object")

    def _document(
        self, entries: Mapping[Any, Entry], version: DataVersion, others: Mapping[str, object]
    ) -> dict[str, object]:
        head = {"dataVersion": fields_of(version)} if self._shape.is_versioned else {}
        return dict(sorted({**others, **head, **self._shape.write(entries)}.items()))

    def make_durable(self) -> None:
        """Make the loaded file durable. Raises OSError."""
        self._file.make_durable()

    def correct(self, range_of: QueueRange) -> None:
        """Do nothing; no entry depends on a position in a queue."""

    def save(self) -> None:
        """Save changes. Raises OSError."""
        with self._guard:
            if not self._is_saved:
                self._file.save(self._document(self._entries, self.data_version, self._others))
                self._is_saved = True

    # ---- entries -------------------------------------------------------------------------------------------------

    def get(self, key: Any) -> Entry | None:
        """Return an entry, None if there is none."""
        return self._entries.get(key)

    def all(self) -> dict[Any, Entry]:
        """Return every entry by its key."""
        return dict(self._entries)

    def put(self, key: Any, entry: Entry) -> None:
        """Set an entry. Raises OSError; the entry is then unchanged."""
        self._change({**self._entries, key: entry})

    def delete(self, key: Any) -> bool:
        """Remove an entry; return whether there was one. Raises OSError; the entry then stays."""
        is_there = key in self._entries
        if is_there:
            self._change({each: entry for each, entry in self._entries.items() if each != key})
        return is_there

    def _change(self, entries: dict[Any, Entry]) -> None:
        with self._guard:
            version = DataVersion(self.data_version.counter + 1, self._clock())
            if not self._shape.interval_ms:
                self._is_saved = False  # if the write fails, the unchanged table is written again later
                self._file.save(self._document(entries, version, self._others))
            self._is_saved = not self._shape.interval_ms
            self._entries, self.data_version = entries, version


def _by_name(file_name: str, table: str, kind: type[Entry]) -> TableFormat[Entry]:
    """Return the format of a table with each entry under its name."""

    def read(document: dict[Any, Any]) -> dict[Any, Entry]:
        match document.get(table):
            case None:
                return {}
            case dict() as found:
                return {str(name): entry_from(kind, item) for name, item in found.items()}
        raise ValueError(f"{table} is not an object")

    def write(entries: Mapping[Any, Entry]) -> dict[str, object]:
        return {table: {name: fields_of(entries[name]) for name in sorted(entries)}}

    return TableFormat(file_name, 0, read, write)


def _read_filters(document: dict[Any, Any]) -> dict[Any, ConsumerFilterData]:
    try:
        items = [
            item
            for by_group in (document.get("filterDataByTopic") or {}).values()
            for item in by_group["groupFilterData"].values()
        ]
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError("filterDataByTopic is not a table of filters") from error
    found = [entry_from(ConsumerFilterData, item) for item in items]
    return {(each.topic, each.consumer_group): each for each in found}


def _write_filters(entries: Mapping[Any, ConsumerFilterData]) -> dict[str, object]:
    by_topic: dict[str, dict[str, object]] = {}
    for topic, group in sorted(entries):
        entry = entries[topic, group]
        dead = {"dead": entry.dead_time >= entry.born_time}
        by_topic.setdefault(topic, {})[group] = dict(sorted({**fields_of(entry), **dead}.items()))
    return {
        "filterDataByTopic": {topic: {"groupFilterData": groups, "topic": topic} for topic, groups in by_topic.items()}
    }


TOPICS: TableFormat[TopicConfig] = _by_name("topics.json", "topicConfigTable", TopicConfig)
GROUPS: TableFormat[SubscriptionGroupConfig] = _by_name(
    "subscriptionGroup.json", "subscriptionGroupTable", SubscriptionGroupConfig
)
FILTERS: TableFormat[ConsumerFilterData] = TableFormat(
    "consumerFilter.json", FLUSH_FILTER_INTERVAL_MS, _read_filters, _write_filters, is_versioned=False
)
