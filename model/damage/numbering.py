"""Specify the queue offsets of a log that contradicts itself (contracts 17 and 18).

No checksum of RocketMQ 4.9.3 covers the topic, the queue id and the queue offset of a record. An `Entry` is what one
record claims in one queue.

1. The entries of a queue, in log order, are divided into pieces. An entry next to a break in the numbers is a piece of
   its own. All entries between two such pieces are one piece.
2. A stored unit points into a piece if it points between its first and its last record. Into a piece of one entry it
   points only with the offset and the size of that record. A unit at a claimed number supports the piece. If more units
   point into pieces of several entries at other numbers than at claimed ones, then no unit of the queue counts.
3. A numbering begins at a piece with the number 0 that has several entries, that a unit supports, or that another piece
   continues while no unit supports another piece with the number 0. The numbering with the most supporting units is
   used. Of several, the longest one is used for a light queue, and then the last one.
4. The chain is the best sequence of pieces of that numbering. Numbers ascend in it, and a gap is at most one queue
   file. The best one has the most supporting units, then the most entries, then the most pieces that continue the piece
   before them. A piece of one entry is left out if the unit of its record has another number.
5. A piece outside the chain lies between two pieces of the chain. It gets the number of its unit if that lies between
   them. Otherwise it gets the numbers between them if these are exactly as many as the entries between them. Otherwise
   it keeps its numbers if they lie between them. Before the first piece of the chain, numbers further away than a queue
   file do not count as between. After the end of the chain, a piece of one entry whose number no queue can reach gets
   the next number. Each other piece is in no queue.
6. A number is missing from a queue if it lies between two pieces of the chain, if it is the number 0 of a log that has
   lost nothing, or if the file has one more unit after the chain. A piece of one entry without support and without
   another place gets a missing number that it claims, if its record lies in between. It is outside the chain of its own
   queue, alone in it, or another entry has its number. That other entry then keeps the number in its place.
7. Queues are filled in log order. A number that is taken is left out, and so is a number past a gap of more than one
   queue file. Stored units directly before the first number stay, as far as they point to records of the log in
   ascending order. The first of them is the minimum of the queue.

Where the rules allow several results, each of them is legal. The facts come from outside, and nothing is opened here.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

from tornpage.model.dispatch import LIGHT_PREFIX, Queue

__all__ = ["Entry", "Evidence", "Numbering", "numberings"]

_NUMBER_MAX = (1 << 62) // 20
"""The greatest number that a unit of 20 bytes can have."""
_RESULTS_MAX = 64
"""The greatest number of results that are followed."""

_Weight = tuple[int, int, int]
"""Supporting units, entries, and pieces that continue the piece before them."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The claim of one record in one queue.

    `is_named` says that the record names the queue in its properties (multi-dispatch).
    """

    offset: int
    size_bytes: int
    queue: Queue
    number: int
    is_named: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a damaged store holds.

    `entries` are in log order. `units` has offset and size of each unit by queue and number, None for pre-fill. Queue
    files hold `file_units` units. `has_begin` says that the log begins at offset 0.
    """

    entries: Sequence[Entry]
    units: Mapping[Queue, Mapping[int, tuple[int, int] | None]]
    file_units: int
    begin_offset: int


@dataclass(frozen=True, slots=True)
class Numbering:
    """A legal result: the entry at each number of each queue, by queue.

    `first` is the minimum of each queue. `moved` has the first entry of each piece that gets another place than the
    claimed one, with the queue of that place. `left_out` has the first entry of each piece that is in no queue by
    rule 5.
    """

    queues: Mapping[Queue, Mapping[int, Entry]]
    first: Mapping[Queue, int]
    moved: Mapping[Entry, Queue]
    left_out: Collection[Entry]


def numberings(evidence: Evidence) -> list[Numbering]:
    """Return all legal results.

    Return none if there are too many to follow, or if rule 6 allows several.
    """
    pieces = {queue: _pieces(entries) for queue, entries in _by_queue(evidence.entries).items()}
    for queue, several in pieces.items():
        _ask_units(several, evidence.units.get(queue, {}))
    chains = {queue: _chains(queue, several, evidence) for queue, several in pieces.items()}
    count = 1
    for some in chains.values():
        count *= len(some)
    if count > _RESULTS_MAX:
        return []
    found = []
    for chosen in product(*chains.values()):
        numbering = _result(dict(zip(chains, chosen, strict=True)), pieces, evidence)
        if numbering is None:
            return []
        found.append(numbering)
    return found


@dataclass(slots=True, eq=False)
class _Piece:
    """Entries of one queue with consecutive numbers (rule 1)."""

    entries: list[Entry]
    support: int = 0
    found_at: int | None = None

    @property
    def first(self) -> Entry:
        return self.entries[0]

    @property
    def number(self) -> int:
        return self.entries[0].number

    @property
    def end(self) -> int:
        return self.number + len(self.entries)

    @property
    def is_one(self) -> bool:
        return len(self.entries) == 1

    @property
    def is_possible(self) -> bool:
        return self.number >= 0 and self.end <= _NUMBER_MAX

    @property
    def is_named(self) -> bool:
        return any(entry.is_named for entry in self.entries)

    @property
    def is_contradicted(self) -> bool:
        return self.is_one and self.found_at is not None and self.found_at != self.number


_Chain = list[_Piece]


def _by_queue(entries: Sequence[Entry]) -> dict[Queue, list[Entry]]:
    found: dict[Queue, list[Entry]] = {}
    for entry in entries:
        found.setdefault(entry.queue, []).append(entry)
    return found


def _pieces(entries: Sequence[Entry]) -> list[_Piece]:
    """Divide the entries of a queue (rule 1)."""
    breaks = [False, *(after.number != before.number + 1 for before, after in pairwise(entries)), False]
    found: list[_Piece] = []
    goes_on = False
    for entry, *beside in zip(entries, breaks, breaks[1:], strict=False):
        if goes_on and not any(beside):
            found[-1].entries.append(entry)
        else:
            found.append(_Piece([entry]))
        goes_on = not any(beside)
    return found


def _ask_units(pieces: Sequence[_Piece], units: Mapping[int, tuple[int, int] | None]) -> None:
    """Count the units that support each piece (rule 2)."""
    if len(pieces) == 1 and not pieces[0].is_one and pieces[0].is_possible:
        return
    aligned = elsewhere = 0
    for number, unit in sorted(units.items()):
        for piece in pieces:
            if unit is None or not _points_into(unit, piece):
                continue
            is_claimed = piece.number <= number < piece.end
            aligned += is_claimed
            piece.support += is_claimed
            elsewhere += not is_claimed and not piece.is_one
            if piece.is_one and (is_claimed or (piece.found_at is None and not piece.is_named)):
                piece.found_at = number
    if elsewhere > aligned:
        for piece in pieces:
            piece.support, piece.found_at = 0, None


def _points_into(unit: tuple[int, int], piece: _Piece) -> bool:
    if piece.is_one:
        return unit == (piece.first.offset, piece.first.size_bytes)
    return piece.first.offset <= unit[0] <= piece.entries[-1].offset


def _chains(queue: Queue, pieces: Sequence[_Piece], evidence: Evidence) -> list[_Chain]:
    """Return the best chains of a queue (rules 3 and 4), an empty one without a piece."""
    parts: list[list[_Piece]] = [[]]
    is_taken = any(piece.number == 0 and piece.support for piece in pieces)
    for at, piece in enumerate(pieces):
        is_continued = at + 1 < len(pieces) and pieces[at + 1].number == piece.end and not is_taken
        if piece.number == 0 and (not piece.is_one or is_continued or piece.support) and parts[-1]:
            parts.append([])
        parts[-1].append(piece)
    is_light = pieces[0].is_named or queue[0].startswith(LIGHT_PREFIX)

    def worth(index: int) -> tuple[int, int, int]:
        length = sum(len(piece.entries) for piece in parts[index]) if is_light else 0
        return sum(piece.support for piece in parts[index]), length, index

    used = parts[max(range(len(parts)), key=worth)]
    usable = [piece for piece in used if piece.is_possible and not piece.is_contradicted]
    return _best_chains(usable, evidence.file_units)


def _best_chains(pieces: Sequence[_Piece], file_units: int) -> list[_Chain]:
    weights: list[_Weight] = []
    chains: list[list[_Chain]] = []
    for at, piece in enumerate(pieces):
        best: _Weight = (0, 0, 0)
        before: list[_Chain] = [[]]
        for other in range(at):
            if not 0 <= piece.number - pieces[other].end <= file_units:
                continue
            support, entries, joins = weights[other]
            weight = support, entries, joins + (other == at - 1 and pieces[other].end == piece.number)
            if weight > best:
                best, before = weight, []
            if weight == best:
                before += chains[other][: _RESULTS_MAX + 1]
        weights.append((best[0] + piece.support, best[1] + len(piece.entries), best[2]))
        chains.append([[*chain, piece] for chain in before[: _RESULTS_MAX + 1]])
    greatest = max(weights, default=None)
    return [chain for weight, some in zip(weights, chains, strict=True) if weight == greatest for chain in some] or [[]]


_Places = dict[int, tuple[Queue, int] | None]
"""The place of a piece by its identity: its queue and first number, None for no queue."""


def _result(
    chains: Mapping[Queue, _Chain], pieces: Mapping[Queue, list[_Piece]], evidence: Evidence
) -> Numbering | None:
    """Return the result that follows from chains, or None if rule 6 allows several."""
    places: _Places = {}
    for queue, chain in chains.items():
        inside = {id(piece) for piece in chain}
        others = [piece for piece in pieces[queue] if id(piece) not in inside]
        places.update(_outside(queue, chain, others, evidence.file_units))
    taken = _Missing(chains, pieces, evidence, places).taken()
    if taken is None:
        return None
    places.update(taken)
    return _filled([piece for several in pieces.values() for piece in several], places, evidence)


def _outside(queue: Queue, chain: _Chain, others: Sequence[_Piece], file_units: int) -> _Places:
    """Return the places of the pieces outside the chain (rule 5)."""
    if not chain:
        return {id(piece): None if piece.found_at is None else (queue, piece.found_at) for piece in others}
    places: _Places = {}
    for at in range(len(chain) + 1):
        before = chain[at - 1] if at else None
        after = chain[at] if at < len(chain) else None
        here = [
            piece
            for piece in others
            if (before is None or before.first.offset <= piece.first.offset)
            and (after is None or piece.first.offset < after.first.offset)
        ]
        next_number = before.end if before is not None else 0
        fills = after is not None and after.number - next_number == sum(len(piece.entries) for piece in here)
        if before is None and after is not None and not fills:
            next_number = max(0, after.number - file_units)
        for piece in here:
            bound = after.number if after is not None else next_number + file_units
            is_reachable = piece.is_possible and piece.number <= next_number + file_units
            if piece.found_at is not None and next_number <= piece.found_at < bound:
                number: int | None = piece.found_at
            elif fills:
                number = next_number
            elif piece.is_possible and next_number <= piece.number and piece.end <= bound:
                next_number = piece.end
                continue
            else:
                number = next_number if after is None and before is not None and piece.is_one else None
                number = None if is_reachable else number
            places[id(piece)] = None if number is None else (queue, number)
            next_number = next_number if number is None else number + len(piece.entries)
    return places


class _Missing:
    """The missing numbers, and the pieces of one entry that may belong there (rule 6)."""

    def __init__(
        self,
        chains: Mapping[Queue, _Chain],
        pieces: Mapping[Queue, list[_Piece]],
        evidence: Evidence,
        places: Mapping[int, tuple[Queue, int] | None],
    ) -> None:
        self._chains = chains
        self._pieces = pieces
        self._evidence = evidence
        self._places = places

    def taken(self) -> _Places | None:
        """Return the places of pieces that belong to another queue.

        Return None if several results are legal.
        """
        lone = [(piece, rival) for queue in self._chains for piece, rival in self._lone(queue)]
        found: _Places = {}
        is_lone = {id(piece) for piece, _ in lone}
        for queue in self._chains:
            for number, low, high in self._numbers(queue):
                fitting = [
                    (piece, rival)
                    for piece, rival in lone
                    if piece.number == number
                    and piece.first.queue != queue
                    and low < piece.first.offset < high
                    and self._may_be(queue, number, piece.first)
                ]
                if len(fitting) > 1:
                    return None
                for piece, rival in fitting:
                    if id(piece) in found or (rival is not None and id(rival) in is_lone):
                        return None
                    found[id(piece)] = queue, number
                    if rival is not None:
                        found[id(rival)] = rival.first.queue, rival.number
        return found

    def _lone(self, queue: Queue) -> Iterator[tuple[_Piece, _Piece | None]]:
        """Yield the pieces of a queue that may belong to another one.

        Each comes with the piece that then keeps its number, or None.
        """
        chain = self._chains[queue]
        inside = {id(piece) for piece in chain}
        others = [piece for piece in self._pieces[queue] if id(piece) not in inside]
        for piece in self._pieces[queue]:
            rival = None
            if id(piece) in inside:
                same = (other for other in others if other.is_one and other.number == piece.number)
                rival = next(same, None)
                if rival is None and len(chain) > 1:
                    continue
            is_placed = self._places.get(id(piece)) is not None
            if piece.is_one and not (piece.is_named or piece.support or is_placed):
                yield piece, rival

    def _numbers(self, queue: Queue) -> Iterator[tuple[int, int, int]]:
        """Yield each missing number of a queue, with the offsets between which its record lies."""
        chain, units = self._chains[queue], self._evidence.units.get(queue, {})
        if not chain or (len(chain) == 1 and chain[0].is_one and not chain[0].support):
            return
        if chain[0].number == 1 and not self._evidence.begin_offset:
            yield 0, -1, chain[0].first.offset
        for before, after in pairwise(chain):
            for number in range(before.end, after.number):
                yield number, before.entries[-1].offset, after.first.offset
        unit = units.get(chain[-1].end)
        if unit is not None:
            yield chain[-1].end, unit[0] - 1, unit[0] + 1

    def _may_be(self, queue: Queue, number: int, entry: Entry) -> bool:
        unit = self._evidence.units.get(queue, {}).get(number)
        return unit is None or unit == (entry.offset, entry.size_bytes)


def _filled(pieces: Sequence[_Piece], places: _Places, evidence: Evidence) -> Numbering:
    """Fill the queues in log order (rule 7)."""
    numbers: dict[Entry, tuple[Queue, int]] = {}
    moved: dict[Entry, Queue] = {}
    left_out: list[Entry] = []
    for piece in pieces:
        claimed = piece.first.queue, piece.number
        place = places.get(id(piece), claimed)
        if place is None:
            left_out.append(piece.first)
            continue
        if place != claimed:
            moved[piece.first] = place[0]
        for at, entry in enumerate(piece.entries):
            numbers[entry] = place[0], place[1] + at
    queues: dict[Queue, dict[int, Entry]] = {}
    for entry in evidence.entries:
        if entry not in numbers:
            continue
        queue, number = numbers[entry]
        there = queues.get(queue, {})
        end = max(there, default=number - 1) + 1
        if 0 <= number <= _NUMBER_MAX and 0 <= number - end <= evidence.file_units:
            queues.setdefault(queue, {})[number] = entry
    first = {
        queue: _first(min(there.items()), evidence.units.get(queue, {}), evidence) for queue, there in queues.items()
    }
    return Numbering(queues, first, moved, left_out)


def _first(place: tuple[int, Entry], units: Mapping[int, tuple[int, int] | None], evidence: Evidence) -> int:
    """Return the minimum of a queue whose first entry is at a place."""
    number, bound = place[0], place[1].offset
    if number > max(units, default=-1) + 1:
        return number
    while (unit := units.get(number - 1)) is not None and evidence.begin_offset <= unit[0] <= bound - unit[1]:
        number, bound = number - 1, unit[0]
    return number
