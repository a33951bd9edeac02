"""Test that planted bugs and the crash lab only replace parts that the store asks for."""

import ast
import importlib
import inspect
import pkgutil
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tornpage import impl
from tornpage.impl.consumer.allocation import STRATEGIES
from tornpage.properties import planted
from tornpage.properties.explore.interleavings.parts import stepped_parts
from tornpage.properties.lockstep.environment import Environment
from tornpage.properties.planted import PLANTED
from tornpage.properties.program.hand_driven import HandDriven

IMPL = Path(impl.__file__).parent
LABS = ("tornpage.properties.consumers.host", "tornpage.properties.raft.trial")
"""Modules of the lab that build a broker for consumers, and a member of a Raft group, from their parts."""


def impl_modules() -> Iterator[tuple[str, ast.Module]]:
    """Yield name and tree of each module of the store."""
    for path in sorted(IMPL.rglob("*.py")):
        within = path.relative_to(IMPL).with_suffix("").parts
        name = ".".join((impl.__name__, *within)).removesuffix(".__init__")
        yield name, ast.parse(path.read_text(encoding="utf-8"))


@cache
def asked_for() -> frozenset[Any]:
    """Return each X of a `parts.of(X)` in the store and in the labs.

    `parts.of(chosen)` is called with a strategy of a table.
    """
    labs = ((name, ast.parse(inspect.getsource(importlib.import_module(name)))) for name in LABS)
    return frozenset(STRATEGIES.values()) | frozenset(
        getattr(importlib.import_module(name), argument.id)
        for name, tree in (*impl_modules(), *labs)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "of"
        if ast.unparse(node.func.value).endswith("parts")
        for argument in node.args
        if isinstance(argument, ast.Name) and argument.id != "chosen"
    )


def test_every_part_that_is_asked_for_is_named_where_it_is_asked_for() -> None:
    asked = [
        node
        for _, tree in impl_modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "of"
        if ast.unparse(node.func.value).endswith("parts")
    ]
    assert all(len(node.args) == 1 and isinstance(node.args[0], ast.Name) for node in asked)
    assert len(asked_for()) > 50


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_replaces_parts_that_a_store_asks_for(bug: str) -> None:
    replaced = set(PLANTED[bug].parts.replaced)
    assert replaced
    assert replaced <= asked_for()


def test_the_lab_replaces_parts_that_a_store_asks_for() -> None:
    for bug in PLANTED.values():
        alone = Environment(0).inject(bug.parts)
        stepped = stepped_parts(bug.parts, runner=lambda service: HandDriven(service, lambda: 0))
        assert {*alone.replaced, *stepped.replaced} <= asked_for()


# ---- seams -----------------------------------------------------------------------------------------------------------

SEAM_STATEMENTS_MAX = 2
"""A private method with at most this many statements may exist for overrides.

It then names the bugs that override it.
"""
SEAMS_MAX = 12
_MARK = re.compile(r"^    # planted: (?P<bugs>.+)\n(?:    @.+\n)*    def (?P<name>_\w+)\(", re.MULTILINE)


def planted_classes() -> Iterator[type]:
    """Yield each class of a planted bug that derives from a class of the store."""
    for found in pkgutil.walk_packages(planted.__path__, "tornpage.properties.planted."):
        module = importlib.import_module(found.name)
        for each in vars(module).values():
            if isinstance(each, type) and each.__module__ == found.name:
                yield each


def overridden(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield name and function of each private method that a planted bug overrides."""
    for name in vars(kind):
        if name.startswith("_") and not name.startswith("__"):
            owners = [
                base for base in kind.__mro__[1:] if name in vars(base) and base.__module__.startswith("tornpage.impl.")
            ]
            if owners and callable(function := inspect.getattr_static(owners[0], name)):
                yield f"{owners[0].__module__}.{name}", function


@cache
def statements(function: Any) -> int:
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    body = tree.body[1:] if ast.get_docstring(tree) is not None else tree.body
    return sum(isinstance(node, ast.stmt) for part in body for node in ast.walk(part))


def test_small_private_methods_that_bugs_override_are_few_and_marked() -> None:
    seams = {
        name
        for kind in planted_classes()
        for name, function in overridden(kind)
        if statements(function) <= SEAM_STATEMENTS_MAX
    }
    marks = {
        f"{name}.{found['name']}": found["bugs"].split(", ")
        for name, _ in impl_modules()
        for found in _MARK.finditer(Path(str(importlib.import_module(name).__file__)).read_text(encoding="utf-8"))
    }
    assert set(marks) == seams
    assert len(seams) <= SEAMS_MAX
    assert {bug for bugs in marks.values() for bug in bugs} <= set(PLANTED)
