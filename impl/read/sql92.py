"""The expressions of property filters: RocketMQ's subset of SQL92.

    a > 5 AND b IN ('x', 'y') OR NOT (c IS NULL) AND price BETWEEN 1.5 AND 10

Comparisons are = <> > >= < <=, BETWEEN, IN, IS NULL and their NOT forms. Values are strings in single quotes (a quote
is doubled), whole numbers of 64 bits, floating point numbers, TRUE, FALSE, and properties by name. Keywords are
case-insensitive, names are not. NOT and signs bind tighter than comparisons, AND tighter than OR; `--` and `/* */`
begin comments.

A property is a string, or unknown (None) if the record has none of that name. Compared with a number it is parsed as
a number of the same kind: whole within 32 bits, whole, or floating point. Two strings are ordered as numbers. An
expression that cannot be evaluated raises ValueError. A record matches if the result is true: neither false, nor
unknown, nor an error. The results are those of 4.9.3, oddities included (docs/departures.md), since the bit maps that
it wrote were computed with them.
Source: `SelectorParser`, `ComparisonExpression`, `UnaryExpression`, `LogicExpression`.
"""

from collections.abc import Callable
from functools import cache, lru_cache

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import LarkError, VisitError

from tornpage.impl.errors import BadFilter
from tornpage.impl.read import sql92_nodes as nodes
from tornpage.impl.read.sql92_nodes import Node, Properties, Value

__all__ = ["compile_expression"]

_GRAMMAR = r"""
    start: _disjunction
    _disjunction: _conjunction | any_of
    any_of: _conjunction ("OR"i _conjunction)+
    _conjunction: _equality | all_of
    all_of: _equality ("AND"i _equality)+

    _equality: _comparison | equal | unequal | is_null | is_not_null
    equal: _equality "=" _comparison
    unequal: _equality "<>" _comparison
    is_null: _equality "IS"i "NULL"i
    is_not_null: _equality "IS"i "NOT"i "NULL"i

    _comparison: _unary | ordered | between | not_between | is_in | is_not_in
    ordered: _comparison ORDER _unary
    between: _comparison "BETWEEN"i _unary "AND"i _unary
    not_between: _comparison "NOT"i "BETWEEN"i _unary "AND"i _unary
    is_in: _comparison "IN"i "(" STRING ("," STRING)* ")"
    is_not_in: _comparison "NOT"i "IN"i "(" STRING ("," STRING)* ")"

    _unary: _primary | "+" _unary | negated | inverted
    negated: "-" _unary
    inverted: "NOT"i _unary

    _primary: string | whole | floating | true | false | null | name | "(" _disjunction ")"
    string: STRING
    whole: WHOLE
    floating: FLOATING
    true: "TRUE"i
    false: "FALSE"i
    null: "NULL"i
    name: NAME

    ORDER: />=|<=|>|<(?!>)/
    STRING: /'(''|[^'])*'/
    FLOATING.2: /[0-9]+\.[0-9]*(e[+-]?[0-9]+)?|\.[0-9]+(e[+-]?[0-9]+)?|[0-9]+e[+-]?[0-9]+/i
    WHOLE: /(0|[1-9][0-9]*l?)/i
    NAME: /[a-z_$][a-z0-9_$]*/i
    %ignore /[ \t\n\r\f]+/
    %ignore /--[^\n\r]*(\r\n|\n|\r)/
    %ignore /\/\*[^*]*\*(\*|[^*\/][^*]*\*)*\//
"""


def compile_expression(expression: str) -> Callable[[Properties], Value]:
    """Return the function that evaluates an expression; the last 100 are cached.

    Raises BadFilter.
    """
    return _compiled(expression)


@lru_cache(maxsize=100)
def _compiled(expression: str) -> Callable[[Properties], Value]:
    try:
        node = _parser().parse(expression)
    except VisitError as error:
        raise BadFilter(expression, str(error.orig_exc)) from error
    except LarkError as error:
        raise BadFilter(expression, " ".join(str(error).split("\n", 1)[0].split())) from error
    except (ValueError, RecursionError) as error:
        raise BadFilter(expression, str(error)) from error
    assert isinstance(node, Node)
    return node.evaluate


@v_args(inline=True)
class _Builder(Transformer[Token, Node]):
    """Builds nodes while the parser reads; one method for each rule of the grammar."""

    def start(self, node: Node) -> Node:
        return nodes.condition(node)

    def any_of(self, *parts: Node) -> Node:
        return nodes.any_of([nodes.condition(part) for part in parts])

    def all_of(self, *parts: Node) -> Node:
        return nodes.all_of([nodes.condition(part) for part in parts])

    def equal(self, left: Node, right: Node) -> Node:
        nodes.require_equality(left, right)
        return nodes.equality(left, right)

    def unequal(self, left: Node, right: Node) -> Node:
        return nodes.inversion(self.equal(left, right))

    def is_null(self, node: Node) -> Node:
        return nodes.equality(node, nodes.literal(None))

    def is_not_null(self, node: Node) -> Node:
        return nodes.inversion(self.is_null(node))

    def ordered(self, left: Node, symbol: Token, right: Node) -> Node:
        return nodes.order(left, symbol, right)

    def between(self, node: Node, low: Node, high: Node) -> Node:
        nodes.require_range(low, high)
        return nodes.all_of([nodes.order(node, ">=", low), nodes.order(node, "<=", high)])

    def not_between(self, node: Node, low: Node, high: Node) -> Node:
        return nodes.any_of([nodes.order(node, "<", low), nodes.order(node, ">", high)])

    def is_in(self, node: Node, *texts: Token) -> Node:
        return nodes.membership(node, frozenset(map(_text_of, texts)))

    def is_not_in(self, node: Node, *texts: Token) -> Node:
        return nodes.inversion(self.is_in(node, *texts))

    def negated(self, node: Node) -> Node:
        return nodes.negation(node)

    def inverted(self, node: Node) -> Node:
        return nodes.inversion(nodes.condition(node))

    def string(self, token: Token) -> Node:
        return nodes.literal(_text_of(token))

    def whole(self, token: Token) -> Node:
        number = int(token.rstrip("lL"))
        if number >= 1 << 63:
            raise ValueError(f"{number} has more than 64 bits")
        return nodes.literal(number)

    def floating(self, token: Token) -> Node:
        number = float(token)
        if number == float("inf"):
            raise ValueError(f"{token} is too large")
        return nodes.literal(number)

    def true(self) -> Node:
        return nodes.literal(True)

    def false(self) -> Node:
        return nodes.literal(False)

    def null(self) -> Node:
        return nodes.literal(None)

    def name(self, token: Token) -> Node:
        name = str(token)
        return Node("name", lambda properties: properties.get(name))


def _text_of(token: Token) -> str:
    return token[1:-1].replace("''", "'")


@cache
def _parser() -> Lark:
    """Return the parser, built once by the first caller. Building takes a quarter of a second."""
    return Lark(_GRAMMAR, parser="lalr", transformer=_Builder(), cache=False)
