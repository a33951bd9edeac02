"""Run RocketMQ on crash images of its own stores and count lost and wrong records.

The steps are those of a recorded run: open, dump, puts, dump, shutdown, open, dump. The store is a stock one. At each
dump the answers are compared with what the producer had acknowledged.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from shutil import copyfile, copytree
from time import monotonic, sleep
from typing import Any, NamedTuple

from tornpage.model.queues import java_hash
from tornpage.peers.errors import PeerError, PeerTimeout
from tornpage.peers.rocketmq.process import Process
from tornpage.peers.rocketmq.store import PeerStore
from tornpage.properties.judge.golden import GoldenImage, apply_damage, golden_steps

__all__ = ["Figures", "LiveRow", "live_row"]

_KEYS_MAX = 64
_QUIET_S = 2.0
_LOOK_S = 0.05
_UNUSED = ("fileReservedTime", "deleteWhen", "brokerRole")
_NOT_READ = {"messageDelayLevel"}


class Figures(NamedTuple):
    """Counts of one dump, in the order of the columns of docs/against-java.md."""

    lost: int
    came_back: int
    unreachable: int
    without_keys: int
    served_wrong: int
    wrong_code: int
    twice: int
    skipped_bytes: int


class LiveRow(NamedTuple):
    """What a live RocketMQ did with one image.

    `worst` is None if it did not start. `kept` counts acknowledged records in its first dump. `numbers` are the
    contract numbers that its answers break.
    """

    image: str
    worst: Figures | None
    kept: int | None
    numbers: tuple[int, ...]


Place = tuple[int, str]
"""Physical offset and SHA-256 of a record."""


class _Side:
    """The acknowledged records of a run, and those that an earlier dump lacked."""

    def __init__(self, told: Mapping[Place, str | None], file_bytes: int) -> None:
        self.stored = dict(told)
        self.file_bytes = file_bytes
        self.kept: int | None = None
        self.dumps: list[Figures] = []
        self.numbers: set[int] = set()
        self._missed: set[Place] = set()

    def look(self, store: PeerStore) -> None:
        """Take the answers of one dump into account."""
        behind = store.log().behind
        records = store.records(sorted(offset for offset, _ in self.stored), file_bytes=self.file_bytes)
        log = {(offset, fields["sha256"]): (size, fields) for offset, size, fields in records}
        here = log.keys()
        reached, wrong = set(), 0
        for queue in store.queues():
            for message in store.messages(queue)[0]:
                place = message.offset, message.record_sha256
                row = log.get(place)
                own = row and (row[1]["topic"], row[1]["queue"], row[1]["number"])
                if place in self.stored and own == (queue.topic, queue.queue_id, message.place):
                    reached.add(place)
                else:
                    wrong += 1
        own_units = {
            (fields["topic"], fields["queue"], fields["number"], offset, size): self.stored[offset, fields["sha256"]]
            for (offset, _), (size, fields) in log.items()
            if (offset, fields["sha256"]) in self.stored
        }
        codes = sum(unit[:5] in own_units and unit[5] != java_hash(own_units[unit[:5]] or "") for unit in store.units())
        numbers = Counter((fields["topic"], fields["queue"], fields["number"]) for _, fields in log.values())
        figures = Figures(
            lost=len(self.stored.keys() - here),
            came_back=len(here & self._missed),
            unreachable=len((here & self.stored.keys()) - reached),
            without_keys=_without_keys(store, log),
            served_wrong=wrong,
            wrong_code=codes,
            twice=sum(count - 1 for count in numbers.values()),
            skipped_bytes=max(0, -behind),
        )
        if self.kept is None:
            self.kept = len(here & self.stored.keys())
        self._missed |= self.stored.keys() - here
        self.dumps.append(figures)
        broken = {
            1: here - self.stored.keys() - self._missed,
            3: figures.came_back,
            4: figures.unreachable or figures.served_wrong or figures.wrong_code,
            5: figures.without_keys,
            16: figures.skipped_bytes,
        }
        self.numbers |= {number for number, is_broken in broken.items() if is_broken}


def _without_keys(store: PeerStore, log: Mapping[Place, tuple[int, Mapping[str, Any]]]) -> int:
    """Return how many records of the log a query by one of their keys does not return."""
    asked: list[tuple[str, str]] = []
    offsets: list[int] = []
    for (offset, _), (_, fields) in log.items():
        words = [fields["unique"], *(fields["keys"] or "").split(" ")]
        for word in filter(None, words):
            asked.append((fields["topic"], word))
            offsets.append(offset)
    found = store.query(asked, count=_KEYS_MAX)
    missing = {
        offset
        for offset, rows in zip(offsets, found, strict=True)
        if len(rows) < _KEYS_MAX and all(row[0] != offset for row in rows)
    }
    return len(missing)


def live_row(process: Process, image: GoldenImage, directory: Path) -> LiveRow:
    """Run the steps of an image on a copy in a new directory.

    Raises PeerError, InspectError.
    """
    given = golden_steps(image)
    copytree(image.folder / "store", directory, copy_function=copyfile)
    apply_damage(directory, given.damage)
    settings = {
        name: value
        for name, value in given.settings.items()
        if name not in _UNUSED and (not isinstance(value, str) or name == "flushDiskType")
    }
    side = _Side(given.told, int(given.settings["mappedFileSizeCommitLog"]))
    store: PeerStore | None = None
    try:
        for step in given.steps:
            match step["do"]:
                case "open":
                    store = _opened(process, directory, settings)
                    if store is None:
                        return LiveRow(image.name, None, None, (7,))
                case "put":
                    assert store is not None
                    _put(store, side, step["puts"])
                case "dump":
                    assert store is not None
                    _settle(store)
                    side.look(store)
                case "shutdown":
                    process.ask("close")
                    store = None
    finally:
        process.close()
    worst = Figures(*(max(values) for values in zip(*side.dumps, strict=True)))
    return LiveRow(image.name, worst, side.kept, tuple(sorted(side.numbers)))


def _opened(process: Process, directory: Path, settings: Mapping[str, Any]) -> PeerStore | None:
    """Open a stock store, which stays open; None if it does not start."""
    try:
        answer = process.ask("open", directory=str(directory), mode="stock", settings=dict(settings))
    except PeerTimeout:
        return None
    store = PeerStore(process, answer)
    return store if store.loaded else None


def _put(store: PeerStore, side: _Side, puts: Sequence[Mapping[str, Any]]) -> None:
    """Put messages and note their records as acknowledged."""
    placed: dict[int, str | None] = {}
    for each in puts:
        told = store.put(each["topic"], each["queueId"], each["properties"] or "", _body_of(each["body"]))
        if told["status"] == "PUT_OK":
            placed[told["offset"]] = each["properties"]
    known = sorted({*(offset for offset, _ in side.stored), *placed})
    for offset, _, fields in store.records(known, file_bytes=side.file_bytes):
        if offset in placed:
            side.stored[offset, fields["sha256"]] = fields["tags"]


def _body_of(body: Mapping[str, Any] | None) -> bytes:
    """Return a body as the steps describe it."""
    if body is None:
        return b""
    if "text" in body:
        return str(body["text"]).encode()
    if "hex" in body:
        return bytes.fromhex(body["hex"])
    head, fill, length = body["head"].encode(), body["fill"].encode(), int(body["length"])
    whole: bytes = head + fill * (length // max(1, len(fill)) + 1)
    return whole[:length]


def _settle(store: PeerStore) -> None:
    """Wait until dispatch has ended, or has made no progress for two seconds."""
    last, since = None, monotonic()
    while (behind := store.log().behind) > 0 and monotonic() - since < _QUIET_S:
        if behind != last:
            last, since = behind, monotonic()
        sleep(_LOOK_S)
    with suppress(PeerError):
        store.log()
