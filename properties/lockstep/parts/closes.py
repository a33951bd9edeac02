"""Close a store while one call of the disk fails (contracts 2, 7, 8, 13).

The store lies on a small disk, and no service runs by itself. Messages, progress and tables are changed, then it is
closed. The call that fails is drawn: it makes, opens, writes, renames, removes or syncs something.

1. A close raises nothing. It leaves no file open or mapped, and the directory is free for the next open.
2. An exit that says it was clean has left no abort marker, and everything is durable: messages, queues, progress and
   tables, as the next open shows after a power loss. Any other exit says why, and its abort marker is durable.
3. Whatever fails, the next open of the same directory shows all messages.
4. One failing save leaves the others to be made: at most one of the state files lacks its last change.
5. A closed store stays closed: another close does nothing.
"""

import logging
import random
from concurrent.futures import Future
from typing import Any

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.groups.broker_configs import SubscriptionGroupConfig, TopicConfig
from tornpage.impl.io.files import OpenFile
from tornpage.impl.message.message import Message, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.store import MessageStore
from tornpage.properties.contract import GuaranteeBroken, HarnessError
from tornpage.properties.disk.disk import Image
from tornpage.properties.lockstep.functions.comparing import is_value
from tornpage.properties.lockstep.parts.part_disk import PartDisk, tried

__all__ = ["check"]

_RUNS = 0.1
"""The share of the checks that run a program."""
_CALLS_MAX = 60
_ROOT = "/part/store"
_QUEUE = ("T", 0)
_State = tuple[int, tuple[str, ...], tuple[str, ...]]
"""The committed offset, and the names of topics and groups."""


def check(rng: random.Random) -> None:
    """Run a program, in some of the checks. Raises GuaranteeBroken."""
    log = logging.getLogger("tornpage.store")
    was_disabled, log.disabled = log.disabled, True  # the failed calls are meant
    try:
        if rng.random() < _RUNS:
            _Program(rng).run()
    finally:
        log.disabled = was_disabled


class _Disk(PartDisk):
    """A part's disk on which a sync of a file may fail too."""

    def sync(self, file: OpenFile) -> None:
        """Sync a file, or fail."""
        self._may_fail(file.path)
        super().sync(file)


class _Still:
    """Stands for the runner of a service that never runs by itself."""

    def __init__(self, service: Any) -> None:
        self._service = service

    def now_ms(self) -> int:
        """Return a fixed time."""
        return 0

    def start(self, *, after_ms: int) -> None:
        """Do nothing."""

    def wake(self) -> None:
        """Do nothing."""

    def wait(self, answer: "Future[Any]", *, timeout_ms: int) -> bool:
        """Run one step for a call that waits."""
        self._service.step(0)
        return answer.done()

    def stop(self) -> None:
        """Do nothing."""


class _Program:
    """A directory, its settings, and what was put and changed in it."""

    def __init__(self, rng: random.Random) -> None:
        self._rng, self._now = rng, 1_700_000_000_000
        self._config = MessageStoreConfig(
            mapped_file_size_commit_log=4_096, mapped_file_size_consume_queue=400, max_hash_slot_num=5, max_index_num=9,
            transient_store_pool_enable=rng.random() < 0.2, transient_store_pool_size=2,
            message_index_enable=rng.random() < 0.8, enable_consume_queue_ext=rng.random() < 0.2,
            mapped_files_ahead=rng.choice((0, 0, 1)),
        )  # fmt: skip
        self._bodies = list[bytes]()
        self._old: _State = (-1, (), ())
        self._new: _State = (-1, (), ())

    def _clock(self) -> int:
        self._now += 1
        return self._now

    def _opened(self, disk: PartDisk) -> MessageStore:
        def opened() -> MessageStore:
            parts = Parts({ThreadRunner: lambda service: _Still(service)})
            return MessageStore.open(_ROOT, self._config, files=disk, clock=self._clock, parts=parts)

        try:
            return tried("an open", opened)
        except OSError as error:
            raise GuaranteeBroken(7, f"an open on a healthy disk fails: {error}") from error

    def run(self) -> None:
        """Change a store and close it, twice; the second close meets a failing call."""
        disk = _Disk()
        store = self._opened(disk)
        self._change(store)
        self._closed(store)
        is_value("why a close on a healthy disk is not clean", None, store.read_only_reason)
        self._old = self._new
        store = self._opened(disk)
        self._change(store)
        disk.failing_in, failed = self._rng.randrange(1, _CALLS_MAX), disk.failed
        self._closed(store)
        disk.failing_in = 0
        self._judge(disk, store, has_failed=disk.failed > failed)

    def _change(self, store: MessageStore) -> None:
        rng = self._rng
        for number in range(rng.choice((1, 5, 25))):  # the first one is not delayed, so progress has a message
            body = rng.randbytes(rng.choice((1, 200)))
            properties = rng.choice(("", "KEYS\x01k", "TAGS\x01t", "DELAY\x011")) if number else ""
            status = tried("a put", lambda: store.put(Message("T", body, properties=properties))).status  # noqa: B023
            is_value("the status of a put", PutStatus.PUT_OK, status)
            self._bodies.append(body)
        offset, topics, groups = self._new
        number = len(topics)
        tried("progress", lambda: store.commit_offset("g", *_QUEUE, offset + 1))
        tried("a topic", lambda: store.put_topic_config(TopicConfig(f"topic{number}")))
        tried("a group", lambda: store.put_subscription_group(SubscriptionGroupConfig(f"group{number}")))
        self._new = offset + 1, (*topics, f"topic{number}"), (*groups, f"group{number}")

    def _closed(self, store: MessageStore) -> None:
        for _ in range(2):
            try:
                store.close()
            except (GuaranteeBroken, HarnessError):
                raise
            except Exception as error:
                raise GuaranteeBroken(8, f"a close raises {type(error).__name__}: {error}") from error

    def _judge(self, disk: PartDisk, store: MessageStore, *, has_failed: bool) -> None:
        reason, abort = store.read_only_reason, f"{_ROOT}/abort"
        is_value(f"the open and mapped files of a closed store ({reason})", (0, 0), disk.held)
        if not has_failed:
            is_value("why a close on a healthy disk is not clean", None, reason)
        durable = disk.durable
        if reason is None:
            is_value(
                "the abort marker after a clean exit", (False, False), (abort in disk.content, abort in durable.files)
            )
            self._compare("after a clean exit and a power loss", durable, lost_max=0)
        elif abort not in durable.files:
            raise GuaranteeBroken(2, f"an exit that was not clean has removed its abort marker: {reason}")
        self._compare(
            f"after an exit ({reason})", Image(durable.directories | _above(disk.content), disk.content), lost_max=1
        )

    def _compare(self, what: str, image: Image, *, lost_max: int) -> None:
        """Open a copy, and compare messages, progress and tables."""
        store = self._opened(PartDisk(image))
        found = [each.body for each in store.messages()]
        is_value(f"the damage {what}", None, store.read_only_reason)
        is_value(
            f"the messages {what}", [each.hex()[:20] for each in self._bodies], [each.hex()[:20] for each in found]
        )
        offset = store.query_offset("g", *_QUEUE)
        state: _State = (
            -1 if offset is None else offset,
            tuple(sorted(each for each in store.topic_configs() if each.startswith("topic"))),
            tuple(sorted(each for each in store.subscription_groups() if each.startswith("group"))),
        )
        lacking = 0
        for name, old, new, seen in zip(("progress", "topics", "groups"), self._old, self._new, state, strict=True):
            if seen != new:
                lacking += 1
                is_value(f"{name} {what}", old, seen)
        if lacking > lost_max:
            raise GuaranteeBroken(13, f"state files lack their last change {what}", f"{lost_max} at most", str(lacking))
        self._closed(store)


def _above(content: dict[str, bytes]) -> frozenset[str]:
    """Return the directories above some files."""
    parents = set[str]()
    for path in content:
        while path := path.rpartition("/")[0]:
            parents.add(path)
    return frozenset(parents)
