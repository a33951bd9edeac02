"""Say what a store still owes after damage (contracts 7, 8, 17 and 18).

1. An intact record is one whose bytes and place are what they were. It is served by its place, unless a recovery has
   cut it: from a log that was not closed, at a tear that a finding names, into quarantine where no floor spoke for it.
2. A store that takes puts gives each intact message to a consumer of its queue, at its number, or has a finding that
   names the queue. A read-only store does so as far as the units of the queue are what they were.
3. No reader gets a body that is not that of the record at its place, and none gets the record of another number.
4. A pull always moves on. No verb raises.
5. A put that is answered with PUT_OK is given to a consumer that pulls its queue to the end, at the number of the
   answer. No intact message has that number.
6. A store that takes no puts has a finding of damage that names a file.
7. Its log ends after the last valid record, or after the blank of that record, which ends a file.

The facts come from outside; nothing is opened here.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

__all__ = ["Before", "Message", "Opened", "broken_promises"]

Queue = tuple[str, int]
"""Topic and queue id."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the undamaged store; `queue` is None if no queue gave it."""

    offset: int
    body: bytes
    queue: Queue | None
    number: int


@dataclass(frozen=True, slots=True)
class Before:
    """The undamaged store, and what of it a damage has left.

    `intact` are physical offsets of records. `whole_queues` are the queues whose units are what they were.
    `may_be_cut` says that the log was not closed and that a crash may leave it so. `has_floor` says that a durable
    floor speaks for it. `log_end` is where its records end in the files, None if that is not owed.
    """

    messages: Collection[Message]
    intact: Collection[int]
    whole_queues: Collection[Queue]
    may_be_cut: bool
    has_floor: bool
    log_end: int | None = None


@dataclass(slots=True)
class Opened:
    """What a store that was opened on the damaged files has answered.

    `refusal` says why it did not open. `served` has the body by physical offset, `pulled` the physical offset and body
    by queue and number. `raised` are sentences about verbs that raised, `stuck` are queues in which a pull did not move
    on. `puts` has, by queue, the number that an answer gave and whether a consumer got it. `damages` are the files that
    findings of damage name, `notes` those of all findings. `set_aside` are physical offsets of records in quarantine.
    `log_end` is the greatest offset of the log.
    """

    refusal: str = ""
    is_writable: bool = False
    served: dict[int, bytes] = field(default_factory=dict)
    pulled: dict[Queue, dict[int, tuple[int, bytes]]] = field(default_factory=dict)
    raised: list[str] = field(default_factory=list)
    stuck: list[Queue] = field(default_factory=list)
    puts: dict[Queue, tuple[int, bool]] = field(default_factory=dict)
    refused_puts: list[Queue] = field(default_factory=list)
    damages: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    has_tear: bool = False
    set_aside: set[int] = field(default_factory=set)
    log_end: int = 0


def broken_promises(before: Before, after: Opened) -> Iterator[tuple[int, str]]:
    """Yield the number of each broken promise, with a sentence."""
    yield from ((8, sentence) for sentence in after.raised)
    yield from ((7, f"a pull of {queue} does not move on") for queue in after.stuck)
    if after.refusal:
        return
    if not after.is_writable and not any(after.damages):
        yield 7, "the store is read-only, and no finding names a file"
    if not after.is_writable and before.log_end not in (None, after.log_end):
        yield 9, f"the log ends at {after.log_end}, and its records end at {before.log_end}"
    yield from _wrong(before, after)
    yield from _lost(before, after)
    if after.is_writable:
        yield from _puts(before, after)


def _wrong(before: Before, after: Opened) -> Iterator[tuple[int, str]]:
    bodies = {message.offset: message.body for message in before.messages}
    numbers = {(m.queue, m.number): m.offset for m in before.messages if m.queue and m.offset in before.intact}
    served = [(offset, body) for offset, body in after.served.items()]
    served += [found for pulled in after.pulled.values() for found in pulled.values()]
    for offset, body in served:
        if offset in bodies and bodies[offset] != body:
            yield 7, f"the record at {offset} is served with a wrong body"
            return
    for queue, pulled in after.pulled.items():
        for number, (offset, _) in pulled.items():
            if numbers.get((queue, number), offset) != offset and offset in bodies:
                yield (
                    17,
                    f"number {number} of {queue} is the record at {offset} and not that at {numbers[queue, number]}",
                )
                return


def _lost(before: Before, after: Opened) -> Iterator[tuple[int, str]]:
    for message in before.messages:
        if message.offset not in before.intact:
            continue
        if message.offset not in after.served:
            is_cut = before.may_be_cut and after.has_tear and after.is_writable
            if not is_cut or not (before.has_floor or message.offset in after.set_aside):
                yield 7, f"the intact record at {message.offset} is not served"
                return
            continue
        if message.queue is None or _is_pulled(message, after):
            continue
        if not after.is_writable:
            if message.queue in before.whole_queues:
                yield 7, f"a consumer of {message.queue} does not get the intact message {message.number}"
                return
        elif not _is_named(message.queue, after.notes):
            yield 18, f"the intact message {message.number} of {message.queue} is unreachable without a finding"
            return


def _is_pulled(message: Message, after: Opened) -> bool:
    assert message.queue is not None
    found = after.pulled.get(message.queue, {}).get(message.number)
    return found is not None and found[0] == message.offset


def _is_named(queue: Queue, files: Collection[str]) -> bool:
    place = f"consumequeue/{queue[0]}/{queue[1]}"
    return any(file == place or file.startswith(f"{place}/") for file in files)


def _puts(before: Before, after: Opened) -> Iterator[tuple[int, str]]:
    numbers: Mapping[tuple[Queue | None, int], int] = {
        (message.queue, message.number): message.offset
        for message in before.messages
        if message.offset in before.intact and message.offset in after.served
    }
    for queue in after.refused_puts:
        yield 18, f"a put to {queue} is refused by a store that takes puts"
    for queue, (number, is_reached) in after.puts.items():
        if not is_reached:
            yield 18, f"a put to {queue} is answered with number {number}, and no consumer reaches it"
        elif (queue, number) in numbers:
            yield (
                18,
                f"a put to {queue} is answered with number {number}, which the intact message at "
                f"{numbers[queue, number]} has",
            )
