"""Damage a store in one or two places, use it as clients do, judge by model/salvage.py."""

import logging
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random

from tornpage.impl.errors import StoreError
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.message.message import Message as Put
from tornpage.impl.message.message import PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.store import MessageStore
from tornpage.model.salvage import Before, Message, Opened, broken_promises
from tornpage.properties.damage.by_field import DamageSource, FieldDamage, damaged
from tornpage.properties.decode.consumequeue import UNIT_BYTES
from tornpage.properties.decode.durable_floor import parse_durable_floor
from tornpage.properties.decode.record import Blank, Record
from tornpage.properties.decode.units import decode_units
from tornpage.properties.decode.walk import walk
from tornpage.properties.judge.image import read_image, read_log
from tornpage.properties.judge.shape import SettingsOverride, first_look, store_layout_of
from tornpage.properties.judge.without_floor import damage_without_floor, newest_time
from tornpage.properties.program.hand_driven import HandDriven
from tornpage.properties.scratch import memory_directory, scratch_directory

__all__ = ["DamageTrials", "Row", "trials_of"]

_LATER_MS = 10_000
_PULLS_MAX = 100_000
_PUT_QUEUES = 4
_BATCH = 32
_PAIR_EVERY = 5
_LOG = re.compile(r"commitlog/([0-9]{20})")
_QUARANTINE = re.compile(r"([0-9]{20})\.[0-9]+")

Queue = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one trial; `mode` is read-write, cut, read-only or refused.

    Kind, field and change are those of its first damage.
    """

    number: int
    store: str
    kind: str
    field: str
    change: str
    damage: str
    mode: str
    contract: int = 0
    sentence: str = ""


@contextmanager
def trials_of(store: str | os.PathLike[str], *, seed: int, parts: Parts | None = None) -> "Iterator[DamageTrials]":
    """Yield the trials of one store; its files are only read. Raises InspectError."""
    log = logging.getLogger("tornpage.store")
    level = log.level
    log.setLevel(logging.CRITICAL)  # each damage would be logged
    try:
        with scratch_directory("tornpage-damage-", below=memory_directory()) as directory:
            yield DamageTrials(Path(store), Path(directory) / "store", seed=seed, parts=parts or Parts())
    finally:
        log.setLevel(level)


class DamageTrials:
    """Damages of one store, each a function of seed and number."""

    def __init__(self, store: Path, directory: Path, *, seed: int, parts: Parts) -> None:
        self.name = store.parent.name if store.name == "store" else store.name
        self._seed = seed
        self._directory = directory
        seen = read_image(store)
        log, directories, file_bytes = first_look(seen, SettingsOverride())
        self._file_bytes = file_bytes
        self._log_directories = directories
        self._config = store_layout_of(
            seen, SettingsOverride(), log, directories=directories, file_bytes=file_bytes
        ).config
        self._content = {name: data for name, data in seen.content.items() if name != "lock"}
        self._source = DamageSource(self._content, index_slots=self._config.max_hash_slot_num)
        self._now_ms = newest_time(log) + _LATER_MS
        self._parts = parts.replacing({ThreadRunner: lambda service: HandDriven(service, lambda: self._now_ms)})
        self._raw = dict(_records(self._content, file_bytes))
        self._is_unclean = "abort" in self._content
        self._puts: tuple[Queue, ...] = ()
        whole = self._opened(self._content, looks_at_all=True, puts=True)
        if whole.refusal or not whole.is_writable:
            raise ValueError(f"{store} does not open for writing undamaged: {whole.refusal or whole.damages}")
        self._puts = tuple(queue for queue, (_, is_reached) in whole.puts.items() if is_reached)
        by_offset = {
            offset: (queue, number) for queue, pulled in whole.pulled.items() for number, (offset, _) in pulled.items()
        }
        self._messages = [
            Message(offset, body, *by_offset.get(offset, (None, -1))) for offset, body in whole.served.items()
        ]

        self._written = self._written_queues()

    def _written_queues(self) -> frozenset[Queue]:
        """Return the queues whose files have the unit of each message: others wait for a recovery."""
        missing: set[Queue] = set()
        for message in self._messages:
            if message.queue is not None and not self._has_unit(message):
                missing.add(message.queue)
        return frozenset(message.queue for message in self._messages if message.queue) - missing

    def _has_unit(self, message: Message) -> bool:
        assert message.queue is not None
        folder = f"consumequeue/{message.queue[0]}/{message.queue[1]}"
        file_units = self._config.consume_queue_file_bytes // UNIT_BYTES
        base = message.number // file_units * file_units * UNIT_BYTES
        at = message.number * UNIT_BYTES - base
        data = self._content.get(f"{folder}/{base:020d}", b"")[at : at + UNIT_BYTES]
        return bool(data) and decode_units(data)[0][:2] == (message.offset, len(self._raw.get(message.offset, b"")))

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of places that can be damaged."""
        return frozenset(self._source.kinds)

    def damages(self, number: int) -> tuple[FieldDamage, ...]:
        """Return the damages of a trial: one, and in every fifth trial two of different files."""
        random = Random(f"{self._seed}/{number}")
        first = self._source.draw(random)
        if number % _PAIR_EVERY != _PAIR_EVERY - 1:
            return (first,)
        second = self._source.draw(random)
        return (first, second) if {first.file, first.other}.isdisjoint({second.file, second.other} - {""}) else (first,)

    def run(self, number: int) -> Row:
        """Carry out one damage, and say what became of it."""
        damages = self.damages(number)
        content: Mapping[str, bytes] = self._content
        for damage in damages:
            content = damaged(content, damage)
        random = Random(f"{self._seed}/{number}/open")
        looks_at_all = random.random() < 0.5
        opened = self._opened(content, looks_at_all=looks_at_all, puts=True, again=random.random() < 0.25)
        broken = next(broken_promises(self._before(content, damages), opened), (0, ""))
        if not broken[0]:
            broken = self._disagreement(content, opened, looks_at_all=looks_at_all)
        mode = "refused" if opened.refusal else "read-write" if opened.is_writable else "read-only"
        if mode == "read-write" and opened.has_tear:
            mode = "cut"
        first, text = damages[0], " and ".join(map(str, damages))
        return Row(number, self.name, first.kind, first.field, first.change, text, mode, *broken)

    def _before(self, content: Mapping[str, bytes], damages: Sequence[FieldDamage]) -> Before:
        still = dict(_records(content, self._file_bytes))
        intact = {offset for offset, raw in self._raw.items() if still.get(offset) == raw}
        touched = {name for damage in damages for name in (damage.file, damage.other)}
        whole = {
            message.queue
            for message in self._messages
            if message.queue
            and message.queue in self._written
            and not any(name.startswith(f"consumequeue/{message.queue[0]}/{message.queue[1]}/") for name in touched)
        }
        floor = parse_durable_floor(content.get("config/durableFloor", b""))
        may_be_cut = not self._damage_of(content)
        return Before(self._messages, intact, whole, may_be_cut, floor is not None, self._log_end(content))

    def _log_end(self, content: Mapping[str, bytes]) -> int | None:
        """Return the offset after the last valid record, or after its blank.

        Return None without a record, and for a log in several directories.
        """
        end = None
        if len(self._log_directories) > 1:
            return None
        for name in sorted(content):
            if not (match := _LOG.fullmatch(name)):
                continue
            base, data, at = int(match[1]), content[name], -1
            if base % self._file_bytes:
                return None
            for item in walk(data, base_offset=base, file_bytes=self._file_bytes):
                if isinstance(item, Record) and item.physical_offset == item.offset:
                    end = at = item.offset + len(item.raw)
                elif isinstance(item, Blank) and item.offset == at:
                    end = base + len(data)
        return end

    def _damage_of(self, content: Mapping[str, bytes]) -> str:
        """Return what the judges call damaged in the log; nothing if a crash may leave it."""
        floor = parse_durable_floor(content.get("config/durableFloor", b""))
        log = read_log(
            content, self._log_directories, file_bytes=self._file_bytes, floor=0 if floor is None else floor.offset
        )
        if log.problems:
            return log.problems[0].sentence
        is_clean = "abort" not in content
        if is_clean and log.dirty_at is not None and not log.is_left_over:
            return "bytes follow the end of a log that was closed"
        if floor is not None:
            return "the log ends below its floor" if log.end < floor.offset else ""
        has_pool = self._config.transient_store_pool_enable
        return damage_without_floor(content, log, is_clean=is_clean, has_pool=has_pool, now_ms=self._now_ms)

    def _disagreement(self, content: Mapping[str, bytes], opened: Opened, *, looks_at_all: bool) -> tuple[int, str]:
        """Return the promise that is broken where store and judges disagree about damage."""
        damage = self._damage_of(content)
        if opened.refusal or bool(damage) is not opened.is_writable:
            return 0, ""
        if damage and ("config/derivedFloor" in content and not looks_at_all):
            return 0, ""  # what is proved is looked at when it is read
        said = f"damage goes unnoticed: {damage}" if damage else f"no damage: {opened.damages[:1]}"
        return 7, said

    # ---- one store -----------------------------------------------------------------------------------------------

    def _opened(self, content: Mapping[str, bytes], *, looks_at_all: bool, puts: bool, again: bool = False) -> Opened:
        shutil.rmtree(self._directory, ignore_errors=True)
        for name, data in content.items():
            path = self._directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        found = self._answers(looks_at_all=looks_at_all, puts=puts and not again)
        if again and not found.refusal and not found.raised:
            found = replace_mode(self._answers(looks_at_all=looks_at_all, puts=puts), found)
        if not found.is_writable and not found.refusal:
            self._is_unchanged(content, found)
        return found

    def _is_unchanged(self, content: Mapping[str, bytes], found: Opened) -> None:
        now = {
            str(path.relative_to(self._directory)): path.read_bytes()
            for path in self._directory.rglob("*")
            if path.is_file() and path.name != "lock"
        }
        changed = sorted(name for name in now.keys() | content.keys() if now.get(name) != content.get(name))
        if changed:
            found.raised.append(f"a read-only store changed {changed[0]}")

    def _answers(self, *, looks_at_all: bool, puts: bool) -> Opened:
        found = Opened()
        config = replace(self._config, check_whole_log_on_recover=looks_at_all)
        try:
            store = MessageStore.open(
                self._directory, config, files=OsFiles(), clock=lambda: self._now_ms, parts=self._parts
            )
        except StoreError as error:
            found.refusal = f"{type(error).__name__}: {error}"
            return found
        except Exception as error:
            found.raised.append(f"open raises {type(error).__name__}: {error}")
            return found
        try:
            found.is_writable, found.log_end = store.read_only_reason is None, store.max_offset
            self._look(store, found)
            if puts and found.is_writable:
                self._put(store, found)
            _findings(store, str(self._directory), found)
        finally:
            _asked(found, "close", store.close)
        found.set_aside = set(self._set_aside())
        return found

    def _look(self, store: MessageStore, found: Opened) -> None:
        def messages() -> None:
            found.served = {message.offset: message.body for message in store.messages()}

        _asked(found, "messages", messages)
        for queue in store.queues():
            _asked(found, "get_message", partial(self._pull, store, queue, found))

    def _pull(self, store: MessageStore, queue: Queue, found: Opened) -> None:
        offset, end = store.min_offset_in_queue(*queue), store.max_offset_in_queue(*queue)
        pulled = found.pulled.setdefault(queue, {})
        for _ in range(_PULLS_MAX):
            if offset >= end:
                return
            with store.get_message(*queue, offset, max_msg_nums=_BATCH) as result:
                for buffer in result.messages:
                    message = buffer.message()
                    pulled[buffer.queue_offset] = message.offset, message.body
                if result.next_begin_offset <= offset:
                    found.stuck.append(queue)
                    return
                offset = result.next_begin_offset
        found.stuck.append(queue)

    def _put(self, store: MessageStore, found: Opened) -> None:
        for queue in (self._puts or tuple(found.pulled))[: _PUT_QUEUES if self._puts else None]:
            body = f"put to {queue[1]}".encode()

            def put(queue: Queue = queue, body: bytes = body) -> None:
                answer = store.put(Put(queue[0], body, queue_id=queue[1]))
                if answer.status is not PutStatus.PUT_OK:
                    found.refused_puts.append(queue)
                    return
                store._durability.commit_all()  # no record in a buffer is readable
                store._reput.drain()
                after = Opened()
                self._pull(store, queue, after)
                got = after.pulled.get(queue, {}).get(answer.queue_offset)
                found.puts[queue] = answer.queue_offset, got == (answer.offset, body)
                found.stuck += after.stuck

            _asked(found, "put", put)
        if not self._puts:
            found.refused_puts.clear()

    def _set_aside(self) -> Iterator[int]:
        folder = self._directory / "quarantine"
        for path in folder.iterdir() if folder.is_dir() else ():
            if match := _QUARANTINE.fullmatch(path.name):
                data = path.read_bytes()
                base = int(match[1])
                yield from (
                    item.offset
                    for item in walk(data, base_offset=base, file_bytes=len(data) + 8)
                    if isinstance(item, Record)
                )


def replace_mode(later: Opened, first: Opened) -> Opened:
    """Return the answers of a second open, with the tear and the findings of the first."""
    later.has_tear |= first.has_tear
    later.notes += first.notes
    later.set_aside |= first.set_aside
    return later


def _asked(found: Opened, verb: str, call: Callable[[], object]) -> None:
    try:
        call()
    except Exception as error:
        found.raised.append(f"{verb} raises {type(error).__name__}: {error}")


def _findings(store: MessageStore, root: str, found: Opened) -> None:
    for finding in store.findings:
        place = finding.file.removeprefix(f"{root}/")
        if finding.severity == "damage":
            found.damages.append(place)
        elif finding.severity == "tear":
            found.has_tear = True
        found.notes.append(place)


def _records(content: Mapping[str, bytes], file_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Yield the physical offset and the bytes of each valid record."""
    for name, data in content.items():
        folder, _, base = name.rpartition("/")
        if folder == "commitlog" and len(base) == 20 and base.isdigit():
            for item in walk(data, base_offset=int(base), file_bytes=file_bytes):
                if isinstance(item, Record) and item.physical_offset == item.offset:
                    yield item.offset, item.raw
