"""Parse the text of an I/O fault rule: `sync-lost: kind=log and op=sync and nth=3`.

    fault     = effect [ ":" [ predicate ] ]
    predicate = conjunction { "or" conjunction }
    conjunction = negation { "and" negation }
    negation  = "not" negation | "(" predicate ")" | test
    test      = name "=" value { "," value }

Values may be quoted. Without a predicate a rule hits every call that its effect can hit. Every mistake is reported with
its column and the most similar names.
"""

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tornpage.model.operations import AimFault
from tornpage.properties.program.fault_calls import KINDS, OPERATIONS
from tornpage.properties.program.fault_effects import EFFECTS
from tornpage.properties.program.fault_predicates import (
    And,
    Every,
    Kind,
    Not,
    Nth,
    Operation,
    Or,
    Path,
    Predicate,
    Probability,
    text_of,
)

__all__ = ["TESTS", "BadFaultRule", "fault_rule_of", "parse_fault", "parse_predicate", "simpler_rules"]

TESTS: dict[str, str] = {
    "path": "a pattern with * and ?, of the whole path or of its end",
    "kind": "the kind of file, or several",
    "op": "the operation, or several",
    "nth": "the n-th call that meets all other tests",
    "every": "each n-th call that meets all other tests",
    "probability": "this share of the calls that meet all other tests, drawn by the seed",
}
"""Each test and its meaning."""

_DEPTH_MAX = 40
_DIGITS_MAX = 9
_TOKEN = re.compile(r'\s*(?:(?P<sign>[()=])|"(?P<quoted>[^"]*)"|(?P<word>[^\s()="]+))')


class BadFaultRule(ValueError):
    """A text that is not a fault rule; `column` counts from 1."""

    def __init__(self, text: str, column: int, sentence: str) -> None:
        self.text, self.column, self.sentence = text, column, sentence
        super().__init__(f"column {column}: {sentence}\n  {text}\n  {' ' * (column - 1)}^")


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    column: int
    is_word: bool


def parse_fault(text: str) -> tuple[str, Predicate]:
    """Return effect and predicate of a fault rule. Raises BadFaultRule."""
    name, _, where = text.partition(":")
    effect = name.strip()
    column = 1 + len(name) - len(name.lstrip())
    if not effect:
        raise BadFaultRule(text, column, f"a fault begins with its name: {_listed(EFFECTS)}")
    if effect not in EFFECTS:
        raise BadFaultRule(text, column, _unknown("fault", effect, EFFECTS))
    return effect, _Parser(text, len(name) + 1, effect).whole() if where.strip() else And()


def parse_predicate(text: str, effect: str) -> Predicate:
    """Return the predicate in a text, for a rule with a known effect. Raises BadFaultRule."""
    return _Parser(text, 0, effect).whole() if text.strip() else And()


class _Parser:
    """Parses one text from a position on."""

    def __init__(self, text: str, start: int, effect: str) -> None:
        self._text = text
        self._effect = effect
        self._tokens = list(self._split(start))
        self._next = 0
        self._depth = 0

    def _split(self, position: int) -> Iterable[_Token]:
        while self._text[position:].strip():
            found = _TOKEN.match(self._text, position)
            if found is None:
                column = position + len(self._text[position:]) - len(self._text[position:].lstrip()) + 1
                raise BadFaultRule(self._text, column, "a quotation mark is not closed")
            kind = str(found.lastgroup)
            start = found.start(kind) - (kind == "quoted")
            yield _Token(found[kind], start + 1, kind != "sign")
            position = found.end()

    def _peek(self) -> _Token:
        end = _Token("", len(self._text.rstrip()) + 1, False)
        return self._tokens[self._next] if self._next < len(self._tokens) else end

    def _take(self) -> _Token:
        token = self._peek()
        self._next += 1
        return token

    def _takes(self, text: str) -> bool:
        if self._peek().text != text:
            return False
        self._next += 1
        return True

    def _bad(self, token: _Token, sentence: str) -> BadFaultRule:
        return BadFaultRule(self._text, token.column, sentence)

    def whole(self) -> Predicate:
        predicate = self._either()
        if self._next < len(self._tokens):
            token = self._peek()
            missing = f"'and' or 'or' is missing before {token.text!r}"
            raise self._bad(token, "no parenthesis is open" if token.text == ")" else missing)
        return predicate

    def _either(self) -> Predicate:
        parts = [self._all_of()]
        while self._takes("or"):
            parts.append(self._all_of())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _all_of(self) -> Predicate:
        parts = [self._negation()]
        while self._takes("and"):
            parts.append(self._negation())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _negation(self) -> Predicate:
        opening = self._peek()
        if self._depth == _DEPTH_MAX:
            raise self._bad(opening, f"parentheses and negations go {_DEPTH_MAX} deep at most")
        self._depth += 1
        found = self._negated(opening)
        self._depth -= 1
        return found

    def _negated(self, opening: _Token) -> Predicate:
        if self._takes("not"):
            return Not(self._negation())
        if self._takes("("):
            inside = self._either()
            if not self._takes(")"):
                raise self._bad(self._peek(), f"the parenthesis of column {opening.column} is not closed")
            return inside
        return self._test()

    def _test(self) -> Predicate:
        name = self._take()
        if not name.is_word or name.text in ("and", "or", "not"):
            what = f"instead of {name.text!r}" if name.text else "at the end"
            raise self._bad(name, f"a test such as kind=log is expected {what}")
        if name.text not in TESTS:
            raise self._bad(name, _unknown("test", name.text, TESTS))
        if not self._takes("="):
            raise self._bad(self._peek(), f"'=' is expected after {name.text!r}")
        value = self._take()
        if not value.is_word:
            raise self._bad(value, f"{name.text} has no value")
        return self._tested(name.text, value)

    def _tested(self, name: str, value: _Token) -> Predicate:
        match name:
            case "path":
                return Path(value.text)
            case "kind":
                return Kind(self._names(value, "kind", KINDS))
            case "op":
                names = self._names(value, "operation", OPERATIONS)
                hit = EFFECTS[self._effect].operations
                if not set(names) & set(hit):
                    raise self._bad(value, f"{self._effect} never hits {value.text}: it hits {_listed(hit)}")
                return Operation(names)
            case "nth":
                return Nth(self._count(value, name))
            case "every":
                return Every(self._count(value, name))
            case _:
                return Probability(self._share(value))

    def _names(self, value: _Token, what: str, known: Iterable[str]) -> tuple[str, ...]:
        column, names = value.column, []
        for name in value.text.split(","):
            if name not in known:
                raise BadFaultRule(self._text, column, _unknown(what, name, known))
            names.append(name)
            column += len(name) + 1
        return tuple(names)

    def _count(self, value: _Token, name: str) -> int:
        digits = value.text if value.text.isascii() and len(value.text) <= _DIGITS_MAX else ""
        if not digits.isdigit() or not int(digits):
            raise self._bad(value, f"{name} is a number from 1 to {10**_DIGITS_MAX - 1:,}, not {value.text!r}")
        return int(value.text)

    def _share(self, value: _Token) -> float:
        try:
            share = float(value.text)
        except ValueError:
            share = -1.0
        if not 0 < share <= 1:
            raise self._bad(value, f"probability is more than 0 and at most 1, not {value.text!r}")
        return share


def _unknown(what: str, name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=2, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    return f"unknown {what} {name!r}; {hint}there are: {_listed(known)}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def fault_rule_of(text: str, *, seed: int = 0) -> AimFault:
    """Return the fault rule in a text, in plain spelling. Raises BadFaultRule."""
    effect, predicate = parse_fault(text)
    return AimFault(effect, text_of(predicate), seed)


def simpler_rules(aim: AimFault) -> Iterator[AimFault]:
    """Yield fault rules with fewer words, with smaller numbers, or without a seed."""
    for predicate in _simpler(parse_predicate(aim.where, aim.effect)):
        yield replace(aim, where=text_of(predicate))
    if aim.seed:
        yield replace(aim, seed=0)


def _simpler(predicate: Predicate) -> Iterator[Predicate]:
    if predicate != And():
        yield And()
    match predicate:
        case And(parts) | Or(parts):
            yield from parts
            for number, part in enumerate(parts):
                for simpler in _simpler(part):
                    if simpler != And():
                        yield type(predicate)((*parts[:number], simpler, *parts[number + 1 :]))
        case Not(part):
            yield part
        case Nth(number) | Every(number) if number > 1:
            yield from (Nth(each) for each in (1, number // 2, number - 1) if each < number)
        case Probability():
            yield Nth(1)
