"""Find the contract that a wrong answer under an I/O fault rule breaks.

It is the contract of the first field of the answer that no legal outcome has, given all fields before it.
"""

from collections.abc import Iterator
from dataclasses import replace

from tornpage.model.answers import Answer, Marks, PutAnswer, accepted
from tornpage.model.operations import Clean, Close, Operation, Step
from tornpage.model.state import State
from tornpage.model.step import begin, step
from tornpage.model.step_under_faults import messages_of_levels, numbers_of_level
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.lockstep.pair import Pair

__all__ = ["broken_under_fault"]

_SENTENCES = (
    ("put", 8, "a put is stored in another way than the model's"),
    ("durable", 9, "a flush fails although no disk call failed"),
    ("failed", 16, "a service gives up although no disk call failed"),
    ("clean", 2, "a close is not clean although no disk call failed"),
    ("names", 10, "other topics were deleted than the model's"),
    ("is_anew", 10, "the numbers of topics restart that were not deleted"),
    ("delays", 12, "delivery under a fault leads to an illegal state"),
    ("oldest_offset", 10, "a clean-up under a fault leaves a gap in the log"),
    ("marked", 12, "a close under a fault leads to an illegal state"),
)
"""By the field of an answer: the contract that it breaks, and the sentence."""


def broken_under_fault(pair: Pair, before: State, operation: Operation, found: Answer) -> GuaranteeBroken:
    """Return the contract that an answer breaks; no outcome from the state `before` has it."""
    legal = _LegalOutcomes(pair, before, operation)
    agreed = Answer(faults=found.faults, dispatched=found.dispatched, level_ends=found.level_ends)
    for name, contract, sentence in _SENTENCES:
        if name == "oldest_offset" and isinstance(operation, Clean) and found.marks is not None:
            begins = legal.marks(agreed, "min_offset")
            if found.marks.min_offset not in begins:
                sentence = "a clean-up under a fault deletes files that have to stay"
                return GuaranteeBroken(10, sentence, _choice(begins), str(found.marks.min_offset))
        if getattr(found, name) is None:
            continue
        narrowed = replace(agreed, **{name: getattr(found, name)})
        if not legal.is_legal(narrowed):
            expected = next(legal.outcomes(agreed), (before, Answer()))[1]
            special = _special(legal, name, expected, narrowed)
            return special or GuaranteeBroken(contract, sentence, *_texts(expected, found, name))
        agreed = narrowed
    if found.marks is None:
        return GuaranteeBroken(12, "a close under a fault leads to an illegal state", found=str(found))
    return _broken_by_marks(legal, agreed, found, found.marks)


class _LegalOutcomes:
    """The outcomes of one operation from one state."""

    def __init__(self, pair: Pair, before: State, operation: Operation) -> None:
        self.pair = pair
        self.before = before
        self.operation = operation

    def outcomes(self, agreed: Answer) -> Iterator[tuple[State, Answer]]:
        """Yield the outcomes that agree with an answer."""
        return accepted(step(self.before, self.operation, self.pair.layout, found=agreed), agreed)

    def is_legal(self, agreed: Answer) -> bool:
        """Whether an outcome agrees with an answer."""
        return next(self.outcomes(agreed), None) is not None

    def marks(self, agreed: Answer, name: str) -> set[int]:
        """Return each legal value of one watermark."""
        return {getattr(answer.marks, name) for _, answer in self.outcomes(agreed) if answer.marks is not None}


def _texts(expected: Answer, found: Answer, name: str) -> tuple[str, str]:
    return str(getattr(expected, name)), str(getattr(found, name))


def _choice(numbers: set[int]) -> str:
    return " or ".join(map(str, sorted(numbers)))


def _special(legal: _LegalOutcomes, name: str, expected: Answer, found: Answer) -> GuaranteeBroken | None:
    """Return the broken contract for fields whose sentence depends on their value."""
    match name, expected.put, found.put:
        case "put", PutAnswer() as wanted, PutAnswer() as agreed if agreed.offset < 0 <= wanted.offset:
            sentence = "a put is refused although no disk call failed"
            return GuaranteeBroken(8, sentence, wanted.status, agreed.status)
    if name == "names" and found.names == "refused":
        sentence = "a deletion is refused although no disk call failed"
        return GuaranteeBroken(10, sentence, *_texts(expected, found, name))
    if name == "is_anew" and not found.is_anew:
        sentence = "a deletion is reported as done, but the numbers of its topics continue"
        return GuaranteeBroken(10, sentence, str(found.names))
    if name == "delays":
        return _broken_by_close(legal, found) if isinstance(legal.operation, Close) else _broken_by_levels(legal, found)
    return None


def _broken_by_marks(legal: _LegalOutcomes, agreed: Answer, found: Answer, marks: Marks) -> GuaranteeBroken:
    promised = (legal.before.log.flushed_offset, *marks[1:])
    if list(promised) != sorted(promised):
        sentence = "the watermarks are out of order under a fault"
        return GuaranteeBroken(9, sentence, "flushed before <= flushed <= committed <= written", str(promised))
    observed("check", legal.pair.store.check)
    if marks.end not in (ends := legal.marks(agreed, "end")):
        if isinstance(legal.operation, Step) and agreed.delays is not None:
            sentence = "a delivery round under a fault reports other progress than it puts"
            return GuaranteeBroken(12, sentence, f"a log that ends at {_choice(ends)}", str(marks.end))
        return GuaranteeBroken(8, "the log ends at another offset than its answers", _choice(ends), str(marks.end))
    if isinstance(found.put, PutAnswer) and marks.flushed < (end := found.put.offset + found.put.size_bytes):
        return GuaranteeBroken(2, "a put is acknowledged past the flushed offset", str(end), str(marks.flushed))
    if found.durable and marks.flushed < marks.end:
        sentence = "a flush is called durable past the flushed offset"
        return GuaranteeBroken(2, sentence, str(marks.end), str(marks.flushed))
    sentence = "an operation under a fault leads to an illegal state"
    return GuaranteeBroken(9, sentence, f"one that {legal.operation.op} may lead to", str(marks))


# ---- delay levels ----------------------------------------------------------------------------------------------------


def _with_level(found: Answer, level: int, number: int | None) -> Answer:
    """Return an answer in which one level has another number, or none."""
    levels = {each: agreed for each, agreed in found.delays or () if each != level}
    levels |= {} if number is None else {level: number}
    return replace(found, delays=tuple(sorted(levels.items())))


def _broken_by_close(legal: _LegalOutcomes, found: Answer) -> GuaranteeBroken | None:
    """Return the first level that a close advanced without a copy of its own."""
    known = dict(legal.before.log.delays)
    for level, number in found.delays or ():
        if legal.is_legal(_with_level(found, level, known.get(level, 0))):
            return GuaranteeBroken(12, f"level {level} advances at a close", str(known.get(level, 0)), str(number))
    return None


def _broken_by_levels(legal: _LegalOutcomes, found: Answer) -> GuaranteeBroken | None:
    """Return the first level that went back, delivered too early, or stopped without a reason.

    A level advances over due messages, in order, each with its copy.
    """
    layout, state = legal.pair.layout, begin(legal.before, legal.operation, legal.pair.layout)
    units, agreed = messages_of_levels(state.log, layout), dict(found.delays or ())
    levels = [*sorted(agreed.keys() - units.keys()), *sorted(units)]
    numbers = {level: numbers_of_level(state, level, units.get(level, ()), layout) for level in levels}
    for level in levels:
        known = [number for number in numbers[level] if number is not None]
        number = agreed.get(level)
        if number in numbers[level]:
            continue
        if level not in units:
            sentence = "a level without messages advances"
            return GuaranteeBroken(12, sentence, f"{known[0]} to {known[-1]}", str(number))
        if number is None or not known[0] <= number <= units[level][-1].queue_offset + 1:
            sentence = f"level {level} goes back, or past its end"
            return GuaranteeBroken(12, sentence, f"{known[0]} or more", str(number))
        sentence = f"level {level} delivers a message that is not due"
        return GuaranteeBroken(12, sentence, f"until {state.clock.wall_ms}", str(number))
    for level in levels:
        number = max(agreed.get(level, 0), *(unit.queue_offset for unit in units.get(level, ())[:1]), 0)
        for other in numbers[level]:
            if other != agreed.get(level) and legal.is_legal(_with_level(found, level, other)):
                if other is not None and other > number:
                    return GuaranteeBroken(12, f"level {level} stops at message {number}, which is due")
                return GuaranteeBroken(12, f"level {level} advances past a copy that cannot be in the log")
    return None
