"""List the mutants of the store, and draw samples of them.

A mutant is the store with one change. Its id is made of the module, the scope, the operator and a number in the scope,
so that a change elsewhere in the module leaves it as it is.
"""

import ast
import importlib.util
import math
import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import CodeType

from tornpage.properties.mutation.edits import REACHED, Edit, edits_of

__all__ = [
    "LEFT_OUT",
    "Mutant",
    "UnknownMutant",
    "all_mutants",
    "draw_sample",
    "is_among",
    "modules",
    "mutant_of",
    "original_tree",
    "path_of",
    "short_name",
    "tree_of",
]

LEFT_OUT = {
    "kernels": "its functions are compiled to machine code when they are first imported, and kept on disk",
}
"""The packages without mutants, with the reason."""

_ROOM = "tornpage.impl"


@dataclass(frozen=True, slots=True)
class Mutant:
    """Name a change of the store.

    `module` is the import name, and `package` is the first level below the store's room. `before` and `after` are the
    source text of the changed part. `line` is its line, and `statement_line` that of the statement with it.
    """

    id: str
    module: str
    package: str
    operator: str
    scope: str
    line: int
    statement_line: int
    before: str
    after: str

    @property
    def statement(self) -> str:
        """Return the changed statement, as `reach` names statements."""
        return f"{short_name(self.module)}:{self.statement_line}"


class UnknownMutant(ValueError):
    """Raise this if no mutant has the given id."""

    def __init__(self, wanted: str) -> None:
        super().__init__(f"no mutant {wanted!r}; `tornpage bugs mutate --list` names all")


def all_mutants() -> tuple[Mutant, ...]:
    """Return all mutants in the order of module and line."""
    return tuple(mutant for module in modules() for mutant in _mutants_of(module))


def mutant_of(wanted: str) -> Mutant:
    """Return the mutant with an id. Raises UnknownMutant."""
    for module in modules():
        if wanted.startswith(short_name(module) + ":"):
            for mutant in _mutants_of(module):
                if mutant.id == wanted:
                    return mutant
    raise UnknownMutant(wanted)


def tree_of(wanted: Mutant) -> ast.Module:
    """Return the changed syntax tree of the mutant's module. Raises UnknownMutant."""
    tree = original_tree(wanted.module)
    for name, edit in _named_edits(wanted.module, tree):
        if name == wanted.id:
            edit.apply()
            return ast.fix_missing_locations(tree)
    raise UnknownMutant(wanted.id)


def original_tree(module: str) -> ast.Module:
    """Return the syntax tree of a module of the store."""
    return ast.parse(_source(module).read_bytes())


def is_among(mutant: Mutant, packages: Collection[str], operators: Collection[str]) -> bool:
    """Return whether a mutant is of one of the packages and by one of the operators.

    Empty means any.
    """
    return (not packages or mutant.package in packages) and (not operators or mutant.operator in operators)


def draw_sample(
    size: int, seed: int, *, packages: Collection[str] = (), operators: Collection[str] = ()
) -> tuple[Mutant, ...]:
    """Draw a sample stratified by package, in proportion to the number of mutants of each.

    Each package with mutants has at least one if the size allows. A change with the bytecode of the original is not
    drawn. Only the given packages and operators are drawn from; empty means all. A larger sample of the same seed need
    not contain a smaller one. The order is random.
    """
    by_package: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in all_mutants():
        if is_among(mutant, packages, operators):
            by_package[mutant.package].append(mutant)
    drawn: list[Mutant] = []
    for name, count in _shares({name: len(mutants) for name, mutants in by_package.items()}, size).items():
        rng = random.Random(f"mutants {seed} {name}")
        candidates = by_package[name]
        rng.shuffle(candidates)
        changed = (mutant for mutant in candidates if not _has_same_bytecode(mutant))
        drawn += [mutant for mutant, _ in zip(changed, range(count), strict=False)]
    random.Random(f"mutants {seed}").shuffle(drawn)
    return tuple(drawn)


def _shares(counts: dict[str, int], size: int) -> dict[str, int]:
    """Divide the size by the method of largest remainders, with at least one for each name."""
    total = sum(counts.values())
    if size >= total:
        return counts
    exact = {name: size * count / total for name, count in counts.items()}
    shares = {name: max(1, math.floor(share)) for name, share in exact.items()}
    rounded_down = [name for name in exact if exact[name] >= 1]
    by_remainder = sorted(rounded_down, key=lambda name: (math.floor(exact[name]) - exact[name], name))
    for name in by_remainder[: max(0, size - sum(shares.values()))]:
        shares[name] += 1
    return shares


def _has_same_bytecode(mutant: Mutant) -> bool:
    """Return whether both have the same bytecode, apart from lines and the marker."""
    return _bytecode(_without_marker(tree_of(mutant))) == _original_bytecode(mutant.module)


@lru_cache(maxsize=512)
def _original_bytecode(module: str) -> object:
    return _bytecode(original_tree(module))


def _without_marker(tree: ast.Module) -> ast.Module:
    class Remover(ast.NodeTransformer):
        def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
            match node.value:
                case ast.Call(func=ast.Name(id=name)) if name == REACHED:
                    return None
            return node

    Remover().visit(tree)
    return ast.fix_missing_locations(tree)


def _bytecode(tree: ast.Module) -> object:
    def parts(code: CodeType) -> tuple[object, ...]:
        inner = tuple(
            parts(each) if isinstance(each, CodeType) else (type(each), repr(each)) for each in code.co_consts
        )
        return code.co_name, code.co_code, inner, code.co_names, code.co_varnames, code.co_exceptiontable

    return parts(compile(tree, "<mutant>", "exec"))


# ---- modules ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _folder() -> Path:
    spec = importlib.util.find_spec(_ROOM)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


@lru_cache(maxsize=1)
def modules() -> tuple[str, ...]:
    """Return the import names of the store's modules, longer names before their prefixes."""
    paths = sorted(path.relative_to(_folder()) for path in _folder().rglob("*.py"))
    names = [".".join((_ROOM, *path.with_suffix("").parts)) for path in paths if path.name != "__init__.py"]
    return tuple(name for name in names if _package(name) not in LEFT_OUT)


def path_of(module: str) -> str:
    """Return the path of the source of a module of the store."""
    return str(_source(module))


def _source(module: str) -> Path:
    return _folder().joinpath(*module.removeprefix(f"{_ROOM}.").split(".")).with_suffix(".py")


def short_name(module: str) -> str:
    """Return the import name of a module without the name of the store's room."""
    return module.removeprefix(f"{_ROOM}.")


def _package(module: str) -> str:
    return short_name(module).partition(".")[0]


@lru_cache(maxsize=512)
def _mutants_of(module: str) -> Sequence[Mutant]:
    tree = original_tree(module)
    return tuple(
        Mutant(
            name,
            module,
            _package(module),
            edit.operator,
            edit.scope,
            edit.line,
            edit.statement_line,
            edit.before,
            edit.after,
        )
        for name, edit in _named_edits(module, tree)
    )


def _named_edits(module: str, tree: ast.Module) -> Iterator[tuple[str, Edit]]:
    counted: Counter[tuple[str, str]] = Counter()
    for edit in edits_of(tree):
        number = counted[edit.scope, edit.operator] = counted[edit.scope, edit.operator] + 1
        yield f"{short_name(module)}:{edit.scope or 'module'}:{edit.operator.replace(' ', '-')}:{number}", edit
