"""Prove by the source text that a mutant behaves as the original.

The proofs know little: a mutant without a proof may be equivalent as well. Each proof is a sentence.
"""

import ast
from collections.abc import Iterator
from itertools import pairwise

from tornpage.properties.mutation.mutants import Mutant, original_tree

__all__ = ["proof_of"]

_SWAPS = frozenset({"swapped statements", "swapped in lock"})
_MAKERS = frozenset({"bytearray", "bytes", "deque", "dict", "frozenset", "len", "list", "set", "tuple"})
"""Functions that change nothing and read nothing but their arguments."""
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
            return "the two statements are independent: one calls nothing, and neither stores what the other one reads"
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
    that nothing that is called can read them. Both values may read one object only if neither can change it or see a
    change of it: both are inert, or one only names the object.
    """
    if not (_assigns(first, is_new=is_new) and _assigns(second, is_new=is_new)):
        return False
    targets = [_targets(each) for each in (first, second)]
    assigned = [each.value for each in (first, second) if isinstance(each, ast.Assign | ast.AnnAssign)]
    values = [value for value in assigned if value is not None]
    if len(values) != 2 or not any(map(_is_inert, values)):
        return False
    if any(isinstance(node, ast.NamedExpr) for value in values for node in ast.walk(value)):
        return False
    stored = [{ast.unparse(target) for target in each} for each in targets]
    read = [{node.id for node in ast.walk(value) if isinstance(node, ast.Name)} for value in values]
    bound = [{node.id for each in some for node in ast.walk(each) if isinstance(node, ast.Name)} for some in targets]
    is_shared = all(map(_is_inert, values)) or any(map(_only_names, values))
    is_apart = not stored[0] & stored[1] and (is_shared or not read[0] & read[1] - _MAKERS)
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


def _only_names(value: ast.expr) -> bool:
    """Return whether a value only names objects.

    It is a constant, a name, an empty container, or a tuple or list of these. It reads no content of an object, so that
    it is the same before and after a change of the object.
    """
    match value:
        case ast.Constant() | ast.Name():
            return True
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return all(map(_only_names, items))
        case ast.Call(func=ast.Name(id=name), args=[], keywords=[]):
            return name in _MAKERS
    return False


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
