"""The operations of property filters: values, comparisons, three-valued logic.

A value is a boolean, a number, a string, or None for unknown. Source: `ComparisonExpression`, `LogicExpression`.
"""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

__all__ = [
    "Node",
    "Properties",
    "Value",
    "all_of",
    "any_of",
    "condition",
    "equality",
    "inversion",
    "literal",
    "membership",
    "negation",
    "order",
    "require_equality",
    "require_range",
]

Value = bool | int | float | str | None
Properties = Mapping[str, str]

_DEPTH_MAX = 200
_INT_MAX = (1 << 31) - 1
_LONG_MAX = (1 << 63) - 1
_WHOLE_TEXT = re.compile(r"[+-]?[0-9]+", re.ASCII)
_FLOATING_TEXT = re.compile(
    r"[\x00-\x20]*([+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))(?:(?<!y)(?<!N)[fFdD])?[\x00-\x20]*",
    re.ASCII,
)
_ORDERS: dict[str, Callable[[int, int], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


@dataclass(frozen=True, slots=True)
class Node:
    """A part of an expression.

    `constant` is the value of a literal; only literals have the kind "literal".
    """

    kind: Literal["literal", "name", "boolean", "number"]
    evaluate: Callable[[Properties], Value]
    depth: int = 1
    constant: Value = None


def _number_like(text: str, pattern: Value) -> int | float:
    """Parse a string as a number of the kind of `pattern`. Raises ValueError."""
    if isinstance(pattern, float):
        return _floating(text)
    if not _WHOLE_TEXT.fullmatch(text):
        raise ValueError(f"{text!r} is no whole number")
    number = int(text)
    assert isinstance(pattern, int)
    limit = _INT_MAX if abs(pattern) <= _INT_MAX else _LONG_MAX
    if not -limit - 1 <= number <= limit:
        raise ValueError(f"{text!r} is too large")
    return number


def _floating(text: str) -> float:
    found = _FLOATING_TEXT.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no number")
    return float(found[1])


def _compared(left: Value, right: Value) -> int:
    """Compare two values as `Comparable.compareTo` does; return -1, 0 or 1.

    Conversions are those of `ComparisonExpression`.
    """
    if isinstance(left, bool) or isinstance(right, bool):
        return _compared_with_boolean(left, right)
    if isinstance(left, str) and not isinstance(right, str):
        left = _number_like(left, right)
    elif isinstance(right, str) and not isinstance(left, str):
        right = _number_like(right, left)
    first, second = (left != left, left), (right != right, right)  # NaN is greater than every number, and than itself
    return (first > second) - (first < second)


def _compared_with_boolean(left: Value, right: Value) -> int:
    if isinstance(left, bool) and isinstance(right, str):
        raise ValueError("a boolean on the left cannot be compared with a string")
    if isinstance(left, str) and isinstance(right, bool):
        left = left.lower() == "true"
    if isinstance(left, bool) and isinstance(right, bool):
        return left - right
    return -1


def _equal(left: Value, right: Value) -> bool | None:
    if left is None:
        return True if right is None else None
    if right is None:
        return False
    return _compared(left, right) == 0


def _inverted(value: Value) -> bool | None:
    return None if value is None else not value


def _ordered(left: Value, right: Value, accepts: Callable[[int, int], bool]) -> bool | None:
    if left is None or right is None:
        return None
    if isinstance(left, str) and isinstance(right, str):
        left, right = _floating(left), _floating(right)
    return accepts(_compared(left, right), 0)


def _boolean(evaluate: Callable[[Properties], Value], *parts: Node) -> Node:
    depth = 1 + max(part.depth for part in parts)
    if depth > _DEPTH_MAX:
        raise ValueError(f"the expression is more than {_DEPTH_MAX} levels deep")
    return Node("boolean", evaluate, depth)


def _is_boolean(node: Node) -> bool:
    return node.kind == "boolean" or (node.kind == "literal" and (node.constant is None or node.constant is True
                                                                  or node.constant is False))  # fmt: skip


def condition(node: Node) -> Node:
    """Return a node that is a condition.

    A property used as a condition is false, since it is a string.
    """
    if _is_boolean(node):
        return node
    if node.kind == "name":
        evaluate = node.evaluate
        return _boolean(lambda properties: None if evaluate(properties) is None else False, node)
    raise ValueError("a condition is required instead of a value")


def _require_ordered(node: Node) -> Node:
    if _is_boolean(node) or isinstance(node.constant, str):
        raise ValueError("only numbers and properties can be ordered")
    return node


def order(left: Node, symbol: str, right: Node) -> Node:
    """Return a comparison by > >= < or <=."""
    first, second = _require_ordered(left).evaluate, _require_ordered(right).evaluate
    accepts = _ORDERS[symbol]
    return _boolean(lambda properties: _ordered(first(properties), second(properties), accepts), left, right)


def any_of(nodes: Sequence[Node]) -> Node:
    """Return OR: true if any part is true, unknown if a part is unknown and none is true."""
    parts = [node.evaluate for node in nodes]

    def evaluate(properties: Properties) -> Value:
        result: Value = False
        for part in parts:
            value = part(properties)
            if value:
                return True
            if value is None:
                result = None
        return result

    return _boolean(evaluate, *nodes)


def all_of(nodes: Sequence[Node]) -> Node:
    """Return AND: false if any part is false, unknown if a part is unknown and none is false."""
    parts = [node.evaluate for node in nodes]

    def evaluate(properties: Properties) -> Value:
        result: Value = True
        for part in parts:
            value = part(properties)
            if value is False:
                return False
            if value is None:
                result = None
        return result

    return _boolean(evaluate, *nodes)


def literal(value: Value) -> Node:
    """Return a literal value."""
    return Node("literal", lambda _: value, constant=value)


def equality(left: Node, right: Node) -> Node:
    """Return `left = right`; neither may be the literal NULL, for which there is IS."""
    first, second = left.evaluate, right.evaluate
    return _boolean(lambda properties: _equal(first(properties), second(properties)), left, right)


def inversion(node: Node) -> Node:
    """Return NOT of a condition: unknown stays unknown."""
    evaluate = node.evaluate
    return _boolean(lambda properties: _inverted(evaluate(properties)), node)


def negation(node: Node) -> Node:
    """Return a value with the opposite sign; unknown for strings, booleans and properties."""
    evaluate = node.evaluate

    def negated(properties: Properties) -> Value:
        value = evaluate(properties)
        return None if value is None or isinstance(value, (bool, str)) else -value

    return replace(_boolean(negated, node), kind="number")


def membership(node: Node, texts: frozenset[str]) -> Node:
    """Return whether a property equals one of some strings."""
    if node.kind != "name":
        raise ValueError("the left side of IN must be a property")
    evaluate = node.evaluate

    def is_member(properties: Properties) -> Value:
        value = evaluate(properties)
        return None if value is None else value in texts

    return _boolean(is_member, node)


def require_range(low: Node, high: Node) -> None:
    """Raise ValueError for a BETWEEN of two literals with an empty range."""
    if low.kind == high.kind == "literal":
        if low.constant is None or high.constant is None:
            raise ValueError("BETWEEN does not accept NULL")
        if _compared(high.constant, low.constant) < 0:
            raise ValueError(f"no value lies between {low.constant} and {high.constant}")


def require_equality(left: Node, right: Node) -> None:
    """Raise ValueError for operands of = and <> that cannot be compared."""
    if any(node.kind == "literal" and node.constant is None for node in (left, right)):
        raise ValueError("use IS to compare with NULL")
    if (
        left.kind == right.kind == "literal"
        and isinstance(left.constant, bool)
        and not isinstance(right.constant, bool)
    ):
        raise ValueError("a boolean can only be compared with a boolean")
