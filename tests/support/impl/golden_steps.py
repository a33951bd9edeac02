"""Repeat the steps of a golden store with this store: open, put, close, ask."""

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.impl.golden import config_of, golden, message_of, read
from tests.support.impl.golden_answers import Answers, answers_of_rocketmq
from tests.support.impl.golden_files import opening_arguments
from tests.support.impl.golden_ours import answers_of_store
from tests.support.impl.stores import HandRunner, SetClock, put
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.message.message import Message, MessageBatch, StoredMessage
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.store import MessageStore
from tornpage.properties.judge.golden import apply_damage

__all__ = ["Golden", "Replay", "Step"]

LATER_MS = 600_000


class Step(NamedTuple):
    """One step, with the answer of RocketMQ and the action here.

    `told` is the step of `expected.json`. `records` are those of the log of this store at a dump. `stored` has the tags
    of the records put meanwhile, by offset and SHA-256.
    """

    told: dict[str, Any]
    theirs: Answers
    ours: Answers
    records: tuple[StoredMessage, ...]
    stored: dict[tuple[int, str], str | None]

    @property
    def number(self) -> int:
        """The number of the step."""
        return int(self.told["step"])


class Golden(NamedTuple):
    """A golden store, or a variant of one, as a working copy."""

    name: str
    folder: Path
    directory: Path
    steps: list[dict[str, Any]]

    @classmethod
    def copied(cls, case: str, directory: Path, variant: str | None = None) -> "Golden":
        """Copy a store to `directory` and damage it as the variant says.

        Skips the test if the store is missing.
        """
        folder = golden(case, f"variants/{variant}.json" if variant else "expected.json")
        shutil.copytree(folder / "store", directory, copy_function=shutil.copyfile)
        if variant is None:
            return cls(case, folder, directory, read(folder / "expected.json")["steps"])
        told = read(folder / "variants" / f"{variant}.json")
        apply_damage(directory, told["damage"])
        return cls(f"{case}/{variant}", folder, directory, told["steps"])


class Replay:
    """Runs the steps. The services of the store run at each dump, and not before."""

    def __init__(self, golden: Golden) -> None:
        self._golden = golden
        self._clock = SetClock()
        self._runner = HandRunner()
        self._store: MessageStore | None = None
        self._stored: dict[tuple[int, str], str | None] = {}

    def __iter__(self) -> Iterator[Step]:
        try:
            for step in self._golden.steps:
                theirs, ours = getattr(self, f"_{step['do']}")(step)
                records = tuple(self._store.messages()) if self._store is not None and step["do"] == "dump" else ()
                yield Step(step, theirs, ours, records, dict(self._stored))
        finally:
            if self._store is not None:
                self._store.close()

    def _open(self, step: dict[str, Any]) -> tuple[Answers, Answers]:
        before = (self._golden.directory / "abort").exists()
        self._runner = HandRunner()
        self._store = MessageStore.open(
            self._golden.directory,
            config_of(self._golden.folder),
            files=OsFiles(),
            clock=self._clock,
            parts=Parts({ThreadRunner: self._runner}),
            **opening_arguments(self._golden.folder),
        )
        ours = {
            "abortPresentBefore": before,
            "load": self._store.read_only_reason is None,
            "minPhyOffset": self._store.min_offset,
            "maxPhyOffset": self._store.max_offset,
        }
        after = step.get("afterLoad") or {"minPhyOffset": None, "maxPhyOffset": None}
        theirs = {"abortPresentBefore": step["abortPresentBefore"], "load": step["load"], **after}
        return {("open", ""): theirs}, {("open", ""): ours}

    def _put(self, step: dict[str, Any]) -> tuple[Answers, Answers]:
        assert self._store is not None
        theirs, ours = {}, {}
        for number, each in enumerate(step["puts"]):
            append = each["result"]["append"]
            self._clock.now_ms = append["storeTimestamp"]
            message = message_of(each)
            result = put(self._store, message)
            self._note(result.offset, message)
            theirs["put", str(number)] = {
                "status": each["result"]["status"],
                **{name: append[name] for name in ("wroteOffset", "wroteBytes", "queueOffset", "msgId", "msgNum")},
            }
            ours["put", str(number)] = {
                "status": result.status.value,
                "wroteOffset": result.offset,
                "wroteBytes": result.size_bytes,
                "queueOffset": result.queue_offset,
                "msgId": result.message_id,
                "msgNum": result.message_count,
            }
        return theirs, ours

    def _note(self, offset: int, message: Message | MessageBatch) -> None:
        assert self._store is not None
        buffer = self._store.select_message_by_offset(offset)
        assert buffer is not None
        with buffer:
            record = buffer.message()
            assert (record.topic, record.queue_id, record.body) == (message.topic, message.queue_id, message.body)
            self._stored[offset, hashlib.sha256(buffer.view).hexdigest()] = record.properties.get("TAGS")

    def _dump(self, step: dict[str, Any]) -> tuple[Answers, Answers]:
        assert self._store is not None
        for name in sorted(self._runner.services, reverse=True):  # reput comes before flush-queues
            self._runner.step(name, after_ms=LATER_MS)
        state = step["state"]
        return answers_of_rocketmq(state), answers_of_store(self._store, state, self._golden.directory)

    def _shutdown(self, step: dict[str, Any]) -> tuple[Answers, Answers]:
        assert self._store is not None
        self._store.close()
        self._store = None
        ours = {"abortPresentAfter": (self._golden.directory / "abort").exists()}
        return {("shutdown", ""): {"abortPresentAfter": step["abortPresentAfter"]}}, {("shutdown", ""): ours}
