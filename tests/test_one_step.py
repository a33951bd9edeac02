"""Test that operations have one meaning, in `model.step`, and one declaration.

They are declared in `model.operations`, those of clusters in `model.replication.operations`, those of Raft groups in
`model.raft.operations`, those of consumer groups in `model.consumers.operations`.
A transition is a public function of the model, below `step`, `crash` and
`corruption`, that takes a log or consumer progress and returns the next one. Modules of `properties` get states from
these three: from `model.step` after an operation, from `model.crash` after a crash or an open, from `model.corruption`
after a corruption.
"""

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path

from tornpage import model
from tornpage.model import operations
from tornpage.model.consumers.operations import GROUP_OPERATIONS
from tornpage.model.raft.operations import RAFT_OPERATIONS
from tornpage.model.replication.operations import CLUSTER_OPERATIONS
from tornpage.properties.explore.interleavings.operations import PART_OPERATIONS

ROOT = Path(__file__).parent.parent
ABOVE = ("step", "step_under_faults", "parts", "crash", "corruption", "answers")
"""Modules of the model that other rooms call."""
STATES = ("CommitLog", "ConsumerProgress")


def transitions() -> set[tuple[str, str]]:
    """Return module and name of each transition of the model."""
    found = set()
    for info in pkgutil.iter_modules(model.__path__):
        if info.name in ABOVE:
            continue
        module = importlib.import_module(f"tornpage.model.{info.name}")
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if name.startswith("_") or function.__module__ != module.__name__:
                continue
            hints = inspect.get_annotations(function, eval_str=False)
            given = [str(getattr(hint, "__name__", hint)) for key, hint in hints.items() if key != "return"]
            result = str(hints.get("return"))
            if given and given[0] in STATES and any(state in result for state in STATES):
                found.add((info.name, name))
    return found


def calls(source: str, known: set[tuple[str, str]]) -> Iterator[str]:
    """Yield each transition that a module calls or passes on, as `module.name`."""
    tree = ast.parse(source)
    modules: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "tornpage.model":
            modules |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tornpage.model."):
            home = (node.module or "").removeprefix("tornpage.model.")
            yield from (f"{home}.{alias.name}" for alias in node.names if (home, alias.name) in known)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            place = modules[node.value.id], node.attr
            if place in known:
                yield ".".join(place)


def test_transitions_are_found() -> None:
    known = transitions()
    assert {("commitlog", "append"), ("flushing", "flush"), ("retention", "clean"), ("progress", "commit")} <= known
    assert ("commitlog", "get") not in known
    source = "from tornpage.model import flushing as f\nfrom tornpage.model.queues import dispatch\nf.flush(log)\n"
    assert set(calls(source, known)) == {"flushing.flush", "queues.dispatch"}


def test_nothing_but_step_maps_an_operation_to_its_meaning() -> None:
    known, found = transitions(), {}
    for path in sorted((ROOT / "properties").rglob("*.py")):
        name = str(path.relative_to(ROOT))
        called = sorted(set(calls(path.read_text(), known)))
        if called:
            found[name] = called
    assert not found


def test_no_operation_is_declared_twice() -> None:
    names = set(operations.OPERATIONS) | set(operations.INTERLEAVED_OPERATIONS) | set(CLUSTER_OPERATIONS)
    names |= set(RAFT_OPERATIONS) | set(GROUP_OPERATIONS)
    names |= set(PART_OPERATIONS)
    declared: list[str] = []
    for room in ("model", "properties", "tornpage"):
        for path in sorted((ROOT / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "op":
                    assert path.name == "operations.py", path
                    declared.append(ast.literal_eval(node.value) if node.value else "")
    assert sorted(declared) == sorted(names)
    kinds = {*operations.OPERATIONS.values(), *operations.INTERLEAVED_OPERATIONS.values(), *CLUSTER_OPERATIONS.values()}
    kinds |= {*PART_OPERATIONS.values(), *RAFT_OPERATIONS.values(), *GROUP_OPERATIONS.values()}
    assert len(kinds) == len(names)
