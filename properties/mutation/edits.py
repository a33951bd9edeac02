"""List the changes that mutation operators make to a module's syntax tree.

A change is small and of one place, as in first-order mutation testing. The order of changes depends on the source text
alone.

Source of the classes of operators: R. A. DeMillo, R. J. Lipton, F. G. Sayward, Hints on test data selection (1978).
"""

import ast
import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["OPERATORS", "REACHED", "Edit", "edits_of"]

OPERATORS = {
    "comparison": "a comparison is another one: < is <=, == is !=, in is not in",
    "constant": "a number is one larger, or a truth value is the other one",
    "arithmetic": "+ is -, - is +, * is +, // is *",
    "and-or": "and is or, or is and",
    "removed not": "not is left out",
    "min-max": "min is max, max is min",
    "slice": "a bound of a slice is one larger",
    "swapped arguments": "the first two arguments of a call change places",
    "removed condition": "the body of an if always runs, or the first value of a conditional expression always counts",
    "removed call": "a statement that is a call is left out",
    "removed sync": "a call that syncs, flushes or forces is left out",
    "removed assignment": "an assignment to an attribute or an item is left out",
    "removed lock": "the body of a with statement runs without its lock",
    "swapped statements": "two simple statements in a row change places",
    "swapped in lock": "two simple statements in a row change places while a lock is held",
    "early return": "a function without a result returns before its last statement",
}
"""The operators by name, with what each does."""

REACHED = "__mutant_reached__"
"""The name of the function that a changed module calls before each run of the changed statement."""

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
}
_SYNC_WORDS = ("sync", "flush", "force")
_LOCK_WORDS = ("lock", "mutex", "guard", "condition", "exclusive")
_UNTOUCHED_FUNCTIONS = frozenset({"__repr__", "__str__"})
_LOGGERS = frozenset({"_LOG", "_log", "log", "logger", "logging", "warnings"})
_SIMPLE = (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign)


@dataclass(frozen=True, slots=True)
class Edit:
    """Hold one change of a tree.

    `scope` is the qualified name of the function or class around it, empty at the top of the module. `line` is that of
    the changed part, and `statement_line` that of the statement with it. `old` and `new` are the changed part. `apply`
    changes the tree that the edit was listed for.
    """

    operator: str
    scope: str
    line: int
    statement_line: int
    old: Sequence[ast.AST]
    new: Sequence[ast.AST]
    apply: Callable[[], None]

    @property
    def before(self) -> str:
        """Return the source text of the changed part, before the change. Ask before `apply`."""
        return _text(self.old)

    @property
    def after(self) -> str:
        """Return the source text of the changed part, after the change."""
        return _text(self.new)


def edits_of(tree: ast.Module) -> Iterator[Edit]:
    """Yield every change of a module. At most one of them may be applied to the tree."""
    yield from _Module().edits(tree)


def _named(node: ast.AST) -> str:
    """Return the last name of `a.b.c` or `c`, or an empty string."""
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case ast.Call(func=function):
            return _named(function)
    return ""


def _mentions(node: ast.AST, words: Sequence[str]) -> bool:
    return any(word in _named(node).lower() for word in words)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_log_call(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in _LOGGERS
    )


def _is_untouched(statement: ast.stmt) -> bool:
    """Return whether a statement has no behaviour, such as an import or log output."""
    match statement:
        case ast.Import() | ast.ImportFrom() | ast.Global() | ast.Nonlocal() | ast.Assert() | ast.Pass():
            return True
        case ast.If(test=test) if _named(test) == "TYPE_CHECKING":
            return True
        case ast.Assign(targets=[ast.Name(id=name)]) if name.startswith("__"):
            return True
        case ast.Expr(value=value):
            return isinstance(value, ast.Constant) or _is_log_call(value)
    return False


def _bound(statement: ast.stmt) -> set[str]:
    """Return the local names that a statement binds."""
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _read(statement: ast.stmt) -> set[str]:
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _stores_outside(statement: ast.stmt) -> bool:
    """Return whether a statement stores into an attribute or an item."""
    return any(
        isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store)
        for node in ast.walk(statement)
    )


def _nodes(value: object) -> list[ast.AST]:
    if isinstance(value, ast.AST):
        return [value]
    return [each for each in value if isinstance(each, ast.AST)] if isinstance(value, list) else []


@dataclass
class _Module:
    """Walk a module in the order of its text."""

    scope: tuple[str, ...] = ()
    is_in_function: bool = False
    locks: int = 0

    def edits(self, tree: ast.Module) -> Iterator[Edit]:
        yield from self._body(tree.body)

    # ---- statements ----------------------------------------------------------------------------------------------

    def _body(self, body: list[ast.stmt]) -> Iterator[Edit]:
        for index, statement in enumerate(list(body)):
            if _is_untouched(statement):
                continue
            yield from self._of_statement(body, index)
            if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield from self._of_expressions(body, statement)
            yield from self._inside(statement)

    def _inside(self, statement: ast.stmt) -> Iterator[Edit]:
        match statement:
            case ast.FunctionDef(name=name, body=body) | ast.AsyncFunctionDef(name=name, body=body):
                if name in _UNTOUCHED_FUNCTIONS:
                    return
                yield from self._scoped(name, body, is_function=True)
            case ast.ClassDef(name=name, body=body):
                yield from self._scoped(name, body, is_function=False)
            case ast.With(items=items, body=body):
                is_lock = any(_mentions(item.context_expr, _LOCK_WORDS) for item in items)
                self.locks += is_lock
                yield from self._body(body)
                self.locks -= is_lock
            case ast.Match(cases=cases):
                for case in cases:
                    yield from self._body(case.body)
            case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=finalbody):
                for part in (body, *(handler.body for handler in handlers), orelse, finalbody):
                    yield from self._body(part)
            case (
                ast.If(body=body, orelse=orelse)
                | ast.For(body=body, orelse=orelse)
                | ast.While(body=body, orelse=orelse)
            ):
                yield from self._body(body)
                yield from self._body(orelse)

    def _scoped(self, name: str, body: list[ast.stmt], *, is_function: bool) -> Iterator[Edit]:
        outer = self.scope, self.is_in_function, self.locks
        self.scope, self.is_in_function, self.locks = (*self.scope, name), is_function, 0
        yield from self._body(body)
        self.scope, self.is_in_function, self.locks = outer

    def _of_statement(self, body: list[ast.stmt], index: int) -> Iterator[Edit]:
        statement = body[index]
        match statement:
            case ast.Expr(value=ast.Call() as call):
                operator = "removed sync" if _mentions(call, _SYNC_WORDS) else "removed call"
                yield self._replaced(operator, body, index, 1, [ast.Pass()])
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) if self.is_in_function:
                yield self._replaced("removed assignment", body, index, 1, [ast.Pass()])
            case ast.If(test=test) if not _is_true(test):
                always = copy.copy(statement)
                always.test = ast.Constant(value=True)
                yield self._replaced("removed condition", body, index, 1, [always], shown=(test, always.test))
            case ast.With(items=items, body=inner):
                locks = [item for item in items if _mentions(item.context_expr, _LOCK_WORDS)]
                if locks and not any(item.optional_vars for item in locks):
                    yield self._without_locks(body, index, statement, items, locks, inner)
            case ast.FunctionDef(body=[*_, last]) if self._returns_nothing(statement) and not _is_a_string(last):
                yield self._early_return(statement)
        if index + 1 < len(body) and self._may_swap(statement, body[index + 1]):
            operator = "swapped in lock" if self.locks else "swapped statements"
            yield self._replaced(operator, body, index, 2, [body[index + 1], statement])

    def _without_locks(
        self,
        body: list[ast.stmt],
        index: int,
        statement: ast.With,
        items: list[ast.withitem],
        locks: list[ast.withitem],
        inner: list[ast.stmt],
    ) -> Edit:
        rest = [item for item in items if item not in locks]
        if rest:
            without = copy.copy(statement)
            without.items = rest
            return self._replaced("removed lock", body, index, 1, [without], shown=(locks[0], rest[0]))
        return self._replaced("removed lock", body, index, 1, inner, shown=(locks[0], ast.Pass()))

    def _may_swap(self, first: ast.stmt, second: ast.stmt) -> bool:
        """Return whether the order of two statements may matter and is not forced by a local name.

        The order matters if one of them calls something, or if both store where another thread may look.
        """
        if not self.is_in_function or not isinstance(first, _SIMPLE) or not isinstance(second, _SIMPLE):
            return False
        if _is_untouched(first) or _is_untouched(second) or _bound(first) & (_read(second) | _bound(second)):
            return False
        if any(isinstance(node, ast.Call) for each in (first, second) for node in ast.walk(each)):
            return True
        return self.scope[-1] != "__init__" and _stores_outside(first) and _stores_outside(second)

    def _returns_nothing(self, function: ast.FunctionDef) -> bool:
        returned = function.returns
        statements = [each for each in function.body if not _is_docstring(each)]
        return isinstance(returned, ast.Constant) and returned.value is None and len(statements) > 1

    def _early_return(self, function: ast.FunctionDef) -> Edit:
        outer = self.scope
        self.scope = (*outer, function.name)
        edit = self._replaced("early return", function.body, len(function.body) - 1, 1, [ast.Return(value=None)])
        self.scope = outer
        return edit

    # ---- expressions ---------------------------------------------------------------------------------------------

    def _of_expressions(self, body: list[ast.stmt], statement: ast.stmt) -> Iterator[Edit]:
        for name, value in ast.iter_fields(statement):
            if name in ("body", "orelse", "finalbody", "handlers", "cases", "annotation"):
                continue
            for index, node in enumerate(_nodes(value)):
                place = (statement, name, index if isinstance(value, list) else None)
                yield from self._of_expression(body, statement, place, node)
        if isinstance(statement, ast.Match):
            for case in statement.cases:
                if case.guard is not None:
                    yield from self._of_expression(body, statement, (case, "guard", None), case.guard)

    def _of_expression(
        self, body: list[ast.stmt], statement: ast.stmt, place: tuple[ast.AST, str, int | None], node: ast.AST
    ) -> Iterator[Edit]:
        for operator, changed in _changes(node):
            yield self._exchanged(operator, body, statement, place, node, changed)
        if _is_log_call(node) or (isinstance(statement, ast.Raise) and isinstance(node, ast.Call)):
            return
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns"):
                continue
            for index, child in enumerate(_nodes(value)):
                inside = (node, name, index if isinstance(value, list) else None)
                yield from self._of_expression(body, statement, inside, child)

    # ---- making edits --------------------------------------------------------------------------------------------

    def _replaced(
        self,
        operator: str,
        body: list[ast.stmt],
        index: int,
        count: int,
        new: Sequence[ast.stmt],
        *,
        shown: tuple[ast.AST, ast.AST] | None = None,
    ) -> Edit:
        """Return the edit that puts other statements in the place of `count` statements."""
        old = body[index : index + count]

        def apply() -> None:
            body[index : index + count] = [_marker(old[0]), *(ast.copy_location(each, old[0]) for each in new)]

        was, becomes = ([shown[0]], [shown[1]]) if shown else (old, new)
        line = old[0].lineno
        return Edit(operator, ".".join(self.scope), line, line, was, becomes, apply)

    def _exchanged(
        self,
        operator: str,
        body: list[ast.stmt],
        statement: ast.stmt,
        place: tuple[ast.AST, str, int | None],
        node: ast.AST,
        changed: ast.AST,
    ) -> Edit:
        """Return the edit that puts another expression in the place of one."""

        def apply() -> None:
            parent, name, index = place
            if index is None:
                setattr(parent, name, changed)
            else:
                getattr(parent, name)[index] = changed
            body.insert(body.index(statement), _marker(statement))

        line = int(getattr(node, "lineno", statement.lineno))
        return Edit(operator, ".".join(self.scope), line, statement.lineno, [node], [changed], apply)


def _is_a_string(statement: ast.stmt) -> bool:
    """Return whether a statement is a string, which documents the attribute before it."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_true(test: ast.expr) -> bool:
    return isinstance(test, ast.Constant) and test.value is True


def _marker(statement: ast.stmt) -> ast.stmt:
    """Return the statement that notes that the changed place is reached."""
    call = ast.Call(func=ast.Name(id=REACHED, ctx=ast.Load()), args=[], keywords=[])
    return ast.copy_location(ast.Expr(value=call), statement)


def _text(nodes: Sequence[ast.AST]) -> str:
    return "; ".join(ast.unparse(ast.fix_missing_locations(copy.deepcopy(node))) for node in nodes)


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield operator and changed expression for each change of one expression itself."""
    match node:
        case ast.Compare(ops=ops):
            for index, operation in enumerate(ops):
                if type(operation) in _COMPARED:
                    others = [*ops]
                    others[index] = _COMPARED[type(operation)]()
                    yield "comparison", _with(node, ops=others)
        case ast.BoolOp(op=operation):
            yield "and-or", _with(node, op=ast.Or() if isinstance(operation, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "removed not", operand
        case ast.BinOp(op=operation) if type(operation) in _COMPUTED and not _is_text(node):
            yield "arithmetic", _with(node, op=_COMPUTED[type(operation)]())
        case ast.IfExp(body=body):
            yield "removed condition", body
        case ast.Constant(value=bool() as value):
            yield "constant", ast.Constant(value=not value)
        case ast.Constant(value=int() as value):
            yield "constant", ast.Constant(value=value + 1)
        case ast.Subscript(slice=ast.Slice() as bounds):
            for name in ("lower", "upper"):
                if (bound := getattr(bounds, name)) is not None:
                    later = ast.BinOp(left=bound, op=ast.Add(), right=ast.Constant(value=1))
                    yield "slice", _with(node, slice=_with(bounds, **{name: later}))
        case ast.Call(func=function, args=arguments):
            if isinstance(function, ast.Name) and function.id in ("min", "max"):
                other = ast.Name(id="max" if function.id == "min" else "min", ctx=ast.Load())
                yield "min-max", _with(node, func=other)
            elif len(arguments) > 1 and _may_change_places(arguments[0], arguments[1]):
                yield "swapped arguments", _with(node, args=[arguments[1], arguments[0], *arguments[2:]])


def _may_change_places(first: ast.expr, second: ast.expr) -> bool:
    if isinstance(first, ast.Starred) or isinstance(second, ast.Starred):
        return False
    return ast.dump(first) != ast.dump(second)


def _is_text(node: ast.BinOp) -> bool:
    """Return whether an operation joins text or bytes, so that a change only raises TypeError."""
    return any(
        isinstance(each, ast.JoinedStr) or (isinstance(each, ast.Constant) and isinstance(each.value, str | bytes))
        for each in (node.left, node.right)
    )


def _with(node: Any, **fields: object) -> Any:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed
