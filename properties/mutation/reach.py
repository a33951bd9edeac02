"""Measure once, on the original store, which statements each strategy runs and how soon.

A mutant of a statement that no strategy runs needs no trial. The strategies that run the statement of another mutant
are tried in the order in which they run it. The measurement also keeps the digests of the trials in `TRACES`, with
which the traces of mutants are compared.
"""

import ast
import importlib
import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from mmap import mmap
from pathlib import Path
from time import process_time
from types import CodeType

import numpy as np

from tornpage.properties.campaign.resume import ResumeRows
from tornpage.properties.mutation.loading import ModuleFinder, forget_store
from tornpage.properties.mutation.mutants import modules, original_tree, path_of, short_name

__all__ = ["REACH", "Reach", "ReachRow", "marked_tree", "measure_reach", "reach_rows"]

REACH = "reach.jsonl"
_MARKS = "__statements_run__"


@dataclass(frozen=True, slots=True)
class ReachRow:
    """Hold the statements that a strategy ran within `budget_s` seconds of processor time.

    `first` has the processor time of the first run of each statement, by `module:line`. Statements that run during the
    import have 0. `digests` are those of a trial of `TRACES`.
    """

    strategy: str
    base_seed: int
    budget_s: float
    first: Mapping[str, float]
    digests: list[str] = field(default_factory=list)


class Reach:
    """Answer which strategies run a statement, from the rows of the strategies."""

    def __init__(self, rows: Mapping[str, ReachRow]) -> None:
        self.rows = rows

    def order(self, statement: str, strategies: tuple[str, ...]) -> tuple[str, ...]:
        """Return those of the strategies that run a statement, the earliest first.

        A strategy without a measurement is taken to run every statement late.
        """
        found = [
            (self.rows[name].first[statement] if name in self.rows else float("inf"), number, name)
            for number, name in enumerate(strategies)
            if name not in self.rows or statement in self.rows[name].first
        ]
        return tuple(name for _, _, name in sorted(found))

    def runs(self, strategy: str, statement: str) -> bool:
        """Return whether a strategy runs a statement. Without a measurement it is taken to do so."""
        return strategy not in self.rows or statement in self.rows[strategy].first

    def digests(self, strategy: str) -> tuple[str, ...]:
        """Return the digests of a strategy."""
        return tuple(self.rows[strategy].digests) if strategy in self.rows else ()


def reach_rows(directory: Path | None) -> ResumeRows[ReachRow]:
    """Return the measurements in a directory. Raises BadRows and OSError."""
    return ResumeRows(None if directory is None else directory / REACH, ReachRow)


def measure_reach(strategy: str, base_seed: int, budget_s: float) -> ReachRow:
    """Run a strategy, or a trial of `TRACES`, on the store with a mark at each statement.

    The store is imported for it. A trial of `TRACES` has no budget.
    """
    from tornpage.properties.mutation.ready import STRATEGIES
    from tornpage.properties.mutation.trials import TRACES, trace_digests

    logging.getLogger("tornpage").addHandler(logging.NullHandler())  # log output of broken stores is expected
    places: list[str] = []
    codes = {module: _compiled(module, places) for module in modules()}
    marks = mmap(-1, len(places))  # a forked process sets marks of this one
    _import_marked(STRATEGIES, codes, marks)
    seen, first = np.zeros(len(places), bool), dict[str, float]()
    started = process_time()

    def spent() -> float:
        return process_time() - started

    def note(seconds: float) -> None:
        for number in np.flatnonzero((np.frombuffer(marks, np.uint8) != 0) & ~seen):
            seen[number] = True
            first.setdefault(places[number], round(seconds, 3))

    def is_over() -> bool:
        note(spent())
        return spent() >= budget_s

    note(0.0)
    digests = list(trace_digests(strategy)) if strategy in TRACES else []
    if strategy not in TRACES:
        _seek(strategy, base_seed, is_over)
    note(spent())
    return ReachRow(strategy, base_seed, budget_s, first, digests)


def _import_marked(module: str, codes: Mapping[str, CodeType], marks: mmap) -> None:
    forget_store()
    finder = ModuleFinder(lambda name, _: codes.get(name), {_MARKS: marks})
    sys.meta_path.insert(0, finder)
    importlib.import_module(module)


def _seek(name: str, seed: int, is_over: Callable[[], bool]) -> None:
    """Run a strategy until its time is over.

    A detection on the original store does not end it.
    """
    from tornpage.properties.disk.dirty import choose_tracker
    from tornpage.properties.program.case import Settings
    from tornpage.properties.score.strategies import STRATEGIES

    with choose_tracker("auto") as tracker:
        for _ in STRATEGIES[name].seek(Settings(), seed=seed, tracker=tracker, is_over=is_over):
            if is_over():
                return


def _compiled(module: str, places: list[str]) -> CodeType:
    code = compile(marked_tree(module, places), path_of(module), "exec", dont_inherit=True)
    assert isinstance(code, CodeType)
    return code


def marked_tree(module: str, places: list[str]) -> ast.Module:
    """Return the syntax tree of a module with a mark before each statement.

    The statements are appended to `places`. A docstring and an import of `__future__` have no mark.
    """
    tree = original_tree(module)
    for node in list(ast.walk(tree)):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list):
                setattr(node, name, _marked(body, module, places))
    return ast.fix_missing_locations(tree)


def _marked(body: list[ast.stmt], module: str, places: list[str]) -> list[ast.stmt]:
    marked: list[ast.stmt] = []
    for statement in body:
        if not _is_first_in_file(statement):
            mark = f"{_MARKS}[{len(places)}] = 1"
            places.append(f"{short_name(module)}:{statement.lineno}")
            marked.append(ast.copy_location(ast.parse(mark).body[0], statement))
        marked.append(statement)
    return marked


def _is_first_in_file(statement: ast.stmt) -> bool:
    match statement:
        case ast.ImportFrom(module="__future__") | ast.Expr(value=ast.Constant()):
            return True
    return False
