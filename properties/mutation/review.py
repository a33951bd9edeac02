"""Read which mutants a review of the source found equivalent, with the reason of each.

A file of `reviewed/` belongs to a package of the store. Each entry names a mutant, its change, and a digest of the
function around it. An entry counts only while change and function are as they were reviewed. A mutant with an entry is
tried as any other, so that a kill shows a wrong review.

`python -m tornpage.properties.mutation.review` adds changes and digests to new entries, and lists stale ones.
"""

import ast
import sys
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

from tornpage.properties.mutation.mutants import Mutant, UnknownMutant, mutant_of, original_tree

__all__ = ["Review", "reason_of", "reviews", "stale_because"]

_FOLDER = Path(__file__).parent / "reviewed"


@dataclass(frozen=True, slots=True)
class Review:
    """Name a mutant that changes nothing which a user can observe, and say why.

    `change` is the changed source text, and `scope` a digest of the function around it. Both are as reviewed.
    """

    id: str
    reason: str
    change: str = ""
    scope: str = ""


@lru_cache(maxsize=1)
def reviews() -> dict[str, Review]:
    """Return all reviews by the ids of their mutants."""
    found = {}
    for path in sorted(_FOLDER.glob("*.toml")):
        for name, fields in tomllib.loads(path.read_text(encoding="utf-8")).items():
            found[name] = Review(name, **fields)
    return found


def reason_of(mutant: Mutant) -> str:
    """Return why a review found a mutant equivalent, or an empty string.

    A stale review does not count.
    """
    review = reviews().get(mutant.id)
    if review is None or (review.change, review.scope) != (change_of(mutant), scope_digest(mutant)):
        return ""
    return review.reason


def stale_because(review: Review) -> str:
    """Return why a review does not count, or an empty string."""
    try:
        mutant = mutant_of(review.id)
    except UnknownMutant:
        return "the store has no such mutant"
    if review.change != change_of(mutant):
        return f"it was reviewed as: {review.change or 'nothing'}"
    if review.scope != scope_digest(mutant):
        return "the function around it has changed since the review"
    return ""


def change_of(mutant: Mutant) -> str:
    """Return the change of a mutant in one line of source text."""
    return " ".join(f"{mutant.before} becomes {mutant.after}".split())


def scope_digest(mutant: Mutant) -> str:
    """Return a digest of the function or class around a change.

    At the top of a module it is that of the module. Comments and blanks do not count.
    """
    return _digests(mutant.module)[mutant.scope]


@lru_cache(maxsize=512)
def _digests(module: str) -> dict[str, str]:
    texts: dict[str, list[str]] = {}

    def visit(node: ast.AST, scope: tuple[str, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            inner = scope
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = (*scope, child.name)
                texts.setdefault(".".join(inner), []).append(ast.unparse(child))
            visit(child, inner)

    tree = original_tree(module)
    texts[""] = [ast.unparse(tree)]
    visit(tree, ())
    return {name: blake2b("\n".join(each).encode(), digest_size=4).hexdigest() for name, each in texts.items()}


# ---- the files -------------------------------------------------------------------------------------------------------


def _sign() -> int:
    """Add change and digest to entries without them, and print stale ones.

    Return the exit code: 1 if an entry is stale.
    """
    is_stale = False
    for path in sorted(_FOLDER.glob("*.toml")):
        text = path.read_text(encoding="utf-8")
        for name, fields in tomllib.loads(text).items():
            review = Review(name, **fields)
            if not (review.change or review.scope):
                try:
                    mutant = mutant_of(name)
                except UnknownMutant as error:
                    print(f"{path.name}: {error}")
                    is_stale = True
                    continue
                signed = f'["{name}"]\nchange = {_quoted(change_of(mutant))}\nscope = "{scope_digest(mutant)}"\n'
                text = text.replace(f'["{name}"]\n', signed, 1)
            elif why := stale_because(review):
                print(f"{path.name}: {name}: {why}")
                is_stale = True
        path.write_text(text, encoding="utf-8")
    return int(is_stale)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


if __name__ == "__main__":
    sys.exit(_sign())
