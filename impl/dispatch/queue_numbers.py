"""Decide which number each record has in its queue where the log contradicts itself.

No checksum of RocketMQ 4.9.3 covers the topic, the queue id and the queue offset of a record. One wrong bit there makes
a record claim the number of another message, or a number that the queue reaches never. In a log of RocketMQ numbers
also repeat where a topic was deleted and created again.

1. A queue is a chain of claims: ascending numbers, and between two of them at most one queue file of numbers without a
   message. Units that lie in the queue already and point to the records of a claim count more than the length of a
   claim. Such units are evidence unless most of them stand at other numbers than their records claim. A number in the
   properties (multi-dispatch) is not contradicted by a unit: a record of several queues has units at other numbers.
2. A claim of the number 0 after other claims begins a new numbering if its unit is stored, or if it has two records
   and no unit says that another record has the number 0. The numbering with the most units stored is the queue; without
   units the last one is. Of a light queue, which RocketMQ counts from 0 again at each restart, it is the longest one.
3. A single record outside of the chain gets the number that its unit has, or the one that its neighbours leave. A
   single record that claims a place missing from another queue, between the neighbours of that place, belongs there.
   A reader passes such a record: it does not say what its unit says.
4. A record after the last number of the chain that no queue can hold gets the next number. Any other record outside of
   the chain is in no queue. So is a record before the chain whose number is more than a queue file before its first
   number, since a queue with that gap would not take the chain.

Everything that is decided here is a finding. Source: none; RocketMQ takes every number as it is
(`ConsumeQueue.putMessagePositionInfo`, hole C15).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, zip_longest

from tornpage.impl.log.loading import Finding
from tornpage.impl.message.dispatching import UNIT_BYTES, QueueRun
from tornpage.impl.message.multi_dispatch import QueueKey
from tornpage.impl.queue.consume_queue import NUMBER_MAX, ConsumeQueue, tail_of
from tornpage.impl.queue.consume_queues import ConsumeQueues
from tornpage.impl.queue.units import UNIT, Unit, units_in

__all__ = ["QueueNumbers", "Rulings"]


_LIGHT_PREFIX = b"%LMQ%"

_Total = tuple[int, int, int]
"""Stored units, records, and records next to each other in the log: what a chain of claims weighs."""


@dataclass(slots=True)
class _Claim:
    """Records of one queue that claim consecutive numbers, in log order.

    Where the numbers do not go on, the records on both sides are claims of their own. `is_alone` is the second of
    them. `first`, `before_last` and `last` are units. `last_named` says whether the last record has its number in its
    properties, `earlier_named` whether one of the others has.
    A claim that `is_proved` stands for units that were proved before the walk. `supported` counts the stored units that
    point to its records at the claimed numbers, `found_at` is the number at which the unit of a single record lies.
    """

    key: QueueKey
    number: int
    count: int
    first: Unit
    last: Unit
    before_last: Unit
    earlier_named: bool
    last_named: bool
    is_proved: bool = False
    is_alone: bool = False
    supported: int = 0
    found_at: int | None = None

    @property
    def named(self) -> bool:
        """Whether a record has its number in its properties."""
        return self.earlier_named or self.last_named

    @property
    def end(self) -> int:
        return self.number + self.count

    @property
    def is_possible(self) -> bool:
        return self.number >= 0 and self.end <= NUMBER_MAX

    @property
    def is_contradicted(self) -> bool:
        """Whether the stored unit of a single record has another number."""
        return self.count == 1 and self.found_at not in (None, self.number)

    def go_on_with(self, run: QueueRun) -> None:
        """Take the records of a run that continues the numbers."""
        more = _claim_of(run)
        self.before_last = self.last if more.count == 1 else more.before_last
        self.earlier_named = self.named or more.earlier_named
        self.count, self.last, self.last_named = self.count + more.count, more.last, more.last_named

    def without_last(self) -> list["_Claim"]:
        """Take the last of several records away, and return the claim of that one."""
        if self.count < 2:
            return []
        last, number, named = self.last, self.end - 1, self.last_named
        self.count, self.last = self.count - 1, self.before_last
        self.last_named = False  # if the new last one is named, `earlier_named` says so
        return [_Claim(self.key, number, 1, last, last, last, earlier_named=False, last_named=named)]

    @property
    def weight(self) -> _Total:
        return self.supported + (NUMBER_MAX if self.is_proved else 0), self.count, 0


@dataclass(frozen=True, slots=True)
class _Ruling:
    """What becomes of a claim: the queue and number of its first record, None for no queue."""

    claim: _Claim
    place: tuple[QueueKey, int] | None


@dataclass(slots=True)
class _Queue:
    """The claims of one queue: those of its chain, and the others."""

    chain: list[_Claim]
    others: list[_Claim] = field(default_factory=list)

    def rivals(self, claim: _Claim) -> list[_Claim]:
        """Return the record outside of the chain that claims the number of a record in it."""
        same = [each for each in self.others if each.number == claim.number and each.count == 1]
        return same[:1] if any(each is claim for each in self.chain) else []


class Rulings:
    """What was decided about claims that do not fit. `findings` names each of them."""

    def __init__(self, rulings: Iterable[_Ruling] = (), findings: Sequence[Finding] = ()) -> None:
        self.findings = tuple(findings)
        self._by_key: dict[QueueKey, list[_Ruling]] = {}
        for ruling in sorted(rulings, key=lambda each: each.claim.first.offset):
            self._by_key.setdefault(ruling.claim.key, []).append(ruling)
        self.is_empty = not self._by_key

    def applied(self, runs: Iterable[QueueRun]) -> Sequence[QueueRun]:
        """Return runs with the numbers that were decided.

        A dispatcher gives runs in the order of their first records. A record that moves to another queue must come
        between the records of that queue, so all runs are divided there and put into log order.
        """
        parts: list[QueueRun] = []
        moved: set[int] = set()
        for run in runs:
            for part in _divided(run, self._by_key.get(run.key, ())):
                parts.append(part)
                if part.key != run.key:
                    moved.add(_first_offset(part))
        if not moved:
            return parts
        bounds = sorted(moved)
        return sorted((piece for part in parts for piece in _cut(part, bounds)), key=_first_offset)


def _first_offset(run: QueueRun) -> int:
    """Return the physical offset of the first record of a run."""
    return Unit(*UNIT.unpack_from(run.units)).offset


def _cut(run: QueueRun, bounds: Sequence[int]) -> Iterator[QueueRun]:
    """Yield a run in pieces. A record at a bound begins a new piece."""
    units = list(units_in(run.units))
    begin = 0
    while begin < len(units):
        at = bisect_right(bounds, units[begin].offset)
        end = len(units)
        if at < len(bounds):
            end = bisect_left(units, bounds[at], begin, key=lambda unit: unit.offset)
        yield _piece(run, units, begin, end)
        begin = end


def _piece(run: QueueRun, units: Sequence[Unit], begin: int, end: int) -> QueueRun:
    """Return the units of `[begin, end)` as a run."""
    return run._replace(
        queue_offset=run.queue_offset + begin,
        units=run.units[begin * UNIT_BYTES : end * UNIT_BYTES],
        end_offset=units[end - 1].end_offset,
        ext=run.ext[begin:end],
    )


def _divided(run: QueueRun, rulings: Sequence[_Ruling]) -> Iterator[QueueRun]:
    """Yield the parts of a run with the places that were decided."""
    firsts = [ruling.claim.first.offset for ruling in rulings]
    units = list(units_in(run.units))
    begin = 0
    while begin < len(units):
        at = bisect_right(firsts, units[begin].offset) - 1
        within = at >= 0 and units[begin].offset <= rulings[at].claim.last.offset
        bound = rulings[at].claim.last.offset + 1 if within else (firsts[at + 1] if at + 1 < len(firsts) else None)
        end = len(units) if bound is None else bisect_left(units, bound, begin, key=lambda unit: unit.offset)
        part = _piece(run, units, begin, end)
        if not within:
            yield part
        elif (place := rulings[at].place) is not None:
            key, number = place
            yield part._replace(key=key, queue_offset=number + part.queue_offset - rulings[at].claim.number)
        begin = end


def _claim_of(run: QueueRun, *, count: int | None = None) -> _Claim:
    """Return the claim of a run, or of so many of its first records."""
    count = len(run.units) // UNIT_BYTES if count is None else count
    end = count * UNIT_BYTES
    units = list(units_in(run.units[max(0, end - 2 * UNIT_BYTES) : end]))
    first = Unit(*UNIT.unpack_from(run.units))
    earlier_named = run.named and count > 1
    return _Claim(
        run.key, run.queue_offset, count, first, units[-1], units[0], earlier_named=earlier_named, last_named=run.named
    )


class QueueNumbers:
    """Takes the runs of a walk through the log in log order, then decides."""

    def __init__(self, queues: ConsumeQueues, *, log_min: int) -> None:
        self._queues = queues
        self._file_units = queues.file_units
        self._log_min = log_min
        self._claims: dict[QueueKey, list[_Claim]] = {}
        for queue in queues.all():
            if queue.proved_end:
                nothing, count = Unit(-1, 0, 0), queue.proved_end
                proved = _Claim(
                    queue.key,
                    0,
                    count,
                    nothing,
                    nothing,
                    nothing,
                    earlier_named=False,
                    last_named=False,
                    is_proved=True,
                )
                self._claims[queue.key] = [proved]

    def take(self, runs: Iterable[QueueRun]) -> None:
        """Take the next runs of the log."""
        for run in runs:
            claims = self._claims.setdefault(run.key, [])
            if not claims or claims[-1].is_proved:
                claims.append(_claim_of(run))
            elif claims[-1].end == run.queue_offset and not claims[-1].is_alone:
                claims[-1].go_on_with(run)
            else:
                if claims[-1].end != run.queue_offset:
                    claims += claims[-1].without_last()
                    claims.append(_claim_of(run, count=1))
                    claims[-1].is_alone = True
                    run = tail_of(run, 1)
                if run.units:
                    claims.append(_claim_of(run))

    def rulings(self) -> Rulings:
        """Decide about all claims that were taken."""
        found = {key: self._queue(key, claims) for key, claims in self._claims.items()}
        rulings = [ruling for queue in found.values() for ruling in self._ruled(queue)]
        rulings = [*rulings, *self._strangers(found, {id(each.claim) for each in rulings if each.place is not None})]
        last_word = {id(ruling.claim): ruling for ruling in rulings}
        told = [ruling for ruling in last_word.values() if ruling.place != (ruling.claim.key, ruling.claim.number)]
        findings = [self._finding(ruling) for ruling in told]
        return Rulings(last_word.values(), findings)

    # ---- one queue -----------------------------------------------------------------------------------------------

    def _queue(self, key: QueueKey, claims: list[_Claim]) -> _Queue:
        """Return which claims of a queue are its chain."""
        only = claims[0]
        if len(claims) == 1 and only.is_possible and only.count > 1:
            return _Queue(claims)
        self._ask_units(key, claims)
        numbering = _numbering_of(claims)
        chain = self._chain([each for each in numbering if each.is_possible and not each.is_contradicted])
        within = {id(each) for each in chain}
        return _Queue(chain, [each for each in claims if id(each) not in within])

    def _ask_units(self, key: QueueKey, claims: Sequence[_Claim]) -> None:
        """Count the stored units that support each claim. Cost: one look at each unit."""
        queue = self._queues.stored(key)
        real = [each for each in claims if not each.is_proved]
        if queue is None or not real:
            return
        firsts = [each.first.offset for each in real]
        aligned, elsewhere = 0, 0
        for number, unit in _stored_units(queue):
            at = bisect_right(firsts, unit.offset) - 1
            if at < 0 or unit.offset > real[at].last.offset or unit.is_prefill:
                continue
            claim = real[at]
            if claim.count == 1 and unit[:2] != claim.first[:2]:
                continue
            is_aligned = claim.number <= number < claim.end
            aligned += is_aligned
            elsewhere += not is_aligned and claim.count > 1
            claim.supported += is_aligned
            if claim.count == 1 and (is_aligned or (claim.found_at is None and not claim.named)):
                claim.found_at = number
        if elsewhere > aligned:
            for claim in real:
                claim.supported, claim.found_at = 0, None

    def _chain(self, claims: Sequence[_Claim]) -> list[_Claim]:
        """Return the heaviest chain of claims. Cost: n log n for n claims."""
        ends = sorted({each.end for each in claims})
        best = _GreatestOf(len(ends))
        before: list[int | None] = []
        totals: list[_Total] = []
        for index, claim in enumerate(claims):
            low, high = bisect_left(ends, claim.number - self._file_units), bisect_right(ends, claim.number)
            total, previous = best.of(low, high)
            if (
                index and claims[index - 1].end == claim.number
            ):  # no record lies between: more than another of its number
                total, previous = max((total, previous), (_plus(totals[index - 1], (0, 0, 1)), index - 1), key=_first)
            total = _plus(total, claim.weight)
            before.append(previous)
            totals.append(total)
            best.put(bisect_left(ends, claim.end), total, index)
        at: int | None = max(range(len(claims)), key=totals.__getitem__, default=None)
        chain: list[_Claim] = []
        while at is not None:
            chain.insert(0, claims[at])
            at = before[at]
        return chain

    def _ruled(self, queue: _Queue) -> Iterator[_Ruling]:
        """Decide about the claims outside of a chain, from their neighbours in the log."""
        chain = queue.chain
        if not chain:
            for claim in queue.others:
                is_located = claim.found_at is not None
                yield _Ruling(claim, (claim.key, claim.found_at) if is_located and claim.found_at is not None else None)
            return
        starts = [each.first.offset for each in chain]
        groups: dict[int, list[_Claim]] = {}
        for claim in queue.others:
            groups.setdefault(bisect_right(starts, claim.first.offset), []).append(claim)
        for at, claims in groups.items():
            before = chain[at - 1] if at else None
            behind = chain[at] if at < len(chain) else None
            yield from self._between(before, claims, behind)

    def _between(self, before: _Claim | None, claims: list[_Claim], behind: _Claim | None) -> Iterator[_Ruling]:
        low = 0 if before is None else before.end
        total = sum(each.count for each in claims)
        fits = behind is not None and behind.number - low == total
        if before is None and behind is not None and not fits:
            low = max(0, behind.number - self._file_units)  # past a longer gap the queue would not take the chain
        for claim in claims:
            number: int | None = None
            high = low + self._file_units if behind is None else behind.number
            if claim.found_at is not None and low <= claim.found_at < high:
                number = claim.found_at
            elif fits:
                number = low
            elif claim.is_possible and low <= claim.number and claim.end <= high:
                low = claim.end
                continue  # only its unit lies elsewhere
            elif behind is None and before is not None and claim.count == 1 and not self._is_within_reach(claim, low):
                number = low
            yield _Ruling(claim, None if number is None else (claim.key, number))
            low = low if number is None else number + claim.count

    def _is_within_reach(self, claim: _Claim, end: int) -> bool:
        """Return whether a queue that ends at a number holds, or can take, the claimed one."""
        return claim.is_possible and claim.number <= end + self._file_units

    # ---- records that name another queue -------------------------------------------------------------------------

    def _strangers(self, found: Mapping[QueueKey, _Queue], placed: set[int]) -> Iterator[_Ruling]:
        """Decide about single records whose place is missing from another queue."""
        lone: dict[int, list[_Claim]] = {}
        for queue in found.values():
            alone = [each for each in queue.chain if each.count == 1 and (len(queue.chain) == 1 or queue.rivals(each))]
            for claim in (*queue.others, *alone):
                is_sure = claim.is_proved or claim.named or bool(claim.supported) or id(claim) in placed
                if claim.count == 1 and not is_sure:
                    lone.setdefault(claim.number, []).append(claim)
        if not lone:
            return
        for key, queue in found.items():
            for number, low, high in self._missing(key, queue.chain):
                for claim in lone.get(number, ()):
                    if claim.key != key and low < claim.first.offset < high and self._may_be(key, number, claim):
                        yield _Ruling(claim, (key, number))
                        for rival in found[claim.key].rivals(claim):
                            yield _Ruling(rival, (rival.key, rival.number))
                        break

    def _missing(self, key: QueueKey, chain: Sequence[_Claim]) -> Iterator[tuple[int, int, int]]:
        """Yield the numbers that a queue lacks.

        Each comes with the physical offsets between which its record lies.
        """
        if not chain or (len(chain) == 1 and chain[0].count == 1 and not chain[0].supported):
            return
        first = chain[0]
        if first.number == 1 and not self._log_min:
            yield 0, -1, first.first.offset
        for before, behind in pairwise(chain):
            for number in range(before.end, behind.number):
                yield number, before.last.offset, behind.first.offset
        queue, number = self._queues.stored(key), chain[-1].end
        if queue is not None and queue.first_number <= number < queue.max_offset:
            offset = queue.offset_at(number)
            yield number, offset - 1, offset + 1

    def _may_be(self, key: QueueKey, number: int, claim: _Claim) -> bool:
        """Return whether the unit at a number, if there is one, is that of a record."""
        queue = self._queues.stored(key)
        if queue is None or not queue.first_number <= number < queue.max_offset:
            return True
        unit = next(iter(units_in(queue.stored_bytes(number, 1))), None)
        return unit is None or unit.is_prefill or unit[:2] == claim.first[:2]

    # ---- what is said of it --------------------------------------------------------------------------------------

    def _finding(self, ruling: _Ruling) -> Finding:
        claim, place = ruling.claim, ruling.place
        directory = self._queues.directory_of(claim.key)
        offset = claim.first.offset
        records = f"the record at {offset} has" if claim.count == 1 else f"{claim.count} records from {offset} on have"
        numbers = f"the number {claim.number}" if claim.count == 1 else f"the numbers {claim.number} to {claim.end - 1}"
        if place is None:
            code = "repeated_queue_offset" if claim.is_possible else "impossible_queue_offset"
            what = f"{records} {numbers}, which the queue cannot hold there: in no queue"
        else:
            code = "queue_offset_outvoted"
            what = (
                f"{records} {numbers}, but {self._queues.directory_of(place[0])} has it at {place[1]}: readers pass it"
            )
        return Finding("note", code, directory, offset, f"{directory}: {what}")


def _numbering_of(claims: list[_Claim]) -> list[_Claim]:
    """Return the claims of the numbering that counts, where it has begun again at 0."""
    numberings: list[list[_Claim]] = [[]]
    is_taken = any(claim.number == 0 and claim.supported for claim in claims)
    for claim, following in zip_longest(claims, claims[1:]):
        is_continued = not is_taken and following is not None and following.number == claim.end
        goes_on = claim.count > 1 or is_continued
        begins = claim.number == 0 and (goes_on or claim.supported > 0) and not claim.is_proved
        if begins and numberings[-1]:
            numberings.append([])
        numberings[-1].append(claim)
    supported = [sum(each.weight[0] for each in numbering) for numbering in numberings]
    is_light = claims[0].named or claims[0].key[0].startswith(_LIGHT_PREFIX)
    lengths = [sum(each.count for each in numbering) if is_light else 0 for numbering in numberings]
    return numberings[max(range(len(numberings)), key=lambda index: (supported[index], lengths[index], index))]


def _stored_units(queue: ConsumeQueue) -> Iterator[tuple[int, Unit]]:
    number = queue.first_number
    while number < queue.max_offset:
        data = queue.stored_bytes(number, min(1024, queue.max_offset - number))
        for unit in units_in(data):
            yield number, unit
            number += 1
        if not data:
            return


def _plus(one: _Total, other: _Total) -> _Total:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def _first(found: tuple[_Total, int | None]) -> _Total:
    return found[0]


class _GreatestOf:
    """The greatest total in a range of places, with its claim. Cost of a call: log n."""

    def __init__(self, places: int) -> None:
        self._size = places
        self._tree: list[tuple[_Total, int | None]] = [((0, 0, 0), None)] * (2 * places)

    def put(self, place: int, total: _Total, index: int) -> None:
        """Have a total at a place, if it is greater than the one there."""
        at = place + self._size
        while at and self._tree[at][0] < total:
            self._tree[at] = total, index
            at //= 2

    def of(self, low: int, high: int) -> tuple[_Total, int | None]:
        """Return the greatest total of `[low, high)`; nothing and None without one."""
        found: tuple[_Total, int | None] = (0, 0, 0), None
        low, high = low + self._size, high + self._size
        while low < high:
            if low % 2:
                found = max(found, self._tree[low], key=_first)
                low += 1
            if high % 2:
                high -= 1
                found = max(found, self._tree[high], key=_first)
            low, high = low // 2, high // 2
        return found
