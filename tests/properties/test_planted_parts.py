"""What planted bugs, and the lab, replace in the store: parts that a store asks for."""

import ast
import importlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import impl
from properties.explore.interleavings.parts import stepped_parts
from properties.lockstep.surroundings import Surroundings
from properties.planted import PLANTED
from properties.program.hand_driven import HandDriven

IMPL = Path(impl.__file__).parent


def impl_modules() -> Iterator[tuple[str, ast.Module]]:
    """Yield name and tree of each module of the store."""
    for path in sorted(IMPL.rglob("*.py")):
        name = ".".join(path.relative_to(IMPL.parent).with_suffix("").parts).removesuffix(".__init__")
        yield name, ast.parse(path.read_text(encoding="utf-8"))


@cache
def asked_for() -> frozenset[Any]:
    """Return each X of a `parts.of(X)` in the store."""
    return frozenset(
        getattr(importlib.import_module(name), argument.id)
        for name, tree in impl_modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "of"
        if ast.unparse(node.func.value).endswith("parts")
        for argument in node.args
        if isinstance(argument, ast.Name)
    )


def test_every_part_that_is_asked_for_is_named_where_it_is_asked_for() -> None:
    asked = [
        node
        for _, tree in impl_modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("parts.of")
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
        alone = Surroundings(lambda: 0).components(bug.parts)
        stepped = stepped_parts(bug.parts, runner=lambda service: HandDriven(service, lambda: 0))
        assert {*alone.replaced, *stepped.replaced} <= asked_for()
