"""Prove by the source text that a mutant behaves as the original.

The proofs know little: a mutant without a proof may be equivalent as well. Each proof is a sentence.
"""

import ast
from collections.abc import Iterator
from itertools import pairwise

from tornpage.properties.mutation.mutants import Mutant, original_tree

__all__ = ["proof_of"]

_SWAPS = frozenset({"swapped statements", "swapped in lock"})
_MAKERS = frozenset({"bytearray", "bytes", "dict", "frozenset", "len", "list", "set", "tuple"})
"""Builtins that change nothing and read nothing but their arguments."""
_INERT = (
    ast.Constant, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop,
    ast.expr_context,
)  # fmt: skip


def proof_of(mutant: Mutant) -> str:
    """Return why a mutant is equivalent, or an empty string."""
    if mutant.operator not in _SWAPS:
        return ""
    is_new = mutant.scope.rpartition(".")[2] == "__init__"  # nothing else has the object yet
    for first, second in _pairs(original_tree(mutant.module)):
        if first.lineno == mutant.statement_line and _are_independent(first, second, is_new=is_new):
            return "the two statements are independent: one calls nothing, and they share no name"
    return ""


def _pairs(tree: ast.Module) -> Iterator[tuple[ast.stmt, ast.stmt]]:
    """Yield two statements in a row of any body."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list):
                yield from pairwise(body)


def _are_independent(first: ast.stmt, second: ast.stmt, *, is_new: bool) -> bool:
    """Return whether both orders of two assignments have the same effect.

    One of them has an inert value. Attributes may only be those of a new `self`, and then no value mentions `self`, so
    that nothing that is called can read them.
    """
    if not (_assigns(first, is_new=is_new) and _assigns(second, is_new=is_new)):
        return False
    targets = [_targets(each) for each in (first, second)]
    values = [each.value for each in (first, second) if isinstance(each, ast.Assign | ast.AnnAssign)]
    if len(values) != 2 or not any(value is not None and _is_inert(value) for value in values):
        return False
    stored = [{ast.unparse(target) for target in each} for each in targets]
    read = [{node.id for node in ast.walk(value) if isinstance(node, ast.Name)} if value else set() for value in values]
    bound = [{node.id for each in some for node in ast.walk(each) if isinstance(node, ast.Name)} for some in targets]
    is_apart = not stored[0] & stored[1] and not read[0] & read[1] - _MAKERS
    return is_apart and not bound[0] & read[1] and not bound[1] & read[0]


def _assigns(statement: ast.stmt, *, is_new: bool) -> bool:
    """Return whether a statement stores only into names, and into attributes of a new `self`."""
    for target in _targets(statement):
        for node in [target] if not isinstance(target, ast.Tuple) else target.elts:
            match node:
                case ast.Name():
                    continue
                case ast.Attribute(value=ast.Name(id="self")) if is_new:
                    continue
            return False
    return bool(_targets(statement))


def _targets(statement: ast.stmt) -> list[ast.expr]:
    match statement:
        case ast.Assign(targets=targets):
            return targets
        case ast.AnnAssign(target=target, value=value) if value is not None:
            return [target]
    return []


def _is_inert(value: ast.expr) -> bool:
    """Return whether a value calls nothing that could change or read anything else."""
    match value:
        case ast.Name():
            return True
        case ast.Attribute(value=ast.Name(id=name)):
            return name.isupper()  # a constant of the module, such as a struct
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return name in _MAKERS and all(map(_is_inert, arguments))
    return isinstance(value, _INERT) and all(
        _is_inert(child) if isinstance(child, ast.expr) else isinstance(child, _INERT)
        for child in ast.iter_child_nodes(value)
    )
