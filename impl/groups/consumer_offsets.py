"""The next queue offset of each consumer group, stored in `config/consumerOffset.json`.

A store with light queues uses `config/lmqConsumerOffset.json` instead. It has a second table for the groups whose names
begin with `%LMQ%`: one number for each topic, as a light queue has only queue id 0.

Two rules differ from RocketMQ, so that no group skips a message it has not seen (contract 17). An offset past the end
of its queue is lowered to that end, when it is committed and when a crash has cut the queue. If the numbers of a queue
restart at 0, offsets of the old numbers are forgotten before the first new number is assigned.

Source: `ConsumerOffsetManager`, `LmqConsumerOffsetManager`; spec: services, section 4.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

from tornpage.impl.groups.config_file import ConfigFile
from tornpage.impl.groups.progress_owner import QueueRange
from tornpage.impl.guards import MakeGuard
from tornpage.impl.log.loading import NO_OFFSET, Finding

__all__ = ["LIGHT_PREFIX", "OFFSET_MAX", "SEPARATOR", "ConsumerOffsets"]

SEPARATOR = "@"
LIGHT_PREFIX = "%LMQ%"
OFFSET_MAX = (1 << 63) - 1
PARTS = 2

Group = tuple[str, str]
"""Topic and name of a group."""

Table = dict[Group, dict[int, int]]
"""Queue id to offset, by group; the queue id of a light group is 0."""


class ConsumerOffsets:
    """Owns the table and its file; usable from several threads.

    `light` says whether there are light groups.
    """

    def __init__(self, file: ConfigFile, *, light: bool, interval_ms: int, guard: MakeGuard) -> None:
        self._file = file
        self._light = light
        self._interval_ms = interval_ms
        self._guard = guard()
        self._save_guard = guard()
        self._table: Table = {}
        self._restarts: Callable[[str, int], bool] | None = None
        self._changes = self._saved_changes = 0
        self._corrected: tuple[Finding, ...] = ()

    # ---- the file ------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name used in log lines."""
        return "consumer-offsets"

    @property
    def interval_ms(self) -> int:
        """The longest time in milliseconds from a commit to its save."""
        return self._interval_ms

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The defects of the file, and the corrected offsets."""
        return (*self._file.findings, *self._corrected)

    def load(self) -> None:
        """Read the file. Raises OSError."""
        self._table = self._file.load(_read) or {}

    def make_durable(self) -> None:
        """Make the loaded file durable. Raises OSError."""
        self._file.make_durable()

    def correct(self, range_of: QueueRange) -> None:
        """Lower each offset past the end of its queue to that end."""
        corrected: list[str] = []
        for (topic, group), offsets in self._table.items():
            for queue_id, offset in offsets.items():
                end = range_of(topic, queue_id)[1]
                if offset > end:
                    offsets[queue_id] = end
                    corrected.append(f"{topic}@{group} queue {queue_id}: {offset} is now {end}")
        if corrected:
            self._changes += 1
            message = f"{len(corrected)} consumer offsets were past the end of their queues; {corrected[0]}"
            self._corrected = (Finding("note", "progress_corrected", self._file.path, NO_OFFSET, message),)

    def save(self) -> None:
        """Save changes. Raises OSError."""
        with self._save_guard:
            with self._guard:
                changes = self._changes
                document = self._document(self._table)
            if changes != self._saved_changes:
                self._file.save(document)
                self._saved_changes = changes

    def _document(self, table: Table) -> dict[str, object]:
        named = {SEPARATOR.join(key): offsets for key, offsets in sorted(table.items()) if not self._is_light(key[1])}
        plain = {name: dict(sorted(offsets.items())) for name, offsets in named.items()}
        if not self._light:
            return {"offsetTable": plain}
        light = {
            SEPARATOR.join(key): at for key in sorted(table) if self._is_light(key[1]) for at in table[key].values()
        }
        return {"lmqOffsetTable": light, "offsetTable": plain}

    def _is_light(self, group: str) -> bool:
        return self._light and group.startswith(LIGHT_PREFIX)

    def _queue_id(self, group: str, queue_id: int) -> int:
        return 0 if self._is_light(group) else queue_id

    # ---- offsets -------------------------------------------------------------------------------------------------

    def commit(self, group: str, topic: str, queue_id: int, offset: int, *, range_of: QueueRange) -> int:
        """Record the next offset of a group, limited to the end of the queue, and return it.

        It may decrease.
        """
        queue_id = self._queue_id(group, queue_id)
        with self._guard:
            if self._restarts is not None and self._restarts(topic, queue_id):
                return 0
            return self._record(group, topic, queue_id, offset, range_of)

    def raise_from(
        self, stored: int, group: str, topic: str, queue_id: int, offset: int, *, range_of: QueueRange
    ) -> int | None:
        """Record the next offset in place of `stored`, and return what is recorded.

        An offset past the end of the queue is lowered to that end.

        Return None and change nothing if `stored` is not the recorded offset.
        """
        queue_id = self._queue_id(group, queue_id)
        with self._guard:
            if self._restarts is not None and self._restarts(topic, queue_id):
                return None
            if self._table.get((topic, group), {}).get(queue_id) != stored:
                return None
            return self._record(group, topic, queue_id, offset, range_of)

    def _record(self, group: str, topic: str, queue_id: int, offset: int, range_of: QueueRange) -> int:
        counts = min(offset, range_of(topic, queue_id)[1])
        self._table.setdefault((topic, group), {})[queue_id] = counts
        self._changes += 1
        return counts

    def query(self, group: str, topic: str, queue_id: int) -> int | None:
        """Return the next offset of a group, None if it has committed nothing."""
        return self._table.get((topic, group), {}).get(self._queue_id(group, queue_id))

    def of_topic(self, topic: str) -> dict[str, dict[int, int]]:
        """Return the offsets of each group in a topic, by queue id."""
        with self._guard:
            return {group: dict(offsets) for (name, group), offsets in self._table.items() if name == topic}

    def least(self, topic: str, without: Collection[str], *, range_of: QueueRange) -> dict[int, int]:
        """Return by queue id the lowest readable offset of all groups except those in `without`."""
        least: dict[int, int] = {}
        for group, offsets in self.of_topic(topic).items():
            for queue_id, offset in offsets.items():
                if group not in without and offset >= range_of(topic, queue_id)[0]:
                    least[queue_id] = min(offset, least.get(queue_id, offset))
        return least

    def topics_of(self, group: str) -> list[str]:
        """Return the topics in which a group has committed an offset, sorted."""
        with self._guard:
            return sorted(topic for topic, name in self._table if name == group)

    def clone(self, source_group: str, target_group: str, topic: str) -> None:
        """Copy the offsets of a group to another one. Source: `cloneOffset`."""
        with self._guard:
            offsets = self._table.get((topic, source_group))
            if offsets is not None:
                self._table[topic, target_group] = dict(offsets)
                self._changes += 1

    def remove_if(self, is_unwanted: Callable[[Group, Mapping[int, int]], bool]) -> list[Group]:
        """Remove the offsets that a function selects; return their topics and groups."""
        with self._guard:
            gone = sorted(key for key, offsets in self._table.items() if is_unwanted(key, offsets))
            for key in gone:
                del self._table[key]
            self._changes += bool(gone)
        return gone

    # ---- restarted queues ----------------------------------------------------------------------------------------

    @contextmanager
    def restart_numbers(self, is_selected: Callable[[str, int], bool]) -> Iterator[Callable[[], None]]:
        """Context in which the numbers of selected queues restart at 0.

        Commits to these queues are ignored meanwhile. Their offsets are 0 on disk before the first number is assigned
        again. After a crash a queue has its old or its new numbers, and 0 skips no message in either case. In memory
        the offsets are forgotten once the yielded function was called; without that call they stay. Raises OSError.
        """
        begun: list[bool] = []
        with self._save_guard:
            with self._guard:
                self._restarts = is_selected
                zeroed = {
                    key: {queue_id: 0 if is_selected(key[0], queue_id) else at for queue_id, at in offsets.items()}
                    for key, offsets in self._table.items()
                }
                is_on_disk = zeroed == self._table and self._changes == self._saved_changes
            try:
                if not is_on_disk:
                    self._changes += 1  # disk and memory differ from here on, even if the save fails
                    self._file.save(self._document(zeroed))
                yield lambda: begun.append(True)
            finally:
                with self._guard:
                    if begun:
                        self._forget(is_selected)
                    self._restarts = None

    def _forget(self, is_selected: Callable[[str, int], bool]) -> None:
        for key, offsets in list(self._table.items()):
            left = {queue_id: at for queue_id, at in offsets.items() if not is_selected(key[0], queue_id)}
            if left != offsets:
                self._changes += 1
                self._table[key] = left
            if offsets and not left:
                del self._table[key]


def _read(document: object) -> Table:
    """Return the tables of a document as one, without keys that are not TOPIC@GROUP.

    Raises ValueError.
    """
    said = _object(document)
    plain, light = (_object(said.get(name, {})) for name in ("offsetTable", "lmqOffsetTable"))
    named = {key: _offsets(_object(offsets)) for key, offsets in plain.items()}
    named |= {key: _offsets({0: offset}) for key, offset in light.items()}
    parted = {tuple(str(key).split(SEPARATOR)): offsets for key, offsets in named.items()}
    return {(key[0], key[1]): offsets for key, offsets in parted.items() if len(key) == PARTS}


def _object(value: object) -> dict[object, object]:
    match value:
        case dict():
            return value
    raise ValueError("not an object")


def _offsets(offsets: dict[object, object]) -> dict[int, int]:
    found: dict[int, int] = {}
    for queue_id, offset in offsets.items():
        if type(offset) is not int or not 0 <= offset <= OFFSET_MAX:
            raise ValueError("an offset that is no number from 0 to 2^63 - 1")
        found[int(str(queue_id))] = offset
    return found
